//! A process that changes `read_ahead_kb` and puts it back, whatever becomes of whoever asked for it.
//!
//! It is forked before anything else is begun, belongs to no group that a terminal or `kill` reaches with ours, and has
//! nothing open but its end of a socket. When the other end closes, be it that we were killed, what was there before is
//! written back. Two that try would take each other's value for the one before, and empty each other's cache: a file
//! that only root can open is locked (`flock`) from before the first run until the setting is back. Where there is no
//! place for one, the setting itself is, which whoever may read it can do as well. It is written back only if it still
//! is what was set.

use std::fs;
use std::fs::File;
use std::io;
use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use std::time::Instant;

use crate::privilege::Capability;

/// The end that asks.
#[derive(Debug)]
pub struct Keeper {
    stream: BufReader<UnixStream>,
    /// Held by the process that keeps as well, which may outlive us.
    _lock: Option<File>,
}

/// What only one may have, and only root can open.
const LOCK: &str = "/run/cachestat-try.lock";
/// One that has just put its setting back is about to go.
const PATIENCE: Duration = Duration::from_secs(1);

/// Locks it; `None`: there is no place for it here.
fn lock() -> io::Result<Option<File>> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let Ok(file) = options.open(LOCK) else { return Ok(None) };
    let private = file.metadata().is_ok_and(|m| m.is_file() && m.uid() == 0 && m.mode() & 0o077 == 0);
    if !private {
        return Ok(None);
    }
    let until = Instant::now() + PATIENCE;
    // SAFETY: the descriptor is valid for the call.
    while unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        let why = io::Error::last_os_error();
        if why.kind() != io::ErrorKind::WouldBlock {
            return Ok(None);
        }
        if Instant::now() >= until {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another --try is under way"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(Some(file))
}

/// What became of a setting in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It is what it was.
    Back,
    /// Somebody else has changed it meanwhile: it was left as it is.
    Left(String),
    /// It could not be written back.
    Failed(String),
}

/// A setting that is held.
struct Held {
    path: String,
    file: File,
    before: String,
    ours: String,
}

fn read(path: &str) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

impl Held {
    /// Sets it; nothing is changed where that fails. `locked`: nobody else does.
    fn set(path: &str, kb: &str, locked: bool) -> Result<Self, String> {
        let said = |what: &str, e: io::Error| format!("cannot {what} {path}: {e}");
        let file = File::options().read(true).write(true).open(path).map_err(|e| said("open", e))?;
        // SAFETY: the descriptor is valid for the call.
        // Also where the other lock is held: one that has no place for that sees this one.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 && !locked {
            return Err(match io::Error::last_os_error() {
                e if e.kind() == io::ErrorKind::WouldBlock => {
                    format!("{path} is held by somebody else, such as another --try")
                }
                e => said("lock", e),
            });
        }
        let before = read(path).map_err(|e| said("read", e))?;
        let held = Self { path: path.into(), file, before, ours: kb.into() };
        held.file.write_all_at(kb.as_bytes(), 0).map_err(|e| said("write", e))?;
        match read(path) {
            Ok(now) if now == kb => Ok(held),
            now => {
                let _ = held.file.write_all_at(held.before.as_bytes(), 0);
                Err(format!("{path} became {} and not {kb}", now.unwrap_or_else(|e| e.to_string())))
            }
        }
    }

    fn restore(self) -> Ended {
        match read(&self.path) {
            Ok(now) if now != self.ours => Ended::Left(now),
            Err(e) => Ended::Failed(e.to_string()),
            Ok(_) => match self.file.write_all_at(self.before.as_bytes(), 0) {
                Ok(()) => Ended::Back,
                Err(e) => Ended::Failed(e.to_string()),
            },
        }
    }
}

impl Keeper {
    /// Starts the process. To be called while there is one thread only.
    ///
    /// # Errors
    /// When it cannot be made, or another one is under way (`ResourceBusy`).
    pub fn start() -> io::Result<Self> {
        let lock = lock()?;
        let (ours, its) = UnixStream::pair()?;
        // SAFETY: no other thread has locks that the child would find taken.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(ours);
                // SAFETY: takes nothing. Forked again, so that nobody has to wait for it, and that it leads no session.
                unsafe {
                    libc::setsid();
                    if libc::fork() != 0 {
                        libc::_exit(0);
                    }
                }
                alone(&its, lock.as_ref());
                serve(its, lock.is_some());
                // SAFETY: takes a number.
                unsafe { libc::_exit(0) }
            }
            child => {
                let mut status = 0;
                // SAFETY: a child of ours, and a number of ours to fill.
                while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0
                    && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
                {}
                Ok(Self { stream: BufReader::new(ours), _lock: lock })
            }
        }
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => Err("the process that keeps the setting has gone".into()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(e) => Err(e.to_string()),
        }
    }

    fn ask(&mut self, what: &str) -> Result<(), String> {
        self.stream.get_mut().write_all(what.as_bytes()).map_err(|e| e.to_string())
    }

    /// Sets a file of sysfs: what it was before.
    ///
    /// # Errors
    /// Why not; then it is what it was.
    pub fn set(&mut self, path: &str, kb: u64) -> Result<u64, String> {
        self.ask(&format!("set {kb} {path}\n"))?;
        let line = self.line()?;
        match line.split_once(' ') {
            Some(("was", before)) => before.parse().map_err(|_| format!("{path} holds no number: {before}")),
            Some(("error", why)) => Err(why.into()),
            _ => Err(line),
        }
    }

    /// Puts all settings back: each with what became of it.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn restore(&mut self) -> Result<Vec<(String, Ended)>, String> {
        self.ask("restore\n")?;
        let mut all = Vec::new();
        loop {
            let line = self.line()?;
            let mut words = line.splitn(3, ' ');
            let (what, path, rest) = (words.next(), words.next(), words.next().unwrap_or_default());
            all.push((
                path.unwrap_or_default().to_owned(),
                match what {
                    Some("done") => return Ok(all),
                    Some("back") => Ended::Back,
                    Some("left") => Ended::Left(rest.into()),
                    _ => Ended::Failed(rest.into()),
                },
            ));
        }
    }
}

