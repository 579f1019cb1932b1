//! One run: the command is started, followed and waited for; or a process that runs already is watched.

mod command;

use std::ffi::OsStr;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use super::accounts;
use super::asleep::Still;
use super::beforehand::Beforehand;
use super::child::Event;
use super::child::Identity;
use super::data::Run;
use super::ends::Looks;
use super::gather::Gather;
use super::larger::Larger;
use super::machine::Machine;
use super::origins::Origins;
use super::processes::Processes;
use super::processes::family;
use super::pushed::Bills;
use super::residency;
use super::trial::Trial;
use crate::exit::Failure;
use crate::live::Live;
use crate::live::Relief;
use crate::names::Names;
use crate::sample::Follow;
use crate::sample::Sample;
use crate::whatif::Prediction;
use crate::whatif::start::STEP;

/// How often the tables are read at first; the longer a run lasts, the rarer.
const TICK: Duration = Duration::from_millis(100);

/// What is watched, and what is known from before.
pub(super) struct Watch<'a> {
    live: Live<'a, dyn Follow + 'a>,
    pub(super) processes: &'a dyn Processes,
    names: Box<dyn Names>,
    pub(super) who: Option<Identity>,
    pub(super) wait_all: bool,
    origins: Origins,
    /// Files whose residency is asked for before a run.
    pub(super) paths: Vec<PathBuf>,
    /// Whether something was done that may have emptied the caches of names and inodes.
    pub(super) emptied: bool,
    /// Files whose residency was not asked for, since that would have brought their names and inodes into caches.
    pub(super) unasked: usize,
    /// Where who pushes pages out is asked: whether it is seen that they come back.
    pub(super) comes: Option<super::pushed::Sees>,
    /// Why a process was watched for less time than was asked for.
    pub(super) early: Option<&'static str>,
    /// A setting of read-ahead that is tried.
    pub(super) trial: Option<Trial>,
    /// Where somebody asked what another size of the cache would bring.
    pub(super) larger: Option<Larger>,
    /// The machine when the run before had ended.
    machine: Option<Machine>,
    /// Some run has left processes behind.
    left: bool,
    /// Runs of which the kernel may still have processes that have ended.
    unfreed: Vec<u32>,
}

/// The command could not be started.
pub(super) struct NotStarted(pub(super) io::Error);

/// Why there is no run.
pub(super) enum End {
    NotStarted(NotStarted),
    Failed(Failure),
    /// This signal came before there was anything to report.
    Asked(i32),
}

impl<E: Into<anyhow::Error>> From<E> for End {
    fn from(error: E) -> Self {
        End::Failed(Failure::from(error.into()))
    }
}

/// How long until the next reading, after a run has lasted so long.
fn pause(lasted: Duration) -> Duration {
    (lasted / 100).clamp(TICK, Duration::from_secs(2))
}

