//! The working set of the machine and of cgroups (`--working-set`): measured once in each slot of time, when it ends, so that
//! windows are exactly as long as they are called, and cost nothing to whoever asks in between.

use std::time::Duration;
use std::time::Instant;

use super::labels::Labels;
use super::labels::of_cgroup;
use crate::kernel::Attached;
use crate::names::Names as _;
use crate::names::System;
use crate::plan::SketchBy;
use crate::working::Clock;
use crate::working::Set;
use crate::working::WINDOWS;
use crate::working::Watch;

/// Distinct pages by window; `None`: it was not watched for so long.
type Pages = [Option<u64>; WINDOWS.len()];

/// What was measured last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Used {
    /// Of the machine.
    pub(super) all: Pages,
    /// Of cgroups by their labels, in the order of these; one is all that have no series of their own.
    pub(super) cgroups: Vec<(Labels, Pages)>,
}

fn pages(set: &Set) -> Pages {
    let all = set.pages();
    std::array::from_fn(|i| all[i])
}

impl Used {
    /// Of these sets, by labels where there are any: so many cgroups have series, those that used most. What is left is one
    /// more, together with `other`.
    fn new(all: &Set, cgroups: Vec<(Option<Labels>, Set)>, mut other: Set, room: usize) -> Self {
        let mut named: Vec<(Labels, Set)> = Vec::new();
        for (labels, set) in cgroups {
            match labels {
                None => other.merge(&set),
                // Made anew with the name of one that is gone.
                Some(labels) => match named.iter_mut().find(|(l, _)| *l == labels) {
                    Some((_, before)) => before.merge(&set),
                    None => named.push((labels, set)),
                },
            }
        }
        // What used nothing in the longest window needs no series.
        named.retain(|(_, set)| set.weight() > 0);
        named.sort_by(|(a, of_a), (b, of_b)| (of_b.weight(), a).cmp(&(of_a.weight(), b)));
        for (_, set) in named.drain(room.min(named.len())..) {
            other.merge(&set);
        }
        let mut cgroups: Vec<_> = named.into_iter().map(|(labels, set)| (labels, pages(&set))).collect();
        cgroups.sort();
        cgroups.push((vec![("cgroup", "other".into())], pages(&other)));
        Self { all: pages(all), cgroups }
    }
}

/// Watches it.
pub(super) struct Watching {
    watch: Watch,
    /// When the slot ends, after the beginning.
    next: Duration,
    room: usize,
}

impl Watching {
    /// From here on pages are marked. `room`: cgroups that have series. `moves`: threads that are moved to another one are seen.
    ///
    /// # Errors
    /// When the sketches cannot be mapped.
    pub(super) fn new(attached: &mut Attached, room: usize, moves: bool) -> anyhow::Result<Self> {
        // Slots begin with it.
        let mut watch = Watch::new(attached, SketchBy::Cgroup, moves, Clock::new(Duration::ZERO))?;
        watch.begin(attached);
        let next = watch.ends(Duration::ZERO);
        Ok(Self { watch, next, room })
    }

    /// When it is time for [`Self::turn`].
    pub(super) fn due(&self) -> Instant {
        self.watch.began() + self.next
    }

    /// Measures, and begins the next slot; `None`: it is not time yet.
    ///
    /// # Errors
    /// When the tables cannot be read.
    pub(super) fn turn(
        &mut self,
        attached: &mut Attached,
        names: &mut System,
    ) -> anyhow::Result<Option<Used>> {
        let after = self.watch.began().elapsed();
        if after < self.next {
            return Ok(None);
        }
        // Of slots that were slept through, the one that has just ended.
        let mut at = self.next;
        while self.watch.ends(at) <= after {
            at = self.watch.ends(at);
        }
        self.watch.catch_up(after);
        let sets = self.watch.sets(attached, &self.watch.windows(at))?;
        self.watch.go_on(attached, names, after)?;
        self.next = self.watch.ends(at);
        let mut other = sets.other;
        if let Some((_, ended)) = &sets.ended {
            other.merge(ended);
        }
        let cgroups = sets.owners.into_iter().map(|(owner, set)| {
            let group = names.cgroup(owner.a, 0);
            // One that was gone before it had a name has no series.
            (group.path.starts_with('/').then(|| of_cgroup(&group)), set)
        });
        Ok(Some(Used::new(&sets.all, cgroups.collect(), other, self.room)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::working::Windows;

    fn labels(name: &str) -> Labels {
        vec![("cgroup", name.to_owned())]
    }

    /// Pages in the first slot, a register each.
    fn set(registers: std::ops::Range<usize>, after: u64) -> Set {
        let mut marks = vec![0; 24 << 10];
        marks[registers].fill(1);
        Windows::new(Clock::new(Duration::ZERO), Duration::from_secs(after)).set(&marks)
    }

    #[test]
    fn so_many_have_series_and_the_rest_is_a_union() {
        let of = |name: &str, range| (Some(labels(name)), set(range, 60));
        let cgroups = || {
            vec![
                of("/a", 0..5),
                of("/b", 3..9),
                // Made anew: it is one series.
                of("/a", 5..10),
                of("/idle", 0..0),
                (None, set(20..22, 60)),
            ]
        };
        let minute = |n| [Some(n), None, None, None];
        let all = set(0..30, 60);
        let used = Used::new(&all, cgroups(), set(21..24, 60), 10);
        assert_eq!(used.all, minute(30));
        let all_of = |pages: &[(&str, u64)]| -> Vec<_> {
            pages.iter().map(|(name, n)| (labels(name), minute(*n))).collect()
        };
        assert_eq!(used.cgroups, all_of(&[("/a", 10), ("/b", 6), ("other", 4)]));
        let used = Used::new(&all, cgroups(), set(21..24, 60), 1);
        assert_eq!(used.cgroups, all_of(&[("/a", 10), ("other", 6 + 4)]));
        let used = Used::new(&all, cgroups(), set(0..0, 60), 0);
        assert_eq!(used.cgroups, all_of(&[("other", 10 + 2)]));
    }

    #[test]
    fn what_was_not_watched_is_not_known() {
        let used = Used::new(&set(0..3, 15), vec![(Some(labels("/a")), set(0..3, 15))], set(0..0, 15), 10);
        assert_eq!(used.all, [None; 4]);
        assert!(used.cgroups.iter().all(|(_, pages)| *pages == [None; 4]));
        // Used in the first minute alone.
        let later = Used::new(&set(0..3, 300), Vec::new(), set(0..0, 300), 10);
        assert_eq!(later.all, [Some(0), Some(3), None, None]);
    }
}
