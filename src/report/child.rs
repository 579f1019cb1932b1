//! The command itself: started as its user would have started it, waited for, its signals passed on.

use std::cell::Cell;
use std::cell::RefCell;
use std::ffi::CString;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::fd::FromRawFd as _;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use super::data::Usage;
use super::ending::Ending;

/// Signals that are passed on when they were sent to us alone.
const PASSED_ON: &[i32] =
    &[libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM];

/// Who runs the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// All groups.
    pub groups: Vec<u32>,
    /// Name of the user.
    pub name: String,
    /// Home directory.
    pub home: String,
}

impl Identity {
    /// The user who called sudo, if we are root and were called through it.
    #[must_use]
    pub fn of_sudo() -> Option<Self> {
        let (uid, gid) = crate::text::outfile::sudo()?;
        let (name, home) = passwd(uid).unwrap_or_else(|| {
            (std::env::var("SUDO_USER").unwrap_or_else(|_| uid.to_string()), "/".to_owned())
        });
        let groups = groups(&name, gid);
        Some(Self { uid, gid, groups, name, home })
    }
}

/// Name and home directory of a user.
fn passwd(uid: u32) -> Option<(String, String)> {
    let mut buffer = vec![0; 16384];
    // SAFETY: plain data that the call fills.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are to memory of ours that outlives the call, with the lengths given.
    let ret =
        unsafe { libc::getpwuid_r(uid, &raw mut entry, buffer.as_mut_ptr(), buffer.len(), &raw mut found) };
    if ret != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the call has set both to strings in the buffer.
    let (name, home) =
        unsafe { (std::ffi::CStr::from_ptr(entry.pw_name), std::ffi::CStr::from_ptr(entry.pw_dir)) };
    Some((name.to_string_lossy().into_owned(), home.to_string_lossy().into_owned()))
}

fn groups(name: &str, gid: u32) -> Vec<u32> {
    let Ok(name) = CString::new(name) else { return vec![gid] };
    let mut groups = vec![0; 1024];
    let mut n = 1024;
    // SAFETY: room for as many as stated.
    let ret = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut n) };
    if ret < 0 {
        return vec![gid];
    }
    groups.truncate(usize::try_from(n).unwrap_or(0));
    groups
}

/// What ended or is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The time is up.
    Tick,
    /// A process that is ours to wait for has ended.
    Ended,
    /// SIGINT, SIGTERM or SIGHUP came.
    Asked,
}

/// Signals that have come in, as a descriptor to wait for.
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
    asked: Cell<Option<i32>>,
    discard: Cell<bool>,
    ending: RefCell<Option<Ending>>,
}

impl Signals {
    /// From here on the signals that concern us wait in a descriptor.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new() -> io::Result<Self> {
        // SAFETY: plain data, initialised by the calls that follow; the descriptor is new and ours alone.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in PASSED_ON.iter().chain(&[libc::SIGCHLD]) {
                libc::sigaddset(&raw mut set, *signal);
            }
            if libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before) != 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self {
                fd: OwnedFd::from_raw_fd(fd),
                before,
                asked: Cell::new(None),
                discard: Cell::new(false),
                ending: RefCell::default(),
            })
        }
    }

    /// Waits at most so long. Signals sent to us alone are passed on to `child`; those of the terminal have reached
    /// it already.
    ///
    /// # Errors
    /// When the system refuses to wait.
    pub fn wait(&self, time: Duration, child: Option<i32>) -> io::Result<Event> {
        let mut poll = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let ms = i32::try_from(time.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        // SAFETY: one descriptor of ours.
        let n = unsafe { libc::poll(&raw mut poll, 1, ms) };
        if n < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(Event::Tick) } else { Err(error) };
        }
        let mut event = Event::Tick;
        // SAFETY: plain data that the read fills.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: room for one record, of which the kernel writes a whole one or none.
        while unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size) }
            == isize::try_from(size).unwrap_or(-2)
        {
            let signal = i32::try_from(info.ssi_signo).unwrap_or(0);
            if matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT) {
                self.asked.set(Some(signal));
            }
            match (signal, child) {
                (libc::SIGCHLD, _) => event = Event::Ended,
                // SI_KERNEL: the terminal's, sent to all of the foreground.
                (_, Some(pid)) if info.ssi_code != 0x80 => {
                    // SAFETY: no memory is involved. The child is not waited for yet: its id is its own.
                    unsafe { libc::kill(pid, signal) };
                }
                (_, Some(_)) => {}
                (libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT, None) => event = Event::Asked,
                _ => {}
            }
        }
        Ok(event)
    }
}

impl Signals {
    /// From here on what is started prints into nothing.
    pub fn discard(&self, discard: bool) {
        self.discard.set(discard);
    }

