//! What hands do by habit: options of `top`, `vmstat`, `perf stat`, `du` and their like are named with what stands for
//! them here, instead of with whatever of ours is written nearly so.

use std::ffi::OsString;

use clap::Arg;
use clap::Command;
use clap::builder::StyledStr;
use clap::error::ContextKind;
use clap::error::ContextValue;
use clap::error::ErrorKind;

use super::read;

/// Options that others have, and what a command has in their place.
pub type Habits = &'static [(&'static [&'static str], &'static str)];

/// What is said of a word that is no interval.
pub(super) const COMMAND: &str = "to watch a command, put '--' before it: cachestat -- COMMAND";

/// In [`Habits`]: a number that stands where none may.
const NUMBER: &str = "NUMBER";

pub(super) const STAT: Habits = &[
    (
        &["-n", "-c", "--count", "--iterations"],
        "how many intervals stands behind their length: 'cachestat 1 5'",
    ),
    (
        &["-i", "-I", "-d", "--interval", "--delay"],
        "the length of an interval stands by itself: 'cachestat 0.5'",
    ),
    (&["-a", "-A", "--all"], "the whole system is counted anyway; for 5 s: 'cachestat 5 1'"),
    (&["-e", "--event"], "'--columns hits,misses' chooses figures; 'cachestat --help' lists them"),
    (&["-S", "-k", "-m", "-B", "-H", "--human"], "'--unit bytes' shows bytes, with K, M and G"),
    (&["-t"], "'-T' begins each line with the time of day"),
    (&["-w", "-l", "--wide"], "'-x' shows the wide set of columns"),
    (&["-s", "--sort"], "rows are ordered by all that they did; 'cachetop -b -n 1 -s misses' by a column"),
    (&["-j", "--format"], "'--json' and '--csv' are for programs"),
    (&["-f", "--follow"], "'-p PID --for 10s' follows a process and what it starts; '--file PATH' is a file"),
    (&["--no-header", "--noheadings"], "into a pipe the titles are written once; '--json' has none"),
    (&["--container", "--pod"], "'--cgroup PATH' chooses; '--by cgroup' names containers and units"),
    (&["--name", "--command"], "'--comm NAME' chooses by the name of a command"),
];

pub(super) const TOP: Habits = &[
    (&["-d", "--delay", "--interval"], "the length of an interval stands by itself: 'cachetop 0.5'"),
    (&["-c", "--count", NUMBER], "'-n 3' ends after three intervals"),
    (&["-o", "-F"], "'-s misses' sorts by a column, '-r' the other way round"),
    (&["-H"], "'-t' shows threads below their processes; '--by thread' has threads alone"),
    (&["-e", "-E", "-k", "-m", "-B"], "'--unit bytes' shows bytes, with K, M and G"),
    (&["-U"], "'-u USER' counts only what this user does"),
    (&["-C", "--no-color", "--no-colour"], "'--color never', or NO_COLOR in the environment"),
    (&["-M"], "'--no-mouse' leaves the mouse to the terminal"),
    (&["-x", "-w", "--wide"], "'--columns LIST' chooses columns; what has room is shown anyway"),
    (
        &["-T", "--tree"],
        "on the screen, 'T' or F5 hangs processes below their parents, cgroups below cgroups",
    ),
    (
        &["--filter", "-f"],
        "on the screen, '/' filters; '-p', '--comm', '-u', '--cgroup', '--file' choose what counts",
    ),
    (&["--csv"], "'cachestat --csv --by process' writes it"),
    (&["--record", "--save"], "'cachestat --record FILE' records, and 'cachetop --replay FILE' shows it"),
    (&["--container", "--pod"], "'--cgroup PATH' chooses; '--by cgroup' names containers and units"),
];

pub(super) const DU: Habits = &[
    (&["-s", "--summarize"], "'-d 0' shows the sum of each PATH only"),
    (&["-c", "--total"], "of several PATHs the last line is their sum anyway"),
    (&["--max-depth"], "'-d N' shows directories down to N levels"),
    (&["-b", "-B", "-k", "-m", "--bytes", "--block-size", "--si", "--human-readable"], UNITS),
    (&["--apparent-size"], "SIZE is that, DISK is what it takes on the disk"),
    (&["-X", "--exclude-from"], "'--exclude GLOB' leaves names out; it may be given several times"),
    (&["--threshold"], "'--min SIZE' shows only rows with so much cached"),
    (&["--files0-from"], "'--files-from FILE -0' reads paths that end with a zero byte"),
    (&["-l", "--count-links"], "hard links are counted once"),
    (
        &["-L", "-D", "-H", "-P"],
        "a PATH that is a link stands for its target; links below it are not followed",
    ),
    (&["-o", "--output"], "'--columns LIST' chooses columns"),
    (&["-w"], "'--watch SECONDS' looks again and shows what grew and shrank"),
    (&["-e"], "'--evict' drops files from the cache"),
    (&["--touch"], "'--load' reads files into the cache"),
    (&["-r", "--reverse", "-S"], "'--sort BY' orders the rows"),
    (&["--terse", "--raw"], "'--csv --no-header' is for programs"),
];

