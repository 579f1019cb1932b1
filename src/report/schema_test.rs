//! `docs/schema.json` describes every key that a report has, and the report has every key described.
#![allow(clippy::unwrap_used)]

use serde_json::Value;

use super::Report;
use super::Saved;
use super::data::*;
use super::json;

/// What of JSON Schema the published one uses: types, constants, properties, required keys, items.
fn check(root: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.trim_start_matches('#')).unwrap();
        return check(root, target, value, at);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_u64() || n.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed = |t: &Value| t == kind || (t == "number" && kind == "integer");
    let types = &schema["type"];
    assert!(
        allowed(types) || types.as_array().is_some_and(|t| t.iter().any(allowed)),
        "{at}: {kind}, not {types}"
    );
    if let Some(all) = schema["enum"].as_array() {
        assert!(all.contains(value), "{at}: {value}");
    }
    if let Some(constant) = schema.get("const") {
        assert_eq!(value, constant, "{at}");
    }
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        check(root, &schema["items"], item, &format!("{at}[{i}]"));
    }
    let Some(object) = value.as_object() else { return };
    for key in schema["required"].as_array().into_iter().flatten() {
        assert!(object.contains_key(key.as_str().unwrap()), "{at} has no {key}");
    }
    for (key, value) in object {
        let at = format!("{at}.{key}");
        match (schema["properties"].get(key), &schema["additionalProperties"]) {
            (Some(schema), _) => check(root, schema, value, &at),
            (None, Value::Bool(false)) => panic!("{at} is not published"),
            (None, Value::Null) => {}
            (None, schema) => check(root, schema, value, &at),
        }
    }
}

#[test]
fn a_report_is_as_published() {
    let schema: Value = serde_json::from_str(include_str!("../../docs/schema.json")).unwrap();
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
        exit_status: Some(0),
        wall_s: 1.0,
        usage: Usage::zero(),
        latency: Some(Latency { hit: vec![0; 32], miss: vec![1; 32] }),
        window_pages: Some(vec![0; 16]),
        files: vec![file, FileRow::default()],
        warmers: vec![warmer],
        processes: [(7, "sh".to_owned())].into(),
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
    check(&schema, &schema, &json::object(&report), "report");
    // With nothing known, and with a process instead of a command.
    let mut poor = Report { pid: Some(3), runs: vec![Run::default()], ..Report::default() };
    poor.conclude();
    check(&schema, &schema, &json::object(&poor), "report");
}
