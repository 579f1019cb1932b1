//! Slots of time.

use std::time::Duration;

/// How long a slot is.
pub(super) const SLOT: Duration = Duration::from_secs(15);
/// Marks that there are: 1 to 255.
const MARKS: u64 = 255;
/// Slots of the longest window, and one that has just begun.
const KEPT: u64 = 3600 / 15 + 1;

/// Some slots in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    last: u8,
    slots: u64,
}

/// Whether a mark of the time of the mark `now` is older than any window when so many slots have passed since.
#[must_use]
pub const fn outdated(now: u8, passed: u64, mark: u8) -> bool {
    mark != 0 && age(now, mark).saturating_add(passed) >= KEPT
}

impl Span {
    /// The slot with this mark, and those before it: so many slots, 254 at most.
    #[must_use]
    pub const fn new(last: u8, slots: u64) -> Self {
        Self { last, slots }
    }

    /// Whether the slot with this mark is one of them.
    #[must_use]
    pub const fn has(self, mark: u8) -> bool {
        mark != 0 && age(self.last, mark) < self.slots
    }
}

/// How many slots ago that mark was.
const fn age(now: u8, mark: u8) -> u64 {
    (now as u64 + MARKS - mark as u64) % MARKS
}

/// The younger of two marks at the time of the mark `now`; 0 is none.
#[must_use]
pub const fn younger(now: u8, a: u8, b: u8) -> u8 {
    match (a, b) {
        (0, other) | (other, 0) => other,
        _ if age(now, a) <= age(now, b) => a,
        _ => b,
    }
}

/// Which slot it is. Slots end where the time of watching ends, so that the windows up to then are of whole slots; the
/// first is shorter for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    first: Duration,
}

impl Clock {
    /// For so long a time of watching.
    #[must_use]
    pub fn new(time: Duration) -> Self {
        let rest = Duration::from_nanos((time.as_nanos() % SLOT.as_nanos()) as u64);
        Self { first: if rest.is_zero() { SLOT } else { rest } }
    }

    /// The number of the slot, from 0, in which something is that happened after so long.
    fn slot(self, after: Duration) -> u64 {
        match after.checked_sub(self.first) {
            Some(rest) if !rest.is_zero() => ((rest.as_nanos() - 1) / SLOT.as_nanos()) as u64 + 1,
            _ => 0,
        }
    }

    /// When a slot begins.
    fn begins(self, slot: u64) -> Duration {
        match slot.checked_sub(1) {
            Some(before) => self.first + Duration::from_secs(SLOT.as_secs() * before),
            None => Duration::ZERO,
        }
    }

    /// When the slot ends in which it is that happens just after so long.
    #[must_use]
    pub fn ends(self, after: Duration) -> Duration {
        let slot = self.slot(after);
        let end = self.begins(slot + 1);
        if end == after { self.begins(slot + 2) } else { end }
    }

    /// The number of the slot, from 0, of what happens just after so long.
    #[must_use]
    pub fn number(self, after: Duration) -> u64 {
        self.slot(after + Duration::from_nanos(1))
    }

    /// The mark of what happens just after so long.
    #[must_use]
    pub fn mark(self, after: Duration) -> u8 {
        (self.number(after) % MARKS) as u8 + 1
    }

    /// The slots that make up this window, up to so long after the beginning, and how long they are together: as long as the
    /// window, or up to a slot longer. `None`: it has not been watched for so long.
    #[must_use]
    pub fn window(self, after: Duration, window: Duration) -> Option<(Span, Duration)> {
        let begin = after.checked_sub(window)?;
        let last = self.slot(after);
        // A slot that begins just then is the first of them.
        let first = self.slot(begin + Duration::from_nanos(1));
        let mark = (last % MARKS) as u8 + 1;
        Some((Span::new(mark, last - first + 1), after.saturating_sub(self.begins(first))))
    }

