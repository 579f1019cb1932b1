//! Finding what is looked at: paths that are named or listed, trees below them, files of processes.

use std::fs;
use std::io;
use std::io::BufRead as _;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;

use rayon::prelude::*;
use rustix::fs::FileType;

use super::exclude::Exclude;
use super::found::Found;
use super::layers::Layers;
use super::opening::counted;
use super::opening::open_named;
use super::options::List;
use super::options::Options;
use super::options::Task;
use super::processes;
use super::progress;
use super::residency::Unknown;
use super::row::Kind;
use super::row::Row;
use super::row::Sink;
use super::totals::Totals;
use super::view;
use super::walk;
use super::walk::Walk;
use crate::exit::Failure;

/// The paths to look at: those named, those of a file, or the current directory.
///
/// # Errors
/// Wrong usage where the list of them cannot be read.
pub(super) fn paths(options: &Options) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = options.paths.clone();
    if let Some(List { file, null }) = &options.list {
        let mut text: Box<dyn io::BufRead> = if file.as_os_str() == "-" {
            Box::new(io::stdin().lock())
        } else {
            let failed = |e| Failure::usage(format!("cannot read {}: {e}", view::name(file)));
            Box::new(io::BufReader::new(fs::File::open(file).map_err(failed)?))
        };
        let bad = |why: String| Failure::usage(format!("cannot read {}: {why}", view::name(file)));
        loop {
            let mut name = Vec::new();
            let end = if *null { 0 } else { b'\n' };
            let n =
                (&mut text).take(LONGEST + 1).read_until(end, &mut name).map_err(|e| bad(e.to_string()))?;
            if n as u64 > LONGEST {
                return Err(bad(format!("a path in it has more than {LONGEST} bytes")));
            }
            if name.last() == Some(&end) {
                name.pop();
            }
            match (n, name.is_empty()) {
                (0, _) => break,
                (_, true) => {}
                (_, false) => paths.push(std::ffi::OsString::from_vec(name).into()),
            }
        }
    } else if paths.is_empty() {
        paths.push(".".into());
    }
    Ok(paths)
}

/// Bytes that a path of a list may have; the kernel takes 4096 at once, we go further in pieces.
const LONGEST: u64 = 1 << 20;

/// Everything that is looked at or acted on.
///
/// # Errors
/// Wrong usage: a pattern, a process or a cgroup that there is not.
pub(super) fn find(options: &Options, paths: &[PathBuf]) -> Result<Found, Failure> {
    let mut found = if options.by_process() { processes::find(options)? } else { named(options, paths)? };
    // Files that exist and cannot be acted on: not all that was requested is done.
    let saving = matches!(options.task, Task::Save(_));
    let beyond = |row: &Row| row.why.is_some_and(|why| out_of_reach(why, saving));
    found.missing |= options.task.acts() && found.rows.iter().any(beyond);
    Ok(found)
}

/// Whether a reason to know nothing of a file keeps us from acting on it. What is no page cache needs no action, and
/// whoever may read a file may load and evict it.
fn out_of_reach(why: Unknown, saving: bool) -> bool {
    match why {
        Unknown::NotPermitted | Unknown::TooLarge => saving,
        Unknown::NotReadable
        | Unknown::OnlyMapped
        | Unknown::Loop
        | Unknown::Interrupted
        | Unknown::Late
        | Unknown::Replaced
        | Unknown::Untrusted(_)
        | Unknown::Failed(_) => true,
        Unknown::Vanished | Unknown::HugeTlb | Unknown::Dax | Unknown::NoCache | Unknown::NotAFile(_) => {
            false
        }
    }
}

