//! Whether a process that is watched ran at all. A wait is measured from its beginning to its end: of one that began before
//! the watch and goes on after it nothing is seen, and a process that waits so all the time would be told as one of which
//! nobody knows what it did. That it slept is known all the same: its threads have not been switched to in between.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;
use std::time::Instant;

use crate::text::foreign::Foreign;

/// What a look may take: a machine may have very many threads.
const BUDGET: Duration = Duration::from_millis(100);

/// Threads that all sleep: each with how often it has left the processor so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sleepers {
    switches: BTreeMap<u32, u64>,
}

/// Threads that slept all the time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asleep {
    /// How many.
    pub threads: usize,
    /// The functions of the kernel in which they sleep, where it tells, and how many in each; the most first.
    pub within: Vec<(Foreign, usize)>,
}

/// The state of a thread that sleeps and can be woken by a signal, or is stopped, and its number of switches. Waits for disks
/// cannot be interrupted: of these nothing is said.
fn sleeps(status: &str) -> Option<u64> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = |name| field(name)?.trim().parse::<u64>().ok();
    let state = field("State")?.trim_start().chars().next()?;
    let switches = number("voluntary_ctxt_switches")? + number("nonvoluntary_ctxt_switches")?;
    matches!(state, 'S' | 'T' | 't').then_some(switches)
}

/// The threads of processes, by their directories.
fn threads(pids: &[u32]) -> impl Iterator<Item = (u32, std::path::PathBuf)> {
    let of = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    pids.iter().flat_map(of).filter_map(|e| Some((e.file_name().to_str()?.parse().ok()?, e.path())))
}

impl Sleepers {
    /// `None`: one of the threads does not sleep, or there is none, or there are too many to be looked at.
    pub(super) fn look(pids: &[u32]) -> Option<Self> {
        let began = Instant::now();
        let mut switches = BTreeMap::new();
        for (tid, path) in threads(pids) {
            if began.elapsed() > BUDGET {
                return None;
            }
            switches.insert(tid, sleeps(&fs::read_to_string(path.join("status")).ok()?)?);
        }
        (!switches.is_empty()).then_some(Self { switches })
    }

    /// Whether these, looked at again, have slept all the time.
    pub(super) fn still(&self, now: Option<&Self>, pids: &[u32]) -> Option<Asleep> {
        if now != Some(self) {
            return None;
        }
        let mut within: BTreeMap<String, usize> = BTreeMap::new();
        for (_, path) in threads(pids) {
            // 0: the kernel does not tell us.
            let name = fs::read_to_string(path.join("wchan")).unwrap_or_default();
            if !matches!(name.trim(), "" | "0") {
                *within.entry(name.trim().to_owned()).or_default() += 1;
            }
        }
        let mut within: Vec<(Foreign, usize)> =
            within.into_iter().map(|(name, n)| (name.into(), n)).collect();
        within.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        Some(Asleep { threads: self.switches.len(), within })
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
        assert_eq!(sleeps(&status("S (sleeping)")), Some(42));
        assert_eq!(sleeps(&status("T (stopped)")), Some(42));
        for state in ["R (running)", "D (disk sleep)", "Z (zombie)", "I (idle)", ""] {
            assert_eq!(sleeps(&status(state)), None, "{state}");
        }
        assert_eq!(sleeps("State:\tS (sleeping)\n"), None);
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
            if asleep.is_some() || Instant::now() > until {
                break asleep.unwrap();
            }
        };
        assert_eq!(asleep.threads, 1);
        // This thread runs.
        assert_eq!(Sleepers::look(&[std::process::id()]), None);
        let before = Sleepers::look(&pids).unwrap();
        assert_eq!(before.still(None, &pids), None);
        let mut more = before.clone();
        more.switches.values_mut().for_each(|n| *n += 1);
        assert_eq!(before.still(Some(&more), &pids), None);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(Sleepers::look(&pids), None);
    }
}
