//! What this process may have: its limits are raised for its own work and given back to the command that it runs. And
//! what is short, told apart from what the kernel does not have.

use std::fmt;
use std::io;
use std::sync::OnceLock;

use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::getrlimit;
use rustix::process::setrlimit;

/// The limits that we change, or libbpf does (locked memory, before 5.11).
const OURS: [Resource; 3] = [Resource::Nofile, Resource::Memlock, Resource::Stack];

/// What they were.
static BEFORE: OnceLock<[Rlimit; 3]> = OnceLock::new();

/// The stack of the first thread that everything here was tried with: what systems give by default.
const STACK: u64 = 8 << 20;
/// With less, some command has run out of it: 128 KiB were too few for most.
const LEAST_STACK: u64 = 256 << 10;

/// What was done when a file had grown as far as it may (`SIGXFSZ`).
static GROWING: OnceLock<libc::sighandler_t> = OnceLock::new();

/// Lets this process have as many files open as its hard limit allows, since each program, table and hook is one, and a
/// stack of the usual size: the kernel heeds the limit each time that a stack grows.
///
/// # Errors
/// When the stack may not be as large as is needed.
pub fn raise() -> Result<(), Shortage> {
    // A file that may not grow is told as a full disk is, and does not kill.
    // SAFETY: no handler of ours.
    GROWING.get_or_init(|| unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) });
    let [files, _, stack] = BEFORE.get_or_init(|| OURS.map(getrlimit));
    // Should it fail, what comes later says what it lacked.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum });
    if stack.current.is_some_and(|bytes| bytes < STACK) {
        let wanted = |most: Option<u64>| Rlimit { current: most.map(|most| most.min(STACK)), maximum: most };
        // Who may not raise the hard limit takes what it allows.
        let _ = setrlimit(Resource::Stack, Rlimit { current: Some(STACK), ..*stack })
            .or_else(|_| setrlimit(Resource::Stack, wanted(stack.maximum.map(|most| most.max(STACK)))))
            .or_else(|_| setrlimit(Resource::Stack, wanted(stack.maximum)));
    }
    if most_stack() < LEAST_STACK { Err(Shortage::Stack) } else { Ok(()) }
}

/// Gives a child the limits that we were started with, between fork and exec: only system calls are made.
///
/// # Errors
/// When the kernel refuses.
pub fn restore() -> io::Result<()> {
    if let Some(before) = GROWING.get() {
        // SAFETY: what it was, and no handler: none outlives exec.
        unsafe { libc::signal(libc::SIGXFSZ, *before) };
    }
    for (which, limit) in OURS.into_iter().zip(BEFORE.get().into_iter().flatten()) {
        setrlimit(which, *limit)?;
    }
    Ok(())
}

/// How many files this process may have open at the most.
fn most_files() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// How many bytes the stack of the first thread may have now.
fn most_stack() -> u64 {
    getrlimit(Resource::Stack).current.unwrap_or(u64::MAX)
}

/// Something that there was not enough of. No answer of the kernel's to what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// Files of this process (`EMFILE`).
    Files,
    /// Files of the whole system (`ENFILE`).
    AllFiles,
    /// Memory of the kernel (`ENOMEM`).
    Memory,
    /// Room for the stack of this process.
    Stack,
    /// Threads of this user or this cgroup, or addresses for their stacks. The word for it (`EAGAIN`) has other meanings,
    /// too.
    Threads,
}

impl Shortage {
    /// Of an error of the system.
    #[must_use]
    pub fn new(error: &io::Error) -> Option<Self> {
        match error.raw_os_error()? {
            libc::EMFILE => Some(Self::Files),
            libc::ENFILE => Some(Self::AllFiles),
            libc::ENOMEM => Some(Self::Memory),
            _ => None,
        }
    }

    /// The one that the words of an error end in, as the standard library and libbpf-rs write them.
    #[must_use]
    pub fn in_words(why: &str) -> Option<Self> {
        let number = why.rsplit_once("(os error ")?.1.split(')').next()?;
        Self::new(&io::Error::from_raw_os_error(number.parse().ok()?))
    }

    /// Whether this process may have fewer files than any plan needs: from 90 to 110 by the kernel.
    #[must_use]
    pub fn of_files() -> Option<Self> {
        (most_files() < 160).then_some(Self::Files)
    }

    /// What to do about it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Files => {
                "raise the hard limit ('ulimit -Hn 1024' in a shell of root's, LimitNOFILE= of a systemd unit, \
                 --ulimit nofile= of a container)"
            }
            Self::AllFiles => "raise fs.file-max ('sysctl fs.file-max' shows it), or end what holds so many",
            Self::Memory => {
                "free memory or raise the limit of this cgroup (memory.max); smaller tables need less: --table-size, \
                 --file-table"
            }
            Self::Threads => {
                "allow some more: 'ulimit -u', pids.max of its cgroup, TasksMax= of a unit; or more room for their \
                 stacks: 'ulimit -v'"
            }
            Self::Stack => {
                "raise the hard limit ('ulimit -Hs unlimited' in a shell of root's, LimitSTACK= of a unit)"
            }
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files => {
                write!(f, "this process may have {} files open, and needs more", most_files())
            }
            Self::Threads => write!(f, "no more threads may be started here"),
            Self::Stack => {
                let (has, needs) = (most_stack() >> 10, LEAST_STACK >> 10);
                write!(f, "this process may have a stack of {has} KiB, and needs {needs}")
            }
            Self::AllFiles => write!(f, "the system has as many files open as it may"),
            Self::Memory => write!(f, "the kernel has no memory for it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_no_refusal() {
        for (number, shortage) in [
            (libc::EMFILE, Some(Shortage::Files)),
            (libc::ENFILE, Some(Shortage::AllFiles)),
            (libc::ENOMEM, Some(Shortage::Memory)),
            (libc::EPERM, None),
            (libc::ENOENT, None),
        ] {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(Shortage::new(&error), shortage);
            assert_eq!(Shortage::in_words(&format!("filemap:mm_filemap_get_pages: {error}")), shortage);
        }
        for why in ["", "taken away for a test", "(os error x)", "(os error 24"] {
            assert!(Shortage::in_words(why).is_none_or(|s| s == Shortage::Files), "{why}");
        }
    }
}
