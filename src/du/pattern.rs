//! What runs of cached pages look like as a whole: their lengths, and whether they repeat.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::json;

use super::ranges::Run;

/// A pattern is reported only if it came so often, and in so large a part of all cases.
const OFTEN: usize = 4;
const MOST: f64 = 0.9;

/// Counts of lengths by powers of two: slot `i` has lengths from 2^i up to twice that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// How many, by length.
    pub count: [u64; 64],
    /// Pages in them.
    pub pages: [u64; 64],
}

impl Default for Lengths {
    fn default() -> Self {
        Self { count: [0; 64], pages: [0; 64] }
    }
}

impl Lengths {
    fn new(lengths: impl Iterator<Item = u64>) -> Self {
        let mut out = Self::default();
        for n in lengths.filter(|n| *n > 0) {
            let slot = n.ilog2() as usize;
            out.count[slot] += 1;
            out.pages[slot] += n;
        }
        out
    }

    /// The slots that have something: shortest and longest length, how many, pages.
    pub fn slots(&self) -> impl Iterator<Item = (u64, u64, u64, u64)> + '_ {
        let slots = self.count.iter().zip(&self.pages).enumerate().filter(|(_, (n, _))| **n > 0);
        slots.map(|(i, (n, pages))| (1 << i, u64::MAX >> (63 - i), *n, *pages))
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let slot = |(from, to, count, pages)| json!({"from":from,"to":to,"count":count,"pages":pages});
        self.slots().map(slot).collect()
    }
}

/// Runs of one length with holes of one length between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// Pages cached in a row.
    pub cached: u64,
    /// Pages not cached in a row.
    pub hole: u64,
    /// How often a run was followed by such a hole.
    pub times: usize,
    /// Of so many.
    pub of: usize,
}

impl Repeat {
    /// In words: `every 14th page is cached`.
    #[must_use]
    pub fn words(&self) -> String {
        let period = self.cached + self.hole;
        let what = match (self.cached, self.hole) {
            (1, _) => format!("every {period}{} page is cached", ending(period)),
            (_, 1) => format!("every {period}{} page is missing", ending(period)),
            (n, hole) => format!("{n} pages are cached and {hole} are not, repeating"),
        };
        format!("{what} ({} of {} runs)", self.times, self.of)
    }
}

fn ending(n: u64) -> &'static str {
    match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Lengths of runs.
    pub runs: Lengths,
    /// Lengths of holes in the cached pages, those before the first and after the last run included.
    pub holes: Lengths,
    /// What repeats, if anything does.
    pub repeat: Option<Repeat>,
}

impl Pattern {
    /// Of a file of so many pages.
    #[must_use]
    pub fn new(runs: &[Run], pages: u64) -> Self {
        let first = runs.first().map_or(pages, |r| r.start);
        let last = runs.last().map_or(0, |r| pages.saturating_sub(r.end()));
        let between = || runs.windows(2).map(|w| (w[0].pages, w[1].start - w[0].end()));
        let mut pairs: HashMap<(u64, u64), usize> = HashMap::new();
        for pair in between() {
            *pairs.entry(pair).or_default() += 1;
        }
        let of = runs.len().saturating_sub(1);
        let most = pairs.into_iter().max_by_key(|(pair, times)| (*times, *pair));
        let repeat = most
            .map(|((cached, hole), times)| Repeat { cached, hole, times, of })
            .filter(|r| r.times >= OFTEN && r.times as f64 >= MOST * of as f64);
        Self {
            runs: Lengths::new(runs.iter().map(|r| r.pages)),
            holes: Lengths::new(between().map(|(_, hole)| hole).chain([first, last])),
            repeat,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn runs(list: &[(u64, u64)]) -> Vec<Run> {
        list.iter().map(|&(start, pages)| Run { start, pages, dirty: None }).collect()
    }

    #[test]
    fn one_page_in_fourteen() {
        let list: Vec<_> = (0..100).map(|i| (i * 14, 1)).collect();
        let p = Pattern::new(&runs(&list), 1400);
        assert_eq!(p.repeat.unwrap().words(), "every 14th page is cached (99 of 99 runs)");
        assert_eq!(p.runs.slots().collect::<Vec<_>>(), [(1, 1, 100, 100)]);
        assert_eq!(p.holes.slots().collect::<Vec<_>>(), [(8, 15, 100, 1300)]);
    }

    #[test]
    fn what_does_not_repeat_is_no_pattern() {
        assert_eq!(Pattern::new(&runs(&[(0, 1), (2, 1), (4, 1)]), 9).repeat, None, "too seldom");
        let list: Vec<_> = (0..100).map(|i| (i * i * 3, 1)).collect();
        assert_eq!(Pattern::new(&runs(&list), 100_000).repeat, None);
        let empty = Pattern::new(&[], 100);
        assert_eq!((empty.repeat, empty.holes.pages[6]), (None, 100));
        assert_eq!(Pattern::new(&runs(&[(0, 100)]), 100).holes, Lengths::default());
    }

    #[test]
    fn words() {
        let words = |cached, hole| Repeat { cached, hole, times: 5, of: 5 }.words();
        assert!(words(1, 1).starts_with("every 2nd page is cached"));
        assert!(words(1, 12).starts_with("every 13th page is cached"));
        assert!(words(20, 1).starts_with("every 21st page is missing"));
        assert!(words(2, 6).starts_with("2 pages are cached and 6 are not"));
    }
}
