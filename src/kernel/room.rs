//! What the tables have room for, what of it is in use, and their memory ([`crate::room`]).
//!
//! The memory is what the kernel says of each map in `/proc/self/fdinfo` (`memlock`): all of it is there from loading on,
//! so that it is read once. What is in use is a count that somebody keeps anyway, or one word of each row that is mapped; of
//! tables that can only be walked, key by key, it is found out only where that is asked for.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::fd::RawFd;

use libbpf_rs::MapCore;
use libbpf_rs::skel::Skel as _;

use super::attach::Attached;
use crate::blame::How;
use crate::room::Kind;
use crate::room::Table;
use crate::sample::Counter;

/// Bytes that a use of pages, and a request for `--try`, take in their rings, each behind a head.
const TOUCH: u64 = (super::touches::BYTES + HEAD) as u64;
const TRIED: u64 = (super::tried::BYTES + HEAD) as u64;
const HEAD: usize = 8;

/// Bytes of the kernel's memory that a map takes; `None` where it does not say.
fn memory(map: RawFd) -> Option<u64> {
    memlock(&fs::read_to_string(format!("/proc/self/fdinfo/{map}")).ok()?)
}

/// The same from the text of an `fdinfo`.
fn memlock(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("memlock:"))?.trim().parse().ok()
}

/// Entries that a map can have.
pub(super) fn entries(map: &impl MapCore) -> u64 {
    map.max_entries().into()
}

/// Entries of a hash table, key by key. `None` where they change so fast that the walk does not end.
pub(super) fn walked(map: &impl MapCore) -> Option<u64> {
    let room = entries(map);
    let n = map.keys().take(usize::try_from(room).ok()? + 1).count() as u64;
    (n <= room).then_some(n)
}

/// The tables of one set of kernel programs, whose maps are named one after the other; what is left is the rest.
pub(super) struct List {
    out: Vec<Table>,
    left: Vec<RawFd>,
}

impl List {
    pub(super) fn new<M: MapCore>(all: impl Iterator<Item = M>) -> Self {
        Self { out: Vec::new(), left: all.map(|map| map.as_fd().as_raw_fd()).collect() }
    }

    /// A table that is made of these maps.
    pub(super) fn add<const N: usize>(&mut self, kind: Kind, room: u64, maps: [&impl MapCore; N]) {
        let maps = maps.map(|map| map.as_fd().as_raw_fd());
        self.left.retain(|map| !maps.contains(map));
        let bytes = maps.into_iter().map(memory).sum();
        self.out.push(Table { kind, room: Some(room), used: None, bytes });
    }

    /// All of them.
    pub(super) fn rest(mut self) -> Vec<Table> {
        let bytes = self.left.into_iter().map(memory).sum();
        self.out.push(Table { kind: Kind::Other, room: None, used: None, bytes });
        self.out
    }
}

