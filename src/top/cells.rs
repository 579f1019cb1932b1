//! Figures in narrow columns: titles, widths, and numbers that always fit.

use crate::cli::Unit;
use crate::columns;
use crate::columns::COLUMNS;
use crate::columns::Column;
use crate::columns::Line;
use crate::columns::Value;
use crate::figures::Figure;
use crate::live::snapshot::Show;
use crate::model;
use crate::pivot::By;
use crate::plan::Engine;
use crate::view::text::percent;

/// The columns of the exact engine, the most wanted first: a narrow screen leaves out the last ones.
const EXACT: &[&str] = &[
    "hits",
    "readahead_hits",
    "misses",
    "dirtied",
    "hit_ratio",
    "write_hit_ratio",
    "direct_bytes",
    "read_bytes",
    "readahead_pages",
    "fault_misses",
    "fault_hits",
    "write_accesses",
    "write_misses",
    "refaulted",
    "stall_s",
];

/// The columns of both engines, under titles that tell them apart.
const BOTH: &[&str] = &[
    "hits",
    "readahead_hits",
    "misses",
    "dirtied",
    "classic_hits",
    "classic_misses",
    "classic_buffers",
    "hit_ratio",
    "classic_hit_ratio",
    "direct_bytes",
];

/// The narrowest column: six characters hold any number, `999999` or `99.9M`.
const NARROWEST: usize = 6;

/// The columns shown unless others are asked for.
#[must_use]
pub fn default_columns(engine: Engine) -> Vec<&'static Column> {
    let system_only =
        |c: &&Column| !matches!(c.id, "buffers_bytes" | "cached_bytes" | "dirty_bytes" | "lost");
    match engine {
        Engine::Exact => columns::set(EXACT),
        Engine::Classic => columns::of_classic(true).into_iter().filter(system_only).collect(),
        Engine::Both => columns::set(BOTH),
    }
}

/// Whether a column can be known in a row of this kind at all.
#[must_use]
pub fn suits(column: &Column, by: By) -> bool {
    if column.is_classic() {
        return by == By::Process;
    }
    match column.figure() {
        Some(figure) => !by.files() || model::BY_FILE.contains(&figure),
        None => matches!(column.id, "hit_ratio" | "write_hit_ratio" | "direct_bytes"),
    }
}

/// Whether a column can be known in a row of any kind.
#[must_use]
pub fn suits_rows(column: &Column) -> bool {
    const SYSTEM: &[Figure] = &[
        Figure::Evicted,
        Figure::Removed,
        Figure::ReadaheadWasted,
        Figure::MetaAccesses,
        Figure::MetaHits,
        Figure::MetaReadaheadHits,
        Figure::MetaMisses,
    ];
    suits(column, By::Process) && column.figure().is_none_or(|f| !SYSTEM.contains(&f))
}

/// Its title: as in `cachestat`, but for the ratio, which is called as in bcc's `cachetop`, and for what has a letter
/// in place of MB.
#[must_use]
pub fn title(column: &Column) -> &'static str {
    match column.id {
        "hit_ratio" => "READ_HIT%",
        _ => column.title.strip_suffix("_MB").unwrap_or(column.title),
    }
}

/// Its width.
#[must_use]
pub fn width(column: &Column) -> usize {
    title(column).len().max(NARROWEST)
}

/// The column of that name or title.
#[must_use]
pub fn find(name: &str) -> Option<&'static Column> {
    columns::find(name).or_else(|| COLUMNS.iter().find(|c| title(c).eq_ignore_ascii_case(name)))
}

/// How numbers are written.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// Pages as pages or as bytes.
    pub unit: Unit,
    /// Bytes in a page.
    pub page_size: u64,
    /// Counts or rates.
    pub show: Show,
    /// Length of the interval, for rates.
    pub seconds: f64,
}

impl Numbers {
    /// The cell of a column for a line.
    #[must_use]
    pub fn cell(&self, column: &Column, line: &Line<'_>) -> String {
        self.write(column.value(line))
    }

