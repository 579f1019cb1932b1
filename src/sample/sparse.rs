//! Counters of which most are zero: what one thread, or one file, counted.

use super::Counter;
use super::Counters;
use crate::wire::COUNTERS;

/// So many that are not zero need no memory of their own.
const INLINE: usize = 6;

/// One set of counters, of which only those that are not zero are kept: a tick makes thousands of them.
#[derive(Clone, Default)]
pub struct Sparse {
    /// The counters that are not zero.
    which: u64,
    values: Values,
}

/// In the order of the bits.
#[derive(Clone)]
enum Values {
    Inline([u64; INLINE]),
    Heap(Vec<u64>),
}

impl Default for Values {
    fn default() -> Self {
        Values::Inline([0; INLINE])
    }
}

impl Sparse {
    /// The value of one counter.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.at(counter as usize)
    }

    /// The value of the counter with this number.
    #[must_use]
    pub fn at(&self, counter: usize) -> u64 {
        let bit = 1_u64 << counter;
        if self.which & bit == 0 { 0 } else { self.values().get(self.place(bit)).copied().unwrap_or(0) }
    }

    /// Gives a counter a value.
    pub fn set(&mut self, counter: usize, value: u64) {
        let bit = 1_u64 << counter;
        let (there, place, all) = (self.which & bit != 0, self.place(bit), self.len());
        match (&mut self.values, there) {
            (Values::Inline(v), true) if value != 0 => v[place] = value,
            (Values::Heap(v), true) if value != 0 => v[place] = value,
            (_, false) if value == 0 => {}
            (Values::Inline(v), false) if all < INLINE => {
                v.copy_within(place..all, place + 1);
                v[place] = value;
                self.which |= bit;
            }
            (Values::Inline(v), false) => {
                let mut heap = v.to_vec();
                heap.insert(place, value);
                self.values = Values::Heap(heap);
                self.which |= bit;
            }
            (Values::Heap(v), false) => {
                v.insert(place, value);
                self.which |= bit;
            }
            (Values::Inline(v), true) => {
                v.copy_within(place + 1..all, place);
                self.which &= !bit;
            }
            (Values::Heap(v), true) => {
                v.remove(place);
                self.which &= !bit;
            }
        }
    }

    /// Adds another set, counter by counter.
    pub fn add(&mut self, other: &Self) {
        for (counter, value) in other.iter() {
            self.set(counter, self.at(counter).saturating_add(value));
        }
    }

    /// Those that are not zero, by number.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let mut left = self.which;
        self.values().iter().map(move |value| {
            let lowest = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (lowest, *value)
        })
    }

    /// True if nothing was counted.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.which == 0
    }

    /// All counters, zeros as well.
    #[must_use]
    pub fn all(&self) -> Counters {
        let mut all = Counters::default();
        all.add_sparse(self);
        all
    }

    fn len(&self) -> usize {
        self.which.count_ones() as usize
    }

    fn place(&self, bit: u64) -> usize {
        (self.which & (bit - 1)).count_ones() as usize
    }

    fn values(&self) -> &[u64] {
        match &self.values {
            Values::Inline(v) => &v[..self.len().min(INLINE)],
            Values::Heap(v) => v,
        }
    }
}

impl From<&Counters> for Sparse {
    fn from(all: &Counters) -> Self {
        let mut out = Self::default();
        for (counter, value) in all.0.iter().enumerate() {
            out.set(counter, *value);
        }
        out
    }
}

impl PartialEq for Sparse {
    fn eq(&self, other: &Self) -> bool {
        self.which == other.which && self.values() == other.values()
    }
}

impl Eq for Sparse {}

impl std::fmt::Debug for Sparse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter().map(|(counter, value)| (Counter::ALL[counter], value))).finish()
    }
}

const _: () = assert!(COUNTERS <= 64, "a set of counters is kept in a word");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_what_was_set(steps in prop::collection::vec((0..COUNTERS, 0_u64..4), 0..200)) {
            let (mut sparse, mut dense) = (Sparse::default(), Counters::default());
            for (counter, value) in steps {
                sparse.set(counter, value);
                dense.0[counter] = value;
                prop_assert_eq!(sparse.all(), dense);
            }
            prop_assert_eq!(sparse.is_zero(), dense.is_zero());
            prop_assert_eq!(&sparse, &Sparse::from(&dense));
            for counter in Counter::ALL {
                prop_assert_eq!(sparse.get(*counter), dense.get(*counter));
            }
            let mut twice = sparse.clone();
            twice.add(&sparse);
            dense.add(&sparse.all());
            prop_assert_eq!(twice.all(), dense);
        }
    }
}
