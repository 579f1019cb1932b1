//! A sample that was written and read back is the same one.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::figures::Figure;
use crate::files::Dev;
use crate::files::Named;
use crate::plan::Brackets;
use crate::plan::Certainty;
use crate::plan::Engine;
use crate::sample::machine;
use crate::sample::machine::Machine;
use crate::view::fixtures;

fn back(sample: &Sample) -> Sample {
    serde_json::from_str(&serde_json::to_string(sample).unwrap()).unwrap()
}

fn file(inode: u64, name: &str) -> Arc<File> {
    let dev = Dev { major: 254, minor: 1 };
    let block = (inode % 3 == 0).then_some(Dev { major: 8, minor: 1 });
    Arc::new(File { dev, inode, generation: 7, block, name: name.into(), named: Named::End })
}

fn used(tgid: u32, file: &Arc<File>) -> FileSample {
    FileSample {
        tgid,
        uid: 5,
        cgroup: u64::MAX,
        born: 9,
        process: "cat".into(),
        file: Arc::clone(file),
        deleted: tgid % 2 == 1,
        counters: fixtures::counters(&[(Counter::ReadMisses, 3), (Counter::ReadBytes, u64::MAX)]),
    }
}

/// One in which nothing is left out.
fn full() -> Sample {
    let mut sample = fixtures::sample(Moment::now(), Duration::from_nanos(123_456_789), &[]);
    sample.time = "1969-12-31T23:59:58.987654321Z".parse().unwrap();
    sample.total.0.iter_mut().zip(1..).for_each(|(slot, n)| *slot = n);
    sample.by_file = Some(fixtures::counters(&[(Counter::LookupsEnded, 1)]).all());
    let mut histograms = Histograms::default();
    histograms.buckets().zip(0..).for_each(|(bucket, n)| *bucket = n % 3);
    sample.latency = Some(Box::new(histograms.clone()));
    let comms: [&[u8]; 6] =
        [b"dd", b"\xff\xfe\x80", b"a\nb\"\\x41\\", b"", b"\xe2\x80\xae15 bytes long", b"\\"];
    for (tgid, comm) in (1..).zip(comms) {
        let mut row = fixtures::process(tgid, "x", &[(Counter::ReadHits, 7), (Counter::WaitCpu, u64::MAX)]);
        (row.comm, row.process) = (Comm::from_bytes(comm), Comm::from_bytes(comms[0]));
        row.latency = Some(Box::new(histograms.clone())).filter(|_| tgid == 2);
        sample.rows.push(row);
    }
    let files = [file(1, "/a\nb/\u{202e}"), file(3, "\\xff"), file(4, "")];
    sample.files = (1..8).map(|n| used(n, &files[n as usize % 3])).collect();
    sample.folded.threads = vec![Folded { by: By::Cgroup, row: sample.rows[1].clone() }];
    sample.folded.files = vec![Folded { by: By::Device, row: sample.files[2].clone() }];
    sample.lost.by_reason = vec![("recursion".into(), 3), ("of a later version".into(), 4)];
    let mut followed = Followed::new(3);
    followed.counters = sample.total;
    followed.histograms = histograms;
    followed.files = vec![used(1, &files[0])];
    followed.processes = [(1, Comm::from_bytes(b"\xff")), (2, "sh".into())].into();
    followed.threads = Threads::One(2);
    let at = Moment::from_nanos(17);
    followed.waiting = Some(crate::sample::Waiting { at, so_far: sample.total, storage: None });
    sample.followed = Some(Box::new(followed));
    let mut classic = crate::classic::Sample::default();
    classic.known.0[1] = true;
    classic.total.0[4] = 9;
    let process = crate::classic::ProcessSample { tgid: 4, comm: "a\nb".into(), ..Default::default() };
    classic.processes.insert(4, process);
    sample.classic = Some(classic);
    sample
}

#[test]
fn it_comes_back_as_it_was() {
    let sample = full();
    let there = back(&sample);
    assert_eq!(there, sample);
    // What is one file is one file again, not a copy for each row.
    assert!(Arc::ptr_eq(&there.files[0].file, &there.files[3].file));
}

