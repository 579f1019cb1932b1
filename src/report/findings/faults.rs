//! What page faults waited for: data of files, or something that no cached file would have saved.

use serde_json::json;

use super::common::ways;
use super::finding::Finding;
use super::reading::is_far;
use super::waiting::worth;
use crate::figures::Figure;
use crate::report::data::Run;
use crate::report::units::page;

/// What the waits in page faults were for, most of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum For {
    /// Pages of files, for all that is known.
    Data,
    /// No data: so little came that it cannot have taken so long.
    NoData,
}

/// No request of a device that answers takes longer, nanoseconds: a busy disk has some tens of milliseconds.
const REQUEST_NS: u64 = 100_000_000;
/// Pages that read-ahead requests at a time, no fewer as a rule: who scans a mapping waits once for all of them.
const WINDOW: u64 = 8;

/// How often faults had to wait for data of files, about: those that found no page, and those for what was on its way.
fn of_files(run: &Run) -> Option<u64> {
    let missed = run.get(Figure::FaultMisses)?;
    Some(missed + ways(run)?.mapped.saturating_sub(missed) / WINDOW)
}

/// Whether so little came by faults that they waited for something else.
fn without_data(run: &Run) -> Option<bool> {
    let (requests, device) = (of_files(run)?, run.usage.device_read_bytes?.div_ceil(page()));
    // What a server sends, or a process, is not always in the kernel's account of devices.
    let far = run.files.iter().any(|f| is_far(f.fs.as_deref()));
    let came = if far { requests } else { requests.min(device) };
    Some(run.waits.fault_ns? > came.saturating_mul(REQUEST_NS))
}

/// What the waits in page faults of a run were for.
pub(in crate::report) fn waited_for(run: &Run) -> For {
    match without_data(run) {
        Some(true) => For::NoData,
        _ => For::Data,
    }
}

/// Nanoseconds that page faults waited for data of files, as far as that can be told.
pub(in crate::report) fn for_data(run: &Run) -> Option<u64> {
    Some(if waited_for(run) == For::Data { run.waits.fault_ns? } else { 0 })
}

/// They waited, and nothing came.
pub(super) fn no_data(run: &Run, _: &[&Run]) -> Option<Finding> {
    if waited_for(run) != For::NoData {
        return None;
    }
    let ns = run.waits.fault_ns?;
    let (fault_s, time) = worth(ns, run)?;
    let lock = match run.one_thread {
        Some(true) => "",
        _ => {
            ", for the lock of what is mapped, which a thread that maps, unmaps or protects memory keeps from the others"
        }
    };
    let changed = match run.get(Figure::Dirtied) {
        Some(0) => "",
        _ => ", for the file system of a file that is changed through a mapping",
    };
    let text = format!(
        "It waited in page faults: {time}, though next to nothing came from a device for them: for memory{lock}{changed}, \
         or for what others were just reading. Stacks of where it slept (offcputime-bpfcc) would tell."
    );
    let evidence = json!({ "fault_s": fault_s, "fault_misses": run.get(Figure::FaultMisses),
        "device_read_bytes": run.usage.device_read_bytes, "one_thread": run.one_thread, "wall_s": run.wall_s });
    Finding::new("waited-in-faults", text, evidence)
}
