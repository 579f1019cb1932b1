//! Looking for a row, with the others where they are.

use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEvent;

use super::App;
use super::Effect;
use super::Mode;
use super::input::LONGEST;
use crate::pivot::By;
use crate::top::filter::Filter;
use crate::top::table::Slot;
use crate::top::table::Wanted;

impl App {
    /// Begins to ask for it, or goes on to the next one.
    pub(super) fn search(&mut self) -> Vec<Effect> {
        self.mode = Mode::Search;
        self.search.clear();
        Vec::new()
    }

    /// A key while it is written what is looked for.
    pub(super) fn search_key(&mut self, key: KeyEvent, control: bool) -> Vec<Effect> {
        match key.code {
            KeyCode::Enter | KeyCode::Esc => {
                self.mode = Mode::Table;
                Vec::new()
            }
            KeyCode::F(3) | KeyCode::Down => self.find(self.at + 1),
            KeyCode::Backspace => {
                self.search.pop();
                self.find(self.at)
            }
            KeyCode::Char('u' | 'w') if control => {
                self.search.clear();
                Vec::new()
            }
            KeyCode::Char(c) if !control && self.search.chars().count() < LONGEST => {
                self.search.push(c);
                self.find(self.at)
            }
            _ => Vec::new(),
        }
    }

    /// Selects the next row from there on, behind the last one from the first.
    pub(super) fn find(&mut self, from: usize) -> Vec<Effect> {
        let filter = Filter::new(&self.search);
        if filter.is_empty() {
            return Vec::new();
        }
        if let Some(mistake) = filter.mistake() {
            self.say(mistake);
            return Vec::new();
        }
        self.order(usize::MAX);
        let Some(snapshot) = &self.snapshot else { return Vec::new() };
        let wanted = Wanted { filter: &filter, argv: &self.argv, numbers: self.numbers() };
        let takes = |at: &usize| {
            let Some(slot) = self.slots.get(*at) else { return false };
            let (by, counted) = match slot {
                Slot::Thread(..) => (By::Thread, &snapshot.threads_counted),
                Slot::Entry(_) | Slot::Node(_) => (self.by(), &snapshot.counted),
            };
            self.entry(*slot).is_some_and(|entry| wanted.takes(by, counted, entry))
        };
        let rows = self.slots.len();
        match (0..rows).map(|i| (from + i) % rows).find(takes) {
            Some(at) => self.select(at),
            None => {
                self.say("no row is like that");
                Vec::new()
            }
        }
    }
}
