//! Why a prediction is not to be believed.

use crate::report::units::of_pages;
use crate::report::units::percent;

/// From here on a prediction is not to be believed, nor a simulation that should have said what was counted.
pub(super) const ERROR: f64 = 0.1;

/// What may be wrong with a prediction.
pub(super) struct Doubts {
    /// There was no room for all requests, or all files.
    pub(super) full: bool,
    /// Something is predicted.
    pub(super) known: bool,
    /// Requests that were lost.
    pub(super) lost: u64,
    /// Files of which the second run counted nothing.
    pub(super) missing: usize,
    /// How wrong the simulation of the first run is.
    pub(super) error: Option<f64>,
    /// What was fetched by ways that are not predicted, and all of it, where that is most of it.
    pub(super) elsewhere_mostly: Option<(u64, u64)>,
    /// The second run is not to be compared.
    pub(super) cut: bool,
}

impl Doubts {
    pub(super) fn told(&self) -> Vec<String> {
        let mut told = Vec::new();
        if self.full {
            told.push(
                "more than 64 GiB was read, or more than 65536 files were open: nothing is predicted".into(),
            );
        } else if !self.known {
            told.push(
                "no request for a file that is only read, and not mapped, was seen: nothing is predicted"
                    .into(),
            );
        }
        if self.lost > 0 {
            let lost = self.lost;
            let requests = if lost == 1 { "1 request".into() } else { format!("{lost} requests") };
            told.push(format!("{requests} came too fast, or of unknown range"));
        }
        if self.missing > 0 {
            let missing = self.missing;
            let files = if missing == 1 { "a file".into() } else { format!("{missing} files") };
            told.push(format!("of {files} that run 1 read, nothing is known of run 2"));
        }
        if let Some(error) = self.error.filter(|e| *e > ERROR) {
            told.push(format!(
                "simulated with the setting that it had, run 1 comes out {} wrong",
                percent(error, 0)
            ));
        }
        if let Some((n, all)) = self.elsewhere_mostly {
            told.push(format!(
                "most of what was fetched, {} of {}, was by mappings, copy_file_range or other ways than read calls: nothing \
                 is predicted of that",
                of_pages(n),
                of_pages(all)
            ));
        }
        if self.cut {
            told.push(
                "run 2 was interrupted, or ended otherwise than run 1: nothing is compared with it".into(),
            );
        }
        told
    }
}
