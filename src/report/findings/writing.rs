//! How data was written.

use serde_json::json;

use super::common::MANY;
use super::finding::Finding;
use crate::figures::Figure;
use crate::report::data::FileRow;
use crate::report::data::Run;
use crate::report::units::page;
use crate::report::units::share;
use crate::text::foreign::or;

/// Pages that came from devices only since a part of each was written, as far as nothing else explains them; and pages that were
/// written and not cached. Swap and metadata come from devices, too.
fn to_be_changed(run: &Run) -> Option<(u64, u64)> {
    let missed = run.get(Figure::WriteMisses)?;
    let device = run.usage.device_read_bytes?;
    let faults = run.get(Figure::FaultMisses)?;
    let data = run.get(Figure::Misses)? + run.get(Figure::ReadAheadPages)? + faults;
    let metadata = run.get(Figure::MetaMisses)? + run.get(Figure::MetaAheadHits)?;
    let swapped = run.usage.major_faults?.saturating_sub(faults);
    let direct = run.get(Figure::DirectReadBytes)?;
    let more = (device.saturating_sub(direct) / page()).saturating_sub(data + metadata + swapped);
    Some((more, missed))
}

pub(super) fn read_to_write(run: &Run, _: &[&Run]) -> Option<Finding> {
    let (more, missed) = to_be_changed(run)?;
    // Some file systems (xfs, btrfs) bring their metadata in where nobody counts it: who makes many files waits for that, and not in
    // its writes.
    let w = &run.waits;
    let names = w.open_ns? + w.lookup_ns? + w.directory_ns?;
    if more < MANY || missed < more || w.write_ns? < names {
        return None;
    }
    let text = format!(
        "{} were read so that a part of each page could be changed: its writes there were smaller than a page, and the page was not \
         cached.",
        run.volume(more),
    );
    let evidence = json!({ "read_pages": more, "write_misses": missed,
        "device_read_bytes": run.usage.device_read_bytes, "write_ns": w.write_ns });
    Some(Finding::new("read-to-write", text, evidence)?.remedy(format!(
        "Write whole pages ({} KiB, aligned), or larger pieces: these are not read before. Else have them read ahead \
         (POSIX_FADV_WILLNEED).",
        page() / 1024,
    )))
}

/// Pages of a copy that overlayfs made: those that it read of the original. What the command wrote to it later is its own.
fn copied_of(run: &Run, copy: &FileRow) -> u64 {
    let original = run.files.iter().find(|f| f.path == copy.copied_from);
    original.map_or(copy.dirtied, |f| copy.dirtied.min(f.accesses()))
}

fn copies(run: &Run) -> impl Iterator<Item = (&FileRow, u64)> {
    run.files.iter().filter(|f| f.copied_from.is_some()).map(|f| (f, copied_of(run, f)))
}

/// Pages that overlayfs copied, of the files that a report lists.
pub(super) fn copied_pages(run: &Run) -> u64 {
    copies(run).map(|(_, pages)| pages).sum()
}

/// What overlayfs copied before something could be changed is read, and written, in one call that does neither: nobody would
/// look for it there.
pub(super) fn copied(run: &Run, _: &[&Run]) -> Option<Finding> {
    let pages = copied_pages(run);
    if pages < MANY || share(pages, run.seen_pages()) < 0.2 {
        return None;
    }
    let (most, _) = copies(run).max_by_key(|(_, pages)| *pages)?;
    let more = match copies(run).count() {
        1 => String::new(),
        n => format!(" ({n} files, this one the largest)"),
    };
    let text = format!(
        "Overlayfs copied {} from {} to its upper layer{more}: a file of a layer below is copied as a whole before it is \
         opened to be written, truncated, or given another owner. The call that does so waits for it, and what was read and \
         written for the copy is none of the command's own work.",
        run.volume(pages),
        or(most.copied_from.as_ref(), "a layer below"),
    );
    let evidence = json!({ "copied_pages": pages, "from": most.copied_from, "to": most.path,
        "open_ns": run.waits.open_ns });
    Some(Finding::new("overlay-copied", text, evidence)?.remedy(
        "What is written to belongs on a volume or another file system, or into the upper layer beforehand; for owner and \
         mode alone, overlayfs copies no data with metacopy=on.",
    ))
}
