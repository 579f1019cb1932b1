//! Around a moment, everything is kept: the last minute is in memory, and when something is told, it is written to a file of
//! its own beside the ring, with what follows for a minute.
//!
//! What is in memory is what would be in the file: compressed frames. So all rows are there, and it takes little room. Two
//! moments whose minutes overlap are in one file. The oldest files go.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use super::growing::ENDING;
use super::growing::Growing;
use super::growing::create;
use super::numbers::nanos;
use super::ring::Trouble;
use super::ring::removed;
use super::stream::FULL;
use super::stream::Limits;
use super::stream::Piece;
use super::stream::Stream;
use crate::names::Names;
use crate::sample::Sample;
use crate::text::foreign::Foreign;
use crate::wait::Wake;

/// What is kept before a moment, at least, and behind it.
pub const AROUND: Duration = Duration::from_secs(60);
/// How long a file goes on where one moment follows the other.
const LONGEST: Duration = Duration::from_secs(600);
/// Bytes of a file at most, but for the frame that comes over it.
const LARGEST: u64 = 16 << 20;
/// Bytes in memory at most; where a minute has more, less is kept of it.
const ROOM: usize = 4 << 20;
/// Short, since the oldest segment in memory is forgotten as a whole.
const SEGMENT: Limits = Limits { ticks: 30, time: Duration::from_secs(30) };
/// What files of moments begin with.
const BEGINNING: &str = "moment-";

/// A file that is being written.
struct Open {
    path: PathBuf,
    out: Growing,
    segment: u64,
    /// The number of the frame that is written next.
    next: u64,
    began: u64,
    until: u64,
}

/// The last minute, and the file of the moment that is under way.
pub struct Moments {
    directory: PathBuf,
    /// Files that are kept.
    keep: usize,
    stream: Stream,
    /// Bytes of the segment so far.
    segment: u64,
    held: VecDeque<Piece>,
    /// The number of the first of them.
    first: u64,
    size: usize,
    open: Option<Open>,
    unremoved: Trouble,
}

impl Moments {
    /// Keeps so many files in a directory, which is there.
    #[must_use]
    pub fn new(directory: &Path, keep: usize, interval: Duration) -> Self {
        Self {
            directory: directory.into(),
            keep,
            stream: Stream::new(interval, SEGMENT),
            segment: 0,
            held: VecDeque::new(),
            first: 0,
            size: 0,
            open: None,
            unremoved: Trouble::default(),
        }
    }

    /// Something was told at the end of this sample, which is not yet [written](Self::write): the file that it will be in, or
    /// why there is none.
    ///
    /// # Errors
    /// In words, when no file can be made.
    pub fn tell(&mut self, sample: &Sample, line: &str) -> Result<PathBuf, String> {
        self.stream.mark(line.to_owned());
        let now = sample.at.nanos();
        let full = |o: &Open| now.saturating_sub(o.began) >= nanos(LONGEST) || o.out.length >= LARGEST;
        // One that somebody has removed meanwhile is nowhere: this moment gets another one.
        self.open = self.open.take().filter(|o| !full(o) && o.out.is_at(&o.path));
        let until = now.saturating_add(nanos(AROUND));
        if let Some(open) = &mut self.open {
            open.until = until;
            return Ok(open.path.clone());
        }
        let path = self.path(sample);
        let out = create(&path).map_err(|e| format!("cannot make {}: {e}", Foreign::from(path.as_path())))?;
        self.open = Some(Open { path: path.clone(), out, segment: 0, next: self.first, began: now, until });
        self.remove();
        Ok(path)
    }

    /// Takes a sample in, and writes it where a moment is under way. Rows get the order in which they are read back.
    ///
    /// # Errors
    /// When it cannot be written. As long as it is in memory it is tried again, tick by tick.
    pub fn write(&mut self, sample: &mut Sample, names: &mut dyn Names, wake: Wake) -> anyhow::Result<()> {
        let key = self.stream.begins(sample, self.segment);
        let (piece, _) = self.stream.piece(sample, names, wake, key)?;
        let (now, size) = (piece.at, piece.size());
        self.segment = if piece.key { 0 } else { self.segment } + size as u64;
        self.size += size;
        self.held.push_back(piece);
        let written = self.flush();
        self.forget(now);
        if self.open.as_ref().is_some_and(|o| now >= o.until || o.out.length >= LARGEST + FULL) {
            self.open = None;
        }
        written.map_err(Into::into)
    }

    /// Writes what is in memory and not yet in the file.
    fn flush(&mut self) -> std::io::Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        // What was forgotten before it could be written is missing: a reader sees that, and the next segment is whole.
        open.next = open.next.max(self.first);
        let skip = usize::try_from(open.next - self.first).unwrap_or(usize::MAX);
        for piece in self.held.iter().skip(skip) {
            let at = open.out.length;
            open.out.append(&piece.framed(at, open.segment)?)?;
            if piece.key {
                open.segment = at;
            }
            open.next += 1;
        }
        Ok(())
    }

    /// Forgets the oldest segments: those without which there is a minute still, and those for which there is no room.
    fn forget(&mut self, now: u64) {
        loop {
            let Some(second) = self.held.iter().skip(1).position(|p| p.key) else { return };
            let length = second + 1;
            let old = self.held.get(length).is_some_and(|p| now.saturating_sub(p.at) >= nanos(AROUND));
            if !old && self.size <= ROOM {
                return;
            }
            self.size -= self.held.drain(..length).map(|p| p.size()).sum::<usize>();
            self.first += length as u64;
        }
    }

    /// The files of moments, the oldest first.
    fn all(&self) -> Vec<(u64, PathBuf)> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return Vec::new() };
        let number = |name: &str| -> Option<u64> {
            let (number, _) = name.strip_prefix(BEGINNING)?.strip_suffix(ENDING)?.split_once('-')?;
            // Numbers that we did not give are no business of ours.
            let digits = (6..=9).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| number.parse().ok())?
        };
        let ours =
            entries.flatten().filter_map(|entry| Some((number(entry.file_name().to_str()?)?, entry.path())));
        let mut all: Vec<_> = ours.collect();
        all.sort();
        all
    }

    /// A number first, as in the ring: a clock that was set back does not change the order.
    fn path(&self, sample: &Sample) -> PathBuf {
        let number = self.all().last().map_or(1, |(n, _)| n + 1);
        let time = sample.time.strftime("%Y%m%dT%H%M%SZ");
        self.directory.join(format!("{BEGINNING}{number:06}-{time}{ENDING}"))
    }

    /// What hinders it to keep no more files than it should, in words: once for each stretch of it.
    pub const fn hindrance(&mut self) -> Option<String> {
        self.unremoved.news()
    }

    fn remove(&mut self) {
        let (all, mut hindrance) = (self.all(), None);
        for (_, path) in all.iter().take(all.len().saturating_sub(self.keep)) {
            // A directory of that name is somebody else's, and a link goes itself.
            if let Err(why) = removed(path) {
                hindrance = Some(format!("more recordings of moments are there than are to be kept: {why}"));
            }
        }
        self.unremoved.tried(hindrance);
    }

    /// Bytes in memory.
    #[cfg(test)]
    pub(super) const fn size(&self) -> usize {
        self.size
    }
}
