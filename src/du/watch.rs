//! `--watch`: what grew and shrank since the last look.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use super::finding;
use super::found::End;
use super::found::Found;
use super::options::Options;
use super::paths::Paths;
use super::printing;
use super::row::Kind;
use super::view;
use crate::exit::Failure;
use crate::text::numbers::bytes;
use crate::text::table::fitted;

/// Rows of a look where no number was requested.
const ROWS: usize = 20;

/// Looks again and again, until nobody reads any more or it is interrupted.
///
/// # Errors
/// What could not be looked at, and when the output cannot be written.
pub(super) fn run(
    options: &Options,
    every: Duration,
    paths: &Paths,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<End, Failure> {
    // Which rows change most is known when all are there.
    let look = Options { top: None, quiet: true, ..options.clone() };
    let rows = options.top.map_or(ROWS, |n| n as usize);
    let mut last: Option<Look> = None;
    let mut next = Instant::now();
    loop {
        let found = finding::find(&look, paths)?;
        if last.is_none() {
            found.warn(err);
        }
        let now = Look::new(&found);
        let time = jiff::Zoned::now().strftime("%H:%M:%S").to_string();
        if !printing::offer(now.text(last.as_ref(), &time, rows).as_bytes(), out)? {
            return Ok(End::Done);
        }
        last = Some(now);
        // A look that took longer than the interval is followed by the next at once, not by several.
        next = (next + every).max(Instant::now());
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// What one look found, in pages.
struct Look {
    total: Option<u64>,
    /// Of each row; `None`: not known.
    cached: HashMap<PathBuf, (Option<u64>, Kind)>,
}

impl Look {
    fn new(found: &Found) -> Self {
        let cached = found.rows.iter().map(|r| (r.path.clone(), (r.totals.cached(), r.kind)));
        Self { total: found.total.cached(), cached: cached.collect() }
    }

    /// The rows that changed most since the last look.
    fn text(&self, last: Option<&Look>, time: &str, most: usize) -> String {
        let size = |n: u64| bytes(n.saturating_mul(rustix::param::page_size() as u64));
        let known = |n: Option<u64>| n.map_or("-".to_owned(), size);
        let total = known(self.total);
        let Some(last) = last else { return format!("{time}  {total} cached\n") };
        let grew = |before: Option<u64>, now: Option<u64>| match (before, now) {
            (Some(before), Some(now)) if now >= before => format!("+{}", size(now - before)),
            (Some(before), Some(now)) => format!("-{}", size(before - now)),
            _ => "-".into(),
        };
        let mut changed: Vec<(&Path, Kind, u64, u64)> = Vec::new();
        for (path, (now, kind)) in &self.cached {
            // What is new had nothing; what was not known is not compared.
            let before = last.cached.get(path).map_or(Some(0), |(before, _)| *before);
            if let (Some(before), Some(now)) = (before, *now) {
                changed.push((path, *kind, before, now));
            }
        }
        for (path, (before, kind)) in last.cached.iter().filter(|(path, _)| !self.cached.contains_key(*path))
        {
            changed.extend(before.map(|before| (path.as_path(), *kind, before, 0)));
        }
        changed.retain(|(_, _, before, now)| before != now);
        changed.sort_by(|a, b| b.2.abs_diff(b.3).cmp(&a.2.abs_diff(a.3)).then_with(|| a.0.cmp(b.0)));
        let mut text = format!("{time}  {total} cached, {}\n", grew(last.total, self.total));
        let shown = &changed[..changed.len().min(most)];
        let lines: Vec<_> = shown
            .iter()
            .map(|(_, _, before, now)| vec![grew(Some(*before), Some(*now)), size(*now)])
            .collect();
        let names: Vec<_> = shown
            .iter()
            .map(|(path, kind, ..)| {
                let slash = if *kind == Kind::Directory && *path != Path::new("/") { "/" } else { "" };
                format!("{}{slash}", view::name(path))
            })
            .collect();
        if !shown.is_empty() {
            let title = |s: &str| s.to_owned();
            let lines = [vec![vec![title("GREW"), title("CACHED")]], lines].concat();
            text += &fitted(&lines, &[vec![title("NAME")], names].concat());
        }
        if changed.len() > shown.len() {
            text += &format!("({} more changed)\n", changed.len() - shown.len());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(rows: &[(&str, Option<u64>)]) -> Look {
        let cached = rows.iter().map(|(path, n)| (PathBuf::from(path), (*n, Kind::File))).collect();
        Look { total: rows.iter().map(|r| r.1).sum(), cached }
    }

    #[test]
    fn what_changed_most_is_first() {
        let kib = rustix::param::page_size() as u64 / 1024;
        let before = look(&[("same", Some(5)), ("gone", Some(30)), ("less", Some(9)), ("closed", None)]);
        let now = look(&[("same", Some(5)), ("less", Some(7)), ("new\x1b", Some(2000)), ("closed", Some(1))]);
        assert_eq!(now.text(None, "T", 9), format!("T  {} cached\n", bytes(2013 * kib * 1024)));
        let text = now.text(Some(&before), "T", 9);
        let names: Vec<_> = text.lines().skip(2).filter_map(|l| l.split_whitespace().last()).collect();
        assert_eq!(names, [r"new\x1b", "gone", "less"], "{text}");
        assert!(text.contains(&format!("-{}", bytes(30 * kib * 1024))) && !text.contains("same"), "{text}");
        // The sum was not known before.
        assert!(text.starts_with(&format!("T  {} cached, -\n", bytes(2013 * kib * 1024))), "{text}");
        assert!(now.text(Some(&before), "T", 1).ends_with("(2 more changed)\n"));
        assert_eq!(now.text(Some(&look(&[])), "T", 0).lines().count(), 2);
        assert_eq!(before.text(Some(&before), "T", 9).lines().count(), 1);
    }

    #[test]
    fn ten_thousand_rows() {
        let names: Vec<_> = (0..10_000).map(|i| format!("f{i:05}")).collect();
        let rows = |by: u64| names.iter().map(|n| (n.as_str(), Some(by))).collect::<Vec<_>>();
        let text = look(&rows(3)).text(Some(&look(&rows(2))), "T", ROWS);
        assert_eq!(text.lines().count(), 1 + 1 + ROWS + 1);
        assert!(text.contains("f00000") && text.contains("(9980 more changed)"), "{text}");
    }
}
