//! `cachetopd`: the engine, left on. It records to a ring, answers `/metrics`, and keeps no more privilege than it needs.
//!
//! One thread samples on the beat ([`start`]): it adds rows up by what metrics are labelled with ([`sums`]), records, and writes
//! the text file. Another one answers ([`http`]), and makes the text of the sums when it is asked ([`exposition`]). They share
//! the sums and nothing else; the first one also measures what is used, where that is wanted ([`used`]); so does a third, which sends them where it is told to ([`otlp`]). It looks for what is to be told ([`moments`]), and yet another thread runs a command then
//! ([`hook`]).

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
mod used;
mod watching;
mod web;

#[cfg(test)]
mod tests;
