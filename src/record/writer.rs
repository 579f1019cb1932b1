//! A recording that is written: one file, or a ring of files in a directory.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::file::Reader;
use super::growing::Growing;
use super::growing::Prepared;
use super::growing::create;
use super::growing::is_held;
use super::ring::Ring;
use super::ring::is_crowded;
use super::ring::passed;
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

pub use super::ring::Bounds;
pub use super::ring::has_no_recorder;
pub use super::ring::shards;

/// A segment: what must be read to begin anywhere.
const SEGMENT: Limits = Limits { ticks: 300, time: Duration::MAX };

/// Writes samples.
pub struct Writer {
    /// `None`: one file.
    ring: Option<Ring>,
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
        Ok(Self::new(None, out, interval))
    }

    /// A ring in a directory, which is made in the one above it if it is not there. What earlier runs left there is part of it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn ring(directory: &Path, bounds: Bounds, interval: Duration) -> Result<Self, Failure> {
        outfile::make_directory(directory)?;
        has_no_recorder(directory)?;
        let mut ring = Ring::new(directory, bounds);
        let out = ring.begin().map_err(|e| {
            outfile::not_in_directory(format_args!("cannot record in {}", Foreign::from(directory)), &e)
        })?;
        Ok(Self::new(Some(ring), out, interval))
    }

    fn new(ring: Option<Ring>, out: Growing, interval: Duration) -> Self {
        // Where intervals are long, so many of them would take longer than a ring is to reach back.
        let time = ring.as_ref().map_or(SEGMENT.time, Ring::longest);
        let stream = Stream::new(interval, Limits { time, ..SEGMENT });
        Self { ring, stream, out, segment: 0, since: None }
    }

    /// What hinders the ring though it is recorded, in words: once for each stretch of it.
    pub fn hindrance(&mut self) -> Option<String> {
        self.ring.as_mut()?.hindrance()
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
        if let Some(ring) = &mut self.ring {
            ring.tick();
        }
        let key = self.stream.begins(sample, self.out.length - self.segment);
        if key {
            self.bound(sample.at);
        }
        self.since.get_or_insert_with(|| passed(sample.at));
        let (piece, new) = self.stream.piece(sample, names, wake, key)?;
        let key = piece.key;
        let at = self.out.length;
        let written = piece.framed(at, self.segment).and_then(|bytes| self.append(&bytes));
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

    /// Of a ring: begins a new file where one is full, and removes the oldest.
    fn bound(&mut self, at: Moment) {
        let Some(ring) = &mut self.ring else { return };
        let now = passed(at);
        let age = self.since.map_or(0, |since| now.saturating_sub(since));
        if let Some(out) = ring.after(self.out.length, age) {
            (self.out, self.segment, self.since) = (out, 0, None);
        }
        ring.bound(now, self.out.length);
    }

    /// A ring on a full disk gives its oldest file for what comes now, no more than one for each tick.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut written = self.out.append(bytes);
        let Some(ring) = &mut self.ring else { return written };
        if written.as_ref().err().is_some_and(is_crowded) && ring.make_room() {
            written = self.out.append(bytes);
        }
        ring.wrote(bytes.len() as u64, written.is_ok());
        written
    }
}
