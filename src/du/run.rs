//! `cachedu` from its options to its end.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use super::act;
use super::finding;
use super::found::Found;
use super::interrupt::Watch;
use super::map;
use super::options::Options;
use super::options::Task;
use super::printing;
use super::row::Kind;
use super::row::Row;
use super::set;
use super::stream;
use super::tui;
use crate::exit::Failure;
use crate::options::Format;

pub use super::found::End;

/// Does what is requested.
///
/// # Errors
/// What could not be done, with the exit code.
pub fn run(options: &Options, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    more_files();
    if let Some(fewer) = start_threads(options.threads)? {
        let _ = writeln!(err, "cachedu: warning: {fewer}");
    }
    match &options.task {
        Task::Diff(first, second) => return compare(first, second, options, out),
        Task::Browse => return tui::run(options, &finding::paths(options)?),
        _ => {}
    }
    let watch = Watch::new(options.task.interrupted());
    let watch = watch.map_err(|e| Failure::failed(format!("cannot handle signals: {e}")))?;
    if let Task::Restore(path) = &options.task {
        return act::restore(&set::read(path)?, options, out, err);
    }
    let paths = finding::paths(options)?;
    if options.task == Task::Map {
        return map::run(options, &paths, out, err);
    }
    let mut found = if options.streams() {
        stream::during(options, out, |sink| finding::stream(options, &paths, sink))?
    } else {
        finding::find(options, &paths)?
    };
    let end = found.warn(err);
    match &options.task {
        Task::Save(path) => return Ok(end.and(save(path, found, options, out, err)?)),
        Task::Evict { .. } | Task::Load => {
            found.rows.retain(|r| r.kind == Kind::File);
            return Ok(end.and(act::run(options, found, out, err)?));
        }
        _ => {}
    }
    add_total(&mut found, options, &paths);
    watch.done();
    printing::show(options, &found, out)?;
    if options.format == Format::Text && found.total.by_mincore > 0 {
        let _ = writeln!(err, "cachedu: by mincore(2): what is dirty or was evicted is not known");
    }
    if options.format == Format::Text && found.total.perhaps_shared > 0 {
        let _ = writeln!(
            err,
            "cachedu: {} files of overlay mounts whose layers cannot be reached: what mounts share is counted for each of them",
            found.total.perhaps_shared
        );
    }
    Ok(end)
}

/// A wide tree holds a directory open for each level and thread: as many files as the limit lets us have.
fn more_files() {
    use rustix::process::Resource;
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}

/// Descriptors that a thread may have open at a time: directories, from where the walk began down to where it is.
const EACH: u64 = 16;
/// Those that are open anyway, and that one file needs.
const BESIDE: u64 = 12;

/// As many threads as are requested, but no more than may have files open: they would take them from each other, and what a thread
/// cannot open is not known. Says so where fewer work than were asked for.
fn start_threads(threads: Option<u32>) -> Result<Option<String>, Failure> {
    let room = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let most = usize::try_from(room.saturating_sub(BESIDE) / EACH).unwrap_or(usize::MAX).max(1);
    let wanted = match threads {
        Some(n) => n as usize,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let n = wanted.min(most);
    if threads.is_none() && n == wanted {
        return Ok(None);
    }
    let built = rayon::ThreadPoolBuilder::new().num_threads(n).build_global();
    built.map_err(|e| Failure::failed(format!("cannot start {n} threads: {e}")))?;
    let fewer = || {
        format!(
            "of {wanted} threads {n} work: no more than {room} files may be open ('ulimit -Hn' raises that)"
        )
    };
    Ok((threads.is_some() && n < wanted).then(fewer))
}

fn compare(first: &Path, second: &Path, options: &Options, out: &mut dyn Write) -> Result<End, Failure> {
    let diff = set::Diff::new(&set::read(first)?, &set::read(second)?)?;
    printing::print(diff.show(options.json()).as_bytes(), out)?;
    Ok(End::Done)
}

fn save(
    path: &Path,
    mut found: Found,
    options: &Options,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<End, Failure> {
    found.rows.retain(|r| r.kind == Kind::File && r.why.is_none());
    if found.missing && found.rows.is_empty() {
        return Err(Failure::failed("nothing is saved: of what was requested, nothing is known")
            .remedy("the warnings say why"));
    }
    set::save(path, &found.rows, options.ask(), out, err)
}

/// The total as a last row, unless a single directory or file is its own total.
fn add_total(found: &mut Found, options: &Options, paths: &[PathBuf]) {
    // With --top, the row of the directory may be missing.
    let whole = |r: &Row| r.depth == 0 && r.kind == Kind::Directory && paths.len() == 1;
    let one = found.rows.iter().any(whole) || found.rows.len() == 1 && !options.by_process();
    if options.format != Format::Text || !one {
        found.rows.push(Row::new(Kind::Total, PathBuf::new(), 0, found.total, None));
    }
}
