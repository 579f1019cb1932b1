//! Counters that only rise: sets of them, added up and subtracted.

/// Adds another set, counter by counter. What a kernel counts is far from the end of the numbers; what a file says that it
/// has counted may be anything.
pub fn add(to: &mut [u64], other: &[u64]) {
    for (a, b) in to.iter_mut().zip(other) {
        *a = a.saturating_add(*b);
    }
}

/// Leaves what was counted since `earlier`. A set that is below it in any counter belongs to somebody else under the
/// same key, and counts from zero.
pub fn since(now: &mut [u64], earlier: &[u64]) {
    if now.iter().zip(earlier).all(|(now, then)| now >= then) {
        for (a, b) in now.iter_mut().zip(earlier) {
            *a -= b;
        }
    }
}
