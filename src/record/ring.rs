//! A ring of files in a directory: which of them are there, and which go.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use rustix::time::ClockId;

use super::growing::ENDING;
use super::growing::Growing;
use super::growing::create;
use super::growing::is_held;
use super::numbers::nanos;
use super::numbers::signed;
use super::stream::FULL;
use crate::exit::Failure;
use crate::sample::Moment;
use crate::text::foreign::Foreign;
use crate::text::outfile;

/// How much a ring keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of all files.
    pub size: u64,
    /// What is older goes.
    pub age: Duration,
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
pub(super) fn passed(at: Moment) -> u64 {
    let of = |clock| {
        let time = rustix::time::clock_gettime(clock);
        Duration::try_from(time).map_or(0, nanos)
    };
    let suspended = of(ClockId::Boottime).saturating_sub(of(ClockId::Monotonic));
    at.nanos().saturating_add(suspended)
}

/// What hinders, told once for each stretch of it.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    lasts: bool,
    news: Option<String>,
}

impl Trouble {
    /// It was tried: what hindered it, if anything.
    pub fn tried(&mut self, hindrance: Option<String>) {
        let lasted = std::mem::replace(&mut self.lasts, hindrance.is_some());
        if !lasted && hindrance.is_some() {
            self.news = hindrance;
        }
    }

    /// What is to be told.
    pub const fn news(&mut self) -> Option<String> {
        self.news.take()
    }
}

/// Removes a file; what hinders it, in words.
pub(super) fn removed(path: &Path) -> Result<(), String> {
    fs::remove_file(path).map_err(|e| format!("cannot remove {}: {e}", Foreign::from(path)))
}

/// Whether there was no room that an older file could give back.
pub(super) fn is_crowded(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The files of a ring.
pub(super) struct Ring {
    directory: PathBuf,
    bounds: Bounds,
    ages: Ages,
    /// The one that is being written.
    current: Option<PathBuf>,
    unbegun: Trouble,
    unremoved: Trouble,
    /// That what was recorded is given up for want of room.
    crowded: Trouble,
    /// Bytes of the file that has been removed for want of room in this tick: no more than one goes.
    given: Option<u64>,
    /// What was removed helped nothing: a snapshot or a reader has it still, or somebody else fills the disk.
    in_vain: bool,
    /// Bytes to be written without another removal until the disk counts as full no more.
    doubtful: u64,
}

impl Ring {
    /// In a directory that is there. What earlier runs left is part of it, and too much of it goes: a run may be too short to come
    /// to the end of a segment.
    pub fn new(directory: &Path, bounds: Bounds) -> Self {
        let mut new = Self {
            directory: directory.into(),
            bounds,
            ages: Ages::new(&shards(directory).unwrap_or_default()),
            current: None,
            unbegun: Trouble::default(),
            unremoved: Trouble::default(),
            crowded: Trouble::default(),
            given: None,
            in_vain: false,
            doubtful: 0,
        };
        new.bound(passed(Moment::now()), 0);
        new
    }

    /// How long a file, and so a segment, is at most: an eighth of what is kept.
    pub fn longest(&self) -> Duration {
        self.bounds.age / 8
    }

    /// Another file, behind all others.
    pub fn begin(&mut self) -> io::Result<Growing> {
        let path = shard(&self.directory);
        let made = match create(&path) {
            Err(e) if is_crowded(&e) && self.make_room() => {
                let made = create(&path);
                self.in_vain = made.is_err();
                made
            }
            made => made,
        }?;
        self.current = Some(path);
        Ok(made)
    }

    /// Another file in the place of one that has become so long and so old, if that is full. On a quiet machine it would be full
    /// after more days than are to be kept.
    pub fn after(&mut self, length: u64, age: u64) -> Option<Growing> {
        if length < (self.bounds.size / 16).max(FULL) && age < nanos(self.longest()) {
            return None;
        }
        let begun = self.begin();
        let hindrance = begun.as_ref().err().map(|e| format!("the ring cannot begin another file: {e}"));
        self.unbegun.tried(hindrance);
        begun.ok()
    }

    /// All but the one that is being written, the oldest first.
    fn others(&self) -> Vec<PathBuf> {
        let mut all = shards(&self.directory).unwrap_or_default();
        all.retain(|path| Some(path) != self.current.as_ref());
        all
    }

    /// Removes the oldest: what is too old, and what has no room beside the file that is being written, of this length.
    pub fn bound(&mut self, now: u64, writing: u64) {
        let all = self.others();
        self.ages.look(&all, now);
        let length = |p: &PathBuf| length(p).unwrap_or(0);
        let mut sum = all.iter().map(length).fold(writing.saturating_add(FULL), u64::saturating_add);
        let mut hindrance = None;
        for path in &all {
            if sum <= self.bounds.size && !self.ages.is_older(path, now, self.bounds.age) {
                break;
            }
            // By another one, or by ourselves: whatever it is called.
            // What stays takes no room from the others: else all of them would go for it.
            sum = sum.saturating_sub(length(path));
            if is_held(path) {
                continue;
            }
            if let Err(why) = removed(path) {
                hindrance = hindrance.or(Some(why));
            }
        }
        let hindrance = hindrance.map(|why| format!("the ring is not kept within its bounds: {why}"));
        self.unremoved.tried(hindrance);
    }

    /// A tick begins.
    pub const fn tick(&mut self) {
        self.given = None;
    }

    /// Removes the oldest that nobody writes: the disk is full, by whatever it may be. `false` if there is none, if one has gone in
    /// this tick, and as long as it helps nothing.
    pub fn make_room(&mut self) -> bool {
        if self.in_vain || self.given.is_some() {
            return false;
        }
        let others = self.others();
        let mut files = others.iter().filter_map(|path| Some((path, length(path)?)));
        let gone = files.find(|(path, _)| !is_held(path) && removed(path).is_ok());
        self.given = gone.map(|(_, length)| length);
        if let Some(given) = self.given {
            // The next removal is due when about so much has been written, and is nothing new then.
            self.doubtful = given.max(FULL).saturating_mul(2);
            let why = "the disk is full: the oldest files of the ring go for what comes";
            self.crowded.tried(Some(why.into()));
        }
        self.given.is_some()
    }

    /// So many bytes of a tick have been written, or could not be, after all that was done for it.
    pub fn wrote(&mut self, bytes: u64, written: bool) {
        match self.given {
            Some(given) if !written => {
                // Where less was given than is needed, the next file may be what helps.
                self.in_vain |= given >= bytes;
            }
            None if written => {
                self.doubtful = self.doubtful.saturating_sub(bytes);
                if self.doubtful == 0 {
                    self.crowded.tried(None);
                }
            }
            _ => {}
        }
        self.in_vain &= !written;
    }

    /// What hinders it, in words, and has not been told.
    pub fn hindrance(&mut self) -> Option<String> {
        self.unbegun.news().or_else(|| self.unremoved.news()).or_else(|| self.crowded.news())
    }
}

/// Of a file, which is what a recorder leaves.
fn length(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file).map(|meta| meta.len())
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
