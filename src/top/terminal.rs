//! The terminal: taken over, and given back after every end.

use std::io;
use std::io::IsTerminal as _;
use std::io::Stdout;
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Hide;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::DisableBracketedPaste;
use ratatui::crossterm::event::EnableBracketedPaste;
use ratatui::crossterm::execute;
use ratatui::crossterm::style::Print;
use ratatui::crossterm::terminal;
use ratatui::crossterm::terminal::EnterAlternateScreen;
use ratatui::crossterm::terminal::LeaveAlternateScreen;

use super::app::App;
use super::draw;
use super::draw::theme::Theme;
use super::sixteen::Sixteen;
use super::surface::Surface;
use crate::exit::Failure;

/// Buttons and the wheel, in coordinates that reach beyond column 223. What the library requests reports every motion,
/// too, which wakes this program hundreds of times a second for nothing.
const MOUSE: &str = "\x1b[?1000h\x1b[?1006h";
/// The end of it, and of what another program may have left on.
const NO_MOUSE: &str = "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l";

/// The terminal is ours: a panic must give it back, too.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether there is a terminal that can show a screen.
///
/// # Errors
/// Wrong usage, with the remedy, where there is none.
pub fn check() -> Result<(), Failure> {
    let remedy = "without one, 'cachetop -b' writes text and 'cachetop --json' JSON";
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let which = if io::stdout().is_terminal() { "input" } else { "output" };
        return Err(Failure::usage(format!("standard {which} is no terminal")).remedy(remedy));
    }
    match std::env::var("TERM") {
        Ok(term) if matches!(term.as_str(), "dumb" | "unknown") => {
            Err(Failure::usage(format!("the terminal '{term}' cannot move its cursor")).remedy(remedy))
        }
        Ok(term) if !term.is_empty() => Ok(()),
        _ => Err(Failure::usage("TERM is not set: the kind of terminal is not known").remedy(remedy)),
    }
}

/// Gives the terminal back; whatever fails, the rest is tried.
pub fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = execute!(out, Print(NO_MOUSE), DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = terminal::disable_raw_mode();
    }
}

/// The screen of a terminal.
pub struct Screen {
    /// Never dropped: it would tell standard error that a terminal which is gone shows no cursor, and panic where that is
    /// the same terminal. What is to be given back is given back here.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Sixteen<Stdout>>>>,
    theme: Theme,
    mouse: bool,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When the terminal refuses.
    pub fn new(theme: Theme, mouse: bool) -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                give_back();
                before(info);
            }));
        });
        // The library reads NO_COLOR as well, and would send resets where --color always is given.
        ratatui::crossterm::style::force_color_output(theme.colors());
        let terminal = Terminal::new(CrosstermBackend::new(Sixteen::new(io::stdout())))?;
        let mut screen = Self { terminal: ManuallyDrop::new(terminal), theme, mouse };
        screen.enter()?;
        Ok(screen)
    }

    /// Its size; a terminal that does not know has the size of old.
    #[must_use]
    pub fn size(&self) -> (u16, u16) {
        match terminal::size() {
            Ok((columns, lines)) if columns > 0 && lines > 0 => (columns, lines),
            _ => (80, 24),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

impl Surface for Screen {
    fn draw(&mut self, app: &mut App) -> io::Result<()> {
        if !TAKEN.load(Ordering::SeqCst) {
            // Given back by a panic of another thread, whose words must stay on the screen.
            return Ok(());
        }
        self.terminal.autoresize()?;
        let area = self.terminal.get_frame().area();
        app.resized((area.width, area.height));
        self.terminal.draw(|frame| draw::draw(app, &self.theme, frame))?;
        Ok(())
    }

    fn enter(&mut self) -> io::Result<()> {
        // Whatever a shell has done to its modes in the meantime.
        let _ = terminal::disable_raw_mode();
        TAKEN.store(true, Ordering::SeqCst);
        terminal::enable_raw_mode()?;
        let mut out = io::stdout();
        execute!(out, EnterAlternateScreen, EnableBracketedPaste, Hide)?;
        if self.mouse {
            execute!(out, Print(MOUSE))?;
        }
        self.terminal.clear()
    }

    fn leave(&mut self) {
        give_back();
    }
}
