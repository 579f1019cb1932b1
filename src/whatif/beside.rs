//! A limit that others share: what they would have of another one decides how much is left, and is not known.

use super::Point;
use super::curve::WORTHLESS;
use super::size::Size;

/// What is said of each size, its error widened by what would be if the others kept what they have, and if all that is more or less
/// were theirs.
pub(super) fn widened(points: &[Point], size: &Size) -> Vec<Point> {
    let known: Vec<(f64, f64)> =
        points.iter().filter_map(|p| Some((size.whole(p.scale, p.scale), p.miss_ratio?.0))).collect();
    let widened = |p: &Point| {
        let (ratio, error) = p.miss_ratio?;
        let ends = [size.whole(p.scale, 1.0), size.whole(1.0, 1.0)];
        let most = ends.iter().map(|room| (at(&known, *room) - ratio).abs()).fold(0.0, f64::max);
        // Of what there is now, nothing is more or less.
        let error = if p.scale == 1.0 { error } else { error + most };
        Some((ratio, error)).filter(|(_, error)| *error < WORTHLESS)
    };
    points.iter().map(|p| Point { scale: p.scale, miss_ratio: widened(p) }).collect()
}

/// The ratio with so much room, between those that are known: without any, all misses.
fn at(known: &[(f64, f64)], room: f64) -> f64 {
    let mut below = (0.0, 1.0);
    for point in known {
        if room < point.0 {
            let part = (room.max(0.0) - below.0) / (point.0 - below.0);
            return below.1 + part * (point.1 - below.1);
        }
        below = *point;
    }
    below.1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a limit of 20, 10 are the neighbour's: 5, 10, 20 and 40 are ours at these scales; or, if it keeps what it has, 0, 10, 30 and 70.
    #[test]
    fn the_error_reaches_as_far_as_what_the_others_may_do() {
        let size = Size { limit: Some(20), beside: 10, ..Size::default() };
        let point = |scale, ratio| Point { scale, miss_ratio: Some((ratio, 0.02)) };
        let points = [point(0.5, 0.6), point(1.0, 0.4), point(2.0, 0.2), point(4.0, 0.1)];
        let told = widened(&points, &size);
        let errors: Vec<_> = told.iter().map(|p| p.miss_ratio.map(|(_, e)| (e * 1e3).round())).collect();
        // At a half, all might miss: 0.4 more. At twice as much it is the neighbour that might have it all, and 0.4 stays.
        assert_eq!(errors, [Some(420.0), Some(20.0), Some(220.0), Some(320.0)]);
        let worse = widened(&[point(0.5, 0.5), point(1.0, 0.4)], &size);
        assert_eq!(worse.iter().map(|p| p.miss_ratio.is_some()).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn what_is_between_two_sizes_is_between_their_ratios() {
        let known = [(5.0, 0.6), (10.0, 0.4)];
        let close = |room: f64, ratio: f64| (at(&known, room) - ratio).abs() < 1e-9;
        assert!(
            close(-1.0, 1.0) && close(0.0, 1.0) && close(2.5, 0.8) && close(7.5, 0.5) && close(99.0, 0.4)
        );
        assert_eq!(at(&[], 1.0), 1.0);
    }
}
