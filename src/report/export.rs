//! What hyperfine writes, of groups of runs: `--export-json`, `--export-csv`, `--export-markdown`. Keys and columns have
//! its names and its order, so that what reads its files reads these; ours come after.

use serde_json::Value;
use serde_json::json;

use super::Report;
use super::groups::Group;
use super::groups::State;
use super::stats::Ratio;
use crate::figures::Figure;
use crate::text::foreign;
use crate::text::foreign::Foreign;

/// The command of a group, as it would be typed; a process that is watched by its number.
fn command(report: &Report, group: &Group) -> Foreign {
    if let Some((_, line)) = report.commands.iter().find(|(label, _)| *label == group.label) {
        return line.clone();
    }
    match report.pid {
        Some(pid) => Foreign::from(format!("process {pid}")),
        None => {
            let words: Vec<&[u8]> = report.command.iter().map(Foreign::bytes).collect();
            Foreign::from(words.join(&b' ').as_slice())
        }
    }
}

/// JSON as hyperfine has it: `results`, one for each group, with every time and exit code.
pub(super) fn json(report: &Report) -> String {
    let result = |g: &Group| {
        let (wall, mean) = (&g.wall, &g.mean);
        let mut out = json!({
            "command": command(report, g),
            "mean": wall.mean,
            "stddev": wall.deviation,
            "median": wall.median,
            "user": mean.usage.user_s,
            "system": mean.usage.system_s,
            "min": wall.least,
            "max": wall.most,
            "times": g.walls(),
            "exit_codes": g.statuses(),
        });
        if let (Value::Object(out), Value::Object(ours)) = (&mut out, g.json()) {
            let beyond = |key: &str| !matches!(key, "id" | "wall_s" | "user_s" | "system_s");
            out.insert("group".into(), json!(g.id()));
            out.extend(ours.into_iter().filter(|(key, _)| beyond(key)));
            out.insert("hit_ratio".into(), json!(mean.figures.hit_ratio()));
        }
        out
    };
    let results: Vec<Value> = report.groups.iter().map(result).collect();
    format!("{}\n", foreign::json(&json!({ "results": results })))
}

