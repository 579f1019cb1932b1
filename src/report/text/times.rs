//! Where the time went: of one run with shares of it, of several side by side with what changed.

use super::page::Page;
use super::page::Row;
use crate::report::Report;
use crate::report::compare::COLD_WORK;
use crate::report::compare::worth_a_word;
use crate::report::data::Run;
use crate::report::price::Price;
use crate::report::time::PARTS;
use crate::report::time::Part;
use crate::report::time::Parts;
use crate::report::units;
use crate::report::units::Clock;
use crate::report::verdict;

/// The number of the part that a cold cache cost, behind [`PARTS`]: known of two runs that are compared.
const COLD: usize = PARTS.len();

fn name(i: usize) -> &'static str {
    PARTS.get(i).map_or(COLD_WORK, |(_, name)| name)
}

fn is(i: usize, part: Part) -> bool {
    PARTS.get(i).is_some_and(|(p, _)| *p == part)
}

/// A run with its parts in whole steps of the clock, which add up to its wall time; of threads that worked at the same
/// time, to the time of them all.
struct Column<'a> {
    run: &'a Run,
    wall: i64,
    /// As [`PARTS`], and [`COLD`].
    parts: Vec<Option<i64>>,
    /// The same in seconds, not rounded.
    exact: Vec<Option<f64>>,
    /// The time of all threads, where that is no part of the wall time.
    together: Option<i64>,
}

impl<'a> Column<'a> {
    /// `of`: its parts; `cold`: what of its processor time a cold cache cost.
    fn new(run: &'a Run, of: &Parts, clock: Clock, cold: Option<f64>) -> Self {
        let mut known: Vec<Option<f64>> = PARTS.iter().map(|(part, _)| of.get(*part)).collect();
        let sum: f64 = known.iter().flatten().sum();
        for (_, own) in known.iter_mut().enumerate().filter(|(i, _)| is(*i, Part::Cpu)) {
            *own = own.map(|s| s - cold.unwrap_or(0.0));
        }
        known.push(cold);
        let rest = PARTS.iter().position(|(part, _)| *part == Part::Unexplained);
        // Where waits are not known, what is left of the wall time is unexplained.
        if let Some(rest) = rest.filter(|_| of.explained().is_none() && sum <= run.wall_s) {
            known[rest] = Some(run.wall_s - sum);
        }
        let wall = clock.round(run.wall_s);
        let total = if of.overlap() { clock.round(sum) } else { wall };
        let steps: Vec<f64> = known.iter().flatten().map(|s| clock.count(*s)).collect();
        let mut whole = units::adding_up(&steps, total).into_iter();
        let parts = known.iter().map(|part| part.and_then(|_| whole.next())).collect();
        Self { run, wall, parts, exact: known, together: of.overlap().then_some(total) }
    }

    /// Whether a part has nothing to say of this run: threads that overlap leave no rest, nor a time in which all of them waited
    /// for others.
    fn lacks(&self, i: usize) -> bool {
        let rest = is(i, Part::Unexplained) || is(i, Part::Others);
        rest && self.together.is_some() && self.parts[i].is_none()
    }
}

/// What is said where a part is known of no run.
const fn missing(part: Part) -> &'static str {
    match part {
        Part::Lookups => "look-ups",
        Part::Cpu => "processor time",
        Part::Unexplained => "what is left of the time",
        _ => "where threads wait",
    }
}

