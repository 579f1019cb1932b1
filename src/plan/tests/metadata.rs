//! What is known of metadata.

use super::*;

#[test]
fn metadata_is_counted_where_look_ups_and_read_ahead_can_be_told_apart() {
    let bounded = |facts: &Facts, program: &str| {
        let plan = new(facts).unwrap();
        assert!(plan.uses(program), "{program}");
        match plan.certainty(Figure::MetaMisses) {
            Certainty::Bounded(why) => why,
            other => panic!("{program}: {other:?}"),
        }
    };
    for (facts, program) in [(able(), "block_fexit"), (lazy(), "block_session")] {
        let why = bounded(&facts, program);
        assert!(
            why.contains("xfs keeps")
                && why.contains("the root of a tree")
                && !why.contains("mounting")
                && !why.contains("lose"),
            "{why}"
        );
    }
    assert!(bounded(&old(), "block_old_fexit_pages").contains("mounting"));
    assert!(bounded(&Facts { return_probes_keep: false, ..lazy() }, "block_fexit").contains("lose events"));
    for mut facts in [old(), Facts { fetch_atomics: true, ..old() }] {
        facts.refused.push(("breadahead_fentry".into(), "EBUSY".into()));
        assert!(!new(&facts).unwrap().knows(Figure::MetaAccesses), "read-ahead would count as access");
    }
    let mut facts = old();
    facts.btf.remove("__breadahead");
    assert!(!new(&facts).unwrap().knows(Figure::MetaHits));
    match new(&tracepoints()).unwrap().certainty(Figure::MetaAccesses) {
        Certainty::Unknown(why) => assert!(why.contains("functions"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn trees_of_btrfs_are_walked_in_sight_or_said_to_be_out_of_it() {
    let why = |facts: &Facts| match new(facts).unwrap().certainty(Figure::MetaHits) {
        Certainty::Bounded(why) => why,
        other => panic!("{other:?}"),
    };
    let mut facts = able();
    assert!(new(&facts).unwrap().uses("tree_read_fentry") && new(&facts).unwrap().uses("tree_ahead_fentry"));
    facts.btf.remove(crate::facts::BTRFS_READ_NOWAIT);
    assert!(new(&facts).unwrap().uses("tree_read_old_fentry"));
    facts.refused.push(("tree_alloc_fexit".into(), "EBUSY".into()));
    assert!(!new(&facts).unwrap().uses("tree_found_fexit"), "each step would count twice");
    assert!(why(&facts).contains("was not loaded"));
    facts.btf.insert("module:btrfs".into());
    assert!(why(&facts).contains("are not seen"));
    assert!(new(&lazy()).unwrap().uses("tree_found_session"));
    assert!(!new(&old()).unwrap().uses("tree_found_fexit"));
}
