//! `-i`: the tree to browse. What it shows is a [`state::State`]; what it does outside is behind [`state::World`].

mod keys;
mod render;
mod saved;
mod state;
mod world;

use std::fmt;
use std::io;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::Context as _;
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event;
use ratatui::crossterm::event::Event;
use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEventKind;
use ratatui::crossterm::event::KeyModifiers;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal;
use ratatui::crossterm::terminal::EnterAlternateScreen;
use ratatui::crossterm::terminal::LeaveAlternateScreen;
use signal_hook::consts::SIGCONT;
use signal_hook::consts::SIGHUP;
use signal_hook::consts::SIGTSTP;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::exclude::Exclude;
use super::found::End;
use super::options::Options;
use crate::exit::Failure;
use crate::exit::started;
use state::Action;
use state::Outcome;
use state::State;
use state::World as _;
use world::Disk;
use world::Tree;

/// Browses a directory until the user has seen enough.
///
/// # Errors
/// Without a terminal, or for what is no directory.
pub fn run(options: &Options, paths: &[PathBuf]) -> Result<End, Failure> {
    let [path] = paths else {
        return Err(Failure::usage("'-i' browses one directory").remedy("name one PATH"));
    };
    if options.scan.is_none() && !path.is_dir() {
        return Err(Failure::usage(format!(
            "{} is no directory that can be browsed",
            super::view::name(path)
        ))
        .remedy("name a directory, or leave '-i' out"));
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage("'-i' needs a terminal").remedy("without it, the same tree is printed"));
    }
    let exclude = Exclude::new(&options.exclude).map_err(Failure::usage)?;
    let (path, rows) = match &options.scan {
        Some(file) => {
            let (root, rows) = saved::read(file, options.paths.first().map(PathBuf::as_path))?;
            (root, Some(rows))
        }
        None => (path.clone(), None),
    };
    let disk = Arc::new(Disk::new(path.clone(), options, exclude));
    let mut state = State::new(path, options.sort.unwrap_or(super::row::Sort::Cached));
    state.saved = rows.is_some();
    // Restores the screen after a panic, too.
    let mut terminal = ratatui::try_init().context("cannot take over the terminal")?;
    let ended = started(listen()).and_then(|(sender, happened)| {
        let tell = move |outcome| drop(sender.send(Happened::Done(Box::new(outcome))));
        let mut tree = Tree::new(Arc::clone(&disk), Arc::new(tell), rows);
        browse(&mut terminal, &mut state, &mut tree, &disk, &happened).map_err(Failure::from)
    });
    give_back();
    if let Some(signal) = ended? {
        // As any program that is told to end: the screen is given back already. Real-time signals have no name there.
        if emulate_default_handler(signal).is_err() {
            signal_hook::low_level::exit(128 + signal);
        }
    }
    Ok(End::Done)
}

/// Gives the terminal back, with its cursor.
fn give_back() {
    let _ = terminal::disable_raw_mode();
    let text = format!("{}{}", Ansi(LeaveAlternateScreen), Ansi(Show));
    // Not by way of a lock on the output: the thread that is to be ended has it, and this may be another.
    let _ = rustix::io::write(io::stdout(), text.as_bytes());
}

/// A command of a terminal as text.
struct Ansi<C>(C);

impl<C: ratatui::crossterm::Command> fmt::Display for Ansi<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_ansi(f)
    }
}

/// Stops until somebody lets it go on, with the terminal given back meanwhile.
fn suspend(terminal: &mut DefaultTerminal) -> anyhow::Result<()> {
    give_back();
    emulate_default_handler(SIGTSTP).context("cannot stop")?;
    enter(terminal)
}

/// Takes the terminal over again, whatever a shell has done to its modes in the meantime.
fn enter(terminal: &mut DefaultTerminal) -> anyhow::Result<()> {
    let _ = terminal::disable_raw_mode();
    terminal::enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen)?;
    terminal.clear()?;
    Ok(())
}

/// What comes from outside.
enum Happened {
    Event(Event),
    Signal(i32),
    /// A job is done.
    Done(Box<Outcome>),
    /// The terminal is gone.
    Closed,
}

/// Begins to wait for keys and signals, each in a thread of its own: to read keys from a terminal that is gone does not
/// end, and work may take its time.
fn listen() -> io::Result<(Sender<Happened>, Receiver<Happened>)> {
    let (sender, happened) = mpsc::channel();
    let jobs = sender.clone();
    let mut signals = Signals::new(crate::exit::signals().into_iter().chain([SIGTSTP, SIGCONT]))?;
    let ends = sender.clone();
    std::thread::Builder::new().spawn(move || {
        let mut ending = false;
        for signal in signals.forever() {
            let end = !matches!(signal, SIGTSTP | SIGCONT);
            // Nobody sees the screen any more, or nobody wants to wait.
            if signal == SIGHUP || end && ending {
                give_back();
                let _ = emulate_default_handler(signal);
            }
            ending |= end;
            let _ = ends.send(Happened::Signal(signal));
        }
    })?;
    std::thread::Builder::new().spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(Happened::Event(event)).is_err() {
                return;
            }
        }
        let _ = sender.send(Happened::Closed);
    })?;
    Ok((jobs, happened))
}

/// How often it is told how far a job has come.
const BEAT: Duration = Duration::from_millis(200);

/// Shows the tree until the end: that of the user, or the signal that asks for it. What takes its time is done meanwhile; the
/// first is to look at everything.
fn browse(
    terminal: &mut DefaultTerminal,
    state: &mut State,
    tree: &mut Tree,
    disk: &Disk,
    happened: &Receiver<Happened>,
) -> anyhow::Result<Option<i32>> {
    state.listed(tree.list(&state.at));
    let first = if state.saved { None } else { state.update(Action::Rescan) };
    if let Some(first) = first {
        state::perform(state, first, tree);
    }
    loop {
        let progress = state.busy.map(|_| disk.progress());
        terminal.draw(|frame| render::render(state, progress.as_deref(), frame))?;
        // Draws again only when something has come.
        let next = match progress {
            Some(_) => happened.recv_timeout(BEAT),
            None => happened.recv().map_err(RecvTimeoutError::from),
        };
        let event = match next {
            Ok(Happened::Event(event)) => event,
            Ok(Happened::Done(outcome)) => {
                state::finish(state, *outcome, tree);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => continue,
            Ok(Happened::Signal(SIGTSTP)) => {
                suspend(terminal)?;
                continue;
            }
            Ok(Happened::Signal(SIGCONT)) => {
                enter(terminal)?;
                continue;
            }
            Ok(Happened::Signal(signal)) => return Ok(Some(signal)),
            Ok(Happened::Closed) | Err(RecvTimeoutError::Disconnected) => return Ok(None),
        };
        let Event::Key(key) = event else { continue };
        if key.kind != KeyEventKind::Press {
            continue;
        }
        // Ctrl-Z: a terminal in raw mode makes no signal of it.
        if key.code == KeyCode::Char('z') && key.modifiers.contains(KeyModifiers::CONTROL) {
            suspend(terminal)?;
            continue;
        }
        let Some(action) = keys::action(&key, state.mode()) else { continue };
        let Some(effect) = state.update(action) else { continue };
        if !state::perform(state, effect, tree) {
            return Ok(None);
        }
    }
}
