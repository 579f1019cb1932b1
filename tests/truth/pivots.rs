//! Rows of pivots: what a workload says that they should hold, and whether they do.

use anyhow::Context;
use anyhow::Result;
use cachetop::figures::Figure;
use cachetop::model::Row;
use cachetop::names::Names;
use cachetop::names::System;
use cachetop::pivot::By;
use cachetop::pivot::Filter;
use cachetop::pivot::Pivot;
use cachetop::pivot::Who;
use cachetop::plan::Certainty;
use cachetop::plan::Plan;
use cachetop::sample::Sample;
use cachetop::text::foreign::Foreign;
use cachetop::wire::Counter;
use cachetop::wire::FILE_COUNTERS;
use clap::ValueEnum;
use serde::Deserialize;
use serde::Serialize;

/// One row that must be there, or with `accesses` of 0 must not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowWant {
    /// As in `--by`.
    pub by: String,
    /// As in `-p`.
    pub pid: Option<u32>,
    /// The end of its path.
    pub path: Option<String>,
    pub inode: Option<u64>,
    pub tid: Option<u32>,
    pub uid: Option<u32>,
    pub comm: Option<String>,
    pub cgroup: Option<String>,
    /// What it holds.
    pub accesses: u64,
    pub misses: u64,
    pub bytes: u64,
    /// Pages written that were there, and that were not.
    pub written: [u64; 2],
    /// Bytes past the cache, read and written.
    pub direct: [u64; 2],
    /// Bytes requested past the cache that went through it.
    pub fell_back: u64,
    /// Where the plan gives this as a reason why writes or direct I/O are bounded, none of them are there.
    pub unless: Option<String>,
    /// Compared only where functions are seen.
    pub by_functions: bool,
}

/// The figures of a row that are compared, in the order of [`RowWant::truth`].
const COMPARED: [Figure; 8] = [
    Figure::Accesses,
    Figure::Misses,
    Figure::ReadBytes,
    Figure::WriteHits,
    Figure::WriteMisses,
    Figure::DirectReadBytes,
    Figure::DirectWriteBytes,
    Figure::DirectFellBack,
];

impl RowWant {
    const fn truth(&self) -> [u64; 8] {
        let ([hits, misses], [read, write]) = (self.written, self.direct);
        [self.accesses, self.misses, self.bytes, hits, misses, read, write, self.fell_back]
    }

    fn is(&self, who: &Who) -> bool {
        fn same<T: PartialEq>(want: &Option<T>, got: &Option<T>) -> bool {
            want.is_none() || want == got
        }
        let text = |t: &Option<Foreign>| t.as_ref().map(|t| t.raw().into_owned());
        let path = |p: &String| who.path.as_ref().is_some_and(|got| got.raw().ends_with(p.as_str()));
        self.path.as_ref().is_none_or(path)
            && same(&self.inode, &who.inode)
            && same(&self.tid, &who.tid)
            && same(&self.uid, &who.uid)
            && same(&self.comm, &text(&who.comm))
            && same(&self.cgroup, &text(&who.cgroup))
    }
}

/// The names of what the workload used, looked up while it is there.
pub fn names(now: &Sample) -> System {
    let mut names = System::new();
    for row in &now.rows {
        names.cgroup(row.cgroup, row.tgid);
    }
    names
}

/// What is wrong with the rows.
pub fn check(
    wants: &[RowWant],
    names: System,
    before: &Sample,
    now: &Sample,
    plan: &Plan,
) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let mut pivot = Pivot { by: None, top: usize::MAX, filter: Filter::default(), names: Box::new(names) };
    let bounded = [Figure::WriteHits, Figure::DirectReadBytes].map(|f| plan.certainty(f));
    let unseen =
        |why: &String| bounded.iter().any(|c| matches!(c, Certainty::Bounded(text) if text.contains(why)));
    for want in wants.iter().filter(|w| !w.by_functions || plan.knows(Figure::FaultAround)) {
        let by = By::from_str(&want.by, false).ok().with_context(|| want.by.clone())?;
        pivot.by = Some(by);
        pivot.filter.pids = want.pid.into_iter().collect();
        let interval = pivot.interval(before, now, plan);
        // Those of which nothing is compared, such as files that are mapped.
        let idle = |r: &Row| COMPARED.iter().all(|f| r.figures.get(*f).unwrap_or(0) == 0);
        let rows: Vec<_> = interval.rows.iter().filter(|r| want.is(&r.who) && !idle(r)).collect();
        let sum = |f: Figure| rows.iter().map(|r| r.figures.get(f)).sum::<Option<u64>>();
        let got = COMPARED.map(sum);
        let mut truth = want.truth();
        if want.unless.as_ref().is_some_and(unseen) {
            truth[3..].fill(0);
        }
        if truth.iter().zip(COMPARED).any(|(n, f)| *n > 0 && !plan.knows(f)) {
            continue;
        }
        let there = truth.iter().any(|n| *n > 0);
        let mut truth = truth.map(Some);
        for (truth, _) in truth.iter_mut().zip(COMPARED).filter(|(_, f)| there && !plan.knows(*f)) {
            *truth = None;
        }
        if got != truth || rows.len() != usize::from(there) {
            let known: Vec<_> = interval.rows.iter().map(|r| &r.who).take(8).collect();
            wrong.push(format!("{want:?}: {} rows, {got:?}; there are {known:?}", rows.len()));
        }
    }
    Ok(wrong)
}

/// Where files are counted: what the files of a process sum up to is what the process did. Threads and files are read one
/// after the other: faults of processes that were already there when the first sample was taken are not compared.
pub fn sums(pids: &[u32], early: bool, now: &Sample) -> Vec<String> {
    let mut wrong = Vec::new();
    let fault = |c: &&Counter| matches!(c, Counter::FaultHits | Counter::FaultMisses);
    for counter in FILE_COUNTERS.iter().filter(|c| !(early && fault(c))) {
        let threads = now.rows.iter().filter(|r| pids.contains(&r.tgid)).map(|r| r.counters.get(*counter));
        let files = now.files.iter().filter(|f| pids.contains(&f.tgid)).map(|f| f.counters.get(*counter));
        let (threads, files) = (threads.sum::<u64>(), files.sum::<u64>());
        if threads != files {
            wrong.push(format!("{counter:?}: {threads}, but its files sum up to {files}"));
        }
    }
    wrong
}
