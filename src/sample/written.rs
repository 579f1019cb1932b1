//! A sample, written down and read back.
//!
//! Ten thousand rows say the same few names again and again: names, files and counters are written once for each sample,
//! and rows refer to them by number. Counters go by their names, so that a reader of another version takes none for
//! another one: what it does not know, it leaves out. Bytes that are no UTF-8 are escaped and come back as they were.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error as _;
use serde::de::SeqAccess;
use serde::de::Visitor;

use super::Comm;
use super::Counter;
use super::Counters;
use super::FileSample;
use super::Folded;
use super::FoldedRows;
use super::Followed;
use super::Histograms;
use super::Known;
use super::Lost;
use super::Memory;
use super::Moment;
use super::RowSample;
use super::Sample;
use super::Sparse;
use super::Threads;
use super::Waiting;
use crate::files::File;
use crate::pivot::by::By;
use crate::wire::COUNTERS;

/// Numbers of counters in the list of their names, with their values.
type Counted = Vec<(usize, u64)>;

/// Buckets that are not empty.
type Buckets = Vec<(usize, u64)>;

/// Thread-group id, thread id, user, cgroup, birth, names of the thread and of its process, counters, latency.
type Row = (u32, u32, u32, u64, u64, usize, usize, Counted, Option<Buckets>);

/// Thread-group id, user, cgroup, birth, name of the process, file, whether it was deleted, counters.
type OfFile = (u32, u32, u64, u64, usize, usize, bool, Counted);

/// So many of one kind are in no sample: by default 32 768 rows are (`--table-size` has it). Text that is packed costs
/// little and may say many.
pub(crate) const MOST: usize = 1 << 18;
/// The complaint about more.
pub(crate) const TOO_MANY: &str = "more rows than any tick has";

/// A list of no more than [`MOST`].
fn few<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Few<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
            let mut out = Vec::new();
            while let Some(one) = from.next_element()? {
                if out.len() == MOST {
                    return Err(A::Error::custom(TOO_MANY));
                }
                out.push(one);
            }
            Ok(out)
        }
    }

    from.deserialize_seq(Few(PhantomData))
}

#[derive(Serialize, Deserialize)]
struct Written<'a> {
    /// Nanoseconds of the monotonic clock.
    at: u64,
    /// Seconds and nanoseconds since 1970.
    time: (i64, i32),
    known: Cow<'a, Known>,
    #[serde(deserialize_with = "few")]
    names: Vec<String>,
    #[serde(deserialize_with = "few")]
    counters: Vec<String>,
    #[serde(deserialize_with = "few")]
    files: Vec<Cow<'a, File>>,
    total: Counted,
    by_file: Option<Counted>,
    #[serde(deserialize_with = "few")]
    rows: Vec<Row>,
    #[serde(deserialize_with = "few")]
    of_files: Vec<OfFile>,
    #[serde(deserialize_with = "few")]
    folded_rows: Vec<(By, Row)>,
    #[serde(deserialize_with = "few")]
    folded_files: Vec<(By, OfFile)>,
    latency: Option<Buckets>,
    lost: Cow<'a, Lost>,
    memory: Memory,
    classic: Option<Cow<'a, crate::classic::Sample>>,
    followed: Option<WrittenFollowed>,
}

#[derive(Serialize, Deserialize)]
struct WrittenFollowed {
    run: u32,
    counters: Counted,
    histograms: Buckets,
    files: Vec<OfFile>,
    processes: Vec<(u32, usize)>,
    threads: Threads,
    #[serde(default)]
    waiting: Option<(u64, Counted)>,
}

/// What is written once: each thing has the number of its place.
struct Table<K, V> {
    numbers: HashMap<K, usize>,
    list: Vec<V>,
}

impl<K: Hash + Eq, V> Table<K, V> {
    fn new() -> Self {
        Self { numbers: HashMap::new(), list: Vec::new() }
    }

    fn number(&mut self, key: K, make: impl FnOnce() -> V) -> usize {
        *self.numbers.entry(key).or_insert_with(|| {
            self.list.push(make());
            self.list.len() - 1
        })
    }
}

/// Puts what is common into tables.
struct Writer<'a> {
    names: Table<Comm, String>,
    counters: Table<usize, String>,
    files: Table<&'a File, Cow<'a, File>>,
}

impl<'a> Writer<'a> {
    fn name(&mut self, name: Comm) -> usize {
        self.names.number(name, || escaped(name.as_bytes()))
    }

