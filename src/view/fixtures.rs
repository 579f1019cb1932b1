//! Intervals made up for tests.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use crate::cgroup::Cgroup;
use crate::cgroup::Held;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::figures::Unit;
use crate::files::Dev;
use crate::files::File;
use crate::files::Mounts;
use crate::files::Named;
use crate::model::Interval;
use crate::model::Row;
use crate::names::Names;
use crate::pivot::Pivot;
use crate::pivot::Who;
use crate::plan::Brackets;
use crate::plan::Certainty;
use crate::plan::Engine;
use crate::plan::Plan;
use crate::sample::Counter;
use crate::sample::FileSample;
use crate::sample::Known;
use crate::sample::Lost;
use crate::sample::Memory;
use crate::sample::Moment;
use crate::sample::RowSample;
use crate::sample::Sample;
use crate::sample::Source;
use crate::sample::Sparse;
use crate::text::foreign::Foreign;
use crate::wait::Wait;
use crate::wait::Wake;

/// 2026-11-21 09:00:01 UTC.
pub(crate) fn nine() -> jiff::Timestamp {
    "2026-11-21T09:00:01Z".parse().unwrap()
}

/// A plan that knows all figures but these.
pub(crate) fn plan(unknown: &[Figure]) -> Plan {
    let known = Figure::ALL.iter().filter(|f| !unknown.contains(f));
    Plan {
        engine: Engine::Exact,
        brackets: Brackets::Trampolines,
        fetch_atomics: true,
        hooks: Vec::new(),
        figures: known.map(|f| (*f, Certainty::Exact)).collect(),
        at_least: Vec::new(),
    }
}

/// Figures with these values; all others are 0.
pub(crate) fn figures(values: &[(Figure, u64)]) -> Figures {
    let mut out = Figures::unknown();
    for figure in Figure::ALL {
        out.set(*figure, Some(0));
    }
    for (figure, value) in values {
        out.set(*figure, Some(*value));
    }
    out
}

pub(crate) const MEMORY: Memory =
    Memory { cached_bytes: 2345 << 20, buffers_bytes: 117 << 20, dirty_bytes: 3 << 20 };

/// An interval of a second with these figures.
pub(crate) fn interval(total: Figures) -> Interval {
    Interval {
        time: nine(),
        seconds: 1.0,
        engine: "exact",
        total,
        classic: None,
        back: None,
        memory: MEMORY,
        lost: Lost { by_reason: vec![("recursion".into(), 0)] },
        histograms: None,
        rows: Vec::new(),
        groups: 0,
    }
}

/// One with every figure different, none of them 0.
pub(crate) fn busy() -> Interval {
    let mut total = Figures::unknown();
    // Calls last: what came later moves no number.
    let mut all = Figure::ALL.to_vec();
    all.sort_by_key(|f| f.unit() == Unit::Calls);
    for (i, figure) in all.iter().enumerate() {
        total.set(*figure, Some(1001 + i as u64));
    }
    for (figure, n) in [
        (Figure::Accesses, 16384),
        (Figure::Hits, 8192),
        (Figure::ReadAheadHits, 8128),
        (Figure::Misses, 64),
        (Figure::ReadBytes, 64 << 20),
        (Figure::StallNs, 12_345_678),
        (Figure::DirectReadBytes, 5 << 19),
        (Figure::DirectWriteBytes, 3 << 20),
    ] {
        total.set(figure, Some(n));
    }
    interval(total)
}

/// A busy one with three processes.
pub(crate) fn with_rows() -> Interval {
    let row = |pid, uid, comm: &str, hits, misses| Row {
        who: Who { pid: Some(pid), uid: Some(uid), comm: Some(comm.into()), ..Who::default() },
        figures: figures(&[
            (Figure::Accesses, hits + misses),
            (Figure::Hits, hits),
            (Figure::Misses, misses),
            (Figure::ReadBytes, (hits + misses) * 4096),
        ]),
        classic: None,
        back: None,
    };
    let rows = vec![
        row(1234, 1000, "postgres", 8000, 4),
        row(77, 0, "a \u{1b}[31m,\"b\"\n", 192, 60),
        row(4_194_303, 4_294_967_294, "idler", 0, 0),
    ];
    Interval { groups: rows.len(), rows, ..busy() }
}

