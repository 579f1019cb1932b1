//! A recording that is written: one file, or a ring of files in a directory.
//!
//! What is written leaves the page cache as soon as it is on the disk, but for the page that the next tick continues.

use std::collections::HashMap;
use std::fs;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::Advice;
use rustix::fs::FlockOperation;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::time::ClockId;

use super::file;
use super::file::Reader;
use super::numbers::nanos;
use super::numbers::signed;
use super::stream::FULL;
use super::stream::Limits;
use super::stream::Stream;
use crate::exit::Failure;
use crate::names::Names;
use crate::names::Recorded;
use crate::sample::Moment;
use crate::sample::Sample;
use crate::text::foreign::Foreign;
use crate::text::outfile;
use crate::wait::Wake;

/// A segment: what must be read to begin anywhere.
const SEGMENT: Limits = Limits { ticks: 300, time: Duration::MAX };
/// What a ring's files, and those of moments, end in.
pub(super) const ENDING: &str = ".record";

/// One file that grows.
pub(super) struct Growing {
    file: File,
    /// Bytes so far.
    pub length: u64,
    /// What of it is no longer in the page cache.
    gone: u64,
}

impl Growing {
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(e) = self.file.write_all_at(bytes, self.length) {
            // Half a frame would be damage in the midst of what is written later.
            let _ = self.file.set_len(self.length);
            return Err(e);
        }
        self.length += bytes.len() as u64;
        self.forget();
        Ok(())
    }

    /// Whether it is still there under that name.
    pub fn is_at(&self, path: &Path) -> bool {
        let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let ours = self.file.metadata().map(id);
        fs::symlink_metadata(path).map(id).is_ok_and(|there| ours.is_ok_and(|ours| ours == there))
    }

    /// Brings whole pages to the disk and takes them out of the cache. Where that cannot be done, nothing is lost.
    fn forget(&mut self) {
        let page = rustix::param::page_size() as u64;
        let end = self.length / page * page;
        if let Some(length) = std::num::NonZeroU64::new(end.saturating_sub(self.gone)) {
            let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
                | libc::SYNC_FILE_RANGE_WRITE
                | libc::SYNC_FILE_RANGE_WAIT_AFTER;
            let (from, bytes) = (signed(self.gone), signed(length.get()));
            // SAFETY: takes numbers and a descriptor of ours.
            unsafe { libc::sync_file_range(self.file.as_raw_fd(), from, bytes, flags) };
            let _ = rustix::fs::fadvise(&self.file, self.gone, Some(length), Advice::DontNeed);
            self.gone = end;
        }
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        let _ = self.file.sync_data();
        let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed);
    }
}

/// How much a ring keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of all files.
    pub size: u64,
    /// What is older goes.
    pub age: Duration,
}

enum Place {
    One,
    Ring { directory: PathBuf, bounds: Bounds, ages: Ages },
}

/// When the files of a ring were written last, in nanoseconds as [`passed`] has it. The clock that people read may be set while
/// it is recorded, and no file is older by that: it is asked once, when a run begins, for what earlier runs left.
struct Ages(HashMap<PathBuf, i64>);

impl Ages {
    fn new(all: &[PathBuf]) -> Self {
        let now = signed(passed(Moment::now()));
        let of = |path: &PathBuf| {
            let written = fs::metadata(path).and_then(|m| m.modified()).ok();
            // What is from the future begins to grow old now.
            let age = written.and_then(|t| t.elapsed().ok()).unwrap_or_default();
            (path.clone(), now.saturating_sub(signed(nanos(age))))
        };
        Self(all.iter().map(of).collect())
    }

    /// Those that are there now, in the order of their names: what is new has just been full.
    fn look(&mut self, all: &[PathBuf], now: u64) {
        self.0.retain(|path, _| all.binary_search(path).is_ok());
        for path in all {
            self.0.entry(path.clone()).or_insert_with(|| signed(now));
        }
    }

    fn is_older(&self, path: &Path, now: u64, most: Duration) -> bool {
        self.0.get(path).is_some_and(|then| signed(now).saturating_sub(*then) > signed(nanos(most)))
    }
}

/// The clock that nobody sets at some moment, with the time for which the machine was suspended: that makes older, too.
fn passed(at: Moment) -> u64 {
    let of = |clock| {
        let time = rustix::time::clock_gettime(clock);
        Duration::try_from(time).map_or(0, nanos)
    };
    let suspended = of(ClockId::Boottime).saturating_sub(of(ClockId::Monotonic));
    at.nanos().saturating_add(suspended)
}

