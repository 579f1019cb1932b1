//! Back in time, and on again.

use super::App;
use super::Effect;
use super::HISTORY;
use crate::live::snapshot::Snapshot;
use crate::model::Interval;
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

    /// Another interval of those before; behind the last one the picture goes on.
    pub(super) fn travel(&mut self, by: i32) -> Vec<Effect> {
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
