//! Requests for tests.

use super::PAGE_SHIFT;
use super::Request;
use crate::files::Dev;

/// So many pages of a file of so many, on a device with 128 KiB of read-ahead. `before`: the page at which the read before it
/// ended.
pub fn request(page: u64, pages: u64, of: u64, before: Option<u64>) -> Request {
    Request {
        file: 1,
        dev: Dev { major: 8, minor: 1 },
        inode: 2,
        run: 1,
        pos: page << PAGE_SHIFT,
        count: pages << PAGE_SHIFT,
        size: of << PAGE_SHIFT,
        before: before.map(|page| page << PAGE_SHIFT),
        pages: 32,
        device_pages: 32,
        io_pages: 320,
        random: false,
        splice: false,
        aligned: false,
        order: 0,
        late: false,
    }
}
