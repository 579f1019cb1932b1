//! Whether a process that is watched ran at all. A wait is measured from its beginning to its end: of one that began before
//! the watch and goes on after it nothing is seen, and a process that waits so all the time would be told as one of which
//! nobody knows what it did. That it slept is known all the same: its threads have not been switched to in between. So is that a
//! thread hung, in a wait for storage that does not answer: that must not be told as time that the cache had no part in.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;
use std::time::Instant;

use crate::procfs;
use crate::text::foreign::Foreign;

/// What a look may take: a machine may have very many threads.
const BUDGET: Duration = Duration::from_millis(100);

/// Threads as they were found at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sleepers {
    /// Those that sleep, by their numbers.
    threads: BTreeMap<u32, Sleeper>,
    /// Whether all of them do.
    all: bool,
}

/// A thread that sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sleeper {
    /// How often it has left the processor so far.
    switches: u64,
    how: How,
}

/// How a thread sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// So that a signal wakes it (S).
    Light,
    /// So that none does, as in waits for storage (D).
    Deep,
    /// Not at all: a signal stopped it (T).
    Stopped,
    /// Nor so: a debugger did (t).
    Traced,
}

/// The functions of the kernel in which threads sleep, where it tells, and how many in each; the most first.
type Within = Vec<(Foreign, usize)>;

/// Threads that slept, or were stopped, all the time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asleep {
    /// How many.
    pub threads: usize,
    /// Of these, the ones that a signal had stopped.
    pub stopped: usize,
    /// The ones that a debugger had.
    pub traced: usize,
    /// In which functions.
    pub within: Within,
}

/// Threads that waited all the time so that no signal wakes them (D).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hung {
    /// How many.
    pub threads: usize,
    /// Of so many.
    pub of: usize,
    /// Whether all the others slept all the time.
    pub others_slept: bool,
    /// In which functions they wait.
    pub within: Within,
    /// The number of the first.
    pub tid: u32,
}

/// What threads did all the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Still {
    /// All of them slept, each so that a signal wakes it, or were stopped.
    Asleep(Asleep),
    /// Some waited in D.
    Hung(Hung),
}

/// A thread by its status, if it sleeps or is stopped.
fn sleeper(status: &str) -> Option<Sleeper> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = |name| field(name)?.trim().parse::<u64>().ok();
    let state = field("State")?.trim_start().chars().next()?;
    let switches = number("voluntary_ctxt_switches")? + number("nonvoluntary_ctxt_switches")?;
    let how = match state {
        'S' => How::Light,
        'D' => How::Deep,
        'T' => How::Stopped,
        't' => How::Traced,
        _ => return None,
    };
    Some(Sleeper { switches, how })
}

/// The threads of processes, by their directories.
fn threads(pids: &[u32]) -> impl Iterator<Item = (u32, std::path::PathBuf)> {
    let of = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    pids.iter().flat_map(of).filter_map(|e| Some((e.file_name().to_str()?.parse().ok()?, e.path())))
}

/// Where in the kernel threads of processes are.
fn within(pids: &[u32], which: impl Fn(u32) -> bool) -> Within {
    let mut within: BTreeMap<String, usize> = BTreeMap::new();
    for (_, path) in threads(pids).filter(|(tid, _)| which(*tid)) {
        // 0: the kernel does not tell us.
        let name = fs::read_to_string(path.join("wchan")).unwrap_or_default();
        if !matches!(name.trim(), "" | "0") {
            *within.entry(name.trim().to_owned()).or_default() += 1;
        }
    }
    let mut within: Within = within.into_iter().map(|(name, n)| (name.into(), n)).collect();
    within.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    within
}

impl Sleepers {
    /// `None`: none of the threads sleeps, or there are too many to be looked at.
    pub(super) fn look(pids: &[u32]) -> Option<Self> {
        let began = Instant::now();
        let (mut sleepers, mut all) = (BTreeMap::new(), true);
        for (tid, path) in threads(pids) {
            if began.elapsed() > BUDGET {
                return None;
            }
            match procfs::text(path.join("status")).ok().and_then(|status| sleeper(&status)) {
                Some(one) => _ = sleepers.insert(tid, one),
                None => all = false,
            }
        }
        (!sleepers.is_empty()).then_some(Self { threads: sleepers, all })
    }

