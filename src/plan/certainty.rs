//! What each figure is worth under a set of hooks.

use super::Brackets;
use super::Wants;
use super::hooks::Hook;
use super::hooks::LOSSY;
use crate::facts::Facts;
use crate::figures::Figure;

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

const SHORT: &str = "a read cut short inside the file (signal, bad buffer, RWF_NOWAIT) counts as asked; two \
                     io_uring requests that end in the same page may count as one; reads of tmpfs are not seen";

/// Measured on 7.2: 64 runnable readers on two CPUs lose up to a tenth, 8 readers nothing.
const PREEMPTED: &str = "while a program is preempted on this kernel, others on its CPU are skipped: with many busy \
                         readers events are lost; LOST says how many";

pub(super) fn of(
    facts: &Facts,
    brackets: Brackets,
    hooks: &[Hook],
    wants: Wants,
) -> Vec<(Figure, Certainty)> {
    let uses = |program: &str| hooks.iter().any(|h| h.program == program);
    let sees = |event: &str| hooks.iter().any(|h| h.event == event);
    let lossy = |event: &str| hooks.iter().any(|h| h.event == event && h.why == LOSSY);
    let reads = match brackets {
        Brackets::Trampolines | Brackets::Sessions if lossy("page added") => Certainty::Bounded(
            "the hook that sees pages being added can lose events on this kernel; LOST says how many".into(),
        ),
        Brackets::Sessions if !facts.voluntary() => Certainty::Bounded(PREEMPTED.into()),
        Brackets::Trampolines | Brackets::Sessions => Certainty::Exact,
        Brackets::LossyTrampolines => Certainty::Bounded(
            "fentry and fexit lose events while a reader is preempted inside them; LOST says how many".into(),
        ),
        Brackets::Unused => Certainty::Unknown("the exact engine is not in use".into()),
        Brackets::Tracepoints if facts.voluntary() => Certainty::Bounded(SHORT.into()),
        Brackets::Tracepoints => Certainty::Bounded(format!(
            "{SHORT}; BTF tracepoints can lose events on preemptible kernels; LOST says how many"
        )),
    };
    let mut out: Vec<(Figure, Certainty)> =
        [Figure::Accesses, Figure::Hits, Figure::ReadAheadHits, Figure::Misses, Figure::ReadBytes]
            .into_iter()
            .map(|f| (f, reads.clone()))
            .collect();
    let fills = match brackets {
        Brackets::Tracepoints => Certainty::Bounded(
            "pages that an io_uring worker adds are told apart by what it reads next; tmpfs is not seen"
                .into(),
        ),
        _ if !sees("read-ahead window") => {
            Certainty::Bounded("read-ahead outside of read calls (readahead(2), WILLNEED) is not seen".into())
        }
        _ => reads.clone(),
    };
    out.push((Figure::ReadAheadPages, fills.clone()));
    out.push((Figure::Fills, fills));
    out.push((
        Figure::ReadAheadWasted,
        Certainty::Bounded(
            "a lower bound where files are mapped: pages mapped around a fault count as used".into(),
        ),
    ));
    let dirtied = match () {
        () if uses("dirty_multi") => Certainty::Exact,
        () if (uses("dirty_btf") || uses("dirty_btf_pages")) && facts.voluntary() => Certainty::Exact,
        () if uses("dirty_btf") || uses("dirty_btf_pages") => Certainty::Bounded(
            "the hook can lose events on this preemptible kernel; LOST says how many".into(),
        ),
        () => Certainty::Unknown("no hook sees pages getting dirty on this kernel".into()),
    };
    out.push((Figure::Dirtied, dirtied));
    let buffers = if sees("buffer dirtied") {
        Certainty::Exact
    } else {
        Certainty::Unknown("the tracepoint block_dirty_buffer is not there".into())
    };
    out.push((Figure::BufferDirtied, buffers));
    let deleted = if lossy("page deleted") {
        Certainty::Bounded("the hook can lose events on this preemptible kernel; LOST says how many".into())
    } else {
        Certainty::Exact
    };
    out.push((Figure::Evicted, deleted.clone()));
    out.push((Figure::Removed, deleted));
    let functions = "needs hooks on functions, which this kernel refuses";
    let stall = match brackets {
        Brackets::Tracepoints => Certainty::Unknown(functions.into()),
        _ if !wants.latency => Certainty::Unknown("measured only when asked for (--latency)".into()),
        _ => reads.clone(),
    };
    out.push((Figure::StallNs, stall));
    out.extend(super::faults::certainty(facts, brackets, hooks, &reads, wants));
    let inflight = match (sees("wait for a page in flight"), &reads) {
        (true, Certainty::Exact) => Certainty::Bounded(
            "a lower bound where io_uring reads: its requests wait without a thread; a page that somebody is just \
             writing counts, too"
                .into(),
        ),
        (true, _) => reads.clone(),
        (false, _) if brackets == Brackets::Tracepoints => Certainty::Unknown(functions.into()),
        (false, _) => Certainty::Unknown(match &facts.wake_page {
            Err(e) => format!("who waits for a page is known by the address of wake_page_function: {e}"),
            Ok(_) => "io_schedule, in which a reader waits for a page, cannot be hooked".into(),
        }),
    };
    out.push((Figure::Inflight, inflight));
    let meta = super::meta::certainty(facts, hooks, brackets);
    for figure in [Figure::MetaAccesses, Figure::MetaHits, Figure::MetaAheadHits, Figure::MetaMisses] {
        out.push((figure, meta.clone()));
    }
    out.extend(super::writes::certainty(facts, brackets, hooks, &reads));
    out.sort_by_key(|(f, _)| *f);
    out
}
