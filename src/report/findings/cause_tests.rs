//! The rules about what a run waited for, and what became of the cache between two: for each a run of which it must speak,
//! and the nearest of which it must be silent; and what they advise.
#![allow(clippy::unwrap_used)]

use super::crowd::FILES;
use super::crowd::Pair;
use super::crowd::changed;
use super::crowd::cold;
use super::crowd::warm;
use super::tests::idle;
use super::*;
use crate::figures::Figure;
use crate::report::data::Residency;
use crate::report::ends::Past;
use crate::report::ends::Peer;
use crate::report::machine::Machine;
use crate::report::machine::ReadLimit;
use crate::text::numbers::Unit;

/// Nanoseconds.
pub(super) const MS: u64 = 1_000_000;

/// A run, and the one after it, of which so many pages of the first fifty files are still cached.
fn after(kept: u64, between: Machine) -> Vec<Run> {
    let residency = |cached| Some(Residency { cached, pages: 20, pattern: None });
    let mut runs = vec![cold(), changed(cold(), |run| run.number = 2)];
    // Fifty files of 20 pages: 1000 in all.
    runs[0].files.iter_mut().for_each(|f| f.after = residency(20));
    let mut left = kept;
    // All of it is read again, but of what is gone only that counts.
    runs[1].asked_pages = 1280;
    for file in &mut runs[1].files {
        (file.misses, file.readahead_pages) = (1, 19);
        file.before = residency(left.min(20));
        left -= left.min(20);
    }
    runs[1].machine_before = Some(between);
    runs
}

/// 90 MiB of memory were touched again and again where 60 have room: so many major faults, and what came back from swap.
fn swapping(faults: u64, swapped_in: u64) -> Run {
    changed(idle(), |run| {
        (run.waits.read_ns, run.waits.fault_ns, run.one_thread) = (Some(0), Some(240 * MS), Some(true));
        run.usage.major_faults = Some(faults);
        run.usage.device_read_bytes = Some(16_358 * 4096);
        run.machine.swapped_in = Some(swapped_in);
    })
}

pub(super) fn pairs() -> Vec<Pair> {
    let read = |ms| vec![changed(cold(), |run| run.waits.read_ns = Some(ms * MS))];
    let from_swap = |faults| vec![swapping(faults, 16_358)];
    let faulted = |ms| vec![changed(idle(), |run| run.waits.fault_ns = Some(ms * MS))];
    let wrote = |ms| vec![changed(idle(), |run| run.waits.write_ns = Some(ms * MS))];
    let synced = |ms| vec![changed(idle(), |run| run.waits.sync_ns = Some(ms * MS))];
    let queued = |ms| {
        vec![changed(idle(), |run| (run.waits.cpu_ns, run.waits.woken_ns) = (Some(150 * MS), Some(ms * MS)))]
    };
    let worked = |user| vec![changed(cold(), |run| run.usage.user_s = Some(user))];
    let computed = |user| vec![changed(cold(), |run| run.usage.user_s = Some(user))];
    // Beside more of waiting for data.
    let metadata = |ms| {
        vec![changed(cold(), |run| {
            (run.waits.lookup_ns, run.waits.read_ns) = (Some(ms * MS), Some(250 * MS))
        })]
    };
    let past = |files: usize| {
        let file = Past { path: "/shared/f".into(), fs: "9p".into(), why: "mounted without a cache" };
        vec![changed(idle(), |run| run.ends.past = vec![file; files])]
    };
    let peer = |ms| vec![changed(idle(), |run| run.waits.peer_ns = Some(ms * MS))];
    let slept = |ms| vec![changed(idle(), |run| run.waits.timer_ns = Some(ms * MS))];
    let locked = |ms| vec![changed(idle(), |run| run.waits.lock_ns = Some(ms * MS))];
    // A pipe and a timer at the same time, in 350 ms that are left, some of which may have been interrupts.
    let several = |ticks| {
        vec![changed(idle(), |run| {
            let ns = Some(500 * MS);
            (run.waits.peer_ns, run.waits.timer_ns, run.waits.other_ns) = (ns, ns, Some(1000 * MS));
            (run.machine.interrupts, run.machine.taken) = (Some(ticks), Some(0));
        })]
    };
    let completed = |ms| vec![changed(idle(), |run| run.waits.completion_ns = Some(ms * MS))];
    let machine = |run: Run, machine| vec![Run { machine, ..run }];
    let dropped = |n| machine(warm(0), Machine { dropped: Some(n), ..Machine::default() });
    let limited = |us| {
        let machine_now = Machine { limited: Some(3), memory_us: Some(us), ..Machine::default() };
        machine(cold(), machine_now)
    };
    let priced = |system| vec![changed(cold(), |run| run.usage.system_s = Some(system)), warm(0)];
    let rest = |ms| vec![changed(idle(), |run| run.waits.read_ns = Some(ms * MS))];
    vec![
        ("waited-for-data", read(200), read(199)),
        ("swapped", from_swap(16), from_swap(15)),
        ("waited-in-faults", faulted(200), faulted(199)),
        ("waited-for-writes", wrote(200), wrote(199)),
        ("waited-for-sync", synced(200), synced(199)),
        ("cpu-contention", queued(50), queued(49)),
        ("cpu-bound", worked(0.401), worked(0.4)),
        ("cache-bypassed", past(1), past(0)),
        ("processor-time", computed(0.1), computed(0.099)),
        ("waited-for-metadata", metadata(200), metadata(199)),
        ("waited-for-peer", peer(200), peer(199)),
        ("slept", slept(200), slept(199)),
        ("waited-for-locks", locked(200), locked(199)),
        ("waited-for-completions", completed(200), completed(199)),
        ("waited-for-others", several(14), several(16)),
        ("lost-between-runs", after(744, Machine::default()), after(745, Machine::default())),
        ("dropped-meanwhile", dropped(1), dropped(0)),
        ("memory-limit", limited(50_000), limited(49_999)),
        ("cold-cache-work", priced(0.301), priced(0.299)),
        ("unexplained", rest(299), rest(301)),
    ]
}