const UNITS: &str = "'--unit pages|bytes' chooses; '--csv' and '--json' have exact numbers";

pub(super) const DAEMON: Habits = &[
    (&["--web.listen-address", "--port", "-p"], "'--listen 127.0.0.1:9950' says where it answers"),
    (
        &["--web.config.file", "--config"],
        "'--web-config-file FILE' is for TLS and passwords; all else are options",
    ),
    (
        &["-d", "--daemon", "-f", "--foreground"],
        "it stays where it is started: a unit of systemd keeps it on",
    ),
    (
        &["-v", "--verbose", "--debug", "--log-level", "--log.level"],
        "RUST_LOG=info in the environment has it say more",
    ),
    (&[NUMBER], "'-i 5' is the time between two samples"),
    (&["-o", "--output"], "'--record DIR' keeps a record, '--textfile DIR' writes metrics"),
];

/// The same refusal with what stands here for what was meant. `instead`: what is known of it already.
pub(super) fn taught(
    mut error: clap::Error,
    command: &Command,
    habits: Habits,
    words: &[OsString],
    instead: Option<&str>,
) -> clap::Error {
    let hint = one_dash(command, words)
        .or_else(|| forgotten(&error, command, words))
        .or_else(|| habit(&error, habits))
        .or_else(|| instead.map(String::from));
    if let Some(hint) = hint {
        error.remove(ContextKind::SuggestedArg);
        let hint = ContextValue::StyledStrs(vec![StyledStr::from(hint)]);
        error.insert(ContextKind::Suggested, hint);
    } else if error.kind() == ErrorKind::UnknownArgument {
        // Behind `--` stands a command, or nothing at all: only of paths that tip is true.
        if !command.get_arguments().any(|arg| arg.get_id() == "paths") {
            error.remove(ContextKind::Suggested);
        }
        let near = match error.get(ContextKind::SuggestedArg) {
            Some(ContextValue::String(near)) => near.trim_start_matches('-'),
            _ => "",
        };
        if command.get_arguments().any(|arg| arg.get_long() == Some(near) && arg.is_hide_set()) {
            error.remove(ContextKind::SuggestedArg);
        }
    }
    error
}

fn habit(error: &clap::Error, habits: Habits) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let word = if word.parse::<f64>().is_ok() { NUMBER } else { word };
    let found = habits.iter().find(|(options, _)| options.contains(&word));
    found.map(|(_, hint)| (*hint).to_string())
}

/// `cachestat ls -l`: options of a command before which nothing says that it is one.
fn forgotten(error: &clap::Error, command: &Command, words: &[OsString]) -> Option<String> {
    let runs = command.get_arguments().any(|arg| arg.get_id() == "command");
    if error.kind() != ErrorKind::UnknownArgument || !runs {
        return None;
    }
    let first = first_word(command, words)?;
    // What stands before it was meant for us.
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let before = words.iter().map_while(|word| word.to_str().filter(|word| *word != first));
    if before.filter(|word| word.starts_with(option.as_str())).count() > 0 {
        return None;
    }
    (!is_like_a_number(first) && read::time(first, "").is_err()).then(|| COMMAND.into())
}

/// Whether a number was meant, be it a wrong one: `./build.sh` is a command.
fn is_like_a_number(word: &str) -> bool {
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    digits.strip_prefix('.').unwrap_or(digits).starts_with(|c: char| c.is_ascii_digit())
}

/// The first word that is no option, nor the value of one.
fn first_word<'a>(command: &Command, words: &'a [OsString]) -> Option<&'a str> {
    let mut words = words.iter().skip(1).map_while(|word| word.to_str().filter(|word| *word != "--"));
    while let Some(word) = words.next() {
        let Some(name) = word.strip_prefix('-') else { return Some(word) };
        let is = |arg: &&Arg| match name.strip_prefix('-') {
            Some(long) => arg.get_long() == Some(long),
            // Of letters that stand together, the last one takes what comes.
            None => arg.get_short() == name.chars().next_back(),
        };
        if command.get_arguments().find(is).is_some_and(|arg| arg.get_action().takes_values()) {
            words.next();
        }
    }
    None
}

