//! Where the time went, if not into waiting for data.

use serde_json::json;

use super::common::LEAST;
use super::common::MANY;
use super::common::of_ns;
use super::common::of_time;
use super::common::part_of_time;
use super::common::percent;
use super::finding::Finding;
use crate::figures::Figure;
use crate::report::data::Run;
use crate::report::time::Parts;
use crate::report::units::seconds;
use crate::report::units::share;
use crate::text::foreign::or;

/// Less than this nobody notices.
const SHORT_NS: u64 = 10_000_000;

pub(super) fn throttled(run: &Run, _: &[&Run]) -> Option<Finding> {
    let ns = run.waits.throttled_ns?;
    if ns < SHORT_NS || of_ns(ns, run) < 0.05 {
        return None;
    }
    let text = format!(
        "Its writes were throttled for {} ({}): too much of memory was dirty, and devices write slower \
         than it does.",
        seconds(ns),
        part_of_time(of_ns(ns, run), run),
    );
    let evidence = json!({ "throttled_ns": ns, "wall_s": run.wall_s });
    Some(Finding::new("dirty-throttled", text, evidence)?.remedy(
        "More may be dirty with vm.dirty_bytes and vm.dirty_background_bytes; the devices get no faster by it.",
    ))
}

fn is_fuse(fs: Option<&str>) -> bool {
    fs.is_some_and(|fs| fs.starts_with("fuse"))
}

pub(super) fn in_open(run: &Run, _: &[&Run]) -> Option<Finding> {
    let ns = run.waits.open_ns?;
    if ns < SHORT_NS || of_ns(ns, run) < 0.2 {
        return None;
    }
    let of_fuse = || run.files.iter().filter(|f| is_fuse(f.fs.as_deref()));
    // Who only opened files of FUSE, or read others, tells nothing of what their reads find.
    let (misses, read) = of_fuse().fold((0, 0), |(m, all), f| (m + f.misses, all + f.accesses()));
    let hit = read > 0 && share(misses, read) < 0.05;
    let fuse = of_fuse().max_by_key(|f| f.accesses());
    let copied = super::writing::copied_pages(run);
    let why = match fuse {
        _ if copied >= MANY => format!(
            " Overlayfs copied {} there, before files of a layer below could be written to.",
            run.volume(copied)
        ),
        Some(file) if hit => format!(
            " The reads themselves found their pages: the FUSE file system of {} may fetch data when a file is opened.",
            or(file.path.as_ref(), "a file"),
        ),
        _ => String::new(),
    };
    let text =
        format!("{} ({}) went into waiting in open().{why}", seconds(ns), part_of_time(of_ns(ns, run), run));
    let evidence = json!({ "open_ns": ns, "wall_s": run.wall_s, "fuse": fuse.and_then(|f| f.path.clone()),
        "copied_pages": copied });
    Finding::new("time-in-open", text, evidence)
}

pub(super) fn metadata(run: &Run, _: &[&Run]) -> Option<Finding> {
    let parts = Parts::divide(run);
    let (metadata, data) = (parts.metadata_s?, parts.data_s?);
    let open = run.waits.open_ns.is_some_and(|ns| of_ns(ns, run) >= 0.2);
    if metadata < 0.01 || of_time(metadata, run) < 0.3 || metadata < data || open {
        return None;
    }
    let text = format!(
        "Time went to metadata, not data: {metadata:.3} s ({}) waiting for directories and inodes to be read, \
         {data:.3} s for data.",
        part_of_time(of_time(metadata, run), run),
    );
    let evidence = json!({ "metadata_s": metadata, "data_s": data, "wall_s": run.wall_s });
    Some(Finding::new("metadata-bound", text, evidence)?.remedy(
        "Directories and inode tables are in the page cache as buffers: what keeps them there (less memory pressure, a \
         lower vm.vfs_cache_pressure for what is made of them) helps.",
    ))
}

