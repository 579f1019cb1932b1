//! A prediction as text and as JSON.

use std::fmt::Write as _;

use serde_json::json;

use super::Prediction;
use super::Scaled;
use crate::text::foreign;
use crate::text::numbers;

/// Characters of the longest bar: a line with it has room on 80 columns.
const BAR: f64 = 30.0;
/// The same beside a column of waiting.
const SHORT_BAR: f64 = 22.0;

impl Prediction {
    /// One object.
    #[must_use]
    pub fn json(&self) -> String {
        format!("{}\n", foreign::json(&json!({ "what_if": self })))
    }

    /// All of it; `chosen`: what counts, in words.
    #[must_use]
    pub fn text(&self, chosen: &str) -> String {
        let mut out =
            format!("What if, for {}: ", if chosen.is_empty() { "the whole system" } else { chosen });
        for line in self.lines() {
            out.push_str(&line);
            out.push('\n');
        }
        out
    }

    /// The same line by line, behind whose it is: a table with a bar for each size, and what must be known of it.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut out = self.head();
        out.push(String::new());
        match (&self.curve, &self.reason) {
            (Some(points), _) => {
                out.extend(self.table(points));
                if let Some(answer) = self.answer() {
                    out.extend([String::new(), answer]);
                }
            }
            (None, reason) => {
                out.push(format!("No prediction: {}.", reason.as_deref().unwrap_or("not known")))
            }
        }
        out.extend(self.notes.iter().map(|note| format!("note: {note}")));
        out
    }

    /// A line for each size, below one that says what is in them.
    #[must_use]
    pub fn table(&self, points: &[Scaled]) -> Vec<String> {
        let waits = points.iter().any(|p| p.waiting.is_some());
        let mut head =
            format!("{:>6} {:>9} {:>8} {:>7} {:>9}", "SCALE", "SIZE", "MISSES", "ERROR", "DEVICE/s");
        if waits {
            head.push_str(&format!(" {:>7}", "WAITING"));
        }
        let dash = || "-".to_owned();
        let line = |p: &Scaled| {
            let mut line = format!(
                "{:>6} {:>9} {:>8} {:>7} {:>9}",
                format!("x{}", p.scale),
                p.size_bytes.map_or_else(dash, numbers::bytes),
                p.miss_ratio.map_or_else(dash, percent),
                p.error.map_or_else(dash, |error| format!("±{}", percent(error))),
                p.device_bytes_per_s.map_or_else(dash, |n| numbers::bytes(n as u64)),
            );
            if waits {
                let _ = write!(line, " {:>7}", p.waiting.map_or_else(dash, |n| format!("{n:.2}")));
            }
            let longest = if waits { SHORT_BAR } else { BAR };
            let bar = p.miss_ratio.map_or(0, |ratio| (ratio * longest).round() as usize);
            format!("{line}  {}", "#".repeat(bar)).trim_end().to_owned()
        };
        std::iter::once(head).chain(points.iter().map(line)).collect()
    }

    fn head(&self) -> Vec<String> {
        let size = match (self.limit_bytes, self.cached_bytes) {
            (_, None) => "the size of the cache is not known".into(),
            (Some(limit), Some(cached)) => {
                let whose = self.limit_of.as_ref().map_or_else(String::new, |above| format!(" of {above}"));
                format!("limit {}{whose}, {} of files cached", numbers::bytes(limit), numbers::bytes(cached))
            }
            (None, Some(cached)) => {
                let limit = if self.is_placed() { "no limit" } else { "limit not known" };
                format!("{limit}, {} of files cached", numbers::bytes(cached))
            }
        };
        vec![
            size,
            format!(
                "{:.1} s, {}; {} of all pages followed, {}",
                self.seconds,
                self.counted(percent),
                percent(self.sample_rate),
                self.policy,
            ),
        ]
    }

    /// What was counted, in words; `percent` of a ratio. Accesses are of all the time, and what missed of its second half.
    #[must_use]
    pub fn counted(&self, percent: impl Fn(f64) -> String) -> String {
        let accesses = self.accesses.map_or_else(|| "-".into(), |n| numbers::decimal(n as f64));
        let missed = self.now.miss_ratio.map_or_else(String::new, |now| {
            format!("; of those of the second half {} had to be brought in", percent(now))
        });
        format!("{accesses} accesses{missed}")
    }

    /// The question that was asked, answered for twice and for half of what there is; `None` where the answer would contradict
    /// what was counted. What is predicted stands beside what is predicted of now: by how much the simulation is off of one
    /// size, it is of the others as well, and what was counted would make a gain, or a loss, of that.
    #[must_use]
    pub fn answer(&self) -> Option<String> {
        if self.is_unlike() {
            return None;
        }
        let at = |scale: f64| self.at(scale)?.miss_ratio;
        let now = at(1.0).or(self.now.miss_ratio)?;
        let mut parts = Vec::new();
        let base = self.now.size_bytes?;
        if let Some(more) = at(2.0) {
            parts.push(format!(
                "+{} -> {} misses ({} now)",
                numbers::bytes(base),
                percent(more),
                percent(now)
            ));
        }
        if let Some(less) = at(0.5) {
            parts.push(format!("-{} -> {}", numbers::bytes(base / 2), percent(less)));
        }
        (!parts.is_empty()).then(|| format!("{}.", parts.join("; ")))
    }
}

