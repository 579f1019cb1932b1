//! What can happen, where it comes from, and what the loop does in the world beside drawing.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::Sender;
use std::time::Duration;

use ratatui::crossterm::event;

use crate::cgroup::Held;
use crate::exit::Failure;
use crate::live::keeper::Id;
use crate::pivot::By;
use crate::pivot::Who;
use crate::text::foreign::Foreign;
use crate::top::links::WhatIf;
use crate::top::now::Now;
use crate::top::sampler::Command;
use crate::top::sampler::Report;
use crate::top::scene::Scene;
use crate::top::settings::Settings;
use crate::top::tree::Parent;

/// All that can happen.
#[derive(Debug)]
pub enum Event {
    /// Counting has begun.
    Began(Box<(Scene, Settings)>),
    /// From the thread that samples.
    Report(Report),
    /// The command line of a process.
    CommandLine(u32, Option<Foreign>),
    /// Command lines of the processes on the screen.
    CommandLines(Vec<(u32, Option<Foreign>)>),
    /// The parents of processes.
    Parents(HashMap<u32, Parent>),
    /// What cgroups hold of the cache.
    Held(Vec<(String, Held)>),
    /// What the cache has now of a row.
    Now(By, Id, Box<Now>),
    /// What a cgroup would miss with more memory.
    WhatIf(Id, Box<WhatIf>),
    /// From the terminal.
    Input(event::Event),
    /// A signal.
    Signal(i32),
    /// The terminal is gone.
    Closed,
}

/// Where events come from.
pub trait Events {
    /// The next one; `None` when the time is over.
    ///
    /// # Errors
    /// When no more can come.
    fn next(&mut self, timeout: Option<Duration>) -> Result<Option<Event>, Failure>;
}

impl Events for Receiver<Event> {
    fn next(&mut self, timeout: Option<Duration>) -> Result<Option<Event>, Failure> {
        let over = || Failure::failed("nothing can happen any more");
        match timeout {
            None => self.recv().map(Some).map_err(|_| over()),
            Some(timeout) => match self.recv_timeout(timeout) {
                Ok(event) => Ok(Some(event)),
                Err(RecvTimeoutError::Timeout) => Ok(None),
                Err(RecvTimeoutError::Disconnected) => Err(over()),
            },
        }
    }
}

/// What the loop does in the world beside drawing.
pub struct Hands<'a> {
    /// To the thread that samples.
    pub commands: &'a Sender<Command>,
    /// Asks for the command line of a process; the answer is an event.
    pub command_line: &'a dyn Fn(u32),
    /// The same for many.
    pub command_lines: &'a dyn Fn(Vec<u32>),
    /// Asks for the parents of processes.
    pub parents: &'a dyn Fn(Vec<u32>),
    /// Asks what cgroups hold of the cache.
    pub held: &'a dyn Fn(Vec<String>),
    /// Asks what the cache has now of a row; the answer is an event.
    pub look: &'a dyn Fn(By, &Id, &Who),
    /// Asks this about a row from now on, again and again, or nothing; answers are events.
    pub predict: &'a dyn Fn(Option<(Id, Vec<OsString>)>),
    /// Stops the process until somebody lets it go on.
    pub suspend: &'a dyn Fn(),
    /// Runs a command on the terminal that was given back, and says at its end which key comes back.
    pub run: &'a dyn Fn(&[OsString]),
    /// Ends after this many intervals.
    pub iterations: Option<u64>,
}
