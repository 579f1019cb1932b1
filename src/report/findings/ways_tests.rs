//! What a rule must know besides the busiest files: the options in use, and all ways in.
#![allow(clippy::unwrap_used)]

use super::tests::cold;
use super::tests::rewarmed;
use super::tests::warm;
use super::*;
use crate::figures::Figure;
use crate::report::units;
use crate::report::units::of_pages;

fn remedy(run: Run, earlier: &[Run], id: &str) -> Option<String> {
    let runs: Vec<Run> = earlier.iter().cloned().chain([run]).collect();
    let found = find(&[], &runs);
    found.into_iter().find(|f| f.id == id).unwrap_or_else(|| panic!("no {id}")).remedy
}

#[test]
fn no_remedy_is_what_was_just_done() {
    let id = "cached-before";
    assert!(remedy(warm(), &[], id).unwrap().contains("--cold all"));
    let slab = Run { cold: Some("slab".into()), ..warm() };
    assert!(remedy(slab, &[], id).unwrap().contains("--cold all"), "that leaves the pages");
    for cold in ["pagecache", "all"] {
        let emptied = Run { cold: Some(cold.into()), ..warm() };
        assert_eq!(remedy(emptied.clone(), &[], id), None);
        // The second of a series, too: what stayed for the first stays for it.
        let second = Run { number: 3, ..warm() };
        assert_eq!(remedy(second.clone(), std::slice::from_ref(&emptied), id), None);
        let text = &find(&[], &[emptied])[0].text;
        assert!(text.contains("stayed when the page cache was emptied"), "{text}");
    }
    // Nobody can begin anew what runs already.
    assert_eq!(remedy(Run { exit_status: None, ..warm() }, &[], id), None);
    let id = "warmed-by-earlier-run";
    let first = Run { number: 1, ..cold() };
    let prepared = |line: Option<&str>| Run { prepare: line.map(String::from), ..rewarmed(1) };
    let remedy = |line| remedy(prepared(line), std::slice::from_ref(&first), id);
    assert!(remedy(None).unwrap().contains("give --cold-each"));
    assert!(remedy(Some("make clean")).unwrap().contains("let the line of --prepare"));
    assert_eq!(remedy(Some("echo 3 >/proc/sys/vm/drop_caches")), None);
}

#[test]
fn a_part_is_told_as_a_part() {
    let mut run = rewarmed(1);
    run.origin.runs = vec![(1, 6000)];
    let found = find(&[], &[cold(), run.clone()]);
    let text = &found.iter().find(|f| f.id == "warmed-by-earlier-run").unwrap().text;
    let (part, all) = (of_pages(6000), of_pages(10_240));
    assert!(text.ends_with(&format!("run 1 had brought {part} of these {all} in.")), "{text}");
    // The nearest in which it is neither this nor that.
    run.origin.runs = vec![(1, 5000)];
    run.origin.before = 5000;
    assert!(find(&[], &[cold(), run]).iter().all(|f| !f.id.starts_with("warmed") && f.id != "cached-before"));
}

#[test]
fn of_what_is_read_past_the_cache_no_share_is_told() {
    let mut run = warm();
    run.figures.set(Figure::DirectReadBytes, Some(5120 * 4096));
    run.asked_pages += 5120;
    let text = |run: &Run| {
        let found = find(&[], std::slice::from_ref(run));
        found.into_iter().find(|f| f.id == "cached-before").map(|f| f.text)
    };
    let told = text(&run).unwrap();
    assert!(
        told.starts_with("100 % of the pages it read, and not past the cache, were in the cache"),
        "{told}"
    );
    // More than half of all that it used may not have been there.
    run.figures.set(Figure::DirectReadBytes, Some(10_241 * 4096));
    run.asked_pages = 10_240 + 10_241;
    assert_eq!(text(&run), None);
}

