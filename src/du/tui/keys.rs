//! The keys: one table from which the help is made.

use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::event::KeyModifiers;

use super::state::Action;
use super::state::Deed;
use super::state::Mode;
use crate::du::row::Sort;

/// A key, how it is written, what it does, and what the help says.
pub(super) struct Key {
    codes: &'static [KeyCode],
    pub(super) name: &'static str,
    action: Action,
    /// Empty where another line tells it.
    pub(super) help: &'static str,
}

macro_rules! keys {
    ($( $($code:expr),+ => $name:literal, $action:expr, $help:literal; )*) => {
        /// All keys of the tree.
        pub(super) const KEYS: &[Key] = &[ $( Key {
            codes: &[$($code),+], name: $name, action: $action, help: $help,
        }, )* ];
    };
}

keys! {
    KeyCode::Up, KeyCode::Char('k') => "Up, k", Action::Move(-1), "one row up";
    KeyCode::Down, KeyCode::Char('j') => "Down, j", Action::Move(1), "one row down";
    KeyCode::PageUp => "PgUp, PgDn", Action::Move(-15), "a page up, down";
    KeyCode::PageDown => "PgDn", Action::Move(15), "";
    KeyCode::Home => "Home, End", Action::Move(isize::MIN), "the first, the last row";
    KeyCode::End => "End", Action::Move(isize::MAX), "";
    KeyCode::Enter, KeyCode::Right, KeyCode::Char('l') => "Enter, Right, l", Action::Enter, "into the directory, or the map of the file";
    KeyCode::Left, KeyCode::Backspace, KeyCode::Char('h') => "Left, h", Action::Back, "back to the directory above";
    KeyCode::Char('c') => "c, s, p", Action::Sort(Sort::Cached), "sort by what is cached, size on disk, per cent";
    KeyCode::Char('s') => "s", Action::Sort(Sort::Size), "";
    KeyCode::Char('p') => "p", Action::Sort(Sort::Percent), "";
    KeyCode::Char('d') => "d, f, n", Action::Sort(Sort::Dirty), "by what is dirty, files, name; again: reverse";
    KeyCode::Char('f') => "f", Action::Sort(Sort::Files), "";
    KeyCode::Char('n') => "n", Action::Sort(Sort::Name), "";
    KeyCode::Char('/') => "/", Action::Filter, "show names with these letters only; Esc: all";
    KeyCode::Char(' ') => "Space", Action::Mark, "mark or unmark the row";
    KeyCode::Char('e') => "e", Action::Act(Deed::Evict), "drop what is marked, or the row, from the cache";
    KeyCode::Char('E') => "E", Action::Act(Deed::Flush), "the same, but write what is dirty first";
    KeyCode::Char('L') => "L", Action::Act(Deed::Load), "read it into the cache";
    KeyCode::Char('m') => "m", Action::Map, "which pages of the file are cached";
    KeyCode::Char('r') => "r", Action::Rescan, "look again";
    KeyCode::Char('?'), KeyCode::F(1) => "?, F1", Action::Help, "this help";
    KeyCode::Char('q') => "q", Action::Quit, "end";
    KeyCode::Esc => "Esc", Action::Leave, "end the filter, or all";
}

/// What a key means now.
pub(super) fn action(key: &KeyEvent, mode: &Mode) -> Option<Action> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Action::Quit);
    }
    // An Escape that came together with the next key is taken for Alt: it is the Escape that counts.
    let alt = key.modifiers.contains(KeyModifiers::ALT) && matches!(key.code, KeyCode::Char(_));
    let code = if alt { KeyCode::Esc } else { key.code };
    match mode {
        Mode::Confirm(..) => {
            // With Alt, it may be an Escape that came together with the next key.
            let yes =
                matches!(key.code, KeyCode::Char('y' | 'Y')) && !key.modifiers.contains(KeyModifiers::ALT);
            Some(if yes { Action::Yes } else { Action::No })
        }
        Mode::Help => Some(Action::No),
        Mode::Filter => match key.code {
            KeyCode::Enter => Some(Action::Yes),
            KeyCode::Backspace => Some(Action::Erase),
            KeyCode::Char(c) if !alt => Some(Action::Type(c)),
            KeyCode::Char(_) | KeyCode::Esc => Some(Action::No),
            _ => None,
        },
        Mode::Map(..) => {
            let found = KEYS.iter().find(|k| k.codes.contains(&code)).map(|k| k.action);
            Some(found.filter(|a| matches!(a, Action::Move(_))).unwrap_or(Action::No))
        }
        // There Escape ends all: who meant Alt would lose marks and place.
        Mode::Browse if alt => None,
        Mode::Browse => KEYS.iter().find(|k| k.codes.contains(&code)).map(|k| k.action),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_has_two_meanings() {
        let mut seen = Vec::new();
        for code in KEYS.iter().flat_map(|k| k.codes) {
            assert!(!seen.contains(&code), "{code:?}");
            seen.push(code);
        }
    }

    #[test]
    fn only_y_confirms() {
        let press = |c| KeyEvent::new(c, KeyModifiers::NONE);
        let confirm = Mode::Confirm(Deed::Evict, Vec::new());
        assert_eq!(action(&press(KeyCode::Char('y')), &confirm), Some(Action::Yes));
        for code in [KeyCode::Enter, KeyCode::Char('e'), KeyCode::Esc, KeyCode::Char(' ')] {
            assert_eq!(action(&press(code), &confirm), Some(Action::No));
        }
        let together = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::ALT);
        assert_eq!(action(&together, &confirm), Some(Action::No));
        assert_eq!(action(&together, &Mode::Browse), None, "it would end all");
        assert_eq!(action(&press(KeyCode::Char('q')), &Mode::Filter), Some(Action::Type('q')));
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(action(&interrupt, &confirm), Some(Action::Quit));
    }
}
