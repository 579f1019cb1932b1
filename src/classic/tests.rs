#![allow(clippy::unwrap_used)]

mod plans;
mod views;

use super::*;
use crate::figures::Figure;
use crate::plan::Engine;
use crate::sample;
use crate::view::fixtures;

/// A process of the classic table.
fn process(tgid: u32, comm: &str, counts: [u64; 4]) -> (u32, ProcessSample) {
    (tgid, ProcessSample { tgid, uid: 1000, comm: comm.into(), counts: counted(counts) })
}

fn counted([added, accessed, dirtied, buffers]: [u64; 4]) -> Counts {
    Counts([added, accessed, dirtied, buffers, 0])
}

fn sample(seconds: u64, known: [bool; 4], total: [u64; 4], rows: &[(u32, ProcessSample)]) -> sample::Sample {
    let start = crate::sample::Moment::now();
    let mut out = fixtures::sample(start, std::time::Duration::from_secs(seconds), &[]);
    let processes = rows.iter().cloned().collect();
    out.classic = Some(Sample { known: Known(known), total: counted(total), processes });
    out
}

const ALL: [bool; 4] = [true; 4];

#[test]
fn the_arithmetic_is_bccs_but_for_the_clamps() {
    for (what, counts, total, misses, hits) in [
        ("a cold read", [8192, 8192, 0, 0], 8192, 8192, 0),
        ("a warm read", [0, 8192, 0, 0], 8192, 0, 8192),
        ("a new file", [8192, 8192, 8192, 8192], 0, 0, 0),
        ("a cached file overwritten", [0, 8192, 8192, 8192], 0, -8192, 8192),
        ("a warm read beside a new file on xfs", [8192, 16384, 8192, 0], 16384, 0, 16384),
        ("buffers without pages", [0, 0, 0, 5], -5, 0, -5),
        ("nothing", [0; 4], 0, 0, 0),
    ] {
        let f = Figures::from_counts(counts.map(Some));
        assert_eq!((f.total(), f.misses(), f.hits()), (Some(total), Some(misses), Some(hits)), "{what}");
        assert_eq!(f.hit_ratio().is_some(), total > 0, "{what}");
    }
    assert_eq!(Figures::from_counts([Some(u64::MAX), None, Some(0), None]).misses(), Some(i64::MAX));
}

#[test]
fn what_has_no_hook_is_unknown_and_so_is_what_is_made_of_it() {
    let f = Figures::from_counts([Some(5), None, Some(2), Some(1)]);
    assert_eq!((f.misses(), f.total(), f.hits(), f.hit_ratio()), (Some(3), None, None, None));
    assert_eq!(f.nothing(), Figures::from_counts([Some(0), None, Some(0), Some(0)]));
    let g = Figures::from_counts([Some(1), Some(1), None, Some(1)]);
    assert_eq!(f.and(&g), Figures::from_counts([Some(6), None, None, Some(2)]));
}

#[test]
fn an_interval_of_the_classic_engine_alone() {
    let before = sample(0, ALL, [10, 10, 0, 7], &[process(7, "seven", [10, 10, 0, 0])]);
    let rows = [process(7, "seven", [10, 15, 0, 0]), process(8, "eight", [0, 20, 0, 3])];
    let now = sample(1, ALL, [10, 40, 0, 10], &rows);
    let i = crate::pivot::interval(&before, &now, &crate::plan::Plan::none(Engine::Classic));
    assert_eq!(i.engine, "classic");
    assert_eq!(i.classic, Some(Figures::from_counts([Some(0), Some(30), Some(0), Some(3)])));
    let rows: Vec<_> = i.rows.iter().map(|r| (r.who.pid.unwrap(), r.classic.unwrap().hits())).collect();
    assert_eq!(rows, [(8, Some(17)), (7, Some(5))], "the busiest first");
    // What both engines count alike is given under its name of the contract; the rest is unknown.
    assert_eq!(i.total.get(Figure::BufferDirtied), Some(3));
    assert_eq!(i.rows[0].figures.get(Figure::BufferDirtied), Some(3));
    let others = Figure::ALL.iter().filter(|f| **f != Figure::BufferDirtied);
    assert!(others.clone().all(|f| i.total.get(*f).is_none()));
    assert!(i.rows.iter().all(|r| others.clone().all(|f| r.figures.get(*f).is_none())));
}

#[test]
fn rows_of_both_engines_are_joined_by_process() {
    let counter = sample::Counter::ReadHits;
    let before = sample(0, ALL, [0; 4], &[]);
    let mut now =
        sample(1, ALL, [0, 9, 0, 0], &[process(7, "seven", [0, 4, 0, 0]), process(9, "nine", [0, 5, 0, 0])]);
    now.rows =
        [fixtures::process(7, "seven", &[(counter, 3)]), fixtures::process(8, "eight", &[(counter, 30)])]
            .into();
    let plan = crate::plan::Plan { engine: Engine::Both, ..fixtures::plan(&[]) };
    let i = crate::pivot::interval(&before, &now, &plan);
    let rows: Vec<_> = i
        .rows
        .iter()
        .map(|r| {
            (r.who.pid.unwrap(), r.figures.get(Figure::Hits).unwrap(), r.classic.unwrap().hits().unwrap())
        })
        .collect();
    assert_eq!(rows, [(8, 30, 0), (7, 3, 4), (9, 0, 5)]);
    assert_eq!((i.engine, i.rows[2].figures.get(Figure::Evicted)), ("both", None));
}

#[test]
fn rows_of_commands_stay_where_processes_are_chosen() {
    use crate::pivot::By;
    use crate::pivot::Filter;
    use crate::pivot::Pivot;

    let hits = sample::Counter::ReadHits;
    let before = sample(0, ALL, [0; 4], &[]);
    let mut now =
        sample(1, ALL, [0, 9, 0, 0], &[process(7, "seven", [0, 4, 0, 0]), process(9, "nine", [0, 5, 0, 0])]);
    now.total.0[hits as usize] = 33;
    now.rows =
        [fixtures::process(7, "seven", &[(hits, 3)]), fixtures::process(8, "eight", &[(hits, 30)])].into();
    let plan = crate::plan::Plan { engine: Engine::Both, ..fixtures::plan(&[]) };
    for by in [By::Comm, By::User, By::Process] {
        let filter = Filter { pids: vec![7], ..Filter::default() };
        let names = Box::<crate::names::Recorded>::default();
        let i = Pivot { by: Some(by), top: 10, filter, names }.interval(&before, &now, &plan);
        let rows: Vec<_> = i.rows.iter().map(|r| r.figures.get(Figure::Hits)).collect();
        assert_eq!((rows, i.groups, i.total.get(Figure::Hits)), (vec![Some(3)], 1, Some(3)), "{by:?}");
    }
}

#[test]
fn a_process_id_used_again_counts_from_zero() {
    let before = sample(0, ALL, [0, 100, 0, 0], &[process(7, "old", [0, 100, 0, 0])]);
    let now = sample(1, ALL, [0, 103, 0, 0], &[process(7, "new", [0, 3, 0, 0])]);
    let i = crate::pivot::interval(&before, &now, &crate::plan::Plan::none(Engine::Classic));
    assert_eq!(i.rows[0].classic.unwrap().hits(), Some(3));
}
