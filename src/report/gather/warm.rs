//! What of all that a run used was in the cache when it came to it, and who had brought that there; and what of that was there
//! before the run began. All files count, and all ways in.
//!
//! Warm is what is proved to be: the run hit it, and did not bring it in itself. Which pages a program hits that brings
//! in others of the same file is not known, nor how often: of such a file as many are warm as it read different ones,
//! beyond those that it brought in, by the parts of it that were read ([`crate::sample::Parts`]), and no more than were
//! cached.

use std::cell::Cell;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::certify::Brought;
use super::certify::is_memory;
use super::used::Used;
use crate::files::Mounts;
use crate::files::Named;
use crate::report::beforehand::Beforehand;
use crate::report::data::Bound;
use crate::report::data::Origin;
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
/// More than a tick of any kernel.
const TICK: std::time::Duration = std::time::Duration::from_millis(20);

/// What can be asked about a file, in pages but for its length; `None` where there is no answer.
pub(super) trait Look {
    /// How long it is, in bytes, if what is cached of it comes from a device or server, by the reads of programs.
    fn length(&self, used: &Used) -> Option<u64>;
    /// How long it is, in bytes, if it is nowhere else than in memory.
    fn in_memory(&self, used: &Used) -> Option<u64>;
    /// How much of it was cached before the run.
    fn before(&self, used: &Used) -> Option<u64>;
    /// How much of it is cached now.
    fn after(&self, used: &Used) -> Option<u64>;
}

/// Asks the file system.
pub(super) struct Disk<'a> {
    pub(super) mounts: &'a Mounts,
    pub(super) known: &'a Beforehand,
    asked: Cell<usize>,
    round: residency::Round,
}

impl<'a> Disk<'a> {
    pub(super) fn new(mounts: &'a Mounts, known: &'a Beforehand) -> Self {
        Self { mounts, known, asked: Cell::new(0), round: residency::Round::new() }
    }

    /// The path under which a file can be asked about.
    fn path(&self, used: &Used) -> Option<String> {
        let file = &used.file;
        let there = !used.deleted && file.named == Named::Whole && file.block.is_none();
        there.then(|| self.mounts.path(file))?.filter(|p| p.starts_with('/'))
    }

    /// What the file system says of a file that comes from a device or server, by the reads of programs.
    fn metadata(&self, used: &Used) -> Option<std::fs::Metadata> {
        let kind = self.mounts.kind(used.file.dev)?;
        // A FUSE server puts pages into the cache by itself, at any time; what is in memory only is nowhere else.
        if !residency::may_open(Some(kind)) || is_memory(kind) {
            return None;
        }
        self.asked_of(used)
    }

    fn asked_of(&self, used: &Used) -> Option<std::fs::Metadata> {
        // The name may stand for another file by now.
        let meta = std::fs::metadata(self.path(used)?).ok();
        meta.filter(|m| m.ino() == used.file.inode)
    }

    /// How many pages a file has, if it has been as long since then, and was the same file. In whole blocks: where
    /// these are larger than a page the kernel brings in nothing smaller, also at the end of the file.
    pub(super) fn unchanged(&self, used: &Used, since: jiff::Timestamp) -> Option<u64> {
        let meta = self.metadata(used)?;
        let changed = jiff::Timestamp::new(meta.ctime(), i32::try_from(meta.ctime_nsec()).ok()?).ok()?;
        // File systems take the time of the kernel's last tick.
        let block = meta.blksize().max(page());
        (changed < since - TICK).then(|| meta.len().div_ceil(block) * block / page())
    }
}

impl Look for Disk<'_> {
    fn length(&self, used: &Used) -> Option<u64> {
        Some(self.metadata(used)?.len())
    }

    fn in_memory(&self, used: &Used) -> Option<u64> {
        self.mounts.kind(used.file.dev).filter(|kind| is_memory(kind))?;
        Some(self.asked_of(used)?.len())
    }

    fn before(&self, used: &Used) -> Option<u64> {
        self.known.of(Path::new(&self.path(used)?), &used.file).map(|r| r.cached)
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
    /// Of these, the ones that others may have brought in since the run began.
    pub(super) since: u64,
    /// Of `warm`, the ones of files that something was read ahead of.
    pub(super) warm_ahead: u64,
    /// Pages that it found in files that are nowhere else than in memory, and that it did not write to.
    pub(super) memory: u64,
    pub(super) bound: Bound,
    pub(super) origin: Origin,
    pub(super) warmers: Vec<Warmer>,
}

