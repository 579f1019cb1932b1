//! More processes than there is room for, many short ones, and names.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::path::Path;

use serde_json::Value;

use crate::ending::KINDS;
use crate::ending::held_by;
use crate::tools::*;

pub fn a_full_process_table(dir: &Path) {
    const ROOM: usize = 16;
    const READERS: u64 = 40;
    const PAGES: u64 = 2000;
    let path = cold_file(&dir.join("file"), PAGES + 1);
    let file = File::open(&path).unwrap();
    let want = READERS * PAGES;
    // Others may read a lot just now. One that has room for all of them, and runs for longer, says how much.
    let with_room = Monitor::start("--json --by process --top 100000 0.2");
    let mut monitor = Monitor::start(&format!("--json --by process --top 100000 --table-size {ROOM} 0.2"));
    let mut gate = [0; 2];
    // SAFETY: `gate` has room for two descriptors.
    assert_eq!(unsafe { libc::pipe2(gate.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    let pids: Vec<i32> =
        (0..READERS).map(|n| fork_reader(&format!("full-{n}"), &file, PAGES, Some(&gate))).collect();
    // SAFETY: the descriptors are ours; the end of the pipe is what the readers wait for.
    gate.iter().for_each(|fd| unsafe {
        libc::close(*fd);
    });
    pids.iter().for_each(|pid| reap(*pid));
    monitor.line();
    monitor.signal(libc::SIGINT);
    let (status, err) = monitor.ended();
    assert!(status.success(), "{status}: {err}");
    let mut lines: Vec<Value> = monitor.lines.iter().map(|l| serde_json::from_str(l).unwrap()).collect();
    let total = lines.pop().unwrap();
    for line in &lines {
        assert!(line["rows"].as_array().unwrap().len() <= ROOM, "{line}");
    }
    let mut with_row = 0;
    for pid in &pids {
        let seen = sum(&rows_of(&lines, unsigned(*pid)), "/read/accesses");
        assert!(seen <= PAGES, "{seen} pages of {PAGES}");
        with_row += u64::from(seen == PAGES);
    }
    assert!(with_row < READERS, "the table was never full: {total}");
    assert!(figure(&total, "/lost/processes_full") >= READERS - with_row, "{with_row} of {total}");
    assert_eq!(
        figure(&total, "/lost/total"),
        figure(&total, "/lost/processes_full"),
        "nothing else is lost: {total}"
    );
    assert!(err.contains("processes_full") && err.contains("\nremedy: more room for processes"), "{err}");
    let accesses = figure(&total, "/read/accesses");
    let (intervals, _) = with_room.finish_json();
    let of_others: u64 = rows(&intervals)
        .filter(|r| !pids.iter().any(|pid| r["pid"] == *pid))
        .map(|r| figure(r, "/read/accesses"))
        .sum();
    assert!(
        (want..=want + of_others).contains(&accesses),
        "{accesses} of {want} and at most {of_others} of others: {total}"
    );
}

/// Process ids among the keys of the monitor's tables, read from the kernel.
fn in_the_tables(monitor: u32) -> BTreeMap<String, BTreeSet<u32>> {
    use libbpf_rs::MapCore as _;
    let mut tables = BTreeMap::new();
    for (_, id) in held_by(monitor).iter().filter(|(kind, _)| KINDS[*kind].0 == "map_id") {
        let map = libbpf_rs::MapHandle::from_map_id(*id).unwrap();
        let name = map.name().to_string_lossy().into_owned();
        if name.starts_with("process") {
            let keys = map.keys().map(|k| u32::from_ne_bytes(k[..4].try_into().unwrap())).collect();
            tables.insert(name, keys);
        }
    }
    tables
}

pub fn a_thousand_short_processes(dir: &Path) {
    const READERS: usize = 1000;
    let path = cold_file(&dir.join("file"), 8);
    let file = File::open(&path).unwrap();
    let mut monitor = Monitor::start("--json --by process --top 100000 0.2");
    let mut names = BTreeMap::new();
    for n in 0..READERS {
        let name = format!("short-{n:04}");
        let pid = fork_reader(&name, &file, 1 + n as u64 % 7, None);
        reap(pid);
        assert!(names.insert(unsigned(pid), (name, 1 + n as u64 % 7)).is_none(), "{pid} again");
    }
    // The interval that saw the last of them, the one at whose end they are forgotten, and three more.
    let working = monitor.incoming.try_iter().collect::<Vec<_>>();
    monitor.lines.extend(working);
    for _ in 0..2 {
        monitor.line();
    }
    let busy = monitor.lines.len();
    for _ in 0..3 {
        monitor.line();
    }
    let tables = in_the_tables(monitor.pid());
    assert!(tables.len() >= 2, "{tables:?}");
    for (table, pids) in &tables {
        let left: Vec<_> = pids.iter().filter(|pid| names.contains_key(pid)).collect();
        assert!(left.is_empty(), "{table} still has {left:?}");
    }
    let (intervals, total) = monitor.finish_json();
    for row in rows(&intervals[busy..]) {
        assert!(!names.contains_key(&u32::try_from(figure(row, "/pid")).unwrap()), "long gone: {row}");
    }
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for row in rows(&intervals) {
        let pid = u32::try_from(figure(row, "/pid")).unwrap();
        if let Some((name, _)) = names.get(&pid) {
            assert_eq!(row["comm"], name.as_str(), "{row}");
            *sums.entry(pid).or_default() += figure(row, "/read/accesses");
        }
    }
    for (pid, (name, pages)) in &names {
        assert_eq!(sums.get(pid), Some(pages), "{name}");
    }
    let want: u64 = names.values().map(|(_, pages)| pages).sum();
    assert!(figure(&total, "/read/accesses") >= want, "{total}");
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
}

/// What it is called now, whatever it was called when it was first seen.
pub fn the_newest_name(dir: &Path) {
    let [first, second] = ["first-name", "second-name"].map(|name| {
        let path = dir.join(name);
        fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        path
    });
    let file = cold_file(&dir.join("file"), 31);
    let mut reader = Reader::start(&first);
    let mut monitor = Monitor::start("--json --by process --top 100000 0.2");
    reader.tell("random", &file);
    monitor.line();
    monitor.line();
    let before = monitor.lines.len();
    reader.tell("exec", &second);
    reader.tell("read", &file);
    let (intervals, _) = monitor.finish_json();
    let (old, new) = intervals.split_at(before);
    let old = rows_of(old, reader.pid());
    assert_eq!(reads(&old)[..4], [31, 0, 0, 31], "{old:?}");
    assert!(old.iter().all(|r| r["comm"] == "first-name"), "{old:?}");
    let new = rows_of(new, reader.pid());
    // Executing reads files as well, so that this is a lower bound.
    assert!(reads(&new)[1] >= 31, "{new:?}");
    assert_eq!(new.last().unwrap()["comm"], "second-name", "{new:?}");
    reader.end();
}