impl Attached {
    /// The tables, with their memory and for how much they have room; what is in use is not looked at. To be asked before
    /// [`crate::privilege::Role::take`], after which `/proc` may be closed.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        let maps = &self.skel.maps;
        let mut list = List::new(self.skel.object().maps());
        let (named, spare) = (entries(&maps.free_rows), entries(&maps.spare_rows));
        // With all that there is for each row.
        let rows = [&maps.rows, &maps.row_numbers, &maps.threads, &maps.histograms];
        if self.rows.only() {
            list.add(Kind::Chosen, named, [&maps.free_rows]);
            list.add(Kind::Threads, spare, [rows[0], rows[1], rows[2], rows[3], &maps.spare_rows]);
        } else {
            list.add(Kind::Threads, named, [rows[0], rows[1], rows[2], rows[3], &maps.free_rows]);
            list.add(Kind::Unnamed, spare, [&maps.spare_rows]);
        }
        // What a plan does not use has one entry.
        if entries(&maps.calls) > 1 {
            let calls = [&maps.calls, &maps.call_numbers, &maps.free_calls];
            list.add(Kind::Requests, entries(&maps.calls), calls);
        }
        if entries(&maps.carried) > 1 {
            list.add(Kind::Retried, entries(&maps.carried), [&maps.carried]);
        }
        list.add(Kind::Direct, entries(&maps.submissions), [&maps.submissions]);
        list.add(Kind::Names, entries(&maps.given_names), [&maps.given_names]);
        if self.files.is_some() {
            let files = [&maps.files, &maps.file_names, &maps.file_numbers, &maps.free_files];
            list.add(Kind::Files, entries(&maps.files), files);
        }
        if entries(&maps.ledger_words) > 1 {
            let ledger = [&maps.ledger, &maps.ledger_words, &maps.ledger_free];
            list.add(Kind::AheadChunks, entries(&maps.ledger_words), ledger);
        } else {
            list.add(Kind::AheadPages, entries(&maps.ledger_pages), [&maps.ledger_pages]);
        }
        self.asked_for(&mut list);
        list.rest()
    }

    /// Those that are there where somebody asks for what they have.
    fn asked_for(&self, list: &mut List) {
        let maps = &self.skel.maps;
        let Some(set) = maps.rodata_data else { return };
        if set.with_follow {
            list.add(Kind::Followed, entries(&maps.followed), [&maps.followed]);
        }
        if set.with_blame {
            let evictors = [&maps.blame_rows, &maps.blame_numbers, &maps.blame_free];
            // The first are for everybody; so is the first below, and one cgroup.
            list.add(Kind::Evictors, entries(&maps.blame_rows) - How::ALL.len() as u64, evictors);
            list.add(Kind::Evicted, super::blame::WAYS * entries(&maps.evicted_sets), [&maps.evicted_sets]);
        }
        if set.with_bill {
            let shares = [&maps.blame_shares, &maps.blame_share_numbers, &maps.blame_shares_free];
            list.add(Kind::EvictedFiles, entries(&maps.blame_shares) - 1, shares);
            let names = [&maps.blame_files, &maps.blame_names, &maps.blame_names_free];
            list.add(Kind::EvictedNames, entries(&maps.blame_files), names);
            let readers = [&maps.blame_readers, &maps.blame_reader_numbers, &maps.blame_readers_free];
            list.add(Kind::Readers, entries(&maps.blame_readers) - 1, readers);
            list.add(Kind::Waits, entries(&maps.blame_waits), [&maps.blame_waits]);
            list.add(Kind::Growth, entries(&maps.blame_growths) - 1, [&maps.blame_growths]);
        }
        if set.with_sketches && self.sketch_room() > 0 {
            let sketches = [&maps.sketches, &maps.sketch_owners, &maps.sketch_numbers, &maps.sketch_free];
            list.add(Kind::Sketches, self.sketch_room() as u64, sketches);
        }
        if set.with_touches {
            list.add(Kind::Touches, entries(&maps.touches) / TOUCH, [&maps.touches]);
        }
        if set.with_tried {
            list.add(Kind::Tried, entries(&maps.tried) / TRIED, [&maps.tried]);
        }
    }

    /// Counts what of them is in use at this moment: what has ended and was not read yet is. Of tables that can only be walked
    /// it is not known, unless `walk` says to: that takes a system call for each entry, and what is changed meanwhile may be
    /// missed or come twice.
    pub fn count(&mut self, tables: &mut [Table], walk: bool) {
        for table in tables {
            table.used = self.kept(table.kind).or_else(|| if walk { self.walk(table.kind) } else { None });
        }
    }

    /// What is known without a walk through a hash table.
    fn kept(&mut self, kind: Kind) -> Option<u64> {
        let (skel, only) = (&self.skel, self.rows.only());
        match kind {
            Kind::Threads => self.rows.used(skel, !only),
            Kind::Unnamed => self.rows.used(skel, false),
            Kind::Chosen => self.rows.used(skel, true),
            Kind::Files => self.files.as_mut()?.used(skel),
            Kind::AheadChunks => Some(self.sweep.used(self.chunks())),
            Kind::AheadPages => self.pages_ahead(),
            Kind::Retried => self.retried(),
            _ => None,
        }
    }

    /// The same by a walk.
    fn walk(&self, kind: Kind) -> Option<u64> {
        let maps = &self.skel.maps;
        match kind {
            Kind::Requests => walked(&maps.call_numbers),
            Kind::Direct => walked(&maps.submissions),
            Kind::Names => walked(&maps.given_names),
            Kind::AheadPages => walked(&maps.ledger_pages),
            Kind::Followed => walked(&maps.followed),
            Kind::Evictors => walked(&maps.blame_numbers),
            Kind::EvictedFiles => walked(&maps.blame_share_numbers),
            Kind::EvictedNames => walked(&maps.blame_files),
            Kind::Readers => walked(&maps.blame_reader_numbers),
            Kind::Waits => walked(&maps.blame_waits),
            Kind::Growth => walked(&maps.blame_growths)?.checked_sub(1),
            Kind::Sketches => walked(&maps.sketch_numbers),
            _ => None,
        }
    }

    /// Chunks of pages that were entered since attach: they are nobody's doing, and in no row.
    fn chunks(&self) -> u64 {
        self.nobodys().get(Counter::LedgerChunks)
    }

    /// Asynchronous requests that wait for another try.
    fn retried(&self) -> Option<u64> {
        let bss = self.skel.maps.bss_data.as_deref()?;
        // SAFETY: an aligned word of a mapping that lives as long as the skeleton.
        Some(unsafe { (&raw const bss.carrying).read_volatile() })
    }

    /// Pages that were read ahead, where each is an entry: what the filter of look-ups counts (bpf/ledger.h). It has what is
    /// tried again as well: where something is, only a walk tells.
    fn pages_ahead(&self) -> Option<u64> {
        if self.retried()? > 0 {
            return None;
        }
        let bss = self.skel.maps.bss_data.as_deref()?;
        let slots = &raw const bss.ledger_filter;
        // SAFETY: aligned words of a mapping that lives as long as the skeleton.
        let slot = |n: usize| unsafe { slots.cast::<u64>().add(n).read_volatile() };
        Some((0..bss.ledger_filter.len()).map(slot).fold(0, u64::wrapping_add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_of_a_map() {
        let text = "pos:\t0\nflags:\t02000002\nmap_type:\t1\nmax_entries:\t16384\nmemlock:\t5368709120\nmap_id:\t7\n";
        assert_eq!(memlock(text), Some(5_368_709_120));
        assert_eq!(memlock("pos:\t0\nflags:\t02\n"), None);
        assert_eq!(memlock("memlock:\t-\n"), None);
        assert_eq!(memory(-1), None);
    }
}
