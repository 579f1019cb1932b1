//! The multi-generational LRU, as it is from 6.14 on for files: `lru_gen_*` in `mm/vmscan.c`, `mm/swap.c` and `mm/workingset.c`.
//!
//! A page that is read comes to the oldest of four generations. From its fifth use on it is of the working set, which stays
//! with it: it is of the highest tier then, also when it is evicted, and when it comes back it comes to the second oldest
//! generation. There is a new generation as soon as there are three (with many pages, two) and reclaim has to try harder.
//!
//! Up to 7.1 reclaim takes 64 pages at once, and ends where it has begun a new generation, to try harder. From 7.2 on it looks
//! at no more pages than it should, goes on in the new generation, and ends as soon as it has freed what it was to free. And a
//! page that was used before it is put on a list, as nearly all that are read have been (31 are put there at once), comes to the
//! second oldest generation: so the oldest becomes empty, and there are new ones, which decides what is forgotten when.

use super::lists::Lists;
use super::policy::Policy;
use super::policy::Use;
use super::tiers::BATCH;
use super::tiers::TIERS;
use super::tiers::Tiers;

const GENERATIONS: u32 = 4;
const FEWEST: u32 = 2;
/// Uses that are told apart before a page is of the working set (`LRU_REFS_WIDTH`).
const MOST_USES: u8 = 4;
/// Pages that reclaim is to free (`SWAP_CLUSTER_MAX`).
const WANTED: f64 = 32.0;
/// Reclaim begins with this part of the pages: 2 to the power of -12 (`DEF_PRIORITY`).
const FIRST_PRIORITY: u32 = 12;
/// So many pages are put on a list at once (`PAGEVEC_SIZE`).
const TOGETHER: u8 = 31;

/// A tier by uses: `order_base_2`.
const TIER: [usize; MOST_USES as usize + 1] = [0, 0, 1, 2, 2];

/// What is known of a page.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// How often it was used since it is in its generation, up to [`MOST_USES`].
    uses: u8,
    /// It was used more often than that at some time.
    working: bool,
    /// Used through a mapping since reclaim looked last.
    young: bool,
    /// It was read ahead, and nobody has used it yet.
    ahead: bool,
    /// It waits to be put on a list, and whoever brought it in is about to mark it.
    fresh: bool,
    /// It was evicted when the oldest generation was this.
    gone: Option<u16>,
}

impl State {
    fn tier(self) -> usize {
        if self.working { TIERS - 1 } else { TIER[usize::from(self.uses)] }
    }

    fn used(&mut self) {
        self.working |= self.uses == MOST_USES;
        self.uses = (self.uses + 1).min(MOST_USES);
    }
}

/// What is known of each page takes so many bytes.
#[cfg(test)]
pub(super) const STATE: usize = size_of::<State>();

/// The generations at one size.
#[derive(Debug)]
pub struct Later {
    lists: Lists<{ GENERATIONS as usize }>,
    pages: Vec<State>,
    oldest: u32,
    youngest: u32,
    tiers: Tiers,
    size: usize,
    each: f64,
    full: bool,
    /// As from 7.2 on.
    counts: bool,
    /// Pages that were to be looked at, but not a whole one of those that are followed.
    owed: f64,
    /// Pages that wait to be put on a list.
    waiting: u8,
}

/// What decides where a page comes to.
struct Coming {
    /// It is of the working set.
    working: bool,
    /// It is used through a mapping.
    mapped: bool,
}

impl Later {
    /// Room to follow so many pages. `counts`: as from 7.2 on.
    #[must_use]
    pub fn new(pages: usize, counts: bool) -> Self {
        Self {
            counts,
            owed: 0.0,
            waiting: 0,
            lists: Lists::new(pages),
            pages: vec![State::default(); pages],
            oldest: 0,
            youngest: GENERATIONS - 1,
            tiers: Tiers::default(),
            size: 1,
            each: 1.0,
            full: false,
        }
    }

    const fn list(generation: u32) -> usize {
        (generation % GENERATIONS) as usize
    }

    /// Generations beside the oldest.
    const fn spread(&self) -> u32 {
        self.youngest - self.oldest
    }

