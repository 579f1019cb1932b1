#![allow(clippy::unwrap_used)]

mod means;

use super::*;
use crate::figures::Figure;
use crate::report::data::Bound;
use crate::report::data::Origin;
use crate::report::data::Usage;
use crate::report::data::Waits;
use crate::report::findings;

/// A run that waited so long for data, milliseconds, and worked so long in the kernel.
fn run(number: u32, wall: u64, data: u64, system: u64) -> Run {
    let zero = Some(0);
    let mut run = Run { number, exit_status: Some(0), ..Run::default() };
    run.wall_s = std::time::Duration::from_millis(wall).as_secs_f64();
    for figure in Figure::ALL {
        run.figures.set(*figure, zero);
    }
    run.waits = Waits {
        read_ns: Some(data * 1_000_000),
        fault_ns: zero,
        exec_ns: zero,
        open_ns: zero,
        lookup_ns: zero,
        directory_ns: zero,
        write_ns: zero,
        sync_ns: zero,
        cpu_ns: zero,
        ..Waits::default()
    };
    let system = std::time::Duration::from_millis(system).as_secs_f64();
    run.usage = Usage { user_s: Some(0.1), system_s: Some(system), ..Usage::zero() };
    run.one_thread = Some(true);
    run
}

/// 60 MiB read cold, then warm.
fn scans() -> Vec<Run> {
    let (mut cold, mut warm) = (run(1, 6440, 4100, 1100), run(2, 400, 0, 260));
    cold.figures.set(Figure::Fills, Some(15_360));
    cold.figures.set(Figure::Misses, Some(15_360));
    cold.asked_pages = 15_360;
    cold.bound = Some(Bound { warm: 0, other: 15_360 });
    warm.figures.set(Figure::Hits, Some(15_360));
    (warm.asked_pages, warm.warm_pages) = (15_360, 15_360);
    warm.origin = Origin { runs: vec![(1, 15_360)], ..Origin::default() };
    vec![cold, warm]
}

fn said(runs: &[Run]) -> Verdict {
    verdict(runs, None, &findings::find(&[], runs))
}

fn cause(v: &Verdict, id: &str) -> Cause {
    *v.causes.iter().find(|c| c.id == id).unwrap()
}

