//! All sizes at once, on one stream of touches.

use super::Kind;
use super::Outcome;
use super::SCALES;
use super::Touch;
use super::ahead::Ahead;
use super::ahead::Asked;
use super::curve::Fetched;
use super::curve::GROUPS;
use super::curve::Slice;
use super::pages::Pages;
use super::pages::beside;
use super::pages::group;
use super::pages::is_chosen;
use super::policy::Policy;
use super::policy::Use;

/// Pages that are followed at most: with what seven sizes know of each, 3 MiB at most.
pub const ROOM: u32 = 24576;
/// Pages that the cache of now should have, of those that are followed: the largest has four times as many.
const WANTED: f64 = 4096.0;
/// Touches a second that are worth their price; with more, fewer pages are followed.
const PER_SECOND: f64 = 200_000.0;
/// Threads whose last page is remembered.
const THREADS: usize = 256;

/// A cache of another size.
struct Cache {
    scale: f64,
    policy: Box<dyn Policy>,
    /// Pages that it has room for, all of them.
    pages: Option<f64>,
    /// The same, relative to the cache of now.
    relative: f64,
}

/// The policy at all sizes, and what came of it so far.
pub struct Simulation {
    pages: Pages,
    caches: Vec<Cache>,
    rate: f64,
    last: Vec<(u32, u64)>,
    /// By page: it was met when it was read ahead, and was not used since.
    met_ahead: Vec<bool>,
    /// By page: it was used through a mapping, or brought in around one that was.
    mapped: Vec<bool>,
    ahead: Ahead,
    slices: Vec<Slice>,
    slice: Slice,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation").field("rate", &self.rate).finish_non_exhaustive()
    }
}

/// The part of all pages to begin with, for a cache of so many.
#[must_use]
pub fn first_rate(pages: f64) -> f64 {
    if pages <= 0.0 {
        return 1.0;
    }
    // A small part of a large cache may be used; if it is all of it, fewer will be followed soon.
    (4.0 * WANTED / pages).clamp(1.0 / 16.0, 1.0)
}

impl Simulation {
    /// A simulation that follows this part of all pages; `policy` makes the policy, given how many pages it needs room for.
    pub fn new(rate: f64, policy: impl Fn(usize) -> Box<dyn Policy>) -> Self {
        let cache = |scale| Cache { scale, policy: policy(ROOM as usize), pages: None, relative: scale };
        Self {
            pages: Pages::new(ROOM),
            caches: SCALES.into_iter().map(cache).collect(),
            rate,
            last: vec![(0, 0); THREADS],
            met_ahead: vec![false; ROOM as usize],
            mapped: vec![false; ROOM as usize],
            ahead: Ahead::new(ROOM),
            slices: Vec::new(),
            slice: Slice::default(),
        }
    }

    /// The part of all pages that is followed now.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// What the caches have room for, in pages, by scale; `None`: such a cache cannot be.
    pub fn resize(&mut self, pages: impl Fn(f64) -> Option<f64>) {
        for cache in &mut self.caches {
            cache.pages = pages(cache.scale).filter(|n| *n >= 1.0);
            // Beside what else the limit is for, a cache changes by more than the limit does.
            let both = cache.pages.zip(pages(1.0).filter(|n| *n >= 1.0));
            cache.relative = both.map_or(cache.scale, |(its, now)| its / now);
        }
        self.fit();
    }

    fn fit(&mut self) {
        for cache in &mut self.caches {
            let pages = cache.pages.unwrap_or(0.0) * self.rate;
            cache.policy.resize(pages.round() as usize, 1.0 / self.rate);
        }
    }

    /// Of all pages in the cache of now, how many came by faults, as far as that was seen.
    #[must_use]
    pub fn held(&self) -> f64 {
        let Some(now) = self.caches.iter().find(|c| c.scale == 1.0) else { return 0.0 };
        let held = self.mapped.iter().zip(0..).filter(|(mapped, _)| **mapped);
        held.map(|(_, page)| now.policy.share(page)).sum::<f64>() / self.rate
    }

    /// The kernel has gathered its statistics.
    pub fn flush(&mut self) {
        for cache in &mut self.caches {
            cache.policy.flush();
        }
    }

