//! Cgroups and processes as trees: what rows have themselves is the line above them, and nothing is lost on the way.

use std::collections::HashMap;

use super::*;
use crate::top::table::Slot;
use crate::top::tree::Parent;
use crate::top::tree::Tree;

const SIZES: [(u16, u16); 5] = [(80, 24), (120, 40), (200, 60), (60, 15), (40, 8)];

fn cgroups(list: &[(&str, u64)]) -> Snapshot {
    let row = |(path, hits): &(&str, u64)| {
        let who = Who { cgroup: Some((*path).into()), ..Who::default() };
        Entry::new(
            By::Cgroup,
            Row { who, figures: fixtures::figures(&reads(*hits, 0, 0)), classic: None, back: None },
            State::Active,
        )
    };
    let all = list.iter().map(|(_, n)| n).sum();
    let mut out = snapshot(Vec::new(), fixtures::figures(&reads(all, 0, 0)));
    out.view.by = By::Cgroup;
    out.entries = Arc::new(list.iter().map(row).collect());
    out
}

/// Name, hits and depth of each row.
fn shown(app: &App) -> Vec<(String, u64, usize)> {
    let row = |(slot, node): (&crate::top::table::Slot, &crate::top::tree::Node)| {
        let (row, _) = app.row(*slot).unwrap();
        let name = row.who.cgroup.as_ref().or(row.who.comm.as_ref()).unwrap().to_string();
        (name, row.figures.get(Figure::Hits).unwrap_or(0), node.lasts.len())
    };
    app.slots.iter().zip(&app.tree.nodes).map(row).collect()
}

fn few() -> Snapshot {
    cgroups(&[
        ("/system.slice/db.service", 500),
        ("/system.slice", 10),
        ("/user.slice/user-1000.slice/app\u{1b}[2J", 40),
        ("/system.slice/db.service/worker", 700),
        ("/", 1),
    ])
}

