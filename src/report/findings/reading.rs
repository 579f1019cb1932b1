//! How data was read: ahead, past the cache, through mappings, or again and again.

use serde_json::json;

use super::common::MANY;
use super::common::of_ns;
use super::common::part_of_time;
use super::common::percent;
use super::common::reads;
use super::common::ways;
use super::finding::Finding;
use crate::figures::Figure;
use crate::report::data::FileRow;
use crate::report::data::Pattern;
use crate::report::data::Run;
use crate::report::faults::is_far;
use crate::report::units::page;
use crate::report::units::share;
use crate::text::foreign::or;

/// Pages of a huge page.
const HUGE: u64 = 512;

pub(super) fn fed(run: &Run, _: &[&Run]) -> Option<Finding> {
    let (hits, ahead, misses) = reads(run)?;
    let all = hits + ahead + misses;
    let ways = ways(run)?;
    if all < MANY || share(ahead, all + ways.mapped + ways.direct) < 0.5 {
        return None;
    }
    let text = format!(
        "Read-ahead fed it: {} of the pages it read were in the cache only because read-ahead had fetched them. \
         Nobody had used them since they came in: these are no hits.",
        percent(share(ahead, all)),
    );
    let evidence = json!({ "hits": hits, "readahead_hits": ahead, "misses": misses });
    Finding::new("readahead-fed", text, evidence)
}

/// Pages of a file that can only have been read ahead since somebody asked for them (`readahead`, WILLNEED). The kernel does so by
/// itself where a page is missing, or where one is used that it marked when it did so before: one window each, and none where
/// none was missing but what such a mark of somebody else's fetches. Twice that, to be sure.
fn asked_for(file: &FileRow) -> u64 {
    let used = file.accesses() + file.fault_misses + file.fault_hits;
    if used == 0 {
        return file.readahead_pages;
    }
    let missed = file.misses + file.fault_misses;
    // Nor were there marks, where nothing was cached before.
    if missed == 0 && file.before.as_ref().is_some_and(|b| b.cached == 0) {
        return file.readahead_pages.saturating_sub(file.readahead_hits);
    }
    let Some(kb) = file.read_ahead_kb else { return 0 };
    // Of what is mapped the kernel may fetch a huge page, whatever the setting.
    let mapped = file.fault_misses + file.fault_hits > 0;
    let window = (kb * 1024 / page()).max(if mapped { HUGE } else { 1 });
    let windows = if missed == 0 { 2 } else { 2 * used };
    file.readahead_pages.saturating_sub((windows * window).max(file.readahead_hits))
}

/// The same of the files that a report lists.
pub(super) fn only_asked_for(run: &Run) -> u64 {
    run.files.iter().map(asked_for).sum()
}

pub(super) fn wasted(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    let (_, used, _) = reads(run)?;
    let fetched = run.get(Figure::ReadAheadPages)?;
    // A page that was read ahead may have been used through a mapping.
    let mapped = run.get(Figure::FaultHits)? + run.get(Figure::FaultAround)?;
    // Where the command mapped much (its own program, say), the files that it only read still tell.
    let unused =
        fetched.saturating_sub(used).saturating_sub(mapped).max(run.unused_pages.unwrap_or(0)).min(fetched);
    if unused < MANY || share(unused, fetched) < 0.2 || super::room::read_ahead(run, earlier).is_some() {
        return None;
    }
    let which = match unused == fetched {
        true => "and none of it was used by it".to_owned(),
        false => {
            let share = percent(share(unused, fetched));
            format!("of which at least {} was not used by it", share.trim_start_matches("more than "))
        }
    };
    let text = format!("Read-ahead fetched {} for it, {which}.", run.volume(fetched));
    let asked = only_asked_for(run);
    let evidence = json!({ "readahead_pages": fetched, "readahead_hits": used, "unused_pages": unused,
        "only_asked_for_pages": asked });
    let remedy = if asked * 2 >= unused {
        "It was asked for (readahead, POSIX_FADV_WILLNEED or MADV_WILLNEED), and then not used: that is right where another will \
         use it soon; else ask for what is needed only."
    } else {
        "A program that jumps about can say so: posix_fadvise(POSIX_FADV_RANDOM), madvise(MADV_RANDOM) for mappings."
    };
    Some(Finding::new("readahead-wasted", text, evidence)?.remedy(remedy))
}

/// The file whose pattern of cached pages cuts read-ahead short, if a fifth of what was read ahead was its.
fn patterned(run: &Run) -> Option<&FileRow> {
    let all = run.get(Figure::ReadAheadPages)?;
    run.files.iter().filter(|f| share(f.readahead_pages, all) >= 0.2).find(|f| {
        let pattern = f.before.as_ref().and_then(|b| b.pattern);
        let setting = f.read_ahead_kb.unwrap_or(0) * 1024 / page();
        // A reader who told the kernel not to read ahead has none that could be cut short.
        let read_ahead = |p: Pattern| f.readahead_pages >= 64.max(4 * p.absent);
        pattern.is_some_and(|p| p.absent * 2 <= setting && read_ahead(p))
    })
}

