//! What a run waited for, if it was a fifth of its time or more: data and whether read-ahead could have helped, writes,
//! a processor, others; and what is left.

use serde_json::json;

use super::Finding;
use super::MANY;
use super::of_ns;
use super::part_of_time;
use super::reads;
use super::ways;
use crate::figures::Figure;
use crate::report::data::FileRow;
use crate::report::data::Run;
use crate::report::units::page;
use crate::report::units::seconds;
use crate::text::numbers::Unit;

/// What takes less of the time is not told of.
pub(super) const LEAST: f64 = 0.2;
/// Nor what nobody notices, seconds.
pub(super) const SHORT_S: f64 = 0.01;

/// The same in nanoseconds: of waits that are worth a word, how long and what share of the time.
pub(super) fn worth(ns: u64, run: &Run) -> Option<(f64, String)> {
    let s = ns as f64 / 1e9;
    let share = of_ns(ns, run);
    (s >= SHORT_S && share >= LEAST).then(|| (s, format!("{} ({})", seconds(ns), part_of_time(share, run))))
}

/// Nanoseconds of waits for storage in which there was nothing to wait for but a processor, at most: they were over when the
/// thread was woken. `None` where it waited for others as well: it was from those waits that it was woken, for all that is known.
pub(in crate::report) fn without_a_processor(ns: u64, run: &Run) -> Option<u64> {
    let w = &run.waits;
    let woken = w.woken_ns?;
    let others = w.other_ns.unwrap_or(0).saturating_sub(w.child_ns.unwrap_or(0));
    (others < woken).then_some(woken.min(ns))
}

/// The same of waits for storage.
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

/// How the data came, and what that leaves to be done about it.
struct How {
    id: Option<&'static str>,
    text: String,
    remedy: Option<String>,
}

fn how(id: &'static str, text: String, remedy: &str) -> How {
    How { id: Some(id), text, remedy: Some(remedy.into()).filter(|r: &String| !r.is_empty()) }
}

/// Whether read-ahead could have helped.
fn how_it_came(run: &Run, data_ns: u64) -> How {
    let not_known = How { id: None, text: String::new(), remedy: None };
    let Some(((_, ahead, misses), ways)) = reads(run).zip(ways(run)) else { return not_known };
    let came = ahead + misses + ways.mapped;
    let alone = run.one_thread == Some(true);
    let depth = if alone { ", one request at a time" } else { "" };
    if ways.direct > came {
        let text = format!(
            " Most of it went past the cache{depth}: no read-ahead, and nothing is left for the next run."
        );
        return how(
            "direct",
            text,
            if alone { "More requests at a time: threads, or io_uring." } else { "" },
        );
    }
    if run.waits.exec_ns.is_some_and(|ns| ns * 2 > data_ns) {
        return how(
            "programs",
            " It was programs that were read when they were started (execve).".into(),
            "",
        );
    }
    if came < MANY {
        return not_known;
    }
    // What was there already came from none.
    let files = if run.files_brought > 0 { run.files_brought } else { run.files_seen };
    if files >= 64 && came / files < 32 {
        let text = format!(
            " It came from {} files, {} of each: read-ahead ends where a file ends, and the next one is not known before \
             it is opened.",
            files,
            run.volume_of_bytes((came * page() / files).max(1)),
        );
        return how(
            "small-files",
            text,
            if alone { "Several at a time wait less: xargs -P, or threads." } else { "" },
        );
    }
    // What was waited for longer, where more pages came by the other way.
    let by_reads = run.waits.read_ns.zip(run.waits.fault_ns).is_some_and(|(read, fault)| read > fault);
    if ways.mapped > ahead + misses && !(by_reads && ahead + misses >= MANY) {
        let faults = run.get(Figure::FaultMisses).unwrap_or(0).max(1);
        if ways.mapped / faults < 4 {
            let text = format!(
                " {faults} page faults each waited for a page or a few: read-ahead had nothing to go by{depth}."
            );
            return how(
                "random",
                text,
                "madvise(MADV_WILLNEED) for what will be touched, or MADV_POPULATE_READ.",
            );
        }
        return mapped(run, ways.mapped, faults);
    }
    if ahead < misses {
        // Whoever asks for little at a time, and for more than each file once, would have had it read ahead, had that been
        // in order.
        let calls = run.get(Figure::ReadMissedCalls).map(|calls| calls.max(1));
        let large = calls.map(|calls| misses >= calls * LARGE || calls <= 2 * files);
        let whole = in_order(run) * 2 > misses;
        if let Some((each, kb)) =
            calls.and_then(|calls| smaller(run, misses, calls)).filter(|_| whole && large != Some(false))
        {
            let text = format!(
                " Each call waited for its own pages, {} at most{depth}: read-ahead, with its setting ({kb} KiB), would have \
                 been there first, had they been asked for in order, and it not been switched off (POSIX_FADV_RANDOM).",
                run.volume(each),
            );
            let remedy = "Forwards, and in order; else more requests at a time (threads, io_uring), or \
                          posix_fadvise(POSIX_FADV_WILLNEED) for what is known to be needed.";
            return how("out-of-order", text, remedy);
        }
        if large != Some(false) && whole {
            let text = format!(
                " It was read from end to end in calls so large that read-ahead had nothing left to fetch: each call waited \
                 for its own pages{depth}."
            );
            let remedy = if alone {
                "Several files or ranges at a time wait less: threads, xargs -P, or io_uring."
            } else {
                ""
            };
            return how("large-calls", text, remedy);
        }
        // Large calls here and there are neither, and of which files is not known.
        if large == Some(true) {
            return not_known;
        }
        // A call may have missed several.
        let (in_calls, each) = match run.get(Figure::ReadMissedCalls) {
            Some(calls) if calls > 0 && calls < misses => {
                (format!(", in {calls} calls"), "each call waited for its own")
            }
            _ => (String::new(), "each was waited for by itself"),
        };
        let text = format!(
            " {misses} pages were read here and there{in_calls}, {ahead} found by read-ahead, which needs neighbours: \
             {each}{depth}."
        );
        let remedy = "More requests at a time (threads, io_uring), or posix_fadvise(POSIX_FADV_WILLNEED) for what is known to be \
                      needed; a larger window would not help.";
        return how("random", text, remedy);
    }
    windows(run).unwrap_or(not_known)
}

