//! Which pages are used, as the kernel programs send it (`bpf/touch.h`).

use std::cell::RefCell;
use std::rc::Rc;

use libbpf_rs::RingBuffer;
use libbpf_rs::RingBufferBuilder;

use super::attach::Attached;
use crate::whatif::Kind;
use crate::whatif::Outcome;
use crate::whatif::REST;
use crate::whatif::Touch;

/// A part of the pages as a threshold of what they are chosen by: all of them.
const ALL: f64 = (1u64 << 32) as f64;

/// Bytes of a `struct touched`.
pub(super) const BYTES: usize = 16;

const HIT: u32 = 0x100;
const MISSED: u32 = 0x200;
const PART: u32 = 0x400;
const REST_SHIFT: u32 = 16;
const WINDOW_SHIFT: u32 = 24;

/// The reading end of the ring.
pub struct Touches {
    ring: RingBuffer<'static>,
    seen: Rc<RefCell<Vec<Touch>>>,
}

impl Touches {
    /// What came since the last time, in the order in which it happened.
    ///
    /// # Errors
    /// When the ring cannot be read.
    pub fn read(&mut self) -> libbpf_rs::Result<Vec<Touch>> {
        self.ring.consume()?;
        Ok(std::mem::take(&mut *self.seen.borrow_mut()))
    }
}

/// Decodes a `struct touched`; `None` for what this program does not know.
fn decode(bytes: &[u8]) -> Option<Touch> {
    let page = u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?);
    let tid = u32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?);
    let how = u32::from_ne_bytes(bytes.get(12..16)?.try_into().ok()?);
    let kind = match how & 0xff {
        0 => Kind::Read,
        1 => Kind::Fault,
        2 => Kind::Write,
        3 => Kind::Gone,
        4 => Kind::Ahead,
        5 => Kind::Around,
        _ => return None,
    };
    let outcome = match how {
        how if how & HIT != 0 => Outcome::Hit,
        how if how & MISSED != 0 => Outcome::Missed,
        _ => Outcome::Unknown,
    };
    let (rest, window) = (how >> REST_SHIFT & REST, 8 * (how >> WINDOW_SHIFT));
    Some(Touch { page, tid, kind, outcome, part: how & PART != 0, rest, window })
}

impl Attached {
    /// The ring that touches come in.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn touches(&self) -> libbpf_rs::Result<Touches> {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&seen);
        let mut builder = RingBufferBuilder::new();
        builder.add(&self.skel.maps.touches, move |bytes| {
            into.borrow_mut().extend(decode(bytes));
            0
        })?;
        Ok(Touches { ring: builder.build()?, seen })
    }

    /// From now on this part of all pages is chosen.
    pub fn choose(&mut self, part: f64) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            let below = (part.clamp(0.0, 1.0) * ALL) as u64;
            // SAFETY: a word of our own that the kernel programs only read.
            unsafe { (&raw mut bss.touch_below).write_volatile(below) };
        }
    }

    /// Touches that the ring had no room for, and pages that were not looked at, since attach.
    #[must_use]
    pub fn touches_lost(&self) -> (u64, u64) {
        let Some(bss) = self.skel.maps.bss_data.as_deref() else { return (0, 0) };
        // SAFETY: aligned words of a mapping that lives as long as the skeleton.
        unsafe {
            (
                (&raw const bss.touches_dropped).read_volatile(),
                (&raw const bss.touches_beyond).read_volatile(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_touch_is_decoded() {
        let raw = |how: u32| {
            let mut bytes = 7u64.to_ne_bytes().to_vec();
            bytes.extend(9u32.to_ne_bytes());
            bytes.extend(how.to_ne_bytes());
            bytes
        };
        let hit = Touch {
            page: 7,
            tid: 9,
            kind: Kind::Read,
            outcome: Outcome::Hit,
            part: true,
            rest: 0,
            window: 0,
        };
        assert_eq!(decode(&raw(HIT | PART)), Some(hit));
        let of_many = Touch { rest: 0xfe, window: 32, ..hit };
        assert_eq!(decode(&raw(HIT | PART | 0x04fe_0000)), Some(of_many));
        let major = Touch { kind: Kind::Fault, outcome: Outcome::Missed, part: false, ..hit };
        assert_eq!(decode(&raw(1 | MISSED)), Some(major));
        let gone = Touch { kind: Kind::Gone, outcome: Outcome::Unknown, part: false, ..hit };
        assert_eq!(decode(&raw(3)), Some(gone));
        let ahead = Touch { kind: Kind::Ahead, ..gone };
        assert_eq!(decode(&raw(4)), Some(ahead));
        assert_eq!(decode(&raw(6)), None);
        assert_eq!((raw(0).len(), decode(&[0; BYTES - 1])), (BYTES, None));
    }

    #[test]
    fn the_two_halves_of_the_wire_agree() {
        let header = include_str!("../../bpf/touch.h");
        for (name, value) in [("TOUCH_HIT", HIT), ("TOUCH_MISSED", MISSED), ("TOUCH_PART", PART)] {
            assert!(header.contains(&format!("\t{name} = {value:#x},")), "{name}");
        }
        assert!(header.contains(&format!("TOUCH_REST_SHIFT = {REST_SHIFT},")));
        assert!(header.contains(&format!("TOUCH_WINDOW_SHIFT = {WINDOW_SHIFT},")));
        assert!(header.contains(&format!("TOUCH_MOST = {REST:#x},")));
        let kinds = header.split_once("enum touch {").unwrap().1;
        let names: Vec<_> = kinds.lines().filter_map(|l| l.trim().split_once(',')).map(|(n, _)| n).collect();
        let kinds = ["READ", "FAULT", "WRITE", "GONE", "AHEAD", "AROUND"].map(|kind| format!("TOUCH_{kind}"));
        assert_eq!(names[..6], kinds);
    }
}
