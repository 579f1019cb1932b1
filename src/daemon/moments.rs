//! `--when EXPR [for TIME]`: what is to be told as soon as it is so.
//!
//! An expression is one of `cachestat --assert`, of the whole machine in an interval, and may have rates. It is told once when
//! it has held for its time without a gap, and again only after it has not held. What is not known does not hold.

use std::time::Duration;

use crate::figures::Figure;
use crate::model::Interval;
use crate::report::assert::Assertion;
use crate::text::times;

/// Conditions that can be given: each is looked at in every interval, and has a series.
pub const MOST: usize = 100;

/// A condition, as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// All of it.
    pub text: String,
    expression: Assertion,
    /// For so long it must hold; zero: once is enough.
    holds_for: Duration,
}

impl Condition {
    /// Reads `EXPR` or `EXPR for TIME`.
    ///
    /// # Errors
    /// What is wrong with it, in words for its author.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (expression, holds_for) = match text.rsplit_once(" for ") {
            Some((expression, time)) => {
                let time = time.trim();
                (expression, times::read(time).map_err(|e| format!("'for {time}': {e}"))?)
            }
            None => (text, Duration::ZERO),
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Self { text, expression: Assertion::parse_interval(expression)?, holds_for })
    }

    /// The first figure that it needs and that is not known here.
    #[must_use]
    pub fn lacks(&self, known: &[bool]) -> Option<Figure> {
        self.expression.needs().into_iter().find(|f| !known.get(*f as usize).copied().unwrap_or(false))
    }
}

/// A condition, and what has become of it.
#[derive(Debug)]
pub struct Watched {
    /// What was given.
    pub condition: Condition,
    /// Since when it has held without a gap: the beginning of the first interval, and how long ago that was.
    since: Option<(jiff::Timestamp, f64)>,
    /// It was told of this time.
    told: bool,
    /// How often it was told.
    pub count: u64,
}

/// A condition has held for its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// The condition, as it was given.
    pub when: String,
    /// What the figures were in the last interval.
    pub found: String,
    /// The end of the last interval.
    pub time: jiff::Timestamp,
    /// The beginning of the first one.
    pub since: jiff::Timestamp,
    /// Seconds between them, by the monotonic clock.
    pub seconds: f64,
}

impl Watched {
    /// Has not held yet.
    #[must_use]
    pub const fn new(condition: Condition) -> Self {
        Self { condition, since: None, told: false, count: 0 }
    }

    /// Looks at an interval.
    pub fn look(&mut self, interval: &Interval) -> Option<Moment> {
        let outcome = self.condition.expression.check_interval(interval);
        if !outcome.holds {
            (self.since, self.told) = (None, false);
            return None;
        }
        let began =
            || interval.time - jiff::SignedDuration::try_from_secs_f64(interval.seconds).unwrap_or_default();
        let (since, before) = self.since.unwrap_or_else(|| (began(), 0.0));
        let seconds = before + interval.seconds;
        self.since = Some((since, seconds));
        // Intervals end a little early or late.
        let long = seconds >= self.condition.holds_for.as_secs_f64() - 0.05 * interval.seconds;
        if self.told || !long {
            return None;
        }
        self.told = true;
        self.count += 1;
        Some(Moment {
            when: self.condition.text.clone(),
            found: outcome.found,
            time: interval.time,
            since,
            seconds,
        })
    }
}

impl Moment {
    /// A line for people.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "{}: {}, for {:.1} s since {}",
            self.when,
            self.found,
            self.seconds,
            crate::view::utc(self.since)
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::model;
    use crate::sample::Counter;
    use crate::sample::Moment as At;
    use crate::view::fixtures;

    /// An interval of a second with so many misses of so many accesses.
    fn interval(hits: u64, misses: u64) -> Interval {
        let start = At::now();
        let before = fixtures::sample(start, Duration::ZERO, &[]);
        let counted = [(Counter::ReadHits, hits), (Counter::ReadMisses, misses), (Counter::Evicted, misses)];
        let now = fixtures::sample(start, Duration::from_secs(1), &counted);
        model::whole(&before, &now, &fixtures::plan(&[]))
    }

    fn watched(text: &str) -> Watched {
        Watched::new(Condition::parse(text).unwrap())
    }

    #[test]
    fn it_is_told_once_and_again_after_a_gap() {
        let mut watched = watched("misses > 100/s");
        let told: Vec<bool> =
            [200, 300, 50, 101, 100].iter().map(|n| watched.look(&interval(0, *n)).is_some()).collect();
        assert_eq!(told, [true, false, false, true, false]);
        assert_eq!(watched.count, 2);
    }

    #[test]
    fn it_must_hold_without_a_gap() {
        let mut watched = watched("misses >= 5 for 3s");
        let all = [9, 9, 0, 9, 9, 9, 9];
        let told: Vec<_> = all.iter().map(|n| watched.look(&interval(0, *n))).collect();
        let at: Vec<_> = told.iter().enumerate().filter(|(_, m)| m.is_some()).map(|(i, _)| i).collect();
        assert_eq!(at, [5]);
        let moment = told[5].as_ref().unwrap();
        assert_eq!((moment.seconds, moment.found.as_str()), (3.0, "read.misses is 9"));
    }

    #[test]
    fn what_is_not_known_does_not_hold() {
        // Nothing was read: there is no share.
        let mut watched = watched("hit_ratio < 100%");
        assert!(watched.look(&interval(0, 0)).is_none());
        assert!(watched.look(&interval(9, 1)).is_some());
        let moment = watched.look(&interval(0, 0));
        assert!(moment.is_none());
        assert!(watched.look(&interval(1, 9)).is_some(), "an interval without reads is a gap");
    }

    #[test]
    fn what_is_told_does_not_read_as_if_it_were_not_so() {
        let mut low = watched("hit_ratio < 99%");
        assert_eq!(low.look(&interval(9896, 104)).unwrap().found, "hit_ratio is 98.96 %");
        let mut rate = watched("misses > 99.95/s");
        assert_eq!(rate.look(&interval(0, 100)).unwrap().found, "read.misses is 100/s");
    }

    #[test]
    fn what_the_cache_as_a_whole_loses_can_be_asked_for() {
        assert!(watched("evicted > 10").look(&interval(0, 11)).is_some());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("", "a comparison is missing"),
            ("misses", "a comparison is missing"),
            ("misses > 10 for", "is no unit"),
            ("misses > 10 for ever", "'for ever': it is not a number of seconds"),
            ("misses > 10 for 0s", "more than 0 seconds"),
            ("misses > 10 for -1s", "more than 0 seconds"),
            ("wall > 10", "'wall' is no figure"),
            ("run1.misses > 10", "'run1.misses' is no figure"),
            ("mean.misses > 10", "is no figure"),
            ("hit_ratio < 5/s", "has no rate"),
            ("misses > 5%/s", "is no rate"),
            ("10/s > 5", "both sides are numbers"),
            ("read.bytes > 3 apples/s", "is no unit"),
            ("misses > 1/h", "is no unit"),
            ("hit_ratio < 50 for 30s", "write '50%' or '0.5'"),
            ("misses > misses", "both sides are the same figure"),
        ] {
            let error = Condition::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(Assertion::parse("misses > 5/s").unwrap_err().contains("is a rate"));
    }
}
