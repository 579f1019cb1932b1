//! The state of read-ahead of an open file, and what it brings in: `mm/readahead.c`, by the names that it has there.

use super::pages::Folio;
use super::pages::Pages;
use super::sums::SIZES;
use super::sums::Sums;
use super::tree;

/// `struct file_ra_state`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct State {
    start: u64,
    size: u64,
    async_size: u64,
    order: u32,
}

/// What the algorithm needs to know of the file and of the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given {
    /// Pages of the file.
    pub(super) end: u64,
    /// `ra_pages`.
    pub(super) pages: u64,
    /// `io_pages` of the device.
    pub(super) io_pages: u64,
    /// `FMODE_RANDOM`.
    pub(super) random: bool,
    /// Where the read before it ended, in pages; `None`: there was none.
    pub(super) before: Option<u64>,
    /// Order of the largest folio.
    pub(super) order: u32,
    /// Windows end where large folios do.
    pub(super) aligned: bool,
}

/// Pages that `force_page_cache_ra` asks for at a time: 2 MiB.
const FORCED: u64 = 512;

fn init_size(request: u64, max: u64) -> u64 {
    let size = request.next_power_of_two();
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

/// `get_next_ra_size`
pub(crate) fn next_size(size: u64, max: u64) -> u64 {
    if size < max / 16 {
        4 * size
    } else if size <= max / 2 {
        2 * size
    } else {
        max
    }
}

/// A file, as the algorithm sees it while it serves one request.
pub(super) struct Reader<'a> {
    pub(super) pages: &'a mut Pages,
    pub(super) sums: &'a mut Sums,
    pub(super) state: &'a mut State,
    pub(super) given: Given,
}

impl Reader<'_> {
    /// `ractl_max_pages`.
    const fn max_pages(&self, request: u64) -> u64 {
        let Given { pages, io_pages, .. } = self.given;
        if request > pages && io_pages > pages {
            return if request < io_pages { request } else { io_pages };
        }
        pages
    }

    /// `page_cache_sync_ra`: a page is missing.
    pub(super) fn sync(&mut self, index: u64, request: u64) {
        let given = self.given;
        if given.pages == 0 || given.random {
            return self.force(index, if given.pages == 0 { 1 } else { request });
        }
        let max = self.max_pages(request);
        let follows = given.before.is_some_and(|before| index.wrapping_sub(before) <= 1);
        if index == 0 || request > max || follows {
            let size = init_size(request, max);
            // From half of it on where it is no more than the request; all of it before 6.12, as far as can be told.
            let whole = if given.aligned { size / 2 } else { size };
            let async_size = if size > request { size - request } else { whole };
            *self.state = State { start: index, size, async_size, order: 0 };
            return self.submit(0);
        }
        let miss = tree::missing_before(self.pages, index - 1, max);
        let mut run = miss.map_or(index, |miss| index - miss - 1);
        if run <= request {
            return self.plain(index, request, 0, 0);
        }
        if miss.is_none() {
            run *= 2;
        }
        *self.state = State { start: index, size: (run + request).min(max), async_size: 1, order: 0 };
        self.submit(0);
    }

    /// `page_cache_async_ra`: a folio with a mark is read.
    pub(super) fn marked(&mut self, folio: Folio, request: u64) {
        let given = self.given;
        if given.pages == 0 {
            return;
        }
        self.pages.unmark(folio.first);
        let max = self.max_pages(request);
        let State { start, size, async_size, .. } = *self.state;
        let expected = (start + size).saturating_sub(async_size) >> folio.order << folio.order;
        if folio.first == expected {
            self.state.start += size;
            self.state.size = size.max(next_size(size, max));
        } else {
            // Before 6.17, the last page that was looked at where none is missing.
            let none = folio.first + max + u64::from(given.aligned);
            let start = tree::missing_from(self.pages, folio.first + 1, max).unwrap_or(none);
            if start - folio.first > max {
                return;
            }
            self.state.start = start;
            self.state.size = next_size(start - folio.first + request, max);
        }
        let mut order = folio.order + 2;
        if given.aligned {
            order = self.state.order + 2;
            let align = 1 << order.min(max.trailing_zeros());
            let end = self.state.start + self.state.size;
            let aligned = end / align * align;
            if aligned > self.state.start {
                self.state.size -= end - aligned;
            }
        }
        self.state.async_size = self.state.size;
        self.submit(order);
    }

    /// `page_cache_ra_order`: brings the window in.
    fn submit(&mut self, order: u32) {
        let State { start, size, async_size, .. } = *self.state;
        let which = size_of(size);
        self.state.order = 0;
        // Before 6.16, also a first window had folios of four pages, and a small one had none.
        let (order, least) = if self.given.aligned { (order, 1) } else { (order.max(2), 4) };
        if self.given.order == 0 || size < least {
            return self.plain(start, size, async_size, which);
        }
        let order = order.min(self.given.order).min(size.ilog2());
        self.state.order = order;
        let mark = (start + size).saturating_sub(async_size);
        let limit = self.given.end.min(start + size);
        let mut index = start;
        while index < limit {
            let mut order = order.min(index.trailing_zeros());
            while order > 0 && index + (1 << order) > limit {
                order -= 1;
            }
            if !self.add(index, order, index == mark >> order << order, which) {
                // What is there ends the large folios.
                return self.plain(index, size - (index - start), async_size, which);
            }
            index += 1 << order;
        }
    }

    /// `force_page_cache_ra`: what is asked for, and no more.
    fn force(&mut self, index: u64, request: u64) {
        let request = request.min(self.given.io_pages.max(self.given.pages));
        for at in (0..request).step_by(FORCED as usize) {
            self.plain(index + at, (request - at).min(FORCED), 0, 0);
        }
    }

    /// `do_page_cache_ra`: what is missing among these pages, each a folio.
    fn plain(&mut self, index: u64, many: u64, async_size: u64, which: usize) {
        let many = many.min(self.given.end.saturating_sub(index));
        let mark = many.checked_sub(async_size).map(|at| index + at);
        for page in index..index + many {
            self.add(page, 0, mark == Some(page), which);
        }
    }

    /// Brings one folio in. False if one of its pages is there.
    pub(super) fn add(&mut self, first: u64, order: u32, marked: bool, which: usize) -> bool {
        let added = self.pages.add(first, order, marked, which);
        if added {
            self.sums.fetched += 1 << order;
            self.sums.windows[which].pages += 1 << order;
        }
        added
    }
}

/// Which of the sizes that are told apart.
fn size_of(pages: u64) -> usize {
    (pages.max(1).ilog2() as usize).min(SIZES - 1)
}
