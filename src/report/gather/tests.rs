//! Who brought in what the command found, of trees of thousands of files.
#![allow(clippy::unwrap_used)]

mod memory;
mod since;

use std::time::Duration;

use super::*;
use crate::files::File;
use crate::report::findings;
use crate::sample::Counters;
use crate::sample::Followed;
use crate::view::fixtures;
use crate::view::fixtures::file as used;

const OURS: u32 = 10;
const THEIRS: u32 = 20;
/// Pages of each file.
const PAGES: u64 = 3;

/// Reads all of a small file that is not in the cache, or is.
fn miss(tgid: u32, inode: u64) -> FileSample {
    used(tgid, inode, &[(Counter::ReadMisses, PAGES), (Counter::ReadBytes, PAGES * 4096)])
}

fn hit(tgid: u32, inode: u64) -> FileSample {
    used(tgid, inode, &[(Counter::ReadHits, PAGES), (Counter::ReadBytes, PAGES * 4096)])
}

/// Files of so many pages, of which so many are cached now; before, nobody knows.
struct Made(u64, u64);

impl warm::Look for Made {
    fn length(&self, _: &Used) -> Option<u64> {
        Some(self.0 * crate::report::units::page())
    }
    fn in_memory(&self, _: &Used) -> Option<u64> {
        None
    }
    fn before(&self, _: &Used) -> Option<u64> {
        None
    }
    fn after(&self, _: &Used) -> Option<u64> {
        Some(self.1)
    }
}

/// Parts of a file of so many pages that is read from its beginning on, or all over, without coming back.
fn once(f: &FileSample, pages: u64) -> Parts {
    let read = f.counters.get(Counter::ReadBytes).div_ceil(4096).min(pages);
    let order = pages.div_ceil(24).next_power_of_two().ilog2();
    let scattered = f.counters.get(Counter::ReadHits) > read;
    let last = if scattered { pages } else { read };
    let stretches = if scattered { 1000 } else { 1 };
    Parts::Of { order, read: u32::try_from((1_u64 << last.div_ceil(1 << order)) - 1).unwrap(), stretches }
}

/// Pages that left the cache while the run lasted.
const GONE: u64 = 0;

/// A run after others of the same list, a slice of rows for each reading.
fn run_of(origins: &mut Origins, number: u32, readings: &[Vec<FileSample>], look: &Made) -> Run {
    run_of_parts(origins, number, readings, look, Parts::Unknown)
}

/// The same, with the parts that are read, unless each is read once.
fn run_of_parts(
    origins: &mut Origins,
    number: u32,
    readings: &[Vec<FileSample>],
    look: &Made,
    parts: Parts,
) -> Run {
    let began = crate::sample::Moment::now();
    let sample = || fixtures::sample(began, Duration::from_secs(1), &[]);
    let mut gather = Gather::new(Arc::new(sample()));
    let mut all = Followed::new(number);
    for files in readings {
        let mut followed = Followed::new(number);
        followed.files = files.iter().filter(|f| f.tgid == OURS).cloned().collect();
        followed.parts = followed
            .files
            .iter()
            .map(|f| if parts == Parts::Unknown { once(f, look.0) } else { parts })
            .collect();
        followed.files.iter().for_each(|f| all.counters.add_sparse(&f.counters));
        let followed = Some(Box::new(followed));
        gather.sample(&Sample { files: files.clone(), followed, ..sample() }, origins);
    }
    let used: Vec<Used> = gather.files.into_values().collect();
    let (all, unlisted, mounts) = (&all.counters, gather.full, Mounts::default());
    let since = &gather.brought;
    let judged =
        warm::judge(&used, (all, Some(GONE), None), (number, unlisted), (origins, since), &mounts, look);
    let mut run = Run { number, wall_s: 1.0, exit_status: Some(0), ..Run::default() };
    run.figures = model::figures(all, &fixtures::plan(&[]));
    (run.asked_pages, run.warm_pages, run.since_pages) = (judged.asked, judged.warm, judged.since);
    (run.origin, run.warmers, run.bound) = (judged.origin, judged.warmers, Some(judged.bound));
    run
}

