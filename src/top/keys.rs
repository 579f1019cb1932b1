//! The keys: one table, from which the help on the screen and the manual page are made.

use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::event::KeyModifiers;

use crate::pivot::By;

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Ends the program.
    Quit,
    /// The help.
    Help,
    /// Back: closes what is open, forgets the filter, lets go of the row.
    Back,
    /// The selection, by rows; the page is what the screen shows.
    Move(Step),
    /// The details of the selected row.
    Details,
    /// Begins to edit the filter.
    Filter,
    /// Rows of this kind.
    Pivot(By),
    /// Rows of the next kind.
    NextPivot,
    /// Rows of the kind before.
    PreviousPivot,
    /// Sorts by the column to the left.
    SortLeft,
    /// Sorts by the column to the right.
    SortRight,
    /// Sorts the other way round.
    Reverse,
    /// Columns to the left of the first one shown.
    ScrollLeft,
    /// Columns that did not fit.
    ScrollRight,
    /// Threads below their processes.
    Threads,
    /// Processes that have ended: by command, by cgroup, each by itself.
    Ended,
    /// Counts, rates, totals.
    Show,
    /// Pages or bytes.
    Unit,
    /// Stops the picture; counting goes on.
    Pause,
    /// So many intervals back, or on.
    Time(i32),
    /// So many seconds back, or on.
    Jump(i32),
    /// A longer interval.
    Slower,
    /// A shorter interval.
    Faster,
    /// The list of columns.
    Columns,
    /// Keeps the settings.
    Save,
    /// Draws everything anew.
    Redraw,
    /// Stops the program, as Ctrl-Z does.
    Suspend,
}

/// How far the selection moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Rows up (negative) or down.
    Rows(i32),
    /// Pages up (negative) or down.
    Pages(i32),
    /// The first row.
    First,
    /// The last row.
    Last,
}

/// A line of the table of keys.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// The keys; the control key is needed where the flag is set.
    pub keys: &'static [(KeyCode, bool)],
    /// What they do.
    pub action: Action,
    /// How the help names the keys; empty for a line that another one describes.
    pub label: &'static str,
    /// What the help says.
    pub about: &'static str,
}

const fn plain(code: KeyCode) -> (KeyCode, bool) {
    (code, false)
}

const fn char(c: char) -> (KeyCode, bool) {
    (KeyCode::Char(c), false)
}

const fn control(c: char) -> (KeyCode, bool) {
    (KeyCode::Char(c), true)
}

const fn bind(
    keys: &'static [(KeyCode, bool)],
    action: Action,
    label: &'static str,
    about: &'static str,
) -> Binding {
    Binding { keys, action, label, about }
}

