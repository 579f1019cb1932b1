//! What became of the cache between two runs, or while one lasted: by what was cached after the one and before the other,
//! and by the kernel's own accounts. Refaults are not needed for it.

use serde_json::json;

use super::common::MANY;
use super::common::percent;
use super::finding::Finding;
use crate::figures::Figure;
use crate::report::data::FileRow;
use crate::report::data::Run;
use crate::report::price::Price;
use crate::report::units::page;
use crate::report::units::seconds;
use crate::report::units::share;

/// Of the files that both runs know: how many they are, and of these the pages that were cached after the one, those that
/// were gone before the other, and those of them that the other had to bring in again. What is gone of a file that it has no
/// use for costs it nothing.
fn kept(then: &Run, now: &Run) -> (u64, u64, u64, u64) {
    let id = |f: &FileRow| (f.dev.clone(), f.inode);
    let mut out = (0, 0, 0, 0);
    for file in &then.files {
        let Some(after) = file.after.as_ref().map(|r| r.cached) else { continue };
        let Some(again) = now.files.iter().find(|f| id(f) == id(file)) else { continue };
        let Some(before) = again.before.as_ref().map(|r| r.cached) else { continue };
        let gone = after.saturating_sub(before);
        let brought = again.misses + again.readahead_pages + again.fault_misses;
        out = (out.0 + 1, out.1 + after, out.2 + gone, out.3 + gone.min(brought));
    }
    out
}

pub(super) fn lost(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    let then = earlier.last()?;
    // What was asked for is no surprise.
    let asked = run.cold.is_some() || run.prepare.as_ref().is_some_and(|line| line.contains("drop_caches"));
    let (files, had, gone, again) = kept(then, run);
    if asked || again < MANY || share(again, run.asked_pages) < 0.2 {
        return None;
    }
    let between = run.machine_before.unwrap_or_default();
    let prepared = if run.prepare.is_some() { " The line of --prepare was run in between." } else { "" };
    let (by, why, remedy) = if between.dropped.is_some_and(|n| n > 0) {
        ("dropped", format!("somebody emptied the page cache (drop_caches).{prepared}"), "")
    } else if between.limited.is_some_and(|n| n > 0) {
        (
            "limit",
            "its cgroup, or one above, reached its limit of memory (memory.high or memory.max), which counts cached pages."
                .into(),
            "Raise memory.high or memory.max of its cgroup.",
        )
    } else if between.stolen.is_some_and(|n| n >= gone / 2) {
        (
            "pressure",
            format!(
                "memory was short, and the kernel took {} back, of whomsoever.",
                run.volume(between.stolen.unwrap_or(0))
            ),
            "More memory, or less of others' work meanwhile.",
        )
    } else {
        (
            "unexplained",
            format!(
                "unexplained is who did: caches were not emptied as a whole, and memory was not short. POSIX_FADV_DONTNEED, \
                 files written anew, or the limit of another cgroup do so.{prepared}"
            ),
            "",
        )
    };
    let number = if then.warmup { "the run before".to_owned() } else { format!("run {}", then.number) };
    let text = format!(
        "{} that {number} had left in the cache were gone when this one began, and it brought in {} of them again ({} of all \
         that it used): {why}",
        run.volume(gone),
        run.volume(again),
        percent(share(again, run.asked_pages)),
    );
    let evidence = json!({ "files": files, "cached_after_pages": had, "gone_pages": gone, "brought_again_pages": again,
        "by": by, "drop_caches": between.dropped, "limit_reached": between.limited, "reclaimed_pages": between.stolen });
    let finding = Finding::new("lost-between-runs", text, evidence)?;
    Some(if remedy.is_empty() { finding } else { finding.remedy(remedy) })
}

pub(super) fn dropped(run: &Run, _: &[&Run]) -> Option<Finding> {
    let times = run.machine.dropped?;
    if times == 0 {
        return None;
    }
    let text = "Somebody emptied the page cache while it ran (drop_caches): what it had read was gone, what it read again a miss.";
    Finding::new("dropped-meanwhile", text.into(), json!({ "drop_caches": times }))
}

/// Nanoseconds that a run can have waited for memory, at most: where a thread has to make room it works in the kernel, or waits in
/// a call that is for storage, or for what has no name. `None` where that is not known.
fn most_for_memory(run: &Run) -> Option<u64> {
    let w = &run.waits;
    let storage =
        [w.read_ns, w.fault_ns, w.exec_ns, w.open_ns, w.lookup_ns, w.directory_ns, w.write_ns, w.sync_ns];
    let named = w.for_others().iter().map(|(ns, _)| *ns).sum::<Option<u64>>()?;
    let nameless = w.other_ns?.saturating_sub(named);
    Some(storage.into_iter().sum::<Option<u64>>()? + nameless + (run.usage.system_s? * 1e9) as u64)
}

