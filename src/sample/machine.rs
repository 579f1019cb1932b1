//! A machine made up for tests: threads and files count, rows come, go and come again, numbers are used anew, and tables
//! are read while all of it happens.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::Counter;
use super::Counters;
use super::FileSample;
use super::Line;
use super::RowSample;
use super::Sample;
use crate::files::Dev;
use crate::files::File;
use crate::files::Named;
use crate::view::fixtures;
use crate::wire::FILE_COUNTERS;

/// What is counted: some of it of files, too, some of it nobody's.
const COUNTED: [Counter; 7] = [
    Counter::ReadHits,
    Counter::ReadMisses,
    Counter::ReadBytes,
    Counter::Dirtied,
    Counter::DirectReadBytes,
    Counter::BufferDirtied,
    Counter::Evicted,
];

/// Something that is counted.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub who: (u32, u32, usize, u32, u64),
    pub file: u64,
    /// Whether its thread and its file have rows.
    pub rows: (bool, bool),
    /// It is under way while the tables are read: counted for its file, not yet for its thread.
    pub late: bool,
    pub counter: usize,
    pub n: u64,
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    let who = (1_u32..14, 0_u32..2, 0_usize..5, 0_u32..3, 1_u64..4);
    let rows = (proptest::bool::weighted(0.8), proptest::bool::weighted(0.8));
    (who, 0_u64..10, rows, proptest::bool::weighted(0.1), 0..COUNTED.len(), 1_u64..5000)
        .prop_map(|(who, file, rows, late, counter, n)| Event { who, file, rows, late, counter, n })
}

/// Ticks: what is counted, and which processes are alive then, a bit each.
pub(crate) fn ticks() -> impl Strategy<Value = Vec<(Vec<Event>, u16)>> {
    proptest::collection::vec((proptest::collection::vec(event(), 0..12), any::<u16>()), 1..25)
}

impl Event {
    fn counter(&self) -> Counter {
        COUNTED[self.counter]
    }

    fn of_files(&self) -> bool {
        FILE_COUNTERS.contains(&self.counter())
    }

    pub(crate) fn comm(&self) -> &'static str {
        ["sh", "dd", "cat", "(other)", "a long name of 15"][self.who.2]
    }

    /// A row has it: of threads, or of files.
    pub(crate) fn has_row(&self, files: bool) -> bool {
        match files {
            true => self.of_files() && self.rows.1,
            // Pages leave the cache on nobody's account.
            false => self.rows.0 && self.counter() != Counter::Evicted,
        }
    }

    pub(crate) fn thread(&self) -> RowSample {
        let (tgid, tid, _, uid, cgroup) = self.who;
        let counted = fixtures::process(tgid, self.comm(), &[(self.counter(), self.n)]);
        RowSample { tid: tgid + tid * 1000, uid, cgroup, ..counted }
    }

    pub(crate) fn used(&self) -> FileSample {
        let (tgid, _, _, uid, cgroup) = self.who;
        let minor = if self.file % 2 == 0 { 51 } else { 40 };
        let (dev, inode) = (Dev { major: 0, minor }, self.file / 2);
        let name = format!("/@/f{}", self.file);
        let file = File { dev, inode, generation: 0, block: None, name, named: Named::Whole };
        FileSample {
            tgid,
            uid,
            cgroup,
            born: 0,
            process: self.comm().into(),
            file: Arc::new(file),
            deleted: false,
            counters: fixtures::counters(&[(self.counter(), self.n)]),
        }
    }
}

/// What the kernel programs know.
pub(crate) struct Machine {
    at: crate::sample::Moment,
    ticks: u32,
    total: Counters,
    line: Line,
    late: Vec<Event>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let (total, line) = (Counters::default(), Line::default());
        Self { at: crate::sample::Moment::now(), ticks: 0, total, line, late: Vec::new() }
    }

    /// What is read when all this has happened since the last reading.
    pub(crate) fn read(&mut self, events: &[Event]) -> Sample {
        let after = Duration::from_secs(self.ticks.into());
        self.ticks += 1;
        let mut out = fixtures::sample(self.at, after, &[]);
        let on_time = events.iter().filter(|e| !(e.late && e.of_files()));
        for event in std::mem::take(&mut self.late).iter().chain(on_time) {
            self.total.0[event.counter() as usize] += event.n;
            out.rows.extend(event.has_row(false).then(|| event.thread()));
        }
        self.late = events.iter().filter(|e| e.late && e.of_files()).cloned().collect();
        out.files = events.iter().filter(|e| e.has_row(true)).map(Event::used).collect();
        out.total = self.total;
        out.by_file = Some(self.line.add(&self.total, &out.files));
        out
    }
}