    /// `lru_gen_test_recent`: whether the page has gone so lately that it is remembered.
    fn has_just_gone(&self, page: u32) -> bool {
        let gone = self.pages[page as usize].gone;
        gone.is_some_and(|then| (self.youngest as u16).wrapping_sub(then) < GENERATIONS as u16)
    }

    /// `lru_gen_folio_seq`: the generation that a page of the cache comes to.
    fn comes_to(&self, page: Coming) -> u32 {
        let back = if page.mapped { FEWEST } else { GENERATIONS } - u32::from(page.working);
        (self.youngest + 1).saturating_sub(back).max(self.oldest)
    }

    /// `sort_folio`, and what becomes of the page: whether it was evicted.
    fn look_at(&mut self, page: u32, evictable: usize) -> bool {
        let state = &mut self.pages[page as usize];
        if state.young {
            // `lru_gen_set_refs`
            let again = state.working || state.uses > 0;
            *state = State { working: again, uses: u8::from(!again), ..State::default() };
            let to = self.comes_to(Coming { working: again, mapped: true });
            self.lists.put(page, Self::list(to));
            return false;
        }
        let tier = state.tier();
        let most = state.working && state.uses == MOST_USES;
        if tier > evictable || most {
            if !most {
                self.tiers.protected(tier);
            }
            state.uses = 0;
            self.lists.put(page, Self::list(self.oldest + 1));
            return false;
        }
        *state = State { gone: Some(self.oldest as u16), ahead: false, young: false, ..*state };
        self.tiers.evicted(tier);
        self.lists.remove(page);
        true
    }

    /// `try_to_inc_min_seq`: whether the oldest generation was empty.
    fn leave_empty(&mut self) -> bool {
        let before = self.oldest;
        while self.oldest + FEWEST <= self.youngest && self.lists.len(Self::list(self.oldest)) == 0 {
            self.oldest += 1;
        }
        if self.oldest > before {
            self.tiers.next();
        }
        self.oldest > before
    }

    /// `scan_folios` of the oldest generation: how many pages were looked at, at most so many, and how many of them went.
    fn scan(&mut self, most: f64) -> (f64, f64) {
        let evictable = self.tiers.evictable((2.0, 3.0), self.each);
        let (mut seen, mut gone) = (0.0, 0.0);
        while seen < most && gone < (BATCH / self.each).max(1.0) {
            let Some(page) = self.lists.tail(Self::list(self.oldest)) else { break };
            seen += 1.0;
            gone += f64::from(u8::from(self.look_at(page, evictable)));
        }
        (seen, gone)
    }

    /// `evict_folios` up to 7.1: how many pages were looked at, and how many of them evicted.
    fn evict(&mut self) -> (f64, f64) {
        if self.spread() < FEWEST {
            return (0.0, 0.0);
        }
        let (seen, gone) = self.scan(f64::INFINITY);
        (seen + f64::from(u8::from(self.leave_empty())), gone)
    }

    /// Of all pages, what reclaim looks at when it tries so hard.
    fn part(&self, priority: u32) -> f64 {
        (self.lists.all() as f64 * self.each / f64::from(1 << priority)).floor() / self.each
    }

    /// `shrink_lruvec` up to 7.1, for larger and larger parts of the pages: how many were freed.
    fn shrink_by_batches(&mut self, wanted: f64) -> f64 {
        let mut freed = 0.0;
        for priority in (0..=FIRST_PRIORITY).rev() {
            if self.spread() <= FEWEST && priority < FIRST_PRIORITY {
                self.youngest += 1;
                continue;
            }
            let part = self.part(priority);
            let mut seen = 0.0;
            while part > 0.0 && seen < part {
                let (looked, gone) = self.evict();
                seen += looked;
                freed += gone;
                if looked == 0.0 {
                    break;
                }
            }
            if freed >= wanted {
                break;
            }
        }
        freed
    }

