//! The rows of the screen: which, in which order, and as text.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::columns::Line;
use crate::figures::Figure;
use crate::model::Row;
use crate::pivot;
use crate::pivot::By;
use crate::pivot::Who;
use crate::top::cells::Numbers;
use crate::top::keeper::Entry;
use crate::top::keeper::Id;
use crate::top::layout;
use crate::top::layout::Layout;
use crate::top::settings::Sort;
use crate::view::text::printable;
use crate::view::text::shortened;

/// The size of a page, for comparing bytes with pages.
const PAGE: u64 = 4096;

/// Where a row of the screen comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The n-th entry.
    Entry(usize),
    /// The n-th thread; the flag is set for the last one of its process.
    Thread(usize, bool),
}

/// What decides the order.
pub struct Order<'a> {
    /// What rows stand for.
    pub by: By,
    /// What they are sorted by.
    pub sort: Sort,
    /// The other way round.
    pub reverse: bool,
    /// Only rows with this text; empty for all.
    pub filter: &'a str,
    /// The row that stays where it is.
    pub pinned: Option<(&'a Id, usize)>,
}

/// A key to sort by: what is not known comes last, whichever way round.
enum Key {
    Number(Option<f64>),
    Text(String),
}

fn key(order: &Order<'_>, who: &Who, row: &Row) -> Key {
    match order.sort {
        Sort::Column(column) => {
            let key = column.value(&Line::from(row)).sort_key();
            Key::Number((key != f64::NEG_INFINITY).then_some(-key))
        }
        Sort::Busy => {
            let classic = row.classic.map_or(0, |c| c.busy());
            // What bypasses the cache has bytes only: as many pages would have done the same.
            let direct =
                [Figure::DirectReadBytes, Figure::DirectWriteBytes].map(|f| row.figures.get(f).unwrap_or(0));
            let busy = pivot::busy(&row.figures).max(classic) + direct.iter().sum::<u64>() / PAGE;
            Key::Number(Some(-float(busy)))
        }
        Sort::Id => Key::Number(who.tid.or(who.pid).or(who.uid).map(f64::from)),
        Sort::Name => Key::Text(layout::name(order.by, who)),
    }
}

#[allow(clippy::cast_precision_loss)]
const fn float(n: u64) -> f64 {
    n as f64
}

fn compare(a: &Key, b: &Key, reverse: bool) -> Ordering {
    let turn = |o: Ordering| if reverse { o.reverse() } else { o };
    match (a, b) {
        (Key::Number(Some(a)), Key::Number(Some(b))) => turn(a.total_cmp(b)),
        (Key::Number(a), Key::Number(b)) => b.is_some().cmp(&a.is_some()),
        (Key::Text(a), Key::Text(b)) => turn(a.cmp(b)),
        _ => Ordering::Equal,
    }
}

/// Whether a row has this text, in upper or lower case, in anything that says what it is.
#[must_use]
pub fn matches(by: By, who: &Who, text: &str) -> bool {
    let text = text.to_lowercase();
    let has = |t: &str| t.to_lowercase().contains(&text);
    let number = |n: Option<u32>| n.is_some_and(|n| n.to_string().contains(&text));
    let words = [&who.user, &who.cgroup, &who.container, &who.unit, &who.mount, &who.device];
    text.is_empty()
        || has(&layout::name(by, who))
        || number(who.pid)
        || number(who.tid)
        || words.into_iter().flatten().any(|w| has(w))
}

/// The rows in order, threads below their processes.
#[must_use]
pub fn arrange(entries: &[Entry], threads: &[Row], order: &Order<'_>) -> Vec<Slot> {
    let wanted = entries.iter().enumerate();
    let wanted = wanted.filter(|(_, e)| matches(order.by, &e.row.who, order.filter));
    let mut keys: Vec<_> = wanted.map(|(i, e)| (key(order, &e.row.who, &e.row), i)).collect();
    // Ties stay in the order of the entries: the busiest first.
    keys.sort_by(|(a, i), (b, j)| compare(a, b, order.reverse).then(i.cmp(j)));
    let mut sorted: Vec<usize> = keys.into_iter().map(|(_, i)| i).collect();
    let is = |i: &usize, id: &Id| entries.get(*i).is_some_and(|e| e.id == *id);
    if let (Some((id, place)), true) = (order.pinned, threads.is_empty()) {
        if let Some(at) = sorted.iter().position(|i| is(i, id)) {
            let row = sorted.remove(at);
            sorted.insert(place.min(sorted.len()), row);
        }
    }
    if threads.is_empty() {
        return sorted.into_iter().map(Slot::Entry).collect();
    }
    let mut below: HashMap<Option<u32>, Vec<(Key, usize)>> = HashMap::new();
    for (i, row) in threads.iter().enumerate() {
        below.entry(row.who.pid).or_default().push((key(order, &row.who, row), i));
    }
    let mut out = Vec::with_capacity(entries.len() + threads.len());
    for i in sorted {
        out.push(Slot::Entry(i));
        let Some(entry) = entries.get(i) else { continue };
        let mut list = below.remove(&entry.row.who.pid).unwrap_or_default();
        list.sort_by(|(a, i), (b, j)| compare(a, b, order.reverse).then(i.cmp(j)));
        let last = list.len().saturating_sub(1);
        out.extend(list.into_iter().enumerate().map(|(n, (_, i))| Slot::Thread(i, n == last)));
    }
    out
}

/// How a row looks.
pub struct Look<'a> {
    /// Which columns.
    pub layout: &'a Layout,
    /// What rows stand for.
    pub by: By,
    /// How numbers are written.
    pub numbers: Numbers,
}

/// Puts a text into a column.
fn pad(text: &str, width: usize, left: bool) -> String {
    let text = shortened(text, width);
    if left { format!("{text:<width$}") } else { format!("{text:>width$}") }
}

impl Look<'_> {
    /// The cells of a row but for the name; `mark` is before the name, as is the branch of a tree.
    #[must_use]
    pub fn row(&self, row: &Row, mark: &str) -> String {
        let mut out = String::new();
        for lead in &self.layout.leads {
            let thread = row.who.tid.is_some() && self.by == By::Process;
            let lead = if thread && *lead == layout::Lead::Pid { layout::Lead::Tid } else { *lead };
            out += &pad(&printable(&lead.cell(&row.who)), lead.width(), lead.left());
            out.push(' ');
        }
        let line = Line::from(row);
        for (column, width) in &self.layout.columns {
            out += &pad(&self.numbers.cell(column, &line), *width, false);
            out.push(' ');
        }
        let name = printable(&layout::name(self.by, &row.who));
        let room = self.layout.name.saturating_sub(mark.chars().count());
        out += mark;
        // Of a path, beginning and end tell most; of a command, the beginning.
        if matches!(self.by, By::Process | By::Thread | By::Comm | By::User) && name.chars().count() > room {
            out.extend(name.chars().take(room.saturating_sub(1)).chain(['…']));
        } else {
            out += &shortened(&name, room);
        }
        out
    }

    /// The titles, and where those of the figures begin and end.
    #[must_use]
    pub fn titles(&self) -> (String, Vec<(usize, usize, Sort)>) {
        let mut out = String::new();
        let mut places = Vec::new();
        for lead in &self.layout.leads {
            let begin = out.chars().count();
            out += &pad(lead.title(), lead.width(), lead.left());
            places.push((begin, begin + lead.width(), Sort::Id));
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
