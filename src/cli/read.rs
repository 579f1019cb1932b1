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

/// Reads a length of time; `hint` is for what is no number at all.
pub(super) fn time(text: &str, hint: &str) -> Result<Duration, String> {
    times::read(text).map_err(|error| {
        // What begins as a number is one that is written wrong.
        let word = !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        if word && text.parse::<f64>().is_err() { error + hint } else { error }
    })
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
