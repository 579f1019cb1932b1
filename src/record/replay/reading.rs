//! The samples of a file or of a ring, one after the other, and what is missing between them.

use std::collections::VecDeque;
use std::path::Path;
use std::path::PathBuf;

use super::Part;
use super::Say;
use crate::exit::Failure;
use crate::names::Recorded;
use crate::record::file::BEGIN;
use crate::record::file::Found;
use crate::record::file::Inflate;
use crate::record::file::Reader;
use crate::record::file::Segment;
use crate::record::frame::Decoder;
use crate::record::frame::Session;
use crate::record::numbers::nanos;
use crate::record::numbers::set_by;
use crate::record::numbers::since_1970;
use crate::record::writer::shards;
use crate::sample::Sample;
use crate::text::foreign::Foreign;
use crate::text::words;
use crate::wait::Wake;

/// Moments of one interval that are told: a recorder has so many conditions at most, but for what somebody has made up.
const MOMENTS: usize = 64;

/// Places that are damaged and told one by one: a file may be made of nothing else.
const DAMAGES: usize = 20;

/// A sample that was read.
pub(super) struct Read {
    pub sample: Sample,
    pub wake: Wake,
    pub names: Recorded,
    /// It begins a segment.
    pub key: bool,
    /// Something is missing before it, or it is of another run.
    pub gap: bool,
}

/// Reads on and on.
pub(super) struct Reading {
    files: VecDeque<PathBuf>,
    reader: Reader,
    /// Segments that are yet to be read.
    segments: VecDeque<Segment>,
    /// Where to read on, while that is in a segment.
    at: Option<u64>,
    inflate: Inflate,
    decoder: Decoder,
    pub session: Session,
    from: i64,
    to: i64,
    /// From the first one in that time on, all of them are in it.
    onwards: bool,
    gap: bool,
    /// The last one from before the time that is requested: where the first interval begins.
    held: Option<Read>,
    begun: bool,
    /// Intervals are put together to this length, in nanoseconds.
    every: u64,
    /// Time of the last sample by both clocks.
    last: Option<(i64, u64)>,
    /// How long the last interval took, in nanoseconds.
    took: Option<u64>,
    /// Places that are damaged.
    damages: usize,
    say: Say,
}

fn shown(time: i64) -> String {
    jiff::Timestamp::from_nanosecond(time.into()).map(crate::view::utc).unwrap_or_default()
}

/// The sample that a file begins with, and its time.
fn first_of(reader: &Reader) -> Option<(i64, Sample)> {
    let Found::Frame(raw) = reader.at(BEGIN).ok()? else { return None };
    let time = raw.segment?.time;
    let bytes = Inflate::new().frame(&raw).ok()?;
    Some((time, Decoder::default().decode(true, &bytes).ok()?.sample))
}

impl Reading {
    pub fn open(path: &Path, part: &Part, mut say: Say) -> Result<Self, Failure> {
        let failed = |e: std::io::Error| Failure::failed(format!("cannot read {}: {e}", Foreign::from(path)));
        let mut files: VecDeque<_> = match path.is_dir() {
            true => shards(path).map_err(failed)?.into(),
            false => [path.to_path_buf()].into(),
        };
        let none = || Failure::usage(format!("there is no recording in {}", Foreign::from(path)));
        // What was begun and not written yet, or cannot be read, does not hide the others of a ring.
        let ring = files.len() > 1;
        let first = loop {
            let reader = Reader::open(files.front().ok_or_else(none)?);
            match reader.and_then(|r| Ok((r.segments().map_err(failed)?.first().copied(), r))) {
                Ok((Some(first), _)) => break first,
                Ok((None, r)) if !ring => {
                    return Err(Failure::usage(format!(
                        "nothing can be read of {}: it has no whole tick",
                        Foreign::from(r.path.as_path())
                    )));
                }
                Err(failure) if !ring => return Err(failure),
                Ok(_) => {}
                Err(failure) => say(&format!("{}: it is left out", failure.message)),
            }
            files.pop_front();
        };
        let from = part.from.as_ref().map_or(i64::MIN, |w| w.nanos(first.time));
        let to = part.to.as_ref().map_or(i64::MAX, |w| w.nanos(first.time.max(from)));
        // Of a ring, the file in which the time begins.
        while from > i64::MIN && files.len() > 1 {
            let next = files.get(1).and_then(|p| Reader::open(p).ok());
            let next = next.and_then(|r| r.segment_from(0).ok().flatten());
            if next.is_none_or(|s| s.time >= from) {
                break;
            }
            files.pop_front();
        }
        let reader = Reader::open(&files.pop_front().ok_or_else(none)?)?;
        let mut out = Self {
            files,
            reader,
            segments: VecDeque::new(),
            at: None,
            inflate: Inflate::new(),
            decoder: Decoder::default(),
            session: Session::now(std::time::Duration::from_secs(1)),
            from,
            to,
            onwards: part.onwards,
            gap: false,
            held: None,
            begun: false,
            every: part.every.map_or(0, nanos),
            last: None,
            took: None,
            damages: 0,
            say,
        };
        out.choose().map_err(failed)?;
        // What recorded it is in the first frame.
        if let Some(read) = out.raw()? {
            out.hold(read);
        }
        Ok(out)
    }

