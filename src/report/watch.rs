//! One run: the command is started, followed and waited for; or a process that runs already is watched.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use super::accounts;
use super::child;
use super::child::Event;
use super::child::Identity;
use super::child::Signals;
use super::data::Residency;
use super::data::Run;
use super::data::Usage;
use super::gather;
use super::gather::Gather;
use super::origins::Origins;
use super::residency;
use crate::exit::Failure;
use crate::files::Mounts;
use crate::sample::Moment;
use crate::sample::Source as _;
use crate::session::Session;

/// How often the tables are read at first; the longer a run lasts, the rarer.
const TICK: Duration = Duration::from_millis(100);

/// What is watched, and what is known from before.
pub(super) struct Watch<'a> {
    pub(super) session: &'a mut Session,
    pub(super) signals: &'a Signals,
    pub(super) who: Option<Identity>,
    pub(super) wait_all: bool,
    pub(super) origins: Origins,
    /// Files whose residency is asked for before a run.
    pub(super) paths: Vec<PathBuf>,
    /// Whether something was done that may have emptied the caches of names and inodes.
    pub(super) emptied: bool,
    /// Files whose residency was not asked for, since that would have brought their names and inodes into caches.
    pub(super) unasked: usize,
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

impl Watch<'_> {
    /// What is cached of the files that may matter.
    fn residency(&mut self) -> HashMap<PathBuf, Residency> {
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
        let (mounts, round) = (Mounts::here(), residency::Round::new());
        let fs = |p: &Path| crate::files::mount_of(p, &mounts).ok().map(|m| m.kind.clone());
        let one =
            |p: &PathBuf| gather::may_open(fs(p).as_deref()).then(|| round.ask(p).ok().flatten()).flatten();
        self.paths.iter().filter_map(|p| Some((p.clone(), one(p)?))).collect()
    }

    /// Reads the tables, so that what happened up to now belongs to nobody's run.
    pub(super) fn look(&mut self) -> anyhow::Result<()> {
        let sample = self.session.sample()?;
        self.origins.note(&sample);
        Ok(())
    }

    /// Runs the command once.
    pub(super) fn command(&mut self, command: &[OsString], number: u32) -> Result<Run, End> {
        let known = self.residency();
        // Whoever wants an end now need not wait for a run.
        if let Some(signal) = self.signals.asked()? {
            return Err(End::Asked(signal));
        }
        self.look()?;
        self.session.follow(number);
        let plan = self.session.plan().clone();
        let before = self.session.sample()?;
        let time = jiff::Timestamp::now();
        let (start, began) = (Moment::now(), Instant::now());
        let mut gather = Gather::new(plan, before, start);
        self.session.spawning(number);
        let started = child::start(command, self.who.as_ref(), self.signals);
        self.session.spawning(0);
        let pid = started.map_err(|e| End::NotStarted(NotStarted(e)))?;
        let mut usage = Usage::zero();
        let mut ended: Option<(i32, Instant)> = None;
        let mut signal = None;
        let left = loop {
            let event = self.signals.wait(pause(began.elapsed()), ended.is_none().then_some(pid))?;
            let mut alone = false;
            if event == Event::Ended {
                while let Some(child) = child::ended() {
                    // Whom a run before left behind is ours to wait for as well, and none of this run's business. Which
                    // run it was of is known until it has been waited for.
                    let of_run =
                        |pid: i32| u32::try_from(pid).map_or(Ok(None), |pid| self.session.run_of(pid));
                    let ours = child == pid || of_run(child)? == Some(number);
                    let Some(reaped) = child::reap(child) else { break };
                    if ours {
                        usage = usage.and(reaped.usage);
                    }
                    if reaped.pid == pid {
                        ended = Some((reaped.status, Instant::now()));
                        signal = reaped.signal;
                    }
                }
                alone = true;
            }
            if let (Some(_), false) = (ended, self.wait_all && event != Event::Asked) {
                break self.living(number)?;
            }
            // Somebody else may have adopted, and waited for, the last of them.
            if ended.is_some() && (alone || self.wait_all) {
                let left = self.living(number)?;
                if left.is_empty() {
                    ended = ended.map(|(status, _)| (status, Instant::now()));
                    break left;
                }
            }
            let sample = self.session.sample()?;
            gather.sample(&sample, &mut self.origins);
        };
        let (status, end) = ended.unwrap_or((1, Instant::now()));
        let last = self.session.sample()?;
        gather.sample(&last, &mut self.origins);
        let mut run = gather.finish(&last, &Mounts::here(), &known, &self.origins);
        run.usage = left.iter().fold(usage, |sum, pid| sum.and(Usage::of(*pid)));
        super::unseen::weigh(&mut run, self.session.plan());
        run.number = number;
        run.time = crate::view::utc(time);
        (run.exit_status, run.signal) = (Some(status), signal);
        run.wall_s = end.duration_since(began).as_secs_f64();
        run.left_behind = left;
        self.remember(&run);
        Ok(run)
    }

    /// Runs a command that does not count, to its end: its status. What it brings into the cache is remembered.
    pub(super) fn aside(&mut self, command: &[OsString]) -> Result<i32, End> {
        // As whoever started us: what prepares a run is often root's business, such as emptying caches.
        let pid = child::start(command, None, self.signals).map_err(|e| End::NotStarted(NotStarted(e)))?;
        loop {
            self.signals.wait(TICK, Some(pid))?;
            self.look()?;
            while let Some(reaped) = child::ended().and_then(child::reap) {
                if reaped.pid == pid {
                    return Ok(reaped.status);
                }
            }
        }
    }

    /// Processes of the run that still run.
    fn living(&self, number: u32) -> anyhow::Result<Vec<u32>> {
        let mut members = self.session.members(number)?;
        members.retain(|pid| is_alive(*pid));
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
        self.session.follow(number);
        let plan = self.session.plan().clone();
        let family = family(pid);
        let before = self.session.sample()?;
        let at = jiff::Timestamp::now();
        let (start, began) = (Moment::now(), Instant::now());
        let mut gather = Gather::new(plan, before, start);
        let used = accounts::begin(self.session, &family, number)?;
        let mut over = false;
        while !over {
            let left = time.saturating_sub(began.elapsed());
            let event = self.signals.wait(left.min(pause(began.elapsed())), None)?;
            over = event == Event::Asked || began.elapsed() >= time || !is_alive(pid);
            let sample = self.session.sample()?;
            gather.sample(&sample, &mut self.origins);
        }
        let wall = began.elapsed().as_secs_f64();
        let last = self.session.sample()?;
        let now = accounts::end(self.session, number)?;
        gather.sample(&last, &mut self.origins);
        let known = HashMap::new();
        let mut run = gather.finish(&last, &Mounts::here(), &known, &self.origins);
        run.usage = now.map(|now| now.since(used)).unwrap_or_default();
        super::unseen::weigh(&mut run, self.session.plan());
        (run.number, run.time, run.wall_s) = (number, crate::view::utc(at), wall);
        Ok(run)
    }
}

/// Whether a process is there and no zombie.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, t)| t.trim_start().chars().next());
    state.is_some_and(|s| s != 'Z' && s != 'X')
}

/// A process and its descendants.
fn family(pid: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent =
            stat.rsplit_once(')').and_then(|(_, t)| t.split_whitespace().nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(member) = family.get(at).copied() {
        family.extend(parents.iter().filter(|(_, parent)| *parent == member).map(|(child, _)| *child));
        at += 1;
    }
    family
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_family_has_all_generations() {
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while family(child.id()).len() < 2 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let all = family(child.id());
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all.iter().all(|p| is_alive(*p)));
        for pid in all {
            // SAFETY: no memory is involved; both are children of this test.
            unsafe { libc::kill(i32::try_from(pid).unwrap(), libc::SIGKILL) };
        }
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }
}
