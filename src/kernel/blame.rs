//! Who took pages out of the cache, as the kernel programs count it (`bpf/evictor.h`, `bpf/blame.h`).

use libbpf_rs::MapCore as _;
use libbpf_rs::MapFlags;

use super::entries::u32_at;
use super::entries::u64_at;
use super::skel::CachetopSkel;
use super::skel::OpenCachetopSkel;
use crate::blame::Counts;
use crate::blame::Evictor;
use crate::blame::How;
use crate::blame::Row;

/// Rows, those for everybody among them: who took whose pages out in one way.
const ROWS: u32 = 4096;
/// Blocks that a set remembers (`EVICTED_WAYS`), in 128 bytes.
pub(super) const WAYS: u64 = 8;
/// Pages of a block (of 32) that leave, by which the table is as large as one of pages would be.
const USED: u64 = 2;
/// The most sets: 64 MiB, for 4 million blocks.
const MOST_SETS: u64 = 1 << 19;
/// Where in a `struct blame_row` the counters begin.
const COUNTERS: usize = 48;

/// How many sets there are: for half as many blocks as the machine has pages, within bounds.
fn sets() -> u32 {
    // SAFETY: takes and touches nothing.
    let pages = u64::try_from(unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) }).unwrap_or(0);
    u32::try_from((pages / USED / WAYS).next_power_of_two().clamp(512, MOST_SETS)).unwrap_or(512)
}

/// With those for everybody: no more than there is room for threads.
fn rows(threads: u32) -> u32 {
    ROWS.min(threads.saturating_add(How::ALL.len() as u32))
}

/// Gives the tables their sizes, before they are loaded; there is room for so many threads.
pub(super) fn size_tables(open: &mut OpenCachetopSkel<'_>, threads: u32) -> libbpf_rs::Result<()> {
    let sets = sets();
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.with_blame = true;
        rodata.evicted_mask = sets - 1;
    }
    let maps = &mut open.maps;
    for map in [&mut maps.blame_rows, &mut maps.blame_numbers, &mut maps.blame_free] {
        map.set_max_entries(rows(threads))?;
    }
    maps.evicted_sets.set_max_entries(sets)
}

/// Hands all rows to the kernel programs, but for those for everybody. The lowest is taken first.
pub(super) fn hand_out(skel: &CachetopSkel<'_>, threads: u32) -> libbpf_rs::Result<()> {
    for n in (How::ALL.len() as u32..rows(threads)).rev() {
        skel.maps.blame_free.update(&[], &n.to_ne_bytes(), MapFlags::ANY)?;
    }
    Ok(())
}

/// Decodes a `struct blame_row`, of which so many pages that left are billed by file; `None` where nothing was counted.
pub(super) fn decode(number: u32, bytes: &[u8], billed: u64) -> Option<(Evictor, Counts)> {
    let counts = Counts {
        out: u64_at(bytes, COUNTERS) + billed,
        back: u64_at(bytes, COUNTERS + 8),
        refaulted: u64_at(bytes, COUNTERS + 16),
        again: u64_at(bytes, COUNTERS + 24),
        waits: u64_at(bytes, COUNTERS + 32),
        waited_ns: u64_at(bytes, COUNTERS + 40),
    };
    if counts == Counts::default() {
        return None;
    }
    if let Some(how) = How::ALL.get(number as usize) {
        return Some((Evictor { how: *how, who: None }, counts));
    }
    let how = *How::ALL.get(u32_at(bytes, 40) as usize)?;
    let name = bytes.get(24..40)?.split(|b| *b == 0).next().unwrap_or_default();
    let row = Row {
        limit: u64_at(bytes, 0),
        by: u64_at(bytes, 8),
        owner: u64_at(bytes, 16),
        process: name.to_vec(),
        run: u32_at(bytes, 44) >> 1,
        own: u32_at(bytes, 44) & 1 == 1,
    };
    Some((Evictor { how, who: Some(row) }, counts))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_row_is_decoded() {
        let mut bytes: Vec<u8> = [7u64, 8, 9].iter().flat_map(|n| n.to_ne_bytes()).collect();
        bytes.extend(b"tar\0\0\0\0\0\0\0\0\0\0\0\0\0");
        bytes.extend([2u32, 7].iter().flat_map(|n| n.to_ne_bytes()));
        let silent: Vec<u8> = bytes.iter().copied().chain([0; 48]).collect();
        assert_eq!(decode(100, &silent, 0), None);
        bytes.extend([10u64, 5, 4, 3, 2, 1].iter().flat_map(|n| n.to_ne_bytes()));
        let counts = Counts { out: 10, back: 5, refaulted: 4, again: 3, waits: 2, waited_ns: 1 };
        let who = Row { limit: 7, by: 8, owner: 9, process: b"tar".to_vec(), run: 3, own: true };
        assert_eq!(
            decode(100, &bytes, 0),
            Some((Evictor { how: How::Limit, who: Some(who.clone()) }, counts))
        );
        assert_eq!(decode(1, &bytes, 0), Some((Evictor { how: How::Direct, who: None }, counts)));
        assert_eq!(decode(100, &[1; 8], 0), None);
        // What is billed by file stands there alone.
        let billed = Counts { out: 7, ..Counts::default() };
        assert_eq!(decode(100, &silent, 7), Some((Evictor { how: How::Limit, who: Some(who) }, billed)));
    }

    #[test]
    fn the_two_halves_of_the_wire_agree() {
        let hows = include_str!("../../bpf/evictor.h");
        let hows = hows.split_once("enum blame_how {").unwrap().1.split_once("};").unwrap().0;
        let names: Vec<_> = hows.lines().filter_map(|l| l.trim().strip_suffix(',')).collect();
        let ours: Vec<_> = How::ALL.iter().map(|how| format!("BLAME_{how:?}").to_uppercase()).collect();
        assert_eq!(names[..names.len() - 1], ours);
        let header = include_str!("../../bpf/evicted.h");
        assert!(header.contains(&format!("#define EVICTED_WAYS {WAYS}\n")));
        assert!(header.contains("#define EVICTED_NUMBER 0xffffULL\n"));
        const { assert!(ROWS < 0xffff) };
    }
}
