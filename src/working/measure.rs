//! What was measured, by window and by owner.

use std::time::Duration;

use super::Clock;
use super::Registers;
use super::Span;

/// The windows, minutes.
pub const WINDOWS: [u64; 4] = [1, 5, 15, 60];
/// The windows, and all the time that was watched.
const ALL: usize = WINDOWS.len() + 1;
const HOUR: Duration = Duration::from_secs(3600);

/// Why the figure of a window is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// It has not been watched for so long.
    Short,
    /// Of what is longer ago than an hour nothing is kept.
    Long,
}

impl Unknown {
    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Unknown::Short => "not watched for so long",
            Unknown::Long => "only the last hour is kept",
        }
    }
}

/// The windows as they are at one moment: those of [`WINDOWS`], and at the end all the time that was watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows([Result<(Span, Duration), Unknown>; ALL]);

impl Windows {
    /// So long after the beginning.
    #[must_use]
    pub fn new(clock: Clock, after: Duration) -> Self {
        let minutes = |m: u64| clock.window(after, Duration::from_secs(60 * m)).ok_or(Unknown::Short);
        let [a, b, c, d] = WINDOWS.map(minutes);
        let all =
            if after > HOUR { Err(Unknown::Long) } else { clock.window(after, after).ok_or(Unknown::Short) };
        Self([a, b, c, d, all])
    }

    /// For each window how long it is, or why it is not known.
    pub fn lengths(&self) -> impl Iterator<Item = Result<Duration, Unknown>> {
        self.0.iter().map(|w| w.map(|(_, long)| long))
    }

    /// What of these marks lies in which window.
    #[must_use]
    pub fn set(&self, marks: &[u8]) -> Set {
        Set(self.0.map(|w| w.ok().map(|(span, _)| Registers::within(marks, span))))
    }
}

/// The pages of one owner, by window; `None` where it is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set([Option<Registers>; ALL]);

impl Set {
    /// Distinct pages by window, about.
    #[must_use]
    pub fn pages(&self) -> [Option<u64>; ALL] {
        self.0.each_ref().map(|r| r.as_ref().map(|r| r.estimate().round() as u64))
    }

    /// The longest window that is known: all that was watched, or the last hour. There is always one.
    #[must_use]
    pub fn longest(&self) -> Option<&Registers> {
        self.0.iter().rev().flatten().next()
    }

    /// Adds what another has, of the same windows: the union of both.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in self.0.iter_mut().zip(&other.0) {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                ours.merge(theirs);
            }
        }
    }

    /// What its figures may be off, as a part of them, in 95 of 100 cases; `None` where nothing was used.
    #[must_use]
    pub fn bound(&self) -> Option<f64> {
        self.longest().filter(|_| self.weight() > 0).map(Registers::bound)
    }

    /// Pages in the longest window.
    pub(crate) fn weight(&self) -> u64 {
        self.longest().map_or(0, |r| r.estimate().round() as u64)
    }
}

/// What was measured of everything and of each owner.
#[derive(Debug, Clone)]
pub struct Measured<W> {
    /// The windows.
    pub windows: Windows,
    /// Everything.
    pub all: Set,
    /// Owners, the largest first.
    pub rows: Vec<(W, Set)>,
    /// How many more there were, and what they used together.
    pub rest: Option<(usize, Set)>,
    /// Processes that had ended, or cgroups that were gone, and gave their sketches back, and what they used together.
    pub ended: Option<(usize, Set)>,
    /// What all used together that have no sketch of their own; `None`: nothing.
    pub other: Option<Set>,
}

impl<W: Ord> Measured<W> {
    /// Puts it in order; `top`: rows that stay by themselves.
    #[must_use]
    pub fn new(windows: Windows, all: Set, mut rows: Vec<(W, Set)>, other: Option<Set>, top: usize) -> Self {
        rows.retain(|(_, set)| set.weight() > 0);
        rows.sort_by(|(a, of_a), (b, of_b)| (of_b.weight(), a).cmp(&(of_a.weight(), b)));
        let more = rows.split_off(top.min(rows.len()));
        let number = more.len();
        let rest = more.into_iter().map(|(_, set)| set).reduce(|mut all, set| {
            all.merge(&set);
            all
        });
        let other = other.filter(|set| set.weight() > 0);
        Self { windows, all, rows, rest: rest.map(|set| (number, set)), ended: None, other }
    }

    /// With those that have ended.
    #[must_use]
    pub fn with_ended(mut self, number: usize, set: Set) -> Self {
        self.ended = (set.weight() > 0).then_some((number, set));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// One page in the first slot, one register each.
    fn page(register: usize) -> Vec<u8> {
        let mut marks = vec![0; 24 << 10];
        marks[register] = 1;
        marks
    }

    #[test]
    fn what_was_not_watched_is_not_known() {
        let windows = Windows::new(Clock::new(s(60)), s(60));
        let known: Vec<_> = windows.lengths().collect();
        let (short, minute) = (Err(Unknown::Short), Ok(s(60)));
        assert_eq!(known, [minute, short, short, short, minute]);
        let set = windows.set(&page(3));
        assert_eq!(set.pages(), [Some(1), None, None, None, Some(1)]);
        let hour = Windows::new(Clock::new(s(3600)), s(3600));
        assert!(hour.lengths().all(|l| l.is_ok()));
        assert_eq!(hour.set(&page(3)).pages(), [Some(0), Some(0), Some(0), Some(1), Some(1)]);
        let more = Windows::new(Clock::new(s(3660)), s(3660));
        assert_eq!(more.lengths().last(), Some(Err(Unknown::Long)));
        assert_eq!(more.set(&page(3)).longest().map(Registers::estimate), Some(0.0));
        // Nothing is off by no part of it.
        assert!(set.bound().is_some() && windows.set(&vec![0; 24 << 10]).bound().is_none());
    }

    #[test]
    fn rows_that_are_cut_are_a_union() {
        let windows = Windows::new(Clock::new(s(5)), s(5));
        let [a, b, nothing] = [page(1), page(2), vec![0; 24 << 10]].map(|marks| windows.set(&marks));
        let mut both = a.clone();
        both.merge(&b);
        let rows =
            vec![("b", b.clone()), ("both", both.clone()), ("none", nothing.clone()), ("a", a.clone())];
        let all = Measured::new(windows, both.clone(), rows, Some(nothing), 1);
        assert_eq!(all.rows, [("both", both.clone())]);
        assert_eq!(all.rest, Some((2, both)));
        assert_eq!(all.other, None);
    }
}
