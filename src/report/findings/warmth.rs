//! What was in the cache before the command asked, and who had brought it there.

use serde_json::json;

use super::common::MANY;
use super::common::SHORT_S;
use super::common::part_of_time;
use super::common::percent;
use super::common::reads;
use super::common::ways;
use super::finding::Finding;
use crate::figures::Figure;
use crate::report::blocks;
use crate::report::data::Run;
use crate::report::price::Price;
use crate::report::time::Parts;
use crate::report::units;
use crate::report::units::share;
use crate::text::foreign::or;
use crate::text::numbers::Unit;

/// Pages that the command found and had not brought in itself, if they are half of all that it used or more.
fn warm(run: &Run) -> Option<u64> {
    let warm = run.warm_pages;
    // Nobody knows of how much this would be a share.
    (!run.reads_to_write() && warm >= MANY && share(warm, run.seen_pages()) >= 0.5).then_some(warm)
}

/// An earlier run that brought in half of what was warm, and how much.
fn warmer_run<'a>(run: &Run, earlier: &[&'a Run], warm: u64) -> Option<(&'a Run, u64)> {
    let most = run.origin.runs.iter().max_by_key(|(number, pages)| (*pages, *number))?;
    let by = earlier.iter().find(|r| r.number == most.0)?;
    (most.1 * 2 >= warm).then_some((*by, most.1))
}

/// Begins a sentence.
fn cached(warm: u64, run: &Run) -> String {
    let faults = run.get(Figure::FaultHits);
    // The last of them is open: a comma closes it.
    let (used, open) = match (faults == Some(0), run.unseen_pages > 0) {
        (true, false) => ("read", ""),
        (true, true) => ("was seen to read", ""),
        (false, false) => ("read or had page faults on", ""),
        (false, true) => ("was seen to read, or had page faults on", ","),
    };
    // A mapped scan has a fault for each sixteenth page, and uses the others without.
    let but = match faults {
        Some(n) if n * 2 >= warm => ", without those mapped around these faults",
        _ => "",
    };
    // Whether the cache had what was read past it nobody asked.
    let (past, of) = match run.seen_cached_pages() {
        Some(of) if run.past_pages() >= MANY => (", and not past the cache", of),
        _ => ("", run.seen_pages()),
    };
    let end = if but.is_empty() && past.is_empty() { open } else { "," };
    format!("{} of the pages it {used}{but}{past}{end} were in the cache already", percent(share(warm, of)))
}

/// `them`, or how many of them.
fn of_them(pages: u64, warm: u64, run: &Run) -> String {
    match run.unit {
        _ if pages >= warm => "them".into(),
        Unit::Pages => format!("{} of these {}", units::count(pages), run.volume(warm)),
        Unit::Bytes => format!("{} of these {}", run.volume(pages), run.volume(warm)),
    }
}

pub(super) fn earlier_run(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    let warm = warm(run)?;
    let (by, pages) = warmer_run(run, earlier, warm)?;
    // Runs to warm up are none of the report's: they have a sign instead of a number.
    let (who, number) = match by.warmup {
        true => ("a run of --warmup".to_owned(), None),
        false => (format!("run {}", by.number), Some(by.number)),
    };
    let text = format!("{}: {who} had brought {} in.", cached(warm, run), of_them(pages, warm, run));
    let evidence = json!({
        "warm_pages": warm, "asked_pages": run.seen_pages(), "warmed_by_run": number,
        "warmed_by_warmup": by.warmup, "brought_pages": pages,
    });
    let finding = Finding::new("warmed-by-earlier-run", text, evidence)?;
    Some(match &run.prepare {
        // It was meant to.
        _ if by.warmup || run.cold_each || crate::report::unseen::mostly_past(run) => finding,
        None => finding.remedy("To time it cold each time, give --cold-each all."),
        // What is in use stays.
        Some(line) if line.contains("drop_caches") => finding,
        Some(_) => finding.remedy(
            "To time it cold each time, let the line of --prepare end with 'sync; echo 3 \
             >/proc/sys/vm/drop_caches'.",
        ),
    })
}

pub(super) fn other_process(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    let warm = warm(run)?;
    if warmer_run(run, earlier, warm).is_some() {
        return None;
    }
    let first = run.warmers.first().filter(|_| run.origin.others * 2 >= warm)?;
    let more = run.warmers.len() - 1;
    let others = match more {
        0 => String::new(),
        1 => ", and another process more".into(),
        n => format!(", and {n} other processes more"),
    };
    let text = format!(
        "{}: {} (process {}) had brought {} in, reading or writing {}, seen last at {}{others}.",
        cached(warm, run),
        first.comm,
        first.pid,
        of_them(first.fills, warm, run),
        or(first.path.as_ref(), "one of the files"),
        first.time,
    );
    let evidence = json!({
        "warm_pages": warm, "asked_pages": run.seen_pages(), "pid": first.pid, "comm": first.comm,
        "brought_pages": first.fills, "by_others_pages": run.origin.others, "path": first.path,
        "time": first.time,
    });
    Finding::new("warmed-by-other-process", text, evidence)
}

