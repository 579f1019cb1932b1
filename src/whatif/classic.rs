//! The active and the inactive list, and the refault distance: `mm/swap.c`, `mm/vmscan.c`, `mm/workingset.c`.

use super::Policy;
use super::Use;
use super::lists::Lists;

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

/// Both lists at one size.
#[derive(Debug)]
pub struct Classic {
    lists: Lists<2>,
    flags: Vec<u8>,
    /// `age` when the page was evicted.
    gone: Vec<u32>,
    /// Evictions and activations so far (`nonresident_age`).
    age: u32,
    size: usize,
    /// Pages that one followed page stands for.
    each: f64,
    /// Lengths of the lists as statistics have them.
    known: [usize; 2],
    /// The statistics of a cgroup are gathered now and then, and all decisions rest on them: without this delay a scan finds
    /// cliffs which the kernel does not have.
    late: bool,
    /// Parts of pages that are to be looked at, by list.
    owed: [f64; 2],
    full: bool,
}

impl Classic {
    /// Room to follow so many pages. `late`: sizes of lists are known as of the last flush, as in cgroups.
    #[must_use]
    pub fn new(pages: usize, late: bool) -> Self {
        Self {
            lists: Lists::new(pages),
            flags: vec![0; pages],
            gone: vec![0; pages],
            age: 0,
            size: 1,
            each: 1.0,
            known: [0; 2],
            late,
            owed: [0.0; 2],
            full: false,
        }
    }

    fn is(&self, page: u32, flag: u8) -> bool {
        self.flags[page as usize] & flag != 0
    }

    fn set(&mut self, page: u32, flag: u8, to: bool) {
        let flags = &mut self.flags[page as usize];
        *flags = if to { *flags | flag } else { *flags & !flag };
    }

    fn lengths(&self) -> [usize; 2] {
        match self.late {
            true => self.known,
            false => [self.lists.len(INACTIVE), self.lists.len(ACTIVE)],
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
            self.flags[page as usize] = if again { 0 } else { REFERENCED };
            self.lists.put(page, if again { ACTIVE } else { INACTIVE });
            self.age = self.age.wrapping_add(u32::from(again));
            return false;
        }
        self.lists.remove(page);
        self.gone[page as usize] = self.age;
        self.flags[page as usize] = SHADOW;
        self.age = self.age.wrapping_add(1);
        true
    }

    /// `shrink_lruvec`, until a batch is free: larger and larger parts of both lists, of the active one only if the inactive
    /// one was low.
    fn reclaim(&mut self) {
        if !std::mem::replace(&mut self.full, true) {
            self.flush();
        }
        let low = self.inactive_is_low();
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
        self.flags[page as usize] = 0;
        self.lists.put(page, if back { ACTIVE } else { INACTIVE });
        self.age = self.age.wrapping_add(u32::from(back));
    }

    fn mark(&mut self, page: u32) {
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
        self.flags[page as usize] = 0;
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
    }

    fn full(&self) -> bool {
        self.full
    }
}
