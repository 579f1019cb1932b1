//! Who pushed out what: figures that prove it, and those that do not.
#![allow(clippy::unwrap_used)]

use super::crowd::ALL;
use super::crowd::Pair;
use super::crowd::changed;
use super::crowd::cold;
use super::crowd::set;
use super::*;
use crate::blame::How;
use crate::figures::Figure;
use crate::report::data::FileRow;
use crate::report::pushed::By;
use crate::report::pushed::Pushed;
use crate::report::pushed::Row;

fn row(how: How, own: bool, out: u64, back: u64, again: u64) -> Row {
    Row {
        how: Some(how.name()),
        kind: Some(how),
        owner: Some("/a".into()),
        by: By { cgroup: Some("/evil\x1b[2J".into()), process: Some("tar".into()) },
        limit_of: None,
        own,
        other: false,
        out_pages: out,
        back_pages: Some(back),
        again_pages: Some(again),
        waited_s: None,
    }
}

fn pushed(rows: Vec<Row>) -> Pushed {
    let sum = |of: fn(&Row) -> Option<u64>| rows.iter().map(of).sum::<Option<u64>>();
    Pushed { again_pages: sum(|r| r.again_pages), rows, ..Pushed::default() }
}

/// The tree of 24 000 pages is read, and of what was there something is pushed out and brought in again.
fn run(rows: Vec<Row>) -> Run {
    changed(cold(), |run| run.blame = Some(pushed(rows)))
}

fn has(run: &Run, id: &str) -> bool {
    find(&[], std::slice::from_ref(run)).iter().any(|f| f.id == id)
}

pub(super) fn pairs() -> Vec<Pair> {
    let pushed = |again| vec![run(vec![row(How::Dontneed, false, 9000, 5000, again)])];
    let scanned = |back| vec![scan(vec![row(How::Limit, true, 29_000, back, 0)], |_| {})];
    vec![
        ("pushed-out-by", pushed(ALL / 10), pushed(ALL / 10 - 1)),
        ("scan-evicts-hot-set", scanned(2900), scanned(2899)),
    ]
}

#[test]
fn others_pushed_it_out() {
    let told = find(&[], &[run(vec![row(How::Dontneed, false, 9000, 5000, 4000)])]);
    let finding = told.iter().find(|f| f.id == "pushed-out-by").unwrap();
    assert!(finding.text.contains("4000") || finding.text.contains("MiB"), "{}", finding.text);
    assert!(finding.text.contains("tar in /evil\\x1b[2J (POSIX_FADV_DONTNEED)"), "{}", finding.text);
    assert!(finding.remedy.is_some());
    assert_eq!(finding.evidence["again_pages"], 4000);
}

#[test]
fn nobody_is_blamed_for_less() {
    let silent = [
        // It was pushed out, and not missed; by itself; by kswapd, for whom is not known.
        vec![row(How::Dontneed, false, 9000, 5000, 0)],
        vec![row(How::Limit, true, 9000, 5000, 4000)],
        vec![row(How::Kswapd, false, 9000, 5000, 4000)],
        // What was in them was given up.
        vec![row(How::Truncated, false, 9000, 5000, 4000), row(How::Invalidated, false, 9000, 5000, 4000)],
        // Little, by itself and of all.
        vec![row(How::Dontneed, false, 9000, 5000, 255)],
        vec![row(How::Dontneed, false, 9000, 5000, 2000)],
        vec![Row { again_pages: None, back_pages: None, ..row(How::Dontneed, false, 9000, 0, 0) }],
        vec![],
    ];
    for rows in silent {
        let run = run(rows);
        assert!(!has(&run, "pushed-out-by"), "{:?}", run.blame);
    }
    assert!(!has(&cold(), "pushed-out-by"));
}

#[test]
fn many_processes_of_one_name_are_one() {
    let one = || row(How::Direct, false, 100, 50, 40);
    let told = find(&[], &[run((0..10_000).map(|_| one()).collect())]);
    let finding = told.iter().find(|f| f.id == "pushed-out-by").unwrap();
    assert_eq!(finding.evidence["by"].as_array().unwrap().len(), 1);
    let other = |i: u64| Row {
        by: By { process: Some(format!("p{i}").into()), ..By::default() },
        ..row(How::Direct, false, 100, 50, 40)
    };
    let told = find(&[], &[run((0..10_000).map(other).collect())]);
    let finding = told.iter().find(|f| f.id == "pushed-out-by").unwrap();
    assert!(finding.text.len() < 1000 && finding.text.contains("by others"), "{}", finding.text);
    assert_eq!(finding.evidence["by"].as_array().unwrap().len(), 10);
}

/// Of a cgroup that slept while another one filled memory kswapd took all that it had.
#[test]
fn what_kswapd_took_is_nobodys_fault() {
    let told = |own, kswapd| {
        let rows = vec![row(How::Direct, true, 9000, 5000, own), row(How::Kswapd, false, 9000, 8000, kswapd)];
        let run = changed(run(rows), |run| set(run, &[(Figure::Refaulted, 8001)]));
        let found = find(&[], &[run]).into_iter().find(|f| f.id == "working-set-too-large");
        let found = found.unwrap();
        (found.text, found.remedy.unwrap(), found.evidence)
    };
    for own in [0, 4000] {
        let (text, remedy, evidence) = told(own, 4000);
        assert!(text.contains("by kswapd") && text.ends_with("or others did, is not known."), "{text}");
        assert!(remedy.contains("memory.low") && !remedy.starts_with("Give"), "{remedy}");
        assert_eq!(evidence["evicted_for_it_and_back"], serde_json::Value::Null);
        assert_eq!(evidence["evicted_by_kswapd_and_back"], 4000);
    }
    let (text, remedy, evidence) = told(4001, 4000);
    assert!(text.starts_with("What it works with is larger than the cache:"), "{text}");
    assert!(remedy.starts_with("Give it more memory"), "{remedy}");
    assert_eq!(evidence["evicted_for_it_and_back"], 8001);
}

