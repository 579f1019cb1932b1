//! What the machine and the cgroup of the command say of the time before and during a run, by the kernel's own accounts:
//! memory.events and cpu.stat of its cgroup and of those above, `/proc/vmstat`, pressure. Of version 1 of cgroups, failcnt.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::procfs;
use crate::text::foreign::Foreign;

/// How long each cgroup was stopped, its own first, and those above it; of more of them nobody asks.
pub type Stops = [Option<u64>; 16];

/// Counts since the machine or the cgroup began; of two of them, what came in between. `None`: not told here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Machine {
    /// Times that somebody emptied the page cache (drop_caches).
    pub dropped: Option<u64>,
    /// Pages that the kernel took back for want of memory, of the whole machine.
    pub stolen: Option<u64>,
    /// Pages that came back from swap, of the whole machine.
    pub swapped_in: Option<u64>,
    /// Times that its cgroup or one above reached its `memory.high` or `memory.max` (version 1: `limit_in_bytes`).
    pub limited: Option<u64>,
    /// Of these, the ones of a cgroup above its own.
    pub limited_above: Option<u64>,
    /// Microseconds that tasks of its cgroup waited for memory.
    pub memory_us: Option<u64>,
    /// Microseconds that its cgroup, or one above, was stopped, having used up its share of processors (`cpu.max`): added up over
    /// the processors, of the cgroup of which that was most. One that is stopped may be below another that is: what is more than
    /// that is not sure.
    pub stopped_us: Option<u64>,
    /// The same of each of these cgroups, its own first.
    pub stops_us: Stops,
    /// Ticks (hundredths of a second) that processors of the machine spent in interrupts: nobody's processor time, where the
    /// kernel accounts for them apart.
    pub interrupts: Option<u64>,
    /// Ticks that the host of this machine gave its processors to others.
    pub taken: Option<u64>,
    /// Processors that it may use: a number, not a count.
    pub processors: Option<u64>,
    /// Ticks that the processors it was started on had nothing to do.
    pub idle: Option<u64>,
    /// How many these are, whatever share of them it may use.
    pub allowed: Option<u64>,
}

impl Machine {
    /// As it is now, for a process or (`None`) a command that is started in the cgroup of this one.
    #[must_use]
    pub fn now(pid: Option<u32>) -> Self {
        let who = pid.map_or("self".into(), |pid| pid.to_string());
        let own = procfs::text(format!("/proc/{who}/cgroup")).unwrap_or_default();
        Self::read(&own, Path::new("/sys/fs/cgroup"))
    }

    /// The same, by what `/proc/PID/cgroup` says and where cgroups are mounted.
    fn read(own: &str, mounted: &Path) -> Self {
        let vmstat = fs::read_to_string("/proc/vmstat").unwrap_or_default();
        let groups = groups(own, mounted);
        let local = |groups: &[PathBuf], file: &str, keys: &[&str]| {
            let each = groups.iter().filter_map(|g| {
                let text = fs::read_to_string(g.join(file)).ok()?;
                keys.iter().map(|k| word(&text, k)).sum::<Option<u64>>()
            });
            each.reduce(|a, b| a + b)
        };
        let old = old_groups(own, mounted);
        let limited = |from: usize| {
            let new = local(groups.get(from..).unwrap_or_default(), "memory.events.local", &["high", "max"]);
            let failed = old.get(from..).unwrap_or_default().iter().filter_map(|g| {
                fs::read_to_string(g.join("memory.failcnt")).ok()?.trim().parse::<u64>().ok()
            });
            new.or_else(|| failed.reduce(|a, b| a + b))
        };
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let allowed = allowed();
        let mut stops_us = Stops::default();
        for (group, stop) in groups.iter().zip(&mut stops_us) {
            *stop = fs::read_to_string(group.join("cpu.stat")).ok().and_then(|t| word(&t, "throttled_usec"));
        }
        let pressure = groups.first().and_then(|g| fs::read_to_string(g.join("memory.pressure")).ok());
        Self {
            dropped: word(&vmstat, "drop_pagecache"),
            stolen: word(&vmstat, "pgsteal_kswapd").zip(word(&vmstat, "pgsteal_direct")).map(|(a, b)| a + b),
            swapped_in: word(&vmstat, "pswpin"),
            limited: limited(0),
            limited_above: limited(1),
            memory_us: pressure.as_deref().and_then(total),
            stopped_us: stops_us.iter().copied().flatten().max(),
            stops_us,
            interrupts: tick(&stat, 6).zip(tick(&stat, 7)).map(|(hard, soft)| hard + soft),
            taken: tick(&stat, 8),
            processors: std::thread::available_parallelism().ok().and_then(|n| u64::try_from(n.get()).ok()),
            idle: idle(&stat, &allowed),
            allowed: u64::try_from(allowed.len()).ok().filter(|n| *n > 0),
        }
    }

