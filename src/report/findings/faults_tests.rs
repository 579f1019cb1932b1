//! What page faults waited for: data of files, memory that had been swapped out, or neither.
#![allow(clippy::unwrap_used)]

use super::came_tests::came;
use super::came_tests::waited_in_both;
use super::cause_tests::MS;
use super::cause_tests::found;
use super::cause_tests::swapping;
use super::crowd::changed;
use super::tests::idle;
use super::*;
use crate::figures::Figure;
use crate::report::data::FileRow;
use crate::report::machine::ReadLimit;
use crate::report::time::Parts;

#[test]
fn page_faults_that_waited_while_nothing_came_did_not_wait_for_data() {
    // Threads that map, touch and unmap: most of their time for the lock.
    let locked = |change: fn(&mut Run)| {
        changed(idle(), |run| {
            (run.waits.read_ns, run.waits.fault_ns, run.one_thread) = (Some(0), Some(3400 * MS), Some(false));
            change(run);
        })
    };
    let told = |change| find(&[], &[locked(change)]).into_iter().map(|f| (f.id, f.text)).collect::<Vec<_>>();
    let text = |change: fn(&mut Run)| found(&[locked(change)], "waited-in-faults").text;
    assert!(text(|_| {}).contains("for the lock of what is mapped"), "{}", text(|_| {}));
    assert!(!text(|_| {}).contains("changed through a mapping"));
    assert!(!text(|run| run.one_thread = Some(true)).contains("lock"));
    assert!(text(|run| run.figures.set(Figure::Dirtied, Some(9))).contains("changed through a mapping"));
    assert!(told(|_| {}).iter().all(|(id, _)| *id != "waited-for-data"));
    let verdict = crate::report::verdict::verdict(&[locked(|_| {})], None, &[]).text;
    assert!(verdict.contains("waiting in page faults, though next to nothing came"), "{verdict}");
    // Three pages that a disk was asked for explain less than that, four may have been what it waited for.
    let read = |pages: u64| {
        let run = changed(locked(|_| {}), |run| {
            run.figures.set(Figure::FaultMisses, Some(pages));
            run.usage.device_read_bytes = Some(pages * 4096);
        });
        find(&[], &[run]).iter().any(|f| f.id == "waited-for-data")
    };
    assert!(!read(3) && read(4));
    // Holes come from no device; what a server sends is in no account of devices.
    let holes = |run: &mut Run| run.figures.set(Figure::FaultMisses, Some(1600));
    assert!(text(holes).starts_with("It waited in page faults: 3.40 s"));
    let far = |run: &mut Run| {
        run.figures.set(Figure::FaultMisses, Some(1600));
        run.files = vec![FileRow { fs: Some("nfs4".into()), ..Default::default() }];
    };
    assert!(told(far).iter().any(|(id, _)| *id == "waited-for-data"));
    // Nor is a request of a device that a cgroup holds back bounded, nor known which file system it was where none is named.
    let held = |run: &mut Run| {
        run.figures.set(Figure::FaultMisses, Some(2));
        run.read_limits =
            vec![ReadLimit { cgroup: "/a".into(), device: "254:0".into(), bytes: None, requests: Some(1) }];
    };
    assert!(told(held).iter().any(|(id, _)| *id == "waited-for-data"));
    let nameless = |run: &mut Run| {
        run.figures.set(Figure::FaultMisses, Some(2));
        run.files = vec![FileRow { fault_misses: 2, ..Default::default() }];
    };
    assert!(told(nameless).iter().any(|(id, _)| *id == "waited-for-data"));
    // What devices gave, and none of its files got: it may have been waited for (swap that cannot be told, say).
    let besides = |pages: u64| {
        let run = changed(locked(|_| {}), |run| run.usage.device_read_bytes = Some(pages * 4096));
        find(&[], &[run]).iter().any(|f| f.id == "waited-for-data")
    };
    assert!(!besides(256) && besides(257));
    // What is not known is taken for data, as it was.
    let blind = |run: &mut Run| run.figures.set(Figure::FaultMisses, None);
    assert!(told(blind).iter().any(|(id, _)| *id == "waited-for-data"));
}