/// Pages of a file that were there before the run came to them.
#[derive(Debug, Default)]
struct Found {
    /// At least so many.
    warm: u64,
    /// Of these, the ones that others may have brought in since it began.
    since: u64,
    /// Other hits, of which it is not known.
    unknown: u64,
    /// At most so many were there before it began, if no page left the cache meanwhile.
    most: u64,
    /// So many more, if any did.
    back: u64,
    /// Of `unknown`, those of a file that is in memory only, where they were before.
    memory: u64,
    /// Of `warm`, different pages that were read, at least.
    different: u64,
    /// Whether it lies on a device or a server, and it is known how long it is.
    sized: bool,
}

/// What can be said of one file, of which others brought in so many pages since the run began, surely, and at most.
fn of_one(used: &Used, (came, may): (u64, u64), look: &dyn Look) -> Found {
    let c = &used.sum;
    let found = found(|n| c.get(n));
    // Pages that somebody had read ahead were there before whoever uses them first.
    let all = found + c.get(Counter::ReadAheadHits);
    if all == 0 {
        return Found::default();
    }
    let (sure, own) = fills(c);
    let (length, delivered) = (look.length(used), c.get(Counter::ReadBytes));
    let size = length.map(|n| n.div_ceil(page()));
    let (least_read, most_read) = length.map_or((0, u64::MAX), |n| used.parts.pages(n, page(), delivered));
    // What is mapped has no parts.
    let mapped = c.get(Counter::FaultHits) + c.get(Counter::FaultMisses) > 0;
    let most_read = if mapped { u64::MAX } else { most_read };
    let reached = (delivered.div_ceil(page()) + c.get(Counter::FaultHits)).min(most_read);
    // Who comes back to its own pages, in calls of less than a page, hits them.
    let least = reached.saturating_sub(own).min(found);
    let least_of = |size: u64| reached.min(size).saturating_sub(own).min(found);
    // It cannot have found more than there is, nor, unless that left again, what it brought in itself.
    let reachable = size.map_or(all, |size| all.min(size)).min(most_read);
    let most = size.map_or(all, |size| all.min(size.saturating_sub(sure))).min(most_read);
    let (warm, unknown, most) = match size.map(least_of) {
        None => (0, least, most),
        Some(least) if own == 0 => (least, 0, most),
        Some(_) if most == 0 => (0, 0, 0),
        Some(least) => {
            let (then, now) = match look.before(used) {
                Some(then) => (Some(then), Some(then + used.meanwhile)),
                None => {
                    let now = look.after(used);
                    (now.map(|n| n.saturating_sub(own)), now.map(|n| n.saturating_sub(sure)))
                }
            };
            // Who reads one part again and again hits what it has brought in itself.
            let warm = least_read.saturating_sub(own).min(least).min(then.unwrap_or(0));
            (warm, least - warm, now.map_or(most, |n| most.min(n)))
        }
    };
    // What others brought in since it began was not there before, whoever came first: a file, say, that they were just making.
    let since = warm.min(may);
    let most = size.map_or(most, |size| most.min(size.saturating_sub(sure + came))).max(warm - since);
    // What nobody has written meanwhile was there.
    let written = [Counter::WriteHits, Counter::WriteMisses, Counter::Dirtied].iter().any(|n| c.get(*n) > 0);
    let memory = if mapped || written || own > 0 || may > 0 { None } else { look.in_memory(used) };
    // However often it was read.
    let memory = memory.map(|n| n.div_ceil(page()).min(unknown));
    let (unknown, most) = memory.map_or((unknown, most), |n| (n, most.min(n)));
    Found {
        memory: memory.unwrap_or(0),
        warm,
        since,
        unknown,
        most,
        back: reachable.saturating_sub(most),
        different: warm.min(least_read),
        sized: size.is_some(),
    }
}

fn found(get: impl Fn(Counter) -> u64) -> u64 {
    get(Counter::ReadHits) + get(Counter::FaultHits)
}

/// Who had brought in what a run found warm.
#[derive(Default)]
struct Bringers<'a> {
    by_run: HashMap<u32, u64>,
    /// Pages of all files; of the file of which it was most, how many, and which file.
    by_process: HashMap<u32, (u64, u64, &'a Used)>,
}

