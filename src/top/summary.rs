//! What is said of the system as a whole: the same figures on the screen and in text.

use crate::columns::Column;
use crate::columns::Line;
use crate::columns::Value;
use crate::live::snapshot::Snapshot;
use crate::loss;
use crate::model::Interval;
use crate::plan::Engine;
use crate::sample::Lost;
use crate::text::width::at_a_word;
use crate::top::cells;
use crate::top::numbers::Numbers;
use crate::top::scene::Scene;
use crate::top::settings::Settings;
use crate::top::settings::Show;

/// The columns of the upper part.
#[must_use]
pub fn series(engine: Engine) -> &'static [&'static str] {
    match engine {
        Engine::Exact => &["hits", "readahead_hits", "misses", "dirtied", "direct_bytes", "hit_ratio"],
        Engine::Classic => {
            &["classic_hits", "classic_misses", "classic_dirtied", "classic_buffers", "classic_hit_ratio"]
        }
        Engine::Both => &["hits", "readahead_hits", "misses", "dirtied", "classic_hits", "classic_misses"],
    }
}

/// What reads found, to stand on top of each other: misses first, which are seen however few they are.
#[must_use]
pub const fn stack(engine: Engine) -> &'static [&'static str] {
    match engine {
        Engine::Exact | Engine::Both => &["misses", "readahead_hits", "hits"],
        Engine::Classic => &["classic_misses", "classic_hits"],
    }
}

/// What is drawn by itself, the first of them wherever there is room for one.
#[must_use]
pub const fn apart(engine: Engine) -> &'static [&'static str] {
    match engine {
        Engine::Exact => &["hit_ratio", "dirtied"],
        Engine::Classic => &["classic_hit_ratio", "classic_dirtied"],
        Engine::Both => &["dirtied", "classic_hits"],
    }
}

/// What could not be accounted: in the interval, why, what it makes wrong, and so far; whether totals are touched. `None`
/// where nothing was lost so far.
#[must_use]
pub fn lost(now: &Lost, so_far: &Lost) -> Option<(String, bool)> {
    let totals = loss::worst(so_far)?.1 == loss::Touches::Totals;
    let all = so_far.total();
    let text = match loss::worst(now) {
        Some((why, what)) => format!("LOST {} ({why}: {}), {all} so far", now.total(), what.name()),
        // Room for what is going on now.
        None => format!("LOST 0, {all} so far"),
    };
    Some((text, totals))
}

/// The cache and its limits, in a line for so many columns.
#[must_use]
pub fn memory(snapshot: &Snapshot, numbers: Numbers, width: usize) -> String {
    let size = |n| numbers.write(Value::Size(n));
    let m = &snapshot.system.memory;
    let all = snapshot.pulse.unwrap_or_default().machine;
    let or = |n: Option<u64>| n.map_or_else(|| "-".into(), size);
    let parts = [
        Part::new("cached", size(m.cached_bytes)),
        Part::new("of", or(all.total)),
        Part { apart: true, short: "act", ..Part::new("active", or(all.active)) },
        Part { short: "inact", ..Part::new("inactive", or(all.inactive)) },
        Part { apart: true, ..Part::new("dirty", size(m.dirty_bytes)) },
        Part::new("of", or(all.dirty_limit)),
        Part { apart: true, ..Part::new("buf", size(m.buffers_bytes)) },
    ];
    steady(&parts, width)
}

/// Who is pushed out of the cache, what waits, what devices do, per second, in a line for so many columns. `lost`: what was lost,
/// where that has no place of its own.
#[must_use]
pub fn pressure(snapshot: &Snapshot, numbers: Numbers, lost: Option<u64>, width: usize) -> String {
    let line = Line::from(&snapshot.system);
    let figure = |id| cells::find(id).map_or_else(String::new, |c: &Column| numbers.write(c.value(&line)));
    let pulse = snapshot.pulse.unwrap_or_default();
    let device = Numbers { seconds: pulse.seconds, ..numbers };
    let bytes = |n: Option<u64>| device.write(n.map_or(Value::Unknown, Value::Bytes));
    let share = |x: Option<f64>| x.map_or_else(|| "-".into(), |x| format!("{:.0}%", x * 100.0));
    let stalled = |title, x| Part { room: 3, ..Part::new(title, share(x)) };
    let mut parts = vec![
        Part { short: "evict", ..Part::new("evicted", figure("evicted")) },
        Part { short: "refault", ..Part::new("refaulted", figure("refaulted")) },
        Part { short: "waste", ..Part::new("wasted", figure("readahead_wasted")) },
        Part { short: "rd", ..Part::new("read", bytes(pulse.read)) },
        Part { short: "wr", ..Part::new("written", bytes(pulse.written)) },
        Part { room: 0, ..Part::new("/s", String::new()) },
        Part { apart: true, ..stalled("PSI mem", pulse.memory_stalled) },
        stalled("io", pulse.io_stalled),
    ];
    parts.extend(lost.map(|n| Part { apart: true, room: 1, idle: true, ..Part::new("lost", n.to_string()) }));
    steady(&parts, width)
}

