//! The working set as text and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use serde_json::json;

use super::Measured;
use super::Unknown;
use super::measure::Set;
use super::measure::WINDOWS;
use crate::pivot::label;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::text::numbers;
use crate::text::numbers::Unit;
use crate::text::table;

/// Whose a row is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    /// A process: its id, and what it was called last.
    Process(u64, Foreign),
    /// A cgroup: its path.
    Cgroup(Foreign),
    /// A file: its path, where it is known, and the number of its inode.
    File(Option<Foreign>, u64),
}

impl Who {
    fn text(&self) -> String {
        match self {
            Who::Process(pid, name) => format!("{pid} {}", label(&name.to_string())),
            Who::Cgroup(path) | Who::File(Some(path), _) => label(&path.to_string()).into_owned(),
            Who::File(None, inode) => format!("inode {inode}"),
        }
    }

    fn json(&self) -> Value {
        match self {
            Who::Process(pid, name) => json!({ "pid": pid, "process": name }),
            Who::Cgroup(path) => json!({ "cgroup": path }),
            Who::File(path, inode) => json!({ "path": path, "inode": inode }),
        }
    }
}

/// What is shown.
pub(super) struct Shown<'a> {
    pub(super) measured: &'a Measured<Who>,
    /// When it was read.
    pub(super) at: Timestamp,
    /// How long was watched.
    pub(super) time: Duration,
    /// What rows stand for; `None`: there are none.
    pub(super) by: Option<&'a str>,
    /// What counts, in words; empty: everything.
    pub(super) chosen: &'a str,
    pub(super) unit: Unit,
    /// How often there was no sketch for an owner, and pages that were not looked at.
    pub(super) refused: u64,
    pub(super) beyond: u64,
    /// Events that could not be accounted.
    pub(super) lost: u64,
    /// What a reader must know.
    pub(super) notes: &'a [String],
}

/// What the windows are called.
fn names() -> impl Iterator<Item = String> {
    WINDOWS.iter().map(|m| format!("{m}m")).chain(["watched".into()])
}

fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

impl Shown<'_> {
    /// One object.
    pub(super) fn json(&self) -> String {
        let all = self.measured;
        let windows = names().zip(all.windows.lengths()).map(|(name, length)| {
            let seconds = length.map(|l| rounded(l.as_secs_f64())).ok();
            json!({ "window": name, "seconds": seconds, "reason": length.err().map(|why| why.text()) })
        });
        let windows: Vec<Value> = windows.collect();
        let rows = all.rows.iter().map(|(who, set)| with(who.json(), set));
        let rows: Vec<Value> = rows.collect();
        let rest = all.rest.as_ref().map(|(number, set)| with(json!({ "rows": number }), set));
        let ended = all.ended.as_ref().map(|(number, set)| with(json!({ (self.ended()): number }), set));
        let working_set = json!({
            "time": crate::view::utc(self.at),
            "seconds": rounded(self.time.as_secs_f64()),
            "by": self.by,
            "of": (!self.chosen.is_empty()).then_some(self.chosen),
            "windows": windows,
            "all": with(json!({}), &all.all),
            "rows": rows,
            "rest": rest,
            "ended": ended,
            "other": all.other.as_ref().map(|set| with(json!({}), set)),
            "refused": self.refused,
            "beyond_pages": self.beyond,
            "lost": { "total": self.lost },
            "notes": self.notes,
        });
        format!("{}\n", foreign::json(&json!({ "working_set": working_set })))
    }

    /// Who has ended and gave sketches back, in JSON.
    fn ended(&self) -> &'static str {
        if self.by == Some("cgroup") { "cgroups" } else { "processes" }
    }

    fn cells(&self, set: &Set) -> Vec<String> {
        let shown = |pages: Option<u64>| match (pages, self.unit) {
            (None, _) => "-".into(),
            (Some(pages), Unit::Pages) => pages.to_string(),
            (Some(pages), Unit::Bytes) => numbers::bytes(pages.saturating_mul(page_size())),
        };
        let mut cells: Vec<String> = set.pages().map(shown).into();
        cells.push(set.bound().map_or_else(|| "-".into(), |bound| format!("±{:.1}%", bound * 100.0)));
        cells
    }

    /// A table.
    pub(super) fn text(&self) -> String {
        let all = self.measured;
        let of = if self.chosen.is_empty() { String::new() } else { format!(" by {}", self.chosen) };
        let unit = match self.unit {
            Unit::Pages => format!("pages of {}", numbers::bytes(page_size())),
            Unit::Bytes => "bytes".into(),
        };
        let time = self.time.as_secs_f64();
        let mut out = format!("Working set: distinct pages used{of}, in {unit}; {time:.1} s watched\n\n");
        let mut lines: Vec<Vec<String>> = vec![names().map(|n| n.to_uppercase()).collect()];
        lines[0].push("ERROR".into());
        let mut whose = vec![self.by.map_or_else(String::new, str::to_uppercase)];
        let mut line = |set: &Set, who: String| {
            lines.push(self.cells(set));
            whose.push(who);
        };
        line(&all.all, "all together".into());
        for (who, set) in &all.rows {
            line(set, who.text());
        }
        if let Some((number, set)) = &all.rest {
            line(set, format!("{number} more, together"));
        }
        if let Some((number, set)) = &all.ended {
            let gone = if self.by == Some("cgroup") { "are gone" } else { "have ended" };
            line(set, format!("{number} that {gone}, together"));
        }
        if let Some(set) = &all.other {
            line(set, "(other): nobody's, or without a sketch of its own".into());
        }
        let table = table::fitted(&lines, &whose);
        out.extend(table.lines().flat_map(|l| [l.trim_end(), "\n"]));
        out.push('\n');
        for why in [Unknown::Short, Unknown::Long] {
            let unknown = names().zip(all.windows.lengths()).filter(|(_, length)| *length == Err(why));
            let unknown: Vec<_> = unknown.map(|(name, _)| name).collect();
            if !unknown.is_empty() {
                let _ = writeln!(out, "{}: not known: {}", unknown.join(", "), why.text());
            }
        }
        for (name, length) in names().zip(all.windows.lengths()) {
            match length {
                Ok(long) if long.as_nanos() % 60_000_000_000 != 0 && name != "watched" => {
                    _ = writeln!(out, "{name}: of the last {:.1} s", long.as_secs_f64());
                }
                _ => {}
            }
        }
        out += "ERROR: 95 of 100 figures are off by no more.\n";
        for note in self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        out
    }
}

