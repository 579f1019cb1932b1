//! The active and the inactive list, and the refault distance: `mm/swap.c`, `mm/vmscan.c`, `mm/workingset.c`.

use super::lists::Lists;
use super::policy::Policy;
use super::policy::Use;

const INACTIVE: usize = 0;
const ACTIVE: usize = 1;

const REFERENCED: u8 = 1;
/// Used through a mapping since reclaim looked last.
const YOUNG: u8 = 2;
/// It was here and was evicted: `gone` says when.
const SHADOW: u8 = 4;
/// It was read ahead, and nobody has used it yet.
const AHEAD: u8 = 8;

/// Pages that are reclaimed at once (`SWAP_CLUSTER_MAX`).
const BATCH: f64 = 32.0;
/// Reclaim begins with this part of the lists: 2 to the power of -12 (`DEF_PRIORITY`).
const FIRST_PRIORITY: u32 = 12;

/// Changes of statistics that a processor counts for itself before anybody else knows of them (`MEMCG_CHARGE_BATCH`, and one
/// more).
const COUNTED_ALONE: f64 = 65.0;
/// Statistics that a page changes by coming and going: what is charged, cached, and on the lists; scanned and reclaimed.
const CHANGES: f64 = 9.0;

/// How often everything is made equal, where it begins otherwise; each time half a size of pages has gone since.
const STIRS: u8 = 3;
/// Uses of as many sizes of pages, and it is left alone: where few pages go it must have settled before it is judged.
const UNTIL: usize = 8;

/// What the lengths of the lists are known by. Reclaim of a cgroup goes by statistics that are gathered from all processors
/// now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistics {
    /// As they are: of the whole machine.
    Exact,
    /// As they were when somebody gathered them last. From 6.12 on nobody does for reclaim. Exact ones would have cliffs that the kernel
    /// does not have: which laps of a scan survive.
    Late,
    /// Up to 6.11 reclaim has them gathered first, where so many processors may have changed them by much. So it sees that
    /// pages have come back, nearly each time, and then takes active ones.
    AtReclaim {
        /// Those that are at work.
        processors: u32,
    },
}

/// Both lists at one size.
#[derive(Debug)]
pub struct Classic {
    lists: Lists<2>,
    /// `age` when the page was evicted.
    gone: Vec<u32>,
    /// Evictions and activations so far (`nonresident_age`).
    age: u32,
    size: usize,
    /// Pages that one followed page stands for.
    each: f64,
    /// Lengths of the lists as statistics have them.
    known: [usize; 2],
    statistics: Statistics,
    /// Pages evicted so far; and when statistics were gathered.
    evicted: u32,
    gathered: u32,
    /// Pages that came back to be active at once, so far; as statistics have it; and as they had it when reclaim ended last.
    back: u32,
    known_back: u32,
    seen_back: u32,
    stirs: Stirs,
    /// Parts of pages that are to be looked at, by list.
    owed: [f64; 2],
    full: bool,
}

/// How a simulation begins otherwise: what was active is not, and each page was used once.
#[derive(Debug, Default)]
struct Stirs {
    left: u8,
    /// Pages evicted when it was done last.
    last: u32,
    /// Uses since the cache is full.
    uses: usize,
}

impl Classic {
    /// Room to follow so many pages.
    #[must_use]
    pub fn new(pages: usize, statistics: Statistics) -> Self {
        Self {
            lists: Lists::new(pages),
            gone: vec![0; pages],
            age: 0,
            size: 1,
            each: 1.0,
            known: [0; 2],
            statistics,
            evicted: 0,
            gathered: 0,
            back: 0,
            known_back: 0,
            seen_back: 0,
            stirs: Stirs::default(),
            owed: [0.0; 2],
            full: false,
        }
    }

    /// The same, from another beginning. A scan that is a little longer than the cache is kept in part for as long as one looks, or not
    /// at all, and the kernel does the one or the other: it is for [`super::twins`] to know of both. A loop, of which neither kernel
    /// nor simulation keeps anything, must not be kept for that: so no page is made active.
    #[must_use]
    pub fn stirred(mut self) -> Self {
        self.stirs.left = STIRS;
        self
    }

    fn is(&self, page: u32, flag: u8) -> bool {
        self.lists.flags(page) & flag != 0
    }

    fn set(&mut self, page: u32, flag: u8, to: bool) {
        let flags = self.lists.flags(page);
        self.lists.set_flags(page, if to { flags | flag } else { flags & !flag });
    }

    fn lengths(&self) -> [usize; 2] {
        match self.statistics {
            Statistics::Exact => [self.lists.len(INACTIVE), self.lists.len(ACTIVE)],
            Statistics::Late | Statistics::AtReclaim { .. } => self.known,
        }
    }

    /// `mem_cgroup_flush_stats`, where reclaim calls it.
    fn gather_for_reclaim(&mut self) {
        let Statistics::AtReclaim { processors } = self.statistics else { return };
        let changed = f64::from(self.evicted.wrapping_sub(self.gathered)) * self.each * CHANGES;
        if changed > COUNTED_ALONE * f64::from(processors + 1) {
            self.flush();
        }
    }

    fn stir_if_due(&mut self, first: bool) {
        let Stirs { left, last, uses } = self.stirs;
        let since = self.evicted.wrapping_sub(last) as usize;
        if left == 0 || uses > UNTIL * self.size || !first && since < self.size / 2 {
            return;
        }
        self.stirs = Stirs { left: left - 1, last: self.evicted, uses };
        while self.deactivate() {}
        for page in 0..self.gone.len() as u32 {
            if self.has(page) {
                self.set(page, REFERENCED, true);
            }
        }
    }

