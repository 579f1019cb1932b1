//! What is known of one row: its files, its threads or processes, and what it did since the start.

use crate::figures::Figure;
use crate::live::keeper::Id;
use crate::live::keeper::Keeper;
use crate::model::Row;
pub use crate::names::command_line;
use crate::pivot::By;
use crate::pivot::Filter;
use crate::pivot::Who;
use crate::pivot::of_row;
use crate::sample::FoldedRows;
use crate::sample::Histograms;
use crate::sample::Sample;
use crate::top::course::Course;
use crate::top::findings;
use crate::top::findings::Finding;
use crate::top::whose::has_file;
use crate::top::whose::has_thread;

/// Rows of a list on the page.
pub const LIST: usize = 20;

/// The parts of a row, of one kind.
#[derive(Debug, Clone)]
pub struct List {
    /// What they stand for.
    pub by: By,
    /// The busiest, and behind them those others that have the most of what a finding is about.
    pub rows: Vec<Row>,
    /// How many parts there are.
    pub number: usize,
}

impl List {
    /// Of all parts, the busiest first, what is looked at: with a finding, also the part that proves it best.
    #[must_use]
    pub fn new(by: By, all: Vec<Row>, findings: &[Finding]) -> Self {
        let most = |finding: &Finding| {
            let of = |row: &Row| row.figures.get(finding.of);
            (0..all.len()).rev().max_by_key(|at| all.get(*at).and_then(of))
        };
        let proofs: Vec<usize> = findings.iter().filter_map(most).collect();
        let number = all.len();
        let wanted = |at: usize| at < LIST || proofs.contains(&at);
        let rows = all.into_iter().enumerate().filter(|(at, _)| wanted(*at)).map(|(_, row)| row).collect();
        Self { by, rows, number }
    }

    /// Those that the page shows.
    #[must_use]
    pub fn shown(&self) -> &[Row] {
        self.rows.get(..LIST).unwrap_or(&self.rows)
    }

    /// How many there are beside these.
    #[must_use]
    pub fn more(&self) -> usize {
        self.number.saturating_sub(self.shown().len())
    }
}

/// What is known of one row.
#[derive(Debug, Clone)]
pub struct Details {
    /// What it stands for.
    pub by: By,
    /// Which row.
    pub id: Id,
    /// Who.
    pub who: Who,
    /// The row since the start; `None` if it is part of the rest by now.
    pub since_start: Option<Row>,
    /// Its files, processes, threads since the start, the busiest first.
    pub lists: Vec<List>,
    /// Latency of its read calls since the start; `None` unless they are timed, and for files, of which calls are not
    /// timed.
    pub latency: Option<Box<Histograms>>,
    /// The same of the whole system.
    pub system_latency: Option<Box<Histograms>>,
    /// What the figures since the start mean.
    pub findings: Vec<Finding>,
    /// Files are counted.
    pub files_counted: bool,
    /// What it did in the last minutes.
    pub course: Option<Course>,
    /// Of a process or a thread: when the process began, nanoseconds on the kernel's clock. Its number may be used again.
    pub begun: Option<u64>,
}

impl Details {
    /// Whether anything of files was done, be it known of which.
    #[must_use]
    pub fn has_read(&self) -> bool {
        let of = |figure| self.since_start.as_ref().and_then(|row| row.figures.get(figure)).unwrap_or(0);
        of(Figure::Accesses) > 0 || of(Figure::WriteAccesses) > 0
    }
}

/// The lists that rows of a kind have.
const fn lists(by: By) -> &'static [By] {
    match by {
        By::Process => &[By::File, By::Thread],
        // Files are counted by process: which of its threads it was is not known.
        By::Thread | By::Evictor => &[],
        By::Comm | By::User | By::Cgroup => &[By::Process, By::File],
        By::File => &[By::Process],
        By::Mount | By::Device => &[By::File, By::Process],
    }
}

impl Details {
    /// Nothing is known.
    fn empty(by: By, id: Id, who: &Who) -> Self {
        Self {
            by,
            id,
            who: who.clone(),
            since_start: None,
            lists: Vec::new(),
            latency: None,
            system_latency: None,
            findings: Vec::new(),
            files_counted: false,
            course: None,
            begun: None,
        }
    }
}

impl Keeper<'_> {
    /// What is known of a row since the start, on a machine with pages of so many bytes.
    pub fn details(&mut self, by: By, id: Id, who: &Who, page: u64) -> Details {
        let plain = self.filter().clone();
        let files_counted = self.files_counted();
        let nothing = Details { files_counted, ..Details::empty(by, id.clone(), who) };
        let Some((pivot, whole, plan)) = self.parts().filter(|_| !who.other) else { return nothing };
        let names = pivot.names.as_mut();
        let sum = &whole.sum;
        let rows =
            sum.rows.iter().filter(|r| has_thread(by, who, r, names) && plain.takes(&of_row(r), names));
        let rows: Vec<_> = rows.cloned().collect();
        let begun = who.pid.and_then(|_| rows.iter().filter_map(|r| r.family.map(|f| f.begun)).max());
        let timed = sum.latency.is_some() && by != By::Evictor && !by.files() && !plain.files();
        let latency = timed.then(|| {
            let mut out = Box::<Histograms>::default();
            rows.iter().filter_map(|r| r.latency.as_ref()).for_each(|h| out.add(h));
            out
        });
        let files: Vec<_> = sum.files.iter().filter(|f| has_file(by, who, f, names)).cloned().collect();
        // What was put together is a part of the row itself, not of the lists below.
        let mut folded = FoldedRows::default();
        let own = |folded: By| folded == by || folded == By::Device && by == By::Mount;
        let threads = sum.folded.threads.iter().filter(|f| own(f.by) && has_thread(by, who, &f.row, names));
        folded.threads = threads.cloned().collect();
        let of_files = sum.folded.files.iter().filter(|f| own(f.by) && has_file(by, who, &f.row, names));
        folded.files = of_files.cloned().collect();
        let part = Sample { rows, files, folded, latency: None, ..sum.without_rows() };
        let mut list = |by: By, filter: Filter| {
            (pivot.by, pivot.filter) = (Some(by), filter);
            let mut rows = pivot.interval(&whole.first, &part, &plan).rows;
            // The line above these is not that of the list.
            rows.retain(|row| !row.who.other);
            rows
        };
        let own = list(by, plain.clone()).into_iter().find(|row| Id::new(by, &row.who) == id);
        let findings = own.as_ref().map(|row| findings::find(&row.figures, page)).unwrap_or_default();
        let mut out = Vec::new();
        // Files are counted by process: where some of them count only, nobody knows which thread it was.
        let kinds = lists(by).iter().filter(|kind| **kind != By::Thread || !plain.files());
        for kind in kinds {
            // Rows by process come from threads unless something is requested that only files have.
            let filter = Filter { from_files: by.files(), ..plain.clone() };
            out.push(List::new(*kind, list(*kind, filter), &findings));
        }
        let system_latency = match (&whole.sum.latency, &whole.first.latency) {
            (Some(now), Some(then)) => Some(Box::new(now.since(then))),
            _ => None,
        };
        let who = who.clone();
        let since_start = own;
        let lists = out;
        Details {
            since_start,
            lists,
            latency,
            system_latency,
            findings,
            files_counted,
            begun,
            ..Details::empty(by, id, &who)
        }
    }
}
