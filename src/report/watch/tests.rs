//! A report's runs on a kernel that is made up: processes come and go and use files, and nothing sleeps.
#![allow(clippy::unwrap_used)]

mod series;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt as _;
use std::rc::Rc;
use std::sync::Arc;

use super::*;
use crate::cgroup::Cgroup;
use crate::figures::Figure;
use crate::files::Dev;
use crate::files::File;
use crate::files::Mounts;
use crate::files::Named;
use crate::plan::Plan;
use crate::report::child::Reaped;
use crate::sample::Counter;
use crate::sample::Counters;
use crate::sample::FileSample;
use crate::sample::Followed;
use crate::sample::Gone;
use crate::sample::Moment;
use crate::sample::RowSample;
use crate::sample::Sample;
use crate::sample::Source;
use crate::text::foreign::Foreign;
use crate::view::fixtures;

const SHELL: u32 = 100;
const CHILD: u32 = 101;
const OTHER: u32 = 7;

/// What happens between two readings.
#[derive(Debug, Clone)]
enum Step {
    /// A process does something to a file.
    Use(u32, Arc<File>, Vec<(Counter, u64)>),
    /// A process makes another one, which belongs to the run of the first.
    Fork(u32, u32),
    /// A child ends with this status.
    End(u32, i32),
    /// Somebody asks for an end.
    Ask(i32),
    /// The tables cannot be read any more.
    Break,
}

/// The kernel and the processes on it.
#[derive(Default)]
struct State {
    after: Duration,
    /// What happens during each wait.
    script: VecDeque<Vec<Step>>,
    next: u32,
    spawning: u32,
    runs: BTreeMap<u32, u32>,
    alive: BTreeSet<u32>,
    ended: VecDeque<(u32, i32)>,
    asked: Option<i32>,
    total: Counters,
    rows: Vec<RowSample>,
    files: Vec<FileSample>,
    followed: Followed,
    broken: bool,
}

impl State {
    fn step(&mut self, step: Step) {
        match step {
            Step::Use(tgid, file, counted) => {
                let row = fixtures::process(tgid, if tgid == OTHER { "other" } else { "sh" }, &counted);
                self.total.add_sparse(&row.counters);
                let process = row.process;
                self.files.push(FileSample {
                    tgid,
                    uid: 0,
                    cgroup: 1,
                    born: 1,
                    process,
                    file,
                    deleted: false,
                    counters: row.counters.clone(),
                });
                self.rows.push(row);
            }
            Step::Fork(parent, pid) => {
                self.alive.insert(pid);
                self.runs.extend(self.runs.get(&parent).copied().map(|run| (pid, run)));
            }
            Step::End(pid, status) => {
                self.alive.remove(&pid);
                self.ended.push_back((pid, status));
            }
            Step::Ask(signal) => self.asked = Some(signal),
            Step::Break => self.broken = true,
        }
    }
}

struct Kernel {
    state: Rc<RefCell<State>>,
    plan: Plan,
}