    /// `inactive_is_low`.
    fn inactive_is_low(&self) -> bool {
        let [inactive, active] = self.lengths();
        let gigabytes = ((inactive + active) as f64 * self.each * 4096.0 / f64::from(1 << 30)).floor();
        let ratio = if gigabytes >= 1.0 { (10.0 * gigabytes).sqrt().floor() } else { 1.0 };
        inactive as f64 * ratio < active as f64
    }

    /// `shrink_active_list`, a page: the mark stays, so that one more use brings it back.
    fn deactivate(&mut self) -> bool {
        let Some(page) = self.lists.tail(ACTIVE) else { return false };
        self.set(page, YOUNG, false);
        self.lists.put(page, INACTIVE);
        true
    }

    /// Reclaim looks at the page that has been inactive longest; whether that was evicted. What was used through a mapping is
    /// kept for once.
    fn evict(&mut self, page: u32) -> bool {
        if self.is(page, YOUNG) {
            let again = self.is(page, REFERENCED);
            self.lists.set_flags(page, if again { 0 } else { REFERENCED });
            self.lists.put(page, if again { ACTIVE } else { INACTIVE });
            self.age = self.age.wrapping_add(u32::from(again));
            return false;
        }
        self.lists.remove(page);
        self.gone[page as usize] = self.age;
        self.lists.set_flags(page, SHADOW);
        self.age = self.age.wrapping_add(1);
        self.evicted = self.evicted.wrapping_add(1);
        true
    }

    /// `shrink_lruvec`, until a batch is free: larger and larger parts of both lists, of the active one only if the inactive
    /// one was low.
    fn reclaim(&mut self) {
        let first = !std::mem::replace(&mut self.full, true);
        self.stir_if_due(first);
        if first {
            self.flush();
        }
        self.gather_for_reclaim();
        // What comes back is a working set that is new: active pages go to make room for it.
        let low = self.known_back != self.seen_back || self.inactive_is_low();
        self.seen_back = self.known_back;
        let batch = (BATCH / self.each).max(1.0);
        let mut freed = 0.0;
        for priority in (0..=FIRST_PRIORITY).rev() {
            let mut scan = [0; 2];
            for (list, scan) in scan.iter_mut().enumerate() {
                let pages = self.lists.len(list) as f64 * self.each;
                self.owed[list] += (pages / f64::from(1 << priority)).floor() / self.each;
                *scan = self.owed[list] as usize;
                self.owed[list] -= *scan as f64;
            }
            while scan != [0; 2] && freed < batch {
                for _ in 0..scan[INACTIVE].min(batch as usize) {
                    let Some(page) = self.lists.tail(INACTIVE) else { break };
                    freed += f64::from(u8::from(self.evict(page)));
                }
                for _ in 0..scan[ACTIVE].min(batch as usize) {
                    if !low || !self.deactivate() {
                        break;
                    }
                }
                scan = scan.map(|n| n.saturating_sub(batch as usize));
            }
            if freed >= batch {
                return;
            }
        }
        // Nothing else is left: active pages go, too.
        while freed < 1.0 {
            match self.lists.tail(INACTIVE) {
                Some(page) => freed += f64::from(u8::from(self.evict(page))),
                None if !self.deactivate() => return,
                None => {}
            }
        }
    }
}

impl Policy for Classic {
    fn add(&mut self, page: u32, how: Use) {
        // `workingset_refault`: it would have stayed, had the active pages been fewer.
        let distance = self.age.wrapping_sub(self.gone[page as usize]) as usize;
        let back = how != Use::Written && self.is(page, SHADOW) && distance <= self.lengths()[ACTIVE];
        while self.lists.all() >= self.size {
            self.reclaim();
        }
        self.lists.set_flags(page, 0);
        self.lists.put(page, if back { ACTIVE } else { INACTIVE });
        self.age = self.age.wrapping_add(u32::from(back));
        self.back = self.back.wrapping_add(u32::from(back));
    }

    fn mark(&mut self, page: u32) {
        self.stirs.uses += usize::from(self.full);
        if !self.is(page, REFERENCED) {
            self.set(page, REFERENCED, true);
        } else if self.lists.list(page) == Some(INACTIVE) {
            self.lists.put(page, ACTIVE);
            self.set(page, REFERENCED, false);
            self.age = self.age.wrapping_add(1);
        }
    }

    fn young(&mut self, page: u32) {
        self.set(page, YOUNG, true);
    }

    fn has(&self, page: u32) -> bool {
        self.lists.list(page).is_some()
    }

    fn ahead(&self, page: u32) -> bool {
        self.is(page, AHEAD)
    }

    fn set_ahead(&mut self, page: u32, ahead: bool) {
        self.set(page, AHEAD, ahead);
    }

    fn remove(&mut self, page: u32) {
        self.lists.remove(page);
        self.lists.set_flags(page, 0);
    }

    fn remembers(&self, page: u32) -> bool {
        let distance = self.age.wrapping_sub(self.gone[page as usize]) as usize;
        self.lists.list(page).is_some() || self.is(page, SHADOW) && distance <= self.size
    }

    fn resize(&mut self, pages: usize, each: f64) {
        self.each = each;
        self.size = pages.max(1);
        while self.lists.all() > self.size {
            self.reclaim();
        }
    }

    fn flush(&mut self) {
        self.known = [self.lists.len(INACTIVE), self.lists.len(ACTIVE)];
        self.gathered = self.evicted;
        // Of the whole machine it has not been looked at.
        if self.statistics != Statistics::Exact {
            self.known_back = self.back;
        }
    }

    fn full(&self) -> bool {
        self.full
    }
}
