//! What is told of a file.

use std::fs;
use std::path::Path;

use super::copied;
use super::setting::setting;
use super::used::Used;
use crate::figures::FIGURES;
use crate::figures::Figure;
use crate::files::Mounts;
use crate::files::Named;
use crate::report::beforehand::Beforehand;
use crate::report::data::FileRow;
use crate::report::residency;
use crate::sample::Counter;
use crate::sample::Sparse;
use crate::text::foreign::Foreign;

/// The counts of a file, as far as their figures are known.
pub(super) fn counts(c: &Sparse, known: &[bool; FIGURES]) -> FileRow {
    let sum = |figure: Figure| figure.counters().iter().map(|counter| c.get(*counter)).sum();
    let of = |figure: Figure| known[figure as usize].then(|| sum(figure));
    FileRow {
        write_hits: of(Figure::WriteHits),
        write_misses: of(Figure::WriteMisses),
        direct_read_bytes: of(Figure::DirectReadBytes),
        direct_write_bytes: of(Figure::DirectWriteBytes),
        hits: sum(Figure::Hits),
        readahead_hits: sum(Figure::ReadAheadHits),
        misses: sum(Figure::Misses),
        read_bytes: sum(Figure::ReadBytes),
        readahead_pages: sum(Figure::ReadAheadPages),
        fault_misses: sum(Figure::FaultMisses),
        fault_hits: sum(Figure::FaultHits),
        dirtied: sum(Figure::Dirtied),
        ..FileRow::default()
    }
}

/// Pages of a file that came from where it is stored, whoever had them read ahead.
pub(super) fn brought(used: &Used) -> u64 {
    let came = [Counter::ReadMisses, Counter::ReadAheadHits, Counter::Prefetched, Counter::FaultMisses];
    came.iter().map(|c| used.sum.get(*c)).sum()
}

/// Pages that were read ahead of a file and not read. What was mapped around a fault is not known of each file, and a
/// page may have been used by writing to it: only of files that were read, and no more, something is known.
pub(super) fn unused(used: &Used) -> u64 {
    let c = &used.sum;
    let other = [Counter::FaultHits, Counter::FaultMisses, Counter::WriteHits];
    if other.iter().any(|n| c.get(*n) > 0) {
        return 0;
    }
    c.get(Counter::Prefetched).saturating_sub(c.get(Counter::ReadAheadHits))
}

pub(super) fn row(
    used: &Used,
    copied: Option<&copied::Copied>,
    mounts: &Mounts,
    known: &Beforehand,
    seen: &[bool; FIGURES],
    round: &residency::Round,
) -> FileRow {
    let Used { file, deleted, sum, .. } = used;
    // By its name of now, not that under which it was made.
    let (deleted, whole) = (*deleted && copied.is_none(), file.named == Named::Whole || copied.is_some());
    let path = copied.map(|c| c.to.clone()).or_else(|| mounts.path(file));
    let fs = mounts.kind(file.dev).map(String::from);
    let there = !deleted && whole && file.block.is_none();
    let on_disk = path.as_deref().filter(|p| there && p.starts_with('/')).map(Path::new);
    // The name may stand for another file by now.
    let meta = on_disk.and_then(|p| fs::metadata(p).ok());
    let same = meta.filter(|m| std::os::unix::fs::MetadataExt::ino(m) == file.inode);
    let asked = on_disk.filter(|_| same.is_some() && residency::may_open(fs.as_deref()));
    let after = asked.map(|p| round.ask(p));
    let unasked = after.as_ref().and_then(|a| a.as_ref().err()).map(ToString::to_string);
    let unasked = unasked.or_else(|| (file.named == Named::Replaced).then(|| "its name is no UTF-8".into()));
    let taken = on_disk.is_some_and(|p| known.is_of_another(p, file));
    let unasked = unasked.or_else(|| taken.then(|| "another file had its name before the run".into()));
    let setting = setting(file.block.unwrap_or(file.dev));
    FileRow {
        dev: file.block.unwrap_or(file.dev).to_string(),
        inode: file.inode,
        size: same.map(|m| m.len()),
        before: on_disk.and_then(|p| known.of(p, file).cloned()),
        after: after.and_then(Result::ok).flatten(),
        residency_unknown: unasked,
        read_ahead_kb: setting.as_ref().map(|(kb, _)| *kb),
        read_ahead_path: setting.map(|(_, path)| path),
        path: path.map(|p| {
            let mark = if deleted && !p.starts_with("memfd:") { " (deleted)" } else { "" };
            Foreign::from(p).with(mark)
        }),
        copied_from: copied.map(|c| Foreign::from(c.from.clone())),
        fs,
        ..counts(sum, seen)
    }
}