    /// One use of one page.
    pub fn touch(&mut self, touch: &Touch) {
        if !is_chosen(touch.page, self.rate) {
            return; // sent before fewer pages were chosen
        }
        let known = self.pages.find(touch.page);
        if touch.kind == Kind::Gone {
            if let Some(page) = known {
                self.caches.iter_mut().for_each(|c| c.policy.remove(page));
            }
            return;
        }
        let Some(page) = known.or_else(|| self.add(touch.page)) else { return };
        self.ahead.met(touch.page);
        self.mapped[page as usize] |= matches!(touch.kind, Kind::Fault | Kind::Around);
        if matches!(touch.kind, Kind::Ahead | Kind::Around) {
            self.met_ahead[page as usize] |= known.is_none();
            if touch.kind == Kind::Around {
                self.slice.came_around += 1.0 / self.rate;
            }
            self.bring(page, touch.kind);
            return;
        }
        // What was read ahead before its first use is met now.
        let known = known.filter(|page| !std::mem::take(&mut self.met_ahead[*page as usize]));
        let how = self.how(touch);
        let counts = matches!(touch.kind, Kind::Read | Kind::Fault);
        let weight = 1.0 / self.rate;
        if counts {
            self.slice.sampled += 1;
            self.slice.weighted += weight;
        }
        if touch.kind == Kind::Write {
            self.slice.written += weight;
        }
        let group = group(touch.page, self.rate, GROUPS);
        if touch.kind == Kind::Read {
            self.read_ahead(page, touch);
        }
        for (i, cache) in self.caches.iter_mut().enumerate() {
            // A fault that finds its page is no miss, whoever brought that in.
            let found = touch.kind == Kind::Fault && cache.policy.has(page);
            let there = cache.policy.touch(page, how);
            if counts {
                self.slice.apart[i] += cache.policy.apart() * weight;
            }
            if there || found || !counts {
                continue;
            }
            let full = cache.policy.full();
            // Of a page that is met for the first time it is only known how it was found in the cache of now.
            match (known, touch.outcome) {
                (None, Outcome::Hit) if cache.scale >= 1.0 => {}
                (None, Outcome::Missed) if cache.scale <= 1.0 => self.slice.misses[i][group] += weight,
                (None, _) if !full => self.slice.unknown[i] += weight,
                _ => self.slice.misses[i][group] += weight,
            }
        }
    }

    /// A page was read ahead, or around a fault.
    fn bring(&mut self, page: u32, kind: Kind) {
        if kind == Kind::Ahead {
            self.ahead.was(page);
        }
        for cache in &mut self.caches {
            if kind == Kind::Ahead && self.ahead.is_explained() {
                continue;
            }
            if cache.policy.bring(page) && kind == Kind::Around && cache.relative == 1.0 {
                self.slice.around += 1.0 / self.rate;
            }
        }
    }

    /// A page is about to be read: what is read ahead at each size, by what is there.
    fn read_ahead(&mut self, number: u32, touch: &Touch) {
        let stream = self.ahead.reads(touch);
        for i in 0..self.caches.len() {
            let (pages, policy, rate) = (&self.pages, &self.caches[i].policy, self.rate);
            let has = |by| {
                let other = beside(touch.page, by, rate).and_then(|page| pages.find(page));
                other.is_some_and(|n| policy.has(n))
            };
            let there = policy.has(number);
            if let Some(asked) = self.ahead.asks((i, stream), (touch, number), there, has) {
                self.bring_after(touch.page, i, asked);
            }
        }
    }

    /// Pages after this one are read ahead at one size.
    fn bring_after(&mut self, page: u64, i: usize, asked: Asked) {
        let happens = self.ahead.happens();
        for by in asked.from..asked.to {
            let Some(other) =
                beside(page, by as i32, self.rate).filter(|other| self.ahead.is_in_file(*other))
            else {
                return;
            };
            let known = self.pages.find(other);
            let there = known.is_some_and(|n| self.caches[i].policy.share(n) >= 1.0);
            if self.caches[i].relative == 1.0 {
                self.ahead.would(known, there, other == page + u64::from(by));
            }
            if there || !happens {
                continue;
            }
            // Where there is no room none is made: the page that is read must keep its number.
            let Some(number) = known.or_else(|| self.pages.add(other).map(|n| self.begin(n))) else {
                continue;
            };
            self.met_ahead[number as usize] |= known.is_none();
            self.caches[i].policy.bring(number);
            self.ahead.mark(i, number, by == asked.marked);
        }
    }

