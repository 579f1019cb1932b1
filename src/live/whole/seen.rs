//! What was put away: a set that forgets nothing and takes no more memory for more.

use std::hash::BuildHasher as _;
use std::hash::BuildHasherDefault;
use std::hash::DefaultHasher;
use std::hash::Hash;

/// Words of 64 bits: 512 KiB, in which one of 600 is taken for another once 175 000 are in it.
const WORDS: usize = 1 << 16;

/// A Bloom filter.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(Vec<u64>);

impl Seen {
    fn bits(key: &impl Hash) -> [usize; 3] {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        [0, 20, 41].map(|shift| usize::try_from(hash >> shift & (WORDS as u64 * 64 - 1)).unwrap_or(0))
    }

    /// Puts it in.
    pub(super) fn put(&mut self, key: &impl Hash) {
        self.0.resize(WORDS, 0);
        for bit in Self::bits(key) {
            self.0[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// Whether nothing was put in.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it was put in; now and then true of what was not.
    pub(super) fn has(&self, key: &impl Hash) -> bool {
        !self.0.is_empty() && Self::bits(key).into_iter().all(|bit| self.0[bit / 64] & 1 << (bit % 64) != 0)
    }
}
