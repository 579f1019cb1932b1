//! From the details of a row to those of another one, and back.

use super::App;
use super::Effect;
use super::Mode;
use super::Open;
use crate::pivot::By;
use crate::pivot::Id;
use crate::pivot::Who;
use crate::top::keys::Step;
use crate::top::links;
use crate::top::links::Link;
use crate::top::links::WhatIf;

/// Lines of what is told of other sizes of the cache: a title, a table, sentences.
const ANSWER: usize = 14;
/// So many steps back are remembered.
const TRAIL: usize = 100;

impl App {
    /// What can be chosen on the page, and on which line it stands.
    fn places(&self) -> Vec<(Link, usize)> {
        crate::top::draw::links(self)
    }

    /// Chooses the next link in sight, or scrolls by a line.
    pub(super) fn choose(&mut self, line: usize, by: i32) {
        let height = usize::from(self.zones().page.height);
        let line = line.min(crate::top::draw::last_line(self));
        let seen = |at: usize| (line..line + height).contains(&at);
        let places = self.places();
        let Some(open) = &mut self.open else { return };
        let now = open.chosen.as_ref().and_then(|chosen| places.iter().position(|(link, _)| link == chosen));
        let now = now.filter(|n| places.get(*n).is_some_and(|(_, at)| seen(*at)));
        // Rows come and go: from the place of one that is gone it goes on, not from the beginning.
        let gone = open.chosen.as_ref().is_some_and(|chosen| places.iter().all(|(link, _)| link != chosen));
        let from = open.chosen_line.filter(|at| gone && seen(*at));
        let next = match (now, by > 0) {
            (None, true) if from.is_some() => places.iter().find(|(_, at)| Some(*at) > from),
            (None, false) if from.is_some() => places.iter().rfind(|(_, at)| Some(*at) < from),
            (Some(n), true) => places.get(n + 1),
            (Some(n), false) => n.checked_sub(1).and_then(|n| places.get(n)),
            (None, true) => places.iter().find(|(_, at)| seen(*at)),
            (None, false) => places.iter().rfind(|(_, at)| seen(*at)),
        };
        match next {
            Some((link, at)) if seen(*at) => {
                (open.chosen, open.chosen_line) = (Some(link.clone()), Some(*at))
            }
            // On the way there is what one wants to read.
            _ => self.mode = Mode::Details(self.scrolled(line, Step::Rows(by))),
        }
    }

    /// Goes where the link leads.
    pub(super) fn follow(&mut self, line: usize) -> Vec<Effect> {
        let commands = self.scene.replay.is_none();
        let Some(open) = &self.open else { return Vec::new() };
        let chosen = open.chosen.clone().filter(|chosen| links::all(open, commands).contains(chosen));
        let target = match &chosen {
            None => {
                self.say("Up and Down choose a row, Enter opens it, Esc goes back");
                return Vec::new();
            }
            Some(Link::Command(n)) => {
                let run = links::commands(open.by, &open.who).into_iter().nth(*n);
                return run.map(Effect::Run).into_iter().collect();
            }
            Some(Link::Row(by, id)) => links::who(open, *by, id).map(|who| (*by, who.clone())),
            Some(Link::Finding(n)) => links::proof(open, *n).map(|(by, who)| (by, who.clone())),
        };
        target.map_or_else(Vec::new, |(by, who)| self.open_next(by, who, line))
    }

    /// Asks what if, or does not any more.
    pub(super) fn what_if(&mut self) {
        let replay = self.scene.replay.is_some();
        let Some(open) = &mut self.open else { return };
        let suits = !replay && links::what_if(open.by, &open.who, false).is_some();
        match open.what_if {
            Some(_) => open.what_if = None,
            None if suits => open.what_if = Some(WhatIf::Starting),
            // The page offers it where it can be asked; it has no line for messages.
            None => {}
        }
        if self.predicts().is_some() {
            self.show_answer();
        }
    }

    /// On a small screen the answer comes below what is in sight, and what stands above it may grow meanwhile.
    fn show_answer(&mut self) {
        let Mode::Details(at) = self.mode else { return };
        let sight = at..at + usize::from(self.zones().page.height);
        let hidden = |line: &usize| *line < sight.start || line + ANSWER > sight.end;
        // While the row is being looked up there is nothing to go to yet.
        let line = crate::top::draw::asked(self).filter(hidden);
        let to = line.map_or(at, |line| line.min(crate::top::draw::last_line(self)));
        self.mode = Mode::Details(to);
        if let Some(open) = &mut self.open {
            open.answer_line = Some(to);
        }
    }

    /// The cgroup of which it is asked now.
    #[must_use]
    pub fn predicts(&self) -> Option<&Open> {
        self.open.as_ref().filter(|open| open.what_if.is_some())
    }

    /// Takes what was predicted. Returns whether anybody wants to know it still.
    pub fn predicted(&mut self, id: &Id, told: WhatIf) -> bool {
        let asked = |open: &&mut Open| open.by == By::Cgroup && open.id == *id && open.what_if.is_some();
        let Some(open) = self.open.as_mut().filter(asked) else { return false };
        open.what_if = Some(told);
        // Unless somebody has gone on from there.
        if open.answer_line.is_some_and(|line| self.mode == Mode::Details(line)) {
            self.show_answer();
        }
        true
    }

    fn open_next(&mut self, by: By, who: Who, line: usize) -> Vec<Effect> {
        let id = Id::new(by, &who);
        if let Some(mut from) = self.open.replace(Open::new(by, id.clone(), who.clone())) {
            // What is not looked at is not watched.
            (from.what_if, from.answer_line) = (None, None);
            if self.trail.len() >= TRAIL {
                self.trail.remove(0);
            }
            self.trail.push((from, line));
        }
        self.mode = Mode::Details(0);
        vec![Effect::Details(by, id, Box::new(who))]
    }

    /// Back to where one came from: the details before, or the table.
    pub(super) fn leave(&mut self) -> Vec<Effect> {
        let Some((open, line)) = self.trail.pop() else {
            self.close();
            return Vec::new();
        };
        let again = Effect::Details(open.by, open.id.clone(), Box::new(open.who.clone()));
        self.open = Some(open);
        self.mode = Mode::Details(line);
        vec![again]
    }

    /// Back to the table.
    pub(super) fn close(&mut self) {
        self.mode = Mode::Table;
        self.open = None;
        self.trail.clear();
    }
}