    /// What came since an earlier one. What fell has been reset, and is not known.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let d = |a: Option<u64>, b: Option<u64>| a.zip(b).and_then(|(a, b)| a.checked_sub(b));
        let mut stops_us = self.stops_us;
        for (now, then) in stops_us.iter_mut().zip(earlier.stops_us) {
            *now = d(*now, then);
        }
        Self {
            dropped: d(self.dropped, earlier.dropped),
            stolen: d(self.stolen, earlier.stolen),
            swapped_in: d(self.swapped_in, earlier.swapped_in),
            limited: d(self.limited, earlier.limited),
            limited_above: d(self.limited_above, earlier.limited_above),
            memory_us: d(self.memory_us, earlier.memory_us),
            stopped_us: stops_us.iter().copied().flatten().max(),
            stops_us,
            interrupts: d(self.interrupts, earlier.interrupts),
            taken: d(self.taken, earlier.taken),
            processors: self.processors,
            idle: d(self.idle, earlier.idle),
            allowed: self.allowed,
        }
    }
}

/// What the `io.max` of a cgroup lets be read from a device in a second (version 2 of cgroups).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ReadLimit {
    /// The cgroup, as it is called below where cgroups are mounted.
    pub cgroup: Foreign,
    /// `MAJOR:MINOR`.
    pub device: String,
    /// Bytes; `None`: as many as come.
    pub bytes: Option<u64>,
    /// Requests; the same.
    pub requests: Option<u64>,
}

impl ReadLimit {
    /// Those of the cgroup of a process, or (`None`) of a command that is started in that of this one, and of those above it.
    #[must_use]
    pub fn now(pid: Option<u32>) -> Vec<Self> {
        let who = pid.map_or("self".into(), |pid| pid.to_string());
        let own = procfs::text(format!("/proc/{who}/cgroup")).unwrap_or_default();
        Self::read(&own, Path::new("/sys/fs/cgroup"))
    }

    fn read(own: &str, mounted: &Path) -> Vec<Self> {
        let groups = groups(own, mounted);
        let Some(root) = groups.last() else { return Vec::new() };
        let of = |group: &PathBuf| {
            let name = Path::new("/").join(group.strip_prefix(root).unwrap_or(group));
            let text = fs::read_to_string(group.join("io.max")).unwrap_or_default();
            text.lines().filter_map(|line| Self::parse(line, &name)).collect::<Vec<_>>()
        };
        groups.iter().flat_map(of).collect()
    }

    /// `MAJOR:MINOR rbps=NUMBER wbps=max riops=max wiops=max`; `None` where it says nothing of reads.
    fn parse(line: &str, group: &Path) -> Option<Self> {
        let (device, limits) = line.split_once(' ')?;
        let of = |key: &str| limits.split_whitespace().find_map(|l| l.strip_prefix(key)?.parse().ok());
        let (bytes, requests) = (of("rbps="), of("riops="));
        let (cgroup, device) = (Foreign::from(group), device.to_owned());
        (bytes.is_some() || requests.is_some()).then_some(Self { cgroup, device, bytes, requests })
    }
}

