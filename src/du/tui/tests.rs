#![allow(clippy::unwrap_used)]

use super::*;
use crate::du::totals::Totals;

/// A tree that needs no files; what is evicted is gone.
pub(in crate::du::tui) struct Fake {
    pub(in crate::du::tui) evicted: Vec<PathBuf>,
    pub(in crate::du::tui) begun: Vec<Job>,
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

    fn begin(&mut self, job: Job) {
        if let Job::Act(_, paths) = &job {
            self.evicted.extend_from_slice(paths);
        }
        self.begun.push(job);
    }

    fn scanned(&mut self, _: Walked) {}
}

pub(in crate::du::tui) fn started(sort: Sort) -> (State, Fake) {
    let mut fake = Fake { evicted: Vec::new(), begun: Vec::new() };
    let mut state = State::new("/r".into(), sort);
    state.listed(fake.list(Path::new("/r")));
    (state, fake)
}

pub(in crate::du::tui) fn act(state: &mut State, fake: &mut Fake, actions: &[Action]) {
    for action in actions {
        if let Some(effect) = state.update(*action) {
            perform(state, effect, fake);
        }
        done(state, fake);
    }
}

/// What was begun comes to its end.
fn done(state: &mut State, fake: &mut Fake) {
    for job in std::mem::take(&mut fake.begun) {
        let outcome = match job {
            Job::Scan => Outcome::Scanned(Walked::default()),
            Job::Act(deed, paths) => Outcome::Acted(format!("{deed:?} {}", paths.len()), Walked::default()),
            Job::Map(path) => Outcome::Mapped(format!("{}\n##..\nruns", path.display())),
        };
        finish(state, outcome, fake);
    }
}

fn names(state: &State) -> Vec<&str> {
    state.shown.iter().map(|i| state.listing.rows[*i].path.to_str().unwrap()).collect()
}

#[test]
fn into_a_directory_and_back_to_where_one_was() {
    let (mut state, mut fake) = started(Sort::Size);
    assert_eq!(names(&state), ["/r/small", "/r/big", "/r/file"]);
    act(&mut state, &mut fake, &[Action::Move(1), Action::Enter]);
    assert_eq!((state.at.to_str(), names(&state)), (Some("/r/big"), vec!["/r/big/one"]));
    act(&mut state, &mut fake, &[Action::Enter]);
    assert!(matches!(state.mode(), Mode::Map(lines, 0) if lines[0] == "/r/big/one"), "a file is a map");
    act(&mut state, &mut fake, &[Action::Move(1), Action::Move(9), Action::No]);
    assert_eq!((state.at.to_str(), state.mode()), (Some("/r/big"), &Mode::Browse));
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
    act(&mut state, &mut fake, &[Action::Act(Deed::Evict), Action::No]);
    assert!(fake.evicted.is_empty());
    assert_eq!(state.message, "nothing was done");
    act(&mut state, &mut fake, &[Action::Mark, Action::Mark, Action::Act(Deed::Evict), Action::Yes]);
    assert_eq!(fake.evicted, [PathBuf::from("/r/big"), PathBuf::from("/r/file")]);
    assert_eq!((names(&state), state.marked.len()), (vec!["/r/small"], 0));
}

#[test]
fn a_key_again_turns_the_order_round() {
    let (mut state, mut fake) = started(Sort::Cached);
    act(&mut state, &mut fake, &[Action::Sort(Sort::Size), Action::Sort(Sort::Size)]);
    assert_eq!(names(&state), ["/r/file", "/r/big", "/r/small"]);
    state.listing.rows[0].totals.unknown = 1;
    act(&mut state, &mut fake, &[Action::Sort(Sort::Size), Action::Sort(Sort::Size)]);
    assert_eq!(names(&state), ["/r/big", "/r/small", "/r/file"], "what is not known is last");
    act(&mut state, &mut fake, &[Action::Sort(Sort::Name)]);
    assert_eq!((names(&state)[0], state.reverse), ("/r/big", false));
}

#[test]
fn a_filter_narrows_what_is_shown_and_acted_on() {
    let (mut state, mut fake) = started(Sort::Cached);
    act(&mut state, &mut fake, &[Action::Filter, Action::Type('I'), Action::Type('x'), Action::Erase]);
    assert_eq!((names(&state), state.mode()), (vec!["/r/big", "/r/file"], &Mode::Filter));
    act(&mut state, &mut fake, &[Action::Type('l'), Action::Yes, Action::Act(Deed::Load), Action::Yes]);
    assert_eq!((fake.evicted.clone(), state.filter.as_str()), (vec![PathBuf::from("/r/file")], "Il"));
    assert_eq!(state.message, "Load 1");
    // One thing after the other is ended.
    assert_eq!(state.update(Action::Leave), None);
    assert_eq!((names(&state).len(), state.filter.as_str()), (2, ""));
    assert_eq!(state.update(Action::Leave), Some(Effect::Quit));
    act(&mut state, &mut fake, &[Action::Filter, Action::Type('?'), Action::Enter, Action::Enter]);
    assert_eq!((state.shown.len(), state.at.to_str()), (0, Some("/r")));
}

#[test]
fn one_job_at_a_time_while_keys_are_heeded() {
    let (mut state, mut fake) = started(Sort::Cached);
    let effect = state.update(Action::Rescan).unwrap();
    assert!(perform(&mut state, effect, &mut fake));
    assert_eq!(state.update(Action::Map), None);
    assert_eq!(state.update(Action::Rescan), None);
    assert_eq!(state.message, "not yet: looking at everything");
    state.update(Action::Move(2));
    done(&mut state, &mut fake);
    assert_eq!((state.selected, state.busy), (2, None), "the cursor stays where it went meanwhile");
}
