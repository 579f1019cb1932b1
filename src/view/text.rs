//! Text for people: one line an interval, a header every screenful.

use std::fmt::Write as _;

use super::Clock;
use super::View;
use crate::columns;
use crate::columns::Column;
use crate::columns::Line;
use crate::columns::Value;
use crate::model::Interval;
use crate::model::Row;
use crate::pivot::By;
use crate::pivot::OTHER;
use crate::pivot::Who;
use crate::pivot::label;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::text::numbers::Unit;
use crate::text::numbers::bytes;
use crate::text::numbers::percent;
use crate::text::table::aligned;
use crate::text::width::shortened;
use crate::text::width::sides;

/// How numbers are written for people.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// Pages as pages or as bytes.
    pub unit: Unit,
    /// Bytes in a page.
    pub page_size: u64,
}

impl Numbers {
    /// One cell; `-` for what is not known.
    #[must_use]
    pub fn show(self, value: Value) -> String {
        match value {
            Value::Unknown => "-".into(),
            Value::Pages(n) if self.unit == Unit::Bytes => bytes(n.saturating_mul(self.page_size)),
            Value::SignedPages(n) if self.unit == Unit::Bytes => {
                let sign = if n < 0 { "-" } else { "" };
                format!("{sign}{}", bytes(n.unsigned_abs().saturating_mul(self.page_size)))
            }
            Value::SignedPages(n) => n.to_string(),
            Value::Pages(n) | Value::Events(n) => n.to_string(),
            Value::Bytes(n) => format!("{:.1}", n as f64 / f64::from(1 << 20)),
            Value::Size(n) => format!("{:.0}", n as f64 / f64::from(1 << 20)),
            Value::Ratio(x) => percent(x),
            Value::Seconds(x) => format!("{x:.3}"),
        }
    }
}

/// Says which engine columns belong to, in a line above their titles: `----exact---- ---classic---`. Empty where
/// all belong to one, or the titles tell.
fn engines(lead: usize, shown: &[&Column]) -> String {
    let runs: Vec<_> = shown.chunk_by(|a, b| a.is_classic() == b.is_classic()).collect();
    let borrowed = |c: &&Column| columns::find(c.id).is_some_and(|own| own.title != c.title);
    if runs.len() != 2 || runs[0].iter().any(|c| c.is_classic()) || !runs[1].iter().any(borrowed) {
        return String::new();
    }
    let mut out = " ".repeat(lead);
    for (i, run) in runs.into_iter().enumerate() {
        let width = run.iter().map(|c| c.width + 1).sum::<usize>() - 1;
        let name = if run[0].is_classic() { "classic" } else { "exact" };
        out.push_str(if i > 0 { " " } else { "" });
        let _ = write!(out, "{name:-^width$}");
    }
    out
}

/// Text for people.
pub struct Text {
    columns: Vec<&'static Column>,
    numbers: Numbers,
    clock: Option<Clock>,
    by: Option<By>,
    screen: Box<dyn Fn() -> Option<(u16, u16)>>,
    /// Lines printed since the header began, itself included.
    since_header: usize,
}

/// Width of columns with ids.
const ID: usize = 8;
/// What is left of a path at least.
const SHORTEST: usize = 20;

/// A column that says what a row is about. One of width 0 takes the rest of the line.
struct Key {
    title: &'static str,
    width: usize,
    cell: fn(&Who) -> String,
}

const fn key(title: &'static str, width: usize, cell: fn(&Who) -> String) -> Key {
    Key { title, width, cell }
}

const PID: Key = key("PID", ID, |w| number(w.pid));
const TID: Key = key("TID", ID, |w| number(w.tid));
const UID: Key = key("UID", ID, |w| number(w.uid));
const COMMAND: Key = key("COMMAND", 0, |w| name(w.comm.as_ref().map(Foreign::visible).as_deref()));
const USER: Key = key("USER", 0, |w| name(w.user.as_ref()));
const DEVICE: Key = key("DEVICE", 15, |w| name(w.device.as_ref()));
const HOW: Key = key("HOW", 11, |w| w.how.unwrap_or("-").into());
const PUSHED: Key = key("WHOSE <- BY WHOM", 0, |w| w.pushed().to_string());
const LAST_DEVICE: Key = Key { width: 0, ..DEVICE };
const MOUNT: Key = key("MOUNT", 0, |w| name(w.mount.as_ref()));
const CGROUP: Key = key("CGROUP", 0, |w| match &w.container {
    // The path of a container is long and says no more.
    Some(container) => container.to_string(),
    None => name(w.cgroup.as_ref()),
});
const FILE: Key = key("FILE", 0, |w| match &w.path {
    Some(path) => path.to_string(),
    None => format!("{} inode {}", name(w.device.as_ref()), number(w.inode)),
});

fn number(n: Option<impl ToString>) -> String {
    n.map_or_else(|| "-".into(), |n| n.to_string())
}

fn name(n: Option<&Foreign>) -> String {
    foreign::or(n, "-")
}

