//! When intervals end.

use std::time::Duration;
use std::time::Instant;

/// When intervals end: the k-th at start + k × length, however long anything took.
#[derive(Debug)]
pub struct Beat {
    start: Instant,
    length: Duration,
    k: u64,
}

impl Beat {
    /// The first ends a length after the start.
    #[must_use]
    pub const fn new(start: Instant, length: Duration) -> Self {
        Self { start, length, k: 1 }
    }

    fn at(&self, k: u64) -> Instant {
        let nanos = self.length.as_nanos().saturating_mul(k.into());
        let offset = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        // A beat beyond the end of the clock, centuries from now, is never waited for.
        self.start.checked_add(offset).unwrap_or(self.start)
    }

    /// When the interval ends that is under way.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.at(self.k)
    }

    /// Goes on to the next beat. Beats that have passed already are left out, and so is the one after them
    /// where it would make an interval of less than half the length.
    pub fn advance(&mut self, now: Instant) {
        self.k += 1;
        if self.deadline() <= now {
            let passed = now.duration_since(self.start).as_nanos() / self.length.as_nanos().max(1);
            self.k = u64::try_from(passed).unwrap_or(u64::MAX - 1) + 1;
            if self.deadline().saturating_duration_since(now) < self.length / 2 {
                self.k += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_beyond_the_end_of_time_does_not_panic() {
        let mut beat = Beat::new(Instant::now(), Duration::from_secs(365 * 24 * 60 * 60));
        beat.k = u64::MAX - 5;
        let _ = beat.deadline();
        beat.advance(beat.start + Duration::from_secs(1));
    }

    proptest::proptest! {
        #[test]
        fn beats_are_on_the_grid_and_ahead(
            length in 10_u64..5000,
            late in proptest::collection::vec(0_u64..20_000, 1..20),
        ) {
            let start = Instant::now();
            let length = Duration::from_millis(length);
            let mut beat = Beat::new(start, length);
            for late in late {
                let before = beat.deadline();
                let now = before + Duration::from_millis(late);
                beat.advance(now);
                let next = beat.deadline();
                proptest::prop_assert!(next > now);
                proptest::prop_assert!(next.duration_since(now) <= length + length / 2);
                proptest::prop_assert_eq!(next.duration_since(start).as_nanos() % length.as_nanos(), 0);
            }
        }
    }
}
