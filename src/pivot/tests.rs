#![allow(clippy::unwrap_used)]

mod sums;

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::cli::Args;
use crate::files::Dev;
use crate::files::File;
use crate::files::Named;
use crate::files::Wanted;
use crate::sample::Counter;
use crate::sample::Family;
use crate::sample::FileSample;
use crate::sample::RowSample;
use crate::text::foreign::Foreign;
use crate::view::fixtures;

fn hits(n: u64) -> [(Counter, u64); 1] {
    [(Counter::ReadHits, n)]
}

fn thread(tgid: u32, tid: u32, process: &str, comm: &str, n: u64) -> RowSample {
    RowSample { tid, comm: comm.into(), ..fixtures::process(tgid, process, &hits(n)) }
}

fn file(dev: Dev, inode: u64, name: &str, tgid: u32, process: &str, n: u64) -> FileSample {
    let name = name.to_owned();
    let named = if name.starts_with('/') { Named::Whole } else { Named::Loose };
    FileSample {
        tgid,
        uid: 1000,
        cgroup: 1,
        born: inode,
        process: process.into(),
        file: Arc::new(File { dev, inode, generation: 0, block: None, name, named }),
        deleted: false,
        counters: fixtures::counters(&hits(n)),
    }
}

const BTRFS: Dev = Dev { major: 0, minor: 40 };
const TMPFS: Dev = Dev { major: 0, minor: 51 };

/// Two processes of two threads, one of them in another cgroup and another user's, and their files.
fn sample(start: crate::sample::Moment) -> Sample {
    let mut now = fixtures::sample(start, Duration::from_secs(1), &hits(1000));
    let other = |row| RowSample { uid: 7, cgroup: 2, ..row };
    now.rows = vec![
        thread(10, 10, "sh", "sh", 1),
        thread(10, 10, "db", "db", 20),
        thread(10, 11, "db", "writer", 300),
        other(thread(20, 20, "db", "db", 5)),
        other(thread(20, 21, "db", "writer", 4)),
        thread(30, 30, "idle", "idle", 0),
    ];
    // Rows of one process: the later has its name.
    now.rows[1].born = 5;
    now.rows[2].born = 4;
    now.files = vec![
        file(BTRFS, 5, "/@/a", 10, "db", 100),
        file(BTRFS, 5, "/@/a", 20, "db", 7),
        file(BTRFS, 5, "/@/snap/a", 20, "db", 3),
        file(BTRFS, 6, "/@/b", 10, "db", 50),
        file(TMPFS, 5, "/t", 10, "sh", 2),
        file(TMPFS, 9, "memfd:x", 20, "db", 1),
    ];
    now.files[3].deleted = true;
    now
}

/// The total, the number of groups, and rows as `hits what`.
fn shown(options: &str) -> (Option<u64>, usize, Vec<String>) {
    let words = ["cachestat"].into_iter().chain(options.split_whitespace());
    shown_of(&mut fixtures::pivot(&Args::parse_from(words)))
}

fn shown_of(pivot: &mut Pivot) -> (Option<u64>, usize, Vec<String>) {
    let start = crate::sample::Moment::now();
    let before = fixtures::sample(start, Duration::ZERO, &[]);
    let interval = pivot.interval(&before, &sample(start), &fixtures::plan(&[]));
    let rows = interval.rows.iter().filter(|row| !row.who.other).map(|row| {
        let w = &row.who;
        let number = |n: Option<u32>| n.map(|n| n.to_string());
        let text = |n: &Option<crate::text::foreign::Foreign>| n.as_ref().map(ToString::to_string);
        let parts = [number(w.pid), number(w.tid), number(w.uid), text(&w.user), text(&w.comm)];
        let cgroup = text(&w.container).or(text(&w.cgroup));
        let inode = w.inode.map(|n| n.to_string());
        let file = [cgroup, text(&w.path), text(&w.device), inode, text(&w.mount)];
        let words: Vec<_> = parts.into_iter().chain(file).map(|p| p.unwrap_or_else(|| "-".into())).collect();
        format!("{} {}", row.figures.get(Figure::Hits).unwrap(), words.join(" "))
    });
    (interval.total.get(Figure::Hits), interval.groups, rows.collect())
}

