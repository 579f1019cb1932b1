//! The line above rows of files, of the same moment as these.
//!
//! Threads and files are two tables, read one after the other, threads first. What is counted in between would be in the
//! rows of files, but not in the line above them; and a line that is simply raised would have it twice at the next tick.
//! So what is followed is the rest: what was counted of no file's row. The kernel programs count an event for its
//! file before they count it for its thread, so that totals less files, read in this order, are never more than the rest
//! was in between; and the rest only rises. The line is the files together with the largest rest seen so far: more than
//! the totals that were read before the files, and never more than what had been counted when these were read.

use super::Counters;
use super::FileSample;
use crate::wire::COUNTERS;
use crate::wire::FILE_COUNTERS;

/// What is remembered from reading to reading.
#[derive(Debug, Default)]
pub struct Line {
    files: Counters,
    rest: Counters,
}

impl Line {
    /// The counters of the line, monotone since attach: `total` was read before `files`, which are what came since the
    /// last reading.
    pub fn add(&mut self, total: &Counters, files: &[FileSample]) -> Counters {
        for file in files {
            self.files.add_sparse(&file.counters);
        }
        let mut out = *total;
        for i in FILE_COUNTERS.iter().map(|c| *c as usize).filter(|i| *i < COUNTERS) {
            // Less than nothing is left where files are ahead: then no more is known than before.
            if let Some(rest) = total.0[i].checked_sub(self.files.0[i]) {
                self.rest.0[i] = self.rest.0[i].max(rest);
            }
            out.0[i] = self.files.0[i].saturating_add(self.rest.0[i]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::files::Dev;
    use crate::files::File;
    use crate::files::Named;
    use crate::sample::Counter;
    use crate::view::fixtures;

    fn used(inode: u64, n: u64) -> FileSample {
        let dev = Dev { major: 8, minor: 1 };
        let file = File { dev, inode, generation: 0, block: None, name: "/f".into(), named: Named::Whole };
        FileSample {
            tgid: 1,
            uid: 0,
            cgroup: 1,
            born: 0,
            process: "dd".into(),
            file: Arc::new(file),
            deleted: false,
            counters: fixtures::counters(&[(Counter::ReadHits, n)]),
        }
    }

    proptest! {
        /// Events, each of a file or of none, are counted while tables are read: some between the two. Whatever the
        /// order, rows never are more than the line, neither in an interval nor since the start, nothing is counted
        /// that did not happen, and when all is quiet nothing is missing.
        #[test]
        fn rows_of_files_never_exceed_their_line(
            ticks in prop::collection::vec((0_u64..50, 0_u64..50, 0_u64..50, 0_u64..50, 0_u64..5), 1..40),
        ) {
            let hits = Counter::ReadHits as usize;
            let (mut line, mut before) = (Line::default(), 0);
            let (mut threads, mut files) = (0, 0);
            // Counted for its file, and not yet for its thread.
            let mut under_way = 0;
            for (of_files, of_none, between, of_none_between, late) in ticks {
                threads += under_way + of_files + of_none;
                let mut new = of_files + late;
                under_way = late;
                let mut total = Counters::default();
                total.0[hits] = threads;
                // The totals have been read; the files not yet.
                threads += between + of_none_between;
                new += between;
                files += new;
                let now = line.add(&total, &[used(1, new)]).0[hits];
                prop_assert!(now >= total.0[hits], "the line is no older than the totals");
                prop_assert!(now <= threads + under_way, "it has what happened only");
                prop_assert!(now - before >= new, "in the interval");
                prop_assert!(now >= files, "since the start");
                before = now;
            }
            threads += under_way;
            let mut total = Counters::default();
            total.0[hits] = threads;
            prop_assert_eq!(line.add(&total, &[]).0[hits], threads, "at rest");
        }
    }
}
