//! Where to begin to read a recording, so that an interval is shown and the charts before it are filled.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use jiff::Timestamp;

use super::Tape;
use crate::exit::Failure;
use crate::record::replay::Opened;
use crate::record::replay::Part;
use crate::record::replay::Replay;
use crate::record::replay::When;
use crate::sample::Source as _;
use crate::text::foreign;
use crate::wait::Wait as _;
use crate::wait::Wake;

/// Where reading begins, and how many intervals are passed before one is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Intervals that end then or later; `None`: all.
    pub from: Option<Timestamp>,
    /// So many of them are passed.
    pub skip: usize,
}

/// A jump should take no longer than this for what is before the interval.
const BUDGET: Duration = Duration::from_millis(40);
/// Bars of the widest chart; fewer where they take too long to read.
const MOST: u128 = 240;

/// How many intervals are read before one, where each takes so long.
fn lead(cost: Duration) -> u32 {
    let fits = BUDGET.as_nanos() / cost.as_nanos().max(1);
    u32::try_from(fits.clamp(2, MOST)).unwrap_or(2)
}

/// Ends of intervals, as far as they are needed.
struct Ends {
    from: Timestamp,
    ends: VecDeque<Timestamp>,
    /// Those before were forgotten.
    cut: bool,
    /// Nothing was recorded before them.
    all: bool,
}

impl Ends {
    /// The place that shows the interval with this index, with so many before it.
    fn place(&self, index: usize, lead: usize) -> Place {
        let start = index.saturating_sub(lead).max(usize::from(self.cut)).min(index);
        let before = start.checked_sub(1).and_then(|n| self.ends.get(n));
        let next = |end: &Timestamp| end.saturating_add(Duration::from_nanos(1)).unwrap_or(*end);
        Place { from: Some(before.map_or(self.from, next)), skip: index - start }
    }
}

impl Tape {
    pub(super) fn interval(&self) -> Duration {
        self.every.unwrap_or(self.recorded)
    }

    /// Two intervals that end so close together are one.
    pub(super) fn half(&self) -> Duration {
        self.recorded.min(self.length) / 2
    }

    /// How many intervals are read before the one that is shown.
    pub(super) fn lead(&self) -> u32 {
        lead(self.cost)
    }

    pub(super) fn reopen(&self, from: Option<Timestamp>) -> Result<Opened, Failure> {
        let part = Part { from: from.map(When::At), to: None, every: self.every, onwards: true };
        let said = Rc::clone(&self.said);
        said.borrow_mut().clear();
        let say = move |text: &str| *said.borrow_mut() = foreign::line(text).into_owned();
        Replay::open(&self.path, &part, Box::new(say))
    }

    /// Ends of intervals from there on, until one ends at `until` or later, which is not one of them.
    fn ends(
        &self,
        from: Timestamp,
        until: Timestamp,
        keep: usize,
    ) -> Result<(Ends, Option<Timestamp>), Failure> {
        let Opened { mut replay, mut clock, begins, .. } = self.reopen(Some(from))?;
        let mut out = Ends { from, ends: VecDeque::new(), cut: false, all: begins >= from };
        replay.sample()?;
        while clock.until(Instant::now()).map_err(anyhow::Error::from)? != Wake::Over {
            let end = replay.sample()?.time;
            if end >= until {
                return Ok((out, Some(end)));
            }
            if out.ends.len() == keep {
                out.ends.pop_front();
                out.cut = true;
            }
            out.ends.push_back(end);
        }
        Ok((out, None))
    }

    /// Such a time before another one that an interval begins there, whatever they are put together to.
    fn earlier(&self, time: Timestamp, intervals: usize) -> Timestamp {
        let span = self.interval().saturating_mul(u32::try_from(intervals).unwrap_or(u32::MAX));
        let half = self.recorded / 2;
        let back = span.saturating_sub(half);
        time.saturating_sub(back).unwrap_or(Timestamp::MIN)
    }

    /// Places are found by their time: where the clock was set back, one time is in two places.
    pub(super) fn set_back(&self) -> bool {
        self.passed.iter().zip(self.passed.iter().skip(1)).any(|(a, b)| b < a)
    }

    /// So many intervals before the one that is shown; `None` if it is the first.
    pub(super) fn before(&self, n: usize) -> Result<Option<Place>, Failure> {
        if self.set_back() {
            return Ok(None);
        }
        let lead = self.lead() as usize;
        let known = (self.passed.len() - usize::from(!self.passed.is_empty())).checked_sub(n);
        if let Some(index) = known.filter(|index| *index > lead / 2) {
            let ends = Ends { from: self.at, ends: self.passed.clone(), cut: true, all: false };
            return Ok(Some(ends.place(index, lead)));
        }
        let until = self.at.saturating_sub(self.half()).unwrap_or(self.at);
        let mut intervals = n + lead + 1;
        loop {
            let (ends, _) = self.ends(self.earlier(self.at, intervals), until, n + lead + 2)?;
            // Where something is missing there are fewer than there should be.
            if ends.ends.len() >= n || ends.all {
                let last = ends.ends.len();
                return Ok((last > 0).then(|| ends.place(last.saturating_sub(n), lead)));
            }
            intervals = intervals.saturating_mul(2);
        }
    }

    /// The first interval that ends at a time or behind it; `None` if there is none behind it.
    pub(super) fn around(&self, time: Timestamp) -> Result<Option<Place>, Failure> {
        if self.set_back() && time < self.at {
            return Ok(None);
        }
        let lead = self.lead() as usize;
        let until = time.saturating_sub(self.half()).unwrap_or(time);
        let (mut ends, end) = match self.ends(self.earlier(time, lead + 1), until, lead + 2) {
            Ok(both) => both,
            // Nothing was recorded there.
            Err(failure) if failure.code == crate::exit::Code::Usage => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let Some(end) = end else { return Ok(None) };
        ends.ends.push_back(end);
        Ok(Some(ends.place(ends.ends.len() - 1, lead)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_as_wide_as_there_is_time_for() {
        let lead_of = |micros| lead(Duration::from_micros(micros));
        assert_eq!([0, 100, 1000, 10_000, 1_000_000].map(lead_of), [240, 240, 40, 4, 2]);
    }
}
