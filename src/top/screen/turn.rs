//! The loop: events in, frames out.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;
use std::time::Instant;

use ratatui::crossterm::event;
use ratatui::crossterm::event::MouseEventKind;
use signal_hook::consts::SIGCONT;
use signal_hook::consts::SIGTSTP;

use super::events::Event;
use super::events::Events;
use super::events::Hands;
use super::running;
use crate::exit::Failure;
use crate::live::keeper::Id;
use crate::live::snapshot::Snapshot;
use crate::record::writer::Writer;
use crate::text::foreign::Foreign;
use crate::top::app::App;
use crate::top::app::Effect;
use crate::top::config;
use crate::top::links;
use crate::top::sampler;
use crate::top::sampler::Command;
use crate::top::sampler::Report;
use crate::top::surface::Surface;

/// Time between two frames at least: 30 a second are enough for any eye, and a storm of events costs no more.
const FRAME: Duration = Duration::from_millis(33);

/// Whether it goes on, and what is to be done then.
type Then<T> = Result<ControlFlow<(), T>, Failure>;

/// Runs until somebody ends it.
///
/// # Errors
/// When samples cannot be read or the screen cannot be written.
pub fn turn(
    app: &mut App,
    events: &mut dyn Events,
    surface: &mut dyn Surface,
    hands: &Hands<'_>,
) -> Result<(), Failure> {
    surface.draw(app).map_err(unwritten)?;
    let mut turn = Turn {
        app,
        events,
        surface,
        hands,
        intervals: 0,
        drawn: Instant::now(),
        dirty: false,
        predicted: None,
        later: VecDeque::new(),
    };
    while turn.once()?.is_continue() {}
    Ok(())
}

fn unwritten(e: io::Error) -> Failure {
    Failure::failed(format!("cannot write to the terminal: {e}"))
}

struct Turn<'a> {
    app: &'a mut App,
    events: &'a mut dyn Events,
    surface: &'a mut dyn Surface,
    hands: &'a Hands<'a>,
    /// How many there were.
    intervals: u64,
    /// When the last frame was.
    drawn: Instant,
    /// What it shows is not what there is.
    dirty: bool,
    /// Of which row is asked what if.
    predicted: Option<Id>,
    /// What came while something else had the terminal.
    later: VecDeque<Event>,
}

