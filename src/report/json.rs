//! The report for programs, and as it is saved.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::Map;
use serde_json::Value;
use serde_json::error::Category;
use serde_json::json;

use super::Report;
use super::Saved;
use super::compare::Spread;
use super::data::Run;
use super::time::Parts;
use super::units::page;
use crate::exit::Failure;
use crate::foreign::Foreign;

/// The name of this shape of a report.
const SCHEMA: &str = "cachestat-report-1";
/// Bytes that a saved report may have: a thousand runs have 200 MiB.
const LARGEST: u64 = 1 << 30;

/// The report as one object: the figures of the last run, then all runs.
#[must_use]
pub fn object(report: &Report) -> Value {
    let mut out = Map::new();
    out.insert("schema".into(), json!(SCHEMA));
    out.insert("command".into(), json!(report.command));
    out.insert("pid".into(), json!(report.pid));
    out.insert("kernel".into(), json!(report.kernel));
    out.insert("host".into(), json!(report.host));
    out.insert("engine".into(), json!("exact"));
    out.insert("page_size".into(), json!(page()));
    let runs: Vec<Map<String, Value>> = report.runs.iter().map(run).collect();
    if let Some(last) = runs.last() {
        out.extend(last.clone());
    }
    let walls: Vec<f64> = report.runs.iter().map(|r| r.wall_s).collect();
    out.insert("wall_spread".into(), json!(Spread::of(&walls)));
    out.insert("runs".into(), json!(runs));
    let compared = report.compared.as_ref().map(|s| json!({ "path": s.path, "about": s.about }));
    out.insert("compared".into(), json!(compared));
    out.insert("differences".into(), json!(report.differences));
    out.insert("findings".into(), json!(report.findings));
    out.insert("about".into(), json!(report.about));
    out.insert("unknown".into(), json!(report.unknown));
    Value::Object(out)
}

fn run(run: &Run) -> Map<String, Value> {
    let mut out = run.to_json();
    out.insert("time_parts".into(), json!(Parts::of(run)));
    out
}

/// Reads a report that was saved.
///
/// # Errors
/// Wrong usage, when it is none.
pub fn saved(path: &Path) -> Result<Saved, Failure> {
    let remedy = "name a file that '--save FILE' or '--json -o FILE' wrote";
    let bad = |why: String| {
        Failure::usage(format!("cannot compare with {}: {why}", Foreign::from(path))).remedy(remedy)
    };
    let mut bytes = Vec::new();
    // A device has no end.
    let file = File::open(path).map_err(|e| bad(e.to_string()))?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|e| bad(e.to_string()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(bad("it is too large for a report".into()));
    }
    let value: Value = serde_json::from_slice(&bytes).map_err(|e| match e.classify() {
        Category::Eof if !bytes.is_empty() => bad("it is not complete: its end is missing".into()),
        _ if bytes.is_empty() => bad("it is empty".into()),
        _ if String::from_utf8_lossy(&bytes).lines().count() > 1 && bytes.starts_with(b"{") => {
            bad("it has more than one object: these are intervals, not the report of a command".into())
        }
        _ => bad("it is not JSON".into()),
    })?;
    match value["schema"].as_str() {
        Some(SCHEMA) => {}
        Some(other) => {
            return Err(bad(format!("it is '{}', and this version knows '{SCHEMA}'", Foreign::from(other))));
        }
        None => return Err(bad("it is JSON, but not the report of a command".into())),
    }
    let run = value["runs"].as_array().and_then(|runs| runs.last());
    let run = run.ok_or_else(|| bad("it has no run".into()))?;
    let run = Run::from_json(run).map_err(|e| bad(format!("its last run cannot be read: {e}")))?;
    let words =
        value["command"].as_array().into_iter().flatten().filter_map(Value::as_str).map(Foreign::from);
    let size = value["page_size"].as_u64().filter(|n| *n != page());
    let about = format!(
        "{}, on {}, {}{}",
        words.map(|w| w.to_string()).collect::<Vec<_>>().join(" "),
        Foreign::from(value["host"].as_str().unwrap_or("?")),
        Foreign::from(run.time.as_str()),
        size.map_or_else(String::new, |n| format!(", pages of {n} bytes, not of {}", page()))
    );
    Ok(Saved { path: path.into(), about, run })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::exit::Code;

    #[test]
    fn a_report_can_be_compared_with() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        let runs =
            vec![Run { number: 1, ..Run::default() }, Run { number: 2, wall_s: 0.5, ..Run::default() }];
        let report =
            Report { command: vec!["du".into(), "-s".into()], host: "h".into(), runs, ..Report::default() };
        std::fs::write(&path, object(&report).to_string()).unwrap();
        let saved = saved(&path).unwrap();
        assert_eq!(saved.run.number, 2);
        assert!(saved.about.starts_with("du -s, on h") && !saved.about.contains("pages"), "{}", saved.about);
        let mut elsewhere = object(&report);
        elsewhere["page_size"] = json!(65536);
        std::fs::write(&path, elsewhere.to_string()).unwrap();
        let about = super::saved(&path).unwrap().about;
        assert!(about.contains("pages of 65536 bytes"), "{about}");
    }

    #[test]
    fn what_is_no_report_is_wrong_usage() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        assert_eq!(saved(&path).unwrap_err().code, Code::Usage);
        for text in [
            "",
            "{}",
            "[1]",
            r#"{"schema":"cachestat-report-1"}"#,
            r#"{"schema":"cachestat-report-1","runs":[7]}"#,
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(saved(&path).unwrap_err().code, Code::Usage, "{text}");
        }
        for (bytes, why) in [
            (&b"\x7fELF\x02\x01\0\0\xff\xfe"[..], "it is not JSON"),
            (b"", "it is empty"),
            (br#"{"schema":"cachestat-report-1","#, "its end is missing"),
            (b"{\"time\":1}\n{\"time\":2}\n", "these are intervals"),
            (br#"{"name":"x","version":"1.0"}"#, "not the report of a command"),
            (br#"{"schema":"cachestat-report-9"}"#, "this version knows 'cachestat-report-1'"),
            (br#"{"schema":"cachestat-report-1","runs":[{"wall_s":"x"}]}"#, "cannot be read"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let failure = saved(&path).unwrap_err();
            assert_eq!(failure.code, Code::Usage);
            assert!(failure.message.contains(why) && failure.remedy.is_some(), "{failure:?}");
        }
        assert_eq!(saved(dir.path()).unwrap_err().code, Code::Usage);
    }
}
