//! Figures in narrow columns: which, their titles and widths.

use crate::columns;
use crate::columns::COLUMNS;
use crate::columns::Column;
use crate::figures::Scope;
use crate::pivot::By;
use crate::plan::Engine;

/// The columns of the exact engine, the most wanted first: a narrow screen leaves out the last ones.
const EXACT: &[&str] = &[
    "hits",
    "readahead_hits",
    "misses",
    "dirtied",
    "hit_ratio",
    "direct_bytes",
    "write_hit_ratio",
    "read_bytes",
    "held_bytes",
    "limit_bytes",
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
pub(super) const NARROWEST: usize = 6;

/// The columns shown unless others are requested.
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

/// The columns of rows of those who push pages out.
const EVICTORS: &[&str] = &["out", "back", "refaulted"];

/// The columns of rows of those who push pages out.
#[must_use]
pub fn of_evictors() -> Vec<&'static Column> {
    columns::set(EVICTORS)
}

/// Whether a column can be known in a row of this kind at all.
#[must_use]
pub fn suits(column: &Column, by: By) -> bool {
    if column.is_classic() {
        return by == By::Process;
    }
    if by == By::Evictor {
        return EVICTORS.contains(&column.id);
    }
    match column.figure() {
        Some(figure) => !by.files() || figure.by_file(),
        None if column.of_cgroups() => by == By::Cgroup,
        None => matches!(column.id, "hit_ratio" | "write_hit_ratio" | "direct_bytes"),
    }
}

/// Whether a column can be known in a row of any kind.
#[must_use]
pub fn suits_rows(column: &Column) -> bool {
    suits(column, By::Evictor)
        || column.of_cgroups()
        || suits(column, By::Process) && column.figure().is_none_or(|f| f.scope() == Scope::Row)
}

/// Whether rows of any kind can be sorted, and filtered, by it: not by what only those on the screen are asked for.
#[must_use]
pub fn sorts_rows(column: &Column) -> bool {
    suits_rows(column) && !column.of_cgroups()
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

#[cfg(test)]
mod tests {
    use super::*;

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