impl Source for Kernel {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        let mut state = self.state.borrow_mut();
        if state.broken {
            anyhow::bail!("the table is gone");
        }
        let mut out = fixtures::sample(Moment::from_nanos(9), state.after, &[]);
        out.total = state.total;
        (out.rows, out.files) = (std::mem::take(&mut state.rows), std::mem::take(&mut state.files));
        let run = state.followed.run;
        let ours = |tgid: &u32| state.runs.get(tgid) == Some(&run);
        let files: Vec<_> = out.files.iter().filter(|f| ours(&f.tgid)).cloned().collect();
        let rows: Vec<_> = out.rows.iter().filter(|r| ours(&r.tgid)).cloned().collect();
        state.followed.files = files;
        for row in rows {
            state.followed.counters.add_sparse(&row.counters);
            state.followed.processes.insert(row.tgid, row.process);
            state.followed.threads.see(row.tid);
        }
        out.followed = Some(state.followed.clone()).filter(|f| f.run != 0).map(Box::new);
        Ok(out)
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl Follow for Kernel {
    fn follow(&mut self, run: u32) {
        self.state.borrow_mut().followed = Followed::new(run);
    }

    fn spawning(&mut self, run: u32) {
        self.state.borrow_mut().spawning = run;
    }

    fn enter(&mut self, tgid: u32, run: u32) -> anyhow::Result<()> {
        self.state.borrow_mut().runs.insert(tgid, run);
        Ok(())
    }

    fn leave(&self, tgid: u32) -> anyhow::Result<bool> {
        Ok(self.state.borrow_mut().runs.remove(&tgid).is_some())
    }

    fn run_of(&self, tgid: u32) -> anyhow::Result<Option<u32>> {
        Ok(self.state.borrow().runs.get(&tgid).copied())
    }

    fn members(&self, run: u32) -> anyhow::Result<Vec<u32>> {
        let state = self.state.borrow();
        Ok(state.runs.iter().filter(|(_, r)| **r == run).map(|(pid, _)| *pid).collect())
    }

    fn gone(&self) -> anyhow::Result<Gone> {
        Ok(Gone::default())
    }
}

struct Machine {
    began: Instant,
    state: Rc<RefCell<State>>,
}

impl Processes for Machine {
    fn now(&self) -> Instant {
        self.began + self.state.borrow().after
    }

    fn start(&self, command: &[OsString], _: Option<&Identity>) -> io::Result<i32> {
        if command.first().is_some_and(|c| c == "missing") {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut state = self.state.borrow_mut();
        let pid = SHELL + 100 * std::mem::replace(&mut state.next, 0);
        let run = state.spawning;
        state.alive.insert(pid);
        state.runs.insert(pid, run);
        Ok(i32::try_from(pid).unwrap())
    }

    fn wait(&self, time: Duration, _: Option<i32>) -> io::Result<Event> {
        let mut state = self.state.borrow_mut();
        state.after += time;
        let Some(steps) = state.script.pop_front() else { return Err(io::Error::other("nothing comes")) };
        for step in steps {
            state.step(step);
        }
        Ok(match () {
            () if !state.ended.is_empty() => Event::Ended,
            () if state.asked.is_some() => Event::Asked,
            () => Event::Tick,
        })
    }

    fn asked(&self) -> io::Result<Option<i32>> {
        Ok(self.state.borrow().asked)
    }

    fn ended(&self) -> Option<i32> {
        self.state.borrow().ended.front().map(|(pid, _)| i32::try_from(*pid).unwrap())
    }

    fn reap(&self, child: i32) -> Option<Reaped> {
        let mut state = self.state.borrow_mut();
        let (pid, status) = state.ended.pop_front()?;
        state.runs.remove(&pid);
        let usage = Usage { user_s: Some(f64::from(pid)), ..Usage::zero() };
        Some(Reaped { pid: child, status, signal: None, usage })
    }

    fn is_alive(&self, pid: u32) -> bool {
        self.state.borrow().alive.contains(&pid)
    }

    fn usage(&self, pid: u32) -> Usage {
        Usage { user_s: Some(f64::from(pid)), ..Usage::zero() }
    }
}

/// Mounts only.
struct Shown(Mounts);

impl Names for Shown {
    fn user(&mut self, _: u32) -> Option<Rc<str>> {
        None
    }

    fn cgroup(&mut self, id: u64, _: u32) -> Rc<Cgroup> {
        let path = id.to_string();
        Rc::new(Cgroup { label: crate::cgroup::label(&path), path })
    }

    fn mounts(&mut self, _: Dev) -> &mut Mounts {
        &mut self.0
    }

    fn mounts_now(&mut self) -> &Mounts {
        &self.0
    }

    fn command_line(&mut self, _: u32) -> Option<Foreign> {
        None
    }
}

/// A machine with a file system, on which there are two files of 1000 and 500 pages.
struct World {
    dir: tempfile::TempDir,
    state: Rc<RefCell<State>>,
    files: [Arc<File>; 2],
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let page = crate::report::units::page();
        let file = |(name, pages): (&str, u64)| {
            let made = std::fs::File::create(dir.path().join(name)).unwrap();
            made.set_len(pages * page).unwrap();
            let (dev, inode) = (Dev { major: 4095, minor: 9 }, made.metadata().unwrap().ino());
            let name = format!("/{name}");
            Arc::new(File { dev, inode, generation: 0, block: None, name, named: Named::Whole })
        };
        let files = [("a", 1000), ("b", 500)].map(file);
        Self { dir, state: Rc::default(), files }
    }

