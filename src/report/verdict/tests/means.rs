//! Means in the verdict.

use super::*;
use crate::report::groups;

fn told(runs: &[Run]) -> Verdict {
    of_groups(&groups::divide(runs), None, &findings::find(&[], runs))
}

/// Three cold scans and three warm ones, in turns.
fn series() -> Vec<Run> {
    let mut runs = Vec::new();
    for (i, more) in (0..3).zip([-0.1, 0.0, 0.1]) {
        for mut run in scans() {
            run.cold = (run.number == 1).then(|| "all".into());
            run.number += 2 * i;
            run.origin.runs.iter_mut().for_each(|r| r.0 += 2 * i);
            run.wall_s += more * run.wall_s;
            runs.push(run);
        }
    }
    runs
}

#[test]
fn warm_runs_against_cold_ones() {
    let v = told(&series());
    assert!((v.factor.unwrap() - 16.1).abs() < 1e-9, "{v:?}");
    assert_eq!(
        v.text,
        "A warm run was 16.1 ± 2.3 times as fast as a cold run (6.44 s → 0.40 s). 68 % of the gain is data that a cold \
         run had left in the cache (60 MiB), 18 % unexplained (what was not seen, or done at the same time), 14 % work of \
         the kernel that a cold cache costs (allocating pages, submitting I/O, reading inodes)."
    );
}

#[test]
fn cold_runs_only() {
    let mut runs = series();
    runs.retain(|r| r.cold.is_some());
    let v = told(&runs);
    assert!(
        v.text.starts_with("A cold run took 6.44 s ± 0.64 s (mean of 3 runs): 64 % waiting for data"),
        "{}",
        v.text
    );
    assert_eq!(v.factor, None);
}

fn commands(walls: &[(&str, u64, u64)]) -> Vec<Run> {
    let of = |(number, (label, wall, data)): (u32, &(&str, u64, u64))| Run {
        label: Some((*label).into()),
        line: Some((*label).into()),
        ..run(number, *wall, *data, 100)
    };
    (1..).zip(walls).map(of).collect()
}

#[test]
fn one_command_against_another() {
    let v = told(&commands(&[("A", 4000, 3500), ("B", 2000, 1700), ("A", 4200, 3700), ("B", 2200, 1900)]));
    assert_eq!(
        v.text,
        "B was 1.95 ± 0.15 times as fast as A (4.10 s → 2.10 s). 90 % of the gain is waiting for data, 10 % unexplained \
         (what was not seen, or done at the same time). In all, 90 % of the difference is what was not cached (waiting for \
         it, and names), 0 % other processor time of the commands."
    );
    // The other way round, with a third, which is the fastest.
    let v = told(&commands(&[("A", 2000, 1700), ("B", 4000, 3500), ("C", 1000, 700)]));
    assert!(v.text.starts_with("C was 2.0 times as fast as A (2.00 s → 1.00 s)."), "{}", v.text);
    let v = told(&commands(&[("A", 2000, 1700), ("B", 4000, 3500)]));
    assert!(v.text.starts_with("B took 2.0 times as long as A (2.00 s → 4.00 s)."), "{}", v.text);
}

#[test]
fn work_of_different_commands_is_not_put_down_to_a_cold_cache() {
    let mut runs = commands(&[("A", 4000, 0), ("B", 500, 0)]);
    for (run, (line, system, fills)) in
        runs.iter_mut().zip([("dd bs=256", 3.5, 15_360), ("dd bs=1M count=30", 0.1, 7680)])
    {
        (run.line, run.usage.system_s) = (Some(line.into()), Some(system));
        run.figures.set(Figure::Fills, Some(fills));
    }
    let v = told(&runs);
    assert!(v.causes.iter().all(|c| c.id != "cold-work"), "{v:?}");
    assert!(
        v.text.contains("97 % of the gain is processor time of the commands (their own work"),
        "{}",
        v.text
    );
    assert!(v.text.contains("0 % of the difference is what was not cached"), "{}", v.text);
}

#[test]
fn what_may_be_chance_is_not_explained() {
    let v = told(&commands(&[("A", 4000, 3500), ("B", 2000, 1700), ("A", 1000, 500), ("B", 1400, 1200)]));
    assert!(
        v.text.ends_with(
            "The difference is smaller than the spread of single runs (± 2.16 s): it may be chance."
        ) && !v.text.contains("of the gain"),
        "{}",
        v.text
    );
}

#[test]
fn a_single_run_may_be_chance_as_much_as_those_that_spread() {
    let v = told(&commands(&[("A", 4000, 3500), ("B", 2000, 1700), ("A", 1000, 500)]));
    assert!(v.text.ends_with("(± 2.12 s): it may be chance."), "{}", v.text);
    let v = told(&commands(&[("A", 4000, 3500), ("B", 2000, 1700), ("A", 4100, 3600)]));
    assert!(!v.text.contains("chance"), "{}", v.text);
}

#[test]
fn several_runs_of_an_earlier_day() {
    let (then, now) = (groups::divide(&series()), groups::divide(&series()[..1]));
    let pair = groups::same(&then, &now)[0];
    let v = of_groups(&now, Some(pair), &[]);
    assert!(v.text.starts_with("The cold run now was "), "{}", v.text);
    assert!(v.text.contains("as the mean of 3 cold runs then (6.44 s → 5.80 s)"), "{}", v.text);
}
