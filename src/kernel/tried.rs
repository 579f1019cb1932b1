//! Read requests, as the kernel programs send them (`bpf/tried.h`).

use std::cell::RefCell;
use std::rc::Rc;

use libbpf_rs::RingBuffer;
use libbpf_rs::RingBufferBuilder;

use super::attach::Attached;
use crate::files::Dev;
use crate::readahead::Request;

const RANDOM: u32 = 0x1;
const SPLICE: u32 = 0x2;
const ORDERS: u32 = 0x4;
const LARGE: u32 = 0x8;
const LATE: u32 = 0x10;
const ORDER_SHIFT: u32 = 8;

/// Bytes of a `struct tried_read`.
pub(super) const BYTES: usize = 72;

/// The largest folio where the kernel only says that there are large ones: 2 MiB.
const LARGEST: u32 = 9;

/// The reading end of the ring.
pub struct Tried {
    ring: RingBuffer<'static>,
    seen: Rc<RefCell<Vec<Request>>>,
}

impl Tried {
    /// What came since the last time, in the order in which it happened.
    ///
    /// # Errors
    /// When the ring cannot be read.
    pub fn read(&mut self) -> libbpf_rs::Result<Vec<Request>> {
        self.ring.consume()?;
        Ok(std::mem::take(&mut *self.seen.borrow_mut()))
    }
}

/// Decodes a `struct tried_read`; `None` for what is no such thing.
fn decode(bytes: &[u8]) -> Option<Request> {
    let long = |n: usize| Some(u64::from_ne_bytes(bytes.get(8 * n..8 * n + 8)?.try_into().ok()?));
    let word = |n: usize| Some(u32::from_ne_bytes(bytes.get(48 + 4 * n..52 + 4 * n)?.try_into().ok()?));
    let how = word(5)?;
    let order = if how & LARGE != 0 { LARGEST } else { how >> ORDER_SHIFT & 0x1f };
    Some(Request {
        file: long(0)?,
        inode: long(1)?,
        pos: long(2)?,
        count: long(3)?,
        size: long(4)?,
        // -1 until something is read.
        before: long(5).filter(|at| *at != u64::MAX),
        dev: Dev::from_kernel(word(0)?),
        run: word(1)?,
        pages: word(2)?,
        device_pages: word(3)?,
        io_pages: word(4)?,
        random: how & RANDOM != 0,
        splice: how & SPLICE != 0,
        aligned: how & ORDERS != 0,
        late: how & LATE != 0,
        order: order.min(15),
    })
}

impl Attached {
    /// The ring that read requests come in.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn tried(&self) -> libbpf_rs::Result<Tried> {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&seen);
        let mut builder = RingBufferBuilder::new();
        builder.add(&self.skel.maps.tried, move |bytes| {
            into.borrow_mut().extend(decode(bytes));
            0
        })?;
        Ok(Tried { ring: builder.build()?, seen })
    }

    /// Requests of which nothing came, since attach.
    #[must_use]
    pub fn tried_lost(&self) -> u64 {
        let Some(bss) = self.skel.maps.bss_data.as_deref() else { return 0 };
        // SAFETY: an aligned word of a mapping that lives as long as the skeleton.
        unsafe { (&raw const bss.tried_dropped).read_volatile() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_request_is_decoded() {
        let mut bytes: Vec<u8> = [7, 12, 4096, 100, 8192, u64::MAX].map(u64::to_ne_bytes).concat();
        bytes.extend(
            [(8 << 20) | 1, 1, 32, 32, 320, RANDOM | ORDERS | 9 << ORDER_SHIFT]
                .map(u32::to_ne_bytes)
                .concat(),
        );
        let r = decode(&bytes).unwrap();
        assert_eq!((r.file, r.inode, r.pos, r.count, r.size, r.before), (7, 12, 4096, 100, 8192, None));
        assert_eq!((r.dev, r.run), (Dev { major: 8, minor: 1 }, 1));
        assert_eq!((r.pages, r.device_pages, r.io_pages), (32, 32, 320));
        assert_eq!((r.random, r.splice, r.aligned, r.order, r.late), (true, false, true, 9, false));
        bytes[68..72].copy_from_slice(&LATE.to_ne_bytes());
        assert!(decode(&bytes).unwrap().late);
        assert_eq!((bytes.len(), decode(&bytes[..BYTES - 1])), (BYTES, None));
    }

    #[test]
    fn the_two_halves_of_the_wire_agree() {
        let header = include_str!("../../bpf/tried.h");
        let names =
            [("RANDOM", RANDOM), ("SPLICE", SPLICE), ("ORDERS", ORDERS), ("LARGE", LARGE), ("LATE", LATE)];
        for (name, value) in names {
            assert!(header.contains(&format!("\tTRIED_{name} = {value:#x},")), "{name}");
        }
        assert!(header.contains(&format!("TRIED_ORDER_SHIFT = {ORDER_SHIFT},")));
    }
}
