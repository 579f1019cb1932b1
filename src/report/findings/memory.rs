//! What more memory would bring, from the curve of `--what-if`.

use serde_json::json;

use super::common::percent;
use super::finding::Finding;
use crate::report::data::Run;
use crate::report::units;
use crate::text::foreign::Foreign;
use crate::whatif::Prediction;

/// A point of a curve: the part of the accesses that would need a device.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    /// Times the present size.
    scale: f64,
    /// Misses of all accesses.
    miss_ratio: f64,
    /// How far that may be off.
    error: f64,
}

/// The points of a run of which something can be said; none where nobody asked.
fn points(run: &Run) -> Vec<Point> {
    // Where it contradicts what was counted it proves nothing.
    let sound = run.what_if.iter().filter(|w| !w.is_unlike());
    let curve = sound.filter_map(|w| w.curve.as_ref()).flatten();
    let point = |p: &crate::whatif::Scaled| {
        Some(Point { scale: p.scale, miss_ratio: p.miss_ratio?, error: p.error? })
    };
    curve.filter_map(point).collect()
}

pub(super) fn helps(run: &Run, _: &[&Run]) -> Option<Finding> {
    would_help(&points(run), &Limit::of(run.what_if.as_ref()))
}

pub(super) fn helps_not(run: &Run, _: &[&Run]) -> Option<Finding> {
    would_not_help(&points(run), &Limit::of(run.what_if.as_ref()))
}

/// What it is that is doubled: a limit holds more than what is cached of files.
#[derive(Debug, Default)]
struct Limit<'a> {
    /// `None`: there is none, and the cache itself is doubled.
    bytes: Option<u64>,
    /// The cgroup above whose limit it is; `None`: its own.
    of: Option<&'a Foreign>,
}

impl<'a> Limit<'a> {
    fn of(told: Option<&'a Prediction>) -> Self {
        let bytes = told.and_then(|told| told.limit_bytes);
        Self { bytes, of: told.and_then(|told| told.limit_of.as_ref()).filter(|_| bytes.is_some()) }
    }

    /// Twice as much, in words.
    fn twice(&self) -> String {
        let size = |limit: u64| units::bytes(limit.saturating_mul(2));
        match (self.bytes, self.of) {
            (None, _) => "twice the memory for the cache".into(),
            (Some(limit), None) => format!("twice the limit of its cgroup ({})", size(limit)),
            (Some(limit), Some(above)) => {
                format!("twice the limit of the cgroup {above} above its own ({})", size(limit))
            }
        }
    }

    fn remedy(&self) -> String {
        match (self.bytes, self.of) {
            (None, _) => "Leave it more of the memory of the machine.".into(),
            (Some(_), None) => "Raise the limit of its cgroup (memory.max, memory.high).".into(),
            (Some(_), Some(above)) => format!(
                "Raise the limit of the cgroup {above} (memory.max, memory.high): that of its own is not what it reaches."
            ),
        }
    }
}

/// Misses below which there is nothing to be had.
const LEAST: f64 = 0.05;

/// The points for what it has now, and for twice as much.
fn doubled(curve: &[Point]) -> Option<(Point, Point)> {
    let at = |scale: f64| curve.iter().copied().find(|p| (p.scale - scale).abs() < 1e-6);
    let known =
        |p: &Point| [p.miss_ratio, p.error].iter().all(|x| x.is_finite() && *x >= 0.0) && p.miss_ratio <= 1.0;
    at(1.0).filter(known).zip(at(2.0).filter(known))
}

fn evidence(now: Point, twice: Point, limit: &Limit<'_>) -> serde_json::Value {
    json!({ "miss_ratio": now.miss_ratio, "error": now.error, "miss_ratio_doubled": twice.miss_ratio,
        "error_doubled": twice.error, "limit_bytes": limit.bytes, "limit_of": limit.of })
}

/// With twice the memory it would miss less: by more than both predictions may be off, and by a quarter or more.
fn would_help(curve: &[Point], limit: &Limit<'_>) -> Option<Finding> {
    let (now, twice) = doubled(curve)?;
    let gain = now.miss_ratio - twice.miss_ratio;
    if gain <= now.error + twice.error || gain < now.miss_ratio / 4.0 {
        return None;
    }
    let text = format!(
        "With {} {} of its accesses would miss instead of {} (± {} and ± {}).",
        limit.twice(),
        percent(twice.miss_ratio),
        percent(now.miss_ratio),
        percent(twice.error),
        percent(now.error),
    );
    Some(Finding::new("memory-would-help", text, evidence(now, twice, limit))?.remedy(limit.remedy()))
}