pub(super) fn before(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    let warm = warm(run)?;
    // Those who read them meanwhile may have come before it, page for page.
    let there = run.origin.before;
    if there * 2 < warm || there < MANY {
        return None;
    }
    // Earlier runs of this series saw the caches emptied, too.
    let emptied = [run].into_iter().chain(earlier.iter().copied());
    let emptied = emptied.filter_map(|r| r.cold.as_deref()).any(|c| c == "pagecache" || c == "all");
    let which = if there >= warm { "they".into() } else { of_them(there, warm, run) };
    let why = if emptied {
        "had stayed when the page cache was emptied: in use, or held by a file system"
    } else {
        "were there before the watch began"
    };
    let text = format!("{}; {which} {why}.", cached(warm, run));
    let evidence = json!({
        "warm_pages": warm, "asked_pages": run.seen_pages(), "there_before_pages": there,
    });
    let finding = Finding::new("cached-before", text, evidence)?;
    // A process that is watched has begun long ago, and what goes past the cache takes as long with an empty one.
    if emptied || run.exit_status.is_none() || crate::report::unseen::mostly_past(run) {
        return Some(finding);
    }
    // Of several commands, what one has warmed must not be emptied for another.
    let option = if run.label.is_some() { "--cold-each" } else { "--cold" };
    Some(finding.remedy(format!(
        "To see how long it takes without that, run it with {option} all (it empties the caches of the whole machine)."
    )))
}

/// Pages of data that were there when they were mapped, as far as they are not the `brought` ones. A page that is used through a
/// mapping is no hit. Where it is not known how many are mapped around a fault, it is taken for 64 KiB, the kernel's default, of
/// small pages. What any program maps of itself and its libraries is no data.
fn mapped_warm(run: &Run, brought: u64) -> Option<u64> {
    const AROUND: u64 = 16;
    const PROGRAM: u64 = 4 * MANY;
    let faults = run.get(Figure::FaultHits)?;
    let mapped = run.get(Figure::FaultAround).map_or(faults * AROUND, |around| faults + around);
    let programs = PROGRAM * run.processes.len().max(1) as u64;
    Some(mapped.saturating_sub(brought + programs))
}

pub(super) fn only_metadata(run: &Run, _: &[&Run]) -> Option<Finding> {
    let (hits, ahead, misses) = reads(run)?;
    let (meta, meta_hits) = (run.get(Figure::MetaAccesses)?, run.get(Figure::MetaHits)?);
    // A block that the run itself brought in is hit from then on, how often nobody knows: only where it brought none
    // in, hits tell of what was there before.
    let brought = run.get(Figure::MetaMisses)? + run.get(Figure::MetaAheadHits)?;
    let ways = ways(run)?;
    let cold = ahead + misses + ways.mapped + ways.direct;
    let all = hits + cold + mapped_warm(run, ways.mapped)?;
    let (unused, warm) = (share(cold, all), share(run.warm_pages, run.seen_pages()));
    if cold < MANY || unused < 0.5 || warm >= 0.5 || meta < 64 || brought > 0 || meta_hits < meta {
        return None;
    }
    let text = format!(
        "Only metadata was warm: all of {meta} look-ups of metadata blocks were hits, and the run had brought none of \
         these blocks in itself, but {} of the pages of data were not used before.",
        percent(unused.min(1.0 - warm)),
    );
    let evidence = json!({
        "meta_accesses": meta, "meta_hits": meta_hits, "hits": hits, "readahead_hits": ahead, "misses": misses,
        "mapped_pages": ways.mapped, "direct_pages": ways.direct, "warm_pages": run.warm_pages,
        "fault_hits": run.get(Figure::FaultHits), "fault_around": run.get(Figure::FaultAround),
    });
    Finding::new("only-metadata-warm", text, evidence)
}

/// Names that say nothing, and blocks.
const FEW_NAMES: u64 = 1000;
const FEW_BLOCKS: u64 = 64;