/// Out of everybody's way: no terminal, no signals but those that nobody can refuse, nothing open, no privilege but to write
/// a file that root may write. `lock`: stays open, in the place of standard input.
fn alone(its: &UnixStream, lock: Option<&File>) {
    // A descriptor is never negative.
    let fd = u32::try_from(its.as_raw_fd()).unwrap_or(0);
    // SAFETY: nothing that is closed is used after it: the standard streams become /dev/null, the socket stays.
    unsafe {
        // Of SIGKILL, SIGSTOP and those that libc keeps for itself it is refused. Faults of its own are not to be ignored.
        for signal in 1..=libc::SIGRTMAX() {
            let own = [
                libc::SIGSEGV,
                libc::SIGBUS,
                libc::SIGILL,
                libc::SIGFPE,
                libc::SIGABRT,
                libc::SIGTRAP,
                libc::SIGSYS,
            ];
            if !own.contains(&signal) && signal != libc::SIGCHLD {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
        libc::chdir(c"/".as_ptr());
        libc::prctl(libc::PR_SET_NAME, c"cachestat-keep".as_ptr());
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        libc::dup2(lock.map_or(null, |lock| lock.as_raw_fd()), 0);
        for stream in 1..3 {
            libc::dup2(null, stream);
        }
        if fd > 3 {
            libc::syscall(libc::SYS_close_range, 3_u32, fd - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, fd.max(2) + 1, u32::MAX, 0);
    }
    let _ = crate::privilege::keep(&[Capability::DacOverride]);
}

/// Does what the other end asks for, until it is gone. `locked`: nobody else does so.
fn serve(stream: UnixStream, locked: bool) {
    let mut held: Vec<Held> = Vec::new();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while matches!(stream.read_line(&mut line), Ok(n) if n > 0) {
        let mut answer = String::new();
        match line.trim_end().splitn(3, ' ').collect::<Vec<_>>().as_slice() {
            ["set", kb, path] => match Held::set(path, kb, locked) {
                Ok(one) => {
                    answer = format!("was {}\n", one.before);
                    held.push(one);
                }
                Err(why) => answer = format!("error {}\n", why.replace('\n', " ")),
            },
            _ => {
                for one in held.drain(..) {
                    let path = one.path.clone();
                    answer.push_str(&match one.restore() {
                        Ended::Back => format!("back {path}\n"),
                        Ended::Left(now) => format!("left {path} {now}\n"),
                        Ended::Failed(why) => format!("failed {path} {}\n", why.replace('\n', " ")),
                    });
                }
                answer.push_str("done\n");
            }
        }
        line.clear();
        if stream.get_mut().write_all(answer.as_bytes()).is_err() {
            break;
        }
    }
    for one in held {
        one.restore();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("read_ahead_kb").display().to_string();
        fs::write(&path, text).unwrap();
        (dir, path)
    }

    /// The serving end in a thread: what a fork of a test would do, without the fork.
    fn keeper() -> (Keeper, std::thread::JoinHandle<()>) {
        let (ours, its) = UnixStream::pair().unwrap();
        (Keeper { stream: BufReader::new(ours), _lock: None }, std::thread::spawn(move || serve(its, false)))
    }

    #[test]
    fn it_is_put_back_when_asked_and_when_the_other_end_goes() {
        let (_dir, path) = file("128\n");
        let (mut one, thread) = keeper();
        assert_eq!(one.set(&path, 512), Ok(128));
        assert_eq!(read(&path).unwrap(), "512");
        assert_eq!(one.restore(), Ok(vec![(path.clone(), Ended::Back)]));
        assert_eq!(read(&path).unwrap(), "128");
        assert_eq!(one.set(&path, 256), Ok(128));
        drop(one);
        thread.join().unwrap();
        assert_eq!(read(&path).unwrap(), "128");
    }

    #[test]
    fn what_another_holds_is_refused_and_what_another_changed_is_left() {
        let (_dir, path) = file("128\n");
        let ((mut one, _), (mut two, _)) = (keeper(), keeper());
        assert_eq!(one.set(&path, 512), Ok(128));
        assert!(two.set(&path, 256).unwrap_err().contains("is held by somebody else"));
        assert_eq!(read(&path).unwrap(), "512");
        fs::write(&path, "64\n").unwrap();
        assert_eq!(one.restore(), Ok(vec![(path.clone(), Ended::Left("64".into()))]));
        assert_eq!(read(&path).unwrap(), "64");
        // It is free again, as soon as no child of another test has the lock of its parent any more: from fork to exec.
        let began = std::time::Instant::now();
        let mut set = two.set(&path, 32);
        while set.as_ref().is_err_and(|e| e.contains("is held by")) && began.elapsed().as_secs() < 20 {
            std::thread::sleep(std::time::Duration::from_millis(10));
            set = two.set(&path, 32);
        }
        assert_eq!(set, Ok(64));
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let (dir, _) = file("");
        let (mut one, _) = keeper();
        let why = one.set(&dir.path().join("none").display().to_string(), 4).unwrap_err();
        assert!(why.starts_with("cannot open"), "{why}");
        assert_eq!(one.restore(), Ok(vec![]));
    }
}
