//! The state of the screen. It knows no outside world: events come in, and what is to be done comes out.

mod columns;
mod held;
mod input;
mod lines;
mod mouse;
mod rows;
mod search;
mod time;
mod tree;
mod walk;

pub use time::Moment;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::time::Duration;

use crate::columns::Column;
use crate::live::keeper::Id;
use crate::live::snapshot::Ended;
use crate::live::snapshot::Entry;
use crate::live::snapshot::Snapshot;
use crate::live::snapshot::View;
use crate::pivot::By;
use crate::pivot::Who;
use crate::sample::Lost;
use crate::top::argv::Argv;
use crate::top::details::Details;
use crate::top::filter::Filter;
use crate::top::layout::Beside;
use crate::top::layout::Layout;
pub use crate::top::links::Open;
use crate::top::now::Now;
use crate::top::numbers::Numbers;
use crate::top::scene::Scene;
use crate::top::settings::Settings;
use crate::top::settings::Show;
use crate::top::summary;
use crate::top::table;
use crate::top::table::Order;
use crate::top::table::Slot;
use crate::top::table::Wanted;
use crate::top::zones::Zones;

/// Intervals that the history holds.
const HISTORY: usize = 1024;

/// What the world outside has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// End the program.
    Quit,
    /// Show these rows from now on.
    View(View),
    /// Intervals of another length.
    Interval(Duration),
    /// Hold the picture, or let it go.
    Hold(bool),
    /// Show this interval of those before; `None`: the last one.
    Back(Option<u64>),
    /// This row must not go away.
    Watch(Option<Id>),
    /// Keep the minutes before in a file of this name, with these intervals marked.
    Keep(String, Vec<u64>),
    /// So many intervals on or back in a recording.
    Step(i32),
    /// So many seconds on or back in it.
    Jump(i32),
    /// Find out what is known of a row.
    Details(By, Id, Box<Who>),
    /// Run this in the terminal, and come back.
    Run(Vec<OsString>),
    /// Keep the settings.
    Save,
    /// Draw everything anew.
    Redraw,
    /// Stop, as the shell asks programs to.
    Suspend,
}

/// What keys are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The table.
    Table,
    /// The help, from this line on.
    Help(usize),
    /// The filter is being written.
    Filter,
    /// It is being written which row is looked for.
    Search,
    /// The list of columns; this one is selected.
    Columns(usize),
    /// The details, from this line on.
    Details(usize),
}

/// The state of the screen.
pub struct App {
    /// What does not change.
    pub scene: Scene,
    /// What a person may change.
    pub settings: Settings,
    /// What the keys are for.
    pub mode: Mode,
    /// What is shown; `None` until the first interval has ended.
    pub snapshot: Option<Snapshot>,
    /// Figures of the upper part, the newest last.
    pub history: VecDeque<Moment>,
    /// The interval that is looked at, where that is one of those before.
    pub back: Option<u64>,
    /// Intervals that were marked.
    pub marks: Vec<u64>,
    /// What could not be accounted so far, by reason.
    pub lost: Lost,
    /// The picture stands still.
    pub paused: bool,
    /// What was typed: only these rows are shown.
    pub filter: String,
    /// What is looked for.
    pub search: String,
    /// Command lines that were seen.
    pub argv: Argv,
    /// Some row is in a container or a unit.
    units: bool,
    /// The row selected.
    pub selected: Option<Id>,
    /// Its place in the order.
    pub at: usize,
    /// The first row shown.
    pub offset: usize,
    /// The first column shown.
    pub skip: usize,
    /// The rows: the first `ordered` ones in their order, which are more than are seen.
    pub slots: Vec<Slot>,
    ordered: usize,
    /// What they are made of, where they hang together.
    pub tree: tree::Grown,
    held: held::HeldNow,
    /// The details that are open.
    pub open: Option<Open>,
    /// Those from which one came here, and their first lines on the screen.
    pub trail: Vec<(Open, usize)>,
    /// A message, and for how many intervals.
    pub message: Option<(String, u32)>,
    told_of_losses: Option<crate::loss::Touches>,
    /// Since when totals are added up of a recording.
    since: Option<jiff::Timestamp>,
    /// Why no more intervals come.
    pub stopped: Option<String>,
    /// Size of the screen in columns and lines.
    pub size: (u16, u16),
}

