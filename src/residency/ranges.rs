//! Which pages of a file are cached, as runs.

use std::os::fd::BorrowedFd;

use super::answer::Method;
use super::ask;
use super::ask::Ask;
use super::ask::NEVER;
use super::ask::Stop;
use super::ask::WINDOW;
use super::size::size;
use super::sys;
use super::sys::Mapping;
use super::unknown::Unknown;

/// Cached pages in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Number of the first page, from 0.
    pub start: u64,
    /// Number of pages.
    pub pages: u64,
    /// Of these, pages to be written; `None` where mincore(2) answered.
    pub dirty: Option<u64>,
}

impl Run {
    /// The page after the last.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.start + self.pages
    }
}

/// Joins what lies side by side.
#[derive(Debug, Default)]
struct Joined(Vec<Run>);

impl Joined {
    /// Whether so many are complete: the last may grow.
    fn more_than(&self, most: usize) -> bool {
        self.0.len() > most
    }

    fn push(&mut self, run: Run) {
        match self.0.last_mut() {
            Some(last) if last.end() == run.start => {
                last.pages += run.pages;
                last.dirty = last.dirty.zip(run.dirty).map(|(a, b)| a + b);
            }
            _ => self.0.push(run),
        }
    }
}

impl Ask {
    /// The runs of cached pages of an open file, in order.
    ///
    /// With cachestat(2) by halving: what is not cached at all and what is cached as a whole needs no second question,
    /// so a file costs what its runs cost, however large it is; where runs are many, mincore(2) looks. Each page is the
    /// answer of one moment, not all of the same.
    ///
    /// # Errors
    /// Why they cannot be known.
    pub fn ranges(self, fd: BorrowedFd<'_>) -> Result<Vec<Run>, Unknown> {
        self.first_ranges(fd, size(fd)?, usize::MAX, NEVER)
    }

    /// The first `most` of them in a file of this size, to be stopped between any two questions.
    ///
    /// # Errors
    /// Why they cannot be known.
    pub fn first_ranges(
        self,
        fd: BorrowedFd<'_>,
        size: u64,
        most: usize,
        stop: Stop<'_>,
    ) -> Result<Vec<Run>, Unknown> {
        let page = rustix::param::page_size() as u64;
        let pages = size.div_ceil(page);
        let mut runs = Joined::default();
        let how = self.on(fd);
        if let Some(why) = how.vain() {
            return Err(why);
        }
        match how.method() {
            Method::Cachestat => {
                let ask = |start: u64, count: u64| {
                    ask::go_on(stop)?;
                    sys::cachestat(fd, start * page, count.saturating_mul(page))
                        .map(|s| (s.cache, s.dirty))
                        .map_err(ask::refused)
                };
                let mut look = Look { fd, mapped: None };
                for step in ask::steps(pages) {
                    halve(step, most, &mut runs, ask, |start, count, cached| look.at(start, count, cached))?;
                }
            }
            Method::Mincore if pages == 0 => {}
            Method::Mincore => how.windows(fd, pages, stop, |first, vec| {
                seen_runs(first, vec, None, &mut runs);
                !runs.more_than(most)
            })?,
        }
        runs.0.truncate(most);
        Ok(runs.0)
    }
}

/// Pages within which questions are counted, and how many there may be before each page is looked at.
const PART: u64 = 1 << 13;
const PATIENCE: u32 = 64;
/// Pages that are not worth a look: as many questions cost no more.
const FEW: u64 = 16;

/// Finds the runs in a range by asking how many pages of a part are cached and dirty. It ends when there are more than
/// `most`: then these are complete. Where a part turns out to have many runs, and nothing dirty, `look` looks at each of
/// its pages, so many of which are cached: if it can, and sees as many.
fn halve(
    (first, pages): (u64, u64),
    most: usize,
    runs: &mut Joined,
    mut ask: impl FnMut(u64, u64) -> Result<(u64, u64), Unknown>,
    mut look: impl FnMut(u64, u64, u64) -> Option<Vec<u8>>,
) -> Result<(), Unknown> {
    let mut rest = vec![(first, pages)];
    let (mut part_end, mut asked) = (0, 0);
    while let Some((start, count)) = rest.pop() {
        if runs.more_than(most) {
            break;
        }
        if count == 0 {
            continue;
        }
        if start >= part_end && count <= PART {
            (part_end, asked) = (start + count, 0);
        }
        asked += 1;
        let (cached, dirty) = ask(start, count)?;
        if cached >= count {
            runs.push(Run { start, pages: count, dirty: Some(dirty) });
        } else if cached > 0 {
            let tired = asked > PATIENCE && count <= PART && count > FEW && dirty == 0;
            if let Some(seen) = tired.then(|| look(start, count, cached)).flatten() {
                seen_runs(start, &seen, Some(0), runs);
                continue;
            }
            // Halves of a power of two, as folios and the nodes of the cache's tree are aligned.
            let half = count.next_power_of_two() / 2;
            rest.push((start + half, count - half));
            rest.push((start, half));
        }
    }
    Ok(())
}

/// The runs in answers of mincore(2), a byte for each page.
fn seen_runs(first: u64, seen: &[u8], dirty: Option<u64>, runs: &mut Joined) {
    let mut at = first;
    for same in seen.chunk_by(|a, b| a & 1 == b & 1) {
        if same[0] & 1 == 1 {
            runs.push(Run { start: at, pages: same.len() as u64, dirty });
        }
        at += same.len() as u64;
    }
}

