//! Runs side by side, and where the difference between two of them went.

use serde::Serialize;

use super::data::Run;
use super::price::Price;
use super::time::PARTS;
use super::time::Part;
use super::time::Parts;
use super::units;
use super::units::Clock;
use crate::figures::Figure;

/// A row of the comparison.
pub struct Line {
    /// Its name.
    pub name: &'static str,
    value: fn(&Run) -> Option<Cell>,
}

/// What stands in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// A time.
    Seconds(f64),
    /// A number of anything.
    Count(u64),
    /// A number of pages.
    Pages(u64),
    /// A volume.
    Bytes(u64),
}

impl Line {
    /// The cell of a run; `None` for what is not known.
    #[must_use]
    pub fn cell(&self, run: &Run) -> Option<Cell> {
        (self.value)(run)
    }
}

macro_rules! figure {
    ($name:literal, $figure:ident, $cell:ident) => {
        Line { name: $name, value: |r| r.get(Figure::$figure).map(Cell::$cell) }
    };
}
macro_rules! part {
    ($name:literal, $part:ident) => {
        Line { name: $name, value: |r| Parts::divide(r).$part.map(Cell::Seconds) }
    };
}

/// All rows.
pub const LINES: &[Line] = &[
    Line { name: "wall", value: |r| Some(Cell::Seconds(r.wall_s)) },
    Line { name: "user", value: |r| r.usage.user_s.map(Cell::Seconds) },
    Line { name: "system", value: |r| r.usage.system_s.map(Cell::Seconds) },
    part!("data waits", data_s),
    part!("waits in faults", faults_s),
    part!("metadata waits", metadata_s),
    part!("look-up work", lookups_s),
    part!("write waits", writing_s),
    figure!("read", Accesses, Pages),
    figure!("hits", Hits, Pages),
    figure!("read-ahead hits", ReadAheadHits, Pages),
    figure!("misses", Misses, Pages),
    Line { name: "from devices", value: |r| r.usage.device_read_bytes.map(Cell::Bytes) },
    figure!("major faults", FaultMisses, Count),
    figure!("dirtied", Dirtied, Pages),
    figure!("direct read", DirectReadBytes, Bytes),
    figure!("metadata hits", MetaHits, Count),
    figure!("metadata misses", MetaMisses, Count),
    Line { name: "dentry misses", value: |r| r.lookups.dcache_misses.map(Cell::Count) },
];

/// What a cold cache costs in work of the kernel, as a part of a difference.
pub(super) const COLD_WORK: &str = "work for a cold cache";

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

/// A part of a difference as it is shown.
pub(super) struct Told {
    pub(super) name: &'static str,
    /// What changed, and its share where the whole is divided.
    pub(super) cells: Vec<String>,
}

impl Difference {
    /// What changed of the wall time, and of what is known of its parts: rounded so that it adds up.
    pub(super) fn told(&self) -> (String, Vec<Told>) {
        let clock = Clock::new(self.wall_s.abs());
        let wall = clock.round(self.wall_s);
        let known: Vec<&Piece> = self.parts.iter().filter(|p| p.seconds.is_some()).collect();
        let exact: Vec<f64> = known.iter().filter_map(|p| p.seconds).collect();
        let steps: Vec<f64> = exact.iter().map(|s| clock.count(*s)).collect();
        let whole = units::adding_up(&steps, wall);
        let divided = self.parts.iter().any(|p| p.share.is_some()) && wall != 0;
        let shares = if divided { units::shares(&exact, self.wall_s, 0) } else { Vec::new() };
        let row = |(i, part): (usize, &&Piece)| {
            let cells = std::iter::once(clock.change(whole[i])).chain(shares.get(i).cloned()).collect();
            Told { name: part.name, cells }
        };
        (clock.change(wall), known.iter().enumerate().map(row).collect())
    }

    /// From one run to another.
    #[must_use]
    pub fn between(title: String, then: &Run, now: &Run) -> Self {
        let (a, b) = Parts::of_both(then, now);
        let wall_s = now.wall_s - then.wall_s;
        let worth = worth_a_word(then, now);
        let overlap = a.overlap() || b.overlap();
        // Adding 0 makes -0 plain 0.
        let share = |s: f64| (worth && !overlap).then(|| s / wall_s + 0.0);
        let price = Price::between(then, now);
        let mut known = 0.0;
        let mut parts = Vec::new();
        for (part, text) in PARTS.iter().filter(|(part, _)| *part != Part::Unexplained) {
            let seconds = a.get(*part).zip(b.get(*part)).map(|(a, b)| b - a);
            known += seconds.unwrap_or(0.0);
            // Of the processor time, what a cold cache cost is told apart.
            let apart = price.filter(|_| *part == Part::Cpu).map(|p| -p.seconds);
            let own = seconds.map(|s| s - apart.unwrap_or(0.0));
            parts.push(Piece { name: text, seconds: own, share: own.and_then(share) });
            if let (Some(s), Some(_)) = (apart, own) {
                parts.push(Piece { name: COLD_WORK, seconds: Some(s), share: share(s) });
            }
        }
        let rest = (!overlap).then_some(wall_s - known);
        parts.push(Piece { name: "unexplained", seconds: rest, share: rest.and_then(share) });
        let mut notes: Vec<String> = price.iter().map(Price::note).collect();
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
    fn the_price_of_a_cold_cache_is_told_apart_from_the_commands_own_work() {
        let (mut cold, mut warm) = (run(1, 10.0, 6000, 3000), run(2, 0.4, 0, 100));
        cold.usage.system_s = Some(0.9);
        let d = |cold: &Run, warm: &Run| Difference::between("x".into(), cold, warm);
        assert!(
            d(&cold, &warm).parts.iter().all(|p| p.name != COLD_WORK),
            "nothing is known to have come in"
        );
        cold.figures.set(Figure::Fills, Some(9000));
        warm.figures.set(Figure::Fills, Some(0));
        let d = d(&cold, &warm);
        assert!((piece(&d, COLD_WORK).unwrap() + 0.8).abs() < 1e-9);
        assert!(piece(&d, "other CPU").unwrap().abs() < 1e-9);
        let sum: f64 = d.parts.iter().filter_map(|p| p.seconds).sum();
        assert!((sum - d.wall_s).abs() < 1e-9);
        assert!(
            d.notes.iter().any(|n| n.contains("It is the most that this can have cost")),
            "{:?}",
            d.notes
        );
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
