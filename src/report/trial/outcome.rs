//! What was predicted, and what came of it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::btree_map::Entry;

use serde::Serialize;

use super::change::Change;
use super::doubts::Doubts;
use super::doubts::ERROR;
use crate::figures::Figure;
use crate::readahead::Simulation;
use crate::readahead::Sums;
use crate::readahead::Window;
use crate::report::data::FileRow;
use crate::report::data::Run;
use crate::text::foreign::Foreign;

/// Files of which it is told one by one.
const FILES: usize = 10;

/// Pages of the files that are compared, and read calls that missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Pages brought in.
    pub fetched: u64,
    /// Of these, pages that were read; `None`: not known.
    pub used: Option<u64>,
    /// Of these, pages that were not; `None`: not known.
    pub wasted: Option<u64>,
    /// Read calls that found a page missing.
    pub waits: Option<u64>,
}

impl Count {
    fn of(f: &FileRow) -> Self {
        // Where it used more than it fetched ahead, some of that was there before, or others fetched it: how much of its own
        // was used cannot be told.
        let wasted = f.readahead_pages.checked_sub(f.readahead_hits);
        let used = wasted.map(|_| f.misses + f.readahead_hits);
        Self { fetched: f.misses + f.readahead_pages, used, wasted, waits: None }
    }

    /// What of one is not known is not known of the sum.
    fn add(&mut self, other: Option<Self>) {
        let Some(other) = other else { return };
        self.fetched += other.fetched;
        self.used = self.used.zip(other.used).map(|(a, b)| a + b);
        self.wasted = self.wasted.zip(other.wasted).map(|(a, b)| a + b);
    }

    fn simulated(sums: &Sums) -> Self {
        let (fetched, used, wasted) = (sums.fetched, Some(sums.used), Some(sums.wasted()));
        Self { fetched, used, wasted, waits: Some(sums.waits) }
    }
}

/// What the simulation says of the first run's requests under each setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Predicted {
    /// As it was: what the first run is to have counted.
    pub as_it_was: Count,
    /// With what is tried.
    pub tried: Count,
    /// With `POSIX_FADV_RANDOM` for every file.
    pub random: Count,
    /// With `POSIX_FADV_SEQUENTIAL` for every file, and the setting as it was.
    pub sequential: Count,
}

/// Pages of windows of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Pages that they bring in, by simulation.
    pub pages: u64,
    /// Of these, pages that are read, by simulation.
    pub used: u64,
    /// How often the run has waited for such pages while they were on their way; `None`: it is not known.
    pub late: Option<u64>,
}

impl Share {
    fn new(of: &Window, late_known: bool) -> Self {
        Self { pages: of.pages, used: of.used, late: late_known.then_some(of.late) }
    }
}

/// What windows of a size bring in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sized {
    /// Pages of such a window, and up to twice that.
    pub pages: u64,
    /// As it was, in run 1.
    pub as_it_was: Share,
    /// With what is tried, in run 2.
    pub tried: Share,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileOutcome {
    /// Its path, where that is known.
    pub path: Option<Foreign>,
    /// `MAJOR:MINOR` of its file system.
    pub dev: String,
    /// Inode number.
    pub inode: u64,
    /// Requests of the first run.
    pub requests: u64,
    /// What each run counted; of a file, calls that wait are not known.
    pub counted: [Option<Count>; 2],
    /// What the simulation says.
    pub predicted: Predicted,
    /// The same by the size of windows.
    pub windows: Vec<Sized>,
}

/// What came of `--try`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// What was tried.
    pub read_ahead_kb: u64,
    /// Where.
    pub devices: Vec<Change>,
    /// What each run counted.
    pub counted: [Count; 2],
    /// Pages that each run fetched of other files: mapped ones, and what was read by other ways than calls.
    pub elsewhere: [Option<u64>; 2],
    /// What the simulation says.
    pub predicted: Option<Predicted>,
    /// By how much of what it counted the simulation misses the first run; `None` of nothing.
    pub error: Option<f64>,
    /// By how much the prediction misses the second.
    pub missed_by: Option<f64>,
    /// Why the prediction is not to be believed; empty: it is.
    pub doubts: Vec<String>,
    /// Windows by size.
    pub windows: Vec<Sized>,
    /// Files, those with the most fetched first.
    pub files: Vec<FileOutcome>,
}

type Key = (String, u64);

/// The sums of one file, or of all, under the four settings.
type Four = [Sums; 4];

