//! Where the time of a run went.

use super::data::Run;
use super::data::Waits;
use super::faults;

/// Seconds, all threads added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Parts {
    /// Waiting for data: reads, page faults, `execve`.
    pub data_s: Option<f64>,
    /// Waiting in page faults for no data of files: memory that had been swapped out, a lock.
    pub faults_s: Option<f64>,
    /// Waiting for metadata: `open`, look-ups, directories.
    pub metadata_s: Option<f64>,
    /// Work of the file system on names that the dentry cache did not have, without waiting.
    pub lookups_s: Option<f64>,
    /// Waiting in writes, `fsync` and `close`.
    pub writing_s: Option<f64>,
    /// Ready to run without a processor.
    pub queue_s: Option<f64>,
    /// The rest of the processor time.
    pub cpu_s: Option<f64>,
    /// Waiting for pipes, sockets, timers, locks, asynchronous I/O, while nothing else was done. Where threads waited at the
    /// same time, the least that it can be. `None` where that is not known.
    pub others_s: Option<f64>,
    /// What is left of the wall time: what was not seen, or waited for at the same time. `None` where threads overlap.
    pub unexplained_s: Option<f64>,
}

/// One of the [`Parts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Waiting for data.
    Data,
    /// Waiting in page faults for something else.
    Faults,
    /// Waiting for metadata.
    Metadata,
    /// Work on names.
    Lookups,
    /// Waiting to write.
    Writing,
    /// Waiting for a processor.
    Queue,
    /// Other processor time.
    Cpu,
    /// Waiting for others.
    Others,
    /// The rest of the wall time.
    Unexplained,
}

/// The parts in the order of views, and what they are called.
pub const PARTS: &[(Part, &str)] = &[
    (Part::Data, "waiting for data"),
    (Part::Faults, "faults without data"),
    (Part::Metadata, "waiting for metadata"),
    (Part::Lookups, "dentry/inode look-ups"),
    (Part::Writing, "waiting to write"),
    (Part::Queue, "waiting for a CPU"),
    (Part::Cpu, "other CPU"),
    (Part::Others, "waiting for others"),
    (Part::Unexplained, "unexplained"),
];

fn seconds(ns: &[Option<u64>]) -> Option<f64> {
    ns.iter().copied().sum::<Option<u64>>().map(|ns| ns as f64 / 1e9)
}

/// Waits for others of each kind. Children are waited for while they do something themselves.
fn kinds(w: &Waits) -> Option<[f64; 4]> {
    let [Some(peer), Some(timer), Some(lock), Some(completion)] =
        [w.peer_ns, w.timer_ns, w.lock_ns, w.completion_ns].map(|ns| seconds(&[ns]))
    else {
        return None;
    };
    Some([peer, timer, lock, completion])
}

/// A kind of waits for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// For pipes, sockets, events.
    Peer,
    /// For timers.
    Timer,
    /// For locks.
    Lock,
    /// For asynchronous I/O.
    Completion,
}

/// What of the time that is `left` went into waiting for others, of all kinds or of one, and whether that is all or the least
/// that it can be.
///
/// Where all of it fits, it is what was waited. Where it does not, threads waited at the same time. But whenever none ran, stood
/// in the queue or waited for storage, all that were alive waited for others: what is left is that time, less what may have been
/// something else (interrupts, other guests of the host, waits without a name), and, for one kind, less all other kinds.
fn others(run: &Run, left: f64, kind: Option<Other>) -> Option<(f64, bool)> {
    let kinds = kinds(&run.waits)?;
    let all: f64 = kinds.iter().sum();
    let waited = kind.map_or(Some(all), |kind| kinds.get(kind as usize).copied())?;
    if all <= left + tolerance(run) {
        return Some((waited.min(left), true));
    }
    let named = all + seconds(&[run.waits.child_ns])?;
    let nameless = (seconds(&[run.waits.other_ns])? - named).max(0.0);
    let ticks = |n: Option<u64>| n.map(|n| n as f64 / 100.0);
    let elsewhere = nameless + ticks(run.machine.interrupts)? + ticks(run.machine.taken)?;
    Some(((left - elsewhere - (all - waited)).clamp(0.0, waited.min(left)), false))
}

/// How much more than the wall time the parts may be for what measuring is worth. Processor time is only known to a tick of
/// the kernel's clock. Of a short run, a tick may be all of it: what adds up to more than 105 % is no division of the wall
/// time. One thread does nothing at the same time: what it has too much is error, but there are limits to that, too.
fn tolerance(run: &Run) -> f64 {
    match run.one_thread {
        Some(true) => 0.02 + run.wall_s * 0.25,
        _ => (0.02 + run.wall_s * 0.02).min(run.wall_s * 0.05),
    }
}

