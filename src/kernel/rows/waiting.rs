//! Waiting that has not ended yet: a thread adds to its counters when it has its processor back, and not before. Without
//! this, all of a long wait would belong to the moment of its end.

use super::Rows;
use crate::sample::Counter;
use crate::sample::Moment;
use crate::sample::Unended;
use crate::sample::Waiting;
use crate::wire::OFF_WHY;
use crate::wire::ROW_LIVE;

/// What threads wait for, by its counter.
const WAITS: [Counter; 15] = [
    Counter::WaitRead,
    Counter::WaitFault,
    Counter::WaitExec,
    Counter::WaitOpen,
    Counter::WaitLookup,
    Counter::WaitDirectory,
    Counter::WaitWrite,
    Counter::WaitSync,
    Counter::WaitOther,
    Counter::WaitPeer,
    Counter::WaitTimer,
    Counter::WaitLock,
    Counter::WaitChild,
    Counter::WaitCompletion,
    Counter::WaitCpu,
];
/// The first of these: waits for storage.
const STORAGE: usize = 8;
/// A thread that wakes and waits again just while we look is looked at so often.
const TRIES: usize = 4;

/// What a thread has waited since its counters were read: ended in the meantime, and so far.
fn of_thread(
    now: u64,
    off: impl Fn() -> (u64, u64),
    value: impl Fn(Counter) -> u64,
    read: impl Fn(Counter) -> u64,
    out: &mut Waiting,
) {
    for _ in 0..TRIES {
        let (at, why) = off();
        let ended = WAITS.map(|c| value(c).saturating_sub(read(c)));
        if off() != (at, why) {
            continue;
        }
        for (counter, ns) in WAITS.into_iter().zip(ended) {
            out.so_far.0[counter as usize] += ns;
        }
        let Some(n) = WAITS.iter().position(|c| at != 0 && *c as u64 == why) else { return };
        let ns = now.saturating_sub(at);
        out.so_far.0[WAITS[n] as usize] += ns;
        if n < STORAGE {
            out.storage.get_or_insert(Unended { threads: 0, why: WAITS[n], ns }).note(WAITS[n], ns);
        }
        return;
    }
}

impl Rows {
    /// Waiting of a run's threads that is not in what [`Rows::read`] has just handed out.
    pub(in crate::kernel) fn waiting(&self, run: u32) -> Waiting {
        let mut waiting = Waiting { at: Moment::now(), ..Waiting::default() };
        for (_, row, before) in self.table.rows() {
            macro_rules! read {
                ($($field:tt)+) => {
                    // SAFETY: the row is mapped; the kernel writes whole words.
                    unsafe { (&raw const (*row).$($field)+).read_volatile() }
                };
            }
            if read!(run) != run || read!(state) != ROW_LIVE {
                continue;
            }
            let before = |c: Counter| before.at(c as usize);
            let off = || (read!(off_at), u64::from(read!(off_why)) & OFF_WHY as u64);
            of_thread(waiting.at.nanos(), off, |c| read!(v[c as usize]), before, &mut waiting);
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const READ: u64 = Counter::WaitRead as u64;

    #[test]
    fn what_ended_since_and_what_lasts_are_added() {
        let mut out = Waiting::default();
        let value = |c| if c == Counter::WaitSync { 30 } else { 5 };
        of_thread(1000, || (400, READ), value, |_| 5, &mut out);
        assert_eq!((out.so_far.get(Counter::WaitRead), out.so_far.get(Counter::WaitSync)), (600, 25));
        // Another has waited for less, a third for a timer: that is no storage.
        of_thread(1000, || (900, Counter::WaitFault as u64), |_| 5, |_| 5, &mut out);
        of_thread(1000, || (100, Counter::WaitTimer as u64), |_| 5, |_| 5, &mut out);
        assert_eq!(out.storage, Some(Unended { threads: 2, why: Counter::WaitRead, ns: 600 }));
        assert_eq!(out.so_far.get(Counter::WaitTimer), 900);
        // It runs.
        let mut out = Waiting::default();
        of_thread(1000, || (0, READ), |_| 5, |_| 5, &mut out);
        assert!(out.so_far.is_zero() && out.storage.is_none());
        // It went to sleep after the moment that counts.
        of_thread(1000, || (1001, READ), |_| 5, |_| 5, &mut out);
        assert!(out.so_far.is_zero());
    }

    #[test]
    fn a_thread_that_wakes_meanwhile_counts_once() {
        let (looks, mut out) = (Cell::new(0), Waiting::default());
        let off = || {
            looks.set(looks.get() + 1);
            if looks.get() == 1 { (400, READ) } else { (0, READ) }
        };
        let value = |c| if c == Counter::WaitRead { 550 } else { 0 };
        of_thread(1000, off, value, |_| 0, &mut out);
        assert_eq!(out.so_far.get(Counter::WaitRead), 550, "what its counter says, and nothing besides");
    }
}
