//! The rules about what a run waited for, and what became of the cache between two: for each a run of which it must speak,
//! and the nearest of which it must be silent; and what they advise.
#![allow(clippy::unwrap_used)]

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
pub(super) fn swapping(faults: u64, swapped_in: u64) -> Run {
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
    // So it is where far more came: from another device.
    assert!(!of(Some(2 << 20), None).remedy.unwrap_or_default().contains("io.max"));
    let none = waited(|_| ());
    assert!(!none.text.contains("io.max") && none.evidence["io_max"].as_array().unwrap().is_empty());
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
    // Past the cache, where nobody saw it go: nothing is known of a third of it.
    let known = |part: fn(u64) -> u64| {
        let run = changed(cold(), |run| {
            run.usage.user_s = Some(0.5);
            run.figures.set(Figure::Fills, run.get(Figure::Fills).map(part));
        });
        find(&[], &[run]).into_iter().find(|f| f.id == "cpu-bound").unwrap().text
    };
    assert!(known(|n| n / 2).contains("A warm cache saves it the waiting"));
    assert!(known(|n| n / 2 - 1).ends_with(" of waiting for data."), "{}", known(|n| n / 2 - 1));
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