    /// What these, looked at again, have done all the time.
    pub(super) fn still(&self, now: Option<&Self>, pids: &[u32]) -> Option<Still> {
        let now = now?;
        let none_ran = self.all && now == self;
        let same = |tid: &u32| now.threads.get(tid) == self.threads.get(tid);
        let deep =
            self.threads.iter().filter(|(tid, one)| one.how == How::Deep && same(tid)).map(|(tid, _)| *tid);
        let deep: BTreeSet<u32> = deep.collect();
        if let Some(tid) = deep.first() {
            let within = within(pids, |tid| deep.contains(&tid));
            let of = threads(pids).count().max(deep.len());
            return Some(Still::Hung(Hung {
                threads: deep.len(),
                of,
                others_slept: none_ran,
                within,
                tid: *tid,
            }));
        }
        let of = |how| self.threads.values().filter(|one| one.how == how).count();
        none_ran.then(|| {
            Still::Asleep(Asleep {
                threads: self.threads.len(),
                stopped: of(How::Stopped),
                traced: of(How::Traced),
                within: within(pids, |_| true),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_state_and_the_switches_are_read() {
        let status = |state: &str| {
            format!(
                "Name:\tState:\nState:\t{state}\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n"
            )
        };
        let of = |how| Some(Sleeper { switches: 42, how });
        assert_eq!(sleeper(&status("S (sleeping)")), of(How::Light));
        assert_eq!(sleeper(&status("T (stopped)")), of(How::Stopped));
        assert_eq!(sleeper(&status("t (tracing stop)")), of(How::Traced));
        assert_eq!(sleeper(&status("D (disk sleep)")), of(How::Deep));
        for state in ["R (running)", "Z (zombie)", "I (idle)", ""] {
            assert_eq!(sleeper(&status(state)), None, "{state}");
        }
        assert_eq!(sleeper("State:\tS (sleeping)\n"), None);
    }

    #[test]
    fn who_waits_in_d_is_told_from_who_sleeps() {
        let look = |threads: &[(u32, u64, bool)], all| {
            let one = |(tid, switches, deep): &(u32, u64, bool)| {
                (*tid, Sleeper { switches: *switches, how: if *deep { How::Deep } else { How::Light } })
            };
            Sleepers { threads: threads.iter().map(one).collect(), all }
        };
        let hung = |then: &Sleepers, now: &Sleepers| match then.still(Some(now), &[]) {
            Some(Still::Hung(hung)) => Some((hung.threads, hung.tid, hung.others_slept)),
            _ => None,
        };
        let then = look(&[(7, 3, false), (8, 5, true), (9, 5, true)], true);
        assert_eq!(hung(&then, &then), Some((2, 8, true)));
        // One of them has run, and waits again.
        let now = look(&[(7, 3, false), (8, 6, true), (9, 5, true)], true);
        assert_eq!(hung(&then, &now), Some((1, 9, false)));
        // Another runs.
        let now = look(&[(8, 5, true), (9, 5, true)], false);
        assert_eq!(hung(&then, &now), Some((2, 8, false)));
        // It waited at the beginning and at the end, and ran in between.
        let (then, now) = (look(&[(8, 5, true)], true), look(&[(8, 7, true)], true));
        assert_eq!(then.still(Some(&now), &[]), None);
    }

    #[test]
    fn who_sleeps_is_seen_to_sleep_and_who_runs_is_not() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pids = [child.id()];
        let until = Instant::now() + Duration::from_secs(20);
        let asleep = loop {
            let before = Sleepers::look(&pids);
            std::thread::sleep(Duration::from_millis(20));
            let asleep = before.and_then(|b| b.still(Sleepers::look(&pids).as_ref(), &pids));
            if let Some(Still::Asleep(asleep)) = asleep {
                break asleep;
            }
            assert!(Instant::now() < until);
        };
        assert_eq!((asleep.threads, asleep.stopped, asleep.traced), (1, 0, 0));
        // SAFETY: a signal to a child that is there, as nobody has waited for it.
        let stopped = unsafe { libc::kill(child.id().try_into().unwrap(), libc::SIGSTOP) };
        assert_eq!(stopped, 0);
        let told = loop {
            let before = Sleepers::look(&pids);
            std::thread::sleep(Duration::from_millis(20));
            let still = before.and_then(|b| b.still(Sleepers::look(&pids).as_ref(), &pids));
            if let Some(Still::Asleep(asleep)) =
                still.filter(|s| matches!(s, Still::Asleep(a) if a.stopped > 0))
            {
                break asleep;
            }
            assert!(Instant::now() < until);
        };
        assert_eq!(
            (told.threads, told.stopped, told.traced),
            (1, 1, 0),
            "it does not sleep of its own accord"
        );
        // This thread runs.
        assert!(Sleepers::look(&[std::process::id()]).is_none_or(|seen| !seen.all));
        let before = Sleepers::look(&pids).unwrap();
        assert_eq!(before.still(None, &pids), None);
        let mut more = before.clone();
        more.threads.values_mut().for_each(|one| one.switches += 1);
        assert_eq!(before.still(Some(&more), &pids), None);
        let awake = Sleepers { all: false, ..before.clone() };
        assert_eq!(awake.still(Some(&before), &pids), None);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(Sleepers::look(&pids), None);
    }
}
