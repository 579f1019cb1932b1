//! Reads that have no hook at their end (`bpf/plain.h`): their thread counts each at its next one, and the last one has been
//! looked at before the tick.

use std::sync::atomic::Ordering;
use std::sync::atomic::fence;

use super::types;
use crate::sample::Counter;
use crate::wire::GROUP_ENDS;

/// Counters that reads change.
const READS: usize = GROUP_ENDS[1];
/// A thread that counts a read just while we look is looked at so often.
const TRIES: usize = 8;

/// Counters of a row, with what its thread's last read has delivered.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// Those of the first group.
    first: [u64; READS],
    /// Of those behind it what the read has changed: `Inflight`, `ReadMissedCalls`.
    others: Option<[(Counter, u64); 2]>,
}

impl Reads {
    /// Counter number `i`, if it is one of these.
    pub(super) fn get(&self, i: usize) -> Option<u64> {
        let other =
            || self.others.iter().flatten().find(|(counter, _)| *counter as usize == i).map(|(_, n)| *n);
        self.first.get(i).copied().or_else(other)
    }

    /// Whether there are counters behind the first group.
    pub(super) fn others(&self) -> bool {
        self.others.is_some()
    }
}

/// `None` where the thread was counting each time that we looked.
///
/// # Safety
/// `row` is mapped.
pub(super) unsafe fn reads(row: *const types::row) -> Option<Reads> {
    macro_rules! read {
        ($($field:tt)+) => {
            // SAFETY: the row is mapped; the kernel writes whole words.
            unsafe { (&raw const (*row).$($field)+).read_volatile() }
        };
    }
    for _ in 0..TRIES {
        let mark = read!(plain_mark);
        fence(Ordering::SeqCst);
        let mut out = Reads { first: std::array::from_fn(|i| read!(v[i])), others: None };
        let looked = read!(looked_mark);
        let (bytes, hits, missed) = (read!(looked_bytes), read!(looked_hits), read!(looked_missed));
        let inflight = read!(looked_inflight);
        let missed_calls = read!(v[Counter::ReadMissedCalls as usize]);
        let waited_for = read!(v[Counter::Inflight as usize]);
        fence(Ordering::SeqCst);
        if mark % 2 != 0 || read!(plain_mark) != mark {
            std::hint::spin_loop();
            continue;
        }
        // 0: nobody has looked yet. A read that waits has another number.
        if looked == mark && mark != 0 {
            out.first[Counter::ReadCalls as usize] += 1;
            out.first[Counter::ReadBytes as usize] += bytes;
            out.first[Counter::ReadHits as usize] += hits;
            out.first[Counter::ReadMisses as usize] += missed;
            out.first[Counter::MissFills as usize] += missed;
            out.others = (missed + inflight != 0).then_some([
                (Counter::ReadMissedCalls, missed_calls + u64::from(missed != 0)),
                (Counter::Inflight, waited_for + inflight),
            ]);
        }
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
        row.looked_bytes = 100;
        row.looked_hits = 2;
        row
    }

    fn hits(row: &types::row) -> Option<(u64, u64, u64)> {
        // SAFETY: it is there.
        let reads = unsafe { reads(row) }?;
        let at = |c: Counter| reads.get(c as usize).unwrap_or_default();
        Some((at(Counter::ReadHits), at(Counter::ReadCalls), at(Counter::ReadBytes)))
    }

    #[test]
    fn what_was_looked_at_is_added_while_nobody_has_counted_it() {
        let mut row = row();
        assert_eq!(hits(&row), Some((5, 0, 0)), "no read has been seen yet");
        (row.plain_mark, row.looked_mark) = (4, 4);
        assert_eq!(hits(&row), Some((7, 1, 100)));
        row.plain_mark = 6;
        assert_eq!(hits(&row), Some((5, 0, 0)), "its thread has counted it, and begun another");
    }

    #[test]
    fn a_row_that_changes_is_left_alone() {
        let mut row = row();
        (row.plain_mark, row.looked_mark) = (5, 4);
        assert_eq!(hits(&row), None);
    }

    #[test]
    fn a_look_at_a_read_that_missed_is_in_counters_of_other_groups_too() {
        let mut row = row();
        row.v[Counter::ReadMissedCalls as usize] = 3;
        (row.plain_mark, row.looked_mark) = (4, 4);
        (row.looked_missed, row.looked_inflight) = (2, 1);
        let at = |row: &types::row, c: Counter| {
            // SAFETY: it is there.
            unsafe { reads(row) }.and_then(|reads| reads.get(c as usize))
        };
        assert_eq!(at(&row, Counter::ReadMisses), Some(2));
        assert_eq!(at(&row, Counter::ReadMissedCalls), Some(4));
        assert_eq!(at(&row, Counter::Inflight), Some(1));
        row.plain_mark = 6;
        assert_eq!(at(&row, Counter::ReadMissedCalls), None, "as it stands in the row");
    }
}
