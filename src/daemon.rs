//! `cachetopd`: the engine, left on. It records to a ring, answers `/metrics`, and keeps no more privilege than it needs.
//!
//! Each of these has a thread of its own, and the sums are all that they share:
//!
//! - [`start`] samples on the beat. It adds rows up by what metrics are labelled with ([`sums`]), records, writes the text
//!   file, measures what is used where that is wanted ([`used`]), and looks for what is to be told ([`moments`]).
//! - [`http`] answers, and makes the text of the sums when it is asked ([`exposition`]).
//! - [`otlp`] sends them, where it is told to.
//! - [`hook`] runs a command when there is something to tell.

pub mod exposition;
mod families;
pub mod hook;
pub mod http;
mod labels;
pub mod moments;
pub mod options;
pub mod otlp;
mod protobuf;
mod say;
mod sockets;
pub mod start;
pub mod sums;
mod textfile;
mod used;
mod watching;
mod web;

#[cfg(test)]
mod tests;