    /// Does something with a watch; each wait takes the next of the script.
    fn watch<T>(&self, act: impl FnOnce(&mut Watch<'_>) -> T) -> T {
        let text = format!("1 1 4095:9 / {} rw - ext4 /dev/none rw", self.dir.path().display());
        let names = Box::new(Shown(Mounts::parse(&text)));
        let mut kernel = Kernel { state: self.state.clone(), plan: fixtures::plan(&[]) };
        let machine = Machine { began: Instant::now(), state: self.state.clone() };
        let mut watch = Watch::new(&mut kernel, &machine, names).ok().unwrap();
        act(&mut watch)
    }

    fn script(&self, steps: impl IntoIterator<Item = Vec<Step>>) {
        self.state.borrow_mut().script.extend(steps);
    }

    fn miss(&self, who: u32, file: usize, n: u64) -> Step {
        let bytes = (Counter::ReadBytes, n * crate::report::units::page());
        Step::Use(who, self.files[file].clone(), vec![(Counter::ReadMisses, n), bytes])
    }

    fn hit(&self, who: u32, file: usize, n: u64) -> Step {
        let bytes = (Counter::ReadBytes, n * crate::report::units::page());
        Step::Use(who, self.files[file].clone(), vec![(Counter::ReadHits, n), bytes])
    }
}

fn run(watch: &mut Watch<'_>, number: u32) -> Run {
    watch.command(&["sh".into()], number).ok().unwrap()
}

fn reads(run: &Run) -> (Option<u64>, Option<u64>) {
    (run.get(Figure::Hits), run.get(Figure::Misses))
}

#[test]
fn a_second_run_finds_what_the_first_and_others_brought_in() {
    let world = World::new();
    world.script([
        vec![world.miss(SHELL, 0, 1000), world.miss(OTHER, 1, 500)],
        vec![Step::Fork(SHELL, CHILD)],
        vec![world.hit(CHILD, 1, 500)],
        vec![Step::End(CHILD, 3)],
        vec![Step::End(SHELL, 0)],
        // The second run.
        vec![world.hit(SHELL, 0, 1000), world.hit(SHELL, 1, 500)],
        vec![Step::End(SHELL, 1)],
    ]);
    let (first, second) = world.watch(|watch| (run(watch, 1), run(watch, 2)));
    assert_eq!((reads(&first), reads(&second)), ((Some(500), Some(1000)), (Some(1500), Some(0))));
    assert_eq!((first.exit_status, second.exit_status), (Some(0), Some(1)));
    // Rows came and went: who did something is remembered, and what it used.
    let names = |run: &Run| run.processes.keys().copied().collect::<Vec<_>>();
    assert_eq!((names(&first), names(&second)), (vec![SHELL, CHILD], vec![SHELL]));
    assert_eq!((first.usage.user_s, second.usage.user_s), (Some(201.0), Some(100.0)));
    assert_eq!(first.system.misses_of_others, Some(500));
    assert_eq!((first.warm_pages, first.origin.others), (500, 500));
    assert_eq!(
        (second.warm_pages, &second.origin.runs[..], second.origin.others),
        (1500, &[(1, 1000)][..], 500)
    );
    assert_eq!(second.warmers[0].comm, Foreign::from("other"));
    let paths: Vec<_> = second.files.iter().map(|f| f.path.as_ref().unwrap().raw().into_owned()).collect();
    assert_eq!(paths, ["a", "b"].map(|name| format!("{}/{name}", world.dir.path().display())));
    // Five readings, and one at the end; the clock is the machine's.
    let tick = TICK.as_secs_f64();
    assert!((first.wall_s - 5.0 * tick).abs() < 1e-9, "{}", first.wall_s);
    let line: u64 = first.timeline.iter().map(|t| t.hits + t.misses).sum();
    assert_eq!((line, first.timeline.len()), (1500, 5));
    let findings = crate::report::findings::of(&[], &[first, second]);
    let warmed: Vec<_> =
        findings.iter().filter(|f| f.id.starts_with("warmed")).map(|f| (f.id, f.which())).collect();
    assert_eq!(warmed, [("warmed-by-earlier-run", "run 2".to_owned())]);
}

#[test]
fn who_is_left_behind_belongs_to_its_own_run() {
    let world = World::new();
    world.script([
        vec![Step::Fork(SHELL, CHILD), world.miss(CHILD, 0, 10)],
        vec![Step::End(SHELL, 0)],
        // In the second run the daemon of the first goes on, and ends.
        vec![world.miss(CHILD, 0, 30), world.hit(SHELL, 0, 5)],
        vec![Step::End(CHILD, 9)],
        vec![Step::End(SHELL, 0)],
    ]);
    let (first, second) = world.watch(|watch| {
        // The daemon is adopted: it is waited for in the second run.
        (run(watch, 1), run(watch, 2))
    });
    assert_eq!((&first.left_behind[..], first.usage.user_s), (&[CHILD][..], Some(201.0)));
    assert_eq!(reads(&second), (Some(5), Some(0)));
    assert_eq!((second.left_behind.len(), second.usage.user_s), (0, Some(100.0)));
    assert_eq!(second.system.misses_of_others, Some(30));
    assert_eq!(second.exit_status, Some(0));
}

#[test]
fn with_all_of_them_the_run_lasts_until_the_last_has_gone() {
    let world = World::new();
    world.script([
        vec![Step::Fork(SHELL, CHILD)],
        vec![Step::End(SHELL, 4)],
        vec![world.miss(CHILD, 1, 50)],
        vec![Step::End(CHILD, 0)],
    ]);
    let run = world.watch(|watch| {
        watch.wait_all = true;
        run(watch, 1)
    });
    assert_eq!((reads(&run), run.exit_status, run.left_behind.len()), ((Some(0), Some(50)), Some(4), 0));
}

#[test]
fn what_cannot_be_started_asked_or_read_is_no_run() {
    let world = World::new();
    let end = world.watch(|watch| watch.command(&["missing".into()], 1));
    assert!(matches!(end, Err(End::NotStarted(NotStarted(e))) if e.kind() == io::ErrorKind::NotFound));
    world.script([vec![Step::Break]]);
    let end = world.watch(|watch| watch.command(&["sh".into()], 1));
    assert!(matches!(end, Err(End::Failed(_))));
    let world = World::new();
    world.state.borrow_mut().step(Step::Ask(15));
    let end = world.watch(|watch| watch.command(&["sh".into()], 1));
    assert!(matches!(end, Err(End::Asked(15))));
}

#[test]
fn what_prepares_a_run_is_no_part_of_it_and_remembered() {
    let world = World::new();
    world.script([
        vec![world.miss(SHELL, 0, 100)],
        vec![Step::End(SHELL, 0)],
        vec![world.hit(SHELL, 0, 100)],
        vec![Step::End(SHELL, 0)],
    ]);
    let (status, run) = world.watch(|watch| (watch.aside(&["sh".into()]).ok(), run(watch, 1)));
    assert_eq!((status, reads(&run)), (Some(0), (Some(100), Some(0))));
    assert_eq!((run.warm_pages, run.origin.others, run.warmers.len()), (100, 100, 1));
}

#[test]
fn a_process_that_runs_is_watched_for_a_time() {
    let world = World::new();
    let me = std::process::id();
    world.state.borrow_mut().alive.insert(me);
    world.script([vec![world.miss(me, 0, 7)], vec![world.miss(OTHER, 1, 1)], vec![world.hit(me, 0, 7)]]);
    let run = world.watch(|watch| watch.process(me, 3 * TICK).ok().unwrap());
    assert_eq!((reads(&run), run.exit_status), ((Some(7), Some(7)), None));
    assert!((run.wall_s - 3.0 * TICK.as_secs_f64()).abs() < 1e-9);
}
