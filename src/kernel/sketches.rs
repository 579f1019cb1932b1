//! Sketches of the pages that are used, as the kernel programs keep them (`bpf/sketch.h`), read where they stand.

use std::io;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering;

use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;

use super::attach::Attached;
use super::entries::u32_at;
use super::entries::u64_at;
use super::shared::Shared;
use crate::sample::Comm;

/// Bytes for each register (`SKETCH_RANKS`).
const RANKS: usize = 24;
/// Registers of an owner's sketch, as a power of two (`SKETCH_BITS`).
const BITS: u32 = 10;

/// Whose a sketch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SketchOwner {
    /// Which sketch it is.
    pub number: usize,
    /// A process's id, a cgroup's number, or a file's inode.
    pub a: u64,
    /// When the process began, ns; of a file its device as the kernel writes it, and below that its generation.
    pub b: u64,
    /// What the process was called last.
    pub process: Comm,
}

/// All sketches, mapped.
#[derive(Debug)]
pub struct Sketches {
    all: Shared<AtomicU8>,
    owners: Shared<AtomicU8>,
}

impl Sketches {
    /// The marks of everything: rank by rank, registers side by side.
    #[must_use]
    pub fn all(&self) -> Vec<u8> {
        self.all.iter().map(|b| b.load(Ordering::Relaxed)).collect()
    }

    /// The marks of one owner's sketch; 0: of all that have none. Empty beyond the table.
    #[must_use]
    pub fn of(&self, number: usize) -> Vec<u8> {
        let size = RANKS << BITS;
        let bytes = self.owners.get(number * size..(number + 1) * size).unwrap_or_default();
        bytes.iter().map(|b| b.load(Ordering::Relaxed)).collect()
    }

    /// Takes all marks of one owner's sketch.
    fn take(&self, number: usize) -> Vec<u8> {
        let size = RANKS << BITS;
        let bytes = self.owners.get(number * size..(number + 1) * size).unwrap_or_default();
        bytes.iter().map(|b| b.swap(0, Ordering::Relaxed)).collect()
    }

    /// Takes marks away that are too old to count, before their number comes again. What the kernel programs mark
    /// meanwhile stays.
    pub fn forget(&self, old: impl Fn(u8) -> bool) {
        for byte in self.all.iter().chain(self.owners.iter()) {
            let mark = byte.load(Ordering::Relaxed);
            if mark != 0 && old(mark) {
                let _ = byte.compare_exchange(mark, 0, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }
}

impl Attached {
    /// All sketches.
    ///
    /// # Errors
    /// When they cannot be mapped.
    pub fn sketches(&self) -> io::Result<Sketches> {
        let maps = &self.skel.maps;
        let bytes = |of: u32, entries: u32| of as usize * entries as usize;
        let all = Shared::new(&maps.sketch_all, bytes(maps.sketch_all.value_size(), 1))?;
        let owners = bytes(maps.sketches.value_size(), maps.sketches.max_entries());
        Ok(Sketches { all, owners: Shared::new(&maps.sketches, owners)? })
    }

    /// How many owners there is room for.
    #[must_use]
    pub fn sketch_room(&self) -> usize {
        self.skel.maps.sketches.max_entries() as usize - 1
    }

    /// From now on pages are marked with this number; 0: not at all.
    pub fn mark_pages(&mut self, mark: u8) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: a word of our own that the kernel programs only read.
            unsafe { (&raw mut bss.sketch_now).write_volatile(mark.into()) };
        }
    }

    /// Who has a sketch.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn sketch_owners(&self) -> libbpf_rs::Result<Vec<SketchOwner>> {
        let numbers = super::entries::entries(&self.skel.maps.sketch_numbers)?;
        let mut owners = Vec::new();
        for (key, number) in numbers {
            let owner = self.skel.maps.sketch_owners.lookup(&number, MapFlags::ANY)?;
            let owner = owner.and_then(|bytes| decode(u32_at(&number, 0), &bytes));
            // A new one may still have what its predecessor was.
            owners.extend(owner.map(|o| SketchOwner { a: u64_at(&key, 0), b: u64_at(&key, 8), ..o }));
        }
        Ok(owners)
    }

    /// Gives the sketch of an owner back that will use no page any more, and has its marks.
    ///
    /// # Errors
    /// When the tables cannot be changed.
    pub fn give_back(&self, owner: &SketchOwner, sketches: &Sketches) -> libbpf_rs::Result<Vec<u8>> {
        let maps = &self.skel.maps;
        maps.sketch_numbers.delete(&[owner.a.to_ne_bytes(), owner.b.to_ne_bytes()].concat())?;
        let marks = sketches.take(owner.number);
        maps.sketch_free.update(&[], &(owner.number as u32).to_ne_bytes(), MapFlags::ANY)?;
        Ok(marks)
    }

    /// Pages of requests too long to be looked at as a whole, and how often there was no sketch for an owner, since attach.
    #[must_use]
    pub fn sketches_lost(&self) -> (u64, u64) {
        let Some(bss) = self.skel.maps.bss_data.as_deref() else { return (0, 0) };
        // SAFETY: aligned words of a mapping that lives as long as the skeleton.
        unsafe {
            ((&raw const bss.touches_beyond).read_volatile(), (&raw const bss.sketch_refused).read_volatile())
        }
    }
}

/// Decodes a `struct sketch_owner`.
fn decode(number: u32, bytes: &[u8]) -> Option<SketchOwner> {
    let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let process = Comm::from_bytes(bytes.get(16..32)?);
    Some(SketchOwner { number: number as usize, a: word(0)?, b: word(8)?, process })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::plan::SketchBy;

    #[test]
    fn an_owner_is_decoded() {
        let mut bytes: Vec<u8> = [7u64, 9].iter().flat_map(|n| n.to_ne_bytes()).collect();
        assert_eq!(decode(3, &bytes), None);
        bytes.extend(b"tar\0\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(
            decode(3, &bytes),
            Some(SketchOwner { number: 3, a: 7, b: 9, process: Comm::from("tar") })
        );
    }

    #[test]
    fn the_two_halves_of_the_wire_agree() {
        let header = include_str!("../../bpf/sketch.h");
        for (name, value) in [("RANKS", RANKS.to_string()), ("BITS", BITS.to_string())] {
            let line = header.lines().find_map(|l| l.strip_prefix(&format!("#define SKETCH_{name} ")));
            assert_eq!(line.unwrap().split(' ').next().unwrap(), value, "{name}");
        }
        let names = header.split_once("enum sketch_by {").unwrap().1.split_once("};").unwrap().0;
        let names: Vec<_> = names.lines().filter_map(|l| l.trim().strip_suffix(',')).collect();
        let ours = [SketchBy::Nobody, SketchBy::Process, SketchBy::Cgroup, SketchBy::File];
        for (i, by) in ours.into_iter().enumerate() {
            assert_eq!(by as usize, i);
            assert_eq!(names[i], format!("SKETCH_{by:?}").to_uppercase());
        }
    }
}
