//! Completions for bash.

use clap::Command;

use super::shape::Choice;
use super::shape::Kind;
use super::shape::Shape;
use super::shape::line;

/// What is before the options: where the cursor is. `=` parts words, unless `COMP_WORDBREAKS` was changed.
const WHERE: &str = "    local cur=$2 prev=$3 options=OPTIONS joined= words= list= i
    compopt +o bashdefault +o default
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
BEHIND
            return
        fi
    done
    if [[ $cur == --*=* ]]; then
        joined=${cur%%=*}= prev=${cur%%=*} cur=${cur#*=}
    elif [[ ${COMP_WORDS[COMP_CWORD]} == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 1]} cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $cur == -* ]]; then
        prev=
    fi
    case $prev in
";

/// Behind `--`: what bash-completion knows of the command, else its name, then paths.
const COMMAND: &str = "            if declare -F _comp_command_offset >/dev/null; then
                _comp_command_offset $((i + 1))
            elif declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            elif ((COMP_CWORD == i + 1)); then
                mapfile -t COMPREPLY < <(compgen -c -- \"$cur\" | sort -u)
            else
                compopt -o bashdefault -o default
            fi";

const PATHS: &str = "            compopt -o bashdefault -o default";

const NOTHING: &str = "            :";

/// What is behind the options. Of a list the words that are not there yet are offered, behind those that are.
const END: &str = "    esac
    if [[ -n $list ]]; then
        compopt -o nospace
        [[ $cur == *,* ]] && joined+=${cur%,*}, && i=,${cur%,*}, || i=
        for words in $list; do
            [[ $i != *,$words,* && $words == \"${cur##*,}\"* ]] && COMPREPLY+=(\"$words\")
        done
    elif [[ -n $words ]]; then
        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")
    fi
    COMPREPLY=(\"${COMPREPLY[@]/#/$joined}\")
";

pub(in crate::cli) fn bash(command: Command) -> String {
    let shape = Shape::of(command);
    let name = &shape.name;
    let options: Vec<_> = shape.options.iter().flat_map(|o| &o.names).map(String::as_str).collect();
    let behind = match (shape.command, shape.paths) {
        (true, _) => COMMAND,
        (_, true) => PATHS,
        _ => NOTHING,
    };
    let mut out = format!("# Completions of {name}, for bash 4.4 or newer.\n_{name}() {{\n");
    out += &WHERE.replace("OPTIONS", &format!("'{}'", options.join(" "))).replace("BEHIND", behind);
    for option in &shape.options {
        case(option, &mut out);
    }
    line(&mut out, format_args!("        *)"));
    if shape.paths {
        line(&mut out, format_args!("            if [[ $cur != -* ]]; then"));
        line(&mut out, format_args!("                compopt -o bashdefault -o default"));
        line(&mut out, format_args!("                return"));
        line(&mut out, format_args!("            fi"));
    }
    line(&mut out, format_args!("            words=$options"));
    line(&mut out, format_args!("            ;;"));
    out + END + &format!("}}\ncomplete -F _{name} -o nosort -o bashdefault -o default {name}\n")
}

/// What stands behind an option. What is optional is left out: behind it, anything else may stand as well.
fn case(option: &Choice, out: &mut String) {
    let Some(value) = option.value.as_ref().filter(|v| v.least > 0) else { return };
    line(out, format_args!("        {})", option.names.join(" | ")));
    let which = if value.list { "list" } else { "words" };
    match &value.kind {
        Kind::Any => line(out, format_args!("            return")),
        Kind::Words(words) => {
            let words: Vec<_> = words.iter().map(|(w, _)| w.as_str()).collect();
            line(out, format_args!("            {which}='{}'", words.join(" ")));
        }
        Kind::Pid => {
            line(out, format_args!("            {which}=$(echo /proc/[0-9]*)"));
            line(out, format_args!("            {which}=${{{which}//\\/proc\\//}}"));
        }
        Kind::User => line(out, format_args!("            {which}=$(compgen -u)")),
        Kind::Program | Kind::Line => {
            line(out, format_args!("            mapfile -t COMPREPLY < <(compgen -c -- \"$cur\" | sort -u)"));
        }
        Kind::Path => {
            line(out, format_args!("            compopt -o bashdefault -o default"));
            line(out, format_args!("            return"));
        }
        Kind::Directory => {
            line(out, format_args!("            compopt -o dirnames"));
            line(out, format_args!("            return"));
        }
    }
    line(out, format_args!("            ;;"));
}
