//! The report as text: looked at, then kept.
#![allow(clippy::unwrap_used)]

mod groups;
mod trial;
mod unit;

use super::page::SCREEN;
use super::*;
use crate::figures::Figure;
use crate::report::data::FileRow;
use crate::report::data::Latency;
use crate::report::data::Lookups;
use crate::report::data::Pattern;
use crate::report::data::Residency;
use crate::report::data::Usage;
use crate::report::data::Waits;
use crate::text::foreign::Foreign;
use crate::text::numbers::Unit;

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
        ..Waits::default()
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

fn report(runs: Vec<Run>, unknown: Vec<String>) -> Report {
    let mut report = Report {
        command: ["sha256sum", "half-a-gibibyte"].map(Foreign::from).into(),
        about: vec!["before run 1, the page cache and the dentry and inode caches of the whole machine were emptied (--cold)".into()],
        runs,
        unknown,
        ..Report::default()
    };
    report.conclude();
    report
}

fn shown(report: &Report, style: Style) -> String {
    let text = show(report, style);
    for line in text.lines() {
        assert!(line.chars().count() <= style.width, "{line}");
    }
    text
}

fn wide(width: usize) -> Style {
    Style { width, ..Style::default() }
}

const VERBOSE: Style = Style { width: 80, unit: Unit::Bytes, verbose: true, whole: false, lines: SCREEN };

#[test]
fn cold_and_warm() {
    let report = report(vec![cold(), warm()], Vec::new());
    let text = shown(&report, Style::default());
    assert!(text.lines().count() <= SCREEN, "{text}");
    insta::assert_snapshot!(text);
    insta::assert_snapshot!("cold_and_warm_verbose", shown(&report, VERBOSE));
    // Whatever the width, all of it stays on the screen; on a wide one, with remedies.
    for width in [60, 120, 200] {
        let text = shown(&report, wide(width));
        assert!(text.lines().count() <= SCREEN, "{text}");
        assert!(width <= 120 || text.contains("remedy: "), "{text}");
        // That some of it was work is told by the parts of the time.
        for finding in report.findings.iter().filter(|f| f.id != "processor-time") {
            assert!(text.contains(finding.id), "{}: {text}", finding.id);
        }
    }
}

#[test]
fn a_kernel_that_tells_little() {
    let run = Run { number: 1, wall_s: 0.5, exit_status: Some(3), ..Run::default() };
    let report = report(vec![run.clone()], vec!["not known: all of it (for want of hooks).".into()]);
    let text = shown(&report, Style::default());
    assert!(!text.contains(" - ") && !text.contains("for want of hooks"), "{text}");
    assert_eq!(text.matches("not known here: ").count(), 1, "{text}");
    insta::assert_snapshot!(text);
    insta::assert_snapshot!("a_kernel_that_tells_little_verbose", shown(&report, VERBOSE));
    // Of two runs, what is known of one is shown of both: the other is `-`.
    let told =
        Run { number: 2, lookups: Lookups { work_ns: Some(100_000_000), ..run.lookups }, ..run.clone() };
    let text = shown(&super::tests::report(vec![run, told], Vec::new()), Style::default());
    let row = text.lines().find(|l| l.contains("look-ups")).unwrap();
    assert_eq!(row.split_whitespace().skip(2).collect::<Vec<_>>(), ["-", "0.100", "s", "-"], "{text}");
    // What is unexplained has the other's as well: it changed by what its columns say.
    let row = text.lines().find(|l| l.contains("unexplained")).unwrap();
    let cells = ["0.500", "s", "0.400", "s", "-0.100", "s"];
    assert_eq!(row.split_whitespace().skip(1).collect::<Vec<_>>(), cells, "{text}");
}

