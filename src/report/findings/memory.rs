//! What more memory would bring, from the curve of `--what-if`.

use serde_json::json;

use super::common::percent;
use super::finding::Finding;
use crate::report::data::Run;

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
    would_help(&points(run))
}

pub(super) fn helps_not(run: &Run, _: &[&Run]) -> Option<Finding> {
    would_not_help(&points(run))
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

fn evidence(now: Point, twice: Point) -> serde_json::Value {
    json!({ "miss_ratio": now.miss_ratio, "error": now.error, "miss_ratio_doubled": twice.miss_ratio,
        "error_doubled": twice.error })
}

/// With twice the memory it would miss less: by more than both predictions may be off, and by a quarter or more.
fn would_help(curve: &[Point]) -> Option<Finding> {
    let (now, twice) = doubled(curve)?;
    let gain = now.miss_ratio - twice.miss_ratio;
    if gain <= now.error + twice.error || gain < now.miss_ratio / 4.0 {
        return None;
    }
    let text = format!(
        "With twice the memory for the cache {} of its accesses would miss instead of {} (± {} and ± {}).",
        percent(twice.miss_ratio),
        percent(now.miss_ratio),
        percent(twice.error),
        percent(now.error),
    );
    Some(
        Finding::new("memory-would-help", text, evidence(now, twice))?
            .remedy("Raise the limit of its cgroup, or leave it more of the memory of the machine."),
    )
}

/// It misses, and would with twice the memory: the two do not differ by more than they may be off. Silent where still
/// more would help.
fn would_not_help(curve: &[Point]) -> Option<Finding> {
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
        "Twice the memory would not help it: {} of its accesses miss, and with twice the memory for the cache {} would (± {} and ± {}).",
        percent(now.miss_ratio),
        percent(twice.miss_ratio),
        percent(now.error),
        percent(twice.error),
    );
    Finding::new("memory-would-not-help", text, evidence(now, twice))
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
        [would_help(curve), would_not_help(curve)].into_iter().flatten().map(|f| f.id).collect()
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
