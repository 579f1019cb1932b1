//! Finding what is looked at: paths that are named or listed, trees below them, files of processes.

use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;

use rayon::prelude::*;
use rustix::fs::FileType;

use super::exclude::Exclude;
use super::found::Found;
use super::layers::Layers;
use super::layers::Operands;
use super::links::Inodes;
use super::open;
use super::opening::counted;
use super::opening::open_named;
use super::opening::open_seen;
use super::options::Options;
use super::paths::Paths;
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
use crate::options::Format;

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

/// Named files that are looked at before the next are.
const TOGETHER: usize = 4096;

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
    let direct = first.is_none();
    let look = |path: &Path, kind: Named| {
        let opened = match kind {
            Named::Other => open_named(path),
            Named::File => open_seen(path, FileType::RegularFile),
            Named::Directory => open_seen(path, FileType::Directory),
        };
        let opened = match opened {
            Ok((fd, stat)) if FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory => {
                return Look::Directory(fd);
            }
            opened => opened,
        };
        let opened = opened.map(|(fd, stat)| walk.real(path, &stat).unwrap_or((fd, stat)));
        // One that cannot be opened has a number all the same.
        let which = match &opened {
            Ok((_, stat)) => Some(open::inode(stat)),
            Err(_) => walk.seen(path),
        };
        // Nothing is done twice about a file that has two names.
        if acting && which.is_some_and(|inode| !walk.first(inode)) {
            return Look::Done;
        }
        let (totals, why) = counted(path, &opened, |file, stat| walk.ask_on(file, stat));
        if direct && (acting || has_row(why, options)) {
            let row = Row::new(Kind::File, path.to_owned(), 0, totals, why);
            if let Some(line) = sink.written(&row) {
                return Look::File(which, totals, why, line);
            }
            match &opened {
                Ok((file, _)) => sink.take_open(row, file.as_fd()),
                Err(_) => sink.take(row),
            }
        }
        Look::File(which, totals, why, Vec::new())
    };
    let mut each = || {
        // Directories first: they are shown with all that is in them, so it is a named file that is counted already.
        let directories = |kind: &Named| *kind == Named::Directory;
        if kinds.iter().any(directories) {
            for (path, _) in paths.iter().zip(&kinds).filter(|(_, kind)| directories(kind)) {
                if sink.gone() {
                    break;
                }
                let path = path?;
                // What is in a directory is looked at by all threads anyway.
                match look(&path, Named::Directory) {
                    Look::Directory(fd) => found.total.add(&walk.directory(&path, fd)),
                    other => add(other, &path, &walk, options, &mut found, first.as_deref_mut()),
                }
            }
        }
        let mut kinds = kinds.iter().copied().chain(std::iter::repeat(Named::Other));
        for some in paths.chunks(TOGETHER) {
            if sink.gone() {
                break;
            }
            let some: Vec<(PathBuf, Named)> = some?.into_iter().zip(&mut kinds).collect();
            let files = some.par_iter().filter(|(_, kind)| !directories(kind));
            let looked: Vec<_> = files.map(|(path, kind)| (path, look(path, *kind))).collect();
            for (path, looked) in looked {
                match looked {
                    // One that was none just before.
                    Look::Directory(fd) => found.total.add(&walk.directory(path, fd)),
                    other => add(other, path, &walk, options, &mut found, first.as_deref_mut()),
                }
            }
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

/// Whether a named file has a row. Of what is not there the warning is all that is told to people.
fn has_row(why: Option<Unknown>, options: &Options) -> bool {
    options.format != Format::Text || why != Some(Unknown::Vanished)
}

/// Adds what came of a name.
fn add(
    looked: Look,
    path: &Path,
    walk: &Walk<'_>,
    options: &Options,
    found: &mut Found,
    first: Option<&mut Vec<Row>>,
) {
    let Look::File(which, totals, why, line) = looked else { return };
    walk.sink.hand_on(line);
    if let Some(why) = why {
        found.missing |= !options.task.changes() || !why.withheld();
        found.notes.push(format!("{}: {why}", view::name(path)));
    }
    // Who acts on files has looked at each once.
    if options.task.acts() || which.is_none_or(|inode| walk.first(inode)) {
        found.total.add(&totals);
    }
    if let (Some(first), true) = (first, has_row(why, options)) {
        first.push(Row::new(Kind::File, path.to_owned(), 0, totals, why));
    }
}

/// What a name led to.
#[expect(clippy::large_enum_variant, reason = "nearly all are files, and few are held at a time")]
enum Look {
    Directory(OwnedFd),
    /// Which file it is, what is known of it, and what is written of that.
    File(Option<(u64, u64)>, Totals, Option<Unknown>, Vec<u8>),
    /// A file that was done by another name.
    Done,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    File,
    Directory,
    /// Something else, or nothing that one may know.
    Other,
}

/// What is known of all paths before any is opened.
struct Listed {
    kinds: Vec<Named>,
    layers: Layers,
    /// Files that may be in directories which are named, too.
    named: Inodes,
}

impl Listed {
    fn new(paths: &Paths) -> Result<Self, Failure> {
        let mut layers = Layers::mounts();
        let (mut kinds, mut operands, mut named) = (Vec::new(), Operands::default(), Inodes::default());
        for some in paths.chunks(TOGETHER) {
            let some = some?;
            layers.add_roots(&some);
            let seen: Vec<_> = some.par_iter().map(|path| layers.seen(path)).collect();
            if layers.matter() {
                let dir = seen.iter().map(|seen| seen.is_some_and(|(_, kind)| kind.is_dir()));
                operands.add(some.iter().zip(dir), &layers);
            }
            for seen in seen {
                kinds.push(match seen {
                    Some((_, FileType::Directory)) => Named::Directory,
                    Some((inode, kind)) => {
                        named.insert(inode);
                        if kind.is_file() { Named::File } else { Named::Other }
                    }
                    None => Named::Other,
                });
            }
        }
        layers.near(&operands);
        if !kinds.contains(&Named::Directory) {
            named = Inodes::default();
        }
        Ok(Self { kinds, layers, named })
    }
}
