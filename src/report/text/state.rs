//! The state of the cache that each run was made in, a sentence for each.

use super::page::Page;
use crate::report::Report;

/// Runs whose sentences are shown.
const RUNS: usize = 5;

pub(super) fn show(report: &Report, page: &mut Page) {
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
    for line in lines.iter().take(RUNS) {
        page.wrapped("  ", line);
    }
    if lines.len() > RUNS {
        page.wrapped("  ", &format!("and {} more (--json)", lines.len() - RUNS));
    }
}