#[test]
fn what_is_said_beside_has_one_comma() {
    let text = |faults: u64, unseen: u64, direct: u64| {
        let mut run = warm();
        run.figures.set(Figure::FaultHits, Some(faults));
        run.figures.set(Figure::DirectReadBytes, Some(direct * units::page()));
        run.unseen_pages = unseen;
        run.asked_pages += unseen + direct;
        let told = find(&[], &[run]).into_iter().find(|f| f.id == "cached-before").unwrap().text;
        told.split_once(" the pages it ").unwrap().1.split_once(" were in the cache").unwrap().0.to_owned()
    };
    let but = "without those mapped around these faults";
    for (faults, unseen, direct, says) in [
        (0, 1, 0, "was seen to read".to_owned()),
        (9, 0, 0, "read or had page faults on".to_owned()),
        (9, 1, 0, "was seen to read, or had page faults on,".to_owned()),
        (6000, 1, 0, format!("was seen to read, or had page faults on, {but},")),
        (6000, 0, 5120, format!("read or had page faults on, {but}, and not past the cache,")),
        (9, 1, 5120, "was seen to read, or had page faults on, and not past the cache,".to_owned()),
    ] {
        assert_eq!(text(faults, unseen, direct), says);
    }
}

#[test]
fn a_mapped_scan_is_not_judged_by_what_it_read_when_it_started() {
    // 816 reads, most of them fed by read-ahead, and 65 537 pages brought in for a mapping.
    let mut run = cold();
    for (figure, n) in [
        (Figure::Accesses, 816),
        (Figure::ReadAheadHits, 500),
        (Figure::Misses, 16),
        (Figure::Hits, 300),
        (Figure::ReadAheadPages, 66_000),
        (Figure::FaultMisses, 37),
        (Figure::FaultHits, 3000),
        (Figure::MetaAccesses, 100),
        (Figure::MetaHits, 100),
    ] {
        run.figures.set(figure, Some(n));
    }
    let ids: Vec<_> = find(&[], std::slice::from_ref(&run)).iter().map(|f| f.id).collect();
    assert!(!ids.contains(&"readahead-fed") && !ids.contains(&"faults-blind-to-reads"), "{ids:?}");
    // Of what it used, nothing was in use before, and its metadata was.
    assert!(ids.contains(&"only-metadata-warm"), "{ids:?}");
    // The same reads without the mapping: read-ahead fed them.
    run.figures.set(Figure::ReadAheadPages, Some(500));
    run.figures.set(Figure::FaultMisses, Some(0));
    assert!(find(&[], &[run]).iter().any(|f| f.id == "readahead-fed"));
}

#[test]
fn names_that_were_to_be_cold() {
    let mut run = warm();
    run.lookups = crate::report::data::Lookups { dcache_misses: Some(20_000), work_ns: Some(200_000_000) };
    let text = |run: &Run| {
        find(&[], std::slice::from_ref(run)).into_iter().find(|f| f.id == "dentries-cold").unwrap().text
    };
    assert!(!text(&run).contains("--cold"));
    run.cold = Some("slab".into());
    assert!(text(&run).contains("(--cold had emptied it)"));
    run.lookups.dcache_misses = Some(999);
    assert!(find(&[], &[run]).iter().all(|f| f.id != "dentries-cold"));
}

/// A scan of a mapping of 96 MiB (24 575 pages) that took 4.9 s, with so many major faults and windows of read-ahead of 32 pages.
fn scanned(faults: u64, windows: Option<u64>) -> Finding {
    let mut run = cold();
    for figure in [Figure::Accesses, Figure::Hits, Figure::Misses, Figure::ReadAheadHits] {
        run.figures.set(figure, Some(0));
    }
    run.figures.set(Figure::ReadAheadPages, Some(24_575));
    run.figures.set(Figure::FaultMisses, Some(faults));
    run.figures.set(Figure::FaultHits, Some(1575));
    (run.wall_s, run.one_thread, run.files_seen) = (5.9, Some(true), 2);
    run.waits.fault_ns = Some(4_890_000_000);
    run.window_pages = windows.map(|n| {
        let mut all = vec![0; 16];
        all[5] = n;
        all
    });
    let file = &mut run.files[0];
    (file.size, file.readahead_pages, file.read_ahead_kb) = (Some(24_576 * units::page()), 24_575, Some(128));
    run.files.truncate(1);
    find(&[], &[run]).into_iter().find(|f| f.id == "waited-for-data").unwrap()
}

