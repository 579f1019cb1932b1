//! The report as text: looked at, then kept.
#![allow(clippy::unwrap_used)]

mod groups;

use super::*;
use crate::report::data::Lookups;
use crate::report::data::Pattern;
use crate::report::data::Usage;
use crate::report::data::Waits;
use crate::text::foreign::Foreign;

fn waits(read: u64, lookup: u64) -> Waits {
    Waits {
        read_ns: Some(read),
        fault_ns: Some(0),
        exec_ns: Some(1_000_000),
        open_ns: Some(2_000_000),
        lookup_ns: Some(lookup),
        directory_ns: Some(3_000_000),
        write_ns: Some(0),
        sync_ns: Some(0),
        cpu_ns: Some(4_000_000),
        other_ns: Some(0),
        throttled_ns: Some(0),
    }
}

/// `sha256sum` of half a GiB, cold.
fn cold() -> Run {
    let mut run = Run {
        number: 1,
        time: "2026-11-21T09:00:00.000Z".into(),
        cold: Some("all".into()),
        exit_status: Some(0),
        wall_s: 9.5,
        usage: Usage {
            user_s: Some(2.0),
            system_s: Some(0.5),
            device_read_bytes: Some(512 << 20),
            ..Usage::zero()
        },
        waits: waits(6_500_000_000, 120_000_000),
        lookups: Lookups { dcache_misses: Some(17), work_ns: Some(150_000) },
        asked_pages: 131_072,
        ..Run::default()
    };
    for (figure, n) in [
        (Figure::Accesses, 131_072),
        (Figure::Hits, 0),
        (Figure::ReadAheadHits, 130_048),
        (Figure::Misses, 1024),
        (Figure::ReadBytes, 512 << 20),
        (Figure::StallNs, 1_500_000_000),
        (Figure::ReadAheadPages, 130_048),
        (Figure::Fills, 131_072),
        (Figure::Windows, 4096),
        (Figure::WindowsCut, 2),
        (Figure::FaultMisses, 3),
        (Figure::FaultHits, 40),
        (Figure::FaultAround, 300),
        (Figure::WriteAccesses, 0),
        (Figure::WriteHits, 0),
        (Figure::WriteMisses, 0),
        (Figure::Dirtied, 0),
        (Figure::DirectReadBytes, 0),
        (Figure::DirectWriteBytes, 0),
        (Figure::DirectFellBack, 0),
        (Figure::MetaAccesses, 20),
        (Figure::MetaHits, 12),
        (Figure::MetaAheadHits, 4),
        (Figure::MetaMisses, 4),
        (Figure::Refaulted, 0),
    ] {
        run.figures.set(figure, Some(n));
    }
    let mut latency = Latency { hit: vec![0; 32], miss: vec![0; 32] };
    (latency.hit[4], latency.hit[5], latency.hit[9]) = (3_000, 12_000, 30);
    (latency.miss[11], latency.miss[12]) = (900, 124);
    run.latency = Some(latency);
    let mut windows = vec![0; 16];
    (windows[4], windows[5]) = (8, 4088);
    run.window_pages = Some(windows);
    let pattern = Some(Pattern { absent: 13, present: 1, times: 90 });
    run.files = vec![
        FileRow {
            path: Some("/data/half-a-gibibyte".into()),
            fs: Some("nfs4".into()),
            size: Some(512 << 20),
            readahead_hits: 130_048,
            misses: 1024,
            readahead_pages: 130_048,
            read_bytes: 512 << 20,
            before: Some(Residency { cached: 0, pages: 131_072, pattern }),
            after: Some(Residency { cached: 131_072, pages: 131_072, pattern: None }),
            read_ahead_kb: Some(128),
            read_ahead_path: Some("/sys/class/bdi/0:44/read_ahead_kb".into()),
            ..FileRow::default()
        },
        FileRow {
            path: Some(format!("/usr/{}/sha256sum", "very-deep/".repeat(9)).into()),
            hits: 3,
            write_hits: Some(40),
            write_misses: Some(2),
            dirtied: 41,
            direct_read_bytes: Some(3 << 20),
            direct_write_bytes: Some(0),
            ..FileRow::default()
        },
    ];
    run.files_seen = 11;
    run
}

fn warm() -> Run {
    let mut run =
        Run { number: 2, cold: None, wall_s: 2.6, waits: waits(0, 0), warm_pages: 131_072, ..cold() };
    run.origin.runs = vec![(1, 131_072)];
    run.usage.device_read_bytes = Some(0);
    run.lookups = Lookups { dcache_misses: Some(0), work_ns: Some(0) };
    for (figure, n) in [
        (Figure::Hits, 131_072),
        (Figure::ReadAheadHits, 0),
        (Figure::Misses, 0),
        (Figure::ReadAheadPages, 0),
    ] {
        run.figures.set(figure, Some(n));
    }
    let file = &mut run.files[0];
    (file.hits, file.misses, file.readahead_hits, file.readahead_pages) = (131_072, 0, 0, 0);
    file.before = file.after.clone();
    run.left_behind = vec![4711];
    run.lost.insert("nesting".into(), 2);
    run
}

fn shown(runs: Vec<Run>, unknown: Vec<String>) -> String {
    let mut report = Report {
        command: ["sha256sum", "half-a-gibibyte"].map(Foreign::from).into(),
        about: vec!["before run 1, the page cache and the dentry and inode caches of the whole machine were emptied (--cold)".into()],
        runs,
        unknown,
        ..Report::default()
    };
    report.conclude();
    let text = show(&report);
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
    text
}

#[test]
fn cold_and_warm() {
    insta::assert_snapshot!(shown(vec![cold(), warm()], Vec::new()));
}

#[test]
fn a_kernel_that_tells_little() {
    let run = Run { number: 1, wall_s: 0.5, exit_status: Some(3), ..Run::default() };
    insta::assert_snapshot!(shown(vec![run], vec!["not known: all of it (for want of hooks).".into()]));
}
