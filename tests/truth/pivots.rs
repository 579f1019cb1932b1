//! Rows of pivots: what a workload says that they should hold, and whether they do.

use anyhow::Context;
use anyhow::Result;
use cachetop::figures::Figure;
use cachetop::pivot::By;
use cachetop::pivot::Filter;
use cachetop::pivot::Names;
use cachetop::pivot::Pivot;
use cachetop::pivot::System;
use cachetop::pivot::Who;
use cachetop::plan::Plan;
use cachetop::sample::Sample;
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
}

impl RowWant {
    fn is(&self, who: &Who) -> bool {
        fn same<T: PartialEq>(want: &Option<T>, got: &Option<T>) -> bool {
            want.is_none() || want == got
        }
        let path = |p: &String| who.path.as_ref().is_some_and(|got| got.ends_with(p));
        self.path.as_ref().is_none_or(path)
            && same(&self.inode, &who.inode)
            && same(&self.tid, &who.tid)
            && same(&self.uid, &who.uid)
            && same(&self.comm, &who.comm)
            && same(&self.cgroup, &who.cgroup)
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
    for want in wants {
        let by = By::from_str(&want.by, false).ok().with_context(|| want.by.clone())?;
        pivot.by = Some(by);
        pivot.filter.pid = want.pid;
        let interval = pivot.interval(before, now, plan);
        let rows: Vec<_> = interval.rows.iter().filter(|r| want.is(&r.who)).collect();
        let sum = |f: Figure| rows.iter().map(|r| r.figures.get(f)).sum::<Option<u64>>();
        let got = [Figure::Accesses, Figure::Misses, Figure::ReadBytes].map(sum);
        let truth = [want.accesses, want.misses, want.bytes].map(Some);
        if got != truth || rows.len() != usize::from(want.accesses > 0) {
            let known: Vec<_> = interval.rows.iter().map(|r| &r.who).take(8).collect();
            wrong.push(format!("{want:?}: {} rows, {got:?}; there are {known:?}", rows.len()));
        }
    }
    Ok(wrong)
}
