//! Each rule, with figures that prove it and figures that do not.
#![allow(clippy::unwrap_used)]

mod asleep;
pub(super) mod cached;
mod reading;

use super::common::percent;
use super::*;
use crate::figures::Figure;
use crate::report::data::FileRow;
use crate::report::data::Lookups;
use crate::report::data::Origin;
use crate::report::data::Pattern;
use crate::report::data::Residency;
use crate::report::data::Usage;
use crate::report::data::Waits;
use crate::report::data::Warmer;

/// A second of nothing, all of it known.
pub(super) fn idle() -> Run {
    let mut run = Run { number: 1, wall_s: 1.0, ..Run::default() };
    for figure in Figure::ALL {
        run.figures.set(*figure, Some(0));
    }
    let zero = Some(0);
    run.waits = Waits {
        read_ns: zero,
        fault_ns: zero,
        exec_ns: zero,
        open_ns: zero,
        lookup_ns: zero,
        directory_ns: zero,
        write_ns: zero,
        sync_ns: zero,
        cpu_ns: zero,
        woken_ns: zero,
        other_ns: zero,
        peer_ns: zero,
        timer_ns: zero,
        lock_ns: zero,
        child_ns: zero,
        completion_ns: zero,
        throttled_ns: zero,
    };
    run.lookups = Lookups { dcache_misses: zero, work_ns: zero };
    run.usage = Usage { user_s: Some(0.4), system_s: Some(0.1), ..Usage::zero() };
    run.window_pages = Some(vec![0; 16]);
    run.waits.read_ns = Some(150_000_000);
    run
}

fn with(figures: &[(Figure, u64)]) -> Run {
    let mut run = idle();
    for (figure, n) in figures {
        run.figures.set(*figure, Some(*n));
    }
    run
}

fn ids(runs: &[Run]) -> Vec<&'static str> {
    told(&find(&[], runs))
}

/// Their ids: what is left of the second of a made-up run says nothing, nor does the work that all of them do.
fn told(found: &[Finding]) -> Vec<&'static str> {
    found.iter().map(|f| f.id).filter(|id| !["unexplained", "processor-time"].contains(id)).collect()
}

/// A file of 40 MiB on ext4, read once from end to end.
fn file() -> FileRow {
    FileRow {
        path: Some("/data/f".into()),
        dev: "254:0".into(),
        inode: 12,
        fs: Some("ext4".into()),
        size: Some(40 << 20),
        misses: 320,
        readahead_hits: 9920,
        readahead_pages: 9920,
        read_bytes: 40 << 20,
        read_ahead_kb: Some(128),
        read_ahead_path: Some("/sys/class/bdi/254:0/read_ahead_kb".into()),
        ..FileRow::default()
    }
}

/// It is read cold, and fed by read-ahead.
pub(super) fn cold() -> Run {
    let mut run = with(&[
        (Figure::Accesses, 10240),
        (Figure::ReadAheadHits, 9920),
        (Figure::Misses, 320),
        (Figure::ReadAheadPages, 9920),
        (Figure::ReadBytes, 40 << 20),
        (Figure::Fills, 10240),
    ]);
    run.files = vec![file()];
    run.asked_pages = 10240;
    run.usage.device_read_bytes = Some(40 << 20);
    run
}

/// It is read again.
pub(super) fn warm() -> Run {
    let mut run = with(&[(Figure::Accesses, 10240), (Figure::Hits, 10240), (Figure::ReadBytes, 40 << 20)]);
    run.files = vec![FileRow { hits: 10240, misses: 0, readahead_hits: 0, readahead_pages: 0, ..file() }];
    (run.asked_pages, run.warm_pages, run.number) = (10240, 10240, 2);
    run.origin.before = 10240;
    run.exit_status = Some(0);
    run
}

/// It is read again, after a run that brought all of it in.
pub(super) fn rewarmed(by: u32) -> Run {
    Run { origin: Origin { runs: vec![(by, 10240)], ..Origin::default() }, ..warm() }
}

#[test]
fn nothing_proves_nothing() {
    assert_eq!(ids(&[idle()]), Vec::<&str>::new());
    assert_eq!(ids(&[Run::default()]), Vec::<&str>::new(), "what is not known proves nothing either");
    assert_eq!(ids(&[]), Vec::<&str>::new());
}

#[test]
fn a_few_pages_are_not_worth_a_word() {
    let mut run = warm();
    run.figures.set(Figure::Hits, Some(200));
    run.figures.set(Figure::Accesses, Some(200));
    (run.asked_pages, run.warm_pages) = (200, 200);
    assert_eq!(ids(&[run]), Vec::<&str>::new());
}

