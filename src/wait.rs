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
use crate::procfs;
use crate::sample::Moment;

/// Why waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The deadline has come.
    Deadline,
    /// SIGINT, SIGTERM or SIGHUP.
    Interrupt,
    /// The processes watched have ended, all of them.
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
        Self::find(pid).and_then(|process| process.alive(pid))
    }

    /// The same, be it a zombie.
    fn find(pid: u32) -> Result<Self, Failure> {
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
            Ok(fd) => Ok(Self { fd }),
            // Which of these is said of a thread that leads no process differs between kernels.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => match leader(pid).filter(|l| *l != pid) {
                Some(leader) => Err(Failure::usage(format!("{pid} is a thread of process {leader}"))
                    .remedy(format!("-p {leader} counts all threads of that process"))),
                None => Err(gone()),
            },
            Err(e) => Err(Failure::failed(format!("cannot watch process {pid}: {}", io::Error::from(e)))),
        }
    }

    /// A zombie does nothing any more: its time would be told as time of which nothing is known.
    fn alive(self, pid: u32) -> Result<Self, Failure> {
        if !self.ended() {
            return Ok(self);
        }
        Err(Failure::usage(format!("process {pid} has ended: its parent has not waited for it yet"))
            .remedy("'ps -e' lists the processes that there are"))
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

/// Processes that are watched until the last of them has ended.
#[derive(Debug, Default)]
pub struct Processes {
    all: Vec<Process>,
    /// When all of them were alive, on the kernel's monotonic clock: with one of their numbers, who began later is another.
    pub seen: u64,
}

impl Processes {
    /// Finds the processes.
    ///
    /// # Errors
    /// As [`Process::open`], for the first that is not there.
    pub fn open(pids: &[u32]) -> Result<Self, Failure> {
        let found: Vec<Process> = pids.iter().map(|pid| Process::find(*pid)).collect::<Result<_, _>>()?;
        // Who is found, and alive after this, was alive at this moment.
        let seen = kernel_time();
        let all = found.into_iter().zip(pids).map(|(process, pid)| process.alive(*pid));
        Ok(Self { all: all.collect::<Result<_, _>>()?, seen })
    }

    /// Whether the last of them has ended, which is told once.
    pub fn have_ended(&mut self) -> bool {
        let some = !self.all.is_empty();
        self.all.retain(|process| !process.ended());
        some && self.all.is_empty()
    }
}

/// The kernel's monotonic clock, whatever a time namespace makes of it, in nanoseconds.
fn kernel_time() -> u64 {
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let now = i128::from(Moment::now().nanos()) - offset(&offsets);
    u64::try_from(now).unwrap_or(0)
}

/// By how much the monotonic clock is ahead here: seconds and nanoseconds.
fn offset(offsets: &str) -> i128 {
    let line = offsets.lines().find_map(|line| line.strip_prefix("monotonic"));
    let mut numbers = line.unwrap_or_default().split_whitespace().map(|n| n.parse().unwrap_or(0));
    numbers.next().unwrap_or(0) * 1_000_000_000 + numbers.next().unwrap_or(0)
}

/// The thread group that a thread belongs to.
fn leader(tid: u32) -> Option<u32> {
    let status = procfs::text(format!("/proc/{tid}/status")).ok()?;
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

/// The clock of the system, its signals, and processes to watch.
#[derive(Debug)]
pub struct System {
    signals: UnixStream,
    processes: Vec<Process>,
}

impl System {
    /// Takes over SIGINT, SIGTERM and SIGHUP (of a terminal that is closed) for the rest of the process. The first one
    /// asks for the end; the third one ends at once, for when the output is stuck. (Not the second: `timeout` sends each
    /// signal twice.) Who is started by nohup(1) goes on without the terminal. To be made before hooks are attached, which
    /// takes a moment: else a signal would end us by itself just then.
    ///
    /// # Errors
    /// When the system refuses a signal handler.
    pub fn new(processes: Processes) -> io::Result<Self> {
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
            // Before the one that counts: what came between the two would be counted, and nobody told of it. (A signal does
            // both in this order; a full pipe holds up none.)
            signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
            // SAFETY: the action only touches an atomic and calls `_exit`, both async-signal-safe.
            unsafe { signal_hook::low_level::register(signal, action) }?;
        }
        // Continued after a stop, `poll` would wait for what was left when the stop began. A handler of any kind
        // makes it return, so that the deadline is looked at again.
        // SAFETY: the action does nothing.
        unsafe { signal_hook::low_level::register(SIGCONT, || {}) }?;
        Ok(Self { signals, processes: processes.all })
    }

    /// Begins what takes a while, such as attaching hooks. `None`: a signal asked for the end meanwhile, so that there is
    /// nothing to be shown, and what had begun is over with it. Nor does it matter then what the signal made fail.
    ///
    /// # Errors
    /// As what was to begin has it.
    pub fn unless_asked<T, E: Into<Failure>>(
        &self,
        begin: impl FnOnce() -> Result<T, E>,
    ) -> Result<Option<T>, Failure> {
        let begun = begin();
        if self.asked() { Ok(None) } else { begun.map(Some).map_err(E::into) }
    }

    /// Whether a signal has asked for the end that no wait has told yet.
    fn asked(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(n) if n > 0)
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
            fds.extend(self.processes.iter().map(|p| PollFd::from_borrowed_fd(p.fd.as_fd(), PollFlags::IN)));
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
            if ready.contains(&true) {
                let mut ended = ready.iter().skip(1);
                self.processes.retain(|_| ended.next() != Some(&true));
                // The others go on.
                if self.processes.is_empty() {
                    return Ok(Wake::Ended);
                }
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
        let mut system = System { signals, processes: vec![process] };
        assert_eq!(system.until(Instant::now()).unwrap(), Wake::Deadline);
        assert!(!system.processes[0].ended());
        drop(child.stdin.take());
        assert_eq!(system.until(Instant::now() + Duration::from_secs(60)).unwrap(), Wake::Ended);
        let failure = Process::open(child.id()).unwrap_err();
        assert!(failure.message.contains("has ended"), "{failure:?}");
        child.wait().unwrap();
    }

    #[test]
    fn of_several_processes_the_last_one_wakes() {
        let cat = || Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let mut children: Vec<_> = (0..64).map(|_| cat()).collect();
        let pids: Vec<u32> = children.iter().map(std::process::Child::id).collect();
        let processes = match Processes::open(&pids) {
            Ok(processes) => processes,
            Err(refused) => {
                children.iter_mut().for_each(|child| drop((child.kill(), child.wait())));
                assert!(refused.message.contains("container"), "{refused:?}");
                return;
            }
        };
        assert!(processes.seen > 0 && processes.seen <= kernel_time());
        let (signals, _writer) = UnixStream::pair().unwrap();
        let mut system = System { signals, processes: processes.all };
        let soon = || Instant::now() + Duration::from_millis(20);
        for child in &mut children[1..] {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        assert_eq!(system.until(soon()).unwrap(), Wake::Deadline);
        assert_eq!(system.processes.len(), 1);
        // One that is not there: which one is said.
        let failure = Processes::open(&pids[..2]).unwrap_err();
        let said = (format!("there is no process {}", pids[1]), crate::exit::Code::Usage);
        assert_eq!((failure.message, failure.code), said);
        drop(children[0].stdin.take());
        assert_eq!(system.until(Instant::now() + Duration::from_secs(60)).unwrap(), Wake::Ended);
        assert_eq!(system.until(soon()).unwrap(), Wake::Deadline, "told once");
        children[0].wait().unwrap();
    }

    #[test]
    fn a_time_namespace_is_taken_off_the_clock() {
        let text = "monotonic          -5       7\nboottime            9         0\n";
        assert_eq!((offset(text), offset("")), (-4_999_999_993, 0));
    }

    #[test]
    fn a_deadline_is_not_missed_and_a_signal_is_seen_after_it() {
        let (signals, mut writer) = UnixStream::pair().unwrap();
        let mut system = System { signals, processes: Vec::new() };
        let deadline = Instant::now() + Duration::from_millis(3);
        assert_eq!(system.until(deadline).unwrap(), Wake::Deadline);
        assert!(Instant::now() >= deadline);
        io::Write::write_all(&mut writer, &[0]).unwrap();
        assert_eq!(system.until(deadline).unwrap(), Wake::Interrupt);
    }

    #[test]
    fn what_a_signal_came_into_is_not_begun() {
        let (signals, mut writer) = UnixStream::pair().unwrap();
        let mut system = System { signals, processes: Vec::new() };
        assert_eq!(system.unless_asked(|| Ok::<_, Failure>(7)).unwrap(), Some(7));
        assert!(system.unless_asked(|| Err::<(), _>(Failure::failed("no"))).is_err());
        let mut signalled = |result: Result<u8, Failure>| {
            io::Write::write_all(&mut writer, &[0]).unwrap();
            system.unless_asked(|| result)
        };
        assert_eq!(signalled(Ok(7)), Ok(None));
        // What the signal made fail is no failure.
        assert_eq!(signalled(Err(Failure::failed("Interrupted system call"))), Ok(None));
        // A wait would be told it, too.
        assert_eq!(system.until(Instant::now()).unwrap(), Wake::Interrupt);
    }
}
