//! The curve as text and as JSON.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::json;

use super::Curve;
use super::size::Size;
use crate::text::foreign::Foreign;
use crate::text::numbers;

/// What is shown.
pub(super) struct Shown<'a> {
    pub(super) curve: &'a Curve,
    pub(super) size: Option<&'a Size>,
    /// Whose cache it is; `None`: the machine's.
    pub(super) group: Option<&'a str>,
    /// How long was looked.
    pub(super) seconds: f64,
    /// What was chosen, in words.
    pub(super) chosen: &'a str,
    /// The policy, in words.
    pub(super) policy: &'a str,
    /// What makes it less than it could be.
    pub(super) notes: &'a [String],
}

fn rounded(x: f64) -> f64 {
    (x * 1e4).round() / 1e4
}

impl Shown<'_> {
    fn bytes(&self, scale: f64) -> Option<u64> {
        self.size.map(|size| (size.base() as f64 * scale).round() as u64)
    }

    /// One object.
    pub(super) fn json(&self) -> String {
        let curve = self.curve;
        let points = curve.points.as_ref().ok().map(|points| {
            let point = |p: &super::Point| {
                json!({
                    "scale": p.scale,
                    "size_bytes": self.bytes(p.scale),
                    "miss_ratio": p.miss_ratio.map(|(ratio, _)| rounded(ratio)),
                    "error": p.miss_ratio.map(|(_, error)| rounded(error)),
                })
            };
            points.iter().map(point).collect::<Vec<Value>>()
        });
        let mut what_if = json!({
            "cgroup": self.group.map(Foreign::from),
            "seconds": (self.seconds * 1e3).round() / 1e3,
            "sample_rate": curve.rate,
            "accesses": curve.accesses,
            "now": {"size_bytes": self.bytes(1.0), "miss_ratio": curve.now.map(rounded)},
            "curve": points,
        });
        if let (Err(reason), Some(object)) = (&curve.points, what_if.as_object_mut()) {
            object.insert("reason".into(), json!(reason));
        }
        if let Some(object) = what_if.as_object_mut() {
            object.insert("cached_bytes".into(), json!(self.size.map(|s| s.cached)));
            object.insert("limit_bytes".into(), json!(self.size.and_then(|s| s.limit)));
            object.insert("policy".into(), json!(self.policy));
            object.insert("dropped".into(), json!(curve.dropped));
            object.insert("notes".into(), json!(self.notes));
        }
        format!("{}\n", json!({ "what_if": what_if }))
    }

    /// A table, with a bar for each size.
    pub(super) fn text(&self) -> String {
        let mut out = self.head();
        match &self.curve.points {
            Err(reason) => {
                let _ = writeln!(out, "\nNo prediction: {reason}.");
            }
            Ok(points) => {
                let _ = writeln!(out, "\n{:>6} {:>9} {:>9} {:>8}", "SCALE", "SIZE", "MISSES", "ERROR");
                for point in points {
                    let size = self.bytes(point.scale).map_or_else(|| "-".into(), numbers::bytes);
                    let (misses, error) = point.miss_ratio.map_or_else(
                        || ("-".into(), "-".into()),
                        |(ratio, error)| (percent(ratio), format!("±{}", percent(error))),
                    );
                    let bar = point.miss_ratio.map_or(0, |(ratio, _)| (ratio * 40.0).round() as usize);
                    let scale = format!("x{}", point.scale);
                    let line = format!("{scale:>6} {size:>9} {misses:>9} {error:>8}  {}", "#".repeat(bar));
                    let _ = writeln!(out, "{}", line.trim_end());
                }
                if let Some(answer) = self.answer(points) {
                    let _ = writeln!(out, "\n{answer}");
                }
            }
        }
        for note in self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        out
    }

    fn head(&self) -> String {
        let size = match self.size {
            None => "the size of the cache is not known".into(),
            Some(Size { limit: Some(limit), cached, .. }) => {
                format!("limit {}, {} of files cached", numbers::bytes(*limit), numbers::bytes(*cached))
            }
            Some(Size { cached, .. }) => format!("no limit, {} of files cached", numbers::bytes(*cached)),
        };
        let who = if self.chosen.is_empty() { "the whole system" } else { self.chosen };
        let accesses = self.curve.accesses.map_or_else(|| "-".into(), |n| numbers::decimal(n as f64));
        let now = self.curve.now.map_or_else(|| "-".into(), percent);
        format!(
            "What if, for {who}: {size}\n{:.1} s, {accesses} accesses, {} of them had to be brought in; \
             {} of all pages followed, {}\n",
            self.seconds,
            now,
            percent(self.curve.rate),
            self.policy,
        )
    }

    /// The question that was asked, answered for twice and for half of what there is.
    fn answer(&self, points: &[super::Point]) -> Option<String> {
        let at = |scale: f64| points.iter().find(|p| p.scale == scale)?.miss_ratio;
        let now = at(1.0).map(|(ratio, _)| ratio).or(self.curve.now)?;
        let mut parts = Vec::new();
        let base = self.bytes(1.0)?;
        if let Some((more, _)) = at(2.0) {
            parts.push(format!(
                "+{} -> {} misses ({} now)",
                numbers::bytes(base),
                percent(more),
                percent(now)
            ));
        }
        if let Some((less, _)) = at(0.5) {
            parts.push(format!("-{} -> {}", numbers::bytes(base / 2), percent(less)));
        }
        (!parts.is_empty()).then(|| format!("{}.", parts.join("; ")))
    }
}

