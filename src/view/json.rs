//! JSON for programs: one object a line, keys as the figures are named, unknown is `null`.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::View;
use crate::classic;
use crate::classic::Counter;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::figures::GROUPS;
use crate::loss;
use crate::model::Interval;
use crate::model::Row;
use crate::pivot::By;

/// JSON for programs.
pub struct Json {
    /// The only processes looked at; none: all of them.
    pub pids: Vec<u32>,
    /// What rows stand for, `None` for no rows.
    pub by: Option<By>,
}

/// A fraction with six digits: more would be noise.
fn rounded(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

fn group(name: &str, figures: &Figures) -> Map<String, Value> {
    let mut out = Map::new();
    for figure in Figure::of_group(name) {
        out.insert(figure.key().into(), json!(figures.get(figure)));
        if figure == Figure::Misses {
            out.insert("hit_ratio".into(), json!(figures.hit_ratio().map(rounded)));
        }
    }
    out
}

/// The groups of a line, or of a row.
fn groups(rows: bool, figures: &Figures, out: &mut Map<String, Value>) {
    for (name, _) in GROUPS.iter().filter(|(_, of_rows)| *of_rows || !rows) {
        out.insert((*name).into(), Value::Object(group(name, figures)));
    }
}

/// The group of the classic engine.
fn classic(c: &classic::Figures) -> (String, Value) {
    let counts = Counter::EVENTS.iter().map(|counter| (counter.key().to_string(), json!(c.get(*counter))));
    let mut out = Map::from_iter(counts);
    out.insert("hits".into(), json!(c.hits()));
    out.insert("misses".into(), json!(c.misses()));
    ("classic".into(), Value::Object(out))
}

fn row(row: &Row, by: Option<By>) -> Value {
    let mut out = Map::new();
    let who = &row.who;
    if who.other {
        out.insert("other".into(), json!(true));
    }
    // What is not known, or not one and the same for the whole row, is null, as everywhere.
    for (key, value) in [
        ("pid", json!(who.pid)),
        ("tid", json!(who.tid)),
        ("uid", json!(who.uid)),
        ("user", json!(who.user)),
        ("comm", json!(who.comm)),
        ("cgroup", json!(who.cgroup)),
        ("container", json!(who.container)),
        ("unit", json!(who.unit)),
        ("path", json!(who.path)),
        ("device", json!(who.device)),
        ("inode", json!(who.inode)),
        ("mount", json!(who.mount)),
    ] {
        out.insert(key.into(), value);
    }
    groups(true, &row.figures, &mut out);
    if by == Some(By::Evictor) {
        out.insert("how".into(), json!(who.how));
        out.insert("owner".into(), json!(who.owner));
        out.insert("limit_of".into(), json!(who.limit_of));
        out.insert("cache".into(), Value::Object(group("cache", &row.figures)));
        out.insert("back_pages".into(), json!(row.back));
    }
    out.extend(row.classic.as_ref().map(classic));
    Value::Object(out)
}

impl Json {
    /// One interval.
    pub(crate) fn value(&self, interval: &Interval) -> Value {
        self.object(interval, false)
    }

    fn object(&self, interval: &Interval, total: bool) -> Value {
        let mut out = Map::new();
        out.insert("time".into(), json!(super::utc(interval.time)));
        out.insert("interval_s".into(), json!(rounded(interval.seconds)));
        out.insert("engine".into(), json!(interval.engine));
        if total {
            out.insert("total".into(), json!(true));
        }
        match self.pids.as_slice() {
            [] => None,
            [pid] => out.insert("pid".into(), json!(pid)),
            pids => out.insert("pids".into(), json!(pids)),
        };
        groups(false, &interval.total, &mut out);
        if let Some(Value::Object(cache)) = out.get_mut("cache") {
            cache.insert("cached_bytes".into(), json!(interval.memory.cached_bytes));
            cache.insert("buffers_bytes".into(), json!(interval.memory.buffers_bytes));
            cache.insert("dirty_bytes".into(), json!(interval.memory.dirty_bytes));
        }
        if self.by == Some(By::Evictor) {
            out.insert("back_pages".into(), json!(interval.back));
        }
        out.extend(interval.classic.as_ref().map(classic));
        // Powers of two: read calls by nanoseconds, windows by pages (see docs and --help).
        let (latency, windows) = match &interval.histograms {
            Some(h) => (json!({ "hit": h.hit, "miss": h.miss }), json!(h.window)),
            None => (Value::Null, Value::Null),
        };
        out.insert("latency".into(), latency);
        if let Some(Value::Object(readahead)) = out.get_mut("readahead") {
            readahead.insert("window_pages".into(), windows);
        }
        let mut lost = Map::from_iter([("total".to_string(), json!(interval.lost.total()))]);
        lost.extend(interval.lost.by_reason.iter().map(|(why, n)| ((*why).to_string(), json!(n))));
        let reasons = interval.lost.by_reason.iter().filter(|(_, n)| *n > 0).map(|(why, n)| {
            let reason = loss::find(why);
            json!({ "reason": why, "events": n, "touches": reason.touches.name(), "option": reason.option })
        });
        lost.insert("reasons".into(), reasons.collect());
        out.insert("lost".into(), Value::Object(lost));
        if self.by.is_some() {
            // Whoever adds up the rows of all objects has each once.
            let name = if total { "total_rows" } else { "rows" };
            out.insert(name.into(), interval.rows.iter().map(|r| row(r, self.by)).collect());
        }
        Value::Object(out)
    }
}

impl View for Json {
    fn interval(&mut self, interval: &Interval, out: &mut String) {
        out.push_str(&crate::text::foreign::json(&self.object(interval, false)));
        out.push('\n');
    }

    fn total(&mut self, total: &Interval, out: &mut String) {
        out.push_str(&crate::text::foreign::json(&self.object(total, true)));
        out.push('\n');
    }
}
