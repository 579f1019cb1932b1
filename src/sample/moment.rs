//! When something was read.

use std::ops::Add;
use std::time::Duration;

/// A point on the kernel's monotonic clock: the time since the machine was started, less what it slept. The kernel
/// programs date rows by the same clock. Unlike an [`std::time::Instant`] it can be written down; two of them can be
/// compared as long as they are of one boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// This one.
    #[must_use]
    pub fn now() -> Self {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to memory of ours. The clock is there on every Linux, so the call cannot fail.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        Self(Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0)))
    }

    /// So many nanoseconds after the clock began.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(Duration::from_nanos(nanos))
    }

    /// Nanoseconds since the clock began.
    #[must_use]
    pub fn nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The time since another moment; 0 if that was later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self(self.0 + later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on() {
        let (a, b) = (Moment::now(), Moment::now());
        assert!(a > Moment::default() && b >= a);
        assert_eq!(a.since(a + Duration::from_secs(1)), Duration::ZERO);
        assert_eq!((a + Duration::from_nanos(7)).since(a), Duration::from_nanos(7));
        assert_eq!(Moment::from_nanos(a.nanos()), a);
    }
}