/// Of mappings that were not touched at random. A fault that finds its page being read waits for it and is a minor one: a scan
/// in order may have a single major fault, which did not bring all of it in.
fn mapped(run: &Run, pages: u64, faults: u64) -> How {
    let windows_read: Option<u64> = run.window_pages.as_ref().map(|all| all.iter().sum());
    let setting = run.files.iter().max_by_key(|f| f.readahead_pages).and_then(|f| f.read_ahead_kb);
    let ahead = match (windows_read, setting) {
        (Some(n), _) if n > 0 => n > 2 * faults,
        (_, Some(kb)) if kb > 0 => pages * page() > 2 * faults * kb * 1024,
        _ => false,
    };
    if !ahead {
        let (s, who) = if faults == 1 { ("", "it") } else { ("s", "each of them") };
        let text = format!(
            " {faults} page fault{s} waited for what was read around {who}, {}.",
            run.volume(pages / faults)
        );
        return how("windows", text, "");
    }
    windows(run).unwrap_or_else(|| {
        let text =
            " Most of it was fetched ahead of the page faults, which waited for what was just being read.";
        how("windows", text.into(), "")
    })
}

/// Pages of a call, where these are so few that read-ahead would have fetched those of the next calls; and its setting.
/// Of the file of which most was missed: what was missed of others took a call for each page at most, and it the rest
/// of the calls at least.
fn smaller(run: &Run, misses: u64, calls: u64) -> Option<(u64, u64)> {
    let file = run.files.iter().max_by_key(|f| f.misses)?;
    let at_least = calls.checked_sub(misses.checked_sub(file.misses)?).filter(|n| *n > 0)?;
    let pages = file.misses.div_ceil(at_least);
    // Of a file that is not longer than some calls there is no next one.
    let several = file.size.is_some_and(|size| size >= 4 * pages * page());
    let kb = file.read_ahead_kb.filter(|kb| kb * 1024 > pages * page())?;
    several.then_some((pages, kb))
}

/// Pages of a call that is larger than what read-ahead would fetch for small ones at first.
const LARGE: u64 = 8;

/// Whether a file was read from end to end, or nearly so, once: a database that asks for a page here and one there has read all of its
/// file in the end as well.
fn is_whole(f: &FileRow) -> bool {
    let once = |size: u64| (size * 9).div_ceil(10)..=size + size / 10 + page();
    f.size.is_some_and(|size| {
        (f.misses + f.readahead_hits) * page() >= *once(size).start()
            && f.accesses() * page() <= *once(size).end()
    })
}

/// Pages missed in such files.
fn in_order(run: &Run) -> u64 {
    run.files.iter().filter(|f| is_whole(f)).map(|f| f.misses).sum()
}

/// Of files read in order, where nobody sees how large windows were: what the setting is, and how to find out about it.
fn setting(run: &Run) -> Option<How> {
    let file = run.files.iter().max_by_key(|f| f.readahead_hits + f.misses).filter(|f| is_whole(f))?;
    let kb = file.read_ahead_kb.filter(|kb| *kb * 1024 >= page())?;
    let path = file.read_ahead_path.as_ref()?;
    // A window ends where its file does.
    if kb >= MOST_KB || file.size.is_none_or(|size| size < 2 * kb * 1024) {
        return None;
    }
    let text = format!(" It was read from end to end; its read_ahead_kb is {kb} ({path}).");
    let remedy =
        format!("Whether more helps: cachestat --try read_ahead_kb={} -- \u{2026}", (kb * 8).min(MOST_KB));
    Some(how("setting", text, &remedy))
}