impl App {
    /// A screen without any interval yet.
    #[must_use]
    pub fn new(scene: Scene, settings: Settings, size: (u16, u16)) -> Self {
        // A recording is there to be looked at; it is played when somebody asks for that.
        let paused = scene.replay.is_some();
        let message = scene.notice.clone().map(|n| (format!("warning: {n}"), 10));
        Self {
            scene,
            settings,
            mode: Mode::Table,
            snapshot: None,
            history: VecDeque::new(),
            back: None,
            marks: Vec::new(),
            lost: Lost::default(),
            paused,
            filter: String::new(),
            search: String::new(),
            argv: Argv::default(),
            units: false,
            selected: None,
            at: 0,
            offset: 0,
            skip: 0,
            slots: Vec::new(),
            ordered: 0,
            tree: tree::Grown::default(),
            held: held::HeldNow::default(),
            open: None,
            trail: Vec::new(),
            message,
            told_of_losses: None,
            since: None,
            stopped: None,
            size,
        }
    }

    /// What the thread that samples shall show.
    #[must_use]
    pub const fn view(&self) -> View {
        let Settings { by, show, threads, ended, .. } = self.settings;
        View { by, show, threads, ended: if self.scene.told_of_ends { ended } else { Ended::Unasked } }
    }

    /// The columns with figures that suit the rows.
    #[must_use]
    pub fn columns(&self) -> Vec<&'static Column> {
        self.settings.columns_of(self.by(), &self.scene)
    }

    /// What the rows on the screen stand for.
    #[must_use]
    pub fn by(&self) -> By {
        self.snapshot.as_ref().map_or(self.settings.by, |s| s.view.by)
    }

    /// Where everything is.
    #[must_use]
    pub fn zones(&self) -> Zones {
        Zones::new(self.size, summary::series(self.scene.engine).len())
    }

    /// The columns that fit.
    #[must_use]
    pub fn layout(&self) -> Layout {
        let columns = self.columns();
        let beside = Beside { units: self.units, share: true };
        Layout::new(self.by(), beside, (&columns, self.skip), self.zones().rows.width.into())
    }

    /// How the numbers of rows are written.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        let seconds = self.snapshot.as_ref().map_or(1.0, |s| s.system.seconds);
        let show = self.snapshot.as_ref().map_or(self.settings.show, |s| s.view.show);
        // Counts and rates are made of the same rows, so one follows the key at once; totals have to come first.
        let show = match (show, self.settings.show) {
            (Show::Total, _) => Show::Total,
            (shown, Show::Total) => shown,
            (_, wanted) => wanted,
        };
        Numbers { unit: self.settings.unit, page_size: self.scene.page_size, show, seconds, counted: None }
    }

    /// Takes what the thread that samples has made. Returns whether anything on the screen changes.
    pub fn take(&mut self, snapshot: Snapshot) -> bool {
        if snapshot.fresh {
            self.remember(&snapshot);
            self.argv.next();
            if let Some((text, left)) = self.message.take() {
                self.message = (left > 1).then(|| (text, left - 1));
            }
            let lost = &snapshot.system.lost;
            self.lost.add(lost);
            if crate::loss::reaches_further(&mut self.told_of_losses, lost) {
                self.message = Some((format!("warning: {}", crate::loss::sentence_with_remedy(lost)), 10));
            }
        }
        let stands = self.paused && self.scene.replay.is_none();
        if snapshot.held || stands && snapshot.fresh && self.snapshot.is_some() {
            return false;
        }
        if self.since.is_none() {
            let length = jiff::SignedDuration::try_from_secs_f64(snapshot.system.seconds).unwrap_or_default();
            self.since = snapshot.system.time.checked_sub(length).ok();
        }
        if !snapshot.fresh && self.back.is_some() {
            self.back = Some(snapshot.number);
        }
        let moved = self.snapshot.as_ref().is_some_and(|old| old.view.by != snapshot.view.by);
        if moved {
            (self.selected, self.offset, self.at, self.skip) = (None, 0, 0, 0);
        }
        let in_one = |e: &Entry| e.named.who.container.is_some() || e.named.who.unit.is_some();
        self.units = snapshot.entries.iter().any(in_one);
        self.snapshot = Some(snapshot);
        self.arrange();
        true
    }

    /// Takes what was found out about a row, if it is still the one that is open.
    pub fn looked_up(&mut self, details: Details) {
        if let Some(open) = self.open.as_mut().filter(|o| o.by == details.by && o.id == details.id) {
            open.begun = open.begun.or(details.begun);
            open.replaced |= open.begun.zip(details.begun).is_some_and(|(before, now)| before != now);
            // What is known of who had the number stays.
            if !open.replaced {
                open.details = Some(details);
            }
        }
    }

    /// Takes what the cache has now of a row. Returns whether it is still the one that is open.
    pub fn looked_at(&mut self, by: By, id: &Id, now: Now) -> bool {
        let Some(open) = self.open.as_mut().filter(|o| o.by == by && o.id == *id) else { return false };
        open.before = open.now.replace(now);
        true
    }

    /// Sorts and filters anew; the selected row stays where it is.
    pub(crate) fn arrange(&mut self) {
        // A screenful to spare: what is scrolled to next.
        self.order(self.offset.max(self.at) + 2 * self.page());
        self.keep_in_sight();
    }

    /// Puts so many rows in order.
    fn order(&mut self, first: usize) {
        let Some(snapshot) = &self.snapshot else { return };
        let filter = Filter::new(&self.filter);
        let order = Order {
            sort: self.settings.sort,
            reverse: self.settings.reverse,
            filter: (!filter.is_empty()).then(|| Wanted {
                filter: &filter,
                argv: &self.argv,
                numbers: self.numbers(),
            }),
            pinned: self.selected.as_ref().map(|id| (id, self.at)),
            first,
        };
        self.slots = table::arrange(snapshot, &order);
        self.ordered = first;
        self.hang();
        if let Some(id) = &self.selected {
            match self.slots.iter().position(|s| self.id(*s) == Some(id)) {
                Some(at) => {
                    // With threads between the rows it may move: then the screen moves with it.
                    let line = self.at.saturating_sub(self.offset);
                    if at != self.at {
                        self.offset = at.saturating_sub(line);
                    }
                    self.at = at;
                }
                None => self.selected = None,
            }
        }
    }

    /// Whoever asks for another order, or for other rows, wants to see what comes first.
    pub(crate) fn begin_anew(&mut self) -> Vec<Effect> {
        let selects = self.selected.take().is_some();
        (self.offset, self.at) = (0, 0);
        self.arrange();
        if selects { self.select(0) } else { Vec::new() }
    }

    pub(crate) fn select(&mut self, at: usize) -> Vec<Effect> {
        if at >= self.ordered {
            self.order(usize::MAX);
        }
        self.selected = self.slots.get(at).and_then(|slot| self.id(*slot)).cloned();
        self.at = at;
        self.keep_in_sight();
        vec![Effect::Watch(self.selected.clone())]
    }

    pub(crate) fn keep_in_sight(&mut self) {
        let page = self.page();
        if self.selected.is_some() {
            self.offset = self.offset.min(self.at).max((self.at + 1).saturating_sub(page));
        }
        self.offset = self.offset.min(self.slots.len().saturating_sub(page));
        if self.offset + page > self.ordered {
            self.order(usize::MAX);
        }
    }

    /// The screen has another size.
    pub fn resized(&mut self, size: (u16, u16)) {
        if self.size != size {
            self.size = size;
            self.keep_in_sight();
        }
    }

    /// Says something in the last line.
    pub fn say(&mut self, text: impl Into<String>) {
        self.message = Some((text.into(), 3));
    }
}
