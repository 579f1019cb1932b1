//! `--map`: which pages of a file are cached, drawn or as numbers.

use std::fmt::Write as _;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::finding;
use super::found::End;
use super::opening::Aim;
use super::options::Options;
use super::paths::Paths;
use super::pattern::Lengths;
use super::pattern::Pattern;
use super::printing::offer;
use super::ranges::Run;
use super::residency;
use super::residency::Ask;
use super::residency::Method;
use super::residency::Unknown;
use super::row::Kind;
use super::row::Row;
use super::totals::Totals;
use super::view;
use crate::exit::Failure;
use crate::text::numbers::bytes;
use crate::text::numbers::percent;

/// Cells in a line, and lines of a large file.
const CELLS: u64 = 64;
const LINES: u64 = 16;

/// The pages of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMap {
    /// Its path.
    pub path: PathBuf,
    /// Pages that its size covers.
    pub pages: u64,
    /// Runs of cached pages.
    pub runs: Vec<Run>,
    /// What they look like.
    pub pattern: Pattern,
    /// Who answered.
    pub method: Method,
}

impl FileMap {
    /// Asks for the runs of a file.
    ///
    /// # Errors
    /// Why they cannot be known.
    pub fn new(path: &Path, fd: impl AsFd, ask: Ask) -> Result<Self, Unknown> {
        let pages = residency::size(fd.as_fd())?.div_ceil(rustix::param::page_size() as u64);
        let mut runs = ask.ranges(fd.as_fd())?;
        clip(&mut runs, pages);
        let pattern = Pattern::new(&runs, pages);
        Ok(Self { path: path.to_path_buf(), pages, runs, pattern, method: ask.on(fd.as_fd()).method() })
    }

    fn cached(&self) -> u64 {
        self.runs.iter().map(|r| r.pages).sum()
    }

    fn dirty(&self) -> Option<u64> {
        self.runs.iter().map(|r| r.dirty).sum()
    }

    /// The drawing: a line for each range, with the number of its first page.
    #[must_use]
    pub fn text(&self) -> String {
        let page = rustix::param::page_size() as u64;
        let cached = self.cached();
        let s = |n: u64| if n == 1 { "" } else { "s" };
        let mut out = format!("{}\n", view::name(&self.path));
        let ratio = if self.pages == 0 { "-".into() } else { percent(cached as f64 / self.pages as f64) };
        let _ = writeln!(
            out,
            "{} page{} ({}), {cached} cached ({ratio}), {} dirty, {} run{}",
            self.pages,
            s(self.pages),
            bytes(self.pages.saturating_mul(page)),
            self.dirty().map_or("-".into(), |n| n.to_string()),
            self.runs.len(),
            s(self.runs.len() as u64)
        );
        if self.pages == 0 {
            return out;
        }
        self.draw(&mut out);
        if let Some(repeat) = &self.pattern.repeat {
            let _ = writeln!(out, "pattern: {}", repeat.words());
        }
        lengths("runs", &self.pattern.runs, &mut out);
        lengths("holes", &self.pattern.holes, &mut out);
        out
    }

    fn draw(&self, out: &mut String) {
        let cell = self.pages.div_ceil(CELLS * LINES).max(1);
        let cells = self.pages.div_ceil(cell);
        let digits = self.pages.to_string().len();
        let each = if cell == 1 { "a page".into() } else { format!("{cell} pages") };
        let _ = writeln!(out, "each cell is {each}: '#' all cached, '+' half or more, ':' less, '.' none");
        let mut runs = self.runs.iter().peekable();
        for i in 0..cells {
            let (from, to) = (i * cell, ((i + 1) * cell).min(self.pages));
            if i % CELLS == 0 {
                let _ = write!(out, "{}{from:>digits$} ", if i == 0 { "" } else { "\n" });
            }
            let mut filled = 0;
            while let Some(run) = runs.peek().filter(|r| r.start < to) {
                filled += run.end().min(to) - run.start.max(from);
                if run.end() > to {
                    break;
                }
                runs.next();
            }
            out.push(match filled {
                0 => '.',
                n if n == to - from => '#',
                n if n * 2 >= to - from => '+',
                _ => ':',
            });
        }
        out.push('\n');
    }