/// Pages of the file that is read once.
const SCAN: u64 = 30_000;

/// It reads the tree, and a large file once, for which it pushes out some of what is used.
fn scan(rows: Vec<Row>, change: impl FnOnce(&mut Run)) -> Run {
    let mut run = run(rows);
    set(&mut run, &[(Figure::Fills, 24_000 + SCAN)]);
    run.usage.minor_faults = Some(300);
    run.files.insert(
        0,
        FileRow {
            path: Some("/big\x1b[2J".into()),
            size: Some(SCAN * 4096),
            misses: SCAN / 32,
            readahead_hits: SCAN - SCAN / 32,
            readahead_pages: SCAN - SCAN / 32,
            read_bytes: SCAN * 4096,
            ..FileRow::default()
        },
    );
    changed(run, change)
}

#[test]
fn a_scan_pushes_out_what_is_used() {
    let rows = || vec![row(How::Limit, true, 29_000, 6000, 5000)];
    let told = find(&[], &[scan(rows(), |_| {})]);
    let finding = told.iter().find(|f| f.id == "scan-evicts-hot-set").unwrap();
    assert!(!finding.text.contains('\x1b') && finding.text.contains("/big\\x1b[2J"), "{}", finding.text);
    assert!(finding.remedy.as_ref().unwrap().contains("POSIX_FADV_DONTNEED"));
    let file = |change: fn(&mut FileRow)| scan(rows(), |run| change(&mut run.files[0]));
    let silent = [
        // Read twice; used before; a part of it; here and there; mapped.
        file(|f| f.read_bytes *= 2),
        file(|f| f.hits = SCAN),
        file(|f| f.read_bytes /= 2),
        file(|f| (f.misses, f.readahead_hits) = (f.readahead_hits, f.misses)),
        file(|f| f.fault_misses = 1),
        // What came back may have been its own: read ahead, pushed out, and fetched again.
        file(|f| f.readahead_pages += 6000),
        file(|f| f.size = None),
        // Memory was needed for something else.
        scan(rows(), |run| run.usage.minor_faults = Some(SCAN)),
        scan(rows(), |run| run.usage.minor_faults = None),
        scan(rows(), |run| set(run, &[(Figure::Fills, 10 * SCAN)])),
        // What it uses again and again would push itself out as well, scan or no scan.
        scan(rows(), |run| {
            let pages = 26_000;
            let loops = FileRow { size: Some(pages * 4096), hits: pages, ..FileRow::default() };
            run.files.push(loops);
        }),
        // Pushed out by others, or for nobody knows whom; never used again.
        scan(vec![row(How::Limit, false, 29_000, 6000, 5000)], |_| {}),
        scan(vec![row(How::Kswapd, false, 29_000, 6000, 5000)], |_| {}),
        scan(vec![row(How::Limit, true, 29_000, 255, 0)], |_| {}),
        scan(vec![row(How::Limit, true, 29_000, 2000, 0)], |_| {}),
        scan(vec![], |_| {}),
    ];
    for run in silent {
        assert!(!has(&run, "scan-evicts-hot-set"), "{:?} {:?}", run.blame, run.files[0]);
    }
}

#[test]
fn a_working_set_is_too_large_only_where_it_pushes_itself_out() {
    let refaulting = |rows| changed(run(rows), |run| set(run, &[(Figure::Refaulted, 4000)]));
    let id = "working-set-too-large";
    assert!(has(&refaulting(vec![row(How::Limit, true, 9000, 5000, 4000)]), id));
    assert!(has(&refaulting(vec![row(How::Kswapd, false, 9000, 5000, 4000)]), id));
    // Others pushed it out, or it was out before the run began.
    assert!(!has(&refaulting(vec![row(How::Proactive, false, 9000, 5000, 4000)]), id));
    assert!(!has(&refaulting(vec![]), id));
    // Where refaults are not known, what it pushed out itself is told as the least.
    let unknown = |rows| changed(run(rows), |run| run.figures.set(Figure::Refaulted, None));
    let told = find(&[], &[unknown(vec![row(How::Limit, true, 9000, 5000, 4000)])]);
    let told = told.iter().find(|f| f.id == id).unwrap();
    assert!(told.text.contains("at least "), "{}", told.text);
    assert!(!has(&unknown(vec![row(How::Proactive, false, 9000, 5000, 4000)]), id));
    // Nor are refaults told where they are known: 5000 of these had been evicted before it began.
    let before = changed(run(vec![row(How::Limit, true, 9000, 5000, 4000)]), |run| {
        set(run, &[(Figure::Refaulted, 9000)]);
    });
    let told = find(&[], &[before]);
    let told = told.iter().find(|f| f.id == id).unwrap();
    assert!(
        told.text.contains(&format!("at least {}", crate::report::units::of_pages(4000))),
        "{}",
        told.text
    );
    // A scan is told as one.
    let rows = vec![row(How::Limit, true, 29_000, 9000, 9000)];
    let scanning = scan(rows, |run| set(run, &[(Figure::Refaulted, 9000)]));
    assert!(has(&scanning, "scan-evicts-hot-set") && !has(&scanning, id));
}
