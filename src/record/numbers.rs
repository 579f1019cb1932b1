//! Times and lengths as numbers: nanoseconds, and bytes where a system call wants a sign.

use std::time::Duration;

/// A clock that disagrees by more than this with the time that has passed was set.
const JUMP: i64 = 1_000_000_000;

/// A time in nanoseconds since 1970, or the first or the last one that there is a number for.
pub(super) fn since_1970(time: jiff::Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(if time.as_second() < 0 { i64::MIN } else { i64::MAX })
}

/// A length of time in nanoseconds, or the longest that there is a number for.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The same number, or the largest that may have a sign.
pub(super) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// By how much the clock that people read was set between two moments, in nanoseconds; `None`: by no more than clocks
/// differ. Each is told by that clock, and by the one that nobody sets.
pub(super) fn set_by((time, at): (i64, u64), (later, then): (i64, u64)) -> Option<i64> {
    let passed = signed(then.saturating_sub(at));
    let off = later.saturating_sub(time).saturating_sub(passed);
    (off.saturating_abs() > JUMP).then_some(off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_disagrees_with_the_time_that_has_passed() {
        let second = 1_000_000_000;
        let begin = (5 * second, 7);
        assert_eq!(set_by(begin, (6 * second, 7 + 1_000_000_000)), None);
        assert_eq!(set_by(begin, (7 * second, 7 + 1_000_000_000)), None, "a second is no jump");
        assert_eq!(set_by(begin, (second, 7)), Some(-4 * second));
        assert_eq!(set_by(begin, (second, 0)), Some(-4 * second), "no time has passed backwards");
        // Made up: the first moment that there is, and the last, one way and the other.
        assert_eq!(set_by((i64::MAX, 0), (i64::MIN, u64::MAX)), Some(i64::MIN));
        assert_eq!(set_by((i64::MIN, 0), (i64::MAX, 0)), Some(i64::MAX));
    }

    #[test]
    fn what_has_no_number_is_the_nearest_that_has() {
        assert_eq!(since_1970(jiff::Timestamp::MAX), i64::MAX);
        assert_eq!(since_1970(jiff::Timestamp::MIN), i64::MIN);
        assert_eq!(since_1970(jiff::Timestamp::UNIX_EPOCH), 0);
        assert_eq!((nanos(Duration::MAX), nanos(Duration::from_micros(2))), (u64::MAX, 2000));
    }
}
