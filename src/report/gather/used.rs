//! A file that a run used.

use std::sync::Arc;

use crate::files::File;
use crate::report::origins::Filled;
use crate::sample::Parts;
use crate::sample::Sparse;

/// What a run did to a file, and who had brought pages of it in before.
pub(super) struct Used {
    pub(super) file: Arc<File>,
    pub(super) deleted: bool,
    pub(super) sum: Sparse,
    /// Which parts of it were read.
    pub(super) parts: Parts,
    /// By whom, up to the reading before the one in which the command used it first: whoever read it later, or between
    /// the same two readings, is not to be blamed for what the command found.
    pub(super) fillers: Vec<Filled>,
    /// Pages that others may have brought in since then, up to the reading in which the command used it last.
    pub(super) meanwhile: u64,
}
