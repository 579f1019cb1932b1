//! Blocks of metadata that a run brought in: those that were counted, or, where nobody counts them (xfs, and everywhere but
//! where functions can be attached), what came from devices and is explained by nothing else.

use super::data::Run;
use super::units::page;
use crate::figures::Figure;

/// Pages that the kernel brings back from swap for one fault.
const SWAP_CLUSTER: u64 = 8;

/// Blocks, of a page each where they are not counted; `None` where nothing is known of them.
pub(super) fn brought(run: &Run) -> Option<u64> {
    let counted = run.get(Figure::MetaMisses).zip(run.get(Figure::MetaAheadHits)).map(|(a, b)| a + b);
    match (counted, from_devices(run)) {
        (Some(counted), Some(more)) => Some(counted.max(more)),
        (counted, more) => counted.or(more),
    }
}

/// By the kernel's account of what the run had read from devices, in pages: at least so much was no data.
fn from_devices(run: &Run) -> Option<u64> {
    // A block device that is read as a file is data, and in no figure where it is not read by calls.
    let is_device = |path: &crate::text::foreign::Foreign| path.bytes().starts_with(b"/dev/");
    if run.files.iter().filter_map(|f| f.path.as_ref()).any(is_device) {
        return None;
    }
    let device = run.usage.device_read_bytes?.checked_sub(run.get(Figure::DirectReadBytes)?)? / page();
    // Pages that were read to change a part of them.
    let changed = run.get(Figure::WriteMisses).or(run.get(Figure::Dirtied))?;
    let swapped = run.usage.major_faults?.saturating_sub(run.get(Figure::FaultMisses)?) * SWAP_CLUSTER;
    Some(device.saturating_sub(run.brought_in()? + changed + swapped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::FileRow;
    use crate::report::data::Usage;

    /// Pages from devices, of which so many were data; and blocks that were counted.
    fn run(device: u64, fills: u64, counted: Option<u64>) -> Run {
        let mut run = Run { usage: Usage::zero(), ..Run::default() };
        run.usage.device_read_bytes = Some(device * page());
        for (figure, n) in [
            (Figure::Fills, Some(fills)),
            (Figure::FaultMisses, Some(0)),
            (Figure::DirectReadBytes, Some(0)),
            (Figure::Dirtied, Some(0)),
            (Figure::MetaMisses, counted),
            (Figure::MetaAheadHits, counted.map(|_| 0)),
        ] {
            run.figures.set(figure, n);
        }
        run
    }

    #[test]
    fn what_came_from_devices_and_is_no_data() {
        assert_eq!(brought(&run(5369, 5000, Some(369))), Some(369));
        assert_eq!(brought(&run(5369, 5000, None)), Some(369), "nobody counts it");
        assert_eq!(brought(&run(691, 0, Some(0))), Some(691), "of xfs nothing is counted");
        // Data that is compressed takes less of a device, and blocks may be smaller than a page.
        assert_eq!(brought(&run(1000, 5000, Some(4))), Some(4));
        assert_eq!(brought(&run(1000, 5000, None)), Some(0));
    }

    #[test]
    fn what_may_be_something_else_is_not_taken_for_it() {
        let base = || run(5369, 5000, None);
        let mut changed = base();
        changed.figures.set(Figure::Dirtied, Some(300));
        assert_eq!(brought(&changed), Some(69));
        // What writes found is known: what they dirtied says nothing more.
        changed.figures.set(Figure::WriteMisses, Some(0));
        assert_eq!(brought(&changed), Some(369));
        let mut swapped = base();
        swapped.usage.major_faults = Some(20);
        assert_eq!(brought(&swapped), Some(209));
        let mut device = base();
        device.files.push(FileRow { path: Some("/dev/vda".into()), ..FileRow::default() });
        assert_eq!(brought(&device), None);
        let mut unknown = base();
        unknown.usage.device_read_bytes = None;
        assert_eq!(brought(&unknown), None);
    }
}
