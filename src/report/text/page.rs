//! What a report is written on: lines of a width, figures in one unit, and a list of what is not known.

use crate::report::units;
use crate::text::foreign;
use crate::text::numbers::Unit;
use crate::text::width::beginning;
use crate::text::wrap::paragraph;

/// How a report is written for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of a line.
    pub width: usize,
    /// Whether pages are counted, or what they hold.
    pub unit: Unit,
    /// With all figures, not only the answer.
    pub verbose: bool,
    /// Whether a table may be wider: what goes to no terminal is not cut, it is only folded.
    pub whole: bool,
    /// Lines of a report without figures at most, as long as nobody writes books into its verdict.
    pub lines: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 80, unit: Unit::Bytes, verbose: false, whole: false, lines: SCREEN }
    }
}

/// Lines of a screen, where nobody knows how many it has, and at most: a report is an answer, however much room there is.
pub(super) const SCREEN: usize = 40;
/// In fewer there is no room for an answer.
const SHORTEST: usize = 20;

/// Below this, a line holds no figure and what it is of.
const NARROWEST: usize = 40;

impl Style {
    /// For a terminal of so many columns; `COLUMNS`, where somebody has set it, counts more, as it does for others.
    #[must_use]
    pub fn new(terminal: Option<usize>, columns: Option<&str>, unit: Option<Unit>, verbose: bool) -> Self {
        let set = columns.and_then(|c| c.parse::<usize>().ok()).filter(|n| *n > 0);
        let plain = Self::default();
        // A terminal that does not know its size says 0.
        let width = set.or(terminal.filter(|n| *n > 0));
        let (whole, width) = (width.is_none(), width.unwrap_or(plain.width));
        Self { width: width.max(NARROWEST), unit: unit.unwrap_or(plain.unit), verbose, whole, ..plain }
    }

    /// For a terminal of so many lines, the last of which the prompt takes: the verdict stands first, and must not be out of sight.
    #[must_use]
    pub fn on_lines(self, terminal: Option<usize>) -> Self {
        let lines = terminal.filter(|n| *n > 0).map_or(SCREEN, |n| (n - 1).clamp(SHORTEST, SCREEN));
        Self { lines, ..self }
    }
}

/// A page that is being written.
pub(super) struct Page {
    pub(super) style: Style,
    pub(super) out: String,
    /// What was to be shown and is not known, in order.
    pub(super) unknown: Vec<&'static str>,
}

impl Page {
    pub(super) const fn new(style: Style) -> Self {
        Self { style, out: String::new(), unknown: Vec::new() }
    }

    /// The same, with nothing on it yet.
    pub(super) const fn blank(&self) -> Self {
        Self::new(self.style)
    }

    /// Lines so far.
    pub(super) fn length(&self) -> usize {
        self.out.lines().count()
    }

    /// Puts another page behind this one.
    pub(super) fn append(&mut self, other: Page) {
        self.out.push_str(&other.out);
        other.unknown.into_iter().for_each(|what| self.note_unknown(what));
    }

    /// Adds a line, cut at the width of the page.
    pub(super) fn line(&mut self, text: &str) {
        // What is shown here was escaped where it is a name; nothing of what a file said may act either.
        let text = &foreign::lines(text.trim_end());
        self.out.push_str(&beginning(text, self.style.width));
        self.out.push('\n');
    }

    /// Adds a line of a table: figures are not cut where nothing says how much room there is.
    pub(super) fn row(&mut self, text: &str) {
        match self.style.whole {
            true => {
                self.out.push_str(&foreign::lines(text.trim_end()));
                self.out.push('\n');
            }
            false => self.line(text),
        }
    }

    /// Adds an empty line.
    pub(super) fn gap(&mut self) {
        self.out.push('\n');
    }

    /// Adds a paragraph; lines after the first are indented as the first begins.
    pub(super) fn wrapped(&mut self, indent: &str, text: &str) {
        for text in paragraph(indent, text, self.style.width - 1) {
            self.line(&text);
        }
    }

