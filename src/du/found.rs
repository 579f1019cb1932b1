//! What was found, and how far that is all of it.

use std::io::Write;

use super::row::Row;
use super::totals::Totals;

/// How it ended: whether everything that was requested could be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Everything.
    Done,
    /// A part of it is missing, and standard error says which.
    Partly,
}

impl End {
    /// The end of two things done one after the other.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        match self {
            End::Done => other,
            End::Partly => End::Partly,
        }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// The rows to show, in order.
    pub rows: Vec<Row>,
    /// Whether other rows were printed as they were found.
    pub streamed: bool,
    /// All of it together.
    pub total: Totals,
    /// What has to be said beside it.
    pub notes: Vec<String>,
    /// Whether something that was requested is missing.
    pub missing: bool,
}

impl Found {
    /// Says what has to be said, and whether all of it was found.
    pub fn warn(&self, err: &mut dyn Write) -> End {
        for note in &self.notes {
            let _ = writeln!(err, "cachedu: warning: {note}");
        }
        if self.missing { End::Partly } else { End::Done }
    }
}