/// A run of the same command that brought metadata in which this one did not have to.
fn colder<'a>(run: &Run, earlier: &[&'a Run]) -> Option<(&'a Run, u64, Option<u64>)> {
    let same = earlier.iter().filter(|r| r.label == run.label && r.ended_as(run));
    let then = same.max_by_key(|r| (blocks::brought(r), std::cmp::Reverse(r.number)))?;
    let (had, has) = (blocks::brought(then)?, blocks::brought(run)?);
    let names = then.lookups.dcache_misses.zip(run.lookups.dcache_misses);
    let many = had >= FEW_BLOCKS && names.is_none_or(|(n, _)| n >= FEW_NAMES) || had >= MANY;
    let (all, left) = names.map_or((had, has), |(a, b)| (had + a, has + b));
    (many && left * 10 <= all).then_some((*then, had - has.min(had), names.map(|(a, b)| a.saturating_sub(b))))
}

/// Directories and inodes that an earlier run had brought in: the same command waited for them, and worked on their names.
fn metadata_of_earlier(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    let (then, blocks, names) = colder(run, earlier)?;
    let (a, b) = Parts::of_both(then, run);
    let part = |f: fn(&Parts) -> Option<f64>| Some(f(&a)? - f(&b)?);
    let (waited, looked) = (part(|p| p.metadata_s)?, part(|p| p.lookups_s));
    // What else the kernel had to do for it, where it was nearly all that came in.
    let price =
        Price::between(then, run).filter(|p| p.seconds > 0.0 && p.pages <= blocks + names.unwrap_or(0));
    let work = price.map(|p| p.seconds);
    let saved = waited + looked.unwrap_or(0.0) + work.unwrap_or(0.0);
    if run.wall_s >= then.wall_s || saved < SHORT_S || super::common::of_time(saved, then) < 0.2 {
        return None;
    }
    let looked_up = names.filter(|n| *n > 0).map(|n| format!(" and looked up {} names", units::count(n)));
    // What took longer this time, or as long, saved it nothing.
    let told: Vec<(f64, &str, &str)> = [
        (Some(waited), "", "waiting"),
        (looked, "", "work on names"),
        (work, "up to ", "other work of the kernel"),
    ]
    .into_iter()
    .filter_map(|(s, most, what)| Some((s.filter(|s| *s >= 0.001)?, most, what)))
    .collect();
    let of: Vec<String> = told.iter().map(|(s, most, what)| format!("{most}{s:.3} s of {what}")).collect();
    let part = super::common::of_time(told.iter().map(|(s, ..)| s).sum(), then).min(1.0);
    let sum = match of.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    };
    let who = if then.warmup { "a run of --warmup".into() } else { format!("run {}", then.number) };
    let text = format!(
        "Directories and inodes were in the cache this time: {who} brought in {} blocks of them{} more than this one. That \
         saved it {sum} ({} in that run).",
        units::count(blocks),
        looked_up.unwrap_or_default(),
        part_of_time(part, then),
    );
    let evidence = json!({ "metadata_blocks": blocks, "names": names, "brought_by_run": (!then.warmup).then_some(then.number),
        "waited_s": waited, "names_s": looked, "work_s": work, "cold_wall_s": then.wall_s });
    let finding = Finding::new("metadata-cached-before", text, evidence)?;
    Some(match then.warmup || run.cold_each || run.prepare.is_some() {
        true => finding,
        false => {
            finding.remedy("To time it with cold directories and inodes each time, give --cold-each all.")
        }
    })
}

/// The same where nobody knows who brought them in: it looked at more metadata than at data, and found all of it.
fn metadata_there(run: &Run) -> Option<Finding> {
    let (meta, hits) = (run.get(Figure::MetaAccesses)?, run.get(Figure::MetaHits)?);
    let used = run.seen_pages() + run.get(Figure::Dirtied)?;
    if meta < MANY || hits < meta || blocks::brought(run)? > 0 || share(meta, meta + used) < 0.5 {
        return None;
    }
    let text = format!(
        "Directories and inodes were in the cache already: all of {} look-ups of their blocks were hits, and it had brought none \
         of these in itself. Of data it used {} pages.",
        units::count(meta),
        units::count(used),
    );
    let evidence = json!({ "meta_accesses": meta, "meta_hits": hits, "used_pages": used });
    let finding = Finding::new("metadata-cached-before", text, evidence)?;
    // Where it was asked for, or is no run of ours.
    let asked = matches!(run.cold.as_deref(), Some("pagecache" | "all"));
    Some(match asked || run.exit_status.is_none() {
        true => finding,
        false => finding.remedy(
            "To see how long it takes without that, run it with --cold all (it empties the caches of the \
             whole machine).",
        ),
    })
}

/// It was fast, or faster, since metadata was cached.
pub(super) fn metadata_before(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    if only_metadata(run, earlier).is_some() {
        return None;
    }
    metadata_of_earlier(run, earlier).or_else(|| metadata_there(run))
}