/// `-json`, as `pcstat` and others have it.
fn one_dash(command: &Command, words: &[OsString]) -> Option<String> {
    let ours = words.iter().skip(1).map_while(|word| word.to_str().filter(|word| *word != "--"));
    let name = |word: &str| {
        let name = word.strip_prefix('-')?.split('=').next()?;
        let long = command
            .get_arguments()
            .filter(|arg| !arg.is_hide_set())
            .find_map(|arg| arg.get_long().filter(|long| long.len() > 2 && *long == name))?;
        Some(format!("'--{long}' has two dashes"))
    };
    ours.filter_map(name).next()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::ffi::OsString;

    use super::super::daemon;
    use super::super::du;
    use super::super::start::CommandLine;
    use super::super::start::read_words;
    use super::super::stat;
    use super::super::top;

    fn tips<C: CommandLine>(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = read_words::<C>(&words).map(|_| ()).unwrap_err().render().to_string();
        let tips = error.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
        tips.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn habits_are_answered_with_what_there_is() {
        let hint = |line: &str, has: &str| {
            let tips = match line.split(' ').next() {
                Some("cachestat") => tips::<stat::Args>(line),
                Some("cachetop") => tips::<top::Args>(line),
                Some("cachedu") => tips::<du::Args>(line),
                _ => tips::<daemon::Args>(line),
            };
            assert!(tips.contains(has) && !tips.contains('\n'), "{line}: {tips}");
        };
        hint("cachestat -n 3", "'cachestat 1 5'");
        hint("cachestat --delay=1", "'cachestat 0.5'");
        hint("cachestat -S M 1", "'--unit bytes'");
        hint("cachestat -a sleep 5", "'cachestat 5 1'");
        hint("cachetop -d 1 -n 3 -b", "'cachetop 0.5'");
        hint("cachetop -b 1 3", "'-n 3'");
        hint("cachetop -bn1 -o misses", "'-s misses'");
        hint("cachetop --tree", "'T' or F5");
        hint("cachetop --record x", "'cachestat --record FILE'");
        hint("cachestat ls -l", "put '--' before it");
        hint("cachestat ./build.sh -j4", "put '--' before it");
        hint("cachestat ../build.sh -j4", "put '--' before it");
        hint("cachestat --json --by file -xT make -j4 --all", "put '--' before it");
        hint("cachedu -sh /tmp", "'-d 0'");
        hint("cachedu --max-depth=1", "'-d N'");
        hint("cachedu -json a", "'--json' has two dashes");
        hint("cachedu -pid 1", "'--pid' has two dashes");
        hint("cachetopd --web.listen-address=:9950", "'--listen 127");
        hint("cachetopd 5", "'-i 5'");
    }

    #[test]
    fn nothing_is_hinted_that_is_not_so() {
        // Not that a command called '-q' could be run, nor an option that is for tests.
        assert_eq!(tips::<stat::Args>("cachestat -q"), "");
        assert_eq!(tips::<top::Args>("cachetop --refuze"), "");
        // A path may begin with a dash, and what is nearly an option is told.
        assert!(tips::<du::Args>("cachedu -q -Z").contains("-- -Z"));
        assert!(tips::<top::Args>("cachetop --colums hits").contains("'--columns'"));
        // An interval is no command, nor is the value of an option.
        assert!(!tips::<stat::Args>("cachestat 0.5 -l").contains("put '--'"));
        for interval in ["1x", ".5", "+.5y", "-.5"] {
            let tips = tips::<stat::Args>(&format!("cachestat {interval} -l"));
            assert!(!tips.contains("put '--'"), "{interval}: {tips}");
        }
        assert_eq!(tips::<stat::Args>("cachestat --comm dd 1 -q"), "");
        // What belongs to a command is none of ours.
        assert_eq!(tips::<stat::Args>("cachestat -q -- ls -json"), "");
    }

    /// What is called a habit is no option of ours, and has one answer.
    #[test]
    fn no_option_of_ours_is_called_a_habit() {
        fn check<C: CommandLine>() {
            let mut command = C::command();
            command.build();
            for arg in command.get_arguments() {
                let short = arg.get_short().map(|c| format!("-{c}"));
                for name in arg.get_long().map(|long| format!("--{long}")).into_iter().chain(short) {
                    let is = |(options, _): &(&[&str], _)| options.contains(&name.as_str());
                    assert!(!C::HABITS.iter().any(is), "{name} of {}", command.get_name());
                }
            }
            let mut all: Vec<_> = C::HABITS.iter().flat_map(|(options, _)| *options).collect();
            let number = all.len();
            all.sort();
            all.dedup();
            assert_eq!(number, all.len(), "{}", command.get_name());
        }
        check::<stat::Args>();
        check::<top::Args>();
        check::<du::Args>();
        check::<daemon::Args>();
    }
}
