//! Runs side by side, and where the difference between two of them went.

use serde::Serialize;

use super::data::Run;
use super::time::PARTS;
use super::time::Part;
use super::time::Parts;
use super::units;
use crate::figures::Figure;

/// A row of the comparison.
pub struct Line {
    /// Its name.
    pub name: &'static str,
    value: fn(&Run) -> Option<Cell>,
}

/// What stands in it.
enum Cell {
    Seconds(f64),
    Count(u64),
    Bytes(u64),
}

impl Line {
    /// The cell of a run; `-` for what is not known.
    #[must_use]
    pub fn show(&self, run: &Run) -> String {
        match (self.value)(run) {
            None => "-".into(),
            Some(Cell::Seconds(x)) => format!("{x:.3} s"),
            Some(Cell::Count(n)) => n.to_string(),
            Some(Cell::Bytes(n)) => units::bytes(n),
        }
    }
}

macro_rules! figure {
    ($name:literal, $figure:ident, $cell:ident) => {
        Line { name: $name, value: |r| r.get(Figure::$figure).map(Cell::$cell) }
    };
}
macro_rules! part {
    ($name:literal, $part:ident) => {
        Line { name: $name, value: |r| Parts::of(r).$part.map(Cell::Seconds) }
    };
}

/// All rows.
pub const LINES: &[Line] = &[
    Line { name: "wall", value: |r| Some(Cell::Seconds(r.wall_s)) },
    Line { name: "user", value: |r| r.usage.user_s.map(Cell::Seconds) },
    Line { name: "system", value: |r| r.usage.system_s.map(Cell::Seconds) },
    part!("data waits", data_s),
    part!("metadata waits", metadata_s),
    part!("look-up work", lookups_s),
    part!("write waits", writing_s),
    figure!("pages read", Accesses, Count),
    figure!("hits", Hits, Count),
    figure!("read-ahead hits", ReadAheadHits, Count),
    figure!("misses", Misses, Count),
    Line { name: "from devices", value: |r| r.usage.device_read_bytes.map(Cell::Bytes) },
    figure!("major faults", FaultMisses, Count),
    figure!("pages dirtied", Dirtied, Count),
    figure!("direct read", DirectReadBytes, Bytes),
    figure!("metadata hits", MetaHits, Count),
    figure!("metadata misses", MetaMisses, Count),
    Line { name: "dentry misses", value: |r| r.lookups.dcache_misses.map(Cell::Count) },
];

/// A part of a difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Piece {
    /// What it is.
    pub name: &'static str,
    /// Seconds more than before; `None`: not known.
    pub seconds: Option<f64>,
    /// Of the whole difference; `None` where that is too small to be divided.
    pub share: Option<f64>,
}

/// Where the difference in time between two runs went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Which two.
    pub title: String,
    /// Seconds of wall time more than before.
    pub wall_s: f64,
    /// Its parts. They add up to it, unless threads overlap.
    pub parts: Vec<Piece>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// Whether two runs differ by so much that it can be divided: a hundredth of a second more or less is the weather.
pub(super) fn worth_a_word(then: &Run, now: &Run) -> bool {
    let wall_s = (now.wall_s - then.wall_s).abs();
    wall_s > 0.01 && wall_s > 0.02 * then.wall_s.max(now.wall_s)
}

impl Difference {
    /// From one run to another.
    #[must_use]
    pub fn between(title: String, then: &Run, now: &Run) -> Self {
        let (a, b) = (Parts::of(then), Parts::of(now));
        let wall_s = now.wall_s - then.wall_s;
        let worth = worth_a_word(then, now);
        let overlap = a.overlap() || b.overlap();
        // Adding 0 makes -0 plain 0.
        let share = |s: f64| (worth && !overlap).then(|| s / wall_s + 0.0);
        let mut known = 0.0;
        let mut parts = Vec::new();
        for (part, text) in PARTS.iter().filter(|(part, _)| *part != Part::Unexplained) {
            let seconds = a.get(*part).zip(b.get(*part)).map(|(a, b)| b - a);
            known += seconds.unwrap_or(0.0);
            parts.push(Piece { name: text, seconds, share: seconds.and_then(share) });
        }
        let rest = (!overlap).then_some(wall_s - known);
        parts.push(Piece { name: "unexplained", seconds: rest, share: rest.and_then(share) });
        let mut notes = Vec::new();
        if overlap {
            notes.push(
                "Threads worked at the same time: these are times of threads, which do not add up to wall time."
                    .into(),
            );
        }
        if a.explained().is_none() || b.explained().is_none() {
            notes.push("This kernel does not tell where threads wait: the rest is unexplained.".into());
        }
        Self { title, wall_s, parts, notes }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::report::data::Waits;

    fn run(number: u32, wall_s: f64, read: u64, lookup: u64) -> Run {
        let zero = Some(0);
        let mut run = Run { number, wall_s, ..Run::default() };
        run.usage.user_s = Some(0.1);
        run.usage.system_s = Some(0.1);
        run.waits = Waits {
            read_ns: Some(read * 1_000_000),
            lookup_ns: Some(lookup * 1_000_000),
            fault_ns: zero,
            exec_ns: zero,
            open_ns: zero,
            directory_ns: zero,
            write_ns: zero,
            sync_ns: zero,
            cpu_ns: zero,
            ..Waits::default()
        };
        run
    }

    fn piece(d: &Difference, name: &str) -> Option<f64> {
        d.parts.iter().find(|p| p.name == name).unwrap().seconds
    }

    #[test]
    fn a_difference_adds_up() {
        let (cold, warm) = (run(1, 10.0, 6000, 3000), run(2, 0.4, 0, 100));
        let d = Difference::between("run 1 to run 2".into(), &cold, &warm);
        assert!((d.wall_s + 9.6).abs() < 1e-9);
        assert!((piece(&d, "waiting for data").unwrap() + 6.0).abs() < 1e-9);
        assert!((piece(&d, "waiting for metadata").unwrap() + 2.9).abs() < 1e-9);
        // Not counted on this kernel: unknown, and part of what is unexplained.
        assert_eq!(piece(&d, "dentry/inode look-ups"), None);
        let sum: f64 = d.parts.iter().filter_map(|p| p.seconds).sum();
        assert!((sum - d.wall_s).abs() < 1e-9);
        let shares: f64 = d.parts.iter().filter_map(|p| p.share).sum();
        assert!((shares - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_difference_too_small_has_no_shares() {
        let d = Difference::between("x".into(), &run(1, 1.0, 0, 0), &run(2, 1.001, 0, 0));
        assert!(d.parts.iter().all(|p| p.share.is_none()));
    }

    #[test]
    fn threads_that_overlap_have_no_shares_either() {
        let d = Difference::between("x".into(), &run(1, 1.0, 9000, 0), &run(2, 5.0, 0, 0));
        assert_eq!(piece(&d, "unexplained"), None);
        assert_eq!(d.notes.len(), 1);
    }
}
