//! Samples written to a file and read back: `--record`, `--replay`, and the ring of `cachetopd`.
//!
//! A recording is a file that only grows at its end, made of frames: one for each tick, with a checksum. A run of frames is a
//! segment: it begins with everything that a reader must know (a key frame), what follows refers to it, and all of it is one
//! stream of deflate that is flushed after each frame. So a reader begins at any segment, what is damaged costs the rest of
//! its segment, and a writer that is killed leaves half a frame at the end.
//!
//! - [`numbers`]: times and lengths as numbers
//! - [`rows`]: rows as numbers, those that are known by their place in a table
//! - [`frame`]: a sample as bytes, and back
//! - [`file`]: frames in a file: checksums, segments, what is damaged
//! - [`stream`]: frames one after the other, before they are in a file
//! - [`moments`]: the last minute, and what is kept of it when something happens
//! - [`growing`]: a file that is written and does not stay in the page cache
//! - [`ring`]: files of a directory, of which the oldest go
//! - [`writer`]: samples to a file, or to a ring of them
//! - [`names`]: names of a sample that come with it
//! - [`live`]: what counts, seen and recorded at once
//! - [`replay`]: a recording as a source of samples

pub mod file;
pub mod frame;
mod growing;
pub mod live;
pub mod moments;
pub mod names;
mod numbers;
pub mod replay;
mod ring;
mod rows;
mod stream;
pub mod writer;

#[cfg(test)]
mod tests;
