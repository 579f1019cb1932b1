//! Pages that a run brought in more than once: they must have left the cache while it lasted. Which pages of a file
//! came in is not known; but where more came in than it has, some did so twice.

use super::used::Used;
use crate::sample::Counter;

/// At least so many. `size`: pages of a file that nobody has changed meanwhile.
pub(super) fn twice(files: &[Used], size: impl Fn(&Used) -> Option<u64>) -> u64 {
    let of = |used: &Used| {
        let came = used.sum.get(Counter::ReadMisses) + used.sum.get(Counter::Prefetched);
        // Old kernels read one page ahead that lies past the end.
        if came < 2 { None } else { Some(came.saturating_sub(size(used)? + 1)) }
    };
    files.iter().filter_map(of).sum()
}
