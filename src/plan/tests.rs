//! Plans with one capability taken away at a time.

#![allow(clippy::unwrap_used)]

mod faults;
mod metadata;
mod writes;

use std::collections::BTreeSet;

use super::*;
use crate::facts;
use crate::facts::FUNCTIONS;
use crate::facts::Preemption;
use crate::facts::TRACEPOINTS;

const NOT_THERE: &[&str] =
    &["generic_file_buffered_read", "__getblk_gfp", "__blkdev_direct_IO_async", "__blkdev_direct_IO"];

/// A kernel that can do everything and is not preemptible (6.12 as Debian builds it).
fn able() -> Facts {
    let btf: BTreeSet<String> = FUNCTIONS
        .iter()
        .filter(|f| !NOT_THERE.contains(f))
        .map(|f| (*f).to_owned())
        .chain(TRACEPOINTS.iter().filter(|t| **t != "writeback_dirty_page").map(|t| format!("tp:{t}")))
        .collect();
    facts::fixtures::able(btf)
}

fn new(facts: &Facts) -> Result<Plan, NoPlan> {
    Plan::new(facts, Wants::default())
}

/// A preemptible kernel with fgraph (7.2).
fn lazy() -> Facts {
    Facts {
        preemption: Preemption::Preemptible,
        return_probes_keep: true,
        vmemmap: Ok(0xffff_ffff_8000_0000),
        ..able()
    }
}

/// A kernel that lets nobody attach to functions (tracepoints only).
fn tracepoints() -> Facts {
    let no = || Err("EOPNOTSUPP".into());
    Facts { trampoline: Err("EPERM".into()), kprobe_multi: no(), kprobe_session: no(), ..able() }
}

/// A kernel of pages, without atomic fetch instructions (5.10).
fn old() -> Facts {
    let mut facts = able();
    facts.fetch_atomics = false;
    facts.kprobe_multi = Err("EINVAL".into());
    facts.kprobe_session = Err("EINVAL".into());
    for gone in ["filemap_read", "filemap_splice_read", "page_cache_ra_order", "__folio_mark_dirty"] {
        facts.btf.remove(gone);
    }
    for gone in ["mm_filemap_get_pages", "mm_filemap_fault", "mm_filemap_map_pages", "writeback_dirty_folio"]
    {
        facts.btf.remove(&format!("tp:{gone}"));
    }
    facts.btf.insert("page_cache_sync_ra/3".into());
    facts.btf.remove("bdev_getblk");
    facts.btf.insert("__getblk_gfp".into());
    facts.btf.insert("generic_file_buffered_read".into());
    facts.btf.insert("tp:writeback_dirty_page".into());
    facts
}

fn at<'a>(plan: &'a Plan, program: &str) -> &'a Attach {
    &plan.hooks.iter().find(|h| h.program == program).unwrap().attach
}

/// Exact, or as good as a preemptible kernel allows.
fn sound(plan: &Plan, figure: Figure) -> bool {
    match plan.certainty(figure) {
        Certainty::Exact => true,
        Certainty::Bounded(why) => why.contains("preempted"),
        Certainty::Unknown(_) => false,
    }
}

fn lossy(plan: &Plan) -> Vec<&'static str> {
    plan.hooks.iter().filter(|h| h.why == Why::Lossy).map(|h| h.program).collect()
}

#[test]
fn a_quiet_kernel_gets_trampolines() {
    let plan = new(&able()).unwrap();
    assert_eq!(plan.brackets, Brackets::Trampolines);
    assert!(plan.uses("read_counts_fexit") && plan.uses("sync_fentry") && plan.uses("add_btf"));
    assert_eq!(plan.certainty(Figure::Misses), Certainty::Exact);
    assert_eq!(lossy(&plan), Vec::<&str>::new());
    // The clock costs a hook more: only where somebody looks at it.
    assert!(!plan.uses("read_fentry") && !plan.knows(Figure::StallNs));
    let timed = Plan::new(&able(), Wants { latency: true, ..Wants::default() }).unwrap();
    assert!(timed.uses("read_fentry") && timed.uses("read_fexit") && !timed.uses("read_counts_fexit"));
    assert_eq!(timed.certainty(Figure::StallNs), Certainty::Exact);
}