fn percent(ratio: f64) -> String {
    format!("{:.1}%", ratio * 100.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::Point;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn shown<'a>(curve: &'a Curve, size: Option<&'a Size>) -> Shown<'a> {
        let group = size.map(|_| "/x\x1b[2J");
        Shown { curve, size, group, seconds: 10.0004, chosen: "cgroup /x", policy: "lists", notes: &[] }
    }

    fn curve(points: Result<Vec<Point>, String>) -> Curve {
        Curve { accesses: Some(1000), now: Some(0.25), points, rate: 0.1, dropped: 0 }
    }

    fn size() -> Size {
        Size { limit: Some(64 * MIB), others: MIB, cached: 60 * MIB }
    }

    #[test]
    fn a_curve_as_json_and_as_text() {
        let points = [(0.5, Some((0.43219, 0.02))), (1.0, Some((0.25, 0.02))), (2.0, None)];
        let points = points.map(|(scale, miss_ratio)| Point { scale, miss_ratio });
        let (curve, size) = (curve(Ok(points.into())), size());
        let shown = shown(&curve, Some(&size));
        let all: Value = serde_json::from_str(&shown.json()).unwrap();
        let what_if = &all["what_if"];
        assert_eq!(what_if["cgroup"], "/x\x1b[2J");
        assert_eq!(what_if["seconds"], 10.0);
        assert_eq!(what_if["accesses"], 1000);
        assert_eq!(what_if["sample_rate"], 0.1);
        assert_eq!(what_if["now"], json!({"size_bytes": 64 * MIB, "miss_ratio": 0.25}));
        let first = json!({"scale": 0.5, "size_bytes": 32 * MIB, "miss_ratio": 0.4322, "error": 0.02});
        assert_eq!(what_if["curve"][0], first);
        let last = json!({"scale": 2.0, "size_bytes": 128 * MIB, "miss_ratio": null, "error": null});
        assert_eq!(what_if["curve"][2], last);
        assert_eq!(what_if.get("reason"), None);
        let text = shown.text();
        assert!(text.contains("  x0.5     32.0M     43.2%    ±2.0%  #################\n"), "{text}");
        assert!(text.contains("    x2    128.0M         -        -\n"), "{text}");
        assert!(text.ends_with("\n-32.0M -> 43.2%.\n"), "{text}");
        assert!(!text.contains('\x1b') && !shown.json().contains('\x1b'));
    }

    #[test]
    fn without_a_curve_there_is_a_reason() {
        let curve = curve(Err("not enough seen yet".into()));
        let all: Value = serde_json::from_str(&shown(&curve, None).json()).unwrap();
        let what_if = &all["what_if"];
        assert_eq!(what_if["curve"], Value::Null);
        assert_eq!(what_if["reason"], "not enough seen yet");
        assert_eq!(what_if["cgroup"], Value::Null);
        assert_eq!(what_if["now"]["size_bytes"], Value::Null);
        assert!(shown(&curve, None).text().ends_with("\nNo prediction: not enough seen yet.\n"));
    }
}
