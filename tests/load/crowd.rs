//! More processes than there is room for.

use std::fs::File;
use std::path::Path;

use serde_json::Value;

use crate::tools::*;

pub fn more_processes_than_room(dir: &Path) {
    const ROOM: usize = 16;
    const READERS: u64 = 200;
    const PAGES: u64 = 200;
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
        let named = line["rows"].as_array().unwrap().iter().filter(|r| r["other"] != true);
        assert!(named.count() <= ROOM, "{line}");
    }
    let mut with_row = 0;
    for pid in &pids {
        let seen = sum(&rows_of(&lines, unsigned(*pid)), "/read/accesses");
        assert!(seen <= PAGES, "{seen} pages of {PAGES}");
        with_row += u64::from(seen == PAGES);
    }
    assert!(with_row < READERS, "the table was never full: {total}");
    let lost = passed_by_line(&total, &["processes_full"]);
    assert!(figure(&total, "/lost/processes_full") + lost >= READERS - with_row, "{with_row} of {total}");
    assert!(err.contains("processes_full") && err.contains("\nremedy: more room with --table-size"), "{err}");
    let accesses = figure(&total, "/read/accesses");
    let (intervals, _) = with_room.finish_json();
    let of_others: u64 = rows(&intervals)
        .filter(|r| !pids.iter().any(|pid| r["pid"] == *pid))
        .map(|r| figure(r, "/read/accesses"))
        .sum();
    assert!(
        (want.saturating_sub(lost * PAGES)..=want + of_others).contains(&accesses),
        "{accesses} of {want} and at most {of_others} of others: {total}"
    );
}