#[test]
fn what_had_been_swapped_out_is_no_data() {
    let ids = |run: &Run| find(&[], std::slice::from_ref(run)).iter().map(|f| f.id).collect::<Vec<_>>();
    let it = swapping(2200, 16_358);
    let told = found(std::slice::from_ref(&it), "swapped");
    assert!(
        told.text.contains("240.0 ms (24 % of the time)") && told.text.contains("2200 of these"),
        "{told:?}"
    );
    assert!(told.remedy.as_deref().unwrap().contains("memory.max"), "{told:?}");
    assert_eq!(told.evidence["own_at_most_pages"], 16_358);
    assert!(
        !ids(&it).contains(&"waited-for-data") && !ids(&it).contains(&"waited-in-faults"),
        "{:?}",
        ids(&it)
    );
    let verdict = crate::report::verdict::verdict(std::slice::from_ref(&it), None, &[]).text;
    assert!(verdict.contains("24 % waiting for memory that had been swapped out"), "{verdict}");
    // In the table of parts, and in JSON, too; and of two runs the one that swapped is slower for that.
    let parts = Parts::divide(&it);
    assert_eq!((parts.data_s, parts.faults_s), (Some(0.0), Some(0.24)));
    let roomy = changed(swapping(0, 0), |run| {
        (run.number, run.wall_s, run.waits.fault_ns, run.usage.major_faults) = (2, 0.76, Some(0), Some(0));
    });
    let both = crate::report::verdict::verdict(&[it.clone(), roomy], None, &[]);
    let cause = both.causes.iter().find(|c| c.id == "faults").unwrap();
    assert!((cause.share.unwrap() - 1.0).abs() < 0.01, "{both:?}");
    assert!(both.text.contains("waiting for memory that had been swapped out"), "{both:?}");
    // A saved run does not say what its faults waited for: beside it nor does another one.
    let then = changed(it.clone(), |run| (run.saved, run.machine) = (true, Default::default()));
    let (a, b) = Parts::of_both(&then, &it);
    assert_eq!((a.data_s, a.faults_s, b.data_s, b.faults_s), (Some(0.24), Some(0.0), Some(0.24), Some(0.0)));
    // It worked most of the time, and no file came in.
    let bound = |swapped_in| {
        let run = changed(swapping(2200, swapped_in), |run| run.waits.fault_ns = Some(60 * MS));
        let all = ids(&changed(run, |run| run.usage.user_s = Some(0.7)));
        (all.contains(&"cpu-bound"), all.contains(&"swapped"))
    };
    assert_eq!((bound(16_358), bound(0)), ((false, true), (true, false)));
    // Major faults of files only, and others that swap meanwhile.
    let files = changed(swapping(2200, 16_358), |run| run.figures.set(Figure::FaultMisses, Some(2200)));
    assert!(
        ids(&files).contains(&"waited-for-data") && !ids(&files).contains(&"swapped"),
        "{:?}",
        ids(&files)
    );
    // Stores to files count as major faults before 6.0: nothing came back, or not for this one.
    let stores = changed(swapping(2200, 0), |run| run.figures.set(Figure::FaultMisses, Some(900)));
    assert!(!ids(&stores).contains(&"swapped"));
    let beside = changed(swapping(2200, 16_358), |run| {
        run.figures.set(Figure::FaultMisses, Some(900));
        run.figures.set(Figure::Fills, Some(16_358 - 900));
    });
    assert!(ids(&beside).contains(&"waited-for-data") && !ids(&beside).contains(&"swapped"));
    // A few reads here and there, and then it swapped: no requests at a time would have helped.
    let after = |read| {
        changed(swapping(1869, 2226), |run| {
            (run.waits.read_ns, run.waits.fault_ns) = (Some(read * MS), Some(700 * MS));
            (run.usage.user_s, run.usage.system_s) = (Some(0.0), Some(0.05));
            run.usage.device_read_bytes = Some((2226 + 297) * 4096);
            for figure in [Figure::Misses, Figure::Fills, Figure::ReadMissedCalls] {
                run.figures.set(figure, Some(297));
            }
        })
    };
    assert!(!ids(&after(90)).contains(&"waited-for-data"), "{:?}", ids(&after(90)));
    let both = found(&[after(210)], "waited-for-data");
    assert!(both.text.contains("210.0 ms") && both.text.contains("1.2 MiB came from devices"), "{both:?}");
    assert_eq!(came(&both).as_deref(), Some("random"));
}

#[test]
fn reads_here_and_there_are_not_to_blame_where_page_faults_waited_longer() {
    let both = |read, fault| waited_in_both(read, fault, 300, 0);
    assert_eq!(came(&both(200, 200)).as_deref(), Some("random"));
    assert_eq!(came(&both(200, 201)), None);
}