fn whole() -> Made {
    Made(PAGES, PAGES)
}

/// What is said of who warmed the cache.
fn said(runs: &[Run]) -> Vec<&'static str> {
    let about = ["cached-before", "warmed-by-earlier-run", "warmed-by-other-process"];
    let found = findings::find(&[], runs);
    about.into_iter().filter(|id| found.iter().any(|f| f.id == *id)).collect()
}

#[test]
fn a_tree_of_thousands_of_files_that_the_run_before_brought_in() {
    let mut origins = Origins::default();
    let tree = |what: fn(u32, u64) -> FileSample| (0..6000).map(|n| what(OURS, n)).collect::<Vec<_>>();
    let first = run_of(&mut origins, 1, &[tree(miss)], &whole());
    assert_eq!((first.warm_pages, first.asked_pages), (0, 18_000));
    let second = run_of(&mut origins, 2, &[tree(hit)], &whole());
    assert_eq!((second.warm_pages, second.asked_pages), (18_000, 18_000));
    assert_eq!(second.origin, crate::report::data::Origin { runs: vec![(1, 18_000)], ..Default::default() });
    assert_eq!(said(&[first, second]), ["warmed-by-earlier-run"]);
}

#[test]
fn a_tree_that_nobody_brought_in() {
    let mut origins = Origins::default();
    // The run before read another one.
    let first = run_of(&mut origins, 1, &[(0..6000).map(|n| miss(OURS, n)).collect()], &whole());
    let second = run_of(&mut origins, 2, &[(6000..12_000).map(|n| hit(OURS, n)).collect()], &whole());
    assert_eq!(said(&[first.clone(), second.clone()]), ["cached-before"]);
    // Half of it, and a page less than half: the rest was brought in by the run before.
    let mixed = |from: u64| (from..from + 6000).map(|n| hit(OURS, n)).collect::<Vec<_>>();
    let third = run_of(&mut origins, 3, &[mixed(3000)], &whole());
    assert_eq!(third.origin.before, 9000);
    assert_eq!(said(&[first, second, third]), ["cached-before", "warmed-by-earlier-run"]);
}

#[test]
fn a_list_that_is_full_proves_nothing_of_before() {
    let mut origins = Origins::with_room(1000);
    let run = |o: &mut Origins, n, what: fn(u32, u64) -> FileSample| {
        run_of(o, n, &[(0..5000).map(|n| what(OURS, n)).collect()], &whole())
    };
    let first = run(&mut origins, 1, miss);
    let second = run(&mut origins, 2, hit);
    assert_eq!((second.warm_pages, second.origin.before), (15_000, 0));
    assert!(second.origin.unlisted);
    assert_eq!(said(&[first, second]), Vec::<&str>::new());
}

#[test]
fn many_cold_files_are_not_outweighed_by_few_warm_ones() {
    let tree = |warm: u64, cold: u64| {
        let warm = (0..warm).map(|n| hit(OURS, n));
        warm.chain((100_000..100_000 + cold).map(|n| miss(OURS, n))).collect::<Vec<_>>()
    };
    let run = |warm, cold| run_of(&mut Origins::default(), 1, &[tree(warm, cold)], &whole());
    let mostly_cold = run(5100, 15_000);
    assert_eq!((mostly_cold.warm_pages, mostly_cold.asked_pages), (15_300, 60_300));
    assert_eq!(said(&[mostly_cold]), Vec::<&str>::new());
    assert_eq!(said(&[run(2999, 3001)]), Vec::<&str>::new());
    assert_eq!(said(&[run(3000, 3000)]), ["cached-before"]);
}

#[test]
fn other_ways_in_weigh_as_much() {
    // Thousands of small files are read warm; one is mapped, or read past the cache, and is larger than all of them.
    let small = || (0..2000).map(|n| hit(OURS, n));
    for way in [
        &[(Counter::FaultMisses, 37), (Counter::Prefetched, 65_500)][..],
        &[(Counter::DirectReadBytes, 256 << 20)],
    ] {
        let rows = small().chain([used(OURS, 9999, way)]).collect();
        let run = run_of(&mut Origins::default(), 1, &[rows], &whole());
        let cached = run.cached_before();
        assert_eq!(said(&[run]), Vec::<&str>::new());
        // Whether the cache had what went past it is not known.
        assert_eq!(cached.is_none(), way[0].0 == Counter::DirectReadBytes, "{cached:?}");
    }
    let run = run_of(&mut Origins::default(), 1, &[small().collect()], &whole());
    assert_eq!(said(&[run]), ["cached-before"]);
}

