//! Reading values of options.

use std::time::Duration;

use crate::columns;
use crate::columns::Column;
use crate::plan::Engine;
use crate::text::times;

/// The columns of `--columns`, in the order requested.
#[derive(Debug, Clone)]
pub struct ColumnList(pub Vec<&'static Column>);

impl ColumnList {
    pub(crate) fn parse(list: &str) -> Result<Self, String> {
        columns::parse(list).map(Self)
    }

    fn ids(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|c| c.id)
    }
}

impl PartialEq for ColumnList {
    fn eq(&self, other: &Self) -> bool {
        self.ids().eq(other.ids())
    }
}

impl Eq for ColumnList {}

/// Reads an interval in seconds; `hint` is for what is no number at all.
pub(super) fn interval(text: &str, hint: &str) -> Result<Duration, String> {
    let Ok(seconds) = text.parse::<f64>() else {
        let hint = match text.chars().next() {
            _ if text.contains(',') => "; write fractions with a point: 0.5",
            Some(c) if c.is_ascii_digit() => "; write it without a unit: 0.5",
            _ => hint,
        };
        return Err(format!("it is not a number of seconds{hint}"));
    };
    times::interval(seconds)
}

/// Reads a number of intervals.
pub(super) fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("at least one interval is needed".into()),
        Ok(n) => Ok(n),
        Err(_) => Err("it is not a whole number of intervals".into()),
    }
}

/// Reads a process id.
pub(super) fn pid(text: &str) -> Result<u32, String> {
    match text.parse::<i32>() {
        Ok(n) if n > 0 => Ok(n.unsigned_abs()),
        _ => Err("it is not a process id".into()),
    }
}

/// Reads the name of an engine.
pub(super) fn engine(text: &str) -> Result<Engine, String> {
    match text {
        "exact" => Ok(Engine::Exact),
        "classic" => Ok(Engine::Classic),
        "both" => Ok(Engine::Both),
        _ => Err("the engines are 'exact', 'classic' and 'both'".into()),
    }
}
