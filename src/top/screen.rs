//! The loop of the screen: events in, frames out. The outside world is [`Events`] and [`Surface`], so that a test runs
//! the whole of it.

mod looking;
mod predicting;
mod running;
mod threads;

use std::collections::HashMap;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::Sender;
use std::time::Duration;
use std::time::Instant;

use ratatui::crossterm::event;
use ratatui::crossterm::event::MouseEventKind;
use signal_hook::consts::SIGCONT;
use signal_hook::consts::SIGTSTP;

use super::app::App;
use super::app::Effect;
use super::config;
use super::details;
use super::draw::theme::Theme;
use super::links;
use super::links::WhatIf;
use super::now::Now;
use super::options::Options;
use super::sampler;
use super::sampler::Command;
use super::sampler::Report;
use super::scene::Scene;
use super::settings::Settings;
use super::surface::Surface;
use super::terminal::Screen;
use super::tree;
use super::tree::Parent;
use crate::exit::Failure;
use crate::live::keeper::Id;
use crate::pivot::By;
use crate::pivot::Who;
use crate::privilege::Role;
use crate::record::writer::Writer;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::wait::Processes;
use threads::sample;
use threads::signals;
use threads::spawn;

/// Time between two frames at least: 30 a second are enough for any eye, and a storm of events costs no more.
const FRAME: Duration = Duration::from_millis(33);

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
    let failed = |e: io::Error| Failure::failed(format!("cannot write to the terminal: {e}"));
    let mut intervals = 0;
    let mut drawn = Instant::now();
    surface.draw(app).map_err(failed)?;
    let mut dirty = false;
    // Of which row is asked what if.
    let mut predicted: Option<Id> = None;
    // What came while something else had the terminal.
    let mut later = VecDeque::new();
    loop {
        let timeout = dirty.then(|| FRAME.saturating_sub(drawn.elapsed()));
        let event = match later.pop_front() {
            Some(event) => Some(event),
            None => events.next(timeout)?,
        };
        let Some(event) = event else {
            surface.draw(app).map_err(failed)?;
            (drawn, dirty) = (Instant::now(), false);
            ask(app, hands);
            continue;
        };
        let mut effects = Vec::new();
        match event {
            Event::Began(_) => {}
            Event::Report(Report::Failed(failure)) => return Err(failure),
            Event::Report(Report::Ended) => {
                app.stopped = Some(format!("{} has ended", app.scene.only));
                dirty = true;
            }
            Event::Report(Report::Details(details)) => {
                app.looked_up(*details);
                dirty = true;
            }
            Event::Report(Report::CommandLines(lines)) => {
                lines.into_iter().for_each(|(pid, line)| app.command_line(pid, line));
                app.arrange();
                dirty = true;
            }
            Event::Report(Report::Anew) => app.anew(),
            Event::Report(Report::Totals) => app.begin_totals(),
            Event::Report(Report::Said(text)) => {
                app.say(text);
                dirty = true;
            }
            Event::Report(Report::Over) => {
                app.paused = true;
                app.say("the recording ends here");
                dirty = true;
            }
            Event::Report(Report::Snapshot(snapshot)) => {
                let wanted = match app.scene.replay {
                    None => snapshot.fresh && !app.paused,
                    // It may be another time though nothing goes on.
                    Some(_) => !snapshot.held,
                };
                let (fresh, early) = (snapshot.fresh, snapshot.early);
                dirty |= app.take(*snapshot);
                intervals += u64::from(fresh && !early);
                if hands.iterations.is_some_and(|n| intervals >= n) {
                    return surface.draw(app).map_err(failed);
                }
                if let Some(open) = app.open.as_ref().filter(|_| wanted) {
                    let who = Box::new(open.who.clone());
                    let _ = sampler::ask(hands.commands, Command::Details(open.by, open.id.clone(), who));
                    (hands.look)(open.by, &open.id, &open.who);
                }
            }
            Event::CommandLine(pid, line) => {
                app.command_line(pid, line);
                dirty = true;
            }
            Event::CommandLines(lines) => dirty |= app.command_lines(lines),
            Event::Parents(parents) => dirty |= app.parents(parents),
            Event::Now(by, id, now) => dirty |= app.looked_at(by, &id, *now),
            Event::WhatIf(id, told) => dirty |= app.predicted(&id, *told),
            // Some terminals report it though nobody requested it.
            Event::Input(input) if is_motion(&input) => {}
            Event::Input(input) => {
                effects = app.input(&input);
                dirty = true;
            }
            Event::Signal(SIGTSTP) => effects.push(Effect::Suspend),
            Event::Signal(SIGCONT) => effects.push(Effect::Redraw),
            Event::Signal(_) | Event::Closed => return Ok(()),
        }
        for effect in effects {
            match effect {
                Effect::Quit => return Ok(()),
                Effect::Redraw => {
                    surface.enter().map_err(failed)?;
                    dirty = true;
                }
                Effect::Suspend => {
                    surface.leave();
                    (hands.suspend)();
                    surface.enter().map_err(failed)?;
                    dirty = true;
                }
                Effect::Run(words) => {
                    surface.leave();
                    (hands.run)(&words);
                    let goes_on = running::key_after(events, &mut later)?;
                    surface.enter().map_err(failed)?;
                    if !goes_on {
                        return Ok(());
                    }
                    dirty = true;
                }
                other => perform(other, app, hands),
            }
        }
        let wanted = app.predicts().map(|open| &open.id);
        if wanted != predicted.as_ref() {
            predicted = wanted.cloned();
            let timed = app.scene.latency;
            let words = app.predicts().and_then(|open| links::what_if(open.by, &open.who, timed));
            (hands.predict)(predicted.clone().zip(words));
        }
        if dirty && drawn.elapsed() >= FRAME {
            surface.draw(app).map_err(failed)?;
            (drawn, dirty) = (Instant::now(), false);
            ask(app, hands);
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
                Err(e) => {
                    let why = foreign::line(&e.message).into_owned();
                    app.say(format!("not kept: {why}"));
                }
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
        Effect::Save => match &app.scene.config {
            None => app.say("nothing is kept: it was started with --no-config"),
            Some(path) => {
                let mut settings = app.settings.clone();
                // How closely somebody recorded is nothing that was chosen here.
                settings.interval = app.scene.replay.as_ref().map_or(settings.interval, |r| r.kept);
                let text = match config::save(path, &settings) {
                    Ok(()) => format!("kept in {}", Foreign::from(path.as_path())),
                    Err(e) => format!("cannot keep the settings in {}: {e}", Foreign::from(path.as_path())),
                };
                app.say(text);
            }
        },
        Effect::Quit | Effect::Redraw | Effect::Suspend | Effect::Run(_) => {}
    }
}

