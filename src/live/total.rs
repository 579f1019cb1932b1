//! The sum of intervals.

use crate::figures::Figure;
use crate::figures::Figures;
use crate::live::whole::Whole;
use crate::model::Interval;
use crate::pivot::Pivot;
use crate::plan::Plan;
use crate::sample::Sample;

/// All intervals so far as one, without rows: those are added up by [`Rows`].
#[derive(Debug, Default)]
pub struct Total(Option<Interval>);

impl Total {
    /// What was there before, if there was any interval.
    #[must_use]
    pub const fn so_far(&self) -> Option<&Interval> {
        self.0.as_ref()
    }

    /// Adds an interval: all that there is by now.
    pub fn add(&mut self, interval: &Interval) -> &Interval {
        let run = self.0.take();
        self.0.insert(sum(run, interval))
    }
}

/// What the rows of all intervals so far add up to, where there are any. There is no bound to how many processes a run may see,
/// but one to how many are kept: see [`Whole`].
#[derive(Debug)]
pub struct Rows(Option<Box<Whole>>);

impl Rows {
    /// None yet: what this sample has was counted before.
    #[must_use]
    pub fn new(first: &Sample, pivot: &Pivot) -> Self {
        Self(pivot.by.map(|_| Box::new(Whole::new(first, &pivot.filter))))
    }

    /// Adds those of the next sample. `alive` says whether there is a process with an id.
    pub fn add(&mut self, now: &Sample, pivot: &mut Pivot, alive: &dyn Fn(u32) -> bool) {
        if let Some(whole) = &mut self.0 {
            whole.add(now, &pivot.filter, pivot.names.as_mut(), alive);
        }
    }

    /// The total with its rows below it, ranked over all intervals.
    #[must_use]
    pub fn below(&self, total: &Interval, pivot: &mut Pivot, plan: &Plan) -> Interval {
        let Some((whole, by)) = self.0.as_ref().zip(pivot.by) else { return total.clone() };
        let files = pivot.files();
        let forgotten = |row: usize| whole.is_forgotten(by, files, row);
        let Interval { rows, groups, .. } =
            pivot.below(&whole.line(files), (&whole.first, &whole.sum), plan, &forgotten);
        Interval { rows, groups, ..total.clone() }
    }
}

fn sum(run: Option<Interval>, interval: &Interval) -> Interval {
    let mut sum = Interval { rows: Vec::new(), groups: 0, ..interval.clone() };
    if let Some(run) = run {
        sum.seconds += run.seconds;
        sum.total = add(&run.total, &interval.total);
        sum.classic = run.classic.zip(interval.classic).map(|(a, b)| a.and(&b));
        sum.back = run.back.zip(interval.back).map(|(a, b)| a.saturating_add(b));
        sum.histograms = sum.histograms.zip(run.histograms).map(|(mut sum, run)| {
            sum.add(&run);
            sum
        });
        for (why, n) in run.lost.by_reason {
            match sum.lost.by_reason.iter_mut().find(|(w, _)| *w == why) {
                Some((_, m)) => *m = m.saturating_add(n),
                None => sum.lost.by_reason.push((why, n)),
            }
        }
    }
    sum
}

fn add(a: &Figures, b: &Figures) -> Figures {
    let mut out = Figures::unknown();
    for figure in Figure::ALL {
        out.set(*figure, a.get(*figure).zip(b.get(*figure)).map(|(a, b)| a.saturating_add(b)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixtures;

    #[test]
    fn what_is_not_known_of_one_is_not_known_of_the_sum() {
        let known = fixtures::figures(&[(Figure::Hits, 2)]);
        assert_eq!(add(&known, &known).get(Figure::Hits), Some(4));
        assert_eq!(add(&known, &Figures::unknown()).get(Figure::Hits), None);
        let mut one = fixtures::interval(Figures::unknown());
        one.histograms = Some(Box::default());
        let without = Interval { histograms: None, ..one.clone() };
        assert!(sum(Some(one.clone()), &one).histograms.is_some());
        assert!(sum(Some(without.clone()), &one).histograms.is_none());
        assert!(sum(Some(one), &without).histograms.is_none());
    }
}
