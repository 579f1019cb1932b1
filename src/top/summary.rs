//! What is said of the system as a whole: the same figures on the screen and in text.

use crate::columns::Column;
use crate::columns::Line;
use crate::columns::Value;
use crate::live::snapshot::Snapshot;
use crate::loss;
use crate::model::Interval;
use crate::plan::Engine;
use crate::sample::Lost;
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

/// The cache and its limits, in a line.
#[must_use]
pub fn memory(snapshot: &Snapshot, numbers: Numbers) -> String {
    let size = |n| numbers.write(Value::Size(n));
    let m = &snapshot.system.memory;
    let all = snapshot.pulse.unwrap_or_default().machine;
    let or = |n: Option<u64>| n.map_or_else(|| "-".into(), size);
    format!(
        "cached {} of {}  active {} inactive {}  dirty {} of {}  buf {}",
        size(m.cached_bytes),
        or(all.total),
        or(all.active),
        or(all.inactive),
        size(m.dirty_bytes),
        or(all.dirty_limit),
        size(m.buffers_bytes),
    )
}

/// Who is pushed out of the cache, what waits, what devices do: per second.
#[must_use]
pub fn pressure(snapshot: &Snapshot, numbers: Numbers) -> String {
    let line = Line::from(&snapshot.system);
    let figure = |id| cells::find(id).map_or_else(String::new, |c: &Column| numbers.write(c.value(&line)));
    let pulse = snapshot.pulse.unwrap_or_default();
    let device = Numbers { seconds: pulse.seconds, ..numbers };
    let bytes = |n: Option<u64>| device.write(n.map_or(Value::Unknown, Value::Bytes));
    let share = |x: Option<f64>| x.map_or_else(|| "-".into(), |x| format!("{:.0}%", x * 100.0));
    format!(
        "evicted {} refaulted {} wasted {} read {} written {} /s  PSI mem {} io {}",
        figure("evicted"),
        figure("refaulted"),
        figure("readahead_wasted"),
        bytes(pulse.read),
        bytes(pulse.written),
        share(pulse.memory_stalled),
        share(pulse.io_stalled),
    )
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

/// The system's figures in a line.
#[must_use]
pub fn figures(settings: &Settings, scene: &Scene, interval: &Interval) -> String {
    let numbers = numbers(settings, scene, interval.seconds);
    let line = Line::from(interval);
    // The ratio comes first: a narrow screen cuts the end off.
    let mut ids = series(scene.engine).to_vec();
    ids.sort_by_key(|id| !id.ends_with("ratio"));
    let parts = ids.into_iter().filter_map(cells::find).map(|c| {
        let (title, text) = figure(c, c.value(&line), numbers);
        format!("{title} {text}")
    });
    parts.collect::<Vec<_>>().join("  ")
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
        figures(settings, scene, system),
    ]
}
