//! Rows of evictors, and the line above them.
#![allow(clippy::unwrap_used)]

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::blame::Raw;
use crate::cgroup::Cgroup;
use crate::files::Dev;
use crate::files::Mounts;
use crate::names::Recorded;
use crate::pivot;
use crate::pivot::By;
use crate::pivot::Pivot;
use crate::sample::Counter;
use crate::sample::Moment;
use crate::view::fixtures;

fn row(how: How, by: u64, run: u32, own: bool, counts: Counts) -> (Evictor, Counts) {
    let process = if how == How::Kswapd { Vec::new() } else { b"tar".to_vec() };
    (Evictor { how, who: Some(Whose { limit: 0, by, owner: 9, process, run, own }) }, counts)
}

fn out(out: u64) -> Counts {
    Counts { out, ..Counts::default() }
}

fn plain() -> (Sample, Sample) {
    let start = Moment::now();
    let second = Duration::from_secs(1);
    let before = fixtures::sample(start, second, &[(Counter::ReadHits, 5)]);
    (before, fixtures::sample(start, second * 2, &[(Counter::ReadHits, 12)]))
}

fn samples() -> (Sample, Sample) {
    let (mut before, mut now) = plain();
    let first = vec![row(How::Direct, 5, 0, false, out(10))];
    before.evictors = Some(Arc::new(Raw { rows: first, strangers: 1, ..Raw::default() }));
    let rows = vec![
        row(How::Direct, 5, 0, false, Counts { out: 110, refaulted: 7, again: 1, ..Counts::default() }),
        // The same in another run: one row.
        row(How::Direct, 5, 1, true, out(20)),
        row(How::Kswapd, 0, 0, false, out(50)),
        row(How::Dontneed, 6, 0, true, out(30)),
        (Evictor { how: How::Limit, who: None }, out(3)),
    ];
    now.evictors = Some(Arc::new(Raw { rows, strangers: 4, ..Raw::default() }));
    (before, now)
}

fn pivot(top: usize, filter: pivot::Filter) -> Pivot {
    Pivot { by: Some(By::Evictor), top, filter, names: Box::<Recorded>::default() }
}

#[test]
fn rows_are_together_the_line_above_them() {
    let (before, now) = samples();
    let plan = fixtures::plan(&[]);
    for top in [1, 2, 10] {
        let interval = pivot(top, pivot::Filter::default()).interval(&before, &now, &plan);
        let line = [Figure::Evicted, Figure::Removed].map(|f| interval.total.get(f));
        assert_eq!((line[0], line[1]), (Some(173), Some(30)));
        // Of this plan no hook says what is read back in of whom: rows do not have it.
        for figure in [Figure::Evicted, Figure::Removed] {
            let sum: Option<u64> = interval.rows.iter().map(|r| r.figures.get(figure)).sum();
            assert_eq!(sum, interval.total.get(figure), "{figure:?} {top}");
        }
        assert_eq!(interval.groups, 3);
        assert!(interval.rows.iter().all(|row| row.figures.get(Figure::Refaulted).is_none()));
        assert!(interval.rows.last().unwrap().who.other, "what had no room is in none by name");
        assert_eq!(interval.rows[0].figures.get(Figure::Evicted), Some(120));
        // What they read themselves is not known by evictor, the line has it all the same.
        assert_eq!(interval.rows[0].figures.get(Figure::Hits), None);
        assert_eq!(interval.total.get(Figure::Hits), Some(7));
    }
}

/// What was asked for pushed it out, or brought it in again.
#[test]
fn a_filter_leaves_what_concerns_those() {
    let (before, now) = samples();
    let filter = pivot::Filter { pids: vec![1], decided: true, ..pivot::Filter::default() };
    let interval = pivot(10, filter).interval(&before, &now, &fixtures::plan(&[]));
    let all: Vec<_> = interval.rows.iter().map(|r| (r.who.how, r.figures.get(Figure::Evicted))).collect();
    assert_eq!(all, [(Some("direct"), Some(120)), (Some("dontneed"), Some(0))]);
    // Some found no room, and may be theirs.
    let sums = [Figure::Evicted, Figure::Removed, Figure::Refaulted].map(|figure| interval.total.get(figure));
    assert_eq!((sums, interval.back), ([None; 3], None));
}

#[test]
fn with_room_for_all_the_line_of_a_filter_is_known() {
    let (before, mut now) = samples();
    let mut raw = Raw::clone(now.evictors.as_deref().unwrap());
    raw.rows.retain(|(evictor, _)| evictor.who.is_some());
    now.evictors = Some(Arc::new(raw));
    let filter = pivot::Filter { pids: vec![1], decided: true, ..pivot::Filter::default() };
    let interval = pivot(10, filter).interval(&before, &now, &fixtures::plan(&[]));
    assert_eq!(interval.total.get(Figure::Evicted), Some(120));
    assert_eq!(interval.total.get(Figure::Removed), Some(30));
}

/// Where nobody counts them there are no rows, and nothing is claimed.
#[test]
fn without_counts_nothing_is_known() {
    let (before, now) = plain();
    let interval = pivot(10, pivot::Filter::default()).interval(&before, &now, &fixtures::plan(&[]));
    assert!(interval.rows.is_empty());
}

/// A service that was started anew: two cgroups of one name.
#[derive(Default)]
struct Anew(Mounts);

impl Names for Anew {
    fn user(&mut self, _: u32) -> Option<Rc<str>> {
        None
    }
    fn cgroup(&mut self, id: u64, _: u32) -> Rc<Cgroup> {
        let path = if matches!(id, 5 | 6) { "/web".into() } else { format!("/g{id}") };
        Rc::new(Cgroup { path, label: crate::cgroup::Label::default() })
    }
    fn mounts(&mut self, _: Dev) -> &mut Mounts {
        &mut self.0
    }
    fn mounts_now(&mut self) -> &Mounts {
        &self.0
    }
    fn command_line(&mut self, _: u32) -> Option<Foreign> {
        None
    }
}

#[test]
fn cgroups_of_the_same_name_are_one_row() {
    let (mut before, mut now) = plain();
    before.evictors = Some(Arc::new(Raw::default()));
    let rows = vec![
        row(How::Limit, 7, 0, false, out(50)),
        row(How::Limit, 5, 0, false, Counts { back: 1, ..out(40) }),
        row(How::Limit, 6, 0, false, Counts { back: 2, ..out(30) }),
        row(How::Direct, 6, 0, false, out(5)),
    ];
    now.evictors = Some(Arc::new(Raw { rows, ..Raw::default() }));
    let mut pivot = pivot(10, pivot::Filter::default());
    pivot.names = Box::<Anew>::default();
    let interval = pivot.interval(&before, &now, &fixtures::plan(&[]));
    let all: Vec<_> = interval.rows.iter().map(|r| (r.who.how, r.figures.get(Figure::Evicted))).collect();
    assert_eq!(all, [(Some("limit"), Some(70)), (Some("limit"), Some(50)), (Some("direct"), Some(5))]);
    assert_eq!(interval.groups, 3);
}
