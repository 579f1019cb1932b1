//! A moment is told with what was counted, and what is run then gets all of it and harms nobody.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::time::Duration;
use std::time::Instant;

use super::*;
use crate::daemon::moments::Condition;
use crate::daemon::sums::Ran;
use crate::sample::Counter;
use crate::sample::Moment as At;
use crate::schema_check;
use crate::view::fixtures;

fn quiet(_: &str) {}

fn two(name: &str) -> [Sample; 2] {
    let start = At::now();
    let before = fixtures::sample(start, Duration::ZERO, &[]);
    let counted = [(Counter::ReadHits, 990), (Counter::ReadMisses, 10)];
    let mut now = fixtures::sample(start, Duration::from_secs(2), &counted);
    now.rows = (0..30).map(|n| fixtures::process(100 + n, name, &[(Counter::ReadHits, 33)])).collect();
    [before, now]
}

fn sums() -> Arc<Mutex<Sums>> {
    Arc::new(Mutex::new(Sums::new(10, Duration::from_secs(1))))
}

fn ran(sums: &Mutex<Sums>) -> Ran {
    sums.lock().unwrap().commands.unwrap()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_command_gets_all_rows_sum_to_the_line_and_no_name_acts() {
    let [before, now] = two("\x1b]0;x\u{202e}\n");
    let plan = fixtures::plan(&[]);
    let mut watched = Watched::new(Condition::parse("misses > 4/s").unwrap());
    let moment = watched.look(&model::whole(&before, &now, &plan)).unwrap();
    assert_eq!(moment.found, "read.misses is 5/s");
    let text = object(&moment, Some("/r/\x1b[1m".into()), (&before, &now), &plan, true);
    assert!(!text.contains(['\x1b', '\u{202e}', '\n']), "{text}");
    let json: Value = serde_json::from_str(&text).unwrap();
    schema_check::check_moment(&json);
    // Without files there are none, and no empty list of them.
    let without: Value = serde_json::from_str(&object(&moment, None, (&before, &now), &plan, false)).unwrap();
    schema_check::check_moment(&without);
    assert_eq!((&json["recording"], &without["recording"]), (&json!("/r/\x1b[1m"), &Value::Null));
    assert!(without["interval"].get("files").is_none() && json["interval"]["files"].is_array());
    let interval = &json["interval"];
    assert_eq!((&json["when"], &json["held_s"]), (&json!("misses > 4/s"), &json!(2.0)));
    assert_eq!(interval["read"]["misses"], 10);
    let rows = interval["processes"].as_array().unwrap();
    assert_eq!(rows.len(), ROWS + 1, "and one for the rest");
    let hits: u64 = rows.iter().map(|r| r["read"]["hits"].as_u64().unwrap()).sum();
    assert_eq!(hits, 990);
}

#[test]
fn what_is_run_reads_the_moment_or_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let (path, sums) = (dir.path().join("got"), sums());
    let hook = Hook::new(&format!("cat > {}; exit 3", path.display()), Arc::clone(&sums), quiet).unwrap();
    // More than a pipe holds.
    let json = "x".repeat(1 << 20);
    assert!(hook.run(0, json.clone().into_bytes()));
    until("it has failed", || ran(&sums) == Ran { failed: 1, ..Ran::default() });
    assert_eq!(fs::read_to_string(&path).unwrap(), json);
    drop(hook);
    let hook = Hook::new("exit 0", Arc::clone(&sums), quiet).unwrap();
    assert!(hook.run(0, json.into_bytes()));
    until("nobody reads it", || ran(&sums) == Ran { failed: 1, ok: 1, ..Ran::default() });
}

#[test]
fn one_runs_at_a_time_and_not_for_ever() {
    let sums = sums();
    let dir = tempfile::tempdir().unwrap();
    let left = dir.path().join("left");
    // What it starts is killed with it.
    let command = format!("(sleep 1; touch {}) & sleep 1000", left.display());
    let hook = Hook::with(&command, Arc::clone(&sums), quiet, Duration::from_millis(300)).unwrap();
    assert!(hook.run(0, Vec::new()));
    assert!(!hook.run(0, Vec::new()), "it is still running");
    until("it is killed", || ran(&sums) == Ran { killed: 1, skipped: 1, ..Ran::default() });
    std::thread::sleep(Duration::from_millis(1500));
    assert!(!left.exists());
    // Another condition's moment is not left out for it.
    let marks = dir.path().join("marks");
    let command = format!("sleep 0.3; echo x >> {}", marks.display());
    let hook = Hook::new(&command, Arc::clone(&sums), quiet).unwrap();
    assert!(hook.run(0, Vec::new()) && hook.run(1, Vec::new()) && !hook.run(1, Vec::new()));
    until("both have run", || ran(&sums).ok == 2);
    assert_eq!(fs::read_to_string(marks).unwrap().lines().count(), 2);
    drop(hook);
    // The end does not wait for it either, and that is what is said of it.
    static SAID: std::sync::Mutex<String> = std::sync::Mutex::new(String::new());
    let say = |text: &str| *SAID.lock().unwrap() = text.to_owned();
    let hook = Hook::new("sleep 1000", Arc::clone(&sums), say).unwrap();
    assert!(hook.run(0, Vec::new()));
    let begun = Instant::now();
    drop(hook);
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(SAID.lock().unwrap().ends_with("it was still running when cachetopd was to end"));
}

#[test]
fn it_holds_no_capability() {
    let dir = tempfile::tempdir().unwrap();
    let (path, sums) = (dir.path().join("status"), sums());
    let hook =
        Hook::new(&format!("cat /proc/self/status > {}", path.display()), Arc::clone(&sums), quiet).unwrap();
    assert!(hook.run(0, Vec::new()));
    until("it has ended", || ran(&sums).ok == 1);
    let status = fs::read_to_string(&path).unwrap();
    let value =
        |key: &str| status.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':')).unwrap().trim();
    assert_eq!(
        (value("CapEff"), value("CapPrm"), value("NoNewPrivs")),
        ("0000000000000000", "0000000000000000", "1")
    );
}
