//! What came of a simulation: miss ratios with their errors, or why there are none.

use super::SCALES;

/// Groups of stretches of pages, whose differences tell the error of choosing pages.
pub const GROUPS: usize = 16;

/// How far the model of the active and the inactive list was from the kernel, beyond what comes of choosing pages:
/// `docs/guide/what-if.md`.
pub const MODEL_ERROR: f64 = 0.02;
/// The same of the multi-generational LRU.
pub const GENERATIONS_ERROR: f64 = 0.05;
/// How much farther it was, where much of what is brought in is read ahead and not used.
const AHEAD_ERROR: f64 = 0.035;
/// More of it, for twice the present cache: what is read ahead depends there on what was read ahead before.
const LARGER_AHEAD_ERROR: f64 = 0.05;
/// How much farther it was at half the size, where much of what is brought in lies around faults: a smaller cache has
/// more of them, and brings in more around them, of which it is not known which pages.
const AROUND_ERROR: f64 = 0.02;
/// How much farther it was, where a part of all uses are writes: how long what is dirty stays is left out.
const WRITES_ERROR: f64 = 0.01;
/// Beyond that, for four times the present cache: of PostgreSQL's mixture it was 0.072 off there, where little was seen.
const FAR_WRITES_ERROR: f64 = 0.04;
const MUCH_WRITTEN: f64 = 0.1;
/// The part of what is brought in that is much.
pub const MUCH_UNUSED: f64 = 0.1;

/// A simulation of what there is that is off by more than this from what was counted says nothing of other sizes.
const UNLIKE: f64 = 0.1;

/// An error of so much, and nothing is said.
pub(super) const WORTHLESS: f64 = 0.5;

/// Accesses of followed pages below which nothing is said.
const FEWEST: u64 = 1000;
/// Pages that a cache must have room for, of those that are followed.
const SMALLEST: f64 = 32.0;
/// Uses of each page that a larger cache has room for, below which nothing is said of one that evicts: what it would have kept
/// has not been seen. (The cache of now is compared with what was counted.) Of 1.7 it was 0.072 off (PostgreSQL's mixture), of 2.2 0.014.
const FEWEST_USES: f64 = 2.0;
/// The part of all accesses of which it may be unknown how they would have ended.
const MOST_UNKNOWN: f64 = 0.1;

/// Pages that were brought in for reads and faults in a stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fetched {
    /// All of them.
    pub pages: u64,
    /// Read ahead.
    pub ahead: u64,
    /// Read ahead, in this stretch or before, and used in this one: less than nothing may be left of a stretch alone.
    pub used: u64,
    /// Missed by faults: each brought in, and more around it, which is among what was read ahead.
    pub faults: u64,
}

impl Fetched {
    const fn and(self, other: Self) -> Self {
        Self {
            pages: self.pages + other.pages,
            ahead: self.ahead + other.ahead,
            used: self.used + other.used,
            faults: self.faults + other.faults,
        }
    }

    /// The part of what was brought in that was read ahead and not used. `around`: pages that faults brought in, of which nobody
    /// counts which were used.
    fn unused(self, around: f64) -> Option<f64> {
        let unused = self.ahead.saturating_sub(self.used) as f64;
        (self.pages > 0).then(|| (unused - around) / self.pages as f64)
    }
}

/// A stretch of time.
#[derive(Debug, Clone, Default)]
pub struct Slice {
    /// Accesses of followed pages.
    pub sampled: u64,
    /// The same as accesses of all pages.
    pub weighted: f64,
    /// Pages that became dirty, like accesses of all pages.
    pub written: f64,
    /// Accesses of all pages as they were counted, and how many of them had to be brought in.
    pub accesses: Option<(u64, u64)>,
    /// Pages that were brought in.
    pub fetched: Option<Fetched>,
    /// Pages that were brought in around faults, by the simulation of the cache of now.
    pub around: f64,
    /// The same as they came, like all pages.
    pub came_around: f64,
    /// By scale and group: accesses that would have missed.
    pub misses: [[f64; GROUPS]; SCALES.len()],
    /// By scale: accesses of which that is unknown.
    pub unknown: [f64; SCALES.len()],
    /// By scale, where the policy has two answers: how many accesses more one misses than the other.
    pub apart: [f64; SCALES.len()],
    /// By scale: whether the cache was full at the end.
    pub full: Vec<bool>,
    /// The part of all pages that was followed at the end.
    pub rate: f64,
    /// Touches that there was no room for.
    pub dropped: u64,
}

