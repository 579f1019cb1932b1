//! The multi-generational LRU, as it is from 6.1 to 6.13 for files: `lru_gen_*` in `mm/vmscan.c` and `mm/workingset.c`.
//!
//! A page that is read comes to the oldest generation but one, or to the oldest. How often it is used by calls while it is
//! in a generation is its tier (1; 2; 3 or 4; 5 and more). Reclaim takes from the oldest generation, and lets pages of higher
//! tiers go on to the next one where pages of these tiers came back more often than those used once.

use super::lists::Lists;
use super::policy::Policy;
use super::policy::Use;
use super::tiers::Tiers;

const GENERATIONS: usize = 4;
const FEWEST: u32 = 2;
/// Pages that reclaim takes at once where it finds them, and those that it is content with (`MIN_LRU_BATCH`,
/// `SWAP_CLUSTER_MAX`).
const BATCH: f64 = 64.0;
const CONTENT: f64 = 32.0;
/// From so many pages on, reclaim for a limit first takes what there is and begins no generation as long as that is enough: at
/// its first priority it looks at one of so many (`DEF_PRIORITY`), of fewer pages at none. kswapd, which makes room for the
/// machine, begins at a later one (`set_initial_priority`), or looks at the sizes before (6.1, `age_lruvec`).
const PATIENT: f64 = 4096.0;
/// Uses that are told apart.
const MOST_USES: u8 = 5;

/// A tier by uses: `order_base_2`.
const TIER: [usize; MOST_USES as usize + 1] = [0, 0, 1, 2, 2, 3];

/// What is known of a page.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// How often it was used, up to [`MOST_USES`]; of one that was evicted, before that.
    uses: u8,
    flags: u8,
    /// The oldest generation when it was evicted.
    when: u16,
}

/// Used through a mapping since reclaim looked last.
const YOUNG: u8 = 1;
/// It was read ahead, and nobody has used it yet.
const AHEAD: u8 = 2;
/// It was evicted.
const GONE: u8 = 4;