#[test]
fn who_comes_back_to_its_own_pages_found_nothing() {
    // Half of a file of 6 pages is read twice: as many hits as if the other half had been there.
    let twice = |n| {
        used(OURS, n, &[(Counter::ReadMisses, 3), (Counter::ReadHits, 3), (Counter::ReadBytes, 6 * 4096)])
    };
    let rows: Vec<_> = (0..1500).map(twice).collect();
    let run = run_of(&mut Origins::default(), 1, std::slice::from_ref(&rows), &Made(6, 3));
    assert_eq!((run.warm_pages, run.asked_pages), (0, 9000));
    assert_eq!(said(&[run]), Vec::<&str>::new());
    // And if it was: six are cached, of which it brought in three.
    let run = run_of(&mut Origins::default(), 1, &[rows], &Made(6, 6));
    assert_eq!((run.warm_pages, run.asked_pages), (4500, 9000));
    assert_eq!(said(&[run]), ["cached-before"]);
}

#[test]
fn who_reads_one_part_again_and_again_has_not_found_the_other_part() {
    // Of 240 pages the second half was cached; the first quarter is read three times, or four times, or all of it.
    let first = |n: u64, pages: u64| {
        let read = u32::try_from((1_u64 << pages.div_ceil(16)) - 1).unwrap();
        Parts::Of { order: 4, read, stretches: u32::try_from(n).unwrap() }
    };
    let times = |n: u64, pages: u64, own: u64| {
        let hits = n * pages - own;
        let counters =
            [(Counter::ReadMisses, own), (Counter::ReadHits, hits), (Counter::ReadBytes, n * pages * 4096)];
        (bound_by(&[used(OURS, 1, &counters)], &Made(240, 120 + own), Some(0), |_| first(n, pages)), own)
    };
    assert_eq!(times(3, 64, 64), ((0, 64, 64), 64));
    assert_eq!(times(4, 60, 60), ((0, 64, 60), 60), "as many bytes as the file has");
    assert_eq!(times(2, 120, 120).0.0, 0, "the other half is what was cached");
    assert_eq!(times(1, 240, 120), ((120, 120, 120), 120));
    assert_eq!(times(3, 240, 120), ((120, 120, 120), 120));
    // What nobody looked at, or is mapped, may have been anything.
    let mixed = || {
        used(
            OURS,
            1,
            &[(Counter::ReadMisses, 64), (Counter::ReadHits, 128), (Counter::ReadBytes, 192 * 4096)],
        )
    };
    assert_eq!(bound_by(&[mixed()], &Made(240, 184), Some(0), |_| Parts::Unknown), (0, 120, 64));
    // No more than all of its files had, but what is known for sure.
    let there = |n| bound_there(&[mixed()], &Made(240, 184), (Some(0), Some(n)), |_| Parts::Unknown);
    assert_eq!([there(7), there(500)], [(0, 7, 64), (0, 120, 64)]);
    let warm = [hit(OURS, 1)];
    assert_eq!(bound_there(&warm, &whole(), (Some(0), Some(1)), |f| once(f, 3)), (3, 3, 0));
}

#[test]
fn what_a_run_reads_again_and_again_was_brought_in_once() {
    let mut origins = Origins::default();
    let three = |counter| {
        vec![used(OURS, 1, &[(counter, 3000), (Counter::ReadHits, 6000), (Counter::ReadBytes, 9000 * 4096)])]
    };
    let part = |order, read| Parts::Of { order, read, stretches: 3 };
    // A quarter of 12 000 pages, three times: by the first run, and then warm.
    let look = Made(12_000, 3000);
    let first = run_of_parts(&mut origins, 1, &[three(Counter::ReadMisses)], &look, part(9, 0b11_1111));
    let second = run_of_parts(&mut origins, 2, &[three(Counter::ReadHits)], &look, part(9, 0b11_1111));
    assert_eq!((first.warm_pages, second.warm_pages, second.origin.before), (0, 3072, 0));
    assert_eq!(said(&[first, second]), ["warmed-by-earlier-run"]);
}

