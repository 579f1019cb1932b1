//! For how many sketches there is room, and whose they are (`bpf/sketch.h`): what is set before and after load.

use libbpf_rs::MapCore as _;
use libbpf_rs::MapFlags;

use super::skel::CachetopSkel;
use super::skel::OpenCachetopSkel;
use crate::plan::SketchBy;

/// The most owners that have a sketch of their own: 12 MiB.
const MOST: u32 = 512;

/// Before load: who has sketches, and for how many there is room. `rows`: room in the table that their rows are in.
pub(super) fn size_tables(
    open: &mut OpenCachetopSkel<'_>,
    by: Option<SketchBy>,
    rows: u32,
) -> libbpf_rs::Result<()> {
    let maps = &mut open.maps;
    let Some(by) = by else {
        // Nothing of it is reached, and it costs no memory.
        maps.sketch_all.set_value_size(8)?;
        return maps.sketches.set_value_size(8);
    };
    if let Some(rodata) = maps.rodata_data.as_deref_mut() {
        rodata.with_sketches = true;
        rodata.sketch_by = by as u32;
    }
    let most = room(by, rows);
    maps.sketches.set_max_entries(most + 1)?;
    maps.sketch_owners.set_max_entries(most + 1)?;
    maps.sketch_numbers.set_max_entries(most.max(1))?;
    maps.sketch_free.set_max_entries(most.max(1))
}

/// How many owners there is room for.
fn room(by: SketchBy, rows: u32) -> u32 {
    if by == SketchBy::Nobody { 0 } else { rows.min(MOST) }
}

/// Hands the sketches to the kernel programs, but for the first, which is everybody else's.
pub(super) fn hand_out(skel: &CachetopSkel<'_>, by: SketchBy, rows: u32) -> libbpf_rs::Result<()> {
    for n in (1..=room(by, rows)).rev() {
        skel.maps.sketch_free.update(&[], &n.to_ne_bytes(), MapFlags::ANY)?;
    }
    Ok(())
}
