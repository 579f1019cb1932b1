//! Many short processes, and names.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::path::Path;

use crate::ending::KINDS;
use crate::ending::held_by;
use crate::tools::*;

/// Process ids in the rows that are not free, read from the kernel.
fn in_the_table(monitor: u32) -> BTreeSet<u32> {
    use libbpf_rs::MapCore as _;
    let maps = held_by(monitor).into_iter().filter(|(kind, _)| KINDS[*kind].0 == "map_id");
    let mut maps = maps.map(|(_, id)| libbpf_rs::MapHandle::from_map_id(id).unwrap());
    let rows = maps.find(|m| m.name() == "rows").expect("there is a table of rows");
    let value = |n: u32| rows.lookup(&n.to_ne_bytes(), libbpf_rs::MapFlags::ANY).unwrap().unwrap();
    let word = |bytes: &[u8], at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    // The state is the first word of `struct row` (bpf/wire.h), 0 when free; the process id is the seventh.
    (0..rows.max_entries()).map(value).filter(|row| word(row, 0) != 0).map(|row| word(&row, 24)).collect()
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
    let pids = in_the_table(monitor.pid());
    let left: Vec<_> = pids.iter().filter(|pid| names.contains_key(pid)).collect();
    assert!(left.is_empty(), "the table still has {left:?}");
    let (intervals, total) = monitor.finish_json();
    for row in rows(&intervals[busy..]) {
        assert!(!names.contains_key(&u32::try_from(figure(row, "/pid")).unwrap()), "long gone: {row}");
    }
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for row in rows(&intervals) {
        let pid = u32::try_from(figure(row, "/pid")).unwrap();
        if let Some((name, _)) = names.get(&pid) {
            // Between its birth and its name it is called as the tests are: it touches its memory then, and reads nothing.
            let read = figure(row, "/read/accesses");
            assert!(read == 0 || row["comm"] == name.as_str(), "{row}");
            *sums.entry(pid).or_default() += read;
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