/// Writes samples.
pub struct Writer {
    place: Place,
    stream: Stream,
    out: Growing,
    /// Where the segment began.
    segment: u64,
    /// When the file began, as [`passed`] has it.
    since: Option<u64>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("length", &self.out.length).finish_non_exhaustive()
    }
}

/// Whether something may be replaced: nothing, an empty file, a recording.
fn replaceable(path: &Path) -> Result<(), Failure> {
    let name = Foreign::from(path);
    // Elsewhere that is standard output, and a file of that name a surprise.
    if path == Path::new("-") {
        return Err(Failure::usage("'-' is no file: a recording is not written to standard output")
            .remedy("name a file; './-' is one of that name"));
    }
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(outfile::Error::from(e).about_the_request(path)),
        Ok(meta) if !meta.is_file() => {
            Err(Failure::usage(format!("{name} is no file")).remedy("name a file that is not there yet"))
        }
        Ok(_) if !outfile::is_ours(path) => Err(Failure::usage(format!(
            "{name} is somebody else's, in a directory that everybody may write to"
        ))
        .remedy("name a file in a directory of your own")),
        Ok(meta) if meta.len() == 0 => Ok(()),
        Ok(_) => Reader::open(path).map(drop).map_err(|_| {
            Failure::usage(format!("{name} is there and no recording: it is not replaced"))
                .remedy("remove it, or name another file")
        }),
    }?;
    if is_held(path) {
        return Err(Failure::usage(format!("{name} is being written: another one records there"))
            .remedy("name another file, or end the other one"));
    }
    Ok(())
}

/// Whether somebody is writing a recording: who does holds its file. Who only asks holds nobody else off.
fn is_held(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    rustix::fs::open(path, flags, Mode::empty()).is_ok_and(|file| {
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    })
}

/// A ring that nobody records in: the files of two, in turn, are no recording.
///
/// # Errors
/// When somebody does, and where there is something else than a directory.
pub fn has_no_recorder(directory: &Path) -> Result<(), Failure> {
    if directory.exists() && !directory.is_dir() {
        return Err(Failure::usage(format!("{} is no directory", Foreign::from(directory)))
            .remedy("a ring of files is kept: name a directory, which is made if it is not there"));
    }
    outfile::may_make(directory)?;
    if shards(directory).is_ok_and(|all| all.iter().any(|path| is_held(path))) {
        let name = Foreign::from(directory);
        return Err(Failure::usage(format!("{name} is being written: another one records there"))
            .remedy("name another directory, or end the other one"));
    }
    Ok(())
}

/// A file that nobody else made, under a name that nobody looks for.
struct Prepared {
    file: File,
    beside: PathBuf,
    length: u64,
}

impl Prepared {
    fn new(path: &Path) -> io::Result<Self> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}", std::process::id()));
        let beside = path.with_file_name(beside);
        let _ = fs::remove_file(&beside);
        // Names of files and command lines are nobody else's business.
        let file = File::from(rustix::fs::open(&beside, flags, Mode::RUSR | Mode::WUSR)?);
        // From here on it goes when this does.
        let new = Self { file, beside, length: file::beginning().len() as u64 };
        // Held as long as it is written. A file system that knows no locks has nobody held off.
        let _ = rustix::fs::flock(&new.file, FlockOperation::NonBlockingLockExclusive);
        if let Some((uid, gid)) = outfile::sudo() {
            // A monitor that has dropped what this needs keeps the file.
            let _ = std::os::unix::fs::fchown(&new.file, Some(uid), Some(gid));
        }
        new.file.write_all_at(&file::beginning(), 0)?;
        Ok(new)
    }

    /// In the place of what was there.
    fn put(self, path: &Path) -> io::Result<Growing> {
        fs::rename(&self.beside, path)?;
        Ok(Growing { file: self.file.try_clone()?, length: self.length, gone: 0 })
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // It is not there any more where it was put somewhere.
        let _ = fs::remove_file(&self.beside);
    }
}

/// A file that nobody else made, in the place of what was there.
pub(super) fn create(path: &Path) -> io::Result<Growing> {
    Prepared::new(path)?.put(path)
}

