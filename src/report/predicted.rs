//! `--what-if SECONDS` with a page of HTML.

use std::path::Path;

use super::html;
use crate::exit::Failure;
use crate::text::outfile::Target;
use crate::whatif;

/// Watches, prints the curve, and writes the page, if one is wanted: there all points are told that are in the table.
///
/// # Errors
/// When it could not do what is requested; with the remedy. That the page cannot be written is said before anything is
/// watched, as far as that is known then.
pub fn what_if(options: &whatif::Options, page: Option<&Path>) -> Result<(), Failure> {
    let open = |path: &Path| Target::new(path).map_err(|e| e.about_the_request(path));
    let target = page.filter(|_| !options.counting.explain).map(open).transpose()?;
    let directory = target.as_ref().and_then(Target::directory);
    let prediction = whatif::start::what_if(options, directory.as_deref())?;
    match (target, page, prediction) {
        (Some(target), Some(path), Some(prediction)) => {
            let text = html::predicted(&prediction, &options.chosen.brief());
            target.write(text.as_bytes()).map_err(|e| e.about(path))
        }
        _ => Ok(()),
    }
}
