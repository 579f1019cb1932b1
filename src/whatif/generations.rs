//! The multi-generational LRU, as it is from 6.1 to 6.13 for files: `lru_gen_*` in `mm/vmscan.c` and `mm/workingset.c`.
//!
//! A page that is read comes to the oldest generation but one, or to the oldest. How often it is used by calls while it is
//! in a generation is its tier (1; 2; 3 or 4; 5 and more). Reclaim takes from the oldest generation, and lets pages of higher
//! tiers go on to the next one where pages of these tiers came back more often than those used once.

use super::Policy;
use super::Use;
use super::lists::Lists;

const GENERATIONS: usize = 4;
const FEWEST: u32 = 2;
const TIERS: usize = 4;
/// Fewer refaults than that prove nothing (`MIN_LRU_BATCH`).
const BATCH: f64 = 64.0;
/// Uses that are told apart.
const MOST_USES: u8 = 5;

/// A tier by uses: `order_base_2`.
const TIER: [usize; MOST_USES as usize + 1] = [0, 0, 1, 2, 2, 3];

/// What is known of a page.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// How often it was used, up to [`MOST_USES`].
    uses: u8,
    /// Used through a mapping since reclaim looked last.
    young: bool,
    /// It was evicted when the oldest generation was this, from this tier.
    gone: Option<(u16, u8)>,
}

/// What a controller of tiers goes by.
#[derive(Debug, Clone, Copy, Default)]
struct Tier {
    refaulted: f64,
    evicted: f64,
    protected: f64,
    average_refaulted: f64,
    average_total: f64,
}

impl Tier {
    fn refaults(&self) -> f64 {
        self.average_refaulted + self.refaulted
    }

    fn total(&self) -> f64 {
        self.average_total + self.evicted + self.protected
    }
}

/// The generations at one size.
#[derive(Debug)]
pub struct Generations {
    lists: Lists<GENERATIONS>,
    pages: Vec<State>,
    oldest: u32,
    youngest: u32,
    tiers: [Tier; TIERS],
    size: usize,
    each: f64,
    full: bool,
}

impl Generations {
    /// Room to follow so many pages.
    #[must_use]
    pub fn new(pages: usize) -> Self {
        Self {
            lists: Lists::new(pages),
            pages: vec![State::default(); pages],
            oldest: 0,
            youngest: 3,
            tiers: [Tier::default(); TIERS],
            size: 1,
            each: 1.0,
            full: false,
        }
    }

    const fn list(generation: u32) -> usize {
        generation as usize % GENERATIONS
    }

    fn len(&self, generation: u32) -> usize {
        self.lists.len(Self::list(generation))
    }

    /// `should_run_aging`: too few generations, or the pages are spread badly over three.
    fn should_age(&self) -> bool {
        let all = self.lists.all();
        match self.youngest - self.oldest {
            0..FEWEST => true,
            FEWEST => {
                self.len(self.youngest) * FEWEST as usize > all
                    || self.len(self.oldest) * (FEWEST as usize + 2) < all
            }
            _ => false,
        }
    }

    /// `try_to_inc_min_seq`: the oldest generation is empty. What its tiers told counts half from now on.
    fn next_oldest(&mut self) {
        self.oldest += 1;
        for tier in &mut self.tiers {
            *tier = Tier {
                average_refaulted: tier.refaults() / 2.0,
                average_total: tier.total() / 2.0,
                ..Tier::default()
            };
        }
    }

    /// `get_tier_idx`: the highest tier that is no better worth keeping than pages used once.
    fn evictable_tier(&self) -> usize {
        let batch = BATCH / self.each;
        let first = &self.tiers[0];
        let worth = |tier: &Tier| {
            tier.refaults() >= batch
                && tier.refaults() * (first.total() + batch)
                    > (first.refaults() + 1.0 / self.each) * tier.total() * 2.0
        };
        self.tiers.iter().skip(1).position(worth).unwrap_or(TIERS - 1)
    }

    fn evict(&mut self) {
        self.full = true;
        let evictable = self.evictable_tier();
        loop {
            if self.should_age() {
                self.youngest += 1;
            }
            let Some(page) = self.lists.tail(Self::list(self.oldest)) else {
                self.next_oldest();
                continue;
            };
            let state = &mut self.pages[page as usize];
            let tier = TIER[usize::from(state.uses)];
            if state.young {
                *state = State::default();
                self.lists.put(page, Self::list(self.youngest));
            } else if tier > evictable || state.uses == MOST_USES {
                *state = State::default();
                self.tiers[tier].protected += 1.0;
                self.lists.put_last(page, Self::list(self.oldest + 1));
            } else {
                let tier_then = u8::try_from(tier).unwrap_or(0);
                *state = State { gone: Some((self.oldest as u16, tier_then)), ..State::default() };
                self.tiers[tier].evicted += 1.0;
                self.lists.remove(page);
                return;
            }
        }
    }
}

impl Policy for Generations {
    fn touch(&mut self, page: u32, how: Use) -> bool {
        let there = self.lists.list(page).is_some();
        if !there {
            if let Some((when, tier)) = self.pages[page as usize].gone {
                if when == self.oldest as u16 {
                    self.tiers[usize::from(tier)].refaulted += 1.0;
                }
            }
            while self.lists.all() >= self.size {
                self.evict();
            }
            self.pages[page as usize] = State::default();
            let to = match how {
                Use::Mapped => self.youngest,
                _ if self.oldest + FEWEST >= self.youngest => self.oldest,
                _ => self.oldest + 1,
            };
            self.lists.put(page, Self::list(to));
        }
        let state = &mut self.pages[page as usize];
        match how {
            Use::Mapped => state.young = true,
            Use::Unmarked if there => {}
            Use::Marked | Use::Unmarked => state.uses = (state.uses + 1).min(MOST_USES),
        }
        there
    }

    fn remove(&mut self, page: u32) {
        self.lists.remove(page);
        self.pages[page as usize] = State::default();
    }

    fn remembers(&self, page: u32) -> bool {
        let gone = self.pages[page as usize].gone;
        self.lists.list(page).is_some() || gone.is_some_and(|(when, _)| when == self.oldest as u16)
    }

    fn resize(&mut self, pages: usize, each: f64) {
        self.each = each;
        self.size = pages.max(1);
        while self.lists.all() > self.size {
            self.evict();
        }
    }

    fn full(&self) -> bool {
        self.full
    }
}
