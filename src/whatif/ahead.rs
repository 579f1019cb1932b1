//! What read-ahead takes at other sizes: how much more of it there would be, or less.
//!
//! Pages that were read ahead come as such, and go to every cache that does not have them. For files that are read from
//! beginning to end, and around faults, that is all. A file that is read at random is read ahead where the two pages before
//! the missing one are there (`page_cache_sync_ra`): with twice the cache that is so four times as often. Measured with the
//! kernel's algorithm on both, at sizes from a half to twice: by the factors 0.24, 0.55, 1.6, 2.2 and 3.8, where the squares are
//! 0.25, 0.56, 1.6, 2.3 and 4. Such pages are hardly ever used, which tells them from the others.

/// Of pages that are read ahead among random reads, the part that nobody uses: between 0.6 and 0.8.
const UNUSED: f64 = 0.7;
/// Reads without a page after which older ones count half.
const MANY: f64 = 4096.0;
/// The same, below which nothing is known.
const FEW: f64 = 50.0;
/// Pages that are read ahead at once, at most.
const WINDOW: f64 = 32.0;

/// How much is read ahead now, in the simulation of the cache of now, and what other sizes are due.
#[derive(Debug, Clone, Default)]
pub(super) struct Ahead {
    brought: f64,
    used: f64,
    /// Reads of pages that were not there.
    missed: f64,
    /// By size: parts of pages.
    due: [f64; super::SCALES.len()],
    random: u64,
}

impl Ahead {
    /// A page was brought in.
    pub(super) const fn brought(&mut self) {
        self.brought += 1.0;
    }

    /// A page is read that was absent, or that was there by read-ahead alone.
    pub(super) fn read(&mut self, absent: bool, ahead: bool) {
        self.missed += f64::from(u8::from(absent));
        self.used += f64::from(u8::from(ahead));
        if self.missed > MANY {
            for sum in [&mut self.brought, &mut self.used, &mut self.missed] {
                *sum /= 2.0;
            }
        }
    }

    /// The part of what is read ahead that comes of random reads.
    fn at_random(&self) -> f64 {
        if self.brought < FEW {
            return 0.0;
        }
        ((1.0 - self.used / self.brought) / UNUSED).clamp(0.0, 1.0)
    }

    /// Whether a page that was read ahead would be by a cache of this size, relative to the one of now.
    pub(super) fn happens(&mut self, size: f64) -> bool {
        let less = self.at_random() * (1.0 - size * size);
        less <= 0.0 || (self.number() >> 11) as f64 / (1u64 << 53) as f64 >= less
    }

    /// How many pages more than now a cache of this size would have read ahead, when a page is not there.
    pub(super) fn more(&mut self, i: usize, size: f64) -> u32 {
        if size <= 1.0 || self.missed < FEW {
            return 0;
        }
        let more = self.brought / self.missed * self.at_random() * (size * size - 1.0);
        let due = self.due[i] + more.min(WINDOW);
        self.due[i] = due.fract();
        due as u32
    }

    /// Any number, the same in each run (splitmix64).
    pub(super) const fn number(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut n = self.random;
        n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ n >> 31
    }
}
