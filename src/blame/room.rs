//! For whom kswapd made room, as a bound: it takes pages to make up for memory that somebody took, so that for none it took more
//! than that one took.

use std::collections::BTreeMap;

use super::How;
use super::Raw;

/// Memory that one cgroup took, and how often it found so little left that it woke kswapd.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Growth {
    /// Pages put on the kernel's lists that are charged to it, of files or not; what it gave back is not taken off.
    pub grew: u64,
    /// Times that kswapd slept and a thread of it woke it.
    pub woke: u64,
}

/// By cgroup, since attach. 0: charged to none, or woken in nobody's name; `None`: all for which there was no room.
pub type Grown = BTreeMap<Option<u64>, Growth>;

/// What is said of one cgroup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Pages that kswapd may have taken for it: no more than these.
    pub at_most: u64,
    /// What it did.
    pub did: Growth,
}

/// For whom kswapd made room in a stretch of time, added up from readings.
#[derive(Debug, Clone, Default)]
pub struct Room {
    /// Pages that kswapd took.
    pub taken: u64,
    /// Of these, pages that no growth of a cgroup explains: at least so many.
    pub unexplained: u64,
    shares: BTreeMap<Option<u64>, Share>,
    /// What cgroups took that kswapd has not made up for yet, as far as is known; and what of it they took in the last stretch in
    /// which it ran.
    open: BTreeMap<Option<u64>, (u64, u64)>,
    /// The same of all together: pages that are charged to several as a bound are taken off once.
    all_open: (u64, u64),
    /// It took pages in the last stretch.
    ran: bool,
}

fn taken(raw: &Raw) -> u64 {
    raw.rows.iter().filter(|(who, _)| who.how == How::Kswapd).map(|(_, n)| n.out).sum()
}

fn grew(now: &Grown, before: &Grown, group: Option<u64>) -> Growth {
    let of = |all: &Grown| all.get(&group).copied().unwrap_or_default();
    let (now, before) = (of(now), of(before));
    Growth { grew: now.grew.saturating_sub(before.grew), woke: now.woke.saturating_sub(before.woke) }
}

/// How many of the `pages` that kswapd took are put down to memory that this one took, which `grew` by so many pages
/// since the reading before. `open`: pages that were taken and not made up for yet; and how many of them are of the
/// stretch in which kswapd ran last. Once it `rests`, it will make up for nothing older.
fn settle(open: &mut (u64, u64), grew: u64, pages: u64, rests: bool) -> u64 {
    open.0 = if rests { open.0.min(open.1) } else { open.0 }.saturating_add(grew);
    let made_up = pages.min(open.0);
    open.0 -= made_up;
    if pages > 0 {
        open.1 = grew;
    }
    made_up
}

impl Room {
    /// Adds what happened between two readings. As long as kswapd runs it may be for what was taken at the beginning; what was
    /// taken while it slept may be why it has to run later.
    pub fn add(&mut self, before: &Raw, now: &Raw) {
        let pages = taken(now).saturating_sub(taken(before));
        self.taken += pages;
        let rests = self.ran && pages == 0;
        let mut grew_now = 0u64;
        for group in now.grown.keys() {
            let share = self.shares.entry(*group).or_default();
            let did = grew(&now.grown, &before.grown, *group);
            share.did.grew += did.grew;
            share.did.woke += did.woke;
            grew_now = grew_now.saturating_add(did.grew);
            let open = self.open.entry(*group).or_default();
            share.at_most += settle(open, did.grew, pages, rests);
        }
        self.unexplained += pages - settle(&mut self.all_open, grew_now, pages, rests);
        self.ran = pages > 0;
    }

    /// Cgroups that took memory or woke it, those first for which it may have taken most.
    #[must_use]
    pub fn shares(&self) -> Vec<(Option<u64>, Share)> {
        let mut all: Vec<_> = self.shares.iter().map(|(group, n)| (*group, self.bounded(*n))).collect();
        all.retain(|(_, n)| *n != Share::default());
        all.sort_by_key(|(group, n)| (std::cmp::Reverse((n.at_most, n.did.woke, n.did.grew)), *group));
        all
    }

    /// What is said of a cgroup.
    #[must_use]
    pub fn of(&self, group: u64) -> Share {
        self.bounded(self.shares.get(&Some(group)).copied().unwrap_or_default())
    }