/// All keys, in the order of the help.
pub const KEYS: &[Binding] = &[
    bind(&[char('q'), control('c'), plain(KeyCode::F(10))], Action::Quit, "q", "quit"),
    bind(&[char('h'), char('?'), plain(KeyCode::F(1))], Action::Help, "h ?", "this help"),
    bind(&[plain(KeyCode::Esc)], Action::Back, "Esc", "back, drop filter, let go"),
    bind(
        &[plain(KeyCode::Up), char('k')],
        Action::Move(Step::Rows(-1)),
        "Up Down",
        "select a row (also k j)",
    ),
    bind(&[plain(KeyCode::Down), char('j')], Action::Move(Step::Rows(1)), "", ""),
    bind(
        &[plain(KeyCode::PageUp), control('b')],
        Action::Move(Step::Pages(-1)),
        "PgUp PgDn",
        "a screenful up or down",
    ),
    bind(&[plain(KeyCode::PageDown), control('f')], Action::Move(Step::Pages(1)), "", ""),
    bind(&[plain(KeyCode::Home), char('g')], Action::Move(Step::First), "Home End", "the first or last row"),
    bind(&[plain(KeyCode::End), char('G')], Action::Move(Step::Last), "", ""),
    bind(&[plain(KeyCode::Enter)], Action::Details, "Enter", "details of the row"),
    bind(
        &[char('/'), plain(KeyCode::F(3)), plain(KeyCode::F(4))],
        Action::Filter,
        "/",
        "filter: a|b !not ~re hits>9",
    ),
    bind(&[plain(KeyCode::Tab)], Action::NextPivot, "Tab", "next kind (Shift: before)"),
    bind(&[plain(KeyCode::BackTab)], Action::PreviousPivot, "", ""),
    bind(&[char('1')], Action::Pivot(By::Process), "1 2 3 4", "process thread command user"),
    bind(&[char('2')], Action::Pivot(By::Thread), "", ""),
    bind(&[char('3')], Action::Pivot(By::Comm), "", ""),
    bind(&[char('4')], Action::Pivot(By::User), "", ""),
    bind(&[char('5')], Action::Pivot(By::Cgroup), "5 6 7 8", "cgroup file mount device"),
    bind(&[char('6')], Action::Pivot(By::File), "", ""),
    bind(&[char('7')], Action::Pivot(By::Mount), "", ""),
    bind(&[char('8')], Action::Pivot(By::Device), "", ""),
    bind(&[char('<'), char(',')], Action::SortLeft, "< >", "sort by another column"),
    bind(&[char('>'), char('.'), plain(KeyCode::F(6))], Action::SortRight, "", ""),
    bind(&[char('r'), char('R')], Action::Reverse, "r", "reverse the order"),
    bind(&[char('[')], Action::ScrollLeft, "[ ]", "scroll the columns"),
    bind(&[char(']')], Action::ScrollRight, "", ""),
    bind(&[plain(KeyCode::Left)], Action::Time(-1), "Left Right", "back in time (Ctrl: by ten)"),
    bind(&[plain(KeyCode::Right)], Action::Time(1), "", ""),
    bind(&[(KeyCode::Left, true)], Action::Time(-10), "", ""),
    bind(&[(KeyCode::Right, true)], Action::Time(10), "", ""),
    bind(&[char('{')], Action::Jump(-60), "{ } ( )", "by a minute, by an hour"),
    bind(&[char('}')], Action::Jump(60), "", ""),
    bind(&[char('(')], Action::Jump(-3600), "", ""),
    bind(&[char(')')], Action::Jump(3600), "", ""),
    bind(&[char('t'), char('H'), plain(KeyCode::F(5))], Action::Threads, "t", "threads below processes"),
    bind(&[char('e')], Action::Ended, "e", "ended: command cgroup apart"),
    bind(&[char('m')], Action::Show, "m", "interval, per second, total"),
    bind(&[char('u')], Action::Unit, "u", "pages or bytes"),
    bind(&[char('p'), char(' ')], Action::Pause, "p Space", "pause (of a replay: play)"),
    bind(&[char('+'), char('=')], Action::Slower, "+ -", "longer, shorter intervals"),
    bind(&[char('-')], Action::Faster, "", ""),
    bind(&[char('f'), plain(KeyCode::F(2))], Action::Columns, "f", "choose, order, sort columns"),
    bind(&[char('W')], Action::Save, "W", "keep these settings"),
    bind(&[control('l')], Action::Redraw, "Ctrl-L", "draw the screen anew"),
    bind(&[control('z')], Action::Suspend, "Ctrl-Z", "stop; 'fg' goes on"),
];

/// Keys of the list of columns, for its last line and the help.
pub const COLUMN_KEYS: &str = "Space show/hide  < > move  s sort  d default  Esc";

/// What a key does, `None` if nothing. One with Alt does nothing.
#[must_use]
pub fn action(key: KeyEvent) -> Option<Action> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    let wanted = (key.code, control);
    KEYS.iter().find(|b| b.keys.contains(&wanted)).map(|b| b.action)
}

/// The lines of the help: keys and what they do.
pub fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    KEYS.iter().filter(|b| !b.label.is_empty()).map(|b| (b.label, b.about))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_does_two_things() {
        let mut seen = HashSet::new();
        for key in KEYS.iter().flat_map(|b| b.keys) {
            assert!(seen.insert(format!("{key:?}")), "{key:?}");
        }
    }

    #[test]
    fn every_action_is_told_of_in_the_help_or_beside_another() {
        let mut label = "";
        for binding in KEYS {
            label = if binding.label.is_empty() { label } else { binding.label };
            assert!(!label.is_empty(), "{binding:?}");
            assert_eq!(binding.label.is_empty(), binding.about.is_empty());
            // Two of them are beside each other on a screen of 80 columns.
            assert!(binding.label.len() <= 10 && binding.about.len() <= 28, "{}", binding.about);
        }
    }

    #[test]
    fn letters_with_control_are_other_keys() {
        let key = |c, modifiers| action(KeyEvent::new(KeyCode::Char(c), modifiers));
        assert_eq!(key('c', KeyModifiers::CONTROL), Some(Action::Quit));
        assert_eq!(key('c', KeyModifiers::NONE), None);
        assert_eq!(key('G', KeyModifiers::SHIFT), Some(Action::Move(Step::Last)));
        assert_eq!(key('q', KeyModifiers::ALT), None);
    }
}
