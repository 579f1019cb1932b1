//! What is said of the system as a whole: the same figures on the screen and in text.

use crate::columns::Column;
use crate::columns::Line;
use crate::columns::Value;
use crate::live::snapshot::Snapshot;
use crate::loss;
use crate::model::Interval;
use crate::plan::Engine;
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
    interval.time.to_zoned(scene.zone.clone()).strftime("%H:%M:%S").to_string()
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
