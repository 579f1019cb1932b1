//! When a command ended, by the clock. Whoever follows it reads tables meanwhile: of many files that takes longer than a
//! short command runs, and what was noticed late would be time of which nobody knows where it went.

use std::os::fd::AsRawFd as _;
use std::os::fd::FromRawFd as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Instant;

/// A thread that waits for nothing else.
pub(super) struct Ending {
    pid: i32,
    at: Arc<OnceLock<Instant>>,
}

impl Ending {
    /// Of a child that has not been waited for; `None` where the kernel refuses.
    pub(super) fn watch(pid: i32) -> Option<Self> {
        // SAFETY: no memory is involved.
        let fd = i32::try_from(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
            .ok()
            .filter(|fd| *fd >= 0)?;
        // SAFETY: the descriptor is new and ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let at = Arc::new(OnceLock::new());
        let there = Arc::clone(&at);
        let wait = move || {
            let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one descriptor of ours.
            if unsafe { libc::poll(&raw mut poll, 1, -1) } == 1 {
                let _ = there.set(Instant::now());
            }
        };
        // It takes no signals: they are blocked here, and threads begin as who makes them.
        std::thread::Builder::new().name("ending".into()).spawn(wait).ok()?;
        Some(Self { pid, at })
    }

    /// When that child ended, if it is known.
    pub(super) fn at(&self, pid: i32) -> Option<Instant> {
        self.at.get().copied().filter(|_| self.pid == pid)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;

    #[test]
    fn who_looks_late_learns_when_it_was() {
        let began = Instant::now();
        let mut child = std::process::Command::new("sleep").arg("0.05").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let ending = Ending::watch(pid).unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        let late = Instant::now();
        child.wait().unwrap();
        let at = ending.at(pid).unwrap();
        assert!(at.duration_since(began) >= Duration::from_millis(50));
        assert!(late.duration_since(at) > Duration::from_millis(500), "{:?}", at.duration_since(began));
        assert_eq!(ending.at(pid + 1), None);
    }

    #[test]
    fn of_nobody_nothing_is_known() {
        assert!(Ending::watch(-1).is_none());
    }
}