/// A number with what it is called.
#[derive(Clone)]
struct Part {
    /// Whether something else begins here.
    apart: bool,
    /// What it is called, and what where there is little room.
    title: &'static str,
    short: &'static str,
    value: String,
    /// Columns that are kept for the number.
    room: usize,
    /// Whether it says nothing of interest: it is left out without a word.
    idle: bool,
}

impl Part {
    fn new(title: &'static str, value: String) -> Self {
        Self { apart: false, title, short: title, value: five(value), room: 5, idle: false }
    }
}

/// A number in five columns: of one that is longer, what is behind the point is left out.
fn five(text: String) -> String {
    let Some((whole, rest)) = text.split_once('.').filter(|_| text.len() > 5) else { return text };
    let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: f64 = format!("{whole}.{}", &rest[..rest.len() - unit.len()]).parse().unwrap_or(0.0);
    format!("{number:.0}{unit}")
}

/// A line whose names stay where they are as the numbers change. What it has room for is decided by the width alone; where
/// something is left out, it says that it goes on.
fn steady(parts: &[Part], width: usize) -> String {
    let mut line = String::new();
    let gap = |i: usize, part: &Part| if i == 0 { 0 } else { 1 + usize::from(part.apart) };
    let taken = |long: bool, n: usize| {
        let of = |(i, p): (usize, &Part)| {
            let name = if long { p.title } else { p.short };
            gap(i, p) + name.len() + if p.room > 0 { 1 + p.room } else { 0 }
        };
        parts.iter().take(n).enumerate().map(of).sum::<usize>()
    };
    const MORE: &str = " …";
    let long = taken(true, parts.len()) <= width;
    let ends = |n: usize| parts.iter().skip(n).any(|p| !p.idle);
    let fits = |n: &usize| taken(long, *n) + if ends(*n) { 2 } else { 0 } <= width;
    let n = (1..=parts.len()).rev().find(fits).unwrap_or(0);
    for (i, part) in parts.iter().take(n).enumerate() {
        let name = if long { part.title } else { part.short };
        line.push_str(&" ".repeat(gap(i, part)));
        line.push_str(name);
        if part.room > 0 {
            line.push_str(&format!(" {:<room$}", part.value, room = part.room));
        }
    }
    line.truncate(line.trim_end().len());
    if ends(n) && n > 0 {
        line.push_str(MORE);
    }
    // Rarely a number takes more than what is kept for it.
    at_a_word(&line, width)
}

/// How the system's figures are written: per second.
#[must_use]
pub const fn numbers(settings: &Settings, scene: &Scene, seconds: f64) -> Numbers {
    Numbers { unit: settings.unit, page_size: scene.page_size, show: Show::Rate, seconds, counted: None }
}

/// Title and text of a figure, with `/s` where it is a rate.
#[must_use]
pub fn figure(column: &Column, value: Value, numbers: Numbers) -> (&'static str, String) {
    let rate = !matches!(value, Value::Ratio(_) | Value::Unknown);
    let text = numbers.write(value);
    (cells::title(column), if rate { format!("{text}/s") } else { text })
}

