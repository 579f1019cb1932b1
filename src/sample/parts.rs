//! Which parts of a file were read: a bit for each of at most 24. It tells apart who read a file once from who read one part of it
//! again and again, of whom all other counters are the same.

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
    },
    /// Of several sizes: the file grew.
    Mixed,
}

impl Parts {
    /// As the kernel programs keep it in a row.
    #[must_use]
    pub const fn from_kernel(word: u32) -> Self {
        let order = word >> FILE_PARTS & 63;
        Parts::Of { order, read: word & ((1 << FILE_PARTS) - 1) }
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Parts::Unknown, parts) | (parts, Parts::Unknown) => parts,
            (Parts::Of { order, read }, Parts::Of { order: same, read: more }) if order == same => {
                Parts::Of { order, read: read | more }
            }
            _ => Parts::Mixed,
        }
    }

    /// How many pages of a file of `bytes` were read at least, and at most, where `delivered` bytes were in all.
    #[must_use]
    pub fn pages(self, bytes: u64, page: u64, delivered: u64) -> (u64, u64) {
        let pages = bytes.div_ceil(page);
        let Parts::Of { order, read } = self else { return (0, pages) };
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
        // All of it, so many times: some part of it more often than others would be another sum, but by chance.
        let whole = read & full == full && delivered > 0 && delivered % bytes == 0;
        (if order == 0 || whole { most } else { n }, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    fn of(order: u32, read: u32) -> Parts {
        Parts::Of { order, read }
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
        assert_eq!(of(2, all).pages(bytes, PAGE, 2 * bytes), (49, 49));
        // Twice the first half of it is as many bytes.
        assert_eq!(of(2, 0b11_1111).pages(bytes, PAGE, bytes), (6, 24));
    }

    #[test]
    fn what_is_not_known_may_be_all_of_it_or_nothing() {
        for parts in [Parts::Unknown, Parts::Mixed, of(0, 1), of(1, 3)] {
            assert_eq!(parts.pages(100 * PAGE, PAGE, 100 * PAGE), (0, 100), "{parts:?}");
        }
        assert_eq!(of(0, 0).pages(0, PAGE, 0), (0, 0));
        assert_eq!(of(40, 1).pages(PAGE, PAGE, 0), (1, 1));
        assert_eq!(of(63, 1).pages(PAGE, PAGE, PAGE), (1, 1));
    }

    #[test]
    fn parts_of_one_size_are_added_up() {
        assert_eq!(of(3, 1).and(of(3, 4)), of(3, 5));
        assert_eq!(Parts::Unknown.and(of(3, 4)), of(3, 4));
        assert_eq!(of(3, 4).and(Parts::Unknown), of(3, 4));
        assert_eq!(of(3, 1).and(of(4, 1)), Parts::Mixed);
        assert_eq!(Parts::Mixed.and(of(4, 1)), Parts::Mixed);
        assert_eq!(Parts::from_kernel(7 << 24 | 0x80_0001), of(7, 0x80_0001));
    }
}