#[test]
fn a_second_scan() {
    let v = said(&scans());
    assert!((v.factor.unwrap() - 16.1).abs() < 1e-9);
    assert_eq!(
        v.text,
        "Run 2 was 16.1 times as fast as run 1 (6.44 s → 0.40 s). 68 % of the gain is data that run 1 had left in the \
         cache (60 MiB), 18 % unexplained (what was not seen, or done at the same time), 14 % work of the kernel that a cold \
         cache costs (allocating pages, submitting I/O, reading inodes)."
    );
    let shares: f64 = v.causes.iter().filter_map(|c| c.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    let seconds: f64 = v.causes.iter().filter_map(|c| c.seconds).sum();
    assert!((seconds - 6.04).abs() < 1e-9, "{seconds}");
    assert!(cause(&v, "processor").seconds.unwrap().abs() < 1e-9);
    assert!((cause(&v, "cold-work").seconds.unwrap() - 0.84).abs() < 1e-9);
}

#[test]
fn of_a_mapped_scan_faults_are_a_part() {
    let mut runs = scans();
    runs[1].warm_pages = 512;
    runs[1].origin.runs = vec![(1, 512)];
    for (figure, n) in [(Figure::Hits, 0), (Figure::FaultHits, 512), (Figure::FaultAround, 7680)] {
        runs[1].figures.set(figure, Some(n));
    }
    let v = said(&runs);
    assert!(v.text.contains("(2 MiB and 30 MiB mapped around it)"), "{}", v.text);
    // Where these are not counted, it does not look as if they were none.
    runs[1].figures.set(Figure::FaultAround, None);
    let v = said(&runs);
    assert!(
        v.text.contains("(2 MiB, and what was mapped around its faults, which is not known here)"),
        "{}",
        v.text
    );
    // What it read goes before.
    runs[1].figures.set(Figure::FaultAround, Some(7680));
    runs[1].figures.set(Figure::FaultHits, Some(255));
    assert!(said(&runs).text.contains("(2 MiB)"));
}

#[test]
fn work_in_the_kernel_is_put_down_to_the_cold_cache_only_where_more_came_in() {
    let mut runs = scans();
    // As much came in for both: the difference is the command's own.
    runs[1].figures.set(Figure::Fills, Some(15_360));
    let v = said(&runs);
    assert!(v.causes.iter().all(|c| c.id != "cold-work"), "{v:?}");
    assert!((cause(&v, "processor").seconds.unwrap() - 0.84).abs() < 1e-9);
    // Nor where the run that brought more in worked less.
    let mut runs = scans();
    runs[0].usage.system_s = Some(0.1);
    assert!(said(&runs).causes.iter().all(|c| c.id != "cold-work"));
    // Nor where it is not known.
    let mut runs = scans();
    runs[0].figures.set(Figure::Fills, None);
    assert!(said(&runs).causes.iter().all(|c| c.id != "cold-work"));
}

#[test]
fn what_waited_for_a_processor_is_not_put_down_to_the_disk_alone() {
    let mut runs = scans();
    let ns = runs[0].waits.read_ns.unwrap();
    runs[0].waits.woken_ns = Some(ns / 4 * 3);
    let late = "up to 75 % of this wait was for a processor, not for storage)";
    let v = said(&runs);
    assert!(v.text.contains(&format!("(60 MiB; {late}, ")), "{}", v.text);
    assert!(
        said(&runs[..1]).text.contains(&format!("waiting for data ({late}")),
        "{}",
        said(&runs[..1]).text
    );
    // Less than half of it, or woken from something else.
    runs[0].waits.woken_ns = Some(ns / 4);
    assert!(!said(&runs).text.contains("this wait"));
    (runs[0].waits.woken_ns, runs[0].waits.other_ns) = (Some(ns), Some(ns));
    assert!(!said(&runs).text.contains("this wait"));
}

#[test]
fn a_second_run_that_is_slower() {
    let mut runs = scans();
    runs.reverse();
    (runs[0].number, runs[1].number) = (1, 2);
    runs[1].cold = Some("all".into());
    let v = said(&runs);
    assert!(v.text.starts_with("Run 2 took 16.1 times as long as run 1 (0.40 s → 6.44 s). 68 % of the loss is waiting for data, which --cold had emptied"), "{}", v.text);
    assert!(cause(&v, "data").seconds.unwrap() < 0.0 && cause(&v, "data").share.unwrap() > 0.6);
}

#[test]
fn what_went_the_other_way_is_told_too() {
    let mut runs = scans();
    runs[1].waits.sync_ns = Some(2_000_000_000);
    runs[1].wall_s = 2.4;
    let v = said(&runs);
    assert!(v.text.contains("Against it, 2.00 s more went into waiting to write."), "{}", v.text);
    assert!(v.causes.iter().filter_map(|c| c.share).sum::<f64>() - 1.0 < 1e-9);
}

#[test]
fn no_difference_is_no_verdict() {
    let v = said(&[run(1, 500, 0, 100), run(2, 505, 0, 100)]);
    assert_eq!(
        v.text,
        "Run 2 took about as long as run 1 (0.50 s → 0.51 s): no difference worth explaining."
    );
    assert!(v.causes.iter().all(|c| c.share.is_none()));
}

#[test]
fn the_one_in_the_middle_stands_for_the_rest() {
    let mut runs = scans();
    let warm = runs[1].clone();
    runs.extend([(3, 9.0), (4, 0.38)].map(|(number, wall_s)| Run { number, wall_s, ..warm.clone() }));
    let v = said(&runs);
    assert!(
        v.text.starts_with("Run 2 (in the middle of runs 2 to 4) was 16.1 times as fast as run 1"),
        "{}",
        v.text
    );
}

#[test]
fn of_two_in_the_middle_it_is_the_slower() {
    let said = |walls: &[f64]| {
        let warm = scans()[1].clone();
        let mut runs = vec![scans()[0].clone()];
        runs.extend((2..).zip(walls).map(|(number, wall_s)| Run { number, wall_s: *wall_s, ..warm.clone() }));
        said(&runs).text
    };
    let text = said(&[0.504, 0.305]);
    assert!(text.starts_with("Run 2 (the slower of runs 2 and 3) was 12.8 times as fast as run 1"), "{text}");
    let text = said(&[0.2, 0.4, 0.3, 0.5]);
    assert!(
        text.starts_with("Run 3 (the slower of the two in the middle of runs 2 to 5) was 16.1 times"),
        "{text}"
    );
    assert!(said(&[0.4]).starts_with("Run 2 was 16.1 times"));
}

/// The scans by several threads: 41.2 s of their time in 6.44 s, and half a second in 0.4 s.
fn parallel() -> Vec<Run> {
    let mut runs = scans();
    for (run, (wait, work)) in runs.iter_mut().zip([(40_000, 1.1), (100, 0.3)]) {
        run.one_thread = Some(false);
        run.waits.read_ns = Some(wait * 1_000_000);
        run.usage.system_s = Some(work);
    }
    runs
}

#[test]
fn of_threads_at_the_same_time_it_is_their_time_that_is_divided() {
    let v = said(&parallel());
    assert_eq!(v.divided, Some(Whole::ThreadTime));
    assert_eq!(
        v.text,
        "Run 2 was 16.1 times as fast as run 1 (6.44 s → 0.40 s). Threads worked at the same time, so it is their time \
         that is divided, all added up (41.20 s → 0.50 s). 98 % of the difference is data that run 1 had left in the cache \
         (60 MiB)."
    );
    let shares: f64 = v.causes.iter().filter_map(|c| c.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{:?}", v.causes);
    let rest = cause(&v, "unexplained");
    assert_eq!((rest.share, rest.seconds), (None, None), "what is left of the wall time is not known");
    // As much work and waiting as before, more of it at a time: that is no matter of what it waited for.
    let mut runs = parallel();
    runs[1].waits.read_ns = Some(40_500_000_000);
    let v = said(&runs);
    assert!(v.divided.is_none() && v.causes.iter().all(|c| c.share.is_none()));
    assert!(
        v.text.ends_with(
            "(41.20 s → 40.90 s): the difference is not divided. They waited 0.50 s more for data."
        ),
        "{}",
        v.text
    );
}

#[test]
fn one_run_of_many_threads() {
    let mut run = parallel().remove(0);
    run.waits.peer_ns = Some(60_000_000_000);
    run.waits.lock_ns = Some(1_000_000_000);
    let v = said(&[run]);
    assert_eq!(v.divided, Some(Whole::ThreadTime));
    assert!(
        v.text.starts_with(
            "It took 6.44 s. Of the time of its parallel threads (41.20 s): 97 % waiting for data. \
             They waited for each other or for others beside that: 60.00 s for pipes, sockets and events."
        ),
        "{}",
        v.text
    );
    assert_eq!(said(&scans()[..1]).divided, Some(Whole::WallTime));
}

#[test]
fn one_run_says_where_its_time_went() {
    let v = said(&scans()[..1]);
    assert_eq!(v.factor, None);
    assert_eq!(
        v.text,
        "It took 6.44 s: 64 % waiting for data, 18 % processor time, 18 % unexplained (what was not seen, or done at \
         the same time). Of the 60 MiB that it hit or brought in, nothing was in the cache before."
    );
    // Of files that cannot be asked about, hits prove nothing: they may have come first.
    let mut vague = scans().remove(0);
    for (least, most, says) in [
        (0, 15_360, "How much of the 60 MiB that it hit or brought in was in the cache before is not known."),
        (0, 7680, "Of the 60 MiB that it hit or brought in, at most 50 % was in the cache before."),
        (7680, 15_360, "Of the 60 MiB that it hit or brought in, at least 50 % was in the cache before."),
        (15_300, 15_360, "Of the 60 MiB that it hit or brought in, at least 99 % was in the cache before."),
        (0, 60, "Of the 60 MiB that it hit or brought in, at most 1 % was in the cache before."),
        (1, 300, "Of the 60 MiB that it hit or brought in, at most 2 % was in the cache before."),
        (3840, 4608, "Of the 60 MiB that it hit or brought in, at least 25 % was in the cache before."),
        (3840, 7680, "Of the 60 MiB that it hit or brought in, 25 % to 50 % was in the cache before."),
    ] {
        vague.warm_pages = least;
        vague.bound = Some(Bound { warm: most, other: 15_360 - most });
        let text = said(&[vague.clone()]).text;
        assert!(text.ends_with(&format!(" {says}")), "{text}");
    }
    // Of what is in memory only it is known, and no disk has it.
    (vague.warm_pages, vague.memory_pages) = (60, 15_300);
    vague.bound = Some(Bound { warm: 15_360, other: 0 });
    let text = said(&[vague.clone()]).text;
    assert!(
        text.ends_with(
            "100 % was in the cache before, 59.8 MiB of it in files that are in memory only (tmpfs)."
        ),
        "{text}"
    );
    vague.bound = None;
    assert!(!said(&[vague]).text.contains("in the cache"));
    // On a kernel that tells nothing.
    let mut run = run(1, 100, 0, 0);
    (run.waits, run.usage) = (Waits::default(), Usage::default());
    let v = said(&[run]);
    assert_eq!(v.text, "It took 0.10 s.");
    assert!(v.causes.iter().all(|c| c.seconds.is_none() && c.share.is_none()));
    assert_eq!(said(&[]), Verdict::default());
}

#[test]
fn now_and_then() {
    let runs = scans();
    let v = verdict(&runs[1..], Some(&runs[0]), &[]);
    assert!(v.text.starts_with("The run now was 16.1 times as fast as the run then (6.44 s → 0.40 s). 68 % of the gain is data that was in the cache this time"), "{}", v.text);
}

#[test]
fn a_little_faster_is_told_to_the_hundredth() {
    let v = said(&[run(1, 1040, 0, 100), run(2, 1000, 0, 100)]);
    assert!(v.text.starts_with("Run 2 was 1.04 times as fast as run 1 (1.04 s → 1.00 s)."), "{}", v.text);
}

#[test]
fn what_was_read_to_be_changed_is_not_told_as_warm() {
    let mut warm = scans().remove(1);
    warm.origin = Origin { before: 15_360, ..Origin::default() };
    warm.bound = Some(Bound { warm: 15_360, other: 0 });
    warm.figures.set(Figure::Dirtied, Some(8000));
    warm.usage.device_read_bytes = Some(8000 * 4096);
    let told = |run: &Run| {
        let found = findings::find(&[], std::slice::from_ref(run));
        (run.cached_before(), found.iter().any(|f| f.id == "cached-before"))
    };
    // What its writes found is known.
    assert_eq!(told(&warm), (Some((1.0, 1.0)), true));
    warm.figures.set(Figure::WriteMisses, None);
    assert_eq!(told(&warm), (None, false));
    assert!(!said(std::slice::from_ref(&warm)).text.contains("in the cache before"));
    // That came from devices as it read.
    warm.figures.set(Figure::ReadAheadPages, Some(8000));
    assert_eq!(told(&warm), (Some((1.0, 1.0)), true));
}

#[test]
fn what_is_read_past_the_cache_is_neither_warm_nor_cold() {
    // A file of 60 MiB, all of it cached, by O_DIRECT; and what the program reads of itself when it starts.
    let mut past = run(1, 400, 300, 60);
    past.figures.set(Figure::DirectReadBytes, Some(15_360 * 4096));
    past.asked_pages = 15_360 + 300;
    past.bound = Some(Bound { warm: 2, other: 298 });
    let text = said(std::slice::from_ref(&past)).text;
    assert!(
        text.ends_with(
            ". It read 60 MiB past the cache (O_DIRECT), which asks the device whatever is cached."
        ),
        "{text}"
    );
    assert_eq!((past.cached_before(), past.seen_before()), (None, None));
    // Where as much went through the cache, that is told of by itself.
    past.asked_pages = 2 * 15_360;
    past.warm_pages = 15_360;
    past.bound = Some(Bound { warm: 15_360, other: 0 });
    assert_eq!(past.cached_before(), Some((1.0, 1.0)));
    let text = said(&[past]).text;
    let says = " Of the 60 MiB that it hit or brought in, 100 % was in the cache before. It read 60 MiB past the cache";
    assert!(text.contains(says), "{text}");
}

#[test]
fn a_loop_is_told_of_by_all_that_it_brought_in() {
    // 7000 different pages, some of them twice: at most a thousand were there before, of 12 500 that it hit or brought in.
    let mut looped = run(1, 400, 300, 60);
    looped.asked_pages = 12_500;
    looped.bound = Some(Bound { warm: 1000, other: 6000 });
    assert_eq!(looped.cached_before(), Some((0.0, 1.0 / 7.0)));
    let text = said(&[looped]).text;
    assert!(text.contains(" that it hit or brought in, at most 8 % was in the cache before."), "{text}");
}
