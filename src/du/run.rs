//! What `cachedu` does with what it was asked.

use std::fs;
use std::io;
use std::io::BufRead as _;
use std::io::Read as _;
use std::io::Write;
use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::AtFlags;
use rustix::fs::FileType;
use rustix::fs::Statx;
use rustix::fs::StatxFlags;

use super::act;
use super::cli;
use super::cli::Args;
use super::exclude::Exclude;
use super::interrupt::Watch;
use super::map;
use super::open;
use super::owners;
use super::progress;
use super::residency;
use super::residency::Ask;
use super::residency::Unknown;
use super::row::Keep;
use super::row::Kind;
use super::row::Row;
use super::row::Sink as _;
use super::row::Sort;
use super::set;
use super::totals::Totals;
use super::view;
use super::view::Layout;
use super::walk;
use super::walk::Walk;
use crate::exit::Failure;

/// How it ended: everything that was asked for could be told or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Everything.
    Done,
    /// A part of it is missing, and standard error says which.
    Partly,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// The rows to show, in order.
    pub rows: Vec<Row>,
    /// All of it together.
    pub total: Totals,
    /// What has to be said beside it.
    pub notes: Vec<String>,
    /// Whether something that was asked for is missing.
    pub missing: bool,
}

impl Found {
    /// Says what has to be said, and whether all of it was found.
    pub fn warn(&self, err: &mut dyn Write) -> End {
        for note in &self.notes {
            let _ = writeln!(err, "cachedu: warning: {note}");
        }
        if self.missing { End::Partly } else { End::Done }
    }
}

/// Does what the command line asks for.
///
/// # Errors
/// What could not be done, with the exit code.
pub fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    if let Some(what) = args.generate {
        return print(cli::generate(what).as_bytes(), out);
    }
    more_files();
    if let Some(n) = args.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(n as usize)
            .build_global()
            .map_err(|e| Failure::failed(format!("cannot start {n} threads: {e}")))?;
    }
    if let Some(sets) = &args.diff {
        let diff = set::Diff::new(&set::read(&sets[0])?, &set::read(&sets[1])?)?;
        return print(diff.show(args.json).as_bytes(), out);
    }
    if args.interactive {
        return super::tui::run(args, &paths(args)?);
    }
    let watch = Watch::new(match () {
        () if args.evict || args.load || args.restore.is_some() => "what was done so far stays",
        () if args.save.is_some() => "nothing is saved",
        () if args.map => "some maps are missing",
        () => "no figures, for those of a part would be taken for all",
    });
    let watch = watch.map_err(|e| Failure::failed(format!("cannot handle signals: {e}")))?;
    if let Some(path) = &args.restore {
        return act::restore(&set::read(path)?, args, out, err);
    }
    let paths = paths(args)?;
    if args.map {
        return map::run(args, &paths, out, err);
    }
    // To act on files, all of them are needed, whatever is shown.
    let acting = args.evict || args.load || args.save.is_some();
    let mut found = if args.owners() { owners::find(args)? } else { find(args, &paths, acting)? };
    // Files that exist and cannot be acted on: not all that was asked for is done.
    found.missing |= acting && found.rows.iter().any(|r| r.why.is_some_and(|why| out_of_reach(why, args)));
    let end = found.warn(err);
    if acting {
        found.rows.retain(|r| r.kind == Kind::File && (r.why.is_none() || args.save.is_none()));
    }
    if let Some(path) = &args.save {
        if found.missing && found.rows.is_empty() {
            return Err(Failure::failed("nothing is saved: of what was asked for, nothing is known")
                .remedy("the warnings say why"));
        }
        let saved = set::save(path, &found.rows, args.ask(), out, err)?;
        return Ok(if end == End::Partly { end } else { saved });
    }
    if args.evict || args.load {
        return act::run(args, found, out, err).map(|e| if end == End::Partly { end } else { e });
    }
    // One directory is its own total; with --top, its row may be missing.
    let whole = |r: &Row| r.depth == 0 && r.kind == Kind::Directory && paths.len() == 1;
    if args.json || args.csv || !(found.rows.iter().any(whole) || found.rows.len() == 1 && !args.owners()) {
        found.rows.push(Row::new(Kind::Total, PathBuf::new(), 0, found.total, None));
    }
    watch.done();
    show(args, &found, out)?;
    if !args.json && !args.csv && found.total.by_mincore > 0 {
        let _ = writeln!(err, "cachedu: by mincore(2): what is dirty or was evicted is not known");
    }
    Ok(end)
}

