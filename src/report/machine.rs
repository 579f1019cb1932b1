//! What the machine and the cgroup of the command say of the time before and during a run, by the kernel's own accounts:
//! memory.events and cpu.stat of the cgroups above, `/proc/vmstat`, pressure.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// Counts since the machine or the cgroup began; of two of them, what came in between. `None`: not told here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Machine {
    /// Times that somebody emptied the page cache (drop_caches).
    pub dropped: Option<u64>,
    /// Pages that the kernel took back for want of memory, of the whole machine.
    pub stolen: Option<u64>,
    /// Times that a cgroup of the command's reached its `memory.high` or `memory.max`.
    pub limited: Option<u64>,
    /// Microseconds that tasks of its cgroup waited for memory.
    pub memory_us: Option<u64>,
    /// Microseconds that its cgroups were stopped, having used up their share of processors (`cpu.max`).
    pub stopped_us: Option<u64>,
    /// Ticks (hundredths of a second) that processors of the machine spent in interrupts: nobody's processor time, where the
    /// kernel accounts for them apart.
    pub interrupts: Option<u64>,
    /// Ticks that the host of this machine gave its processors to others.
    pub taken: Option<u64>,
    /// Processors that it may use: a number, not a count.
    pub processors: Option<u64>,
}

impl Machine {
    /// As it is now, for a command that is started in the cgroup of this process.
    #[must_use]
    pub fn now() -> Self {
        let vmstat = fs::read_to_string("/proc/vmstat").unwrap_or_default();
        let groups = groups();
        let local = |file: &str, keys: &[&str]| {
            let each = groups.iter().filter_map(|g| {
                let text = fs::read_to_string(g.join(file)).ok()?;
                keys.iter().map(|k| word(&text, k)).sum::<Option<u64>>()
            });
            each.reduce(|a, b| a + b)
        };
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let pressure = groups.first().and_then(|g| fs::read_to_string(g.join("memory.pressure")).ok());
        Self {
            dropped: word(&vmstat, "drop_pagecache"),
            stolen: word(&vmstat, "pgsteal_kswapd").zip(word(&vmstat, "pgsteal_direct")).map(|(a, b)| a + b),
            limited: local("memory.events.local", &["high", "max"]),
            memory_us: pressure.as_deref().and_then(total),
            stopped_us: local("cpu.stat", &["throttled_usec"]),
            interrupts: tick(&stat, 6).zip(tick(&stat, 7)).map(|(hard, soft)| hard + soft),
            taken: tick(&stat, 8),
            processors: std::thread::available_parallelism().ok().and_then(|n| u64::try_from(n.get()).ok()),
        }
    }

    /// What came since an earlier one. What fell has been reset, and is not known.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let d = |a: Option<u64>, b: Option<u64>| a.zip(b).and_then(|(a, b)| a.checked_sub(b));
        Self {
            dropped: d(self.dropped, earlier.dropped),
            stolen: d(self.stolen, earlier.stolen),
            limited: d(self.limited, earlier.limited),
            memory_us: d(self.memory_us, earlier.memory_us),
            stopped_us: d(self.stopped_us, earlier.stopped_us),
            interrupts: d(self.interrupts, earlier.interrupts),
            taken: d(self.taken, earlier.taken),
            processors: self.processors,
        }
    }
}

/// A field of the first line of `/proc/stat`, counted from its name on.
fn tick(stat: &str, field: usize) -> Option<u64> {
    stat.lines().next()?.split_whitespace().nth(field)?.parse().ok()
}

/// A number of a file with lines `KEY NUMBER`.
fn word(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// `some avg10=0.00 … total=NUMBER` of a file of pressure.
fn total(text: &str) -> Option<u64> {
    let some = text.lines().find(|l| l.starts_with("some "))?;
    some.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Directories of the cgroup (version 2) of this process and of those above it, where they can be reached.
fn groups() -> Vec<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(path) = own.lines().find_map(|l| l.strip_prefix("0::/")) else { return Vec::new() };
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let Some(root) = roots.into_iter().map(Path::new).find(|r| r.join("cgroup.procs").exists()) else {
        return Vec::new();
    };
    let own = root.join(path);
    own.ancestors().take_while(|d| d.starts_with(root)).map(Path::to_path_buf).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn numbers_of_the_kernels_files() {
        let vmstat = "drop_pagecache 3\ndrop_slab 9\npgsteal_kswapd 7\npgsteal_kswapd_x 8\n";
        assert_eq!(word(vmstat, "drop_pagecache"), Some(3));
        assert_eq!(word(vmstat, "pgsteal_kswapd"), Some(7), "a word is a whole word");
        assert_eq!(word(vmstat, "pgsteal_direct"), None);
        let psi = "some avg10=0.00 avg60=0.00 avg300=0.00 total=4711\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
        assert_eq!((total(psi), total("")), (Some(4711), None));
        let stat = "cpu  10 1 20 900 30 4 5 6 0 0\ncpu0 1 1 1 1\n";
        assert_eq!([6, 7, 8].map(|n| tick(stat, n)), [Some(4), Some(5), Some(6)]);
    }

    #[test]
    fn what_comes_in_between() {
        let at =
            |n| Machine { dropped: Some(n), limited: Some(n), processors: Some(4), ..Machine::default() };
        let d = at(9).since(&at(7));
        assert_eq!((d.dropped, d.limited, d.stolen, d.processors), (Some(2), Some(2), None, Some(4)));
        assert_eq!(at(1).since(&at(7)).dropped, None, "counted anew");
        // Every kernel with /proc tells of the caches that were emptied.
        assert!(Machine::now().dropped.is_some());
    }
}
