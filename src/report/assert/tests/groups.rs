//! Groups in assertions.

use super::*;
use crate::report::groups;

/// Cold 4 s and 6 s, warm 1 s and 2 s.
fn report() -> Report {
    let mut runs = vec![run(1, 4.0, 0), run(2, 1.0, 1000), run(3, 6.0, 100), run(4, 2.0, 900)];
    for run in &mut runs {
        run.cold = (run.number % 2 == 1).then(|| "all".into());
    }
    let groups = groups::divide(&runs);
    Report { groups, runs, ..Report::default() }
}

fn commands() -> Report {
    let mut report = report();
    for (run, label) in report.runs.iter_mut().zip(["A", "A", "B", "B"]) {
        run.label = Some(label.into());
    }
    report.groups = groups::divide(&report.runs);
    report
}

fn check(text: &str, report: &Report) -> Outcome {
    Assertion::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).check(report)
}

#[test]
fn the_mean_of_a_group() {
    for text in [
        "cold.wall == 5s",
        "warm.wall == 1.5s",
        "cold.min.wall == 4s",
        "cold.max.wall == 6",
        "cold.mean.wall == 5",
        "warm.hit_ratio > 94.9%",
        "warm.before.cached > 90%",
        "warm.wall < 0.5 * cold.wall",
        "cold.read.misses == 950",
        "warm.max.wall < cold.min.wall",
        "run2.wall <= warm.wall",
    ] {
        let o = check(text, &report());
        assert!(o.holds && o.run.is_none(), "{o:?}");
    }
    for text in ["A.cold.wall == 4s", "B.warm.wall == 2s", "B.warm.wall == 2 * A.warm.wall"] {
        assert!(check(text, &commands()).holds, "{text}");
    }
}

#[test]
fn what_does_not_hold_or_is_no_group() {
    for (text, found) in [
        ("cold.wall < 5s", "cold.wall is 5.000000 s"),
        ("cold.max.wall < 6s", "cold.max.wall is 6.000000 s"),
        ("A.wall < 9s", "there was no group 'A'; there was cold, warm"),
        ("cold.write.hits < 9", "cold.write.hits is not known of run 1"),
    ] {
        let o = check(text, &report());
        assert!(!o.holds && o.found == found, "{o:?}");
    }
    // Cold and warm runs are not pooled, nor two commands.
    assert_eq!(check("A.wall < 9s", &commands()).found, "'A' is more than one group: A.cold, A.warm");
    assert_eq!(check("cold.wall < 9s", &commands()).found, "'cold' is more than one group: A.cold, B.cold");
    for text in
        ["cold.hit < 3", "A.B.wall < 3", "warm.cold.wall < 3", "a.wall < 3", "cold < 3", "A.min.max.wall < 1"]
    {
        assert!(Assertion::parse(text).unwrap_err().contains("is no figure"), "{text}");
    }
}
