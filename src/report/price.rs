//! What a cold cache costs in work of the processor: allocating pages, submitting requests, reading inodes.
//!
//! Of one run that cannot be told apart from the command's own work. Of two runs of the same command it can be bounded:
//! the processor time in the kernel that the colder one needed more, without the work on names, which is a part of its
//! own. Time outside the kernel is the command's. Only where there is evidence: the colder run brought more pages, blocks
//! of metadata or names in.

use super::blocks;
use super::data::Run;
use super::time::Parts;
use super::units;
use crate::text::numbers::Unit;

/// Pages, blocks and names from which on one run can be said to have brought in more than another.
const MANY: u64 = 256;
/// The kernel divides processor time into its own and the program's by what its clock happens to meet: a tick of the
/// slowest clock in use.
const TICK_S: f64 = 0.004;

/// The price of a cold cache by two runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Price {
    /// Seconds that the earlier one needed more; negative: the later one was the colder.
    pub(super) seconds: f64,
    /// How far off that may be: one standard error.
    pub(super) error_s: f64,
    /// Pages that the colder one brought in more.
    pub(super) pages: u64,
    /// Blocks of metadata that it read more, where that is known.
    pub(super) metadata: Option<u64>,
    /// Names that it looked up in the file system more, where that is known.
    pub(super) names: Option<u64>,
    /// What pages are told in.
    unit: Unit,
}

/// Processor time in the kernel, without the work on names.
fn kernel(run: &Run, parts: &Parts) -> Option<f64> {
    Some(run.usage.system_s? - parts.lookups_s.unwrap_or(0.0))
}

impl Price {
    /// Of two runs of the same command; `None` where nothing proves that one was colder, or the difference is less than
    /// its error; and of different commands, of which each has its own work to do.
    pub(super) fn between(then: &Run, now: &Run) -> Option<Self> {
        if !then.is_same_command(now) {
            return None;
        }
        let both = |f: fn(&Run) -> Option<u64>| f(then).zip(f(now));
        let (a, b) = both(Run::brought_in)?;
        let (meta, names) = (both(blocks::brought), both(|r| r.lookups.dcache_misses));
        let sum = |pages: u64, which: fn(&(u64, u64)) -> u64| {
            pages + meta.as_ref().map_or(0, which) + names.as_ref().map_or(0, which)
        };
        let (all_a, all_b) = (sum(a, |p| p.0), sum(b, |p| p.1));
        if all_a.abs_diff(all_b) < MANY {
            return None;
        }
        let (then_parts, now_parts) = Parts::of_both(then, now);
        let seconds = kernel(then, &then_parts)? - kernel(now, &now_parts)?;
        let busy = |run: &Run| Some(run.usage.user_s? + run.usage.system_s?);
        let error_s = ((busy(then)? + busy(now)?) * TICK_S).sqrt();
        // The one that brought more in is the one that must have worked more.
        if (all_a > all_b) != (seconds > 0.0) || seconds.abs() <= error_s {
            return None;
        }
        let seconds = Self::of_all_work(seconds, error_s, &then_parts, &now_parts);
        let more = |(x, y): (u64, u64)| if all_a > all_b { x.saturating_sub(y) } else { y.saturating_sub(x) };
        let (metadata, names) = (meta.map(more), names.map(more));
        Some(Self { seconds, error_s, pages: more((a, b)), metadata, names, unit: now.unit })
    }

    /// All processor time is known to the nanosecond, only what of it was the kernel's is not. Where it is said to be more than
    /// the difference of all, by no more than its error, it is that difference: the command itself did not work less.
    fn of_all_work(seconds: f64, error_s: f64, then: &Parts, now: &Parts) -> f64 {
        match then.cpu_s.zip(now.cpu_s).map(|(a, b)| a - b) {
            Some(all) if all * seconds > 0.0 && (0.0..=error_s).contains(&(seconds.abs() - all.abs())) => all,
            _ => seconds,
        }
    }

