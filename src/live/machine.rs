//! The machine beside what is counted: memory, limits of dirty pages, pressure, devices.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// What the kernel's files say; `None` for what this one does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Machine {
    /// `MemTotal`, in bytes.
    pub total: Option<u64>,
    /// `Active(file)`, in bytes.
    pub active: Option<u64>,
    /// `Inactive(file)`, in bytes.
    pub inactive: Option<u64>,
    /// Dirty bytes from which writers must wait.
    pub dirty_limit: Option<u64>,
    /// Dirty bytes from which they are written back.
    pub dirty_background: Option<u64>,
    /// Microseconds since boot in which somebody waited for memory.
    pub memory_stalled: Option<u64>,
    /// The same for I/O.
    pub io_stalled: Option<u64>,
    /// Bytes that devices have read since boot.
    pub read: Option<u64>,
    /// Bytes that devices have written since boot.
    pub written: Option<u64>,
}

/// The same for an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pulse {
    /// At the end of it.
    pub machine: Machine,
    /// Part of the interval in which somebody waited for memory.
    pub memory_stalled: Option<f64>,
    /// The same for I/O.
    pub io_stalled: Option<f64>,
    /// Bytes that devices read in it.
    pub read: Option<u64>,
    /// Bytes that devices wrote in it.
    pub written: Option<u64>,
    /// Its length in seconds.
    pub seconds: f64,
}

/// Reads the machine's state again and again.
pub struct Watch {
    read: Box<dyn FnMut() -> Machine>,
    last: Option<(Instant, Machine)>,
}

impl Watch {
    /// With what reads it.
    #[must_use]
    pub fn new(read: Box<dyn FnMut() -> Machine>) -> Self {
        let mut out = Self { read, last: None };
        out.beat();
        out
    }

    /// This machine.
    #[must_use]
    pub fn here() -> Self {
        let mut devices = HashMap::new();
        Self::new(Box::new(move || here(&mut devices)))
    }

    /// What happened since it was read last.
    pub fn beat(&mut self) -> Option<Pulse> {
        let (now, machine) = (Instant::now(), (self.read)());
        let (then, before) = self.last.replace((now, machine))?;
        Some(Pulse::between(&before, &machine, (now - then).as_secs_f64()))
    }
}

impl Pulse {
    fn between(before: &Machine, now: &Machine, seconds: f64) -> Self {
        let since = |now: Option<u64>, before: Option<u64>| now?.checked_sub(before?);
        let stalled = |now, before| Some((since(now, before)? as f64 / 1e6 / seconds.max(1e-9)).min(1.0));
        Self {
            machine: *now,
            memory_stalled: stalled(now.memory_stalled, before.memory_stalled),
            io_stalled: stalled(now.io_stalled, before.io_stalled),
            read: since(now.read, before.read),
            written: since(now.written, before.written),
            seconds,
        }
    }
}

fn here(devices: &mut HashMap<String, bool>) -> Machine {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let page = rustix::param::page_size() as u64;
    let mut out = Machine::default();
    out.memory(&text("/proc/meminfo"));
    out.limits(&text("/proc/vmstat"), page);
    out.memory_stalled = stalled(&text("/proc/pressure/memory"));
    out.io_stalled = stalled(&text("/proc/pressure/io"));
    out.devices(&text("/proc/diskstats"), &mut |name| {
        *devices.entry(name.to_owned()).or_insert_with(|| is_device(name))
    });
    out
}

/// A device that is no part of another, nor made of others: each byte is counted once.
fn is_device(name: &str) -> bool {
    let dir = Path::new("/sys/block").join(name.replace('/', "!"));
    let made_of = fs::read_dir(dir.join("slaves")).is_ok_and(|mut d| d.next().is_some());
    dir.is_dir() && !made_of && !["loop", "ram", "zram"].iter().any(|kind| name.starts_with(kind))
}

/// The total of the line `some`.
fn stalled(text: &str) -> Option<u64> {
    let line = text.lines().find(|l| l.starts_with("some "))?;
    line.split(' ').find_map(|w| w.strip_prefix("total="))?.parse().ok()
}

impl Machine {
    fn memory(&mut self, text: &str) {
        for line in text.lines() {
            let Some((name, rest)) = line.split_once(':') else { continue };
            let slot = match name {
                "MemTotal" => &mut self.total,
                "Active(file)" => &mut self.active,
                "Inactive(file)" => &mut self.inactive,
                _ => continue,
            };
            let kib = rest.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
            *slot = kib.and_then(|n| n.checked_mul(1024));
        }
    }

    fn limits(&mut self, text: &str, page: u64) {
        let value = |key: &str| {
            let pages =
                text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' ')?.parse::<u64>().ok());
            pages.and_then(|n| n.checked_mul(page))
        };
        self.dirty_limit = value("nr_dirty_threshold");
        self.dirty_background = value("nr_dirty_background_threshold");
    }

    fn devices(&mut self, text: &str, counts: &mut dyn FnMut(&str) -> bool) {
        const SECTOR: u64 = 512;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some(name) = words.get(2).filter(|name| counts(name)) else { continue };
            let _ = name;
            let sectors = |i: usize| words.get(i).and_then(|n| n.parse::<u64>().ok());
            if let (Some(read), Some(written)) = (sectors(5), sectors(9)) {
                let add = |sum: Option<u64>, n: u64| {
                    Some(sum.unwrap_or(0).saturating_add(n.saturating_mul(SECTOR)))
                };
                (self.read, self.written) = (add(self.read, read), add(self.written, written));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_files_say() {
        let mut m = Machine::default();
        m.memory("MemTotal:  100 kB\nActive:  7 kB\nActive(file): 20 kB\nInactive(file): 30 kB\n");
        m.limits("nr_dirty 5\nnr_dirty_threshold 10\nnr_dirty_background_threshold 4\n", 4096);
        m.devices(
            " 8 0 sda 1 0 10 0 2 0 20 0 0 0 0\n 8 1 sda1 1 0 10 0 2 0 20 0 0 0 0\n 8 16 sdb 1 0 1 0 1 0 1 0\n",
            &mut |name| name != "sda1",
        );
        m.io_stalled =
            stalled("some avg10=0.00 avg60=0.00 avg300=0.00 total=1500\nfull avg10=0.00 total=3\n");
        let expected = Machine {
            total: Some(102_400),
            active: Some(20_480),
            inactive: Some(30_720),
            dirty_limit: Some(40_960),
            dirty_background: Some(16_384),
            memory_stalled: None,
            io_stalled: Some(1500),
            read: Some(11 * 512),
            written: Some(21 * 512),
        };
        assert_eq!(m, expected);
        let later = Machine { io_stalled: Some(501_500), read: Some(0), written: Some(30 * 512), ..m };
        let pulse = Pulse::between(&m, &later, 2.0);
        assert_eq!((pulse.io_stalled, pulse.memory_stalled), (Some(0.25), None));
        assert_eq!((pulse.read, pulse.written), (None, Some(9 * 512)), "a device is gone");
    }
}