pub(super) fn found(runs: &[Run], id: &str) -> Finding {
    // In pages, nothing is told in bytes but a setting.
    let in_pages: Vec<Run> = runs.iter().map(|r| Run { unit: Unit::Pages, ..r.clone() }).collect();
    for finding in find(&[], &in_pages) {
        let text = finding.text.replace("setting (", "setting").replace("windows of ", "windows of");
        let sized = text.split(' ').zip(text.split(' ').skip(1)).find(|(n, unit)| {
            n.parse::<f64>().is_ok() && ["B", "KiB", "MiB", "GiB"].iter().any(|u| unit.starts_with(u))
        });
        assert_eq!(sized, None, "{text}");
    }
    let all = find(&[], runs);
    let ids: Vec<_> = all.iter().map(|f| f.id).collect();
    all.iter().find(|f| f.id == id).unwrap_or_else(|| panic!("no {id} in {ids:?}")).clone()
}

pub(super) fn waited(change: impl FnOnce(&mut Run)) -> Finding {
    let run = changed(cold(), |run| {
        run.waits.read_ns = Some(400 * MS);
        run.one_thread = Some(true);
        change(run);
    });
    found(&[run], "waited-for-data")
}

#[test]
fn what_a_cgroup_lets_be_read_is_told() {
    let limit =
        |bytes, requests| ReadLimit { cgroup: "/slow".into(), device: "254:0".into(), bytes, requests };
    let of = |bytes, requests| {
        waited(|run| {
            (run.wall_s, run.usage.device_read_bytes) = (1.0, Some(10 << 20));
            run.read_limits = vec![limit(bytes, requests)];
        })
    };
    let it = of(Some(10 << 20), None);
    let said = " io.max of /slow allows to read 10 MiB a second from 254:0.";
    assert!(it.text.ends_with(said), "{}", it.text);
    assert!(it.remedy.unwrap().starts_with("Raise io.max of /slow, or"));
    assert_eq!(it.evidence["io_max"][0]["bytes"], 10 << 20);
    // It is far from that: what else could help still does.
    let it = of(Some(100 << 20), Some(1));
    assert!(it.text.contains("to read 100 MiB and 1 request a second from 254:0."), "{}", it.text);
    assert!(!it.remedy.unwrap_or_default().contains("io.max"));
    let none = waited(|_| ());
    assert!(!none.text.contains("io.max") && none.evidence["io_max"].as_array().unwrap().is_empty());
}