    /// What was brought in for it, in words.
    pub(super) fn what(&self) -> String {
        let mut all = vec![units::volume(self.pages, self.unit)];
        all.extend(self.metadata.filter(|n| *n > 0).map(|n| format!("{n} blocks of metadata")));
        all.extend(self.names.filter(|n| *n > 0).map(|n| format!("{n} names")));
        match all.as_slice() {
            [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => all.concat(),
        }
    }

    /// How it was found, for whoever doubts it.
    pub(super) fn note(&self) -> String {
        format!(
            "Work for a cold cache: the processor time in the kernel that one run needed more than the other (± {:.3} s), \
             where it brought in {} more. It is the most that this can have cost: what else made the kernel work more is in it.",
            self.error_s,
            self.what(),
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::figures::Figure;

    /// Seconds in the kernel, pages brought in.
    fn run(system: f64, fills: u64) -> Run {
        let mut run = Run::default();
        (run.usage.user_s, run.usage.system_s) = (Some(0.2), Some(system));
        run.figures.set(Figure::Fills, Some(fills));
        run
    }

    #[test]
    fn what_the_kernel_worked_more_where_more_came_in() {
        let price = Price::between(&run(1.1, 15_000), &run(0.3, 0)).unwrap();
        assert!((price.seconds - 0.8).abs() < 1e-9 && price.pages == 15_000);
        assert!((price.error_s - (1.8_f64 * 0.004).sqrt()).abs() < 1e-9);
        assert_eq!((price.metadata, price.names), (None, None), "not known here");
        // The other way round it is the price of the second.
        let later = Price::between(&run(0.3, 0), &run(1.1, 15_000)).unwrap();
        assert!((later.seconds + 0.8).abs() < 1e-9 && later.pages == 15_000);
    }

    #[test]
    fn a_tick_that_met_the_kernel_does_not_make_the_command_work_less() {
        // All of 32 ms by the kernel's account is its own, and all of 5 ms is the program's.
        let (mut cold, mut warm) = (run(0.032, 900), run(0.0, 0));
        (cold.usage.user_s, warm.usage.user_s) = (Some(0.0), Some(0.005));
        (cold.wall_s, warm.wall_s) = (0.1, 0.006);
        let price = Price::between(&cold, &warm).unwrap();
        assert!((price.seconds - 0.027).abs() < 1e-9, "{price:?}");
        let price = Price::between(&warm, &cold).unwrap();
        assert!((price.seconds + 0.027).abs() < 1e-9, "{price:?}");
        // What is more than the error is not explained away.
        warm.usage.user_s = Some(0.03);
        let price = Price::between(&cold, &warm).unwrap();
        assert!((price.seconds - 0.032).abs() < 1e-9, "{price:?}");
    }

    #[test]
    fn without_evidence_it_is_the_commands_own() {
        assert_eq!(Price::between(&run(1.1, 255), &run(0.3, 0)), None, "as much came in");
        assert!(Price::between(&run(1.1, 256), &run(0.3, 0)).is_some());
        assert_eq!(Price::between(&run(0.3, 15_000), &run(1.1, 0)), None, "it worked less");
        assert_eq!(Price::between(&run(0.34, 15_000), &run(0.3, 0)), None, "less than its error");
        let mut unknown = run(1.1, 0);
        unknown.figures.set(Figure::Fills, None);
        assert_eq!(Price::between(&unknown, &run(0.3, 0)), None);
    }

    #[test]
    fn of_another_command_it_is_not_known() {
        // 245 760 small calls cold, or a few large ones of half as much.
        let of = |line: Option<&str>, run: Run| Run { line: line.map(Into::into), ..run };
        let price = |a, b| Price::between(&of(a, run(1.1, 15_360)), &of(b, run(0.1, 7680)));
        assert_eq!(price(Some("dd bs=256"), Some("dd bs=1M count=30")), None);
        assert!(price(Some("dd bs=256"), Some("dd bs=256")).is_some());
        assert!(price(None, Some("dd")).is_some() && price(None, None).is_some(), "nobody said what it was");
    }

    #[test]
    fn inodes_and_names_are_evidence_as_well() {
        // A `du`: hardly any data.
        let (mut cold, mut warm) = (run(1.1, 10), run(0.3, 0));
        for (run, blocks, names) in [(&mut cold, 900, 4000), (&mut warm, 0, 0)] {
            run.figures.set(Figure::MetaMisses, Some(blocks));
            run.figures.set(Figure::MetaAheadHits, Some(0));
            run.lookups.dcache_misses = Some(names);
        }
        let price = Price::between(&cold, &warm).unwrap();
        assert_eq!((price.pages, price.metadata, price.names), (10, Some(900), Some(4000)));
        assert!(price.note().contains("10 pages") || price.note().contains("40 KiB"), "{}", price.note());
        assert!(price.what().ends_with("900 blocks of metadata and 4000 names"), "{}", price.what());
        // What is known of one of them only is no evidence.
        warm.lookups.dcache_misses = None;
        assert_eq!(Price::between(&cold, &warm).unwrap().names, None);
    }
}
