#![allow(clippy::unwrap_used)]

use super::*;
use crate::plan::Engine;
use crate::top::settings::Settings;

fn parse(options: &str) -> Result<Args, String> {
    let args = Args::try_parse_from(["cachetop"].into_iter().chain(options.split_whitespace()))
        .map_err(|e| e.to_string())?;
    args.check()?;
    Ok(args)
}

#[test]
fn wrong_usage_is_told() {
    for (options, part) in [
        ("0", "more than 0"),
        ("dd", "it is not a number of seconds"),
        ("1 2", "unexpected argument"),
        ("-n 0", "at least one"),
        ("-p 0", "not a process id"),
        ("--by inode", "possible values: process"),
        ("--sort rubbish", "no column 'rubbish'"),
        ("--columns hits,rubbish", "no column 'rubbish'"),
        ("--columns evicted", "known of the whole system only"),
        ("--columns hits,HITS", "listed twice"),
        ("--json -b", "cannot be used with"),
        ("--json --columns hits", "cannot be used with"),
        ("--no-files --by mount", "cannot be used with rows by file"),
        ("--no-files --file /etc/passwd", "cannot be used with '--file'"),
        ("--mount / --by thread", "have no rows of threads"),
        ("--mount / -t", "have no rows of threads"),
        ("--engine classic --mount /", "knows no filter but"),
        ("--engine classic --by user", "counts by process"),
        ("--engine both --comm dd", "knows no filter but"),
        ("--top 3", "goes with '-b'"),
        ("--config x --no-config", "cannot be used with"),
        ("--color sometimes", "possible values: auto"),
    ] {
        let error = parse(options).unwrap_err();
        assert!(error.contains(part), "{options}: {error}");
    }
    let error = parse("dd").unwrap_err();
    assert!(!error.contains("command"), "it runs none: {error}");
}

#[test]
fn what_is_asked_for_goes_before_what_was_kept() {
    let mut settings = Settings::for_engine(Engine::Exact);
    settings.by = By::User;
    settings.reverse = true;
    let options = "0.5 --by file --columns READ_HIT%,direct -s misses -t --no-mouse --show rate --unit bytes";
    parse(options).unwrap().options().changes.apply(&mut settings);
    assert_eq!((settings.interval, settings.by), (Duration::from_millis(500), By::File));
    assert_eq!(settings.columns.iter().map(|c| c.id).collect::<Vec<_>>(), ["hit_ratio", "direct_bytes"]);
    assert_eq!((settings.sort.name(), settings.reverse, settings.threads), ("misses", false, true));
    assert_eq!((settings.mouse, settings.show, settings.unit), (false, Show::Rate, Unit::Bytes));
    let mut settings = Settings::for_engine(Engine::Exact);
    parse("-r").unwrap().options().changes.apply(&mut settings);
    assert!(settings.reverse && settings.columns_are_default);
}
