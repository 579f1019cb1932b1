//! What processes have used, by the kernel's accounts: added up, and of those that live.

use super::child::bytes;
use super::child::fields;
use super::data::Usage;

impl Usage {
    /// The sum; what one of them does not know is not known.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        fn add<T: std::ops::Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
            a.zip(b).map(|(a, b)| a + b)
        }
        Self {
            user_s: add(self.user_s, other.user_s),
            system_s: add(self.system_s, other.system_s),
            device_read_bytes: add(self.device_read_bytes, other.device_read_bytes),
            called_read_bytes: add(self.called_read_bytes, other.called_read_bytes),
            device_write_bytes: add(self.device_write_bytes, other.device_write_bytes),
            major_faults: add(self.major_faults, other.major_faults),
            minor_faults: add(self.minor_faults, other.minor_faults),
        }
    }

    /// Nothing used.
    #[must_use]
    pub const fn zero() -> Self {
        Self {
            user_s: Some(0.0),
            system_s: Some(0.0),
            device_read_bytes: Some(0),
            called_read_bytes: Some(0),
            device_write_bytes: Some(0),
            major_faults: Some(0),
            minor_faults: Some(0),
        }
    }

    /// What a living process and those that it waited for have used so far; unknown where `/proc` does not say.
    #[must_use]
    pub fn read(pid: u32) -> Self {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        // The bytes are those of its children, too.
        let itself = Self {
            device_read_bytes: bytes(&io, "read_bytes:"),
            called_read_bytes: bytes(&io, "rchar:"),
            device_write_bytes: bytes(&io, "write_bytes:"),
            ..Self::of_itself(&stat)
        };
        let (read, written) = (itself.device_read_bytes.map(|_| 0), itself.device_write_bytes.map(|_| 0));
        let children = Self {
            device_read_bytes: read,
            called_read_bytes: itself.called_read_bytes.map(|_| 0),
            device_write_bytes: written,
            ..Self::of_fields(&stat, [16, 17, 13, 11])
        };
        itself.and(children)
    }

    /// Times and faults of a process by its `/proc/PID/stat`, without its children's; bytes are not there.
    pub(super) fn of_itself(stat: &str) -> Self {
        Self::of_fields(stat, [14, 15, 12, 10])
    }

    /// User and system time, major and minor faults by the numbers of their fields, as proc(5) counts them.
    fn of_fields(stat: &str, [user, system, major, minor]: [usize; 4]) -> Self {
        let fields = fields(stat);
        let field = |n: usize| fields.get(n - 3).and_then(|f| f.parse::<u64>().ok());
        // SAFETY: takes a number.
        let hertz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let seconds = |n: Option<u64>| n.map(|n| n as f64 / hertz.max(1) as f64);
        Self {
            user_s: seconds(field(user)),
            system_s: seconds(field(system)),
            major_faults: field(major),
            minor_faults: field(minor),
            ..Self::default()
        }
    }

    /// With what processes used that have gone, where that is clearly more: then some of them were waited for by nobody, and what
    /// those have read by calls is known of nobody. Of both the larger, since the kernel frees the last of them a little later.
    pub(super) fn or_of_gone(self, gone: Self) -> (Self, bool) {
        const SECONDS: f64 = 0.05;
        const BYTES: u64 = 1 << 20;
        let cpu = |u: &Self| u.user_s.zip(u.system_s).map(|(user, system)| user + system);
        let longer = cpu(&self).zip(cpu(&gone)).is_some_and(|(a, b)| b > a * 1.05 + SECONDS);
        let of_bytes = |u: &Self| u.device_read_bytes.zip(u.device_write_bytes).map(|(a, b)| a.max(b));
        let more = of_bytes(&self).zip(of_bytes(&gone)).is_some_and(|(a, b)| b > a + a / 20 + BYTES);
        if !longer && !more {
            return (self, false);
        }
        let times = if longer { gone } else { self };
        let most = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.max(b));
        let all = Self {
            user_s: times.user_s,
            system_s: times.system_s,
            device_read_bytes: most(self.device_read_bytes, gone.device_read_bytes),
            called_read_bytes: None,
            device_write_bytes: most(self.device_write_bytes, gone.device_write_bytes),
            major_faults: most(self.major_faults, gone.major_faults),
            minor_faults: most(self.minor_faults, gone.minor_faults),
        };
        (all, true)
    }

    /// What was used since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let n = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_sub(b));
        let x = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| (a - b).max(0.0));
        Self {
            user_s: x(self.user_s, earlier.user_s),
            system_s: x(self.system_s, earlier.system_s),
            device_read_bytes: n(self.device_read_bytes, earlier.device_read_bytes),
            called_read_bytes: n(self.called_read_bytes, earlier.called_read_bytes),
            device_write_bytes: n(self.device_write_bytes, earlier.device_write_bytes),
            major_faults: n(self.major_faults, earlier.major_faults),
            minor_faults: n(self.minor_faults, earlier.minor_faults),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_waited_for_by_nobody_is_counted_at_least() {
        let used = |user_s: f64, read: u64, faults: u64| Usage {
            user_s: Some(user_s),
            device_read_bytes: Some(read),
            minor_faults: Some(faults),
            ..Usage::zero()
        };
        // The kernel has not freed the last of them yet, or rounds otherwise.
        for gone in [used(0.4, 0, 80), used(1.04, 1 << 20, 101), Usage::zero()] {
            assert_eq!(used(1.0, 1 << 20, 100).or_of_gone(gone), (used(1.0, 1 << 20, 100), false));
        }
        let (all, hidden) = used(1.0, 4096, 500).or_of_gone(used(3.0, 1024, 400));
        assert_eq!((all, hidden), (Usage { called_read_bytes: None, ..used(3.0, 4096, 500) }, true));
        let (all, hidden) = used(1.0, 4096, 500).or_of_gone(used(0.9, 8 << 20, 400));
        assert_eq!((all, hidden), (Usage { called_read_bytes: None, ..used(1.0, 8 << 20, 500) }, true));
        // Nobody tells.
        assert!(!Usage::default().or_of_gone(used(3.0, 8 << 20, 0)).1);
    }
}
