//! How much memory each cgroup takes, and who wakes kswapd, as the kernel programs count it (`bpf/growth.h`).

use libbpf_rs::MapCore as _;
use libbpf_rs::MapFlags;

use super::entries::entries;
use super::entries::u64_at;
use super::skel::CachetopSkel;
use super::skel::OpenCachetopSkel;
use crate::blame::Grown;
use crate::blame::Growth;

/// Cgroups, all for which there is no room among them.
const ROWS: u32 = 4096;
/// The number of all for which there is no room (`NO_GROUP`).
const NO_GROUP: u64 = u64::MAX;

/// Gives the table its size, before it is loaded.
pub(super) fn size_table(open: &mut OpenCachetopSkel<'_>) -> libbpf_rs::Result<()> {
    open.maps.blame_growths.set_max_entries(ROWS)
}

/// Makes the row of all for which there will be no room.
pub(super) fn hand_out(skel: &CachetopSkel<'_>) -> libbpf_rs::Result<()> {
    let none = [0; size_of::<Growth>()];
    skel.maps.blame_growths.update(&NO_GROUP.to_ne_bytes(), &none, MapFlags::ANY)
}

/// Decodes a number and a `struct blame_growth`.
fn decode(key: &[u8], value: &[u8]) -> (Option<u64>, Growth) {
    let group = Some(u64_at(key, 0)).filter(|id| *id != NO_GROUP);
    (group, Growth { grew: u64_at(value, 0), woke: u64_at(value, 8) })
}

/// Reads all of it.
pub(super) fn read(skel: &CachetopSkel<'_>) -> libbpf_rs::Result<Grown> {
    let all = entries(&skel.maps.blame_growths)?;
    Ok(all.iter().map(|(k, v)| decode(k, v)).filter(|(_, n)| *n != Growth::default()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::skel::types;

    #[test]
    fn a_cgroup_is_decoded() {
        assert_eq!(size_of::<types::blame_growth>(), size_of::<Growth>());
        let value: Vec<u8> = [4u64, 3].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let growth = Growth { grew: 4, woke: 3 };
        assert_eq!(decode(&7u64.to_ne_bytes(), &value), (Some(7), growth));
        assert_eq!(decode(&NO_GROUP.to_ne_bytes(), &value), (None, growth));
        assert_eq!(decode(&[], &[]), (Some(0), Growth::default()));
    }
}
