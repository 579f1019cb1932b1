//! The details of a row.

mod now;
mod whatif;

use ratatui::text::Line;
use ratatui::text::Span;

use super::theme::Theme;
use crate::blame::How;
use crate::columns;
use crate::columns::COLUMNS;
use crate::columns::Column;
use crate::figures::Figures;
use crate::live::keeper::Id;
use crate::model::Row;
use crate::pivot::By;
use crate::plan::Engine;
use crate::sample::Histograms;
use crate::text::numbers::decimal;
use crate::text::width::at_a_word;
use crate::text::width::beginning;
use crate::text::width::shortened;
use crate::text::width::sides;
use crate::text::wrap::folded;
use crate::text::wrap::wrapped;
use crate::top::app::App;
use crate::top::app::Open;
use crate::top::cells;
use crate::top::details::Details;
use crate::top::details::List;
use crate::top::layout;
use crate::top::layout::Beside;
use crate::top::layout::Layout;
use crate::top::links;
use crate::top::links::Link;
use crate::top::numbers::Numbers;
use crate::top::settings::Show;
use crate::top::table::Look;

/// What stands on it.
#[derive(Default)]
pub(super) struct Lines {
    /// All lines.
    pub(super) all: Vec<Line<'static>>,
    /// What can be chosen, and on which of them.
    pub(super) places: Vec<(Link, usize)>,
    /// Where it begins what is predicted of another size of the cache, if that is asked.
    pub(super) asked: Option<usize>,
}

/// The page.
pub(super) fn page(app: &App, theme: &Theme) -> Lines {
    let Some(open) = &app.open else { return Lines::default() };
    // Whoever can choose it is asked once, not for each line.
    let links = links::all(open, app.scene.replay.is_none());
    let mut page = Page { app, theme, open, out: Vec::new(), links, places: Vec::new(), asked: None };
    page.who();
    let Some(details) = &open.details else {
        page.plain("");
        page.plain("being looked up");
        return page.lines();
    };
    // Of evictors nothing is known of reading.
    if open.by != By::Evictor {
        page.findings(details);
        page.course(details);
    }
    page.cached_now();
    page.what_if();
    page.figures(details);
    for list in &details.lists {
        page.list(list, details);
    }
    if open.by == By::Thread {
        page.title("files".into());
        page.plain("- (files are counted by process: see the one that this thread belongs to)");
    }
    if open.by != By::Evictor {
        page.latency(details);
    }
    page.whole_command_line();
    page.next();
    page.lines()
}

fn how_of(name: Option<&str>) -> Option<How> {
    How::ALL.iter().copied().find(|how| Some(how.name()) == name)
}

struct Page<'a> {
    app: &'a App,
    theme: &'a Theme,
    open: &'a Open,
    out: Vec<Line<'static>>,
    links: Vec<Link>,
    places: Vec<(Link, usize)>,
    asked: Option<usize>,
}

