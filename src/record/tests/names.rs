//! Names are remembered as long as somebody may ask for them, whether anybody does or not.

use super::*;
use crate::names::Names as _;
use crate::sample::Source as _;
use crate::wait::Wait as _;

/// Processes that are new in each tick.
const NEW: u32 = 20;
/// Ticks: some segments.
const TICKS: u32 = 1000;
/// No process of this machine has an id from here on.
const NOBODY: u32 = 1 << 22;

/// Ticks of processes that were never there before, each in a cgroup of its own.
fn passing(ticks: u32) -> Vec<Sample> {
    let start = Moment::now();
    let made = |tick: u32| {
        let all = [(Counter::ReadHits, u64::from(tick * NEW)), (Counter::ReadCalls, u64::from(tick * NEW))];
        let mut sample = fixtures::sample(start, Duration::from_secs(tick.into()), &all);
        let row = |n: u32| crate::sample::RowSample {
            cgroup: u64::from(100 + tick * NEW + n),
            ..fixtures::process(
                NOBODY + tick * NEW + n,
                "cc",
                &[(Counter::ReadHits, 1), (Counter::ReadCalls, 1)],
            )
        };
        sample.rows = (0..if tick > 0 { NEW } else { 0 }).map(row).collect();
        sample
    };
    (0..ticks).map(made).collect()
}

#[test]
fn who_asks_for_no_name_remembers_no_more_than_a_segment() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut writer = Writer::file(&path, Duration::from_secs(1)).unwrap();
    let mut source = Made(passing(TICKS).into(), fixtures::plan(&[]));
    let (_told, sink) = Told::new();
    let mut names = FakeNames::default();
    let (mut source, _) = Recording::new(&mut source, &mut names, &mut writer, Rc::clone(&sink));
    let (mut most, mut lasting) = (0, 0);
    for _ in 0..TICKS {
        source.sample().unwrap();
        let size = sink.borrow().size();
        (most, lasting) = (most.max(size.0), lasting.max(size.1));
    }
    let segment = 300 * NEW as usize;
    assert!((segment / 2..=segment).contains(&most), "{most} command lines");
    assert!((4096..=2 * 4096 + 2).contains(&lasting), "{lasting} users and cgroups");
    // Nor does a replay, whatever its intervals are put together from: those that end with each segment, and others.
    for every in [None, Some(10), Some(7), Some(300)] {
        let part = Part { every: every.map(Duration::from_secs), ..Part::default() };
        let mut opened = Replay::open(&path, &part, Box::new(|said| panic!("{said}"))).unwrap();
        let (mut most, mut ends) = (0, 0);
        while opened.clock.until(Instant::now()).unwrap() != Wake::Over {
            opened.replay.sample().unwrap();
            most = most.max(opened.names.size().0);
            ends += 1;
        }
        assert!(most <= 2 * segment && ends >= 4, "{every:?}: {most} of {ends} intervals");
    }
}

#[test]
fn each_interval_has_the_names_of_all_that_is_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut made = passing(620);
    // Told before the second segment begins, and not after.
    made[298].rows[0].cgroup = 2;
    record(&path, "", made);
    for every in [300, 310] {
        let part = Part { every: Some(Duration::from_secs(every)), ..Part::default() };
        let there = lines(&replay(&path, "--json --by cgroup --top 100000", &part).0);
        let names: Vec<_> = there.iter().filter_map(|i| i["rows"].as_array()).flatten().collect();
        assert!(names.len() >= 619 * NEW as usize);
        assert!(names.iter().any(|row| row["cgroup"].as_str().unwrap().contains("docker")), "{every}");
        // FakeNames has a mark for those that it was asked for.
        assert!(names.iter().all(|row| !row["cgroup"].as_str().unwrap().starts_with("cgroup:")
            || row["cgroup"].as_str().unwrap().ends_with("(gone)")));
    }
}

/// What did something in the first segment only is called in the sum what it was called then.
#[test]
fn the_sum_has_the_names_of_the_whole_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let made = || {
        let mut made = passing(700);
        // Fewer cgroups than are remembered.
        made.iter_mut().for_each(|sample| sample.rows.truncate(3));
        // Two ids of one path: it was made anew.
        for (tick, cgroup) in [(5, 1), (6, 4011)] {
            // Of somebody who is alive: what others did may stand in one row.
            let row = &mut made[tick].rows[0];
            (row.cgroup, row.tgid, row.tid) = (cgroup, std::process::id(), std::process::id());
        }
        made
    };
    for (options, key) in [("--json --by user", "user"), ("--json --by cgroup --top 100000", "cgroup")] {
        let live = record(&path, options, made());
        assert_eq!(live, replay(&path, options, &Part::default()).0, "{options}");
        let all = lines(&live);
        let rows = all.last().unwrap()["total_rows"].as_array().unwrap();
        assert!(all.last().unwrap().get("total").is_some());
        let of = |name: &str| rows.iter().filter(|row| row[key] == name).count();
        match key {
            // The lines have what the rows that were left out did.
            "user" => {
                assert_eq!(of("me"), 1, "{rows:?}");
                assert!(rows.iter().all(|row| row["other"] == true || row[key] == "me"), "{rows:?}");
            }
            _ => assert_eq!(of("/user.slice"), 1),
        }
    }
}

#[test]
fn command_lines_of_before_are_nobodys() {
    let (mut told, sink) = Told::new();
    let names = |pid| {
        let mut sample = passing(2).remove(1);
        sample.rows.truncate(1);
        sample.rows[0].tgid = pid;
        crate::names::Recorded::default().note(&sample, &mut FakeNames::default())
    };
    let all = |sink: &super::super::names::Sink| sink.borrow().size().0;
    sink.borrow_mut().add(names(1), true, true);
    sink.borrow_mut().add(names(2), false, true);
    assert_eq!(all(&sink), 2, "of one segment");
    sink.borrow_mut().add(names(3), true, false);
    sink.borrow_mut().add(names(4), true, false);
    assert_eq!(all(&sink), 4, "of one interval");
    sink.borrow_mut().add(names(5), false, true);
    assert_eq!(all(&sink), 2, "of the segment that goes on");
    assert_eq!(told.user(1000).as_deref(), Some("me"));
    sink.borrow_mut().add(crate::names::Recorded::default(), true, true);
    assert_eq!((all(&sink), told.user(1000).as_deref()), (0, Some("me")));
}
