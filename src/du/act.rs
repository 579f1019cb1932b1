//! Dropping files from the cache and reading them into it.

use std::io::Write;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;
use rustix::fs::Advice;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use serde_json::Map;
use serde_json::json;

use super::cli::Args;
use super::progress;
use super::ranges::Run;
use super::residency::Ask;
use super::residency::Unknown;
use super::row::Row;
use super::run;
use super::run::End;
use super::run::Found;
use super::set;
use super::view;
use crate::exit::Failure;
use crate::view::text::bytes;

/// Bytes of one read: what devices like, and little memory.
const CHUNK: u64 = 1 << 20;

/// What came of one file, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deed {
    /// Cached before.
    pub before: u64,
    /// Cached afterwards; for a dry run, what is hoped for.
    pub after: u64,
    /// Of these, dirty ones, where that is known.
    pub dirty: Option<u64>,
}

/// Drops what can be dropped of a file: with `flush`, dirty pages as well.
///
/// # Errors
/// Why it could not be done.
pub fn evict(fd: impl AsFd, flush: bool, ask: Ask) -> Result<Deed, Unknown> {
    let before = ask.residency(fd.as_fd())?.cached;
    if flush {
        rustix::fs::fdatasync(&fd)?;
    }
    rustix::fs::fadvise(&fd, 0, None, Advice::DontNeed)?;
    let mut after = ask.residency(fd.as_fd())?;
    // Pages on their way to the LRU lists of other processors escape the first time.
    if after.cached > after.more.map_or(0, |m| m.dirty + m.writeback) {
        rustix::fs::fadvise(&fd, 0, None, Advice::DontNeed)?;
        after = ask.residency(fd.as_fd())?;
    }
    Ok(Deed { before, after: after.cached, dirty: after.more.map(|m| m.dirty + m.writeback) })
}

/// Reads a file into the cache, its holes left out: they would fill memory with zeros. Counts the `bytes` it has read.
///
/// # Errors
/// Why it could not be done.
pub fn load(fd: impl AsFd, ask: Ask, bytes: &AtomicU64) -> Result<Deed, Unknown> {
    let before = ask.residency(fd.as_fd())?;
    // A read of the whole is what read-ahead is made for.
    rustix::fs::fadvise(&fd, 0, None, Advice::Sequential)?;
    let mut at = 0;
    while at < before.size {
        let data = match rustix::fs::seek(&fd, SeekFrom::Data(at)) {
            Ok(data) => data,
            // Nothing but a hole is left.
            Err(Errno::NXIO) => break,
            // A device, or a file system that knows no holes.
            Err(_) => at,
        };
        let end = rustix::fs::seek(&fd, SeekFrom::Hole(data)).unwrap_or(before.size);
        let end = if end > data { end } else { before.size };
        read(fd.as_fd(), data, end, bytes)?;
        at = end;
    }
    deed(&fd, before.cached, ask)
}

fn deed(fd: impl AsFd, before: u64, ask: Ask) -> Result<Deed, Unknown> {
    let after = ask.residency(fd.as_fd())?;
    Ok(Deed { before, after: after.cached, dirty: after.more.map(|m| m.dirty + m.writeback) })
}

