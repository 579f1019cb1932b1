//! Reading values of options.

use std::ffi::OsStr;
use std::time::Duration;

use clap::Arg;
use clap::Command;
use clap::builder::PossibleValue;
use clap::builder::TypedValueParser;

use crate::columns;
use crate::columns::COLUMNS;
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

/// Reads what has names that completions offer, and more: lists of them, other ways to write them.
#[derive(Debug, Clone)]
pub(super) struct Named<T> {
    pub(super) read: fn(&str) -> Result<T, String>,
    pub(super) names: fn() -> Vec<PossibleValue>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Named<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        self.read.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter()))
    }
}

/// Names of columns.
pub(super) fn names_of<'a>(columns: impl Iterator<Item = &'a Column>) -> Vec<PossibleValue> {
    columns.map(|c| PossibleValue::new(c.id).help(c.about())).collect()
}

/// A list of columns of the whole system.
pub(super) const COLUMN_LIST: Named<ColumnList> =
    Named { read: ColumnList::parse, names: || names_of(COLUMNS.iter()) };

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

/// The name of an engine.
pub(super) const ENGINE: Named<Engine> = Named {
    read: engine,
    names: || {
        let names = [
            ("exact", "Each access, from the functions that serve it"),
            ("classic", "As bcc's tools count"),
            ("both", "Both, side by side"),
        ];
        names.map(|(name, about)| PossibleValue::new(name).help(about)).into()
    },
};

fn engine(text: &str) -> Result<Engine, String> {
    match text {
        "exact" => Ok(Engine::Exact),
        "classic" => Ok(Engine::Classic),
        "both" => Ok(Engine::Both),
        _ => Err("the engines are 'exact', 'classic' and 'both'".into()),
    }
}