/// A sample some time after `start`.
pub(crate) fn sample(start: Moment, after: Duration, counters: &[(Counter, u64)]) -> Sample {
    Sample {
        at: start + after,
        time: nine() + jiff::SignedDuration::try_from(after).unwrap(),
        known: Arc::new(Known::by(&plan(&[]))),
        total: self::counters(counters).all(),
        by_file: Some(self::counters(counters).all()),
        rows: Vec::new(),
        files: Vec::new(),
        folded: crate::sample::FoldedRows::default(),
        latency: None,
        lost: Lost::default(),
        memory: MEMORY,
        classic: None,
        evictors: None,
        followed: None,
    }
}

/// What a process did with a file of a tree.
pub(crate) fn file(tgid: u32, inode: u64, values: &[(Counter, u64)]) -> FileSample {
    FileSample {
        tgid,
        uid: 0,
        cgroup: 1,
        born: 1,
        process: "cat".into(),
        file: Arc::new(File {
            dev: Dev { major: 254, minor: 0 },
            inode,
            generation: 0,
            block: None,
            name: format!("/tree/{inode}"),
            named: Named::Whole,
        }),
        deleted: false,
        counters: counters(values),
    }
}

/// Counters with these values.
pub(crate) fn counters(values: &[(Counter, u64)]) -> Sparse {
    let mut out = Sparse::default();
    for (counter, value) in values {
        out.set(*counter as usize, *value);
    }
    out
}

/// What the only thread of a process did.
pub(crate) fn process(tgid: u32, comm: &str, values: &[(Counter, u64)]) -> RowSample {
    RowSample {
        tgid,
        tid: tgid,
        uid: 1000,
        cgroup: 1,
        born: 0,
        comm: comm.into(),
        process: comm.into(),
        family: None,
        counters: counters(values),
        latency: None,
    }
}

/// A machine with a few users, cgroups and mounts.
#[derive(Default)]
pub(crate) struct FakeNames(Mounts);

impl Names for FakeNames {
    fn user(&mut self, uid: u32) -> Option<Rc<str>> {
        (uid == 1000).then(|| "me".into())
    }

    fn cgroup(&mut self, id: u64, _: u32) -> Rc<Cgroup> {
        let id64 = "4b01c2ef8f3dba6bb25dd8afcd9e2f05f0ef0f4e2a8b0e5c4b1f5f7a60e1d2c3";
        let path = match id {
            // The second was made anew when the first had gone.
            1 | 4011 => "/user.slice".into(),
            2 => format!("/system.slice/docker-{id64}.scope"),
            _ => format!("cgroup:{id} (gone)"),
        };
        let label = crate::cgroup::label(&path);
        Rc::new(Cgroup { path, label })
    }

    fn held(&mut self, paths: &[String]) -> Vec<Held> {
        let of = |path: &String| match path.as_str() {
            "/user.slice" => Held { file: Some(300 << 20), limit: None },
            _ => Held::default(),
        };
        paths.iter().map(of).collect()
    }

    fn mounts_now(&mut self) -> &Mounts {
        self.mounts(Dev::default())
    }

    fn command_line(&mut self, _: u32) -> Option<Foreign> {
        None
    }

    fn mounts(&mut self, _: Dev) -> &mut Mounts {
        if !self.0.knows(Dev { major: 0, minor: 40 }) {
            self.0 = Mounts::parse(
                "30 27 0:40 /@ /mnt/b rw - btrfs /dev/loop3 rw\n31 27 0:51 / /tmp rw - tmpfs tmpfs rw",
            );
        }
        &mut self.0
    }
}

/// What a command line asks for, on that machine.
pub(crate) fn pivot(args: &crate::cli::Args) -> Pivot {
    let chosen = args.filters.chosen();
    let filter = chosen.recorded();
    Pivot { by: args.by, top: args.top as usize, filter, names: Box::<FakeNames>::default() }
}

/// Samples that were made up, one after the other.
pub(crate) struct Made(pub(crate) VecDeque<Sample>, pub(crate) Plan);

impl Source for Made {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        self.0.pop_front().ok_or_else(|| anyhow::anyhow!("no more"))
    }

    fn plan(&self) -> &Plan {
        &self.1
    }
}

/// So many deadlines, and then Ctrl-C.
pub(crate) struct Beats(pub(crate) usize);

impl Wait for Beats {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn until(&mut self, _: Instant) -> io::Result<Wake> {
        self.0 = self.0.saturating_sub(1);
        Ok(if self.0 == 0 { Wake::Interrupt } else { Wake::Deadline })
    }
}
