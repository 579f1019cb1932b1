//! The last ten minutes, packed: each interval as it was, to be shown again in any kind of rows.
//!
//! A row takes some thirty bytes. Of an interval with very many rows the busiest are kept; what the others did is in the row
//! for the rest, which is whatever the rows leave of the line above them. Where there is no room for ten minutes, the
//! oldest go.

use std::collections::HashSet;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::blame::Bill;
use crate::blame::Counts;
use crate::blame::Evictor;
use crate::blame::Raw;
use crate::files::File;
use crate::live::machine::Pulse;
use crate::sample::Comm;
use crate::sample::Counters;
use crate::sample::Family;
use crate::sample::FileSample;
use crate::sample::FoldedRows;
use crate::sample::Known;
use crate::sample::Lost;
use crate::sample::Memory;
use crate::sample::Moment;
use crate::sample::RowSample;
use crate::sample::Sample;
use crate::sample::Sparse;

/// How far back it goes.
const AGE: Duration = Duration::from_secs(600);
/// Bytes that all of it takes at most.
const ROOM: usize = 2 << 20;
/// Rows of an interval, of threads and of files.
const ROWS: usize = 512;
/// Rows of evictors; what the others pushed out is kept by how they did.
const EVICTORS: usize = 128;
/// What one takes.
const EVICTOR: usize = size_of::<(Evictor, Counts)>() + 16;
/// What a file takes beside its name.
const FILE: usize = 120;

/// An interval.
struct Packed {
    number: u64,
    from: Moment,
    to: Moment,
    time: jiff::Timestamp,
    known: Arc<Known>,
    memory: Memory,
    lost: Lost,
    pulse: Option<Pulse>,
    data: Box<[u8]>,
    cut: (bool, bool),
    files: Box<[Arc<File>]>,
    evictors: Option<Arc<Raw>>,
    size: usize,
}

/// An interval, unpacked: two samples of which the first one has nothing.
pub struct Unpacked {
    /// Its number.
    pub number: u64,
    /// At its beginning.
    pub before: Sample,
    /// At its end.
    pub now: Sample,
    /// The machine in it.
    pub pulse: Option<Pulse>,
    /// Rows of threads, and rows of files, are missing that were less busy.
    pub cut: (bool, bool),
    /// Processes and threads, and whether they had ended by its end.
    pub gone: Vec<(u32, bool)>,
}

/// The last intervals.
#[derive(Default)]
pub struct Past {
    all: VecDeque<Packed>,
    size: usize,
}

impl Past {
    /// Keeps an interval. `gone` says whether a process or thread has ended.
    pub fn keep(
        &mut self,
        number: u64,
        (before, now): (&Sample, &Sample),
        pulse: Option<Pulse>,
        gone: &dyn Fn(u32) -> bool,
    ) {
        let mut to = Vec::new();
        put_counters(&mut to, &Sparse::from(&now.total.since(&before.total)));
        match (&before.by_file, &now.by_file) {
            (Some(before), Some(now)) => {
                to.push(1);
                put_counters(&mut to, &Sparse::from(&now.since(before)));
            }
            _ => to.push(0),
        }
        let rows = busiest(&now.rows, |r| &r.counters);
        put(&mut to, rows.len() as u64);
        for row in rows {
            put_row(&mut to, row, gone);
        }
        let rows = busiest(&now.files, |f| &f.counters);
        put(&mut to, rows.len() as u64);
        let mut files = Vec::with_capacity(rows.len());
        for row in rows {
            put_file(&mut to, row, gone);
            files.push(row.file.clone());
        }
        let known: HashSet<_> =
            self.all.back().map(|p| p.files.iter().map(Arc::as_ptr).collect()).unwrap_or_default();
        let new = files.iter().filter(|f| !known.contains(&Arc::as_ptr(f))).map(|f| f.name.len() + FILE);
        let both = before.evictors.as_deref().zip(now.evictors.as_deref());
        let evictors = both.map(|(had, has)| Bill::between(had, has).cut(EVICTORS));
        let of_evictors = evictors.as_ref().map_or(0, |raw| raw.rows.len() * EVICTOR);
        let size = size_of::<Packed>()
            + of_evictors
            + to.len()
            + files.len() * size_of::<Arc<File>>()
            + new.sum::<usize>();
        let mut lost = now.lost.since(&before.lost);
        lost.by_reason.retain(|(_, n)| *n > 0);
        self.size += size;
        self.all.push_back(Packed {
            number,
            from: before.at,
            to: now.at,
            time: now.time,
            known: now.known.clone(),
            memory: now.memory,
            lost,
            pulse,
            data: to.into(),
            cut: (now.rows.len() > ROWS, now.files.len() > ROWS),
            files: files.into(),
            evictors: evictors.map(Arc::new),
            size,
        });
        let old = |p: &Packed| now.at.since(p.to) > AGE;
        while self.all.len() > 2 && (self.size > ROOM || self.all.front().is_some_and(old)) {
            self.size -= self.all.pop_front().map_or(0, |p| p.size);
        }
    }