/// Pages of files that were read ahead that were in the cache before the run, as far as that is known.
fn there_before(run: &Run) -> u64 {
    let ahead = run.files.iter().filter(|f| f.readahead_pages > 0);
    let asked: u64 = ahead.filter_map(|f| f.before.as_ref()).map(|b| b.cached).sum();
    asked.max(run.warm_ahead_pages)
}

pub(super) fn cut_short(run: &Run, _: &[&Run]) -> Option<Finding> {
    let file = patterned(run);
    let windows = run.get(Figure::Windows).zip(run.get(Figure::WindowsCut));
    // Windows end at what the run itself has brought in as well: by faults, by another thread that reads the same file.
    let many = windows
        .filter(|(all, cut)| *all >= 8 && share(*cut, *all) >= 0.3 && there_before(run) >= (*cut).max(1));
    if file.is_none() && many.is_none() {
        return None;
    }
    let mut text = String::from("Read-ahead was cut short by pages that were in the cache already");
    if let Some((all, cut)) = many {
        text.push_str(&format!(": {cut} of {all} windows met such a page"));
    }
    text.push('.');
    let pattern = file.and_then(|f| f.before.as_ref()?.pattern);
    if let (Some(file), Some(p)) = (file, pattern) {
        text.push_str(&format!(
            " {} had {} absent, {} present, {} times over: no request to its device can be larger than {}, with \
             read_ahead_kb at {}.",
            or(file.path.as_ref(), "A file"),
            p.absent,
            p.present,
            p.times,
            run.volume(p.absent),
            file.read_ahead_kb.unwrap_or(0),
        ));
    }
    let evidence = json!({
        "windows": windows.map(|w| w.0), "windows_cut": windows.map(|w| w.1),
        "path": file.and_then(|f| f.path.clone()), "pattern": pattern,
        "read_ahead_kb": file.and_then(|f| f.read_ahead_kb), "cached_before_pages": there_before(run),
    });
    Some(
        Finding::new("readahead-cut-short", text, evidence)?.remedy(
            "To read in whole windows, drop the file's pages before: dd if=FILE iflag=nocache count=0.",
        ),
    )
}

/// Whether a file was read from end to end, once.
fn whole(file: &FileRow) -> bool {
    let pages = file.size.map_or(0, |s| s.div_ceil(page()));
    pages >= MANY && share(file.read_bytes, pages * page()) >= 0.9 && share(file.accesses(), pages) <= 1.1
}

pub(super) fn limited(run: &Run, _: &[&Run]) -> Option<Finding> {
    let waited = of_ns(run.waits.read_ns?, run);
    let windows = run.window_pages.as_ref()?;
    let all: u64 = windows.iter().sum();
    let file = run.files.iter().find(|f| {
        let most = if is_far(f.fs.as_deref()) { 128 } else { 64 };
        f.read_ahead_kb.is_some_and(|kb| (4..=most).contains(&kb))
            && f.misses + f.readahead_hits >= MANY
            && whole(f)
    })?;
    let kb = file.read_ahead_kb?;
    let bucket = (kb * 1024 / page()).max(1).ilog2() as usize;
    let full = windows.get(bucket).copied().unwrap_or(0);
    // Windows never get larger than the setting, and most are as large as it lets them be; and it is by them that data
    // came in, of all the files, not by reads here and there for which there are none.
    let (_, ahead, misses) = reads(run)?;
    let came = ahead + misses + ways(run)?.mapped;
    if waited < 0.2
        || share(full << bucket, came) < 0.5
        || all < 8
        || share(full, all) < 0.5
        || windows.iter().skip(bucket + 1).sum::<u64>() > all / 10
    {
        return None;
    }
    let far = if is_far(file.fs.as_deref()) { ", each a round trip to its server" } else { "" };
    let text = format!(
        "Read-ahead is limited by its setting: {} was read from end to end in windows of {kb} KiB{far}, and {} \
         went into waiting for them.",
        or(file.path.as_ref(), "a file"),
        part_of_time(waited, run),
    );
    let evidence = json!({
        "path": file.path, "fs": file.fs, "read_ahead_kb": kb, "setting": file.read_ahead_path,
        "windows": all, "full_windows": full, "waited": waited,
    });
    let finding = Finding::new("readahead-limited", text, evidence)?;
    Some(match &file.read_ahead_path {
        Some(path) => finding.remedy(format!("echo 4096 >{path} (until it is mounted again)")),
        None => finding,
    })
}

