//! What is shown and how keys change it: without a terminal and without files.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

use crate::du::row::Kind;
use crate::du::row::Row;
use crate::du::row::Sort;

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Move(isize),
    Enter,
    Back,
    Sort(Sort),
    Mark,
    Evict,
    Rescan,
    Help,
    Quit,
    Yes,
    No,
}

/// What has to be done outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    List(PathBuf),
    Evict(Vec<PathBuf>),
    Rescan,
    Quit,
}

/// What stands in front of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    Browse,
    Help,
    /// To be dropped from the cache, if the answer is yes.
    Confirm(Vec<PathBuf>),
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
    /// Drops files and trees from the cache, and says what came of it.
    fn evict(&mut self, paths: &[PathBuf]) -> String;
    /// Asks about everything anew.
    fn rescan(&mut self);
}

/// The browser.
#[derive(Debug, Clone)]
pub(super) struct State {
    root: PathBuf,
    pub(super) at: PathBuf,
    pub(super) listing: Listing,
    pub(super) selected: usize,
    pub(super) marked: BTreeSet<PathBuf>,
    pub(super) sort: Sort,
    pub(super) message: String,
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
            selected: 0,
            marked: BTreeSet::new(),
            sort,
            message: String::new(),
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
        self.aim = self.row().map(|r| r.path.clone());
    }

    fn order(&mut self) {
        let aim = self.aim.take();
        let sort = self.sort;
        self.listing.rows.sort_by(|a, b| sort.order(a, b));
        let found = aim.and_then(|aim| self.listing.rows.iter().position(|r| r.path == aim));
        self.selected = found.unwrap_or(self.selected).min(self.listing.rows.len().saturating_sub(1));
    }

    /// The row under the cursor.
    pub(super) fn row(&self) -> Option<&Row> {
        self.listing.rows.get(self.selected)
    }

    /// Says what takes its time, if it does.
    pub(super) fn busy(&mut self, effect: &Effect) -> bool {
        self.message = match effect {
            Effect::List(_) | Effect::Quit => return false,
            Effect::Evict(_) => "evicting …",
            Effect::Rescan => "looking again …",
        }
        .into();
        true
    }

    /// One key.
    pub(super) fn update(&mut self, action: Action) -> Option<Effect> {
        if action == Action::Quit {
            return Some(Effect::Quit);
        }
        match (std::mem::replace(&mut self.mode, Mode::Browse), action) {
            (Mode::Confirm(paths), Action::Yes) => {
                self.stay();
                return Some(Effect::Evict(paths));
            }
            (Mode::Confirm(_), _) => {
                self.message = "nothing was evicted".into();
                return None;
            }
            (Mode::Help, _) => return None,
            (Mode::Browse, _) => self.message.clear(),
        }
        match action {
            Action::Move(by) => {
                let last = self.listing.rows.len().saturating_sub(1);
                self.selected = self.selected.saturating_add_signed(by).min(last);
            }
            Action::Enter => {
                let row = self.row().filter(|r| r.kind == Kind::Directory)?;
                self.at = row.path.clone();
                (self.listing, self.selected) = (Listing::default(), 0);
                return Some(Effect::List(self.at.clone()));
            }
            Action::Back => {
                if self.at == self.root {
                    return None;
                }
                self.aim = Some(self.at.clone());
                self.at.pop();
                self.listing = Listing::default();
                return Some(Effect::List(self.at.clone()));
            }
            Action::Sort(sort) => {
                self.sort = sort;
                self.stay();
                self.order();
            }
            Action::Mark => {
                let path = self.row()?.path.clone();
                if !self.marked.remove(&path) {
                    self.marked.insert(path);
                }
                return self.update(Action::Move(1));
            }
            Action::Evict => {
                let marked = self.marked.iter().cloned().collect();
                let paths: Vec<_> =
                    if self.marked.is_empty() { vec![self.row()?.path.clone()] } else { marked };
                self.mode = Mode::Confirm(paths);
            }
            Action::Rescan => {
                self.stay();
                return Some(Effect::Rescan);
            }
            Action::Help => self.mode = Mode::Help,
            Action::Quit | Action::Yes | Action::No => {}
        }
        None
    }
}

