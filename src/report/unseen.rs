//! What the command read by ways that nobody sees here, by the kernel's own account of its read calls (`rchar`).
//!
//! Reads of tmpfs are seen by functions only. Where those are refused, nothing in the other figures says that a
//! command worked in `/dev/shm`; the account does, though it has pipes, sockets and terminals as well: it is a bound.

use super::data::Bound;
use super::data::Run;
use super::units;
use crate::figures::Figure;
use crate::plan::Event;
use crate::plan::Plan;

/// Less than this, or than a twentieth, is said nothing of: every program reads a little from pipes and `/proc`.
const LEAST: u64 = 1 << 20;

/// Whether reads of some kind of file are not seen.
fn blind(plan: &Plan) -> bool {
    !plan.sees(Event::TmpfsRead) && !plan.sees(Event::TmpfsReadEnded)
}

/// Bytes of read calls of which the figures do not tell: the most that it can be.
fn bytes(run: &Run) -> Option<u64> {
    let direct = run.get(Figure::DirectReadBytes).unwrap_or(0);
    Some(run.usage.called_read_bytes?.saturating_sub(run.get(Figure::ReadBytes)? + direct))
}

/// Whether more than a little was read in a way that nobody sees, on any kernel: past the cache through FUSE, from pipes. A twentieth
/// of what was read, and 64 KiB, since a server can take its time for each page. Where that is not known it may have been.
pub(super) fn material(run: &Run) -> bool {
    let called = run.usage.called_read_bytes.unwrap_or(0);
    bytes(run).is_none_or(|n| n >= 1 << 16 && n >= called / 20)
}

/// Adds them to what the run used: what was not seen is not known to have been in the cache.
pub(super) fn weigh(run: &mut Run, plan: &Plan) {
    run.at_least.clone_from(&plan.at_least);
    if !blind(plan) {
        return;
    }
    let called = run.usage.called_read_bytes.unwrap_or(0);
    let most = bytes(run);
    if most.is_none() {
        // Nothing bounds what was not seen.
        run.at_least.extend([Figure::Accesses, Figure::Hits, Figure::ReadCalls, Figure::ReadBytes]);
    }
    let bytes = most.filter(|n| *n >= LEAST && *n >= called / 20);
    run.unseen_bytes = bytes;
    run.unseen_pages = bytes.unwrap_or(0) / units::page();
    run.asked_pages += run.unseen_pages;
    // Of a bound, all of it may have been there.
    let bound = run.bound.zip(most);
    run.bound = bound.map(|(b, n)| Bound { warm: b.warm + n.div_ceil(units::page()), ..b });
}

/// Whether it may have read past the cache where nobody saw that: not all of it is seen, or none.
fn may_be_past(run: &Run) -> bool {
    run.at_least.contains(&Figure::DirectReadBytes) || run.get(Figure::DirectReadBytes).is_none()
}

/// Whether most of what it read may have gone past the cache, unseen: no emptied cache would tell anything about that. That comes
/// from a device, and pipes do not.
pub(super) fn mostly_past(run: &Run) -> bool {
    let called = run.usage.called_read_bytes.unwrap_or(0);
    let device = run.usage.device_read_bytes.unwrap_or(u64::MAX);
    may_be_past(run) && run.unseen_bytes.is_some_and(|n| n.min(device) > called / 2)
}

/// What a reader of the report must know of it.
pub(super) fn note(run: &Run) -> Option<String> {
    let bytes = run.unseen_bytes?;
    let called = run.usage.called_read_bytes?;
    // It may be the most of it, and then it is what takes the time.
    let seen = match may_be_past(run) {
        true => {
            "reads of squashfs that ask for more than their file has, and reads past the cache (O_DIRECT) of block devices and of \
             file systems without iomap, are seen by functions only, if at all"
        }
        false => "and reads of squashfs that ask for more than their file has, are seen by functions only",
    };
    Some(format!(
        "not seen: up to {} of the {} that its read calls delivered by the kernel's own account (rchar). Files of tmpfs \
         (/dev/shm, in places /tmp), {seen}, which this kernel refuses; pipes, sockets, terminals, \
         devices such as /dev/zero, and /proc are no files of the cache. The figures of reads are the least that it may have been.",
        units::bytes(bytes),
        units::bytes(called),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::report::data::Usage;
    use crate::view::fixtures;

    fn run(called: u64, read: u64, direct: u64) -> Run {
        let bound = Some(Bound { warm: 0, other: 10 });
        let mut run = Run { asked_pages: 10, bound, ..Run::default() };
        run.usage = Usage { called_read_bytes: Some(called), ..Usage::zero() };
        run.figures.set(Figure::ReadBytes, Some(read));
        run.figures.set(Figure::DirectReadBytes, Some(direct));
        weigh(&mut run, &fixtures::plan(&[]));
        run
    }

    #[test]
    fn what_is_not_seen_is_said_and_weighed() {
        let page = units::page();
        let tmpfs = run(32 << 20, 20_000, 0);
        assert_eq!(tmpfs.unseen_bytes, Some((32 << 20) - 20_000));
        assert_eq!(tmpfs.asked_pages, 10 + ((32 << 20) - 20_000) / page);
        // What was seen is told by itself.
        assert_eq!((tmpfs.seen_pages(), tmpfs.seen_before()), (10, Some((0.0, 1.0 / 11.0))));
        // What no function sees either is told only where direct reads are not wholly known.
        let mut past = Run { at_least: vec![Figure::DirectReadBytes], ..tmpfs.clone() };
        assert!(!mostly_past(&past), "no device gave it");
        past.usage.device_read_bytes = Some(32 << 20);
        assert!(note(&past).unwrap().contains("(O_DIRECT) of block devices"), "{:?}", note(&past));
        assert!(!note(&tmpfs).unwrap().contains("O_DIRECT"), "{:?}", note(&tmpfs));
        assert!(mostly_past(&past) && !mostly_past(&tmpfs));
        assert!(!mostly_past(&Run { unseen_bytes: Some(16 << 20), ..past }), "half");
        // Of a bound, whatever it is; where the account is not known, there is none.
        for (run, most) in [(&tmpfs, (32 << 20) - 20_000), (&run(900_000, 0, 0), 900_000)] {
            assert_eq!(run.bound, Some(Bound { warm: u64::div_ceil(most, page), other: 10 }));
        }
        let mut silent = Run { bound: tmpfs.bound, ..Run::default() };
        weigh(&mut silent, &fixtures::plan(&[]));
        assert_eq!((silent.bound, silent.asked_pages), (None, 0));
        assert!(silent.at_least.contains(&Figure::ReadBytes) && !tmpfs.at_least.contains(&Figure::ReadBytes));
        assert!(
            note(&tmpfs).unwrap().contains("of the 32 MiB that its read calls delivered"),
            "{:?}",
            note(&tmpfs)
        );
        // A little of /proc, a pipe's worth, and what went past the cache and was seen there.
        for seen in [run(32 << 20, (32 << 20) - 400_000, 0), run(900_000, 0, 0), run(32 << 20, 0, 31 << 20)] {
            assert_eq!((seen.unseen_bytes, seen.asked_pages), (None, 10));
            assert_eq!(note(&seen), None);
        }
        // Where the account is not known, nothing is.
        assert_eq!(note(&Run::default()), None);
    }
}