    fn counted(&mut self, counters: impl Iterator<Item = (usize, u64)>) -> Counted {
        counters.map(|(c, n)| (self.counters.number(c, || counter_name(c)), n)).collect()
    }

    fn dense(&mut self, all: &Counters) -> Counted {
        let some = all.0.iter().enumerate().filter(|(_, n)| **n != 0);
        self.counted(some.map(|(c, n)| (c, *n)))
    }

    fn row(&mut self, r: &RowSample) -> Row {
        let (comm, process) = (self.name(r.comm), self.name(r.process));
        let counters = self.counted(r.counters.iter());
        let latency = r.latency.as_deref().map(buckets);
        (r.tgid, r.tid, r.uid, r.cgroup, r.born, comm, process, counters, latency)
    }

    fn of_file(&mut self, f: &'a FileSample) -> OfFile {
        let name = self.name(f.process);
        let file = self.files.number(f.file.as_ref(), || Cow::Borrowed(f.file.as_ref()));
        let counters = self.counted(f.counters.iter());
        (f.tgid, f.uid, f.cgroup, f.born, name, file, f.deleted, counters)
    }

    fn followed(&mut self, f: &'a Followed) -> WrittenFollowed {
        WrittenFollowed {
            run: f.run,
            counters: self.dense(&f.counters),
            histograms: buckets(&f.histograms),
            files: f.files.iter().map(|f| self.of_file(f)).collect(),
            processes: f.processes.iter().map(|(pid, name)| (*pid, self.name(*name))).collect(),
            threads: f.threads,
            waiting: f.waiting.map(|w| (w.at.nanos(), self.dense(&w.so_far))),
        }
    }
}

fn buckets(h: &Histograms) -> Buckets {
    h.clone().buckets().enumerate().filter(|(_, n)| **n != 0).map(|(i, n)| (i, *n)).collect()
}

fn counter_name(counter: usize) -> String {
    Counter::ALL.get(counter).map(|c| format!("{c:?}")).unwrap_or_default()
}

impl Serialize for Sample {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut w = Writer { names: Table::new(), counters: Table::new(), files: Table::new() };
        let total = w.dense(&self.total);
        let by_file = self.by_file.as_ref().map(|line| w.dense(line));
        let rows = self.rows.iter().map(|r| w.row(r)).collect();
        let of_files = self.files.iter().map(|f| w.of_file(f)).collect();
        let folded_rows = self.folded.threads.iter().map(|f| (f.by, w.row(&f.row))).collect();
        let folded_files = self.folded.files.iter().map(|f| (f.by, w.of_file(&f.row))).collect();
        let followed = self.followed.as_deref().map(|f| w.followed(f));
        let written = Written {
            at: self.at.nanos(),
            time: (self.time.as_second(), self.time.subsec_nanosecond()),
            known: Cow::Borrowed(&self.known),
            names: w.names.list,
            counters: w.counters.list,
            files: w.files.list,
            total,
            by_file,
            rows,
            of_files,
            folded_rows,
            folded_files,
            latency: self.latency.as_deref().map(buckets),
            lost: Cow::Borrowed(&self.lost),
            memory: self.memory,
            classic: self.classic.as_ref().map(Cow::Borrowed),
            followed,
        };
        written.serialize(to)
    }
}

/// What rows refer to, and the complaint about a number that refers to nothing.
struct Reader {
    names: Vec<Comm>,
    /// `None`: a counter that this version does not know.
    counters: Vec<Option<usize>>,
    files: Vec<Arc<File>>,
}