/// Numbers of the processors that this process, and what it starts, may run on; none where that is not told.
fn allowed() -> Vec<usize> {
    // SAFETY: a set is plain bits, and the kernel fills the one whose size it is told.
    let set: libc::cpu_set_t = unsafe {
        let mut set = std::mem::zeroed();
        match libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) {
            0 => set,
            _ => return Vec::new(),
        }
    };
    // SAFETY: asks for bits that the set has.
    (0..libc::CPU_SETSIZE as usize).filter(|n| unsafe { libc::CPU_ISSET(*n, &set) }).collect()
}

/// Ticks that these processors had nothing to do, or waited for storage; `None` where one of them has no line.
fn idle(stat: &str, of: &[usize]) -> Option<u64> {
    let each = |n: &usize| {
        let mut fields =
            stat.lines().find_map(|l| l.strip_prefix(&format!("cpu{n} ")))?.split_whitespace().skip(3);
        let mut field = || fields.next()?.parse::<u64>().ok();
        Some(field()? + field()?)
    };
    of.iter().map(each).sum::<Option<u64>>().filter(|_| !of.is_empty())
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

/// Directories of the cgroup (version 2) of a process and of those above it, where they can be reached.
fn groups(own: &str, mounted: &Path) -> Vec<PathBuf> {
    let Some(path) = own.lines().find_map(|l| l.strip_prefix("0::/")) else { return Vec::new() };
    let roots = [mounted.to_path_buf(), mounted.join("unified")];
    let Some(root) = roots.into_iter().find(|r| r.join("cgroup.procs").exists()) else { return Vec::new() };
    above(&root, path)
}

/// The same of the controller of memory of version 1.
fn old_groups(own: &str, mounted: &Path) -> Vec<PathBuf> {
    let memory = |l: &str| -> Option<String> {
        let (controllers, path) = l.split_once(':')?.1.split_once(':')?;
        let path = path.strip_prefix('/')?;
        controllers.split(',').any(|c| c == "memory").then(|| path.to_owned())
    };
    let Some(path) = own.lines().find_map(memory) else { return Vec::new() };
    above(&mounted.join("memory"), &path)
}

/// A directory and those above it, up to a root. A name that leads elsewhere leads nowhere.
fn above(root: &Path, path: &str) -> Vec<PathBuf> {
    let own = root.join(path);
    if own.components().any(|c| c == std::path::Component::ParentDir) || !own.is_dir() {
        return Vec::new();
    }
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
    fn processors_with_nothing_to_do() {
        let stat = "cpu  9 9 9 9 9 9\ncpu0 1 1 1 100 7 1 0 0\ncpu1 1 1 1 20 1 1 0 0\ncpu10 1 1 1 3000 2 1 0 0\nintr 1\n";
        assert_eq!(idle(stat, &[0, 1]), Some(128));
        assert_eq!(idle(stat, &[1]), Some(21), "not cpu10");
        assert_eq!(idle(stat, &[0, 2]), None, "one has no line");
        assert_eq!(idle(stat, &[]), None);
        assert!(!allowed().is_empty() && Machine::now(None).idle.is_some());
    }

    #[test]
    fn what_comes_in_between() {
        let at =
            |n| Machine { dropped: Some(n), swapped_in: Some(n), processors: Some(4), ..Machine::default() };
        let d = at(9).since(&at(7));
        assert_eq!((d.dropped, d.swapped_in, d.stolen, d.processors), (Some(2), Some(2), None, Some(4)));
        assert_eq!(at(1).since(&at(7)).dropped, None, "counted anew");
        // Every kernel with /proc tells of the caches that were emptied.
        assert!(Machine::now(None).dropped.is_some());
    }

    /// Files of cgroups, `PATH CONTENT`.
    fn made(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        dir
    }

    #[test]
    fn limits_of_its_cgroup_and_of_those_above() {
        let dir = made(&[
            ("cgroup.procs", ""),
            ("a/memory.events.local", "low 9\nhigh 1\nmax 2\noom 7\n"),
            ("a/b/memory.events.local", "low 9\nhigh 10\nmax 20\noom 7\n"),
            ("a/b/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=4711\n"),
        ]);
        let m = Machine::read("0::/a/b\n", dir.path());
        assert_eq!((m.limited, m.limited_above, m.memory_us), (Some(33), Some(3), Some(4711)));
        let m = Machine::read("0::/a\n", dir.path());
        assert_eq!((m.limited, m.limited_above), (Some(3), None), "the root has no limit");
        assert_eq!(Machine::read("0::/../b\n", dir.path()).limited, None);
    }

    #[test]
    fn a_cgroup_and_those_above_are_stopped_at_the_same_time() {
        let dir = made(&[
            ("cgroup.procs", ""),
            ("a/cpu.stat", "nr_throttled 7\nthrottled_usec 900\n"),
            ("a/b/cpu.stat", "nr_throttled 1\nthrottled_usec 100\n"),
            ("a/b/c/cpu.stat", "usage_usec 7\n"),
        ]);
        let then = Machine::read("0::/a/b/c\n", dir.path());
        assert_eq!(
            (then.stopped_us, &then.stops_us[..4]),
            (Some(900), &[None, Some(100), Some(900), None][..])
        );
        fs::write(dir.path().join("a/cpu.stat"), "throttled_usec 1000\n").unwrap();
        fs::write(dir.path().join("a/b/cpu.stat"), "throttled_usec 350\n").unwrap();
        let now = Machine::read("0::/a/b/c\n", dir.path());
        assert_eq!(
            now.since(&then).stopped_us,
            Some(250),
            "neither 350, nor 100 of the one that had most before"
        );
        assert_eq!(Machine::read("0::/\n", dir.path()).stopped_us, None);
    }

    #[test]
    fn what_may_be_read_in_a_second() {
        let dir = made(&[
            ("cgroup.procs", ""),
            (
                "a/io.max",
                "254:0 rbps=10485760 wbps=max riops=max wiops=9\n8:0 rbps=max wbps=1 riops=max wiops=max\n",
            ),
            ("a/b/io.max", "8:16 rbps=max wbps=max riops=200 wiops=max\n"),
            ("a/b/c/io.max", ""),
        ]);
        let limit = |cgroup: &str, device: &str, bytes, requests| ReadLimit {
            cgroup: cgroup.into(),
            device: device.into(),
            bytes,
            requests,
        };
        let (above, own) =
            (limit("/a", "254:0", Some(10 << 20), None), limit("/a/b", "8:16", None, Some(200)));
        let read = |own| ReadLimit::read(own, dir.path());
        assert_eq!(read("0::/a\n"), std::slice::from_ref(&above));
        assert_eq!(read("0::/a/b/c\n"), [own, above]);
        assert_eq!((read("0::/\n"), read("0::/gone\n"), read("4:io:/a\n")), (vec![], vec![], vec![]));
    }

    #[test]
    fn limits_of_version_1() {
        let dir = made(&[
            ("memory/memory.failcnt", "0\n"),
            ("memory/a/memory.failcnt", "5\n"),
            ("memory/a/b/memory.failcnt", "70\n"),
            ("unified/cgroup.procs", ""),
        ]);
        let own = "9:cpu,cpuacct:/x\n4:memory:/a/b\n0::/\n";
        let m = Machine::read(own, dir.path());
        assert_eq!((m.limited, m.limited_above, m.memory_us), (Some(75), Some(5), None));
        assert_eq!(Machine::read("4:memory:/gone\n0::/\n", dir.path()).limited, None);
    }
}
