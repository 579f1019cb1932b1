//! The report for programs, and as it is saved.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Report;
use super::data::Run;
use super::groups::Group;
use super::stats::Spread;
use super::time::Parts;
use super::units::page;
use crate::text::foreign::Foreign;

/// The name of this shape of a report.
pub(super) const SCHEMA: &str = "cachestat-report-1";

/// The report as one object: the figures of the last run, then all runs.
#[must_use]
pub fn object(report: &Report) -> Value {
    let mut out = Map::new();
    out.insert("schema".into(), json!(SCHEMA));
    out.insert("command".into(), json!(report.command));
    let line = |(label, line): &(String, Foreign)| json!({ "label": label, "line": line });
    out.insert("commands".into(), json!(report.commands.iter().map(line).collect::<Vec<_>>()));
    out.insert("pid".into(), json!(report.pid));
    out.insert("kernel".into(), json!(report.kernel));
    out.insert("host".into(), json!(report.host));
    out.insert("engine".into(), json!("exact"));
    out.insert("page_size".into(), json!(page()));
    out.insert("verdict".into(), json!(report.verdict));
    out.insert("assertions".into(), json!(report.assertions));
    let runs: Vec<Map<String, Value>> = report.runs.iter().map(run).collect();
    if let Some(last) = runs.last() {
        out.extend(last.clone());
    }
    // Of runs that cannot be taken together there is no mean.
    let walls: Vec<f64> = report.runs.iter().map(|r| r.wall_s).collect();
    let spread = Spread::measure(&walls).filter(|_| report.groups.len() == 1);
    out.insert("wall_spread".into(), json!(spread));
    out.insert("groups".into(), json!(report.groups.iter().map(Group::json).collect::<Vec<_>>()));
    out.insert("comparisons".into(), json!(report.comparisons));
    out.insert("runs".into(), json!(runs));
    let compared = report.compared.as_ref().map(|s| {
        let groups: Vec<_> = s.groups.iter().map(Group::json).collect();
        json!({ "path": s.path, "about": s.about, "groups": groups })
    });
    out.insert("compared".into(), json!(compared));
    out.insert("trial".into(), json!(report.trial));
    out.insert("differences".into(), json!(report.differences));
    out.insert("findings".into(), json!(report.findings));
    out.insert("about".into(), json!(report.about));
    out.insert("unknown".into(), json!(report.unknown));
    Value::Object(out)
}

fn run(run: &Run) -> Map<String, Value> {
    let mut out = run.to_json();
    out.insert("time_parts".into(), json!(Parts::divide(run)));
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::exit::Code;
    use crate::report::saved::saved;

    #[test]
    fn a_report_can_be_compared_with() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        let runs = vec![
            Run { number: 1, wall_s: 1.0, ..Run::default() },
            Run { number: 2, wall_s: 0.5, ..Run::default() },
        ];
        let report =
            Report { command: vec!["du".into(), "-s".into()], host: "h".into(), runs, ..Report::default() };
        std::fs::write(&path, object(&report).to_string()).unwrap();
        let saved = saved(&path).unwrap();
        assert_eq!(saved.run.number, 2);
        // What was run is known, so that another command is not taken for it.
        let concluded = |command: &[&str]| {
            let command = command.iter().map(|w| (*w).into()).collect();
            let mut report = Report { command, runs: report.runs.clone(), ..Report::default() };
            report.conclude();
            report.runs.remove(0)
        };
        assert!(saved.run.is_same_command(&concluded(&["du", "-s"])));
        assert!(!saved.run.is_same_command(&concluded(&["du -s"])));
        assert!(saved.about.starts_with("du -s, on h") && !saved.about.contains("pages"), "{}", saved.about);
        let mut elsewhere = object(&report);
        elsewhere["page_size"] = json!(65536);
        std::fs::write(&path, elsewhere.to_string()).unwrap();
        let about = crate::report::saved::saved(&path).unwrap().about;
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