/// `du` of a tree that is not cached: many parts of some size, and little room.
#[test]
fn what_the_verdict_names_is_no_rest() {
    let run = Run {
        wall_s: 0.2,
        asked_pages: 20,
        waits: Waits {
            read_ns: Some(20_000_000),
            open_ns: Some(25_000_000),
            write_ns: Some(15_000_000),
            cpu_ns: Some(3_000_000),
            ..waits(0, 0)
        },
        lookups: Lookups { work_ns: Some(5_000_000), dcache_misses: Some(500) },
        usage: Usage { user_s: Some(0.03), system_s: Some(0.08), ..Usage::zero() },
        one_thread: Some(true),
        ..warm()
    };
    let report = Report { findings: Vec::new(), ..report(vec![run], Vec::new()) };
    let text = shown(&report, Style::default());
    let (verdict, table) = text.split_once("where the time went").unwrap();
    for (said, row) in [
        ("waiting for data", "  waiting for data"),
        ("waiting for metadata", "  waiting for metadata"),
        ("waiting to write", "  waiting to write"),
        ("processor time", "  other CPU"),
    ] {
        assert!(verdict.replace('\n', " ").contains(said), "{said}: {text}");
        assert!(table.lines().any(|line| line.starts_with(row)), "{row}: {text}");
    }
    assert!(table.lines().any(|line| line.starts_with("  the rest ")), "{text}");
}

/// `true`, `ls`: 15 lines, also where they have findings and many parts of the time, and are run through sudo.
#[test]
fn a_trivial_command() {
    let base = Run { wall_s: 0.03, asked_pages: 20, ..warm() };
    let run = Run {
        number: 1,
        exit_status: Some(137),
        signal: Some(9),
        waits: Waits {
            read_ns: Some(300_000),
            open_ns: Some(200_000),
            write_ns: Some(100_000),
            cpu_ns: Some(150_000),
            ..waits(0, 0)
        },
        lookups: Lookups { work_ns: Some(400_000), dcache_misses: Some(4) },
        usage: Usage { user_s: Some(0.001), system_s: Some(0.0005), ..Usage::zero() },
        left_behind: Vec::new(),
        lost: std::collections::BTreeMap::new(),
        ..base
    };
    let mut report = report(vec![run], Vec::new());
    report.about = vec!["run as eve, who called sudo (--as-root runs it as root)".into()];
    let quiet = Report { findings: Vec::new(), ..report.clone() };
    let mut parallel = quiet.clone();
    parallel.runs[0].wall_s = 0.004;
    parallel.conclude();
    parallel.findings.clear();
    assert!(shown(&parallel, Style::default()).contains("times the wall time, in parallel"));
    for report in [&report, &quiet, &parallel] {
        let text = shown(report, Style::default());
        // And a row more for each part beyond two that the verdict names.
        let short = SHORT + times::least(&report.runs[0]).saturating_sub(ROWS);
        assert!(text.lines().count() <= short, "{} lines:\n{text}", text.lines().count());
        assert!(text.contains("exit status 137") && text.contains("who called sudo"), "{text}");
        let found = report.findings.iter().all(|f| text.contains(f.id));
        assert!(found && text.contains("findings"), "{text}");
    }
    insta::assert_snapshot!(shown(&quiet, Style::default()));
}

/// The number that a cell begins with.
fn number(cell: &str) -> f64 {
    cell.trim_start_matches(['<', '>']).split_whitespace().next().unwrap().parse().unwrap()
}

/// Cells of a row: two blanks stand between them.
fn cells(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect()
}