#[test]
fn processes_threads_names_users_and_cgroups() {
    let docker = "docker:4b01c2ef8f3d";
    let (total, number, rows) = shown("--by process");
    assert_eq!((total, number), (Some(1000), 2), "what did nothing has no row");
    assert_eq!(rows, ["321 10 - 1000 me db /user.slice - - - -", &format!("9 20 - 7 - db {docker} - - - -")]);
    let (_, _, rows) = shown("--by thread");
    assert_eq!(rows[0], "300 10 11 1000 me writer /user.slice - - - -");
    assert_eq!(rows[1], "21 10 10 1000 me db /user.slice - - - -", "a thread is called what it was last");
    assert_eq!(rows[3], format!("4 20 21 7 - writer {docker} - - - -"));
    let (_, _, rows) = shown("--by comm");
    assert_eq!(rows, ["329 - - - - db - - - - -", "1 - - - - sh - - - - -"]);
    let (_, _, rows) = shown("--by user");
    assert_eq!(rows, ["321 - - 1000 me - - - - - -", "9 - - 7 - - - - - - -"]);
    let (_, _, rows) = shown("--by cgroup");
    assert_eq!(rows, ["321 - - - - - /user.slice - - - -", &format!("9 - - - - - {docker} - - - -")]);
}

#[test]
fn files_mounts_and_devices() {
    let (total, number, rows) = shown("--by file");
    assert_eq!((total, number), (Some(1000), 5));
    assert_eq!(
        rows,
        [
            "107 - - - - - - /mnt/b/a /dev/loop3 5 /mnt/b",
            "50 - - - - - - /mnt/b/b (deleted) /dev/loop3 6 /mnt/b",
            "3 - - - - - - /mnt/b/snap/a /dev/loop3 5 /mnt/b",
            "2 - - - - - - /tmp/t tmpfs 5 /tmp",
            "1 - - - - - - memfd:x tmpfs 9 /tmp",
        ],
        "on btrfs the same inode number below one device may be two files"
    );
    let (_, _, rows) = shown("--by mount");
    assert_eq!(rows, ["160 - - - - - - - /dev/loop3 - /mnt/b", "3 - - - - - - - tmpfs - /tmp"]);
    let (_, _, rows) = shown("--by device");
    assert_eq!(rows, ["160 - - - - - - - /dev/loop3 - -", "3 - - - - - - - tmpfs - -"]);
}

#[test]
fn filters_narrow_totals_and_rows() {
    assert_eq!(shown("-p 20"), (Some(9), 0, vec![]));
    assert_eq!(shown("--comm db"), (Some(329), 0, vec![]));
    assert_eq!(shown("--comm nobody"), (Some(0), 0, vec![]));
    assert_eq!(shown("--cgroup /user.slice").0, Some(321));
    assert_eq!(shown("--cgroup /system.slice").0, Some(9), "those below count as well");
    assert_eq!(shown("--cgroup /system").0, Some(0));
    assert_eq!(shown("--cgroup /").0, Some(330));
    assert_eq!(shown("--cgroup /user.slice --comm sh --by process").2.len(), 1);
    // Which files of one process.
    let (total, number, rows) = shown("--by file -p 20 --top 1");
    assert_eq!((total, number, rows.len()), (Some(11), 3, 1));
}