/// Pages that are put down to others, and those that may have been theirs, after one reading each.
fn found(readings: &[Vec<FileSample>]) -> (u64, u64) {
    let run = run_of(&mut Origins::default(), 1, readings, &Made(900, 900));
    (run.origin.others, run.origin.others + run.origin.meanwhile)
}

#[test]
fn who_reads_later_has_not_warmed_it() {
    let theirs = || vec![used(THEIRS, 12, &[(Counter::ReadMisses, 900)])];
    let ours = || vec![used(OURS, 12, &[(Counter::ReadHits, 900), (Counter::ReadBytes, 900 * 4096)])];
    assert_eq!(found(&[theirs(), ours()]), (900, 900), "before");
    assert_eq!(found(&[ours(), theirs()]), (0, 0), "after");
    assert_eq!(found(&[ours(), theirs(), ours()]), (0, 900), "in between: of which pages is not known");
    assert_eq!(found(&[[theirs(), ours()].concat()]), (0, 900), "at the same time");
    assert_eq!(found(&[theirs(), ours(), vec![], theirs()]), (900, 900));
}

#[test]
fn who_came_last_brought_in_what_is_there() {
    // The run before brought it in; then it was dropped, and read by somebody else.
    let mut origins = Origins::default();
    let tree = |who, what: fn(u32, u64) -> FileSample| (0..3000).map(|n| what(who, n)).collect::<Vec<_>>();
    let first = run_of(&mut origins, 1, &[tree(OURS, miss), tree(THEIRS, miss)], &whole());
    let second = run_of(&mut origins, 2, &[tree(OURS, hit)], &whole());
    assert_eq!((second.origin.others, second.origin.runs.len()), (9000, 0));
    assert_eq!(second.warmers[0].fills, 9000);
    let all = findings::find(&[], &[first, second]);
    let said = all.iter().find(|f| f.id == "warmed-by-other-process").unwrap();
    assert!(
        said.text.contains("cat (process 20)")
            && said.text.contains("had brought them in, reading or writing "),
        "{}",
        said.text
    );
}

#[test]
fn what_was_read_ahead_for_nothing_is_known_of_all_files_that_were_only_read() {
    let mut tree: Vec<Used> = Vec::new();
    let mut file = |counters: &[(Counter, u64)]| {
        let f = used(OURS, tree.len() as u64, counters);
        tree.push(Used {
            file: f.file,
            deleted: false,
            sum: f.counters,
            parts: Parts::Unknown,
            fillers: Vec::new(),
            meanwhile: 0,
        });
    };
    for _ in 0..6000 {
        file(&[(Counter::Prefetched, 8), (Counter::ReadAheadHits, 3), (Counter::ReadMisses, 1)]);
    }
    // Which of these were used by a mapping or a write is not known.
    for way in [Counter::FaultHits, Counter::FaultMisses, Counter::WriteHits] {
        file(&[(Counter::Prefetched, 8), (way, 1)]);
    }
    // The pages were another's.
    file(&[(Counter::ReadAheadHits, 9), (Counter::Prefetched, 8)]);
    assert_eq!(tree.iter().map(unused).sum::<u64>(), 6000 * 5);
}

/// Pages that were there before, at least and at most, and those that were not, at least.
fn bound(files: &[FileSample], look: &Made, gone: Option<u64>) -> (u64, u64, u64) {
    bound_by(files, look, gone, |f| once(f, look.0))
}

/// The same, with the parts that were read.
fn bound_by(
    files: &[FileSample],
    look: &Made,
    gone: Option<u64>,
    parts: impl Fn(&FileSample) -> Parts,
) -> (u64, u64, u64) {
    bound_there(files, look, (gone, None), parts)
}

