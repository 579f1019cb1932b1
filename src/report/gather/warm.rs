//! What of all that a run used was in the cache before it, and who had brought that there. All files count, and all ways in.
//!
//! Warm is what is proved to be: the run hit it, and did not bring it in itself. Which pages a program hits that brings in
//! others of the same file is not known; of such a file as many are warm as must have been there, by what is cached of it.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;

use super::used::Used;
use crate::files::Mounts;
use crate::files::Named;
use crate::report::data::Origin;
use crate::report::data::Residency;
use crate::report::data::Warmer;
use crate::report::origins::Origins;
use crate::report::origins::Who;
use crate::report::origins::fills;
use crate::report::residency;
use crate::report::units::page;
use crate::sample::Counter;
use crate::sample::Counters;
use crate::text::foreign::Foreign;

/// Files of which it is asked how much of them is cached: those that a run both hit and brought in.
const ASKED: usize = 2000;
/// Other processes that are named.
const WARMERS: usize = 10;

/// What can be asked about a file, in pages; `None` where there is no answer.
pub(super) trait Look {
    /// How long it is, if what is cached of it comes from a device or server, by the reads of programs.
    fn size(&self, used: &Used) -> Option<u64>;
    /// How much of it was cached before the run.
    fn before(&self, used: &Used) -> Option<u64>;
    /// How much of it is cached now.
    fn after(&self, used: &Used) -> Option<u64>;
}

/// Asks the file system.
pub(super) struct Disk<'a> {
    pub(super) mounts: &'a Mounts,
    pub(super) known: &'a HashMap<PathBuf, Residency>,
    asked: Cell<usize>,
    round: residency::Round,
}

impl<'a> Disk<'a> {
    pub(super) fn new(mounts: &'a Mounts, known: &'a HashMap<PathBuf, Residency>) -> Self {
        Self { mounts, known, asked: Cell::new(0), round: residency::Round::new() }
    }

    /// The path under which a file can be asked about.
    fn path(&self, used: &Used) -> Option<String> {
        let file = &used.file;
        let there = !used.deleted && file.named == Named::Whole && file.block.is_none();
        there.then(|| self.mounts.path(file))?.filter(|p| p.starts_with('/'))
    }
}

impl Look for Disk<'_> {
    fn size(&self, used: &Used) -> Option<u64> {
        let kind = self.mounts.kind(used.file.dev)?;
        // A FUSE server puts pages into the cache by itself, at any time; what is in memory only is nowhere else.
        if !residency::may_open(Some(kind))
            || matches!(kind, "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" | "rootfs")
        {
            return None;
        }
        // The name may stand for another file by now.
        let meta = std::fs::metadata(self.path(used)?).ok();
        let same = meta.filter(|m| std::os::unix::fs::MetadataExt::ino(m) == used.file.inode)?;
        Some(same.len().div_ceil(page()))
    }

    fn before(&self, used: &Used) -> Option<u64> {
        self.known.get(Path::new(&self.path(used)?)).map(|r| r.cached)
    }

    fn after(&self, used: &Used) -> Option<u64> {
        self.asked.set(self.asked.get() + 1);
        if self.asked.get() > ASKED {
            return None;
        }
        Some(self.round.ask(Path::new(&self.path(used)?)).ok()??.cached)
    }
}

/// What was found out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) asked: u64,
    pub(super) warm: u64,
    pub(super) origin: Origin,
    pub(super) warmers: Vec<Warmer>,
}

/// Pages of a file that were there before, and those of which that is not known.
fn of_one(used: &Used, look: &dyn Look) -> (u64, u64) {
    let c = &used.sum;
    let found = c.get(Counter::ReadHits) + c.get(Counter::FaultHits);
    let own = fills(c).1;
    let reached = c.get(Counter::ReadBytes).div_ceil(page()) + c.get(Counter::FaultHits);
    // Who comes back to its own pages, in calls of less than a page, hits them.
    let most = reached.saturating_sub(own).min(found);
    if most == 0 {
        return (0, 0);
    }
    let Some(size) = look.size(used) else { return (0, most) };
    let most = reached.min(size).saturating_sub(own).min(found);
    let warm = match own {
        0 => most,
        _ if most == 0 => 0,
        _ => look
            .before(used)
            .or_else(|| Some(look.after(used)?.saturating_sub(own)))
            .map_or(0, |there| most.min(there)),
    };
    (warm, most - warm)
}

/// Judges the files of a run; `total`: all that it did, `unlisted`: of which files there was no room for.
pub(super) fn judge(
    files: &[Used],
    total: &Counters,
    (number, unlisted): (u32, bool),
    origins: &Origins,
    mounts: &Mounts,
    look: &dyn Look,
) -> Judged {
    let mut out = Judged::default();
    let (mut unknown, mut listed) = (0, 0);
    let mut by_run: HashMap<u32, u64> = HashMap::new();
    let mut by_process: HashMap<u32, (u64, u64, &Used)> = HashMap::new();
    for used in files {
        listed += used.sum.get(Counter::ReadHits) + used.sum.get(Counter::FaultHits);
        let (warm, not_known) = of_one(used, look);
        (out.warm, unknown) = (out.warm + warm, unknown + not_known);
        if warm == 0 {
            continue;
        }
        // Who came last has brought in what is there.
        let mut fillers: Vec<_> = used.fillers.iter().collect();
        fillers.sort_by_key(|f| std::cmp::Reverse(f.turn));
        let (mut left, mut most) = (warm, 0);
        for f in fillers {
            let pages = left.min(u64::from(f.pages));
            (left, most) = (left - pages, most + u64::from(f.most));
            match origins.who(f.who) {
                _ if pages == 0 => {}
                Who::Run(run) => *by_run.entry(*run).or_default() += pages,
                who => {
                    out.origin.others += pages;
                    if matches!(who, Who::Process { .. }) {
                        let sum = by_process.entry(f.who).or_insert((0, 0, used));
                        sum.0 += pages;
                        if pages > sum.1 {
                            (sum.1, sum.2) = (pages, used);
                        }
                    }
                }
            }
        }
        out.origin.meanwhile += left.min(used.meanwhile);
        out.origin.before += warm.saturating_sub(most + used.meanwhile);
    }
    // What files that are not in the list had of it.
    let found = total.get(Counter::ReadHits) + total.get(Counter::FaultHits);
    unknown += found.saturating_sub(listed);
    let brought = [Counter::ReadMisses, Counter::Prefetched, Counter::FaultMisses];
    let brought: u64 = brought.iter().map(|c| total.get(*c)).sum();
    let direct = total.get(Counter::DirectReadBytes).div_ceil(page());
    out.asked = out.warm + unknown + brought + direct;
    out.origin.unlisted = unlisted || !origins.complete();
    if out.origin.unlisted {
        out.origin.before = 0;
    }
    out.origin.runs = by_run.into_iter().filter(|(run, _)| *run != number).collect();
    out.origin.runs.sort_unstable();
    out.warmers = by_process
        .into_iter()
        .filter_map(|(who, (pages, _, used))| match origins.who(who) {
            Who::Process { pid, comm, time } => Some(Warmer {
                pid: *pid,
                comm: comm.clone(),
                path: mounts.path(&used.file).map(Foreign::from),
                fills: pages,
                time: time.clone(),
            }),
            _ => None,
        })
        .collect();
    out.warmers.sort_by_key(|w| (std::cmp::Reverse(w.fills), w.pid));
    out.warmers.truncate(WARMERS);
    out
}