#[test]
fn of_several_of_a_kind_any_will_do() {
    let all = shown("--by process").2.len();
    let total = |options: &str| shown(options).0.unwrap();
    assert_eq!(total("-p 10,20"), total("-p 10") + total("-p 20"));
    assert_eq!(total("-p 20 -p 10 -p 20,4242"), total("-p 10,20"), "each once, and nobody with that number");
    let pids: Vec<String> = (1..=4096).map(|pid| pid.to_string()).collect();
    assert_eq!(total(&format!("-p {}", pids.join(","))), 330, "all that have a name");
    assert_eq!(shown(&format!("--by process -p {}", pids.join(","))).2.len(), all);
    assert_eq!(total("--comm db --comm sh"), total("--comm db") + total("--comm sh"));
    assert_eq!(total("--comm db,sh"), 0, "one name");
    let of_groups = |both: &str| total("--cgroup /user.slice") + total(&format!("--cgroup {both}"));
    assert_eq!(total("--cgroup /system.slice --cgroup /user.slice"), of_groups("/system.slice"));
    assert_eq!(total("--cgroup / --cgroup /user.slice"), 330, "what is in both counts once");
    // Different kinds must all be so.
    assert_eq!(total("-p 10,20 --comm db --comm nobody"), total("-p 10,20 --comm db"));
    assert_eq!(shown("-p 20 --cgroup /none --cgroup /system.slice").0, Some(9));
}

/// Of a recording: a user is called as on the machine that was recorded, or has that number.
#[test]
fn users_are_told_by_name_and_by_number() {
    let start = crate::sample::Moment::now();
    let now = sample(start);
    let mut expected = std::collections::BTreeMap::<u32, u64>::new();
    for row in &now.rows {
        *expected.entry(row.uid).or_default() += row.counters.get(Counter::ReadHits);
    }
    let of = |users: &[&str]| {
        let users: Vec<String> = users.iter().map(|user| format!("--user={user}")).collect();
        let words = ["cachestat".to_owned()].into_iter().chain(users);
        shown_of(&mut fixtures::pivot(&Args::parse_from(words))).0
    };
    let mut names = fixtures::FakeNames::default();
    let mut sum = 0;
    for (uid, hits) in &expected {
        assert_eq!(of(&[&uid.to_string()]), Some(*hits));
        if let Some(name) = names.user(*uid) {
            assert_eq!(of(&[&name, &uid.to_string()]), Some(*hits), "one user");
        }
        sum += hits;
    }
    let all: Vec<String> = expected.keys().map(ToString::to_string).collect();
    assert_eq!((of(&[&all.join(",")]), of(&["nobody-has-it"])), (Some(sum), Some(0)));
}

#[test]
fn a_file_or_a_mount_narrows_what_processes_did() {
    let mut pivot = fixtures::pivot(&Args::parse_from(["cachestat", "--by", "process"]));
    pivot.filter.mount = Some(TMPFS);
    let (total, _, rows) = shown_of(&mut pivot);
    assert_eq!(total, Some(3));
    assert!(rows[0].starts_with("2 10 ") && rows[1].starts_with("1 20 "), "{rows:?}");
    pivot.filter.mount = None;
    pivot.filter.file =
        Some(Wanted { dev: BTRFS, inode: 5, name: Some("/@/a".into()), block: None, path: "/@/a".into() });
    let (total, _, rows) = shown_of(&mut pivot);
    assert_eq!((total, rows.len()), (Some(107), 2));
    pivot.by = None;
    assert_eq!(shown_of(&mut pivot), (Some(107), 0, vec![]));
}