fn read(fd: BorrowedFd<'_>, from: u64, to: u64, bytes: &AtomicU64) -> Result<(), Unknown> {
    let mut buffer = vec![0; usize::try_from(CHUNK.min(to.saturating_sub(from))).unwrap_or(0)];
    let mut at = from;
    while at < to {
        let want = usize::try_from(CHUNK.min(to - at)).unwrap_or(0);
        match rustix::io::pread(fd, &mut buffer[..want], at) {
            // It was truncated meanwhile.
            Ok(0) => break,
            Ok(n) => {
                at += n as u64;
                bytes.fetch_add(n as u64, Relaxed);
            }
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Reads exactly these pages into the cache, and none ahead of them. Counts the `bytes` it has read.
///
/// # Errors
/// Why it could not be done.
pub fn load_runs(fd: impl AsFd, runs: &[Run], ask: Ask, bytes: &AtomicU64) -> Result<Deed, Unknown> {
    let page = rustix::param::page_size() as u64;
    let before = ask.residency(fd.as_fd())?;
    rustix::fs::fadvise(&fd, 0, None::<NonZeroU64>, Advice::Random)?;
    for run in runs {
        let end = run.end().saturating_mul(page).min(before.size);
        read(fd.as_fd(), run.start.saturating_mul(page).min(end), end, bytes)?;
    }
    deed(&fd, before.cached, ask)
}

/// One line of a report: the name of the deed, the file, and what came of it.
struct Report<'a> {
    deed: &'static str,
    dry: bool,
    args: &'a Args,
    lines: Vec<Vec<String>>,
    names: Vec<String>,
    before: u64,
    after: u64,
    dirty: u64,
    /// Pages cached of files that nothing had to be done about.
    besides: u64,
    json: String,
    failed: bool,
}

impl<'a> Report<'a> {
    fn new(deed: &'static str, args: &'a Args) -> Self {
        let title = |s: &str| s.to_string();
        Self {
            deed,
            dry: args.dry_run,
            args,
            lines: vec![vec![title("BEFORE"), title("AFTER")]],
            names: vec![title("NAME")],
            before: 0,
            after: 0,
            dirty: 0,
            besides: 0,
            json: String::new(),
            failed: false,
        }
    }

    fn add(&mut self, path: &Path, done: Result<Deed, Unknown>, err: &mut dyn Write) {
        let done = match done {
            Ok(done) => done,
            Err(why) => {
                let _ = writeln!(err, "cachedu: {}: {why}", view::name(path));
                self.failed = true;
                return;
            }
        };
        let after = (!self.dry).then_some(done.after);
        if self.args.json {
            let mut object = Map::new();
            object.insert("type".into(), self.deed.into());
            view::put_path(&mut object, path);
            object.insert("before".into(), done.before.into());
            object.insert("after".into(), json!(after));
            object.insert("dirty".into(), json!(done.dirty));
            object.insert("dry_run".into(), self.dry.into());
            self.json += &format!("{}\n", serde_json::Value::Object(object));
        }
        self.before += done.before;
        self.after += done.after;
        self.dirty += done.dirty.unwrap_or(0);
        self.lines.push(vec![done.before.to_string(), after.map_or("-".into(), |n| n.to_string())]);
        self.names.push(view::name(path));
    }

    fn print(&self, out: &mut dyn Write) -> Result<End, Failure> {
        if self.args.json {
            run::print(self.json.as_bytes(), out)?;
        } else {
            let page = rustix::param::page_size() as u64;
            let (before, after) = (bytes(self.before * page), bytes(self.after * page));
            let there = bytes((self.before + self.besides) * page);
            let files = self.names.len() - 1;
            let told = match (self.deed, self.dry) {
                ("evict", true) => format!("would be evicted: up to {before} of {files} files"),
                ("evict", false) => {
                    let stay = match self.after {
                        0 => String::new(),
                        n if n <= self.dirty => {
                            format!("; {after} of dirty pages stay: being written now, try again, or --flush")
                        }
                        _ => format!("; {after} stay: mapped, locked, dirty or used meanwhile"),
                    };
                    format!(
                        "evicted: {} of {before}{stay}",
                        bytes(self.before.saturating_sub(self.after) * page)
                    )
                }
                (what, true) => format!("would be read ({what}): {files} files, {there} are there"),
                (_, false) => {
                    format!(
                        "read: {}; {there} were there",
                        bytes(self.after.saturating_sub(self.before) * page)
                    )
                }
            };
            let table = if files > 0 { view::aligned(&self.lines, &self.names) } else { String::new() };
            run::print(format!("{table}{told}\n").as_bytes(), out)?;
        }
        Ok(if self.failed { End::Partly } else { End::Done })
    }
}

/// Does it to all files, in parallel, and says on a terminal how far it has come.
fn each<T: Sync>(
    args: &Args,
    files: &[T],
    deed: impl Fn(&T, &AtomicU64) -> Result<Deed, Unknown> + Sync,
) -> Vec<Result<Deed, Unknown>> {
    let (done, read) = (AtomicU64::new(0), AtomicU64::new(0));
    let told = || {
        let read = match read.load(Relaxed) {
            0 => String::new(),
            n => format!(", {} read", bytes(n)),
        };
        format!("{} of {} files{read}", done.load(Relaxed), files.len())
    };
    let one = |file| {
        let result = deed(file, &read);
        done.fetch_add(1, Relaxed);
        result
    };
    progress::during(args.noisy(), told, || files.par_iter().map(one).collect())
}

/// Evicts or loads files that were found.
///
/// # Errors
/// When the report cannot be written.
pub fn run(args: &Args, found: Found, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    let ask = args.ask();
    let mut report = Report::new(if args.evict { "evict" } else { "load" }, args);
    let wanted = run::wanted(args);
    let todo: Vec<Row> = found.rows.into_iter().filter(|r| r.why.is_none() && wanted(&r.totals)).collect();
    report.besides = found.total.cached.saturating_sub(todo.iter().map(|r| r.totals.cached).sum());
    let done = each(args, &todo, |r, read| match (args.dry_run, args.evict) {
        (true, _) => {
            let (before, dirty) = (r.totals.cached, r.totals.only_cachestat(r.totals.dirty));
            Ok(Deed { before, after: before, dirty })
        }
        (false, true) => evict(&r.open()?.0, args.flush, ask),
        (false, false) => load(&r.open()?.0, ask, read),
    });
    for (row, done) in todo.iter().zip(done) {
        // Trees change, and processes close files.
        if matches!(done, Err(Unknown::Vanished)) {
            continue;
        }
        report.add(&row.path, done, err);
    }
    report.print(out)
}

/// Reads the pages of a set into the cache.
///
/// # Errors
/// When the report cannot be written.
pub fn restore(
    set: &set::Set,
    args: &Args,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<End, Failure> {
    let ask = args.ask();
    if set.page_size != rustix::param::page_size() as u64 {
        return Err(Failure::failed(format!("the set was made with pages of {} bytes", set.page_size))
            .remedy("make it anew on this machine"));
    }
    let mut report = Report::new("restore", args);
    let done = each(args, &set.files, |file, read| {
        if args.dry_run {
            let (totals, why) = run::file(&file.path, ask);
            let dirty = totals.only_cachestat(totals.dirty);
            return why.map_or(Ok(Deed { before: totals.cached, after: totals.cached, dirty }), Err);
        }
        load_runs(&run::open_named(&file.path)?.0, &file.runs, ask, read)
    });
    for (file, done) in set.files.iter().zip(done) {
        report.add(&file.path, done, err);
    }
    report.print(out)
}