#[test]
fn who_evicts_is_asked_beside_what_counts() {
    for facts in [able(), lazy()] {
        let without = new(&facts).unwrap();
        let with = Plan::new(&facts, Wants { blame: true, bill: true, ..Wants::default() }).unwrap();
        assert_eq!(lossy(&with), Vec::<&str>::new());
        assert!(
            [Event::PageBack, Event::RefaultOf, Event::WaitOf, Event::MemoryTaken, Event::KswapdWoken]
                .iter()
                .all(|e| with.sees(*e))
        );
        let others: Vec<_> =
            with.hooks.iter().filter(|h| !h.program.starts_with("blame_")).cloned().collect();
        assert_eq!(others, without.hooks);
        assert_eq!(with.figures, without.figures);
    }
}

#[test]
fn a_preemptible_kernel_gets_what_loses_nothing_there() {
    let plan = new(&lazy()).unwrap();
    assert_eq!(plan.brackets, Brackets::Sessions);
    assert_eq!(lossy(&plan), Vec::<&str>::new());
    // These are run with softirqs off, and under spinlocks.
    let held: Vec<_> =
        plan.hooks.iter().filter(|h| matches!(h.why, Why::QuietLock | Why::QuietFree)).collect();
    assert_eq!(held.iter().map(|h| h.program).collect::<Vec<_>>(), ["delete_btf", "dirty_btf", "gone_btf"]);
    for hook in plan.hooks.iter().filter(|h| !held.contains(h)) {
        assert!(
            matches!(
                hook.attach,
                Attach::Session(..) | Attach::Multi(_, false) | Attach::Tracepoint(..) | Attach::Tick
            ),
            "{} loses events on preemptible kernels",
            hook.program
        );
    }
    // Not by these hooks, but by what others do to tables of BPF.
    let Certainty::Bounded(why) = plan.certainty(Figure::Accesses) else { panic!() };
    assert!(why.contains("preempted"), "{why}");
}

/// Spinlocks of PREEMPT_RT sleep: what would lose nothing under one elsewhere is not taken there, or says what it loses.
#[test]
fn on_a_realtime_kernel_no_spinlock_keeps_a_program_running() {
    let around = Wants { around: true, ..Wants::default() };
    let quiet = Plan::new(&lazy(), around).unwrap();
    assert!(quiet.uses("mapped_fentry"));
    assert_eq!(lossy(&quiet), Vec::<&str>::new());
    let plan = Plan::new(&Facts { realtime: true, ..lazy() }, around).unwrap();
    for program in ["delete_tp", "dirty_multi", "mapped_multi"] {
        assert!(plan.uses(program), "{program} loses nothing there");
    }
    assert_eq!(lossy(&plan), ["gone_btf"]);
    let without = Facts { realtime: true, vmemmap: Err("hidden".into()), ..lazy() };
    let plan = Plan::new(&without, around).unwrap();
    assert!(lossy(&plan).contains(&"delete_btf"));
    assert!(matches!(plan.certainty(Figure::Evicted), Certainty::Bounded(_)));
}

#[test]
fn an_unknown_preemption_model_is_taken_as_preemptible() {
    let unknown = new(&Facts { preemption: Preemption::Unknown, ..lazy() }).unwrap();
    assert_eq!(unknown, new(&lazy()).unwrap());
}

#[test]
fn return_probes_that_lose_are_not_used() {
    // kprobe.multi returns stand on rethook before fgraph, and lose calls that sleep.
    let plan = new(&Facts { return_probes_keep: false, ..lazy() }).unwrap();
    assert_eq!(plan.brackets, Brackets::LossyTrampolines);
    assert!(matches!(plan.certainty(Figure::Misses), Certainty::Bounded(_)));
    assert!(!lossy(&plan).is_empty());
}

#[test]
fn without_functions_requests_come_from_tracepoints() {
    let plan = new(&tracepoints()).unwrap();
    assert_eq!(plan.brackets, Brackets::Tracepoints);
    assert!(plan.uses("get_pages_btf") && plan.uses("settle_pending") && plan.uses("add_in_call_btf"));
    assert!(!plan.uses("add_btf"));
    assert!(matches!(plan.certainty(Figure::Misses), Certainty::Bounded(_)));
    assert_eq!(plan.certainty(Figure::Dirtied), Certainty::Exact);
}