/// How the data came, for which it waited.
fn came(f: &Finding) -> Option<String> {
    f.evidence["came"].as_str().map(String::from)
}

#[test]
fn read_ahead_ends_where_a_file_ends() {
    // 6000 files of 16 KiB.
    let many = waited(|_| {});
    assert_eq!(came(&many).as_deref(), Some("small-files"));
    assert!(many.text.contains("6000 files, 16 KiB of each"), "{}", many.text);
    // What was there already came from no file.
    let warm_beside = waited(|run| (run.files_seen, run.files_brought) = (FILES + 3000, FILES));
    assert!(warm_beside.text.contains("6000 files, 16 KiB of each"), "{}", warm_beside.text);
    let few_cold = waited(|run| run.files_brought = 60);
    assert_ne!(came(&few_cold).as_deref(), Some("small-files"));
    // A hundred of a page, and here and there in one of 1 GiB: the mean of all is 31 pages.
    let database = |missed: u64| {
        waited(|run| {
            (run.files_seen, run.files_brought) = (101, 101);
            for file in &mut run.files {
                (file.size, file.misses, file.readahead_hits, file.readahead_pages) = (Some(4096), 1, 0, 0);
            }
            (run.files[0].size, run.files[0].misses) = (Some(1 << 30), missed);
            let figures = [
                (Figure::Misses, missed + 1600),
                (Figure::ReadAheadHits, 0),
                (Figure::ReadAheadPages, 0),
                (Figure::ReadMissedCalls, missed + 1600),
            ];
            figures.iter().for_each(|(figure, n)| run.figures.set(*figure, Some(*n)));
        })
    };
    assert_eq!(came(&database(1601)).as_deref(), Some("random"));
    assert_eq!(came(&database(1600)).as_deref(), Some("small-files"));
}

#[test]
fn windows_were_whole_or_cut() {
    // One file, as much of it.
    let one = |windows: [(usize, u64); 2], kb| {
        waited(|run| {
            run.files_seen = 1;
            (run.files[0].size, run.files[0].readahead_pages) = (Some(1 << 30), 20_000);
            run.files[0].read_ahead_kb = Some(kb);
            run.files[0].read_ahead_path = Some("/sys/x".into());
            windows.iter().for_each(|(at, n)| run.window_pages.as_mut().unwrap()[*at] = *n);
        })
    };
    let whole = one([(5, 700), (2, 20)], 128);
    assert_eq!(came(&whole).as_deref(), Some("whole-windows"));
    assert!(whole.remedy.as_deref().unwrap().contains("echo 1024 >/sys/x"), "{whole:?}");
    assert_eq!(one([(10, 20), (2, 20)], 4096).remedy, None, "no larger than that is advised");
    // A file of 4 MiB where windows are of 8.
    let short = waited(|run| {
        run.files_seen = 1;
        run.files.truncate(1);
        (run.files[0].size, run.files[0].readahead_pages) = (Some(4 << 20), 1000);
        run.files[0].read_ahead_kb = Some(8192);
        run.window_pages.as_mut().unwrap()[7] = 6;
    });
    assert_eq!((came(&short).as_deref(), &short.remedy), (Some("short-files"), &None));
    let small = one([(5, 10), (2, 4000)], 128);
    assert_eq!((came(&small).as_deref(), &small.remedy), (Some("small-windows"), &None));
}