#[test]
fn one_fault_does_not_bring_in_all_that_a_scan_of_a_mapping_reads() {
    // On 6.12 all but the first find their page being read, and are minor ones.
    let ahead = scanned(1, Some(768));
    assert_eq!(ahead.evidence["came"], "whole-windows");
    assert!(ahead.text.contains("whole windows (128 KiB) for 768 of 768"), "{}", ahead.text);
    let unseen = scanned(1, None);
    assert!(
        unseen.text.ends_with("fetched ahead of the page faults, which waited for what was just being read.")
    );
    assert!(unseen.remedy.is_none());
    // Each fault waits for what is read around it: nothing was ahead of it.
    for windows in [Some(768), None] {
        let around = scanned(768, windows);
        let text = format!("768 page faults waited for what was read around each of them, {}.", of_pages(32));
        assert!(around.text.ends_with(&text), "{}", around.text);
        assert_eq!(around.evidence["came"], "windows");
    }
}

/// A file read from end to end in whole windows of read-ahead, with half of the second spent in waiting.
fn in_whole_windows() -> Run {
    let mut run = cold();
    run.waits.read_ns = Some(500_000_000);
    run.window_pages.as_mut().unwrap()[5] = 320;
    run
}

fn waited(run: &Run) -> Finding {
    find(&[], std::slice::from_ref(run)).into_iter().find(|f| f.id == "waited-for-data").unwrap()
}

#[test]
fn the_device_is_not_to_blame_where_read_ahead_was() {
    let whole = waited(&in_whole_windows());
    assert_eq!(whole.evidence["came"], "whole-windows");
    assert!(whole.remedy.is_some() && whole.text.contains("the device gave no more"), "{}", whole.text);
    // Its windows were cut to 13 pages.
    let mut cut = in_whole_windows();
    let pattern = Some(crate::report::data::Pattern { absent: 13, present: 1, times: 700 });
    cut.files[0].before = Some(crate::report::data::Residency { cached: 731, pages: 10_240, pattern });
    // The setting of a server's file system is small.
    let mut limited = in_whole_windows();
    limited.files[0].fs = Some("nfs4".into());
    for (run, id) in [(cut, "readahead-cut-short"), (limited, "readahead-limited")] {
        assert!(find(&[], std::slice::from_ref(&run)).iter().any(|f| f.id == id), "{id}");
        let told = waited(&run);
        assert!(told.remedy.is_none() && !told.text.contains("whole windows"), "{id}: {}", told.text);
    }
}

#[test]
fn the_device_is_not_spoken_of_where_nothing_came_from_one() {
    // A hole of 40 MiB: read-ahead is in whole windows, and makes pages of zeros.
    let of = |pages: u64, fs: &str, faults: bool| {
        let mut run = in_whole_windows();
        (run.usage.device_read_bytes, run.files[0].fs) = (Some(pages * units::page()), Some(fs.into()));
        if faults {
            for figure in [Figure::Accesses, Figure::Misses, Figure::ReadAheadHits] {
                run.figures.set(figure, Some(0));
            }
            run.figures.set(Figure::FaultMisses, Some(320));
        }
        waited(&run)
    };
    for faults in [false, true] {
        let silent = of(0, "ext4", faults);
        assert!(silent.evidence["came"].is_null() && silent.remedy.is_none(), "{silent:?}");
        assert!(silent.text.ends_with("of the time)."), "{}", silent.text);
        // As much as that may be compressed to, and what a server has sent.
        assert!(!of(160, "btrfs", faults).evidence["came"].is_null());
        assert!(!of(0, "virtiofs", faults).evidence["came"].is_null());
    }
    assert!(of(159, "btrfs", false).evidence["came"].is_null());
}

