//! A sample as bytes, and back. What is the same as in the frame before is not said again.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;

use super::file::LARGEST;
use super::file::TOO_LARGE_TO_WRITE;
use super::numbers::nanos;
use super::rows::Cells;
use super::rows::Damaged;
use super::rows::Scheme;
use super::rows::Sets;
use super::rows::put;
use super::rows::put_rows;
use super::rows::take;
use super::rows::take_rows;
use crate::files::File;
use crate::names::Recorded;
use crate::sample::Comm;
use crate::sample::Counter;
use crate::sample::Counters;
use crate::sample::FileSample;
use crate::sample::Histograms;
use crate::sample::Known;
use crate::sample::Moment;
use crate::sample::RowSample;
use crate::sample::Sample;
use crate::sample::Sparse;
use crate::sample::written::MOST;

/// What a segment begins with: what recorded it, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Version of the program.
    pub program: String,
    /// Length of an interval in nanoseconds.
    pub interval: u64,
    /// Bytes in a page of the machine.
    pub page_size: u64,
    /// Name of the machine, as it was then; `None` where a program before this one recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Release of its kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// When recording began, nanoseconds since 1970: another one is another run, with counters of its own.
    pub began: i64,
    /// Names of the counters, in the order of their numbers.
    counters: Vec<String>,
}

impl Session {
    /// One that begins now.
    #[must_use]
    pub fn now(interval: std::time::Duration) -> Self {
        Self {
            program: env!("CARGO_PKG_VERSION").into(),
            interval: nanos(interval),
            page_size: rustix::param::page_size() as u64,
            host: crate::kernel::name("hostname"),
            kernel: crate::kernel::name("osrelease"),
            began: i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(0),
            counters: Counter::ALL.iter().map(|c| format!("{c:?}")).collect(),
        }
    }

    fn scheme(&self) -> Scheme {
        let here: HashMap<String, usize> =
            Counter::ALL.iter().map(|c| (format!("{c:?}"), *c as usize)).collect();
        Scheme { ours: self.counters.iter().map(|c| here.get(c).copied()).collect(), page: self.page_size }
    }
}

/// The part of a frame that is text.
#[derive(Serialize, Deserialize)]
struct Head {
    /// In a key frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<Session>,
    /// The figures are known as they were.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    same: bool,
    /// What was looked up, unless it is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    names: Option<Recorded>,
    /// Moments that were told at the end of this interval: one line each. Programs before this one pass them over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    moments: Vec<String>,
    /// With rows that were not there before only, and counters as they rose.
    sample: Sample,
}

/// Rows of a segment at most, and the complaint about more of them, or of text.
pub(super) const PLACES: usize = 4 * MOST;
const LARGER: &str = "its segment is larger than any";

/// What makes a row of a thread the same one.
pub(super) type Thread = (u32, u32, u32, u64, u64, Comm, Comm);
/// What makes a row of a file the same one.
pub(super) type OfFile = (u32, u32, u64, u64, Comm, Arc<File>, bool);

pub(super) fn thread(r: &RowSample) -> Thread {
    (r.tgid, r.tid, r.uid, r.cgroup, r.born, r.comm, r.process)
}

pub(super) fn of_file(f: &FileSample) -> OfFile {
    (f.tgid, f.uid, f.cgroup, f.born, f.process, Arc::clone(&f.file), f.deleted)
}

/// What rises, as it was in the last frame.
#[derive(Default, Clone)]
struct Last {
    at: u64,
    total: Counters,
    by_file: Counters,
    latency: Histograms,
    known: Option<Arc<Known>>,
}

impl Last {
    fn seen(s: &Sample) -> Self {
        Self {
            at: s.at.nanos(),
            total: s.total,
            by_file: s.by_file.unwrap_or_default(),
            latency: s.latency.as_deref().cloned().unwrap_or_default(),
            known: Some(Arc::clone(&s.known)),
        }
    }
}

/// Counter by counter, and around the end of numbers, so that it comes out as it went in whatever it was.
pub(super) fn combine(a: &Counters, b: &Counters, with: fn(u64, u64) -> u64) -> Counters {
    let mut out = *a;
    out.0.iter_mut().zip(&b.0).for_each(|(a, b)| *a = with(*a, *b));
    out
}