/// Larger windows are not advised, KiB.
const MOST_KB: u64 = 4096;

/// Of files read in order: how large windows of read-ahead were.
fn windows(run: &Run) -> Option<How> {
    let Some(all) = run.window_pages.as_ref() else { return setting(run) };
    let n: u64 = all.iter().sum();
    // The file of which most was read ahead stands for the others.
    let file = run.files.iter().max_by_key(|f| f.readahead_pages)?;
    let kb = file.read_ahead_kb.filter(|kb| *kb * 1024 >= page())?;
    let bucket = (kb * 1024 / page()).ilog2() as usize;
    let full: u64 = all.iter().skip(bucket).sum();
    let pages: u64 = all.iter().enumerate().map(|(i, n)| n << i).sum();
    let whole: u64 = all.iter().enumerate().skip(bucket).map(|(i, n)| n << i).sum();
    if n == 0 || pages == 0 {
        return None;
    }
    let cut = cut(run, kb).filter(|_| whole * 2 >= pages);
    if cut.is_some() {
        return cut;
    }
    if whole * 2 >= pages {
        let text = format!(
            " Read-ahead was in whole windows ({kb} KiB) for {full} of {n}: it was as far ahead as its setting lets it, and \
             the device gave no more meanwhile."
        );
        let remedy = match &file.read_ahead_path {
            Some(path) if kb < MOST_KB => format!(
                "If the device can do more at a time (striped, or far away), larger windows help: echo {} >{path}.",
                (kb * 8).min(MOST_KB)
            ),
            _ => String::new(),
        };
        return Some(how("whole-windows", text, &remedy));
    }
    // A window ends where its file does.
    if file.size.is_some_and(|size| size < 2 * kb * 1024) {
        let text = format!(
            " Its files are smaller than two windows of read-ahead ({kb} KiB each), which end where a file ends: a larger setting \
             would not help."
        );
        return Some(how("short-files", text, ""));
    }
    let text = format!(
        " Read-ahead was in windows smaller than its setting ({kb} KiB): {full} of {n} were whole. Reads that jump, files that \
         end, or pages that were cached cut them short."
    );
    Some(how("small-windows", text, ""))
}

/// Windows that began whole, where many met a page that was there by then: its own, if nothing proves that others had
/// brought it in (readahead-cut-short).
fn cut(run: &Run, kb: u64) -> Option<How> {
    let (all, cut) = run.get(Figure::Windows).zip(run.get(Figure::WindowsCut))?;
    if all < 8 || super::share(cut, all) < 0.3 {
        return None;
    }
    let text = format!(
        " Read-ahead began whole windows ({kb} KiB), but {cut} of {all} met pages that were in the cache by then, such as it had \
         brought in itself (faults, another of its threads, a part that it had read before): what went to the device was less, and \
         a larger setting would not help."
    );
    Some(how("cut-windows", text, ""))
}

pub(super) fn data(run: &Run, _: &[&Run]) -> Option<Finding> {
    let w = &run.waits;
    let ns = w.read_ns? + w.fault_ns? + w.exec_ns?;
    let (data_s, time) = worth_of_storage(ns, run)?;
    let device = run.usage.device_read_bytes;
    let rate = device.filter(|n| *n >= 1 << 20).map(|n| (n as f64 / run.wall_s.max(1e-9)) as u64);
    // What is divided by a time is not known to the tenth of a page.
    let whole = |n: u64| run.volume_of_bytes(if run.unit == Unit::Pages { n - n % page() } else { n });
    let came = rate.zip(device).map_or_else(String::new, |(rate, n)| {
        format!("; {} came from devices, {} a second", run.volume_of_bytes(n), whole(rate))
    });
    // Who emptied the cache to see just that needs no advice that is not about reading.
    let limited = super::reading::limited(run, &[]).or_else(|| super::reading::cut_short(run, &[])).is_some();
    let how = match how_it_came(run, ns) {
        // Not as far ahead as it could be, nor was it the device: that finding says what it was.
        How { id: Some("whole-windows" | "cut-windows"), .. } if limited => {
            How { id: None, text: String::new(), remedy: None }
        }
        how => how,
    };
    let text = format!("It waited for data: {time}{came}.{}", how.text);
    let evidence = json!({
        "data_s": data_s, "wall_s": run.wall_s, "device_read_bytes": device, "bytes_per_second": rate,
        "came": how.id, "one_thread": run.one_thread,
    });
    let finding = Finding::new("waited-for-data", text, evidence)?;
    Some(match how.remedy.filter(|_| !limited) {
        Some(remedy) => finding.remedy(remedy),
        None => finding,
    })
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
         written, for blocks that must be read to be changed, or for each write to be stable (O_SYNC). Stacks of where it \
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