    /// Whether a mark is older than any window, so long after the beginning.
    #[must_use]
    pub fn is_old(self, after: Duration, mark: u8) -> bool {
        !Span::new(self.mark(after), KEPT).has(mark)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn windows_end_with_the_time() {
        for time in [60, 61, 74, 75, 3600] {
            let clock = Clock::new(s(time));
            let (span, long) = clock.window(s(time), s(60)).unwrap();
            assert_eq!(long, s(60), "{time}");
            assert_eq!(span.slots, 4, "{time}");
            assert_eq!(clock.window(s(time), s(time)).unwrap().1, s(time));
            // The last moment has the mark that the window ends with.
            let last = clock.mark(s(time) - Duration::from_nanos(1));
            assert!(span.has(last) && !Span::new(last, 4).has(clock.mark(s(time))), "{time}");
        }
        assert_eq!(Clock::new(s(59)).window(s(59), s(60)), None);
    }

    /// A mark comes again after 255 slots: what was slept through must not make old ones young.
    #[test]
    fn what_is_slept_through_counts() {
        let clock = Clock::new(s(15));
        let (before, after) = (s(58 * 60), s(68 * 60));
        let passed = clock.number(after) - clock.number(before);
        assert_eq!(passed, 40);
        let (span, _) = clock.window(after, s(300)).unwrap();
        let early = clock.mark(s(60));
        assert!(span.has(early) && outdated(clock.mark(before), passed, early), "of the first minute");
        for minutes in [9, 30, 57] {
            let mark = clock.mark(s(minutes * 60));
            assert!(!outdated(clock.mark(before), passed, mark), "{minutes}");
        }
        assert!(!outdated(clock.mark(before), passed, 0) && outdated(7, u64::MAX, 7));
    }

    #[test]
    fn of_two_marks_the_younger_counts() {
        for (now, a, b, younger_one) in [
            (9, 0, 0, 0),
            (9, 0, 3, 3),
            (9, 3, 0, 3),
            (9, 3, 8, 8),
            (9, 9, 3, 9),
            (3, 255, 3, 3),
            (3, 254, 1, 1),
        ] {
            assert_eq!(younger(now, a, b), younger_one, "{now}: {a}, {b}");
        }
        // 200 is from the round before.
        assert_eq!(younger(3, 200, 254), 254);
    }

    #[test]
    fn an_earlier_end_makes_a_window_longer_by_less_than_a_slot() {
        let clock = Clock::new(s(100));
        for after in 60..100 {
            let (span, long) = clock.window(s(after), s(60)).unwrap();
            assert!(long >= s(60) && long < s(75), "{after}: {long:?}");
            // Nothing before it, and all of it.
            let begin = s(after) - long;
            assert!(span.has(clock.mark(begin)));
            if !begin.is_zero() {
                assert!(!span.has(clock.mark(begin - Duration::from_nanos(1))), "{after}");
            }
        }
    }

    #[test]
    fn slots_follow_one_another() {
        let clock = Clock::new(s(20));
        assert_eq!([0, 4, 5, 19, 20].map(|t| clock.mark(s(t))), [1, 1, 2, 2, 3]);
        assert_eq!([0, 4, 5, 19, 20].map(|t| clock.ends(s(t))), [5, 5, 20, 20, 35].map(s));
        assert_eq!(clock.mark(s(5) + SLOT * 253), 255);
        assert_eq!(clock.mark(s(5) + SLOT * 254), 1);
        assert_eq!(clock.mark(s(5) + SLOT * 255), 2);
    }

    /// Marks come again after 63 minutes: by then the older ones must be gone, and no window may have lost any.
    #[test]
    fn marks_that_come_again_are_old_before() {
        let clock = Clock::new(s(15));
        for slot in [300u64, 512, 1000] {
            let after = SLOT * slot as u32;
            let (span, _) = clock.window(after, s(3600)).unwrap();
            let age = |slots: u64| clock.mark(after - SLOT * slots as u32);
            assert!((1..=240).all(|back| span.has(age(back)) && !clock.is_old(after, age(back))));
            assert!(!span.has(age(241)));
            assert!((241..255).all(|back| clock.is_old(after, age(back))));
        }
    }
}
