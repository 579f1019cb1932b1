//! Waiting that has not ended yet: a thread adds to its counters when it has its processor back, and not before. Without
//! this, all of a long wait would belong to the moment of its end.

use super::Rows;
use crate::sample::Counter;
use crate::sample::Counters;
use crate::sample::Moment;
use crate::sample::Waiting;
use crate::wire::ROW_LIVE;

/// What threads wait for, by its counter.
const WAITS: [Counter; 10] = [
    Counter::WaitRead,
    Counter::WaitFault,
    Counter::WaitExec,
    Counter::WaitOpen,
    Counter::WaitLookup,
    Counter::WaitDirectory,
    Counter::WaitWrite,
    Counter::WaitSync,
    Counter::WaitOther,
    Counter::WaitCpu,
];
/// A thread that wakes and waits again just while we look is looked at so often.
const TRIES: usize = 4;

/// What a thread has waited since its counters were read: ended in the meantime, and so far.
fn of_thread(
    now: u64,
    off: impl Fn() -> (u64, u64),
    value: impl Fn(Counter) -> u64,
    read: impl Fn(Counter) -> u64,
    out: &mut Counters,
) {
    for _ in 0..TRIES {
        let (at, why) = off();
        let ended = WAITS.map(|c| value(c).saturating_sub(read(c)));
        if off() != (at, why) {
            continue;
        }
        for (counter, ns) in WAITS.into_iter().zip(ended) {
            out.0[counter as usize] += ns;
        }
        let why = usize::try_from(why).unwrap_or(usize::MAX);
        if at != 0 && WAITS.iter().any(|c| *c as usize == why) {
            out.0[why] += now.saturating_sub(at);
        }
        return;
    }
}

impl Rows {
    /// Waiting of a run's threads that is not in what [`Rows::read`] has just handed out.
    pub(in crate::kernel) fn waiting(&self, run: u32) -> Waiting {
        let (at, mut so_far) = (Moment::now(), Counters::default());
        for n in 0..self.before.len() {
            let row = self.row(n);
            macro_rules! read {
                ($($field:tt)+) => {
                    // SAFETY: the row is mapped; the kernel writes whole words.
                    unsafe { (&raw const (*row).$($field)+).read_volatile() }
                };
            }
            if read!(run) != run || read!(state) != ROW_LIVE {
                continue;
            }
            let before = |c: Counter| self.before.get(n).map_or(0, |b| b.at(c as usize));
            let off = || (read!(off_at), read!(off_why));
            of_thread(at.nanos(), off, |c| read!(v[c as usize]), before, &mut so_far);
        }
        Waiting { at, so_far }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const READ: u64 = Counter::WaitRead as u64;

    #[test]
    fn what_ended_since_and_what_lasts_are_added() {
        let mut out = Counters::default();
        let value = |c| if c == Counter::WaitSync { 30 } else { 5 };
        of_thread(1000, || (400, READ), value, |_| 5, &mut out);
        assert_eq!((out.get(Counter::WaitRead), out.get(Counter::WaitSync)), (600, 25));
        // It runs.
        let mut out = Counters::default();
        of_thread(1000, || (0, READ), |_| 5, |_| 5, &mut out);
        assert!(out.is_zero());
        // It went to sleep after the moment that counts.
        of_thread(1000, || (1001, READ), |_| 5, |_| 5, &mut out);
        assert!(out.is_zero());
    }

    #[test]
    fn a_thread_that_wakes_meanwhile_counts_once() {
        let (looks, mut out) = (Cell::new(0), Counters::default());
        let off = || {
            looks.set(looks.get() + 1);
            if looks.get() == 1 { (400, READ) } else { (0, READ) }
        };
        let value = |c| if c == Counter::WaitRead { 550 } else { 0 };
        of_thread(1000, off, value, |_| 0, &mut out);
        assert_eq!(out.get(Counter::WaitRead), 550, "what its counter says, and nothing besides");
    }
}
