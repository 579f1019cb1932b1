//! What is known of writes, and of requests past the cache.

use super::*;

#[test]
fn writes_are_exact_where_all_their_loops_are_seen() {
    for mut facts in [able(), lazy(), old()] {
        for figure in [Figure::WriteHits, Figure::WriteMisses, Figure::DirectFellBack] {
            assert!(sound(&new(&facts).unwrap(), figure), "{figure:?}");
        }
        facts.btf.remove(crate::facts::BTRFS_WRITE);
        let Certainty::Bounded(why) = new(&facts).unwrap().certainty(Figure::WriteMisses) else { panic!() };
        assert!(why.contains("btrfs was not loaded"), "{why}");
        facts.btf.insert("module:btrfs".into());
        let Certainty::Bounded(why) = new(&facts).unwrap().certainty(Figure::WriteMisses) else { panic!() };
        assert!(why.contains("writes of btrfs are not seen"), "{why}");
        facts.btf.insert("module:fuse".into());
        let Certainty::Bounded(why) = new(&facts).unwrap().certainty(Figure::WriteMisses) else { panic!() };
        assert!(why.contains("fuse may write"), "{why}");
    }
    assert!(!new(&tracepoints()).unwrap().knows(Figure::WriteHits));
}

/// A program at each block that is written: only where somebody looks at its figure.
#[test]
fn buffers_are_counted_where_they_are_shown() {
    let buffers = Wants { buffers: true, ..Wants::default() };
    for (facts, program) in [(able(), "buffer_btf"), (lazy(), "buffer_tp"), (old(), "buffer_btf")] {
        let plan = new(&facts).unwrap();
        assert!(!plan.uses("buffer_btf") && !plan.uses("buffer_tp"));
        let Certainty::Unknown(why) = plan.certainty(Figure::BufferDirtied) else { panic!() };
        assert!(why.contains("requested"), "{why}");
        assert!(sound(&plan, Figure::Dirtied), "pages are known without");
        let plan = Plan::new(&facts, buffers).unwrap();
        assert!(plan.uses(program));
        assert_eq!(plan.certainty(Figure::BufferDirtied), Certainty::Exact);
    }
    let mut facts = able();
    facts.btf.remove("tp:block_dirty_buffer");
    let Certainty::Unknown(why) = new(&facts).unwrap().certainty(Figure::BufferDirtied) else { panic!() };
    assert!(why.contains("not there"), "{why}");
}

#[test]
fn writes_get_the_programs_of_their_arguments() {
    let with = |what: &str| {
        let mut facts = able();
        facts.btf.insert(what.into());
        new(&facts).unwrap()
    };
    assert!(with("iomap_file_buffered_write/3").uses("iomap_write_fexit"));
    let before_fetch = Facts { fetch_atomics: false, ..old() };
    assert!(new(&before_fetch).unwrap().uses("iomap_write_fexit_pages"));
    assert!(with("iomap_file_buffered_write/4").uses("iomap_write_fexit4"));
    assert!(with("iomap_file_buffered_write/5").uses("iomap_write_fexit5"));
    let old = with("generic_perform_write/3");
    assert!(old.uses("write_old_fexit") && old.uses("write_old_fentry") && !old.uses("write_fexit"));
    assert!(with("shmem_add_to_page_cache/5").uses("shmem_add_fexit"));
    assert!(with("shmem_add_to_page_cache/6").uses("shmem_add_old_fexit"));
}