/// Each column adds up as it is printed, and so does each row: then and now, and what changed.
#[test]
fn what_is_printed_adds_up() {
    let (mut a, mut b) = (cold(), warm());
    // Thirds, of which each is cut.
    (a.wall_s, b.wall_s) = (9.500_3, 2.611_7);
    a.waits.read_ns = Some(3_333_333_333);
    a.waits.cpu_ns = Some(1_666_666_666);
    b.waits.sync_ns = Some(33_333_333);
    let text = shown(&report(vec![a, b], Vec::new()), VERBOSE);
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|l| !l.starts_with("where the time went"))
        .skip(1)
        .take_while(|l| l.starts_with("  "))
        .map(cells)
        .collect();
    assert!(rows.len() == 9 && rows[0][0] == "wall", "{rows:?}");
    let step = |cell: &str| (number(cell) * 1000.0).round();
    for column in 1..=3 {
        let sum: f64 = rows[1..].iter().map(|row| step(row[column])).sum();
        assert!((sum - step(rows[0][column])).abs() < 0.5, "column {column}: {text}");
    }
    for row in &rows {
        assert!((step(row[2]) - step(row[1]) - step(row[3])).abs() < 0.5, "{row:?}");
    }
    let shares: f64 =
        rows[1..].iter().map(|row| row[4]).filter(|s| !s.contains(['<', '>'])).map(number).sum();
    assert!((shares - 100.0).abs() < 0.1, "{text}");
    // Pages of files: in one unit, adding up.
    let reads = text.lines().skip_while(|l| !l.starts_with("reads, whole pages"));
    let amounts: Vec<f64> = reads.take(4).map(|l| number(cells(l)[1])).collect();
    assert!((amounts[0] - amounts[1] - amounts[2] - amounts[3]).abs() < 0.05, "{text}");
}

/// Of the second run of `du`, the few names that it had to ask for did not end where that is seen.
#[test]
fn work_on_names_that_is_known_of_one_run_only() {
    let (mut a, mut b) = (cold(), warm());
    (a.wall_s, b.wall_s) = (9.5, 2.5);
    a.lookups = Lookups { dcache_misses: Some(11_000), work_ns: Some(100_000_000) };
    let row = |a: &Run, b: &Run, name: &str| {
        let text = shown(&report(vec![a.clone(), b.clone()], Vec::new()), VERBOSE);
        let times = text.lines().skip_while(|l| !l.starts_with("where the time went"));
        let times: Vec<_> = times.skip(1).take_while(|l| l.starts_with("  ")).map(cells).collect();
        times
            .into_iter()
            .find(|row| row[0] == name)
            .map(|row| [1, 2, 3].map(|i| (number(row[i]) * 1e3).round()))
    };
    for names in [Some(2), Some(9000), None] {
        b.lookups = Lookups { dcache_misses: names, work_ns: None };
        let rest = row(&a, &b, "unexplained").unwrap();
        assert!((rest[1] - rest[0] - rest[2]).abs() < 1.5, "{names:?}: {rest:?}");
        let lookups = row(&a, &b, "dentry/inode look-ups");
        assert_eq!(lookups, (names == Some(2)).then_some([100.0, 0.0, -100.0]), "{names:?}");
    }
}

#[test]
fn hits_are_not_more_than_what_was_asked_for_without_a_word() {
    let mut run = warm();
    run.figures.set(Figure::ReadBytes, Some(400 << 20));
    let text = shown(&report(vec![run], Vec::new()), VERBOSE);
    assert!(text.contains("(a page counts as a whole: the calls asked for 400 MiB of them)"), "{text}");
    assert!(!shown(&report(vec![warm()], Vec::new()), VERBOSE).contains("as a whole"));
}

