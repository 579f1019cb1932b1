//! Waiting without spinning: for a deadline, a signal, or the end of a process.

use std::io;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::process::PidfdFlags;
use signal_hook::consts::SIGCONT;
use signal_hook::consts::SIGHUP;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;

use crate::exit::Failure;

/// Why waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The deadline has come.
    Deadline,
    /// SIGINT, SIGTERM or SIGHUP.
    Interrupt,
    /// The process watched has ended.
    Ended,
    /// Nothing more will come: a recording is at its end.
    Over,
}

/// A clock that can be waited for: the system's, or a test's.
pub trait Wait {
    /// The monotonic clock.
    fn now(&self) -> Instant;

    /// Waits until `deadline` or until something else happens. A deadline in the past does not wait, and
    /// still reports what has happened.
    ///
    /// # Errors
    /// When the system refuses to wait.
    fn until(&mut self, deadline: Instant) -> io::Result<Wake>;
}

/// A process that is watched for its end.
#[derive(Debug)]
pub struct Process {
    fd: OwnedFd,
}

/// The inode of the initial PID namespace, the same on every Linux (`PROC_PID_INIT_INO`).
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Whether processes have the numbers here that the kernel programs know them by.
#[must_use]
pub fn sees_all_processes() -> bool {
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    matches!(namespace.to_str(), Some(INITIAL_PID_NAMESPACE | ""))
}

impl Process {
    /// Finds the process. From here on its id cannot be taken by another one unnoticed.
    ///
    /// # Errors
    /// Wrong usage when there is no such process, or it is a thread; a failure where it cannot be watched.
    pub fn open(pid: u32) -> Result<Self, Failure> {
        if !sees_all_processes() {
            return Err(Failure::failed("process ids of this container are not those of the kernel")
                .remedy("run it in the host's PID namespace (docker run --pid=host)"));
        }
        let gone = || {
            Failure::usage(format!("there is no process {pid}"))
                .remedy("'ps -e' lists the processes that there are")
        };
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
        match rustix::process::pidfd_open(raw, PidfdFlags::empty()) {
            Ok(fd) => {
                let process = Self { fd };
                // A zombie does nothing any more: its time would be told as time of which nothing is known.
                match process.ended() {
                    true => Err(Failure::usage(format!(
                        "process {pid} has ended: its parent has not waited for it yet"
                    ))
                    .remedy("'ps -e' lists the processes that there are")),
                    false => Ok(process),
                }
            }
            // Which of these is said of a thread that leads no process differs between kernels.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => match leader(pid).filter(|l| *l != pid) {
                Some(leader) => Err(Failure::usage(format!("{pid} is a thread of process {leader}"))
                    .remedy(format!("-p {leader} counts all threads of that process"))),
                None => Err(gone()),
            },
            Err(e) => Err(Failure::failed(format!("cannot watch process {pid}: {}", io::Error::from(e)))),
        }
    }
}

impl Process {
    /// Whether it has ended, without waiting.
    #[must_use]
    pub fn ended(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.fd.as_fd(), PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(n) if n > 0)
    }
}

/// The thread group that a thread belongs to.
fn leader(tid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// Whether whoever started us wants a signal to be ignored.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero is a valid sigaction; the kernel only fills it.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

/// The clock of the system, its signals, and a process to watch.
#[derive(Debug)]
pub struct System {
    signals: UnixStream,
    process: Option<Process>,
}

impl System {
    /// Takes over SIGINT, SIGTERM and SIGHUP (of a terminal that is closed) for the rest of the process. The first one
    /// asks for the end; the third one ends at once, for when the output is stuck. (Not the second: `timeout` sends each
    /// signal twice.) Who is started by nohup(1) goes on without the terminal.
    ///
    /// # Errors
    /// When the system refuses a signal handler.
    pub fn new(process: Option<Process>) -> io::Result<Self> {
        static SIGNALS: AtomicU32 = AtomicU32::new(0);
        let (signals, writer) = UnixStream::pair()?;
        signals.set_nonblocking(true)?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGHUP && is_ignored(signal) {
                continue;
            }
            let action = move || {
                if SIGNALS.fetch_add(1, Ordering::Relaxed) >= 2 {
                    signal_hook::low_level::exit(128 + signal);
                }
            };
            // SAFETY: the action only touches an atomic and calls `_exit`, both async-signal-safe.
            unsafe { signal_hook::low_level::register(signal, action) }?;
            signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
        }
        // Continued after a stop, `poll` would wait for what was left when the stop began. A handler of any kind
        // makes it return, so that the deadline is looked at again.
        // SAFETY: the action does nothing.
        unsafe { signal_hook::low_level::register(SIGCONT, || {}) }?;
        Ok(Self { signals, process })
    }
}

impl Wait for System {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn until(&mut self, deadline: Instant) -> io::Result<Wake> {
        loop {
            let left = deadline.saturating_duration_since(self.now());
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut fds = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
            if let Some(process) = &self.process {
                fds.push(PollFd::from_borrowed_fd(process.fd.as_fd(), PollFlags::IN));
            }
            match rustix::event::poll(&mut fds, Some(&timeout)) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(e) => return Err(e.into()),
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0] {
                // Empties it; what was in it does not matter.
                let _ = self.signals.read(&mut [0; 64]);
                return Ok(Wake::Interrupt);
            }
            if ready.get(1) == Some(&true) {
                self.process = None;
                return Ok(Wake::Ended);
            }
            if self.now() >= deadline {
                return Ok(Wake::Deadline);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_process_that_is_not_there_is_wrong_usage() {
        let failure = Process::open(u32::MAX).unwrap_err();
        assert!(failure.message.contains("4294967295") || failure.message.contains("container"));
    }

    #[test]
    fn a_thread_is_told_from_what_is_not_there() {
        // SAFETY: asks for a number.
        let own_tid = || unsafe { libc::gettid() }.unsigned_abs();
        let failure = std::thread::spawn(move || Process::open(own_tid()).unwrap_err()).join().unwrap();
        let own = std::process::id();
        let said = format!("is a thread of process {own}");
        assert!(failure.message.ends_with(&said) || failure.message.contains("container"), "{failure:?}");
    }

    #[test]
    fn the_end_of_a_process_wakes() {
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let Ok(process) = Process::open(child.id()) else {
            // In a container: refused, as it must be.
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        };
        let (signals, _writer) = UnixStream::pair().unwrap();
        let mut system = System { signals, process: Some(process) };
        assert_eq!(system.until(Instant::now()).unwrap(), Wake::Deadline);
        assert!(!system.process.as_ref().unwrap().ended());
        drop(child.stdin.take());
        assert_eq!(system.until(Instant::now() + Duration::from_secs(60)).unwrap(), Wake::Ended);
        let failure = Process::open(child.id()).unwrap_err();
        assert!(failure.message.contains("has ended"), "{failure:?}");
        child.wait().unwrap();
    }

    #[test]
    fn a_deadline_is_not_missed_and_a_signal_is_seen_after_it() {
        let (signals, mut writer) = UnixStream::pair().unwrap();
        let mut system = System { signals, process: None };
        let deadline = Instant::now() + Duration::from_millis(3);
        assert_eq!(system.until(deadline).unwrap(), Wake::Deadline);
        assert!(Instant::now() >= deadline);
        io::Write::write_all(&mut writer, &[0]).unwrap();
        assert_eq!(system.until(deadline).unwrap(), Wake::Interrupt);
    }
}