#[test]
fn cold_then_warm() {
    assert_eq!(ids(&[cold()]), ["readahead-fed", "faults-blind-to-reads"]);
    assert_eq!(ids(&[warm()]), ["cached-before"]);
    let both = find(&[], &[cold(), rewarmed(1)]);
    let warmed = both.iter().find(|f| f.id == "warmed-by-earlier-run").unwrap();
    assert_eq!((warmed.runs.as_slice(), &warmed.evidence["warmed_by_run"]), (&[2][..], &1.into()));
    assert!(!both.iter().any(|f| f.id == "cached-before"));
    // The run before read something else.
    assert!(ids(&[cold(), warm()]).contains(&"cached-before"));
}

#[test]
fn warmed_by_a_run_to_warm_up() {
    let warmup = Run { warmup: true, number: u32::MAX - 1, ..cold() };
    let found = find(&[warmup], &[rewarmed(u32::MAX - 1)]);
    assert_eq!(told(&found), ["warmed-by-earlier-run"]);
    assert!(found[0].text.ends_with("a run of --warmup had brought them in."), "{}", found[0].text);
    assert!(found[0].evidence["warmed_by_run"].is_null());
    // It is in no list of runs, and what it read itself is no finding.
    assert_eq!(found[0].runs, [2]);
    let other = Run { warmup: true, number: u32::MAX - 1, ..cold() };
    assert_eq!(find(&[other], &[warm()])[0].id, "cached-before");
}

#[test]
fn runs_are_named_as_people_do() {
    let which = |runs: &[u32]| {
        let finding = Finding::new("x", "less than 1 % of it".into(), serde_json::Value::Null).unwrap();
        assert_eq!(finding.text, "Less than 1 % of it");
        Finding { runs: runs.into(), ..finding }.which()
    };
    assert_eq!(
        [&[][..], &[2], &[2, 3], &[1, 2, 3], &[1, 3], &[1, 3, 4]].map(which),
        ["", "run 2", "runs 2 and 3", "runs 1 to 3", "runs 1 and 3", "runs 1, 3 and 4"]
    );
}

#[test]
fn figures_that_differ_are_said_to_be_of_the_first_run() {
    let which = |second: Run| {
        let found = find(&[], &[cold(), Run { number: 2, ..second }]);
        found.iter().find(|f| f.id == "readahead-fed").map(Finding::which)
    };
    assert_eq!(which(cold()).as_deref(), Some("runs 1 and 2"));
    let mut other = cold();
    other.figures.set(Figure::Hits, Some(900));
    assert_eq!(which(other).as_deref(), Some("runs 1 and 2, figures of run 1"));
}

/// Eight readers that waited a second each in a run of two.
#[test]
fn what_is_done_in_parallel_is_never_more_than_all() {
    let mut run = cold();
    run.wall_s = 2.0;
    run.waits.read_ns = Some(2_000_000_000);
    run.waits.open_ns = Some(6_000_000_000);
    run.waits.throttled_ns = Some(2_000_000_000);
    let found = find(&[], &[run.clone()]);
    let open = found.iter().find(|f| f.id == "time-in-open").unwrap();
    assert!(
        open.text.starts_with("6.00 s (71 % of the time of its threads, which worked in parallel)"),
        "{}",
        open.text
    );
    let throttled = found.iter().find(|f| f.id == "dirty-throttled").unwrap();
    assert!(throttled.text.contains("24 % of the time of its threads"), "{}", throttled.text);
    // A fiftieth of the time of many threads is not worth a word, however little the wall time was.
    run.waits.open_ns = Some(150_000_000);
    run.wall_s = 0.5;
    assert!(!ids(&[run]).contains(&"time-in-open"));
}

#[test]
fn what_is_not_proved_is_not_said() {
    // As many hits as first uses: read-ahead did not feed it.
    let mut run = cold();
    run.figures.set(Figure::Hits, Some(30_000));
    run.figures.set(Figure::Accesses, Some(40_240));
    assert!(!ids(&[run]).contains(&"readahead-fed"));
    // A block that a direct write could not write by itself.
    assert_eq!(ids(&[with(&[(Figure::DirectFellBack, 4096)])]), Vec::<&str>::new());
    let mut run = warm();
    run.waits.open_ns = Some(100_000_000);
    assert!(!ids(&[run]).contains(&"time-in-open"), "a tenth of the time");
    let mut run = idle();
    run.waits.lookup_ns = Some(200_000_000);
    run.waits.read_ns = Some(400_000_000);
    assert!(!ids(&[run]).contains(&"metadata-bound"), "more for data");
    let mut run = warm();
    run.warm_pages = 3000;
    assert!(!ids(&[run]).contains(&"cached-before"), "less than half");
    // It did its work by mapping, and read a little when it started; so with what it read past the cache.
    let started = Run { asked_pages: 65_537 + 816, warm_pages: 816, ..warm() };
    assert!(!ids(&[started]).contains(&"cached-before"));
}