impl Reader {
    fn name(&self, n: usize) -> Result<Comm, &'static str> {
        self.names.get(n).copied().ok_or("a row has a name that is not in the list")
    }

    fn counted(&self, counted: Counted) -> Result<Sparse, &'static str> {
        let mut out = Sparse::default();
        for (n, value) in counted {
            let known = self.counters.get(n).ok_or("a row has a counter that is not in the list")?;
            if let Some(counter) = known {
                out.set(*counter, value);
            }
        }
        Ok(out)
    }

    fn row(&self, row: Row) -> Result<RowSample, &'static str> {
        let (tgid, tid, uid, cgroup, born, comm, process, counters, latency) = row;
        let (comm, process) = (self.name(comm)?, self.name(process)?);
        let latency = latency.map(histograms).transpose()?.map(Box::new);
        let counters = self.counted(counters)?;
        let family = None;
        Ok(RowSample { tgid, tid, uid, cgroup, born, comm, process, family, counters, latency })
    }

    fn of_file(&self, row: OfFile) -> Result<FileSample, &'static str> {
        let (tgid, uid, cgroup, born, process, file, deleted, counters) = row;
        let file = self.files.get(file).cloned().ok_or("a row has a file that is not in the list")?;
        let (process, counters) = (self.name(process)?, self.counted(counters)?);
        Ok(FileSample { tgid, uid, cgroup, born, process, file, deleted, counters })
    }

    fn waiting(&self, at: u64, so_far: Counted) -> Result<Waiting, &'static str> {
        Ok(Waiting { at: Moment::from_nanos(at), so_far: self.counted(so_far)?.all(), storage: None })
    }

    fn followed(&self, f: WrittenFollowed) -> Result<Followed, &'static str> {
        let processes = f.processes.into_iter().map(|(pid, name)| Ok((pid, self.name(name)?)));
        Ok(Followed {
            run: f.run,
            counters: self.counted(f.counters)?.all(),
            histograms: histograms(f.histograms)?,
            files: f.files.into_iter().map(|f| self.of_file(f)).collect::<Result<_, _>>()?,
            parts: Vec::new(),
            processes: processes.collect::<Result<_, &'static str>>()?,
            threads: f.threads,
            waiting: f.waiting.map(|(at, so_far)| self.waiting(at, so_far)).transpose()?,
        })
    }

    fn sample(&self, w: Written<'_>) -> Result<Sample, &'static str> {
        let (rows, files) = (w.rows.into_iter(), w.of_files.into_iter());
        let threads = w.folded_rows.into_iter().map(|(by, row)| Ok(Folded { by, row: self.row(row)? }));
        let of_files = w.folded_files.into_iter().map(|(by, row)| Ok(Folded { by, row: self.of_file(row)? }));
        let folded = FoldedRows {
            threads: threads.collect::<Result<_, &'static str>>()?,
            files: of_files.collect::<Result<_, &'static str>>()?,
        };
        let (seconds, nanos) = w.time;
        Ok(Sample {
            at: Moment::from_nanos(w.at),
            time: jiff::Timestamp::new(seconds, nanos).map_err(|_| "a time that no clock shows")?,
            known: Arc::new(w.known.into_owned()),
            total: self.counted(w.total)?.all(),
            by_file: w.by_file.map(|line| self.counted(line)).transpose()?.map(|line| line.all()),
            rows: rows.map(|r| self.row(r)).collect::<Result<_, _>>()?,
            files: files.map(|f| self.of_file(f)).collect::<Result<_, _>>()?,
            folded,
            latency: w.latency.map(histograms).transpose()?.map(Box::new),
            lost: w.lost.into_owned(),
            memory: w.memory,
            classic: w.classic.map(Cow::into_owned),
            evictors: None,
            followed: w.followed.map(|f| self.followed(f)).transpose()?.map(Box::new),
        })
    }
}

fn histograms(buckets: Buckets) -> Result<Histograms, &'static str> {
    let mut out = Histograms::default();
    for (n, value) in buckets {
        *out.buckets().nth(n).ok_or("a histogram has a bucket that there is not")? = value;
    }
    Ok(out)
}

impl<'de> Deserialize<'de> for Sample {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut written = Written::deserialize(from)?;
        let known: HashMap<String, usize> = (0..COUNTERS).map(|c| (counter_name(c), c)).collect();
        let names = written.names.iter().map(|n| Some(Comm::from_bytes(&unescaped(n)?)));
        let reader = Reader {
            names: names.collect::<Option<_>>().ok_or_else(|| D::Error::custom("a name is not escaped"))?,
            counters: written.counters.iter().map(|c| known.get(c).copied()).collect(),
            files: std::mem::take(&mut written.files).into_iter().map(|f| Arc::new(f.into_owned())).collect(),
        };
        reader.sample(written).map_err(D::Error::custom)
    }
}

/// Bytes as text: a backslash is two, and a byte that is no UTF-8 is `\xff`.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out += &chunk.valid().replace('\\', "\\\\");
        for byte in chunk.invalid() {
            out += &format!("\\x{byte:02x}");
        }
    }
    out
}

/// The bytes again; `None` where a backslash begins nothing.
pub(crate) fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = match (first, tail) {
            (b'\\', [b'\\', after @ ..]) => {
                out.push(b'\\');
                after
            }
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digit = |d: u8| char::from(d).to_digit(16).and_then(|d| u8::try_from(d).ok());
                out.push(digit(*high)? * 16 + digit(*low)?);
                after
            }
            (b'\\', _) => return None,
            (byte, after) => {
                out.push(*byte);
                after
            }
        };
    }
    Some(out)
}

#[cfg(test)]
mod tests;
