//! The state of the cache that each run was made in, a sentence for each.

use super::wrapped;
use crate::report::Report;

/// Runs whose sentences are shown.
const RUNS: usize = 5;

pub(super) fn show(report: &Report, out: &mut String) {
    let many = report.runs.len() > 1;
    let lines: Vec<String> = report
        .runs
        .iter()
        .filter_map(|run| {
            let which = if many { format!("run {}: ", run.number) } else { String::new() };
            Some(format!("{which}{}", run.certificate.as_ref()?.line()))
        })
        .collect();
    if lines.is_empty() {
        return;
    }
    if report.about.is_empty() {
        out.push('\n');
    }
    for line in lines.iter().take(RUNS) {
        wrapped(out, "  ", line);
    }
    if lines.len() > RUNS {
        wrapped(out, "  ", &format!("and {} more (--json)", lines.len() - RUNS));
    }
}