    /// A call that goes on inside the page where the thread's last one ended does not mark it again.
    fn how(&mut self, touch: &Touch) -> Use {
        if touch.kind == Kind::Write {
            return Use::Written;
        }
        let last = &mut self.last[touch.tid as usize % THREADS];
        let same = *last == (touch.tid, touch.page);
        *last = (touch.tid, touch.page);
        match touch.kind {
            Kind::Fault => Use::Mapped,
            _ if same && touch.part => Use::Unmarked,
            _ => Use::Marked,
        }
    }

    /// Follows another page: for want of room pages are forgotten that no cache would remember, or fewer are chosen.
    fn add(&mut self, place: u64) -> Option<u32> {
        if let Some(page) = self.pages.add(place) {
            return Some(self.begin(page));
        }
        let caches = &mut self.caches;
        let mut keep = |page: u32, _: u64| {
            let kept = caches.iter().any(|c| c.policy.remembers(page));
            if !kept {
                caches.iter_mut().for_each(|c| c.policy.remove(page));
            }
            kept
        };
        for _ in 0..8 {
            self.pages.sweep(&mut keep);
            if self.pages.free() > ROOM as usize / 64 {
                break;
            }
        }
        while self.pages.free() <= ROOM as usize / 64 {
            self.choose(self.rate / 2.0);
        }
        let page = is_chosen(place, self.rate).then(|| self.pages.add(place)).flatten()?;
        Some(self.begin(page))
    }

    /// The number was another page's before.
    fn begin(&mut self, page: u32) -> u32 {
        self.met_ahead[page as usize] = false;
        self.mapped[page as usize] = false;
        self.ahead.forget(page);
        page
    }

    /// Fewer pages are chosen from now on.
    pub fn choose(&mut self, rate: f64) {
        self.rate = rate;
        let caches = &mut self.caches;
        self.pages.retain(|page, place| {
            let kept = is_chosen(place, rate);
            if !kept {
                caches.iter_mut().for_each(|c| c.policy.remove(page));
            }
            kept
        });
        self.fit();
    }

    /// So many touches came in so many seconds: if that is too much, fewer pages are chosen.
    pub fn spare(&mut self, touches: usize, seconds: f64, dropped: u64) {
        self.slice.dropped += dropped;
        if dropped > 0 || touches as f64 > PER_SECOND * seconds.max(0.01) {
            self.choose(self.rate / 2.0);
        }
    }

    /// Of the stretch of time that is about to end: pages that were brought in.
    pub const fn brought_in(&mut self, fetched: Option<Fetched>) {
        self.slice.fetched = fetched;
    }

    /// Begins a stretch of time anew: what it has seen of this one is not to be judged.
    pub fn begin_slice(&mut self) {
        self.slice = Slice::default();
    }

    /// A stretch of time has ended. `accesses`: how many there were of all pages, and how many of these had to be brought
    /// in; `None` where that is not known.
    pub fn end_slice(&mut self, accesses: Option<(u64, u64)>) {
        self.slice.accesses = accesses;
        self.slice.full = self.caches.iter().map(|c| c.policy.full()).collect();
        self.slice.rate = self.rate;
        self.slices.push(std::mem::take(&mut self.slice));
    }

    /// Two stretches of time become one.
    pub fn halve(&mut self) {
        let all = std::mem::take(&mut self.slices);
        let mut all = all.into_iter();
        while let Some(first) = all.next() {
            self.slices.push(match all.next() {
                Some(second) => first.and(second),
                None => first,
            });
        }
    }

    /// What there is so far.
    #[must_use]
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// Pages that each cache has room for.
    #[must_use]
    pub fn sizes(&self) -> Vec<Option<f64>> {
        self.caches.iter().map(|c| c.pages).collect()
    }
}
