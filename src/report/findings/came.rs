//! How the data came that a run waited for, and whether read-ahead could have helped.
use super::common::MANY;
use super::common::reads;
use super::common::ways;
use crate::figures::Figure;
use crate::report::data::FileRow;
use crate::report::data::Run;
use crate::report::faults;
use crate::report::units::page;
use crate::report::units::share;

/// How the data came, and what that leaves to be done about it.
pub(super) struct How {
    pub(super) id: Option<&'static str>,
    pub(super) text: String,
    pub(super) remedy: Option<String>,
}

fn how(id: &'static str, text: String, remedy: &str) -> How {
    How { id: Some(id), text, remedy: Some(remedy.into()).filter(|r: &String| !r.is_empty()) }
}

/// How the data of a run came, as far as it matters for read-ahead.
struct Came<'a> {
    run: &'a Run,
    /// Pages found by read-ahead, and pages that were missed, by reads.
    ahead: u64,
    misses: u64,
    /// Pages by mappings.
    mapped: u64,
    /// Files that it came of.
    files: u64,
    /// One thread did it all.
    alone: bool,
    /// What that means for each request, to be said behind a sentence.
    depth: &'static str,
}

const NOT_KNOWN: How = How { id: None, text: String::new(), remedy: None };

/// Whether read-ahead could have helped.
pub(super) fn how_it_came(run: &Run, data_ns: u64) -> How {
    let Some(((_, ahead, misses), ways)) = reads(run).zip(ways(run)) else { return NOT_KNOWN };
    let came = ahead + misses + ways.mapped;
    let alone = run.one_thread == Some(true);
    let depth = if alone { ", one request at a time" } else { "" };
    if run.waits.exec_ns.is_some_and(|ns| ns * 2 > data_ns) {
        return how(
            "programs",
            " It was programs that were read when they were started (execve).".into(),
            "",
        );
    }
    if ways.direct > came {
        if !waited_past(run, ways.direct, misses, data_ns) {
            return NOT_KNOWN;
        }
        let text = format!(
            " Most of it went past the cache{depth}: no read-ahead, and nothing is left for the next run."
        );
        return how(
            "direct",
            text,
            if alone { "More requests at a time: threads, or io_uring." } else { "" },
        );
    }
    if came < MANY {
        return NOT_KNOWN;
    }
    // What was there already came from none.
    let files = if run.files_brought > 0 { run.files_brought } else { run.files_seen };
    let came = Came { run, ahead, misses, mapped: ways.mapped, files, alone, depth };
    let causes = [Came::of_small_files, Came::by_mappings, Came::in_own_calls];
    causes.iter().find_map(|cause| cause(&came)).or_else(|| windows(run)).unwrap_or(NOT_KNOWN)
}

/// Whether it was what went past the cache that was waited for, and not what reads missed beside it: that much came so says
/// little of how long it took.
fn waited_past(run: &Run, direct: u64, misses: u64, data_ns: u64) -> bool {
    // A disk moves a MiB in the time that it takes to get to another place.
    const PLACE: u64 = MANY;
    let missed = run.get(Figure::ReadMissedCalls).unwrap_or(misses);
    let faults = faults::for_data(run).unwrap_or(0);
    // What is submitted is waited for elsewhere.
    let submitted = run.waits.completion_ns.unwrap_or(0) * 10 > data_ns;
    match run.get(Figure::StallNs) {
        // Of calls that missed, all of the time is known, and more than was waited.
        Some(ns) => (ns + faults) * 2 < data_ns,
        None if submitted => missed < 16 && faults * 2 < data_ns,
        None => missed.saturating_mul(PLACE) < direct && faults * 2 < data_ns,
    }
}

/// Pages that came of a file.
fn came_of(f: &FileRow) -> u64 {
    f.misses + f.readahead_pages.max(f.readahead_hits) + f.fault_misses
}

/// Pages of a file that is no small one.
const SMALL: u64 = 32;