#[test]
fn figures_that_are_not_known_stay_unknown() {
    let why = |text: &str| Certainty::Unknown(text.into());
    let figures = vec![
        (Figure::Hits, Certainty::Exact),
        (Figure::Misses, Certainty::Bounded("about \"so\" many".into())),
        (Figure::StallNs, why("not timed")),
        (Figure::Inflight, why("not timed")),
    ];
    let programs = vec!["read_exit".into()];
    let (engine, at_least) = (Engine::Both, vec![Figure::Misses]);
    let known = Known { engine, brackets: Brackets::Tracepoints, figures, at_least, programs };
    let sample = Sample { known: Arc::new(known), ..full() };
    let there = back(&sample);
    assert_eq!(there, sample);
    let plan = there.known.plan();
    assert!(plan.knows(Figure::Misses) && !plan.knows(Figure::StallNs) && !plan.knows(Figure::Evicted));
    assert!(there.known.uses("read_exit") && !there.known.uses("read_enter"));
}

/// What a reader makes of two samples is what was made when they were taken, names apart.
#[test]
fn it_means_the_same_to_who_was_not_there() {
    let plan = fixtures::plan(&[Figure::StallNs]);
    let known = Arc::new(Known::by(&plan));
    let mut machine = Machine::new();
    let event =
        |who, counter| machine::Event { who, file: 3, rows: (true, true), late: false, counter, n: 9 };
    let events = [event((1, 0, 1, 0, 1), 0), event((2, 1, 2, 1, 2), 1)];
    let ticks = [machine.read(&[]), machine.read(&events)].map(|s| Sample { known: known.clone(), ..s });
    let there = [back(&ticks[0]), back(&ticks[1])];
    let [then, now] =
        [&ticks, &there].map(|[before, now]| crate::pivot::interval(before, now, &now.known.plan()));
    assert_eq!((then.rows.len(), then.total.get(Figure::Hits)), (2, Some(9)));
    assert_eq!(then.total.get(Figure::StallNs), None);
    assert_eq!((then.rows, then.total, then.seconds), (now.rows, now.total, now.seconds));
}

#[test]
fn ten_thousand_rows_are_no_burden() {
    let mut sample = full();
    let row = sample.rows[0].clone();
    sample.rows = (0..10_000).map(|n| RowSample { tgid: n, tid: n, uid: n % 7, ..row.clone() }).collect();
    let one = Arc::clone(&sample.files[0].file);
    sample.files = (0..10_000).map(|n| used(n, &one)).collect();
    let text = serde_json::to_string(&sample).unwrap();
    println!("{} bytes", text.len());
    assert!(text.len() < 2_000_000, "{} bytes", text.len());
    assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample);
}

#[test]
fn what_another_version_counts_is_left_out_and_what_makes_no_sense_refused() {
    let mut text = serde_json::to_value(fixtures::sample(
        Moment::now(),
        Duration::ZERO,
        &[(Counter::ReadHits, 3), (Counter::ReadMisses, 4)],
    ))
    .unwrap();
    text["counters"][0] = "OfALaterVersion".into();
    text["known"]["exact"][0] = "read.of_a_later_version".into();
    let there: Sample = serde_json::from_value(text.clone()).unwrap();
    assert_eq!((there.total.get(Counter::ReadHits), there.total.get(Counter::ReadMisses)), (0, 4));
    assert!(!there.known.plan().knows(Figure::Accesses) && there.known.plan().knows(Figure::Hits));
    for (key, wrong) in [
        ("total", serde_json::json!([[99, 1]])),
        ("names", serde_json::json!(["\\"])),
        ("rows", serde_json::json!([[1, 1, 1, 1, 1, 0, 5, [], null]])),
        ("of_files", serde_json::json!([[1, 1, 1, 1, 5, 0, true, []]])),
        ("latency", serde_json::json!([[1000, 1]])),
        ("time", serde_json::json!([i64::MAX, 0])),
    ] {
        let mut broken = text.clone();
        broken[key] = wrong;
        assert!(serde_json::from_value::<Sample>(broken).is_err(), "{key}");
    }
}

proptest! {
    #[test]
    fn any_bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        prop_assert_eq!(unescaped(&escaped(&bytes)), Some(bytes));
    }

    #[test]
    fn whatever_a_machine_does_comes_back(ticks in machine::ticks()) {
        let mut machine = Machine::new();
        for (events, _) in ticks {
            let sample = machine.read(&events);
            prop_assert_eq!(back(&sample), sample);
        }
    }
}