    /// From here on the end of this child is noted when it comes.
    pub(super) fn note_end(&self, pid: i32) {
        *self.ending.borrow_mut() = Ending::watch(pid);
    }

    /// When that child ended, if it was noted.
    pub(super) fn end_of(&self, pid: i32) -> Option<Instant> {
        self.ending.borrow().as_ref()?.at(pid)
    }

    /// The signal that asked for an end so far, whether the command saw it or not: between two runs there is none.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn asked(&self) -> io::Result<Option<i32>> {
        self.wait(Duration::ZERO, None)?;
        Ok(self.asked.get())
    }
}

/// Descendants that lose their parent become ours, not init's: they can be waited for, and still belong.
///
/// # Errors
/// When the kernel refuses.
pub fn adopt() -> io::Result<()> {
    // SAFETY: no memory is involved.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Starts the command. Standard streams, terminal and process group are ours.
///
/// # Errors
/// The error of `execve`: not found, not allowed.
pub fn start(command: &[OsString], who: Option<&Identity>, signals: &Signals) -> io::Result<i32> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut c = Command::new(program);
    c.args(arguments);
    if signals.discard.get() {
        c.stdout(Stdio::null()).stderr(Stdio::null());
    }
    if let Some(who) = who {
        c.env("HOME", &who.home).env("USER", &who.name).env("LOGNAME", &who.name);
        for key in ["SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND"] {
            c.env_remove(key);
        }
    }
    let (before, who) = (signals.before, who.cloned());
    let prepare = move || {
        let check = |ret: i32| if ret == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        // SAFETY: system calls on plain data, all async-signal-safe.
        unsafe {
            if let Some(who) = &who {
                check(libc::setgroups(who.groups.len(), who.groups.as_ptr()))?;
                check(libc::setresgid(who.gid, who.gid, who.gid))?;
                check(libc::setresuid(who.uid, who.uid, who.uid))?;
            }
            check(libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()))?;
        }
        crate::limits::restore()
    };
    // SAFETY: between fork and exec only system calls are made.
    unsafe { c.pre_exec(prepare) };
    // Not waited for through the handle: wait4 tells what it used as well.
    c.spawn().and_then(|child| i32::try_from(child.id()).map_err(io::Error::other))
}

/// Somebody who was waited for.
pub struct Reaped {
    /// Process id.
    pub pid: i32,
    /// How it ended, as a shell tells it.
    pub status: i32,
    /// The signal that it died of.
    pub signal: Option<i32>,
    /// What it and those that it waited for used.
    pub usage: Usage,
}

/// A child that has ended and has not been waited for: its id is its own until then. `None` if there is none.
#[must_use]
pub fn ended() -> Option<i32> {
    // SAFETY: plain data that the call fills.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to memory of ours. The child stays to be waited for.
    let ret =
        unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) };
    // SAFETY: the call has filled it, with 0 where no child has ended.
    let pid = unsafe { info.si_pid() };
    (ret == 0 && pid > 0).then_some(pid)
}

/// Waits for a child that has ended; `None` if it has not.
#[must_use]
pub fn reap(child: i32) -> Option<Reaped> {
    // Of what has ended and is not waited for, the accounts are still there.
    let io = std::fs::read_to_string(format!("/proc/{child}/io")).unwrap_or_default();
    let mut status = 0;
    // SAFETY: plain data that the call fills.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to memory of ours.
    let pid = unsafe { libc::wait4(child, &raw mut status, libc::WNOHANG, &raw mut used) };
    if pid <= 0 {
        return None;
    }
    let status = ExitStatus::from_raw(status);
    let signal = status.signal();
    let status = status.code().or(signal.map(|s| 128 + s)).unwrap_or(1);
    let count = |n: libc::c_long| u64::try_from(n).ok();
    let seconds = |t: libc::timeval| Some(t.tv_sec as f64 + t.tv_usec as f64 / 1e6);
    let usage = Usage {
        user_s: seconds(used.ru_utime),
        system_s: seconds(used.ru_stime),
        device_read_bytes: count(used.ru_inblock).map(|n| n * 512),
        called_read_bytes: bytes(&io, "rchar:"),
        device_write_bytes: count(used.ru_oublock).map(|n| n * 512),
        major_faults: count(used.ru_majflt),
        minor_faults: count(used.ru_minflt),
    };
    Some(Reaped { pid, status, signal, usage })
}

/// The fields of a `stat` of `/proc` behind the name, which may contain anything: from the third on, the state.
pub(super) fn fields(stat: &str) -> Vec<&str> {
    stat.rsplit_once(')').map_or("", |(_, t)| t).split_whitespace().collect()
}

/// A number of an `io` of `/proc`.
pub(super) fn bytes(io: &str, key: &str) -> Option<u64> {
    io.lines().find_map(|l| l.strip_prefix(key)?.trim().parse().ok())
}