/// Files and trees that were named, in the order that is requested: files in the order in which they were named, if none is.
fn named(options: &Options, paths: &[PathBuf]) -> Result<Found, Failure> {
    let keep = options.keep();
    let ordered = options.sort.is_some() || options.top().is_some() || options.least() > 0;
    let first = Mutex::new(Vec::new());
    let mut found = each(options, paths, &keep, |row| {
        if ordered {
            keep.take(row);
        } else {
            first.lock().unwrap_or_else(PoisonError::into_inner).push(row);
        }
    })?;
    found.rows = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.rows.extend(keep.rows());
    Ok(found)
}

/// The same as it is found.
///
/// # Errors
/// Wrong usage: a pattern.
pub(super) fn stream(options: &Options, paths: &[PathBuf], sink: &dyn Sink) -> Result<Found, Failure> {
    Ok(Found { streamed: true, ..each(options, paths, sink, |row| sink.take(row))? })
}

/// Named files that are looked at before their rows are handed on.
const TOGETHER: usize = 1024;

/// Files and trees that were named: rows of what is below directories go to `sink`, those of named files to `take`.
fn each(options: &Options, paths: &[PathBuf], sink: &dyn Sink, take: impl Fn(Row)) -> Result<Found, Failure> {
    let acting = options.task.acts();
    let exclude = Exclude::new(&options.exclude).map_err(Failure::usage)?;
    let how = walk::Options {
        ask: options.ask(),
        depth: if acting || options.files_only { usize::MAX } else { options.depth.unwrap_or(1) },
        files: options.files || options.files_only || acting,
        directories: !options.files_only && !acting,
        flat: false,
        one_file_system: options.one_file_system,
        exclude,
    };
    let mut walk = Walk::new(&how, sink, paths.len() > 1, Layers::here(paths));
    // Directories first: they are shown with all that is in them, so it is a named file that is counted already.
    let (dirs, files): (Vec<_>, Vec<_>) = paths
        .par_iter()
        .map(|path| (path, walk.seen(path)))
        .partition(|(_, seen)| seen.is_some_and(|(_, t)| t.is_dir()));
    walk.expect(files.iter().filter_map(|(_, seen)| Some(seen.as_ref()?.0)));
    let walk = walk;
    let mut found = Found::default();
    let look = |path: &Path| {
        let opened = match open_named(path) {
            Ok((fd, stat)) if FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory => {
                return Look::Directory(fd);
            }
            opened => opened,
        };
        let opened = opened.map(|(fd, stat)| walk.real(path, &stat).unwrap_or((fd, stat)));
        let (totals, why) = counted(path, opened, how.ask);
        Look::File(totals, why)
    };
    progress::during(
        options.shows_progress(),
        || walk.progress(),
        || {
            for some in dirs.chunks(1).chain(files.chunks(TOGETHER)) {
                if sink.gone() {
                    break;
                }
                // What is in a directory is looked at by all threads anyway.
                let looked: Vec<_> = some
                    .par_iter()
                    .map(|(path, seen)| {
                        let again = seen.is_some_and(|(inode, kind)| !kind.is_dir() && walk.again(inode));
                        (!(again && acting)).then(|| look(path))
                    })
                    .collect();
                for ((path, seen), looked) in some.iter().zip(looked) {
                    let again = seen.is_some_and(|(inode, kind)| !kind.is_dir() && !walk.first(inode));
                    match looked {
                        Some(Look::Directory(fd)) => found.total.add(&walk.directory(path, fd)),
                        None => {}
                        Some(Look::File(..)) if again && acting => {}
                        Some(Look::File(totals, why)) => {
                            if let Some(why) = why {
                                found.missing |= !options.task.changes() || !why.withheld();
                                found.notes.push(format!("{}: {why}", view::name(path)));
                            }
                            if !again {
                                found.total.add(&totals);
                            }
                            take(Row::new(Kind::File, (*path).clone(), 0, totals, why));
                        }
                    }
                }
            }
        },
    );
    found.notes.extend(walk.problems.lines());
    found.missing |= walk.problems.unread();
    Ok(found)
}

/// What a name led to.
enum Look {
    Directory(OwnedFd),
    File(Totals, Option<Unknown>),
}