impl Parts {
    /// The parts of a run.
    #[must_use]
    pub fn divide(run: &Run) -> Self {
        let w = &run.waits;
        // Of a saved one it is not known any more.
        let for_data = if run.saved { w.fault_ns } else { faults::for_data(run) };
        let lookups = seconds(&[run.lookups.work_ns]);
        let cpu = run.usage.user_s.zip(run.usage.system_s).map(|(u, s)| u + s);
        let mut parts = Self {
            data_s: seconds(&[w.read_ns, for_data, w.exec_ns]),
            faults_s: seconds(&[w.fault_ns.zip(for_data).map(|(all, data)| all - data)]),
            metadata_s: seconds(&[w.open_ns, w.lookup_ns, w.directory_ns]),
            lookups_s: lookups,
            writing_s: seconds(&[w.write_ns, w.sync_ns]),
            queue_s: seconds(&[w.cpu_ns]),
            // The kernel adds processor time up by its clock's ticks, we by the nanosecond.
            cpu_s: cpu.map(|cpu| (cpu - lookups.unwrap_or(0.0)).max(0.0)),
            others_s: None,
            unexplained_s: None,
        };
        parts.one_at_a_time(run);
        if let Some(sum) = parts.explained() {
            let left = run.wall_s - sum;
            if left > -tolerance(run) {
                // Who slept all the time waited for nothing else, whenever that began.
                let slept = run.asleep.as_ref().map(|_| left.max(0.0));
                parts.others_s = slept.or_else(|| others(run, left.max(0.0), None).map(|(s, _)| s));
                parts.unexplained_s = Some(left.max(0.0) - parts.others_s.unwrap_or(0.0));
                if left < 0.0 {
                    parts.scale(run.wall_s / sum);
                }
            }
        }
        parts
    }

    /// The parts of runs that are compared, divided alike: what is told apart in one of them and not in another is no difference of
    /// the two. Work on names is a part of the processor time where it is not known, and waiting for others one of what is unexplained;
    /// all that page faults waited for is data beside a saved run.
    #[must_use]
    pub fn alike(runs: &[&Run]) -> Vec<Self> {
        let names = |run: &Run| run.lookups.dcache_misses;
        let most = runs.iter().filter_map(|run| names(run)).max().unwrap_or(0);
        let divide = |run: &&Run| {
            let mut parts = Self::divide(run);
            // Next to none, beside those of another.
            if parts.lookups_s.is_none() && names(run).is_some_and(|n| n.saturating_mul(100) < most) {
                parts.lookups_s = Some(0.0);
            }
            parts
        };
        let mut all: Vec<Self> = runs.iter().map(divide).collect();
        if runs.iter().any(|run| run.saved) {
            for parts in &mut all {
                let faults = parts.faults_s.replace(0.0).unwrap_or(0.0);
                parts.data_s = parts.data_s.map(|data| data + faults);
            }
        }
        if all.iter().any(|p| p.lookups_s.is_none()) {
            for parts in &mut all {
                if let Some(cpu) = &mut parts.cpu_s {
                    *cpu += parts.lookups_s.take().unwrap_or(0.0);
                }
            }
        }
        // Threads that overlap leave neither.
        let divided = |p: &&mut Self| p.unexplained_s.is_some();
        if all.iter_mut().filter(divided).any(|p| p.others_s.is_none()) {
            for parts in all.iter_mut().filter(divided) {
                let others = parts.others_s.take().unwrap_or(0.0);
                parts.unexplained_s = parts.unexplained_s.map(|s| s + others);
            }
        }
        all
    }

    /// The same of two.
    #[must_use]
    pub fn of_both(then: &Run, now: &Run) -> (Self, Self) {
        let mut both = Self::alike(&[then, now]).into_iter();
        (both.next().unwrap_or_default(), both.next().unwrap_or_default())
    }

    /// Of processes that live one after the other, a child that has just been made waits for a processor while its parent still
    /// works or waits for one as well, and a parent that was woken does while its child still ends: that is one wait of the run.
    fn one_at_a_time(&mut self, run: &Run) {
        /// More of the wall time is no matter of beginnings and ends.
        const MOST: f64 = 0.1;
        let (Some(sum), Some(queue)) = (self.explained(), self.queue_s) else { return };
        let more = sum - run.wall_s;
        let for_children = seconds(&[run.waits.child_ns]).unwrap_or(0.0);
        if more > 0.0 && more <= run.wall_s * MOST && more <= queue / 2.0 && for_children >= run.wall_s / 2.0
        {
            self.queue_s = Some(queue - more);
        }
    }

    /// Spreads an error of measurement over all parts, each by what it has.
    fn scale(&mut self, by: f64) {
        let parts = [
            &mut self.data_s,
            &mut self.faults_s,
            &mut self.metadata_s,
            &mut self.lookups_s,
            &mut self.writing_s,
            &mut self.queue_s,
        ];
        for part in parts.into_iter().chain([&mut self.cpu_s]).flatten() {
            *part *= by;
        }
    }

