//! Each rule at the size of real trees: 6000 files, of which a report lists fifty. For every rule a run of which it must
//! speak, and the nearest to it of which it must be silent.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::crowd::ALL;
use super::crowd::FILES;
use super::crowd::MS;
use super::crowd::Pair;
use super::crowd::changed;
use super::crowd::cold;
use super::crowd::one;
use super::crowd::set;
use super::crowd::warm;
use super::tests::idle;
use super::*;
use crate::figures::Figure;
use crate::report::asleep::Asleep;
use crate::report::asleep::Hung;
use crate::report::data::FileRow;
use crate::report::data::Lookups;
use crate::report::data::Origin;
use crate::report::data::Pattern;
use crate::report::data::Residency;
use crate::report::data::Warmer;
use crate::sample::Counter;
use crate::sample::Unended;

/// Half of the tree warm, less a page, and the warm files fill the list.
fn half_warm() -> Run {
    let mut run = warm(ALL / 2 - 1);
    set(&mut run, &[(Figure::Hits, ALL / 2 - 1), (Figure::Misses, ALL / 2 + 1)]);
    run.warm_pages = ALL / 2 - 1;
    run
}

/// A file of 40 MiB beside the tree, at the head of the list.
fn beside(run: &mut Run, fs: &str, pattern: Option<Pattern>, pages: u64) {
    let before = pattern.map(|p| Residency { cached: 731, pages: 10_240, pattern: Some(p) });
    let size = Some(40 << 20);
    let (misses, ahead) = (pages / 32, pages - pages / 32);
    let row = FileRow {
        fs: Some(fs.into()),
        size,
        before,
        misses,
        readahead_hits: ahead,
        readahead_pages: ahead,
        read_bytes: 40 << 20,
        ..one(99)
    };
    run.files.insert(0, row);
    let more = |run: &mut Run, figure, n| set(run, &[(figure, run.get(figure).unwrap() + n)]);
    more(run, Figure::Accesses, pages);
    more(run, Figure::Misses, misses);
    more(run, Figure::ReadAheadHits, ahead);
    more(run, Figure::ReadAheadPages, ahead);
}

fn warmed_by_other(fills: u64) -> Run {
    let origin = Origin { others: fills, before: ALL - fills, ..Origin::default() };
    let warmer =
        Warmer { pid: 7, comm: "tar".into(), path: None, fills, time: "2026-11-21T09:00:00.000Z".into() };
    Run { origin, warmers: vec![warmer], ..warm(0) }
}

fn warmth() -> Vec<Pair> {
    let after = |by: u64| Run {
        origin: Origin { runs: vec![(1, by)], before: ALL - by, ..Origin::default() },
        ..warm(0)
    };
    let metadata = |misses| {
        changed(cold(), |run| {
            set(
                run,
                &[
                    (Figure::MetaAccesses, 2000),
                    (Figure::MetaHits, 2000 - misses),
                    (Figure::MetaMisses, misses),
                ],
            );
        })
    };
    vec![
        ("warmed-by-earlier-run", vec![cold(), after(ALL)], vec![cold(), after(ALL / 2 - 1)]),
        ("warmed-by-other-process", vec![warmed_by_other(ALL)], vec![warmed_by_other(ALL / 2 - 1)]),
        ("cached-before", vec![warm(ALL)], vec![half_warm()]),
        ("only-metadata-warm", vec![metadata(0)], vec![metadata(1)]),
    ]
}