    /// The segments of the file that have something of the time requested.
    fn choose(&mut self) -> std::io::Result<()> {
        let all = self.reader.segments()?;
        let ends = all.iter().skip(1).map(|s| s.before).chain([i64::MAX]);
        let mut wanted: Vec<bool> =
            all.iter().zip(ends).map(|(s, end)| end >= self.from && s.time <= self.to).collect();
        // The first interval may begin where the segment before ends.
        let first = wanted.iter().position(|w| *w);
        if let Some(before) = first.and_then(|n| n.checked_sub(1)) {
            wanted[before] = true;
        }
        if let Some(first) = first.filter(|_| self.onwards) {
            wanted.iter_mut().skip(first).for_each(|w| *w = true);
        }
        self.segments = all.iter().zip(wanted).filter(|(_, wanted)| *wanted).map(|(s, _)| *s).collect();
        self.at = None;
        let name = Foreign::from(self.reader.path.as_path());
        if all.is_empty() {
            (self.say)(&format!("{name} has no whole tick"));
            self.gap = true;
        }
        // No segment before it leads there.
        if all.first().is_some_and(|first| first.at != BEGIN && self.from < first.time) {
            (self.say)(&format!(
                "{name} is damaged at byte {BEGIN}: what follows up to the next segment is missing"
            ));
            self.gap = true;
        }
        Ok(())
    }

    /// The sample behind the first one, once that was read.
    pub fn second(&self) -> Option<&Sample> {
        self.held.as_ref().map(|read| &read.sample)
    }

    /// Whether files were counted, and calls timed, by any run that records in a file behind this one and before the end of the time
    /// requested: each begins with a whole sample.
    pub fn later(&self) -> (bool, bool) {
        let (mut files, mut latency) = (false, false);
        for path in &self.files {
            let Some((time, sample)) = Reader::open(path).ok().and_then(|reader| first_of(&reader)) else {
                continue;
            };
            if time > self.to || files && latency {
                break;
            }
            files |= sample.by_file.is_some();
            latency |= sample.latency.is_some();
        }
        (files, latency)
    }

    fn hold(&mut self, read: Read) {
        self.held = Some(read);
    }

    /// The next sample in the time requested, and before the first of them the one where its interval begins.
    pub fn next(&mut self) -> anyhow::Result<Option<Read>> {
        if self.begun {
            return match self.held.take() {
                Some(held) => Ok(Some(held)),
                None => self.in_time(),
            };
        }
        self.begun = true;
        let Some(mut before) = self.held.take() else { return Ok(None) };
        let from = self.from;
        // Names that were looked up on the way belong to it.
        while let Some(mut read) = self.raw()? {
            if (from..=self.to).contains(&since_1970(read.sample.time)) {
                self.held = Some(read);
                if self.onwards {
                    self.from = i64::MIN;
                }
                return Ok(Some(before));
            }
            if !read.key {
                let mut names = std::mem::take(&mut before.names);
                names.merge(std::mem::take(&mut read.names));
                read.names = names;
            }
            before = read;
        }
        // There is no interval in that time.
        Ok((from == i64::MIN && self.to == i64::MAX).then_some(before))
    }

    fn in_time(&mut self) -> anyhow::Result<Option<Read>> {
        while let Some(read) = self.raw()? {
            let time = since_1970(read.sample.time);
            if (self.from..=self.to).contains(&time) {
                return Ok(Some(read));
            }
            // A clock that was set leads out of the time, and perhaps back into it.
            self.gap = true;
        }
        Ok(None)
    }

