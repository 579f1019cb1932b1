//! Which pages of a file are in the simulated cache.

use std::collections::HashMap;
use std::collections::HashSet;

/// Pages for which there is one piece of memory.
const CHUNK: u64 = 512;
/// Pages of nodes of the kernel's tree that are longer than that, as powers of two.
const LONG: [u32; 8] = [12, 18, 24, 30, 36, 42, 48, 54];

const PRESENT: u16 = 0x8000;
const USED: u16 = 0x4000;
const MARKED: u16 = 0x2000;
const ORDER: u16 = 0xf;
const SIZE_SHIFT: u32 = 4;
const SIZE: u16 = 0xf;

/// A folio that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Folio {
    /// Its first page.
    pub(super) first: u64,
    /// Its pages, as a power of two.
    pub(super) order: u32,
    /// Whether whoever reads it asks for more.
    pub(super) marked: bool,
}

/// The pages of one file.
#[derive(Debug, Default)]
pub(super) struct Pages {
    chunks: HashMap<u64, Box<[u16; CHUNK as usize]>>,
    /// Stretches with something in them: pages as a power of two, and which of that length. Those shorter than a chunk are
    /// looked through.
    stretches: HashSet<(u32, u64)>,
    last: u64,
}

impl Pages {
    /// Pieces of memory that it has.
    pub(super) fn room(&self) -> usize {
        self.chunks.len()
    }

    fn at(&self, page: u64) -> u16 {
        self.chunks.get(&(page / CHUNK)).map_or(0, |c| c[(page % CHUNK) as usize])
    }

    fn change(&mut self, page: u64) -> &mut u16 {
        let stretches = &mut self.stretches;
        let chunk = self.chunks.entry(page / CHUNK).or_insert_with(|| {
            stretches.extend(LONG.map(|shift| (shift, page >> shift)));
            Box::new([0; CHUNK as usize])
        });
        &mut chunk[(page % CHUNK) as usize]
    }

    pub(super) fn has(&self, page: u64) -> bool {
        self.at(page) & PRESENT != 0
    }

    /// The last page that there ever was; 0 if there was none.
    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    /// Whether one of the pages from this one on is there: so many as the power of two says, a multiple of 6.
    pub(super) fn any(&self, first: u64, shift: u32) -> bool {
        match shift {
            0..9 => {
                let from = (first % CHUNK) as usize;
                let chunk = self.chunks.get(&(first / CHUNK));
                chunk.is_some_and(|c| c[from..].iter().take(1 << shift).any(|p| p & PRESENT != 0))
            }
            _ => self.stretches.contains(&(shift, first >> shift)),
        }
    }

    /// The folio that a page is of.
    pub(super) fn folio(&self, page: u64) -> Option<Folio> {
        let here = self.at(page);
        let order = u32::from(here & ORDER);
        let first = page >> order << order;
        (here & PRESENT != 0).then(|| Folio { first, order, marked: self.at(first) & MARKED != 0 })
    }

    /// Brings a folio in, for a window of a size. False if one of its pages is there.
    pub(super) fn add(&mut self, first: u64, order: u32, marked: bool, size: usize) -> bool {
        let pages = first..first + (1 << order);
        if pages.clone().any(|p| self.has(p)) {
            return false;
        }
        let size = u16::try_from(size).unwrap_or(0) & SIZE;
        self.last = self.last.max(first + (1 << order) - 1);
        let state = PRESENT | size << SIZE_SHIFT | u16::try_from(order).unwrap_or(0) & ORDER;
        for page in pages {
            *self.change(page) = if marked && page == first { state | MARKED } else { state };
        }
        true
    }

    /// Takes the mark of a folio away.
    pub(super) fn unmark(&mut self, first: u64) {
        *self.change(first) &= !MARKED;
    }

    /// The size of the window that brought a page in; `None`: it is not there.
    pub(super) fn brought_by(&self, page: u64) -> Option<usize> {
        let state = self.at(page);
        (state & PRESENT != 0).then_some(usize::from(state >> SIZE_SHIFT & SIZE))
    }

    /// A page is read: the size of the window that brought it in, if that is the first time.
    pub(super) fn read(&mut self, page: u64) -> Option<usize> {
        let state = self.change(page);
        let first = *state & USED == 0;
        *state |= USED;
        first.then_some(usize::from(*state >> SIZE_SHIFT & SIZE))
    }
}
