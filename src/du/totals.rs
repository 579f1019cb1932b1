//! What is added up for a file, a directory, or all of it.

use super::residency::Residency;
use super::residency::Unknown;

/// Sums over files. Sizes are in bytes, the rest in pages or pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Regular files, hard links once, and block devices that were named.
    pub files: u64,
    /// Directories.
    pub dirs: u64,
    /// Symbolic links, pipes, sockets, devices: they have no pages.
    pub others: u64,
    /// Bytes allocated on disk, of directories and others too, as du(1) counts.
    pub disk: u64,
    /// Bytes of the files, holes included.
    pub size: u64,
    /// Pages that these cover.
    pub pages: u64,
    /// Pages cached, of files that could be asked.
    pub cached: u64,
    /// Of these, pages to be written, of files that cachestat(2) answered for.
    pub dirty: u64,
    /// Of these, pages being written, likewise.
    pub writeback: u64,
    /// Pages evicted and remembered, likewise.
    pub evicted: u64,
    /// Of these, evicted recently, likewise.
    pub recently_evicted: u64,
    /// Files that mincore(2) answered for: their dirty pages are not known.
    pub by_mincore: u64,
    /// Files without pages: that nothing of them is dirty was not asked.
    pub empty: u64,
    /// Files of overlay mounts, of which it is not known whether others share their pages: those may be counted twice.
    pub perhaps_shared: u64,
    /// Files that nothing could be learnt of.
    pub unknown: u64,
    /// Pages that these cover.
    pub unknown_pages: u64,
    /// Of the unknown files, those of unknown size: they are missing in `disk`, `size` and `pages`.
    pub sizeless: u64,
    /// Directories that could not be read, and entries of which nothing is known: what they hold is in no other sum.
    pub unread: u64,
    /// What was gone when its turn came: no error, trees change.
    pub vanished: u64,
}

impl Totals {
    /// A directory, or an entry of one, that could not be read.
    #[must_use]
    pub fn of_unread() -> Self {
        Self { unread: 1, ..Self::default() }
    }

    /// A file or directory that was gone when its turn came.
    #[must_use]
    pub fn of_vanished() -> Self {
        Self { vanished: 1, ..Self::default() }
    }

    /// One file: its blocks and what came of asking.
    #[must_use]
    pub fn of_file(size: u64, disk: u64, answer: Result<&Residency, Unknown>) -> Self {
        let pages = size.div_ceil(rustix::param::page_size() as u64);
        let base = Self { files: 1, disk, size, pages, ..Self::default() };
        match answer {
            Ok(r) => {
                let more = r.more.unwrap_or_default();
                Self {
                    size: r.size,
                    pages: r.pages,
                    cached: r.cached,
                    dirty: more.dirty,
                    writeback: more.writeback,
                    evicted: more.evicted,
                    recently_evicted: more.recently_evicted,
                    by_mincore: u64::from(r.more.is_none() && r.pages > 0),
                    empty: u64::from(r.pages == 0),
                    ..base
                }
            }
            Err(_) => Self { unknown: 1, unknown_pages: pages, sizeless: u64::from(size == 0), ..base },
        }
    }

