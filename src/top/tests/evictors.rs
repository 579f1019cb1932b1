//! Rows of those who push pages out: what they add up to, in the interval, since the start and of the minutes before,
//! and how they look.

use std::time::Duration;

use super::*;
use crate::blame::Counts;
use crate::blame::Evictor;
use crate::blame::How;
use crate::blame::Raw;
use crate::blame::Row as Whose;
use crate::live::keeper::Keeper;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::plan::Attach;
use crate::plan::Event;
use crate::plan::Hook;
use crate::plan::Plan;
use crate::plan::Why;
use crate::sample::Moment;
use crate::sample::Sample;

const VIEW: View = View { by: By::Evictor, show: Show::Count, threads: false, ended: Ended::Unasked };

fn plan() -> Plan {
    let hook = |event| Hook { event, program: "any", attach: Attach::Tick, why: Why::Tick };
    Plan { hooks: [Event::PageBack, Event::RefaultOf].map(hook).into(), ..fixtures::plan(&[]) }
}

fn evictor(how: How, by: u64, process: &[u8]) -> Evictor {
    Evictor { how, who: Some(Whose { limit: 0, by, owner: 1, process: process.into(), run: 0, own: false }) }
}

/// After so many seconds, with pages of these evictors since the start: out, back, refaulted.
fn sample(start: Moment, second: u64, rows: &[(Evictor, [u64; 3])]) -> Sample {
    let mut out = fixtures::sample(start, Duration::from_secs(second), &[]);
    let counts = |n: &[u64; 3]| Counts { out: n[0], back: n[1], refaulted: n[2], ..Counts::default() };
    let rows = rows.iter().map(|(who, n)| (who.clone(), counts(n))).collect();
    out.evictors = Some(Arc::new(Raw { rows, strangers: second, ..Raw::default() }));
    out
}

fn samples() -> Vec<Sample> {
    let start = Moment::now();
    let (tar, kswapd) = (evictor(How::Dontneed, 7, b"tar"), evictor(How::Kswapd, 0, b""));
    let nobody = Evictor { how: How::Limit, who: None };
    vec![
        sample(start, 0, &[(tar.clone(), [10, 0, 0])]),
        sample(start, 1, &[(tar.clone(), [110, 5, 0]), (kswapd.clone(), [40, 0, 0])]),
        sample(start, 2, &[(tar, [110, 35, 2]), (kswapd, [41, 1, 1]), (nobody, [7, 3, 0])]),
    ]
}

fn sums(snapshot: &Snapshot) -> [Option<u64>; 4] {
    let rows: Vec<Row> = snapshot.entries.iter().map(|e| snapshot.row(e)).collect();
    let of = |figure| rows.iter().map(|row| row.figures.get(figure)).sum();
    let back = rows.iter().map(|row| row.back).sum();
    [of(Figure::Evicted), of(Figure::Removed), of(Figure::Refaulted), back]
}

fn line(snapshot: &Snapshot) -> [Option<u64>; 4] {
    let of = |figure| snapshot.system.total.get(figure);
    [of(Figure::Evicted), of(Figure::Removed), of(Figure::Refaulted), snapshot.system.back]
}

#[test]
fn rows_are_the_line_above_them_now_before_and_since_the_start() {
    let mut source = fixtures::Made(samples().into(), plan());
    let names = Box::<fixtures::FakeNames>::default();
    let pivot = Pivot { by: None, top: 10, filter: Filter::default(), names };
    let keeper = Keeper::new(&mut source, pivot, true, Box::new(|_| true)).unwrap();
    let mut keeper = keeper.with_past(None).without_lingering();
    let first = keeper.tick(VIEW).unwrap();
    // What the kernel says was evicted by nobody knows whom is in the row for the rest.
    assert_eq!(line(&first), [Some(40), Some(100), Some(1), Some(5)]);
    assert_eq!(sums(&first), line(&first));
    assert_eq!(first.rows(), 2);
    let second = keeper.tick(VIEW).unwrap();
    assert_eq!(line(&second), [Some(8), Some(0), Some(4), Some(34)]);
    assert_eq!(sums(&second), line(&second));
    // What came back only has a row, and what found no room is the rest.
    let tar = second.entries.iter().find(|e| e.named.who.how == Some("dontneed")).unwrap();
    assert_eq!(second.row(tar).back, Some(30));
    assert!(second.entries.iter().any(|e| e.named.who.other && second.row(e).back == Some(3)));
    let total = keeper.again(View { show: Show::Total, ..VIEW });
    assert_eq!(sums(&total), [Some(48), Some(100), Some(5), Some(39)]);
    keeper.look_back(Some(1));
    let before = keeper.again(VIEW);
    assert_eq!((sums(&before), line(&before)), (sums(&first), line(&first)));
    // Other rows of the same interval know nothing of it.
    let processes = keeper.again(super::VIEW);
    assert_eq!((processes.system.back, processes.entries.len()), (None, 0));
}

