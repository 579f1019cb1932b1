//! The rows of the screen: which, in which order, and as text.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::columns::Column;
use crate::columns::Line;
use crate::columns::Value;
use crate::live::snapshot::Counted;
use crate::live::snapshot::Entry;
use crate::live::snapshot::From;
use crate::live::snapshot::Snapshot;
use crate::model::Row;
use crate::pivot::By;
use crate::pivot::Id;
use crate::text::foreign::Foreign;
use crate::text::table::pad;
use crate::text::width::beginning;
use crate::text::width::columns;
use crate::text::width::ending;
use crate::text::width::sides;
use crate::top::argv;
use crate::top::argv::Argv;
use crate::top::filter::Asked;
use crate::top::filter::Filter;
use crate::top::layout;
use crate::top::layout::Layout;
use crate::top::numbers::Numbers;
use crate::top::settings::Sort;

/// Where a row of the screen comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The n-th entry.
    Entry(usize),
    /// The n-th thread; the flag is set for the last one of its process.
    Thread(usize, bool),
    /// The n-th node of a tree.
    Node(usize),
}

/// What decides the order.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// What they are sorted by.
    pub sort: Sort,
    /// The other way round.
    pub reverse: bool,
    /// Only rows that this takes; `None` for all.
    pub filter: Option<Wanted<'a>>,
    /// The row that stays where it is.
    pub pinned: Option<(&'a Id, usize)>,
    /// So many rows from the top must be in order; the others may follow in any.
    pub first: usize,
}

/// Which rows are wanted.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// What was typed.
    pub filter: &'a Filter,
    /// Command lines.
    pub argv: &'a Argv,
    /// How numbers are shown.
    pub numbers: Numbers,
}

impl Wanted<'_> {
    /// Whether it takes this row.
    #[must_use]
    pub(super) fn takes(&self, by: By, counted: &Counted, entry: &Entry) -> bool {
        let who = &entry.named.who;
        let value = |column: &Column| value_in(column, counted, entry);
        let (argv, numbers) = (self.argv.get(who), self.numbers.over(entry.seconds));
        self.filter.takes(&Asked { by, who, argv, value: &value, numbers })
    }
}

impl<'a> Order<'a> {
    /// All rows.
    #[must_use]
    pub const fn all(sort: Sort, reverse: bool) -> Order<'a> {
        Order { sort, reverse, filter: None, pinned: None, first: usize::MAX }
    }
}

/// Where a row belongs, worked out once for each: what is compared first, then what is not compared often.
struct Place<'a> {
    /// Who has ended comes behind all that live, whatever it did.
    over: bool,
    /// The smallest first. What is not known is infinite: it comes last, whichever way round.
    number: f64,
    text: Cow<'a, Foreign>,
    at: usize,
}

fn number(order: &Order<'_>, counted: &Counted, entry: &Entry) -> f64 {
    let number = match order.sort {
        Sort::Column(column) => match value(column, counted, entry) {
            f64::NEG_INFINITY => None,
            known => Some(-known),
        },
        Sort::Busy => Some(-float(entry.busy)),
        Sort::Id => {
            let who = &entry.named.who;
            who.tid.or(who.pid).or(who.uid).map(f64::from)
        }
        Sort::Name => Some(0.0),
    };
    // One zero for both.
    number.map_or(f64::INFINITY, |n| if order.reverse { -n } else { n } + 0.0)
}

fn value(column: &Column, counted: &Counted, entry: &Entry) -> f64 {
    value_in(column, counted, entry).sort_key()
}

fn value_in(column: &Column, counted: &Counted, entry: &Entry) -> Value {
    match &entry.from {
        From::Row(row) => column.value(&Line::from(row.as_ref())),
        From::Counters(place) => {
            let figures = counted.figures(*place);
            column.value(&Line { figures: &figures, classic: None, system: None, back: None, held: None })
        }
    }
}

const fn float(n: u64) -> f64 {
    n as f64
}

/// The rows in their order; only the `first` ones if there are more.
fn sorted(
    by: By,
    entries: &[Entry],
    counted: &Counted,
    which: impl Iterator<Item = usize>,
    order: &Order<'_>,
) -> Vec<usize> {
    let place = |at: usize| {
        let entry = entries.get(at)?;
        let named = order.sort == Sort::Name;
        let text = if named { layout::name(by, &entry.named.who) } else { Cow::Owned(Foreign::default()) };
        Some(Place { over: entry.state.is_over(), number: number(order, counted, entry), text, at })
    };
    let mut places: Vec<_> = which.filter_map(place).collect();
    // Ties: the busiest first, and then always the same.
    let tie = |a: usize, b: usize| -> Ordering {
        let (Some(a), Some(b)) = (entries.get(a), entries.get(b)) else { return Ordering::Equal };
        b.busy.cmp(&a.busy).then_with(|| a.id().cmp(b.id()))
    };
    let compare = |a: &Place<'_>, b: &Place<'_>| {
        let text = || if order.reverse { b.text.cmp(&a.text) } else { a.text.cmp(&b.text) };
        let over = a.over.cmp(&b.over);
        over.then_with(|| a.number.total_cmp(&b.number)).then_with(text).then_with(|| tie(a.at, b.at))
    };
    let number = places.len();
    let head = match order.first {
        first if first < number => places.select_nth_unstable_by(first, compare).0,
        _ => places.as_mut_slice(),
    };
    head.sort_unstable_by(compare);
    places.into_iter().map(|p| p.at).collect()
}

