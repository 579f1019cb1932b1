//! `docs/schema.json` describes every key that a report has, and the report has every key described.
#![allow(clippy::unwrap_used)]

#[path = "../../tests/tools/schema.rs"]
mod schema;

use super::Report;
use super::Saved;
use super::data::*;
use super::json;
use schema::check_report;

#[test]
fn a_report_is_as_published() {
    let pattern = Some(Pattern { absent: 13, present: 1, times: 9 });
    let file = FileRow {
        path: Some("/f".into()),
        before: Some(Residency { cached: 1, pages: 2, pattern }),
        ..FileRow::default()
    };
    let warmer = Warmer { pid: 1, comm: "x".into(), path: None, fills: 2, time: "t".into() };
    let full = Run {
        number: 1,
        cold: Some("all".into()),
        cold_left: Some(crate::report::cold::Left::default()),
        exit_status: Some(0),
        wall_s: 1.0,
        usage: Usage::zero(),
        latency: Some(Latency { hit: vec![0; 32], miss: vec![1; 32] }),
        window_pages: Some(vec![0; 16]),
        files: vec![file, FileRow::default()],
        warmers: vec![warmer],
        processes: [(7, "sh".into())].into(),
        left_behind: vec![7],
        timeline: vec![Tick::default()],
        lost: [("nesting".to_owned(), 3)].into(),
        ..Run::default()
    };
    let saved = Saved { path: "p".into(), about: "a".into(), run: full.clone() };
    let mut report = Report {
        command: vec!["du".into()],
        runs: vec![full.clone(), Run { number: 2, ..full }],
        compared: Some(saved),
        about: vec!["x".into()],
        unknown: vec!["y".into()],
        ..Report::default()
    };
    report.conclude();
    assert_eq!(report.differences.len(), 2);
    check_report(&json::object(&report));
    // With nothing known, and with a process instead of a command.
    let mut poor = Report { pid: Some(3), runs: vec![Run::default()], ..Report::default() };
    poor.conclude();
    check_report(&json::object(&poor));
}
