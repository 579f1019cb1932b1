//! What rows are worth, without their figures: every figure is a sum of counters, so what figures add up to is a sum
//! of counters, too. It is computed for thousands of rows, of which a few are seen.

use crate::figures::FIGURES;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::model::known_figures;
use crate::sample::Counter;
use crate::sample::Counters;
use crate::sample::Sparse;
use crate::wire::COUNTERS;

/// Whether nothing happened. Direct I/O has bytes only.
pub(crate) fn idle(figures: &Figures) -> bool {
    Figure::ALL.iter().all(|f| figures.get(*f).unwrap_or(0) == 0)
}

/// What rows are ranked by.
pub(crate) fn busy(figures: &Figures) -> u64 {
    Figure::ALL
        .iter()
        .filter(|f| f.unit().ranks())
        .filter_map(|f| figures.get(*f))
        .fold(0, u64::saturating_add)
}

/// The size of a page, for comparing bytes with pages.
pub(crate) const PAGE: u64 = 4096;

/// How often each counter is in the figures that are known.
#[derive(Debug, Clone)]
pub(crate) struct Weights {
    busy: [u64; COUNTERS],
    /// In any figure at all.
    seen: [u64; COUNTERS],
    direct: bool,
}

impl Weights {
    /// Those of the figures that are known.
    pub(crate) fn new(known: &[bool; FIGURES]) -> Self {
        let (mut pages, mut seen) = ([0; COUNTERS], [0; COUNTERS]);
        for (i, (pages, seen)) in pages.iter_mut().zip(&mut seen).enumerate() {
            let mut one = Counters::default();
            one.0[i] = 1;
            let figures = known_figures(&one, known);
            *pages = busy(&figures);
            *seen = if idle(&figures) { 0 } else { u64::MAX };
        }
        let direct = known[Figure::DirectReadBytes as usize] && known[Figure::DirectWriteBytes as usize];
        Self { busy: pages, seen, direct }
    }

    /// Pages and events, and the bytes of direct I/O as pages; `None` where no figure is more than 0.
    pub(crate) fn weigh(&self, counters: &Sparse) -> Option<u64> {
        let (mut sum, mut any) = (0, 0);
        for (i, n) in counters.iter() {
            sum = n.saturating_mul(self.busy[i]).saturating_add(sum);
            any |= n & self.seen[i];
        }
        let direct =
            counters.get(Counter::DirectReadBytes).saturating_add(counters.get(Counter::DirectWriteBytes));
        (any != 0).then(|| if self.direct { u64::saturating_add(sum, direct / PAGE) } else { sum })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::live::snapshot::weight;

    proptest! {
        #[test]
        fn they_say_what_the_figures_say(
            known in proptest::collection::vec(any::<bool>(), FIGURES),
            values in proptest::collection::vec((0..COUNTERS, 0_u64..1 << 40), 0..8),
        ) {
            let mut flags = [false; FIGURES];
            flags.copy_from_slice(&known);
            // Both or neither, as every plan has them.
            flags[Figure::DirectWriteBytes as usize] = flags[Figure::DirectReadBytes as usize];
            let mut counters = Counters::default();
            for (i, n) in values {
                counters.0[i] = n;
            }
            let figures = known_figures(&counters, &flags);
            let expected = (!idle(&figures)).then(|| weight(&figures));
            prop_assert_eq!(Weights::new(&flags).weigh(&Sparse::from(&counters)), expected);
        }
    }
}