impl Slice {
    /// With the one that came next.
    pub(super) fn and(mut self, next: Self) -> Self {
        self.sampled += next.sampled;
        self.weighted += next.weighted;
        self.written += next.written;
        self.around += next.around;
        self.came_around += next.came_around;
        self.accesses = self.accesses.zip(next.accesses).map(|((a, m), (b, n))| (a + b, m + n));
        self.fetched = self.fetched.zip(next.fetched).map(|(a, b)| a.and(b));
        let misses = self.misses.iter_mut().flatten().zip(next.misses.iter().flatten());
        let unknown = self.unknown.iter_mut().zip(&next.unknown);
        let apart = self.apart.iter_mut().zip(&next.apart);
        misses.chain(unknown).chain(apart).for_each(|(a, b)| *a += b);
        self.dropped += next.dropped;
        (self.full, self.rate) = (next.full, next.rate);
        self
    }

    /// Accesses of all pages. Where touches were dropped, what was followed says more than what was counted.
    fn all(&self) -> f64 {
        match self.accesses {
            Some((accesses, _)) if self.dropped == 0 => accesses as f64,
            _ => self.weighted,
        }
    }
}

/// A size, and what it would bring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Relative to what there is now.
    pub scale: f64,
    /// The part of the accesses whose page would have to be brought in, and how far that may be off.
    pub miss_ratio: Option<(f64, f64)>,
}

/// The curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Accesses of all pages that were counted.
    pub accesses: Option<u64>,
    /// How many of these had to be brought in.
    pub missed: Option<u64>,
    /// The part of the accesses whose page had to be brought in, as it was.
    pub now: Option<f64>,
    /// By scale; or why nothing can be said.
    pub points: Result<Vec<Point>, String>,
    /// How far the simulation of what there is now is off from what was counted in the same time.
    pub off: Option<f64>,
    /// Whether that is so far that it says nothing of other sizes.
    pub unlike: bool,
    /// Of the pages that were brought in, the part that was read ahead for reads and not used.
    pub unused: Option<f64>,
    /// Whether most of what was brought in came by faults: a fault that finds what another one has just brought in misses
    /// nothing, so that a ratio of accesses says little of what comes in.
    pub by_faults: bool,
    /// The lowest part of all pages that was followed.
    pub rate: f64,
    /// Touches that there was no room for.
    pub dropped: u64,
}

/// Whether most of what was brought in came by faults, and it was more of all accesses than what a model may be off in any case.
fn by_faults(slices: &[Slice]) -> bool {
    // Of what is not known nothing is said.
    let sum = slices.iter().try_fold(Fetched::default(), |sum, s| s.fetched.map(|more| sum.and(more)));
    let Some(sum) = sum else { return false };
    let faults = sum.faults as f64 + slices.iter().map(|s| s.came_around).sum::<f64>();
    faults > sum.pages as f64 / 2.0 && faults > MODEL_ERROR * slices.iter().map(Slice::all).sum::<f64>()
}

/// Of the slices of a run, those that a cache is judged by: those after it has become full, but not before the first
/// quarter is over; and no fewer than the last half.
fn judged(slices: &[Slice], scale: usize) -> &[Slice] {
    let half = slices.len() / 2;
    let filled = slices.iter().position(|s| s.full.get(scale) == Some(&true)).map_or(half, |n| 2 * n + 1);
    &slices[filled.clamp(slices.len() / 4, half)..]
}