impl<'a> Watch<'a> {
    /// Reads the first sample. What has been counted so far belongs to nobody's run.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn new(
        source: &'a mut (dyn Follow + 'a),
        processes: &'a dyn Processes,
        names: Box<dyn Names>,
    ) -> anyhow::Result<Self> {
        let live = Live::new(source)?;
        let mut origins = Origins::default();
        origins.note(live.now());
        let (who, paths) = (None, Vec::new());
        Ok(Self {
            live,
            processes,
            names,
            who,
            wait_all: false,
            origins,
            paths,
            emptied: false,
            unasked: 0,
            comes: None,
            early: None,
            trial: None,
            larger: None,
            machine: None,
            left: false,
            unfreed: Vec::new(),
        })
    }

    /// What is cached of the files that may matter.
    fn residency(&mut self) -> Beforehand {
        // Asking opens the file. If its name is not cached that reads directories and inodes: just what the caches have
        // been emptied of.
        let mut unasked = 0;
        self.paths.retain(|path| match residency::is_name_cached(path) {
            Ok(cached) => {
                unasked += usize::from(!cached);
                cached
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => true,
            Err(_) => {
                unasked += usize::from(self.emptied);
                !self.emptied
            }
        });
        self.unasked += unasked;
        let (mounts, round) = (self.names.mounts_now(), residency::Round::new());
        let mut known = Beforehand::default();
        for path in &self.paths {
            let Ok(mount) = crate::files::mount_of(path, mounts) else { continue };
            if residency::may_open(Some(&mount.kind)) {
                known.note(path, mount.dev, || round.ask(path).ok().flatten());
            }
        }
        known
    }

    /// Reads the tables, so that what happened up to now belongs to nobody's run.
    pub(super) fn look(&mut self) -> anyhow::Result<()> {
        self.live.tick()?;
        self.origins.note(self.live.now());
        Ok(())
    }

    /// Waits as [`Processes::wait`] does. Meanwhile touches are fetched, before there is no room for more, and the
    /// source is relieved; `of`: the process that says where the run is.
    fn wait(&mut self, time: Duration, child: Option<i32>, of: Option<u32>) -> anyhow::Result<Event> {
        let began = self.processes.now();
        let until = began + time;
        let mut relief = Relief::new(self.live.source(), began);
        loop {
            let now = self.processes.now();
            let due = relief.due(until);
            let step = self.larger.is_some().then(|| now + STEP);
            let next = due.into_iter().chain(step).fold(until, Instant::min);
            let event = self.processes.wait(next.saturating_duration_since(now), child)?;
            if let Some(larger) = &mut self.larger {
                let alive = of.filter(|pid| self.processes.is_alive(*pid));
                larger.fetch(self.live.source(), alive)?;
            }
            if event != Event::Tick || next >= until {
                return Ok(event);
            }
            if due == Some(next) {
                self.live.source().relieve()?;
                relief.done(self.processes.now());
            }
        }
    }

    /// Reads the tables for a run. `over`: for the last time.
    fn read(&mut self, gather: &mut Gather, over: bool) -> anyhow::Result<()> {
        self.live.tick()?;
        gather.sample(self.live.now(), &mut self.origins);
        if let Some(larger) = &mut self.larger {
            // Whatever was counted by this reading has been sent.
            larger.fetch(self.live.source(), None)?;
            larger.sample(self.live.now(), over);
        }
        Ok(())
    }

    /// What another size of the cache would have brought, where somebody asked.
    fn what_if(&mut self, run: &Run) -> Option<Prediction> {
        let plan = self.live.plan().clone();
        let larger = self.larger.as_mut()?;
        Some(larger.finish(self.live.source(), run, &plan))
    }

    /// Asks what is cached of the files of a run that is over: its last sample. What happens meanwhile is no part of it.
    fn ask(&mut self, gather: &mut Gather, known: &Beforehand) -> anyhow::Result<Arc<Sample>> {
        let last = Arc::clone(self.live.now());
        let (live, origins) = (&mut self.live, &mut self.origins);
        gather.ask(self.names.mounts_now(), known, || {
            live.tick()?;
            origins.note(live.now());
            Ok(Arc::clone(live.now()))
        })?;
        Ok(last)
    }

    /// Runs a command that does not count, to its end: its status. What it brings into the cache is remembered.
    pub(super) fn aside(&mut self, command: &[OsString]) -> Result<i32, End> {
        // As whoever started us: what prepares a run is often root's business, such as emptying caches.
        let pid = self.processes.start(command, None).map_err(|e| End::NotStarted(NotStarted(e)))?;
        loop {
            self.processes.wait(TICK, Some(pid))?;
            self.look()?;
            while let Some(reaped) = self.processes.ended().and_then(|child| self.processes.reap(child)) {
                if reaped.pid == pid {
                    return Ok(reaped.status);
                }
            }
        }
    }

    /// Looks at what the processes of a run have open, if it is time.
    fn look_at(&mut self, number: u32, after: Duration, looks: &mut Looks) -> anyhow::Result<()> {
        if looks.due(after) {
            let ours = self.living(number)?;
            looks.add(self.processes.ends(&ours, self.names.mounts_now()));
        }
        Ok(())
    }

    /// Hands on which requests were made.
    fn hear(&mut self) -> anyhow::Result<()> {
        let Some(trial) = &mut self.trial else { return Ok(()) };
        let (requests, lost) = self.live.source().requests()?;
        trial.note(&requests, lost);
        Ok(())
    }

    fn since(&self, began: Instant) -> Duration {
        self.processes.now().saturating_duration_since(began)
    }

    /// Processes of the run that still run.
    fn living(&mut self, number: u32) -> anyhow::Result<Vec<u32>> {
        let mut members = self.live.source().members(number)?;
        members.retain(|pid| self.processes.is_alive(*pid));
        members.sort_unstable();
        Ok(members)
    }

    /// Before the next run, the residency of this one's files is asked for.
    fn remember(&mut self, run: &Run) {
        for file in run.files.iter().take(20) {
            let path = file.path.as_ref().filter(|p| p.bytes().starts_with(b"/"));
            let path = path.map(|p| PathBuf::from(OsStr::from_bytes(p.bytes())));
            self.paths.extend(path.filter(|p| !self.paths.contains(p)));
        }
    }

    /// Watches a process that runs already, and its descendants, for a time or to its end.
    pub(super) fn process(&mut self, pid: u32, time: Duration) -> Result<Run, End> {
        let number = 1;
        self.live.source().follow(number);
        let family = family(pid);
        self.live.tick()?;
        let (at, began) = (self.live.now().time, self.processes.now());
        let mut gather = Gather::new(self.live.now().clone());
        gather.goes_on = true;
        let mut bills = Bills::begin(self.comes, self.live.source())?;
        let used = accounts::begin(self.live.source(), &family, number)?;
        let (machine, limits) = (self.processes.machine(Some(pid)), self.processes.read_limits(Some(pid)));
        let slept = self.processes.sleepers(&family);
        if let Some(larger) = &mut self.larger {
            larger.begin(self.live.source(), Some(pid))?;
        }
        let (mut over, mut looks) = (false, Looks::default());
        while !over {
            let left = time.saturating_sub(self.since(began));
            let event = self.wait(left.min(pause(self.since(began))), None, Some(pid))?;
            let done = self.since(began) >= time;
            over = done || event == Event::Asked || !self.processes.is_alive(pid);
            self.early = (over && !done).then_some(match event {
                Event::Asked => "interrupted before the time was over",
                _ => "the process ended before the time was over",
            });
            self.read(&mut gather, false)?;
            bills.look(self.since(began), self.live.source(), &mut *self.names)?;
            self.look_at(number, self.since(began), &mut looks)?;
        }
        let wall = self.since(began).as_secs_f64();
        let blame = bills.end(number, self.live.source(), &mut *self.names)?;
        // Of a process that has gone, its cgroup is not known any more.
        let machine = self.processes.machine(Some(pid)).since(&machine);
        self.read(&mut gather, true)?;
        let still = slept.and_then(|then| then.still(self.processes.sleepers(&family).as_ref(), &family));
        let now = accounts::end(self.live.source(), number)?;
        let known = Beforehand::default();
        let last = self.ask(&mut gather, &known)?;
        let mut run = gather.finish(&last, self.names.mounts_now(), &known, &self.origins);
        run.usage = now.map(|now| now.since(used)).unwrap_or_default();
        super::unseen::weigh(&mut run, self.live.plan());
        (run.number, run.time, run.wall_s, run.machine) = (number, crate::view::utc(at), wall, machine);
        (run.ends, run.blame, run.read_limits) = (looks.seen(), blame, limits);
        run.what_if = self.what_if(&run);
        match still {
            Some(Still::Asleep(asleep)) => run.asleep = Some(asleep),
            Some(Still::Hung(hung)) => run.hung = Some(hung),
            None => {}
        }
        Ok(run)
    }
}

#[cfg(test)]
mod tests;
