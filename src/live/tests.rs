//! The core on a source that is made up, and on one that was written down.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;
use crate::figures::Figure;
use crate::names::Names;
use crate::names::Recorded;
use crate::pivot::By;
use crate::pivot::Filter;
use crate::sample::Counter;
use crate::sample::Moment;
use crate::view::fixtures;
use crate::view::fixtures::FakeNames;

/// Samples one after the other; where there is none, it cannot be read.
struct Script {
    plan: Plan,
    samples: std::vec::IntoIter<Option<Sample>>,
}

impl Script {
    fn new(samples: Vec<Option<Sample>>) -> Self {
        Self { plan: fixtures::plan(&[Figure::StallNs]), samples: samples.into_iter() }
    }
}

impl Source for Script {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        self.samples.next().flatten().ok_or_else(|| anyhow::anyhow!("nothing there"))
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// After so many seconds, with so many hits since the start and so many of process 7 since the second before.
fn sample(second: u64, hits: u64, of_seven: u64) -> Sample {
    let counted = [(Counter::ReadHits, hits)];
    let mut out = fixtures::sample(Moment::from_nanos(5), Duration::from_secs(second), &counted);
    out.rows = vec![fixtures::process(7, "seven", &[(Counter::ReadHits, of_seven)])];
    out
}

fn pivot(names: Box<dyn Names>) -> Pivot {
    Pivot { by: Some(By::Process), top: 10, filter: Filter::default(), names }
}

#[test]
fn an_interval_that_cannot_be_read_goes_on() {
    let mut source = Script::new(vec![Some(sample(0, 100, 0)), None, Some(sample(3, 109, 4))]);
    let mut live = Live::new(&mut source).unwrap();
    assert!(live.tick().is_err());
    live.tick().unwrap();
    let interval = live.interval(&mut pivot(Box::<FakeNames>::default()));
    assert_eq!((interval.total.get(Figure::Hits), interval.seconds), (Some(9), 3.0));
    let hits: Vec<_> = interval.rows.iter().map(|r| (r.who.pid, r.figures.get(Figure::Hits))).collect();
    assert_eq!(hits, [(Some(7), Some(4)), (None, Some(5))]);
}

/// Who never was among the first may be so over all, and most of those who come and go have no row any more.
#[test]
fn rows_of_a_run_are_ranked_over_the_run_and_add_up_to_its_line() {
    let mut all = 0;
    let mut samples = vec![sample(0, 0, 0)];
    for second in 1..=60 {
        // One that is always there, two that take turns, and 500 new ones in each second, each of which reads once.
        let busy = 100 + u32::try_from(second % 2).unwrap();
        let mut rows = vec![(7, 400), (busy, 600)];
        rows.extend((0..500).map(|i| (u32::try_from(second).unwrap() * 1000 + i, 1)));
        all += rows.iter().map(|(_, hits)| hits).sum::<u64>();
        let mut next = sample(second, all, 0);
        let row = |(pid, hits): &(u32, u64)| fixtures::process(*pid, "x", &[(Counter::ReadHits, *hits)]);
        next.rows = rows.iter().map(row).collect();
        samples.push(next);
    }
    for by in [By::Process, By::Thread, By::Comm] {
        for top in [0, 1, 3, usize::MAX] {
            let mut source = Script::new(samples.iter().cloned().map(Some).collect());
            let mut live = Live::new(&mut source).unwrap();
            let mut pivot = Pivot { by: Some(by), top, ..pivot(Box::<FakeNames>::default()) };
            let (mut total, mut rows) = (Total::default(), Rows::new(live.now(), &pivot));
            while live.tick().is_ok() {
                rows.add(live.now(), &mut pivot, &|pid| pid < 1000);
                total.add(&live.interval(&mut pivot));
            }
            let run = rows.below(total.so_far().unwrap(), &mut pivot, live.plan());
            let hits = |row: &crate::model::Row| row.figures.get(Figure::Hits).unwrap();
            assert_eq!(run.rows.iter().map(hits).sum::<u64>(), all, "{by:?} {top}");
            assert_eq!(run.total.get(Figure::Hits), Some(all));
            assert!(run.rows.len() <= top.saturating_add(1).min(20_000), "{by:?}: {}", run.rows.len());
            if by != By::Comm && top > 0 {
                let first = run.rows.first().map(|r| (r.who.pid, hits(r)));
                assert_eq!(first, Some((Some(7), 24_000)), "{by:?} {top}");
            }
            assert_eq!(run.rows.last().unwrap().who.other, by != By::Comm || top == 0, "{by:?} {top}");
        }
    }
}

/// What a person sees who looks at it later is what was to be seen then.
#[test]
fn what_was_written_down_looks_as_it_did() {
    let seen = |samples: Vec<Sample>, mut names: Vec<Box<dyn Names>>| {
        let mut source = Script::new(samples.into_iter().map(Some).collect());
        let mut live = Live::new(&mut source).unwrap();
        let (mut total, mut out) = (Total::default(), Vec::new());
        while live.tick().is_ok() {
            let interval = live.interval(&mut pivot(names.remove(0)));
            total.add(&interval);
            out.push(format!("{interval:?}"));
        }
        out.push(format!("{:?}", total.so_far()));
        out
    };
    let samples = vec![sample(0, 0, 0), sample(1, 8, 7), sample(2, 20, 12)];
    let (mut text, mut book) = (Vec::new(), Recorded::default());
    for sample in &samples {
        let new = book.note(sample, &mut FakeNames::default());
        text.push(serde_json::to_string(&(sample, new)).unwrap());
    }
    let (mut there, mut books, mut book) = (Vec::new(), Vec::new(), Recorded::default());
    for line in text {
        let (sample, new): (Sample, Recorded) = serde_json::from_str(&line).unwrap();
        book.merge(new);
        there.push(sample);
        books.push(Box::new(book.clone()) as Box<dyn Names>);
    }
    books.remove(0);
    let then = seen(samples, vec![Box::<FakeNames>::default(), Box::<FakeNames>::default()]);
    assert_eq!(seen(there, books), then);
    assert_eq!(then.len(), 3);
    assert!(then[1].contains("seven") && then[1].contains("/user.slice"), "{}", then[1]);
}

/// What a file says that was counted may be anything: as much as there are numbers for, in all rows, again and again.
#[test]
fn whatever_was_written_down_can_be_added_up_and_shown() {
    let most = |text: &mut serde_json::Value| {
        // Counters are lists of pairs: which, and how many.
        fn raise(value: &mut serde_json::Value) {
            match value.as_array_mut() {
                Some(pair) if pair.len() == 2 && pair.iter().all(serde_json::Value::is_u64) => {
                    pair[1] = u64::MAX.into();
                }
                Some(all) => all.iter_mut().for_each(raise),
                None => {}
            }
        }
        for key in ["total", "by_file", "rows", "of_files", "folded_rows", "folded_files", "latency"] {
            text.get_mut(key).into_iter().for_each(raise);
        }
        text["memory"]["cached_bytes"] = u64::MAX.into();
        text["lost"]["by_reason"] = serde_json::json!([["files_full", u64::MAX], ["row_taken", u64::MAX]]);
    };
    let mut text = Vec::new();
    for second in 0..4 {
        let mut sample = sample(second, 1, 1);
        sample.total.0.fill(second);
        sample.by_file = Some(sample.total);
        let counters = crate::sample::Sparse::from(&crate::sample::Counters([1; crate::wire::COUNTERS]));
        let mut histograms = crate::sample::Histograms::default();
        histograms.buckets().for_each(|n| *n = second);
        sample.latency = Some(Box::new(histograms.clone()));
        sample.rows = (1..5).map(|n| fixtures::process(n, "cat", &[])).collect();
        for row in &mut sample.rows {
            row.counters = counters.clone();
            row.latency = Some(Box::new(histograms.clone()));
        }
        sample.classic = Some(crate::classic::Sample::default());
        if let Some(classic) = &mut sample.classic {
            classic.total.0.fill(u64::MAX);
            classic.known.0.fill(true);
        }
        let mut json = serde_json::to_value(&sample).unwrap();
        if second > 0 {
            most(&mut json);
        }
        text.push(json.to_string());
    }
    let there = || text.iter().map(|line| Some(serde_json::from_str::<Sample>(line).unwrap()));
    assert_eq!(there().next_back().flatten().unwrap().total.get(Counter::ReadHits), u64::MAX);
    let mut out = String::new();
    for by in ["process", "comm", "user", "cgroup"] {
        let mut source = Script::new(there().collect());
        let mut live = Live::new(&mut source).unwrap();
        let mut total = Total::default();
        let mut pivot = Pivot { by: None, ..pivot(Box::<FakeNames>::default()) };
        for options in ["--json", "--csv -x", "--csv --unit bytes", "-x --unit bytes"] {
            let line = format!("cachestat {options} --by {by}");
            let args = crate::cli::Args::parse_from(line.split(' '));
            let here = crate::view::Surroundings {
                zone: jiff::tz::TimeZone::UTC,
                page_size: 4096,
                screen: Box::new(|| None),
            };
            let options = args.options();
            pivot.by = options.by;
            let mut view = crate::view::new(&options, here);
            view.begin(&mut out);
            if live.tick().is_ok() {
                let interval = live.interval(&mut pivot);
                view.interval(&interval, &mut out);
                total.add(&interval);
            }
            total.so_far().into_iter().for_each(|sum| view.total(sum, &mut out));
        }
    }
    assert!(out.contains("18446744073709551615"), "{out}");
    let mut source = Script::new(there().collect());
    let mut keeper =
        keeper::Keeper::new(&mut source, pivot(Box::<FakeNames>::default()), true, Box::new(|_| false))
            .unwrap()
            .with_little_room();
    for (by, show) in [
        (By::Process, snapshot::Show::Total),
        (By::Comm, snapshot::Show::Count),
        (By::User, snapshot::Show::Total),
    ] {
        let snapshot =
            keeper.tick(keeper::View { by, show, threads: true, ended: snapshot::Ended::Command }).unwrap();
        assert!(!snapshot.entries.is_empty());
        for entry in snapshot.entries.iter() {
            let _ = format!("{:?}", snapshot.row(entry));
        }
    }
}