/// The figures of a row beside who it is.
fn with(mut who: Value, set: &Set) -> Value {
    let figures = |each: u64| -> Value {
        let each = |pages: Option<u64>| pages.map_or(Value::Null, |n| n.saturating_mul(each).into());
        names().zip(set.pages().map(each)).collect::<serde_json::Map<_, _>>().into()
    };
    who["pages"] = figures(1);
    who["bytes"] = figures(page_size());
    who["error"] = set.bound().map_or(Value::Null, Value::from);
    who["sketch"] = set.longest().map_or(Value::Null, |registers| registers.text().into());
    who
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::Clock;
    use super::super::measure::Windows;
    use super::*;

    fn measured() -> Measured<Who> {
        let minute = Duration::from_secs(60);
        let windows = Windows::new(Clock::new(minute), minute);
        let set = |pages: usize, mark: u8| {
            let mut marks = vec![0; 24 << 10];
            marks[..pages].fill(mark);
            windows.set(&marks)
        };
        let rows = vec![
            (Who::Process(7, b"evil\x1b[2J".as_slice().into()), set(3, 4)),
            (Who::Process(8, "b".into()), set(2, 1)),
            (Who::Process(9, "c".into()), set(1, 1)),
        ];
        let (all, other) = (set(4, 2), Some(set(1, 1)));
        Measured::new(windows, all, rows, other, 2)
    }

    fn shown<'a>(measured: &'a Measured<Who>, unit: Unit) -> Shown<'a> {
        let time = Duration::from_secs(60);
        Shown {
            measured,
            at: Timestamp::UNIX_EPOCH,
            time,
            by: Some("process"),
            chosen: "",
            unit,
            refused: 1,
            beyond: 0,
            lost: 2,
            notes: &[],
        }
    }

    #[test]
    fn as_a_table() {
        let text = shown(&measured(), Unit::Pages).text();
        let expected = "\
Working set: distinct pages used, in pages of 4.0K; 60.0 s watched

1M  5M  15M  60M  WATCHED  ERROR  PROCESS
 4   -    -    -        4  ±6.5%  all together
 3   -    -    -        3  ±6.5%  7 evil\\x1b[2J
 2   -    -    -        2  ±6.5%  8 b
 1   -    -    -        1  ±6.5%  1 more, together
 1   -    -    -        1  ±6.5%  (other): nobody's, or without a sketch of its own

5m, 15m, 60m: not known: not watched for so long
ERROR: 95 of 100 figures are off by no more.
";
        assert_eq!(text, expected);
        assert!(shown(&measured(), Unit::Bytes).text().contains("\n16.0K  "));
        // One that has taken the name of the rest is told from it.
        assert_eq!(Who::Process(7, "(other)".into()).text(), "7 \\(other)");
        assert_eq!(Who::Cgroup("(other)".into()).text(), "\\(other)");
    }

    #[test]
    fn nothing_in_json_acts() {
        let measured = measured();
        let shown = Shown { chosen: "/\u{202e}gnp.exe", ..shown(&measured, Unit::Pages) };
        let text = shown.json();
        assert!(text.contains("\"of\":\"/\\u202egnp.exe\""), "{text}");
    }

    #[test]
    fn as_json() {
        let text = shown(&measured(), Unit::Pages).json();
        assert!(!text.contains('\x1b'));
        let all: Value = serde_json::from_str(&text).unwrap();
        let all = &all["working_set"];
        assert_eq!(crate::schema_check::check_as("working_set", all), [""; 0]);
        assert_eq!(all["time"], "1970-01-01T00:00:00.000Z");
        assert_eq!(all["windows"][0], json!({ "window": "1m", "seconds": 60.0, "reason": null }));
        assert_eq!(all["windows"][1]["reason"], "not watched for so long");
        assert_eq!(all["all"]["pages"]["1m"], 4);
        assert_eq!(all["all"]["bytes"]["5m"], Value::Null);
        assert_eq!(all["all"]["error"], 0.065);
        assert_eq!(all["rows"][0]["pid"], 7);
        assert_eq!(all["rows"][0]["process"], "evil\x1b[2J");
        assert_eq!(all["rows"][0]["pages"]["watched"], 3);
        assert!(all["rows"][0]["sketch"].as_str().unwrap().starts_with("1110"));
        assert_eq!((&all["rest"]["rows"], &all["rest"]["pages"]["1m"]), (&json!(1), &json!(1)));
        assert_eq!(all["other"]["pages"]["1m"], 1);
        assert_eq!(all["lost"]["total"], 2);
    }
}
