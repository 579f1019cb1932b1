//! Which parts of a file were read, a bit for each of at most 24, and in how many stretches. It tells apart who read a
//! file once from who read one part of it again and again, of whom all other counters are the same.

use crate::wire::FILE_PARTS;

/// Parts of a file that a command read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parts {
    /// Nobody looked.
    #[default]
    Unknown,
    /// By their size when the file was used first.
    Of {
        /// log2 of the pages of one.
        order: u32,
        /// A bit for each, the first of them the lowest.
        read: u32,
        /// Reads that did not go on where the one before had ended: each begins a stretch, of which each byte was read once.
        stretches: u32,
    },
    /// Of several sizes: the file grew.
    Mixed,
}

impl Parts {
    /// As the kernel programs keep it in a row.
    #[must_use]
    pub const fn from_kernel(word: u32, stretches: u32) -> Self {
        let order = word >> FILE_PARTS & 63;
        Parts::Of { order, read: word & ((1 << FILE_PARTS) - 1), stretches }
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Parts::Unknown, parts) | (parts, Parts::Unknown) => parts,
            (
                Parts::Of { order, read, stretches },
                Parts::Of { order: same, read: other, stretches: more },
            ) if order == same => {
                Parts::Of { order, read: read | other, stretches: stretches.saturating_add(more) }
            }
            _ => Parts::Mixed,
        }
    }

    /// How many pages of a file of `bytes` were read at least, and at most, where `delivered` bytes were in all.
    #[must_use]
    pub fn pages(self, bytes: u64, page: u64, delivered: u64) -> (u64, u64) {
        let pages = bytes.div_ceil(page);
        let Parts::Of { order, read, stretches } = self else { return (0, pages) };
        let count = pages.saturating_sub(1).checked_shr(order).unwrap_or(0) + 1;
        if pages == 0 || count > FILE_PARTS as u64 {
            return (0, pages);
        }
        let each = 1_u64.checked_shl(order).unwrap_or(u64::MAX);
        let full = (1_u32 << count) - 1;
        let n = u64::from((read & full).count_ones());
        // The last one may be shorter.
        let missing = (count * each).saturating_sub(pages);
        let most = n * each - if read >> (count - 1) & 1 == 1 { missing } else { 0 };
        // No stretch is longer than the file: that many bytes are so many times all of it.
        let whole = delivered > 0 && Some(delivered) == bytes.checked_mul(stretches.into());
        match whole {
            true => (pages, pages),
            false => (if order == 0 { most } else { n }, most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    fn of(order: u32, read: u32) -> Parts {
        Parts::Of { order, read, stretches: 1 }
    }

    fn stretches(order: u32, read: u32, stretches: u32) -> Parts {
        Parts::Of { order, read, stretches }
    }

    #[test]
    fn of_a_small_file_each_page_is_known() {
        assert_eq!(of(0, 0b101).pages(3 * PAGE - 5, PAGE, 99), (2, 2));
        assert_eq!(of(0, 0b111).pages(3 * PAGE, PAGE, 0), (3, 3));
        assert_eq!(of(0, (1 << 24) - 1).pages(24 * PAGE, PAGE, 1), (24, 24));
    }

    #[test]
    fn of_a_large_one_a_page_of_each_part_or_all_of_it() {
        // 49 pages in parts of 4: 13 of them, the last of one page.
        let (bytes, all) = (48 * PAGE + 1, (1 << 13) - 1);
        assert_eq!(of(2, 0b1001).pages(bytes, PAGE, 8 * PAGE), (2, 8));
        assert_eq!(of(2, 1 << 12 | 1).pages(bytes, PAGE, 8 * PAGE), (2, 5));
        assert_eq!(of(2, all).pages(bytes, PAGE, bytes - 1), (13, 49));
        assert_eq!(of(2, all).pages(bytes, PAGE, bytes), (49, 49));
        assert_eq!(stretches(2, all, 3).pages(bytes, PAGE, 3 * bytes), (49, 49));
        // Twice the first half of it is as many bytes; so are as many pages as it has, here and there.
        assert_eq!(stretches(2, 0b11_1111, 2).pages(bytes, PAGE, bytes), (6, 24));
        assert_eq!(stretches(2, all, 40).pages(bytes, PAGE, bytes), (13, 49));
    }

    #[test]
    fn what_is_not_known_may_be_all_of_it_or_nothing() {
        for parts in [Parts::Unknown, Parts::Mixed, stretches(0, 1, 2), stretches(1, 3, 2)] {
            assert_eq!(parts.pages(100 * PAGE, PAGE, 100 * PAGE), (0, 100), "{parts:?}");
        }
        assert_eq!(of(0, 0).pages(0, PAGE, 0), (0, 0));
        assert_eq!(of(40, 1).pages(PAGE, PAGE, 0), (1, 1));
        assert_eq!(of(63, 1).pages(PAGE, PAGE, PAGE), (1, 1));
        assert_eq!(stretches(0, 0, u32::MAX).pages(u64::MAX, PAGE, 5).0, 0);
    }

    #[test]
    fn parts_of_one_size_are_added_up() {
        assert_eq!(stretches(3, 1, 2).and(stretches(3, 4, 5)), stretches(3, 5, 7));
        assert_eq!(Parts::Unknown.and(of(3, 4)), of(3, 4));
        assert_eq!(of(3, 4).and(Parts::Unknown), of(3, 4));
        assert_eq!(of(3, 1).and(of(4, 1)), Parts::Mixed);
        assert_eq!(Parts::Mixed.and(of(4, 1)), Parts::Mixed);
        assert_eq!(Parts::from_kernel(7 << 24 | 0x80_0001, 4), stretches(7, 0x80_0001, 4));
    }
}
