//! `--then COMMAND`: what is run when a condition of `--when` holds.
//!
//! A thread of its own runs it, so that no sample waits: one at a time, and for so long at most. It gets the moment as JSON on
//! its standard input, which is a file in memory: a command that does not read it blocks nobody. It runs as the user that
//! `cachetopd` runs as, without any capability.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::io::Seek as _;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use super::sums::Ran;
use super::sums::Sums;
use crate::privilege;

/// After so long it is killed, with all that it has started.
pub const LONGEST: Duration = Duration::from_secs(60);
/// How often it is looked at whether it has ended.
const STEP: Duration = Duration::from_millis(50);

/// Runs a command at each moment.
pub struct Hook {
    moments: Option<Sender<(usize, Vec<u8>)>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

/// What both threads look at.
struct Shared {
    sums: Arc<Mutex<Sums>>,
    /// Conditions whose moment waits for a command, or has one running.
    busy: Mutex<HashSet<usize>>,
    /// No other one will be run.
    over: AtomicBool,
}

impl Hook {
    /// Begins the thread that runs this command, which is given to `sh -c`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new(command: &str, sums: Arc<Mutex<Sums>>, say: fn(&str)) -> io::Result<Self> {
        Self::with(command, sums, say, LONGEST)
    }

    pub(super) fn with(
        command: &str,
        sums: Arc<Mutex<Sums>>,
        say: fn(&str),
        longest: Duration,
    ) -> io::Result<Self> {
        let (moments, receiver) = channel();
        let shared = Arc::new(Shared { sums, busy: Mutex::default(), over: AtomicBool::new(false) });
        shared.count(|_| ());
        let worker = Worker {
            command: command.to_owned(),
            moments: receiver,
            shared: Arc::clone(&shared),
            longest,
            say,
        };
        let thread = std::thread::Builder::new().name("then".into()).spawn(move || worker.work())?;
        Ok(Self { moments: Some(moments), thread: Some(thread), shared })
    }

    /// Runs the command with this on its standard input, after those that wait already. False: the moment before of the same
    /// condition is still among them, and this one is left out.
    pub fn run(&self, condition: usize, json: Vec<u8>) -> bool {
        let free = self.shared.busy().insert(condition);
        let moments = self.moments.as_ref().filter(|_| free);
        let sent = moments.is_some_and(|moments| moments.send((condition, json)).is_ok());
        if !sent {
            self.shared.count(|ran| ran.skipped += 1);
        }
        sent
    }
}

impl Drop for Hook {
    /// A command that is still running is killed.
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.moments = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn busy(&self) -> MutexGuard<'_, HashSet<usize>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, change: impl FnOnce(&mut Ran)) {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        change(sums.commands.get_or_insert_default());
    }
}

struct Worker {
    command: String,
    moments: Receiver<(usize, Vec<u8>)>,
    shared: Arc<Shared>,
    longest: Duration,
    say: fn(&str),
}

impl Worker {
    fn work(self) {
        // What this thread starts has no more than it.
        if let Err(e) = privilege::keep(&[]) {
            (self.say)(&format!("error: '--then' is not run: cannot give privileges back: {e}"));
            return;
        }
        while let Ok((condition, json)) = self.moments.recv() {
            match start(&self.command, &json) {
                Ok(child) => match self.wait(child) {
                    Some(Ok(status)) if status.success() => self.shared.count(|ran| ran.ok += 1),
                    Some(Ok(status)) => self.failed(&format!("ended with {status}")),
                    Some(Err(e)) => self.failed(&format!("cannot be waited for: {e}")),
                    None => {
                        self.shared.count(|ran| ran.killed += 1);
                        let why = match self.is_over() {
                            true => "it was still running when cachetopd was to end".to_owned(),
                            false => format!("it did not end in {} s", self.longest.as_secs()),
                        };
                        (self.say)(&format!("warning: the command of '--then' was killed: {why}"));
                    }
                },
                Err(e) => self.failed(&format!("cannot be started: {e}")),
            }
            self.shared.busy().remove(&condition);
            if self.is_over() {
                return;
            }
        }
    }

    /// Whether nobody waits for commands any more.
    fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::SeqCst)
    }

    fn failed(&self, why: &str) {
        self.shared.count(|ran| ran.failed += 1);
        (self.say)(&format!("warning: the command of '--then' {why}"));
    }

    /// Until it ends; `None`: it was killed, with its process group.
    fn wait(&self, mut child: Child) -> Option<io::Result<ExitStatus>> {
        let begun = Instant::now();
        loop {
            match child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => return Some(Ok(status)),
                Err(e) => return Some(Err(e)),
            }
            if self.is_over() || begun.elapsed() >= self.longest {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
                    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                }
                let _ = child.wait();
                return None;
            }
            std::thread::sleep(STEP);
        }
    }
}

fn start(command: &str, json: &[u8]) -> io::Result<Child> {
    let mut input =
        File::from(rustix::fs::memfd_create("cachetopd moment", rustix::fs::MemfdFlags::CLOEXEC)?);
    input.write_all(json)?;
    input.rewind()?;
    // What it prints goes where our own messages go.
    let output = std::os::fd::AsFd::as_fd(&io::stderr()).try_clone_to_owned()?;
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(Stdio::from(input)).stdout(output).process_group(0);
    // SAFETY: system calls only.
    unsafe { shell.pre_exec(crate::limits::restore) };
    shell.spawn()
}