#[test]
fn what_is_read_here_and_there_is_told_from_what_is_read_in_large_calls() {
    let random = waited(|run| {
        run.files_seen = 1;
        run.figures.set(Figure::Misses, Some(24_000));
        run.figures.set(Figure::ReadMissedCalls, Some(24_000));
        run.figures.set(Figure::ReadAheadHits, Some(0));
        run.figures.set(Figure::ReadAheadPages, Some(0));
    });
    assert_eq!(came(&random).as_deref(), Some("random"));
    let remedy = random.remedy.unwrap();
    assert!(random.text.contains("one request at a time") && remedy.starts_with("More requests at a time"));
    // Eight threads have that already.
    let pool = waited(|run| {
        (run.files_seen, run.one_thread) = (1, Some(false));
        let figures = [
            (Figure::Misses, 24_000),
            (Figure::ReadMissedCalls, 24_000),
            (Figure::ReadAheadHits, 0),
            (Figure::ReadAheadPages, 0),
        ];
        figures.iter().for_each(|(figure, n)| run.figures.set(*figure, Some(*n)));
    });
    let remedy = pool.remedy.unwrap();
    assert!(remedy.starts_with("Requests ahead") && !remedy.contains("io_uring"), "{remedy}");
    assert!(!pool.text.contains("one request at a time"), "{}", pool.text);
    // Thirty files of 64 KiB, each by one call: not here and there, whatever read-ahead found.
    let grepped = |size| {
        waited(|run| {
            run.files_seen = 30;
            run.files.truncate(30);
            for file in &mut run.files {
                (file.size, file.misses, file.readahead_hits, file.readahead_pages) = (size, 16, 0, 0);
            }
            let figures = [
                (Figure::Misses, 480),
                (Figure::ReadAheadHits, 0),
                (Figure::ReadAheadPages, 0),
                (Figure::ReadMissedCalls, 30),
            ];
            figures.iter().for_each(|(figure, n)| run.figures.set(*figure, Some(*n)));
        })
    };
    let whole = grepped(Some(65_536));
    assert_eq!(came(&whole).as_deref(), Some("large-calls"));
    assert!(!whole.text.contains("here and there") && !whole.remedy.unwrap().contains("fadvise"));
    // The sixteenth part of each, in large calls: neither.
    assert_eq!(came(&grepped(Some(1 << 20))), None);
    assert_eq!(came(&grepped(None)), None);
}

#[test]
fn the_order_and_the_size_of_calls_matter() {
    // A database asks for two pages at a time, here and there, until it has had all of them, some twice.
    let database = |calls, hits| {
        waited(|run| {
            run.files_seen = 1;
            run.files.truncate(1);
            let file = &mut run.files[0];
            (file.size, file.misses, file.readahead_hits, file.readahead_pages) =
                (Some(480 * 4096), 480, 0, 0);
            file.hits = hits;
            let figures = [
                (Figure::Misses, 480),
                (Figure::ReadAheadHits, 0),
                (Figure::ReadAheadPages, 0),
                (Figure::ReadMissedCalls, calls),
            ];
            figures.iter().for_each(|(figure, n)| run.figures.set(*figure, Some(*n)));
        })
    };
    assert_eq!(came(&database(240, 0)).as_deref(), Some("random"));
    // Sixteen at a time, each once: forwards read-ahead would have had them, so that it was in another order.
    let backwards = database(30, 0);
    assert_eq!(came(&backwards).as_deref(), Some("out-of-order"));
    assert!(
        backwards.text.contains("64 KiB at most") && backwards.text.contains("setting (128 KiB)"),
        "{backwards:?}"
    );
    // Sixty files in one call each, and one of 1 MiB: what it took is not known, and no call may have been small.
    let beside = waited(|run| {
        run.files_seen = 61;
        run.files.truncate(30);
        for file in &mut run.files {
            (file.size, file.misses, file.readahead_hits, file.readahead_pages) = (Some(25 * 4096), 25, 0, 0);
        }
        (run.files[0].size, run.files[0].misses) = (Some(256 * 4096), 256);
        let figures = [
            (Figure::Misses, 60 * 25 + 256),
            (Figure::ReadAheadHits, 0),
            (Figure::ReadAheadPages, 0),
            (Figure::ReadMissedCalls, 61),
        ];
        figures.iter().for_each(|(figure, n)| run.figures.set(*figure, Some(*n)));
    });
    assert_eq!(came(&beside).as_deref(), Some("large-calls"), "{beside:?}");
    // As much as read-ahead may fetch, and more.
    assert_eq!(came(&database(15, 0)).as_deref(), Some("large-calls"));
    assert_eq!(came(&database(2, 0)).as_deref(), Some("large-calls"), "a file in one call");
    assert_eq!(came(&database(30, 480)), None, "all of it twice is not once from end to end");
}

