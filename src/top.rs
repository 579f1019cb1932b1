//! `cachetop`: the live view.
//!
//! A thread of its own samples, names and adds up ([`crate::live`], [`sampler`]); the one that draws only takes what is
//! ready. So nothing that the kernel or a name service is slow at keeps a key waiting. [`app`] is the state and knows
//! no outside world; [`draw`] makes a screen of it; [`screen`] is the loop, [`terminal`] the terminal it runs on.

pub mod app;
pub mod batch;
pub mod cells;
pub mod cli;
pub mod config;
pub mod details;
pub mod draw;
pub mod findings;
mod help;
pub mod keys;
pub mod layout;
pub mod sampler;
pub mod screen;
pub mod settings;
pub mod start;
pub mod summary;
pub mod table;
pub mod terminal;

#[cfg(test)]
mod tests;
