//! `docs/schema.json` describes every key that a report has, and the report has every key described.
#![allow(clippy::unwrap_used)]

use super::Report;
use super::Saved;
use super::certificate;
use super::certificate::Before;
use super::certificate::Certificate;
use super::data::*;
use super::json;
use super::pushed::By;
use super::pushed::Pushed;
use super::pushed::Row;
use crate::schema_check::check_report;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::figures::Figure;
use crate::figures::GROUPS;
use crate::figures::Scope;

#[test]
fn a_report_is_as_published() {
    let pattern = Some(Pattern { absent: 13, present: 1, times: 9 });
    let file = FileRow {
        path: Some("/f".into()),
        before: Some(Residency { cached: 1, pages: 2, pattern }),
        ..FileRow::default()
    };
    let warmer = Warmer { pid: 1, comm: "x".into(), path: None, fills: 2, time: "t".into() };
    let before = Before { files: 2, why: vec!["w".into()], ..Before::default() }.known(9, 1, 2, 4096);
    let certificate = Certificate { id: certificate::ID.into(), before, ..Certificate::default() };
    let row = Row {
        how: Some("limit"),
        kind: None,
        owner: Some("/a".into()),
        by: By { cgroup: Some("/b".into()), process: None },
        limit_of: None,
        own: false,
        other: false,
        out_pages: 3,
        back_pages: Some(2),
        again_pages: None,
        waited_s: Some(0.5),
    };
    let of_file = super::pushed::FileRow {
        path: Some("/f".into()),
        how: Some("limit"),
        by: By::default(),
        own: false,
        other: false,
        out_pages: 3,
        again_pages: None,
        waited_s: None,
    };
    let what_if = crate::whatif::Prediction {
        curve: Some(vec![crate::whatif::Scaled::default()]),
        reason: Some("r".into()),
        ..crate::whatif::Prediction::default()
    };
    let full = Run {
        what_if: Some(what_if),
        certificate: Some(certificate),
        blame: Some(Pushed { rows: vec![row], files: vec![of_file], ..Pushed::default() }),
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
    let runs = [full.clone()];
    let saved = Saved {
        path: "p".into(),
        about: "a".into(),
        run: full.clone(),
        groups: crate::report::groups::divide(&runs),
    };
    let mut report = Report {
        command: vec!["du".into()],
        runs: vec![full.clone(), Run { number: 2, cold: None, ..full }],
        compared: Some(saved),
        about: vec!["x".into()],
        unknown: vec!["y".into()],
        ..Report::default()
    };
    report.conclude();
    assert_eq!(report.differences.len(), 2);
    report.trial = Some(super::trial::example());
    let certificate = report.runs[0].certificate.as_ref().unwrap();
    assert_eq!(certificate.cold.as_ref().unwrap().caches, "all");
    check_report(&json::object(&report));
    // With nothing known, and with a process instead of a command.
    let mut poor = Report { pid: Some(3), runs: vec![Run::default()], ..Report::default() };
    poor.conclude();
    check_report(&json::object(&poor));
}

/// Whoever holds a line against the whole schema finds its kind there: nothing is described that no line leads to.
#[test]
fn each_kind_of_line_is_one_of_those_at_the_top() {
    let schema: Value = serde_json::from_str(include_str!("../../docs/schema.json")).unwrap();
    let mut reached = std::collections::BTreeSet::new();
    let mut next = vec![&schema["anyOf"]];
    while let Some(value) = next.pop() {
        match value {
            Value::Array(all) => next.extend(all),
            Value::Object(all) => {
                if let Some(name) = all.get("$ref").and_then(Value::as_str) {
                    let (at, name) = (name.strip_prefix('#').unwrap(), name.split('/').nth(2).unwrap());
                    let target = schema.pointer(at).unwrap_or_else(|| panic!("{at} is not there"));
                    if reached.insert(name) {
                        next.push(target);
                    }
                }
                next.extend(all.values());
            }
            _ => {}
        }
    }
    let all: std::collections::BTreeSet<_> =
        schema["$defs"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(reached, all);
}

/// What the schema says of the figures of a group, of which this holds.
fn described(group: &str, which: fn(&Figure) -> bool) -> Value {
    let figures: Vec<_> = Figure::of_group(group).filter(which).collect();
    let mut properties = Map::new();
    for figure in &figures {
        let about = format!("{} ({})", figure.about(), figure.unit().name());
        let value = json!({ "type": ["integer", "null"], "minimum": 0, "description": about });
        properties.insert(figure.key().into(), value);
    }
    if figures.contains(&Figure::Misses) {
        let about = "hits / accesses; null when nothing was read";
        properties.insert("hit_ratio".into(), json!({ "type": ["number", "null"], "description": about }));
    }
    let mut required: Vec<_> = properties.keys().cloned().collect();
    required.sort();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// What the line of an interval has beside the figures of a group.
fn add_more(group: &str, described: &mut Value) {
    let bytes = |about: &str| json!({ "type": "integer", "minimum": 0, "description": about });
    let more = match group {
        "cache" => vec![
            ("cached_bytes", bytes("bytes of files in the cache, at its end")),
            ("buffers_bytes", bytes("bytes of block devices in the cache")),
            ("dirty_bytes", bytes("bytes that have yet to be written")),
        ],
        "readahead" => {
            let windows = bytes("windows");
            let about = "read-ahead windows of 2^i pages and more; null where latency is";
            let all = json!({ "type": ["array", "null"], "items": windows, "description": about });
            vec![("window_pages", all)]
        }
        _ => return,
    };
    for (key, value) in more {
        described["properties"][key] = value;
        described["required"].as_array_mut().unwrap().push(key.into());
    }
}

/// What a run has of a group: the keys of an interval, but what the cache as a whole has is nobody's.
fn of_run(group: &str) -> Value {
    let mut described = described(group, |_| true);
    let whole = Figure::of_group(group).filter(|f| f.scope() == Scope::Cache).map(Figure::key);
    let sizes = SIZES.iter().copied().filter(|_| group == "cache");
    for key in whole.chain(sizes) {
        let about = "null: it is of the cache as a whole, see system";
        described["properties"][key] = json!({ "type": "null", "description": about });
        let required = described["required"].as_array_mut().unwrap();
        if !required.contains(&json!(key)) {
            required.push(json!(key));
        }
    }
    described
}

/// With `UPDATE_SCHEMA` in the environment, what differs is written.
#[test]
fn figures_are_described_as_in_their_table() {
    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/schema.json");
    let is = std::fs::read_to_string(PATH).unwrap();
    let mut schema: Value = serde_json::from_str(&is).unwrap();
    for (group, of_rows) in GROUPS {
        schema["$defs"]["run"]["properties"][*group] = of_run(group);
        // Of an interval all of them, as of its rows; those of evictors have what the cache loses, too.
        let mut whole = described(group, |_| true);
        if *of_rows || *group == "cache" {
            schema["$defs"]["interval_row"]["properties"][*group] = whole.clone();
        }
        add_more(group, &mut whole);
        schema["$defs"]["interval"]["properties"][*group] = whole;
    }
    let mut ought = Vec::new();
    let form = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut writer = serde_json::Serializer::with_formatter(&mut ought, form);
    serde::Serialize::serialize(&schema, &mut writer).unwrap();
    ought.push(b'\n');
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(PATH, &ought).unwrap();
    }
    assert!(is.as_bytes() == ought, "docs/schema.json is old: UPDATE_SCHEMA=1 cargo test --lib schema");
}
