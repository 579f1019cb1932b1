//! Text for people: one line an interval, a header every screenful.

use std::fmt::Write as _;

use super::Clock;
use super::View;
use crate::cli::Unit;
use crate::columns;
use crate::columns::Column;
use crate::columns::Line;
use crate::columns::Value;
use crate::model::Interval;
use crate::model::Row;

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
            #[allow(clippy::cast_precision_loss)]
            Value::Bytes(n) => format!("{:.1}", n as f64 / f64::from(1 << 20)),
            #[allow(clippy::cast_precision_loss)]
            Value::Size(n) => format!("{:.0}", n as f64 / f64::from(1 << 20)),
            Value::Ratio(x) => percent(x),
            Value::Seconds(x) => format!("{x:.3}"),
        }
    }
}

/// A number of bytes with one decimal and the usual letters (powers of 1024).
fn bytes(n: u64) -> String {
    if n < 1024 {
        return n.to_string();
    }
    #[allow(clippy::cast_precision_loss)]
    let mut x = n as f64;
    let mut letter = ' ';
    for next in ['K', 'M', 'G', 'T', 'P', 'E'] {
        // What would be rounded up to 1024.0 belongs to the next letter.
        if x < 1023.95 {
            break;
        }
        x /= 1024.0;
        letter = next;
    }
    format!("{x:.1}{letter}")
}

/// A ratio in per cent. `100.00%` is said only of all, and `0.00%` only of none.
fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    let shown = if ratio > 0.0 && ratio < 1.0 { percent.clamp(0.01, 99.99) } else { percent };
    format!("{shown:.2}%")
}

/// Puts cells in columns, aligned right. A cell too long for its column takes the blanks of those after it.
fn aligned(cells: &[(String, usize)]) -> String {
    let mut out = String::new();
    let mut edge = 0;
    for (i, (cell, width)) in cells.iter().enumerate() {
        if i > 0 {
            out.push(' ');
            edge += 1;
        }
        edge += width;
        let blanks = edge.saturating_sub(out.len() + cell.len());
        out.extend(std::iter::repeat_n(' ', blanks));
        out.push_str(cell);
    }
    out
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

/// A name from the kernel without anything that could move the cursor.
pub(crate) fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Text for people.
pub struct Text {
    columns: Vec<&'static Column>,
    numbers: Numbers,
    clock: Option<Clock>,
    rows: Option<usize>,
    screen: Box<dyn Fn() -> Option<u16>>,
    /// Lines printed since the header began, itself included.
    since_header: usize,
}

/// Width of the PID and UID columns.
const ID: usize = 8;

impl Text {
    /// Text with these columns; `rows` is the number of rows below each interval, `None` for no rows.
    #[must_use]
    pub(crate) fn new(
        columns: Vec<&'static Column>,
        numbers: Numbers,
        clock: Option<Clock>,
        rows: Option<usize>,
        screen: Box<dyn Fn() -> Option<u16>>,
    ) -> Self {
        Self { columns, numbers, clock, rows, screen, since_header: 0 }
    }

    fn header(&self) -> String {
        let time = self.clock.as_ref().map(|c| (format!("{:<w$}", "TIME", w = c.width()), c.width()));
        let titles = self.columns.iter().map(|c| (c.title.to_string(), c.width));
        let mut cells: Vec<_> = time.into_iter().chain(titles).collect();
        if self.rows.is_some() {
            cells.extend([("PID".into(), ID), ("UID".into(), ID), ("COMMAND".into(), 0)]);
        }
        aligned(&cells)
    }

    fn line(&self, time: jiff::Timestamp, line: &Line<'_>, who: [String; 3]) -> String {
        let time = self.clock.as_ref().map(|c| (c.show(time), c.width()));
        let values = self.columns.iter().map(|c| (self.numbers.show(c.value(line)), c.width));
        let mut cells: Vec<_> = time.into_iter().chain(values).collect();
        if self.rows.is_some() {
            cells.extend(who.into_iter().zip([ID, ID, 0]));
        }
        aligned(&cells)
    }

    fn sum(&self, interval: &Interval, what: String) -> String {
        self.line(interval.time, &Line::from(interval), ["-".into(), "-".into(), what])
    }

    fn row(&self, interval: &Interval, row: &Row) -> String {
        let who = [row.pid.to_string(), row.uid.to_string(), printable(&row.comm)];
        self.line(interval.time, &Line::from(row), who)
    }

    /// Prints lines that belong together, below a header that is still on the screen.
    fn block(&mut self, lines: &[String], out: &mut String) {
        if let Some(screen) = (self.screen)() {
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
        let number = interval.rows.len();
        let what = format!("[{number} process{}]", if number == 1 { "" } else { "es" });
        let mut lines = vec![self.sum(interval, what)];
        let top = self.rows.unwrap_or(0);
        lines.extend(interval.rows.iter().take(top).map(|row| self.row(interval, row)));
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
        let line = self.sum(total, "[total]".into());
        self.block(&[rule, line], out);
    }
}