    /// No more than it took.
    fn bounded(&self, n: Share) -> Share {
        Share { at_most: n.at_most.min(n.did.grew), ..n }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Counts;
    use super::super::Evictor;
    use super::*;

    fn at(kswapd: u64, grown: &[(u64, u64, u64)]) -> Raw {
        let evictor = Evictor { how: How::Kswapd, who: None };
        let direct = Evictor { how: How::Direct, who: None };
        let counts = Counts { out: kswapd, ..Counts::default() };
        Raw {
            rows: vec![(evictor, counts), (direct, Counts { out: 1 << 40, ..counts })],
            grown: grown
                .iter()
                .map(|(id, grew, woke)| (Some(*id), Growth { grew: *grew, woke: *woke }))
                .collect(),
            ..Raw::default()
        }
    }

    fn add(readings: &[Raw]) -> Room {
        let mut room = Room::default();
        for pair in readings.windows(2) {
            if let [before, now] = pair {
                room.add(before, now);
            }
        }
        room
    }

    #[test]
    fn nobody_is_charged_more_than_it_took_nor_than_was_taken() {
        let room = add(&[at(7, &[(1, 500, 9)]), at(107, &[(1, 5500, 11), (2, 3, 0)])]);
        assert_eq!((room.taken, room.unexplained), (100, 0));
        assert_eq!(room.of(1), Share { at_most: 100, did: Growth { grew: 5000, woke: 2 } });
        assert_eq!(room.of(2), Share { at_most: 3, did: Growth { grew: 3, woke: 0 } });
        assert_eq!(room.of(3), Share::default());
        assert_eq!(room.shares().iter().map(|(id, _)| *id).collect::<Vec<_>>(), [Some(1), Some(2)]);
    }

    /// Who grew, and was done long before kswapd had to work for somebody else.
    #[test]
    fn growth_of_before_it_rested_does_not_count() {
        let room = add(&[
            at(0, &[]),
            at(0, &[(1, 900, 0)]),
            // It takes 50: for either; and rests.
            at(50, &[(1, 900, 0), (2, 60, 1)]),
            at(50, &[(1, 900, 0), (2, 60, 1)]),
            at(100, &[(1, 900, 0), (2, 110, 2)]),
            at(150, &[(1, 900, 0), (2, 160, 3)]),
        ]);
        assert_eq!((room.taken, room.unexplained), (150, 0));
        assert_eq!((room.of(1).at_most, room.of(2).at_most), (50, 150));
    }

    /// Slow swap: it takes for seconds what was taken at once.
    #[test]
    fn what_it_takes_long_for_counts_as_long() {
        let room = add(&[
            at(0, &[]),
            at(100, &[(1, 1000, 1), (2, 30, 0)]),
            at(200, &[(1, 1000, 1), (2, 30, 0)]),
            at(300, &[(1, 1000, 1), (2, 30, 0)]),
        ]);
        assert_eq!((room.of(1).at_most, room.of(2).at_most, room.unexplained), (300, 30, 0));
        // No more than was taken, however long it runs.
        let all: Vec<Raw> = (0..100).map(|n| at(n * 100, &[(1, 1000.min(n * 1000), 1)])).collect();
        let room = add(&all);
        assert_eq!((room.of(1).at_most, room.unexplained), (1000, 9900 - 1000));
    }

    /// Slowly down to where kswapd wakes, stretch by stretch, and then it takes all that at once.
    #[test]
    fn what_was_taken_while_it_slept_counts() {
        let room = add(&[
            at(0, &[]),
            at(10, &[(1, 10, 1)]),
            at(10, &[(1, 30, 1)]),
            at(10, &[(1, 50, 1)]),
            at(60, &[(1, 51, 2)]),
        ]);
        assert_eq!(room.of(1).at_most, 51, "no more than it took: {room:?}");
        assert_eq!((room.taken, room.unexplained), (60, 9), "all of it together took no more than 51");
    }

    /// Slabs and page tables are on no list.
    #[test]
    fn what_no_growth_explains_is_told() {
        let room = add(&[at(0, &[]), at(70, &[(1, 20, 0), (2, 10, 0)])]);
        assert_eq!((room.unexplained, room.of(1).at_most), (40, 20));
        let idle = add(&[at(5, &[(1, 20, 0)]), at(5, &[(1, 90, 0)])]);
        assert_eq!((idle.taken, idle.unexplained, idle.of(1).at_most), (0, 0, 0));
    }
}
