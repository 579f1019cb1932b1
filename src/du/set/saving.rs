//! Writes a set.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::io::Write;
use std::os::fd::AsFd as _;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::AtFlags;
use rustix::fs::StatxFlags;
use serde_json::Map;
use serde_json::json;

use super::KIND;
use super::LAST;
use super::LONGEST;
use super::VERSION;
use super::mtime;
use crate::du::finding;
use crate::du::found::End;
use crate::du::interrupt;
use crate::du::opening;
use crate::du::opening::Aim;
use crate::du::options::Options;
use crate::du::paths::Paths;
use crate::du::row::Kind;
use crate::du::row::Row;
use crate::du::row::Sink;
use crate::du::stream;
use crate::du::stream::Lines;
use crate::du::totals::Totals;
use crate::du::view;
use crate::exit::Failure;
use crate::residency::Ask;
use crate::residency::Unknown;
use crate::text::outfile::Target;

/// Writes which pages of the files are cached, as they are found; `-` is standard output.
///
/// # Errors
/// Wrong usage: a pattern, a process; and when it cannot be written.
pub fn save(
    path: &Path,
    options: &Options,
    paths: &Paths,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<End, Failure> {
    let time = jiff::Timestamp::now().to_string();
    let page_size = rustix::param::page_size();
    let head = json!({"type":KIND,"version":VERSION,"page_size":page_size,"time":time});
    let head = format!("{head}\n").into_bytes();
    let mut packed = Packed(GzEncoder::new(Vec::new(), Compression::default()));
    let plain = path.as_os_str() == "-";
    // A large tree is walked for minutes: who misspells a path is told before.
    let target = if plain { None } else { Some(Target::new(path).map_err(|e| e.about_the_request(path))?) };
    let to: &mut dyn Write = if plain { out } else { &mut packed };
    let (found, warnings, count) = stream::pump(head, to, |lines| {
        let saver = Saver { ask: options.ask(), least: options.least(), lines, sums: Mutex::default() };
        let mut found = finding::each_file(options, paths, &saver)?;
        let sums = saver.sums.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.missing |= !sums.warnings.is_empty() || sums.refused;
        lines.send(format!("{}\n", json!({"type":LAST,"files":sums.count})).into_bytes());
        Ok((found, sums.warnings, sums.count))
    })?;
    let end = found.warn(err);
    for (why, (n, first)) in &warnings {
        let more = if *n > 1 { format!(" and {} more", n - 1) } else { String::new() };
        let _ = writeln!(err, "cachedu: warning: {first}{more}: {why}");
    }
    // Nothing of a thing that is not there is not the same as nothing that is cached.
    if count == 0 && found.missing && found.total.cached == 0 {
        return Err(Failure::failed("nothing is saved: of what was requested, nothing is known")
            .remedy("the warnings say why"));
    }
    let Some(target) = target else { return Ok(end) };
    if count == 0 && holds_something(path) {
        return Err(Failure::failed(
            "nothing is saved: nothing of this is cached, and the file holds a set that has some",
        )
        .remedy("remove the file, or name another one"));
    }
    let bytes = packed.0.finish().map_err(anyhow::Error::from)?;
    let whole = interrupt::hold();
    target.write(&bytes).map_err(|e| e.about(path))?;
    drop(whole);
    let s = if count == 1 { "" } else { "s" };
    let _ = writeln!(err, "cachedu: saved {count} file{s} to {}", view::name(path));
    Ok(end)
}

/// The set as far as it is written.
struct Packed(GzEncoder<Vec<u8>>);

impl Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    /// Nobody reads it before the end, and what is flushed is packed worse.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes lines of the files that it is given.
struct Saver<'a> {
    ask: Ask,
    least: u64,
    lines: &'a Lines<'a>,
    sums: Mutex<Sums>,
}

#[derive(Default)]
struct Sums {
    /// Files that have a line.
    count: u64,
    /// Whether there are files that nothing is known of.
    refused: bool,
    /// What is left out: how often, and which file first.
    warnings: BTreeMap<String, (usize, String)>,
}

impl Saver<'_> {
    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left_out(&self, row: &Row, why: String) {
        self.sums().warnings.entry(why).or_insert_with(|| (0, view::name(&row.path))).0 += 1;
    }

    fn wanted(&self, row: &Row) -> bool {
        if let Some(why) = row.why {
            self.sums().refused |= finding::out_of_reach(why, true);
        }
        row.kind == Kind::File && row.why.is_none() && self.wants(&row.totals)
    }

    fn put(&self, row: &Row, file: BorrowedFd<'_>) {
        if !lasts(row) {
            return self.left_out(row, "left out, without a name that lasts".into());
        }
        match line(row, file, self.ask) {
            // What would not be read again is no set.
            Ok((line, runs)) if line.len() as u64 > LONGEST => {
                self.left_out(row, format!("left out, it has {runs} runs"));
            }
            // It has left the cache since it was found.
            Ok((_, 0)) | Err(Unknown::Vanished) => {}
            Ok((line, _)) => {
                self.sums().count += 1;
                self.lines.send(line.into_bytes());
            }
            Err(why) => self.left_out(row, why.to_string()),
        }
    }
}

impl Sink for Saver<'_> {
    fn wants(&self, totals: &Totals) -> bool {
        (totals.cached > 0 || totals.unknown > 0) && totals.cached().unwrap_or(0) >= self.least
    }

    fn gone(&self) -> bool {
        self.lines.gone()
    }

    fn take(&self, row: Row) {
        if !self.wanted(&row) {
            return;
        }
        match row.open(Aim::Look) {
            Ok((file, _)) => self.put(&row, file.as_fd()),
            Err(Unknown::Vanished) => {}
            Err(why) => self.left_out(&row, why.to_string()),
        }
    }

    fn take_open(&self, row: Row, file: BorrowedFd<'_>) {
        if self.wanted(&row) {
            self.put(&row, file);
        }
    }
}

/// Whether a file is a set with files in it. Pipes and devices hold nothing, and are not waited for.
fn holds_something(path: &Path) -> bool {
    path.is_file() && super::Source::open(path).and_then(|set| set.check()).is_ok_and(|head| head.files > 0)
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

fn line(row: &Row, file: BorrowedFd<'_>, ask: Ask) -> Result<Written, Unknown> {
    let stat = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
    let runs = ask.ranges(file)?;
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
