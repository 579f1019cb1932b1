//! What to write instead where two options exclude each other: clap says only that they do.

use clap::error::ContextKind;
use clap::error::ContextValue;
use clap::error::ErrorKind;

/// Options that exclude options, and what does what was meant. Arguments without a dash are named as the help has them.
pub type Instead = &'static [(&'static [&'static str], &'static [&'static str], &'static str)];

/// What makes a report.
const REPORT: &[&str] = &["COMMAND", "--compare-commands", "--for"];

pub(super) const STAT: Instead = &[
    (
        &["--csv"],
        REPORT,
        "'--export-csv FILE' writes means of runs as CSV ('-': to standard output); '--json' has everything",
    ),
    (&["--by", "--top"], REPORT, "'-v' shows the files and processes of a report, '--json' has them, too"),
    (&["--columns", "--extended"], REPORT, "'-v' shows all that is known, '--json' has every figure"),
    (
        &["--pid"],
        &["COMMAND", "--compare-commands"],
        "what is run is watched by itself; '-p PID --for 10s' explains a process that is there",
    ),
    (
        &["--record"],
        REPORT,
        "'--save FILE' keeps a report; 'cachestat --record FILE' in another terminal records meanwhile",
    ),
    (&["--replay"], REPORT, "of a recording, '--comm NAME' or '-p PID' shows what a process did"),
    (&["INTERVAL", "COUNT", "--timestamp"], REPORT, "a report is about the whole time: it has no intervals"),
    (
        &["--comm", "--user", "--cgroup", "--file", "--mount"],
        REPORT,
        "a report is about one process and all that it starts; '-v' shows their files",
    ),
    (&["--latency"], REPORT, "a report times calls anyway"),
    (&["--engine"], REPORT, "the exact engine makes reports"),
    (&["--verbose"], &["--json"], "'--json' has everything anyway"),
];

pub(super) const DU: Instead = &[
    (&["--verbose"], &["--json"], "'--json' has an object for each file anyway"),
    (&["--json", "--csv"], &["--watch"], "'--watch' is for people; a program runs 'cachedu --json' again"),
];

/// What is meant by the options of this refusal, if it is about two that exclude each other.
pub(super) fn hint(error: &clap::Error, instead: Instead) -> Option<&'static str> {
    if error.kind() != ErrorKind::ArgumentConflict {
        return None;
    }
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(one)) => std::slice::from_ref(one),
        Some(ContextValue::Strings(several)) => several,
        _ => &[],
    };
    // '--by <WHAT>', '[INTERVAL]', '[COMMAND]...': either may be the one that is refused.
    let word = |shown: &'_ str| {
        let word = shown.split([' ', '=']).next().unwrap_or_default();
        word.trim_matches(['[', ']', '<', '>', '.']).to_owned()
    };
    let both = [ContextKind::InvalidArg, ContextKind::PriorArg];
    let words: Vec<String> = both.into_iter().flat_map(named).map(|shown| word(shown)).collect();
    let given = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    let found = instead.iter().find(|(these, with, _)| given(these) && given(with));
    found.map(|(_, _, hint)| *hint)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::ffi::OsString;

    use super::super::du;
    use super::super::start::CommandLine;
    use super::super::start::read_words;
    use super::super::stat;
    use super::*;

    fn refused<C: CommandLine>(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        read_words::<C>(&words).map(|_| ()).unwrap_err().render().to_string()
    }

    #[test]
    fn who_takes_two_that_exclude_each_other_is_told_what_to_take() {
        for (line, has) in [
            ("cachestat --csv -- true", "'--export-csv FILE'"),
            ("cachestat --by file -- true", "'-v' shows the files"),
            ("cachestat --columns hits -- true", "'--json' has every figure"),
            ("cachestat -x -- true", "'--json' has every figure"),
            ("cachestat -p 1 -- true", "'-p PID --for 10s'"),
            ("cachestat --record x -- true", "'--save FILE'"),
            ("cachestat --record x -p 1 --for 1", "'--save FILE'"),
            ("cachestat --by file --compare-commands a b", "'-v' shows the files"),
            ("cachestat 1 -- true", "no intervals"),
            ("cachestat --json -v -- true", "'--json' has everything"),
        ] {
            let said = refused::<stat::Args>(line);
            assert!(said.contains("cannot be used with") && said.contains("tip: "), "{line}: {said}");
            assert!(said.contains(has), "{line}: {said}");
        }
        for (line, has) in
            [("cachedu --json -v", "an object for each file"), ("cachedu --json --watch 1", "a program runs")]
        {
            let said = refused::<du::Args>(line);
            assert!(said.contains("tip: ") && said.contains(has), "{line}: {said}");
        }
        // Where nothing is known to be meant, nothing is said.
        assert!(!refused::<stat::Args>("cachestat --json --csv").contains("tip: "));
    }

    /// What is named is there.
    #[test]
    fn every_name_is_one_of_the_command() {
        fn check<C: CommandLine>(instead: Instead) {
            let command = C::command();
            for name in instead.iter().flat_map(|(these, with, _)| these.iter().chain(*with)) {
                let is = |arg: &clap::Arg| match name.strip_prefix("--") {
                    Some(long) => arg.get_long() == Some(long),
                    None => {
                        arg.is_positional()
                            && arg.get_value_names().is_some_and(|v| v.iter().any(|v| *v == *name))
                    }
                };
                assert!(command.get_arguments().any(is), "{name}");
            }
        }
        check::<stat::Args>(STAT);
        check::<du::Args>(DU);
    }
}