/// Rows of the parts of which there is something to say.
fn told(columns: &[Column<'_>], page: &mut Page) -> Vec<usize> {
    let mut rows = Vec::new();
    // What a cold cache cost stands behind the rest of the processor time.
    let order = (0..COLD).flat_map(|i| if is(i, Part::Cpu) { vec![i, COLD] } else { vec![i] });
    for i in order {
        let of: Vec<&Column<'_>> = columns.iter().filter(|c| !c.lacks(i)).collect();
        if of.is_empty() {
            continue;
        }
        if of.iter().all(|c| c.parts[i].is_none()) {
            if let Some((part, _)) = PARTS.get(i) {
                page.note_unknown(missing(*part));
            }
        } else if page.style.verbose || of.iter().any(|c| c.parts[i] != Some(0)) {
            rows.push(i);
        }
    }
    rows
}

/// The exit status, and the signal that it stands for.
fn status(run: &Run) -> Option<String> {
    let status = run.exit_status?;
    let signal = run.signal.map_or_else(String::new, |s| format!(" (signal {s})"));
    Some(format!("exit status {status}{signal}"))
}

/// Rows that one run has at least, where there are as many: each part that the verdict names, and the rest.
pub(super) fn least(run: &Run) -> usize {
    let column = Column::new(run, &Parts::divide(run), Clock::new(run.wall_s), None);
    1 + column.exact.iter().flatten().filter(|s| verdict::names(run, **s)).count()
}

/// One run; `most`: rows that there is room for. How many there would be.
pub(super) fn one(run: &Run, most: usize, page: &mut Page) -> usize {
    let clock = Clock::new(run.wall_s);
    let column = Column::new(run, &Parts::divide(run), clock, None);
    let time = |name: &str, s: Option<f64>| Some(format!("{name} {}", clock.show(clock.round(s?))));
    let head = [
        time("wall", Some(run.wall_s)),
        time("user", run.usage.user_s),
        time("system", run.usage.system_s),
        status(run),
    ];
    let head: Vec<String> = head.into_iter().flatten().collect();
    page.wrapped("", &format!("where the time went ({})", head.join(", ")));
    let columns = [column];
    let mut rows = told(&columns, page);
    let [column] = columns;
    let value = |i: usize| column.parts[i].unwrap_or(0);
    let (number, most) = (rows.len(), most.max(least(run)));
    let exact = |i: &usize| column.exact[*i].unwrap_or(0.0);
    // Those for which there is no room are told as one: it is the small ones.
    let mut small = Vec::new();
    if rows.len() > most {
        let mut order = rows.clone();
        order.sort_by(|a, b| exact(b).total_cmp(&exact(a)));
        small = order.split_off(most.saturating_sub(1).max(1));
        rows.retain(|i| !small.contains(i));
    }
    let mut told: Vec<(String, i64)> = rows.iter().map(|i| (name(*i).to_owned(), value(*i))).collect();
    let mut parts: Vec<f64> = rows.iter().map(exact).collect();
    if !small.is_empty() {
        told.push(("the rest".into(), small.iter().map(|i| value(*i)).sum()));
        parts.push(small.iter().map(exact).sum());
    }
    let together = column.together;
    let whole = together.is_none() && run.wall_s > 0.0;
    let shares = whole.then(|| units::shares(&parts, run.wall_s, 1));
    let cells = |i: usize, n: i64| {
        let mut cells = vec![clock.show(n)];
        cells.extend(shares.as_ref().map(|s| s[i].clone()));
        cells
    };
    let mut table: Vec<Row> =
        told.iter().enumerate().map(|(i, (name, n))| Row::new(format!("  {name}"), cells(i, *n))).collect();
    if let Some(sum) = together {
        let about = format!("{:.1} times the wall time, in parallel", run_times(sum, column.wall));
        table.push(Row { about, ..Row::new("  together", vec![clock.show(sum)]) });
    }
    page.table(&table);
    if together.is_some() && page.style.verbose {
        parallel(page);
    } else if together.is_none()
        && run.processes.len() > 1
        && page.style.verbose
        && Parts::divide(run).explained().is_some()
    {
        let text = format!(
            "(sums over {} processes: what they did at the same time counts more than once)",
            run.processes.len()
        );
        page.wrapped("  ", &text);
    }
    number
}

fn run_times(sum: i64, wall: i64) -> f64 {
    sum as f64 / wall.max(1) as f64
}

fn parallel(page: &mut Page) {
    let text = "(in parallel: these are sums over all threads. Which of them the run as a whole waited for is not known.)";
    page.wrapped("  ", text);
}

/// Blanks before and between cells of runs, and the widest of them: `12.345 s`.
const CELL: usize = 10;
/// What names of rows and the columns of the change take.
const REST: usize = 26;

/// Runs side by side, then and now. Of two, what changed stands behind them, with shares of it. How many rows there are.
pub(super) fn several(report: &Report, page: &mut Page) -> usize {
    let mut runs = super::groups::columns(report);
    let longest = runs.iter().map(|(_, r)| r.wall_s).fold(0.0, f64::max);
    let clock = Clock::new(longest);
    let room = (page.style.width.saturating_sub(REST) / CELL).max(2);
    let more = runs.len().saturating_sub(room);
    runs.truncate(room);
    let price = match runs.as_slice() {
        [(_, then), (_, now)] if more == 0 => Price::between(then, now).map(|price| price.seconds),
        _ => None,
    };
    // Of the colder one: the other has none of it.
    let cold = |i: usize| price.map(|s| if i == 0 { s.max(0.0) } else { (-s).max(0.0) });
    let parts = Parts::alike(&runs.iter().map(|(_, run)| *run).collect::<Vec<_>>());
    let columns = runs.iter().zip(&parts).enumerate();
    let columns: Vec<Column<'_>> =
        columns.map(|(i, ((_, run), of))| Column::new(run, of, clock, cold(i))).collect();
    let pair = match columns.as_slice() {
        [then, now] if more == 0 => Some((then, now)),
        _ => None,
    };
    let rows = told(&columns, page);
    let mut head: Vec<String> = runs.iter().map(|(name, _)| name.clone()).collect();
    if pair.is_some() {
        head.push("change".into());
    }
    let mut table = vec![Row::new("where the time went", head)];
    let mut wall: Vec<String> = columns.iter().map(|c| clock.show(c.wall)).collect();
    let changes = pair.map(|(then, now)| changes(then, now, &rows));
    wall.extend(pair.map(|(then, now)| clock.change(now.wall - then.wall)));
    table.push(Row::new("  wall", wall));
    let shares = pair.and_then(|(then, now)| shares(then, now, &rows));
    if shares.is_some() {
        // The wall time is all of it.
        table[1].cells.push("100 %".into());
    }
    for (n, i) in rows.iter().enumerate() {
        let cell = |c: &Column<'_>| match c.parts[*i] {
            Some(n) => clock.show(n),
            None if c.lacks(*i) => String::new(),
            None => "-".into(),
        };
        let mut cells: Vec<String> = columns.iter().map(cell).collect();
        if let Some(changes) = &changes {
            let blank = columns.iter().any(|c| c.lacks(*i));
            let unknown = if blank { String::new() } else { "-".into() };
            cells.push(changes[n].map_or(unknown, |n| clock.change(n)));
            cells.extend(shares.as_ref().map(|shares| shares[n].clone()));
        }
        table.push(Row::new(format!("  {}", name(*i)), cells));
    }
    if columns.iter().any(|c| c.together.is_some()) {
        let sums = columns.iter().map(|c| clock.show(c.together.unwrap_or(c.wall))).collect();
        table.push(Row::new("  together", sums));
    }
    if columns.iter().any(|c| c.run.exit_status.is_some_and(|s| s != 0)) {
        let statuses = columns.iter().map(|c| c.run.exit_status.map_or("-".into(), |s| s.to_string()));
        table.push(Row::new("  exit status", statuses.collect()));
    }
    page.table(&table);
    if more > 0 {
        page.line(&format!("  and {more} more: --json has them all"));
    }
    if columns.iter().any(|c| c.together.is_some()) {
        parallel(page);
    }
    if let Some(then) = &report.compared {
        page.wrapped("  ", &format!("compared with {} ({})", then.path, then.about));
    }
    rows.len()
}

