//! Completions for zsh.

use clap::Command;

use super::shape::Choice;
use super::shape::Kind;
use super::shape::Shape;
use super::shape::Value;
use super::shape::line;

/// Behind `--` stands a command of its own.
const COMMAND: &str = "    local -i at=${words[(ie)--]}
    if (( at < CURRENT )); then
        shift $at words
        (( CURRENT -= at ))
        _normal
        return
    fi
";

pub(in crate::cli) fn zsh(command: Command) -> String {
    let shape = Shape::of(command);
    let name = &shape.name;
    let mut out = format!("#compdef {name}\n\n");
    for option in &shape.options {
        if let Some(value) = &option.value {
            words(option, value, &shape, &mut out);
        }
    }
    line(&mut out, format_args!("_{name}() {{"));
    if shape.command {
        out += COMMAND;
    }
    line(&mut out, format_args!("    _arguments -s -S : \\"));
    for option in &shape.options {
        line(&mut out, format_args!("        {} \\", spec(option, &shape)));
    }
    // Where there are no paths, a word is a number: were it told here, no option that is there alone would be put in.
    line(&mut out, format_args!("{}\n}}\n", if shape.paths { "        '*:PATH:_files'" } else { "" }));
    // As a file of $fpath, it becomes the function when it is first called; sourced, it is registered.
    line(&mut out, format_args!("if [ \"$funcstack[1]\" = \"_{name}\" ]; then"));
    line(&mut out, format_args!("    _{name} \"$@\"\nelse\n    compdef _{name} {name}\nfi"));
    out
}

/// The function that offers the words of an option.
fn words(option: &Choice, value: &Value, shape: &Shape, out: &mut String) {
    let Kind::Words(words) = &value.kind else { return };
    let (name, function) = (&value.name, option.function(shape));
    line(out, format_args!("_{function}() {{"));
    if value.list {
        line(out, format_args!("    _values -s , {name} \\"));
    } else {
        line(out, format_args!("    local -a words=("));
    }
    for (i, (word, about)) in words.iter().enumerate() {
        let end = if value.list && i + 1 < words.len() { " \\" } else { "" };
        let word = match (about.as_str(), value.list) {
            ("", _) => word.clone(),
            (about, true) => format!("{word}[{}]", escaped(about)),
            (about, false) => format!("{word}:{about}"),
        };
        line(out, format_args!("        {}{end}", quoted(&word)));
    }
    if !value.list {
        line(out, format_args!("    )\n    _describe {name} words"));
    }
    line(out, format_args!("}}\n"));
}

/// An option for `_arguments`.
fn spec(option: &Choice, shape: &Shape) -> String {
    let own: &[String] = if option.repeats || option.names.len() == 1 { &[] } else { &option.names };
    let against: Vec<_> = own.iter().chain(&option.against).map(String::as_str).collect();
    let mut before = if against.is_empty() { String::new() } else { format!("({})", against.join(" ")) };
    if option.repeats {
        before.push('*');
    }
    let mut behind = format!("[{}]", escaped(&option.about));
    // What can do without a value is a flag: an option may stand there just as well.
    let value = option.value.as_ref().filter(|v| v.least > 0);
    if let Some(value) = value {
        let action = action(option, value, shape);
        for _ in 0..value.least {
            behind += &format!(":{}:{action}", value.name);
        }
    }
    let name = |n: &String| match (value, n.starts_with("--")) {
        (None, _) => n.clone(),
        (_, true) => format!("{n}="),
        (_, false) => format!("{n}+"),
    };
    let names: Vec<_> = option.names.iter().map(name).collect();
    let before = if before.is_empty() { before } else { quoted(&before) };
    match names.as_slice() {
        [one] => format!("{before}{one}{}", quoted(&behind)),
        names => format!("{before}{{{}}}{}", names.join(","), quoted(&behind)),
    }
}

fn action(option: &Choice, value: &Value, shape: &Shape) -> String {
    match value.kind {
        // A blank stands for nothing: the name alone is shown.
        Kind::Any => " ".into(),
        Kind::Words(_) => format!("_{}", option.function(shape)),
        Kind::Pid if value.list => "_sequence -s , _pids".into(),
        Kind::Pid => "_pids".into(),
        Kind::User if value.list => "_sequence -s , _users".into(),
        Kind::User => "_users".into(),
        Kind::Program => "_command_names -e".into(),
        Kind::Line => "_cmdstring".into(),
        Kind::Path => "_files".into(),
        Kind::Directory => "_files -/".into(),
    }
}

/// Between brackets.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "[]:\\".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