#[test]
fn warmed_by_another_process() {
    let warmer = |fills| Warmer {
        pid: 77,
        comm: "tar".into(),
        path: Some("/data/f".into()),
        fills,
        time: "2026-11-21T09:00:00.000Z".into(),
    };
    let run = |others| {
        let origin = Origin { others, before: 10240 - others, ..Origin::default() };
        Run { warmers: vec![warmer(others)], origin, ..warm() }
    };
    let found = find(&[], &[run(10000)]);
    assert_eq!(told(&found), ["warmed-by-other-process"]);
    assert!(found[0].text.contains("tar (process 77)"), "{}", found[0].text);
    assert_eq!(ids(&[run(100)]), ["cached-before"], "a hundred pages do not explain ten thousand");
    let mut meanwhile = run(100);
    (meanwhile.origin.meanwhile, meanwhile.origin.before) = (10000, 140);
    assert_eq!(ids(&[meanwhile]), Vec::<&str>::new(), "who came first is not known");
}

#[test]
fn only_metadata_was_warm() {
    let run = cold();
    let metadata = |hits: Option<u64>, ahead: u64, misses: u64| {
        let mut run = run.clone();
        run.figures.set(Figure::MetaAccesses, Some(1866));
        run.figures.set(Figure::MetaHits, hits);
        run.figures.set(Figure::MetaAheadHits, Some(ahead));
        run.figures.set(Figure::MetaMisses, Some(misses));
        ids(&[run]).contains(&"only-metadata-warm")
    };
    assert!(metadata(Some(1866), 0, 0));
    assert!(!metadata(Some(1799), 0, 67), "hits on what the run itself had brought in");
    assert!(!metadata(Some(1865), 0, 1), "a directory of one block is hit once for each of its names");
    assert!(!metadata(Some(1865), 1, 0));
    assert!(!metadata(None, 0, 0));
    // A mapping that was warm, as large as what is read cold or larger: no hit, and data all the same.
    let told = |faults: u64, around: Option<u64>, warm: u64| {
        let mut run = run.clone();
        run.figures.set(Figure::MetaAccesses, Some(600));
        run.figures.set(Figure::MetaHits, Some(600));
        run.figures.set(Figure::FaultHits, Some(faults));
        run.figures.set(Figure::FaultAround, around);
        (run.asked_pages, run.warm_pages) = (20_480, warm);
        find(&[], &[run]).into_iter().find(|f| f.id == "only-metadata-warm").map(|f| f.text)
    };
    // The program itself, and its libraries, are no data.
    assert!(told(64, Some(960), 0).unwrap().contains("but 100 % of the pages of data were not used before"));
    let half = "but 50 % of the pages of data were not used before";
    assert!(told(704, Some(10_560), 0).unwrap().contains(half));
    assert_eq!(told(704, Some(10_561), 0), None);
    // How much each fault mapped is not known.
    assert!(told(704, None, 0).unwrap().contains(half));
    assert_eq!(told(705, None, 0), None);
    // It had mapped them before, or had found them in another way.
    assert!(told(0, Some(0), 10_239).unwrap().contains(half));
    assert_eq!(told(0, Some(0), 10_240), None);
}

#[test]
fn writers_that_are_throttled() {
    let mut run = idle();
    run.waits.throttled_ns = Some(400_000_000);
    assert_eq!(ids(&[run.clone()]), ["dirty-throttled"]);
    run.waits.throttled_ns = Some(4_000_000);
    assert_eq!(ids(&[run.clone()]), Vec::<&str>::new());
    run.waits.throttled_ns = None;
    assert_eq!(ids(&[run]), Vec::<&str>::new());
}

#[test]
fn time_in_open() {
    let mut run = warm();
    run.files[0].fs = Some("fuse.blobfuse".into());
    run.waits.open_ns = Some(700_000_000);
    run.waits.read_ns = Some(0);
    let found = find(&[], &[run.clone()]);
    let open = found.iter().find(|f| f.id == "time-in-open").unwrap();
    assert!(open.text.contains("the FUSE file system of /data/f may fetch data"), "{}", open.text);
    assert!(!found.iter().any(|f| f.id == "metadata-bound"), "one word for one thing");
    // It read nothing of it, but of others: what these found is no word about FUSE. Nor is half of it missed a find.
    let other = FileRow { fs: Some("ext4".into()), ..run.files[0].clone() };
    for (hits, misses) in [(0, 0), (10, 10)] {
        run.files = vec![FileRow { hits, misses, ..run.files[0].clone() }, other.clone()];
        let found = find(&[], &[run.clone()]);
        assert!(!found.iter().find(|f| f.id == "time-in-open").unwrap().text.contains("FUSE"), "{hits}");
    }
    run.files[0].fs = Some("ext4".into());
    let found = find(&[], &[run]);
    assert!(!found.iter().find(|f| f.id == "time-in-open").unwrap().text.contains("FUSE"));
}