/// Looks at pages one by one with mincore(2), beside cachestat(2).
struct Look<'f> {
    fd: BorrowedFd<'f>,
    /// Number of the first page that is mapped, and the mapping, if there is one.
    mapped: Option<(u64, Option<Mapping>)>,
}

impl Look<'_> {
    /// What mincore(2) says of each page, if it sees so many cached as cachestat(2): to who may not write the file it says
    /// that all are, and pages that are still being read it does not count.
    fn at(&mut self, start: u64, count: u64, cached: u64) -> Option<Vec<u8>> {
        let inside = |first: u64| start >= first && start + count <= first + WINDOW;
        if self.mapped.as_ref().is_none_or(|(first, _)| !inside(*first)) {
            let pages = usize::try_from(WINDOW).ok()?;
            self.mapped = Some((start, Mapping::new(self.fd, start, pages).ok()));
        }
        let (first, mapping) = self.mapped.as_ref()?;
        let mut seen = vec![0; usize::try_from(count).ok()?];
        mapping.as_ref()?.mincore(usize::try_from(start - first).ok()?, &mut seen).ok()?;
        let sum: u64 = seen.iter().map(|b| u64::from(b & 1)).sum();
        (sum == cached).then_some(seen)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileExt as _;

    use proptest::prelude::*;

    use super::*;

    fn runs_of(pages: &[bool]) -> Vec<(u64, u64)> {
        let mut at = 0;
        let mut out = Vec::new();
        for same in pages.chunk_by(|a, b| a == b) {
            if same[0] {
                out.push((at, same.len() as u64));
            }
            at += same.len() as u64;
        }
        out
    }

    proptest! {
        #[test]
        fn halving_finds_what_is_there(pages in proptest::collection::vec(any::<bool>(), 0..300)) {
            let mut runs = Joined::default();
            halve((0, pages.len() as u64), usize::MAX, &mut runs, |start, count| {
                let part = &pages[start as usize..(start + count) as usize];
                Ok((part.iter().filter(|p| **p).count() as u64, 0))
            }, |_, _, _| None).unwrap();
            let found: Vec<_> = runs.0.iter().map(|r| (r.start, r.pages)).collect();
            prop_assert_eq!(found, runs_of(&pages));
        }
    }

    #[test]
    fn a_huge_file_costs_what_is_cached_of_it() {
        let mut questions = 0;
        let mut runs = Joined::default();
        let at = 123_456_789;
        halve(
            (0, 1 << 28),
            usize::MAX,
            &mut runs,
            |start, count| {
                questions += 1;
                Ok((u64::from((start..start + count).contains(&at)), 0))
            },
            |_, _, _| None,
        )
        .unwrap();
        assert_eq!(runs.0, [Run { start: at, pages: 1, dirty: Some(0) }]);
        assert!(questions < 60, "{questions}");
    }

    #[test]
    fn many_runs_are_looked_at_and_none_that_are_dirty() {
        // Every other page, then a long hole and one page; `dirty` are those of the first quarter.
        let cached = |page: u64| page < 40_000 && page.is_multiple_of(2) || page == 900_000;
        for dirty in [0, 10_000] {
            let (mut questions, mut looks, mut runs) = (0, 0, Joined::default());
            let sum = |start: u64, count: u64| (start..start + count).filter(|p| cached(*p)).count() as u64;
            halve(
                (0, 1 << 20),
                usize::MAX,
                &mut runs,
                |start, count| {
                    questions += 1;
                    Ok((sum(start, count), sum(start, count.min(dirty.max(start) - start))))
                },
                |start, count, expected| {
                    looks += 1;
                    assert!(start >= dirty && sum(start, count) == expected);
                    Some((start..start + count).map(|p| u8::from(cached(p))).collect())
                },
            )
            .unwrap();
            assert!(runs.0.iter().all(|r| r.pages == 1 && cached(r.start)), "{dirty}");
            assert_eq!(runs.0.len(), 20_001);
            assert_eq!(runs.0.iter().filter_map(|r| r.dirty).sum::<u64>(), dirty / 2);
            assert!(looks > 4 && questions < if dirty == 0 { 1000 } else { 22_000 }, "{questions} {looks}");
        }
    }

    #[test]
    fn the_first_runs_are_whole() {
        let page = rustix::param::page_size() as u64;
        let file = tempfile::tempfile().unwrap();
        file.set_len(5000 * page).unwrap();
        for at in [3, 4, 90, 91, 92, 4000] {
            file.write_all_at(b"x", at * page).unwrap();
        }
        for ask in [Ask::best(), Ask::by(Method::Mincore)] {
            let first = ask.first_ranges(file.as_fd(), 5000 * page, 2, NEVER).unwrap();
            let first: Vec<_> = first.iter().map(|r| (r.start, r.pages)).collect();
            assert_eq!(first, [(3, 2), (90, 3)], "{ask:?}");
        }
    }

    #[test]
    fn both_methods_see_the_same_runs() {
        let page = rustix::param::page_size() as u64;
        let file = tempfile::tempfile().unwrap();
        file.set_len(5000 * page + 1).unwrap();
        for (at, count) in [(0, 1), (14, 1), (28, 3), (4096, 100), (5000, 1)] {
            for i in at..at + count {
                file.write_all_at(b"x", i * page).unwrap();
            }
        }
        let expected = [(0, 1), (14, 1), (28, 3), (4096, 100), (5000, 1)];
        for ask in [Ask::best(), Ask::by(Method::Mincore)] {
            let found: Vec<_> =
                ask.ranges(file.as_fd()).unwrap().iter().map(|r| (r.start, r.pages)).collect();
            assert_eq!(found, expected, "{ask:?}");
        }
    }
}
