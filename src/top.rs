//! `cachetop`: the live view.
//!
//! A thread of its own samples, names and adds up ([`crate::live`], [`sampler`]); the one that draws only takes what is
//! ready. So nothing that the kernel or a name service is slow at keeps a key waiting. [`app`] is the state and knows
//! no outside world; [`draw`] makes a screen of it; [`screen`] is the loop, [`terminal`] the terminal it runs on.

pub mod app;
pub mod argv;
pub mod batch;
pub mod cells;
pub mod config;
pub mod counting;
pub mod course;
pub mod details;
pub mod draw;
pub mod filter;
pub mod findings;
pub mod keys;
pub mod layout;
pub mod links;
mod moment;
pub mod now;
pub mod numbers;
pub mod options;
pub mod replay;
pub mod sampler;
pub mod scene;
pub mod screen;
pub mod settings;
mod sixteen;
pub mod start;
pub mod summary;
pub mod surface;
pub mod table;
pub mod terminal;
pub mod tree;
mod whose;
pub mod zones;

#[cfg(test)]
mod tests;
