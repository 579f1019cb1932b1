//! What was predicted, and what came of it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::figures::Figure;
use crate::readahead::Simulation;
use crate::readahead::Sums;
use crate::readahead::Window;
use crate::report::data::FileRow;
use crate::report::data::Run;
use crate::text::foreign::Foreign;

/// From here on a prediction is not to be believed, nor a simulation that should have said what was counted.
const ERROR: f64 = 0.1;

/// Files of which it is told one by one.
const FILES: usize = 10;

/// A setting that was changed for the second run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The file in sysfs.
    pub path: String,
    /// What it was.
    pub before_kb: u64,
    /// Whether it is that again.
    pub restored: bool,
    /// Why not.
    pub note: Option<Foreign>,
}

impl Change {
    pub(super) fn new(path: &str, before_kb: u64) -> Self {
        Self { path: path.into(), before_kb, restored: false, note: None }
    }
}

/// Pages of the files that are compared, and read calls that waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Pages brought in.
    pub fetched: u64,
    /// Of these, pages that were read.
    pub used: u64,
    /// Of these, pages that were not.
    pub wasted: u64,
    /// Read calls that found a page missing.
    pub waits: Option<u64>,
}

impl Count {
    fn of(files: &[&FileRow]) -> Self {
        let sum = |one: fn(&FileRow) -> u64| files.iter().map(|f| one(f)).sum();
        Self {
            fetched: sum(|f| f.misses + f.readahead_pages),
            used: sum(|f| f.misses + f.readahead_hits.min(f.readahead_pages)),
            wasted: sum(|f| f.readahead_pages.saturating_sub(f.readahead_hits)),
            waits: None,
        }
    }

