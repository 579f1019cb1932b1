//! Which number a followed page has: a table that never grows.

use hashbrown::HashTable;

/// The pages that are followed.
#[derive(Debug)]
pub(super) struct Pages {
    table: HashTable<u32>,
    hashes: Vec<u64>,
    free: Vec<u32>,
    /// Where the search for pages to forget goes on.
    hand: u32,
    /// All numbers that were ever given are below.
    highest: u32,
}

/// What the table goes by: the upper half of the hash is low for all chosen pages.
const fn spread(hash: u64) -> u64 {
    (hash & 0xffff_ffff).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Pages {
    /// Room for so many.
    pub(super) fn new(room: u32) -> Self {
        Self {
            table: HashTable::with_capacity(room as usize),
            hashes: vec![0; room as usize],
            free: (0..room).rev().collect(),
            hand: 0,
            highest: 0,
        }
    }

    /// The number of a page.
    pub(super) fn find(&self, hash: u64) -> Option<u32> {
        self.table.find(spread(hash), |n| self.hashes[*n as usize] == hash).copied()
    }

    /// Gives a page a number; `None`: all are taken. The page must not have one.
    pub(super) fn add(&mut self, hash: u64) -> Option<u32> {
        let n = self.free.pop()?;
        self.hashes[n as usize] = hash;
        self.highest = self.highest.max(n + 1);
        let hashes = &self.hashes;
        self.table.insert_unique(spread(hash), n, |n| spread(hashes[*n as usize]));
        Some(n)
    }

    /// Forgets the pages that `keep` does not want, of those with these numbers.
    fn forget(&mut self, range: impl Iterator<Item = u32>, mut keep: impl FnMut(u32, u64) -> bool) {
        for n in range {
            let hash = self.hashes[n as usize];
            let Ok(entry) = self.table.find_entry(spread(hash), |other| *other == n) else { continue };
            if !keep(n, hash) {
                entry.remove();
                self.free.push(n);
            }
        }
    }

    /// A page that is followed, by any number; `None`: there is none for this one.
    pub(super) fn nth(&self, number: u64) -> Option<u32> {
        let n = (number % u64::from(self.highest.max(1))) as u32;
        (self.find(self.hashes[n as usize]) == Some(n)).then_some(n)
    }

    /// Looks at an eighth of all.
    pub(super) fn sweep(&mut self, keep: impl FnMut(u32, u64) -> bool) {
        let all = self.hashes.len() as u32;
        let (from, step) = (self.hand, (all / 8).max(1));
        self.hand = (from + step) % all;
        self.forget((from..from + step).map(|n| n % all), keep);
    }

    /// Looks at all.
    pub(super) fn retain(&mut self, keep: impl FnMut(u32, u64) -> bool) {
        self.forget(0..self.hashes.len() as u32, keep);
    }

    pub(super) fn free(&self) -> usize {
        self.free.len()
    }
}
