//! What a row did in the last ten minutes, interval by interval: of what is kept of the past.

use std::collections::VecDeque;

use crate::figures::Figure;
use crate::live::keeper::Id;
use crate::live::keeper::Keeper;
use crate::model;
use crate::pivot;
use crate::pivot::By;
use crate::pivot::Who;
use crate::pivot::of_file;
use crate::pivot::of_row;
use crate::sample::Counters;
use crate::top::whose::has_file;
use crate::top::whose::has_thread;

/// What is shown of an interval: misses below, first uses of read-ahead, hits.
const FIGURES: [Figure; 3] = [Figure::Misses, Figure::ReadAheadHits, Figure::Hits];

/// An interval of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The number of the interval.
    pub number: u64,
    /// Its length.
    pub seconds: f64,
    /// Misses, first uses of read-ahead and hits in it; `None` where that is not known.
    pub values: Option<[u64; 3]>,
    /// Only the busiest rows of it were kept, so that it may have been more.
    pub cut: bool,
}

/// The intervals of a row, the oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    by: By,
    id: Id,
    /// Those that are kept.
    pub bars: VecDeque<Bar>,
}

impl Keeper<'_> {
    /// What a row did; only what is new since `old` is looked at. `None` where nothing is kept.
    pub fn course(&mut self, old: Option<Course>, (by, id, who): (By, &Id, &Who)) -> Option<Course> {
        let filter = self.filter().clone();
        let (past, pivot, plan) = self.past()?;
        let (Some(oldest), Some(latest)) = (past.oldest(), past.latest()) else { return None };
        let same = |course: &Course| course.by == by && course.id == *id;
        let mut out =
            old.filter(same).unwrap_or_else(|| Course { by, id: id.clone(), bars: VecDeque::new() });
        while out.bars.front().is_some_and(|bar| bar.number < oldest) {
            out.bars.pop_front();
        }
        let files = by.files() || filter.files();
        let known = pivot::known(&plan, files);
        let names = pivot.names.as_mut();
        let from = out.bars.back().map_or(oldest, |bar| bar.number + 1);
        for there in (from..=latest).filter_map(|number| past.unpack(number)) {
            let (mut sum, mut found) = (Counters::default(), false);
            let mut add = |counters| {
                found = true;
                sum.add_sparse(counters);
            };
            if files {
                let own = |r: &&_| has_file(by, who, r, names) && filter.takes(&of_file(r), names);
                there.now.files.iter().filter(own).for_each(|r| add(&r.counters));
            } else {
                let own = |r: &&_| has_thread(by, who, r, names) && filter.takes(&of_row(r), names);
                there.now.rows.iter().filter(own).for_each(|r| add(&r.counters));
            }
            let cut = if files { there.cut.1 } else { there.cut.0 };
            let figures = model::known_figures(&sum, &known);
            let [misses, ahead, hits] = FIGURES.map(|figure| figures.get(figure));
            let values = (|| Some([misses?, ahead?, hits?]))().filter(|_| found || !cut);
            let seconds = there.now.at.since(there.before.at).as_secs_f64();
            out.bars.push_back(Bar { number: there.number, seconds, values, cut: cut && found });
        }
        Some(out)
    }
}