/// The same, bucket by bucket.
pub(super) fn combine_histograms(
    a: &Histograms,
    b: &Histograms,
    with: fn(u64, u64) -> u64,
) -> Box<Histograms> {
    let (mut out, mut b) = (Box::new(a.clone()), b.clone());
    out.buckets().zip(b.buckets()).for_each(|(a, b)| *a = with(*a, *b));
    out
}

/// The rows of one kind: the old ones by their places, the new ones as they are.
fn split<R, K: std::hash::Hash + Eq>(
    all: Vec<R>,
    places: &mut HashMap<K, u32>,
    key: fn(&R) -> K,
) -> (Vec<(u32, R)>, Vec<R>) {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for row in all {
        let next = u32::try_from(places.len()).unwrap_or(u32::MAX);
        let place = *places.entry(key(&row)).or_insert(next);
        if place == next {
            new.push(row);
        } else {
            old.push((place, row));
        }
    }
    old.sort_by_key(|(place, _)| *place);
    (old, new)
}

/// Makes frames of one segment after the other.
#[derive(Default)]
pub struct Encoder {
    threads: HashMap<Thread, u32>,
    files: HashMap<OfFile, u32>,
    sets: Sets,
    last: Last,
    moments: Vec<String>,
}

impl Encoder {
    /// Marks the next sample with a moment that was told at its end.
    pub fn mark(&mut self, line: String) {
        self.moments.push(line);
    }

    /// What was encoded last will be written: its moments have been told.
    pub fn told(&mut self) {
        self.moments.clear();
    }

    /// How many rows of this segment it knows by their places: it needs some hundred bytes for each.
    #[must_use]
    pub fn places(&self) -> usize {
        self.threads.len() + self.files.len()
    }

    /// The bytes of a sample; with `session` it begins a segment. Rows get the order in which they are read back.
    ///
    /// # Errors
    /// When the sample cannot be written as text.
    pub fn encode(
        &mut self,
        sample: &mut Sample,
        names: &Recorded,
        session: Option<&Session>,
    ) -> anyhow::Result<Vec<u8>> {
        // Each thread has two names.
        let most = 2 * sample.rows.len() + sample.files.len();
        anyhow::ensure!(most <= MOST, TOO_LARGE_TO_WRITE);
        let moments = self.moments.clone();
        if session.is_some() {
            *self = Self { moments: std::mem::take(&mut self.moments), ..Self::default() };
        }
        let scheme = Scheme::here(rustix::param::page_size() as u64);
        let (old, new) = split(std::mem::take(&mut sample.rows), &mut self.threads, thread);
        let (old_files, new_files) = split(std::mem::take(&mut sample.files), &mut self.files, of_file);
        let last = std::mem::replace(&mut self.last, Last::seen(sample));
        let same = last.known.as_ref().is_some_and(|k| *k == sample.known);
        let known = if same {
            let (figures, at_least, programs) = (Vec::new(), Vec::new(), Vec::new());
            Arc::new(Known { figures, at_least, programs, ..*sample.known })
        } else {
            Arc::clone(&sample.known)
        };
        let head = Head {
            session: session.cloned(),
            same,
            names: (*names != Recorded::default()).then(|| names.clone()),
            moments,
            sample: Sample {
                at: Moment::from_nanos(sample.at.nanos().wrapping_sub(last.at)),
                time: sample.time,
                known,
                total: combine(&sample.total, &last.total, u64::wrapping_sub),
                by_file: sample.by_file.map(|line| combine(&line, &last.by_file, u64::wrapping_sub)),
                rows: new,
                files: new_files,
                folded: sample.folded.clone(),
                latency: sample
                    .latency
                    .as_deref()
                    .map(|l| combine_histograms(l, &last.latency, u64::wrapping_sub)),
                lost: sample.lost.clone(),
                memory: sample.memory,
                classic: sample.classic.clone(),
                evictors: None,
                followed: None,
            },
        };
        let text = serde_json::to_vec(&head)?;
        let mut out = Vec::with_capacity(text.len() + 16 * old.len() + 64);
        put(&mut out, text.len() as u64);
        out.extend(text);
        let cells: Vec<Cells> =
            old.iter().map(|(n, r)| (*n, r.counters.clone(), r.latency.clone())).collect();
        put_rows(&cells, &mut self.sets, &scheme, &mut out);
        let cells: Vec<Cells> = old_files.iter().map(|(n, f)| (*n, f.counters.clone(), None)).collect();
        put_rows(&cells, &mut self.sets, &scheme, &mut out);
        sample.rows = old.into_iter().map(|(_, row)| row).chain(head.sample.rows).collect();
        sample.files = old_files.into_iter().map(|(_, row)| row).chain(head.sample.files).collect();
        Ok(out)
    }
}