/// A fifth of the time, where it was not the most of all.
pub(super) fn waited_for_metadata(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    let parts = Parts::divide(run);
    let s = parts.metadata_s?;
    let told = in_open(run, earlier).is_some() || metadata(run, earlier).is_some();
    if s < 0.01 || of_time(s, run) < 0.2 || told {
        return None;
    }
    let text = format!(
        "It waited for metadata: {s:.3} s ({}) for directories and inodes to be read, beside {:.3} s for data.",
        part_of_time(of_time(s, run), run),
        parts.data_s?,
    );
    let evidence = json!({ "metadata_s": s, "data_s": parts.data_s, "open_ns": run.waits.open_ns, "wall_s": run.wall_s });
    Finding::new("waited-for-metadata", text, evidence)
}

pub(super) fn lookups(run: &Run, _: &[&Run]) -> Option<Finding> {
    let (misses, ns) = (run.lookups.dcache_misses?, run.lookups.work_ns?);
    if misses < 1000 || ns < SHORT_NS || of_ns(ns, run) < 0.1 {
        return None;
    }
    // What was asked for is no surprise.
    let emptied = match run.cold.as_deref() {
        Some("slab" | "all") => " (--cold had emptied it)",
        _ => "",
    };
    let text = format!(
        "{misses} names were not in the dentry cache{emptied}: asking the file system for them took {} of processor time ({}), \
         whatever the page cache held.",
        seconds(ns),
        part_of_time(of_ns(ns, run), run),
    );
    let evidence = json!({ "dcache_misses": misses, "work_ns": ns, "wall_s": run.wall_s });
    Finding::new("dentries-cold", text, evidence)
}

/// Whether files may have been waited for in the time of which nobody knows where it went. What ends has all its waits counted, and
/// little is left; of what goes on, those that began before are not.
fn in_the_dark(run: &Run, parts: &Parts) -> bool {
    let least = if run.exit_status.is_some() { LEAST } else { 0.05 };
    parts.unexplained_s.is_some_and(|s| of_time(s, run) > least)
}

pub(super) fn elsewhere(run: &Run, _: &[&Run]) -> Option<Finding> {
    let parts = Parts::divide(run);
    let storage = parts.data_s? + parts.faults_s? + parts.metadata_s? + parts.writing_s?;
    // Names that are not cached cost work, too.
    let cached = storage + parts.lookups_s.unwrap_or(0.0);
    // What a wait is for that began before the watch is not known, nor what that is that has no cause.
    let hangs = run.hung.is_some() || super::hung::unended(run).is_some();
    if run.asleep.is_some() || hangs || in_the_dark(run, &parts) {
        return None;
    }
    if run.wall_s < 0.05 || parts.overlap() || cached > 0.05 * run.wall_s {
        return None;
    }
    // Not all that waits for storage does so in a call that is counted as such: io_uring, and whatever a FUSE server
    // does. Where data came in, nothing is said.
    let came = run.get(Figure::Misses)? + run.get(Figure::FaultMisses)? + run.get(Figure::ReadAheadPages)?;
    let fuse = run.files.iter().any(|f| is_fuse(f.fs.as_deref()));
    if came >= MANY || run.usage.device_read_bytes? >= 1 << 20 || fuse {
        return None;
    }
    // A file of FUSE that is read past the cache has no page in any figure, and its server is waited for like another process. Who
    // waited for next to nothing waited for no such file either.
    let others = parts.others_s.unwrap_or(0.0) + parts.unexplained_s.unwrap_or(0.0);
    if others > 0.05 * run.wall_s && crate::report::unseen::material(run) {
        return None;
    }
    let text = format!(
        "The cache was not what it waited for: {} of the time went into waiting for files.",
        if storage < 1e-6 { "none".into() } else { percent(storage / run.wall_s) },
    );
    let evidence = json!({ "storage_s": storage, "cpu_s": parts.cpu_s, "wall_s": run.wall_s });
    Finding::new("not-the-cache", text, evidence)
}