/// The rows in order, threads below their processes.
#[must_use]
pub fn arrange(snapshot: &Snapshot, order: &Order<'_>) -> Vec<Slot> {
    let by = snapshot.view.by;
    let (entries, threads) = (snapshot.entries.as_slice(), snapshot.threads.as_slice());
    let counted = &snapshot.counted;
    let takes = |e: &Entry| order.filter.is_none_or(|wanted| wanted.takes(by, counted, e));
    let wanted = |at: &usize| entries.get(*at).is_some_and(takes);
    let mut rows = sorted(by, entries, &snapshot.counted, (0..entries.len()).filter(wanted), order);
    let is = |at: &usize, id: &Id| entries.get(*at).is_some_and(|e| e.id() == id);
    if let (Some((id, place)), true) = (order.pinned, threads.is_empty()) {
        if let Some(at) = rows.iter().position(|i| is(i, id)) {
            let row = rows.remove(at);
            rows.insert(place.min(rows.len()), row);
        }
    }
    if threads.is_empty() {
        return rows.into_iter().map(Slot::Entry).collect();
    }
    let mut below: Vec<(Option<u32>, usize)> =
        threads.iter().enumerate().map(|(i, thread)| (thread.named.who.pid, i)).collect();
    below.sort_unstable();
    let inner = Order { first: usize::MAX, pinned: None, ..*order };
    let mut out = Vec::with_capacity(entries.len() + threads.len());
    for i in rows {
        out.push(Slot::Entry(i));
        let Some(pid) = entries.get(i).map(|e| e.named.who.pid) else { continue };
        let begin = below.partition_point(|(p, _)| *p < pid);
        let list = below.iter().skip(begin).take_while(|(p, _)| *p == pid).map(|(_, i)| *i);
        let old = out.len();
        if old < order.first {
            let list = sorted(By::Thread, threads, &snapshot.threads_counted, list, &inner);
            out.extend(list.into_iter().map(|i| Slot::Thread(i, false)));
        } else {
            out.extend(list.map(|i| Slot::Thread(i, false)));
        }
        if let Some(Slot::Thread(_, last)) = out.get_mut(old..).and_then(<[Slot]>::last_mut) {
            *last = true;
        }
    }
    out
}

/// How a row looks.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// Which columns.
    pub layout: &'a Layout,
    /// What rows stand for.
    pub by: By,
    /// How numbers are written.
    pub numbers: Numbers,
}

impl Look<'_> {
    /// The cells of a row; `mark` is before the name, as is the branch of a tree.
    #[must_use]
    pub fn row(&self, row: &Row, mark: &str) -> String {
        self.with_line(row, mark, None)
    }

    /// The same with the command line of the process, where it was seen.
    #[must_use]
    pub fn with_line(&self, row: &Row, mark: &str, argv: Option<&Foreign>) -> String {
        let mut out = String::new();
        for lead in &self.layout.leads {
            let thread = row.who.tid.is_some() && self.by == By::Process;
            let lead = if thread && *lead == layout::Lead::Pid { layout::Lead::Tid } else { *lead };
            out += &pad(&lead.cell(&row.who), lead.width(), lead.left());
            out.push(' ');
        }
        let line = Line::from(row);
        for (column, width) in &self.layout.columns {
            out += &pad(&self.numbers.cell(column, &line), *width, false);
            out.push(' ');
        }
        let mut name = layout::shown(self.by, &row.who);
        if let Some(argv) = argv {
            name = argv::command(&name, &argv.to_string());
        }
        let room = self.layout.name.saturating_sub(columns(mark));
        out += mark;
        // Of a path the end tells most, of a command the beginning.
        out += &match self.by {
            By::Process | By::Thread | By::Comm | By::User => beginning(&name, room),
            By::Evictor => sides(&name, room),
            _ => ending(&name, room),
        };
        out
    }

    /// The titles, and where those begin and end that rows can be sorted by.
    #[must_use]
    pub fn titles(&self) -> (String, Vec<(usize, usize, Sort)>) {
        let mut out = String::new();
        let mut places = Vec::new();
        for lead in &self.layout.leads {
            let begin = out.chars().count();
            out += &pad(lead.title(), lead.width(), lead.left());
            places.extend(lead.sort(self.by).map(|sort| (begin, begin + lead.width(), sort)));
            out.push(' ');
        }
        for (column, width) in &self.layout.columns {
            let begin = out.chars().count();
            out += &pad(super::cells::title(column), *width, false);
            places.push((begin, begin + width, Sort::Column(column)));
            out.push(' ');
        }
        let begin = out.chars().count();
        out += layout::name_title(self.by);
        places.push((begin, begin + self.layout.name, Sort::Name));
        (out, places)
    }
}
