//! The working set: how many distinct pages were used in the last minutes, by a sketch of bounded size for each owner.
//!
//! [`start`] is the command. The kernel programs (`bpf/sketch.h`) mark, for each register of a HyperLogLog and each rank, when a
//! page of that rank was met last, in slots of time that [`Clock`] counts; [`Registers`] is what of it lies within a
//! window, with the estimate, and can be merged with others. [`Measured`] is what came of it, `view.rs` shows it. Pure
//! but for `start` and `watch.rs`, which tells the programs the time and reads what they keep.

mod clock;
mod measure;
mod registers;
pub mod start;
mod view;
mod watch;

pub use clock::Clock;
pub use clock::Span;
pub use clock::outdated;
pub use clock::younger;
pub use measure::Measured;
pub(crate) use measure::Set;
pub use measure::Unknown;
pub use measure::WINDOWS;
pub use measure::Windows;
pub use registers::Registers;
pub use start::Options;
pub(crate) use watch::Watch;
