//! A tree of 6000 files, read cold and warm, for the tests of the rules.

use super::tests::idle;
use super::*;
use crate::figures::Figure;
use crate::report::data::FileRow;

/// The rule, a series whose last run it is told of, and one of which it is not.
pub(super) type Pair = (&'static str, Vec<Run>, Vec<Run>);

pub(super) const FILES: u64 = 6000;
/// Pages of each file.
pub(super) const PAGES: u64 = 4;
pub(super) const ALL: u64 = FILES * PAGES;
/// Nanoseconds.
pub(super) const MS: u64 = 1_000_000;

pub(super) fn set(run: &mut Run, figures: &[(Figure, u64)]) {
    figures.iter().for_each(|(figure, n)| run.figures.set(*figure, Some(*n)));
}

/// One of the files, read cold.
pub(super) fn one(inode: u64) -> FileRow {
    FileRow {
        path: Some(format!("/tree/{inode}").into()),
        inode,
        fs: Some("ext4".into()),
        size: Some(PAGES * 4096),
        misses: 1,
        readahead_hits: PAGES - 1,
        readahead_pages: PAGES - 1,
        read_bytes: PAGES * 4096,
        read_ahead_kb: Some(128),
        ..FileRow::default()
    }
}

/// The tree is read for the first time; a second passes, a third of it in waiting for data.
pub(super) fn cold() -> Run {
    let mut run = idle();
    set(
        &mut run,
        &[
            (Figure::Accesses, ALL),
            (Figure::ReadAheadHits, ALL - FILES),
            (Figure::Misses, FILES),
            (Figure::ReadAheadPages, ALL - FILES),
            (Figure::Fills, ALL),
            (Figure::ReadBytes, ALL * 4096),
        ],
    );
    (run.files, run.files_seen, run.asked_pages) = ((1..=50).map(one).collect(), FILES, ALL);
    run.usage.device_read_bytes = Some(ALL * 4096);
    run.exit_status = Some(0);
    run
}

/// It is read again. `before`: pages of which nobody knows who brought them in.
pub(super) fn warm(before: u64) -> Run {
    let mut run = idle();
    set(&mut run, &[(Figure::Accesses, ALL), (Figure::Hits, ALL), (Figure::ReadBytes, ALL * 4096)]);
    let hit = |n| FileRow { hits: PAGES, misses: 0, readahead_hits: 0, readahead_pages: 0, ..one(n) };
    (run.files, run.files_seen, run.number) = ((1..=50).map(hit).collect(), FILES, 2);
    (run.asked_pages, run.warm_pages, run.origin.before) = (ALL, ALL, before);
    run.waits.read_ns = Some(0);
    run.exit_status = Some(0);
    run
}

pub(super) fn changed(mut run: Run, change: impl FnOnce(&mut Run)) -> Run {
    change(&mut run);
    run
}