pub(super) fn limit(run: &Run, _: &[&Run]) -> Option<Finding> {
    let times = run.machine.limited.filter(|n| *n > 0)?;
    let back = run.get(Figure::Refaulted);
    let waited = match run.machine.memory_us.map(|us| us * 1000) {
        // The account is of all tasks of the cgroup, of which others may have waited while this one did not.
        Some(ns) => {
            let own = ns.min(most_for_memory(run).unwrap_or(ns));
            let share = super::common::of_ns(own, run);
            if own < 10_000_000 || share < 0.05 {
                return None;
            }
            let share = super::common::part_of_time(share, run);
            match own < ns {
                true => format!(
                    "those in it waited {} for memory to be taken back, this command {} of these at most ({share})",
                    seconds(ns),
                    seconds(own),
                ),
                false => {
                    format!(
                        "it, or others that are in there, waited {} ({share}) for memory to be taken back",
                        seconds(ns)
                    )
                }
            }
        }
        // Whoever reads much once reaches a limit all the time, and loses nothing by it: only what came back was missed.
        None => {
            let fills = run.brought_in()?;
            let back = back.filter(|n| *n >= MANY && share(*n, fills) >= 0.1)?;
            format!(
                "{} that had been evicted were read back in; how long it waited for memory, version 1 of cgroups does not tell",
                run.volume(back)
            )
        }
    };
    let whose = match run.machine.limited_above {
        Some(above) if above == times => "A cgroup above its own",
        Some(above) if above > 0 => "Its cgroup, or one above it,",
        _ => "Its cgroup",
    };
    let often = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    let text = format!("{whose} reached its limit of memory, where cached pages count, {often}; {waited}.");
    let evidence = json!({ "limit_reached": times, "limit_reached_above": run.machine.limited_above,
        "memory_us": run.machine.memory_us, "own_at_most_ns": most_for_memory(run), "refaulted": back, "wall_s": run.wall_s });
    Some(
        Finding::new("memory-limit", text, evidence)?
            .remedy("Raise memory.high or memory.max of that cgroup (version 1: memory.limit_in_bytes)."),
    )
}

/// Pages that it brought in of files that nobody changed, as many as these have at most, and those of them that were gone when
/// it had ended; of the files that were asked for then. What is cut off goes, and so does what is written past the cache.
fn gone(run: &Run) -> (u64, u64) {
    let read_only = |f: &&FileRow| {
        f.unchanged && f.dirtied + f.writes().unwrap_or(0) + f.direct_write_bytes.unwrap_or(0) == 0
    };
    run.files.iter().filter(read_only).fold((0, 0), |sum, f| {
        let Some((after, size)) = f.after.as_ref().zip(f.size) else { return sum };
        let came = (f.misses + f.readahead_pages + f.fault_misses).min(size.div_ceil(page()));
        (sum.0 + came, sum.1 + came.saturating_sub(after.cached))
    })
}

/// What it read is no more there, and the kernel did not need the room: somebody dropped it.
pub(super) fn left_nothing(run: &Run, _: &[&Run]) -> Option<Finding> {
    let (evicted, removed) = (run.system.evicted?, run.system.removed?);
    let (brought, gone) = gone(run);
    // Whatever was evicted, whosever it was, may have been of these.
    let dropped = gone.saturating_sub(evicted).min(removed);
    let by_all = run.machine.dropped.is_some_and(|n| n > 0);
    if by_all || dropped < MANY || share(dropped, brought) < 0.5 {
        return None;
    }
    let text = format!(
        "It leaves little in the cache: of {} that it brought in, {} or more were gone when it had ended, and were not evicted. They \
         were dropped while it ran, as RWF_DONTCACHE (from 6.14 on) does behind a read, and POSIX_FADV_DONTNEED. The next run \
         has to bring them in again.",
        run.volume(brought),
        run.volume(dropped),
    );
    let evidence = json!({ "brought_pages": brought, "gone_pages": gone, "dropped_pages": dropped,
        "evicted_pages": evicted, "removed_pages": removed });
    Some(Finding::new("dropped-behind", text, evidence)?.remedy(
        "Where the data is wanted again soon, read it without that; where not, it keeps what others have cached.",
    ))
}

/// Told of the warmer of two runs.
pub(super) fn price(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    let then = earlier.iter().rev().find(|r| !r.warmup && r.is_same_command(run))?;
    let price = Price::between(then, run).filter(|p| p.seconds > 0.0)?;
    if price.seconds < 0.2 * then.wall_s {
        return None;
    }
    let text = format!(
        "{:.3} s of run {} ({}) was work of the kernel for a cold cache: it brought in {} more than this one. That is the most \
         that it can have cost, ± {:.3} s.",
        price.seconds,
        then.number,
        super::common::part_of_time(super::common::of_time(price.seconds, then), then),
        price.what(),
        price.error_s,
    );
    let evidence = json!({ "cold_run": then.number, "work_s": price.seconds, "error_s": price.error_s, "pages": price.pages,
        "metadata_blocks": price.metadata, "names": price.names, "cold_wall_s": then.wall_s });
    Finding::new("cold-cache-work", text, evidence)
}