/// Whether a reason to know nothing of a file keeps us from acting on it. What is no page cache needs no action, and
/// whoever may read a file may load and evict it.
fn out_of_reach(why: Unknown, args: &Args) -> bool {
    match why {
        Unknown::NotPermitted | Unknown::TooLarge => args.save.is_some(),
        Unknown::NotReadable
        | Unknown::OnlyMapped
        | Unknown::Loop
        | Unknown::Interrupted
        | Unknown::Late
        | Unknown::Failed(_) => true,
        Unknown::Vanished | Unknown::HugeTlb | Unknown::Dax | Unknown::NoCache | Unknown::NotAFile(_) => {
            false
        }
    }
}

fn show(args: &Args, found: &Found, out: &mut dyn Write) -> Result<End, Failure> {
    if args.csv {
        return print(&view::csv(&found.rows)?, out);
    }
    if args.json {
        let lines: String =
            found.rows.iter().map(|r| format!("{}\n", crate::foreign::json(&view::json(r)))).collect();
        return print(lines.as_bytes(), out);
    }
    let trees = found.rows.iter().any(|r| r.kind == Kind::Directory);
    let layout = match (args.owners(), trees) {
        (true, _) => Layout::Owned,
        (_, true) => Layout::Tree,
        _ => Layout::Files,
    };
    print(view::text(&found.rows, layout, args.unit).as_bytes(), out)
}

/// Writes all of it; a reader that has gone is a quiet end.
///
/// # Errors
/// When it cannot be written.
pub fn print(text: &[u8], out: &mut dyn Write) -> Result<End, Failure> {
    offer(text, out).map(|_| End::Done)
}

/// Writes a part of the output; `false` if nobody reads it any more.
///
/// # Errors
/// When it cannot be written.
pub(super) fn offer(text: &[u8], out: &mut dyn Write) -> Result<bool, Failure> {
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Failure::from(anyhow::Error::from(e).context("cannot write the output"))
            .remedy("make room on the disk, or send the output elsewhere")),
    }
}

/// A wide tree holds a directory open for each level and thread: as many files as the limit lets us have.
fn more_files() {
    use rustix::process::Resource;
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}

