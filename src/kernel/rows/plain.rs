//! Reads and writes that have no hook at their end (`bpf/plain.h`): their thread counts each at its next one, and the last one
//! has been looked at before the tick. And reads that a thread counts beside its counters (`bpf/quick.h`), on other kernels.

use std::sync::atomic::Ordering;
use std::sync::atomic::fence;

use crate::kernel::skel::types;
use crate::sample::Counter;
use crate::wire::FILE_COUNTERS;
use crate::wire::GROUP_ENDS;
use crate::wire::ROW_ENDED;

/// Counters of the first group: most of what reads change.
const FIRST: usize = GROUP_ENDS[1];
/// What reads change beside the first group, and what writes change.
const OF_READS: [Counter; 2] = [Counter::ReadMissedCalls, Counter::Inflight];
const OF_WRITES: [Counter; 3] = [Counter::WriteBytes, Counter::WriteHits, Counter::WriteMisses];
/// A thread that counts just while we look is looked at so often.
const TRIES: usize = 8;

/// Counters of a row, with what its thread's last request has delivered.
#[derive(Debug)]
pub(super) struct Reading {
    first: [u64; FIRST],
    /// Of those behind it, what the request has changed.
    others: [Option<(Counter, u64)>; 3],
    /// The request, where it is in the counters above and not in the row's.
    pub(super) looked: Option<Looked>,
}

/// What the last request of a thread has delivered, which nobody has counted: neither for the thread nor for the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kernel) struct Looked {
    /// It waits to be counted while the row's mark is this one.
    mark: u64,
    /// The row of its file, where files are asked for, and how often that had been made.
    pub(in crate::kernel) file: u32,
    pub(in crate::kernel) made: u32,
    writes: bool,
    bytes: u64,
    hits: u64,
    ahead: u64,
    missed: u64,
}

/// Whether a request has been counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kernel) enum State {
    Waits,
    /// Its thread is at it.
    UnderWay,
    Counted,
}

impl Looked {
    /// # Safety
    /// `row` is mapped.
    pub(super) unsafe fn state(&self, row: *const types::row) -> State {
        fence(Ordering::SeqCst);
        // SAFETY: the row is mapped; the kernel writes whole words.
        match unsafe { (&raw const (*row).plain_mark).read_volatile() } {
            mark if mark == self.mark => State::Waits,
            mark if mark % 2 != 0 => State::UnderWay,
            _ => State::Counted,
        }
    }

    /// Adds it to what is counted of its file.
    pub(in crate::kernel) fn add_to(&self, counters: &mut [u64; FILE_COUNTERS.len()]) {
        let of_reads = [
            (Counter::ReadBytes, self.bytes),
            (Counter::ReadHits, self.hits),
            (Counter::ReadAheadHits, self.ahead),
            (Counter::ReadMisses, self.missed),
        ];
        let of_writes = [(Counter::WriteHits, self.hits), (Counter::WriteMisses, self.missed)];
        for (counter, n) in if self.writes { &of_writes[..] } else { &of_reads[..] } {
            if let Some(at) = FILE_COUNTERS.iter().position(|c| c == counter) {
                counters[at] = counters[at].wrapping_add(*n);
            }
        }
    }
}

impl Reading {
    /// Counter number `i`, if it is one of these.
    pub(super) fn get(&self, i: usize) -> Option<u64> {
        let other =
            || self.others.iter().flatten().find(|(counter, _)| *counter as usize == i).map(|(_, n)| *n);
        self.first.get(i).copied().or_else(other)
    }

    /// Whether there are counters behind the first group.
    pub(super) fn others(&self) -> bool {
        self.others[0].is_some()
    }
}