#[test]
fn without_functions_and_get_pages_there_is_no_plan() {
    let mut facts = tracepoints();
    facts.btf.remove("tp:mm_filemap_get_pages");
    let error = new(&facts).unwrap_err();
    assert!(error.reason.contains("EPERM") && error.reason.contains("mm_filemap_get_pages"), "{error}");
    assert!(error.remedy.contains("CONFIG_KPROBES"));
    // Hooks would attach, and never be called.
    facts.trampoline = Err(crate::facts::SWITCHED_OFF.into());
    let error = new(&facts).unwrap_err();
    assert!(error.reason.contains("ftrace_enabled") && error.remedy.contains("ftrace_enabled=1"), "{error}");
}

#[test]
fn an_old_kernel_gets_the_programs_it_can_load() {
    let plan = new(&old()).unwrap();
    assert_eq!(plan.brackets, Brackets::Trampolines);
    assert_eq!(at(&plan, "read_fexit_pages"), &Attach::Trampoline("generic_file_buffered_read".into()));
    assert_eq!(at(&plan, "dirty_btf_pages"), &Attach::TracepointBtf("writeback_dirty_page".into()));
    for program in ["read_fexit", "add_btf", "delete_btf", "dirty_btf", "splice_fexit", "sync_fentry"] {
        assert!(!plan.uses(program), "{program} does not load there");
    }
    assert!(plan.uses("sync_old_fentry") && plan.uses("async_old_fentry"));
    assert_eq!(plan.certainty(Figure::ReadAheadHits), Certainty::Exact);
}

#[test]
fn without_the_hooks_that_name_a_read_misses_are_not_guessed() {
    for gone in ["page_cache_sync_ra", "page_cache_async_ra"] {
        for mut facts in [able(), lazy()] {
            facts.btf.remove(gone);
            assert_eq!(new(&facts).unwrap().brackets, Brackets::Tracepoints, "{gone}");
            facts.btf.remove("tp:mm_filemap_get_pages");
            assert!(new(&facts).is_err(), "{gone}");
        }
    }
}

#[test]
fn what_is_pushed_is_popped() {
    for refused in [
        "fault_fexit",
        "map_pages_fexit",
        "window_fexit",
        "shmem_fexit",
        "shmem_splice_fexit",
        "write_fexit",
        "iomap_write_fexit",
        "btrfs_write_fexit",
        "device_fexit",
    ] {
        let mut facts = able();
        facts.refused.push((refused.into(), "EBUSY".into()));
        let entry = refused.replace("fexit", "fentry");
        assert!(!new(&facts).unwrap().uses(&entry), "{entry} without {refused}");
    }
}

/// A row that was not ended is another thread's otherwise.
#[test]
fn whoever_begins_has_no_row() {
    for (facts, program) in
        [(able(), Some("born_btf")), (tracepoints(), Some("born_in_call_btf")), (lazy(), None)]
    {
        let plan = new(&facts).unwrap();
        let born = plan.hooks.iter().map(|h| h.program).find(|p| p.starts_with("born_"));
        assert_eq!(born, program.filter(|_| facts.voluntary()));
        let gone = plan.hooks.iter().map(|h| h.program).find(|p| p.starts_with("gone_"));
        assert_eq!(gone, Some(if plan.uses("get_pages_btf") { "gone_in_call_btf" } else { "gone_btf" }));
    }
    let mut facts = able();
    facts.btf.remove("set_pte_range");
    // Nothing would tell, asked or not.
    let Certainty::Unknown(why) = new(&facts).unwrap().certainty(Figure::FaultAround) else {
        panic!("known")
    };
    assert!(!why.contains("asked"), "{why}");
}