impl<'a> Bringers<'a> {
    /// Adds those of a file of which something was warm.
    fn add(&mut self, used: &'a Used, one: &Found, origins: &Origins, origin: &mut Origin) {
        // Who came last has brought in what is there.
        let mut fillers: Vec<_> = used.fillers.iter().collect();
        fillers.sort_by_key(|f| std::cmp::Reverse(f.turn));
        let (mut left, mut most) = (one.warm, 0);
        for f in fillers {
            let pages = left.min(u64::from(f.pages));
            (left, most) = (left - pages, most + u64::from(f.most));
            match origins.who(f.who) {
                _ if pages == 0 => {}
                Who::Run(run) => *self.by_run.entry(*run).or_default() += pages,
                who => {
                    origin.others += pages;
                    if matches!(who, Who::Process { .. }) {
                        let sum = self.by_process.entry(f.who).or_insert((0, 0, used));
                        sum.0 += pages;
                        if pages > sum.1 {
                            (sum.1, sum.2) = (pages, used);
                        }
                    }
                }
            }
        }
        origin.meanwhile += left.min(used.meanwhile);
        // If somebody has brought in some of it, how many different ones were found matters.
        let others = most + used.meanwhile;
        origin.before += if others == 0 { one.warm } else { one.different.saturating_sub(others) };
    }

    /// Runs but for this one, and pages.
    fn runs(&self, but: u32) -> Vec<(u32, u64)> {
        let all = self.by_run.iter().map(|(run, pages)| (*run, *pages));
        let mut runs: Vec<_> = all.filter(|(run, _)| *run != but).collect();
        runs.sort_unstable();
        runs
    }

    /// Other processes, those with the most pages first.
    fn warmers(&self, origins: &Origins, mounts: &Mounts) -> Vec<Warmer> {
        let all = self.by_process.iter();
        let named = all.filter_map(|(who, (pages, _, used))| match origins.who(*who) {
            Who::Process { pid, comm, time } => Some(Warmer {
                pid: *pid,
                comm: comm.clone(),
                path: mounts.path(&used.file).map(Foreign::from),
                fills: *pages,
                time: time.clone(),
            }),
            _ => None,
        });
        let mut warmers: Vec<_> = named.collect();
        warmers.sort_by_key(|w| (std::cmp::Reverse(w.fills), w.pid));
        warmers.truncate(WARMERS);
        warmers
    }
}

/// Judges the files of a run; `total`: all that it did, `unlisted`: whether there was no room for some of its files,
/// `gone`: pages that left the cache meanwhile, whosever they were; `there`: what was cached before of all files that
/// have a length, at most; `since`: what others brought in since it began.
pub(super) fn judge(
    files: &[Used],
    (total, gone, there): (&Counters, Option<u64>, Option<u64>),
    (number, unlisted): (u32, bool),
    (origins, since): (&Origins, &Brought),
    mounts: &Mounts,
    look: &dyn Look,
) -> Judged {
    let mut out = Judged::default();
    let (mut unknown, mut listed, mut ahead) = (0, 0, 0);
    // Pages that it found, and that others had brought in since it began.
    let mut came = 0;
    let (mut sized, mut unmeasured) = ([0, 0], [0, 0]);
    let mut bringers = Bringers::default();
    for used in files {
        listed += found(|n| used.sum.get(n));
        ahead += used.sum.get(Counter::ReadAheadHits);
        let one = of_one(used, since.of(used.file.key()), look);
        let warm = one.warm;
        (out.warm, unknown) = (out.warm + warm, unknown + one.unknown);
        out.since += one.since;
        came += one.different.saturating_sub(one.most);
        out.memory += one.memory;
        let of = if one.sized { &mut sized } else { &mut unmeasured };
        *of = [of[0] + one.most, of[1] + one.back];
        if warm == 0 {
            continue;
        }
        if used.sum.get(Counter::Prefetched) > 0 {
            out.warm_ahead += warm;
        }
        bringers.add(used, &one, origins, &mut out.origin);
    }
    // Which files those are that there was no room for is not known.
    out.since = (out.since + since.rest()).min(out.warm);
    // What files that are not in the list had of it.
    let elsewhere = found(|n| total.get(n)).saturating_sub(listed);
    unknown += elsewhere;
    let brought = [Counter::ReadMisses, Counter::Prefetched, Counter::FaultMisses];
    let brought: u64 = brought.iter().map(|c| total.get(*c)).sum();
    let direct = total.get(Counter::DirectReadBytes).div_ceil(page());
    out.asked = out.warm + unknown + brought + direct;
    let gone = gone.unwrap_or(u64::MAX);
    let most = |[most, back]: [u64; 2]| most + back.min(gone);
    out.bound = Bound {
        warm: most(sized).min(there.unwrap_or(u64::MAX)).max(out.warm - out.since)
            + most(unmeasured)
            + elsewhere
            + total.get(Counter::ReadAheadHits).saturating_sub(ahead),
        // What left and was brought in again is one page. Whether the cache had what was read past it nobody asked.
        other: (brought + came).saturating_sub(gone),
    };
    out.origin.unlisted = unlisted || !origins.complete();
    if out.origin.unlisted {
        out.origin.before = 0;
    }
    out.origin.runs = bringers.runs(number);
    out.warmers = bringers.warmers(origins, mounts);
    out
}