#[test]
fn pages_or_bytes() {
    let report = report(vec![cold()], Vec::new());
    let pages = Style { unit: Unit::Pages, ..VERBOSE };
    let (pages, bytes) = (shown(&report, pages), shown(&report, VERBOSE));
    assert!(pages.contains("read: 131 072 pages (130 048 first use of read-ahead, 1 024 misses)"), "{pages}");
    assert!(
        bytes.contains("read: 512 MiB in whole pages (508 MiB first use of read-ahead, 4 MiB misses)"),
        "{bytes}"
    );
    assert!(pages.contains("reads, in pages  131 072") && bytes.contains("reads, whole pages  512 MiB"));
    let row = |text: &str| {
        let files = text.lines().skip_while(|l| !l.starts_with("files"));
        files.take(2).map(|l| l.split_whitespace().map(String::from).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    assert_eq!(row(&pages)[0][..4], ["files", "HITS", "RAHITS", "MISSES"]);
    assert_eq!(row(&pages)[1][..3], ["0", "130", "048"]);
    assert_eq!(row(&bytes)[1][..4], ["0", "B", "508", "MiB"]);
}

#[test]
fn the_answer_stays_on_the_screen_that_there_is() {
    let lines = |terminal| Style::default().on_lines(terminal).lines;
    assert_eq!([None, Some(0), Some(24), Some(5), Some(30), Some(200)].map(lines), [40, 40, 23, 20, 29, 40]);
    let report = report(vec![cold(), warm()], Vec::new());
    let text = |lines| shown(&report, Style { lines, ..Style::default() });
    let (short, long) = (text(29), text(SCREEN));
    assert!(
        short.lines().count() <= 29 && short.contains("  misses") && long.lines().count() > 29,
        "{short}"
    );
    assert!(
        report.findings.iter().filter(|f| f.id != "processor-time").all(|f| short.contains(f.id)),
        "{short}"
    );
    // What was read goes, before the verdict does.
    let shorter = text(23);
    assert!(shorter.lines().count() <= 23 && !shorter.contains("  misses"), "{shorter}");
}

#[test]
fn the_width_is_the_terminals_unless_somebody_says_otherwise() {
    let width = |terminal, columns| Style::new(terminal, columns, None, false).width;
    assert_eq!((width(None, None), width(Some(132), None), width(Some(0), None)), (80, 132, 80));
    assert_eq!((width(Some(132), Some("100")), width(None, Some("60"))), (100, 60));
    for nonsense in ["", "0", "-5", "wide", "99999999999999999999999"] {
        assert_eq!(width(Some(132), Some(nonsense)), 132, "{nonsense}");
    }
    assert_eq!(width(Some(3), None), 40, "a line holds a figure and its name");
}

#[test]
fn a_table_is_cut_for_a_terminal_alone() {
    let table = |terminal, columns| {
        let mut page = Page::new(Style::new(terminal, columns, None, false));
        page.table(&[page::Row::new("wasted", vec!["1234567.8 MiB".into(); 8])]);
        page.out
    };
    assert!(table(None, None).ends_with("  1234567.8 MiB\n"), "{}", table(None, None));
    assert_eq!(table(None, None), table(Some(200), None));
    for cut in [table(Some(80), None), table(None, Some("80"))] {
        assert!(cut.ends_with("…\n") && cut.chars().count() == 81, "{cut}");
    }
}

/// Names are what others chose: none of them acts on a terminal, whatever the width.
#[test]
fn hostile_names() {
    let mut run = cold();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{202e}\n";
    run.files[0].path = Some(format!("/tmp/{evil}").into());
    run.files[1].path = Some(evil.repeat(40).into());
    let mut report = report(vec![run.clone(), Run { number: 2, ..run }], Vec::new());
    report.command = vec![evil.into(), evil.repeat(50).into()];
    for width in [40, 60, 80, 200] {
        for verbose in [false, true] {
            let text = shown(&report, Style { verbose, ..wide(width) });
            assert!(!text.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{202e}')), "{text:?}");
        }
    }
}

#[test]
fn threads_that_overlap_and_a_run_that_was_saved() {
    let busy = Run { wall_s: 1.0, one_thread: Some(false), ..cold() };
    let text = shown(&report(vec![busy.clone()], Vec::new()), Style::default());
    assert!(text.contains("together") && text.contains("times the wall time"), "{text}");
    assert!(!text.contains("unexplained"), "what cannot be known has no row: {text}");
    // Where they wait is known: only how much of that nothing else was done is not.
    assert!(!text.contains("where threads wait"), "{text}");
    let mut report = report(vec![warm()], Vec::new());
    report.compared = Some(crate::report::Saved {
        path: "/then.json".into(),
        about: "then".into(),
        run: busy,
        groups: vec![],
    });
    report.conclude();
    let text = shown(&report, Style::default());
    // The one has no rest, the other has: a blank, and not a dash.
    let row = text.lines().find(|l| l.starts_with("  unexplained")).unwrap();
    assert_eq!(cells(row).len(), 2, "{text}");
    assert!(!row.contains('-') && text.contains("compared with /then.json (then)"), "{text}");
}
