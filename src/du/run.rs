//! `cachedu` from its options to its end.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use super::act;
use super::finding;
use super::found::Found;
use super::interrupt::Watch;
use super::map;
use super::meminfo;
use super::options::Options;
use super::options::Task;
use super::paths::Paths;
use super::printing;
use super::row::Kind;
use super::row::Row;
use super::set;
use super::stream;
use super::tui;
use super::watch;
use crate::exit::Failure;
use crate::exit::started;
use crate::limits::Shortage;
use crate::options::Format;
use crate::privilege::Role;
use crate::text::words;

pub use super::found::End;

/// Does what is requested.
///
/// # Errors
/// What could not be done, with the exit code.
pub fn run(options: &Options, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    more_files();
    // Before there are threads: each has its own.
    let writes = matches!(options.task, Task::Save(_));
    Role::Files { writes }.take(&[])?;
    if let Some(fewer) = start_threads(options.threads)? {
        let _ = writeln!(err, "cachedu: warning: {fewer}");
    }
    match &options.task {
        Task::Diff(first, second) => return compare(first, second, options, out),
        Task::Browse => return tui::run(options, &Paths::new(options)?.all()?),
        _ => {}
    }
    if let Some(every) = options.watch {
        // Its end is to be interrupted: nothing has to be said of it.
        return watch::run(options, every, &Paths::new(options)?, out, err);
    }
    let watch = started(Watch::new(options.task.interrupted()))?;
    if let Task::Restore(path) = &options.task {
        return act::restore(&set::Source::open(path)?, options, out, err);
    }
    let paths = Paths::new(options)?;
    match &options.task {
        Task::Map => return map::run(options, &paths, out, err),
        Task::Save(path) => return set::save(path, options, &paths, out, err),
        Task::Evict { .. } | Task::Load => return act::run(options, &paths, out, err),
        _ => {}
    }
    let mut found = if options.streams() {
        stream::during(options, out, |sink| finding::stream(options, &paths, sink))?
    } else {
        finding::find(options, &paths)?
    };
    let end = found.warn(err);
    // Of nothing but files that are not there, a table says nothing.
    let total = &found.total;
    let absent = total.files > 0 && total.sizeless == total.files && total.dirs + total.unread == 0;
    let nothing = options.format == Format::Text && found.rows.is_empty() && absent && !options.by_process();
    add_total(&mut found, options, &paths);
    watch.done();
    if !nothing {
        printing::show(options, &found, out)?;
    }
    if options.explain {
        for line in meminfo::explained(&found.total) {
            let _ = writeln!(err, "cachedu: {line}");
        }
    }
    if options.format == Format::Text && found.total.by_mincore > 0 {
        let _ = writeln!(err, "cachedu: by mincore(2): what is dirty or was evicted is not known");
    }
    if found.total.perhaps_shared > 0 {
        let _ = writeln!(
            err,
            "cachedu: {} whose layers cannot be reached: what mounts share is counted for each of them",
            words::many(found.total.perhaps_shared, "file of an overlay mount", "files of overlay mounts")
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

/// As many threads as are requested, but no more than may have files open: they would take them from each other, and
/// what a thread cannot open is not known. Says so where fewer work than were asked for.
fn start_threads(threads: Option<u32>) -> Result<Option<String>, Failure> {
    let room = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let most = usize::try_from(room.saturating_sub(BESIDE) / EACH).unwrap_or(usize::MAX).max(1);
    let wanted = match threads {
        Some(n) => n as usize,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let n = wanted.min(most);
    // Left to itself, it panics where there may be no threads.
    let built = rayon::ThreadPoolBuilder::new().num_threads(n).build_global();
    built.map_err(|_| Failure::from(Shortage::Threads))?;
    let fewer = || {
        format!(
            "of {wanted} threads {n} work: no more than {room} files may be open ('ulimit -Hn' raises that)"
        )
    };
    Ok((threads.is_some() && n < wanted).then(fewer))
}

fn compare(first: &Path, second: &Path, options: &Options, out: &mut dyn Write) -> Result<End, Failure> {
    let (first, second) = (set::Source::open(first)?, set::Source::open(second)?);
    set::diff(&first, &second, options.json(), set::COMPARED, |text| printing::offer(text.as_bytes(), out))?;
    Ok(End::Done)
}

/// The total as a last row, unless a single directory or file is its own total.
fn add_total(found: &mut Found, options: &Options, paths: &Paths) {
    // With --top, the row of the directory may be missing.
    let whole = |r: &Row| r.depth == 0 && r.kind == Kind::Directory && paths.iter().take(2).count() == 1;
    let one = found.rows.iter().any(whole) || found.rows.len() == 1 && !options.by_process();
    if options.format != Format::Text || !one {
        found.rows.push(Row::new(Kind::Total, PathBuf::new(), 0, found.total, None));
    }
}
