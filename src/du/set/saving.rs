//! Writes a set.

use std::fmt::Write as _;
use std::io::Write;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::path::PathBuf;

use rayon::prelude::*;
use serde_json::Map;
use serde_json::json;

use super::KIND;
use super::LARGEST;
use super::LAST;
use super::LONGEST;
use super::VERSION;
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
    let lines: Vec<(PathBuf, Result<Written, Unknown>)> =
        rows.par_iter().map(|r| (r.path.clone(), line(r, ask))).collect();
    let time = jiff::Timestamp::now().to_string();
    let page_size = rustix::param::page_size();
    let mut text = format!("{}\n", json!({"type":KIND,"version":VERSION,"page_size":page_size,"time":time}));
    let (mut count, mut kept) = (0_u64, 0);
    for (path, line) in lines {
        match line {
            // What would not be read again is no set.
            Ok((line, runs)) if line.len() as u64 > LONGEST => {
                end = End::Partly;
                let _ =
                    writeln!(err, "cachedu: warning: {}: left out, it has {runs} runs", view::name(&path));
            }
            Ok((line, runs)) => {
                text += &line;
                count += 1;
                kept += room(path.as_os_str().len(), runs);
            }
            Err(Unknown::Vanished) => {}
            Err(why) => {
                end = End::Partly;
                let _ = writeln!(err, "cachedu: warning: {}: {why}", view::name(&path));
            }
        }
    }
    if kept > LARGEST {
        return Err(Failure::failed(format!("nothing is saved: a set does not hold {count} files"))
            .remedy("save the directories below one by one"));
    }
    let _ = writeln!(text, "{}", json!({"type":LAST,"files":count}));
    if path.as_os_str() == "-" {
        print(text.as_bytes(), out)?;
        return Ok(end);
    }
    let whole = interrupt::hold();
    outfile::write(path, text.as_bytes()).map_err(|e| e.about(path))?;
    drop(whole);
    let _ = writeln!(err, "cachedu: saved {count} files to {}", view::name(path));
    Ok(end)
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
    let ranges: Vec<_> = runs.iter().map(|r| [r.start, r.pages]).collect();
    object.insert("ranges".into(), json!(ranges));
    Ok((format!("{}\n", crate::text::foreign::json(&object)), runs.len()))
}
