//! Telling the kernel programs whom to count: `asked_for` of `bpf/wanted.h`.

use libbpf_rs::MapCore as _;
use libbpf_rs::MapFlags;

use super::skel::AttachError;
use super::skel::CachetopSkel;
use super::skel::OpenCachetopSkel;
use super::skel::types;
use crate::only::Only;

/// The kinds, as the kernel programs number them (`enum asked_kind`).
const PROCESS: u64 = 0;
const NAME: u64 = 1;
const USER: u64 = 2;
const GROUP: u64 = 3;
const PATH: u64 = 4;

/// struct `asked_key`: what of which kind.
type Key = [u64; 3];

/// All that is asked for, with what is remembered of each.
fn entries(only: &Only) -> Vec<(Key, u64)> {
    let processes = only.processes.pids.iter().map(|pid| ([PROCESS, (*pid).into(), 0], only.processes.seen));
    let names = only.comms.iter().map(|comm| {
        let mut halves = [[0; 8]; 2];
        for (to, from) in halves.as_flattened_mut().iter_mut().zip(comm.as_bytes()) {
            *to = *from;
        }
        ([NAME, u64::from_ne_bytes(halves[0]), u64::from_ne_bytes(halves[1])], 0)
    });
    let users = only.users.iter().map(|uid| ([USER, (*uid).into(), 0], 0));
    let groups = only.cgroups.iter().map(|group| ([GROUP, group.id, 0], 0));
    let paths =
        (0..).zip(&only.cgroups).map(|(place, group)| ([PATH, hash(group.path.as_bytes()), 0], place));
    processes.chain(names).chain(users).chain(groups).chain(paths).collect()
}

/// What paths are found by: FNV-1a, as `hash_of_made` has it.
fn hash(path: &[u8]) -> u64 {
    path.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// How many there may be; those that nobody asks for cost no memory.
pub(super) fn size_tables(open: &mut OpenCachetopSkel<'_>, only: &Only) -> libbpf_rs::Result<()> {
    let number = |n: usize| u32::try_from(n.max(1)).unwrap_or(u32::MAX);
    open.maps.asked_for.set_max_entries(number(entries(only).len()))?;
    open.maps.asked_paths.set_max_entries(number(only.cgroups.len()))
}

/// Writes down whom, before anything counts.
pub(super) fn write_down(skel: &CachetopSkel<'_>, only: &Only) -> Result<(), AttachError> {
    let refused = |e: libbpf_rs::Error| AttachError::Load(format!("writing down whom to count: {e:#}"));
    for (key, value) in entries(only) {
        let key = key.map(u64::to_ne_bytes);
        skel.maps
            .asked_for
            .update(key.as_flattened(), &value.to_ne_bytes(), MapFlags::ANY)
            .map_err(refused)?;
    }
    for (place, group) in (0_u32..).zip(&only.cgroups) {
        let mut value = [0; size_of::<types::group_path>()];
        let (id, text) = value.split_at_mut(size_of::<u64>());
        id.copy_from_slice(&group.id.to_ne_bytes());
        let path = group.path.as_bytes();
        if path.len() >= text.len() {
            return Err(AttachError::Load("the path of the cgroup is too long".into()));
        }
        text[..path.len()].copy_from_slice(path);
        skel.maps.asked_paths.update(&place.to_ne_bytes(), &value, MapFlags::ANY).map_err(refused)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::only::Group;
    use crate::only::Processes;

    #[test]
    fn each_has_a_place_of_its_own() {
        let group = |id, path: &str| Group { id, path: path.into() };
        let only = Only {
            processes: Processes { pids: vec![7, 9], seen: 55 },
            comms: vec!["a,b".into(), "0123456789abcdef".into()],
            users: vec![7],
            cgroups: vec![group(7, "/a"), group(8, "/")],
            files: None,
        };
        let all = entries(&only);
        assert_eq!(all.len(), 9);
        assert_eq!(all[..2], [([0, 7, 0], 55), ([0, 9, 0], 55)]);
        let name = |text: &[u8; 16]| {
            [0, 8].map(|at| u64::from_ne_bytes(text[at..at + 8].try_into().unwrap_or_default()))
        };
        assert_eq!(all[2].0[1..], name(b"a,b\0\0\0\0\0\0\0\0\0\0\0\0\0"));
        assert_eq!(all[3].0[1..], name(b"0123456789abcde\0"), "the kernel keeps so much of a name");
        assert_eq!(all[4..7], [([2, 7, 0], 0), ([3, 7, 0], 0), ([3, 8, 0], 0)]);
        assert_eq!(all[7..].iter().map(|(_, place)| *place).collect::<Vec<_>>(), [0, 1]);
        let keys: std::collections::HashSet<_> = all.iter().map(|(key, _)| key).collect();
        assert_eq!(keys.len(), all.len());
        // As published for FNV-1a.
        assert_eq!((hash(b""), hash(b"a")), (0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c));
        assert!(!Only::default().threads() && entries(&Only::default()).is_empty());
    }
}