    /// The next sample that can be read.
    fn raw(&mut self) -> anyhow::Result<Option<Read>> {
        loop {
            let Some(at) = self.at else {
                if !self.enter()? {
                    if let Some(more @ 1..) = std::mem::take(&mut self.damages).checked_sub(DAMAGES) {
                        let more = words::many(more as u64, "more such place", "more such places");
                        (self.say)(&format!("and {more}"));
                    }
                    return Ok(None);
                }
                continue;
            };
            let name = Foreign::from(self.reader.path.as_path());
            match self.reader.at(at)? {
                Found::Frame(raw)
                    if raw.segment.is_some_and(|s| Some(s.at) != self.segments.front().map(|s| s.at)) =>
                {
                    // The next segment is not of the time requested.
                    (self.at, self.gap) = (None, true);
                }
                Found::Frame(raw) => {
                    let key = raw.segment.is_some();
                    if key {
                        self.inflate.begin();
                        self.segments.pop_front();
                    }
                    let frame = self.inflate.frame(&raw).and_then(|bytes| self.decoder.decode(key, &bytes));
                    match frame {
                        Ok(frame) => {
                            self.at = Some(raw.next);
                            return Ok(Some(self.read(frame, raw.wake, key)));
                        }
                        Err(e) => {
                            self.damaged(&format!(
                                "{name}: a frame at byte {at} cannot be read ({e}): what follows it up to the next segment is missing"
                            ));
                            (self.at, self.gap) = (None, true);
                        }
                    }
                }
                Found::End => self.at = None,
                Found::Cut => {
                    (self.say)(&format!("{name} ends in the middle of a tick: its last one is lost"));
                    self.at = None;
                }
                Found::Damaged => {
                    self.damaged(&format!(
                        "{name} is damaged at byte {at}: what follows up to the next segment is missing"
                    ));
                    (self.at, self.gap) = (None, true);
                }
            }
        }
    }

    fn damaged(&mut self, text: &str) {
        self.damages += 1;
        if self.damages <= DAMAGES {
            (self.say)(text);
        }
    }

    /// Goes on with the next segment, or the next file.
    fn enter(&mut self) -> anyhow::Result<bool> {
        if let Some(segment) = self.segments.front() {
            self.at = Some(segment.at);
            return Ok(true);
        }
        let Some(path) = self.files.pop_front() else { return Ok(false) };
        match Reader::open(&path) {
            Ok(reader) => {
                self.reader = reader;
                self.choose()?;
            }
            Err(failure) => {
                (self.say)(&format!("{}: it is left out", failure.message));
                self.gap = true;
            }
        }
        Ok(true)
    }

    /// Says so where an interval took much longer than those that are shown, and than the one before, as a run says it: the disk was
    /// full, or the recorder was stopped. Its figures look like a peak, but on a screen, where one walks through it: there they are by
    /// the second. What was kept with another interval than is set by now is not late.
    fn late(&mut self, took: u64, time: i64) {
        let Some(before) = self.took.replace(took) else { return };
        let usual = self.session.interval.max(self.every).max(before);
        if !self.onwards && took > usual.saturating_add(usual / 2) && (self.from..=self.to).contains(&time) {
            let (took, usual) = (took as f64 / 1e9, usual as f64 / 1e9);
            (self.say)(&format!(
                "the interval that ends at {} took {took:.3} s instead of {usual} s",
                shown(time)
            ));
        }
    }

    fn read(&mut self, frame: crate::record::frame::Frame, wake: Wake, key: bool) -> Read {
        let sample = frame.sample;
        let (time, at) = (since_1970(sample.time), sample.at.nanos());
        let mut gap = std::mem::take(&mut self.gap);
        if let Some(session) = frame.session {
            if self.last.is_some() && session.began != self.session.began {
                (self.say)(&format!("another run of the recorder begins at {}", shown(time)));
                gap = true;
            }
            self.session = session;
        }
        if let Some(off) = self.last.filter(|_| !gap).and_then(|last| set_by(last, (time, at))) {
            let seconds = off as f64 / 1e9;
            // What was recorded does not tell one from the other: the clock that nobody sets stands still meanwhile.
            let slept = if off > 0 { ", or the machine slept," } else { "" };
            (self.say)(&format!("the clock was set by {seconds:+.1} s{slept} before {}", shown(time)));
        }
        if let Some((_, before)) = self.last.filter(|_| !gap) {
            self.late(at.saturating_sub(before), time);
        }
        self.last = Some((time, at));
        // Those of an interval that is not shown are not told.
        if (self.from..=self.to).contains(&time) {
            for line in frame.moments.iter().take(MOMENTS) {
                (self.say)(&format!("moment at {}: {}", shown(time), Foreign::from(line.as_str())));
            }
        }
        Read { sample, wake, names: frame.names.unwrap_or_default(), key, gap }
    }
}
