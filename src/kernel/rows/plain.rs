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

/// The counters of the first group, with what the last read has delivered; `None` where the thread was counting each time
/// that we looked.
///
/// # Safety
/// `row` is mapped.
pub(super) unsafe fn reads(row: *const types::row) -> Option<[u64; READS]> {
    macro_rules! read {
        ($($field:tt)+) => {
            // SAFETY: the row is mapped; the kernel writes whole words.
            unsafe { (&raw const (*row).$($field)+).read_volatile() }
        };
    }
    for _ in 0..TRIES {
        let mark = read!(plain_mark);
        fence(Ordering::SeqCst);
        let mut v: [u64; READS] = std::array::from_fn(|i| read!(v[i]));
        let looked = (read!(looked_mark), read!(looked_bytes), read!(looked_pages));
        fence(Ordering::SeqCst);
        if mark % 2 != 0 || read!(plain_mark) != mark {
            std::hint::spin_loop();
            continue;
        }
        // 0: nobody has looked yet. A read that waits has another number.
        if looked.0 == mark && mark != 0 {
            v[Counter::ReadCalls as usize] += 1;
            v[Counter::ReadBytes as usize] += looked.1;
            v[Counter::ReadHits as usize] += looked.2;
        }
        return Some(v);
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
        row.looked_pages = 2;
        row
    }

    fn hits(row: &types::row) -> Option<(u64, u64, u64)> {
        // SAFETY: it is there.
        let v = unsafe { reads(row) }?;
        let at = |c: Counter| v[c as usize];
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
}