#[test]
fn what_is_chosen_and_had_no_room_is_unknown() {
    let plan = fixtures::plan(&[]);
    let start = crate::sample::Moment::now();
    let total = |filter: Filter, lost: &[Counter]| {
        let before = fixtures::sample(start, Duration::ZERO, &[]);
        let mut now = sample(start);
        lost.iter().for_each(|counter| now.total.0[*counter as usize] = 1);
        let mut pivot = fixtures::pivot(&Args::parse_from(["cachestat"]));
        pivot.filter = filter;
        pivot.interval(&before, &now, &plan).total.get(Figure::Hits)
    };
    let files = || Filter { mount: Some(TMPFS), decided: true, ..Filter::default() };
    assert_eq!(total(files(), &[]), Some(3));
    assert_eq!(total(files(), &[Counter::LostFiles]), None);
    assert_eq!(total(files(), &[Counter::LostFrames]), None, "a thread without a row has no files either");
    assert_eq!(
        total(files(), &[Counter::LostRows]),
        Some(3),
        "threads of which only the names are not shown"
    );
    let process = || Filter { pids: vec![20], decided: true, ..Filter::default() };
    assert_eq!(total(process(), &[Counter::LostFiles, Counter::LostFrames]), Some(9));
    assert_eq!(total(process(), &[Counter::LostRows]), None);
    assert_eq!(total(Filter::default(), &[Counter::LostRows, Counter::LostFiles]), Some(1000));
}

#[test]
fn what_the_kernel_has_decided_is_not_asked_again() {
    let mut pivot = fixtures::pivot(&Args::parse_from(["cachestat", "--cgroup", "/gone"]));
    assert_eq!(shown_of(&mut pivot).0, Some(0));
    pivot.filter.decided = true;
    assert_eq!(shown_of(&mut pivot).0, Some(330));
}

#[test]
fn what_is_not_counted_by_file_is_unknown() {
    let plan = fixtures::plan(&[]);
    let by_file = owned(&Counters::default(), &plan, true);
    assert_eq!(by_file.get(Figure::Misses), Some(0));
    assert_eq!(by_file.get(Figure::BufferDirtied), None);
    let by_process = owned(&Counters::default(), &plan, false);
    assert_eq!(by_process.get(Figure::BufferDirtied), Some(0));
    assert_eq!(by_process.get(Figure::Evicted), None);
}

/// Names that know where they were asked.
#[derive(Default)]
struct Asked(fixtures::FakeNames, Vec<Dev>);

impl Names for Asked {
    fn user(&mut self, uid: u32) -> Option<std::rc::Rc<str>> {
        self.0.user(uid)
    }

    fn cgroup(&mut self, id: u64, tgid: u32) -> std::rc::Rc<crate::cgroup::Cgroup> {
        self.0.cgroup(id, tgid)
    }

    fn mounts(&mut self, dev: Dev) -> &mut crate::files::Mounts {
        self.1.push(dev);
        self.0.mounts(dev)
    }

    fn mounts_now(&mut self) -> &crate::files::Mounts {
        self.0.mounts_now()
    }

    fn command_line(&mut self, pid: u32) -> Option<Foreign> {
        self.0.command_line(pid)
    }
}

#[test]
fn of_a_device_itself_the_name_is_asked_for_and_not_that_of_what_it_is_in() {
    let mut row = file(TMPFS, 77, "/dev/x", 10, "mount", 40);
    let raw = File { dev: Dev { major: 0, minor: 6 }, block: Some(TMPFS), ..File::clone(&row.file) };
    row.file = Arc::new(raw);
    let filter = Filter { path: Some("/dev/x".into()), ..Filter::default() };
    let mut names = Asked::default();
    filter.takes(&super::item::of_file(&row), &mut names);
    assert_eq!(names.1, [TMPFS]);
}

