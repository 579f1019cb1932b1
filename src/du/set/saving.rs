//! Writes a set.

use std::fmt::Write as _;
use std::io::Write;
use std::os::fd::AsFd as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use rayon::prelude::*;
use serde_json::Map;
use serde_json::json;

use super::KIND;
use super::LARGEST;
use super::LAST;
use super::LONGEST;
use super::VERSION;
use super::mtime;
use super::room;
use crate::du::found::End;
use crate::du::interrupt;
use crate::du::opening;
use crate::du::printing::print;
use crate::du::row::Row;
use crate::du::view;
use crate::exit::Failure;
use crate::residency::Ask;
use crate::residency::Unknown;
use crate::text::outfile;

/// Writes which pages of the files are cached; `-` is standard output.
///
/// # Errors
/// When it cannot be written.
pub fn save(
    path: &Path,
    rows: &[Row],
    ask: Ask,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<End, Failure> {
    let mut end = End::Done;
    let (rows, nameless): (Vec<&Row>, Vec<&Row>) =
        rows.iter().filter(|r| r.totals.cached > 0).partition(|r| lasts(r));
    if let Some(first) = nameless.first() {
        end = End::Partly;
        let _ = writeln!(
            err,
            "cachedu: warning: left out, without a name that lasts: {} files, {} first",
            nameless.len(),
            view::name(&first.path)
        );
    }
    let time = jiff::Timestamp::now().to_string();
    let page_size = rustix::param::page_size();
    let head = json!({"type":KIND,"version":VERSION,"page_size":page_size,"time":time});
    let plain = path.as_os_str() == "-";
    let level = if plain { Compression::none() } else { Compression::default() };
    let mut text = Text { plain, bytes: Vec::new(), packed: GzEncoder::new(Vec::new(), level) };
    text.push(&format!("{head}\n"))?;
    let (mut count, mut kept) = (0_u64, 0);
    for some in rows.chunks(TOGETHER) {
        let lines: Vec<Result<Written, Unknown>> = some.par_iter().map(|r| line(r, ask)).collect();
        for (row, line) in some.iter().zip(lines) {
            let name = || view::name(&row.path);
            match line {
                // What would not be read again is no set.
                Ok((line, runs)) if line.len() as u64 > LONGEST => {
                    end = End::Partly;
                    let _ = writeln!(err, "cachedu: warning: {}: left out, it has {runs} runs", name());
                }
                // It has left the cache since it was found.
                Ok((_, 0)) | Err(Unknown::Vanished) => {}
                Ok((line, runs)) => {
                    text.push(&line)?;
                    count += 1;
                    kept += room(row.path.as_os_str().len(), runs);
                }
                Err(why) => {
                    end = End::Partly;
                    let _ = writeln!(err, "cachedu: warning: {}: {why}", name());
                }
            }
            if kept > LARGEST {
                return Err(Failure::failed(format!(
                    "nothing is saved: a set holds no more than {count} of these {} files",
                    rows.len()
                ))
                .remedy("save the directories below one by one"));
            }
        }
    }
    text.push(&format!("{}\n", json!({"type":LAST,"files":count})))?;
    if plain {
        print(&text.bytes, out)?;
        return Ok(end);
    }
    if count == 0 && holds_something(path) {
        return Err(Failure::failed(
            "nothing is saved: nothing of this is cached, and the file holds a set that has some",
        )
        .remedy("remove the file, or name another one"));
    }
    let bytes = text.packed.finish().map_err(anyhow::Error::from)?;
    let whole = interrupt::hold();
    outfile::write(path, &bytes).map_err(|e| e.about(path))?;
    drop(whole);
    let _ = writeln!(err, "cachedu: saved {count} files to {}", view::name(path));
    Ok(end)
}

/// Files that are asked about before their lines are written.
const TOGETHER: usize = 256;

/// The set as far as it is written.
struct Text {
    plain: bool,
    bytes: Vec<u8>,
    packed: GzEncoder<Vec<u8>>,
}

impl Text {
    fn push(&mut self, line: &str) -> Result<(), Failure> {
        if self.plain {
            self.bytes.extend_from_slice(line.as_bytes());
            return Ok(());
        }
        Ok(self.packed.write_all(line.as_bytes()).map_err(anyhow::Error::from)?)
    }
}

/// Whether a file is a set with files in it. Pipes and devices hold nothing, and are not waited for.
fn holds_something(path: &Path) -> bool {
    path.is_file() && super::read(path).is_ok_and(|set| !set.files.is_empty())
}

/// Whether the path will still lead to the file: not that of a deleted one, nor one by way of a process.
fn lasts(row: &Row) -> bool {
    row.via.as_ref().is_none_or(|via| {
        !row.path.starts_with("/proc")
            && opening::look(&row.path).is_some_and(|(inode, _)| inode == via.inode)
    })
}

/// The line of a file, and its number of runs.
type Written = (String, usize);

fn line(row: &Row, ask: Ask) -> Result<Written, Unknown> {
    let (fd, stat) = row.open()?;
    let runs = ask.ranges(fd.as_fd())?;
    let mut object = Map::new();
    // From another directory the set must mean the same.
    let whole = std::path::absolute(&row.path).unwrap_or_else(|_| row.path.clone());
    view::put_path(&mut object, &whole);
    object.insert("size_bytes".into(), stat.stx_size.into());
    object.insert("inode".into(), stat.stx_ino.into());
    object.insert("mtime_ns".into(), mtime(&stat).into());
    let mut text = crate::text::foreign::json(&object);
    // By hand, for there may be hundreds of thousands.
    text.pop();
    text += ",\"runs\":[";
    let mut at = 0;
    for (i, run) in runs.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(text, "{comma}{},{}", run.start - at, run.pages);
        at = run.end();
    }
    text += "]}\n";
    Ok((text, runs.len()))
}
