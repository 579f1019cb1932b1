#![allow(clippy::unwrap_used)]

use std::rc::Rc;

use super::*;
use crate::blame::Row as Who;
use crate::cgroup::Cgroup;
use crate::files::Dev;
use crate::files::Mounts;

#[derive(Default)]
struct Groups(Mounts);

impl Names for Groups {
    fn user(&mut self, _: u32) -> Option<Rc<str>> {
        None
    }
    fn cgroup(&mut self, id: u64, _: u32) -> Rc<Cgroup> {
        // Two have the same name, as one that went and came has; one has a name that acts.
        let path = match id {
            9 => "/evil\x1b[2J".into(),
            7 | 8 => "/twice".into(),
            _ => format!("/g{id}"),
        };
        Rc::new(Cgroup { path, label: crate::cgroup::Label::default() })
    }
    fn mounts(&mut self, _: Dev) -> &mut Mounts {
        &mut self.0
    }
    fn mounts_now(&mut self) -> &Mounts {
        unreachable!()
    }
    fn command_line(&mut self, _: u32) -> Option<Foreign> {
        None
    }
}

const ALL: Sees = Sees { comes: true, waits: true };
const NONE: Sees = Sees { comes: false, waits: false };

/// How, by which cgroup, whose, in which run, by itself.
fn row(how: How, by: u64, owner: u64, (run, own): (u32, bool), n: (u64, u64, u64)) -> (Evictor, Counts) {
    let process = if by == 0 { Vec::new() } else { b"tar\x1b".to_vec() };
    let who = Some(Who { limit: 0, by, owner, process, run, own });
    (
        Evictor { how, who },
        Counts { out: n.0, back: n.1, again: n.2, waited_ns: 500_000_000, ..Counts::default() },
    )
}

fn bill() -> Bill {
    let rows = vec![
        row(How::Dontneed, 9, 3, (2, false), (1000, 600, 500)),
        row(How::Dontneed, 7, 3, (2, false), (900, 10, 0)),
        row(How::Limit, 8, 8, (2, true), (700, 50, 40)),
        row(How::Kswapd, 0, 3, (2, false), (300, 20, 20)),
        row(How::Dropped, 1, 3, (1, false), (5000, 5000, 4000)),
        (Evictor { how: How::Direct, who: None }, Counts { out: 11, back: 5, again: 5, ..Counts::default() }),
    ];
    Bill { rows, forgotten: 4, strangers: 1, ..Bill::default() }
}

#[test]
fn what_concerns_the_run() {
    let pushed = Pushed::new(&bill(), 2, ALL, &mut Groups::default());
    let told: Vec<_> = pushed.rows.iter().map(|r| (r.how.unwrap(), r.own, r.again_pages.unwrap())).collect();
    // Not what left before it, nor what others took and it did not miss.
    assert_eq!(told, [("dontneed", false, 500), ("limit", true, 40), ("kswapd", false, 20)]);
    assert_eq!(pushed.again_pages, Some(560));
    assert_eq!((pushed.own_out_pages, pushed.own_back_pages), (700, Some(50)));
    // What has no row may have left before: it is in no sum.
    assert_eq!((pushed.unknown_pages, pushed.forgotten_pages), (11, 4));
    assert_eq!(pushed.rows[2].by, By::default());
    let json = serde_json::to_string(&pushed).unwrap();
    assert!(!json.contains('\x1b') && json.contains("/evil"), "{json}");
}

#[test]
fn what_is_not_seen_is_not_known() {
    let pushed = Pushed::new(&bill(), 2, NONE, &mut Groups::default());
    assert_eq!((pushed.again_pages, pushed.own_back_pages), (None, None));
    assert!(pushed.rows.iter().all(|r| r.back_pages.is_none() && r.again_pages.is_none()));
    assert_eq!(pushed.again(|_| true), None);
    assert_eq!(pushed.own_out_pages, 700);
}

#[test]
fn ten_thousand_rows_are_a_hundred_and_the_rest() {
    let rows =
        (0..10_000u64).map(|i| row(How::Direct, i + 1, i + 2, (1, i % 2 == 0), (i + 10, 5, 1 + i % 3)));
    let bill = Bill { rows: rows.collect(), ..Bill::default() };
    let pushed = Pushed::new(&bill, 1, ALL, &mut Groups::default());
    assert_eq!(pushed.rows.len(), ROWS + 2);
    assert_eq!(pushed.rows.iter().filter(|r| r.other).count(), 2);
    assert_eq!(pushed.rows.iter().map(|r| r.again_pages).sum::<Option<u64>>(), pushed.again_pages);
    assert_eq!(pushed.again_pages, Some(bill.rows.iter().map(|(_, n)| n.again).sum()));
    let own = |of: fn(&Row) -> u64| pushed.rows.iter().filter(|r| r.own).map(of).sum::<u64>();
    assert_eq!(own(|r| r.out_pages), pushed.own_out_pages);
    assert_eq!(Some(own(|r| r.back_pages.unwrap())), pushed.own_back_pages);
}

/// Files of those who are in rows; what had no room is the last, and all of them are what the rows say.
#[test]
fn files_are_together_what_the_rows_say() {
    let mut bill = bill();
    let who = bill.rows[0].0.clone();
    let file = |n: u64| crate::files::File {
        dev: Dev { major: 8, minor: 1 },
        inode: n,
        generation: 0,
        block: None,
        name: format!("/f{n}\x1b"),
        named: crate::files::Named::Whole,
    };
    let reader = |file, own, process: &str| crate::blame::Reader {
        number: 20,
        file,
        by: 4,
        process: process.into(),
        own,
    };
    let came = |back| crate::blame::Came { back, waits: 1, waited_ns: 250_000_000, ..Default::default() };
    bill.details = crate::blame::Details {
        numbers: [(20, who)].into(),
        files: (0..200).map(|n| (n, file(n))).collect(),
        shares: (0..200).map(|n| ((20, n), 4)).collect(),
        readers: [
            (reader(3, true, "me"), came(4)),
            (reader(3, false, "else"), came(2)),
            (reader(150, true, "me"), came(3)),
        ]
        .into(),
        untimed: 0,
    };
    let pushed = Pushed::new(&bill, 2, ALL, &mut Groups::default());
    assert_eq!(pushed.files.len(), FILES + 1);
    let first = &pushed.files[0];
    assert_eq!(first.path.as_ref().unwrap().raw(), "[8:1]/f3\x1b");
    assert_eq!((first.out_pages, first.again_pages, first.waited_s), (4, Some(4), Some(0.25)));
    assert_eq!(pushed.files[1].again_pages, Some(3));
    let sum = |of: fn(&FileRow) -> u64| pushed.files.iter().map(of).sum::<u64>();
    assert_eq!(sum(|f| f.out_pages), pushed.rows.iter().map(|r| r.out_pages).sum::<u64>());
    assert_eq!(Some(sum(|f| f.again_pages.unwrap())), pushed.again_pages);
    assert!(pushed.files.last().unwrap().other);
    let unknown = Pushed::new(&bill, 2, NONE, &mut Groups::default());
    assert!(unknown.files.iter().all(|f| f.again_pages.is_none() && f.waited_s.is_none()));
}