#[test]
fn what_did_not_come_by_reads_is_not_read_aheads_business() {
    // Past the cache, beside calls that missed.
    let past = |missed, change: fn(&mut Run)| {
        waited(|run| {
            run.figures.set(Figure::DirectReadBytes, Some(1 << 30));
            run.figures.set(Figure::ReadMissedCalls, Some(missed));
            run.figures.set(Figure::StallNs, None);
            change(run);
        })
    };
    let direct = past(1023, |_| ());
    assert_eq!(came(&direct).as_deref(), Some("direct"));
    // A thousand times to another place take a disk as long as 1 GiB at one: which of the two it was is not known.
    assert_eq!(came(&past(1024, |_| ())), None);
    let timed = |ms: u64| {
        waited(|run| {
            run.figures.set(Figure::DirectReadBytes, Some(1 << 30));
            run.figures.set(Figure::StallNs, Some(ms * MS));
        })
    };
    assert_eq!(came(&timed(199)).as_deref(), Some("direct"), "where calls that missed are timed, it is");
    assert_eq!(came(&timed(200)), None);
    // What is submitted is waited for elsewhere; so is what faults bring in.
    let submitted = |run: &mut Run| run.waits.completion_ns = Some(400 * MS);
    assert_eq!(came(&past(16, submitted)), None);
    let faults = |run: &mut Run| {
        (run.waits.read_ns, run.waits.fault_ns) = (Some(200 * MS), Some(200 * MS));
        run.figures.set(Figure::FaultMisses, Some(60));
    };
    assert_eq!(came(&past(16, faults)), None);
    // Programs that are started are waited for in execve, whatever comes later.
    let started = |run: &mut Run| run.waits.exec_ns = Some(401 * MS);
    assert_eq!(came(&past(16, started)).as_deref(), Some("programs"));
    let parallel = past(0, |run| run.one_thread = Some(false));
    assert!(parallel.remedy.is_none() && !parallel.text.contains("one request"), "{parallel:?}");
    // More came around faults, but it was reads that were waited for.
    let faults = |read, fault| {
        waited(|run| {
            run.files_seen = 1;
            (run.waits.read_ns, run.waits.fault_ns) = (Some(read * MS), Some(fault * MS));
            let figures = [
                (Figure::Misses, 4000),
                (Figure::ReadMissedCalls, 4000),
                (Figure::ReadAheadHits, 0),
                (Figure::FaultMisses, 60),
                (Figure::ReadAheadPages, 15_000),
            ];
            figures.iter().for_each(|(figure, n)| run.figures.set(*figure, Some(*n)));
        })
    };
    assert_eq!(came(&faults(250, 20)).as_deref(), Some("random"), "{:?}", faults(250, 20));
    assert!(faults(20, 250).text.contains("page faults"), "{:?}", faults(20, 250));
    // What is not known is not told.
    let blind = waited(|run| run.figures.set(Figure::ReadAheadPages, None));
    assert!(blind.evidence["came"].is_null() && blind.remedy.is_none());
}

#[test]
fn who_took_the_cache_between_two_runs() {
    let by = |m: Machine| found(&after(0, m), "lost-between-runs");
    let none = Machine { dropped: Some(0), limited: Some(0), stolen: Some(0), ..Machine::default() };
    let it = by(Machine { dropped: Some(1), stolen: Some(9999), ..none });
    assert!(it.evidence["by"] == "dropped" && it.text.contains("somebody emptied"), "{it:?}");
    let it = by(Machine { limited: Some(7), ..none });
    assert!(it.evidence["by"] == "limit" && it.remedy.is_some_and(|r| r.contains("memory.high")));
    let it = by(Machine { stolen: Some(500), ..none });
    assert_eq!(it.evidence["by"], "pressure");
    let it = by(Machine { stolen: Some(499), ..none });
    assert!(it.evidence["by"] == "unexplained" && it.text.contains("POSIX_FADV_DONTNEED"), "{}", it.text);
    // What was asked for is no surprise.
    for change in [
        (|run: &mut Run| run.cold = Some("all".into())) as fn(&mut Run),
        |run| run.prepare = Some("echo 3 >/proc/sys/vm/drop_caches".into()),
        |run| run.files.iter_mut().for_each(|f| f.before = None),
        |run| run.files.iter_mut().for_each(|f| (f.misses, f.readahead_pages) = (0, 0)),
    ] {
        let mut runs = after(0, none);
        change(&mut runs[1]);
        assert!(find(&[], &runs).iter().all(|f| f.id != "lost-between-runs"));
    }
}