fn predicted(of: &Four) -> Predicted {
    let [as_it_was, tried, random, sequential] = of.each_ref().map(Count::simulated);
    Predicted { as_it_was, tried, random, sequential }
}

/// `late`: of which run waits for pages on their way are known.
fn windows(of: &Four, late: [bool; 2]) -> Vec<Sized> {
    let sizes = of[0].windows.iter().zip(&of[1].windows).enumerate();
    let some = sizes.filter(|(_, (was, tried))| was.pages + tried.pages > 0);
    let sized = |(i, (was, tried)): (usize, (&Window, &Window))| Sized {
        pages: 1 << i,
        as_it_was: Share::new(was, late[0]),
        tried: Share::new(tried, late[1]),
    };
    some.map(sized).collect()
}

/// A share of what was counted.
fn off(said: u64, counted: u64) -> Option<f64> {
    (counted > 0).then(|| said.abs_diff(counted) as f64 / counted as f64)
}

/// What the simulations say of each file that can be on a disk.
fn by_file(simulated: &[Simulation; 4], set_on: &BTreeSet<String>, runs: [&Run; 2]) -> BTreeMap<Key, Four> {
    let mut by_file: BTreeMap<Key, Four> = BTreeMap::new();
    let memory = in_memory(runs);
    for (i, simulation) in simulated.iter().enumerate() {
        for ((dev, inode), sums) in
            simulation.files().filter(|((dev, _), _)| !memory.contains(&dev.to_string()))
        {
            by_file.entry((dev.to_string(), inode)).or_default()[i] = *sums;
        }
    }
    // A device that was left as it is serves run 2 as it served run 1.
    for (_, four) in by_file.iter_mut().filter(|((dev, _), _)| !set_on.contains(dev)) {
        four[1] = four[0];
    }
    by_file
}

/// The files that both were simulated and counted.
struct Both {
    /// What the simulations say of all of them.
    all: Four,
    /// What each run counted of them.
    counted: [Count; 2],
    /// Those of which run 2 counted nothing.
    missing: usize,
    files: Vec<FileOutcome>,
}

impl Both {
    fn of(by_file: &BTreeMap<Key, Four>, runs: [&Run; 2], late: [bool; 2]) -> Self {
        let rows = runs.map(rows);
        let mapped = |key: &Key| rows.iter().any(|all| all.get(key).is_some_and(|(_, mapped)| *mapped));
        let nothing = Count { used: Some(0), wasted: Some(0), ..Count::default() };
        let mut both = Self { all: Four::default(), counted: [nothing; 2], missing: 0, files: Vec::new() };
        for (key, four) in by_file.iter().filter(|(key, _)| !mapped(key)) {
            let counted = rows.each_ref().map(|all| all.get(key).map(|(count, _)| *count));
            let [Some(_), second] = counted else { continue };
            both.missing += usize::from(second.is_none());
            both.all.iter_mut().zip(four).for_each(|(sum, one)| sum.add(one));
            both.counted.iter_mut().zip(counted).for_each(|(sum, one)| sum.add(one));
            both.files.push(FileOutcome {
                path: runs[0].files.iter().find(|f| is(f, key)).and_then(|r| r.path.clone()),
                dev: key.0.clone(),
                inode: key.1,
                requests: four[0].requests,
                counted,
                predicted: predicted(four),
                windows: windows(four, late),
            });
        }
        both
    }
}

