//! Keys and the mouse.

use std::time::Duration;

use ratatui::crossterm::event::Event;
use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::event::KeyEventKind;
use ratatui::crossterm::event::KeyModifiers;

use super::App;
use super::Effect;
use super::Mode;
use super::Open;
use crate::live::snapshot::Ended;
use crate::pivot::By;
use crate::pivot::Id;
use crate::plan::Engine;
use crate::text::numbers::Unit;
use crate::top::cells;
use crate::top::keys;
use crate::top::keys::Action;
use crate::top::keys::Step;
use crate::top::layout::Beside;
use crate::top::layout::Layout;
use crate::top::settings::Sort;
use crate::top::table::Slot;

/// The lengths that `+` and `-` choose from, in milliseconds.
const INTERVALS: &[u64] =
    &[100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 3_600_000];
/// A filter longer than this is no use.
pub(super) const LONGEST: usize = 200;

/// Escape and the key after it, where a terminal has sent them at once: the library takes the two for one key with Alt.
/// That is how a slow line, or a fast hand, delivers Escape; no key of ours has Alt. Keys that terminals send as sequences
/// of their own say themselves that Alt was held.
fn without_escape(key: KeyEvent) -> Option<(KeyEvent, KeyEvent)> {
    let rest = key.modifiers.difference(KeyModifiers::ALT);
    let escape = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
    let alone = matches!(key.code, KeyCode::Char(_) | KeyCode::Enter | KeyCode::Tab | KeyCode::Backspace);
    (alone && key.modifiers.contains(KeyModifiers::ALT)).then(|| (escape, KeyEvent::new(key.code, rest)))
}

/// Adds what was pasted, as far as there is room.
fn paste(to: &mut String, text: &str) {
    let room = LONGEST.saturating_sub(to.chars().count());
    to.extend(text.chars().filter(|c| !crate::text::foreign::acts(*c)).take(room));
}

