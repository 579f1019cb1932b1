//! A moment that was marked: the minutes that are kept, written to a file that `cachestat --replay` reads.

use anyhow::Context as _;

use crate::live::keeper::Keeper;
use crate::record::writer::Writer;
use crate::sample::Counters;
use crate::sample::Lost;
use crate::sample::Sample;
use crate::wait::Wake;

/// What is told in the recording at the end of an interval that was marked.
const MARK: &str = "marked in cachetop";

impl Keeper<'_> {
    /// Writes all intervals that are kept; those with these numbers are marked. Returns how many there are. The file was made
    /// by who may do so: a thread that counts may make none.
    ///
    /// # Errors
    /// When there is nothing, or the file cannot be written.
    pub fn keep(&mut self, mut writer: Writer, marks: &[u64]) -> anyhow::Result<usize> {
        let (past, pivot, _) = self.past().context("nothing is kept of the past here")?;
        let (Some(oldest), Some(latest)) = (past.oldest(), past.latest()) else {
            anyhow::bail!("no interval has ended yet");
        };
        // What is kept is what each interval counted; a recording has counters that rise.
        let (mut total, mut by_file, mut lost) = (Counters::default(), Counters::default(), Lost::default());
        let mut written = 0;
        for there in (oldest..=latest).filter_map(|number| past.unpack(number)) {
            let length = there.now.at.since(there.before.at);
            if written == 0 {
                let length = jiff::SignedDuration::try_from(length).unwrap_or_default();
                let time = there.now.time.checked_sub(length).unwrap_or(there.now.time);
                let mut first = Sample { time, ..there.before };
                writer.write(&mut first, pivot.names.as_mut(), Wake::Deadline)?;
            }
            let mut now = there.now;
            total.add(&now.total);
            lost.add(&now.lost);
            if let Some(new) = &now.by_file {
                by_file.add(new);
                now.by_file = Some(by_file);
            }
            (now.total, now.lost) = (total, lost.clone());
            if marks.contains(&there.number) {
                writer.mark(MARK.into());
            }
            writer.write(&mut now, pivot.names.as_mut(), Wake::Deadline)?;
            written += 1;
        }
        Ok(written)
    }
}
