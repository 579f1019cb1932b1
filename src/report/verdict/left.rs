//! What is not compared, and why: a run that failed or was cut short did less, and how fast it did that says nothing.

use std::fmt::Write as _;

use crate::report::data::Run;
use crate::report::groups::Group;

/// A sentence for each run, command or saved report that is left out; nothing where all ended alike.
#[must_use]
pub fn not_compared(runs: &[Run], groups: &[Group], saved: Option<&Run>) -> String {
    let mut text = String::new();
    for run in runs.iter().filter(|r| r.left_out) {
        let _ = write!(text, " Run {} {}: it is not compared.", run.number, run.ended());
    }
    if let Some((first, rest)) = groups.split_first() {
        let mut told = vec![first.label.as_str()];
        for group in rest.iter().filter(|g| !g.mean.ended_as(&first.mean)) {
            if told.contains(&group.label.as_str()) {
                continue;
            }
            told.push(&group.label);
            let _ = write!(
                text,
                " {} {}, {} with {}: they are not compared (--ignore-failure compares them).",
                group.label,
                group.mean.ended(),
                first.label,
                status(&first.mean)
            );
        }
    }
    if let Some((then, now)) = saved.zip(runs.iter().rfind(|r| !r.left_out)).filter(|(a, b)| !a.ended_as(b)) {
        let _ = match now.interrupted {
            true => write!(text, " It {}: it is not compared with the run then.", now.ended()),
            false => write!(
                text,
                " The run then {}, the run now with {}: they are not compared.",
                then.ended(),
                status(now)
            ),
        };
    }
    text
}

fn status(run: &Run) -> String {
    run.exit_status.map_or_else(|| "?".into(), |s| s.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;
    use crate::report::Saved;

    fn run(number: u32, wall_s: f64, status: i32) -> Run {
        Run { number, wall_s, exit_status: Some(status), ..Run::default() }
    }

    fn concluded(runs: Vec<Run>) -> Report {
        let mut report = Report { runs, ..Report::default() };
        report.conclude();
        report
    }

    #[test]
    fn a_run_that_ended_otherwise_or_was_cut_short_is_not_compared() {
        let failed = Run { left_out: true, ..run(2, 0.01, 1) };
        let report = concluded(vec![run(1, 1.0, 0), failed]);
        let said = &report.verdict.text;
        assert!(said.starts_with("Run 1 took 1.00 s"), "{said}");
        assert!(said.ends_with(" Run 2 ended with exit status 1: it is not compared."), "{said}");
        assert!(!said.contains("times as"), "{said}");
        assert!(report.verdict.factor.is_none() && report.differences.is_empty());
        // The rest is compared.
        let cut = Run { left_out: true, interrupted: true, ..run(3, 0.01, 0) };
        let report = concluded(vec![run(1, 1.0, 0), run(2, 0.5, 0), cut]);
        let said = &report.verdict.text;
        assert!(said.starts_with("Run 2 was 2.0 times as fast as run 1"), "{said}");
        assert!(said.ends_with(" Run 3 was interrupted: it is not compared."), "{said}");
        assert_eq!((report.verdict.factor, report.differences.len()), (Some(2.0), 1));
    }

    #[test]
    fn a_command_that_failed_is_not_compared_with_one_that_did_not() {
        let of = |label: &str, run: Run| Run { label: Some(label.into()), ..run };
        let runs = vec![of("A", run(1, 1.0, 0)), of("B", run(2, 0.01, 1)), of("C", run(3, 0.5, 0))];
        let report = concluded(runs.clone());
        let said = &report.verdict.text;
        assert!(said.starts_with("C was 2.0 times as fast as A"), "{said}");
        assert!(said.contains(" B ended with exit status 1, A with 0: they are not compared"), "{said}");
        assert_eq!((report.comparisons.len(), report.differences.len()), (1, 1));
        let report = concluded(runs[..2].to_vec());
        assert!(report.verdict.text.starts_with("A took 1.00 s"), "{}", report.verdict.text);
        assert_eq!((report.verdict.factor, report.groups.len()), (None, 2));
        let relative = |i: usize| crate::report::export::relative(&report.groups, &report.groups[i]);
        assert_eq!([relative(0), relative(1)], ["1.00", "-"]);
        // What ends alike can be compared, and what somebody asks for is.
        let alike = concluded(vec![of("A", run(1, 1.0, 1)), of("B", run(2, 0.5, 1))]);
        assert_eq!(alike.verdict.factor, Some(2.0));
        let asked = runs[..2].iter().map(|r| Run { any_end: true, ..r.clone() }).collect();
        assert!(concluded(asked).verdict.factor.is_some());
    }

    #[test]
    fn a_report_of_a_run_that_failed_is_not_compared_with() {
        let told = |then: Run, now: Run| {
            let saved = Saved { path: "r".into(), about: "x".into(), run: then, groups: Vec::new() };
            let mut report = Report { runs: vec![now], compared: Some(saved), ..Report::default() };
            report.conclude();
            report.verdict
        };
        let v = told(run(1, 1.0, 1), run(1, 0.1, 0));
        assert!(
            v.text.ends_with(
                "The run then ended with exit status 1, the run now with 0: they are not compared."
            ),
            "{}",
            v.text
        );
        assert_eq!((v.factor, told(run(1, 1.0, 0), run(1, 0.5, 0)).factor), (None, Some(2.0)));
        let v = told(run(1, 1.0, 0), Run { interrupted: true, ..run(1, 0.1, 0) });
        assert!(v.text.ends_with(" It was interrupted: it is not compared with the run then."), "{}", v.text);
        assert_eq!(v.factor, None);
    }
}
