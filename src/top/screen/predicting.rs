//! What if: asked of `cachestat` beside the screen, for as long as the details of a cgroup are open and ask for it. A
//! program of its own: who draws has given back what it takes to load kernel programs, and they go with it.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::mpsc::Sender;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Pid;
use rustix::process::Signal;
use serde::Deserialize;

use super::events::Event;
use super::running;
use super::threads::spawn;
use crate::live::keeper::Id;
use crate::top::links::WhatIf;
use crate::whatif::Prediction;

/// One that ends by itself sooner than that is not run again.
const SHORTEST: Duration = Duration::from_secs(60);
/// Of what it says of a failure, so many bytes are read.
const ENOUGH: u64 = 4096;

/// A program that watches.
#[derive(Default)]
struct Run(Mutex<State>);

#[derive(Default)]
struct State {
    child: Option<Child>,
    /// Nobody wants to know any more.
    over: bool,
}

impl Run {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks it to end. Who reads what it says waits for that.
    fn end(&self) {
        let mut state = self.state();
        state.over = true;
        let pid = state.child.as_ref().and_then(|child| Pid::from_raw(child.id().try_into().ok()?));
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
    }
}

/// What is being watched, which is one cgroup at most.
pub(super) struct Predicting {
    sender: Sender<Event>,
    running: RefCell<Option<Arc<Run>>>,
}

impl Predicting {
    pub(super) const fn new(sender: Sender<Event>) -> Self {
        Self { sender, running: RefCell::new(None) }
    }

    /// From now on this is asked, of the row with this id, and what was asked before is not; `None`: nothing.
    pub(super) fn ask(&self, question: Option<(Id, Vec<OsString>)>) {
        if let Some(run) = self.running.take() {
            run.end();
        }
        let Some((id, words)) = question else { return };
        let run = Arc::<Run>::default();
        let (own, sender) = (run.clone(), self.sender.clone());
        let failed = id.clone();
        if let Err(e) = spawn("what if", move || watch(&own, &id, &words, &sender)) {
            let why = WhatIf::Failed(format!("it {}", e.message));
            let _ = self.sender.send(Event::WhatIf(failed, Box::new(why)));
        }
        self.running.replace(Some(run));
    }
}

impl Drop for Predicting {
    fn drop(&mut self) {
        self.ask(None);
    }
}

/// Runs it until nobody asks any more: it is asked for a time, and begins anew when that is over.
fn watch(run: &Run, id: &Id, words: &[OsString], sender: &Sender<Event>) {
    loop {
        let began = Instant::now();
        if !watch_once(run, id, words, sender) {
            return;
        }
        if began.elapsed() < SHORTEST {
            let why = "it has ended before its time".into();
            let _ = sender.send(Event::WhatIf(id.clone(), Box::new(WhatIf::Failed(why))));
            return;
        }
    }
}

/// Runs it to its end, and passes on what it says. Whether it may begin anew.
fn watch_once(run: &Run, id: &Id, words: &[OsString], sender: &Sender<Event>) -> bool {
    let tell = |told| sender.send(Event::WhatIf(id.clone(), Box::new(told))).is_ok();
    let (out, err) = {
        let mut state = run.state();
        if state.over {
            return false;
        }
        match start(words) {
            Ok(mut child) => {
                let pipes = (child.stdout.take(), child.stderr.take());
                state.child = Some(child);
                pipes
            }
            Err(e) => {
                drop(state);
                tell(WhatIf::Failed(format!("it cannot be run: {e}")));
                return false;
            }
        }
    };
    for line in out.into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok)) {
        if let Some(told) = read(&line) {
            if run.state().over || !tell(WhatIf::Told(Box::new(told))) {
                run.end();
                break;
            }
        }
    }
    let mut said = String::new();
    let _ = err.map(|err| err.take(ENOUGH).read_to_string(&mut said));
    // Whoever ends it needs its number, which is its own until it was waited for.
    let end = loop {
        let mut state = run.state();
        let end = state.child.as_mut().map(Child::try_wait);
        match end {
            Some(Ok(None)) => {}
            other => {
                state.child = None;
                break other;
            }
        }
        drop(state);
        std::thread::sleep(Duration::from_millis(20));
    };
    let failed = !matches!(end, Some(Ok(Some(status))) if status.success());
    if run.state().over {
        return false;
    }
    if failed {
        let why = said.lines().find(|l| !l.trim().is_empty()).unwrap_or("it has ended before its time");
        tell(WhatIf::Failed(why.trim_start_matches("cachestat: ").to_owned()));
    }
    !failed
}

/// In a group of its own: what the keyboard sends is not for it.
fn start(words: &[OsString]) -> std::io::Result<Child> {
    let (name, rest) = words.split_first().ok_or(std::io::ErrorKind::NotFound)?;
    let mut command = Command::new(running::beside(name));
    command.args(rest).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // What a log would say nobody reads, until it is too much for a pipe.
    command.env_remove("RUST_LOG").process_group(0);
    // Its programs are not to stay when the one who asked is killed. It is the child of the thread that waits for it.
    let dies = || Ok(rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?);
    // SAFETY: a system call, and nothing else.
    unsafe { command.pre_exec(dies) };
    command.spawn()
}

/// A line of what it says.
fn read(line: &str) -> Option<Prediction> {
    #[derive(Deserialize)]
    struct Line {
        what_if: Prediction,
    }
    serde_json::from_str(line).ok().map(|line: Line| line.what_if)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc;

    use super::*;

    fn ask(script: &str) -> (Predicting, mpsc::Receiver<Event>) {
        let (sender, events) = mpsc::channel();
        let predicting = Predicting::new(sender);
        predicting.ask(Some((Id::Other, ["/bin/sh", "-c", script].map(OsString::from).into())));
        (predicting, events)
    }

    fn next(events: &mpsc::Receiver<Event>) -> WhatIf {
        match events.recv_timeout(Duration::from_secs(20)).unwrap() {
            Event::WhatIf(Id::Other, told) => *told,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_are_passed_on_and_a_failure_is_told() {
        let script = r#"echo '{"what_if":{"seconds":2.0,"reason":"not enough seen yet"}}'; echo nonsense
            echo 'cachestat: it is forbidden' >&2; exit 1"#;
        let (_predicting, events) = ask(script);
        let WhatIf::Told(told) = next(&events) else { panic!() };
        assert_eq!((told.seconds, told.reason.as_deref()), (2.0, Some("not enough seen yet")));
        assert_eq!(next(&events), WhatIf::Failed("it is forbidden".into()));
    }

    #[test]
    fn it_ends_when_nobody_asks_any_more() {
        let (predicting, events) = ask(r#"echo "{\"what_if\":{\"seconds\":$$}}"; exec sleep 1000"#);
        let WhatIf::Told(told) = next(&events) else { panic!() };
        let process = std::path::PathBuf::from(format!("/proc/{}", told.seconds));
        assert!(process.exists());
        drop(predicting);
        // Nothing is said of an end that was asked for; and it is waited for.
        assert!(events.recv_timeout(Duration::from_secs(20)).is_err());
        assert!(!process.exists());
    }
}