const fn keys(by: Option<By>) -> &'static [Key] {
    match by {
        None => &[],
        Some(By::Process) => &[PID, UID, COMMAND],
        Some(By::Thread) => &[PID, TID, COMMAND],
        Some(By::Comm) => &[COMMAND],
        Some(By::User) => &[UID, USER],
        Some(By::Cgroup) => &[CGROUP],
        Some(By::File) => &[FILE],
        Some(By::Mount) => &[DEVICE, MOUNT],
        Some(By::Device) => &[LAST_DEVICE],
        Some(By::Evictor) => &[HOW, PUSHED],
    }
}

impl Text {
    /// Text with these columns; `by` is what rows stand for, `None` for no rows.
    #[must_use]
    pub(crate) fn new(
        columns: Vec<&'static Column>,
        numbers: Numbers,
        clock: Option<Clock>,
        by: Option<By>,
        screen: Box<dyn Fn() -> Option<(u16, u16)>>,
    ) -> Self {
        Self { columns, numbers, clock, by, screen, since_header: 0 }
    }

    fn header(&self) -> String {
        let time = self.clock.as_ref().map(|c| (format!("{:<w$}", "TIME", w = c.width()), c.width()));
        let titles = self.columns.iter().map(|c| (c.title.to_string(), c.width));
        let mut cells: Vec<_> = time.into_iter().chain(titles).collect();
        cells.extend(keys(self.by).iter().map(|k| (k.title.to_string(), k.width)));
        aligned(&cells)
    }

    /// The figures of a line, and behind them what the row stands for.
    fn line(&self, time: jiff::Timestamp, line: &Line<'_>, who: impl Fn(&Key) -> String) -> String {
        let time = self.clock.as_ref().map(|c| (c.show(time), c.width()));
        let values = self.columns.iter().map(|c| (self.numbers.show(c.value(line)), c.width));
        let mut cells: Vec<_> = time.into_iter().chain(values).collect();
        // What goes into a file or a pipe is looked for there by its whole name.
        let width = (self.screen)().map(|(_, columns)| usize::from(columns)).filter(|columns| *columns > 0);
        for key in keys(self.by) {
            let used = aligned(&cells).chars().count() + usize::from(!cells.is_empty());
            let mut cell = who(key);
            if let Some(width) = width.filter(|_| key.width == 0) {
                // Whatever the figures leave, but never so little that it says nothing.
                let cut = if self.by == Some(By::Evictor) { sides } else { shortened };
                cell = cut(&cell, width.saturating_sub(used).max(SHORTEST));
            }
            cells.push((cell, key.width));
        }
        aligned(&cells)
    }

    fn sum(&self, interval: &Interval, what: &str) -> String {
        self.line(interval.time, &Line::from(interval), |k| match k.width {
            0 => what.into(),
            // All of them have no number: that is nothing unknown.
            _ => String::new(),
        })
    }

    fn row(&self, interval: &Interval, row: &Row) -> String {
        self.line(interval.time, &Line::from(row), |k| match (row.who.other, k.width) {
            (true, 0) => OTHER.into(),
            (true, _) => String::new(),
            (false, 0) => label(&(k.cell)(&row.who)).into_owned(),
            _ => (k.cell)(&row.who),
        })
    }

    /// Prints lines that belong together, below a header that is still on the screen.
    fn block(&mut self, lines: &[String], out: &mut String) {
        if let Some((screen, _)) = (self.screen)() {
            // The last line of a terminal holds the cursor. A window too low for any of this gets one header.
            let room = usize::from(screen).saturating_sub(1);
            if room > 2 && self.since_header + lines.len() > room {
                self.begin(out);
            }
        }
        self.since_header += lines.len();
        for line in lines {
            let _ = writeln!(out, "{line}");
        }
    }
}

impl View for Text {
    fn begin(&mut self, out: &mut String) {
        self.since_header = 1;
        let lead = self.clock.as_ref().map_or(0, |c| c.width() + 1);
        let engines = engines(lead, &self.columns);
        if !engines.is_empty() {
            self.since_header += 1;
            let _ = writeln!(out, "{engines}");
        }
        let _ = writeln!(out, "{}", self.header());
    }

    fn interval(&mut self, interval: &Interval, out: &mut String) {
        let by = self.by.unwrap_or(By::Process);
        let what = match interval.groups {
            1 => format!("[1 {}]", by.singular()),
            n => format!("[{n} {}]", by.plural()),
        };
        let mut lines = vec![self.sum(interval, &what)];
        let rows = interval.rows.iter().filter(|_| self.by.is_some());
        lines.extend(rows.map(|row| self.row(interval, row)));
        self.block(&lines, out);
    }

    fn interrupted(&mut self, out: &mut String) {
        if (self.screen)().is_some() {
            // Over the ^C that the terminal has echoed.
            out.push('\r');
        }
    }

    fn total(&mut self, total: &Interval, out: &mut String) {
        let rule = format!("--- total of {:.3} s", total.seconds);
        let dashes = "-".repeat(self.header().len().saturating_sub(rule.len() + 1));
        let rule = format!("{rule} {dashes}").trim_end().to_string();
        let mut lines = vec![rule, self.sum(total, "[total]")];
        let rows = total.rows.iter().filter(|_| self.by.is_some());
        lines.extend(rows.map(|row| self.row(total, row)));
        self.block(&lines, out);
    }
}
