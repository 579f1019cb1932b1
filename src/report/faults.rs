//! What the waits in page faults of a run were for: data of files, memory that had been swapped out, or neither.

use super::data::Run;
use super::units::page;
use crate::figures::Figure;

/// Pages that are no chance: 1 MiB.
const MANY: u64 = 256;

/// What the waits in page faults were for, most of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// Pages of files, for all that is known.
    Data,
    /// Memory that had been swapped out.
    Swap,
    /// No data: so little came that it cannot have taken so long.
    NoData,
}

/// No request of a device that answers takes longer, nanoseconds: a disk has some tens of milliseconds, and as much for each
/// thread that it has to serve before.
const REQUEST_NS: u64 = 1_000_000_000;
/// Pages that read-ahead requests at a time, no fewer as a rule: who scans a mapping waits once for all of them.
const WINDOW: u64 = 8;

/// How often faults had to wait for data of files, about: those that found no page, and those for what was on its way.
fn of_files(run: &Run) -> Option<u64> {
    let missed = run.get(Figure::FaultMisses)?;
    Some(missed + mapped(run)?.saturating_sub(missed) / WINDOW)
}

/// File systems of which the kernel's account of devices has what is read.
const LOCAL: &[&str] = &[
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "ntfs3", "erofs", "squashfs", "iso9660",
    "udf",
];

/// Whether some of its files may come from a server, or another process: that is not always in the kernel's account of devices.
fn unaccounted(run: &Run) -> bool {
    let local = |fs: &str| LOCAL.contains(&fs);
    run.files.iter().any(|f| match f.fs.as_deref() {
        Some("virtiofs") => true,
        fs if is_far(fs) => true,
        // What brought nothing in says nothing.
        fs => f.readahead_pages + f.misses + f.fault_misses > 0 && !fs.is_some_and(local),
    })
}

/// Whether no device gave so many pages, nor a small part of them, however they were compressed: holes, and pages of new files.
#[must_use]
pub fn from_no_device(run: &Run, pages: u64) -> bool {
    const PACKED: u64 = 64;
    !unaccounted(run) && run.usage.device_read_bytes.is_some_and(|n| n / page() < pages.div_ceil(PACKED))
}

/// Whether so little came by faults that they waited for something else.
fn without_data(run: &Run) -> Option<bool> {
    let (requests, device) = (of_files(run)?, run.usage.device_read_bytes?.div_ceil(page()));
    // No request of a server has a bound, nor one of a device that a cgroup holds back.
    if requests > 0 && (unaccounted(run) || !run.read_limits.is_empty()) {
        return Some(false);
    }
    // Of files it has not all that devices gave: what the rest was for is not known.
    let past = run.get(Figure::DirectReadBytes).unwrap_or(0) / page();
    if device > run.brought_in()?.saturating_add(past).saturating_add(MANY) {
        return None;
    }
    Some(run.waits.fault_ns? > requests.min(device).saturating_mul(REQUEST_NS))
}

/// What came back from swap for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swapped {
    /// Page faults that waited for it, at most.
    pub faults: u64,
    /// Pages, at most.
    pub pages: u64,
}

/// Pages that the kernel brings back from swap for one fault.
const CLUSTER: u64 = 8;
/// Faults that are no chance: before 6.0 a store may count as a major one, and anywhere one that finds its page on its way.
const FEW: u64 = 16;

/// Major faults beyond those of files, as many as pages came back from swap meanwhile (of the whole machine) and as devices gave
/// this run beside what it brought in of files: any of the three alone may be something else.
#[must_use]
pub fn swapped(run: &Run) -> Option<Swapped> {
    let faults = run.usage.major_faults?.saturating_sub(run.get(Figure::FaultMisses)?);
    let past = run.get(Figure::DirectReadBytes)?;
    let beside =
        (run.usage.device_read_bytes?.saturating_sub(past) / page()).saturating_sub(run.brought_in()?);
    let pages = run.machine.swapped_in?.min(beside).min(faults.saturating_mul(CLUSTER));
    let faults = faults.min(pages);
    (faults >= FEW).then_some(Swapped { faults, pages })
}

/// Bytes that devices gave a run for files and their metadata.
#[must_use]
pub fn device_bytes(run: &Run) -> Option<u64> {
    let swapped = swapped(run).map_or(0, |s| s.pages * page());
    Some(run.usage.device_read_bytes?.saturating_sub(swapped))
}

/// What the waits in page faults of a run were for.
#[must_use]
pub fn waited_for(run: &Run) -> For {
    // Of both, how long each took is not known: where most faults were for the one, most of the time is taken for that.
    if swapped(run).zip(of_files(run)).is_some_and(|(swapped, files)| swapped.faults > files) {
        return For::Swap;
    }
    match without_data(run) {
        Some(true) => For::NoData,
        _ => For::Data,
    }
}

/// Nanoseconds that page faults waited for data of files, as far as that can be told.
#[must_use]
pub fn for_data(run: &Run) -> Option<u64> {
    Some(if waited_for(run) == For::Data { run.waits.fault_ns? } else { 0 })
}

/// File systems whose every request goes over a network or through another process.
#[must_use]
pub fn is_far(fs: Option<&str>) -> bool {
    fs.is_some_and(|fs| {
        fs.starts_with("nfs")
            || fs.starts_with("fuse")
            || matches!(fs, "cifs" | "smb3" | "ceph" | "9p" | "afs")
    })
}

/// Pages brought in for mappings, or read ahead and not read: at most so many, at least the faults. `None`: not known.
#[must_use]
pub fn mapped(run: &Run) -> Option<u64> {
    let (_, ahead, _) = reads(run)?;
    let fetched = run.get(Figure::ReadAheadPages)?;
    Some(run.get(Figure::FaultMisses)? + fetched.saturating_sub(ahead))
}

/// The accesses of reads, where all of them are known: hits, first uses of what was read ahead, misses.
#[must_use]
pub fn reads(run: &Run) -> Option<(u64, u64, u64)> {
    Some((run.get(Figure::Hits)?, run.get(Figure::ReadAheadHits)?, run.get(Figure::Misses)?))
}