impl Writer {
    /// Whether [`Self::file`] can be made; what is there stays as it is.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn check(path: &Path) -> Result<(), Failure> {
        replaceable(path)?;
        Prepared::new(path).map(drop).map_err(|e| outfile::Error::from(e).about_the_request(path))
    }

    /// One file. What is there is replaced if it is a recording.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn file(path: &Path, interval: Duration) -> Result<Self, Failure> {
        replaceable(path)?;
        let out = create(path).map_err(|e| outfile::Error::from(e).about_the_request(path))?;
        Ok(Self::new(Place::One, out, interval))
    }

    /// A ring in a directory, which is made in the one above it if it is not there. What earlier runs left there is part of it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn ring(directory: &Path, bounds: Bounds, interval: Duration) -> Result<Self, Failure> {
        outfile::make_directory(directory)?;
        has_no_recorder(directory)?;
        let ages = Ages::new(&shards(directory).unwrap_or_default());
        let out = create(&shard(directory)).map_err(|e| {
            outfile::not_in_directory(format_args!("cannot record in {}", Foreign::from(directory)), &e)
        })?;
        Ok(Self::new(Place::Ring { directory: directory.into(), bounds, ages }, out, interval))
    }

    fn new(place: Place, out: Growing, interval: Duration) -> Self {
        Self { place, stream: Stream::new(interval, SEGMENT), out, segment: 0, since: None }
    }

    /// Marks the next sample with a moment that was told at its end.
    pub fn mark(&mut self, line: String) {
        self.stream.mark(line);
    }

    /// Writes a sample, and gives what was looked up for it; `true` if all that was before may be forgotten. Rows get the
    /// order in which they are read back.
    ///
    /// # Errors
    /// When it cannot be written. The next one begins a segment.
    pub fn write(
        &mut self,
        sample: &mut Sample,
        names: &mut dyn Names,
        wake: Wake,
    ) -> anyhow::Result<(bool, Recorded)> {
        let key = self.stream.begins(sample, self.out.length - self.segment);
        if key && self.stream.ticks > 0 {
            self.bound(sample.at);
        }
        self.since.get_or_insert_with(|| passed(sample.at));
        let (piece, new) = self.stream.piece(sample, names, wake, key)?;
        let key = piece.key;
        let at = self.out.length;
        let written = piece.framed(at, self.segment).and_then(|bytes| self.out.append(&bytes));
        if let Err(e) = written {
            self.stream.unwritten();
            return Err(e.into());
        }
        if key {
            self.segment = at;
        }
        Ok((key, new))
    }

    /// How many rows are remembered.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.stream.places()
    }

    /// Of a ring: begins a new file where one is full, and removes the oldest. On a quiet machine one would be full after
    /// more days than are to be kept.
    fn bound(&mut self, at: Moment) {
        let Place::Ring { directory, bounds, ages } = &mut self.place else { return };
        let now = passed(at);
        let age = self.since.map_or(0, |since| now.saturating_sub(since));
        if self.out.length >= (bounds.size / 16).max(FULL) || age >= nanos(bounds.age) / 8 {
            match create(&shard(directory)) {
                Ok(out) => (self.out, self.segment, self.since) = (out, 0, None),
                Err(e) => log::warn!("cannot begin another file of the recording: {e}"),
            }
        }
        let Ok(mut all) = shards(directory) else { return };
        // The newest is being written.
        all.pop();
        ages.look(&all, now);
        let length = |p: &PathBuf| fs::metadata(p).map_or(0, |m| m.len());
        let mut sum = all.iter().map(length).sum::<u64>() + self.out.length + FULL;
        for path in &all {
            if sum <= bounds.size && !ages.is_older(path, now, bounds.age) {
                break;
            }
            // By another one, or by ourselves: whatever it is called.
            if is_held(path) {
                continue;
            }
            sum -= length(path).min(sum);
            if let Err(e) = fs::remove_file(path) {
                log::warn!("cannot remove {}: {e}", Foreign::from(path.as_path()));
            }
        }
    }
}

/// The name of a new file in a ring: those of a directory are in the order of their names.
fn shard(directory: &Path) -> PathBuf {
    let now = jiff::Timestamp::now();
    let after = shards(directory).ok().and_then(|all| {
        let name = all.last()?.file_name()?.to_str()?.get(..10)?.parse::<u64>().ok()?;
        Some(name + 1)
    });
    // A number first: a clock that was set back does not change the order.
    let number = after.unwrap_or(1);
    directory.join(format!("{number:010}-{}{ENDING}", now.strftime("%Y%m%dT%H%M%SZ")))
}

/// Whether a file has such a name: others are left alone, whatever they begin with.
fn is_shard(name: &str) -> bool {
    let pattern = "0000000000-00000000T000000Z".bytes();
    let same = |(is, like): (u8, u8)| if like == b'0' { is.is_ascii_digit() } else { is == like };
    name.strip_suffix(ENDING).is_some_and(|n| n.len() == pattern.len() && n.bytes().zip(pattern).all(same))
}

/// The files of a ring, the oldest first.
///
/// # Errors
/// When the directory cannot be read.
pub fn shards(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        if name.to_str().is_some_and(is_shard) {
            all.push(directory.join(name));
        }
    }
    all.sort();
    Ok(all)
}
