//! The screen from its first thread to its end. Its loop takes the outside world as [`Events`], [`Hands`] and a surface, so
//! that a test runs the whole of it.

mod asking;
mod early;
mod events;
mod looking;
mod predicting;
mod running;
mod threads;
mod turn;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc;

use signal_hook::consts::SIGTSTP;

use super::app::App;
use super::draw::theme::Theme;
use super::options::Options;
use super::terminal::Screen;
use crate::exit::Failure;
use crate::privilege::Role;
use crate::wait::Processes;
use asking::Asking;
use early::Early;
use looking::Looking;
use predicting::Predicting;

pub use events::Event;
pub use events::Events;
pub use events::Hands;
pub use turn::turn;

/// Starts the threads, takes the terminal over, and runs.
///
/// # Errors
/// When it cannot count here, or something fails later; with the remedy.
pub fn run(options: &Options, processes: Processes, config: Option<PathBuf>) -> Result<(), Failure> {
    let (sender, mut events) = mpsc::channel();
    let (commands, requests) = mpsc::channel();
    let early = Early::new().map_err(|e| Failure::failed(format!("cannot take signals: {e}")))?;
    threads::sample(options.clone(), processes, config, sender.clone(), requests)?;
    let Some((scene, settings)) = early.begun(&mut events)? else { return Ok(()) };
    // It keeps what it needs to open files of others, and no more.
    let looking = Looking::new(sender.clone())?;
    // The thread that samples has given its own back by now; this one, and those that begin from here on, need none of it. Not
    // before: what the process may do is asked of /proc/self/status, which is this thread's.
    Role::Screen.take(&[])?;
    threads::signals(sender.clone())?;
    if early.asked() {
        return Ok(());
    }
    drop(early);
    let theme = Theme::fitting(options.color, |name| std::env::var(name).ok());
    let refused = |e: io::Error| Failure::failed(format!("cannot use the terminal: {e}"));
    let mut screen = Screen::new(theme, settings.mouse).map_err(refused)?;
    threads::input(sender.clone())?;
    let mut app = App::new(scene, settings, screen.size());
    let asking = Asking::begin(looking, &sender, &commands, app.scene.replay.is_some())?;
    let predicting = Predicting::new(sender.clone());
    let hands = Hands {
        commands: &commands,
        command_line: &|pid| asking.command_line(pid),
        command_lines: &|pids| asking.command_lines(pids),
        look: &|by, id, who| asking.look(by, id, who),
        parents: &|pids| asking.parents(pids),
        held: &|paths| asking.held(paths),
        predict: &|question| predicting.ask(question),
        suspend: &suspend,
        run: &running::run,
        iterations: options.iterations,
    };
    let result = turn(&mut app, &mut events, &mut screen, &hands);
    drop(screen);
    result
}

fn suspend() {
    if let Err(e) = signal_hook::low_level::emulate_default_handler(SIGTSTP) {
        log::warn!("cannot stop: {e}");
    }
}
