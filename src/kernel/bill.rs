//! The bill for pages that were pushed out, as the kernel programs keep it (`bpf/bill.h`).

use std::collections::HashMap;

use libbpf_rs::MapCore as _;
use libbpf_rs::MapFlags;

use super::entries::entries;
use super::entries::u32_at;
use super::entries::u64_at;
use super::files;
use super::skel::CachetopSkel;
use super::skel::OpenCachetopSkel;
use crate::blame::Came;
use crate::blame::Details;
use crate::blame::Reader;
use crate::files::Dev;
use crate::files::File;

/// Shares of files, and rows of those who brought pages in again.
const ROWS: u32 = 16384;
/// Files that have a name.
const FILES: u32 = 4096;
/// Threads that wait at a time.
const WAITS: u32 = 4096;
/// The number of a name for which there was no room (`NO_FILE`).
const NONE: u32 = u32::MAX;

/// Gives the tables their sizes, before they are loaded.
pub(super) fn size_tables(open: &mut OpenCachetopSkel<'_>) -> libbpf_rs::Result<()> {
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.with_bill = true;
    }
    let maps = &mut open.maps;
    for map in [&mut maps.blame_shares, &mut maps.blame_readers] {
        map.set_max_entries(ROWS)?;
    }
    for map in [&mut maps.blame_files, &mut maps.blame_names, &mut maps.blame_names_free] {
        map.set_max_entries(FILES)?;
    }
    maps.blame_waits.set_max_entries(WAITS)?;
    super::growth::size_table(open)
}

/// Hands all names to the kernel programs. The lowest is taken first.
pub(super) fn hand_out(skel: &CachetopSkel<'_>) -> libbpf_rs::Result<()> {
    for n in (0..FILES).rev() {
        skel.maps.blame_names_free.update(&[], &n.to_ne_bytes(), MapFlags::ANY)?;
    }
    Ok(())
}

/// Decodes a `struct blame_reader_key` and a `struct blame_reader`.
fn reader(key: &[u8], value: &[u8]) -> (Reader, Came) {
    let name = key.get(16..32).unwrap_or_default();
    let reader = Reader {
        file: u64_at(key, 0),
        by: u64_at(key, 8),
        process: name.split(|b| *b == 0).next().unwrap_or_default().to_vec(),
        number: u32_at(key, 32),
        own: u32_at(key, 36) != 0,
    };
    let came = Came {
        back: u64_at(value, 0),
        refaulted: u64_at(value, 8),
        waits: u64_at(value, 16),
        waited_ns: u64_at(value, 24),
    };
    (reader, came)
}

/// Reads all of it.
pub(super) fn read(skel: &CachetopSkel<'_>) -> libbpf_rs::Result<Details> {
    let maps = &skel.maps;
    let shares = entries(&maps.blame_shares)?;
    let shares = shares.iter().map(|(k, v)| ((u32_at(k, 8), u64_at(k, 0)), u64_at(v, 0))).collect();
    let readers = entries(&maps.blame_readers)?.iter().map(|(k, v)| reader(k, v)).collect();
    let mut found = HashMap::new();
    for (key, value) in entries(&maps.blame_files)? {
        let (block, number) = (u32_at(&value, 16), u32_at(&value, 20));
        let name = match number {
            NONE => Vec::new(),
            n => maps.blame_names.lookup(&n.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default(),
        };
        let (named, name) = files::name(&name);
        let file = File {
            dev: Dev::from_kernel(u32_at(&value, 12)),
            inode: u64_at(&value, 0),
            generation: u32_at(&value, 8),
            block: (block != 0).then(|| Dev::from_kernel(block)),
            name,
            named,
        };
        found.insert(u64_at(&key, 0), file);
    }
    let bss = skel.maps.bss_data.as_deref();
    // SAFETY: an aligned word of a mapping that lives as long as the skeleton.
    let untimed = bss.map_or(0, |bss| unsafe { (&raw const bss.blame_untimed).read_volatile() });
    Ok(Details { shares, readers, files: found, untimed, ..Details::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::skel::types;

    #[test]
    fn a_reader_is_decoded() {
        assert_eq!(size_of::<types::blame_reader_key>(), 40);
        assert_eq!((size_of::<types::blame_reader>(), size_of::<types::blame_file>()), (32, 24));
        let mut key: Vec<u8> = [5u64, 6].iter().flat_map(|n| n.to_ne_bytes()).collect();
        key.extend(b"cat\0\0\0\0\0\0\0\0\0\0\0\0\0");
        key.extend([9u32, 1].iter().flat_map(|n| n.to_ne_bytes()));
        let value: Vec<u8> = [4u64, 3, 2, 1].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let who = Reader { file: 5, by: 6, process: b"cat".to_vec(), number: 9, own: true };
        assert_eq!(reader(&key, &value), (who, Came { back: 4, refaulted: 3, waits: 2, waited_ns: 1 }));
        assert_eq!(reader(&[], &[]).1, Came::default());
    }
}
