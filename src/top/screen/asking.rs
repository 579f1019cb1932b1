//! What is asked about rows beside drawing: of this machine, or of the recording. Answers are events.

use std::sync::mpsc;
use std::sync::mpsc::Sender;

use super::events::Event;
use super::looking::Looking;
use super::threads::spawn;
use crate::cgroup::Held;
use crate::exit::Failure;
use crate::live::keeper::Id;
use crate::pivot::By;
use crate::pivot::Who;
use crate::top::details;
use crate::top::sampler;
use crate::top::sampler::Command;
use crate::top::tree;

/// Who answers.
pub(super) struct Asking {
    sender: Sender<Event>,
    commands: Sender<Command>,
    looking: Looking,
    /// It is a recording: this machine knows nothing of it.
    recorded: bool,
    lines: Sender<Vec<u32>>,
    families: Sender<Vec<u32>>,
    groups: Sender<Vec<String>>,
}

impl Asking {
    /// Begins the threads that look many processes up.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn begin(
        looking: Looking,
        sender: &Sender<Event>,
        commands: &Sender<Command>,
        recorded: bool,
    ) -> Result<Self, Failure> {
        let lines = answering("command lines", sender, |pids: Vec<u32>| {
            let look = |pid| (pid, details::command_line(pid));
            Event::CommandLines(pids.into_iter().map(look).collect())
        })?;
        let families = answering("parents", sender, |pids: Vec<u32>| Event::Parents(tree::parents(&pids)))?;
        let groups = answering("cgroups", sender, |paths: Vec<String>| {
            let held = Held::of(paths.iter().map(String::as_str));
            Event::Held(paths.into_iter().zip(held).collect())
        })?;
        let (sender, commands) = (sender.clone(), commands.clone());
        Ok(Self { sender, commands, looking, recorded, lines, families, groups })
    }

    /// The command line of a process.
    pub(super) fn command_line(&self, pid: u32) {
        if self.recorded {
            let _ = sampler::ask(&self.commands, Command::CommandLines(vec![pid]));
            return;
        }
        // One that hangs in the kernel holds up nothing but itself.
        let sender = self.sender.clone();
        let look = move || drop(sender.send(Event::CommandLine(pid, details::command_line(pid))));
        if spawn("command line", look).is_err() {
            log::warn!("no thread to look up a command line");
        }
    }

    /// The same for many.
    pub(super) fn command_lines(&self, pids: Vec<u32>) {
        if self.recorded {
            let _ = sampler::ask(&self.commands, Command::CommandLines(pids));
        } else {
            drop(self.lines.send(pids));
        }
    }

    /// The parents of processes.
    pub(super) fn parents(&self, pids: Vec<u32>) {
        drop(self.families.send(pids));
    }

    /// What cgroups hold of the cache.
    pub(super) fn held(&self, paths: Vec<String>) {
        drop(self.groups.send(paths));
    }

    /// What the cache has now of a row.
    pub(super) fn look(&self, by: By, id: &Id, who: &Who) {
        if !self.recorded {
            self.looking.ask(by, id, who);
        }
    }
}

/// A thread that answers one question after the other, as long as anybody asks.
fn answering<Q: Send + 'static>(
    name: &str,
    sender: &Sender<Event>,
    answer: impl Fn(Q) -> Event + Send + 'static,
) -> Result<Sender<Q>, Failure> {
    let (questions, asked) = mpsc::channel();
    let sender = sender.clone();
    spawn(name, move || {
        for question in asked {
            if sender.send(answer(question)).is_err() {
                return;
            }
        }
    })?;
    Ok(questions)
}
