//! What is read ahead at other sizes.
//!
//! Pages that were read ahead come as such. What of it comes of the cache being as it is, is another one at another size: a
//! file that is read at random is read ahead where more pages before the missing one are there than were asked for
//! (`page_cache_sync_ra`), and again where what was read ahead last is read (`page_cache_async_ra`). Each size does that by
//! itself, by what its own cache has. Whether this kernel does it, of these files, is known of the cache of now: what was read
//! ahead is compared with what would have been there. What cannot be explained so is taken to be the same at each size.
//! As many pages may be others: reclaim marks a dirty page by the bit that says "read ahead from here" (`PG_reclaim` is
//! `PG_readahead`), and who reads such a page has the ones after it read ahead, even from a file that is told to be random.

use std::num::NonZeroU32;

use super::REST;
use super::SCALES;
use super::Touch;
use super::pages::mixed;

/// Pages that are looked at, and read ahead, at once: 2 MiB. Devices of which more is read ahead are rare, and it would be
/// looked for at each miss.
const MOST: u32 = 512;
/// Pages that were or would have been read ahead, after which older ones count half.
const MANY: f64 = 8192.0;
/// The same, below which nothing is known.
const FEW: f64 = 100.0;
/// What was read ahead and what would have been are taken for the same, if the lesser is this part of the other.
const ALIKE: f64 = 0.8;
/// What would have been read ahead is another thing than what was, where less than this part of it is the same pages.
const SAME: f64 = 0.02;
/// Reads between a page being read ahead and the one that it was for, at most: threads read at the same time.
const NEAR: u32 = 64;
/// Streams of requests that are told apart, by thread and file.
const STREAMS: usize = 512;
/// Files of which it is remembered how far they go.
const FILES: usize = 4096;

/// What was read ahead last, as in `struct file_ra_state`.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    start: u32,
    size: u32,
    late: u32,
}

/// The requests of a thread for a file.
#[derive(Debug, Clone, Copy, Default)]
struct Stream {
    /// The last page that was read, and how many of its request were to come.
    last: (u64, u32),
    /// By size, a bit: the request has met a page that was not there, and asked for all of it.
    asked: u8,
    windows: [Window; SCALES.len()],
    /// By size: the page that was read last, and how many before it were there, as far as that was asked.
    runs: [(u64, u32); SCALES.len()],
}

impl Stream {
    /// How many pages before this one are there, at most `most`. Of a reader that goes on from page to page it is one more
    /// than before: to look at all of them each time is what a size would take longest for that misses each.
    fn run(&mut self, i: usize, page: u64, most: u32, has: impl Fn(i32) -> bool) -> u32 {
        let run = match self.goes_on(i, page, most) {
            Some(_) if !has(-1) => 0,
            // Both ends are there: what is between was used later than the first of them.
            Some(run) if has(-(run as i32)) => run,
            _ => (1..=most).take_while(|n| has(-(*n as i32))).count() as u32,
        };
        self.runs[i] = (page, run);
        run
    }

    fn goes_on(&self, i: usize, page: u64, most: u32) -> Option<u32> {
        let (before, run) = self.runs[i];
        (before.wrapping_add(1) == page).then(|| (run + 1).min(most))
    }
}

/// What to bring in: pages from so many after the one that is read, of which one is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) marked: u32,
}

/// The state of read-ahead at each size.
#[derive(Debug, Clone)]
pub(super) struct Ahead {
    streams: Vec<Stream>,
    /// By page: a bit for each size, where whoever reads it asks for more.
    marks: Vec<u8>,
    /// By file, as far as there is room: the last page that was met.
    ends: Vec<(u32, u32)>,
    /// Pages that were read ahead, and those that would have been by what the cache of now is in the simulation.
    was: f64,
    would: f64,
    /// Of those that would have been, pages that were for the same read, and others.
    same: f64,
    other: f64,
    /// Reads so far, and by page how many there were when it was read ahead last.
    reads: u32,
    lately: Vec<Option<NonZeroU32>>,
    random: u64,
}

/// Bytes that it takes, beside those for each page.
#[cfg(test)]
pub(super) const FIXED: usize = STREAMS * size_of::<Stream>() + FILES * size_of::<(u32, u32)>();

fn next_size(size: u32, most: u32) -> u32 {
    crate::readahead::next_size(size.into(), most.into()) as u32
}

const fn file(page: u64) -> u32 {
    (page >> 32) as u32
}

impl Ahead {
    /// With room for so many pages.
    pub(super) fn new(pages: u32) -> Self {
        Self {
            streams: vec![Stream::default(); STREAMS],
            marks: vec![0; pages as usize],
            ends: vec![(0, 0); FILES],
            was: 0.0,
            would: 0.0,
            same: 0.0,
            other: 0.0,
            reads: 1,
            lately: vec![None; pages as usize],
            random: 0,
        }
    }

    /// A page is there: its file goes as far as that.
    pub(super) fn met(&mut self, page: u64) {
        let end = &mut self.ends[file(page) as usize % FILES];
        let index = page as u32;
        *end = (file(page), if end.0 == file(page) { end.1.max(index) } else { index });
    }

