//! Samples as one stream of compressed frames, before anybody knows which file they go to.

use std::time::Duration;

use flate2::Compress;
use flate2::Compression;
use flate2::FlushCompress;

use super::file;
use super::frame;
use super::frame::Encoder;
use super::frame::Session;
use super::numbers::set_by;
use super::numbers::since_1970;
use crate::names::Names;
use crate::names::Recorded;
use crate::sample::Sample;
use crate::wait::Wake;

/// Bytes of a segment from which on a new one is begun.
pub(super) const FULL: u64 = 1 << 20;
/// Rows of a segment from which on a new one is begun, unless one in four of them is in use: where processes come and go,
/// most of them are gone for good.
const PLACES: usize = 8192;

/// A frame that is in no file yet.
pub(super) struct Piece {
    /// It begins a segment.
    pub key: bool,
    /// Time of its sample, nanoseconds since 1970.
    pub time: i64,
    /// When that was taken, by the clock that nobody sets, in nanoseconds.
    pub at: u64,
    /// Time of the sample before it.
    before: i64,
    wake: Wake,
    compressed: Vec<u8>,
}

impl Piece {
    /// As it stands in a file at this place, behind a segment that begins there (0: there is none).
    pub fn framed(&self, at: u64, segment: u64) -> std::io::Result<Vec<u8>> {
        let back = if segment == 0 { 0 } else { at - segment };
        let segment = self.key.then_some(file::Segment { at, time: self.time, back, before: self.before });
        file::framed(segment, self.wake, &self.compressed)
    }

    /// Bytes of it, about.
    pub fn size(&self) -> usize {
        self.compressed.len() + size_of::<Self>()
    }
}

/// How long a segment is at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Ticks: what must be read to begin anywhere.
    pub ticks: u32,
    /// The time that they take.
    pub time: Duration,
}

/// Makes frames.
pub(super) struct Stream {
    session: Session,
    encoder: Encoder,
    compress: Compress,
    book: Recorded,
    limits: Limits,
    /// Ticks of the segment so far.
    pub ticks: u32,
    /// Bytes of its frames, unpacked.
    unpacked: usize,
    /// When it began, by the clock that nobody sets.
    began: u64,
    /// Time of the last sample by both clocks, and of the one before it.
    last: Option<(i64, u64)>,
    earlier: Option<(i64, u64)>,
}

impl Stream {
    pub fn new(interval: Duration, limits: Limits) -> Self {
        Self {
            session: Session::now(interval),
            encoder: Encoder::default(),
            // Half the time of the default, for 3 % more bytes: rows are already told by what changed.
            compress: Compress::new(Compression::new(2), false),
            book: Recorded::default(),
            limits,
            ticks: 0,
            unpacked: 0,
            began: 0,
            last: None,
            earlier: None,
        }
    }

    /// Marks the next sample with a moment that was told at its end.
    pub fn mark(&mut self, line: String) {
        self.encoder.mark(line);
    }

    /// How many rows are remembered.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.encoder.places()
    }

    /// Whether this sample is to begin a segment, where the one before has so many bytes.
    pub fn begins(&self, sample: &Sample, bytes: u64) -> bool {
        let (time, at) = (since_1970(sample.time), sample.at.nanos());
        let jumped = self.last.is_some_and(|last| set_by(last, (time, at)).is_some());
        let (places, rows) = (self.encoder.places(), sample.rows.len() + sample.files.len());
        let crowded = places > PLACES.max(4 * rows) || places + rows > frame::PLACES;
        let long = u128::from(at.saturating_sub(self.began)) >= self.limits.time.as_nanos();
        // Who reads it takes no more than twice that, the next frame included.
        let large = self.unpacked >= file::LARGEST;
        self.ticks == 0
            || jumped
            || crowded
            || long
            || large
            || self.ticks >= self.limits.ticks
            || bytes >= FULL
    }

    fn begin(&mut self, sample: &Sample) {
        self.book = Recorded::default();
        self.compress.reset();
        self.unpacked = 0;
        self.began = sample.at.nanos();
    }

    /// The frame of a sample, and what was looked up for it. Rows get the order in which they are read back. It begins a segment
    /// if `key` says so, and also where it would be too large otherwise. After an error the next one must begin a segment, and so
    /// does [`Self::begins`] say.
    pub fn piece(
        &mut self,
        sample: &mut Sample,
        names: &mut dyn Names,
        wake: Wake,
        mut key: bool,
    ) -> anyhow::Result<(Piece, Recorded)> {
        if key {
            self.begin(sample);
        }
        let ticks = std::mem::take(&mut self.ticks);
        let mut new = self.book.note(sample, names);
        let mut raw = self.encoder.encode(sample, &new, key.then_some(&self.session))?;
        if raw.len() > file::LARGEST {
            // What cgroups, files and mounts are called is up to others. Nothing refers to what was not written: a segment of its own,
            // without what was looked up.
            key = true;
            self.begin(sample);
            new = Recorded::default();
            raw = self.encoder.encode(sample, &new, Some(&self.session))?;
        }
        anyhow::ensure!(raw.len() <= file::LARGEST, file::TOO_LARGE_TO_WRITE);
        self.encoder.told();
        self.unpacked += raw.len();
        let compressed = self.compressed(&raw)?;
        let (time, at) = (since_1970(sample.time), sample.at.nanos());
        let before = self.last.map_or(i64::MIN, |(t, _)| t);
        self.ticks = if key { 1 } else { ticks + 1 };
        (self.earlier, self.last) = (self.last, Some((time, at)));
        Ok((Piece { key, time, at, before, wake, compressed }, new))
    }

    /// The last frame could not be written: what follows must not refer to it.
    pub fn unwritten(&mut self) {
        (self.ticks, self.last) = (0, self.earlier);
    }

    fn compressed(&mut self, raw: &[u8]) -> anyhow::Result<Vec<u8>> {
        let mut small = Vec::with_capacity(raw.len() / 2 + 256);
        let begin = self.compress.total_in();
        loop {
            let done = usize::try_from(self.compress.total_in() - begin)?;
            self.compress.compress_vec(
                raw.get(done..).unwrap_or_default(),
                &mut small,
                FlushCompress::Sync,
            )?;
            let all = self.compress.total_in() - begin == raw.len() as u64;
            if all && small.len() < small.capacity() {
                break;
            }
            small.reserve(small.len().max(1 << 12));
        }
        anyhow::ensure!(small.ends_with(&file::FLUSHED), "the compression did not come to an end");
        small.truncate(small.len() - file::FLUSHED.len());
        Ok(small)
    }
}
