//! Columns of the classic engine.

use super::Column;
use super::Line;
use super::Origin;
use super::Value;
use crate::classic::Counter;
use crate::classic::Figures;

fn signed(line: &Line<'_>, of: fn(&Figures) -> Option<i64>) -> Value {
    line.classic.and_then(of).map_or(Value::Unknown, Value::SignedPages)
}

fn pages(line: &Line<'_>, counter: Counter) -> Value {
    line.classic.and_then(|c| c.get(counter)).map_or(Value::Unknown, Value::Pages)
}

fn hits(line: &Line<'_>) -> Value {
    signed(line, Figures::hits)
}

fn misses(line: &Line<'_>) -> Value {
    signed(line, Figures::misses)
}

fn ratio(line: &Line<'_>) -> Value {
    line.classic.and_then(Figures::hit_ratio).map_or(Value::Unknown, Value::Ratio)
}

fn added(line: &Line<'_>) -> Value {
    pages(line, Counter::Added)
}

fn accessed(line: &Line<'_>) -> Value {
    pages(line, Counter::Accessed)
}

fn dirtied(line: &Line<'_>) -> Value {
    pages(line, Counter::Dirtied)
}

fn buffers(line: &Line<'_>) -> Value {
    line.classic.and_then(|c| c.get(Counter::BufferDirtied)).map_or(Value::Unknown, Value::Events)
}

const fn column(
    id: &'static str,
    title: &'static str,
    value: fn(&Line<'_>) -> Value,
    about: &'static str,
) -> Column {
    Column { id, title, width: 8, from: Origin::Other(value, about) }
}

/// The columns under titles of their own, for lists that mix them with the exact ones.
pub(super) const HITS: Column =
    column("classic_hits", "CHITS", hits, "classic engine: accessed - buffers dirtied - misses");
pub(super) const MISSES: Column =
    column("classic_misses", "CMISSES", misses, "classic engine: pages added - pages dirtied");
pub(super) const RATIO: Column =
    column("classic_hit_ratio", "CRATIO", ratio, "classic engine: hits / (hits + misses)");
pub(super) const ADDED: Column =
    column("classic_added", "CADDED", added, "classic engine: pages added to the cache");
pub(super) const ACCESSED: Column =
    column("classic_accessed", "CACCESS", accessed, "classic engine: pages marked accessed");
pub(super) const DIRTIED: Column =
    column("classic_dirtied", "CDIRTIED", dirtied, "classic engine: pages dirtied, metadata too");
pub(super) const BUFFERS: Column =
    column("classic_buffers", "CBUFDIRT", buffers, "classic engine: buffers dirtied; DIRTIES in bcc");

const fn titled(column: Column, title: &'static str) -> Column {
    Column { title, ..column }
}

/// bcc's columns under bcc's titles, for lines that have no others of these titles beside them.
pub const PLAIN: &[Column] =
    &[titled(HITS, "HITS"), titled(MISSES, "MISSES"), titled(BUFFERS, "DIRTIES"), titled(RATIO, "HITRATIO")];

/// What bcc's figures are made of, for `-x`.
pub const PARTS: &[Column] =
    &[titled(ADDED, "ADDED"), titled(ACCESSED, "ACCESSED"), titled(DIRTIED, "DIRTIED")];