    /// The same as one JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("type".into(), "map".into());
        view::put_path(&mut object, &self.path);
        let range = |r: &Run| json!({"start":r.start,"pages":r.pages,"dirty":r.dirty});
        let repeat = self.pattern.repeat.as_ref();
        for (key, value) in [
            ("pages", json!(self.pages)),
            ("cached", json!(self.cached())),
            ("dirty", json!(self.dirty())),
            ("method", json!(self.method.name())),
            ("ranges", self.runs.iter().map(range).collect()),
            ("run_lengths", self.pattern.runs.json()),
            ("hole_lengths", self.pattern.holes.json()),
            (
                "pattern",
                json!(repeat.map(|r| json!({"cached":r.cached,"hole":r.hole,"times":r.times,"of":r.of}))),
            ),
        ] {
            object.insert(key.into(), value);
        }
        Value::Object(object)
    }
}

/// Cuts off what lies past the end: the file may have grown between the two questions.
fn clip(runs: &mut Vec<Run>, pages: u64) {
    runs.retain(|r| r.start < pages);
    if let Some(last) = runs.last_mut() {
        last.pages = last.pages.min(pages - last.start);
        last.dirty = last.dirty.map(|dirty| dirty.min(last.pages));
    }
}

fn lengths(what: &str, lengths: &Lengths, out: &mut String) {
    let slots: Vec<_> = lengths.slots().collect();
    let most = slots.iter().map(|s| s.3).max().unwrap_or(1).max(1);
    if !slots.is_empty() {
        let _ = writeln!(out, "{what:>5} of pages    count      pages");
    }
    for (from, to, count, pages) in slots {
        let range = if from == to { from.to_string() } else { format!("{from}-{to}") };
        let bar = "*".repeat(usize::try_from((pages * 30).div_ceil(most)).unwrap_or(30));
        let _ = writeln!(out, "{range:>14} {count:>8} {pages:>10}  {bar}");
    }
}

/// Draws each file.
///
/// # Errors
/// When the output cannot be written, or the processes requested are not there.
pub fn run(
    options: &Options,
    paths: &Paths,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<End, Failure> {
    let mut end = End::Done;
    let rows: Vec<Row> = if options.by_process() {
        let found = finding::find(options, paths)?;
        end = found.warn(err);
        // The notes name those that cannot be known.
        found.rows.into_iter().filter(|r| r.why.is_none()).collect()
    } else {
        let row = |path: &PathBuf| Row::new(Kind::File, path.clone(), 0, Totals::default(), None);
        paths.all()?.iter().map(row).collect()
    };
    for (i, row) in rows.iter().enumerate() {
        let path = &row.path;
        match row.open(Aim::Look).and_then(|(fd, _)| FileMap::new(path, fd, options.ask())) {
            // A process has closed it.
            Err(Unknown::Vanished) if row.via.is_some() => {}
            Ok(map) => {
                let gap = if i > 0 { "\n" } else { "" };
                let text = if options.json() {
                    format!("{}\n", crate::text::foreign::json(&map.json()))
                } else {
                    format!("{gap}{}", map.text())
                };
                if !offer(text.as_bytes(), out)? {
                    break;
                }
            }
            Err(why) => {
                let _ = writeln!(err, "cachedu: {}: {why}", view::name(path));
                end = End::Partly;
            }
        }
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pages: u64, list: &[(u64, u64)]) -> FileMap {
        let runs: Vec<_> =
            list.iter().map(|&(start, pages)| Run { start, pages, dirty: Some(start % 2) }).collect();
        let pattern = Pattern::new(&runs, pages);
        FileMap { path: "f".into(), pages, runs, pattern, method: Method::Cachestat }
    }

    #[test]
    fn a_run_across_the_old_end_is_cut_there() {
        let run = |start, pages, dirty| Run { start, pages, dirty: Some(dirty) };
        let mut runs = vec![run(0, 2, 0), run(5, 20, 9), run(40, 1, 0)];
        clip(&mut runs, 10);
        assert_eq!(runs, [run(0, 2, 0), run(5, 5, 5)]);
        clip(&mut runs, 5);
        assert_eq!(runs, [run(0, 2, 0)]);
    }

    #[test]
    fn drawings() {
        let every: Vec<_> = (0..200).map(|i| (i * 14, 1)).collect();
        let list = [
            map(2800, &every),
            map(100, &[(0, 10), (50, 3), (99, 1)]),
            map(100_000, &[(0, 98), (98, 40), (50_000, 25_000)]),
            map(5, &[]),
            map(0, &[]),
        ];
        let text: Vec<_> = list.iter().map(FileMap::text).collect();
        insta::assert_snapshot!("maps", text.join("\n"));
    }
}