#[test]
fn each_missing_function_costs_its_own_hooks_only() {
    let needed = ["filemap_read", "generic_file_buffered_read", "page_cache_sync_ra", "page_cache_async_ra"];
    for name in FUNCTIONS.iter().filter(|f| !needed.contains(*f)) {
        for full in [able(), lazy()] {
            let all = new(&full).unwrap().hooks.len();
            let mut facts = full;
            facts.btf.remove(*name);
            let plan = new(&facts).unwrap();
            // Pages mapped are of interest around a fault only.
            let most = match *name {
                "filemap_map_pages" => 4,
                // The steps through a tree are seen whole or not at all.
                n if crate::facts::OF_BTRFS.contains(&n) => 5,
                _ => 2,
            };
            assert!(all - plan.hooks.len() <= most, "{name}");
            assert!(plan.knows(Figure::WriteMisses) || *name == "generic_perform_write", "{name}");
            let names = |h: &Hook| match &h.attach {
                Attach::Trampoline(f) => f == name,
                Attach::Multi(fs, _) | Attach::Session(fs) => fs.iter().any(|f| f == name),
                _ => false,
            };
            assert!(!plan.hooks.iter().any(names), "{name} is still attached");
            assert!(sound(&plan, Figure::Hits), "{name}");
        }
    }
}

#[test]
fn each_missing_tracepoint_makes_its_figure_unknown_or_stops() {
    for (name, figure) in
        [("block_dirty_buffer", Some(Figure::BufferDirtied)), ("mm_filemap_delete_from_page_cache", None)]
    {
        let mut facts = able();
        facts.btf.remove(&format!("tp:{name}"));
        match figure {
            Some(figure) => {
                let plan = Plan::new(&facts, Wants { buffers: true, ..Wants::default() }).unwrap();
                assert!(matches!(plan.certainty(figure), Certainty::Unknown(_)));
                assert!(!plan.knows(figure));
            }
            None => assert!(!new(&facts).unwrap_err().remedy.is_empty()),
        }
    }
    let mut facts = able();
    facts.btf.remove("tp:mm_filemap_add_to_page_cache");
    assert!(new(&facts).unwrap_err().remedy.contains("CONFIG_DEBUG_INFO_BTF"));
    let mut facts = able();
    facts.btf.remove("tp:writeback_dirty_folio");
    assert!(new(&facts).unwrap().uses("dirty_multi"), "the function serves where the tracepoint is gone");
    facts.kprobe_multi = Err("EINVAL".into());
    assert!(!new(&facts).unwrap().knows(Figure::Dirtied));
}

#[test]
fn without_tracefs_or_page_addresses_btf_tracepoints_step_in_and_say_so() {
    for facts in
        [Facts { tracefs: Err("no".into()), ..lazy() }, Facts { vmemmap: Err("hidden".into()), ..lazy() }]
    {
        let plan = new(&facts).unwrap();
        assert!(plan.uses("add_btf") && plan.uses("delete_btf"));
        assert!(lossy(&plan).contains(&"add_btf"));
        // Pages that are added unseen make misses look like hits: no exactness is claimed.
        assert!(matches!(plan.certainty(Figure::Misses), Certainty::Bounded(_)));
    }
}

#[test]
fn a_hook_that_refuses_is_not_planned_again() {
    let programs = |facts: &Facts| -> Vec<&'static str> {
        new(facts).map(|p| p.hooks.iter().map(|h| h.program).collect()).unwrap_or_default()
    };
    for full in [able(), lazy(), tracepoints(), old()] {
        // What runs at the tick is not attached, so nothing can refuse it.
        for program in programs(&full).into_iter().filter(|p| !["settle_pending", "look_plain"].contains(p)) {
            let mut facts = full.clone();
            facts.refused.push((program.into(), "EBUSY".into()));
            assert!(!programs(&facts).contains(&program), "{program} is planned again");
        }
    }
}

#[test]
fn the_explanation_names_hooks_and_reasons() {
    let facts = Facts { refused: vec![("window_session".into(), "EBUSY".into())], ..lazy() };
    let text = new(&facts).unwrap().explain(&facts);
    for needle in
        ["kprobe.session filemap_read", "tracepoint filemap:mm_filemap_add", "EBUSY", "loses nothing"]
    {
        assert!(text.contains(needle), "{needle} is missing in\n{text}");
    }
    for figure in Figure::ALL {
        assert!(text.contains(figure.name()));
    }
    // What the report of a command sends people here for.
    let part = |text: &str| text.split_once("The report of a command").unwrap().1.to_owned();
    assert!(part(&text).contains("known\n    look-ups (lookups.dcache_misses)\n"), "{text}");
    let no = || Err("EOPNOTSUPP".to_owned());
    let refuses = Facts { trampoline: no(), kprobe_multi: no(), kprobe_session: no(), ..lazy() };
    let text = part(&new(&refuses).unwrap().explain(&refuses));
    let looked_up = "  unknown\n    look-ups (lookups.dcache_misses)\n    because: needs hooks on functions";
    assert!(text.contains(looked_up), "{text}");
}