/// The same, where so much was there at most.
fn bound_there(
    files: &[FileSample],
    look: &Made,
    (gone, there): (Option<u64>, Option<u64>),
    parts: impl Fn(&FileSample) -> Parts,
) -> (u64, u64, u64) {
    let mut sum = Counters::default();
    let used = files.iter().map(|f| {
        sum.add_sparse(&f.counters);
        let (file, sum) = (Arc::clone(&f.file), f.counters.clone());
        Used { file, deleted: false, sum, parts: parts(f), fillers: Vec::new(), meanwhile: 0 }
    });
    let used: Vec<_> = used.collect();
    let (origins, mounts) = (Origins::default(), Mounts::default());
    let nobody = certify::Brought::default();
    let judged = warm::judge(&used, (&sum, gone, there), (1, false), (&origins, &nobody), &mounts, look);
    (judged.warm, judged.bound.warm, judged.bound.other)
}

#[test]
fn what_may_have_been_there_is_bounded() {
    use Counter::FaultHits;
    use Counter::FaultMisses;
    use Counter::Prefetched;
    use Counter::ReadAheadHits;
    use Counter::ReadBytes;
    use Counter::ReadHits;
    use Counter::ReadMisses;
    for (what, counters, made, want) in [
        ("a tree, cold", &[(ReadMisses, 3), (ReadBytes, 3 * 4096)][..], Made(3, 3), (0, 0, 3)),
        ("warm", &[(ReadHits, 3), (ReadBytes, 3 * 4096)], Made(3, 3), (3, 3, 0)),
        // Ten bytes of each of a thousand pages, and one page that was not there.
        (
            "far apart",
            &[(ReadHits, 1000), (ReadMisses, 1), (ReadBytes, 10_010)],
            Made(4000, 1001),
            (2, 1000, 1),
        ),
        (
            "far apart, its own",
            &[(ReadHits, 1000), (ReadMisses, 1), (ReadBytes, 10_010)],
            Made(4000, 1),
            (0, 0, 1),
        ),
        (
            "all is its own",
            &[(ReadHits, 900), (ReadMisses, 100), (ReadBytes, 100 * 4096)],
            Made(100, 100),
            (0, 0, 100),
        ),
        ("mapped", &[(FaultHits, 900), (FaultMisses, 30), (Prefetched, 870)], Made(900, 900), (0, 0, 900)),
        // Somebody had read ahead for it.
        (
            "read ahead",
            &[(ReadAheadHits, 50), (ReadMisses, 1), (ReadBytes, 51 * 4096)],
            Made(60, 60),
            (0, 50, 1),
        ),
    ] {
        assert_eq!(bound(&[used(OURS, 1, counters)], &made, Some(0)), want, "{what}");
    }
    // What left the cache may have been read in again: then less of what was brought in is another page.
    let again = || used(OURS, 1, &[(ReadHits, 60), (ReadMisses, 100), (ReadBytes, 160 * 4096)]);
    assert_eq!(bound(&[again()], &Made(100, 100), Some(20)), (0, 20, 80));
    assert_eq!(bound(&[again()], &Made(100, 100), None), (0, 60, 0));
    // Of a file without hits it changes nothing.
    assert_eq!(bound(&[miss(OURS, 1)], &whole(), Some(2)), (0, 0, 1));
}

/// Pages of a file of which so many came in.
fn came(inode: u64, missed: u64, ahead: u64) -> FileSample {
    used(OURS, inode, &[(Counter::ReadMisses, missed), (Counter::Prefetched, ahead)])
}

#[test]
fn what_must_have_come_in_twice() {
    let twice = |size: Option<u64>, files: &[FileSample]| {
        let used = |f: &FileSample| Used {
            file: Arc::clone(&f.file),
            deleted: false,
            sum: f.counters.clone(),
            parts: Parts::Unknown,
            fillers: Vec::new(),
            meanwhile: 0,
        };
        twice::twice(&files.iter().map(used).collect::<Vec<_>>(), |_| size)
    };
    // A file that is read twice with room for none of it; one page may lie past the end.
    assert_eq!(twice(Some(1000), &[came(1, 20, 1980)]), 999);
    // Once, or a half of it twice: of which half is not known.
    assert_eq!(twice(Some(1000), &[came(1, 20, 981)]), 0);
    // What one has more does not make up for what another has less.
    assert_eq!(twice(Some(1000), &[came(1, 0, 1500), came(2, 0, 500)]), 499);
    // A tree of thousands of files, four times.
    let tree: Vec<_> = (0..6000).map(|n| came(n, 4, 3 * PAGES)).collect();
    assert_eq!(twice(Some(PAGES), &tree), 6000 * (4 + 2 * PAGES - 1));
    // Of one that was cut off meanwhile nobody knows how long it was.
    assert_eq!(twice(None, &[came(1, 20, 1980)]), 0);
}