#[test]
fn of_reads_here_and_there_calls_are_what_waited() {
    let random = |calls| {
        let mut run = cold();
        run.waits.read_ns = Some(500_000_000);
        for (figure, n) in [(Figure::Misses, 8000), (Figure::ReadAheadHits, 0), (Figure::ReadAheadPages, 0)] {
            run.figures.set(figure, Some(n));
        }
        run.figures.set(Figure::ReadMissedCalls, calls);
        run.files[0].size = Some(1 << 30);
        waited(&run).text
    };
    let pages = " 8000 pages were read here and there";
    let found = "0 found by read-ahead, which needs neighbours";
    for calls in [Some(8000), None] {
        let text = random(calls);
        assert!(text.contains(&format!("{pages}, {found}: each was waited for by itself")), "{text}");
    }
    let text = random(Some(4000));
    let says = format!("{pages}, in 4000 calls, {found}: each call waited for its own");
    assert!(text.contains(&says), "{text}");
}

#[test]
fn pages_read_so_that_a_part_of_them_can_be_changed() {
    // 500 writes of 100 bytes to as many pages of a cold file.
    let mut run = super::tests::idle();
    for (figure, n) in [(Figure::WriteMisses, 500), (Figure::WriteAccesses, 500), (Figure::Dirtied, 500)] {
        run.figures.set(figure, Some(n));
    }
    run.usage.device_read_bytes = Some(500 * 4096);
    run.waits.write_ns = Some(13_000_000);
    let told = |run: &Run| find(&[], std::slice::from_ref(run)).into_iter().find(|f| f.id == "read-to-write");
    let text = told(&run).unwrap().text;
    assert!(text.starts_with(&format!("{} were read so that a part", of_pages(500))), "{text}");
    let silent: [fn(&mut Run); 8] = [
        // New pages beside what was read.
        |run| run.figures.set(Figure::ReadAheadPages, Some(400)),
        |run| run.figures.set(Figure::Misses, Some(400)),
        |run| run.figures.set(Figure::DirectReadBytes, Some(400 * 4096)),
        |run| run.figures.set(Figure::MetaMisses, Some(400)),
        |run| run.usage.major_faults = Some(400),
        // Others than those that were written.
        |run| run.figures.set(Figure::WriteMisses, Some(499)),
        |run| run.figures.set(Figure::WriteMisses, None),
        // Many new files, whose directories are read by a file system that nobody sees reading.
        |run| run.waits.open_ns = Some(14_000_000),
    ];
    for (i, change) in silent.into_iter().enumerate() {
        let mut run = run.clone();
        change(&mut run);
        assert!(told(&run).is_none(), "{i}");
    }
    // What it waited for in its writes is no longer only one of several things.
    run.waits.write_ns = Some(400_000_000);
    let all = find(&[], &[run]);
    let waited = all.iter().find(|f| f.id == "waited-for-writes").unwrap();
    assert!(waited.text.contains("Pages were read to be changed"), "{}", waited.text);
}

#[test]
fn where_windows_are_not_seen_the_setting_is_named_and_how_to_try_another() {
    let mut run = cold();
    (run.waits.read_ns, run.window_pages) = (Some(900_000_000), None);
    (run.files[0].read_ahead_kb, run.files[0].read_ahead_path) = (Some(512), Some("/sys/x".into()));
    let told = |run: &Run| {
        let found = find(&[], std::slice::from_ref(run));
        found.into_iter().find(|f| f.id == "waited-for-data").unwrap()
    };
    let one = told(&run);
    assert!(
        one.text.ends_with(" It was read from end to end; its read_ahead_kb is 512 (/sys/x)."),
        "{}",
        one.text
    );
    assert!(one.remedy.unwrap().contains("cachestat --try read_ahead_kb=4096 -- "));
    let silent = |change: fn(&mut Run), why: &str| {
        let mut run = run.clone();
        change(&mut run);
        assert!(!told(&run).text.contains("its read_ahead_kb"), "{why}");
    };
    silent(|run| run.files[0].size = Some(400 << 20), "a tenth of it was read");
    silent(|run| run.files[0].hits = 10_240, "it was read twice");
    silent(|run| run.files[0].read_ahead_kb = Some(4096), "it is large");
    silent(|run| run.files[0].read_ahead_kb = None, "it is not known");
}
