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
    /// Looks for a row, and leaves the others where they are.
    Search,
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
    /// Cgroups, or processes, as a tree.
    Tree,
    /// Processes that have ended: by command, by cgroup, by parent, each by itself.
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
    /// In the details of a cgroup: what if it had more memory.
    WhatIf,
    /// Marks the moment and keeps it in a file.
    Mark,
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
    bind(&[plain(KeyCode::Enter), plain(KeyCode::F(9))], Action::Details, "Enter", "details of the row"),
    bind(&[char('w')], Action::WhatIf, "w", "there: a cgroup's what if"),
    bind(&[char('/'), plain(KeyCode::F(4))], Action::Filter, "/", "filter: a|b !not ~re hits>9"),
    bind(&[plain(KeyCode::F(3))], Action::Search, "F3", "go to a row, to the next"),
    bind(&[plain(KeyCode::Tab), plain(KeyCode::F(8))], Action::NextPivot, "Tab", "next kind (Shift: before)"),
    bind(&[plain(KeyCode::BackTab), plain(KeyCode::F(7))], Action::PreviousPivot, "", ""),
    bind(&[char('1')], Action::Pivot(By::Process), "1", "processes: who does it"),
    bind(&[char('2')], Action::Pivot(By::Thread), "2", "threads of all of them"),
    bind(&[char('3')], Action::Pivot(By::Comm), "3", "commands: all of one name"),
    bind(&[char('4')], Action::Pivot(By::User), "4", "users: for whom"),
    bind(&[char('5')], Action::Pivot(By::Cgroup), "5", "cgroups: container or unit"),
    bind(&[char('6')], Action::Pivot(By::File), "6", "files: what is used"),
    bind(&[char('7')], Action::Pivot(By::Mount), "7", "mounts: on which one"),
    bind(&[char('8')], Action::Pivot(By::Device), "8", "devices: what has to work"),
    bind(&[char('9')], Action::Pivot(By::Evictor), "9", "evictors: who pushes out"),
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
    bind(&[char('t'), char('H')], Action::Threads, "t", "threads below processes"),
    bind(&[char('T'), plain(KeyCode::F(5))], Action::Tree, "T", "tree: own, with those below"),
    bind(&[char('e')], Action::Ended, "e", "ended ones: how they fold"),
    bind(&[char('m')], Action::Show, "m", "interval, per second, total"),
    bind(&[char('u')], Action::Unit, "u", "pages or bytes"),
    bind(&[char('p'), char(' ')], Action::Pause, "p Space", "pause (of a replay: play)"),
    bind(&[char('M')], Action::Mark, "M", "mark, keep it in a file"),
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

/// Letters that do something in `top` or `htop` and nothing here, and what does it here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("ds", "+ and - change the length of the intervals"),
    ("PNIoFS", "< and > choose the column to sort by, r turns the order round"),
    ("\\U", "/ filters, Esc drops the filter"),
    ("ci", "command lines are there where they were seen; e folds who has ended"),
    ("nL", "F3 goes to a row"),
];

/// What to say of a letter that does nothing.
#[must_use]
pub fn instead(letter: char) -> &'static str {
    let found = ELSEWHERE.iter().find(|(letters, _)| letters.contains(letter));
    found.map_or("that key does nothing; h shows those that do", |(_, text)| text)
}

/// The lines of the help: keys and what they do.
pub fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    KEYS.iter().filter(|b| !b.label.is_empty()).map(|b| (b.label, b.about))
}

/// The same, without those that choose what rows stand for.
pub fn others() -> impl Iterator<Item = (&'static str, &'static str)> {
    KEYS.iter().filter(|b| !b.label.is_empty() && !is_view(b)).map(|b| (b.label, b.about))
}

/// What rows can stand for: the keys of the views.
pub fn views() -> impl Iterator<Item = (&'static str, &'static str)> {
    KEYS.iter().filter(|b| is_view(b)).map(|b| (b.label, b.about))
}

const fn is_view(binding: &Binding) -> bool {
    matches!(binding.action, Action::Pivot(_))
}

/// A key in the last line: its name, what it does, and the key itself.
pub type Hint = (&'static str, &'static str, KeyCode);

