//! The bill as it is shown.
#![allow(clippy::unwrap_used)]

use std::rc::Rc;

use serde_json::Value;

use super::super::Came;
use super::super::Details;
use super::super::Raw;
use super::super::Reader;
use super::*;
use crate::cgroup::Cgroup;
use crate::files::Dev;
use crate::files::File;
use crate::files::Mounts;
use crate::files::Named;

#[derive(Default)]
struct Fake(Mounts);

impl Names for Fake {
    fn user(&mut self, _: u32) -> Option<Rc<str>> {
        None
    }
    fn cgroup(&mut self, id: u64, _: u32) -> Rc<Cgroup> {
        let path = if id == 9 { "/evil\x1b[2J".into() } else { format!("/g{id}") };
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

fn row(how: How, by: u64, owner: u64, out: u64, back: u64) -> (Evictor, Counts) {
    let process = if by == 0 { Vec::new() } else { b"tar\x1b".to_vec() };
    let limit = if how == How::Limit { by } else { 0 };
    let who = Some(Row { limit, by, owner, process, run: 0, own: false });
    (Evictor { how, who }, Counts { out, back, refaulted: back, again: 0, ..Counts::default() })
}

fn bill() -> Bill {
    let before =
        Raw { rows: vec![row(How::Direct, 1, 9, 100, 50)], forgotten: 1, strangers: 2, ..Raw::default() };
    let now = Raw {
        rows: vec![
            row(How::Kswapd, 0, 3, 256, 0),
            row(How::Direct, 1, 9, 1124, 306),
            row(How::Limit, 1, 1, 10, 0),
            row(How::Deleted, 1, 3, 5, 0),
            (Evictor { how: How::Dropped, who: None }, Counts { out: 1, ..Counts::default() }),
        ],
        forgotten: 1,
        strangers: 9,
        ..Raw::default()
    };
    Bill::between(&before, &now)
}

fn shown<'a>(bill: &'a Bill, names: &'a mut Fake, refaults: bool) -> Shown<'a> {
    Shown {
        bill,
        room: None,
        shares: &[],
        names,
        seconds: 2.0004,
        evicted: Some(1290),
        removed: Some(6),
        refaulted: Some(263),
        comes: true,
        waits: true,
        wakes: true,
        chosen: "",
        refaults,
        lost: 3,
        top: 10,
        notes: &[],
    }
}

#[test]
fn a_bill_is_what_came_since_and_adds_up() {
    let bill = bill();
    assert_eq!(bill.sum(|_| true).out, 1290 + 6);
    assert_eq!(bill.sum(How::reclaims).out, 1290);
    assert_eq!((bill.strangers, bill.forgotten), (7, 0));
    assert_eq!(
        bill.rows[0].1,
        Counts { out: 1024, back: 256, refaulted: 256, again: 0, ..Counts::default() }
    );
}

#[test]
fn it_is_told_in_words_and_nothing_acts() {
    let text = shown(&bill(), &mut Fake::default(), true).text();
    assert!(text.contains("/g1 pushed out 4.0M of /evil\\x1b[2J; 1.0M came back.\n"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    assert!(text.contains("  direct       /evil\\x1b[2J <- /g1 (tar\\x1b)\n"), "{text}");
    assert!(text.contains("/g3 <- kswapd\n"), "{text}");
    assert!(text.contains("limit        /g1 <- /g1 (tar\\x1b), limit of /g1\n"), "{text}");
    assert!(!text.contains("/g1 pushed out 40.0K of /g1"), "{text}");
    assert!(text.contains("(no room for a row)"), "{text}");
    let unknown = shown(&bill(), &mut Fake::default(), false).text();
    assert!(unknown.contains("    4.0M     1.0M        -   0.000s  direct"), "{unknown}");
}

/// Rows that are not shown are a line, with which the table still adds up.
#[test]
fn what_is_cut_is_told_with_all_its_figures() {
    let bill = bill();
    let text = Shown { top: 1, ..shown(&bill, &mut Fake::default(), true) }.text();
    let back = bill.rows[1..].iter().map(|(_, n)| n.back).sum::<u64>();
    let refaulted = bill.rows[1..].iter().map(|(_, n)| n.refaulted).sum::<u64>();
    let line = format!(
        "{:>8} {:>8} {:>8}   0.000s  in 4 more rows (--json)\n",
        volume(1296 - 1024),
        volume(back),
        volume(refaulted)
    );
    assert!(text.contains(&line), "{text}");
}

#[test]
fn nothing_in_json_acts() {
    let bill = bill();
    let text = Shown { chosen: "/\u{202e}gnp.exe", ..shown(&bill, &mut Fake::default(), false) }.json();
    assert!(text.contains("\"chosen\":\"/\\u202egnp.exe\""), "{text}");
}

#[test]
fn as_json() {
    let text = shown(&bill(), &mut Fake::default(), false).json();
    assert!(!text.contains('\x1b'));
    let all: Value = serde_json::from_str(&text).unwrap();
    let all = &all["blame"];
    assert_eq!(crate::schema_check::check_as("blame_watch", all), [""; 0]);
    assert_eq!(all["seconds"], 2.0);
    assert_eq!(all["rows"][0]["how"], "direct");
    assert_eq!(all["rows"][0]["who"]["owner"], "/evil\x1b[2J");
    assert_eq!(all["rows"][0]["who"]["by"]["cgroup"], "/g1");
    assert_eq!(all["rows"][0]["refaulted_pages"], Value::Null);
    assert_eq!(all["rows"][1]["who"]["by"]["process"], Value::Null);
    assert_eq!(all["rows"][4]["who"], Value::Null);
    assert_eq!(all["totals"]["out_pages"], 1296);
    assert_eq!(all["refaulted_of_unknown_pages"], Value::Null);
    assert_eq!(all["lost"]["total"], 3);
}

/// Files, who brought them in again, and what was waited; with what is of no file by name they are what the row says.
#[test]
fn files_and_readers_are_told_and_add_up() {
    let (who, _) = row(How::Dontneed, 1, 9, 0, 0);
    let counts = Counts { out: 512, back: 256, waits: 3, waited_ns: 1_500_000_000, ..Counts::default() };
    let reader = Reader { number: 20, file: 5, by: 9, process: b"cat\x1b".to_vec(), own: false };
    let came = Came { back: 250, waits: 3, waited_ns: 1_500_000_000, ..Came::default() };
    let file = File {
        dev: Dev { major: 8, minor: 1 },
        inode: 77,
        generation: 0,
        block: None,
        name: "/x\x1b[2J".into(),
        named: Named::Whole,
    };
    let details = Details {
        numbers: [(20, who.clone())].into(),
        files: [(5, file), (6, File { named: Named::Not, ..nameless() })].into(),
        shares: [((20, 5), 300), ((20, 6), 200)].into(),
        readers: [(reader, came)].into(),
        untimed: 0,
    };
    let now = Raw { rows: vec![(who, counts)], details, ..Raw::default() };
    let bill = Bill::between(&Raw::default(), &now);
    let text = shown(&bill, &mut Fake::default(), true).text();
    assert!(!text.contains('\x1b'), "{text}");
    assert!(text.contains("    1.2M  1000.0K  [8:1]/x\\x1b[2J <- dontneed, /g1 (tar\\x1b)\n"), "{text}");
    assert!(text.contains("  800.0K        0  inode 78 of 8:1 <- dontneed, /g1 (tar\\x1b)\n"), "{text}");
    assert!(
        text.contains("   1.500s  /evil\\x1b[2J (cat\\x1b): [8:1]/x\\x1b[2J <- dontneed, /g1 (tar\\x1b)\n"),
        "{text}"
    );
    assert!(text.contains("(others): (other files) <- dontneed"), "{text}");
    assert!(text.contains("1.0M came back, 1.500 s of waiting.\n"), "{text}");
    let all: Value = serde_json::from_str(&shown(&bill, &mut Fake::default(), true).json()).unwrap();
    assert_eq!(crate::schema_check::check_as("blame_watch", &all["blame"]), [""; 0]);
    let row = &all["blame"]["rows"][0];
    for key in ["out_pages", "back_pages", "waits"] {
        let sum: u64 = row["files"].as_array().unwrap().iter().map(|f| f[key].as_u64().unwrap()).sum();
        assert_eq!(row[key], sum, "{row}");
    }
    assert_eq!(
        (&row["files"][0]["path"], &row["files"][2]["other"]),
        (&json!("[8:1]/x\x1b[2J"), &json!(true))
    );
    assert_eq!(row["files"][0]["readers"][0]["process"], "cat\x1b");
    assert_eq!(all["blame"]["totals"]["waited_s"], 1.5);
    // Where no function can be attached, nothing is known of waiting.
    let unknown = Shown { waits: false, ..shown(&bill, &mut Fake::default(), false) }.json();
    let all: Value = serde_json::from_str(&unknown).unwrap();
    assert_eq!(all["blame"]["rows"][0]["files"][0]["readers"][0]["waited_s"], Value::Null);
}

fn nameless() -> File {
    File {
        dev: Dev { major: 8, minor: 1 },
        inode: 78,
        generation: 0,
        block: None,
        name: String::new(),
        named: Named::Not,
    }
}

/// What a filter leaves: what was pushed out by those, brought in again by those, or theirs.
#[test]
fn a_filter_leaves_what_concerns_it() {
    let mut mine = row(How::Direct, 1, 2, 5, 0);
    mine.0.who.as_mut().unwrap().own = true;
    let mut again = row(How::Limit, 3, 4, 6, 6);
    again.1.again = 1;
    let rows = vec![mine, again, row(How::Kswapd, 0, 8, 7, 0), row(How::Kswapd, 0, 5, 8, 0)];
    let mut bill = Bill::between(&Raw::default(), &Raw { rows, ..Raw::default() });
    bill.choose(|owner| owner == 8);
    let left: Vec<_> = bill.rows.iter().map(|(_, n)| n.out).collect();
    assert_eq!(left, [7, 6, 5]);
}

/// For whom kswapd made room, with names that act.
#[test]
fn for_whom_kswapd_made_room() {
    use super::super::Growth;
    let grown = |rows: &[(Option<u64>, u64, u64)]| {
        rows.iter().map(|(id, grew, woke)| (*id, Growth { grew: *grew, woke: *woke })).collect()
    };
    let before = Raw { grown: grown(&[(Some(3), 5, 0)]), ..Raw::default() };
    let rows = vec![row(How::Kswapd, 0, 3, 1024, 0)];
    let now = [(Some(3), 7, 0), (Some(9), 500, 12), (None, 256, 0), (Some(0), 0, 3), (Some(4), 0, 0)];
    let now = Raw { rows, grown: grown(&now), ..Raw::default() };
    let mut room = Room::default();
    room.add(&before, &now);
    let (bill, shares) = (Bill::between(&before, &now), room.shares());
    let told = Some(&room);
    let shares = &*shares;
    let text = Shown { room: told, shares, ..shown(&bill, &mut Fake::default(), true) }.text();
    assert!(!text.contains('\x1b'), "{text}");
    let wanted = "For whom kswapd took 4.0M: for none more than it grew by meanwhile

 AT MOST     GREW  WOKE IT  CGROUP
    2.0M     2.0M       12  /evil\\x1b[2J
    1.0M     1.0M        0  (other cgroups)
    8.0K     8.0K        0  /g3
       0        0        3  -
    1.0M and more for none of these: for memory of the kernel's own, or taken before this began
";
    assert!(text.contains(wanted), "{text}");
    let text =
        Shown { room: told, shares, top: 1, wakes: false, ..shown(&bill, &mut Fake::default(), true) }.text();
    assert!(
        text.contains("    2.0M     2.0M        -  /evil") && text.contains("  3 more (--json)\n"),
        "{text}"
    );
    let all: Value = serde_json::from_str(
        &Shown { room: told, shares, ..shown(&bill, &mut Fake::default(), true) }.json(),
    )
    .unwrap();
    assert_eq!(crate::schema_check::check_as("blame_watch", &all["blame"]), [""; 0]);
    let all = &all["blame"]["kswapd"];
    assert_eq!((&all["out_pages"], &all["unexplained_pages"]), (&json!(1024), &json!(266)));
    let first = &all["cgroups"][0];
    assert_eq!((&first["cgroup"], &first["at_most_pages"]), (&json!("/evil\x1b[2J"), &json!(500)));
    assert_eq!((&first["wakeups"], &all["cgroups"][1]["other"]), (&json!(12), &json!(true)));
}

/// Where kswapd took nothing, or nothing sees memory being taken, nothing is said.
#[test]
fn of_no_room_nothing_is_said() {
    let (bill, room) = (bill(), Room::default());
    for room in [None, Some(&room)] {
        let text = Shown { room, ..shown(&bill, &mut Fake::default(), true) }.text();
        assert!(!text.contains("For whom"), "{text}");
    }
    let all: Value = serde_json::from_str(&shown(&bill, &mut Fake::default(), true).json()).unwrap();
    assert_eq!(all["blame"]["kswapd"], Value::Null);
}