impl Page<'_> {
    fn lines(self) -> Lines {
        Lines { all: self.out, places: self.places, asked: self.asked }
    }

    fn width(&self) -> usize {
        usize::from(self.app.zones().page.width).max(20)
    }

    /// What has no room beside the edge ends with a mark.
    fn plain(&mut self, text: &str) {
        let text = self.theme.text(&at_a_word(text, self.width()));
        self.out.push(Line::raw(text));
    }

    /// A line that can be chosen, if it leads anywhere.
    fn link(&mut self, link: Link, text: &str) {
        let chosen = self.open.chosen.as_ref() == Some(&link);
        if self.links.contains(&link) {
            self.places.push((link, self.out.len()));
        }
        let text = self.theme.text(&at_a_word(text, self.width()));
        let line = match chosen {
            true => Line::styled(format!("{text:<width$}", width = self.width()), self.theme.selected()),
            false => Line::raw(text),
        };
        self.out.push(line);
    }

    fn title(&mut self, text: String) {
        self.plain("");
        let text = self.theme.text(&at_a_word(&text, self.width()));
        self.out.push(Line::styled(text, self.theme.strong()));
    }

    fn field(&mut self, name: &str, value: impl ToString) {
        self.lines_of(name, &folded(&value.to_string(), self.room()));
    }

    /// Columns that what stands behind a name has.
    fn room(&self) -> usize {
        self.width().saturating_sub(14).max(10)
    }

    fn lines_of(&mut self, name: &str, lines: &[String]) {
        for (i, line) in lines.iter().enumerate() {
            let name = if i == 0 { name } else { "" };
            self.plain(&format!("{name:<13} {line}"));
        }
    }

    /// Of a long command line the beginning, so that it does not push everything else off the screen; all of it comes later.
    fn command_line(&mut self, line: &str) {
        let mut lines = folded(line, self.room());
        if lines.len() > self.most() {
            lines.truncate(self.most());
            if let Some(last) = lines.last_mut() {
                *last = beginning(&format!("{last} …"), self.room());
            }
        }
        self.lines_of("command line", &lines);
    }

    /// Lines of the page that a command line has at its beginning.
    fn most(&self) -> usize {
        usize::from(self.app.zones().page.height / 6).max(2)
    }

    fn whole_command_line(&mut self) {
        let Some(Some(line)) = &self.open.command_line else { return };
        let line = line.to_string();
        if folded(&line, self.room()).len() > self.most() {
            self.title("all of the command line".into());
            for line in folded(&line, self.width()) {
                self.plain(&line);
            }
        }
    }

    fn who(&mut self) {
        let (by, who) = (self.open.by, &self.open.who);
        let number = match (who.tid, who.pid) {
            (Some(tid), Some(pid)) => format!(" {tid} of process {pid}"),
            (None, Some(pid)) => format!(" {pid}"),
            _ => String::new(),
        };
        let name = layout::shown(by, who);
        let wide = self.width() >= 80;
        let back = if wide { "   (Up Down Enter: go on, Esc: back)" } else { "   (Esc: back)" };
        let what = format!("{}{number}  ", by.singular());
        // Of a long name the middle is left out; the whole of it follows.
        let room = self.width().saturating_sub(what.len() + back.len()).max(10);
        let cut = if by == By::Evictor { sides } else { shortened };
        let text = self.theme.text(&format!("{what}{}{back}", cut(&name, room)));
        self.out.push(Line::styled(text, self.theme.strong()));
        let who = who.clone();
        if self.open.replaced {
            self.plain("It has ended, and another process has its number: this is what it was.");
        }
        if who.pid.is_some() {
            match &self.open.command_line {
                None => self.field("command line", "being looked up"),
                Some(Some(line)) => self.command_line(&line.to_string()),
                Some(None) if self.app.scene.replay.is_some() => {
                    self.field("command line", "- (it was not recorded)");
                }
                Some(None) => self.field("command line", "- (the process has ended, or has none)"),
            }
        }
        let uid = who.uid.map(|n| format!("uid {n}"));
        if let Some(uid) = uid {
            let user = who.user.as_ref().map_or_else(|| uid.clone(), |u| format!("{u} ({uid})"));
            self.field("user", user);
        }
        if let Some(how) = how_of(who.how) {
            self.field("how", format!("{}: {}", how.name(), how.text()));
        }
        for (name, value) in [
            ("whose", &who.owner),
            ("limit of", &who.limit_of),
            ("process", &who.comm.filter(|_| by == By::Evictor)),
            ("cgroup", &who.cgroup),
            ("container", &who.container),
            ("unit", &who.unit),
            ("path", &who.path),
            ("device", &who.device),
            ("mount", &who.mount),
        ] {
            if let Some(value) = value {
                self.field(name, value);
            }
        }
        if let Some(inode) = who.inode {
            self.field("inode", inode);
        }
    }

    fn findings(&mut self, details: &Details) {
        self.title(format!("findings ({})", self.app.since()));
        if details.findings.is_empty() {
            self.plain("none");
        }
        for (n, finding) in details.findings.iter().enumerate() {
            let width = self.width().saturating_sub(19).max(10);
            for (i, line) in wrapped(&finding.text, width).into_iter().enumerate() {
                match i {
                    0 => self.link(Link::Finding(n), &format!("{:<18} {line}", finding.id)),
                    _ => self.plain(&format!("{:<18} {line}", "")),
                }
            }
        }
    }

    /// The row in the interval, where it is still in the table: its own figures, as those since the start are.
    fn now(&self) -> Option<Row> {
        let app = self.app;
        let find = |id: &Id| app.slots.iter().find(|s| app.id(**s) == Some(id));
        let row = find(&self.open.id).and_then(|slot| app.own_row(*slot));
        row.filter(|_| app.numbers().show != Show::Total && !self.open.replaced)
    }

    fn figures(&mut self, details: &Details) {
        let app = self.app;
        let now = self.now();
        let numbers = app.numbers();
        let total = Numbers { show: Show::Total, ..numbers };
        // Where only what came since the start is looked at, there is no other column.
        // Nor of a row that is not one of the table: its interval is not looked up.
        let alone = numbers.show == Show::Total || self.open.by != app.by();
        let second = |text: &str| if alone { String::new() } else { format!("{text:>12}") };
        let title = second(if numbers.show == Show::Rate { "per second" } else { "interval" });
        self.title(format!("{:<12}{title} {:>12}   ", "figures", self.app.since()));
        let unknown =
            || Row { who: self.open.who.clone(), figures: Figures::unknown(), classic: None, back: None };
        let all = details.since_start.clone().unwrap_or_else(unknown);
        let engine = app.scene.engine;
        let counts =
            |c: &Column| if c.is_classic() { engine != Engine::Exact } else { engine != Engine::Classic };
        let wanted: Vec<_> = COLUMNS.iter().filter(|c| cells::suits(c, self.open.by) && counts(c)).collect();
        for column in wanted {
            // What this kernel counts for no row at all is not worth a line, unless it says something of read-ahead.
            let always = matches!(column.id, "readahead_wasted" | "hit_ratio" | "direct_bytes");
            if !app.scene.knows(column) && !always {
                continue;
            }
            // Of a cgroup the page has it already.
            if !cells::sorts_rows(column) && !always {
                continue;
            }
            let cell = |row: &Row, numbers: Numbers| numbers.cell(column, &columns::Line::from(row));
            let here = now.as_ref().map_or_else(|| "-".into(), |row| cell(row, numbers));
            let about = match column.id {
                "readahead_wasted" => "prefetched pages never used: known of the whole system only",
                _ => column.about(),
            };
            let here = second(&here);
            let text = format!("{:<12}{here} {:>12}   {about}", cells::title(column), cell(&all, total));
            self.plain(&text);
        }
    }

    fn list(&mut self, list: &List, details: &Details) {
        let by = list.by;
        self.title(format!("{} ({})", by.plural(), self.app.since()));
        if list.rows.is_empty() {
            let why = match (self.app.scene.engine, by.files() && !details.files_counted) {
                (Engine::Classic, _) => "- (the classic engine counts processes only)",
                (_, true) => "- (files are not counted: it was started with --no-files)",
                // Rows of who has ended make room for those of the living.
                (_, false) if by.files() && details.has_read() => {
                    "- (they were put together with those of others: see the rows by file)"
                }
                (_, false) => "none that did anything",
            };
            self.plain(why);
            return;
        }
        let suits = |c: &&'static crate::columns::Column| {
            let files = by.files() || self.open.by.files();
            cells::suits(c, if files { By::File } else { by }) && self.app.scene.knows(c)
        };
        let wanted: Vec<_> =
            cells::default_columns(self.app.scene.engine).into_iter().filter(suits).take(5).collect();
        let layout = Layout::new(by, Beside::default(), (&wanted, 0), self.width());
        let numbers = Numbers { show: Show::Total, ..self.app.numbers() };
        let look = Look { layout: &layout, by, numbers };
        self.out.push(Line::from(Span::styled(look.titles().0, self.theme.dim())));
        for row in list.shown() {
            let text = look.row(row, "");
            self.link(Link::Row(by, Id::new(by, &row.who)), text.trim_end());
        }
        if list.more() > 0 {
            self.plain(&format!("and {} more", list.more()));
        }
    }

    /// What one would run next.
    fn next(&mut self) {
        let commands = links::commands(self.open.by, &self.open.who);
        if commands.is_empty() || self.app.scene.replay.is_some() || self.open.replaced {
            return;
        }
        self.title("what to run next (Enter runs it here)".into());
        for (n, words) in commands.iter().enumerate() {
            self.link(Link::Command(n), &links::printed(words));
        }
    }

    fn latency(&mut self, details: &Details) {
        let calls = if details.latency.is_some() { "its read calls" } else { "read calls" };
        self.title(format!("latency of {calls} ({})", self.app.since()));
        let h: &Histograms = match (&details.latency, &details.system_latency) {
            (Some(own), _) => own,
            (None, Some(system)) => {
                self.plain("- (calls are timed by process, not by file); of the whole system:");
                system
            }
            (None, None) => {
                let why = match self.app.scene.latency {
                    true => "- (this kernel does not give it: --explain says why)",
                    false => "- (read calls are not timed: start it with --latency)",
                };
                self.plain(why);
                return;
            }
        };
        let calls = |b: &[u64]| b.iter().sum::<u64>();
        if calls(&h.hit) + calls(&h.miss) == 0 {
            self.plain("no calls yet");
            return;
        }
        let used =
            |i: &usize| h.hit.get(*i).is_some_and(|n| *n > 0) || h.miss.get(*i).is_some_and(|n| *n > 0);
        let first = (0..h.hit.len()).find(used).unwrap_or(0);
        let last = (0..h.hit.len()).rev().find(used).unwrap_or(0);
        let most = h.hit.iter().chain(&h.miss).copied().max().unwrap_or(1).max(1);
        self.out.push(Line::styled(
            format!("{:>9} {:>9}          {:>9}", "less than", "no miss", "missed"),
            self.theme.dim(),
        ));
        for i in first..=last {
            let (hit, miss) = (h.hit.get(i).copied().unwrap_or(0), h.miss.get(i).copied().unwrap_or(0));
            let text = format!(
                "{:>9} {:>9} {:<8} {:>9} {:<8}",
                nanoseconds(1 << (8 + i)),
                decimal(float(hit)),
                self.bar(hit, most),
                decimal(float(miss)),
                self.bar(miss, most)
            );
            self.plain(text.trim_end());
        }
    }

    fn bar(&self, n: u64, most: u64) -> String {
        let sign = if self.theme.unicode { "█" } else { "#" };
        let full = usize::try_from((u128::from(n) * 8).div_ceil(u128::from(most))).unwrap_or(8);
        sign.repeat(full.min(8))
    }
}

const fn float(n: u64) -> f64 {
    n as f64
}

/// A time in the unit that suits it.
fn nanoseconds(n: u64) -> String {
    let x = float(n);
    match x {
        x if x < 1e3 => format!("{x:.0} ns"),
        x if x < 1e6 => format!("{:.1} us", x / 1e3),
        x if x < 1e9 => format!("{:.1} ms", x / 1e6),
        x => format!("{:.1} s", x / 1e9),
    }
}