impl Turn<'_> {
    /// From an event to the frame that shows it.
    fn once(&mut self) -> Then<()> {
        let timeout = self.dirty.then(|| FRAME.saturating_sub(self.drawn.elapsed()));
        let event = match self.later.pop_front() {
            Some(event) => Some(event),
            None => self.events.next(timeout)?,
        };
        let Some(event) = event else {
            self.draw()?;
            return Ok(ControlFlow::Continue(()));
        };
        let effects = match self.take(event)? {
            ControlFlow::Continue(effects) => effects,
            ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
        };
        for effect in effects {
            if self.carry_out(effect)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.predict();
        if self.dirty && self.drawn.elapsed() >= FRAME {
            self.draw()?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A frame, and then the questions that it raises.
    fn draw(&mut self) -> Result<(), Failure> {
        self.surface.draw(self.app).map_err(unwritten)?;
        (self.drawn, self.dirty) = (Instant::now(), false);
        ask(self.app, self.hands);
        Ok(())
    }

    /// Changes the state as the event has it. Returns what it has for effects outside.
    fn take(&mut self, event: Event) -> Then<Vec<Effect>> {
        let mut effects = Vec::new();
        match event {
            Event::Began(_) => {}
            Event::Report(report) => {
                if self.report(report)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Event::CommandLine(pid, line) => {
                self.app.command_line(pid, line);
                self.dirty = true;
            }
            Event::CommandLines(lines) => self.dirty |= self.app.command_lines(lines),
            Event::Parents(parents) => self.dirty |= self.app.parents(parents),
            Event::Held(held) => self.dirty |= self.app.held(held),
            Event::Now(by, id, now) => self.dirty |= self.app.looked_at(by, &id, *now),
            Event::WhatIf(id, told) => self.dirty |= self.app.predicted(&id, *told),
            // Some terminals report it though nobody requested it.
            Event::Input(input) if is_motion(&input) => {}
            Event::Input(input) => {
                effects = self.app.input(&input);
                self.dirty = true;
            }
            Event::Signal(SIGTSTP) => effects.push(Effect::Suspend),
            Event::Signal(SIGCONT) => effects.push(Effect::Redraw),
            Event::Signal(_) | Event::Closed => return Ok(ControlFlow::Break(())),
        }
        Ok(ControlFlow::Continue(effects))
    }

    /// What the thread that samples has said.
    fn report(&mut self, report: Report) -> Then<()> {
        const GOES_ON: Then<()> = Ok(ControlFlow::Continue(()));
        match report {
            Report::Snapshot(snapshot) => return self.snapshot(*snapshot),
            Report::Failed(failure) => return Err(failure),
            // What comes next is drawn.
            Report::Anew => {
                self.app.anew();
                return GOES_ON;
            }
            Report::Totals => {
                self.app.begin_totals();
                return GOES_ON;
            }
            Report::Ended => self.app.stopped = Some(format!("{} has ended", self.app.scene.only)),
            Report::Details(details) => self.app.looked_up(*details),
            Report::CommandLines(lines) => {
                lines.into_iter().for_each(|(pid, line)| self.app.command_line(pid, line));
                self.app.arrange();
            }
            Report::Said(text) => self.app.say(text),
            Report::NotKept(mark, why) => self.app.not_kept(mark, why),
            Report::Over => {
                self.app.paused = true;
                self.app.say("the recording ends here");
            }
        }
        self.dirty = true;
        GOES_ON
    }

    /// Rows of an interval; what is open beside them is looked up anew.
    fn snapshot(&mut self, snapshot: Snapshot) -> Then<()> {
        let wanted = match self.app.scene.replay {
            None => snapshot.fresh && !self.app.paused,
            // It may be another time though nothing goes on.
            Some(_) => !snapshot.held,
        };
        let (fresh, early) = (snapshot.fresh, snapshot.early);
        self.dirty |= self.app.take(snapshot);
        self.intervals += u64::from(fresh && !early);
        if self.hands.iterations.is_some_and(|n| self.intervals >= n) {
            self.surface.draw(self.app).map_err(unwritten)?;
            return Ok(ControlFlow::Break(()));
        }
        if let Some(open) = self.app.open.as_ref().filter(|_| wanted) {
            let who = Box::new(open.who.clone());
            let _ = sampler::ask(self.hands.commands, Command::Details(open.by, open.id.clone(), who));
            (self.hands.look)(open.by, &open.id, &open.who);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// What concerns the terminal is done here.
    fn carry_out(&mut self, effect: Effect) -> Then<()> {
        match effect {
            Effect::Quit => return Ok(ControlFlow::Break(())),
            Effect::Redraw => self.surface.enter().map_err(unwritten)?,
            Effect::Suspend => {
                self.surface.leave();
                (self.hands.suspend)();
                self.surface.enter().map_err(unwritten)?;
            }
            Effect::Run(words) => {
                self.surface.leave();
                (self.hands.run)(&words);
                let goes_on = running::key_after(self.events, &mut self.later)?;
                self.surface.enter().map_err(unwritten)?;
                if !goes_on {
                    return Ok(ControlFlow::Break(()));
                }
            }
            other => {
                perform(other, self.app, self.hands);
                return Ok(ControlFlow::Continue(()));
            }
        }
        self.dirty = true;
        Ok(ControlFlow::Continue(()))
    }

    /// Asks what if of the row that is open, where that is another than before.
    fn predict(&mut self) {
        let wanted = self.app.predicts().map(|open| &open.id);
        if wanted != self.predicted.as_ref() {
            self.predicted = wanted.cloned();
            let timed = self.app.scene.latency;
            let words = self.app.predicts().and_then(|open| links::what_if(open.by, &open.who, timed));
            (self.hands.predict)(self.predicted.clone().zip(words));
        }
    }
}

/// Asks for the command lines of what was drawn.
fn ask(app: &mut App, hands: &Hands<'_>) {
    let pids = app.asks();
    if !pids.is_empty() {
        (hands.command_lines)(pids);
    }
    let pids = app.asks_parents();
    if !pids.is_empty() {
        (hands.parents)(pids);
    }
    let groups = app.asks_held();
    if !groups.is_empty() {
        (hands.held)(groups);
    }
}

/// The mouse moved, or a button was let go: nothing changes on the screen.
fn is_motion(input: &event::Event) -> bool {
    let event::Event::Mouse(mouse) = input else { return false };
    matches!(mouse.kind, MouseEventKind::Moved | MouseEventKind::Drag(_) | MouseEventKind::Up(_))
}

/// What has to be done outside but for the terminal. Should nobody listen, the reason is on its way as an event.
fn perform(effect: Effect, app: &mut App, hands: &Hands<'_>) {
    let ask = |command| {
        let _ = sampler::ask(hands.commands, command);
    };
    match effect {
        Effect::View(view) => ask(Command::View(view)),
        Effect::Interval(length) => ask(Command::Interval(length)),
        Effect::Hold(hold) => ask(Command::Hold(hold)),
        Effect::Back(number) => ask(Command::Back(number)),
        Effect::Watch(id) => ask(Command::Watch(id)),
        Effect::Keep(name, marks) => {
            // The working directory of a command that was started as a service may be gone.
            let directory = std::env::current_dir().unwrap_or_default();
            let path = directory.join(name);
            // Made here: the thread that counts may write nothing but what is open.
            match Writer::file(&path, app.settings.interval) {
                Ok(writer) => ask(Command::Keep(Box::new(writer), path, marks)),
                Err(e) => app.not_kept(marks.last().copied(), sampler::not_kept(&e.message, &path)),
            }
        }
        Effect::Step(n) => ask(Command::Step(n)),
        Effect::Jump(seconds) => ask(Command::Jump(seconds)),
        Effect::Details(by, id, who) => {
            if let Some(pid) = who.pid {
                (hands.command_line)(pid);
            }
            (hands.look)(by, &id, &who);
            ask(Command::Details(by, id, who));
        }
        Effect::Save => save(app),
        Effect::Quit | Effect::Redraw | Effect::Suspend | Effect::Run(_) => {}
    }
}

/// Keeps the settings for the next time.
fn save(app: &mut App) {
    let Some(path) = &app.scene.config else {
        app.say("nothing is kept: it was started with --no-config");
        return;
    };
    let mut settings = app.settings.clone();
    // How closely somebody recorded is nothing that was chosen here.
    settings.interval = app.scene.replay.as_ref().map_or(settings.interval, |r| r.kept);
    let text = match config::save(path, &settings) {
        Ok(()) => format!("kept in {}", Foreign::from(path.as_path())),
        Err(e) => sampler::not_kept(&e.to_string(), path),
    };
    app.say(text);
}
