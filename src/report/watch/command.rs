//! A command from its start to its end.

use std::ffi::OsString;
use std::time::Instant;

use super::End;
use super::NotStarted;
use super::TICK;
use super::Watch;
use super::pause;
use crate::report::accounts;
use crate::report::child::Event;
use crate::report::data::Run;
use crate::report::data::Usage;
use crate::report::ends::Looks;
use crate::report::gather::Gather;
use crate::report::pushed::Bills;

/// A run that goes on.
struct Going {
    number: u32,
    /// The process that was started.
    pid: i32,
    began: Instant,
    gather: Gather,
    bills: Bills,
    looks: Looks,
}

/// How it ended.
struct Over {
    /// The status of the process that was started, and when it ended.
    ended: Option<(i32, Instant)>,
    signal: Option<i32>,
    /// What those used that were waited for.
    usage: Usage,
    /// Those of the run that go on.
    left: Vec<u32>,
}

impl Watch<'_> {
    /// Runs the command once.
    pub(in crate::report) fn command(&mut self, command: &[OsString], number: u32) -> Result<Run, End> {
        let known = self.residency();
        // Whoever wants an end now need not wait for a run.
        if let Some(signal) = self.processes.asked()? {
            return Err(End::Asked(signal));
        }
        self.look()?;
        let machine = self.processes.machine(None);
        self.live.source().follow(number);
        self.live.tick()?;
        let time = self.live.now().time;
        let mut gather = Gather::new(self.live.now().clone());
        let bills = Bills::begin(self.comes, self.live.source())?;
        gather.every = self.trial.is_some();
        if let Some(larger) = &mut self.larger {
            larger.begin(self.live.source(), None)?;
        }
        let clean = self.are_freed();
        self.unfreed.push(number);
        let gone = accounts::of_all_gone(self.live.source())?;
        self.live.source().spawning(number);
        // What was read until now is no time of the command's.
        let began = self.processes.now();
        let started = self.processes.start(command, self.who.as_ref());
        self.live.source().spawning(0);
        let pid = started.map_err(|e| End::NotStarted(NotStarted(e)))?;
        let mut going = Going { number, pid, began, gather, bills, looks: Looks::default() };
        let Over { ended, signal, mut usage, left } = self.until_over(&mut going)?;
        let Going { mut gather, bills, looks, .. } = going;
        let (status, end) = ended.unwrap_or((1, self.processes.now()));
        let blame = bills.end(number, self.live.source(), &mut *self.names)?;
        // Before the tables: what these have is at least what the account of those who go on has.
        usage = left.iter().fold(usage, |sum, pid| sum.and(self.processes.usage(*pid)));
        self.read(&mut gather, true)?;
        self.hear()?;
        let last = self.ask(&mut gather, &known)?;
        gather.goes_on = !left.is_empty();
        let mut run = gather.finish(&last, self.names.mounts_now(), &known, &self.origins);
        // Whom this run or one before has left behind may go at any time, waited for by somebody.
        self.left |= !left.is_empty();
        if clean && !self.left {
            let gone = accounts::of_all_gone(self.live.source())?.since(gone);
            (usage, run.unwaited) = usage.or_of_gone(gone);
        }
        run.usage = usage;
        crate::report::unseen::weigh(&mut run, self.live.plan());
        (run.number, run.blame) = (number, blame);
        run.time = crate::view::utc(time);
        (run.exit_status, run.signal) = (Some(status), signal);
        run.wall_s = end.duration_since(began).as_secs_f64();
        (run.left_behind, run.ends) = (left, looks.seen());
        let now = self.processes.machine(None);
        run.machine = now.since(&machine);
        run.read_limits = self.processes.read_limits(None);
        run.what_if = self.what_if(&run);
        run.machine_before = self.machine.map(|then| machine.since(&then));
        self.machine = Some(now);
        self.remember(&run);
        Ok(run)
    }

    /// Whether the kernel has freed all of the runs before: whom it has not would count in the next one.
    fn are_freed(&mut self) -> bool {
        let mut unfreed = std::mem::take(&mut self.unfreed);
        let source = self.live.source();
        unfreed.retain(|run| !source.members(*run).is_ok_and(|members| members.is_empty()));
        self.unfreed = unfreed;
        self.unfreed.is_empty()
    }

    /// Follows a run until the process that was started has ended, and the others, too, where they are waited for.
    fn until_over(&mut self, run: &mut Going) -> Result<Over, End> {
        let mut over = Over { ended: None, signal: None, usage: Usage::zero(), left: Vec::new() };
        loop {
            let pause = if self.trial.is_some() { TICK } else { pause(self.since(run.began)) };
            let child = over.ended.is_none().then_some(run.pid);
            let event = self.wait(pause, child, u32::try_from(run.pid).ok())?;
            if event == Event::Ended {
                self.reap(run, &mut over)?;
            }
            if over.ended.is_some() && (!self.wait_all || event == Event::Asked) {
                over.left = self.living(run.number)?;
                return Ok(over);
            }
            // Somebody else may have adopted, and waited for, the last of them.
            if over.ended.is_some() && self.living(run.number)?.is_empty() {
                over.ended = over.ended.map(|(status, _)| (status, self.processes.now()));
                return Ok(over);
            }
            self.read(&mut run.gather, false)?;
            run.bills.look(self.since(run.began), self.live.source(), &mut *self.names)?;
            self.hear()?;
            self.look_at(run.number, self.since(run.began), &mut run.looks)?;
        }
    }

    /// Waits for those that have ended.
    fn reap(&mut self, run: &Going, over: &mut Over) -> Result<(), End> {
        while let Some(child) = self.processes.ended() {
            // Whom a run before left behind is ours to wait for as well, and none of this run's business. Which
            // run it was of is known until it has been waited for.
            let source = self.live.source();
            let of_run = |pid: i32| u32::try_from(pid).map_or(Ok(None), |pid| source.run_of(pid));
            let ours = child == run.pid || of_run(child)? == Some(run.number);
            let Some(reaped) = self.processes.reap(child) else { break };
            if ours {
                over.usage = over.usage.and(reaped.usage);
            }
            if reaped.pid == run.pid {
                let end = self.processes.end_of(run.pid).unwrap_or_else(|| self.processes.now());
                over.ended = Some((reaped.status, end));
                over.signal = reaped.signal;
            }
        }
        Ok(())
    }
}