fn percent(ratio: f64) -> String {
    numbers::percent_to(ratio, 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::Value;

    use super::super::Curve;
    use super::super::Point;
    use super::super::size::Size;
    use super::super::told::About;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn shown(curve: &Curve, size: Option<&Size>, waited: Option<u64>) -> Prediction {
        let group = size.map(|_| "/x\x1b[2J");
        let (policy, limit_changed, notes) = ("lists", false, Vec::new());
        let (seconds, long_history) = (10.0004, false);
        let about =
            About { group, size, seconds, waited, policy, limit_changed, gone: false, long_history, notes };
        Prediction::new(curve, about)
    }

    fn curve(points: Result<Vec<Point>, String>) -> Curve {
        Curve {
            accesses: Some(1000),
            missed: Some(250),
            off: Some(0.01),
            unlike: false,
            unused: None,
            by_faults: false,
            now: Some(0.25),
            points,
            rate: 0.1,
            dropped: 0,
        }
    }

    fn size() -> Size {
        Size { limit: Some(64 * MIB), others: MIB, cached: 60 * MIB, ..Size::default() }
    }

    #[test]
    fn a_curve_as_json_and_as_text() {
        let points = [(0.5, Some((0.43219, 0.02))), (1.0, Some((0.25, 0.02))), (2.0, None)];
        let points = points.map(|(scale, miss_ratio)| Point { scale, miss_ratio });
        let (curve, size) = (curve(Ok(points.into())), size());
        let shown = shown(&curve, Some(&size), None);
        let all: Value = serde_json::from_str(&shown.json()).unwrap();
        let what_if = &all["what_if"];
        assert_eq!(what_if["cgroup"], "/x\x1b[2J");
        assert_eq!(what_if["seconds"], 10.0);
        assert_eq!(what_if["accesses"], 1000);
        assert_eq!(what_if["sample_rate"], 0.1);
        assert_eq!(what_if["now"], json!({"size_bytes": 64 * MIB, "miss_ratio": 0.25}));
        let page = rustix::param::page_size() as f64;
        let device = (0.43219 * 1000.0 / 10.0004 * page).round();
        let first = json!({"scale": 0.5, "size_bytes": 32 * MIB, "miss_ratio": 0.4322, "error": 0.02,
            "device_bytes_per_s": device, "waiting": null});
        assert_eq!(what_if["curve"][0], first);
        let last = json!({"scale": 2.0, "size_bytes": 128 * MIB, "miss_ratio": null, "error": null,
            "device_bytes_per_s": null, "waiting": null});
        assert_eq!(what_if["curve"][2], last);
        assert_eq!(what_if.get("reason"), None);
        let text = shown.text("cgroup /x");
        assert!(text.contains("  x0.5     32.0M    43.2%   ±2.0%    172.9K  #############\n"), "{text}");
        assert!(text.contains("    x2    128.0M        -       -         -\n"), "{text}");
        let head = "\n10.0 s, 1000 accesses; of those of the second half 25.0% had to be brought in; 10.0% of all pages";
        assert!(text.contains(head), "{text}");
        assert!(text.contains("\n-32.0M -> 43.2%.\nnote: of x2 nothing can be said: "), "{text}");
        assert!(!text.contains('\x1b') && !shown.json().contains('\x1b'));
        let acts = Prediction { cgroup: Some("/\u{202e}gnp.exe".into()), ..shown }.json();
        assert!(acts.contains("\"cgroup\":\"/\\u202egnp.exe\""), "{acts}");
    }

    #[test]
    fn a_limit_of_one_above_is_told_as_that() {
        let of = |limit_of: Option<&str>| {
            let size = Size { limit_of: limit_of.map(String::from), ..size() };
            let points = Ok(vec![Point { scale: 1.0, miss_ratio: Some((0.25, 0.02)) }]);
            shown(&curve(points), Some(&size), None)
        };
        let none = Prediction { limit_bytes: None, ..of(None) };
        assert!(none.text("x").contains(": no limit, 60.0M"));
        let unplaced = Prediction { notes: vec![super::super::told::UNPLACED.into()], ..none };
        assert!(unplaced.text("x").contains(": limit not known, 60.0M"));
        let (above, own) = (of(Some("/a\x1b[2J")), of(None));
        assert!(above.text("x").contains(": limit 64.0M of /a\\x1b[2J, 60.0M of files cached\n"));
        assert!(own.text("x").contains(": limit 64.0M, 60.0M of files cached\n"));
        let key = |told: Prediction| {
            serde_json::from_str::<Value>(&told.json()).unwrap()["what_if"]["limit_of"].clone()
        };
        assert_eq!((key(above), key(own)), (json!("/a\x1b[2J"), Value::Null));
    }

    #[test]
    fn what_contradicts_what_was_counted_is_no_answer() {
        let text = |now: f64| {
            let points = [(0.5, Some((0.6, 0.4))), (1.0, Some((0.4, 0.4))), (2.0, Some((0.1, 0.1)))];
            let points = points.map(|(scale, miss_ratio)| Point { scale, miss_ratio });
            let off = (0.4 - now).abs();
            let curve =
                Curve { now: Some(now), off: Some(off), unlike: off > 0.1, ..curve(Ok(points.into())) };
            shown(&curve, Some(&size()), None).text("")
        };
        let (like, unlike) = (text(0.38), text(0.0));
        assert!(like.ends_with("\n+64.0M -> 10.0% misses (40.0% now); -32.0M -> 60.0%.\n"), "{like}");
        assert!(like.contains("of those of the second half 38.0% had to be brought in"), "{like}");
        assert!(!unlike.contains("now)") && unlike.contains("another ratio than was counted"), "{unlike}");
    }

    #[test]
    fn waiting_is_told_where_it_was_measured() {
        let points = [(0.5, Some((0.5, 0.02))), (1.0, Some((0.25, 0.02)))];
        let points = points.map(|(scale, miss_ratio)| Point { scale, miss_ratio });
        let (curve, size) = (curve(Ok(points.into())), size());
        // 250 pages were waited for, 10 ms each.
        let shown = shown(&curve, Some(&size), Some(2_500_000_000));
        assert_eq!(shown.at(1.0).unwrap().waiting, Some(0.25));
        assert_eq!(shown.at(0.5).unwrap().waiting, Some(0.5));
        let text = shown.text("");
        assert!(text.contains("DEVICE/s WAITING\n") && text.contains("    0.50  ###########\n"), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 80 || l.contains(" followed, ")), "{text}");
        // What was saved is read back as it was.
        let back: Prediction = serde_json::from_value(json!(shown)).unwrap();
        assert_eq!(back, shown);
        // Nobody waited for what did not happen.
        let nothing = Curve { missed: Some(0), ..curve };
        assert_eq!(super::tests::shown(&nothing, Some(&size), Some(0)).at(1.0).unwrap().waiting, None);
    }

    #[test]
    fn without_a_curve_there_is_a_reason() {
        let curve = Curve { now: None, ..curve(Err("not enough seen yet".into())) };
        let text = shown(&curve, None, None).text("");
        assert!(text.contains("10.0 s, 1000 accesses; 10.0% of all pages followed"), "{text}");
        let all: Value = serde_json::from_str(&shown(&curve, None, None).json()).unwrap();
        let what_if = &all["what_if"];
        assert_eq!(what_if["curve"], Value::Null);
        assert_eq!(what_if["reason"], "not enough seen yet");
        assert_eq!(what_if["cgroup"], Value::Null);
        assert_eq!(what_if["now"]["size_bytes"], Value::Null);
        assert!(
            shown(&curve, None, None).text("cgroup /x").ends_with("\nNo prediction: not enough seen yet.\n")
        );
    }
}
