#![allow(clippy::unwrap_used)]

use super::*;
use crate::report::data::Origin;

fn run(number: u32, wall_s: f64, cold: bool) -> Run {
    let mut run = Run { number, wall_s, exit_status: Some(0), ..Run::default() };
    run.cold = cold.then(|| "all".into());
    run
}

fn of_command(label: &str, run: Run) -> Run {
    Run { label: Some(label.into()), ..run }
}

fn ids(groups: &[Group]) -> Vec<(String, Vec<u32>)> {
    groups.iter().map(|g| (g.id(), g.runs.clone())).collect()
}

fn named(all: &[(&str, &[u32])]) -> Vec<(String, Vec<u32>)> {
    all.iter().map(|(id, runs)| ((*id).to_owned(), runs.to_vec())).collect()
}

#[test]
fn cold_and_warm_runs_are_never_taken_together() {
    let runs =
        [run(1, 2.0, true), run(2, 0.5, false), run(3, 2.2, true), run(4, 0.7, false), run(5, 1.8, true)];
    let groups = divide(&runs);
    assert_eq!(ids(&groups), named(&[("cold", &[1, 3, 5]), ("warm", &[2, 4])]));
    let cold = groups[0].wall;
    assert!((cold.mean - 2.0).abs() < 1e-12 && (cold.deviation.unwrap() - 0.2).abs() < 1e-12);
    assert_eq!((cold.least, cold.most, groups[1].walls()), (1.8, 2.2, &[0.5, 0.7][..]));
    let all = against(&groups);
    assert_eq!((all.len(), all[0].reference.as_str(), all[0].group.as_str()), (1, "cold", "warm"));
    // 2.0 / 0.6, and √(0.1² + (0.1414 / 0.6)²) of it.
    assert!((all[0].ratio.factor - 10.0 / 3.0).abs() < 1e-12);
    assert!((all[0].ratio.error.unwrap() - 0.853_461).abs() < 1e-6, "{all:?}");
    assert!(matter(&groups));
}

#[test]
fn one_run_is_a_group_without_a_spread() {
    let groups = divide(&[run(1, 2.0, true), run(2, 0.5, false)]);
    assert_eq!(
        (groups[0].wall.deviation, groups[0].json()["wall_s"]["deviation"].clone()),
        (None, Value::Null)
    );
    assert_eq!(against(&groups)[0].ratio.error, None);
    // A cold and a warm run are told as runs.
    assert!(!matter(&groups));
    let plain = divide(&[run(1, 2.0, false), run(2, 0.5, false)]);
    assert_eq!(ids(&plain), named(&[("runs", &[1, 2])]));
    assert!(!matter(&plain) && against(&plain).is_empty() && divide(&[]).is_empty());
}

#[test]
fn commands_have_groups_of_their_own() {
    let runs = [
        of_command("A", run(1, 2.0, true)),
        of_command("A", run(2, 1.0, false)),
        of_command("B", run(3, 1.0, true)),
        of_command("B", run(4, 0.5, false)),
        of_command("C", run(5, 4.0, false)),
    ];
    let groups = divide(&runs);
    let expected: [(&str, &[u32]); 5] =
        [("A.cold", &[1]), ("A.warm", &[2]), ("B.cold", &[3]), ("B.warm", &[4]), ("C", &[5])];
    assert_eq!(ids(&groups), named(&expected));
    let pairs: Vec<_> =
        against(&groups).into_iter().map(|a| (a.reference, a.group, a.ratio.factor)).collect();
    let pair = |a: &str, b: &str, f: f64| (a.to_owned(), b.to_owned(), f);
    // C was never run cold: no run of A was as it was.
    let expected = [
        pair("A.cold", "B.cold", 2.0),
        pair("A.warm", "B.warm", 2.0),
        pair("A.cold", "A.warm", 2.0),
        pair("B.cold", "B.warm", 2.0),
    ];
    assert_eq!(pairs, expected);
}

#[test]
fn outliers_are_named_and_failures_left_out() {
    let mut runs: Vec<Run> =
        (1..).zip([0.5, 0.30, 0.29, 0.31, 0.30]).map(|(n, s)| run(n, s, false)).collect();
    runs.push(Run { left_out: true, exit_status: Some(1), ..run(6, 99.0, false) });
    let groups = divide(&runs);
    assert_eq!((groups[0].wall.most, &groups[0].left_out), (0.5, &vec![6]));
    let far = &groups[0].outliers;
    // Median 0.30, deviations 0.2 0 0.01 0.01 0: MAD 0.01.
    assert!(far.len() == 1 && far[0].run == 1 && (far[0].score - 20.0).abs() < 1e-6, "{far:?}");
}

#[test]
fn a_mean_knows_what_all_know() {
    let mut all = [run(1, 1.0, false), run(2, 2.0, false), run(3, 6.0, false)];
    for (run, n) in all.iter_mut().zip([10, 20, 31]) {
        run.figures.set(Figure::Hits, Some(n));
        run.usage.user_s = Some(0.5);
        run.usage.device_read_bytes = Some(n);
        run.waits.read_ns = Some(n * 100);
        (run.asked_pages, run.warm_pages, run.one_thread) = (100, n, Some(true));
    }
    all[1].waits.fault_ns = Some(1);
    all[2].usage.system_s = Some(0.1);
    all[2].figures.set(Figure::Misses, Some(7));
    let mean = &divide(&all)[0].mean;
    assert_eq!((mean.number, mean.wall_s, mean.get(Figure::Hits)), (1, 3.0, Some(20)), "61 / 3 is 20.3");
    assert_eq!((mean.usage.user_s, mean.usage.device_read_bytes), (Some(0.5), Some(20)));
    assert_eq!((mean.waits.read_ns, mean.warm_pages, mean.one_thread), (Some(2033), 20, Some(true)));
    assert_eq!((mean.usage.system_s, mean.waits.fault_ns, mean.get(Figure::Misses)), (None, None, None));
    assert!((divide(&all)[0].cached_before().unwrap() - 0.2).abs() < 1e-12);
    all[0].one_thread = None;
    all[1].origin = Origin { unlisted: true, ..Origin::default() };
    let group = &divide(&all)[0];
    assert_eq!((group.mean.one_thread, group.cached_before()), (None, None));
}

#[test]
fn runs_then_and_now_are_matched_by_name() {
    let two = divide(&[run(1, 2.0, true), run(2, 0.5, false), run(3, 0.5, false)]);
    let warm = divide(&[run(1, 0.5, false)]);
    let found: Vec<_> = same(&two, &two).iter().map(|(a, b)| (a.id(), b.id())).collect();
    assert_eq!(found, [("cold".to_owned(), "cold".to_owned()), ("warm".to_owned(), "warm".to_owned())]);
    let other = same(&two, &warm);
    assert_eq!((other.len(), other[0].0.id(), other[0].1.id()), (1, "warm".to_owned(), "runs".to_owned()));
    assert!(same(&[], &warm).is_empty());
}
