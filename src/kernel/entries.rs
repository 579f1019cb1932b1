//! Reading a table of the kernel whole.

use libbpf_rs::ErrorKind;
use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;

/// How many entries a batch asks for.
const BATCH: u32 = 1024;

/// All that is in it: keys and values.
pub(super) fn entries(map: &impl MapCore) -> libbpf_rs::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    match map.lookup_batch(BATCH.min(map.max_entries()), MapFlags::ANY, MapFlags::ANY) {
        Ok(batch) => Ok(batch.collect()),
        // Hash tables can be read in batches from 5.6 on; this is for tables that cannot.
        Err(e) if e.kind() == ErrorKind::InvalidInput => Ok(map
            .keys()
            .filter_map(|k| {
                let v = map.lookup(&k, MapFlags::ANY).ok().flatten()?;
                Some((k, v))
            })
            .collect()),
        Err(e) => Err(e),
    }
}

/// A number at a place; 0 beyond the end.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The same of 64 bits.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
}
