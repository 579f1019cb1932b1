//! Commands that are run on the terminal while the screen is away.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use ratatui::crossterm::event;
use rustix::process::Pid;
use rustix::process::Signal;
use signal_hook::consts::SIGCONT;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGQUIT;
use signal_hook::consts::SIGTERM;
use signal_hook::consts::SIGTSTP;

use super::events::Event;
use super::events::Events;
use crate::exit::Failure;
use crate::top::links;

/// What runs: Ctrl-C is for it, not for us.
static CHILD: Mutex<Option<Pid>> = Mutex::new(None);

/// The program of this package beside the one that runs, or as the shell finds it.
pub(super) fn beside(name: &OsString) -> PathBuf {
    let own = std::env::current_exe().ok();
    let there = own.and_then(|own| Some(own.parent()?.join(name))).filter(|path| path.is_file());
    there.unwrap_or_else(|| name.into())
}

/// Runs a command to its end and says how to come back.
pub(super) fn run(words: &[OsString]) {
    let Some((name, rest)) = words.split_first() else { return };
    // A terminal that is gone is noticed by who draws.
    let say = |text: &str| drop(writeln!(io::stdout(), "{text}"));
    say(&format!("$ {}", links::printed(words)));
    // In a group of its own: what the keyboard sends comes to us, and is passed on. It has no use for the keyboard.
    let child = Command::new(beside(name)).args(rest).stdin(Stdio::null()).process_group(0).spawn();
    let end = child.and_then(|mut child| {
        set(Pid::from_raw(child.id().try_into().unwrap_or(0)));
        let end = child.wait();
        set(None);
        end
    });
    match end {
        Ok(status) if status.success() => say("-- Enter: back"),
        Ok(status) => say(&format!("-- {status}; Enter: back")),
        Err(e) => say(&format!("-- it cannot be run: {e}; Enter: back")),
    }
}

/// Waits for a key after a command has run; `false` where the end comes instead. Everything else is for later.
pub(super) fn key_after(events: &mut dyn Events, later: &mut VecDeque<Event>) -> Result<bool, Failure> {
    let mut wait = Some(Duration::ZERO);
    loop {
        match events.next(wait)? {
            // What was typed until now was not meant for this.
            None => wait = None,
            Some(Event::Input(event::Event::Key(_))) if wait.is_none() => return Ok(true),
            Some(Event::Input(_) | Event::Signal(SIGTSTP | SIGCONT)) => {}
            Some(Event::Signal(_) | Event::Closed) => return Ok(false),
            Some(event) => later.push_back(event),
        }
    }
}

fn set(child: Option<Pid>) {
    *CHILD.lock().unwrap_or_else(PoisonError::into_inner) = child;
}

/// Passes a signal on to what runs. Returns whether that is all that it was for.
pub(super) fn pass(signal: i32) -> bool {
    let child = *CHILD.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(child) = child else { return false };
    let how = match signal {
        SIGINT => Signal::INT,
        SIGQUIT => Signal::QUIT,
        SIGTERM => Signal::TERM,
        // Whatever else ends us.
        _ => Signal::HUP,
    };
    let _ = rustix::process::kill_process(child, how);
    matches!(signal, SIGINT | SIGQUIT)
}