impl Outcome {
    pub(super) fn new(
        kb: u64,
        (devices, set_on): (Vec<Change>, BTreeSet<String>),
        simulated: &[Simulation; 4],
        lost: [u64; 2],
        runs: [&Run; 2],
    ) -> Self {
        let full = simulated.iter().any(Simulation::full);
        let by_file = by_file(simulated, &set_on, runs);
        // Calls are counted of all files together.
        let waits = |i: usize| by_file.values().map(|four| four[i].waits).sum();
        let waits: [u64; 4] = std::array::from_fn(waits);
        let mut late = runs.map(|run| run.get(Figure::Inflight).is_some());
        // What came too fast in run 2 may have been waits; of run 1 a doubt says so.
        late[1] &= lost[1] == 0;
        let Both { all, mut counted, missing, mut files } = Both::of(&by_file, runs, late);
        let elsewhere = std::array::from_fn(|i| {
            let all = runs[i].get(Figure::Misses).zip(runs[i].get(Figure::ReadAheadPages));
            all.and_then(|(misses, ahead)| (misses + ahead).checked_sub(counted[i].fetched))
        });
        for (count, run) in counted.iter_mut().zip(runs) {
            count.waits = run.get(Figure::ReadMissedCalls);
        }
        let known = !full && !files.is_empty();
        let predicted = known.then(|| predicted(&all)).map(|p| Predicted {
            as_it_was: Count { waits: Some(waits[0]), ..p.as_it_was },
            tried: Count { waits: Some(waits[1]), ..p.tried },
            random: Count { waits: Some(waits[2]), ..p.random },
            sequential: Count { waits: Some(waits[3]), ..p.sequential },
        });
        let error = predicted.and_then(|p| off(p.as_it_was.fetched, counted[0].fetched));
        // What was cut short is no proof of anything.
        let cut = runs[1].left_out;
        // Nor what ran, or may have run, with another setting than the one that was tried; and what is simulated is of run 1,
        // whose windows were those of another setting in part.
        let changed = devices.iter().any(|d| d.became.is_some() || d.then_kb.is_some());
        let missed_by =
            predicted.filter(|_| !cut && !changed).and_then(|p| off(p.tried.fetched, counted[1].fetched));
        let elsewhere_mostly = mostly(counted, elsewhere).filter(|_| known);
        let lost = lost[0];
        let mut doubts = Doubts { full, known, lost, missing, error, elsewhere_mostly, cut }.told();
        doubts.extend(devices.iter().filter_map(|d| d.doubt(kb)));
        files.sort_by_key(|f| std::cmp::Reverse(f.counted[0].map_or(0, |c| c.fetched)));
        files.truncate(FILES);
        let windows = if known { windows(&all, late) } else { Vec::new() };
        Self {
            read_ahead_kb: kb,
            devices,
            counted,
            elsewhere,
            predicted,
            error,
            missed_by,
            doubts,
            windows,
            files,
        }
    }

    /// Whether the second run did what was predicted.
    #[must_use]
    pub fn proved(&self) -> bool {
        self.missed_by.is_some_and(|by| by <= ERROR) && !self.is_of_little()
    }

    /// Whether run 2 may have run with another setting than the one that was tried.
    #[must_use]
    pub fn is_of_another_setting(&self) -> bool {
        self.devices.iter().any(|d| d.became.is_some())
    }

    /// Whether the setting was another when run 1 began than when it had ended.
    #[must_use]
    pub fn first_is_of_two_settings(&self) -> bool {
        self.devices.iter().any(|d| d.then_kb.is_some())
    }

    /// Whether most of what was fetched is not what was predicted.
    #[must_use]
    pub fn is_of_little(&self) -> bool {
        mostly(self.counted, self.elsewhere).is_some()
    }
}

/// What a run fetched by other ways than those that are predicted, and all that it fetched, where that is most of it.
fn mostly(counted: [Count; 2], elsewhere: [Option<u64>; 2]) -> Option<(u64, u64)> {
    let each = counted.iter().zip(elsewhere);
    each.filter_map(|(count, n)| Some((n?, n? + count.fetched))).find(|(n, all)| n * 2 > *all)
}

/// Numbers of file systems that are in memory alone: nothing is ever fetched for their files, whatever is read of them.
fn in_memory(runs: [&Run; 2]) -> BTreeSet<String> {
    let rows = runs.into_iter().flat_map(|run| &run.every);
    rows.filter(|f| matches!(f.fs.as_deref(), Some("tmpfs" | "ramfs" | "devtmpfs")))
        .map(|f| f.dev.clone())
        .collect()
}

/// What a run counted of each file, and whether its pages came by other ways than reads. Of several files that had one
/// number, one after another, the sum, as the simulation has it.
fn rows(run: &Run) -> BTreeMap<Key, (Count, bool)> {
    let mut all: BTreeMap<Key, (Count, bool)> = BTreeMap::new();
    for f in &run.every {
        match all.entry((f.dev.clone(), f.inode)) {
            Entry::Vacant(new) => _ = new.insert((Count::of(f), is_mapped(f))),
            Entry::Occupied(mut known) => {
                let (sum, mapped) = known.get_mut();
                sum.add(Some(Count::of(f)));
                *mapped |= is_mapped(f);
            }
        }
    }
    all
}

/// Whether it is this file.
fn is(row: &FileRow, key: &Key) -> bool {
    (&row.dev, row.inode) == (&key.0, key.1)
}

/// Whether pages of it came by page faults, or by writes: what these bring in is not simulated, and what is used of a
/// mapping nobody sees.
fn is_mapped(row: &FileRow) -> bool {
    row.fault_misses + row.fault_hits + row.dirtied + row.writes().unwrap_or(0) > 0
}
