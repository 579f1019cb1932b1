//! Page faults that waited for something that no cached file would have saved.

use serde_json::json;

use super::common::MANY;
use super::common::SHORT_S;
use super::common::of_ns;
use super::common::part_of_time;
use super::common::worth;
use super::finding::Finding;
use crate::figures::Figure;
use crate::report::data::Run;
use crate::report::faults::For;
use crate::report::faults::swapped;
use crate::report::faults::waited_for;
use crate::report::units::seconds;

/// They waited for memory that had been swapped out. Told of less of the time than other waits: nobody looks for it there.
pub(super) fn from_swap(run: &Run, _: &[&Run]) -> Option<Finding> {
    let swapped = swapped(run).filter(|_| waited_for(run) == For::Swap)?;
    let ns = run.waits.fault_ns?;
    let share = of_ns(ns, run);
    if (ns as f64) < SHORT_S * 1e9 || share < 0.05 {
        return None;
    }
    let all = run.machine.swapped_in.unwrap_or(0);
    let text = format!(
        "It waited for memory that had been swapped out: {} ({}) in page faults. {} of these waited for a page that was of no \
         file, and {} came back from swap meanwhile, of the whole machine{}.",
        seconds(ns),
        part_of_time(share, run),
        swapped.faults,
        run.volume(all),
        if all > swapped.pages + MANY { " (it had a part of that at most)" } else { "" },
    );
    let evidence = json!({ "fault_s": ns as f64 / 1e9, "swap_faults": swapped.faults, "swapped_in_pages": all,
        "own_at_most_pages": swapped.pages, "major_faults": run.usage.major_faults,
        "fault_misses": run.get(Figure::FaultMisses), "device_read_bytes": run.usage.device_read_bytes,
        "wall_s": run.wall_s });
    Some(Finding::new("swapped", text, evidence)?.remedy(
        "More memory, a higher memory.high or memory.max of its cgroup (version 1: memory.limit_in_bytes), or less in use at \
         a time; no cached file has a part in it.",
    ))
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