    /// The number of the first interval that is still there.
    #[must_use]
    pub fn oldest(&self) -> Option<u64> {
        self.all.front().map(|p| p.number)
    }

    /// The number of the last interval.
    #[must_use]
    pub fn latest(&self) -> Option<u64> {
        self.all.back().map(|p| p.number)
    }

    /// The interval with this number, or the one next to it.
    #[must_use]
    pub fn unpack(&self, number: u64) -> Option<Unpacked> {
        let at = self.all.partition_point(|p| p.number < number);
        let packed = self.all.get(at).or(self.all.back())?;
        let mut from = packed.data.iter();
        let mut now = Sample {
            at: packed.to,
            time: packed.time,
            known: packed.known.clone(),
            total: take_counters(&mut from).all(),
            by_file: (take(&mut from) == 1).then(|| take_counters(&mut from).all()),
            rows: Vec::new(),
            files: Vec::new(),
            folded: FoldedRows::default(),
            latency: None,
            lost: packed.lost.clone(),
            memory: packed.memory,
            classic: None,
            evictors: packed.evictors.clone(),
            followed: None,
        };
        let mut gone = Vec::new();
        for _ in 0..take(&mut from) {
            now.rows.push(take_row(&mut from, &mut gone));
        }
        let number = take(&mut from);
        for (_, file) in (0..number).zip(packed.files.iter()) {
            now.files.push(take_file(&mut from, file.clone(), &mut gone));
        }
        let before = Sample {
            at: packed.from,
            total: Counters::default(),
            by_file: now.by_file.map(|_| Counters::default()),
            rows: Vec::new(),
            files: Vec::new(),
            lost: Lost::default(),
            evictors: now.evictors.as_ref().map(|_| Arc::default()),
            ..now.clone()
        };
        let Packed { number, pulse, cut, .. } = *packed;
        Some(Unpacked { number, before, now, pulse, cut, gone })
    }
}

/// The busiest rows, in the order that they had.
fn busiest<R>(rows: &[R], counters: impl Fn(&R) -> &Sparse) -> Vec<&R> {
    let weight = |r: &&R| counters(r).iter().fold(0_u64, |sum, (_, n)| sum.saturating_add(n));
    let mut all: Vec<_> = rows.iter().enumerate().collect();
    if all.len() > ROWS {
        all.sort_by_cached_key(|(_, r)| std::cmp::Reverse(weight(r)));
        all.truncate(ROWS);
        all.sort_unstable_by_key(|(i, _)| *i);
    }
    all.into_iter().map(|(_, r)| r).collect()
}

/// Seven bits a byte, the lowest first.
fn put(to: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        to.push(n.to_le_bytes()[0] | 0x80);
        n >>= 7;
    }
    to.push(n.to_le_bytes()[0]);
}

type Bytes<'a> = std::slice::Iter<'a, u8>;

fn take(from: &mut Bytes<'_>) -> u64 {
    let (mut out, mut shift) = (0, 0);
    for byte in from {
        out |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 || shift > 63 {
            break;
        }
    }
    out
}

fn take_u32(from: &mut Bytes<'_>) -> u32 {
    u32::try_from(take(from)).unwrap_or(u32::MAX)
}

fn put_counters(to: &mut Vec<u8>, counters: &Sparse) {
    put(to, counters.iter().count() as u64);
    for (counter, n) in counters.iter() {
        put(to, counter as u64);
        put(to, n);
    }
}

fn take_counters(from: &mut Bytes<'_>) -> Sparse {
    let mut out = Sparse::default();
    for _ in 0..take(from) {
        let counter = usize::try_from(take(from)).unwrap_or(0);
        out.set(counter, take(from));
    }
    out
}

fn put_name(to: &mut Vec<u8>, name: Comm) {
    put(to, name.as_bytes().len() as u64);
    to.extend_from_slice(name.as_bytes());
}

fn take_name(from: &mut Bytes<'_>) -> Comm {
    let length = usize::try_from(take(from)).unwrap_or(0);
    let bytes: Vec<u8> = from.by_ref().take(length).copied().collect();
    Comm::from_bytes(&bytes)
}

fn put_row(to: &mut Vec<u8>, row: &RowSample, gone: &dyn Fn(u32) -> bool) {
    let named = row.comm != row.process;
    let flags = u64::from(gone(row.tgid)) | u64::from(gone(row.tid)) << 1 | u64::from(named) << 2;
    // Only the ended are asked for it.
    let family = row.family.filter(|_| gone(row.tgid));
    let flags = flags | u64::from(family.is_some()) << 3;
    let flags = flags | u64::from(family.is_some_and(|f| gone(f.parent))) << 4;
    put(to, flags);
    for n in [row.tgid, row.tid, row.uid] {
        put(to, n.into());
    }
    put(to, row.cgroup);
    put(to, row.born);
    put_name(to, row.process);
    if named {
        put_name(to, row.comm);
    }
    if let Some(family) = family {
        // Differences are short.
        put(to, row.born.wrapping_sub(family.begun));
        put(to, family.begun.wrapping_sub(family.parent_begun));
        put(to, family.parent.into());
        put_name(to, family.parent_name);
    }
    put_counters(to, &row.counters);
}

