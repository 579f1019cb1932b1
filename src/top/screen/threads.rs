//! The threads beside the one that draws.

use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event;
use signal_hook::consts::SIGCONT;
use signal_hook::consts::SIGTSTP;
use signal_hook::iterator::Signals;

use super::events::Event;
use super::running;
use crate::exit::Failure;
use crate::live::machine::Watch;
use crate::privilege::Role;
use crate::top::app::App;
use crate::top::counting;
use crate::top::counting::Counting;
use crate::top::options::Options;
use crate::top::replay;
use crate::top::sampler;
use crate::top::sampler::Command;
use crate::top::sampler::Job;
use crate::top::sampler::Report;
use crate::top::terminal;
use crate::wait::Processes;

/// Starts a thread.
pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let made = thread::Builder::new().name(name.into()).spawn(body);
    made.map(drop).map_err(|e| Failure::failed(format!("cannot start a thread: {e}")))
}

/// The thread that samples. All that it needs is made there: much of it cannot change threads.
pub(super) fn sample(
    options: Options,
    processes: Processes,
    config: Option<PathBuf>,
    sender: Sender<Event>,
    requests: Receiver<Command>,
) -> Result<(), Failure> {
    /// Reports an end that nobody has reported: a panic.
    struct Guard(Sender<Event>);
    impl Drop for Guard {
        fn drop(&mut self) {
            let failure = Failure::failed("the thread that samples has ended unexpectedly");
            let _ = self.0.send(Event::Report(Report::Failed(failure)));
        }
    }
    spawn("sampler", move || {
        let guard = Guard(sender);
        let sender = &guard.0;
        let all = || -> Result<(), Failure> {
            let report = |report| sender.send(Event::Report(report)).is_ok();
            if let Some((path, from)) = &options.replay {
                let (tape, scene, settings) = replay::Tape::open(&options, (path, from.as_ref()), config)?;
                Role::Replay.take(&[])?;
                let view = App::new(scene.clone(), settings.clone(), (0, 0)).view();
                let _ = sender.send(Event::Began(Box::new((scene, settings))));
                return tape.work(view, &requests, &report);
            }
            let Counting { mut engines, pivot, scene } = counting::count(&options, config, processes.seen)?;
            let (settings, _) = counting::settings(&options, scene.engine)?;
            Role::Count.take(&[])?;
            let job = Job {
                source: &mut engines,
                pivot,
                files: scene.files,
                processes,
                view: App::new(scene.clone(), settings.clone(), (0, 0)).view(),
                interval: settings.interval,
                machine: Some(Watch::here()),
            };
            let _ = sender.send(Event::Began(Box::new((scene, settings))));
            Ok(sampler::work(job, &requests, &report)?)
        };
        if let Err(failure) = all() {
            let _ = sender.send(Event::Report(Report::Failed(failure)));
        }
    })
}

/// Signals become events. One that asks for the end gets it, be the terminal stuck: a second later, or at the third of them.
pub(super) fn signals(sender: Sender<Event>) -> Result<(), Failure> {
    /// How long a terminal that is stuck may take to be given back.
    const STUCK: Duration = Duration::from_millis(200);
    /// How long the end may take that a signal asked for: nobody may read what is being written (a connection that hangs).
    const PATIENCE: Duration = Duration::from_secs(1);
    let end = |signal| {
        let _ = spawn("end", terminal::give_back);
        thread::sleep(STUCK);
        signal_hook::low_level::exit(128 + signal);
    };
    let endings = crate::exit::signals();
    let all = endings.iter().copied().chain([SIGTSTP, SIGCONT]);
    let mut signals = Signals::new(all).map_err(|e| Failure::failed(format!("cannot take signals: {e}")))?;
    spawn("signals", move || {
        let mut ends = 0;
        for signal in signals.forever() {
            if endings.contains(&signal) && running::pass(signal) {
                continue;
            }
            let _ = sender.send(Event::Signal(signal));
            if !endings.contains(&signal) {
                continue;
            }
            ends += 1;
            // Output that somebody stopped (Ctrl-S) would hold up the end.
            let _ = rustix::termios::tcflow(std::io::stdout(), rustix::termios::Action::OOn);
            match ends {
                1 => drop(spawn("late", move || {
                    thread::sleep(PATIENCE);
                    end(signal);
                })),
                2 => {}
                _ => end(signal),
            }
        }
    })
}

/// What comes from the keyboard and the mouse becomes events, until the terminal is gone.
pub(super) fn input(sender: Sender<Event>) -> Result<(), Failure> {
    spawn("input", move || {
        while let Ok(event) = event::read() {
            if sender.send(Event::Input(event)).is_err() {
                return;
            }
        }
        let _ = sender.send(Event::Closed);
    })
}