/// Does what has to be done outside; `false` at the end.
pub(super) fn perform(state: &mut State, effect: Effect, world: &mut impl World) -> bool {
    match effect {
        Effect::Quit => return false,
        Effect::List(_) => {}
        Effect::Evict(paths) => {
            state.message = world.evict(&paths);
            state.marked.clear();
            world.rescan();
        }
        Effect::Rescan => {
            world.rescan();
            state.message.clear();
        }
    }
    state.listed(world.list(&state.at));
    true
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::du::totals::Totals;

    /// A tree that needs no files; what is evicted is gone.
    pub(in crate::du::tui) struct Fake {
        pub(in crate::du::tui) evicted: Vec<PathBuf>,
    }

    fn row(kind: Kind, path: &str, cached: u64, pages: u64) -> Row {
        let (size, disk) = (pages * 4096, pages * 4096);
        let totals = Totals { files: 1, size, disk, pages, cached, dirty: cached / 10, ..Totals::default() };
        Row::new(kind, path.into(), 1, totals, None)
    }

    impl World for Fake {
        fn list(&mut self, dir: &Path) -> Listing {
            let rows = match dir.to_str().unwrap() {
                "/r" => vec![
                    row(Kind::Directory, "/r/big", 900, 1000),
                    row(Kind::Directory, "/r/small", 5, 5000),
                    row(Kind::File, "/r/file", 50, 60),
                ],
                "/r/big" => vec![row(Kind::File, "/r/big/one", 900, 1000)],
                _ => Vec::new(),
            };
            let keep = |r: &Row| !self.evicted.contains(&r.path);
            let rows = rows.into_iter().filter(keep).collect();
            let whole = Some(row(Kind::Directory, dir.to_str().unwrap(), 955, 6060));
            Listing { whole, rows, problem: None }
        }

        fn evict(&mut self, paths: &[PathBuf]) -> String {
            self.evicted.extend_from_slice(paths);
            format!("evicted {}", paths.len())
        }

        fn rescan(&mut self) {}
    }

    pub(in crate::du::tui) fn started(sort: Sort) -> (State, Fake) {
        let mut fake = Fake { evicted: Vec::new() };
        let mut state = State::new("/r".into(), sort);
        state.listed(fake.list(Path::new("/r")));
        (state, fake)
    }

    pub(in crate::du::tui) fn act(state: &mut State, fake: &mut Fake, actions: &[Action]) {
        for action in actions {
            if let Some(effect) = state.update(*action) {
                perform(state, effect, fake);
            }
        }
    }

    fn names(state: &State) -> Vec<&str> {
        state.listing.rows.iter().map(|r| r.path.to_str().unwrap()).collect()
    }

    #[test]
    fn into_a_directory_and_back_to_where_one_was() {
        let (mut state, mut fake) = started(Sort::Size);
        assert_eq!(names(&state), ["/r/small", "/r/big", "/r/file"]);
        act(&mut state, &mut fake, &[Action::Move(1), Action::Enter]);
        assert_eq!((state.at.to_str(), names(&state)), (Some("/r/big"), vec!["/r/big/one"]));
        act(&mut state, &mut fake, &[Action::Enter]);
        assert_eq!(state.at.to_str(), Some("/r/big"), "a file cannot be entered");
        act(&mut state, &mut fake, &[Action::Back]);
        assert_eq!(state.row().unwrap().path.to_str(), Some("/r/big"));
        act(&mut state, &mut fake, &[Action::Back]);
        assert_eq!(state.at.to_str(), Some("/r"), "not above what was named");
    }

    #[test]
    fn the_cursor_stays_on_its_row_when_the_order_changes() {
        let (mut state, mut fake) = started(Sort::Cached);
        act(&mut state, &mut fake, &[Action::Move(isize::MAX)]);
        assert_eq!(state.row().unwrap().path.to_str(), Some("/r/small"));
        act(&mut state, &mut fake, &[Action::Sort(Sort::Size)]);
        assert_eq!((state.selected, state.row().unwrap().path.to_str()), (0, Some("/r/small")));
        act(&mut state, &mut fake, &[Action::Move(isize::MIN), Action::Move(-1)]);
        assert_eq!(state.selected, 0);
    }

    #[test]
    fn nothing_is_evicted_without_a_yes() {
        let (mut state, mut fake) = started(Sort::Cached);
        act(&mut state, &mut fake, &[Action::Evict, Action::No]);
        assert!(fake.evicted.is_empty());
        assert_eq!(state.message, "nothing was evicted");
        act(&mut state, &mut fake, &[Action::Mark, Action::Mark, Action::Evict, Action::Yes]);
        assert_eq!(fake.evicted, [PathBuf::from("/r/big"), PathBuf::from("/r/file")]);
        assert_eq!((names(&state), state.marked.len()), (vec!["/r/small"], 0));
    }
}
