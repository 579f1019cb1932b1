//! Completions for fish.

use clap::Command;

use super::shape::Choice;
use super::shape::Kind;
use super::shape::Shape;
use super::shape::Value;
use super::shape::line;

/// Behind `--`: what fish knows of the command that stands there.
const COMMAND: &str = "\
function __NAME_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    or return
    set -e words[1..$at]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end
complete -c NAME -f -n 'contains -- -- (commandline -opc)' -a '(__NAME_command)'
";

pub(in crate::cli) fn fish(command: Command) -> String {
    let shape = Shape::of(command);
    let name = &shape.name;
    let mut out = String::new();
    if !shape.paths {
        line(&mut out, format_args!("complete -c {name} -f"));
    }
    if shape.command {
        out += &COMMAND.replace("NAME", name);
    }
    for option in &shape.options {
        if let Some(value) = &option.value {
            words(option, value, &shape, &mut out);
        }
        let mut words = format!("complete -c {name}");
        for name in &option.names {
            words += &match name.strip_prefix("--") {
                Some(long) => format!(" -l {long}"),
                None => format!(" -s {}", name.trim_start_matches('-')),
            };
        }
        // What can do without a value is a flag to fish.
        if let Some(value) = option.value.as_ref().filter(|v| v.least > 0) {
            words += &takes(option, value, &shape);
        }
        line(&mut out, format_args!("{words} -d {}", quoted(&option.about)));
    }
    out
}

/// The function that prints the words of an option.
fn words(option: &Choice, value: &Value, shape: &Shape, out: &mut String) {
    let Kind::Words(words) = &value.kind else { return };
    line(out, format_args!("function __{}", option.function(shape)));
    for (word, about) in words {
        line(out, format_args!("    printf '%s\\t%s\\n' {} {}", quoted(word), quoted(about)));
    }
    line(out, format_args!("end"));
}

fn takes(option: &Choice, value: &Value, shape: &Shape) -> String {
    let of = match &value.kind {
        Kind::Any => return " -x".into(),
        Kind::Path => return " -r -F".into(),
        Kind::Words(_) => format!("__{}", option.function(shape)),
        Kind::Pid => "__fish_complete_pids".into(),
        Kind::User => "__fish_complete_users".into(),
        Kind::Program | Kind::Line => "__fish_complete_command".into(),
        Kind::Directory => "__fish_complete_directories".into(),
    };
    let list = if value.list { "__fish_complete_list , " } else { "" };
    format!(" -x -a '({list}{of})'")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
