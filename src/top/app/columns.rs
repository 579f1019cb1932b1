//! The list of columns: shown or not, in which order, which one sorts.

use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEvent;

use super::App;
use super::Effect;
use super::Mode;
use crate::columns::COLUMNS;
use crate::columns::Column;
use crate::plan::Engine;
use crate::top::cells;
use crate::top::keys;
use crate::top::keys::Action;
use crate::top::keys::Step;
use crate::top::settings::Settings;
use crate::top::settings::Sort;

impl App {
    /// The columns that there are: those shown in their order, then the others.
    #[must_use]
    pub fn all_columns(&self) -> Vec<(&'static Column, bool)> {
        let shown = self.columns();
        let classic = self.scene.engine != Engine::Exact;
        let others = COLUMNS.iter().filter(|c| {
            self.scene.suits(c, self.by())
                && cells::suits_rows(c)
                && (classic || !c.is_classic())
                && (self.scene.engine != Engine::Classic || c.is_classic())
                && !shown.iter().any(|s| s.id == c.id)
        });
        let others: Vec<_> = others.map(|c| (c, false)).collect();
        shown.into_iter().map(|c| (c, true)).chain(others).collect()
    }

    pub(super) fn column_key(&mut self, at: usize, key: KeyEvent) -> Vec<Effect> {
        let all = self.all_columns();
        let at = at.min(all.len().saturating_sub(1));
        let mut shown: Vec<_> = all.iter().filter(|(_, s)| *s).map(|(c, _)| *c).collect();
        let mut effects = Vec::new();
        if let Some(Action::Move(step)) = keys::action(key) {
            self.mode = Mode::Columns(self.column_after(at, step));
            return Vec::new();
        }
        let to = match key.code {
            KeyCode::Char(' ') | KeyCode::Enter => {
                match all.get(at) {
                    // Something must be left to be seen.
                    Some((_, true)) if shown.len() == 1 => self.say("one column must be left"),
                    Some((_, true)) => drop(shown.remove(at)),
                    Some((column, false)) => shown.push(column),
                    None => {}
                }
                self.set_columns(shown);
                at
            }
            KeyCode::Char('<' | ',') | KeyCode::Left if at > 0 && at < shown.len() => {
                shown.swap(at, at - 1);
                self.set_columns(shown);
                at - 1
            }
            KeyCode::Char('>' | '.') | KeyCode::Right if at + 1 < shown.len() => {
                shown.swap(at, at + 1);
                self.set_columns(shown);
                at + 1
            }
            KeyCode::Char('s') => {
                if let Some((column, true)) = all.get(at) {
                    effects = self.sort_by(Sort::Column(column));
                }
                at
            }
            KeyCode::Char('d') => {
                // Those of this kind of rows, be it what was chosen for all of them.
                let columns = Settings::for_engine(self.scene.engine).columns_of(self.by(), &self.scene);
                let all = self.settings.columns_are_default;
                self.settings.choose(self.by(), (!all).then_some(columns));
                0
            }
            KeyCode::Esc | KeyCode::Char('q' | 'f') | KeyCode::F(2) => {
                self.mode = Mode::Table;
                self.skip = 0;
                return Vec::new();
            }
            _ => at,
        };
        self.mode = Mode::Columns(to);
        effects
    }

    /// Another line of the list.
    pub(super) fn column_after(&self, at: usize, step: Step) -> usize {
        let last = i64::try_from(self.all_columns().len()).unwrap_or(0) - 1;
        let page = i64::from(self.zones().page.height).max(2) - 1;
        let at = i64::try_from(at).unwrap_or(0);
        let to = match step {
            Step::Rows(n) => at + i64::from(n),
            Step::Pages(n) => at + i64::from(n) * page,
            Step::First => 0,
            Step::Last => last,
        };
        usize::try_from(to.min(last)).unwrap_or(0)
    }

    fn set_columns(&mut self, columns: Vec<&'static Column>) {
        self.settings.choose(self.by(), Some(columns));
        self.skip = 0;
    }
}