/// `None` where the thread was counting each time that we looked, and where its row has ended with a fault that the kernel
/// programs count at the next tick (`bpf/plainfault.h`).
///
/// # Safety
/// `row` is mapped.
pub(super) unsafe fn read(row: *const types::row) -> Option<Reading> {
    macro_rules! read {
        ($($field:tt)+) => {
            // SAFETY: the row is mapped; the kernel writes whole words.
            unsafe { (&raw const (*row).$($field)+).read_volatile() }
        };
    }
    if read!(state) == ROW_ENDED && read!(plain_fault) != 0 {
        return None;
    }
    for _ in 0..TRIES {
        let mark = read!(plain_mark);
        fence(Ordering::SeqCst);
        let mut out =
            Reading { first: std::array::from_fn(|i| read!(v[i])), others: [None; 3], looked: None };
        let looked = read!(beside.looked.mark);
        let (writes, bytes) = (read!(beside.looked.writes) != 0, read!(beside.looked.bytes));
        let (hits, missed, inflight) =
            (read!(beside.looked.hits), read!(beside.looked.missed), read!(beside.looked.inflight));
        let [missed, inflight, ahead] = [missed, inflight, read!(beside.looked.ahead)].map(u64::from);
        let (file, made) = (read!(plain_file), read!(plain_file_made));
        let own = (read!(beside.own.calls), read!(beside.own.bytes), read!(beside.own.hits));
        let of_reads = OF_READS.map(|counter| read!(v[counter as usize]));
        let of_writes = OF_WRITES.map(|counter| read!(v[counter as usize]));
        fence(Ordering::SeqCst);
        if mark % 2 != 0 || read!(plain_mark) != mark {
            std::hint::spin_loop();
            continue;
        }
        // There was no such request: what stands there instead is what the thread has counted by itself.
        if mark == 0 {
            out.first[Counter::ReadCalls as usize] += own.0;
            out.first[Counter::ReadBytes as usize] += own.1;
            out.first[Counter::ReadHits as usize] += own.2;
            return Some(out);
        }
        if looked != mark {
            return Some(out);
        }
        out.looked = Some(Looked { mark, file, made, writes, bytes, hits, ahead, missed });
        let mut other = |at: usize, counter, n| out.others[at] = Some((counter, n));
        if writes {
            for (at, more) in [bytes, hits, missed].into_iter().enumerate() {
                other(at, OF_WRITES[at], of_writes[at] + more);
            }
            return Some(out);
        }
        if missed + inflight != 0 {
            for (at, more) in [u64::from(missed != 0), inflight].into_iter().enumerate() {
                other(at, OF_READS[at], of_reads[at] + more);
            }
        }
        out.first[Counter::ReadCalls as usize] += 1;
        out.first[Counter::ReadBytes as usize] += bytes;
        out.first[Counter::ReadHits as usize] += hits;
        out.first[Counter::ReadAheadHits as usize] += ahead;
        out.first[Counter::ReadMisses as usize] += missed;
        out.first[Counter::MissFills as usize] += missed;
        return Some(out);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> types::row {
        // SAFETY: a row of zeros is one.
        let mut row: types::row = unsafe { std::mem::zeroed() };
        row.v[Counter::ReadHits as usize] = 5;
        row.beside.looked.bytes = 100;
        row.beside.looked.hits = 2;
        row
    }

    fn hits(row: &types::row) -> Option<(u64, u64, u64)> {
        // SAFETY: it is there.
        let reading = unsafe { read(row) }?;
        let at = |c: Counter| reading.get(c as usize).unwrap_or_default();
        Some((at(Counter::ReadHits), at(Counter::ReadCalls), at(Counter::ReadBytes)))
    }

    #[test]
    fn what_was_looked_at_is_added_while_nobody_has_counted_it() {
        let mut row = row();
        (row.plain_mark, row.beside.looked.mark) = (4, 4);
        assert_eq!(hits(&row), Some((7, 1, 100)));
        row.plain_mark = 6;
        assert_eq!(hits(&row), Some((5, 0, 0)), "its thread has counted it, and begun another");
    }

    #[test]
    fn what_a_thread_counted_by_itself_is_added_where_there_are_no_such_requests() {
        let mut row = types::row { beside: types::row_beside::default(), ..row() };
        assert_eq!(hits(&row), Some((5, 0, 0)), "nothing has been read yet");
        row.beside.own = types::row_own { calls: 3, bytes: 9000, hits: 4, idle: 1, ..Default::default() };
        assert_eq!(hits(&row), Some((9, 3, 9000)));
    }

    #[test]
    fn a_row_that_changes_is_left_alone() {
        let mut row = row();
        (row.plain_mark, row.beside.looked.mark) = (5, 4);
        assert_eq!(hits(&row), None);
    }

    #[test]
    fn a_row_that_ended_with_a_fault_waits_until_that_is_counted() {
        let mut row = types::row { beside: types::row_beside::default(), ..row() };
        (row.state, row.plain_fault) = (crate::wire::ROW_LIVE, 5);
        assert_eq!(hits(&row), Some((5, 0, 0)), "its thread will count it");
        row.state = ROW_ENDED;
        assert_eq!(hits(&row), None);
        row.plain_fault = 0;
        assert_eq!(hits(&row), Some((5, 0, 0)));
    }

    #[test]
    fn a_look_at_a_read_that_missed_is_in_counters_of_other_groups_too() {
        let mut row = row();
        row.v[Counter::ReadMissedCalls as usize] = 3;
        (row.plain_mark, row.beside.looked.mark) = (4, 4);
        (row.beside.looked.missed, row.beside.looked.inflight) = (2, 1);
        let at = |row: &types::row, c: Counter| {
            // SAFETY: it is there.
            unsafe { read(row) }.and_then(|reading| reading.get(c as usize))
        };
        assert_eq!(at(&row, Counter::ReadMisses), Some(2));
        assert_eq!(at(&row, Counter::ReadMissedCalls), Some(4));
        assert_eq!(at(&row, Counter::Inflight), Some(1));
        row.plain_mark = 6;
        assert_eq!(at(&row, Counter::ReadMissedCalls), None, "as it stands in the row");
    }

    #[test]
    fn a_look_is_its_files_until_the_thread_has_counted_it() {
        let mut row = row();
        (row.plain_mark, row.beside.looked.mark, row.beside.looked.missed) = (4, 4, 1);
        (row.plain_file, row.plain_file_made) = (3, 9);
        // SAFETY: it is there.
        let Some(looked) = unsafe { read(&raw const row) }.and_then(|reading| reading.looked) else {
            panic!("it waits");
        };
        assert_eq!((looked.file, looked.made), (3, 9));
        let mut counters = [7; FILE_COUNTERS.len()];
        looked.add_to(&mut counters);
        let at = |c: Counter| FILE_COUNTERS.iter().position(|other| *other == c).map(|i| counters[i]);
        assert_eq!(
            [Counter::ReadBytes, Counter::ReadHits, Counter::ReadMisses, Counter::WriteHits].map(at),
            [Some(107), Some(9), Some(8), Some(7)]
        );
        for (mark, state) in [(4, State::Waits), (5, State::UnderWay), (6, State::Counted)] {
            row.plain_mark = mark;
            // SAFETY: it is there.
            assert_eq!(unsafe { looked.state(&raw const row) }, state);
        }
        let looked = Looked { writes: true, ..looked };
        let mut counters = [0; FILE_COUNTERS.len()];
        looked.add_to(&mut counters);
        assert_eq!(counters.iter().sum::<u64>(), 3, "bytes of writes are not counted by file");
    }

    #[test]
    fn a_look_at_a_read_of_what_was_read_ahead() {
        let mut row = row();
        (row.plain_mark, row.beside.looked.mark) = (4, 4);
        (row.beside.looked.hits, row.beside.looked.ahead) = (0, 3);
        // SAFETY: it is there.
        let Some(reading) = (unsafe { read(&raw const row) }) else { panic!("it waits") };
        assert_eq!(reading.get(Counter::ReadAheadHits as usize), Some(3));
        assert_eq!(reading.get(Counter::ReadHits as usize), Some(5));
        let mut counters = [0; FILE_COUNTERS.len()];
        reading.looked.iter().for_each(|looked| looked.add_to(&mut counters));
        let at = |c: Counter| FILE_COUNTERS.iter().position(|other| *other == c).map(|i| counters[i]);
        assert_eq!(
            [Counter::ReadBytes, Counter::ReadHits, Counter::ReadAheadHits].map(at),
            [100, 0, 3].map(Some)
        );
    }

    #[test]
    fn a_look_at_a_write() {
        let mut row = row();
        row.v[Counter::WriteHits as usize] = 3;
        (row.plain_mark, row.beside.looked.mark, row.beside.looked.writes) = (4, 4, 1);
        let at = |row: &types::row, c: Counter| {
            // SAFETY: it is there.
            unsafe { read(row) }.and_then(|reading| reading.get(c as usize))
        };
        assert_eq!(at(&row, Counter::WriteHits), Some(5));
        assert_eq!(at(&row, Counter::WriteBytes), Some(100));
        assert_eq!(at(&row, Counter::ReadHits), Some(5), "it is no read");
        row.plain_mark = 6;
        assert_eq!(at(&row, Counter::WriteHits), None, "as it stands in the row");
    }
}
