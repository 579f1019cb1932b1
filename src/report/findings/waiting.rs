//! What a run waited for, if it was a fifth of its time or more: data and whether read-ahead could have helped, writes,
//! a processor, others; and what is left.

use serde_json::json;

use super::came::How;
use super::came::how_it_came;
use super::common::worth;
use super::finding::Finding;
use crate::figures::Figure;
use crate::report::data::Run;
use crate::report::faults;
use crate::report::machine::ReadLimit;
use crate::report::units::page;
use crate::report::units::seconds;
use crate::text::numbers::Unit;

/// Limits of cgroups that are told.
const LIMITS: usize = 3;

/// Nanoseconds of waits for storage in which there was nothing to wait for but a processor, at most: they were over when the
/// thread was woken. `None` where it waited for others as well: it was from those waits that it was woken, for all that is known.
pub(in crate::report) fn without_a_processor(ns: u64, run: &Run) -> Option<u64> {
    let w = &run.waits;
    let woken = w.woken_ns?;
    let others = w.other_ns.unwrap_or(0).saturating_sub(w.child_ns.unwrap_or(0));
    (others < woken).then_some(woken.min(ns))
}

/// As [`worth`], of waits for storage.
fn worth_of_storage(ns: u64, run: &Run) -> Option<(f64, String)> {
    let (s, mut text) = worth(ns, run)?;
    if let Some(late) = without_a_processor(ns, run).filter(|late| late * 50 >= ns) {
        text.push_str(&format!(
            ", of which up to {} were not for storage: it was woken, and had no processor",
            seconds(late)
        ));
    }
    Some((s, text))
}

pub(super) fn data(run: &Run, _: &[&Run]) -> Option<Finding> {
    let w = &run.waits;
    let ns = w.read_ns? + faults::for_data(run)? + w.exec_ns?;
    let (data_s, time) = worth_of_storage(ns, run)?;
    let device = faults::device_bytes(run);
    let rate = device.filter(|n| *n >= 1 << 20).map(|n| (n as f64 / run.wall_s.max(1e-9)) as u64);
    // What is divided by a time is not known to the tenth of a page.
    let whole = |n: u64| run.volume_of_bytes(if run.unit == Unit::Pages { n - n % page() } else { n });
    let came = rate.zip(device).map_or_else(String::new, |(rate, n)| {
        format!("; {} came from devices, {} a second", run.volume_of_bytes(n), whole(rate))
    });
    // Who emptied the cache to see just that needs no advice that is not about reading.
    let limited = super::reading::limited(run, &[]).or_else(|| super::reading::cut_short(run, &[])).is_some();
    // Larger windows, or more requests, bring no more than it allows; and no more is known of the device.
    let bound = rate.and_then(|rate| run.read_limits.iter().find(|l| reaches(l, rate)));
    let how = match how_it_came(run, ns) {
        _ if bound.is_some() => How { id: None, text: String::new(), remedy: None },
        // Not as far ahead as it could be, nor was it the device: that finding says what it was.
        How { id: Some("whole-windows" | "cut-windows"), .. } if limited => {
            How { id: None, text: String::new(), remedy: None }
        }
        how => how,
    };
    let bounds = bounds(run, whole);
    let text = format!("It waited for data: {time}{came}.{}{bounds}", how.text);
    let evidence = json!({
        "data_s": data_s, "wall_s": run.wall_s, "device_read_bytes": device, "bytes_per_second": rate,
        "came": how.id, "one_thread": run.one_thread, "io_max": run.read_limits,
    });
    let finding = Finding::new("waited-for-data", text, evidence)?;
    if let Some(at) = bound {
        let remedy = format!(
            "Raise io.max of {}, or take it for what it is: this is no matter of the cache.",
            at.cgroup
        );
        return Some(finding.remedy(remedy));
    }
    Some(match how.remedy.filter(|_| !limited) {
        Some(remedy) => finding.remedy(remedy),
        None => finding,
    })
}

/// Whether so many bytes a second are what a cgroup allows, or nearly: a part of the time it may not have waited. Far more than that
/// came from another device.
fn reaches(limit: &ReadLimit, rate: u64) -> bool {
    limit.bytes.is_some_and(|most| (most / 10 * 8..=most / 10 * 12).contains(&rate))
}

/// What its cgroups let it read: a device gives no more then, whatever it could. `bytes`: as words.
fn bounds(run: &Run, bytes: impl Fn(u64) -> String) -> String {
    let of = |l: &ReadLimit| {
        let requests = l.requests.map(|n| crate::text::words::many(n, "request", "requests"));
        let most: Vec<String> = l.bytes.map(&bytes).into_iter().chain(requests).collect();
        format!(" io.max of {} allows to read {} a second from {}.", l.cgroup, most.join(" and "), l.device)
    };
    run.read_limits.iter().take(LIMITS).map(of).collect()
}

pub(super) fn writes(run: &Run, _: &[&Run]) -> Option<Finding> {
    // Pauses are planned, and may be longer than they were.
    let ns = run.waits.write_ns?.saturating_sub(run.waits.throttled_ns?);
    let (write_s, time) = worth_of_storage(ns, run)?;
    let direct = run.get(Figure::DirectWriteBytes).unwrap_or(0);
    let dirtied = run.get(Figure::Dirtied).unwrap_or(0) * page();
    let why = if direct > dirtied {
        format!(
            " {} went past the cache (O_DIRECT): each write waits for its device.",
            run.volume_of_bytes(direct)
        )
    } else if super::writing::read_to_write(run, &[]).is_some() {
        " It was not throttled then. Pages were read to be changed; whether it waited for these alone is unexplained.".into()
    } else {
        " It was not throttled then: unexplained is whether it waited for a journal, for pages that were just being \
         written, for blocks that must be read to be changed, for each write to be stable (O_SYNC), or for the kernel \
         itself, where what is written to is no file of a disk (cgroups, /proc, /sys). Stacks of where it \
         slept (offcputime-bpfcc) would tell."
            .into()
    };
    let text = format!("It waited in writes: {time}.{why}");
    let evidence = json!({ "write_s": write_s, "throttled_ns": run.waits.throttled_ns, "wall_s": run.wall_s,
        "direct_write_bytes": direct, "dirtied_bytes": dirtied });
    Finding::new("waited-for-writes", text, evidence)
}

pub(super) fn sync(run: &Run, _: &[&Run]) -> Option<Finding> {
    let (sync_s, time) = worth_of_storage(run.waits.sync_ns?, run)?;
    let written = run.usage.device_write_bytes;
    let amount = written.map_or_else(String::new, |n| {
        // As many as a whole folio has, for each byte of it that is written.
        format!(
            " By the kernel's account, which counts whole folios, {} were made dirty.",
            run.volume_of_bytes(n)
        )
    });
    let text = format!(
        "It waited in fsync and its like, or close, for what it had written to be on its device: {time}.{amount}"
    );
    let evidence = json!({ "sync_s": sync_s, "wall_s": run.wall_s, "device_write_bytes": written,
        "dirtied_pages": run.get(Figure::Dirtied) });
    Some(Finding::new("waited-for-sync", text, evidence)?.remedy(
        "Fewer, larger commits; the cache has no part in it: each fsync waits for its device to have written for good.",
    ))
}