fn take_row(from: &mut Bytes<'_>, gone: &mut Vec<(u32, bool)>) -> RowSample {
    let flags = take(from);
    let [tgid, tid, uid] = [(); 3].map(|()| take_u32(from));
    let (cgroup, born, process) = (take(from), take(from), take_name(from));
    let comm = if flags & 4 == 0 { process } else { take_name(from) };
    gone.extend([(tid, flags & 2 != 0), (tgid, flags & 1 != 0)]);
    let family = (flags & 8 != 0).then(|| {
        let begun = born.wrapping_sub(take(from));
        let parent_begun = begun.wrapping_sub(take(from));
        let (parent, parent_name) = (take_u32(from), take_name(from));
        gone.push((parent, flags & 16 != 0));
        Family { begun, parent, parent_begun, parent_name }
    });
    let counters = take_counters(from);
    RowSample { tgid, tid, uid, cgroup, born, comm, process, family, counters, latency: None }
}

fn put_file(to: &mut Vec<u8>, row: &FileSample, gone: &dyn Fn(u32) -> bool) {
    put(to, u64::from(gone(row.tgid)) | u64::from(row.deleted) << 1);
    put(to, row.tgid.into());
    put(to, row.uid.into());
    put(to, row.cgroup);
    put(to, row.born);
    put_name(to, row.process);
    put_counters(to, &row.counters);
}

fn take_file(from: &mut Bytes<'_>, file: Arc<File>, gone: &mut Vec<(u32, bool)>) -> FileSample {
    let flags = take(from);
    let (tgid, uid, cgroup, born) = (take_u32(from), take_u32(from), take(from), take(from));
    gone.push((tgid, flags & 1 != 0));
    let (process, deleted) = (take_name(from), flags & 2 != 0);
    FileSample { tgid, uid, cgroup, born, process, file, deleted, counters: take_counters(from) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::sample::machine;
    use crate::sample::machine::Machine;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_was_packed_comes_back(ticks in machine::ticks()) {
            let (mut machine, mut past) = (Machine::new(), Past::default());
            let mut samples = vec![machine.read(&[])];
            for (number, (events, dead)) in ticks.iter().enumerate() {
                let now = machine.read(events);
                let gone = |pid: u32| dead & 1 << (pid % 16) != 0;
                past.keep(number as u64, (samples.last().unwrap(), &now), None, &gone);
                samples.push(now);
            }
            for (number, (_, dead)) in ticks.iter().enumerate() {
                let there = past.unpack(number as u64).unwrap();
                let (before, now) = (&samples[number], &samples[number + 1]);
                prop_assert_eq!(there.number, number as u64);
                prop_assert_eq!(&there.now.rows, &now.rows);
                prop_assert_eq!(&there.now.files, &now.files);
                prop_assert_eq!(there.now.total.since(&there.before.total), now.total.since(&before.total));
                prop_assert_eq!(there.now.by_file.unwrap(), now.by_file.unwrap().since(&before.by_file.unwrap()));
                prop_assert_eq!((there.now.at, there.now.time), (now.at, now.time));
                prop_assert!(there.gone.iter().all(|(pid, gone)| (dead & 1 << (pid % 16) != 0) == *gone));
            }
        }
    }

    #[test]
    fn it_takes_no_more_room_for_more_processes() {
        use crate::view::fixtures;
        let mut past = Past::default();
        let start = Moment::now();
        let sample = |k: u32| {
            let mut out = fixtures::sample(start, Duration::from_secs(k.into()), &[]);
            let row = |i: u32| {
                fixtures::process(k * 1000 + i, "sh", &[(crate::sample::Counter::ReadHits, i.into())])
            };
            out.rows = (0..1000).map(row).collect();
            out
        };
        for k in 1..1000 {
            past.keep(k.into(), (&sample(k - 1), &sample(k)), None, &|_| true);
        }
        let bytes: usize = past.all.iter().map(|p| p.data.len() + size_of::<Packed>()).sum();
        assert!(bytes <= ROOM && past.size <= ROOM, "{bytes}");
        assert!(past.all.len() > 100, "{} intervals of the storm", past.all.len());
        let last = past.unpack(u64::MAX).unwrap();
        assert_eq!((last.number, last.now.rows.len()), (999, ROWS));
        assert!(last.now.rows.iter().all(|r| r.tgid >= 999_000 + 488), "the busiest");
        // Fewer processes: ten minutes, and no more.
        let mut past = Past::default();
        for k in 1..1000 {
            let some = |k| Sample { rows: sample(k).rows.split_off(970), ..sample(k) };
            past.keep(k.into(), (&some(k - 1), &some(k)), None, &|_| true);
        }
        assert_eq!((past.oldest(), past.all.len()), (Some(399), 601));
    }
}
