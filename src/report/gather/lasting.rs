//! What threads that go on were waiting for when the last sample was taken. The kernel programs add a wait when it is over: of this
//! run nobody would count it any more, and another reason would be told for the time.

use crate::sample::Counters;
use crate::sample::Followed;
use crate::sample::Unended;

/// All waits of a run up to its end, and those for storage that had not ended. `goes_on`: whether some of it is still there.
/// Of what has ended, all is counted. A wait that began before the run was followed has no beginning, and is not counted.
pub(super) fn waits(followed: &Followed, goes_on: bool) -> (Counters, Option<Unended>) {
    let waiting = followed.waiting.filter(|_| goes_on).unwrap_or_default();
    let mut all = followed.counters;
    all.add(&waiting.so_far);
    (all, waiting.storage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Counter;
    use crate::sample::Waiting;

    #[test]
    fn what_lasts_is_counted_of_those_who_go_on() {
        let read = |n| {
            let mut c = Counters::default();
            c.0[Counter::WaitRead as usize] = n;
            c
        };
        let mut followed = Followed::new(1);
        followed.counters = read(30);
        let none = waits(&followed, true);
        assert_eq!((none.0.get(Counter::WaitRead), none.1), (30, None), "nobody looked");
        let storage = Some(Unended { threads: 1, why: Counter::WaitRead, ns: 400 });
        followed.waiting = Some(Waiting { so_far: read(405), storage, ..Waiting::default() });
        let (all, unended) = waits(&followed, true);
        assert_eq!((all.get(Counter::WaitRead), unended), (435, storage));
        let (all, unended) = waits(&followed, false);
        assert_eq!((all.get(Counter::WaitRead), unended), (30, None));
    }
}
