//! Hooks on page faults, read-ahead windows and pages read back in.

use super::Brackets;
use super::Certainty;
use super::Wants;
use super::hooks::Attach;
use super::hooks::CLASSIC;
use super::hooks::Chooser;
use super::hooks::FGRAPH;
use super::hooks::Hook;
use super::hooks::LOSSY;
use crate::facts::Facts;
use crate::figures::Figure;

/// Functions of the kernel that serve faults, and how many pages they map.
pub(super) fn trampolines(c: &mut Chooser<'_>, why: &'static str, wants: Wants) {
    let facts = c.facts;
    let pick = |atomic, other| if facts.fetch_atomics { atomic } else { other };
    let unbounded = [("read-ahead window ended", "window_fexit"), ("read-ahead window", "window_fentry")];
    c.together("page_cache_ra_unbounded", &unbounded, why);
    let order = [
        ("read-ahead window, large folios, ended", "window_order_fexit"),
        ("read-ahead window, large folios", "window_order_fentry"),
    ];
    c.together("page_cache_ra_order", &order, why);
    let fault = pick("fault_fentry", "fault_fentry_pages");
    c.together("filemap_fault", &[("fault ended", "fault_fexit"), ("fault", fault)], why);
    let shmem = pick("shmem_fault_fexit", "shmem_fault_fexit_pages");
    c.together("shmem_fault", &[("tmpfs fault ended", shmem)], why);
    // Before 5.12 it returned nothing, and on such kernels fetching atomics do not load either.
    let ended = pick("map_pages_fexit", "map_pages_old_fexit");
    let both =
        [("pages mapped around a fault, ended", ended), ("pages mapped around a fault", "map_pages_fentry")];
    // How many, is told by what the thread had mapped before.
    c.together("filemap_map_pages", if wants.around { &both } else { &both[..1] }, why);
    if facts.function("filemap_map_pages") && wants.around {
        c.together("set_pte_range", &[("pages mapped", "mapped_fentry")], why);
        let huge = if facts.function("do_set_pmd/3") { "mapped_huge_fexit3" } else { "mapped_huge_fexit" };
        c.together("do_set_pmd", &[("huge page mapped", huge)], why);
    }
    c.together("workingset_refault", &[("page read back in", "refault_fentry")], why);
}

/// The same where return probes stand on fgraph.
pub(super) fn sessions(c: &mut Chooser<'_>, wants: Wants) {
    for (function, event, program, both) in [
        ("page_cache_ra_unbounded", "read-ahead window", "window_session", true),
        ("page_cache_ra_order", "read-ahead window, large folios", "window_order_session", true),
        ("filemap_fault", "fault", "fault_session", true),
        ("shmem_fault", "tmpfs fault", "shmem_fault_session", true),
        ("filemap_map_pages", "pages mapped around a fault", "map_pages_session", true),
        ("set_pte_range", "pages mapped", "mapped_multi", false),
        ("do_set_pmd", "huge page mapped", "mapped_huge_session", true),
        ("workingset_refault", "page read back in", "refault_multi", false),
    ] {
        let mapped = program.starts_with("mapped_");
        let needed = wants.around && c.facts.function("filemap_map_pages");
        if !c.facts.function(function) || mapped && !needed {
            continue;
        }
        let at = vec![function.to_owned()];
        match both {
            true => c.push(event, program, Attach::Session(at), FGRAPH),
            false => c.push(event, program, Attach::Multi(at, false), CLASSIC),
        }
    }
}

/// What the figures of faults, windows and refaults are worth. `reads`: the same for reads, whose hooks lose alike.
pub(super) fn certainty(
    facts: &Facts,
    brackets: Brackets,
    hooks: &[Hook],
    reads: &Certainty,
    wants: Wants,
) -> Vec<(Figure, Certainty)> {
    let uses = |programs: &[&str]| hooks.iter().any(|h| programs.contains(&h.program));
    let lossy = |program: &str| hooks.iter().any(|h| h.program == program && h.why == LOSSY);
    let unknown = |why: &str| Certainty::Unknown(why.into());
    let known = |there: bool, why: &str| if there { reads.clone() } else { unknown(why) };
    if brackets == Brackets::Tracepoints {
        let seen = uses(&["fault_btf"]) && uses(&["map_pages_btf"]);
        return tracepoints(seen, facts.voluntary());
    }
    let fault = uses(&["fault_fexit", "fault_session"]);
    let map_pages = uses(&["map_pages_fexit", "map_pages_old_fexit", "map_pages_session"]);
    let counted = facts.btf.contains("struct:task_rss_stat") || uses(&["mapped_fentry", "mapped_multi"]);
    let huge = uses(&["mapped_huge_fexit", "mapped_huge_fexit3", "mapped_huge_session"]);
    let around = match () {
        () if !wants.around && map_pages && (counted || facts.function("set_pte_range")) => unknown(UNASKED),
        () => known(map_pages && counted, NOTHING),
    };
    let around = match around {
        Certainty::Exact if !huge => {
            Certainty::Bounded("a huge page mapped at once counts as one page".into())
        }
        other => other,
    };
    let windows = uses(&["window_fexit", "window_session"]);
    let refaults = match () {
        () if lossy("refault_fentry") => reads.clone(),
        () if uses(&["refault_fentry", "refault_multi"]) => Certainty::Exact,
        () => unknown("the kernel has no workingset_refault to attach to"),
    };
    vec![
        (Figure::FaultMisses, known(fault, "the kernel has no filemap_fault to attach to")),
        (
            Figure::FaultHits,
            known(fault && map_pages, "faults served from the cache cannot be seen on this kernel"),
        ),
        (Figure::FaultAround, around),
        (Figure::Windows, known(windows, "the kernel has no page_cache_ra_unbounded to attach to")),
        (Figure::WindowsCut, known(windows, "the kernel has no page_cache_ra_unbounded to attach to")),
        (Figure::Refaulted, refaults),
    ]
}

/// Where no function can be attached: told from tracepoints and each thread's own count of faults.
fn tracepoints(seen: bool, voluntary: bool) -> Vec<(Figure, Certainty)> {
    let functions = "needs hooks on functions, which this kernel refuses";
    let unknown = |why: &str| Certainty::Unknown(why.into());
    let faults = match seen {
        true if voluntary => Certainty::Bounded(FAULTS.into()),
        true => Certainty::Bounded(format!(
            "{FAULTS}; BTF tracepoints can lose events on preemptible kernels; LOST says how many"
        )),
        false => unknown(functions),
    };
    vec![
        (Figure::FaultMisses, faults.clone()),
        (Figure::FaultHits, faults),
        (
            Figure::FaultAround,
            unknown(
                "tracepoints tell where pages are mapped around a fault, but not how many; functions are refused",
            ),
        ),
        (Figure::Windows, unknown(functions)),
        (Figure::WindowsCut, unknown(functions)),
        (Figure::Refaulted, Certainty::Bounded(REFAULTS.into())),
    ]
}

const UNASKED: &str = "counted only when asked for (--columns fault_around, --json)";
const NOTHING: &str = "nothing tells how many pages are mapped around a fault here";
const FAULTS: &str = "two threads that miss one page at the same instant count as one miss and one hit; a fault that \
                      fails may count as a hit; stores into mappings of tmpfs, what comes back from its swap and \
                      faults served by huge pages are not seen";
const REFAULTS: &str = "the kernel's own count (workingset_refault_file): each CPU hands in up to 125 pages late, \
                        within a second or two; of the system only, not of a process";