/// Of the minutes before, those that pushed out most; the others are in the row for the rest, with all that they did.
#[test]
fn of_many_the_largest_are_kept() {
    let start = Moment::now();
    let rows: Vec<_> =
        (0..500u64).map(|n| (evictor(How::Dontneed, n + 1, b"tar"), [1000 - n, n, 0])).collect();
    let samples = vec![sample(start, 0, &[]), sample(start, 1, &rows)];
    let mut source = fixtures::Made(samples.into(), plan());
    let names = Box::<fixtures::FakeNames>::default();
    let pivot = Pivot { by: None, top: 10, filter: Filter::default(), names };
    let keeper = Keeper::new(&mut source, pivot, true, Box::new(|_| true)).unwrap();
    let mut keeper = keeper.with_past(None);
    let now = keeper.tick(VIEW).unwrap();
    assert_eq!((sums(&now), now.rows()), (line(&now), 500));
    keeper.look_back(Some(1));
    let before = keeper.again(VIEW);
    assert_eq!((sums(&before), line(&before)), (sums(&now), line(&now)));
    assert_eq!(before.rows(), 128);
}

fn pushed(
    how: &'static str,
    owner: &str,
    process: Option<&str>,
    figures: &[(Figure, u64)],
    back: u64,
) -> Row {
    let cgroup = process.map(|_| "/backup.service".into());
    let comm = process.map(Into::into);
    let who = Who { how: Some(how), owner: Some(owner.into()), cgroup, comm, ..Who::default() };
    Row { who, figures: fixtures::figures(figures), classic: None, back: Some(back) }
}

fn shown(size: (u16, u16)) -> App {
    let mut app = app(size);
    (app.scene.evictors, app.settings.by) = (true, By::Evictor);
    let rows = vec![
        pushed("dontneed", "/evil\x1b[2J", Some("t\x1br"), &[(Figure::Removed, 12_288)], 10_240),
        pushed("kswapd", "/postgres.service", None, &[(Figure::Evicted, 512), (Figure::Refaulted, 3)], 3),
    ];
    let mut all = snapshot(Vec::new(), fixtures::busy().total);
    all.entries = Arc::new(rows.into_iter().map(|row| Entry::new(By::Evictor, row, State::Active)).collect());
    all.view = VIEW;
    app.take(all);
    app
}

#[test]
fn how_they_look() {
    for size in [(80, 24), (120, 40)] {
        let mut app = shown(size);
        let text = frame(&mut app);
        assert!(!text.contains('\x1b'), "{text}");
        insta::assert_snapshot!(format!("evictors_{}x{}", size.0, size.1), text);
        // Of such a row, more is told by --blame.
        typed(&mut app, "j~");
        let text = frame(&mut app);
        assert!(
            !text.contains('\x1b') && text.contains("how           dontneed: POSIX_FADV_DONTNEED"),
            "{text}"
        );
        assert!(
            text.contains("whose         /evil\\x1b[2J") && text.contains("process       t\\x1br"),
            "{text}"
        );
    }
    let mut app = shown((80, 24));
    typed(&mut app, "/kswapd~");
    assert_eq!(app.slots.len(), 1);
    typed(&mut app, "^/out>1000~");
    assert_eq!(app.slots.len(), 1);
    assert!(frame(&mut app).contains("12288"));
}

#[test]
fn they_are_there_where_they_are_counted() {
    let mut app = app((80, 24));
    app.take(snapshot(Vec::new(), fixtures::busy().total));
    assert!(typed(&mut app, "9").is_empty());
    assert!(frame(&mut app).contains("started with --by evictor"));
    assert!(!app.pivots().contains(&By::Evictor));
    app.scene.evictors = true;
    assert!(typed(&mut app, "9").contains(&Effect::View(View { ended: Ended::Command, ..VIEW })));
    assert_eq!(app.pivots().last(), Some(&By::Evictor));
}
