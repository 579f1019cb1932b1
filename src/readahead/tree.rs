//! Where the next page is missing, as the kernel finds it: `page_cache_next_miss` and `page_cache_prev_miss` go through the
//! tree of slots (`lib/xarray.c`) step by step.
//!
//! A walk that begins in the midst of a large folio counts its index from where it begins, but its slot from where the
//! folio does. So it takes a gap for one or several pages further on than it is, until it comes to the next node of the
//! tree. Streams that share an open file find by such walks where they go on: pages are left out and are missed later.
//! A simulation that finds the gap where it is waits far less often than the kernel.

use super::pages::Pages;

/// Slots of a node, as a power of two.
const BITS: u32 = 6;
const SLOTS: u64 = 1 << BITS;

/// What a slot holds.
enum Slot {
    Nothing,
    /// A folio, or a part of one.
    Entry,
    /// A node one level below.
    Node,
}

/// A slot of a node.
#[derive(Clone, Copy)]
struct Place {
    /// 0: slots are pages.
    level: u32,
    /// Which of the nodes of its level.
    node: u64,
    slot: u64,
}

/// `struct xa_state`.
struct Walk<'a> {
    pages: &'a Pages,
    index: u64,
    top: u32,
    /// `None`: it has not begun, or has left the tree.
    place: Option<Place>,
}

/// Which slot of a node of a level an index falls into.
const fn slot_of(index: u64, level: u32) -> u64 {
    match index.checked_shr(BITS * level) {
        Some(index) => index % SLOTS,
        None => 0,
    }
}

impl<'a> Walk<'a> {
    fn new(pages: &'a Pages, index: u64) -> Self {
        let last = pages.last();
        let top = (0..).find(|level| last >> BITS >> (BITS * level) == 0).unwrap_or(0);
        Self { pages, index, top, place: None }
    }

    fn look(&self, at: Place) -> Slot {
        let (first, shift) = ((at.node * SLOTS + at.slot) << (BITS * at.level), BITS * at.level);
        if at.level == 0 {
            return if self.pages.has(first) { Slot::Entry } else { Slot::Nothing };
        }
        match self.pages.folio(first) {
            Some(folio) if folio.order >= shift => Slot::Entry,
            _ if self.pages.any(first, shift) => Slot::Node,
            _ => Slot::Nothing,
        }
    }

    /// `xas_load`: whether there is something at the index.
    fn load(&mut self) -> bool {
        if self.index >> BITS >> (BITS * self.top) != 0 {
            return false;
        }
        let (at, found) =
            self.descend(Place { level: self.top, node: 0, slot: slot_of(self.index, self.top) });
        if matches!(found, Slot::Nothing) {
            self.place = Some(at);
            return false;
        }
        // The slot where the folio begins; the index stays.
        let first = self.pages.folio(self.index).map_or(self.index, |f| f.first);
        self.place = Some(Place { slot: slot_of(first, at.level), ..at });
        true
    }

    /// Down to what the index has below this slot: `xas_set_offset` for each node.
    fn down(&mut self, at: Place) -> bool {
        let (at, found) = self.descend(at);
        self.place = Some(at);
        !matches!(found, Slot::Nothing)
    }

    /// From a slot down the nodes below it, to where the index is: that slot, and what it holds.
    fn descend(&self, mut at: Place) -> (Place, Slot) {
        loop {
            match self.look(at) {
                Slot::Node if at.level > 0 => {
                    let level = at.level - 1;
                    at = Place { level, node: at.node * SLOTS + at.slot, slot: slot_of(self.index, level) };
                }
                found => return (at, found),
            }
        }
    }

    /// `xas_next`
    fn next(&mut self) -> bool {
        let Some(mut at) = self.place else { return self.load() };
        self.index = self.index.wrapping_add(1);
        if (at.level == 0 && at.slot < SLOTS - 1) || at.slot != slot_of(self.index, at.level) {
            at.slot += 1;
        }
        while at.slot == SLOTS {
            if at.level == self.top {
                return false;
            }
            at = Place { level: at.level + 1, node: at.node / SLOTS, slot: at.node % SLOTS + 1 };
        }
        self.down(at)
    }