/// It misses, and would with twice the memory: the two do not differ by more than they may be off. Silent where still
/// more would help.
fn would_not_help(curve: &[Point], limit: &Limit<'_>) -> Option<Finding> {
    let (now, twice) = doubled(curve)?;
    let gain = (now.miss_ratio - twice.miss_ratio).abs();
    if now.miss_ratio < LEAST || gain > now.error + twice.error {
        return None;
    }
    // So far off that it could be a quarter less as well: nothing is proved.
    if now.error + twice.error >= now.miss_ratio / 4.0 {
        return None;
    }
    // Of a loop nothing is found until all of it has room.
    if curve.iter().any(|p| p.scale > 2.0 && now.miss_ratio - p.miss_ratio > now.error + p.error) {
        return None;
    }
    let text = format!(
        "It would not help to have {}: {} of its accesses miss, and {} would then (± {} and ± {}).",
        limit.twice(),
        percent(now.miss_ratio),
        percent(twice.miss_ratio),
        percent(now.error),
        percent(twice.error),
    );
    Finding::new("memory-would-not-help", text, evidence(now, twice, limit))
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// With four times the memory it misses as often as with twice.
    fn curve(now: (f64, f64), twice: (f64, f64)) -> Vec<Point> {
        let point = |scale, (miss_ratio, error)| Point { scale, miss_ratio, error };
        vec![point(0.5, (0.9, 0.01)), point(1.0, now), point(2.0, twice), point(4.0, twice)]
    }

    fn ids(curve: &[Point]) -> Vec<&'static str> {
        let limit = Limit::default();
        [would_help(curve, &limit), would_not_help(curve, &limit)]
            .into_iter()
            .flatten()
            .map(|f| f.id)
            .collect()
    }

    #[test]
    fn it_would_help() {
        assert_eq!(ids(&curve((0.4, 0.02), (0.1, 0.02))), ["memory-would-help"]);
        // Less than the errors, and less than a quarter.
        assert!(ids(&curve((0.4, 0.2), (0.1, 0.11))).is_empty());
        assert!(ids(&curve((0.4, 0.01), (0.35, 0.01))).is_empty());
        // Exactly the errors is not more than these, exactly a quarter is enough.
        assert!(ids(&curve((0.5, 0.25), (0.0, 0.25))).is_empty());
        assert_eq!(ids(&curve((0.5, 0.0), (0.375, 0.0))), ["memory-would-help"]);
    }

    /// A run with 40 % misses now, and so many with twice the memory.
    fn run(twice: Option<f64>) -> Run {
        use crate::whatif::Scaled;
        let at = |scale, miss_ratio| Scaled { scale, miss_ratio, error: Some(0.02), ..Scaled::default() };
        let curve = Some(vec![at(1.0, Some(0.4)), at(2.0, twice)]);
        let what_if = Some(crate::whatif::Prediction { curve, ..Default::default() });
        Run { number: 1, what_if, ..Run::default() }
    }

    pub(in crate::report::findings) fn pairs() -> Vec<super::super::crowd::Pair> {
        vec![
            ("memory-would-help", vec![run(Some(0.29))], vec![run(Some(0.31))]),
            ("memory-would-not-help", vec![run(Some(0.37))], vec![run(Some(0.35))]),
        ]
    }

    #[test]
    fn the_curve_of_the_run_is_what_counts() {
        assert_eq!(helps(&run(Some(0.1)), &[]).unwrap().id, "memory-would-help");
        assert_eq!(helps_not(&run(Some(0.39)), &[]).unwrap().id, "memory-would-not-help");
        assert!(helps(&run(None), &[]).is_none() && helps_not(&run(None), &[]).is_none());
        assert!(helps(&Run::default(), &[]).is_none());
    }

    /// A limit is of all memory, and may be that of one above.
    #[test]
    fn what_is_doubled_is_named() {
        let of = |limit_bytes, limit_of: Option<&str>| {
            let told = |ratio| {
                let mut run = run(Some(ratio));
                let told = run.what_if.as_mut().unwrap();
                (told.limit_bytes, told.limit_of) = (limit_bytes, limit_of.map(Foreign::from));
                run
            };
            let (more, same) = (helps(&told(0.1), &[]).unwrap(), helps_not(&told(0.39), &[]).unwrap());
            (more.text, more.remedy.unwrap(), same.text)
        };
        let (more, remedy, same) = of(None, None);
        assert!(more.starts_with("With twice the memory for the cache 10 % of"), "{more}");
        assert!(same.starts_with("It would not help to have twice the memory for the cache: 40 %"), "{same}");
        assert!(!remedy.contains("limit"), "{remedy}");
        let (more, remedy, same) = of(Some(48 << 20), None);
        assert!(more.starts_with("With twice the limit of its cgroup (96 MiB) 10 % of"), "{more}");
        assert!(same.contains("twice the limit of its cgroup (96 MiB): 40 %"), "{same}");
        assert!(remedy.starts_with("Raise the limit of its cgroup"), "{remedy}");
        let (more, remedy, _) = of(Some(20 << 20), Some("/p\x1b[2J"));
        assert!(more.contains("twice the limit of the cgroup /p\\x1b[2J above its own (40 MiB)"), "{more}");
        assert!(remedy.starts_with("Raise the limit of the cgroup /p\\x1b[2J"), "{remedy}");
    }

    #[test]
    fn it_would_not_help() {
        assert_eq!(ids(&curve((0.4, 0.02), (0.39, 0.02))), ["memory-would-not-help"]);
        // It hardly misses, or so little is known that it could be otherwise.
        assert!(ids(&curve((0.04, 0.003), (0.039, 0.003))).is_empty());
        assert!(ids(&curve((0.4, 0.2), (0.39, 0.2))).is_empty());
        // A loop of three times the cache: all of it has room in four times.
        let mut looping = curve((1.0, 0.02), (1.0, 0.02));
        looping[3].miss_ratio = 0.0;
        assert!(ids(&looping).is_empty());
        // Of what is larger still nothing may be known.
        assert_eq!(ids(&looping[..3]), ["memory-would-not-help"]);
    }

    #[test]
    fn of_what_is_not_known_nothing_is_said() {
        assert!(ids(&[]).is_empty());
        assert!(ids(&curve((0.4, 0.02), (0.1, 0.02))[..2]).is_empty());
        assert!(ids(&curve((f64::NAN, 0.02), (0.1, 0.02))).is_empty());
        assert!(ids(&curve((0.4, f64::INFINITY), (0.1, 0.02))).is_empty());
        assert!(ids(&curve((7.0, 0.0), (0.1, 0.02))).is_empty());
        assert!(ids(&curve((0.0, 0.0), (0.0, 0.0))).is_empty());
    }
}
