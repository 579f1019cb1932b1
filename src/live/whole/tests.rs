use std::time::Duration;

use super::*;
use crate::sample::Counter;
use crate::view::fixtures;

fn whole(room: Room, alive: impl Fn(u32) -> bool, ticks: &[&[RowSample]]) -> Whole {
    let start = crate::sample::Moment::now();
    let sample = |rows: &[RowSample]| Sample {
        rows: rows.to_vec(),
        ..fixtures::sample(start, Duration::from_secs(1), &[])
    };
    let (filter, mut names) = (Filter::default(), fixtures::FakeNames::default());
    let mut whole = Whole::with_room(&sample(&[]), &filter, room);
    for rows in ticks {
        whole.add(&sample(rows), &filter, &mut names, &alive);
    }
    whole
}

fn row(pid: u32, n: u64) -> RowSample {
    fixtures::process(pid, if pid % 2 == 0 { "even" } else { "odd" }, &[(Counter::ReadHits, n)])
}

fn hits(w: &Whole) -> Vec<(u32, u64)> {
    w.sum.rows.iter().map(|r| (r.tgid, r.counters.get(Counter::ReadHits))).collect()
}

fn folded(w: &Whole) -> Vec<(By, String, u64)> {
    let row = |f: &crate::sample::Folded<RowSample>| {
        let name = match f.by {
            By::Comm => f.row.process.name().into_owned(),
            By::Process => f.row.tgid.to_string(),
            By::User => f.row.uid.to_string(),
            _ => f.row.cgroup.to_string(),
        };
        (f.by, name, f.row.counters.get(Counter::ReadHits))
    };
    w.sum.folded.threads.iter().map(row).collect()
}

#[test]
fn processes_that_have_ended_count_on_by_name_user_and_cgroup() {
    let room = Room { few: 4, ..Room::default() };
    let ticks: [&[RowSample]; 5] =
        [&[row(1, 5), row(2, 7)], &[row(2, 1)], &[], &[row(3, 9)], &[row(4, 1), row(5, 6)]];
    let w = whole(room, |pid| pid >= 4, &ticks);
    // 3 may have a last word; 1 is the least busy of the others.
    assert_eq!(hits(&w), [(3, 9), (4, 1), (5, 6)]);
    // Of nobody any more: as processes they stand together by name and cgroup.
    let expected = [
        (By::Comm, "odd", 5),
        (By::User, "1000", 13),
        (By::Cgroup, "1", 13),
        (By::Process, "0", 5),
        (By::Comm, "even", 8),
        (By::Process, "0", 8),
    ];
    assert_eq!(folded(&w), expected.map(|(by, name, n)| (by, name.to_owned(), n)));
}

#[test]
fn threads_of_the_living_go_last_and_do_not_come_back() {
    let room = Room { few: 2, rows: 4, folded: 100 };
    let ticks: [&[RowSample]; 2] =
        [&[row(1, 1), row(2, 20), row(3, 30), row(4, 40), row(5, 50)], &[row(1, 1000), row(5, 1)]];
    let w = whole(room, |_| true, &ticks);
    assert_eq!(hits(&w), [(3, 30), (4, 40), (5, 51)]);
    let of = |by, name: &str| folded(&w).into_iter().find(|(b, n, _)| *b == by && n == name).map(|f| f.2);
    assert_eq!(of(By::Process, "1"), Some(1001), "a process that lives keeps its row");
    assert_eq!((of(By::Process, "2"), of(By::Comm, "odd")), (Some(20), Some(1001)));
}

#[test]
fn what_one_cgroup_did_stays_its_own() {
    let row = |cgroup, n| RowSample { cgroup, ..row(1, n) };
    let ticks: [&[RowSample]; 4] = [&[row(5, 3090)], &[row(6, 300)], &[row(5, 1)], &[row(6, 9)]];
    let w = whole(Room::default(), |_| true, &ticks);
    let rows = w.sum.rows.iter().map(|r| (r.cgroup, r.counters.get(Counter::ReadHits)));
    assert_eq!(rows.collect::<Vec<_>>(), [(5, 3091), (6, 309)]);
}

#[test]
fn who_has_the_id_of_one_that_has_ended_begins_at_nothing() {
    let began = |at: u64, row: RowSample| RowSample {
        family: Some(Family { begun: at, parent: 1, parent_begun: 0, parent_name: "init".into() }),
        ..row
    };
    let named = |name: &str, n| fixtures::process(7, name, &[(Counter::ReadHits, n)]);
    let other = || began(5, row(9, 1));
    // The same name or another one, in a later interval or in the same one, whichever row comes first.
    let later: [&[RowSample]; 2] =
        [&[began(10, named("a", 1000)), other()], &[began(90, named("b", 10)), other()]];
    let same: [&[RowSample]; 1] =
        [&[began(90, named("b", 10)), other(), began(10, named("a", 1000)), other()]];
    let alike: [&[RowSample]; 2] =
        [&[began(10, named("a", 1000)), other()], &[began(90, named("a", 10)), other()]];
    for ticks in [&later[..], &same, &alike] {
        let w = whole(Room::default(), |_| true, ticks);
        let mut rows = hits(&w);
        rows.sort_unstable();
        assert_eq!(rows, [(7, 10), (9, 2)]);
        assert!(folded(&w).contains(&(By::Process, "0".into(), 1000)), "{:?}", folded(&w));
        assert!(folded(&w).contains(&(By::Comm, "a".into(), 1000)), "{:?}", folded(&w));
    }
    // A late word of the first one leaves the second what it has.
    let late: [&[RowSample]; 2] = [&[began(90, named("b", 10))], &[began(10, named("a", 1)), other()]];
    let w = whole(Room::default(), |_| true, &late);
    assert_eq!(hits(&w), [(7, 10), (7, 1), (9, 1)]);
    // Also what it had counted in rows that had to go.
    let little = Room { few: 2, rows: 4, folded: 100 };
    let busy: Vec<_> = (20..26).map(|pid| row(pid, 500)).collect();
    let full = [&[began(10, named("a", 7))], &busy[..]].concat();
    let w = whole(little, |_| true, &[&full, &[began(90, named("b", 10))]]);
    let of_seven: u64 = folded(&w).iter().filter(|f| (f.0, &*f.1) == (By::Process, "7")).map(|f| f.2).sum();
    assert_eq!(
        of_seven + hits(&w).iter().filter(|r| r.0 == 7).map(|r| r.1).sum::<u64>(),
        10,
        "{:?}",
        folded(&w)
    );
}
