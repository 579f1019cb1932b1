//! Processes that have ended stand below the nearest parent that lives.

use std::time::Duration;

use super::*;
use crate::live::keeper::Keeper;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::plan::Plan;
use crate::sample::Counter;
use crate::sample::Family;
use crate::sample::RowSample;
use crate::sample::Sample;
use crate::sample::Source;

/// Ids from here on have ended by the time that anybody asks.
const SHORT: u32 = 1000;

/// Intervals of these rows, made anew from their number.
struct Made<'a> {
    plan: Plan,
    start: crate::sample::Moment,
    k: u32,
    rows: &'a dyn Fn(u32) -> Vec<RowSample>,
    total: u64,
}

impl Source for Made<'_> {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        let mut out = fixtures::sample(self.start, Duration::from_secs(self.k.into()), &[]);
        if self.k > 0 {
            out.rows = (self.rows)(self.k);
        }
        self.total += out.rows.iter().map(|r| r.counters.get(Counter::ReadHits)).sum::<u64>();
        out.total.0[Counter::ReadHits as usize] = self.total;
        self.k += 1;
        Ok(out)
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// A process with one hit, begun at a time, and its parent: id, name, when that began.
fn child(pid: u32, comm: &str, begun: u64, (parent, name, at): (u32, &str, u64)) -> RowSample {
    let family = Family { begun, parent, parent_begun: at, parent_name: name.into() };
    RowSample { family: Some(family), ..fixtures::process(pid, comm, &[(Counter::ReadHits, 1)]) }
}

/// The rows that stand for several: how many, whose children, the parent's id, hits.
fn folded(snapshot: &Snapshot) -> Vec<(u32, String, Option<u32>, u64)> {
    let row = |e: &Entry| {
        let row = snapshot.row(e);
        let hits = row.figures.get(Figure::Hits).unwrap();
        Some((e.ended?, row.who.comm.unwrap().to_string(), row.who.pid, hits))
    };
    let mut out: Vec<_> = snapshot.entries.iter().filter_map(row).collect();
    out.sort();
    out
}

fn sum(snapshot: &Snapshot) -> u64 {
    let counts = snapshot.entries.iter().filter(|e| e.state.counts());
    counts.map(|e| snapshot.row(e).figures.get(Figure::Hits).unwrap()).sum()
}

fn with(rows: &dyn Fn(u32) -> Vec<RowSample>, then: impl FnOnce(&mut Keeper<'_>)) {
    let mut source =
        Made { plan: fixtures::plan(&[]), start: crate::sample::Moment::now(), k: 0, rows, total: 0 };
    let pivot = Pivot {
        by: None,
        top: usize::MAX,
        filter: Filter::default(),
        names: Box::<fixtures::FakeNames>::default(),
    };
    let mut keeper =
        Keeper::new(&mut source, pivot, true, Box::new(|pid| pid < SHORT)).unwrap().with_past(None);
    then(&mut keeper);
}

const BY_PARENT: View = View { ended: Ended::Parent, ..VIEW };

#[test]
fn each_stands_below_the_nearest_that_lives() {
    let rows = |_| {
        vec![
            // Two of one name are two.
            child(2000, "cc", 90, (10, "make", 5)),
            child(2001, "cc", 91, (11, "make", 6)),
            child(2002, "as", 92, (11, "make", 6)),
            // The shell between them has ended as well; another had its id before, or has it by now.
            child(2003, "sh", 93, (10, "make", 5)),
            child(2004, "cc", 94, (2003, "sh", 93)),
            child(2005, "cc", 40, (2003, "sh", 39)),
            // Nothing is known of what is above it.
            child(2006, "cc", 95, (2999, "sh", 94)),
            fixtures::process(2007, "old", &[(Counter::ReadHits, 1)]),
            // This one lives.
            child(10, "make", 5, (1, "init", 0)),
        ]
    };
    with(&rows, |keeper| {
        let ended = "(parents ended)";
        let wanted = [
            (2, "make".to_owned(), Some(11), 2),
            (3, ended.to_owned(), None, 3),
            (3, "make".to_owned(), Some(10), 3),
        ];
        for _ in 0..3 {
            let snapshot = keeper.tick(BY_PARENT).unwrap();
            assert_eq!(folded(&snapshot), wanted);
            assert_eq!((snapshot.rows(), sum(&snapshot)), (1, 9));
        }
        let mut app = app((120, 40));
        app.settings.ended = Ended::Parent;
        app.take(keeper.again(app.view()));
        let text = frame(&mut app);
        assert!(text.contains("3x below make") && text.contains(&format!("3x {ended}")), "{text}");
        // The same of an interval before.
        keeper.look_back(Some(1));
        assert_eq!(folded(&keeper.again(BY_PARENT)), wanted);
        // Its details are the parent's.
        keeper.look_back(None);
        app.take(keeper.again(app.view()));
        let at = app
            .slots
            .iter()
            .position(|s| app.entry(*s).is_some_and(|e| e.ended.is_some() && e.named.who.pid == Some(11)));
        app.select(at.unwrap());
        app.input(&key(KeyCode::Enter));
        let open = app.open.as_ref().unwrap();
        assert_eq!((open.by, &open.id), (By::Process, &Id::Number(11)));
    });
}

#[test]
fn an_id_that_is_used_again_is_another_parent() {
    // From the fifth interval on, 10 is another process.
    let rows = |k: u32| {
        let parent = if k < 5 { (10, "make", 5) } else { (10, "ninja", 500) };
        vec![child(SHORT + k, "cc", 1000 + u64::from(k), parent)]
    };
    with(&rows, |keeper| {
        let view = View { show: Show::Total, ..BY_PARENT };
        for k in 1..=9 {
            let snapshot = keeper.tick(view).unwrap();
            assert_eq!(sum(&snapshot), k);
        }
        let wanted = [(4, "make".to_owned(), Some(10), 4), (5, "ninja".to_owned(), Some(10), 5)];
        assert_eq!(folded(&keeper.again(view)), wanted);
    });
}

#[test]
fn ten_thousand_short_ones_are_two_rows_and_stay_so_when_they_are_put_away() {
    // In twenty intervals, and as many again in one.
    let number = |k: u32| if k > 20 { 10_000 } else { 500 };
    let rows = |k: u32| {
        let one = |i: u32| {
            let parent = [(10, "make", 5), (11, "make", 6)][i as usize % 2];
            child(SHORT + k * 10_000 + i, "cc", u64::from(k * 10_000 + i), parent)
        };
        (0..number(k)).map(one).collect()
    };
    with(&rows, |keeper| {
        for k in 1..=21 {
            let snapshot = keeper.tick(BY_PARENT).unwrap();
            let half = number(k) / 2;
            let make = |pid| (half, "make".to_owned(), Some(pid), u64::from(half));
            assert_eq!(folded(&snapshot), [make(10), make(11)]);
            let snapshot = keeper.again(View { show: Show::Total, ..BY_PARENT });
            if k > 20 {
                // Those that there was no room for are in the row for the rest.
                assert_eq!(sum(&snapshot), 20_000);
                continue;
            }
            let mut all: Vec<_> =
                folded(&snapshot).into_iter().map(|(_, name, pid, n)| (name, pid, n)).collect();
            all.sort();
            let make = |pid| ("make".to_owned(), Some(pid), 250 * u64::from(k));
            assert_eq!(all, [make(10), make(11)], "since the start");
            assert!(keeper.kept()[0] < 2000, "most of them were put away");
        }
    });
}
