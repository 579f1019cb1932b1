#![allow(clippy::unwrap_used)]

mod bench;

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::columns;
use crate::text::times::LONGEST;
use crate::text::times::SHORTEST;

fn parse(options: &str) -> Result<Args, String> {
    Args::try_parse_from(["cachestat"].into_iter().chain(options.split_whitespace()))
        .map_err(|e| e.to_string())
}

#[test]
fn the_defaults() {
    let args = parse("").unwrap();
    assert_eq!((args.interval, args.count), (Duration::from_secs(1), None));
    let options = args.options();
    assert_eq!((options.format, options.unit, args.top), (Format::Text, Unit::Pages, 10));
    assert_eq!(options.columns().len(), columns::DEFAULT.len());
    assert_eq!(parse("-x").unwrap().options().columns().len(), columns::WIDE.len());
}

#[test]
fn intervals() {
    for (text, millis) in [
        ("1", 1000),
        ("0.1", 100),
        (".5", 500),
        ("2.", 2000),
        ("1e1", 10_000),
        ("0.01", 10),
        ("+3", 3000),
        ("1s", 1000),
        ("500ms", 500),
        ("2m", 120_000),
        ("1h", 3_600_000),
    ] {
        assert_eq!(interval(text), Ok(Duration::from_millis(millis)), "{text}");
    }
    assert_eq!(interval("31536000"), Ok(LONGEST));
    for (text, part) in [
        ("0", "more than 0"),
        ("0.0", "more than 0"),
        ("-0", "more than 0"),
        ("-1", "more than 0"),
        ("-1e400", "more than 0"),
        ("1e-400", "more than 0"),
        ("1e-9", "too short"),
        ("1e-30", "too short"),
        ("0.00999", "too short"),
        ("nan", "not a number"),
        ("-nan", "not a number"),
        ("inf", "longer than a year"),
        ("1e400", "longer than a year"),
        ("31536000.1", "longer than a year"),
        ("abc", "not a number"),
        ("", "not a number"),
        ("1d", "ms, s, m or h"),
        ("0,5", "with a point"),
    ] {
        let error = interval(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn a_time_that_is_wrong_names_its_option() {
    for (options, name) in [("1d", "'[INTERVAL]'"), ("0s", "'[INTERVAL]'"), ("1e308", "'[INTERVAL]'")] {
        let error = parse(options).unwrap_err();
        assert!(error.contains(name), "{options}: {error}");
    }
    for time in ["0", "0s", "-1", "-1s", "nan", "1e308", "1e308h", "1d", "s", "--json"] {
        let error = parse(&format!("-p 1 --for {time}")).unwrap_err();
        assert!(error.contains("'--for <TIME>'"), "{time}: {error}");
    }
    assert_eq!(parse("-p 1 --for 2m").unwrap().watched.time, Some(Duration::from_secs(120)));
}

#[test]
fn negative_numbers_are_values_and_not_options() {
    for options in ["-1", "-0.5", "1 -1", "-p -1"] {
        let error = parse(options).unwrap_err();
        assert!(error.starts_with("error: invalid value"), "{options}: {error}");
    }
}

#[test]
fn what_does_not_go_together() {
    for options in [
        "--json --csv",
        "--json --bcc",
        "--csv --bcc",
        "--json -x",
        "--json --columns hits",
        "--json --unit pages",
        "--bcc -x",
        "--bcc --columns hits",
        "--bcc --unit bytes",
        "--bcc --by process",
        "-x --columns hits",
        "--top 3",
    ] {
        let error = parse(options).unwrap_err();
        assert!(
            error.contains("cannot be used with") || error.contains("required arguments"),
            "{options}: {error}"
        );
    }
    for options in ["--json -T", "--csv -x", "--json --by process --top 3 -p 1", "--bcc -T -p 1 2 3"] {
        assert!(parse(options).is_ok(), "{options}");
    }
}

#[test]
fn wrong_values() {
    for (options, part) in [
        ("1 0", "at least one"),
        ("1 1.5", "not a whole number"),
        ("1 2 3", "unexpected argument"),
        ("-p 0", "not a process id"),
        ("-p abc", "not a process id"),
        ("-p 1,2,abc", "not a process id"),
        ("-p 99999999999", "not a process id"),
        ("--engine turbo", "engines are 'exact', 'classic' and 'both'"),
        ("--by inode", "possible values: process"),
        ("--by process --top 0", "not in"),
        ("--table-size 0", "not in"),
        ("--columns hits,rubbish", "no column 'rubbish'"),
        ("--unit furlongs", "possible values: pages, bytes"),
        ("--rubbish", "unexpected argument"),
    ] {
        let error = parse(options).unwrap_err();
        assert!(error.contains(part), "{options}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_an_interval_in_bounds_or_an_error(text in ".{0,12}") {
        if let Ok(interval) = interval(&text) {
            prop_assert!((SHORTEST..=LONGEST).contains(&interval));
        }
    }

    #[test]
    fn any_number_is_an_interval_if_in_bounds(seconds in any::<f64>()) {
        let parsed = interval(&seconds.to_string());
        let inside = (0.01..=LONGEST.as_secs_f64()).contains(&seconds);
        prop_assert_eq!(parsed.is_ok(), inside);
    }

    #[test]
    fn intervals_are_kept_to_the_millisecond(millis in 10_u64..100_000_000) {
        let text = format!("{}.{:03}", millis / 1000, millis % 1000);
        prop_assert_eq!(interval(&text), Ok(Duration::from_millis(millis)));
    }
}

#[test]
fn blame_goes_alone() {
    let args = Args::parse_from(["cachestat", "--blame", "500ms", "--json"]);
    assert_eq!(args.check(), Ok(()));
    let Ok(Task::Blame(options)) = args.task() else { panic!("something else") };
    assert_eq!((options.time, options.json), (Duration::from_millis(500), true));
    for other in [&["1"][..], &["--csv"], &["--by", "file"], &["--what-if", "1"], &["--file", "/f"]] {
        let words = [&["cachestat", "--blame", "1"], other].concat();
        assert!(Args::try_parse_from(words).is_err(), "{other:?}");
    }
    for other in [
        &["--engine", "classic"][..],
        &["--record", "/x"],
        &["--replay", "/x"],
        &["--unit", "pages"],
        &["-p", "1", "--for", "1"],
        &["--", "true"],
        &["--compare-commands", "a", "b"],
    ] {
        let words = [&["cachestat", "--blame", "1"], other].concat();
        assert!(Args::parse_from(words).check().is_err(), "{other:?}");
    }
}

#[test]
fn blame_takes_who_is_asked_for() {
    let args = Args::parse_from(["cachestat", "--blame", "1", "-p", "7", "--cgroup", "/a", "--comm", "tar"]);
    assert_eq!(args.check(), Ok(()));
    let Ok(Task::Blame(options)) = args.task() else { panic!("something else") };
    assert_eq!((options.chosen.pids, options.chosen.cgroups), (vec![7], vec!["/a".to_owned()]));
    let args = Args::parse_from(["cachestat", "--by", "evictor", "--cgroup", "/a", "1"]);
    assert_eq!(args.check(), Ok(()));
    for other in [["--record", "/x"], ["--replay", "/x"], ["--file", "/f"], ["--engine", "classic"]] {
        let words = [&["cachestat", "--by", "evictor"], &other[..]].concat();
        assert!(Args::parse_from(words).check().is_err(), "{other:?}");
    }
}

#[test]
fn blame_of_a_command_lasts_as_long_as_that() {
    for words in [
        &["--blame", "--", "cat", "/f"][..],
        &["-r", "3", "--blame", "--json", "--", "cat"],
        &["--blame", "-p", "1", "--for", "2"],
        &["-p", "1", "--for", "2", "--unit", "pages", "--blame"],
    ] {
        let args = Args::parse_from([&["cachestat"], words].concat());
        assert_eq!(args.check(), Ok(()), "{words:?}");
        let Ok(Task::Report(options)) = args.task() else { panic!("{words:?}") };
        assert!(options.blame);
    }
    let Ok(Task::Report(options)) = Args::parse_from(["cachestat", "--", "true"]).task() else { panic!() };
    assert!(!options.blame);
    for words in [&["--blame"][..], &["--blame", "--json"], &["-p", "1", "--blame"]] {
        let args = Args::try_parse_from([&["cachestat"], words].concat());
        assert!(args.is_err() || args.is_ok_and(|args| args.check().is_err()), "{words:?}");
    }
    for time in ["-1", "0", "x", "1e9", ""] {
        assert!(Args::try_parse_from(["cachestat", "--blame", time]).is_err(), "{time}");
    }
}

#[test]
fn the_working_set_takes_rows_and_goes_alone() {
    let args =
        Args::parse_from(["cachestat", "--working-set", "1h", "--by", "file", "--top", "3", "-p", "1"]);
    assert_eq!(args.check(), Ok(()));
    let Ok(Task::WorkingSet(options)) = args.task() else { panic!("something else") };
    assert_eq!((options.interval, options.count), (Duration::from_secs(3600), 1));
    assert_eq!((options.top, options.json), (3, false));
    assert_eq!((options.by, options.chosen.pids), (Some(By::File), vec![1]));
    let args = Args::parse_from(["cachestat", "--working-set", "500ms", "6", "--json"]);
    assert_eq!(args.check(), Ok(()));
    let Ok(Task::WorkingSet(options)) = args.task() else { panic!("something else") };
    assert_eq!((options.interval, options.count, options.json), (Duration::from_millis(500), 6, true));
    for wrong in
        [&["0"][..], &["-1"], &["x"], &["", "1"], &["1", "0"], &["1", "-1"], &["1", "1.5"], &["1", "x"]]
    {
        let said = Args::parse_from([&["cachestat", "--working-set"], wrong].concat()).check().unwrap_err();
        assert!(said.contains("--working-set TIME [COUNT]"), "{wrong:?}: {said}");
    }
    let three = Args::parse_from(["cachestat", "--working-set", "5", "6", "7"]).check().unwrap_err();
    assert!(
        three.contains("unexpected word '7' behind '--working-set 5 6': it takes a TIME and a COUNT"),
        "{three}"
    );
    // What would be a value elsewhere is an option.
    assert!(Args::try_parse_from(["cachestat", "--working-set", "--json"]).is_err());
    for other in [&["--csv"][..], &["--file", "/f"], &["--blame", "1"], &["--", "true"]] {
        let words = [&["cachestat", "--working-set", "1"], other].concat();
        assert!(Args::try_parse_from(words).is_err(), "{other:?}");
    }
    for other in [["--engine", "classic"], ["--record", "/x"], ["--replay", "/x"], ["--by", "thread"]] {
        let words = [&["cachestat", "--working-set", "1"], &other[..]].concat();
        assert!(Args::parse_from(words).check().is_err(), "{other:?}");
    }
}

#[test]
fn what_if_goes_alone() {
    let args = Args::parse_from(["cachestat", "--what-if", "2m", "--json", "--cgroup", "/x"]);
    assert_eq!(args.check(), Ok(()));
    let Ok(Task::WhatIf(options, _)) = args.task() else { panic!("something else") };
    assert_eq!((options.time, options.json), (Duration::from_secs(120), true));
    assert_eq!(options.chosen.cgroups, ["/x"]);
    for other in [&["1"][..], &["--csv"], &["--by", "file"], &["--file", "/f"]] {
        let words = [&["cachestat", "--what-if", "1"], other].concat();
        assert!(Args::try_parse_from(words).is_err(), "{other:?}");
    }
    assert!(Args::try_parse_from(["cachestat", "--what-if", "0"]).is_err());
    let args = Args::parse_from(["cachestat", "--what-if", "1h", "--so-far", "5"]);
    assert_eq!(args.check(), Ok(()));
    let Ok(Task::WhatIf(options, _)) = args.task() else { panic!("something else") };
    assert_eq!(options.so_far, Some(Duration::from_secs(5)));
    assert!(Args::try_parse_from(["cachestat", "--so-far", "5"]).is_err());
    assert!(Args::parse_from(["cachestat", "--what-if", "20", "--so-far", "30"]).check().is_err());
    assert_eq!(Args::parse_from(["cachestat", "--what-if", "20", "--so-far", "20"]).check(), Ok(()));
    let report = ["cachestat", "--what-if", "--so-far", "5", "--", "true"];
    assert!(Args::parse_from(report).check().is_err());
    let args = Args::parse_from(["cachestat", "--what-if", "1h", "--latency", "--html", "/x.html"]);
    assert_eq!(args.check(), Ok(()));
    let Ok(Task::WhatIf(options, page)) = args.task() else { panic!("something else") };
    assert_eq!((options.latency, page.as_deref()), (true, Some(Path::new("/x.html"))));
    for other in [
        &["--engine", "classic"][..],
        &["--unit", "bytes"],
        &["--html", "-"],
        &["--save", "/x"],
        &["--", "true"],
        &["-p", "1", "--for", "1"],
    ] {
        let words = [&["cachestat", "--what-if", "1"], other].concat();
        assert!(Args::parse_from(words).check().is_err(), "{other:?}");
    }
}

#[test]
fn both_runs_of_a_trial_begin_without_pages() {
    let args = |cold: &[&str]| {
        let line = ["cachestat", "--try", "read_ahead_kb=512"].iter().chain(cold).chain(&["--", "true"]);
        Args::try_parse_from(line).unwrap().check()
    };
    assert!(args(&[]).is_ok() && args(&["--cold-each", "all"]).is_ok());
    assert!(args(&["--cold-each", "slab"]).is_err());
}

#[test]
fn a_report_says_what_if_without_a_time() {
    for about in [&["--", "true", "--what-if", "60"][..], &["-p", "1", "--for", "1s"]] {
        let args = Args::parse_from([&["cachestat", "--what-if"], about].concat());
        assert_eq!(args.check(), Ok(()));
        let Ok(Task::Report(options)) = args.task() else { panic!("something else") };
        assert!(options.what_if);
    }
    let Ok(Task::Report(options)) = Args::parse_from(["cachestat", "--", "true"]).task() else { panic!() };
    assert!(!options.what_if);
    // Neither a time nor anything that has one.
    assert!(Args::parse_from(["cachestat", "--what-if"]).check().unwrap_err().contains("how long"));
    assert!(Args::parse_from(["cachestat", "--what-if", "--json"]).check().is_err());
    assert!(Args::try_parse_from(["cachestat", "--what-if", "--cgroup", "/x", "--", "true"]).is_err());
}

#[test]
fn several_of_a_kind() {
    let words =
        ["cachestat", "-p", "7,5", "-p", "7", "-u", "root,33", "--user=a", "--comm", "a,b", "--comm", "c"];
    let options = Args::parse_from(words.into_iter().chain(["--cgroup", "/a,b", "--cgroup", "/c"])).options();
    let chosen = options.chosen;
    assert_eq!((chosen.pids(), chosen.pids), (vec![5, 7], vec![7, 5, 7]));
    assert_eq!(
        (chosen.users, chosen.comms),
        (["root", "33", "a"].map(String::from).into(), ["a,b", "c"].map(String::from).into())
    );
    assert_eq!(chosen.cgroups, ["/a,b", "/c"], "a comma is part of a path");
    // One process, given twice, is one.
    assert!(parse("-p 7,7 --for 1").unwrap().check().is_ok());
    assert!(parse("-p 7,8 --for 1").unwrap().check().is_err());
    let pids: Vec<String> = (1..=2000).map(|pid| pid.to_string()).collect();
    assert_eq!(Args::parse_from(["cachestat", "-p", &pids.join(",")]).filters.pid.len(), 2000);
}
