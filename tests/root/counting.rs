//! What it counts, in each format.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use crate::tools::*;

pub fn a_count_of_intervals(_: &Path) {
    let start = Instant::now();
    let (code, out, err) = output(&mut cachestat("--json 0.5 2"));
    assert_eq!(code, Some(0), "{err}");
    let lines: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{out}");
    assert!(start.elapsed() >= Duration::from_secs(1));
    let seconds: f64 = lines.iter().map(|l| l["interval_s"].as_f64().unwrap()).sum();
    assert!((0.95..=start.elapsed().as_secs_f64()).contains(&seconds), "{out}");
    for line in &lines {
        assert!(line.get("total").is_none() && line.get("rows").is_none(), "{line}");
        let [accesses, hits, ahead, misses, _] = reads(&[line]);
        assert_eq!(accesses, hits + ahead + misses, "{line}");
    }
}

pub fn one_process_in_json(dir: &Path) {
    let work = Work::new(dir);
    let mut reader = Reader::new();
    let mut by = Monitor::start("--json --by process --top 100000 0.2");
    let mut only = Monitor::start(&format!("--json -p {} 0.2", reader.pid()));
    work.run(&mut reader, || {
        by.line();
        only.line();
    });
    let (intervals, total) = by.finish_json();
    let rows = rows_of(&intervals, reader.pid());
    assert_eq!(reads(&rows), work.want, "{rows:?}");
    let uid_and_name = (&rows[0]["uid"], rows[0]["comm"].as_str().unwrap());
    let comm = fs::read_to_string(format!("/proc/{}/comm", reader.pid())).unwrap();
    assert_eq!(uid_and_name, (&Value::from(0), comm.trim_end()));
    assert!(rows.len() >= 2, "the work of two intervals is in two rows: {rows:?}");
    for (n, pointer) in READS.iter().enumerate() {
        assert!(figure(&total, pointer) >= work.want[n], "the whole has less than its part: {total}");
    }
    let (intervals, total) = only.finish_json();
    assert_eq!(reads(&[&total]), work.want);
    assert_eq!(reads(&intervals.iter().collect::<Vec<_>>()), work.want);
    assert_eq!(total["pid"], reader.pid());
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
    let ratio = total["read"]["hit_ratio"].as_f64().unwrap();
    assert!((ratio - 82.0 / 146.0).abs() < 1e-6, "{ratio}");
    reader.end();
}

pub fn one_process_in_csv(dir: &Path) {
    let work = Work::new(dir);
    let mut reader = Reader::new();
    let options = format!("--csv --by process --top 100000 --columns {READ_COLUMNS},hit_ratio 0.2");
    let mut monitor = Monitor::start(&options);
    work.run(&mut reader, || {
        monitor.line();
        monitor.line();
    });
    let lines = monitor.finish();
    let mut table = csv::Reader::from_reader(io::Cursor::new(lines.join("\n")));
    let names: Vec<String> = table.headers().unwrap().iter().map(String::from).collect();
    assert_eq!(names.join(","), format!("time,interval_s,pid,uid,comm,{READ_COLUMNS},hit_ratio"));
    let mut got = Reads::default();
    for record in table.records().map(Result::unwrap).filter(|r| r[2] == reader.pid().to_string()) {
        for (n, sum) in got.iter_mut().enumerate() {
            *sum += record[5 + n].parse::<u64>().unwrap();
        }
    }
    assert_eq!(got, work.want);
    reader.end();
}

pub fn one_process_in_text(dir: &Path) {
    let work = Work::new(dir);
    let mut reader = Reader::new();
    // Bytes have one decimal of a mebibyte in text, so that they are left to the other formats.
    let columns = READ_COLUMNS.trim_end_matches(",read_bytes");
    let mut monitor = Monitor::start(&format!("-p {} --columns {columns},hit_ratio 0.2", reader.pid()));
    work.run(&mut reader, || {
        monitor.line();
        monitor.line();
    });
    let lines = monitor.finish();
    let cells = |line: &str| -> Vec<String> { line.split_whitespace().map(String::from).collect() };
    assert_eq!(cells(&lines[0]), ["ACCESSES", "HITS", "RAHITS", "MISSES", "HITRATIO"]);
    let [intervals @ .., rule, total] = &lines[1..] else { panic!("{lines:?}") };
    assert!(rule.starts_with("--- total of "), "{lines:?}");
    let mut got = [0; 4];
    for line in intervals.iter().map(|l| cells(l)) {
        for (sum, cell) in got.iter_mut().zip(&line) {
            *sum += cell.parse::<u64>().unwrap();
        }
        if line[0] == "0" {
            assert_eq!(line[4], "-", "{lines:?}");
        }
    }
    assert_eq!(got, work.want[..4], "{lines:#?}");
    let want: Vec<String> = work.want[..4].iter().map(u64::to_string).chain(["56.16%".into()]).collect();
    assert_eq!(cells(total), want, "{lines:#?}");
    reader.end();
}

pub fn an_idle_process_has_no_ratio(_: &Path) {
    let reader = Reader::new();
    let pid = reader.pid();
    let (code, out, err) = output(&mut cachestat(&format!("-p {pid} 0.1 3")));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(out.lines().count(), 4, "{out}");
    for line in out.lines().skip(1) {
        let cells: Vec<_> = line.split_whitespace().collect();
        assert_eq!(cells[..5], ["0", "0", "0", "0", "-"], "{out}");
        assert!(cells[6].parse::<u64>().unwrap() > 0, "the cache of the machine is not empty: {out}");
    }
    let (_, out, _) = output(&mut cachestat(&format!("-p {pid} --bcc 0.1 1")));
    assert!(out.contains("0.00%"), "{out}");
    let (_, out, _) = output(&mut cachestat(&format!("-p {pid} --json 0.1 1")));
    let line: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((figure(&line, "/read/accesses"), &line["read"]["hit_ratio"]), (0, &Value::Null));
    let (_, out, _) = output(&mut cachestat(&format!("-p {pid} --csv --columns hits,hit_ratio 0.1 1")));
    assert!(out.lines().nth(1).unwrap().ends_with(",0,"), "{out}");
    reader.end();
}

pub fn the_end_of_the_process_watched(dir: &Path) {
    let file = cold_file(&dir.join("file"), 19);
    let mut reader = Reader::new();
    let pid = reader.pid();
    // An interval that outlasts it: what it read is in the part of it that there was.
    let mut monitor = Monitor::start(&format!("--csv -p {pid} --columns accesses,misses 60"));
    reader.tell("random", &file);
    reader.end();
    let (status, err) = monitor.ended();
    assert!(status.success(), "{status}");
    assert_eq!(err, format!("cachestat: process {pid} has ended\n"));
    assert_eq!(monitor.lines.len(), 2, "{:?}", monitor.lines);
    assert!(monitor.lines[1].ends_with(",19,19"), "{:?}", monitor.lines);
}