/// Whether a part is known of one of the two only: then it is in what is unexplained of the other, and nothing adds up.
fn unlike(then: &Column<'_>, now: &Column<'_>, rows: &[usize]) -> bool {
    rows.iter().any(|i| then.parts[*i].is_some() != now.parts[*i].is_some())
}

/// What changed, row by row, so that it adds up to what the wall time changed by.
fn changes(then: &Column<'_>, now: &Column<'_>, rows: &[usize]) -> Vec<Option<i64>> {
    let mut all: Vec<_> =
        rows.iter().map(|i| then.parts[*i].zip(now.parts[*i]).map(|(a, b)| b - a)).collect();
    if let Some(rest) = rest(then, now, rows).filter(|_| !unlike(then, now, rows)) {
        let known: i64 = all.iter().enumerate().filter(|(n, _)| *n != rest).filter_map(|(_, n)| *n).sum();
        all[rest] = Some(now.wall - then.wall - known);
    }
    all
}

/// The row of what is left, where that is known.
fn rest(then: &Column<'_>, now: &Column<'_>, rows: &[usize]) -> Option<usize> {
    let divided = then.together.is_none() && now.together.is_none();
    rows.iter().position(|i| is(*i, Part::Unexplained)).filter(|_| divided)
}

/// Shares of the change in wall time, where it is worth being divided and can be.
fn shares(then: &Column<'_>, now: &Column<'_>, rows: &[usize]) -> Option<Vec<String>> {
    let whole = now.run.wall_s - then.run.wall_s;
    let divided = worth_a_word(then.run, now.run) && !unlike(then, now, rows);
    let rest = rest(then, now, rows).filter(|_| divided)?;
    let mut all: Vec<Option<f64>> =
        rows.iter().map(|i| then.exact[*i].zip(now.exact[*i]).map(|(a, b)| b - a)).collect();
    let known: f64 = all.iter().enumerate().filter(|(n, _)| *n != rest).filter_map(|(_, x)| *x).sum();
    all[rest] = Some(whole - known);
    let known: Vec<f64> = all.iter().flatten().copied().collect();
    let mut shown = units::shares(&known, whole, 0).into_iter();
    Some(all.iter().map(|x| x.and_then(|_| shown.next()).unwrap_or_else(|| "-".into())).collect())
}