#[test]
fn what_was_changed_meanwhile_has_no_size() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, [0; 10_000]).unwrap();
    let meta = std::fs::metadata(&path).unwrap();
    let named = |inode| {
        let mut sample = used(OURS, inode, &[]);
        let name = path.to_str().unwrap().to_owned();
        sample.file = Arc::new(File { name, ..(*sample.file).clone() });
        let sum = Sparse::default();
        Used {
            file: sample.file,
            deleted: false,
            sum,
            parts: Parts::Unknown,
            fillers: Vec::new(),
            meanwhile: 0,
        }
    };
    let (mounts, known) = (Mounts::parse("1 0 254:0 / / rw - ext4 /dev/x rw\n"), Beforehand::default());
    let look = warm::Disk::new(&mounts, &known);
    let inode = std::os::unix::fs::MetadataExt::ino(&meta);
    let after = |ms| jiff::Timestamp::now() + Duration::from_millis(ms);
    let block = std::os::unix::fs::MetadataExt::blksize(&meta).max(crate::report::units::page());
    let pages = 10_000_u64.div_ceil(block) * block / crate::report::units::page();
    assert_eq!(look.unchanged(&named(inode), after(1000)), Some(pages));
    // As late as that, or later: it may have been longer before.
    assert_eq!(look.unchanged(&named(inode), after(0) - Duration::from_secs(1)), None);
    // Another file has its name.
    assert_eq!(look.unchanged(&named(inode + 1), after(1000)), None);
}

/// `mv new old; cat old`: what was cached of the file that was called so before is nothing that is known of the new one.
#[test]
fn what_was_cached_of_another_file_of_the_same_name() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    let inode = |path: &std::path::Path| {
        std::fs::write(path, [0; 4096]).unwrap();
        std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap())
    };
    let inodes = [&old, &new].map(|path| inode(path));
    let dev = used(OURS, 1, &[]).file.dev;
    let mounts = Mounts::parse(&format!("1 0 {dev} / / rw - ext4 /dev/x rw\n"));
    let mut known = Beforehand::default();
    let cached = || Some(crate::report::data::Residency { cached: 1, pages: 1, pattern: None });
    known.note(&old, dev, cached);
    std::fs::rename(&new, &old).unwrap();
    let rows = inodes.map(|inode| {
        let file = used(OURS, inode, &[]).file;
        let file = Arc::new(File { name: old.to_str().unwrap().to_owned(), ..(*file).clone() });
        let (sum, parts, fillers) = (Sparse::default(), Parts::Unknown, Vec::new());
        let used = Used { file, deleted: false, sum, parts, fillers, meanwhile: 0 };
        row(&used, None, &mounts, &known, &[true; crate::figures::FIGURES], &residency::Round::new())
    });
    assert_eq!((rows[0].before.clone(), rows[1].before.clone()), (cached(), None));
    let why = "another file had its name before the run";
    assert_eq!(
        (rows[0].residency_unknown.as_deref(), rows[1].residency_unknown.as_deref()),
        (None, Some(why))
    );
    assert!(rows[0].after.is_none() && rows[1].after.is_some());
}

#[test]
fn the_work_on_names_is_known_where_nearly_all_of_it_was_seen() {
    let seen = |all, ended| {
        let mut c = Counters::default();
        c.0[Counter::Lookups as usize] = all;
        c.0[Counter::LookupsEnded as usize] = ended;
        enough_ended(&c)
    };
    assert!(seen(0, 0) && seen(1000, 900) && seen(2, 0) && seen(63, 0));
    assert!(!seen(1000, 899) && !seen(64, 0));
}
