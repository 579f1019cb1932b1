//! What counts, seen as it happens: the one core of `cachestat`, `cachetop` and the report.
//!
//! [`Live`] reads samples from a source, be that the kernel, a test or a record, and keeps the last two: an interval is what
//! happened between them. [`Beat`] says when the next is due. Over it stand [`Total`], the sum of all intervals so far;
//! [`whole`], the same row by row; and [`keeper`], which makes rows of them and keeps those that have just gone.

mod beat;
pub mod keeper;
pub mod machine;
pub mod past;
mod relief;
pub mod snapshot;
mod total;
pub mod whole;

use std::sync::Arc;
use std::time::Instant;

pub use beat::Beat;
pub use relief::Relief;
pub use relief::wait;
pub use total::Rows;
pub use total::Total;

use crate::model::Interval;
use crate::pivot::Pivot;
use crate::plan::Plan;
use crate::sample::Sample;
use crate::sample::Source;

/// A source, and the last two samples that it gave.
pub struct Live<'a, S: Source + ?Sized = dyn Source + 'a> {
    source: &'a mut S,
    before: Arc<Sample>,
    now: Arc<Sample>,
    read: Instant,
}

impl<'a, S: Source + ?Sized> Live<'a, S> {
    /// Reads the first sample: what is counted from here on is in the intervals that follow.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn new(source: &'a mut S) -> anyhow::Result<Self> {
        let first = Arc::new(source.sample()?);
        Ok(Self { source, before: first.clone(), now: first, read: Instant::now() })
    }

    /// Reads the next sample: an interval ends, and another one begins.
    ///
    /// # Errors
    /// When it cannot be read. Then the interval goes on.
    pub fn tick(&mut self) -> anyhow::Result<()> {
        let next = Arc::new(self.source.sample()?);
        self.read = Instant::now();
        // Its rows are those of the interval before that one, which nobody asks for any more.
        self.before = Arc::new(self.now.without_rows());
        self.now = next;
        Ok(())
    }

    /// The sample at the beginning of the last interval.
    #[must_use]
    pub const fn before(&self) -> &Arc<Sample> {
        &self.before
    }

    /// The sample at its end.
    #[must_use]
    pub const fn now(&self) -> &Arc<Sample> {
        &self.now
    }

    /// When that was read, by the clock of this process.
    #[must_use]
    pub const fn read(&self) -> Instant {
        self.read
    }

    /// What the figures are worth.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.source.plan()
    }

    /// Where the samples come from.
    pub const fn source(&mut self) -> &mut S {
        self.source
    }

    /// What happened in the last interval.
    pub fn interval(&self, pivot: &mut Pivot) -> Interval {
        pivot.interval(&self.before, &self.now, self.source.plan())
    }
}

#[cfg(test)]
mod tests;
