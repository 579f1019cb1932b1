//! What is known of page faults.

use super::*;

#[test]
fn faults_are_counted_by_what_the_kernel_has() {
    let faults = [Figure::FaultMisses, Figure::FaultHits, Figure::FaultAround, Figure::Refaulted];
    let new = |facts: &Facts| Plan::new(facts, Wants { around: true, ..Wants::default() });
    for facts in [able(), lazy()] {
        let plan = new(&facts).unwrap();
        assert!(faults.iter().all(|f| sound(&plan, *f)));
        assert!(sound(&plan, Figure::WindowsCut));
        for (gone, figure) in [
            ("filemap_fault", Figure::FaultMisses),
            ("filemap_map_pages", Figure::FaultHits),
            ("set_pte_range", Figure::FaultAround),
            ("workingset_refault", Figure::Refaulted),
            ("page_cache_ra_unbounded", Figure::Windows),
        ] {
            let mut facts = facts.clone();
            facts.btf.remove(gone);
            assert!(!new(&facts).unwrap().knows(figure), "{figure:?} without {gone}");
        }
        let mut facts = facts.clone();
        facts.btf.remove("do_set_pmd");
        assert!(matches!(new(&facts).unwrap().certainty(Figure::FaultAround), Certainty::Bounded(_)));
    }
    // The function of 5.10 returns nothing; pages mapped are in the thread's own count there.
    let mut facts = old();
    facts.btf.remove("set_pte_range");
    assert!(!new(&facts).unwrap().knows(Figure::FaultAround));
    facts.btf.insert("struct:task_rss_stat".into());
    let plan = new(&facts).unwrap();
    assert!(plan.uses("map_pages_old_fexit") && !plan.uses("map_pages_fexit"));
    assert_eq!(plan.certainty(Figure::FaultHits), Certainty::Exact);
    assert!(plan.knows(Figure::FaultAround));
}

/// An event for each page that is mapped is not paid for by who does not look at it.
#[test]
fn pages_mapped_around_are_counted_only_when_asked_for() {
    for facts in [able(), lazy()] {
        let plan = new(&facts).unwrap();
        assert!(
            !plan.hooks.iter().any(|h| h.program.starts_with("mapped_") || h.program == "map_pages_fentry")
        );
        let Certainty::Unknown(why) = plan.certainty(Figure::FaultAround) else { panic!("known unasked") };
        assert!(why.contains("--columns fault_around"), "{why}");
        assert!(sound(&plan, Figure::FaultHits) && sound(&plan, Figure::FaultMisses));
    }
    // Where each thread counts for itself, it costs one event for each fault.
    let mut facts = able();
    facts.btf.remove("set_pte_range");
    facts.btf.insert("struct:task_rss_stat".into());
    assert!(!new(&facts).unwrap().knows(Figure::FaultAround));
    let plan = Plan::new(&facts, Wants { around: true, ..Wants::default() }).unwrap();
    assert!(plan.knows(Figure::FaultAround) && plan.uses("map_pages_fentry"));
}

#[test]
fn faults_can_be_told_from_tracepoints() {
    let plan = new(&tracepoints()).unwrap();
    assert!(matches!(plan.certainty(Figure::FaultMisses), Certainty::Bounded(_)));
    assert!(matches!(plan.certainty(Figure::FaultHits), Certainty::Bounded(_)));
    assert!(matches!(plan.certainty(Figure::Refaulted), Certainty::Bounded(_)));
    assert!(!plan.knows(Figure::FaultAround) && !plan.knows(Figure::Windows));
    let mut facts = tracepoints();
    facts.btf.remove("tp:mm_filemap_map_pages");
    assert!(!new(&facts).unwrap().knows(Figure::FaultHits));
}

#[test]
fn what_maps_pages_is_not_hooked_where_nobody_asks() {
    for mut facts in [able(), lazy()] {
        facts.btf.remove("filemap_map_pages");
        let plan = Plan::new(&facts, Wants { around: true, ..Wants::default() }).unwrap();
        assert!(!plan.hooks.iter().any(|h| h.program.starts_with("mapped_")));
    }
}

/// What comes next where a page is not there must be seen, else all faults would be hits; and each page that is used is told
/// at once where that is asked for.
#[test]
fn faults_without_a_hook_at_their_end_need_the_next_step() {
    let uses = |facts: &Facts, wants| Plan::new(facts, wants).unwrap().uses("map_pages_multi");
    for wants in [Wants::default(), Wants { follow: true, files: true, around: true, ..Wants::default() }] {
        assert!(uses(&lazy(), wants) && !uses(&able(), wants));
        for next in ["fault_session", "shmem_fault_session"] {
            let mut facts = lazy();
            facts.refused.push((next.into(), "EBUSY".into()));
            assert!(!uses(&facts, wants), "without {next}");
            assert!(Plan::new(&facts, wants).unwrap().uses("map_pages_session"));
        }
        for next in ["filemap_fault", "shmem_fault"] {
            let mut facts = lazy();
            facts.btf.remove(next);
            assert!(!uses(&facts, wants), "without {next}");
        }
    }
    assert!(!uses(&lazy(), Wants { touches: true, ..Wants::default() }));
    let sketches = Some(crate::plan::SketchBy::Nobody);
    assert!(!uses(&lazy(), Wants { sketches, ..Wants::default() }));
}