#[test]
fn metadata_and_names() {
    let mut run = idle();
    run.waits.read_ns = Some(0);
    run.waits.lookup_ns = Some(500_000_000);
    run.waits.directory_ns = Some(100_000_000);
    assert_eq!(ids(&[run]), ["metadata-bound"]);
    let mut run = idle();
    run.lookups = Lookups { dcache_misses: Some(20_000), work_ns: Some(200_000_000) };
    assert_eq!(ids(&[run.clone()]), ["dentries-cold"]);
    run.lookups.work_ns = Some(20_000_000);
    assert_eq!(ids(&[run]), Vec::<&str>::new());
}

#[test]
fn the_cache_is_not_to_blame() {
    let mut run = idle();
    run.waits.read_ns = Some(10_000_000);
    run.usage = Usage { user_s: Some(0.75), ..run.usage };
    run.exit_status = Some(0);
    assert_eq!(ids(&[run.clone()]), ["not-the-cache"]);
    // Data came in, be it that no wait for it was seen: io_uring, FUSE.
    let silent = |run: Run, why: &str| assert!(!ids(&[run]).contains(&"not-the-cache"), "{why}");
    for device_read_bytes in [Some(25 << 20), None] {
        let usage = Usage { device_read_bytes, ..run.usage };
        silent(Run { usage, ..run.clone() }, "bytes from devices");
    }
    for figure in [Figure::Misses, Figure::FaultMisses, Figure::ReadAheadPages] {
        for n in [Some(256), None] {
            let mut run = run.clone();
            run.figures.set(figure, n);
            silent(run, figure.key());
        }
    }
    let fuse = FileRow { fs: Some("fuse.sshfs".into()), ..FileRow::default() };
    silent(Run { files: vec![fuse], ..run.clone() }, "who knows what its server did");
    // So it may have where its files are not seen: read past the cache, while something was waited for.
    let unseen = |user_s, called, seen| {
        let mut run = run.clone();
        (run.usage.user_s, run.usage.called_read_bytes) = (Some(user_s), Some(called));
        run.figures.set(Figure::ReadBytes, Some(seen));
        ids(&[run]).contains(&"not-the-cache")
    };
    assert!(!unseen(0.75, 8 << 20, 0), "a FUSE server was asked for each page, and asked for direct I/O");
    assert!(!unseen(0.75, 65536, 0) && !unseen(0.75, 8 << 20, 7 << 20));
    assert!(unseen(0.75, 65535, 0), "a little of /proc and pipes");
    assert!(unseen(0.75, 8 << 20, 8 << 20) && unseen(0.75, 100 << 20, 96 << 20), "nearly all was seen");
    assert!(unseen(0.87, 8 << 20, 0), "it waited for nobody: /dev/zero");
    silent(Run { exit_status: None, ..run.clone() }, "a wait that began before the watch is not counted");
    let usage = Usage { user_s: Some(0.85), ..run.usage };
    assert_eq!(ids(&[Run { exit_status: None, usage, ..run.clone() }]), ["not-the-cache"], "little is left");
    let usage = Usage { user_s: Some(0.65), ..run.usage };
    silent(Run { usage, ..run.clone() }, "a fifth is unexplained, whatever that was");
    // With threads that overlap, a little waiting of each may be all of the time.
    run.usage.user_s = Some(3.0);
    assert_eq!(ids(&[run]), Vec::<&str>::new());
}

#[test]
fn what_writes_waited_for_may_be_the_kernel_itself() {
    let mut run = idle();
    run.waits.write_ns = Some(900_000_000);
    let all = find(&[], &[run]);
    let waited = all.iter().find(|f| f.id == "waited-for-writes").unwrap();
    // A process that is moved to another cgroup waits in a write that no disk ever sees.
    assert!(waited.text.contains("no file of a disk (cgroups, /proc, /sys)"), "{}", waited.text);
}

#[test]
fn shares_are_never_rounded_to_nothing_or_all() {
    assert_eq!(
        [0.0, 0.001, 0.5, 0.999, 1.0].map(percent),
        ["0 %", "less than 1 %", "50 %", "more than 99 %", "100 %"]
    );
}
