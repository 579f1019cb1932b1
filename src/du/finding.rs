//! Finding what is looked at: paths that are named or listed, trees below them, files of processes.

mod blocks;
mod named;

use std::sync::atomic::Ordering::Relaxed;

use super::exclude::Exclude;
use super::found::Found;
use super::options::Options;
use super::paths::Paths;
use super::processes;
use super::progress;
use super::residency::Unknown;
use super::row::Row;
use super::row::Sink;
use super::walk;
use super::walk::Walk;
use crate::exit::Failure;
use blocks::Block;
use named::Listed;
use named::Looking;
use named::Named;
use named::Part;

/// Everything that is looked at.
///
/// # Errors
/// Wrong usage: a pattern, a process or a cgroup that there is not.
pub(super) fn find(options: &Options, paths: &Paths) -> Result<Found, Failure> {
    if !options.by_process() {
        return named(options, paths);
    }
    let keep = options.keep();
    let found = processes::find(options, &keep)?;
    Ok(Found { rows: keep.rows(), ..found })
}

/// Hands on each file that something is to be done about, as it is found.
///
/// # Errors
/// Wrong usage: a pattern, a process or a cgroup that there is not.
pub(super) fn each_file(options: &Options, paths: &Paths, sink: &dyn Sink) -> Result<Found, Failure> {
    if options.by_process() { processes::find(options, sink) } else { each(options, paths, sink, None) }
}

/// Whether a reason to know nothing of a file keeps us from acting on it. What is no page cache needs no action, and
/// whoever may read a file may load and evict it.
pub(super) fn out_of_reach(why: Unknown, saving: bool) -> bool {
    match why {
        Unknown::NotPermitted | Unknown::Forbidden | Unknown::TooLarge | Unknown::Fuse => saving,
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
fn named(options: &Options, paths: &Paths) -> Result<Found, Failure> {
    let keep = options.keep();
    if options.sort.is_some() || options.top().is_some() || options.least() > 0 {
        let found = each(options, paths, &keep, None)?;
        return Ok(Found { rows: keep.rows(), ..found });
    }
    let mut first = Vec::new();
    let found = each(options, paths, &keep, Some(&mut first))?;
    first.extend(keep.rows());
    Ok(Found { rows: first, ..found })
}

/// The same as it is found.
///
/// # Errors
/// Wrong usage: a pattern.
pub(super) fn stream(options: &Options, paths: &Paths, sink: &dyn Sink) -> Result<Found, Failure> {
    Ok(Found { streamed: true, ..each(options, paths, sink, None)? })
}

/// Named files that one thread takes at a time; of those that something is done to, which takes longer, so many.
const TOGETHER: usize = 128;
const TO_DO: usize = 4;

/// Files and trees that were named: their rows go to `sink`, from all threads, but what is only written in the order in which
/// files were named; those of named files to `first` instead, in that order, if that is wanted.
fn each(
    options: &Options,
    paths: &Paths,
    sink: &dyn Sink,
    mut first: Option<&mut Vec<Row>>,
) -> Result<Found, Failure> {
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
    let Listed { kinds, layers, named } = Listed::new(paths)?;
    let walk = Walk::new(&how, sink, kinds.len() > 1, layers, named);
    let mut found = Found::default();
    let looking = Looking { options, walk: &walk, direct: first.is_none() };
    let directories = |kind: &Named| *kind == Named::Directory;
    let mut each = || {
        // Directories first: they are shown with all that is in them, so it is a named file that is counted already.
        if kinds.iter().any(directories) {
            for (path, _) in paths.iter().zip(&kinds).filter(|(_, kind)| directories(kind)) {
                if sink.gone() {
                    break;
                }
                looking.directory(&path?).join(&mut found, sink, first.as_deref_mut());
            }
        }
        // Those that were none just before.
        let mut since = Vec::new();
        let most = if options.task.acts() { TO_DO } else { TOGETHER };
        let look = |block: &Block| {
            let mut part = Part::default();
            let kinds = kinds.get(block.first..).unwrap_or_default().iter().copied();
            let kinds = kinds.chain(std::iter::repeat(Named::Other));
            let files = block.paths().zip(kinds).filter(|(_, kind)| !directories(kind));
            files.for_each(|(path, kind)| looking.add(path, kind, &mut part));
            walk.files.fetch_add(part.total.files, Relaxed);
            walk.cached.fetch_add(part.total.cached, Relaxed);
            part
        };
        blocks::each(paths, most, look, |mut part| {
            since.append(&mut part.directories);
            part.join(&mut found, sink, first.as_deref_mut());
            !sink.gone()
        })?;
        for path in since {
            looking.directory(&path).join(&mut found, sink, first.as_deref_mut());
        }
        Ok::<_, Failure>(())
    };
    let so_far = || match sink.progress() {
        Some(done) => format!("{}; {done}", walk.progress()),
        None => walk.progress(),
    };
    progress::during(options.shows_progress(), so_far, &mut each)?;
    found.notes.extend(walk.problems.lines());
    found.missing |= walk.problems.unread();
    Ok(found)
}
