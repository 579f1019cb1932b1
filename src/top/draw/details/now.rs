//! What the cache has now of a row, and what the row did in the last minutes.

use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::text::Span;

use super::Page;
use crate::cgroup::Memory;
use crate::text::numbers::binary;
use crate::text::numbers::decimal;
use crate::text::numbers::percent;
use crate::top::course::Bar;
use crate::top::details::Details;
use crate::top::draw::charts;
use crate::top::now;
use crate::top::now::Now;
use crate::top::now::Pages;
use crate::top::summary;

/// Lines of the chart.
const LINES: u32 = 4;
/// Room for its scale.
const SCALE: usize = 8;
/// Parts of a file in a line.
const CELLS: usize = 64;

const fn float(n: u64) -> f64 {
    n as f64
}

fn known(n: Option<u64>, text: impl Fn(f64) -> String) -> String {
    n.map_or_else(|| "-".into(), |n| text(float(n)))
}

impl Page<'_> {
    /// What is in the cache now.
    pub(super) fn cached_now(&mut self) {
        if self.app.scene.replay.is_some() || !now::suits(self.open.by, &self.open.who) {
            return;
        }
        let open = self.open;
        match &open.now {
            None => {
                self.title("in the cache now".into());
                self.plain("being asked");
            }
            Some(Now::File(Err(why)) | Now::Cgroup(Err(why))) => {
                self.title("in the cache now".into());
                self.plain(&format!("- ({})", crate::text::foreign::line(why)));
            }
            Some(Now::File(Ok(pages))) => self.pages(pages),
            Some(Now::Cgroup(Ok((memory, at)))) => {
                let before = match &open.before {
                    Some(Now::Cgroup(Ok((before, then)))) => Some((before, at.duration_since(*then))),
                    _ => None,
                };
                self.memory(memory, before.map(|(before, time)| (before, time.as_secs_f64())));
            }
        }
    }

    fn pages(&mut self, told: &Pages) {
        let ratio = match told.pages {
            0 => "-".into(),
            n => percent(float(told.cached) / float(n)),
        };
        let page = self.app.scene.page_size;
        let bytes = |pages: u64| binary(float(pages.saturating_mul(page)));
        self.title(format!(
            "in the cache now  {} of {} ({ratio})",
            bytes(told.cached),
            binary(float(told.size))
        ));
        let pages = |n: Option<u64>| known(n, decimal);
        let s = if told.runs == 1 { "" } else { "s" };
        self.plain(&format!(
            "{} of {} pages in {} run{s}  dirty {}  evicted and remembered {}",
            decimal(float(told.cached)),
            decimal(float(told.pages)),
            told.runs,
            pages(told.dirty),
            pages(told.evicted),
        ));
        let mut from = 0;
        let digits = told.pages.to_string().len();
        let across = CELLS.min(self.width().saturating_sub(digits + 1)).max(1);
        for line in told.parts.chunks(across) {
            let cell = |(i, n): (usize, &u64)| {
                let all = told.pages.saturating_sub(from + i as u64 * told.part).min(told.part);
                self.cell(*n, all)
            };
            let cells: String = line.iter().enumerate().map(cell).collect();
            self.plain(&format!("{from:>digits$} {cells}"));
            from += told.part * line.len() as u64;
        }
        if !told.parts.is_empty() {
            let each = if told.part == 1 { "a page".into() } else { format!("{} pages", told.part) };
            let [all, half, less, none] = [(2, 2), (1, 2), (1, 3), (0, 2)].map(|(n, all)| self.cell(n, all));
            self.plain(&format!(
                "a sign is {each}: {all} all, {half} half or more, {less} less, {none} none"
            ));
        }
    }

    /// A part of a file, so many of whose pages are cached.
    const fn cell(&self, cached: u64, all: u64) -> char {
        let signs = if self.theme.unicode { ['█', '▓', '░', '·'] } else { ['#', '+', ':', '.'] };
        let [full, half, less, none] = signs;
        match cached {
            0 => none,
            n if n >= all => full,
            n if n * 2 >= all => half,
            _ => less,
        }
    }

    fn memory(&mut self, told: &Memory, before: Option<(&Memory, f64)>) {
        self.title("its memory now (with the cgroups below it)".into());
        let bytes = |n: Option<u64>| known(n, binary);
        self.field(
            "files",
            format!(
                "{}  active {}  inactive {}  dirty {}",
                bytes(told.file),
                bytes(told.active),
                bytes(told.inactive),
                bytes(told.dirty)
            ),
        );
        let limit = match &told.limit {
            None => "no limit".into(),
            Some((n, whose)) if self.open.who.cgroup.as_ref().is_some_and(|own| own.raw() == *whose) => {
                format!("limit {}", binary(float(*n)))
            }
            Some((n, whose)) => {
                format!("limit {} (of {})", binary(float(*n)), crate::text::foreign::line(whose))
            }
        };
        self.field("used", format!("{}  {limit}", bytes(told.used)));
        // A cgroup that was made anew by that name counts from 0 again.
        let rate = before.and_then(|(before, seconds)| {
            let new = told.refaulted?.checked_sub(before.refaulted?)?;
            (seconds > 0.0).then(|| format!("  {} per second", decimal(float(new) / seconds)))
        });
        let refaults =
            format!("{} pages since it was made{}", known(told.refaulted, decimal), rate.unwrap_or_default());
        self.field(
            "refaulted",
            if told.refaulted.is_some() { refaults } else { "- (this kernel does not say)".into() },
        );
        self.field(
            "waits",
            match told.pressure {
                Some((some, full)) => {
                    format!("for memory in the last 10 s: some {}, all {}", percent(some), percent(full))
                }
                None => "- (no pressure is told of it: cgroup version 1, or PSI is off)".into(),
            },
        );
    }

    /// What it did in the last minutes.
    pub(super) fn course(&mut self, details: &Details) {
        let Some(course) = details.course.as_ref().filter(|c| !c.bars.is_empty()) else { return };
        let width = self.width().saturating_sub(SCALE).max(10);
        let bars: Vec<&Bar> = course.bars.iter().rev().take(width).collect();
        let rates = |bar: &Bar| bar.values.map(|v| v.map(|n| float(n) / bar.seconds.max(1e-9)));
        let sum = |v: [f64; 3]| v.iter().sum::<f64>();
        let top = charts::round_up(bars.iter().filter_map(|b| rates(b)).map(sum).fold(0.0, f64::max));
        let least = if bars.iter().any(|b| b.cut) { ", at least" } else { "" };
        self.title(format!("pages per second: misses, read-ahead hits, hits{least}"));
        let ids = summary::stack(self.app.scene.engine);
        let all = LINES * charts::STEPS;
        for line in (0..LINES).rev() {
            let mut spans = vec![Span::raw(" ".repeat(width - bars.len()))];
            for bar in bars.iter().rev() {
                let Some(values) = rates(bar) else {
                    spans.push(Span::styled(
                        if line == 0 { self.theme.absent() } else { " " },
                        self.theme.dim(),
                    ));
                    continue;
                };
                let mut end = 0;
                let ends = values.map(|n| {
                    end = (end + charts::steps(n, top, all)).min(all);
                    end
                });
                let (text, style) =
                    charts::cell(self.theme, ids, &ends, line * charts::STEPS).unwrap_or((" ", Style::new()));
                spans.push(Span::styled(text, style));
            }
            if line == LINES - 1 {
                spans.push(Span::styled(
                    format!(" {}", charts::scale(self.app, "hits", top)),
                    self.theme.dim(),
                ));
            }
            self.out.push(Line::from(spans));
        }
        let age = bars.iter().map(|b| b.seconds).sum::<f64>();
        let oldest = format!("-{}", charts::ago(age));
        let begin = width - bars.len();
        let mut axis: Vec<String> = vec![" ".into(); begin];
        axis.extend(bars.iter().rev().map(|bar| match self.app.back {
            Some(number) if number == bar.number => (if self.theme.unicode { "▲" } else { "^" }).into(),
            _ => self.theme.rule().to_owned(),
        }));
        self.out.push(Line::styled(format!("{}now", axis.concat()), self.theme.dim()));
        self.out.push(Line::styled(
            format!("{}{oldest}", " ".repeat(begin.min(width.saturating_sub(oldest.len())))),
            self.theme.dim(),
        ));
    }
}