#[test]
fn cgroups_hang_below_each_other() {
    let mut app = app((100, 30));
    app.settings.by = By::Cgroup;
    app.take(few());
    typed(&mut app, "T");
    let own: Vec<(String, u64, usize)> = [
        ("/", 1, 0),
        ("/system.slice", 10, 1),
        ("/system.slice/db.service", 500, 2),
        ("/system.slice/db.service/worker", 700, 3),
        ("/user.slice", 0, 1),
        ("/user.slice/user-1000.slice", 0, 2),
        ("/user.slice/user-1000.slice/app\\x1b[2J", 40, 3),
    ]
    .map(|(name, hits, depth)| (name.to_owned(), hits, depth))
    .to_vec();
    assert_eq!(shown(&app), own);
    assert_eq!(own.iter().map(|r| r.1).sum::<u64>(), 1251, "the line above them");
    assert!(frame(&mut app).contains("tree, each its own"), "{}", frame(&mut app));
    typed(&mut app, "T");
    let all: Vec<u64> = shown(&app).iter().map(|r| r.1).collect();
    assert_eq!(all, [1251, 1210, 1200, 700, 40, 40, 40]);
    assert!(frame(&mut app).contains("tree, with those below"));
    // What is beside figures since the start, which are its own, is its own.
    let own: Vec<_> = app.slots.iter().map(|slot| app.own_row(*slot)?.figures.get(Figure::Hits)).collect();
    assert_eq!(own, [Some(1), Some(10), Some(500), Some(700), None, None, Some(40)]);
    // One that only holds others leads to its details as well.
    app.input(&key(KeyCode::End));
    app.input(&key(KeyCode::Up));
    let effects = app.input(&key(KeyCode::Enter));
    let Some(Effect::Details(By::Cgroup, _, who)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(who.cgroup.as_ref().unwrap().raw(), "/user.slice/user-1000.slice");
    typed(&mut app, "^T");
    assert_eq!(app.hangs(), Tree::Flat);
    assert_eq!(app.slots.len(), 5);
}

#[test]
fn frames_of_a_tree() {
    for size in SIZES {
        let mut app = app(size);
        app.settings.by = By::Cgroup;
        app.take(few());
        typed(&mut app, "TT");
        app.message = None;
        insta::assert_snapshot!(format!("tree_{}x{}", size.0, size.1), frame(&mut app));
    }
    let mut app = app((80, 24));
    app.settings.by = By::Cgroup;
    app.take(few());
    typed(&mut app, "T");
    assert!(frame_as(&mut app, &Theme { unicode: false, ..Theme::plain() }).is_ascii());
}

#[test]
fn processes_hang_below_their_parents() {
    let mut app = app((100, 30));
    app.take(super::keys::rows(&[(10, 5), (11, 70), (12, 8), (30, 20)]));
    typed(&mut app, "T");
    assert_eq!(app.asks_parents(), [10, 11, 12, 30]);
    assert!(app.asks_parents().is_empty(), "once");
    let parent = |pid: u32, parent: u32, comm: &str| (pid, Parent { parent, comm: comm.into() });
    let known = [
        parent(10, 1, "p"),
        parent(11, 10, "p"),
        parent(12, 11, "p"),
        parent(1, 0, "init"),
        parent(30, 1, "p"),
    ];
    app.parents(HashMap::from(known));
    let order: Vec<_> = app.slots.iter().map(|s| app.row(*s).unwrap().0.who.pid.unwrap()).collect();
    assert_eq!(order, [1, 10, 11, 12, 30]);
    assert!(frame(&mut app).contains("init"), "{}", frame(&mut app));
    // A filter leaves what it takes, and what that hangs on.
    typed(&mut app, "/hits>60~");
    let order: Vec<_> = app.slots.iter().map(|s| app.row(*s).unwrap().0.who.pid.unwrap()).collect();
    assert_eq!(order, [1, 10, 11]);
    // Those that it hangs on have done what they did, whoever is looked for.
    let row = |app: &App| {
        let one = |slot: &Slot| {
            let row = app.row(*slot).unwrap().0;
            (row.figures.get(Figure::Hits).unwrap(), row.who.user.map(|user| user.to_string()))
        };
        app.slots.iter().map(one).collect::<Vec<_>>()
    };
    let me = || Some("me".to_owned());
    assert_eq!(row(&app), [(0, None), (5, me()), (70, me())]);
    assert!(frame(&mut app).contains("1 of 4 processes"), "{}", frame(&mut app));
    typed(&mut app, "T");
    assert_eq!(row(&app), [(103, None), (83, me()), (78, me())]);
    typed(&mut app, "TT");
    typed(&mut app, "^");
    // Processes that are each other's parents (numbers are used again): all rows are there all the same.
    app.parents(HashMap::from([
        parent(10, 11, "p"),
        parent(11, 10, "p"),
        parent(12, 12, "p"),
        parent(30, 0, "p"),
    ]));
    let mut pids: Vec<_> = app.slots.iter().map(|s| app.row(*s).unwrap().0.who.pid.unwrap()).collect();
    pids.sort_unstable();
    assert_eq!(pids, [10, 11, 12, 30]);
}

#[test]
fn however_deep_nothing_is_lost() {
    let mut app = app((100, 30));
    app.settings.by = By::Cgroup;
    let paths: Vec<String> = (1..=300).map(|n| "/x".repeat(n)).collect();
    let list: Vec<_> = paths.iter().map(|p| (p.as_str(), 1)).collect();
    app.take(cgroups(&list));
    typed(&mut app, "T");
    assert_eq!(shown(&app).iter().map(|r| r.1).sum::<u64>(), 300);
    frame(&mut app);
    // As many as there may be.
    let paths: Vec<String> = (0..10_000).map(|n| format!("/a{}/b{n}", n % 100)).collect();
    let list: Vec<_> = paths.iter().map(|p| (p.as_str(), 1)).collect();
    app.take(cgroups(&list));
    assert_eq!(shown(&app).iter().map(|r| r.1).sum::<u64>(), 10_000);
    assert_eq!(app.slots.len(), 10_101);
}

/// Each process of a long line hangs below another one: how they are called is read, however deep they are.
#[test]
fn names_are_read_however_deep() {
    let deep: Vec<_> = (1..=60).map(|pid| process(pid, "worker", &reads(1, 0, 0))).collect();
    let parent = |pid: u32| (pid, Parent { parent: pid - 1, comm: "worker".into() });
    for size in [(80, 24), (120, 40)] {
        let mut app = app(size);
        app.take(snapshot(deep.clone(), fixtures::busy().total));
        typed(&mut app, "T");
        app.parents((1..=60).map(parent).collect());
        app.input(&key(KeyCode::End));
        let text = frame(&mut app);
        assert_eq!(app.tree.nodes.last().unwrap().lasts.len(), 59);
        assert!(text.lines().filter(|l| l.contains("worker")).count() >= 8, "{text}");
    }
}