fn point(slices: &[Slice], i: usize, size: Option<f64>) -> Option<(f64, f64)> {
    let evicts = slices.last().is_some_and(|s| s.full.get(i) == Some(&true));
    let seen: f64 = slices.iter().map(Slice::all).sum();
    if SCALES[i] > 1.0 && evicts && seen < size? * FEWEST_USES {
        return None;
    }
    let slices = judged(slices, i);
    let rate = slices.iter().map(|s| s.rate).fold(1.0, f64::min);
    if size? * rate < SMALLEST {
        return None;
    }
    let all: f64 = slices.iter().map(Slice::all).sum();
    let unknown = slices.iter().map(|s| s.unknown[i]).sum::<f64>() / all;
    if all <= 0.0 || unknown > MOST_UNKNOWN {
        return None;
    }
    let groups: Vec<f64> =
        (0..GROUPS).map(|g| slices.iter().map(|s| s.misses[i][g]).sum::<f64>() / all).collect();
    let ratio: f64 = groups.iter().sum();
    let mean = ratio / GROUPS as f64;
    let spread = groups.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / (GROUPS - 1) as f64;
    // Nothing is left to chance where every page is followed.
    let sampling = 2.0 * (spread * GROUPS as f64 * (1.0 - rate)).sqrt();
    let apart = slices.iter().map(|s| s.apart[i]).sum::<f64>().abs() / all;
    // What is unknown may all have missed or all not: the middle is off by half of it at most, as it is between two answers.
    Some(((ratio + unknown / 2.0).clamp(0.0, 1.0), sampling + (unknown + apart) / 2.0))
}

impl Curve {
    /// Whether nothing is said of any size since the simulation is not like what was counted.
    #[must_use]
    pub fn is_far_off(&self) -> bool {
        self.points.is_err() && self.off.is_some_and(|off| off >= WORTHLESS)
    }

    /// Of the slices of a run, and the sizes in pages by scale. `model`: how far the policy is off at its best.
    #[must_use]
    pub fn new(slices: &[Slice], sizes: &[Option<f64>], model: f64) -> Self {
        let sum = |slices: &[Slice]| -> Option<(u64, u64)> {
            let each = slices.iter().map(|s| s.accesses);
            each.into_iter()
                .try_fold((0, 0), |(a, m), s| s.map(|(accesses, misses)| (a + accesses, m + misses)))
        };
        let ratio = |(accesses, misses): (u64, u64)| (accesses > 0).then(|| misses as f64 / accesses as f64);
        let here = SCALES.iter().position(|s| *s == 1.0).unwrap_or_default();
        let counted = sum(judged(slices, here)).and_then(ratio);
        let simulated = point(slices, here, sizes.get(here).copied().flatten());
        let off = simulated.zip(counted).map(|((simulated, _), counted)| (simulated - counted).abs());
        // Also where few accesses miss, and it has no part of these.
        let unlike = off.zip(counted);
        let unlike = unlike.is_some_and(|(off, counted)| off > UNLIKE || off > model && off > counted / 2.0);
        let judged = &slices[slices.len() / 2..];
        let now = sum(judged).and_then(ratio);
        let sampled: u64 = judged.iter().map(|s| s.sampled).sum();
        let (accesses, missed) = sum(slices).unzip();
        let unused = judged.iter().try_fold(Fetched::default(), |sum, s| s.fetched.map(|f| sum.and(f)));
        let unused = unused.and_then(|sum| sum.unused(judged.iter().map(|s| s.came_around).sum()));
        let ahead = unused.is_some_and(|u| u > MUCH_UNUSED);
        let points = match () {
            () if sizes.iter().all(Option::is_none) => Err(
                "the size of the cache is not known, or there is no room in it for pages that come and go"
                    .into(),
            ),
            () if sampled < FEWEST => Err(format!(
                "not enough seen yet: {sampled} accesses of the pages that are followed, of which {FEWEST} are needed \
                 in the second half of the time"
            )),
            () => Ok(Self::points(slices, sizes, off.unwrap_or(0.0).max(model), ahead)),
        };
        let points =
            points.and_then(|points: Vec<Point>| match points.iter().all(|p| p.miss_ratio.is_none()) {
                // The simulation has the present size, and is off by that much: it is the error that says nothing.
                true if off.is_some_and(|off| off.max(model) >= WORTHLESS) => {
                    Err("the error would be a half or more: the simulation is not like what was counted"
                        .into())
                }
                true => Err("not enough seen yet: most pages were used once in this time".into()),
                false => Ok(points),
            });
        let rate = slices.iter().map(|s| s.rate).fold(1.0, f64::min);
        let dropped = slices.iter().map(|s| s.dropped).sum();
        let by_faults = by_faults(slices);
        Self { accesses, missed, off, unlike, unused, by_faults, now, points, rate, dropped }
    }

