//! How data was written.

use serde_json::json;

use super::Finding;
use super::MANY;
use crate::figures::Figure;
use crate::report::data::Run;
use crate::report::units::page;

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