#[test]
fn waits_for_others_are_a_cause_only_where_nothing_else_was_done() {
    // A pipe and a timer at the same time: more than is left.
    let run = changed(idle(), |run| {
        (run.waits.peer_ns, run.waits.timer_ns) = (Some(340 * MS), Some(340 * MS));
    });
    let ids: Vec<_> = find(&[], std::slice::from_ref(&run)).iter().map(|f| f.id).collect();
    assert!(!ids.contains(&"waited-for-peer") && !ids.contains(&"slept"), "{ids:?}");
    let left = found(&[run], "unexplained");
    assert!(
        left.text.contains("340.0 ms for pipes, sockets and events and 340.0 ms for timers"),
        "{}",
        left.text
    );
    assert!(left.text.contains("strace") && !left.text.contains("interrupts"));
}

#[test]
fn a_throttled_writer_is_not_told_twice() {
    let run = changed(idle(), |run| {
        (run.waits.write_ns, run.waits.throttled_ns) = (Some(300 * MS), Some(250 * MS))
    });
    let ids: Vec<_> = find(&[], &[run]).iter().map(|f| f.id).collect();
    assert!(ids.contains(&"dirty-throttled") && !ids.contains(&"waited-for-writes"), "{ids:?}");
}

#[test]
fn whose_limit_of_memory_it_was() {
    let limited = |machine: Machine, back: u64| {
        let run = changed(cold(), |run| {
            run.machine = machine;
            run.figures.set(Figure::Refaulted, Some(back));
        });
        find(&[], &[run]).into_iter().find(|f| f.id == "memory-limit").map(|f| f.text)
    };
    let new = Machine { limited: Some(3), memory_us: Some(50_000), ..Machine::default() };
    let text = |machine| limited(machine, 0).unwrap();
    assert!(text(new).starts_with("Its cgroup reached its limit of memory"), "{}", text(new));
    let above = Machine { limited_above: Some(3), ..new };
    assert!(text(above).starts_with("A cgroup above its own reached"), "{}", text(above));
    let both = Machine { limited_above: Some(2), ..new };
    assert!(text(both).starts_with("Its cgroup, or one above it, reached"), "{}", text(both));
    let once = Machine { limited: Some(1), ..new };
    assert!(
        text(once).contains(" count, once; it, or others that are in there, waited 50.0 ms"),
        "{}",
        text(once)
    );
    // Others in the cgroup waited: of half a second, what it worked in the kernel and waited in calls is the most.
    let beside = |system: f64| {
        let run = changed(idle(), |run| {
            run.machine = Machine { memory_us: Some(500_000), ..new };
            run.waits.read_ns = Some(0);
            (run.waits.fault_ns, run.waits.peer_ns, run.waits.other_ns) =
                (Some(20 * MS), Some(700 * MS), Some(700 * MS));
            (run.usage.user_s, run.usage.system_s) = (Some(0.1), Some(system));
        });
        find(&[], &[run]).into_iter().find(|f| f.id == "memory-limit").map(|f| f.text)
    };
    assert_eq!(beside(0.0299), None);
    let it = beside(0.0301).unwrap();
    assert!(
        it.contains("waited 500.0 ms for memory") && it.contains("50.1 ms of these at most (5 % of"),
        "{it}"
    );
    // Version 1 does not tell how long: a tenth of what it fetched must have come back.
    let old = Machine { memory_us: None, ..new };
    assert!(limited(old, 2400).unwrap().contains("version 1 of cgroups does not tell"));
    assert_eq!(limited(old, 2399), None);
}

