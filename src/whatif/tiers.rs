//! Which tiers of pages reclaim lets stay (`get_tier_idx`, `reset_ctrl_pos`): those whose pages came back more often
//! than pages that were used once.

/// Tiers by how often a page was used.
pub(super) const TIERS: usize = 4;
/// Fewer refaults than that prove nothing (`MIN_LRU_BATCH`).
pub(super) const BATCH: f64 = 64.0;

/// What happened to the pages of a tier.
#[derive(Debug, Clone, Copy, Default)]
struct Tier {
    refaulted: f64,
    evicted: f64,
    protected: f64,
    average_refaulted: f64,
    average_total: f64,
}

impl Tier {
    fn refaults(&self) -> f64 {
        self.average_refaulted + self.refaulted
    }

    fn total(&self) -> f64 {
        self.average_total + self.evicted + self.protected
    }
}

/// All tiers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tiers([Tier; TIERS]);

impl Tiers {
    pub(super) const fn refaulted(&mut self, tier: usize) {
        self.0[tier].refaulted += 1.0;
    }

    pub(super) const fn evicted(&mut self, tier: usize) {
        self.0[tier].evicted += 1.0;
    }

    pub(super) const fn protected(&mut self, tier: usize) {
        self.0[tier].protected += 1.0;
    }

    /// The oldest generation is empty. What its tiers told counts half from now on.
    pub(super) fn next(&mut self) {
        for tier in &mut self.0 {
            *tier = Tier {
                average_refaulted: tier.refaults() / 2.0,
                average_total: tier.total() / 2.0,
                ..Tier::default()
            };
        }
    }

    /// The highest tier that is no better worth keeping than pages used once, whose weights are these. `each`: pages that one
    /// stands for.
    pub(super) fn evictable(&self, (first_gain, gain): (f64, f64), each: f64) -> usize {
        let batch = BATCH / each;
        let first = &self.0[0];
        let worth = |tier: &Tier| {
            tier.refaults() >= batch
                && tier.refaults() * (first.total() + batch) * first_gain
                    > (first.refaults() + 1.0 / each) * tier.total() * gain
        };
        self.0.iter().skip(1).position(worth).unwrap_or(TIERS - 1)
    }
}
