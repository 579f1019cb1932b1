//! Rows, and the row for the rest, are the line above them: in each interval and over the run, for rows of every kind,
//! while far more processes and files come and go than the tables have room for.

use std::fs;
use std::fs::File;
use std::path::Path;

use serde_json::Value;

use crate::tools::*;

const KINDS: [&str; 8] = ["process", "thread", "comm", "user", "cgroup", "file", "mount", "device"];
/// What rows can know; those of files all but the buffers.
const FIGURES: [&str; 11] = [
    "/read/accesses",
    "/read/hits",
    "/read/misses",
    "/read/bytes",
    "/readahead/pages",
    "/fault/hits",
    "/fault/misses",
    "/write/accesses",
    "/write/dirtied",
    "/write/buffer_dirtied",
    "/direct/read_bytes",
];

/// Each reads a file of its own and one that all read.
fn storm(dir: &Path) {
    let all = File::open(dir.join("all")).unwrap();
    for batch in 0..4 {
        let pids: Vec<i32> = (0..64)
            .flat_map(|n| {
                let own = dir.join(format!("f{}", batch * 64 + n));
                fs::write(&own, [0x5a; 5000]).unwrap();
                let own = File::open(own).unwrap();
                [fork_reader(&format!("own-{}", n % 20), &own, 1, None), fork_reader("all", &all, 8, None)]
            })
            .collect();
        pids.into_iter().for_each(reap);
    }
}

/// The sum of the rows, if each of them knows.
fn of_rows(line: &Value, figure: &str) -> Option<u64> {
    line["rows"].as_array().unwrap().iter().map(|row| row.pointer(figure)?.as_u64()).sum()
}

pub fn rows_are_the_line(dir: &Path) {
    cold_file(&dir.join("all"), 9); // the last page is not whole
    for by in KINDS {
        // What is cut off is in the rest as well.
        let options = if ["process", "file"].contains(&by) { "--top 3" } else { "--top 100000" };
        let rooms = "--table-size 48 --file-table 48";
        let mut monitor = Monitor::start(&format!("--json --by {by} {options} {rooms} 0.1"));
        storm(dir);
        monitor.catch_up();
        let (intervals, total) = monitor.finish_json();
        let files = ["file", "mount", "device"].contains(&by);
        for figure in FIGURES.into_iter().filter(|f| !(files && *f == "/write/buffer_dirtied")) {
            let mut run = Some(0);
            for line in &intervals {
                let (rows, above) = (of_rows(line, figure), line.pointer(figure).unwrap().as_u64());
                assert!(
                    rows == above || above.is_none(),
                    "{by} {options} {figure}: {rows:?} of {above:?}: {line}"
                );
                run = run.zip(rows).map(|(run, rows)| run + rows);
            }
            let above = total.pointer(figure).unwrap().as_u64();
            assert!(
                run == above || above.is_none(),
                "{by} {options} {figure}: {run:?} of {above:?}: {total}"
            );
            if figure == "/read/accesses" {
                // At least what was requested: 256 processes with a page each and 256 with eight.
                let lost = 8 * passed_by_line(&total, &["processes_full", "files_full"]);
                assert!(run.is_some_and(|n| n + lost >= 256 * 9), "{by} {options}: {run:?}, {lost} lost");
            }
        }
        let rest: Vec<_> = intervals.iter().flat_map(|l| l["rows"].as_array().unwrap()).collect();
        let rest: Vec<_> = rest.into_iter().filter(|r| r["other"] == true).collect();
        assert!(
            rest.iter().all(|r| r["comm"].is_null() && r["pid"].is_null() && r["path"].is_null()),
            "{rest:?}"
        );
        let full = if files { "/lost/files_full" } else { "/lost/processes_full" };
        if figure(&total, full) > 0 {
            assert!(!rest.is_empty(), "{by}: what had no room is not told: {total}");
            let reasons = total.pointer("/lost/reasons").unwrap().as_array().unwrap();
            let touches = if files { "rows of files" } else { "rows of threads" };
            assert!(
                reasons.iter().any(|r| r["touches"] == touches && r["option"].is_string()),
                "{reasons:?}"
            );
        }
    }
}
