//! Buffered writes and I/O past the cache.

use super::Certainty;
use super::FUNCTIONS;
use super::Seen;
use super::unknown;
use crate::plan::Event;

/// The write loop of xfs and others.
pub(in crate::plan) const IOMAP: &str = "iomap_file_buffered_write";

/// File systems that may write in loops of their own.
const LOOPS: &[&str] = &["fuse", "cifs", "ceph", "9p", "afs"];
/// Those whose direct I/O no hook sees.
const PAST: &[&str] = &["fuse", "nfs", "cifs", "ceph", "9p"];

/// Bounded by the reasons given, the reads' own among them; else as reads are.
fn limited(reads: &Certainty, reasons: Vec<String>) -> Certainty {
    match reads {
        Certainty::Exact if reasons.is_empty() => Certainty::Exact,
        Certainty::Bounded(why) if reasons.is_empty() => Certainty::Bounded(why.clone()),
        Certainty::Bounded(why) => Certainty::Bounded(format!("{}; {why}", reasons.join("; "))),
        _ => Certainty::Bounded(reasons.join("; ")),
    }
}

impl Seen<'_> {
    /// Those of the modules that are loaded.
    fn loaded(&self, modules: &[&'static str]) -> Vec<&'static str> {
        modules.iter().copied().filter(|m| self.facts.module(m)).collect()
    }

    pub(super) fn writes(&self) -> Certainty {
        if self.calls() {
            return unknown(FUNCTIONS);
        }
        if !self.sees(Event::Write) {
            return unknown("the kernel's write loop cannot be attached to");
        }
        let mut why = Vec::new();
        if !self.sees(Event::WriteBtrfs) {
            if self.facts.module("btrfs") {
                why.push("writes of btrfs are not seen: its write loop cannot be attached to".into());
            } else {
                why.push("btrfs was not loaded when we began: its writes would not be seen".into());
            }
        }
        if self.misses_iomap() {
            why.push("writes of xfs are not seen".into());
        }
        if self.facts.function("generic_perform_write/3") {
            why.push("pages that xfs zeroes before a write past the end of file count as there".into());
        }
        if !self.sees(Event::TmpfsAdded) {
            why.push("misses of writes to tmpfs are not seen".into());
        }
        let loops = self.loaded(LOOPS);
        if !loops.is_empty() {
            why.push(format!("{} may write in loops of their own, which are not seen", loops.join(", ")));
        }
        limited(&self.reads(), why)
    }

    fn misses_iomap(&self) -> bool {
        !self.stands_on(IOMAP) && self.facts.function(IOMAP)
    }

    /// Whether the writes to some file system that is there are not seen. (One that is loaded later is not meant: who runs a command
    /// has mounted it before.)
    pub(super) fn misses_writes(&self) -> bool {
        let btrfs = !self.sees(Event::WriteBtrfs) && self.facts.module("btrfs");
        btrfs || self.misses_iomap() || LOOPS.iter().any(|m| self.facts.mounted(m))
    }

    /// Whether I/O past the cache is not all seen, or is not known to be whose.
    pub(super) fn misses_direct(&self) -> bool {
        let all = !self.calls() && self.sees(Event::DeviceDirect) && self.sees(Event::DirectSubmitted);
        !all || PAST.iter().any(|m| self.facts.mounted(m))
    }

    pub(super) fn direct(&self) -> Certainty {
        if self.calls() {
            return self.direct_by_tracepoints();
        }
        if !self.sees(Event::DirectEnded) {
            return unknown("the kernel has no iomap_dio_complete to attach to");
        }
        let mut why = vec![
            "an asynchronous request to a block device that fails after it was queued counts as done".into(),
        ];
        if !self.sees(Event::DeviceDirect) {
            why = vec!["direct I/O of block devices is not seen".into()];
        }
        if !self.sees(Event::DirectSubmitted) {
            why.push("asynchronous requests are nobody's and stand in the totals only".into());
        }
        let others = self.loaded(PAST);
        if !others.is_empty() {
            why.push(format!("direct I/O of {} is not seen", others.join(", ")));
        }
        limited(&self.reads(), why)
    }

    /// By tracepoints.
    fn direct_by_tracepoints(&self) -> Certainty {
        if !self.sees(Event::DirectSubmitted) {
            return unknown(
                "needs the tracepoints iomap_dio_rw_begin, iomap_dio_rw_queued and iomap_dio_complete (6.6)",
            );
        }
        let mut why = "only direct I/O of file systems that use iomap (ext4, xfs, btrfs, f2fs) is seen, not that of \
                       block devices; an asynchronous request that fails after it was queued counts as done, and LOST \
                       says so where its end is seen"
            .to_owned();
        if self.loses(Event::DirectSubmitted) {
            why.push_str("; BTF tracepoints can lose events on preemptible kernels; LOST says how many");
        }
        Certainty::Bounded(why)
    }
}
