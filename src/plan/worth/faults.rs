//! Faults, read-ahead windows and pages read back in.

use super::Certainty;
use super::FUNCTIONS;
use super::Seen;
use super::unknown;
use crate::plan::Event;

impl Seen<'_> {
    /// As reads, whose hooks lose alike, where it is there.
    fn known(&self, there: bool, why: &str) -> Certainty {
        if there { self.reads() } else { unknown(why) }
    }

    pub(super) fn faults(&self) -> Certainty {
        match self.calls() {
            true => self.faults_by_tracepoints(),
            false => self.known(self.sees(Event::Fault), "the kernel has no filemap_fault to attach to"),
        }
    }

    pub(super) fn cached_faults(&self) -> Certainty {
        let both = self.sees(Event::Fault) && self.maps();
        match self.calls() {
            true => self.faults_by_tracepoints(),
            false => self.known(both, "faults served from the cache cannot be seen on this kernel"),
        }
    }

    /// Where no function can be attached to: counted by tracepoints and each thread's own count of faults.
    fn faults_by_tracepoints(&self) -> Certainty {
        match self.sees(Event::Fault) && self.maps() {
            true if self.facts.voluntary() => Certainty::Bounded(FAULTS.into()),
            true => Certainty::Bounded(format!(
                "{FAULTS}; BTF tracepoints can lose events on preemptible kernels; LOST says how many"
            )),
            false => unknown(FUNCTIONS),
        }
    }

    fn maps(&self) -> bool {
        self.sees(Event::MappedAround) || self.sees(Event::MappedAroundEnded)
    }

    pub(super) fn mapped_around(&self) -> Certainty {
        if self.calls() {
            return unknown(
                "tracepoints tell where pages are mapped around a fault, but not how many; functions are refused",
            );
        }
        let counted = self.facts.btf.contains("struct:task_rss_stat") || self.sees(Event::PagesMapped);
        let could = counted || self.facts.function("set_pte_range");
        let around = match () {
            () if !self.wants.around && self.maps() && could => unknown(UNASKED),
            () => self.known(self.maps() && counted, NOTHING),
        };
        match around {
            Certainty::Exact if !self.sees(Event::HugeMapped) => {
                Certainty::Bounded("a huge page mapped at once counts as one page".into())
            }
            other => other,
        }
    }

    pub(super) fn windows(&self) -> Certainty {
        match self.calls() {
            true => unknown(FUNCTIONS),
            false => {
                self.known(self.sees(Event::Window), "the kernel has no page_cache_ra_unbounded to attach to")
            }
        }
    }

    pub(super) fn refaults(&self) -> Certainty {
        match () {
            () if self.calls() => Certainty::Bounded(REFAULTS.into()),
            () if self.loses(Event::ReadBack) => self.reads(),
            () if self.sees(Event::ReadBack) => Certainty::Exact,
            () => unknown("the kernel has no workingset_refault to attach to"),
        }
    }
}

const UNASKED: &str = "counted only when requested (--columns fault_around, --json)";
const NOTHING: &str = "nothing tells how many pages are mapped around a fault here";
const FAULTS: &str = "two threads that miss one page at the same instant count as one miss and one hit; a fault that \
                      fails may count as a hit; stores into mappings of tmpfs, what comes back from its swap and \
                      faults served by huge pages are not seen";
const REFAULTS: &str = "the kernel's own count (workingset_refault_file): each CPU hands in up to 125 pages late, \
                        within a second or two; of the system only, not of a process";