    /// A value; `-` for what is not known.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn write(&self, value: Value) -> String {
        let page = self.page_size as f64;
        match value {
            Value::Unknown => "-".into(),
            Value::Ratio(x) => percent(x),
            Value::Size(n) => binary(n as f64),
            Value::Bytes(n) => binary(self.rate(n as f64)),
            Value::Events(n) => decimal(self.rate(n as f64)),
            Value::Seconds(x) => seconds(self.rate(x)),
            Value::Pages(n) if self.unit == Unit::Bytes => binary(self.rate(n as f64 * page)),
            Value::Pages(n) => decimal(self.rate(n as f64)),
            Value::SignedPages(n) => {
                let sign = if n < 0 { "-" } else { "" };
                format!("{sign}{}", self.write(Value::Pages(n.unsigned_abs())))
            }
        }
    }

    /// The height of a bar: the same number, or rate, without its unit; `None` for what is not known.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn height(&self, value: Value) -> Option<f64> {
        match value {
            Value::Unknown => None,
            Value::Ratio(x) => Some(x),
            Value::Pages(n) | Value::Events(n) | Value::Bytes(n) | Value::Size(n) => {
                Some(self.rate(n as f64))
            }
            Value::SignedPages(n) => Some(self.rate(n as f64)),
            Value::Seconds(x) => Some(self.rate(x)),
        }
    }

    fn rate(&self, x: f64) -> f64 {
        if self.show == Show::Rate && self.seconds > 0.0 { x / self.seconds } else { x }
    }
}

/// A number of things: whole up to 999999, then with k, M, G (powers of 1000). Fractions only below 10; `<0.1` is
/// something, and not nothing.
#[must_use]
pub fn decimal(x: f64) -> String {
    if x > 0.0 && x < 0.05 {
        "<0.1".into()
    } else if x < 9.95 && x.fract() != 0.0 {
        format!("{x:.1}")
    } else if x < 999_999.5 {
        format!("{x:.0}")
    } else {
        scaled(x, 1000.0, &["k", "M", "G", "T", "P", "E"])
    }
}

/// A number of bytes, with K, M, G (powers of 1024).
#[must_use]
pub fn binary(x: f64) -> String {
    if x > 0.0 && x < 0.5 {
        "<1".into()
    } else if x < 999.5 {
        format!("{x:.0}")
    } else {
        scaled(x, 1024.0, &["K", "M", "G", "T", "P", "E"])
    }
}

fn scaled(mut x: f64, step: f64, letters: &[&str]) -> String {
    let mut letter = "";
    for next in letters {
        x /= step;
        letter = next;
        if x < 999.95 {
            break;
        }
    }
    format!("{x:.1}{letter}")
}

/// A time in seconds, in six characters as long as it is less than 28 hours.
fn seconds(x: f64) -> String {
    match x {
        x if x < 99.9995 => format!("{x:.3}"),
        x => format!("{x:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_the_narrowest_column_and_keep_what_matters() {
        for (x, expected) in [
            (0.0, "0"),
            (0.01, "<0.1"),
            (0.3, "0.3"),
            (9.94, "9.9"),
            (9.96, "10"),
            (131_072.0, "131072"),
            (999_999.0, "999999"),
            (999_999.9, "1.0M"),
            (1_234_567.0, "1.2M"),
            (12_345_678_901.0, "12.3G"),
            (1.8e19, "18.0E"),
        ] {
            assert_eq!(decimal(x), expected, "{x}");
            assert!(decimal(x).len() <= NARROWEST);
        }
        for (x, expected) in [
            (0.0, "0"),
            (0.2, "<1"),
            (999.0, "999"),
            (1000.0, "1.0K"),
            (1023.0 * 1024.0, "1.0M"),
            (5e8, "476.8M"),
        ] {
            assert_eq!(binary(x), expected, "{x}");
            assert!(binary(x).len() <= NARROWEST);
        }
    }

    #[test]
    fn rates_are_of_counts_and_not_of_ratios() {
        let numbers = Numbers { unit: Unit::Pages, page_size: 4096, show: Show::Rate, seconds: 5.0 };
        assert_eq!(numbers.write(Value::Pages(1000)), "200");
        assert_eq!(numbers.write(Value::Pages(1)), "0.2");
        assert_eq!(numbers.write(Value::Bytes(5 << 20)), "1.0M");
        assert_eq!(numbers.write(Value::Ratio(0.5)), "50.00%");
        assert_eq!(numbers.write(Value::Size(1 << 20)), "1.0M");
        assert_eq!(numbers.write(Value::Unknown), "-");
        let bytes = Numbers { unit: Unit::Bytes, show: Show::Count, ..numbers };
        assert_eq!(bytes.write(Value::Pages(3)), "12.0K");
        assert_eq!(bytes.write(Value::SignedPages(-3)), "-12.0K");
    }

    #[test]
    fn columns_are_found_by_their_names_in_both_commands() {
        for (name, id) in [
            ("READ_HIT%", "hit_ratio"),
            ("hitratio", "hit_ratio"),
            ("DIRECT", "direct_bytes"),
            ("HITS", "hits"),
        ] {
            assert_eq!(find(name).map(|c| c.id), Some(id));
        }
    }
}