    /// `xas_prev`
    fn prev(&mut self) -> bool {
        let Some(mut at) = self.place else { return self.load() };
        self.index = self.index.wrapping_sub(1);
        if (at.level == 0 && at.slot > 0) || at.slot != slot_of(self.index, at.level) {
            while at.slot == 0 {
                if at.level == self.top {
                    return false;
                }
                at = Place { level: at.level + 1, node: at.node / SLOTS, slot: at.node % SLOTS };
            }
            at.slot -= 1;
        }
        self.down(at)
    }
}

/// `page_cache_prev_miss`: the nearest page up to this one that is not there, among so many; `None`: all are, from the
/// beginning of the file.
pub(super) fn missing_before(pages: &Pages, page: u64, within: u64) -> Option<u64> {
    let mut walk = Walk::new(pages, page);
    for _ in 0..within {
        if !walk.prev() || walk.index == u64::MAX {
            break;
        }
    }
    (walk.index != u64::MAX).then_some(walk.index)
}

/// `page_cache_next_miss`: the next page from this one on that is not there, among so many; `None`: there is none.
pub(super) fn missing_from(pages: &Pages, page: u64, within: u64) -> Option<u64> {
    let mut walk = Walk::new(pages, page);
    (0..within).find_map(|_| (!walk.next()).then_some(walk.index))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folios by where they begin and by their order.
    fn pages(folios: &[(u64, u32)]) -> Pages {
        let mut pages = Pages::default();
        for (first, order) in folios {
            assert!(pages.add(*first, *order, false, 0));
        }
        pages
    }

    #[test]
    fn of_single_pages_the_gap_is_where_it_is() {
        let all: Vec<_> = (0..200).filter(|p| *p != 70).map(|p| (p, 0)).collect();
        let pages = pages(&all);
        for from in 0..=70 {
            assert_eq!(missing_from(&pages, from, 200), Some(70), "{from}");
        }
        assert_eq!(missing_from(&pages, 71, 129), None);
        assert_eq!(missing_from(&pages, 71, 200), Some(200));
        for from in 70..200 {
            assert_eq!(missing_before(&pages, from, 200), Some(70), "{from}");
        }
        assert_eq!(missing_before(&pages, 69, 200), None);
        // None within reach: the last that was looked at, with which as many count as there can be.
        assert_eq!(missing_before(&pages, 199, 5), Some(195));
    }

    /// As Linux 6.18 was seen to do it.
    #[test]
    fn from_the_midst_of_a_folio_it_is_further_on() {
        let pages = pages(&[(0, 0), (1, 0), (2, 0), (3, 0), (4, 2), (8, 2)]);
        assert_eq!(missing_from(&pages, 4, 32), Some(12));
        assert_eq!(missing_from(&pages, 5, 32), Some(13));
        assert_eq!(missing_from(&pages, 12, 32), Some(12));
        // From page 11, whose folio begins three before: three pages are left out at the beginning of the node.
        assert_eq!(missing_before(&pages, 11, 32), Some(2));
        assert_eq!(missing_before(&pages, 3, 32), None);
    }

    #[test]
    fn the_next_node_puts_it_right() {
        let all: Vec<_> = (0..32).map(|n| (4 * n, 2)).filter(|(p, _)| *p != 100).collect();
        let pages = pages(&all);
        // In the first node it is one behind, in the second it is not.
        assert_eq!(missing_from(&pages, 1, 128), Some(100));
        assert_eq!(missing_from(&pages, 65, 128), Some(101));
    }

    #[test]
    fn folios_of_a_node_and_more() {
        let pages = pages(&[(0, 9), (512, 6), (576, 5), (4096, 0)]);
        assert_eq!(missing_from(&pages, 1, 5000), Some(608));
        assert_eq!(missing_from(&pages, 513, 5000), Some(608));
        assert_eq!(missing_from(&pages, 4096, 5), Some(4097));
        assert_eq!(missing_from(&pages, 700, 5), Some(700));
        // Beyond what the tree reaches.
        assert_eq!(missing_from(&pages, 1 << 40, 5), Some(1 << 40));
        assert_eq!(missing_before(&pages, 1 << 40, 5), Some(1 << 40));
    }

    #[test]
    fn in_an_empty_file_everything_is_missing() {
        let pages = Pages::default();
        assert_eq!((missing_from(&pages, 7, 3), missing_before(&pages, 7, 3)), (Some(7), Some(7)));
    }
}
