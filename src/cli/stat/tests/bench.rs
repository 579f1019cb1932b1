//! Options of benchmarks.

use super::*;
use crate::report::Cold;

fn parse(words: &[&str]) -> Result<report::Options, String> {
    let args = Args::try_parse_from([&["cachestat"], words].concat()).map_err(|e| e.to_string())?;
    args.check()?;
    match args.task().map_err(|f| f.message)? {
        Task::Report(options) => Ok(*options),
        Task::Intervals(_) | Task::WhatIf(..) | Task::Blame(_) | Task::WorkingSet(_) => {
            Err("intervals".into())
        }
    }
}

#[test]
fn cold_and_warm_runs() {
    let options = parse(&["-r", "10", "--cold-each", "all", "--warm-runs", "1", "--", "du"]).unwrap();
    assert_eq!(
        (options.repeat, options.cold_each, options.cold, options.warm_runs),
        (10, Some(Cold::All), None, 1)
    );
    // What was there means what it meant.
    let options = parse(&["-r", "2", "--cold", "all", "--prepare", "x", "--", "du"]).unwrap();
    assert_eq!(
        (options.cold, options.cold_each, options.prepare.as_deref()),
        (Some(Cold::All), None, Some("x"))
    );
}

#[test]
fn commands_to_compare() {
    let options = parse(&["--compare-commands", "grep -r x .", "rg x", "-r", "3", "--json"]).unwrap();
    assert_eq!((options.compared.len(), options.repeat, options.json), (2, 3, true));
    let commands = options.commands();
    assert_eq!(commands[0], ["sh", "-c", "grep -r x ."]);
    assert!(parse(&["--cold-each", "slab", "--compare-commands", "a", "b", "c"]).is_ok());
}

#[test]
fn what_makes_no_sense() {
    for (words, part) in [
        (&["--compare-commands", "a"][..], "2 values required"),
        (&["--compare-commands", "a", "b", "--", "c"], "cannot be used with"),
        (&["--compare-commands", "a", "b", "-p", "1"], "cannot be used with"),
        (&["5", "--compare-commands", "a", "b"], "cannot be used with"),
        (&["--compare-commands", "a", "b", "--by", "process"], "cannot be used with"),
        (&["--compare-commands", "a", "b", "--cold", "all"], "take '--cold-each'"),
        (&["--cold", "all", "--cold-each", "all", "--", "a"], "cannot be used with"),
        (&["--warm-runs", "2", "--", "a"], "--cold-each"),
        (&["--cold-each", "--", "a"], "a value is required"),
        (&["--cold-each", "all"], "required"),
        (&["--setup", "x"], "required"),
        (&["--setup", "x", "5"], "required"),
        (&["--ignore-failure", "5"], "required"),
        (&["--export-csv", "x"], "is for reports"),
        (&["-r", "0", "--", "a"], "0 is not in 1..=1000"),
        (&["-r", "100000", "--", "a"], "100000 is not in 1..=1000"),
        (&["-r", "501", "--compare-commands", "a", "b"], "that makes 1002 runs"),
        (&["-r", "1000", "--cold-each", "all", "--warm-runs", "999", "--", "a"], "that makes 1000000 runs"),
        (&["--assert", "run2.wall < 1s", "--", "a"], "is about run 2, and there will be 1 run"),
        (
            &["-r", "3", "--assert", "wall < 1s", "--assert", "wall < 2 * run4.wall", "--", "a"],
            "there will be 3 runs",
        ),
        (&["-r", "3", "--assert", "run0.wall < 1s", "--", "a"], "is about run 0"),
        (&["-r", "2", "--compare-commands", "a", "b", "--assert", "run5.wall < 1s"], "there will be 4 runs"),
        (&["--try", "read_ahead_kb=64", "--assert", "run3.wall < 1s", "--", "a"], "there will be 2 runs"),
    ] {
        let error = parse(words).err().unwrap_or_else(|| panic!("{words:?}"));
        assert!(error.contains(part), "{words:?}: {error}");
    }
    for words in [
        &["-r", "3", "--assert", "run3.wall < run1.wall", "--", "a"][..],
        &["--cold-each", "all", "--warm-runs", "1", "--assert", "run2.wall < run1.wall", "--", "a"],
        &["-p", "1", "--for", "1s", "--assert", "run1.hits > 0"],
    ] {
        assert!(parse(words).is_ok(), "{words:?}");
    }
}