/// The paths to look at: those named, those of a file, or the current directory.
fn paths(args: &Args) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = args.paths.clone();
    if let Some(list) = &args.files_from {
        let text: Box<dyn io::BufRead> = if list.as_os_str() == "-" {
            Box::new(io::stdin().lock())
        } else {
            let failed = |e| Failure::usage(format!("cannot read {}: {e}", view::name(list)));
            Box::new(io::BufReader::new(fs::File::open(list).map_err(failed)?))
        };
        let mut text = text;
        let bad = |why: String| Failure::usage(format!("cannot read {}: {why}", view::name(list)));
        loop {
            let mut name = Vec::new();
            let end = if args.null { 0 } else { b'\n' };
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

/// Opens a path that a user names, if it is a file, a directory or a block device.
pub(super) fn open_named(path: &Path) -> Result<(OwnedFd, Statx), Unknown> {
    let at = open::Reached::new(path)?;
    let stat = rustix::fs::statx(at.dir(), &at.name, AtFlags::empty(), StatxFlags::BASIC_STATS)?;
    if FileType::from_raw_mode(stat.stx_mode.into()) != FileType::Directory {
        residency::regular(&stat)?;
    }
    let fd = open::named(&at)?;
    // What was opened is what is told of, should the name have another meaning by now.
    let stat = rustix::fs::statx(&fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
    Ok((fd, stat))
}

/// Opens a file of a process, if it is still the one that was found: a process closes files and opens others.
pub(super) fn open_same(via: &Path, inode: (u64, u64)) -> Result<(OwnedFd, Statx), Unknown> {
    if look(via).is_none_or(|(found, _)| found != inode) {
        return Err(Unknown::Vanished);
    }
    let (fd, stat) = open_named(via)?;
    if walk::inode(&stat) == inode { Ok((fd, stat)) } else { Err(Unknown::Vanished) }
}

/// Which file a name stands for, and of what type it is.
pub(super) fn look(path: &Path) -> Option<((u64, u64), FileType)> {
    let at = open::Reached::new(path).ok()?;
    let stat = rustix::fs::statx(at.dir(), &at.name, AtFlags::empty(), StatxFlags::BASIC_STATS).ok()?;
    Some((walk::inode(&stat), FileType::from_raw_mode(stat.stx_mode.into())))
}

/// What is cached of a file that a user or a process named.
pub(super) fn file(path: &Path, ask: Ask) -> (Totals, Option<Unknown>) {
    told(path, open_named(path), ask)
}

pub(super) fn told(
    path: &Path,
    opened: Result<(OwnedFd, Statx), Unknown>,
    ask: Ask,
) -> (Totals, Option<Unknown>) {
    match opened {
        Ok((fd, stat)) => {
            let told = ask.residency(fd.as_fd());
            let disk = stat.stx_blocks * 512;
            (Totals::of_file(stat.stx_size, disk, told.as_ref().map_err(|e| *e)), told.err())
        }
        Err(why) => {
            // Its size may be known though it cannot be opened.
            let meta = fs::metadata(path).ok();
            let (size, disk) =
                meta.filter(fs::Metadata::is_file).map_or((0, 0), |m| (m.len(), m.blocks() * 512));
            (Totals::of_file(size, disk, Err(why)), Some(why))
        }
    }
}

/// What is acted on: what cannot change is left in peace, so files with nothing cached or all of it take no memory.
pub(super) fn wanted(args: &Args) -> fn(&Totals) -> bool {
    if args.evict || args.save.is_some() {
        |t| t.cached > 0 || t.unknown > 0
    } else if args.load {
        |t| t.cached < t.pages || t.unknown > 0
    } else {
        |_| true
    }
}

/// Files and trees that were named.
fn find(args: &Args, paths: &[PathBuf], acting: bool) -> Result<Found, Failure> {
    let exclude = Exclude::new(&args.exclude).map_err(Failure::usage)?;
    let options = walk::Options {
        ask: args.ask(),
        depth: if acting || args.files_only { usize::MAX } else { args.depth.unwrap_or(1) },
        files: args.files || args.files_only || acting,
        directories: !args.files_only && !acting,
        flat: false,
        one_file_system: args.one_file_system,
        exclude,
    };
    let page = rustix::param::page_size() as u64;
    let top = args.top.map(|n| n as usize).filter(|_| !acting);
    let least = args.min.map_or(0, |bytes| bytes.div_ceil(page));
    let keep = Keep::new(args.sort.unwrap_or(Sort::Cached), top, least).only(wanted(args));
    let mut walk = Walk::new(&options, &keep, paths.len() > 1);
    // Directories first: they are shown with all that is in them, so it is a named file that is counted already.
    let (dirs, files): (Vec<_>, Vec<_>) = paths
        .iter()
        .map(|path| (path, look(path)))
        .partition(|(_, seen)| seen.is_some_and(|(_, t)| t.is_dir()));
    walk.expect(files.iter().filter_map(|(_, seen)| Some(seen.as_ref()?.0)));
    let walk = walk;
    let mut found = Found::default();
    let mut named = Vec::new();
    progress::during(
        args.noisy(),
        || walk.told(),
        || {
            for (path, seen) in dirs.into_iter().chain(files) {
                match open_named(path) {
                    Ok((fd, stat))
                        if FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory =>
                    {
                        found.total.add(&walk.directory(path, fd));
                    }
                    opened => {
                        let again = seen.is_some_and(|(inode, _)| !walk.first(inode));
                        if again && acting {
                            continue;
                        }
                        let (totals, why) = told(path, opened, options.ask);
                        if let Some(why) = why {
                            found.missing |= !(args.evict || args.load) || !why.untold();
                            found.notes.push(format!("{}: {why}", view::name(path)));
                        }
                        if !again {
                            found.total.add(&totals);
                        }
                        named.push(Row::new(Kind::File, path.clone(), 0, totals, why));
                    }
                }
            }
        },
    );
    found.notes.extend(walk.problems.lines());
    found.missing |= walk.problems.unread();
    drop(walk);
    // Files are told of in the order in which they were named, unless another is asked for.
    if args.sort.is_some() || top.is_some() || least > 0 {
        named.drain(..).for_each(|row| keep.take(row));
    }
    found.rows = named;
    found.rows.extend(keep.rows());
    Ok(found)
}