    /// Adds rows: a name, cells aligned right in columns as wide as their widest, and what is said behind them
    /// where there is room.
    pub(super) fn table(&mut self, rows: &[Row]) {
        let names = rows.iter().map(|r| r.name.chars().count()).max().unwrap_or(0);
        let columns = rows.iter().map(|r| r.cells.len()).max().unwrap_or(0);
        let width = |i: usize| rows.iter().filter_map(|r| r.cells.get(i)).map(|c| c.chars().count()).max();
        let widths: Vec<_> = (0..columns).map(|i| width(i).unwrap_or(0)).collect();
        let used = names + widths.iter().map(|w| w + 2).sum::<usize>() + 2;
        let said = rows.iter().map(|r| r.about.chars().count()).max().unwrap_or(0);
        let about = used + said <= self.style.width;
        for row in rows {
            let mut text = format!("{:<names$}", row.name);
            for (cell, width) in row.cells.iter().zip(&widths) {
                text.push_str(&format!("  {cell:>width$}"));
            }
            if about && !row.about.is_empty() {
                text.push_str("  ");
                text.push_str(&row.about);
            }
            self.row(&text);
        }
    }

    /// Remembers that something is not known.
    pub(super) fn note_unknown(&mut self, what: &'static str) {
        if !self.unknown.contains(&what) {
            self.unknown.push(what);
        }
    }

    /// Adds a line of parts, each with what it is where it is not known: then it is left out, and the line if none is.
    pub(super) fn parts(&mut self, name: &str, parts: &[(&'static str, Option<String>)]) {
        for (what, _) in parts.iter().filter(|(_, part)| part.is_none()) {
            self.note_unknown(what);
        }
        let known: Vec<&str> = parts.iter().filter_map(|(_, part)| part.as_deref()).collect();
        if !known.is_empty() {
            self.wrapped(&format!("{name:<12}"), &known.join(", "));
        }
    }

    /// A title with the unit, where that is no part of the figures.
    pub(super) fn heading(&self, title: &str) -> String {
        match self.style.unit {
            Unit::Pages => format!("{title}, in pages"),
            Unit::Bytes => format!("{title}, whole pages"),
        }
    }

    /// Pages in the unit of the report.
    pub(super) fn pages(&self, n: u64) -> String {
        match self.style.unit {
            Unit::Pages => units::count(n),
            Unit::Bytes => units::of_pages(n),
        }
    }

    /// The same where nothing else says that it is pages that are counted.
    pub(super) fn amount(&self, n: u64) -> String {
        units::volume(n, self.style.unit)
    }

    /// What was counted in bytes, in the unit of the report, where something says what it is.
    pub(super) fn bytes(&self, n: u64) -> String {
        match self.style.unit {
            Unit::Pages => units::pages_of(n),
            Unit::Bytes => units::bytes(n),
        }
    }

    /// The same where nothing else does.
    pub(super) fn amount_of_bytes(&self, n: u64) -> String {
        units::volume_of_bytes(n, self.style.unit)
    }

    /// Parts of a sum and the sum, so that what is shown of them adds up.
    pub(super) fn sum(&self, parts: &[u64]) -> Vec<String> {
        match self.style.unit {
            Unit::Pages => parts.iter().chain([&parts.iter().sum()]).map(|n| units::count(*n)).collect(),
            Unit::Bytes => {
                let parts: Vec<u64> = parts.iter().map(|n| n.saturating_mul(units::page())).collect();
                units::bytes_of_a_sum(&parts)
            }
        }
    }
}

/// A row of a table.
#[derive(Default)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) cells: Vec<String>,
    /// What is said behind them.
    pub(super) about: String,
}

impl Row {
    pub(super) fn new(name: impl Into<String>, cells: Vec<String>) -> Self {
        Self { name: name.into(), cells, about: String::new() }
    }
}
