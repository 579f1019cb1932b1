//! The report as one page with charts, for a browser.

use super::Report;

/// The page.
#[must_use]
pub fn page(report: &Report) -> String {
    let _ = report;
    String::new()
}