#[test]
fn direct_requests_are_whose_submission_was_seen() {
    let plan = new(&able()).unwrap();
    assert_eq!(at(&plan, "direct_kprobe"), &Attach::Kprobe("__iomap_dio_rw".into()));
    let mut facts = able();
    facts.refused.push(("direct_kprobe".into(), "ENOENT".into()));
    let Certainty::Bounded(why) = new(&facts).unwrap().certainty(Figure::DirectReadBytes) else { panic!() };
    assert!(why.contains("totals only"), "{why}");
    let only = new(&tracepoints()).unwrap();
    assert!(only.uses("direct_btf") && only.uses("direct_done_btf") && only.knows(Figure::DirectReadBytes));
    assert!(only.uses("direct_queued_btf"));
    for event in ["iomap_dio_rw_begin", "iomap_dio_rw_queued", "iomap_dio_complete"] {
        let mut facts = tracepoints();
        facts.btf.remove(&format!("tp:{event}"));
        let none = new(&facts).unwrap();
        assert!(!none.uses("direct_btf") && !none.knows(Figure::DirectReadBytes), "{event}");
    }
}

#[test]
fn direct_requests_of_devices_where_the_function_is_split() {
    let parts = ["__blkdev_direct_IO_async", "__blkdev_direct_IO"];
    let not_seen = |facts: &Facts| {
        let plan = new(facts).unwrap();
        let devices =
            plan.hooks.iter().any(|h| matches!(h.event, Event::DeviceDirect | Event::DeviceDirectEnded));
        let Certainty::Bounded(why) = plan.certainty(Figure::DirectReadBytes) else { panic!() };
        assert_eq!(devices, !why.contains("of block devices is not seen"), "{why}");
        !devices
    };
    let mut facts = able();
    assert!(new(&facts).unwrap().uses("device_fexit"));
    facts.btf.extend(parts.map(String::from));
    let plan = new(&facts).unwrap();
    for n in ["simple", "async", "many"] {
        assert!(plan.uses(&format!("device_{n}_fexit")) && plan.uses(&format!("device_{n}_fentry")));
    }
    assert!(!plan.uses("device_fexit") && !not_seen(&facts));
    facts.refused.push(("device_many_fexit".into(), "EINVAL".into()));
    assert!(not_seen(&facts));
    facts.refused.clear();
    facts.btf.remove("__blkdev_direct_IO_simple");
    assert!(not_seen(&facts));
    let mut sessions = lazy();
    sessions.btf.extend(parts.map(String::from));
    let Attach::Session(functions) = at(&new(&sessions).unwrap(), "device_session").clone() else { panic!() };
    assert_eq!(functions.len(), 3);
}

/// A figure of which some file system or device has more is no measure of how little there was.
#[test]
fn what_is_at_least_so_much() {
    let least = |facts: &Facts| new(facts).unwrap().at_least;
    let direct = [Figure::DirectReadBytes, Figure::DirectWriteBytes];
    // Block devices, and what has no iomap.
    let by_tracepoints = least(&tracepoints());
    assert!(direct.iter().all(|f| by_tracepoints.contains(f)), "{by_tracepoints:?}");
    // Reads there are bounded by what is off by a page, or by the account of read calls.
    assert!(!by_tracepoints.iter().any(|f| [Figure::Hits, Figure::Misses, Figure::Fills].contains(f)));
    assert!(!by_tracepoints.contains(&Figure::WriteMisses), "that is not known");
    let mut facts = able();
    let with_all = least(&facts);
    assert!(!direct.iter().any(|f| with_all.contains(f)) && !with_all.contains(&Figure::WriteMisses));
    // Btrfs that is not loaded writes nothing.
    facts.btf.remove(crate::facts::BTRFS_WRITE);
    assert!(!least(&facts).contains(&Figure::WriteMisses));
    facts.btf.insert("module:btrfs".into());
    assert!(least(&facts).contains(&Figure::WriteMisses));
    let mut facts = able();
    // A module that is loaded, as fuse is nearly everywhere, reads nothing by itself.
    facts.btf.extend(["module:nfs", "module:fuse"].map(String::from));
    assert_eq!(least(&facts), least(&able()));
    facts.btf.insert("mounted:nfs".into());
    let nfs = least(&facts);
    assert!(direct.iter().all(|f| nfs.contains(f)) && !nfs.contains(&Figure::WriteMisses));
}