    fn simulated(sums: &Sums) -> Self {
        let (fetched, used, wasted) = (sums.fetched, sums.used, sums.wasted());
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

/// What windows of a size bring in, by simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sized {
    /// Pages of such a window, and up to twice that.
    pub pages: u64,
    /// As it was.
    pub as_it_was: Window,
    /// With what is tried.
    pub tried: Window,
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

fn windows(of: &Four) -> Vec<Sized> {
    let sizes = of[0].windows.iter().zip(&of[1].windows).enumerate();
    let some = sizes.filter(|(_, (was, tried))| was.pages + tried.pages > 0);
    some.map(|(i, (was, tried))| Sized { pages: 1 << i, as_it_was: *was, tried: *tried }).collect()
}

/// A share of what was counted.
#[allow(clippy::cast_precision_loss)]
fn off(said: u64, counted: u64) -> Option<f64> {
    (counted > 0).then(|| said.abs_diff(counted) as f64 / counted as f64)
}

impl Outcome {
    pub(super) fn new(
        kb: u64,
        devices: Vec<Change>,
        simulated: &[Simulation; 4],
        lost: u64,
        runs: [&Run; 2],
    ) -> Self {
        let mut by_file: BTreeMap<Key, Four> = BTreeMap::new();
        for (i, simulation) in simulated.iter().enumerate() {
            for ((dev, inode), sums) in simulation.files() {
                by_file.entry((dev.to_string(), inode)).or_default()[i] = *sums;
            }
        }
        let full = simulated.iter().any(Simulation::full);
        // Calls are counted of all files together.
        let waits = |i: usize| by_file.values().map(|four| four[i].waits).sum();
        let waits: [u64; 4] = std::array::from_fn(waits);
        // What was counted of a file is known of the busiest.
        let row = |run: &'_ Run, key: &Key| {
            run.files.iter().find(|f| (&f.dev, f.inode) == (&key.0, key.1)).cloned()
        };
        let mut all = Four::default();
        let (mut rows, mut missing) = ([Vec::new(), Vec::new()], 0);
        let mut files = Vec::new();
        for (key, four) in &by_file {
            let both = runs.map(|run| row(run, key));
            let [Some(_), second] = &both else { continue };
            missing += usize::from(second.is_none());
            all.iter_mut().zip(four).for_each(|(sum, one)| sum.add(one));
            let count = |row: &Option<FileRow>| row.as_ref().map(|r| Count::of(&[r]));
            files.push(FileOutcome {
                path: both[0].as_ref().and_then(|r| r.path.clone()),
                dev: key.0.clone(),
                inode: key.1,
                requests: four[0].requests,
                counted: [count(&both[0]), count(&both[1])],
                predicted: predicted(four),
                windows: windows(four),
            });
            let [first, second] = both;
            rows[0].extend(first);
            rows[1].extend(second);
        }
        let counted: [Count; 2] = std::array::from_fn(|i| Count {
            waits: runs[i].get(Figure::ReadMissedCalls),
            ..Count::of(&rows[i].iter().collect::<Vec<_>>())
        });
        let known = !full && !files.is_empty();
        let predicted = known.then(|| predicted(&all)).map(|p| Predicted {
            as_it_was: Count { waits: Some(waits[0]), ..p.as_it_was },
            tried: Count { waits: Some(waits[1]), ..p.tried },
            random: Count { waits: Some(waits[2]), ..p.random },
            sequential: Count { waits: Some(waits[3]), ..p.sequential },
        });
        let error = predicted.and_then(|p| off(p.as_it_was.fetched, counted[0].fetched));
        let missed_by = predicted.and_then(|p| off(p.tried.fetched, counted[1].fetched));
        let doubts = doubts(&Doubts { full, known, lost, missing, error, all: runs[0], rows: &rows[0] });
        files.sort_by_key(|f| std::cmp::Reverse(f.counted[0].map_or(0, |c| c.fetched)));
        files.truncate(FILES);
        let windows = if known { windows(&all) } else { Vec::new() };
        Self { read_ahead_kb: kb, devices, counted, predicted, error, missed_by, doubts, windows, files }
    }

    /// Whether the second run did what was predicted.
    #[must_use]
    pub fn proved(&self) -> bool {
        self.missed_by.is_some_and(|by| by <= ERROR)
    }
}

/// What may be wrong with a prediction.
struct Doubts<'a> {
    full: bool,
    known: bool,
    lost: u64,
    missing: usize,
    error: Option<f64>,
    all: &'a Run,
    rows: &'a [FileRow],
}

fn doubts(d: &Doubts<'_>) -> Vec<String> {
    let mut doubts = Vec::new();
    if d.full {
        doubts.push(
            "more than 64 GiB was read, or more than 65536 files were open: nothing is predicted".into(),
        );
    } else if !d.known {
        doubts.push("no request of the first run was seen: nothing is predicted".into());
    }
    if d.lost > 0 {
        doubts.push(format!("{} requests came too fast, or their range is not known", d.lost));
    }
    if d.missing > 0 {
        doubts.push(format!("of {} files that run 1 read, nothing is known of run 2", d.missing));
    }
    if let Some(error) = d.error.filter(|e| *e > ERROR) {
        doubts.push(format!(
            "simulated with the setting that it had, run 1 comes out {} wrong",
            crate::report::units::percent(error, 0)
        ));
    }
    let faults: u64 = d.rows.iter().map(|f| f.fault_misses).sum();
    let fetched: u64 = d.rows.iter().map(|f| f.misses + f.readahead_pages).sum();
    if faults * 10 > fetched {
        doubts.push("page faults brought pages in as well: mappings are not simulated".into());
    }
    // What was seen is to be most of what was read.
    let of_all = d.all.get(Figure::Misses).zip(d.all.get(Figure::ReadAheadPages)).map(|(m, p)| m + p);
    if let Some(rest) = of_all.filter(|all| d.known && fetched * 10 < all * 9) {
        doubts.push(format!(
            "of {rest} pages that run 1 fetched, {fetched} are of files that are compared: the busiest, read by \
             system calls"
        ));
    }
    doubts
}
