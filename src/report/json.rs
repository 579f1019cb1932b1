//! The report for programs, and as it is saved.

use std::path::Path;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Report;
use super::Saved;
use super::compare::Spread;
use super::data::Run;
use super::time::Parts;
use crate::exit::Failure;

/// The report as one object: the figures of the last run, then all runs.
#[must_use]
pub fn object(report: &Report) -> Value {
    let mut out = Map::new();
    out.insert("schema".into(), json!("cachestat-report-1"));
    out.insert("command".into(), json!(report.command));
    out.insert("pid".into(), json!(report.pid));
    out.insert("kernel".into(), json!(report.kernel));
    out.insert("host".into(), json!(report.host));
    out.insert("engine".into(), json!("exact"));
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
    let bad =
        |why: String| Failure::usage(format!("cannot compare with {}: {why}", path.display())).remedy(remedy);
    let text = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
    if value["schema"] != "cachestat-report-1" {
        return Err(bad("it is no report of this version".into()));
    }
    let run = value["runs"].as_array().and_then(|runs| runs.last());
    let run = run.ok_or_else(|| bad("it has no run".into()))?;
    let run = Run::from_json(run).map_err(|e| bad(e.to_string()))?;
    let words = value["command"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let about = format!(
        "{}, on {}, {}",
        words.collect::<Vec<_>>().join(" "),
        value["host"].as_str().unwrap_or("?"),
        run.time
    );
    Ok(Saved { path: path.display().to_string(), about, run })
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
        assert!(saved.about.starts_with("du -s, on h"), "{}", saved.about);
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
    }
}