    /// All that is explained; `None` where waits are not known.
    #[must_use]
    pub fn explained(&self) -> Option<f64> {
        let known = [self.data_s, self.faults_s, self.metadata_s, self.writing_s, self.queue_s, self.cpu_s];
        Some(known.into_iter().sum::<Option<f64>>()? + self.lookups_s.unwrap_or(0.0))
    }

    /// Whether threads worked at the same time, so that their times do not add up to the wall time.
    #[must_use]
    pub fn overlap(&self) -> bool {
        self.unexplained_s.is_none() && self.explained().is_some()
    }

    /// How much of the run went into one kind of waits for others, and whether that is all of it or the least that it can be.
    /// `None` where that is not known.
    #[must_use]
    pub fn waited_for(&self, run: &Run, kind: Other) -> Option<(f64, bool)> {
        others(run, self.others_s? + self.unexplained_s?, Some(kind))
    }

    /// One part.
    #[must_use]
    pub const fn get(&self, part: Part) -> Option<f64> {
        match part {
            Part::Data => self.data_s,
            Part::Faults => self.faults_s,
            Part::Metadata => self.metadata_s,
            Part::Lookups => self.lookups_s,
            Part::Writing => self.writing_s,
            Part::Queue => self.queue_s,
            Part::Cpu => self.cpu_s,
            Part::Others => self.others_s,
            Part::Unexplained => self.unexplained_s,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn run(wall_s: f64) -> Run {
        let mut run = Run { wall_s, ..Run::default() };
        run.usage.user_s = Some(0.5);
        run.usage.system_s = Some(0.5);
        run.waits = Waits {
            read_ns: Some(1_000_000_000),
            fault_ns: Some(0),
            exec_ns: Some(500_000_000),
            open_ns: Some(0),
            lookup_ns: Some(250_000_000),
            directory_ns: Some(0),
            write_ns: Some(0),
            sync_ns: Some(0),
            cpu_ns: Some(0),
            ..Waits::default()
        };
        run
    }

    #[test]
    fn what_is_left_is_unexplained() {
        let mut run = run(4.0);
        run.lookups.work_ns = Some(200_000_000);
        let p = Parts::divide(&run);
        assert_eq!(
            (p.data_s, p.metadata_s, p.lookups_s, p.cpu_s),
            (Some(1.5), Some(0.25), Some(0.2), Some(0.8))
        );
        assert!((p.unexplained_s.unwrap() - 1.25).abs() < 1e-9);
    }

    #[test]
    fn a_child_that_waits_beside_its_parent_is_one_wait() {
        // 2.75 s but for the queue, of 3 s; it waited for children nearly all the time.
        let short_lives = |queue: u64, child: u64| {
            let mut run = run(3.0);
            run.waits.cpu_ns = Some(queue * 1_000_000);
            run.waits.child_ns = Some(child * 1_000_000);
            Parts::divide(&run)
        };
        let p = short_lives(490, 2900);
        assert!((p.queue_s.unwrap() - 0.25).abs() < 1e-9 && p.unexplained_s.unwrap() < 1e-9, "{p:?}");
        // Most of the queue, more than a tenth of the time, or nobody waited for: at the same time.
        for (queue, child) in [(510, 2900), (651, 2900), (490, 1499)] {
            let p = short_lives(queue, child);
            assert!(p.overlap(), "{queue} {child} {p:?}");
        }
    }

    #[test]
    fn who_waits_for_others_alone_does_nothing_else() {
        // 1.25 s are left.
        let mut run = run(4.0);
        run.lookups.work_ns = Some(200_000_000);
        let waits = |peer: u64, timer: u64| Waits {
            peer_ns: Some(peer * 1_000_000),
            timer_ns: Some(timer * 1_000_000),
            lock_ns: Some(0),
            completion_ns: Some(0),
            child_ns: Some(5_000_000_000),
            ..run.waits
        };
        let of = |waits| Parts::divide(&Run { waits, ..run.clone() });
        let p = of(waits(900, 50));
        assert!((p.others_s.unwrap() - 0.95).abs() < 1e-9 && (p.unexplained_s.unwrap() - 0.3).abs() < 1e-9);
        // A pipe that a sleeper fills: twice as much as there is. What each cost the whole is not known, but that nothing
        // else can have been done in all that is left.
        run.machine.interrupts = Some(3);
        run.machine.taken = Some(2);
        let of = |waits| Parts::divide(&Run { waits, ..run.clone() });
        let both = |other: u64| Waits { other_ns: Some(other * 1_000_000), ..waits(1200, 1200) };
        let p = of(both(7400));
        assert!((p.others_s.unwrap() - 1.2).abs() < 1e-9 && (p.unexplained_s.unwrap() - 0.05).abs() < 1e-9);
        let kind = |waits, kind| {
            let run = Run { waits, ..run.clone() };
            Parts::divide(&run).waited_for(&run, kind).unwrap()
        };
        let (s, all) = kind(both(7400), Other::Timer);
        assert!(s.abs() < 1e-9 && !all);
        // A thread waits for a pipe all the time, another for 0.2 s: at least the rest is the pipe's.
        let uneven = Waits { other_ns: Some(6_600_000_000), ..waits(1400, 200) };
        let (s, all) = kind(uneven, Other::Peer);
        assert!((s - 1.0).abs() < 1e-9 && !all);
        // Waits without a name may have been all of it; without accounts of the machine, nothing is known.
        assert_eq!(of(both(9000)).others_s, Some(0.0));
        run.machine.taken = None;
        assert_eq!(Parts::divide(&Run { waits: both(7400), ..run.clone() }).others_s, None);
        // The kinds are not known.
        assert_eq!(Parts::divide(&run).others_s, None);
    }

    #[test]
    fn threads_that_overlap_leave_nothing_to_explain() {
        let p = Parts::divide(&run(1.0));
        assert!(p.overlap());
        assert_eq!(p.unexplained_s, None);
    }

    #[test]
    fn a_short_run_whose_processes_overlap() {
        let mut run = run(0.03);
        run.waits = Waits { read_ns: Some(11_000_000), other_ns: None, ..run.waits };
        run.waits.exec_ns = Some(0);
        run.waits.lookup_ns = Some(0);
        (run.usage.user_s, run.usage.system_s) = (Some(0.02), Some(0.01));
        assert!(Parts::divide(&run).overlap(), "137 % of 30 ms");
        run.waits.read_ns = Some(1_000_000);
        assert_eq!(Parts::divide(&run).unexplained_s, Some(0.0), "103 %: the clock's tick");
    }

    #[test]
    fn what_one_thread_has_too_much_is_error_and_is_spread() {
        // 2 % and a little more than what a clock's tick explains.
        let one = |one_thread| Run { one_thread, ..run(2.61) };
        assert!(Parts::divide(&one(Some(false))).overlap());
        assert!(Parts::divide(&one(None)).overlap());
        let p = Parts::divide(&one(Some(true)));
        assert_eq!(p.unexplained_s, Some(0.0));
        assert!((p.explained().unwrap() - 2.61).abs() < 1e-9, "the parts are all of it");
        let ratio = p.data_s.unwrap() / p.cpu_s.unwrap();
        assert!((ratio - 1.5).abs() < 1e-9, "each by what it has: {ratio}");
        // What is half too much is no error of measurement.
        assert!(Parts::divide(&Run { one_thread: Some(true), ..run(1.8) }).overlap());
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_not_zero() {
        let mut run = run(4.0);
        run.waits = Waits::default();
        let p = Parts::divide(&run);
        assert_eq!((p.data_s, p.unexplained_s, p.explained()), (None, None, None));
        assert!(!p.overlap());
    }

    #[test]
    fn runs_that_are_compared_are_divided_alike() {
        let mut then = run(5.0);
        then.lookups.dcache_misses = Some(11_000);
        then.lookups.work_ns = Some(600_000_000);
        let mut now = run(4.0);
        now.lookups.dcache_misses = Some(2);
        let known = |p: &Parts| (p.lookups_s, p.cpu_s);
        let (a, b) = Parts::of_both(&then, &now);
        assert_eq!((known(&a), known(&b)), ((Some(0.6), Some(0.4)), (Some(0.0), Some(1.0))));
        // As many names, or nobody knows how many: then it is processor time in both.
        for names in [Some(110), None] {
            now.lookups.dcache_misses = names;
            let (a, b) = Parts::of_both(&then, &now);
            assert_eq!((known(&a), known(&b)), ((None, Some(1.0)), (None, Some(1.0))), "{names:?}");
            assert_eq!(a.unexplained_s, Parts::divide(&then).unexplained_s);
        }
        // Waits for others are known of one of them.
        let zero = Some(0);
        then.waits = Waits { peer_ns: Some(500_000_000), timer_ns: zero, lock_ns: zero, ..then.waits };
        then.waits = Waits { child_ns: zero, completion_ns: zero, other_ns: Some(500_000_000), ..then.waits };
        assert_eq!(Parts::divide(&then).others_s, Some(0.5));
        let (a, b) = Parts::of_both(&then, &now);
        assert_eq!((a.others_s, b.others_s), (None, None));
        assert!((a.unexplained_s.unwrap() - 2.25).abs() < 1e-9, "{a:?}");
    }
}
