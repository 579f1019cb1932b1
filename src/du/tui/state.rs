//! What is shown and how keys change it: without a terminal and without files.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;

use crate::du::row::Kind;
use crate::du::row::Row;
use crate::du::row::Sort;
use crate::du::view;

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Move(isize),
    Enter,
    Back,
    Sort(Sort),
    Mark,
    Act(Deed),
    Map,
    Rescan,
    Filter,
    Help,
    Quit,
    /// Ends if nothing else is to be ended first.
    Leave,
    Yes,
    No,
    Type(char),
    Erase,
}

/// What may be done to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Evict,
    /// Writes what is dirty first.
    Flush,
    Load,
}

/// What takes its time, and is done while keys are heeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Job {
    /// Asks about everything.
    Scan,
    /// Does something to files and trees, and asks about everything anew.
    Act(Deed, Vec<PathBuf>),
    /// Which pages of a file are cached.
    Map(PathBuf),
}

/// Rows by the directory that they are in, and what could not be read.
pub(super) type Walked = (HashMap<PathBuf, Vec<Row>>, Option<String>);

/// What came of a job.
#[derive(Debug)]
pub(super) enum Outcome {
    Scanned(Walked),
    Acted(String, Walked),
    Mapped(String),
}

/// What has to be done outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    List,
    Begin(Job),
    Quit,
}

/// What stands in front of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    Browse,
    Help,
    /// A filter is typed.
    Filter,
    /// To be done, if the answer is yes.
    Confirm(Deed, Vec<PathBuf>),
    /// The map of a file, and the first line that is shown.
    Map(Vec<String>, usize),
}

/// What is in a directory: its own figures, then those of what it has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) whole: Option<Row>,
    pub(super) rows: Vec<Row>,
    /// What could not be read of it.
    pub(super) problem: Option<String>,
}

/// Files, as far as the tree needs them.
pub(super) trait World {
    /// What is in a directory.
    fn list(&mut self, dir: &Path) -> Listing;
    /// Begins a job; what comes of it is handed to [`finish`].
    fn begin(&mut self, job: Job);
    /// Takes what was found.
    fn scanned(&mut self, walked: Walked);
}

/// The browser.
#[derive(Debug, Clone)]
pub(super) struct State {
    root: PathBuf,
    pub(super) at: PathBuf,
    pub(super) listing: Listing,
    /// Which rows of the listing are shown: all, or those that the filter leaves.
    pub(super) shown: Vec<usize>,
    pub(super) filter: String,
    pub(super) selected: usize,
    pub(super) marked: BTreeSet<PathBuf>,
    pub(super) sort: Sort,
    pub(super) reverse: bool,
    pub(super) message: String,
    /// Whether it is a scan that was saved: nothing can be done to that.
    pub(super) saved: bool,
    /// What is under way.
    pub(super) busy: Option<&'static str>,
    mode: Mode,
    /// Where the cursor goes once the listing is there.
    aim: Option<PathBuf>,
}

impl State {
    pub(super) fn new(root: PathBuf, sort: Sort) -> Self {
        Self {
            at: root.clone(),
            root,
            listing: Listing::default(),
            shown: Vec::new(),
            filter: String::new(),
            selected: 0,
            marked: BTreeSet::new(),
            sort,
            reverse: false,
            message: String::new(),
            saved: false,
            busy: None,
            mode: Mode::Browse,
            aim: None,
        }
    }

    pub(super) const fn mode(&self) -> &Mode {
        &self.mode
    }

    /// Takes what is in the directory.
    pub(super) fn listed(&mut self, listing: Listing) {
        self.listing = listing;
        self.order();
    }

    /// The cursor stays on the row it stands on.
    fn stay(&mut self) {
        if self.aim.is_none() {
            self.aim = self.row().map(|r| r.path.clone());
        }
    }

    fn order(&mut self) {
        let (sort, reverse) = (self.sort, self.reverse);
        self.listing.rows.sort_by(|a, b| {
            // What is not known stands below everything, this way and that.
            let unknown = |row: &Row| reverse && row.totals.cached().is_none();
            let order = sort.order(a, b);
            unknown(a).cmp(&unknown(b)).then(if reverse { order.reverse() } else { order })
        });
        self.narrow();
    }

    /// Which rows are shown, and where the cursor is among them.
    fn narrow(&mut self) {
        let aim = self.aim.take();
        let wanted = self.filter.to_lowercase();
        let rows = self.listing.rows.iter().enumerate();
        self.shown =
            rows.filter(|(_, r)| wanted.is_empty() || called(r).contains(&wanted)).map(|(i, _)| i).collect();
        let found = aim.and_then(|aim| self.shown.iter().position(|i| self.listing.rows[*i].path == aim));
        self.selected = found.unwrap_or(self.selected).min(self.shown.len().saturating_sub(1));
    }

    /// The row under the cursor.
    pub(super) fn row(&self) -> Option<&Row> {
        self.listing.rows.get(*self.shown.get(self.selected)?)
    }

    /// Shows another directory, or the same one as it is now.
    fn go(&mut self, at: PathBuf) -> Option<Effect> {
        self.at = at;
        (self.listing, self.selected) = (Listing::default(), 0);
        self.shown.clear();
        self.filter.clear();
        Some(Effect::List)
    }

