//! What a live view gets: rows without their figures, which are made only of those that somebody sees.

use std::sync::Arc;

use crate::figures::FIGURES;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::live::machine::Pulse;
use crate::model;
use crate::model::Interval;
use crate::model::Row;
use crate::options::OneOf;
use crate::pivot;
use crate::pivot::By;
pub use crate::pivot::Ended;
use crate::pivot::Id;
use crate::pivot::Place;
use crate::pivot::Subject;
use crate::sample::Sample;
use crate::sample::Sparse;

/// Which figures rows show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Show {
    /// Counts in the last interval.
    #[default]
    Count,
    /// The same per second.
    Rate,
    /// Counts since counting began.
    Total,
}

impl OneOf for Show {
    const ALL: &'static [Self] = &[Show::Count, Show::Rate, Show::Total];

    fn name(self) -> &'static str {
        match self {
            Show::Count => "count",
            Show::Rate => "rate",
            Show::Total => "total",
        }
    }
}

impl Show {
    /// The next one round.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Show::Count => Show::Rate,
            Show::Rate => Show::Total,
            Show::Total => Show::Count,
        }
    }

    /// How the screen names it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Show::Count => "per interval",
            Show::Rate => "per second",
            Show::Total => "since start",
        }
    }
}

/// Which rows are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// What rows stand for.
    pub by: By,
    /// The interval, or all since the start.
    pub show: Show,
    /// Threads as well.
    pub threads: bool,
    /// How processes are shown that have ended.
    pub ended: Ended,
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It did something in the interval.
    Active,
    /// It did nothing.
    Idle,
    /// It did something in the interval, and has ended since.
    Ended,
    /// The process has ended; the figures are those of its last interval, and are in no sum any more.
    Gone,
}

impl State {
    /// Whether the figures are of the interval: those of all such rows add up to the line above them.
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, State::Active | State::Ended)
    }

    /// Whether the process has ended.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, State::Ended | State::Gone)
    }
}

/// Where the figures of a row come from.
#[derive(Debug, Clone)]
pub(crate) enum From {
    /// Counters of the interval.
    Counters(Place),
    /// Made already.
    Row(Arc<Row>),
}

/// A row of the screen.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What it is.
    pub named: Arc<Subject>,
    /// What became of it.
    pub state: State,
    /// Processes that have ended, put together: how many; 0 where that is not known.
    pub ended: Option<u32>,
    /// Length of the interval that the figures are of, where it is not the one shown.
    pub seconds: Option<f64>,
    /// What it is ranked by: pages and events, and the bytes of direct I/O as pages.
    pub busy: u64,
    pub(crate) from: From,
    /// Its number in the roster; `None` where there is none.
    pub(crate) member: Option<usize>,
}

impl Entry {
    /// One with figures that are known already.
    #[must_use]
    pub fn new(by: By, row: Row, state: State) -> Self {
        let named = Arc::new(Subject { id: Id::new(by, &row.who), who: row.who.clone() });
        let busy = busy(&row);
        Self { named, state, ended: None, seconds: None, busy, from: From::Row(Arc::new(row)), member: None }
    }

    /// It is one of the rows that are said to be there: not the rest, nor one of who has ended.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        !self.named.who.other && self.ended.is_none() && !self.state.is_over()
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &Id {
        &self.named.id
    }
}

/// What is not read through the cache has bytes only: as many pages would have done the same.
pub(crate) fn weight(figures: &Figures) -> u64 {
    let direct = [Figure::DirectReadBytes, Figure::DirectWriteBytes].map(|f| figures.get(f).unwrap_or(0));
    let direct = direct.into_iter().fold(0, u64::saturating_add);
    pivot::busy(figures).saturating_add(direct / pivot::PAGE)
}

fn busy(row: &Row) -> u64 {
    let classic = row.classic.map_or(0, |c| c.busy());
    weight(&row.figures).max(classic)
}

/// What the rows were counted from.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub sample: Option<Arc<Sample>>,
    pub files: bool,
    pub sums: Vec<Sparse>,
    pub known: [bool; FIGURES],
}

impl Counted {
    /// The counters at a place.
    pub(crate) fn counters(&self, place: Place) -> Option<&Sparse> {
        match place {
            Place::Row(row) => pivot::counters(self.sample.as_deref()?, self.files, row),
            Place::Sum(n) => self.sums.get(n),
        }
    }

    /// The figures at a place.
    pub(crate) fn figures(&self, place: Place) -> Figures {
        self.counters(place).map_or_else(Figures::unknown, |c| model::known_figures(&c.all(), &self.known))
    }

    pub(crate) fn row(&self, entry: &Entry) -> Row {
        match &entry.from {
            From::Row(row) => row.as_ref().clone(),
            From::Counters(place) => {
                Row { who: entry.named.who.clone(), figures: self.figures(*place), classic: None, back: None }
            }
        }
    }
}

/// All that a screen shows.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The system, or what `-p` and its like leave of it, in the interval; without rows.
    pub system: Interval,
    /// Rows, in no order.
    pub entries: Arc<Vec<Entry>>,
    /// Threads, where these were requested.
    pub threads: Arc<Vec<Entry>>,
    /// How many processes (in rows of threads: threads) did something in the interval, or since the start where that is shown,
    /// and have ended by now; `None` where it is not known of some.
    pub ended: Option<u64>,
    /// Of an interval before: the less busy rows were not kept, so that there were more than are here.
    pub cut: bool,
    /// What was requested.
    pub view: View,
    /// It is a new interval, and not the last one seen in another way.
    pub fresh: bool,
    /// It is the short first one.
    pub early: bool,
    /// The picture stands still: this is only what is said of the system as a whole.
    pub held: bool,
    /// The machine in the interval; `None` where nobody looks.
    pub pulse: Option<Pulse>,
    /// Its number.
    pub number: u64,
    /// The number of the first interval that can be shown again.
    pub oldest: u64,
    pub(crate) counted: Arc<Counted>,
    pub(crate) threads_counted: Arc<Counted>,
}

impl Snapshot {
    /// How many rows there are beside the one for the rest and beside those of processes that have ended, however these are
    /// shown.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.entries.iter().filter(|e| e.is_counted()).count()
    }

    /// A row with its figures.
    #[must_use]
    pub fn row(&self, entry: &Entry) -> Row {
        self.counted.row(entry)
    }

    /// A thread with its figures.
    #[must_use]
    pub fn thread(&self, entry: &Entry) -> Row {
        self.threads_counted.row(entry)
    }
}
