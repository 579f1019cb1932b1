//! A prediction as it is told: in JSON, in text, and for whoever draws conclusions from it.

use serde::Deserialize;
use serde::Serialize;

use super::Curve;
use super::size::Size;
use crate::text::foreign::Foreign;

/// The cache as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Now {
    /// The limit; where there is none, what is cached of files.
    pub size_bytes: Option<u64>,
    /// The part of the accesses that had to be brought in, as counted in the second half of the time.
    pub miss_ratio: Option<f64>,
}

/// A point of the curve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Scaled {
    /// The size relative to what there is now.
    pub scale: f64,
    /// The size.
    pub size_bytes: Option<u64>,
    /// The part of the accesses that would have to be brought in; `None`: nothing can be said of this size.
    pub miss_ratio: Option<f64>,
    /// By how much that may be off.
    pub error: Option<f64>,
    /// What would be brought in each second, if as much were used as it was.
    pub device_bytes_per_s: Option<f64>,
    /// Threads that would wait for it, on average, if each page took as long as it did; `None` where that was not measured.
    pub waiting: Option<f64>,
}

/// All that is said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prediction {
    /// Whose cache it is; `None`: the machine's.
    pub cgroup: Option<Foreign>,
    /// How long was watched.
    pub seconds: f64,
    /// The lowest part of all pages that was followed.
    pub sample_rate: f64,
    /// Accesses of all pages.
    pub accesses: Option<u64>,
    /// What there is now.
    pub now: Now,
    /// By scale; `None`: nothing can be said, for this `reason`.
    pub curve: Option<Vec<Scaled>>,
    /// Why there is no curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is cached of files.
    pub cached_bytes: Option<u64>,
    /// What limits it; `None`: nothing.
    pub limit_bytes: Option<u64>,
    /// The cgroup above whose limit that is; `None`: it is its own, or there is none.
    pub limit_of: Option<Foreign>,
    /// The policy of the kernel, in words.
    pub policy: String,
    /// Uses of pages that there was no room for.
    pub dropped: u64,
    /// What makes it less than it could be.
    pub notes: Vec<String>,
}

/// What a curve is about.
pub(super) struct About<'a> {
    /// Whose cache it is; `None`: the machine's.
    pub(super) group: Option<&'a str>,
    pub(super) size: Option<&'a Size>,
    pub(super) seconds: f64,
    /// How long was waited for all that was brought in, nanoseconds.
    pub(super) waited: Option<u64>,
    pub(super) policy: &'a str,
    /// The limit was changed while it was watched.
    pub(super) limit_changed: bool,
    /// The cgroup has been removed while it was watched.
    pub(super) gone: bool,
    /// What decides is a history that is longer than what was seen, where pages are used seldom.
    pub(super) long_history: bool,
    pub(super) notes: Vec<String>,
}

const CONTRADICTS: &str = "at the present size the simulation has another ratio than was counted, and so says little of others: \
                           pages may be charged to another cgroup than this one, a cgroup below may have a limit of its own, the \
                           cache may have grown meanwhile, or too little was seen";

const UNCHECKED: &str = "the simulation of the present size could not be compared with what was counted, so that it is not known how far \
                         it is off";
const UNSAID: &str = "nothing can be said: not enough was seen yet to tell what such a cache would have kept, or it is too small for pages that \
                      come and go, or the error would be a half or more; watch longer";
const LIMIT_CHANGED: &str = "the limit was changed meanwhile: what was seen is partly of the cache before and partly of the one after, and \
                             no size is that of either; watch again";
/// Of generations up to 6.13. Of a database 5 uses of each page were off by 0.075 at worst, 20 by 0.033.
const FEW_USES: &str = "fewer than 10 uses for each page that is cached: what these generations keep was used often long before, which has \
                        not been seen, so that little is said of other sizes; watch longer";
const ENOUGH_USES: f64 = 10.0;
const BY_FAULTS: &str = "most of what was brought in came by page faults: one that finds a page which another one has just brought in \
                         around its own misses nothing, and uses of what is mapped are not seen, so that these ratios say little of what \
                         comes from devices, and nothing of other sizes";
/// Of processes by name or user, of whom none ran when the watch began.
pub(super) const UNPLACED: &str = "nobody who is asked about ran when the watch began, so that it is not known which cgroup's limit holds for \
                                   them: sizes are of the machine's cache, and nothing is concluded; ask again while they run, or with --cgroup";
/// How a note begins that others have a part of the cache.
const SHARED: &str = "the limit is that of a cgroup above, ";
/// How notes begin beside which nothing is concluded from a curve.
const SPOILT: [&str; 8] =
    [CONTRADICTS, UNCHECKED, LIMIT_CHANGED, FEW_USES, GONE, SHARED, BY_FAULTS, UNPLACED];

