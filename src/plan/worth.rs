//! What each figure is worth under a set of hooks, derived from the events that they see and lose.

mod counted;
mod faults;
mod meta;
mod writes;

use super::Brackets;
use super::Wants;
use super::events::Event;
use super::hooks::Attach;
use super::hooks::Hook;
use super::hooks::Why;
use crate::facts::Facts;
use crate::figures::Evidence;
use crate::figures::Figure;

pub(super) use counted::events;
pub(super) use writes::IOMAP;

/// What a figure is worth on this kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certainty {
    /// Equal to the truth, page for page, while nothing is lost.
    Exact,
    /// Right within a stated bound.
    Bounded(String),
    /// Cannot be had here, and why.
    Unknown(String),
}

const SHORT: &str = "a read cut short inside the file (signal, bad buffer, RWF_NOWAIT) counts as requested; two \
                     io_uring requests that end in the same page may count as one; reads of tmpfs are not seen, \
                     nor such of squashfs as ask for more than their file has; of a folio of several pages that is written, all \
                     counts as used";

/// Measured on 7.2 and 7.3: none where nobody else uses tables of BPF, with 64 threads that can run and two CPUs.
const PREEMPTED: &str = "while somebody is preempted in bpf(2) on this kernel, events on that CPU are skipped: where other \
                         programs use tables of BPF, some may be lost; LOST says how many";

pub(super) const FUNCTIONS: &str = "needs hooks on functions, which this kernel refuses";
const LOSES: &str = "the hook can lose events on this preemptible kernel; LOST says how many";

/// What the hooks see.
struct Seen<'a> {
    facts: &'a Facts,
    brackets: Brackets,
    hooks: &'a [Hook],
    wants: Wants,
}

/// What every figure is worth, in order.
pub(super) fn figures(
    facts: &Facts,
    brackets: Brackets,
    hooks: &[Hook],
    wants: Wants,
) -> Vec<(Figure, Certainty)> {
    let seen = Seen { facts, brackets, hooks, wants };
    Figure::ALL.iter().map(|f| (*f, seen.worth(f.evidence()))).collect()
}

/// Figures that are at least so much, as [`super::Plan::at_least`].
pub(super) fn at_least(facts: &Facts, brackets: Brackets, hooks: &[Hook], wants: Wants) -> Vec<Figure> {
    let seen = Seen { facts, brackets, hooks, wants };
    let least = |f: &Figure| {
        let evidence = f.evidence();
        seen.misses(evidence) && matches!(seen.worth(evidence), Certainty::Bounded(_))
    };
    Figure::ALL.iter().copied().filter(least).collect()
}

fn unknown(why: &str) -> Certainty {
    Certainty::Unknown(why.into())
}

