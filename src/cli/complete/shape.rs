//! What completions are made from: a command line, without what clap alone needs to know.

use std::fmt::Write as _;

use clap::Arg;
use clap::Command;
use clap::ValueHint;

/// What completions are made from.
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) options: Vec<Choice>,
    /// Whether words that belong to no option are paths.
    pub(super) paths: bool,
    /// Whether a command with its words stands behind `--`.
    pub(super) command: bool,
}

/// An option.
pub(super) struct Choice {
    /// `-p`, `--pid`.
    pub(super) names: Vec<String>,
    pub(super) about: String,
    pub(super) value: Option<Value>,
    pub(super) repeats: bool,
    /// Names of those that it does not go together with.
    pub(super) against: Vec<String>,
}

/// What stands behind an option.
pub(super) struct Value {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Several, with commas between.
    pub(super) list: bool,
    /// How often it must be there; an option with none can do without.
    pub(super) least: usize,
}

/// What a value can be.
pub(super) enum Kind {
    /// Anything: there is nothing to offer.
    Any,
    /// One of these, each with what it means.
    Words(Vec<(String, String)>),
    /// A process id.
    Pid,
    /// The name of a user.
    User,
    /// The name of a program.
    Program,
    /// A line of shell.
    Line,
    /// A path.
    Path,
    /// The path of a directory.
    Directory,
}

impl Shape {
    pub(super) fn of(mut command: Command) -> Self {
        command.build();
        let positional = |hint| command.get_positionals().any(|a| a.get_value_hint() == hint);
        Self {
            name: command.get_name().to_owned(),
            options: command
                .get_opts()
                .chain(flags(&command))
                .filter_map(|a| Choice::of(a, &command))
                .collect(),
            paths: positional(ValueHint::AnyPath),
            command: positional(ValueHint::CommandWithArguments),
        }
    }
}

/// Options without values.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|a| !a.get_action().takes_values() && !a.is_positional())
}

impl Choice {
    fn of(arg: &Arg, command: &Command) -> Option<Self> {
        if arg.is_hide_set() {
            return None;
        }
        let against = command.get_arg_conflicts_with(arg).into_iter().filter(|a| !a.is_hide_set());
        let takes = arg.get_action().takes_values();
        Some(Self {
            names: names(arg),
            about: arg.get_help().map(ToString::to_string).unwrap_or_default(),
            value: takes.then(|| Value::of(arg)),
            repeats: matches!(arg.get_action(), clap::ArgAction::Append | clap::ArgAction::Count),
            against: against.flat_map(names).collect(),
        })
    }

    /// Its long name without dashes, for names of functions.
    pub(super) fn function(&self, shape: &Shape) -> String {
        let long = self.names.last().map(|n| n.trim_start_matches('-').replace('-', "_"));
        format!("{}_{}", shape.name, long.unwrap_or_default())
    }
}

fn names(arg: &Arg) -> Vec<String> {
    let short = arg.get_short().map(|s| format!("-{s}"));
    short.into_iter().chain(arg.get_long().map(|l| format!("--{l}"))).collect()
}

impl Value {
    fn of(arg: &Arg) -> Self {
        let name = arg.get_value_names().and_then(|n| n.first()).map(ToString::to_string).unwrap_or_default();
        Self {
            kind: Kind::of(arg, &name),
            // Lists of columns are read as a whole: clap knows of no comma in them.
            list: arg.get_value_delimiter().is_some() || name == "LIST",
            least: arg.get_num_args().map_or(1, |n| n.min_values()),
            name,
        }
    }
}

impl Kind {
    fn of(arg: &Arg, name: &str) -> Self {
        let words = arg.get_possible_values();
        if !words.is_empty() {
            let about = |v: &clap::builder::PossibleValue| v.get_help().map(ToString::to_string);
            let words = words.iter().filter(|v| !v.is_hide_set());
            return Self::Words(words.map(|v| (v.get_name().into(), about(v).unwrap_or_default())).collect());
        }
        match arg.get_value_hint() {
            ValueHint::AnyPath | ValueHint::FilePath => Self::Path,
            ValueHint::DirPath => Self::Directory,
            ValueHint::CommandName => Self::Program,
            ValueHint::CommandString => Self::Line,
            ValueHint::Username => Self::User,
            _ if name == "PID" => Self::Pid,
            _ => Self::Any,
        }
    }
}

/// Adds a line.
pub(super) fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = writeln!(out, "{text}");
}