    /// Adds others to these.
    pub fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.dirs += other.dirs;
        self.others += other.others;
        self.disk += other.disk;
        self.size = self.size.saturating_add(other.size);
        self.pages = self.pages.saturating_add(other.pages);
        self.cached += other.cached;
        self.dirty += other.dirty;
        self.writeback += other.writeback;
        self.evicted += other.evicted;
        self.recently_evicted += other.recently_evicted;
        self.by_mincore += other.by_mincore;
        self.empty += other.empty;
        self.perhaps_shared += other.perhaps_shared;
        self.unknown += other.unknown;
        self.unknown_pages = self.unknown_pages.saturating_add(other.unknown_pages);
        self.sizeless += other.sizeless;
        self.unread += other.unread;
        self.vanished += other.vanished;
    }

    /// Whether a part could not be asked, so that what is counted is the least that there may be.
    #[must_use]
    pub const fn partial(&self) -> bool {
        self.unknown > 0 || self.unread > 0
    }

    /// Whether sizes are missing, so that these sums are the least that there may be.
    #[must_use]
    pub const fn partly_sized(&self) -> bool {
        self.sizeless > 0 || self.unread > 0
    }

    /// A sum of sizes; `None` if no size is known. With [`Totals::partly_sized`], at least so much.
    #[must_use]
    pub const fn sized(&self, figure: u64) -> Option<u64> {
        // What directories take on the disk is known though what is in them is not.
        let none = self.partly_sized() && self.sizeless == self.files && figure == 0;
        // Three sparse files may come to more than there are numbers for; one may not.
        if none || figure == u64::MAX { None } else { Some(figure) }
    }

    /// Whether any figure is the least that there may be, or missing.
    #[must_use]
    pub const fn incomplete(&self) -> bool {
        self.partial() || self.sized(self.size).is_none()
    }

    /// Cached pages; `None` if no file could be asked. With [`Totals::partial`], at least so many.
    #[must_use]
    pub const fn cached(&self) -> Option<u64> {
        if self.partial() && self.unknown == self.files { None } else { Some(self.cached) }
    }

    /// A figure that cachestat(2) alone gives: `None` if mincore(2) answered for a file, or nobody did.
    #[must_use]
    pub const fn only_cachestat(&self, figure: u64) -> Option<u64> {
        if self.by_mincore > 0 || self.cached().is_none() { None } else { Some(figure) }
    }

    /// The same as the least that it can be, and whether it may be more: some files were answered for by mincore(2).
    #[must_use]
    pub const fn least_by_cachestat(&self, figure: u64) -> Option<(u64, bool)> {
        let answered = self.files - self.unknown - self.empty;
        if self.cached().is_none() || self.by_mincore > 0 && self.by_mincore == answered {
            return None;
        }
        Some((figure, self.by_mincore > 0))
    }

    /// `cached / pages`; `None` without pages and where a part could not be asked.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        (self.pages > 0 && !self.partial()).then(|| self.cached as f64 / self.pages as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::du::residency::Method;
    use crate::du::residency::More;

    fn file(pages: u64, cached: u64, more: Option<More>) -> Totals {
        let size = pages * rustix::param::page_size() as u64;
        let method = if more.is_some() { Method::Cachestat } else { Method::Mincore };
        Totals::of_file(size, size, Ok(&Residency { size, pages, cached, more, method }))
    }

    #[test]
    fn what_is_not_known_of_one_file_is_not_known_of_the_directory() {
        let mut sum = file(10, 5, Some(More { dirty: 2, ..More::default() }));
        assert_eq!((sum.ratio(), sum.only_cachestat(sum.dirty)), (Some(0.5), Some(2)));
        sum.add(&file(10, 10, None));
        assert_eq!((sum.ratio(), sum.only_cachestat(sum.dirty)), (Some(0.75), None));
        assert_eq!(sum.least_by_cachestat(sum.dirty), Some((2, true)));
        sum.add(&Totals::of_file(4096, 0, Err(Unknown::NotPermitted)));
        assert_eq!((sum.ratio(), sum.cached(), sum.partial()), (None, Some(15), true));
        // Of an empty file nothing is learnt of others.
        let mut sum = file(10, 10, None);
        sum.add(&file(0, 0, Some(More::default())));
        assert_eq!((sum.least_by_cachestat(sum.dirty), sum.only_cachestat(sum.dirty)), (None, None));
    }

    #[test]
    fn what_is_below_an_unreadable_directory_is_not_zero() {
        let mut sum = Totals { dirs: 1, ..Totals::default() };
        sum.add(&Totals::of_unread());
        assert_eq!((sum.cached(), sum.ratio(), sum.partial()), (None, None, true));
        assert_eq!((sum.sized(sum.size), sum.sized(4096), sum.partly_sized()), (None, Some(4096), true));
        sum.add(&file(10, 10, None));
        assert_eq!((sum.cached(), sum.ratio(), sum.partial()), (Some(10), None, true));
    }

    #[test]
    fn a_sum_without_a_number_is_none() {
        let size = i64::MAX as u64;
        let method = Method::Cachestat;
        let largest =
            || Totals::of_file(size, 0, Ok(&Residency { size, pages: 0, cached: 0, more: None, method }));
        let mut sum = largest();
        sum.add(&largest());
        assert_eq!((sum.sized(sum.size), sum.incomplete()), (Some(u64::MAX - 1), false));
        sum.add(&largest());
        assert_eq!((sum.sized(sum.size), sum.sized(sum.disk)), (None, Some(0)));
        assert!(sum.incomplete() && !sum.partial(), "what is cached is all known");
    }

    #[test]
    fn nothing_is_neither_zero_nor_all() {
        assert_eq!(Totals::default().ratio(), None);
        assert_eq!(Totals::default().cached(), Some(0));
        let none = Totals::of_file(8192, 0, Err(Unknown::NotReadable));
        assert_eq!((none.sized(none.size), none.partly_sized()), (Some(8192), false));
        let missing = Totals::of_file(0, 0, Err(Unknown::Vanished));
        assert_eq!((missing.sized(missing.size), missing.partly_sized()), (None, true));
        assert_eq!((none.cached(), none.ratio(), none.only_cachestat(0)), (None, None, None));
    }
}