/// The line that says where and how it counts.
#[must_use]
pub fn place(settings: &Settings, scene: &Scene) -> String {
    // It changes what every figure means, and a narrow screen cuts the end off: so it comes first.
    let only = if scene.only.is_empty() { String::new() } else { format!("only {}  ", scene.only) };
    let (host, kernel, engine) = (&scene.host, &scene.kernel, scene.engine.name());
    let every = settings.interval.as_secs_f64();
    if scene.replay.is_some() {
        return format!("replay every {every} s  {only}{host}  Linux {kernel}  {engine} engine");
    }
    format!("{only}{host}  Linux {kernel}  {engine} engine  every {every} s")
}

/// What is in the cache, and what could not be counted.
#[must_use]
pub fn cache(interval: &Interval, numbers: Numbers) -> String {
    let size = |n| numbers.write(Value::Size(n));
    let m = &interval.memory;
    format!(
        "cached {}  buffers {}  dirty {}  lost {}{}",
        size(m.cached_bytes),
        size(m.buffers_bytes),
        size(m.dirty_bytes),
        interval.lost.total(),
        loss::reach(&interval.lost)
    )
}

/// The system's figures in a line for so many columns: what has no room is left out as a whole.
#[must_use]
pub fn figures(settings: &Settings, scene: &Scene, interval: &Interval, width: usize) -> String {
    let numbers = numbers(settings, scene, interval.seconds);
    let line = Line::from(interval);
    // The ratio comes first: a narrow screen has no room for the last ones.
    let mut ids = series(scene.engine).to_vec();
    ids.sort_by_key(|id| !id.ends_with("ratio"));
    let mut out = String::new();
    for column in ids.into_iter().filter_map(cells::find) {
        let (title, text) = figure(column, column.value(&line), numbers);
        let gap = if out.is_empty() { "" } else { "  " };
        let more = format!("{gap}{title} {text}");
        if out.chars().count() + more.chars().count() > width {
            break;
        }
        out.push_str(&more);
    }
    out
}

/// The time of day.
#[must_use]
pub fn time(scene: &Scene, interval: &Interval) -> String {
    // Of what is not now, the day as well.
    let format = if scene.replay.is_some() { "%Y-%m-%d %H:%M:%S" } else { "%H:%M:%S" };
    interval.time.to_zoned(scene.zone.clone()).strftime(format).to_string()
}

/// The upper part as lines of text.
#[must_use]
pub fn lines(settings: &Settings, scene: &Scene, snapshot: &Snapshot) -> Vec<String> {
    let system = &snapshot.system;
    let numbers = numbers(settings, scene, system.seconds);
    vec![
        format!("cachetop {}  {}", time(scene, system), place(settings, scene)),
        cache(system, numbers),
        figures(settings, scene, system, usize::MAX),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_five_columns() {
        for (text, told) in [
            ("1.2M", "1.2M"),
            ("233.6M", "234M"),
            ("1023.96K", "1024K"),
            ("123456", "123456"),
            ("-", "-"),
            ("99.9%", "99.9%"),
        ] {
            assert_eq!(five(text.into()), told);
        }
    }

    /// Names stay where they are whatever the numbers are, and what has no room is left out as a whole.
    #[test]
    fn names_stay_where_they_are() {
        let parts = |values: [&str; 4]| {
            let [a, b, c, d] = values.map(String::from);
            [
                Part { short: "evict", ..Part::new("evicted", a) },
                Part::new("read", b),
                Part { room: 0, ..Part::new("/s", String::new()) },
                Part { apart: true, room: 3, ..Part::new("io", c) },
                Part { apart: true, room: 1, idle: true, ..Part::new("lost", d) },
            ]
        };
        let names = |line: &str| ["evict", "read", "/s", "io", "lost"].map(|name| line.find(name));
        for width in 0..60 {
            let one = steady(&parts(["0", "0", "0%", "0"]), width);
            let two = steady(&parts(["40213", "233.6M", "99%", "7"]), width);
            assert_eq!(names(&one), names(&two), "{width}: {one} {two}");
            assert!(two.chars().count() <= width, "{width}: {two}");
        }
        assert_eq!(steady(&parts(["1", "-", "2%", "0"]), 60), "evicted 1     read -     /s  io 2%   lost 0");
        assert_eq!(steady(&parts(["1", "233.6M", "2%", "0"]), 24), "evict 1     read 234M …");
        assert_eq!(steady(&parts(["1", "-", "2%", "0"]), 33), "evict 1     read -     /s  io 2%");
    }
}