/// CSV: a line for each group. What is not known is empty.
pub(super) fn csv(report: &Report) -> String {
    fn text<T: ToString>(x: Option<T>) -> String {
        x.map_or_else(String::new, |x| x.to_string())
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = [
        "command",
        "mean",
        "stddev",
        "median",
        "user",
        "system",
        "min",
        "max",
        "group",
        "runs",
        "outliers",
        "cached_before",
        "hit_ratio",
        "misses",
        "device_read_bytes",
    ];
    // Writing to memory cannot fail.
    let _ = writer.write_record(head);
    for g in &report.groups {
        let (wall, mean) = (&g.wall, &g.mean);
        let _ = writer.write_record([
            command(report, g).cell(),
            wall.mean.to_string(),
            text(wall.deviation),
            wall.median.to_string(),
            text(mean.usage.user_s),
            text(mean.usage.system_s),
            wall.least.to_string(),
            wall.most.to_string(),
            g.id(),
            g.runs.len().to_string(),
            g.outliers.len().to_string(),
            text(g.cached_before()),
            text(mean.figures.hit_ratio()),
            text(mean.get(Figure::Misses)),
            text(mean.usage.device_read_bytes),
        ]);
    }
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// A table of Markdown, all in one unit, relative to the fastest in the same state.
pub(super) fn markdown(report: &Report) -> String {
    let least = report.groups.iter().map(|g| g.wall.mean).fold(f64::INFINITY, f64::min);
    let (unit, scale, digits) = if least < 1.0 { ("ms", 1e3, 1) } else { ("s", 1.0, 3) };
    let time = |x: f64| format!("{:.digits$}", x * scale);
    let mut out = format!(
        "| Command | Cache | Runs | Mean [{unit}] | Min [{unit}] | Max [{unit}] | Relative |\n\
         |:---|:---|---:|---:|---:|---:|---:|\n"
    );
    for g in &report.groups {
        let wall = &g.wall;
        let error = wall.deviation.map_or_else(String::new, |d| format!(" ± {}", time(d)));
        let state = match g.state {
            State::Cold => "cold",
            State::Warm => "warm",
            State::Any => "",
        };
        let relative = relative(&report.groups, g);
        out.push_str(&format!(
            "| {} | {state} | {} | {}{error} | {} | {} | {relative} |\n",
            code(&command(report, g).to_string()),
            g.runs.len(),
            time(wall.mean),
            time(wall.least),
            time(wall.most),
        ));
    }
    out
}

/// How many times as long a run took as those of the fastest group: of all commands in the same state, or of one
/// command in all states. What ended otherwise than the first is not compared.
pub(super) fn relative(groups: &[Group], group: &Group) -> String {
    let ended = |g: &Group| groups.first().is_none_or(|first| g.mean.ended_as(&first.mean));
    if !ended(group) {
        return "-".into();
    }
    let alike = |g: &&Group| (group.label.is_empty() || g.state == group.state) && ended(g);
    let fastest = groups.iter().filter(alike).min_by(|a, b| a.wall.mean.total_cmp(&b.wall.mean));
    match fastest {
        Some(fastest) if fastest.id() == group.id() => "1.00".into(),
        Some(fastest) => Ratio::between(&group.wall, &fastest.wall).map_or_else(String::new, Ratio::words),
        None => String::new(),
    }
}

/// Text as code in a cell of a table: in more backticks than it has in a row, and without what ends the cell.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{}{pad}{fence}", text.replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::report::data::Run;
    use crate::report::groups;

    fn report(line: &str) -> Report {
        let run = |number, wall_s, label: &str| Run {
            number,
            wall_s,
            label: Some(label.into()),
            exit_status: Some(0),
            ..Run::default()
        };
        let runs = vec![run(1, 0.3, "A"), run(2, 0.1, "B"), run(3, 0.5, "A")];
        let groups = groups::divide(&runs);
        let commands = vec![("A".into(), Foreign::from(line)), ("B".into(), "true".into())];
        Report { runs, groups, commands, ..Report::default() }
    }

    #[test]
    fn as_hyperfine_writes_it() {
        let report = report("du -s .");
        let v: Value = serde_json::from_str(&json(&report)).unwrap();
        let a = &v["results"][0];
        assert_eq!((&a["command"], &a["group"]), (&json!("du -s ."), &json!("A")));
        assert_eq!((&a["times"], &a["exit_codes"]), (&json!([0.3, 0.5]), &json!([0, 0])));
        assert_eq!(
            (&a["mean"], &a["min"], &a["max"], &a["user"]),
            (&json!(0.4), &json!(0.3), &json!(0.5), &Value::Null)
        );
        assert!(v["results"][1]["stddev"].is_null(), "of one run");
        assert_eq!(
            csv(&report),
            "command,mean,stddev,median,user,system,min,max,group,runs,outliers,cached_before,hit_ratio,misses,\
             device_read_bytes\n\
             du -s .,0.4,0.14142135623730953,0.4,,,0.3,0.5,A,2,0,,,,\n\
             true,0.1,,0.1,,,0.1,0.1,B,1,0,,,,\n"
        );
        assert_eq!(
            markdown(&report),
            "| Command | Cache | Runs | Mean [ms] | Min [ms] | Max [ms] | Relative |\n\
             |:---|:---|---:|---:|---:|---:|---:|\n\
             | `du -s .` |  | 2 | 400.0 ± 141.4 | 300.0 | 500.0 | 4.0 |\n\
             | `true` |  | 1 | 100.0 | 100.0 | 100.0 | 1.00 |\n"
        );
    }

    #[test]
    fn a_hostile_line_stays_in_its_cell() {
        let report = report("=cmd|' /C calc'!A0\n`x` \x1b]0;x\x07,\"");
        for text in [csv(&report), markdown(&report), json(&report)] {
            assert!(!text.contains('\x1b') && text.lines().count() <= 4, "{text}");
        }
        assert!(csv(&report).lines().nth(1).unwrap().starts_with("\"'=cmd|"), "{}", csv(&report));
        let table = markdown(&report);
        let line = table.lines().nth(2).unwrap();
        assert!(line.starts_with("| ``=cmd\\|' /C calc'!A0\\n`x` \\x1b]0;x\\x07,\"`` | "), "{line}");
    }
}