/// What a frame says.
pub struct Frame {
    /// The sample.
    pub sample: Sample,
    /// In a key frame: what recorded it.
    pub session: Option<Session>,
    /// What was looked up.
    pub names: Option<Recorded>,
    /// Moments that were told at its end, in words. Foreign text.
    pub moments: Vec<String>,
}

/// Reads the frames of one segment after the other.
#[derive(Default)]
pub struct Decoder {
    threads: Vec<RowSample>,
    files: Vec<FileSample>,
    sets: Sets,
    scheme: Option<Scheme>,
    last: Last,
    /// Bytes of text so far.
    text: usize,
}

impl Decoder {
    /// Reads a frame; a key frame forgets those before it.
    ///
    /// # Errors
    /// What is wrong with it. The segment cannot be read on.
    pub fn decode(&mut self, key: bool, bytes: &[u8]) -> anyhow::Result<Frame> {
        if key {
            *self = Self::default();
        }
        let mut rest = bytes;
        let wrong = |why: Damaged| anyhow::anyhow!(why);
        let length = usize::try_from(take(&mut rest).map_err(wrong)?)?;
        let (text, mut rest) = rest.split_at_checked(length).ok_or_else(|| wrong("its text is cut off"))?;
        // Rows that are new and names are kept as long as the segment lasts. A recorder begins one before it has more than that.
        self.text += length;
        anyhow::ensure!(self.text <= 2 * LARGEST, LARGER);
        let Head { session, same, names, moments, mut sample } = serde_json::from_slice(text)?;
        if key {
            let session = session.as_ref().ok_or_else(|| wrong("a segment does not say what recorded it"))?;
            self.scheme = Some(session.scheme());
        }
        let scheme = self.scheme.as_ref().ok_or_else(|| wrong("a segment has no beginning"))?;
        let bare = |row: &RowSample| RowSample { counters: Sparse::default(), latency: None, ..row.clone() };
        self.threads.extend(sample.rows.iter().map(bare));
        self.files
            .extend(sample.files.iter().map(|f| FileSample { counters: Sparse::default(), ..f.clone() }));
        anyhow::ensure!(self.threads.len() + self.files.len() <= PLACES, LARGER);
        let rows = take_rows(&mut rest, &mut self.sets, scheme).map_err(wrong)?;
        let threads = rows.into_iter().map(|(place, counters, latency)| {
            let row = self.threads.get(place as usize).ok_or("a row that there is not")?;
            Ok(RowSample { counters, latency, ..row.clone() })
        });
        let mut threads = threads.collect::<Result<Vec<_>, Damaged>>().map_err(wrong)?;
        let rows = take_rows(&mut rest, &mut self.sets, scheme).map_err(wrong)?;
        let files = rows.into_iter().map(|(place, counters, _)| {
            let row = self.files.get(place as usize).ok_or("a file that there is not")?;
            Ok(FileSample { counters, ..row.clone() })
        });
        let mut files = files.collect::<Result<Vec<_>, Damaged>>().map_err(wrong)?;
        threads.append(&mut sample.rows);
        files.append(&mut sample.files);
        (sample.rows, sample.files) = (threads, files);
        let last = &self.last;
        sample.at = Moment::from_nanos(sample.at.nanos().wrapping_add(last.at));
        sample.total = combine(&sample.total, &last.total, u64::wrapping_add);
        sample.by_file = sample.by_file.map(|line| combine(&line, &last.by_file, u64::wrapping_add));
        let latency = sample.latency.as_deref();
        sample.latency = latency.map(|l| combine_histograms(l, &last.latency, u64::wrapping_add));
        if same {
            sample.known = last.known.clone().ok_or_else(|| wrong("a segment does not say what is known"))?;
        }
        self.last = Last::seen(&sample);
        Ok(Frame { sample, session, names, moments })
    }
}