pub(super) fn direct(run: &Run, _: &[&Run]) -> Option<Finding> {
    let (read, written) = (run.get(Figure::DirectReadBytes)?, run.get(Figure::DirectWriteBytes)?);
    // Writes that nobody counts are not none: pages that became dirty are the least that went through the cache.
    let written_pages = run.get(Figure::WriteAccesses).or(run.get(Figure::Dirtied))?;
    let cached = run.get(Figure::ReadBytes)? + written_pages * page();
    let cached = cached + ways(run)?.mapped * page();
    let past = read + written;
    if past < 1 << 20 || share(past, past + cached) < 0.2 {
        return None;
    }
    let text = format!(
        "{} of the bytes bypassed the cache (O_DIRECT): {} read, {} written. The cache keeps none of them for the next \
         run.",
        percent(share(past, past + cached)),
        run.volume_of_bytes(read),
        run.volume_of_bytes(written),
    );
    let evidence =
        json!({ "direct_read_bytes": read, "direct_write_bytes": written, "cached_bytes": cached });
    Finding::new("direct-io-bypassed", text, evidence)
}

/// Files of which nothing is in the figures, since nothing of them is in the cache.
pub(super) fn uncached(run: &Run, _: &[&Run]) -> Option<Finding> {
    let first = run.ends.past.first()?;
    let more = match run.ends.past.len() {
        1 => String::new(),
        n => format!(" So it is with {} more of its files.", n - 1),
    };
    let text = format!(
        "Reads of {} went past the page cache: {}, {}. What it read there is in none of these figures, and no run leaves any \
         of it for the next.{more}",
        first.path, first.fs, first.why,
    );
    let files: Vec<_> =
        run.ends.past.iter().map(|f| json!({ "path": f.path, "fs": f.fs, "why": f.why })).collect();
    Finding::new(
        "cache-bypassed",
        text,
        json!({ "files": files, "called_read_bytes": run.usage.called_read_bytes }),
    )
}

pub(super) fn fell_back(run: &Run, _: &[&Run]) -> Option<Finding> {
    let bytes_back = run.get(Figure::DirectFellBack)?;
    if bytes_back < 65536 {
        return None;
    }
    let text = format!(
        "{} asked for with O_DIRECT went through the cache after all: the file system cannot do it there.",
        run.volume_of_bytes(bytes_back),
    );
    Finding::new("direct-io-fell-back", text, json!({ "fell_back_bytes": bytes_back }))
}

pub(super) fn mapped(run: &Run, _: &[&Run]) -> Option<Finding> {
    let (misses, hits) = (run.get(Figure::FaultMisses)?, run.get(Figure::FaultHits)?);
    let around = run.get(Figure::FaultAround);
    let (touched, read) = (misses + hits + around.unwrap_or(0), run.get(Figure::Accesses)?);
    // Every program maps itself and its libraries.
    if touched < 4 * MANY || touched < 2 * read {
        return None;
    }
    let least = if around.is_none() { "at least " } else { "" };
    // What is not known is left out: "at least" says so.
    let around_text = around.map_or_else(String::new, |n| format!(", {} mapped around them", run.volume(n)));
    let major = if misses == 1 { "1 major fault".into() } else { format!("{misses} major faults") };
    let text = format!(
        "It uses files through mmap: {least}{} were mapped ({major}, {hits} minor{around_text}), {} read. Later \
         touches of a mapped page are seen by no tool.",
        run.volume(touched),
        run.volume(read),
    );
    let evidence =
        json!({ "fault_misses": misses, "fault_hits": hits, "fault_around": around, "accesses": read });
    Finding::new("mapped-not-read", text, evidence)
}

pub(super) fn faults_blind(run: &Run, _: &[&Run]) -> Option<Finding> {
    let (_, ahead, misses) = reads(run)?;
    // Of a run that maps its files as well, they show a part.
    if ways(run)?.mapped > ahead + misses {
        return None;
    }
    let major = run.usage.major_faults?;
    // Misses are holes, too: only the device can say that it was asked.
    let device = run.usage.device_read_bytes?;
    if ahead + misses < MANY || major * 100 > ahead + misses || device / page() < (ahead + misses) / 2 {
        return None;
    }
    let text = format!(
        "Major faults do not show this: perf stat and time count {major} for a run that read {} that were \
         not in use before, and {} from devices. Faults tell of mappings only; it reads by system calls.",
        run.volume(ahead + misses),
        run.volume_of_bytes(device),
    );
    let evidence = json!({ "major_faults": major, "readahead_hits": ahead, "misses": misses,
        "device_read_bytes": device });
    Finding::new("faults-blind-to-reads", text, evidence)
}