#[test]
fn a_device_itself_is_no_mount_and_a_cgroup_made_anew_is_the_same() {
    let start = crate::sample::Moment::now();
    let mut now = sample(start);
    let raw = File { dev: Dev { major: 0, minor: 6 }, block: Some(TMPFS), ..File::clone(&now.files[4].file) };
    now.files.push(FileSample { file: Arc::new(raw), ..file(TMPFS, 77, "/dev/x", 10, "mount", 40) });
    now.rows[5] = RowSample { cgroup: 4011, ..thread(40, 40, "again", "again", 1000) };
    let rows = |by: By| {
        let mut pivot = fixtures::pivot(&Args::parse_from(["cachestat"]));
        pivot.by = Some(by);
        let before = fixtures::sample(start, Duration::ZERO, &[]);
        let interval = pivot.interval(&before, &now, &fixtures::plan(&[]));
        let row = |r: &Row| {
            let name = |n: &Option<Foreign>| crate::text::foreign::or(n.as_ref(), "-");
            (name(if by == By::Mount { &r.who.mount } else { &r.who.cgroup }), r.figures.get(Figure::Hits))
        };
        interval.rows.iter().map(row).collect::<Vec<_>>()
    };
    let mounts = rows(By::Mount);
    assert!(
        mounts.contains(&("/tmp".into(), Some(3))) && mounts.contains(&("-".into(), Some(40))),
        "{mounts:?}"
    );
    let groups = rows(By::Cgroup);
    assert_eq!(groups.iter().filter(|g| g.0 == "/user.slice").count(), 1, "{groups:?}");
    assert!(groups.contains(&("/user.slice".into(), Some(1321))), "{groups:?}");
}

#[test]
fn two_processes_that_had_one_id_in_an_interval_are_two() {
    let start = crate::sample::Moment::now();
    let mut now = fixtures::sample(start, Duration::from_secs(1), &hits(1000));
    let began = |begun: u64, row| RowSample {
        family: Some(Family { begun, parent: 1, parent_begun: 0, parent_name: "init".into() }),
        ..row
    };
    now.rows = vec![
        began(5_000_000, thread(7, 7, "a", "a", 900)),
        began(9_000_000, thread(7, 7, "b", "b", 9)),
        began(9_000_000, thread(7, 8, "b", "w", 1)),
    ];
    let mut pivot = fixtures::pivot(&Args::parse_from(["cachestat", "--by", "process"]));
    let before = fixtures::sample(start, Duration::ZERO, &[]);
    let interval = pivot.interval(&before, &now, &fixtures::plan(&[]));
    let rows: Vec<_> = interval.rows.iter().map(|r| (r.who.pid, r.figures.get(Figure::Hits))).collect();
    assert_eq!(rows, [(Some(7), Some(900)), (Some(7), Some(10)), (None, Some(90))]);
}

/// Calls of two threads of a process, and of another process.
#[test]
fn read_calls_by_latency_are_those_of_what_is_chosen() {
    let start = crate::sample::Moment::default();
    let mut before = fixtures::sample(start, Duration::ZERO, &hits(0));
    let mut now = sample(start);
    (before.latency, now.latency) = (Some(Box::default()), Some(Box::default()));
    let calls = |n| {
        let mut all = Histograms::default();
        all.hit[3] = n;
        Some(Box::new(all))
    };
    (now.rows[1].latency, now.rows[2].latency, now.rows[3].latency) = (calls(1), calls(2), calls(40));
    let told = |filter: Filter, before: &Sample, now: &Sample| {
        let mut pivot = Pivot { by: None, top: 0, filter, names: Box::<Recorded>::default() };
        pivot.interval(before, now, &fixtures::plan(&[])).histograms.map(|h| h.hit[3])
    };
    let of = |pid| Filter { pids: vec![pid], ..Filter::default() };
    assert_eq!(told(of(10), &before, &now), Some(3));
    assert_eq!(told(of(20), &before, &now), Some(40));
    assert_eq!(told(of(30), &before, &now), Some(0), "it made none");
    let by_comm = Filter { comms: vec!["db".into()], ..Filter::default() };
    assert_eq!(told(by_comm, &before, &now), Some(43));
    let by_file = Filter { path: Some("/a".into()), ..of(10) };
    assert_eq!(told(by_file, &before, &now), None, "files have none");
    let mut without = now.clone();
    without.latency = None;
    assert_eq!(told(of(10), &before, &without), None, "nobody asked");
    // A row that found no room may have been its own.
    let mut full = now.clone();
    full.total = fixtures::counters(&[(Counter::LostRows, 1)]).all();
    assert_eq!(told(of(10), &before, &full), None);
}
