//! How a command ends: exit codes, errors that say what to do about them, and signals.

use std::fmt::Display;
use std::io;
use std::io::Write;
use std::process::ExitCode;

use crate::limits::Shortage;
use crate::text::foreign;

/// The exit codes of every command of the package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// It could not be done; the remedy is printed with the error.
    Failed = 1,
    /// The command line asks for something that does not exist or does not go together.
    Usage = 2,
    /// What was to hold of the runs (`--assert`) did not, or is not known.
    Assertion = 3,
}

/// Why a command ended without doing what was requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub code: Code,
    /// What went wrong, in one line.
    pub message: String,
    /// What the user can do about it.
    pub remedy: Option<String>,
}

impl Failure {
    /// It could not be done (exit code 1).
    #[must_use]
    pub fn failed(message: impl Display) -> Self {
        Self { code: Code::Failed, message: message.to_string(), remedy: None }
    }

    /// Wrong usage (exit code 2).
    #[must_use]
    pub fn usage(message: impl Display) -> Self {
        Self { code: Code::Usage, message: message.to_string(), remedy: None }
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Prints the failure as `NAME: error: …` and `remedy: …`, and gives the exit code.
    pub fn report(&self, name: &str, err: &mut dyn Write) -> ExitCode {
        // Nothing is left to be done where even standard error cannot be written.
        let _ = writeln!(err, "{name}: error: {}", foreign::line(&self.message));
        if let Some(remedy) = &self.remedy {
            let _ = writeln!(err, "remedy: {}", foreign::line(remedy));
        }
        ExitCode::from(self.code as u8)
    }
}

/// What helps where a disk is full.
pub const MAKE_ROOM: &str = "make room on the disk, or send the output elsewhere";

/// Whether there was no room for what was to be written: on the disk, in a quota, or below a limit (`ulimit -f`).
#[must_use]
pub const fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

impl From<Shortage> for Failure {
    fn from(short: Shortage) -> Self {
        Self::failed(short).remedy(short.remedy())
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let of = |cause: &(dyn std::error::Error + 'static)| {
            cause.downcast_ref::<io::Error>().map(io::Error::kind)
        };
        let full = error.chain().filter_map(of).any(is_full);
        let failed = Self::failed(format!("{error:#}"));
        // How many files there may be is this process's own, whatever it was doing.
        let files = Shortage::in_words(&failed.message)
            .filter(|short| matches!(short, Shortage::Files | Shortage::AllFiles));
        match files {
            Some(short) => failed.remedy(short.remedy()),
            None if full => failed.remedy(MAKE_ROOM),
            None => failed,
        }
    }
}

/// What came of starting threads; what is needed for it where there may be no more.
///
/// # Errors
/// As the system had it.
pub fn started<T>(made: io::Result<T>) -> Result<T, Failure> {
    made.map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => Shortage::Threads.into(),
        _ => anyhow::Error::from(e).into(),
    })
}

/// Signals that would end us with a terminal in our hands, whatever they mean to others: all but those that the kernel sends for
/// a fault of the program itself, and those that nobody can catch. `abort` sends its signal a second time, and gets its end.
#[must_use]
pub fn signals() -> Vec<i32> {
    let known = [
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGABRT,
        libc::SIGTRAP,
        libc::SIGSYS,
        libc::SIGXCPU,
        libc::SIGIO,
        libc::SIGPWR,
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
        libc::SIGSTKFLT,
    ];
    known.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use anyhow::Context as _;

    use super::*;

    fn printed(failure: &Failure) -> String {
        let mut err = Vec::new();
        failure.report("cachestat", &mut err);
        String::from_utf8(err).unwrap()
    }

    #[test]
    fn an_error_carries_its_remedy() {
        let failure = Failure::failed("cannot load the kernel programs").remedy("run it as root");
        assert_eq!(
            printed(&failure),
            "cachestat: error: cannot load the kernel programs\nremedy: run it as root\n"
        );
        assert_eq!(printed(&Failure::usage("no")), "cachestat: error: no\n");
    }

    #[test]
    fn the_whole_chain_of_an_error_is_printed_in_one_line() {
        let error = Err::<(), _>(std::io::Error::from_raw_os_error(28)).context("cannot write").unwrap_err();
        assert_eq!(Failure::from(error).message, "cannot write: No space left on device (os error 28)");
    }

    #[test]
    fn too_few_files_are_no_riddle() {
        for (number, remedy) in [(24, "raise the hard limit"), (23, "raise fs.file-max"), (27, MAKE_ROOM)] {
            let error = std::io::Error::from_raw_os_error(number);
            let failure = Failure::from(Err::<(), _>(error).context("cannot read the counters").unwrap_err());
            assert!(failure.remedy.as_deref().unwrap().starts_with(remedy), "{failure:?}");
        }
        let error = std::io::Error::from_raw_os_error(5);
        assert_eq!(Failure::from(anyhow::Error::from(error)).remedy, None);
    }

    #[test]
    fn whatever_can_end_us_and_is_no_fault_gives_the_terminal_back() {
        let others = [
            // Faults, and what cannot be caught.
            [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGKILL, libc::SIGSTOP],
            // What stops us, and what ends nobody by itself.
            [libc::SIGTSTP, libc::SIGCONT, libc::SIGTTIN, libc::SIGTTOU, libc::SIGCHLD, libc::SIGWINCH],
            // Errors of writing say it themselves.
            [libc::SIGURG, libc::SIGPIPE, libc::SIGXFSZ, 32, 33, 0],
        ];
        let ends = signals();
        for signal in 1..=libc::SIGRTMAX() {
            assert!(ends.contains(&signal) != others.iter().flatten().any(|s| *s == signal), "{signal}");
        }
    }
}
