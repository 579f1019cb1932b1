//! What if there were more memory for the cache, or less: the kernel's own policy, simulated at several sizes at once on
//! the accesses of a part of the pages, which is chosen from all over each file.
//!
//! [`start`] is the command. The kernel programs send touches of chosen pages; [`Simulation`] hands each to a [`Policy`]
//! for each size, with what is read ahead there, at the sampled scale (a cache of 1000 pages of which every tenth is
//! followed is one of 100); [`Curve`] is what came of it, with its error. [`size`] finds out what limits the cache now.
//! Pure but for `start` and `size`.

mod ahead;
mod beside;
mod classic;
mod curve;
pub(crate) mod feed;
mod generations;
mod later;
mod lists;
mod pages;
mod simulation;
pub mod size;
pub mod start;
mod tiers;
mod told;
mod twins;
mod view;

pub use classic::Classic;
pub use classic::Statistics;
pub use curve::Curve;
pub use curve::Point;
pub use generations::Generations;
pub use later::Later;
pub use simulation::Simulation;
pub use start::Options;
pub use told::Now;
pub use told::Prediction;
pub use told::Scaled;

/// The sizes that are asked about, relative to what there is now.
pub const SCALES: [f64; 7] = [0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 4.0];

/// As many pages of a request are told to come, or more.
pub const REST: u32 = 0xff;

/// What was done to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It was read by a call.
    Read,
    /// A mapping of it was used for the first time, or anew.
    Fault,
    /// It was made dirty. The kernel does not mark a page for that.
    Write,
    /// It was taken out of the cache, not for want of memory.
    Gone,
    /// It was read ahead for a read, before anybody asked for it. That is no use of it.
    Ahead,
    /// The same for a fault.
    Around,
}

/// How a page was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was there.
    Hit,
    /// It was brought in, or was there by read-ahead alone.
    Missed,
    /// Some pages of its request were there and some were not.
    Unknown,
}

/// One use of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// The page: a hash of its file, 32 bits, and below it its place there.
    pub page: u64,
    /// The thread.
    pub tid: u32,
    /// What was done.
    pub kind: Kind,
    /// How the page was found.
    pub outcome: Outcome,
    /// The request did not take the whole page.
    pub part: bool,
    /// Pages of the request that come after this one, as far as [`REST`] of them.
    pub rest: u32,
    /// Of a read: pages that are read ahead at once, at most.
    pub window: u32,
}

/// How a page is used, as far as the kernel's lists see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// By a call, which marks it (`folio_mark_accessed`).
    Marked,
    /// By a call that goes on where the last one ended, inside the page: not marked again.
    Unmarked,
    /// By a call that writes: it is not marked, and what comes for it is not what the cache has missed.
    Written,
    /// Through a mapping: the processor's bit in the page table, which is looked at when memory is short.
    Mapped,
}

/// A policy of the kernel at one size. Pages are small numbers.
pub trait Policy {
    /// A page is used: true if it was there, and not by read-ahead alone. It is afterwards.
    fn touch(&mut self, page: u32, how: Use) -> bool {
        let there = self.has(page);
        if !there {
            self.add(page, how);
        }
        let ahead = self.ahead(page);
        self.set_ahead(page, false);
        match how {
            Use::Mapped => self.young(page),
            // What is new is marked by whoever brought it in.
            Use::Unmarked if there => {}
            Use::Marked | Use::Unmarked => self.mark(page),
            Use::Written => {}
        }
        there && !ahead
    }

    /// A page is read ahead, and takes room from then on: true if it was not there.
    fn bring(&mut self, page: u32) -> bool {
        let absent = !self.has(page);
        if absent {
            self.add(page, Use::Unmarked);
            self.set_ahead(page, true);
        }
        absent
    }

    /// A page comes that is not there, for such a use; others go for it.
    fn add(&mut self, page: u32, how: Use);

    /// A page that is there is used, and the kernel marks it.
    fn mark(&mut self, page: u32);

    /// A page that is there is used through a mapping.
    fn young(&mut self, page: u32);

    /// Whether the page is there.
    fn has(&self, page: u32) -> bool;

    /// How much of the page is there: where two answers are known, a half if it is in one of them.
    fn share(&self, page: u32) -> f64 {
        f64::from(u8::from(self.has(page)))
    }

    /// Whether the page is there, and nobody has used it since it was read ahead.
    fn ahead(&self, page: u32) -> bool;

    /// Whether a page that is there is so from now on.
    fn set_ahead(&mut self, page: u32, ahead: bool);

    /// A page goes for another reason than want of memory, and nothing remembers it.
    fn remove(&mut self, page: u32);

    /// Whether the page is there, or so lately gone that the policy would remember it.
    fn remembers(&self, page: u32) -> bool;

    /// The size, in pages that are followed, each of which stands for `each` pages.
    fn resize(&mut self, pages: usize, each: f64);

    /// Statistics that the kernel gathers only now and then are gathered.
    fn flush(&mut self) {}

    /// Whether a page had to go for another one: until then what was there before nobody knows.
    fn full(&self) -> bool;

    /// Of the last touch, where two answers are known: 1 if only the second one found its page, -1 if only the first.
    fn apart(&self) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests;