/// Whoever reads what a figure is worth finds what it is counted by.
#[test]
fn every_figure_that_is_known_has_its_hooks() {
    let all =
        Wants { latency: true, files: true, around: true, buffers: true, follow: true, ..Wants::default() };
    let no = || Err("EOPNOTSUPP".to_owned());
    let refuses = Facts { trampoline: no(), kprobe_multi: no(), kprobe_session: no(), ..lazy() };
    for facts in [able(), lazy(), tracepoints(), old(), refuses] {
        for wants in [Wants::default(), all] {
            let plan = Plan::new(&facts, wants).unwrap();
            let told = plan.told(&facts);
            let events: Vec<_> = told.hooks.iter().map(|h| h.event).collect();
            for (figure, told) in Figure::ALL.iter().zip(&told.figures) {
                let ours = plan.knows(*figure) && !plan.takes_over(*figure);
                assert_eq!(!told.hooks.is_empty(), ours, "{told:?}");
                assert!(told.hooks.iter().all(|h| events.contains(h)), "{told:?}");
                assert_eq!(told.worth == "exact", told.because.is_none(), "{told:?}");
            }
            let text = plan.explain(&facts);
            let wide: Vec<_> = text.lines().filter(|l| l.contains("by:") && l.chars().count() > 79).collect();
            assert!(wide.is_empty(), "{wide:?}");
        }
    }
    // What a figure is counted by is none of what tells whose it is, or what only the report of a command has.
    let text = new(&lazy()).unwrap().explain(&lazy());
    assert!(text.contains("    cache.evicted, cache.removed\n      by: page deleted\n"), "{text}");
}

#[test]
fn every_event_has_candidates() {
    let parts = || candidates::ROWS.iter().flat_map(|row| row.iter().flat_map(|c| c.parts));
    for event in Event::ALL {
        assert!(parts().any(|p| p.event == *event), "{event:?}");
    }
    // A program serves one event, but for what is looked at in one pass at the tick.
    for (a, b) in parts().flat_map(|a| parts().map(move |b| (a, b))) {
        let at_tick = matches!(a.on, candidates::On::Tick);
        assert!(at_tick || a.program != b.program || a.event == b.event, "{}", a.program);
    }
}

/// Nothing is attached to what nobody looks for in the kernel's BTF.
#[test]
fn all_that_programs_attach_to_is_looked_for() {
    let known = |name: &&str| FUNCTIONS.contains(name) || crate::facts::OF_BTRFS.contains(name);
    for part in candidates::ROWS.iter().flat_map(|row| row.iter().flat_map(|c| c.parts)) {
        let missing: Vec<&str> = match part.on {
            candidates::On::Trampoline(name) | candidates::On::Kprobe(name) => vec![name],
            candidates::On::Session(names) | candidates::On::Entry(names) => names.to_vec(),
            candidates::On::Btf(name) | candidates::On::Classic(_, name) => {
                assert!(crate::facts::TRACEPOINTS.contains(&name), "{name} of {}", part.program);
                Vec::new()
            }
            candidates::On::Tick => Vec::new(),
        };
        let missing: Vec<&str> = missing.into_iter().filter(|name| !known(name)).collect();
        assert!(missing.is_empty(), "{missing:?} of {}", part.program);
    }
}

/// What is remembered of plain requests and of threads that are followed lies in the same place of a row (bpf/wire.h).
#[test]
fn no_request_is_plain_where_somebody_is_followed() {
    let mut facts = lazy();
    facts.btf.extend(["bpf_session_is_return/1", "fixup_exception"].map(String::from));
    let plain = |wants| Plan::new(&facts, wants).unwrap().hooks.iter().any(|h| h.program.contains("_plain_"));
    for files in [false, true] {
        let wants = Wants { files, ..Wants::default() };
        assert!(plain(wants));
        assert!(!plain(Wants { follow: true, ..wants }));
        assert!(!plain(Wants { latency: true, ..wants }));
    }
}