impl Came<'_> {
    fn of_small_files(&self) -> Option<How> {
        let Self { run, files, alone, .. } = *self;
        let came = self.ahead + self.misses + self.mapped;
        // The mean says nothing where a few files are most of it.
        let large: u64 = run.files.iter().map(came_of).filter(|n| *n >= SMALL).sum();
        if files < 64 || came / files >= SMALL || large * 2 > came {
            return None;
        }
        let text = format!(
            " It came from {} files, {} of each: read-ahead ends where a file ends, and the next one is not known before \
             it is opened.",
            files,
            run.volume_of_bytes((came * page() / files).max(1)),
        );
        let remedy = if alone { "Several at a time wait less: xargs -P, or threads." } else { "" };
        Some(how("small-files", text, remedy))
    }

    fn by_mappings(&self) -> Option<How> {
        let Self { run, ahead, misses, depth, .. } = *self;
        // What was waited for longer, where more pages came by the other way.
        let by_reads = run.waits.read_ns.zip(faults::for_data(run)).is_some_and(|(read, fault)| read > fault);
        if self.mapped <= ahead + misses || by_reads && ahead + misses >= MANY {
            return None;
        }
        let faults = run.get(Figure::FaultMisses).unwrap_or(0).max(1);
        if self.mapped / faults >= 4 {
            return Some(mapped(run, self.mapped, faults));
        }
        let text = format!(
            " {faults} page faults each waited for a page or a few: read-ahead had nothing to go by{depth}."
        );
        let remedy = "madvise(MADV_WILLNEED) for what will be touched, or MADV_POPULATE_READ.";
        Some(how("random", text, remedy))
    }

    /// Most of what was read was waited for by the calls that asked for it.
    fn in_own_calls(&self) -> Option<How> {
        let Self { run, ahead, misses, files, alone, depth, .. } = *self;
        if ahead >= misses {
            return None;
        }
        // They were not what took the time.
        if run.waits.read_ns.zip(faults::for_data(run)).is_some_and(|(read, fault)| read < fault) {
            return Some(NOT_KNOWN);
        }
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
            let remedy = format!("Forwards, and in order; else {}.", self.at_once());
            return Some(how("out-of-order", text, &remedy));
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
            return Some(how("large-calls", text, remedy));
        }
        // Large calls here and there are neither, and of which files is not known.
        Some(if large == Some(true) { NOT_KNOWN } else { self.here_and_there() })
    }

    fn here_and_there(&self) -> How {
        let Self { run, ahead, misses, depth, .. } = *self;
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
        let mut remedy = format!("{}; a larger window would not help.", self.at_once());
        if let Some(first) = remedy.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        how("random", text, &remedy)
    }

    /// What helps who needs pages of which nobody can know before. Threads that asked at the same time have done the one half.
    fn at_once(&self) -> &'static str {
        match self.alone {
            true => {
                "more requests at a time (threads, io_uring), or posix_fadvise(POSIX_FADV_WILLNEED) for what is known to be needed"
            }
            false => {
                "requests ahead, by posix_fadvise(POSIX_FADV_WILLNEED), for what is known to be needed; it had several threads, and \
                 more of them help only where these did not ask at the same time already"
            }
        }
    }
}

/// Of mappings that were not touched at random. A fault that finds its page being read waits for it and is a minor one: a scan
/// in order may have a single major fault, which did not bring all of it in.
fn mapped(run: &Run, pages: u64, faults: u64) -> How {
    if faults::from_no_device(run, pages) {
        return NOT_KNOWN;
    }
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
    if n == 0 || pages == 0 || faults::from_no_device(run, pages) {
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
    if all < 8 || share(cut, all) < 0.3 {
        return None;
    }
    let text = format!(
        " Read-ahead began whole windows ({kb} KiB), but {cut} of {all} met pages that were in the cache by then, such as it had \
         brought in itself (faults, another of its threads, a part that it had read before): what went to the device was less, and \
         a larger setting would not help."
    );
    Some(how("cut-windows", text, ""))
}