impl App {
    /// What an event of the terminal changes, and what is to be done for it.
    pub fn input(&mut self, event: &Event) -> Vec<Effect> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => match without_escape(*key) {
                None => self.key(*key),
                Some((escape, key)) => {
                    let mut effects = self.key(escape);
                    effects.extend(self.key(key));
                    effects
                }
            },
            Event::Mouse(mouse) => self.mouse(*mouse),
            Event::Resize(columns, lines) => {
                self.resized((*columns, *lines));
                Vec::new()
            }
            Event::Paste(text) if self.mode == Mode::Filter => {
                paste(&mut self.filter, text);
                self.begin_anew()
            }
            Event::Paste(text) if self.mode == Mode::Search => {
                paste(&mut self.search, text);
                self.find(self.at)
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if self.scene.replay.is_some() {
            // No interval comes by itself that would let it go.
            self.message = None;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let action = keys::action(key);
        // These work wherever one is.
        match action {
            Some(Action::Quit) if control => return vec![Effect::Quit],
            Some(Action::Redraw) => return vec![Effect::Redraw],
            Some(Action::Suspend) => return vec![Effect::Suspend],
            _ => {}
        }
        match self.mode {
            Mode::Filter => self.filter_key(key, control),
            Mode::Search => self.search_key(key, control),
            Mode::Columns(at) => self.column_key(at, key),
            Mode::Help(line) => {
                match action {
                    Some(Action::Move(step)) => self.mode = Mode::Help(self.scrolled(line, step)),
                    Some(Action::Quit) => return vec![Effect::Quit],
                    _ => self.mode = Mode::Table,
                }
                Vec::new()
            }
            Mode::Details(line) => match action {
                Some(Action::Move(Step::Rows(n))) => {
                    self.choose(line, n);
                    Vec::new()
                }
                Some(Action::Move(step)) => {
                    self.mode = Mode::Details(self.scrolled(line, step));
                    Vec::new()
                }
                Some(Action::Details) => self.follow(line),
                Some(Action::WhatIf) => {
                    self.what_if();
                    Vec::new()
                }
                None if key.code == KeyCode::Backspace => self.leave(),
                None | Some(Action::Help) => Vec::new(),
                Some(Action::Back) => self.leave(),
                Some(
                    action @ (Action::Quit
                    | Action::Pause
                    | Action::Time(_)
                    | Action::Jump(_)
                    | Action::Mark
                    | Action::Unit
                    | Action::Show
                    | Action::Slower
                    | Action::Faster),
                ) => self.act(action),
                Some(action) => {
                    self.close();
                    self.act(action)
                }
            },
            Mode::Table => match (action, key.code) {
                (Some(action), _) => self.act(action),
                (None, KeyCode::Char(c)) if !control => {
                    self.say(keys::instead(c));
                    Vec::new()
                }
                _ => Vec::new(),
            },
        }
    }

    /// Scrolling is bounded by what is drawn: [`crate::top::draw`] never goes beyond the last line.
    pub(super) fn scrolled(&self, line: usize, step: Step) -> usize {
        let page = i64::from(self.size.1.max(4)) - 3;
        // The page may have become shorter: what is in sight is its end.
        let last = crate::top::draw::last_line(self);
        let line = i64::try_from(line.min(last)).unwrap_or(0);
        let to = match step {
            Step::Rows(n) => line + i64::from(n),
            Step::Pages(n) => line + i64::from(n) * page,
            Step::First => 0,
            Step::Last => i64::from(u16::MAX),
        };
        usize::try_from(to).unwrap_or(0).min(last)
    }

    fn filter_key(&mut self, key: KeyEvent, control: bool) -> Vec<Effect> {
        match key.code {
            KeyCode::Enter | KeyCode::Down | KeyCode::Up => {
                self.mode = Mode::Table;
                Vec::new()
            }
            KeyCode::Esc => {
                self.mode = Mode::Table;
                self.filter.clear();
                self.begin_anew()
            }
            KeyCode::Backspace => {
                self.filter.pop();
                self.begin_anew()
            }
            KeyCode::Char('u' | 'w') if control => {
                self.filter.clear();
                self.begin_anew()
            }
            KeyCode::Char(c) if !control && self.filter.chars().count() < LONGEST => {
                self.filter.push(c);
                self.begin_anew()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn act(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Quit => return vec![Effect::Quit],
            Action::Redraw => return vec![Effect::Redraw],
            Action::Suspend => return vec![Effect::Suspend],
            Action::Save => return vec![Effect::Save],
            Action::Help => self.mode = Mode::Help(0),
            Action::Filter => self.mode = Mode::Filter,
            Action::Search => return self.search(),
            Action::Columns => self.mode = Mode::Columns(0),
            Action::Back => return self.back(),
            Action::Move(step) => return self.go(step),
            Action::Details => return self.details(),
            Action::Pivot(by) => return self.pivot(by),
            Action::NextPivot | Action::PreviousPivot => {
                let all = self.pivots();
                let at = all.iter().position(|by| *by == self.settings.by).unwrap_or(0);
                let step = if action == Action::NextPivot { 1 } else { all.len() - 1 };
                return all.get((at + step) % all.len()).map(|by| self.pivot(*by)).unwrap_or_default();
            }
            Action::SortLeft | Action::SortRight => {
                let next = self.next_sort(action == Action::SortRight);
                return self.sort_by(next);
            }
            Action::Reverse => {
                self.settings.reverse = !self.settings.reverse;
                return self.begin_anew();
            }
            Action::ScrollLeft => self.skip = self.skip.saturating_sub(1),
            Action::ScrollRight => {
                if self.layout().hidden.1 > 0 {
                    self.skip += 1;
                }
            }
            Action::Threads => return self.threads(),
            Action::Tree => return self.next_tree(),
            Action::Ended => return self.next_ended(),
            Action::Show => {
                self.settings.show = self.settings.show.next();
                return vec![Effect::View(self.view())];
            }
            Action::Unit => {
                self.settings.unit = match self.settings.unit {
                    Unit::Pages => Unit::Bytes,
                    Unit::Bytes => Unit::Pages,
                };
            }
            Action::WhatIf => self.say("the details of a cgroup (5, Enter) say what if"),
            Action::Mark => return self.mark(),
            Action::Time(by) => return self.travel(by),
            Action::Jump(seconds) => return self.jump(seconds),
            Action::Pause if self.back.is_some() => return self.return_to_now(),
            Action::Pause => {
                self.paused = !self.paused;
                let mut out = vec![Effect::Hold(self.paused)];
                if !self.paused {
                    // The newest interval at once, not at the next tick.
                    out.push(Effect::View(self.view()));
                }
                return out;
            }
            Action::Slower | Action::Faster => return self.change_interval(action == Action::Slower),
        }
        Vec::new()
    }

    fn threads(&mut self) -> Vec<Effect> {
        if self.scene.engine != Engine::Exact {
            self.say("the classic engine does not count threads");
            return Vec::new();
        }
        if self.scene.by_file {
            self.say("files are counted by process: there are no rows of threads");
            return Vec::new();
        }
        self.settings.threads = !self.settings.threads;
        if self.settings.by != By::Process {
            self.settings.threads = true;
            self.settings.by = By::Process;
        }
        vec![Effect::View(self.view())]
    }

    fn next_ended(&mut self) -> Vec<Effect> {
        if self.scene.replay.is_some() {
            self.say("who has ended was not recorded");
            return Vec::new();
        }
        if !self.scene.told_of_ends {
            self.say("from within a PID namespace nobody can tell which processes have ended");
            return Vec::new();
        }
        self.settings.ended = self.settings.ended.next();
        self.say(match self.settings.ended {
            Ended::Cgroup => "processes that have ended: together by cgroup",
            Ended::Parent => "processes that have ended: together below the nearest parent that lives",
            Ended::Apart => "processes that have ended: each by itself, behind the living",
            _ => "processes that have ended: together by command",
        });
        vec![Effect::View(self.view())]
    }

    fn back(&mut self) -> Vec<Effect> {
        if self.back.is_some() {
            return self.return_to_now();
        }
        if !self.filter.is_empty() {
            self.filter.clear();
            return self.begin_anew();
        }
        self.selected = None;
        let _ = self.begin_anew();
        vec![Effect::Watch(None)]
    }

    pub(super) fn go(&mut self, step: Step) -> Vec<Effect> {
        let last = self.slots.len().saturating_sub(1);
        let by = |n: i64| {
            let from = i64::try_from(self.at).unwrap_or(0);
            usize::try_from((from + n).max(0)).unwrap_or(0).min(last)
        };
        let page = i64::try_from(self.page()).unwrap_or(1);
        let at = match step {
            Step::First => 0,
            Step::Last => last,
            // The first step selects the first row that is seen.
            Step::Rows(_) if self.selected.is_none() => self.offset.min(last),
            Step::Rows(n) => by(n.into()),
            Step::Pages(n) => by(i64::from(n) * page),
        };
        self.select(at)
    }

    pub(super) fn details(&mut self) -> Vec<Effect> {
        let mut out = Vec::new();
        if self.selected.is_none() {
            out = self.select(self.offset);
        }
        let Some(slot) = self.slots.get(self.at).copied().filter(|_| self.selected.is_some()) else {
            self.say("no row to show");
            return out;
        };
        let by = if matches!(slot, Slot::Thread(..)) { By::Thread } else { self.by() };
        // Of several that have ended it is shown what they have in common.
        let together = self.entry(slot).is_some_and(|e| e.ended.is_some());
        let by = match (together, self.view().ended) {
            (true, Ended::Cgroup) => By::Cgroup,
            (true, Ended::Parent) => By::Process,
            (true, _) => By::Comm,
            (false, _) => by,
        };
        if let (Some((row, _)), Some(id)) = (self.row(slot), self.id(slot).cloned()) {
            let who = row.who;
            let id = if together { Id::new(by, &who) } else { id };
            self.trail.clear();
            self.open = Some(Open::new(by, id.clone(), who.clone()));
            self.mode = Mode::Details(0);
            out.push(Effect::Details(by, id, Box::new(who)));
        }
        out
    }

    fn pivot(&mut self, by: By) -> Vec<Effect> {
        if !self.pivots().contains(&by) {
            let why = match self.scene.engine {
                Engine::Exact if by == By::Thread => {
                    "files are counted by process: there are no rows of threads"
                }
                Engine::Exact if by == By::Evictor => match self.scene.replay {
                    Some(_) => "who pushes pages out is not recorded",
                    None => "who pushes pages out is counted where it was started with --by evictor",
                },
                Engine::Exact => "files are not counted: it was started with --no-files",
                _ => "the classic engine counts by process only",
            };
            self.say(why);
            return Vec::new();
        }
        if self.settings.by == by && self.by() == by {
            return Vec::new();
        }
        self.settings.by = by;
        vec![Effect::Watch(None), Effect::View(self.view())]
    }

    /// The columns that can be sorted by, from left to right.
    fn next_sort(&self, right: bool) -> Sort {
        let layout = self.layout();
        let columns = self.columns().into_iter().filter(|c| cells::sorts_rows(c));
        let mut all: Vec<Sort> = columns.map(Sort::Column).collect();
        if layout.leads.iter().any(|lead| lead.sort(self.by()) == Some(Sort::Id)) {
            all.insert(0, Sort::Id);
        }
        all.insert(0, Sort::Busy);
        all.push(Sort::Name);
        let at = all.iter().position(|s| *s == self.settings.sort).unwrap_or(0);
        let next = if right { (at + 1).min(all.len() - 1) } else { at.saturating_sub(1) };
        all.get(next).copied().unwrap_or(self.settings.sort)
    }

    pub(super) fn sort_by(&mut self, sort: Sort) -> Vec<Effect> {
        if matches!(sort, Sort::Column(column) if !cells::sorts_rows(column)) {
            self.say("that is asked for the rows on the screen only: none are sorted by it");
            return Vec::new();
        }
        if self.settings.sort == sort {
            return Vec::new();
        }
        (self.settings.sort, self.settings.reverse) = (sort, false);
        // A column that is out of sight comes into it.
        if let Sort::Column(column) = sort {
            let columns = self.columns();
            let at = columns.iter().position(|c| c.id == column.id).unwrap_or(0);
            self.skip = self.skip.min(at);
            let (by, width) = (self.by(), usize::from(self.zones().rows.width));
            let beside = Beside { units: self.units, share: true };
            let layout = |skip| Layout::new(by, beside, (&columns, skip), width);
            let seen = |skip| at < skip + layout(skip).columns.len().max(1);
            while !seen(self.skip) {
                self.skip += 1;
            }
        }
        self.begin_anew()
    }

    fn change_interval(&mut self, slower: bool) -> Vec<Effect> {
        let now = self.settings.interval;
        let mut steps = INTERVALS.iter().map(|ms| Duration::from_millis(*ms));
        let next = if slower { steps.find(|s| *s > now) } else { steps.rev().find(|s| *s < now) };
        // What was recorded can be put together, and not taken apart.
        let shortest = self.scene.replay.as_ref().map_or(Duration::ZERO, |r| r.recorded);
        let next = next.map(|next| next.max(shortest)).filter(|next| *next != now);
        let Some(next) = next else {
            self.say("no more than that");
            return Vec::new();
        };
        self.settings.interval = next;
        self.say(format!("intervals of {} s", next.as_secs_f64()));
        vec![Effect::Interval(next)]
    }
}
