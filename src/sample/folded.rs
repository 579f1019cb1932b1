//! Rows that are kept no longer by themselves.

use super::FileSample;
use super::RowSample;
use crate::pivot::by::By;

/// What rows counted that made room for others, added up by one thing that they had in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded<R> {
    /// What they had in common: the only kind of rows that it is part of, but that devices stand for mounts as well.
    pub by: By,
    /// All of them; only what `by` names says anything.
    pub row: R,
}

/// Of threads, and of files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoldedRows {
    /// Of threads.
    pub threads: Vec<Folded<RowSample>>,
    /// Of files.
    pub files: Vec<Folded<FileSample>>,
}
