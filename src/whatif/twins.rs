//! Two caches, for a policy that has two answers.
//!
//! Which pages generations up to 6.13 keep is decided by how it began, where a scan is a little shorter than what is
//! kept: the same load misses a fifth or a quarter of its accesses for as long as one looks, and the kernel does the
//! same. A simulation alone would say one of the two. Two of a little different size say both, or one: their mean is
//! told, and half of what is between them is part of the error.
//!
//! So it is with the active and the inactive list where a scan is a little longer than the cache: under 28 MiB a load that
//! scans 32 MiB misses 0.16 of its accesses, or 0.08 where the limit was raised while it ran, on 6.18. There it is not the
//! size that decides, and the two begin otherwise.

use super::policy::Policy;
use super::policy::Use;

/// How far each is from the size that is asked about, with generations: 1/50 of it.
pub(super) const AWAY: f64 = 0.02;

/// Two of them.
#[derive(Debug)]
pub struct Twins<P> {
    both: [P; 2],
    away: f64,
    /// Whose answers count until the next page is used: any of the two, so that on the whole it is their mean.
    whose: usize,
    random: u64,
    apart: f64,
}

impl<P: Policy> Twins<P> {
    /// Of two caches without pages, of which the first is to be so much smaller than asked for, and the second larger.
    pub fn new(both: [P; 2], away: f64) -> Self {
        Self { both, away, whose: 0, random: 1, apart: 0.0 }
    }

    /// Xorshift: what is used in turn must not be met by what is asked in turn.
    fn choose(&mut self) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.whose = usize::from(self.random >> 63 != 0);
    }
}

impl<P: Policy> Policy for Twins<P> {
    fn touch(&mut self, page: u32, how: Use) -> bool {
        let there = self.both.each_mut().map(|policy| policy.touch(page, how));
        self.apart = f64::from(u8::from(there[1])) - f64::from(u8::from(there[0]));
        let counts = there[self.whose];
        self.choose();
        counts
    }

    fn bring(&mut self, page: u32) -> bool {
        self.both.each_mut().map(|policy| policy.bring(page))[self.whose]
    }

    fn add(&mut self, page: u32, how: Use) {
        self.both.iter_mut().for_each(|policy| policy.add(page, how));
    }

    fn mark(&mut self, page: u32) {
        self.both.iter_mut().for_each(|policy| policy.mark(page));
    }

    fn young(&mut self, page: u32) {
        self.both.iter_mut().for_each(|policy| policy.young(page));
    }

    fn has(&self, page: u32) -> bool {
        self.both[self.whose].has(page)
    }

    fn share(&self, page: u32) -> f64 {
        self.both.iter().map(|policy| policy.share(page)).sum::<f64>() / 2.0
    }

    fn ahead(&self, page: u32) -> bool {
        self.both[self.whose].ahead(page)
    }

    fn set_ahead(&mut self, page: u32, ahead: bool) {
        self.both.iter_mut().for_each(|policy| policy.set_ahead(page, ahead));
    }

    fn remove(&mut self, page: u32) {
        self.both.iter_mut().for_each(|policy| policy.remove(page));
    }

    fn remembers(&self, page: u32) -> bool {
        self.both.iter().any(|policy| policy.remembers(page))
    }

    fn resize(&mut self, pages: usize, each: f64) {
        for (policy, factor) in self.both.iter_mut().zip([1.0 - self.away, 1.0 + self.away]) {
            policy.resize((pages as f64 * factor).round() as usize, each);
        }
    }

    fn flush(&mut self) {
        self.both.iter_mut().for_each(Policy::flush);
    }

    fn full(&self) -> bool {
        self.both.iter().all(Policy::full)
    }

    fn apart(&self) -> f64 {
        self.apart
    }
}
