//! What share of what a run used was in the cache before it.
//!
//! What was read past the cache is left out: the device is asked for it whether the cache has it or not, so that it is neither warm
//! nor cold.

use super::Run;
use crate::figures::Figure;
use crate::report::units;
use crate::report::units::share;

impl Run {
    /// What share of the pages that it used through the cache was there before it, at least and at most. Unknown of nothing,
    /// where nothing says how much it was at most, and where most went past the cache.
    #[must_use]
    pub fn cached_before(&self) -> Option<(f64, f64)> {
        self.before(self.cached_pages()?, 0, 0)
    }

    /// The same of the pages that it was seen to use, as a share of all of them: what came in twice counts as two, and was not
    /// there before either time.
    #[must_use]
    pub fn seen_before(&self) -> Option<(f64, f64)> {
        let seen = self.seen_cached_pages()?;
        self.before(seen, self.unseen_pages, seen)
    }

    /// Whether much was read to change a part of what was not cached, where the kernel does not tell what a write found: it came from
    /// devices, nothing that was seen brought it in, and as much became dirty.
    #[must_use]
    pub fn reads_to_write(&self) -> bool {
        let get = |figure| self.get(figure).unwrap_or(0);
        if self.get(Figure::WriteMisses).is_some() {
            return false;
        }
        let seen = get(Figure::Misses) + get(Figure::ReadAheadPages) + get(Figure::FaultMisses);
        let from_devices =
            self.usage.device_read_bytes.unwrap_or(0).saturating_sub(get(Figure::DirectReadBytes));
        let more = (from_devices / units::page()).saturating_sub(seen).min(get(Figure::Dirtied));
        more >= 256 && more >= self.seen_pages() / 20
    }

    /// Of so many pages, without so many of those that may have been there; the most as a share of so many or more.
    fn before(&self, asked: u64, unseen: u64, all: u64) -> Option<(f64, f64)> {
        if self.reads_to_write() {
            return None;
        }
        let ratio = |part, all| (all > 0).then(|| share(part, all));
        let there = self.warm_pages.saturating_sub(self.since_pages) + self.memory_pages;
        let (least, bound) = (ratio(there, asked)?, self.bound?);
        let most = bound.warm.saturating_sub(unseen);
        Some((least, ratio(most, all.max(most + bound.other))?.max(least)))
    }

    /// Pages that were read past the cache (`O_DIRECT`).
    #[must_use]
    pub fn past_pages(&self) -> u64 {
        self.get(Figure::DirectReadBytes).unwrap_or(0).div_ceil(units::page())
    }

    /// `asked_pages` without those past the cache; `None` where these are most of them: what little a program reads when it starts
    /// says nothing of it.
    fn cached_pages(&self) -> Option<u64> {
        let cached = self.asked_pages.saturating_sub(self.past_pages());
        (self.past_pages() <= cached).then_some(cached)
    }

    /// The same of what was seen.
    #[must_use]
    pub fn seen_cached_pages(&self) -> Option<u64> {
        self.cached_pages().map(|n| n.saturating_sub(self.unseen_pages))
    }

    /// `asked_pages` without what nobody saw.
    #[must_use]
    pub const fn seen_pages(&self) -> u64 {
        self.asked_pages.saturating_sub(self.unseen_pages)
    }
}
