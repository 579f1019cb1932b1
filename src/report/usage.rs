//! What processes have used, by the kernel's accounts: added up, and of those that live.

use super::child::bytes;
use super::child::fields;
use super::data::Usage;

use crate::procfs;

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
        let stat = procfs::text(format!("/proc/{pid}/stat")).unwrap_or_default();
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        // The bytes are those of its children, too.
        let itself = Self {
            device_read_bytes: bytes(&io, "read_bytes:"),
            called_read_bytes: bytes(&io, "rchar:"),
            device_write_bytes: bytes(&io, "write_bytes:"),
            ..Self::of_itself(pid, &stat)
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

    /// Times and faults of a process by its clock and its `/proc/PID/stat`, without its children's; bytes are not there.
    ///
    /// The times there are cut to ticks of 10 ms, each of them: of many processes that did a little, nothing would be left.
    pub(super) fn of_itself(pid: u32, stat: &str) -> Self {
        let ticks = Self::of_fields(stat, [14, 15, 12, 10]);
        let Some((user, system)) = ticks.user_s.zip(ticks.system_s) else { return ticks };
        // Where the kernel counts both exactly, they may be a little ahead of the clock.
        let ran = clock(pid).map_or(user + system, |ran| ran.max(user + system));
        let (user, system) = divided(ran, user, system);
        Self { user_s: Some(user), system_s: Some(system), ..ticks }
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

    /// What was used since `earlier`. The time is the difference of both in all, whatever became of the division: a part may
    /// be less than it was, since it is estimated from what the whole is known to be.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let n = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_sub(b));
        let x = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a - b);
        let parts =
            x(self.user_s, earlier.user_s).zip(x(self.system_s, earlier.system_s)).map(|(user, system)| {
                let all = (user + system).max(0.0);
                let user = user.clamp(0.0, all);
                (user, all - user)
            });
        Self {
            user_s: parts.map(|(user, _)| user),
            system_s: parts.map(|(_, system)| system),
            device_read_bytes: n(self.device_read_bytes, earlier.device_read_bytes),
            called_read_bytes: n(self.called_read_bytes, earlier.called_read_bytes),
            device_write_bytes: n(self.device_write_bytes, earlier.device_write_bytes),
            major_faults: n(self.major_faults, earlier.major_faults),
            minor_faults: n(self.minor_faults, earlier.minor_faults),
        }
    }
}

/// Processor time of a process so far, by its own clock, in seconds: all its threads, those that have ended, too. Everybody may
/// ask. `None`: it is not there.
fn clock(pid: u32) -> Option<f64> {
    // As clock_getcpuclockid(3) makes it, which asks for the clock once more to see whether it is there (CPUCLOCK_SCHED).
    let id = (!i32::try_from(pid).ok()? << 3) | 2;
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills memory of ours.
    let ret = unsafe { libc::clock_gettime(id, &raw mut now) };
    (ret == 0).then_some(now.tv_sec as f64 + now.tv_nsec as f64 / 1e9)
}

/// Exact time, divided into user and system as the ticks were. As the kernel does it: without a tick in the system, all of it
/// is the user's.
pub(super) fn divided(ran: f64, user: f64, system: f64) -> (f64, f64) {
    let user = if system > 0.0 { ran * (user / (user + system)) } else { ran };
    (user, ran - user)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::Command;
    use std::time::Duration;
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_clock_of_a_process_has_what_the_kernel_says_when_it_has_ended() {
        // It stops itself between its work and its end, so that the clock stands still when it is read.
        let work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; kill -STOP $$";
        let mut child = Command::new("sh").args(["-c", work]).spawn().unwrap();
        let stat = || procfs::text(format!("/proc/{}/stat", child.id())).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while super::fields(&stat()).first() != Some(&"T") && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        // It may still be on its way off the processor.
        let (by_clock, all) = loop {
            let by_clock = clock(child.id()).unwrap();
            let used = Usage::of_itself(child.id(), &stat());
            if clock(child.id()) == Some(by_clock) || Instant::now() > deadline {
                break (by_clock, used.user_s.unwrap() + used.system_s.unwrap());
            }
        };
        assert!((all - by_clock).abs() < 1e-9, "{all} {by_clock}");
        let pid = i32::try_from(child.id()).unwrap();
        // SAFETY: no memory is involved; it is a child of this test.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        let (mut status, mut used) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
        // SAFETY: the child has not been waited for; both pointers are to memory of ours, which the call fills.
        let used = unsafe {
            assert_eq!(libc::wait4(pid, &raw mut status, 0, used.as_mut_ptr()), pid);
            used.assume_init()
        };
        let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
        let ended = seconds(used.ru_utime) + seconds(used.ru_stime);
        // Its end is work, too.
        assert!(by_clock > 0.05 && (ended - by_clock).abs() < 0.01 * ended + 0.002, "{by_clock} {ended}");
        assert!(child.wait().is_err() && clock(child.id()).is_none() && clock(u32::MAX).is_none());
    }

    #[test]
    fn no_time_is_lost_however_it_is_divided() {
        assert_eq!(divided(0.008, 0.0, 0.0), (0.008, 0.0), "shorter than a tick");
        assert_eq!(divided(0.5, 3.0, 1.0), (0.375, 0.125));
        assert_eq!(divided(0.5, 0.0, 0.1), (0.0, 0.5));
        let used = |(user, system)| Usage { user_s: Some(user), system_s: Some(system), ..Usage::zero() };
        let parts = |u: Usage| (u.user_s.unwrap(), u.system_s.unwrap());
        // One tick of each, then two more of the user's: the system's part is less than it was.
        let (before, after) = (used(divided(0.025, 0.01, 0.01)), used(divided(0.045, 0.03, 0.01)));
        assert!(after.system_s < before.system_s);
        let (user, system) = parts(after.since(before));
        assert!((user + system - 0.02).abs() < 1e-9 && system == 0.0, "{user} {system}");
        // What was the user's for want of a tick is the system's now.
        let (user, system) = parts(used(divided(0.012, 0.0, 0.01)).since(used(divided(0.008, 0.0, 0.0))));
        assert!((user + system - 0.004).abs() < 1e-9 && user == 0.0, "{user} {system}");
        assert_eq!(parts(before.since(after)), (0.0, 0.0));
    }

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