/// The function keys, where htop has them; F7, F8 and F9, which have another use there, last: a narrow screen has no
/// room for them.
const FUNCTIONS: [Hint; 10] = [
    ("F1", "Help", KeyCode::F(1)),
    ("F2", "Cols", KeyCode::F(2)),
    ("F3", "Search", KeyCode::F(3)),
    ("F4", "Filter", KeyCode::F(4)),
    ("F5", "Tree", KeyCode::F(5)),
    ("F6", "Sort", KeyCode::F(6)),
    ("F7", "Rows-", KeyCode::F(7)),
    ("F8", "Rows+", KeyCode::F(8)),
    ("F9", "Details", KeyCode::F(9)),
    ("F10", "Quit", KeyCode::F(10)),
];
/// What each of the function keys does.
pub fn functions() -> impl Iterator<Item = (&'static str, &'static str)> {
    FUNCTIONS.iter().map(|(key, about, _)| (*key, *about))
}

const LETTERS: [Hint; 4] = [
    ("Tab", " rows", KeyCode::Tab),
    ("m", " totals", KeyCode::Char('m')),
    ("\u{2190} \u{2192}", " time", KeyCode::Left),
    ("Enter", " details", KeyCode::Enter),
];
const OF_A_REPLAY: [Hint; 4] = [
    ("Space", " play", KeyCode::Char(' ')),
    ("\u{2190} \u{2192}", " step", KeyCode::Right),
    ("{ }", " minute", KeyCode::Char('}')),
    ("( )", " hour", KeyCode::Char(')')),
];

/// The keys that the last line has room for, and where each of them begins.
#[must_use]
pub fn hints(width: usize, replay: bool) -> Vec<(usize, Hint)> {
    let letters = if replay { OF_A_REPLAY } else { LETTERS };
    let few = FUNCTIONS.iter().filter(|(.., key)| !matches!(key, KeyCode::F(7..=9)));
    let least = if replay { 4 } else { 3 };
    let long =
        |all: &[Hint]| all.iter().map(|(key, about, _)| key.chars().count() + about.len() + 1).sum::<usize>();
    let mut all: Vec<Hint> = FUNCTIONS.iter().chain(&letters).copied().collect();
    if long(&all) > width + 1 {
        all = few.chain(letters.iter().take(least)).copied().collect();
    }
    let mut x = 0;
    let mut out = Vec::new();
    for hint in all {
        let end = x + hint.0.chars().count() + hint.1.len();
        if end > width {
            break;
        }
        out.push((x, hint));
        x = end + 1;
    }
    out
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
    fn keys_in_the_last_line_do_something() {
        for hint in FUNCTIONS.iter().chain(&LETTERS).chain(&OF_A_REPLAY) {
            assert!(action(KeyEvent::new(hint.2, KeyModifiers::NONE)).is_some(), "{hint:?}");
        }
        // As htop has them.
        for (n, wanted) in [
            (1, Action::Help),
            (2, Action::Columns),
            (3, Action::Search),
            (4, Action::Filter),
            (5, Action::Tree),
            (6, Action::SortRight),
            (10, Action::Quit),
        ] {
            assert_eq!(action(KeyEvent::new(KeyCode::F(n), KeyModifiers::NONE)), Some(wanted), "F{n}");
        }
        let names =
            |width, replay| hints(width, replay).into_iter().map(|(_, h)| h.0).collect::<Vec<_>>().join(" ");
        assert_eq!(names(80, false), "F1 F2 F3 F4 F5 F6 F10 Tab m \u{2190} \u{2192}");
        assert_eq!(names(120, false), "F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 Tab m \u{2190} \u{2192} Enter");
        assert_eq!(names(20, false), "F1 F2");
        assert!(names(80, true).ends_with("F10 Space \u{2190} \u{2192}"));
        for width in 0..200 {
            let fits = |(x, hint): &(usize, Hint)| x + hint.0.chars().count() + hint.1.len() <= width;
            assert!(hints(width, width % 2 == 0).iter().all(fits), "{width}");
        }
    }

    #[test]
    fn who_looks_for_the_keys_of_others_is_told_of_ours() {
        for letter in ELSEWHERE.iter().flat_map(|(letters, _)| letters.chars()) {
            let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
            assert_eq!(action(key), None, "{letter} does something");
        }
        assert_eq!(instead('d'), "+ and - change the length of the intervals");
        assert_eq!(instead('y'), "that key does nothing; h shows those that do");
        assert!(ELSEWHERE.iter().all(|(_, text)| text.chars().count() <= 80));
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