impl Seen<'_> {
    fn sees(&self, event: Event) -> bool {
        self.hooks.iter().any(|h| h.event == event)
    }

    /// Whether a hook on the event can lose some.
    fn loses(&self, event: Event) -> bool {
        self.hooks.iter().any(|h| h.event == event && h.why == Why::Lossy)
    }

    /// Whether a program stands on the function.
    fn stands_on(&self, function: &str) -> bool {
        self.hooks.iter().any(|h| match &h.attach {
            Attach::Trampoline(f) | Attach::Kprobe(f) => f == function,
            Attach::Multi(fs, _) | Attach::Session(fs) => fs.iter().any(|f| f == function),
            Attach::TracepointBtf(_) | Attach::Tracepoint(..) | Attach::Tick => false,
        })
    }

    /// Without functions.
    fn calls(&self) -> bool {
        self.brackets == Brackets::Tracepoints
    }

    fn worth(&self, evidence: Evidence) -> Certainty {
        match evidence {
            Evidence::Reads => self.reads(),
            Evidence::TimedReads if self.calls() => unknown(FUNCTIONS),
            Evidence::TimedReads if !self.wants.latency => {
                unknown("measured only when requested (--latency)")
            }
            Evidence::TimedReads => self.reads(),
            Evidence::Flights => self.flights(),
            Evidence::Fills if self.calls() => Certainty::Bounded(
                "pages that an io_uring worker adds are told apart by what it reads next; tmpfs is not seen"
                    .into(),
            ),
            Evidence::Fills if !self.sees(Event::Window) => Certainty::Bounded(
                "read-ahead outside of read calls (readahead(2), WILLNEED) is not seen".into(),
            ),
            Evidence::Fills => self.reads(),
            Evidence::Waste => Certainty::Bounded(
                "a lower bound where files are mapped: pages mapped around a fault count as used; where writes are not seen, so \
                 does all of a folio that is written"
                    .into(),
            ),
            Evidence::Dirtied if !self.sees(Event::PageDirtied) => {
                unknown("no hook sees pages getting dirty on this kernel")
            }
            Evidence::Dirtied => self.unless_lossy(Event::PageDirtied),
            Evidence::Buffers if self.sees(Event::BufferDirtied) => Certainty::Exact,
            Evidence::Buffers if !self.wants.buffers && self.facts.tracepoint("block_dirty_buffer") => {
                unknown("counted only when requested (--columns buffer_dirtied, -x, --json)")
            }
            Evidence::Buffers => unknown("the tracepoint block_dirty_buffer is not there"),
            Evidence::Removals => self.unless_lossy(Event::PageDeleted),
            Evidence::Windows => self.windows(),
            Evidence::Faults => self.faults(),
            Evidence::CachedFaults => self.cached_faults(),
            Evidence::MappedAround => self.mapped_around(),
            Evidence::Refaults => self.refaults(),
            Evidence::Metadata => self.metadata(),
            Evidence::Writes => self.writes(),
            Evidence::Direct => self.direct(),
            Evidence::FellBack => match self.writes() {
                Certainty::Exact => self.reads(),
                other => other,
            },
        }
    }

    /// Whether some of what is counted is seen by no hook, however few events are lost. Of reads, what the kernel's account of read
    /// calls says bounds it (`src/report/unseen.rs`), and metadata is what it is said to be, no more.
    fn misses(&self, evidence: Evidence) -> bool {
        match evidence {
            Evidence::Direct => self.misses_direct(),
            Evidence::Writes | Evidence::FellBack => self.misses_writes(),
            Evidence::Fills => !self.calls() && !self.sees(Event::Window),
            // Faults that huge pages serve, and stores into mappings of tmpfs.
            Evidence::CachedFaults => self.calls(),
            Evidence::MappedAround => !self.sees(Event::HugeMapped),
            Evidence::Waste => true,
            Evidence::Reads
            | Evidence::TimedReads
            | Evidence::Flights
            | Evidence::Dirtied
            | Evidence::Buffers
            | Evidence::Removals
            | Evidence::Windows
            | Evidence::Faults
            | Evidence::Refaults
            | Evidence::Metadata => false,
        }
    }

    fn unless_lossy(&self, event: Event) -> Certainty {
        if self.loses(event) { Certainty::Bounded(LOSES.into()) } else { Certainty::Exact }
    }

    fn reads(&self) -> Certainty {
        match self.brackets {
            Brackets::Trampolines | Brackets::Sessions if self.loses(Event::PageAdded) => Certainty::Bounded(
                "the hook that sees pages being added can lose events on this kernel; LOST says how many"
                    .into(),
            ),
            Brackets::Sessions if !self.facts.voluntary() => Certainty::Bounded(PREEMPTED.into()),
            Brackets::Trampolines | Brackets::Sessions => Certainty::Exact,
            Brackets::LossyTrampolines => Certainty::Bounded(
                "fentry and fexit lose events while a reader is preempted inside them; LOST says how many"
                    .into(),
            ),
            Brackets::Unused => unknown("the exact engine is not in use"),
            Brackets::Tracepoints if self.facts.voluntary() => Certainty::Bounded(SHORT.into()),
            Brackets::Tracepoints => Certainty::Bounded(format!(
                "{SHORT}; BTF tracepoints can lose events on preemptible kernels; LOST says how many"
            )),
        }
    }

    fn flights(&self) -> Certainty {
        match (self.sees(Event::InFlight), self.reads()) {
            (true, Certainty::Exact) => Certainty::Bounded(
                "a lower bound where io_uring reads: its requests wait without a thread; a page that somebody is just \
                 writing counts, too"
                    .into(),
            ),
            (true, reads) => reads,
            (false, _) if self.calls() => unknown(FUNCTIONS),
            (false, _) => Certainty::Unknown(match &self.facts.wake_page {
                Err(e) => format!("who waits for a page is known by the address of wake_page_function: {e}"),
                Ok(_) => "io_schedule, in which a reader waits for a page, cannot be hooked".into(),
            }),
        }
    }
}
