//! Where frames go.

use std::io;

use super::app::App;

/// What a frame is drawn on: a terminal, or a film in a test.
pub trait Surface {
    /// Shows the state.
    ///
    /// # Errors
    /// When it cannot be written.
    fn draw(&mut self, app: &mut App) -> io::Result<()>;

    /// Takes the terminal over, and forgets what is on it.
    ///
    /// # Errors
    /// When it refuses.
    fn enter(&mut self) -> io::Result<()>;

    /// Gives the terminal back.
    fn leave(&mut self);
}