    fn begin(&mut self, job: Job) -> Option<Effect> {
        if let Some(busy) = self.busy {
            self.message = format!("not yet: {busy}");
            return None;
        }
        self.busy = Some(match job {
            Job::Scan => "looking at everything",
            Job::Act(Deed::Evict, _) => "evicting",
            Job::Act(Deed::Flush, _) => "writing and evicting",
            Job::Act(Deed::Load, _) => "reading",
            Job::Map(_) => "asking for the pages",
        });
        Some(Effect::Begin(job))
    }

    /// One key.
    pub(super) fn update(&mut self, action: Action) -> Option<Effect> {
        if action == Action::Quit {
            return Some(Effect::Quit);
        }
        match std::mem::replace(&mut self.mode, Mode::Browse) {
            Mode::Browse => {
                self.message.clear();
                self.browse(action)
            }
            Mode::Help => None,
            Mode::Confirm(deed, paths) if action == Action::Yes => self.begin(Job::Act(deed, paths)),
            Mode::Confirm(..) => {
                self.message = "nothing was done".into();
                None
            }
            Mode::Filter => {
                self.type_filter(action);
                None
            }
            Mode::Map(lines, top) => {
                if let Action::Move(by) = action {
                    let top = top.saturating_add_signed(by).min(lines.len().saturating_sub(1));
                    self.mode = Mode::Map(lines, top);
                }
                None
            }
        }
    }

    fn type_filter(&mut self, action: Action) {
        match action {
            Action::Type(c) => self.filter.push(c),
            Action::Erase => drop(self.filter.pop()),
            Action::No => self.filter.clear(),
            _ => {}
        }
        if matches!(action, Action::Type(_) | Action::Erase) {
            self.mode = Mode::Filter;
        }
        self.stay();
        self.narrow();
    }

    fn browse(&mut self, action: Action) -> Option<Effect> {
        if self.saved && matches!(action, Action::Act(_) | Action::Map | Action::Rescan) {
            self.message = "a saved scan: only what is there now can be asked or changed".into();
            return None;
        }
        match action {
            Action::Move(by) => {
                let last = self.shown.len().saturating_sub(1);
                self.selected = self.selected.saturating_add_signed(by).min(last);
            }
            Action::Enter => {
                let row = self.row()?;
                let path = row.path.clone();
                let directory = row.kind == Kind::Directory;
                return if directory { self.go(path) } else { self.browse(Action::Map) };
            }
            Action::Back => {
                if self.at == self.root {
                    return None;
                }
                self.aim = Some(self.at.clone());
                let above = self.at.parent().map(Path::to_path_buf)?;
                return self.go(above);
            }
            Action::Sort(sort) => {
                self.reverse = sort == self.sort && !self.reverse;
                self.sort = sort;
                self.stay();
                self.order();
            }
            Action::Mark => {
                let path = self.row()?.path.clone();
                if !self.marked.remove(&path) {
                    self.marked.insert(path);
                }
                return self.browse(Action::Move(1));
            }
            Action::Act(deed) => {
                let marked = self.marked.iter().cloned().collect();
                let paths: Vec<_> =
                    if self.marked.is_empty() { vec![self.row()?.path.clone()] } else { marked };
                self.mode = Mode::Confirm(deed, paths);
            }
            Action::Map => {
                let row = self.row()?;
                if row.kind == Kind::Directory {
                    self.message = "files have a map: this is a directory".into();
                    return None;
                }
                let path = row.path.clone();
                return self.begin(Job::Map(path));
            }
            Action::Rescan => return self.begin(Job::Scan),
            Action::Filter => self.mode = Mode::Filter,
            Action::Help => self.mode = Mode::Help,
            Action::Leave if !self.filter.is_empty() => {
                self.filter.clear();
                self.stay();
                self.narrow();
            }
            Action::Leave | Action::Quit => return Some(Effect::Quit),
            Action::Yes | Action::No | Action::Type(_) | Action::Erase => {}
        }
        None
    }
}

/// The name of a row, as a filter looks for it.
fn called(row: &Row) -> String {
    row.path.file_name().map_or_else(String::new, |name| view::name(name.as_ref()).to_lowercase())
}

/// Does what has to be done outside; `false` at the end.
pub(super) fn perform(state: &mut State, effect: Effect, world: &mut impl World) -> bool {
    match effect {
        Effect::Quit => return false,
        Effect::List => state.listed(world.list(&state.at)),
        Effect::Begin(job) => world.begin(job),
    }
    true
}

/// Takes what came of a job.
pub(super) fn finish(state: &mut State, outcome: Outcome, world: &mut impl World) {
    state.busy = None;
    match outcome {
        Outcome::Scanned(walked) => {
            world.scanned(walked);
            // Who has not moved yet is on the first row, whichever that is by now.
            if state.selected == 0 {
                return state.listed(world.list(&state.at));
            }
        }
        Outcome::Acted(message, walked) => {
            state.message = message;
            state.marked.clear();
            world.scanned(walked);
        }
        Outcome::Mapped(text) => {
            state.mode = Mode::Map(text.lines().map(str::to_owned).collect(), 0);
            return;
        }
    }
    state.stay();
    state.listed(world.list(&state.at));
}

#[cfg(test)]
#[path = "tests.rs"]
pub(super) mod tests;