/// Where it has been removed there is no cache of it any more, and whatever else was too little came of that.
const GONE: &str = "the cgroup is gone: it was removed while it was watched";
/// The part of what is cached from which on it is said what mapped pages are taken for.
const MUCH_MAPPED: f64 = 0.1;

fn rounded(x: f64) -> f64 {
    (x * 1e4).round() / 1e4
}

impl Prediction {
    pub(super) fn new(curve: &Curve, mut about: About<'_>) -> Self {
        let bytes = |scale: f64| about.size.map(|size| (size.base() as f64 * scale).round() as u64);
        let per_second = curve.accesses.map(|n| n as f64 / about.seconds).filter(|n| n.is_finite());
        // Only whole times have both: how long was waited, and for how many pages.
        let each =
            about.waited.zip(curve.missed.filter(|n| *n > 0)).map(|(ns, n)| ns as f64 / 1e9 / n as f64);
        let page = rustix::param::page_size() as f64;
        let shared = about.size.filter(|size| size.is_shared());
        let points = curve.points.as_ref().map(|points| match shared {
            Some(size) => super::beside::widened(points, size),
            None => points.clone(),
        });
        let point = |p: &super::Point| {
            let missed = p.miss_ratio.zip(per_second).map(|((ratio, _), all)| ratio * all);
            Scaled {
                scale: p.scale,
                size_bytes: bytes(p.scale),
                miss_ratio: p.miss_ratio.map(|(ratio, _)| rounded(ratio)),
                error: p.miss_ratio.map(|(_, error)| rounded(error)),
                device_bytes_per_s: missed.map(|n| (n * page).round()),
                waiting: missed.zip(each).map(|(n, each)| rounded(n * each)),
            }
        };
        let mut new = Self {
            cgroup: about.group.map(Foreign::from),
            seconds: (about.seconds * 1e3).round() / 1e3,
            sample_rate: curve.rate,
            accesses: curve.accesses,
            now: Now { size_bytes: bytes(1.0), miss_ratio: curve.now.map(rounded) },
            curve: points.ok().map(|points| points.iter().map(point).collect()),
            reason: match &curve.points {
                Err(_) if about.gone => Some(GONE.into()),
                points => points.as_ref().err().cloned(),
            },
            cached_bytes: about.size.map(|s| s.cached),
            limit_bytes: about.size.and_then(|s| s.limit),
            limit_of: about.size.and_then(|s| s.limit_of.as_deref()).map(Foreign::from),
            policy: about.policy.into(),
            dropped: curve.dropped,
            notes: std::mem::take(&mut about.notes),
        };
        // Of a table that is not there nothing is to be known.
        if new.curve.is_some() {
            new.note(curve, &about);
        } else if curve.is_far_off() && !about.gone {
            new.notes.push(CONTRADICTS.into());
        }
        new
    }

    /// Says what is to be known beside the figures of a curve, or instead of some.
    fn note(&mut self, curve: &Curve, about: &About<'_>) {
        let unsaid = self.curve.iter().flatten().filter(|p| p.miss_ratio.is_none());
        let unsaid: Vec<String> = unsaid.map(|p| format!("x{}", p.scale)).collect();
        if !unsaid.is_empty() {
            self.notes.push(format!("of {} {UNSAID}", unsaid.join(", ")));
        }
        if about.limit_changed {
            self.notes.push(LIMIT_CHANGED.into());
        }
        if let Some(size) = about.size.filter(|size| size.is_shared()) {
            let above = size.limit_of.as_deref().map(Foreign::from);
            self.notes.push(format!(
                "{SHARED}{}, and {} of it are files of others, which are taken to become more and less with it: nobody knows what \
                 they would do, and the error has that in it",
                crate::text::foreign::or(above.as_ref(), "?"),
                crate::text::numbers::bytes(size.beside),
            ));
        }
        let page = rustix::param::page_size() as f64;
        let cached = about.size.map_or(0.0, |s| s.cached as f64 / page);
        if about.long_history
            && cached >= 1.0
            && curve.accesses.is_some_and(|n| n as f64 / cached < ENOUGH_USES)
        {
            self.notes.push(FEW_USES.into());
        }
        if let Some(part) = about.size.map(|s| s.mapped as f64 / s.cached as f64).filter(|p| *p > MUCH_MAPPED)
        {
            self.notes.push(format!(
                "{:.0}% of what is cached is mapped: of such pages only faults are seen, so that they are used at least so \
                 much; they are taken to stay at each size",
                part.min(1.0) * 100.0
            ));
        }
        if curve.by_faults {
            self.notes.push(BY_FAULTS.into());
        }
        match curve.off {
            // Of a limit that is not read any more, and of nobody who uses it, nothing else is to be said.
            _ if about.gone => self.notes.push(GONE.into()),
            Some(_) if curve.unlike => self.notes.push(CONTRADICTS.into()),
            None => self.notes.push(UNCHECKED.into()),
            _ => {}
        }
    }