    /// Whether the file of a page is known to go as far.
    pub(super) fn is_in_file(&self, page: u64) -> bool {
        let end = self.ends[file(page) as usize % FILES];
        end.0 == file(page) && page as u32 <= end.1
    }

    /// A number is another page's now.
    pub(super) fn forget(&mut self, number: u32) {
        self.marks[number as usize] = 0;
        self.lately[number as usize] = None;
    }

    /// A page is marked in a cache, or is not.
    pub(super) fn mark(&mut self, i: usize, number: u32, marked: bool) {
        let marks = &mut self.marks[number as usize];
        *marks = *marks & !(1 << i) | u8::from(marked) << i;
    }

    /// A page is read: which stream of requests it is of.
    pub(super) fn reads(&mut self, touch: &Touch) -> usize {
        self.reads = self.reads.wrapping_add(1);
        let n = (mixed(u64::from(file(touch.page)) ^ u64::from(touch.tid) << 32) >> 32) as usize % STREAMS;
        let stream = &mut self.streams[n];
        let (page, rest) = stream.last;
        let goes_on = touch.page == page.wrapping_add(1);
        if !goes_on || touch.rest + 1 != rest && touch.rest != REST {
            stream.asked = 0;
        }
        stream.last = (touch.page, touch.rest);
        n
    }

    /// In the cache of this number, a page is read, that is `there` or not; `has`: whether the page so many further is
    /// there. What is read ahead then.
    pub(super) fn asks(
        &mut self,
        (i, stream): (usize, usize),
        (touch, number): (&Touch, u32),
        there: bool,
        has: impl Fn(i32) -> bool,
    ) -> Option<Asked> {
        let is_marked = self.marks[number as usize] >> i & 1 != 0;
        self.mark(i, number, false);
        let stream = &mut self.streams[stream];
        let (index, request, most) = (touch.page as u32, touch.rest + 1, touch.window.min(MOST));
        let last = stream.windows[i];
        let asks = !there && stream.asked >> i & 1 == 0;
        if let Some(run) = stream.goes_on(i, touch.page, most).filter(|_| !asks) {
            stream.runs[i] = (touch.page, run);
        }
        let window = if !there {
            if !asks {
                return None;
            }
            stream.asked |= 1 << i;
            let run = stream.run(i, touch.page, most, &has);
            if run <= request {
                return None;
            }
            Window { start: index, size: (run + request).min(most), late: 1 }
        } else if !is_marked {
            return None;
        } else if index == last.start.wrapping_add(last.size).wrapping_sub(last.late) {
            let size = last.size.max(next_size(last.size, most));
            Window { start: last.start.saturating_add(last.size), size, late: size }
        } else {
            let from = (1..=most).find(|n| !has(*n as i32))?;
            let size = next_size(from + request, most);
            Window { start: index.saturating_add(from), size, late: size }
        };
        stream.windows[i] = window;
        let Window { start, size, late } = window;
        let from = start.checked_sub(index)?;
        Some(Asked { from: from.max(request), to: from + size, marked: from + size - late })
    }

    /// A page was read ahead.
    pub(super) fn was(&mut self, number: u32) {
        self.was += 1.0;
        self.lately[number as usize] = NonZeroU32::new(self.reads);
        self.age();
    }

    /// In the cache of now a page would be read ahead, by what is there. `exact`: it is this one, and none stands for it.
    pub(super) fn would(&mut self, number: Option<u32>, there: bool, exact: bool) {
        let lately = number.and_then(|n| self.lately[n as usize].take());
        let same = lately.is_some_and(|then| self.reads.wrapping_sub(then.get()) <= NEAR);
        match (exact, same) {
            (true, true) => self.same += 1.0,
            (true, false) if !there => self.other += 1.0,
            _ => {}
        }
        self.would += f64::from(u8::from(!there));
        self.age();
    }

    fn age(&mut self) {
        if self.was.max(self.would).max(self.same) > MANY {
            for n in [&mut self.was, &mut self.would, &mut self.same, &mut self.other] {
                *n /= 2.0;
            }
        }
    }

    /// Whether what was read ahead is not what would have been, however much of both there is.
    fn differs(&self) -> bool {
        let all = self.same + self.other;
        all >= FEW && self.same < SAME * all
    }

    /// Of a page that was read ahead: whether that is to be explained by what the cache of now has.
    pub(super) fn is_explained(&mut self) -> bool {
        self.was >= FEW
            && !self.differs()
            && (self.would > ALIKE * self.was || self.number() < self.would / self.was)
    }

    /// Of what would be read ahead: whether it is, as far as that has turned out to be so in the cache of now.
    pub(super) fn happens(&mut self) -> bool {
        let most = self.was.max(self.would);
        most >= FEW
            && !self.differs()
            && (self.was > ALIKE * self.would || self.number() < self.was / self.would)
    }

    /// Any number below 1, the same in each run (splitmix64).
    fn number(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut n = self.random;
        n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((n ^ n >> 31) >> 11) as f64 / (1u64 << 53) as f64
    }
}