fn reading() -> Vec<Pair> {
    let fed_half = changed(cold(), |run| {
        set(run, &[(Figure::ReadAheadHits, ALL / 2 - 1), (Figure::Misses, ALL / 2 + 1)])
    });
    let unused = |pages| {
        changed(cold(), |run| {
            // Programs map themselves: that much of what was read ahead may have been used so.
            set(run, &[(Figure::ReadAheadPages, ALL), (Figure::FaultAround, ALL)]);
            run.unused_pages = Some(pages);
        })
    };
    let pattern = Some(Pattern { absent: 13, present: 1, times: 700 });
    let cut = |pages| changed(cold(), |run| beside(run, "ext4", pattern, pages));
    // One slow file of NFS; the tree beside it is read here and there, without windows of that size.
    let narrow = |pages| {
        changed(cold(), |run| {
            beside(run, "nfs4", None, 10_240);
            let ahead = 10_240 - 320;
            set(
                run,
                &[(Figure::Misses, pages), (Figure::ReadAheadHits, ahead), (Figure::ReadAheadPages, ahead)],
            );
            run.window_pages.as_mut().unwrap()[5] = 320;
            run.waits.read_ns = Some(300 * MS);
        })
    };
    let direct = |bytes| changed(warm(ALL), |run| set(run, &[(Figure::DirectReadBytes, bytes)]));
    let back = |bytes| changed(warm(ALL), |run| set(run, &[(Figure::DirectFellBack, bytes)]));
    let changed_part = |pages: u64| {
        changed(warm(ALL), |run| {
            set(run, &[(Figure::WriteMisses, 500)]);
            run.usage.device_read_bytes = Some(pages * 4096);
        })
    };
    let refaulted = |pages| {
        changed(cold(), |run| {
            set(run, &[(Figure::Refaulted, ALL / 2)]);
            (run.system.evicted, run.system.removed, run.twice_pages) = (Some(ALL), Some(0), Some(pages));
        })
    };
    // As much came in again, and was fetched ahead and not read.
    let evicted = |pages| {
        let mut run = refaulted(ALL / 10);
        (run.unused_pages, run.system.readahead_wasted) = (Some(pages), Some(pages));
        run
    };
    let mapped = |pages| changed(warm(ALL), |run| set(run, &[(Figure::FaultHits, pages)]));
    let faulted = |faults| changed(cold(), |run| run.usage.major_faults = Some(faults));
    vec![
        ("readahead-fed", vec![cold()], vec![fed_half]),
        ("readahead-wasted", vec![unused(ALL / 5)], vec![unused(ALL / 5 - 1)]),
        ("readahead-cut-short", vec![cut(10_240)], vec![cut(4000)]),
        ("readahead-limited", vec![narrow(2 * 10_240 - 9920)], vec![narrow(2 * 10_240 - 9919)]),
        ("direct-io-bypassed", vec![direct(ALL * 1024 + 4096)], vec![direct(ALL * 1024 - 4096)]),
        ("direct-io-fell-back", vec![back(65_536)], vec![back(65_535)]),
        ("read-to-write", vec![changed_part(256)], vec![changed_part(255)]),
        ("readahead-evicted", vec![evicted(ALL / 10)], vec![evicted(ALL / 10 - 1)]),
        ("working-set-too-large", vec![refaulted(ALL / 10)], vec![refaulted(ALL / 10 - 1)]),
        ("mapped-not-read", vec![mapped(2 * ALL)], vec![mapped(2 * ALL - 1)]),
        ("faults-blind-to-reads", vec![faulted(ALL / 100)], vec![faulted(ALL / 100 + 1)]),
    ]
}

fn time() -> Vec<Pair> {
    let throttled = |ms| changed(idle(), |run| run.waits.throttled_ns = Some(ms * MS));
    let open = |ms| changed(warm(ALL), |run| run.waits.open_ns = Some(ms * MS));
    let metadata = |ms| {
        changed(cold(), |run| (run.waits.lookup_ns, run.waits.read_ns) = (Some(ms * MS), Some(200 * MS)))
    };
    let names = |ms| {
        changed(warm(ALL), |run| run.lookups = Lookups { dcache_misses: Some(FILES), work_ns: Some(ms * MS) })
    };
    let asleep = |asleep| Run { asleep, ..idle() };
    let hung = |hung| Run { hung, ..idle() };
    let unended = |ms| {
        let unended = Some(Unended { threads: 1, why: Counter::WaitRead, ns: ms * MS });
        Run { unended, ..idle() }
    };
    let elsewhere = |ms| {
        changed(warm(ALL), |run| {
            (run.waits.read_ns, run.usage.user_s) = (Some(ms * MS), Some(0.8));
        })
    };
    vec![
        ("dirty-throttled", vec![throttled(50)], vec![throttled(49)]),
        ("time-in-open", vec![open(200)], vec![open(199)]),
        ("metadata-bound", vec![metadata(300)], vec![metadata(299)]),
        ("dentries-cold", vec![names(100)], vec![names(99)]),
        ("asleep", vec![asleep(Some(Asleep::default()))], vec![asleep(None)]),
        ("hung", vec![hung(Some(Hung::default()))], vec![hung(None)]),
        ("still-waiting", vec![unended(200)], vec![unended(199)]),
        ("not-the-cache", vec![elsewhere(50)], vec![elsewhere(51)]),
    ]
}

#[test]
fn every_rule_speaks_where_it_must_and_is_silent_beside_it() {
    let pairs: Vec<Pair> = [
        warmth(),
        reading(),
        time(),
        super::cause_tests::pairs(),
        super::pushed_tests::pairs(),
        super::memory::tests::pairs(),
        super::tests::cached::pairs(),
    ]
    .concat();
    for (id, speaks, silent) in &pairs {
        let said = |runs: &[Run]| {
            let last = runs.last().unwrap().number;
            find(&[], runs).into_iter().find(|f| f.id == *id).is_some_and(|f| f.runs.contains(&last))
        };
        assert!(
            said(speaks),
            "{id}: must speak; said {:?}",
            find(&[], speaks).iter().map(|f| f.id).collect::<Vec<_>>()
        );
        assert!(!said(silent), "{id}: must be silent");
    }
    let ids: BTreeSet<_> = pairs.iter().map(|(id, _, _)| *id).collect();
    assert_eq!(ids.len(), RULES.len(), "a pair for each rule");
}
