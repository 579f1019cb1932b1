//! Reading a table of the kernel whole.

use std::os::fd::AsRawFd as _;

use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;

/// How many entries a batch asks for.
const BATCH: u32 = 1024;
/// The kernel's own number for what a table cannot.
const ENOTSUPP: i32 = 524;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// All that is in it: keys and values.
///
/// Not by libbpf-rs: there a batch with fewer entries than were asked for is the last one. Of a hash table the kernel gives whole
/// buckets, and so fewer than there is room for.
pub(super) fn entries(map: &impl MapCore) -> libbpf_rs::Result<Entries> {
    let (key, value) = (map.key_size() as usize, map.value_size() as usize);
    let mut room = BATCH.min(map.max_entries());
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    // Where the next batch begins: a number of the kernel's, or a key.
    let (mut from, mut next) = (vec![0u8; key.max(8)], vec![0u8; key.max(8)]);
    let mut all = Entries::new();
    let mut begun = false;
    loop {
        keys.resize(room as usize * key, 0u8);
        values.resize(room as usize * value, 0u8);
        let mut count = room;
        let begin = if begun { from.as_mut_ptr() } else { std::ptr::null_mut() };
        // SAFETY: room for so many keys and values, and for the places; no options.
        let done = unsafe {
            libbpf_sys::bpf_map_lookup_batch(
                map.as_fd().as_raw_fd(),
                begin.cast(),
                next.as_mut_ptr().cast(),
                keys.as_mut_ptr().cast(),
                values.as_mut_ptr().cast(),
                &raw mut count,
                std::ptr::null(),
            )
        };
        match -done {
            0 | libc::ENOENT => {}
            libc::EINTR | libc::EAGAIN => continue,
            // A bucket that has more.
            libc::ENOSPC if room < map.max_entries() => {
                room = room.saturating_mul(2).min(map.max_entries());
                continue;
            }
            // Hash tables can be read in batches from 5.6 on; this is for tables that cannot.
            libc::EINVAL | ENOTSUPP if !begun => return Ok(one_by_one(map)),
            error => return Err(libbpf_rs::Error::from_raw_os_error(error)),
        }
        let both = keys.chunks_exact(key).zip(values.chunks_exact(value)).take(count as usize);
        all.extend(both.map(|(k, v)| (k.to_vec(), v.to_vec())));
        if done != 0 {
            return Ok(all);
        }
        begun = true;
        std::mem::swap(&mut from, &mut next);
    }
}

fn one_by_one(map: &impl MapCore) -> Entries {
    let entry = |k: Vec<u8>| {
        let v = map.lookup(&k, MapFlags::ANY).ok().flatten()?;
        Some((k, v))
    };
    map.keys().filter_map(entry).collect()
}

/// A number at a place; 0 beyond the end.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The same of 64 bits.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
}
