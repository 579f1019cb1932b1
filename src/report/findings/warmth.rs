//! What was in the cache before the command asked, and who had brought it there.

use serde_json::json;

use super::Finding;
use super::MANY;
use super::percent;
use super::reads;
use super::share;
use crate::figures::Figure;
use crate::foreign::or;
use crate::report::data::Run;

/// Pages that the command found and had not brought in itself, if they are half of what it read or more.
fn warm(run: &Run) -> Option<u64> {
    let (hits, _, _) = reads(run)?;
    let warm = run.warm_pages.min(hits);
    (warm >= MANY && share(warm, run.asked_pages) >= 0.5).then_some(warm)
}

/// Pages that a run brought in of the files that another run uses.
fn brought(by: &Run, run: &Run) -> u64 {
    let same = |dev: &str, inode: u64| run.files.iter().any(|f| f.inode == inode && f.dev == dev);
    let fills = by.files.iter().filter(|f| same(&f.dev, f.inode));
    fills.map(|f| f.misses + f.readahead_pages + f.fault_misses + f.dirtied).sum()
}

/// An earlier run that brought in half of what was warm.
fn warmer_run<'a>(run: &Run, earlier: &[&'a Run], warm: u64) -> Option<(&'a Run, u64)> {
    let runs = earlier.iter().rev().map(|r| (*r, brought(r, run)));
    runs.max_by_key(|(_, n)| *n).filter(|(_, n)| n * 2 >= warm)
}

fn cached(warm: u64, run: &Run) -> String {
    format!("{} of the pages it read were in the cache already", percent(share(warm, run.asked_pages)))
}

pub(super) fn earlier_run(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    let warm = warm(run)?;
    let (by, pages) = warmer_run(run, earlier, warm)?;
    // Runs to warm up are none of the report's: they have a sign instead of a number.
    let (who, number) = match by.warmup {
        true => ("a run of --warmup".to_owned(), None),
        false => (format!("run {}", by.number), Some(by.number)),
    };
    let text = format!("{}: {who} had brought them in.", cached(warm, run));
    let evidence = json!({
        "warm_pages": warm, "asked_pages": run.asked_pages, "warmed_by_run": number,
        "warmed_by_warmup": by.warmup, "brought_pages": pages,
    });
    if by.warmup {
        return Finding::new("warmed-by-earlier-run", text, evidence);
    }
    Some(
        Finding::new("warmed-by-earlier-run", text, evidence)?
            .remedy("To time it cold each time, give --prepare 'sync; echo 3 >/proc/sys/vm/drop_caches'."),
    )
}

pub(super) fn other_process(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    let warm = warm(run)?;
    if warmer_run(run, earlier, warm).is_some() {
        return None;
    }
    let fills: u64 = run.warmers.iter().map(|w| w.fills).sum();
    let first = run.warmers.first().filter(|_| fills * 2 >= warm)?;
    let text = format!(
        "{}: {} (process {}) read {} and brought in {} pages, seen last at {}.",
        cached(warm, run),
        first.comm,
        first.pid,
        or(first.path.as_ref(), "one of the files"),
        first.fills,
        first.time,
    );
    let evidence = json!({
        "warm_pages": warm, "asked_pages": run.asked_pages, "pid": first.pid, "comm": first.comm,
        "brought_pages": first.fills, "path": first.path, "time": first.time,
    });
    Finding::new("warmed-by-other-process", text, evidence)
}

pub(super) fn before(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    let warm = warm(run)?;
    let fills: u64 = run.warmers.iter().map(|w| w.fills).sum();
    // Those who read them meanwhile may have come before it, page for page.
    if warmer_run(run, earlier, warm).is_some() || fills.max(run.by_others) * 2 >= warm {
        return None;
    }
    let text = format!("{}; they were there before the watch began.", cached(warm, run));
    let evidence = json!({ "warm_pages": warm, "asked_pages": run.asked_pages });
    Some(Finding::new("cached-before", text, evidence)?.remedy(
        "To see how long it takes without that, run it with --cold all (it empties the caches of the whole machine).",
    ))
}

pub(super) fn only_metadata(run: &Run, _: &[&Run]) -> Option<Finding> {
    let (hits, ahead, misses) = reads(run)?;
    let (meta, meta_hits) = (run.get(Figure::MetaAccesses)?, run.get(Figure::MetaHits)?);
    let cold = share(ahead + misses, hits + ahead + misses);
    if ahead + misses < MANY || cold < 0.5 || meta < 64 || share(meta_hits, meta) < 0.9 {
        return None;
    }
    let text = format!(
        "Only metadata was warm: {} of {meta} look-ups of metadata blocks were hits, but {} of the pages read were \
         not used before.",
        percent(share(meta_hits, meta)),
        percent(cold),
    );
    let evidence = json!({
        "meta_accesses": meta, "meta_hits": meta_hits, "hits": hits, "readahead_hits": ahead, "misses": misses,
    });
    Finding::new("only-metadata-warm", text, evidence)
}
