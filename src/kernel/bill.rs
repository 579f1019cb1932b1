//! The bill for pages that were pushed out, as the kernel programs keep it (`bpf/bill.h`).

use std::collections::HashMap;
use std::hash::Hash;
use std::io;

use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;

use super::entries::entries;
use super::entries::u32_at;
use super::entries::u64_at;
use super::entries::values;
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
/// Rows that are read at a time, and unused ones behind which there is nothing.
const UNUSED: u32 = 512;
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
    for map in [
        &mut maps.blame_shares,
        &mut maps.blame_share_numbers,
        &mut maps.blame_shares_free,
        &mut maps.blame_readers,
        &mut maps.blame_reader_numbers,
        &mut maps.blame_readers_free,
    ] {
        map.set_max_entries(ROWS)?;
    }
    for map in [&mut maps.blame_files, &mut maps.blame_names, &mut maps.blame_names_free] {
        map.set_max_entries(FILES)?;
    }
    maps.blame_waits.set_max_entries(WAITS)?;
    super::growth::size_table(open)
}

/// Hands all names and rows to the kernel programs, but for the rows that are nobody's. The lowest is taken first.
pub(super) fn hand_out(skel: &CachetopSkel<'_>) -> libbpf_rs::Result<()> {
    for n in (0..FILES).rev() {
        skel.maps.blame_names_free.update(&[], &n.to_ne_bytes(), MapFlags::ANY)?;
    }
    for n in (1..ROWS).rev() {
        skel.maps.blame_shares_free.update(&[], &n.to_ne_bytes(), MapFlags::ANY)?;
        skel.maps.blame_readers_free.update(&[], &n.to_ne_bytes(), MapFlags::ANY)?;
    }
    Ok(())
}

/// Decodes a `struct blame_share`: whose it is, the number of its file, and pages. `None` where nothing was counted.
fn share(bytes: &[u8]) -> Option<((u32, u64), u64)> {
    let pages = u64_at(bytes, 16);
    (pages != 0).then(|| ((u32_at(bytes, 8), u64_at(bytes, 0)), pages))
}

/// Decodes a `struct blame_reader`. `None` where nothing was counted.
fn reader(bytes: &[u8]) -> Option<(Reader, Came)> {
    let name = bytes.get(16..32).unwrap_or_default();
    let reader = Reader {
        file: u64_at(bytes, 0),
        by: u64_at(bytes, 8),
        process: name.split(|b| *b == 0).next().unwrap_or_default().to_vec(),
        number: u32_at(bytes, 32),
        own: u32_at(bytes, 36) != 0,
    };
    let came = Came {
        back: u64_at(bytes, 40),
        refaulted: u64_at(bytes, 48),
        waits: u64_at(bytes, 56),
        waited_ns: u64_at(bytes, 64),
    };
    (came != Came::default()).then_some((reader, came))
}

/// All rows that are used, of those of a table. The lowest are taken first: behind so many that nobody has used, nobody
/// has used any.
fn used<K: Eq + Hash, V>(
    table: impl Iterator<Item = io::Result<Vec<u8>>>,
    decode: impl Fn(&[u8]) -> Option<(K, V)>,
) -> libbpf_rs::Result<HashMap<K, V>> {
    let (mut rows, mut unused) = (HashMap::new(), 0);
    for row in table {
        match decode(&row?) {
            Some((key, counts)) => {
                rows.insert(key, counts);
                unused = 0;
            }
            None if unused == UNUSED => break,
            None => unused += 1,
        }
    }
    Ok(rows)
}

/// Who brought pages in again, and what.
pub(super) fn readers(skel: &CachetopSkel<'_>) -> libbpf_rs::Result<HashMap<Reader, Came>> {
    used(values(&skel.maps.blame_readers, UNUSED), reader)
}

/// Reads the rest, for these readers; but not which files these are.
pub(super) fn read(skel: &CachetopSkel<'_>, readers: HashMap<Reader, Came>) -> libbpf_rs::Result<Details> {
    let shares = used(values(&skel.maps.blame_shares, UNUSED), share)?;
    let bss = skel.maps.bss_data.as_deref();
    // SAFETY: an aligned word of a mapping that lives as long as the skeleton.
    let untimed = bss.map_or(0, |bss| unsafe { (&raw const bss.blame_untimed).read_volatile() });
    Ok(Details { shares, readers, untimed, ..Details::default() })
}

/// Which files: a system call for each. A file that is in a row is here, and never becomes another.
pub(super) fn files(skel: &CachetopSkel<'_>) -> libbpf_rs::Result<HashMap<u64, File>> {
    let maps = &skel.maps;
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
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::kernel::skel::types;

    #[test]
    fn a_share_is_decoded() {
        assert_eq!(size_of::<types::blame_share>(), 24);
        let bytes = |out: u64| [5u64, 6, out].iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<u8>>();
        assert_eq!((share(&bytes(7)), share(&bytes(0)), share(&[])), (Some(((6, 5), 7)), None, None));
    }

    #[test]
    fn a_table_is_read_as_far_as_it_is_used() {
        let row = |n: u64, out: u64| [n, 6, out].iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<u8>>();
        // The first is nobody's; some that were taken and given back; a whole table.
        let holes = |holes: u64, used: u64| {
            let free = (0..=holes).map(|n| row(n, 0));
            super::used(free.chain((0..used).map(|n| row(n, n + 1))).map(Ok), share).unwrap()
        };
        let all = holes(0, u64::from(ROWS) - 1);
        assert_eq!((all.len(), all[&(6, 9999)]), (ROWS as usize - 1, 10_000));
        let few = u64::from(UNUSED) - 1;
        assert_eq!((holes(few, 3).len(), holes(few + 1, 3).len()), (3, 0));
        // Behind the last one no more than a batch is looked at.
        let looked = std::cell::Cell::new(0);
        let table =
            (0..ROWS).inspect(|_| looked.set(looked.get() + 1)).map(|n| row(n.into(), (n == 1).into()));
        assert_eq!((super::used(table.map(Ok), share).unwrap().len(), looked.get()), (1, UNUSED + 3));
    }

    #[test]
    fn a_table_that_cannot_be_read_is_not_empty() {
        let table = [
            Ok([5u64, 6, 7].iter().flat_map(|n| n.to_ne_bytes()).collect()),
            Err(io::ErrorKind::OutOfMemory.into()),
        ];
        assert!(super::used(table.into_iter(), share).is_err());
    }

    #[test]
    fn a_reader_is_decoded() {
        assert_eq!(size_of::<types::blame_reader_key>(), 40);
        assert_eq!((size_of::<types::blame_reader>(), size_of::<types::blame_file>()), (72, 24));
        let mut key: Vec<u8> = [5u64, 6].iter().flat_map(|n| n.to_ne_bytes()).collect();
        key.extend(b"cat\0\0\0\0\0\0\0\0\0\0\0\0\0");
        key.extend([9u32, 1].iter().flat_map(|n| n.to_ne_bytes()));
        assert_eq!((reader(&key), reader(&[])), (None, None));
        key.extend([4u64, 3, 2, 1].iter().flat_map(|n| n.to_ne_bytes()));
        let who = Reader { file: 5, by: 6, process: b"cat".to_vec(), number: 9, own: true };
        assert_eq!(reader(&key), Some((who, Came { back: 4, refaulted: 3, waits: 2, waited_ns: 1 })));
    }
}