#[test]
fn work_is_told_once() {
    let ids = |run: Run| find(&[], &[run]).iter().map(|f| f.id).collect::<Vec<_>>();
    let worked = ids(changed(cold(), |run| run.usage.user_s = Some(0.5)));
    assert!(worked.contains(&"cpu-bound") && !worked.contains(&"processor-time"), "{worked:?}");
    let alone = ids(changed(warm(0), |run| (run.waits.read_ns, run.usage.user_s) = (Some(0), Some(0.8))));
    assert!(alone.contains(&"not-the-cache") && !alone.contains(&"processor-time"), "{alone:?}");
    // A warm cache is promised to nobody who reads past it, and requests that are waited for are no work.
    let bound = |change: fn(&mut Run)| {
        let run = changed(cold(), |run| run.usage.user_s = Some(0.5));
        find(&[], &[changed(run, change)]).into_iter().find(|f| f.id == "cpu-bound").map(|f| f.text)
    };
    let device = cold().usage.device_read_bytes.unwrap();
    assert!(bound(|_| {}).unwrap().contains("A warm cache saves it the waiting"));
    let direct = bound(|run| run.figures.set(Figure::DirectReadBytes, run.usage.device_read_bytes)).unwrap();
    assert!(direct.contains("a warm one saves it nothing"), "{direct} of {device}");
    let half =
        bound(|run| run.figures.set(Figure::DirectReadBytes, run.usage.device_read_bytes.map(|n| n / 2)));
    assert!(half.unwrap().contains("A warm cache saves it the waiting"));
    assert!(bound(|run| run.waits.completion_ns = Some(199 * MS)).is_some());
    assert_eq!(bound(|run| run.waits.completion_ns = Some(200 * MS)), None);
    // What a trivial command needs is not told.
    let trivial = ids(changed(cold(), |run| {
        (run.wall_s, run.usage.user_s, run.usage.system_s) = (0.06, Some(0.04), Some(0.009));
        run.waits.read_ns = Some(15 * MS);
    }));
    assert!(!trivial.contains(&"processor-time"), "{trivial:?}");
}

/// The two halves of the processor time are what they are halves of, also where the parts were spread to fit the wall time.
#[test]
fn halves_of_the_work_add_up_as_printed() {
    for (user, system, lookups) in
        [(0.2, 0.5, 0), (0.0222, 0.6814, 30), (0.4005, 0.1, 60), (0.1331, 0.1339, 1)]
    {
        let run = changed(cold(), |run| {
            (run.usage.user_s, run.usage.system_s) = (Some(user), Some(system));
            (run.lookups.work_ns, run.one_thread) = (Some(lookups * MS), Some(true));
            // More than cpu-bound would allow, and more than fits into the wall time by an error of measurement.
            run.waits.read_ns = Some(350 * MS);
        });
        let text = found(&[run], "processor-time").text;
        let n = |after: &str| -> f64 {
            text.split_once(after).unwrap().1.split_once(" s").unwrap().0.parse().unwrap()
        };
        let (all, own, kernel) = (n("worked: "), n("); "), n("code, "));
        assert!((all - own - kernel).abs() < 1e-9, "{text}");
    }
}

#[test]
fn who_is_waited_for_has_a_name() {
    let waited = |peers: Vec<Peer>| {
        let run = changed(idle(), |run| {
            run.waits.peer_ns = Some(300 * MS);
            run.ends.peers = peers;
        });
        found(&[run], "waited-for-peer")
    };
    assert!(waited(Vec::new()).text.contains("was not seen: ss -xp"));
    let peer = |pid, comm: &[u8]| Peer { pid, comm: comm.into(), by: "a pipe" };
    let told = waited(vec![peer(7, b"curl"), peer(9, b"a{}\x1b[31m")]);
    assert!(told.text.contains("were curl (process 7, a pipe), a{}"), "{}", told.text);
    assert!(!told.text.contains('\x1b') && !told.text.contains("ss -xp"), "{}", told.text);
    assert_eq!(told.evidence["peers"][0]["pid"], 7);
}

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
        run.files = vec![crate::report::data::FileRow { fs: Some("nfs4".into()), ..Default::default() }];
    };
    assert!(told(far).iter().any(|(id, _)| *id == "waited-for-data"));
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
    let both = |read, fault| {
        waited(|run| {
            run.files_seen = 1;
            (run.waits.read_ns, run.waits.fault_ns) = (Some(read * MS), Some(fault * MS));
            let figures = [
                (Figure::Misses, 4000),
                (Figure::ReadMissedCalls, 4000),
                (Figure::ReadAheadHits, 0),
                (Figure::FaultMisses, 300),
                (Figure::ReadAheadPages, 0),
            ];
            figures.iter().for_each(|(figure, n)| run.figures.set(*figure, Some(*n)));
        })
    };
    assert_eq!(came(&both(200, 200)).as_deref(), Some("random"));
    assert_eq!(came(&both(200, 201)), None);
}