impl State {
    const fn is(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// What is known of each page takes so many bytes.
#[cfg(test)]
pub(super) const STATE: usize = size_of::<State>();

/// The generations at one size.
#[derive(Debug)]
pub struct Generations {
    lists: Lists<GENERATIONS>,
    pages: Vec<State>,
    oldest: u32,
    youngest: u32,
    tiers: Tiers,
    size: usize,
    each: f64,
    full: bool,
    /// A limit is what makes it reclaim.
    limited: bool,
    /// Pages of the present reclaim that were evicted, and whether it is at its first priority.
    taken: f64,
    patient: bool,
}

impl Generations {
    /// Room to follow so many pages. `limited`: a cgroup's limit is the size, not the machine's memory.
    #[must_use]
    pub fn new(pages: usize, limited: bool) -> Self {
        Self {
            lists: Lists::new(pages),
            pages: vec![State::default(); pages],
            oldest: 0,
            youngest: 3,
            tiers: Tiers::default(),
            size: 1,
            each: 1.0,
            full: false,
            limited,
            taken: 0.0,
            patient: false,
        }
    }

    const fn list(generation: u32) -> usize {
        generation as usize % GENERATIONS
    }

    fn len(&self, generation: u32) -> usize {
        self.lists.len(Self::list(generation))
    }

    /// `should_run_aging`: too few generations, or the pages are spread badly over three, which the first priority leaves as it
    /// is (`get_nr_to_scan`).
    fn should_age(&self) -> bool {
        let all = self.lists.all();
        match self.youngest - self.oldest {
            0..FEWEST => true,
            FEWEST if !self.patient => {
                self.len(self.youngest) * FEWEST as usize > all
                    || self.len(self.oldest) * (FEWEST as usize + 2) < all
            }
            _ => false,
        }
    }

    /// Evicted from the generation that is still the oldest.
    fn has_just_gone(&self, page: u32) -> bool {
        let state = self.pages[page as usize];
        state.is(GONE) && state.when == self.oldest as u16
    }

    /// Another reclaim begins.
    fn begin(&mut self) {
        self.taken = 0.0;
        self.patient = self.limited && self.lists.all() as f64 * self.each >= PATIENT;
    }

    /// One that takes all that it takes at once.
    fn reclaim(&mut self) {
        self.full = true;
        self.begin();
        let most = self.lists.all().div_ceil(4);
        for _ in 0..most {
            self.evict();
            if self.taken >= BATCH {
                return;
            }
        }
    }

    fn evict(&mut self) {
        let evictable = self.tiers.evictable((1.0, 2.0), self.each);
        loop {
            if self.should_age() {
                self.youngest += 1;
                self.patient = false;
            }
            let Some(page) = self.lists.tail(Self::list(self.oldest)) else {
                self.oldest += 1;
                self.tiers.next();
                match self.taken >= CONTENT {
                    true => self.begin(),
                    false => self.patient = false,
                }
                continue;
            };
            let state = &mut self.pages[page as usize];
            let tier = TIER[usize::from(state.uses)];
            if state.is(YOUNG) {
                *state = State::default();
                self.lists.put(page, Self::list(self.youngest));
            } else if tier > evictable || state.uses == MOST_USES {
                *state = State::default();
                self.tiers.protected(tier);
                self.lists.put_last(page, Self::list(self.oldest + 1));
            } else {
                *state = State { uses: state.uses, flags: GONE, when: self.oldest as u16 };
                self.tiers.evicted(tier);
                self.lists.remove(page);
                self.taken += self.each;
                return;
            }
        }
    }
}

impl Policy for Generations {
    fn add(&mut self, page: u32, how: Use) {
        let mut uses = 0;
        if how != Use::Written && self.has_just_gone(page) {
            let then = self.pages[page as usize].uses;
            self.tiers.refaulted(TIER[usize::from(then)]);
            // It would have been protected for one use more: from now on it is (`WORKINGSET_RESTORE`).
            uses = if then + 1 >= MOST_USES { MOST_USES } else { 0 };
        }
        while self.lists.all() >= self.size {
            self.reclaim();
        }
        self.pages[page as usize] = State { uses, ..State::default() };
        let to = match how == Use::Mapped {
            true => self.youngest,
            false if self.oldest + FEWEST >= self.youngest => self.oldest,
            false => self.oldest + 1,
        };
        self.lists.put(page, Self::list(to));
    }

    fn mark(&mut self, page: u32) {
        let state = &mut self.pages[page as usize];
        state.uses = (state.uses + 1).min(MOST_USES);
    }

    fn young(&mut self, page: u32) {
        self.pages[page as usize].flags |= YOUNG;
    }

    fn has(&self, page: u32) -> bool {
        self.lists.list(page).is_some()
    }

    fn ahead(&self, page: u32) -> bool {
        self.pages[page as usize].is(AHEAD)
    }

    fn set_ahead(&mut self, page: u32, ahead: bool) {
        let flags = &mut self.pages[page as usize].flags;
        *flags = if ahead { *flags | AHEAD } else { *flags & !AHEAD };
    }

    fn remove(&mut self, page: u32) {
        self.lists.remove(page);
        self.pages[page as usize] = State::default();
    }

    fn remembers(&self, page: u32) -> bool {
        self.lists.list(page).is_some() || self.has_just_gone(page)
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
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Pages that are left in the oldest generation when another one begins, where every other page is used often.
    fn left(size: usize, limited: bool) -> usize {
        let mut all = Generations::new(8 * size, limited);
        all.resize(size, 1.0);
        let mut next = 0..8 * u32::try_from(size).unwrap_or(0);
        let mut step = |all: &mut Generations| {
            let page = next.next().unwrap();
            all.add(page, Use::Marked);
            (0..page % 2 * u32::from(MOST_USES)).for_each(|_| all.mark(page));
        };
        while all.lists.all() < size {
            step(&mut all);
        }
        let youngest = all.youngest;
        let mut before = usize::MAX;
        while all.youngest == youngest {
            before = all.len(all.oldest);
            step(&mut all);
        }
        before
    }

    #[test]
    fn what_comes_to_be_written_was_not_missed() {
        let comes = |how: Use| {
            let mut all = Generations::new(8, true);
            all.resize(4, 1.0);
            // One use fewer than what is protected from then on.
            all.pages[0] = State { uses: MOST_USES - 1, flags: GONE, when: all.oldest as u16 };
            all.add(0, how);
            all.pages[0].uses
        };
        assert_eq!((comes(Use::Unmarked), comes(Use::Written)), (MOST_USES, 0));
    }

    #[test]
    fn with_many_pages_the_oldest_generation_is_used_up_first() {
        // Where it is less than a quarter; a reclaim takes twice as many out of it: every other page goes on to the next.
        let twice = 2 * BATCH as usize;
        for (size, limited, least) in
            [(4000, true, 1000), (4000, false, 1000), (5000, true, 0), (5000, false, 1234)]
        {
            let left = left(size, limited);
            assert!((least..=least + twice).contains(&left), "{size} {limited}: {left}");
        }
    }
}
