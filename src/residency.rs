//! What is cached of one file, for every program of the package: cachestat(2) where there is one, else mincore(2), and
//! never its false "all of it".
//!
//! A question costs what is cached, not what the file could hold: any user can make a file of 15 TiB with nothing in it.
//! cachestat(2) passes over what is not there; it is asked in steps, since a call cannot be interrupted. mincore(2) looks
//! at each page, and so answers up to [`LOOKED_AT`] pages or whatever the caller allows ([`Ask::at_most`]); of larger
//! files it is said that they are not known. What is a hole in the file is no help: it is cached once it has been read.

pub mod answer;
pub mod ask;
pub mod kinds;
pub mod ranges;
pub mod size;
pub mod sys;
pub mod unknown;

pub use answer::Method;
pub use answer::More;
pub use answer::Residency;
pub use ask::Ask;
pub use ask::LOOKED_AT;
pub use ask::Stop;
pub use ask::WINDOW;
pub use ranges::Run;
pub use size::regular;
pub use size::size;
pub use unknown::Unknown;
pub use unknown::words;
