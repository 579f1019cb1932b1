//! All runs of a report, on processes that are made up.

use super::*;
use crate::report::Report;
use crate::report::options::Options;
use crate::report::series;

fn options(repeat: u32) -> Options {
    Options { command: vec!["sh".into()], repeat, ..Options::default() }
}

/// Runs a series whose processes end with these statuses, in turn.
fn run(options: &Options, statuses: &[i32]) -> (Report, Result<Option<i32>, String>) {
    let world = World::new();
    world.script(statuses.iter().map(|s| vec![Step::End(SHELL, *s)]));
    watched(&world, options)
}

fn watched(world: &World, options: &Options) -> (Report, Result<Option<i32>, String>) {
    let lines = options.compared.iter().map(|l| l.as_os_str().into());
    let mut report = Report { commands: ('A'..).map(String::from).zip(lines).collect(), ..Report::default() };
    let done = world.watch(|watch| series::all(options, watch, &mut report));
    let done = done.map_err(|end| match end {
        End::Failed(failure) => failure.message,
        End::NotStarted(_) => "not started".into(),
        End::Asked(signal) => format!("signal {signal}"),
    });
    report.conclude();
    (report, done)
}

fn statuses(report: &Report) -> Vec<(u32, Option<i32>, bool)> {
    report.runs.iter().map(|r| (r.number, r.exit_status, r.left_out)).collect()
}

#[test]
fn a_run_that_fails_after_others_ends_the_series() {
    let (report, done) = run(&options(10), &[0, 0, 3]);
    assert_eq!(done, Ok(None));
    assert_eq!(statuses(&report), [(1, Some(0), false), (2, Some(0), false), (3, Some(3), true)]);
    assert_eq!((report.groups[0].runs.len(), &report.groups[0].left_out), (2, &vec![3]));
    assert!(
        report.about.iter().any(|a| a.starts_with("run 3 of 10 ended with exit status 3, the first with 0"))
    );
    let on = Options { ignore_failure: true, ..options(3) };
    let (report, done) = run(&on, &[0, 0, 3]);
    assert_eq!((done, report.groups[0].runs.len()), (Ok(None), 3));
    assert!(report.about.iter().any(|a| a.starts_with("1 of 3 runs ended with an exit status other than 0")));
    // What ends alike each time can be compared: grep that finds nothing ends with 1.
    let (report, _) = run(&options(3), &[1, 1, 1]);
    assert_eq!(report.groups[0].runs.len(), 3);
}

#[test]
fn commands_take_turns_and_have_letters() {
    let options = Options { command: vec![], compared: vec!["x".into(), "y".into()], ..options(2) };
    // Each may end in its own way.
    let (report, done) = run(&options, &[0, 1, 0, 1]);
    assert_eq!(done, Ok(None));
    let labels: String = report.runs.iter().filter_map(|r| r.label.clone()).collect();
    assert_eq!((labels.as_str(), report.title().as_str()), ("ABAB", "A: x, B: y"));
    assert_eq!(report.groups.iter().map(crate::report::groups::Group::id).collect::<String>(), "AB");
}

#[test]
fn lines_before_between_and_after() {
    let line = |s: &str| Some(s.to_owned());
    let all = Options {
        setup: line("s"),
        prepare: line("p"),
        conclude: line("c"),
        cleanup: line("e"),
        warmup: 1,
        ..options(2)
    };
    // s, p w c, p 1 c, p 2 c, e: eleven processes.
    let (report, done) = run(&all, &[0; 11]);
    assert_eq!((done, report.runs.len(), report.warmups.len()), (Ok(None), 2, 1));
    let one = |setup: &str| run(&Options { setup: line(setup), ..options(1) }, &[9]).1;
    assert_eq!(one("s"), Err("the line of --setup ended with status 9: s".into()));
    // The second --prepare fails: the first run has been made, and --cleanup is run all the same.
    let (report, done) = run(&Options { setup: None, conclude: None, warmup: 0, ..all }, &[0, 0, 7, 0]);
    assert_eq!(done, Err("the line of --prepare ended with status 7: p".into()));
    assert_eq!(report.runs.len(), 1);
}

#[test]
fn an_end_during_and_between_runs() {
    let world = World::new();
    let interrupted = vec![Step::Ask(2), Step::End(SHELL, 0)];
    world.script([vec![Step::End(SHELL, 0)], interrupted, vec![Step::End(SHELL, 0)]]);
    let (report, done) = watched(&world, &Options { cleanup: Some("e".into()), ..options(5) });
    assert_eq!(done, Ok(Some(2)));
    // It was interrupted, whatever it ended with: it belongs to no mean.
    assert_eq!(statuses(&report), [(1, Some(0), false), (2, Some(0), true)]);
    assert!(report.about.iter().any(|a| a == "interrupted after run 2 of 5"), "{:?}", report.about);
    let (report, done) = run(&options(3), &[]);
    assert!(done.is_err() && report.runs.is_empty());
}
