//! The state of the cache that each run was made in, a sentence for each.

use super::page::Page;
use crate::report::Report;

/// Runs whose sentences are shown: the first cold one and the first warm one, and with -v more.
const RUNS: [usize; 2] = [2, 20];

pub(super) fn show(report: &Report, page: &mut Page) {
    let many = report.runs.len() > 1;
    let lines: Vec<String> = report
        .runs
        .iter()
        .filter_map(|run| {
            let which = if many { format!("run {}: ", run.number) } else { String::new() };
            Some(format!("{which}{}", run.certificate.as_ref()?.line(page.style.unit)))
        })
        .collect();
    if lines.is_empty() {
        return;
    }
    let shown = RUNS[usize::from(page.style.verbose)];
    for line in lines.iter().take(shown) {
        page.wrapped("  ", line);
    }
    if lines.len() > shown {
        let more = lines.len() - shown;
        let s = if more == 1 { "" } else { "s" };
        page.wrapped("  ", &format!("and {more} more run{s} (--json has them all)"));
    }
}
