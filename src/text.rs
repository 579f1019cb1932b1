//! How text and numbers are written, for every output of the package: one room, below all that write.

pub mod numbers;
pub mod output;
pub mod times;
pub mod wrap;
