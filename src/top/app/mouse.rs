//! What the mouse does.

use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::event::MouseButton;
use ratatui::crossterm::event::MouseEvent;
use ratatui::crossterm::event::MouseEventKind;

use super::App;
use super::Effect;
use super::Mode;
use crate::top::keys;
use crate::top::keys::Action;
use crate::top::keys::Step;
use crate::top::table::Look;

impl App {
    pub(super) fn mouse(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        let wheel = match mouse.kind {
            MouseEventKind::ScrollUp => Some(-3),
            MouseEventKind::ScrollDown => Some(3),
            _ => None,
        };
        if let Some(n) = wheel {
            return match self.mode {
                Mode::Table => self.go(Step::Rows(n)),
                Mode::Help(line) => {
                    self.mode = Mode::Help(self.scrolled(line, Step::Rows(n)));
                    Vec::new()
                }
                Mode::Details(line) => {
                    self.mode = Mode::Details(self.scrolled(line, Step::Rows(n)));
                    Vec::new()
                }
                Mode::Columns(at) => {
                    self.mode = Mode::Columns(self.column_after(at, Step::Rows(n)));
                    Vec::new()
                }
                Mode::Filter | Mode::Search => Vec::new(),
            };
        }
        if mouse.kind != MouseEventKind::Down(MouseButton::Left) || self.mode != Mode::Table {
            return Vec::new();
        }
        let zones = self.zones();
        let x = usize::from(mouse.column);
        if zones.foot.height > 0 && mouse.row == zones.foot.y {
            let hints = keys::hints(zones.foot.width.into(), self.scene.replay.is_some());
            let on = |(begin, (name, about, _)): &(usize, keys::Hint)| {
                (*begin..begin + name.chars().count() + about.len()).contains(&x)
            };
            let hint = hints.into_iter().find(on);
            return hint.map(|(_, (.., code))| self.key(KeyEvent::from(code))).unwrap_or_default();
        }
        let x = x.saturating_sub(zones.titles.x.into());
        if mouse.row == zones.titles.y {
            let layout = self.layout();
            let look = Look { layout: &layout, by: self.by(), numbers: self.numbers() };
            let hit = look.titles().1.into_iter().find(|(begin, end, _)| (*begin..*end).contains(&x));
            match hit {
                Some((_, _, sort)) if sort == self.settings.sort => return self.act(Action::Reverse),
                Some((_, _, sort)) => return self.sort_by(sort),
                None => {}
            }
        } else if mouse.row >= zones.rows.y && mouse.row < zones.rows.bottom() {
            let at = self.offset + usize::from(mouse.row - zones.rows.y);
            if at < self.slots.len() {
                if self.selected.is_some() && self.at == at {
                    return self.details();
                }
                return self.select(at);
            }
        }
        Vec::new()
    }
}