    /// The points. `off`: what the model says of the cache of now was compared with what was counted, and no point is
    /// called better than that one turned out. `ahead`: much was read ahead and not used.
    fn points(slices: &[Slice], sizes: &[Option<f64>], off: f64, ahead: bool) -> Vec<Point> {
        let raw: Vec<_> =
            (0..SCALES.len()).map(|i| point(slices, i, sizes.get(i).copied().flatten())).collect();
        let here = SCALES.iter().position(|s| *s == 1.0).and_then(|i| raw[i]);
        let judged = &slices[slices.len() / 2..];
        let around =
            judged.iter().map(|s| s.around).sum::<f64>() / judged.iter().map(Slice::all).sum::<f64>();
        let much = here.is_some_and(|(missed, _)| around > MUCH_UNUSED * (around + missed));
        let smaller = |scale: f64| if much { AROUND_ERROR * 2.0 * (1.0 - scale).max(0.0) } else { 0.0 };
        let larger = |scale: f64| match ahead {
            true => AHEAD_ERROR + LARGER_AHEAD_ERROR * (scale - 1.0).clamp(0.0, 1.0),
            false => 0.0,
        };
        let [written, read] =
            [|s: &Slice| s.written, |s: &Slice| s.weighted].map(|of| judged.iter().map(of).sum::<f64>());
        let dirty = |scale: f64| match written > MUCH_WRITTEN * (written + read) {
            true => WRITES_ERROR + FAR_WRITES_ERROR * ((scale - 2.0) / 2.0).clamp(0.0, 1.0),
            false => 0.0,
        };
        let points = SCALES.into_iter().zip(raw);
        let told = |scale, (ratio, error): (f64, f64)| {
            (ratio, error + off + smaller(scale) + larger(scale) + dirty(scale))
        };
        // What may as well be the opposite is none.
        let some =
            |scale, raw: Option<_>| raw.map(|raw| told(scale, raw)).filter(|(_, error)| *error < WORTHLESS);
        points.map(|(scale, raw)| Point { scale, miss_ratio: some(scale, raw) }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stretches in which many accesses were seen, all sizes full. `each`: misses counted in each, of 1000; and by the
    /// simulation.
    fn slices(counted: u64, simulated: f64) -> Vec<Slice> {
        let one = || Slice {
            sampled: 1000,
            weighted: 1000.0,
            accesses: Some((1000, counted)),
            misses: [[simulated / GROUPS as f64; GROUPS]; SCALES.len()],
            full: vec![true; SCALES.len()],
            rate: 1.0,
            ..Slice::default()
        };
        (0..8).map(|_| one()).collect()
    }

    fn curve(slices: &[Slice]) -> Curve {
        Curve::new(slices, &[Some(1000.0); SCALES.len()], MODEL_ERROR)
    }

    /// A window in one stretch, which is used in the next ones.
    #[test]
    fn what_is_used_in_a_later_stretch_is_not_unused() {
        let mut slow = slices(100, 100.0);
        for (n, slice) in slow.iter_mut().enumerate() {
            let ahead = if n % 4 == 0 { 2048 } else { 0 };
            slice.fetched = Some(Fetched { pages: ahead, ahead, used: 512, faults: 0 });
        }
        assert_eq!(curve(&slow).unused, Some(0.0));
        // Half of it is not.
        slow.iter_mut().for_each(|slice| slice.fetched.iter_mut().for_each(|f| f.used = 256));
        assert_eq!(curve(&slow).unused, Some(0.5));
        // What was read ahead before the second half counts for nothing else.
        slow.iter_mut().for_each(|slice| slice.fetched.iter_mut().for_each(|f| f.used = 1000));
        assert_eq!(curve(&slow).unused, Some(0.0));
        slow[7].fetched = None;
        assert_eq!(curve(&slow).unused, None);
    }

    /// A loop over a mapped file that has no room: of each window one page is missed, and all others are found.
    #[test]
    fn what_faults_bring_in_is_no_unused_read_ahead_and_no_ratio_tells_of_it() {
        let mapped = |faults, around: f64, reads: u64| {
            let mut all = slices(10, 10.0);
            for slice in &mut all {
                let ahead = around as u64 + reads;
                slice.came_around = around;
                slice.fetched = Some(Fetched { pages: ahead + faults, ahead, used: reads, faults });
            }
            curve(&all)
        };
        let most = mapped(20, 620.0, 600);
        assert!(most.by_faults && most.unused == Some(0.0), "{most:?}");
        assert!(!mapped(20, 580.0, 600).by_faults);
        // Hardly anything came in.
        assert!(!mapped(2, 18.0, 0).by_faults && mapped(2, 19.0, 0).by_faults);
    }

    /// Where few accesses miss, ten points of a hundred are more than all of them.
    #[test]
    fn what_it_has_no_part_of_it_says_nothing_of() {
        let unlike = |counted, simulated| curve(&slices(counted, simulated)).unlike;
        assert!(unlike(60, 0.0) && unlike(10, 60.0) && unlike(500, 610.0));
        assert!(!unlike(60, 35.0) && !unlike(500, 420.0) && !unlike(10, 0.0) && !unlike(0, 15.0));
    }

    #[test]
    fn where_much_is_written_the_error_is_larger() {
        let error = |written: f64, point: usize| {
            let mut some = slices(100, 100.0);
            some.iter_mut().for_each(|slice| slice.written = written);
            curve(&some).points.ok()?[point].miss_ratio.map(|(_, error)| error)
        };
        let more = |point| {
            error(112.0, point).zip(error(0.0, point)).map(|(more, less)| ((more - less) * 1e6).round())
        };
        // Up to a tenth of all uses, writes among them.
        assert_eq!(error(111.0, 2), error(0.0, 2));
        assert_eq!([2, 5, 6].map(more), [Some(1e4), Some(1e4), Some(5e4)]);
    }

    #[test]
    fn of_a_larger_cache_that_evicts_each_page_was_used_twice() {
        let told = |pages: f64, full: bool| {
            let mut all = slices(100, 100.0);
            all.iter_mut().for_each(|slice| slice.full = vec![full; SCALES.len()]);
            let curve = Curve::new(&all, &[Some(pages); SCALES.len()], MODEL_ERROR);
            curve.points.map(|points| points.iter().filter(|p| p.miss_ratio.is_some()).count())
        };
        // Of 8000 accesses. Of the three that are no larger than what there is something is said.
        assert_eq!((told(4000.0, true), told(4001.0, true)), (Ok(7), Ok(3)));
        // One that has room for all of it would have kept all of it.
        assert_eq!((told(4001.0, false), told(1e9, false)), (Ok(7), Ok(7)));
    }

    #[test]
    fn what_may_as_well_be_the_opposite_is_not_told() {
        let told = |error| Curve::new(&slices(100, 100.0), &[Some(1000.0); SCALES.len()], error).points;
        assert!(told(WORTHLESS - 1e-3).is_ok_and(|all| all.iter().all(|p| p.miss_ratio.is_some())));
        assert!(told(WORTHLESS).is_err_and(|why| why.contains("a half or more")));
        // Off by six tenths at the present size.
        let off = curve(&slices(100, 700.0)).points;
        assert!(off.is_err_and(|why| why.contains("not like what was counted")));
    }

    #[test]
    fn without_room_there_is_no_curve() {
        let none = Curve::new(&slices(1, 1.0), &[None; SCALES.len()], MODEL_ERROR);
        assert!(none.points.is_err_and(|why| why.contains("no room")));
    }
}