/// Starts the threads, takes the terminal over, and runs.
///
/// # Errors
/// When it cannot count here, or something fails later; with the remedy.
pub fn run(options: &Options, processes: Processes, config: Option<PathBuf>) -> Result<(), Failure> {
    let (sender, mut events) = mpsc::channel();
    let (commands, requests) = mpsc::channel();
    sample(options.clone(), processes, config, sender.clone(), requests)?;
    // Until counting has begun, the terminal is left alone: errors are plain text, and Ctrl-C works as ever.
    let (scene, settings) = loop {
        match events.next(None)? {
            Some(Event::Began(both)) => break *both,
            Some(Event::Report(Report::Failed(failure))) => return Err(failure),
            _ => {}
        }
    };
    // It keeps what it needs to open files of others, and no more.
    let looking = looking::Looking::new(sender.clone())?;
    // The thread that samples has given its own back by now; this one, and those that begin from here on, need none of it. Not
    // before: what the process may do is asked of /proc/self/status, which is this thread's.
    Role::Screen.take(&[])?;
    signals(sender.clone())?;
    let theme = Theme::fitting(options.color, |name| std::env::var(name).ok());
    let refused = |e: io::Error| Failure::failed(format!("cannot use the terminal: {e}"));
    let mut screen = Screen::new(theme, settings.mouse).map_err(refused)?;
    let input = sender.clone();
    spawn("input", move || {
        while let Ok(event) = event::read() {
            if input.send(Event::Input(event)).is_err() {
                return;
            }
        }
        let _ = input.send(Event::Closed);
    })?;
    let mut app = App::new(scene, settings, screen.size());
    let recorded = app.scene.replay.is_some();
    let command_line = |pid| {
        if recorded {
            let _ = sampler::ask(&commands, Command::CommandLines(vec![pid]));
            return;
        }
        // One that hangs in the kernel holds up nothing but itself.
        let sender = sender.clone();
        let look = move || drop(sender.send(Event::CommandLine(pid, details::command_line(pid))));
        if spawn("command line", look).is_err() {
            log::warn!("no thread to look up a command line");
        }
    };
    let (asked, lines) = mpsc::channel::<Vec<u32>>();
    let answer = sender.clone();
    spawn("command lines", move || {
        for pids in lines {
            let look = |pid| (pid, details::command_line(pid));
            if answer.send(Event::CommandLines(pids.into_iter().map(look).collect())).is_err() {
                return;
            }
        }
    })?;
    let command_lines = |pids| {
        if recorded {
            let _ = sampler::ask(&commands, Command::CommandLines(pids));
        } else {
            drop(asked.send(pids));
        }
    };
    let look = |by, id: &Id, who: &Who| {
        if !recorded {
            looking.ask(by, id, who);
        }
    };
    let (wanted, families) = mpsc::channel::<Vec<u32>>();
    let answer = sender.clone();
    spawn("parents", move || {
        for pids in families {
            if answer.send(Event::Parents(tree::parents(&pids))).is_err() {
                return;
            }
        }
    })?;
    let parents = |pids| drop(wanted.send(pids));
    let predicting = predicting::Predicting::new(sender.clone());
    let suspend = || {
        if let Err(e) = signal_hook::low_level::emulate_default_handler(SIGTSTP) {
            log::warn!("cannot stop: {e}");
        }
    };
    let hands = Hands {
        commands: &commands,
        command_line: &command_line,
        command_lines: &command_lines,
        look: &look,
        parents: &parents,
        predict: &|question| predicting.ask(question),
        suspend: &suspend,
        run: &running::run,
        iterations: options.iterations,
    };
    let result = turn(&mut app, &mut events, &mut screen, &hands);
    drop(screen);
    result
}
