//! Back in time, and on again.

use super::App;
use super::Effect;
use super::HISTORY;
use crate::live::snapshot::Snapshot;
use crate::model::Interval;
use crate::sample::Lost;
use crate::top::argv::Argv;
use crate::top::cells;
use crate::top::settings::Show;
use crate::top::summary;

/// The figures of the upper part in an interval.
#[derive(Debug, Clone)]
pub struct Moment {
    /// The number of the interval.
    pub number: u64,
    /// Its length.
    pub seconds: f64,
    /// Per second, in the order of [`summary::series`].
    pub values: Vec<Option<f64>>,
}

impl App {
    /// Keeps the figures of the upper part.
    pub(super) fn remember(&mut self, snapshot: &Snapshot) {
        let system: &Interval = &snapshot.system;
        let numbers = summary::numbers(&self.settings, &self.scene, system.seconds);
        let line = crate::columns::Line::from(system);
        let values = summary::series(self.scene.engine).iter().map(|id| {
            let value = cells::find(id).map(|c| c.value(&line))?;
            numbers.height(value)
        });
        let (number, seconds, values) = (snapshot.number, system.seconds, values.collect());
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(Moment { number, seconds, values });
    }

    /// How long before the last interval the one ended that is looked at, in seconds.
    #[must_use]
    pub fn ago(&self) -> f64 {
        let number = self.snapshot.as_ref().map_or(0, |s| s.number);
        self.history.iter().rev().take_while(|m| m.number > number).map(|m| m.seconds).sum()
    }

    /// What follows is of another time of a recording.
    pub fn anew(&mut self) {
        self.history.clear();
        self.lost = Lost::default();
        // The same number may be another process.
        self.argv = Argv::default();
        self.begin_totals();
    }

    /// Totals begin with the interval that is shown next.
    pub fn begin_totals(&mut self) {
        self.since = None;
    }

    /// Since when totals are added up.
    #[must_use]
    pub fn since(&self) -> String {
        match self.since.filter(|_| self.scene.replay.is_some()) {
            Some(time) => format!("{} on", time.to_zoned(self.scene.zone.clone()).strftime("%H:%M:%S")),
            None => "since start".into(),
        }
    }

    /// Marks the interval that is shown, and keeps what was before and after it in a file.
    pub(super) fn mark(&mut self) -> Vec<Effect> {
        /// Marks that are remembered.
        const MOST: usize = 64;
        if self.scene.replay.is_some() {
            self.say("this is a recording already: --from begins it at a moment");
            return Vec::new();
        }
        let Some(snapshot) = &self.snapshot else {
            self.say("there is nothing to keep before the first interval has ended");
            return Vec::new();
        };
        if self.scene.engine != crate::plan::Engine::Exact {
            self.say("the classic engine keeps nothing of the past");
            return Vec::new();
        }
        let (number, oldest) = (snapshot.number, snapshot.oldest);
        self.marks.retain(|mark| *mark != number && *mark >= oldest);
        if self.marks.len() == MOST {
            self.marks.remove(0);
        }
        self.marks.push(number);
        let time = snapshot.system.time.to_zoned(self.scene.zone.clone());
        vec![Effect::Keep(format!("cachetop-{}.record", time.strftime("%Y%m%dT%H%M%S")), self.marks.clone())]
    }

    /// An interval that was marked was not kept: it has no mark, and why is said.
    pub fn not_kept(&mut self, mark: Option<u64>, why: String) {
        self.marks.retain(|m| Some(*m) != mark);
        self.say(why);
    }

    /// So many seconds back, or on.
    pub(super) fn jump(&mut self, seconds: i32) -> Vec<Effect> {
        if self.scene.replay.is_some() {
            return self.step(Effect::Jump(seconds));
        }
        self.travel(seconds.signum() * self.intervals(seconds))
    }

    /// How many intervals before the one on the screen, or behind it, take so many seconds together: each is as long as it was,
    /// whatever is set by now. At least one.
    fn intervals(&self, seconds: i32) -> i32 {
        let number = self.snapshot.as_ref().map_or(0, |s| s.number);
        let before = self.history.iter().rev().filter(|m| m.number <= number && seconds < 0);
        let behind = self.history.iter().filter(|m| m.number > number && seconds > 0);
        let (mut left, mut count) = (f64::from(seconds.unsigned_abs()), 0);
        let mut length = self.settings.interval.as_secs_f64();
        for moment in before.chain(behind) {
            length = moment.seconds;
            if left < length / 2.0 {
                return count.max(1);
            }
            (left, count) = (left - length, count + 1);
        }
        // Of those that the charts have forgotten only the number is known: taken to be as long as the last one here.
        let more = (left / length).round() as i32;
        count.saturating_add(more).max(1)
    }

    /// Whoever steps through a recording wants to see where that led.
    fn step(&mut self, effect: Effect) -> Vec<Effect> {
        let mut out = if self.paused { Vec::new() } else { vec![Effect::Hold(true)] };
        self.paused = true;
        out.push(effect);
        out
    }

    /// Another interval of those before; behind the last one the picture goes on.
    pub(super) fn travel(&mut self, by: i32) -> Vec<Effect> {
        if self.scene.replay.is_some() {
            return self.step(Effect::Step(by));
        }
        let (Some(snapshot), Some(last)) = (&self.snapshot, self.history.back()) else { return Vec::new() };
        let to = i64::try_from(snapshot.number).unwrap_or(i64::MAX).saturating_add(by.into());
        let to = u64::try_from(to).unwrap_or(0);
        if to > last.number && self.back.is_some() {
            return self.return_to_now();
        }
        if to < snapshot.oldest && snapshot.number <= snapshot.oldest {
            self.say("nothing before this is kept");
            return Vec::new();
        }
        let to = to.clamp(snapshot.oldest, last.number);
        if self.view().show == Show::Total && self.back.is_none() {
            self.say("totals are not kept of the past: these are the intervals");
        }
        (self.paused, self.back) = (true, Some(to));
        vec![Effect::Back(self.back)]
    }

    pub(super) fn return_to_now(&mut self) -> Vec<Effect> {
        (self.paused, self.back) = (false, None);
        vec![Effect::Back(None)]
    }
}
