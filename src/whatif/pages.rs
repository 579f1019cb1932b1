//! Which number a followed page has: a table that never grows.

use hashbrown::HashTable;

/// The pages that are followed.
#[derive(Debug)]
pub(super) struct Pages {
    table: HashTable<u32>,
    places: Vec<u64>,
    free: Vec<u32>,
    /// Where the search for pages to forget goes on.
    hand: u32,
}

/// Pages that are chosen together, as a power of two.
const STRETCH_SHIFT: u32 = 5;
/// A part of all stretches, as a threshold of their numbers.
const ALL: f64 = (1u64 << 32) as f64;

/// What the table goes by.
pub(super) const fn mixed(number: u64) -> u64 {
    let mut h = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h.wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}

/// What a stretch is chosen by. By the golden ratio, a threshold takes as large a part of each file as of all, from all over it.
const fn chance(page: u64) -> u32 {
    ((page >> 32) as u32).wrapping_add((page as u32 >> STRETCH_SHIFT).wrapping_mul(0x9e37_79b9))
}

/// Whether a page is one of this part of all: the same in `bpf/touch.h`.
pub(super) fn is_chosen(page: u64, rate: f64) -> bool {
    f64::from(chance(page)) < rate * ALL
}

/// One of so many groups of the pages of this part: stretches are together.
pub(super) fn group(page: u64, rate: f64, groups: usize) -> usize {
    let part = f64::from(chance(page)) / (rate * ALL);
    ((part * groups as f64) as usize).min(groups - 1)
}

/// The page so many further in the same file. Where that is in a stretch that is not chosen, one of the page's own
/// stands for it, as if the stretch were a circle: what is not seen is taken to be like what is. `None`: before the
/// beginning, or too far.
pub(super) fn beside(page: u64, by: i32, rate: f64) -> Option<u64> {
    let index = (page as u32).checked_add_signed(by)?;
    let other = page >> 32 << 32 | u64::from(index);
    if is_chosen(other, rate) {
        return Some(other);
    }
    let within = (1 << STRETCH_SHIFT) - 1;
    Some(page & !within | other & within)
}

impl Pages {
    /// Room for so many.
    pub(super) fn new(room: u32) -> Self {
        Self {
            table: HashTable::with_capacity(room as usize),
            places: vec![0; room as usize],
            free: (0..room).rev().collect(),
            hand: 0,
        }
    }

    /// The number of a page.
    pub(super) fn find(&self, place: u64) -> Option<u32> {
        self.table.find(mixed(place), |n| self.places[*n as usize] == place).copied()
    }

    /// Gives a page a number; `None`: all are taken. The page must not have one.
    pub(super) fn add(&mut self, place: u64) -> Option<u32> {
        let n = self.free.pop()?;
        self.places[n as usize] = place;
        let places = &self.places;
        self.table.insert_unique(mixed(place), n, |n| mixed(places[*n as usize]));
        Some(n)
    }

    /// Forgets the pages that `keep` does not want, of those with these numbers.
    fn forget(&mut self, range: impl Iterator<Item = u32>, mut keep: impl FnMut(u32, u64) -> bool) {
        for n in range {
            let place = self.places[n as usize];
            let Ok(entry) = self.table.find_entry(mixed(place), |other| *other == n) else { continue };
            if !keep(n, place) {
                entry.remove();
                self.free.push(n);
            }
        }
    }

    /// Looks at an eighth of all.
    pub(super) fn sweep(&mut self, keep: impl FnMut(u32, u64) -> bool) {
        let all = self.places.len() as u32;
        let (from, step) = (self.hand, (all / 8).max(1));
        self.hand = (from + step) % all;
        self.forget((from..from + step).map(|n| n % all), keep);
    }

    /// Looks at all.
    pub(super) fn retain(&mut self, keep: impl FnMut(u32, u64) -> bool) {
        self.forget(0..self.places.len() as u32, keep);
    }

    pub(super) fn free(&self) -> usize {
        self.free.len()
    }
}
