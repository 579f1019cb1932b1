//! Exact page-cache statistics for Linux, with the reasons.
//!
//! The shape: facts (what can this kernel do?) → plan (which hook serves which event, and why) → load and
//! attach → sample (raw counters that only rise) → model (the difference of two samples) → view.

pub mod blame;
pub mod cgroup;
pub mod classic;
pub mod cli;
pub mod columns;
pub mod daemon;
pub mod du;
pub mod engines;
pub mod exit;
pub mod explanation;
pub mod facts;
pub mod figures;
pub mod files;
pub mod heap;
pub mod kernel;
pub mod limits;
pub mod live;
pub mod loss;
pub mod memory;
pub mod model;
pub mod names;
pub mod only;
pub mod options;
pub mod pivot;
pub mod plan;
pub mod privilege;
pub mod procfs;
pub mod readahead;
pub mod record;
pub mod report;
pub mod residency;
pub mod rising;
pub mod room;
pub mod run;
pub mod sample;
#[cfg(test)]
#[path = "../tests/tools/schema.rs"]
mod schema_check;
pub mod session;
pub mod text;
pub mod top;
pub mod view;
pub mod wait;
pub mod whatif;
pub mod wire;
pub mod working;
