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
mod policy;
mod simulation;
pub mod size;
pub mod start;
mod tiers;
mod told;
mod twins;
mod view;
mod whose;

pub use classic::Classic;
pub use classic::Statistics;
pub use curve::Curve;
pub use curve::Point;
pub use generations::Generations;
pub use later::Later;
pub use policy::Policy;
pub use policy::Use;
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

#[cfg(test)]
mod tests;
