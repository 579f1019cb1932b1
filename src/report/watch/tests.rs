//! A report's runs on a kernel that is made up: processes come and go and use files, and nothing sleeps.
#![allow(clippy::unwrap_used)]

mod runs;
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
use crate::report::data::Usage;
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
    /// Time passes in which nothing happens.
    Pass(Duration),
    /// A process is freed that has used so many seconds.
    Used(u64),
    /// One that has ended, of this run, is not freed yet.
    Linger(u32, u32),
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
    /// How long before it was noticed the shell ended.
    noted: Option<Duration>,
    total: Counters,
    rows: Vec<RowSample>,
    files: Vec<FileSample>,
    followed: Followed,
    broken: bool,
    /// How often it is to be relieved, and when it was.
    relief: Option<Duration>,
    relieved: Vec<Duration>,
    raw: crate::blame::Raw,
    gone: Gone,
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
            Step::Pass(time) => self.after += time,
            Step::Used(seconds) => self.gone.ran_ns += seconds * 1_000_000_000,
            Step::Linger(pid, run) => drop(self.runs.insert(pid, run)),
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
        state.followed.processes.clear();
        Ok(out)
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn relief(&self) -> Option<Duration> {
        self.state.borrow().relief
    }

    fn relieve(&mut self) -> anyhow::Result<()> {
        let mut state = self.state.borrow_mut();
        let now = state.after;
        state.relieved.push(now);
        Ok(())
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
        Ok(self.state.borrow().gone)
    }

    fn blame(&mut self) -> anyhow::Result<crate::blame::Raw> {
        Ok(self.state.borrow().raw.clone())
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

    fn end_of(&self, _: i32) -> Option<Instant> {
        self.state.borrow().noted.map(|early| self.now() - early)
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