    /// Whether nothing is to be concluded from it: what was counted is not what the simulation of this size has, or that is not
    /// known, is of several limits, or too little was seen.
    pub(crate) fn is_unlike(&self) -> bool {
        self.notes.iter().any(|note| SPOILT.iter().any(|spoilt| note.starts_with(spoilt)))
    }

    /// Whether it is known whose limit holds for what is asked about.
    pub(super) fn is_placed(&self) -> bool {
        self.notes.iter().all(|note| note != UNPLACED)
    }

    /// The point of this scale.
    #[must_use]
    pub fn at(&self, scale: f64) -> Option<&Scaled> {
        self.curve.as_ref()?.iter().find(|p| p.scale == scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whatif::curve::Point;

    fn told(off: Option<f64>, limit_changed: bool) -> Prediction {
        let points = Ok(vec![Point { scale: 1.0, miss_ratio: Some((0.5, 0.02)) }]);
        let curve = Curve {
            accesses: Some(10_000),
            missed: Some(5000),
            now: Some(0.5),
            points,
            off,
            unlike: off.is_some_and(|off| off > 0.1),
            unused: None,
            by_faults: false,
            rate: 1.0,
            dropped: 0,
        };
        let (group, size, waited, notes) = (None, None, None, Vec::new());
        let (seconds, policy, long_history) = (1.0, "lists", false);
        Prediction::new(
            &curve,
            About { group, size, seconds, waited, policy, limit_changed, gone: false, long_history, notes },
        )
    }

    /// The same of generations, with 1000 accesses of so many cached bytes, of which some are mapped.
    fn of(cached: u64, mapped: u64, long_history: bool) -> Prediction {
        let points = Ok(vec![Point { scale: 1.0, miss_ratio: Some((0.5, 0.02)) }]);
        let (accesses, off, rate) = (Some(1000), Some(0.01), 1.0);
        let curve = Curve {
            accesses,
            missed: Some(500),
            now: Some(0.5),
            points,
            off,
            unlike: false,
            unused: None,
            by_faults: false,
            rate,
            dropped: 0,
        };
        let size = Size { limit: Some(1 << 30), cached, mapped, ..Size::default() };
        let (group, waited, notes, limit_changed) = (None, None, Vec::new(), false);
        let (size, seconds, policy) = (Some(&size), 1.0, "lists");
        Prediction::new(
            &curve,
            About { group, size, seconds, waited, policy, limit_changed, gone: false, long_history, notes },
        )
    }

    #[test]
    fn a_cgroup_that_is_gone_is_told_to_be() {
        let of = |points: Result<Vec<Point>, String>| {
            let (accesses, missed, now, off) = (Some(10), Some(5), Some(0.5), Some(0.4));
            let curve = Curve {
                accesses,
                missed,
                now,
                points,
                off,
                unlike: true,
                unused: None,
                by_faults: false,
                rate: 1.0,
                dropped: 0,
            };
            let (group, size, waited, notes) = (Some("/db"), None, None, Vec::new());
            let (seconds, policy, limit_changed, long_history, gone) = (1.0, "lists", false, false, true);
            let about =
                About { group, size, seconds, waited, policy, limit_changed, gone, long_history, notes };
            Prediction::new(&curve, about)
        };
        let little = of(Err("not enough seen yet".into()));
        assert_eq!((little.reason.as_deref(), little.notes.len()), (Some(GONE), 0));
        let some = of(Ok(vec![Point { scale: 1.0, miss_ratio: Some((0.5, 0.02)) }]));
        assert!(some.notes == [GONE] && some.is_unlike(), "{:?}", some.notes);
    }

    #[test]
    fn of_what_came_by_faults_nothing_is_concluded() {
        let of = |by_faults, points| {
            let (accesses, missed, now, off) = (Some(10_000), Some(100), Some(0.01), Some(0.0));
            let (unlike, unused, rate, dropped) = (false, None, 1.0, 0);
            let curve =
                Curve { accesses, missed, off, unlike, unused, by_faults, now, points, rate, dropped };
            let (group, size, waited, notes, policy) = (None, None, None, Vec::new(), "lists");
            let (seconds, limit_changed, gone, long_history) = (1.0, false, false, false);
            let about =
                About { group, size, seconds, waited, policy, limit_changed, gone, long_history, notes };
            Prediction::new(&curve, about)
        };
        let points = || Ok([1.0, 2.0].map(|scale| Point { scale, miss_ratio: Some((0.01, 0.02)) }).to_vec());
        let (faults, reads) = (of(true, points()), of(false, points()));
        assert!(faults.is_unlike() && faults.answer().is_none() && faults.notes == [BY_FAULTS]);
        assert!(!reads.is_unlike() && reads.notes.is_empty());
        assert!(of(true, Err("not enough seen yet".into())).notes.is_empty());
    }

    #[test]
    fn of_a_table_that_is_not_there_nothing_is_noted() {
        let of = |points, off: f64| {
            let (accesses, missed, now, off, rate) = (Some(10), Some(5), Some(0.5), Some(off), 1.0);
            let (unlike, unused, by_faults, dropped) = (true, Some(0.5), true, 0);
            let curve =
                Curve { accesses, missed, off, unlike, unused, by_faults, now, points, rate, dropped };
            let (limit, limit_of, beside) = (Some(1 << 30), Some("/a".into()), 1 << 29);
            let size =
                Size { limit, limit_of, beside, cached: 100 << 20, mapped: 50 << 20, ..Size::default() };
            let (group, size, waited, notes, policy) = (None, Some(&size), None, Vec::new(), "lists");
            let (seconds, limit_changed, gone, long_history) = (1.0, true, false, true);
            let about =
                About { group, size, seconds, waited, policy, limit_changed, gone, long_history, notes };
            Prediction::new(&curve, about).notes
        };
        let point = |ratio| vec![Point { scale: 1.0, miss_ratio: ratio }];
        assert!(of(Err("not enough seen yet".into()), 0.2).is_empty());
        assert_eq!(of(Ok(point(None)), 0.2).len(), 7);
        // Why it could not be is told.
        assert_eq!(of(Err("the error would be a half or more".into()), 0.5), [CONTRADICTS]);
    }

    #[test]
    fn nothing_is_concluded_where_the_limit_is_not_known() {
        let told = told(Some(0.01), false);
        let unplaced = Prediction { notes: vec![UNPLACED.into()], ..told.clone() };
        assert!(unplaced.is_unlike() && !told.is_unlike());
    }

    #[test]
    fn what_was_used_seldom_says_nothing_of_other_sizes() {
        let page = rustix::param::page_size() as u64;
        assert!(of(101 * page, 0, true).is_unlike() && of(101 * page, 0, true).notes == [FEW_USES]);
        assert!(of(100 * page, 0, true).notes.is_empty());
        assert!(of(101 * page, 0, false).notes.is_empty());
    }

    #[test]
    fn sizes_of_which_nothing_is_said_have_a_reason() {
        let points = [(0.5, None), (1.0, Some((0.5, 0.02))), (2.0, None)];
        let points = points.map(|(scale, miss_ratio)| Point { scale, miss_ratio });
        let curve = Curve {
            accesses: Some(10_000),
            missed: Some(5000),
            now: Some(0.5),
            points: Ok(points.into()),
            off: Some(0.01),
            unlike: false,
            unused: None,
            by_faults: false,
            rate: 1.0,
            dropped: 0,
        };
        let (group, size, waited, notes) = (None, None, None, Vec::new());
        let (seconds, policy, long_history, limit_changed) = (1.0, "lists", false, false);
        let about =
            About { group, size, seconds, waited, policy, limit_changed, gone: false, long_history, notes };
        let told = Prediction::new(&curve, about);
        assert!(told.notes.iter().any(|n| n.starts_with("of x0.5, x2 nothing can be said")), "{told:?}");
        assert!(!told.is_unlike());
    }

    #[test]
    fn much_that_is_mapped_is_told() {
        let notes = of(100 << 20, 11 << 20, false).notes;
        assert!(notes.len() == 1 && notes[0].starts_with("11% of what is cached is mapped"), "{notes:?}");
        assert!(!of(100 << 20, 11 << 20, false).is_unlike());
        assert!(of(100 << 20, 10 << 20, false).notes.is_empty());
        assert!(of(0, 0, true).notes.is_empty());
    }

    #[test]
    fn nothing_is_concluded_from_what_was_not_compared_or_is_of_two_limits() {
        assert!(!told(Some(0.01), false).is_unlike() && told(Some(0.01), false).notes.is_empty());
        assert!(told(Some(0.2), false).is_unlike());
        assert!(told(None, false).is_unlike());
        assert!(told(Some(0.01), true).is_unlike());
    }
}