    /// The same from 7.2 on.
    fn shrink_by_count(&mut self, wanted: f64) -> f64 {
        let mut freed = 0.0;
        for priority in (0..=FIRST_PRIORITY).rev() {
            // What was not looked at is not made up for later.
            self.owed = self.owed.fract() + self.part(priority);
            while self.owed >= 1.0 {
                let enough = if priority < FIRST_PRIORITY { FEWEST + 1 } else { FEWEST };
                if self.spread() < enough {
                    self.youngest += 1;
                }
                self.leave_empty();
                if self.spread() < FEWEST {
                    break;
                }
                let (looked, gone) = self.scan(self.owed.min((BATCH / self.each).max(1.0)).floor());
                self.leave_empty();
                self.owed -= looked;
                freed += gone;
                if freed >= wanted {
                    return freed;
                }
                if looked == 0.0 {
                    break;
                }
            }
        }
        freed
    }

    fn reclaim(&mut self) {
        self.full = true;
        let wanted = (WANTED / self.each).max(1.0);
        let mut freed = match self.counts {
            true => self.shrink_by_count(wanted),
            false => self.shrink_by_batches(wanted),
        };
        // Nothing else is left: whatever is oldest goes.
        while freed < 1.0 {
            let oldest = (self.oldest..=self.youngest).find_map(|g| self.lists.tail(Self::list(g)));
            let Some(page) = oldest else { return };
            self.lists.remove(page);
            self.pages[page as usize] = State::default();
            freed += 1.0;
        }
    }
}

impl Policy for Later {
    fn add(&mut self, page: u32, how: Use) {
        let before = self.pages[page as usize];
        let mapped = how == Use::Mapped;
        let recent = how != Use::Written && self.has_just_gone(page);
        if recent {
            self.tiers.refaulted(State { uses: before.uses.max(1), ..before }.tier());
        }
        while self.lists.all() >= self.size {
            self.reclaim();
        }
        let working = recent && before.working;
        self.waiting = (self.waiting + 1) % TOGETHER;
        let fresh = self.counts && !mapped && how != Use::Written && self.waiting != 0;
        self.pages[page as usize] = State { working, fresh, ..State::default() };
        self.lists.put(page, Self::list(self.comes_to(Coming { working, mapped })));
    }

    fn mark(&mut self, page: u32) {
        let state = &mut self.pages[page as usize];
        state.used();
        if std::mem::take(&mut state.fresh) {
            let to = self.comes_to(Coming { working: true, mapped: false });
            self.lists.put(page, Self::list(to));
        }
    }

    fn young(&mut self, page: u32) {
        self.pages[page as usize].young = true;
    }

    fn has(&self, page: u32) -> bool {
        self.lists.list(page).is_some()
    }

    fn ahead(&self, page: u32) -> bool {
        self.pages[page as usize].ahead
    }

    fn set_ahead(&mut self, page: u32, ahead: bool) {
        let state = &mut self.pages[page as usize];
        state.ahead = ahead;
        state.fresh &= !ahead;
    }

    fn remove(&mut self, page: u32) {
        self.lists.remove(page);
        self.pages[page as usize] = State::default();
    }

    fn remembers(&self, page: u32) -> bool {
        self.has(page) || self.has_just_gone(page)
    }

    fn resize(&mut self, pages: usize, each: f64) {
        self.each = each;
        self.size = pages.max(1);
        while self.lists.all() > self.size {
            self.reclaim();
        }
    }

    fn full(&self) -> bool {
        self.full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of the working set that was evicted comes again: whether it is of that still, and waits for its mark.
    fn comes(how: Use, counts: bool) -> (bool, bool) {
        let mut all = Later::new(8, counts);
        all.resize(4, 1.0);
        all.pages[0] = State { working: true, gone: Some(all.youngest as u16), ..State::default() };
        all.add(0, how);
        (all.pages[0].working, all.pages[0].fresh)
    }

    #[test]
    fn what_comes_to_be_written_was_not_missed() {
        for counts in [false, true] {
            assert_eq!(comes(Use::Unmarked, counts), (true, counts));
            assert_eq!(comes(Use::Written, counts), (false, false));
            assert_eq!(comes(Use::Mapped, counts), (true, false));
        }
    }
}
