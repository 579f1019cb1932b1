//! `cachetopd`: the engine, left on. It records to a ring, answers `/metrics`, and keeps no more privilege than it needs.
//!
//! One thread samples on the beat ([`start`]): it adds rows up by what metrics are labelled with ([`sums`]), records, and writes
//! the text file. Another one answers ([`http`]), and makes the text of the sums when it is asked ([`exposition`]). They share
//! the sums and nothing else.

pub mod exposition;
pub mod http;
pub mod options;
pub mod privilege;
pub mod start;
pub mod sums;

#[cfg(test)]
mod tests;
