//! The rules about how files are read: read-ahead, direct I/O, mappings.

use super::*;
use crate::report::units::of_pages;

#[test]
fn read_ahead_wasted() {
    let mut run = cold();
    run.figures.set(Figure::ReadAheadPages, Some(15000));
    let found = find(&[], &[run.clone()]);
    let wasted = found.iter().find(|f| f.id == "readahead-wasted").unwrap();
    assert!(wasted.text.contains("34 %"), "{}", wasted.text);
    // Used through a mapping after all.
    run.figures.set(Figure::FaultAround, Some(5000));
    assert!(!ids(&[run.clone()]).contains(&"readahead-wasted"));
    // Whether it was is not known.
    for figure in [Figure::FaultAround, Figure::FaultHits] {
        let mut run = run.clone();
        run.figures.set(Figure::FaultAround, Some(0));
        run.figures.set(figure, None);
        assert!(!ids(&[run]).contains(&"readahead-wasted"), "{figure:?}");
    }
    // A large program that maps itself, and a file that it asks for ahead and hardly reads.
    run.unused_pages = Some(5000);
    assert!(ids(&[run.clone()]).contains(&"readahead-wasted"));
    run.unused_pages = Some(200);
    assert!(!ids(&[run]).contains(&"readahead-wasted"));
}

#[test]
fn read_ahead_cut_short() {
    let mut run = cold();
    let pattern = Some(Pattern { absent: 13, present: 1, times: 700 });
    run.files[0].before = Some(Residency { cached: 731, pages: 10240, pattern });
    let found = find(&[], &[run.clone()]);
    let cut = found.iter().find(|f| f.id == "readahead-cut-short").unwrap();
    assert!(cut.text.contains("13 absent, 1 present") && cut.text.contains("52 KiB"), "{}", cut.text);
    // FADV_RANDOM: there was no read-ahead.
    let mut random = run.clone();
    (random.files[0].misses, random.files[0].readahead_pages) = (10240, 0);
    assert!(!ids(&[random]).contains(&"readahead-cut-short"));
    // Holes larger than a window cut nothing short.
    run.files[0].before = Some(Residency {
        pattern: Some(Pattern { absent: 500, present: 1, times: 20 }),
        ..Residency::default()
    });
    assert!(!ids(&[run]).contains(&"readahead-cut-short"));
    // By the windows alone.
    let mut run = cold();
    run.figures.set(Figure::Windows, Some(320));
    run.figures.set(Figure::WindowsCut, Some(300));
    // By pages that it had brought in itself: with as many cached before of its program, of which nothing was read ahead.
    run.warm_pages = 2000;
    assert!(!ids(&[run.clone()]).contains(&"readahead-cut-short"));
    run.warm_ahead_pages = 299;
    assert!(!ids(&[run.clone()]).contains(&"readahead-cut-short"));
    run.files[0].before = Some(Residency { cached: 300, pages: 10240, pattern: None });
    assert!(ids(&[run.clone()]).contains(&"readahead-cut-short"));
    (run.files[0].before, run.warm_ahead_pages) = (None, 300);
    assert!(ids(&[run.clone()]).contains(&"readahead-cut-short"));
    run.figures.set(Figure::WindowsCut, Some(10));
    assert!(!ids(&[run]).contains(&"readahead-cut-short"));
}

#[test]
fn read_ahead_limited() {
    let run = |fs: &str, kb: u64, bucket: usize, waited: u64| {
        let mut run = cold();
        run.files[0].fs = Some(fs.into());
        run.files[0].read_ahead_kb = Some(kb);
        run.window_pages.as_mut().unwrap()[bucket] = 10_240 >> bucket;
        run.waits.read_ns = Some(waited);
        run
    };
    let found = find(&[], &[run("nfs4", 128, 5, 800_000_000)]);
    let limited = found.iter().find(|f| f.id == "readahead-limited").unwrap();
    assert!(limited.remedy.as_deref().unwrap().contains("/sys/class/bdi/254:0/read_ahead_kb"));
    let silent = |run: Run, why: &str| assert!(!ids(&[run]).contains(&"readahead-limited"), "{why}");
    silent(run("ext4", 128, 5, 800_000_000), "128 KiB is what local disks have");
    silent(run("nfs4", 128, 5, 100_000_000), "it did not wait");
    silent(run("nfs4", 128, 3, 800_000_000), "windows were not as large as they might have been");
    silent(run("nfs4", 4096, 10, 800_000_000), "4 MiB is no narrow limit");
    let mut random = run("nfs4", 128, 5, 800_000_000);
    random.files[0].read_bytes = 10 << 20;
    silent(random, "not read from end to end");
    let mut unknown = run("nfs4", 128, 5, 800_000_000);
    unknown.window_pages = None;
    silent(unknown, "windows are not known");
    assert!(ids(&[run("ext4", 4, 0, 800_000_000)]).contains(&"readahead-limited"));
}

#[test]
fn direct_io() {
    let run = with(&[(Figure::DirectReadBytes, 32 << 20), (Figure::ReadBytes, 7 << 20)]);
    let found = find(&[], &[run]);
    assert_eq!(found[0].id, "direct-io-bypassed");
    assert!(found[0].text.starts_with("82 % of the bytes"), "{}", found[0].text);
    let little = with(&[(Figure::DirectReadBytes, 4096)]);
    assert_eq!(ids(&[little]), Vec::<&str>::new());
    // What was written through the cache, where only what became dirty is known, and where nothing is: 4 MiB are a tenth of 40.
    let mut tracepoints = with(&[(Figure::DirectReadBytes, 4 << 20), (Figure::Dirtied, 36 << 8)]);
    tracepoints.figures.set(Figure::WriteAccesses, None);
    assert_eq!(ids(&[tracepoints.clone()]), Vec::<&str>::new());
    tracepoints.figures.set(Figure::Dirtied, Some(1 << 8));
    assert_eq!(ids(&[tracepoints.clone()]), ["direct-io-bypassed"]);
    tracepoints.figures.set(Figure::Dirtied, None);
    assert_eq!(ids(&[tracepoints]), Vec::<&str>::new());
    let back = with(&[(Figure::DirectFellBack, 1 << 20)]);
    assert_eq!(ids(&[back]), ["direct-io-fell-back"]);
}

#[test]
fn a_working_set_larger_than_the_cache() {
    let speaks = |run: &Run| ids(std::slice::from_ref(run)).contains(&"working-set-too-large");
    let mut run = cold();
    run.figures.set(Figure::Refaulted, Some(4000));
    (run.system.evicted, run.system.removed) = (Some(4000), Some(0));
    // What it read had been evicted before, and others evicted as much of theirs while it ran: it brought in nothing twice.
    for twice in [None, Some(0)] {
        run.twice_pages = twice;
        assert!(!speaks(&run));
    }
    run.twice_pages = Some(4000);
    let told = find(&[], &[run.clone()]);
    let told = told.iter().find(|f| f.id == "working-set-too-large").unwrap();
    assert!(told.text.contains("Whether it took that room itself"), "{}", told.text);
    assert!(told.remedy.as_ref().unwrap().contains("--blame"));
    // All that left was given up, or dropped; or may have been; or nobody knows when it was evicted.
    let silent: [fn(&mut Run); 6] = [
        |run| run.system.removed = Some(3900),
        |run| run.system.removed = None,
        |run| _ = run.lost.insert("order".into(), 3900),
        |run| run.system.evicted = Some(100),
        |run| run.system.evicted = None,
        |run| run.figures.set(Figure::Refaulted, Some(100)),
    ];
    for change in silent {
        let mut run = run.clone();
        change(&mut run);
        assert!(!speaks(&run), "{:?} {:?}", run.system, run.lost);
    }
    // Not every kernel says whose refaults they are. That is no matter here.
    run.figures.set(Figure::Refaulted, None);
    assert!(speaks(&run));
}

#[test]
fn a_file_read_once_whose_windows_were_evicted_before_they_were_read() {
    // 40 MiB by windows of 8 MiB in a cgroup of 14: 27 136 pages came in, 17 024 of them were never read.
    let mut run = cold();
    run.figures.set(Figure::Fills, Some(27_136));
    run.figures.set(Figure::Refaulted, Some(16_896));
    run.figures.set(Figure::ReadAheadPages, Some(27_000));
    run.files[0].read_ahead_kb = Some(8192);
    (run.system.evicted, run.system.removed) = (Some(24_000), Some(0));
    run.twice_pages = Some(16_896);
    (run.unused_pages, run.system.readahead_wasted) = (Some(17_024), Some(17_024));
    let about = |run: &Run| {
        let all = ["readahead-wasted", "readahead-evicted", "working-set-too-large"];
        let told = ids(std::slice::from_ref(run));
        all.into_iter().filter(|id| told.contains(id)).collect::<Vec<_>>()
    };
    assert_eq!(about(&run), ["readahead-evicted"]);
    let told = find(&[], &[run.clone()]);
    let told = told.iter().find(|f| f.id == "readahead-evicted").unwrap();
    let says = format!("at least {} were brought in again", of_pages(16_896));
    assert!(told.text.contains(&says) && told.text.contains(&of_pages(17_024)), "{}", told.text);
    assert!(told.remedy.as_ref().unwrap().contains("read_ahead_kb=128 "), "{told:?}");
    // A window that cannot be made smaller is not to be made larger. Of none that is known nobody knows.
    let remedy = |run: &Run| {
        let found = find(&[], std::slice::from_ref(run));
        found.into_iter().find(|f| f.id == "readahead-evicted").unwrap().remedy.unwrap()
    };
    for (kb, smaller) in [(32, Some("=16 ")), (17, Some("=16 ")), (16, None), (4, None)] {
        let mut run = run.clone();
        run.files[0].read_ahead_kb = Some(kb);
        let says = remedy(&run);
        assert_eq!(smaller.is_some(), says.contains("--try"), "{kb}: {says}");
        assert!(smaller.is_none_or(|s| says.contains(s)) && says.contains("ore memory"), "{kb}: {says}");
    }
    let mut asked = run.clone();
    asked.files[0].read_ahead_kb = None;
    assert!(remedy(&asked).starts_with("More memory (a cgroup"));
    // Somebody asked for it: no window bounds that.
    asked.files[0] =
        FileRow { misses: 0, readahead_hits: 0, readahead_pages: 27_000, ..run.files[0].clone() };
    let says = remedy(&asked);
    assert!(says.contains("POSIX_FADV_WILLNEED") && !says.contains("smaller window"), "{says}");
    // More came back than read-ahead can have lost: the rest had been used.
    run.twice_pages = Some(20_024);
    assert_eq!(about(&run), ["readahead-evicted", "working-set-too-large"]);
    let told = find(&[], &[run.clone()]);
    let told = told.iter().find(|f| f.id == "working-set-too-large").unwrap();
    assert!(told.text.contains(&format!("at least {} were", of_pages(3000))), "{}", told.text);
    // It stayed in the cache, and came in once.
    (run.twice_pages, run.system.readahead_wasted) = (Some(0), Some(0));
    assert_eq!(about(&run), ["readahead-wasted"]);
    // Nothing that was read ahead was lost: all of what came back had been used.
    run.twice_pages = Some(16_896);
    assert_eq!(about(&run), ["readahead-wasted", "working-set-too-large"]);
}

#[test]
fn what_was_only_asked_for_is_no_matter_of_jumping_about() {
    let mut run = with(&[(Figure::ReadAheadPages, 10_000), (Figure::Fills, 10_000)]);
    run.unused_pages = Some(10_000);
    run.files = vec![FileRow { misses: 0, readahead_hits: 0, readahead_pages: 10_000, ..file() }];
    let told = |run: &Run| {
        let found = find(&[], std::slice::from_ref(run));
        let found = found.into_iter().find(|f| f.id == "readahead-wasted").unwrap();
        (found.text, found.remedy.unwrap())
    };
    let (text, remedy) = told(&run);
    assert!(text.ends_with(" for it, and none of it was used by it."), "{text}");
    assert!(remedy.contains("POSIX_FADV_WILLNEED") && !remedy.contains("RANDOM"), "{remedy}");
    // It read a little of the file, of which read-ahead can have fetched no more than some windows; and what it read was there.
    run.files[0].misses = 1;
    assert!(told(&run).1.contains("POSIX_FADV_WILLNEED"));
    (run.files[0].misses, run.files[0].readahead_hits) = (0, 40);
    assert!(told(&run).1.contains("POSIX_FADV_WILLNEED"));
    // The nearest in which read-ahead may have fetched it all: nobody knows that it asked.
    run.files[0].misses = 200;
    assert!(told(&run).1.contains("POSIX_FADV_RANDOM"));
    (run.files[0].misses, run.files[0].readahead_hits) = (1, 0);
    run.files[0].read_ahead_kb = Some(65_536);
    assert!(told(&run).1.contains("POSIX_FADV_RANDOM"));
    // Unless nothing was missing, and nothing there before that could have had it fetched.
    (run.files[0].misses, run.files[0].readahead_hits) = (0, 16);
    let before = |cached| Some(Residency { cached, pages: 10_240, pattern: None });
    run.files[0].before = before(0);
    assert!(told(&run).1.contains("POSIX_FADV_WILLNEED"));
    run.files[0].before = before(1);
    assert!(told(&run).1.contains("POSIX_FADV_RANDOM"));
    run.files[0].read_ahead_kb = None;
    assert!(told(&run).1.contains("POSIX_FADV_RANDOM"));
    run.figures.set(Figure::ReadAheadHits, Some(1));
    run.unused_pages = Some(9999);
    assert!(told(&run).0.ends_with("of which at least 99 % was not used by it."), "{}", told(&run).0);
}

#[test]
fn mappings() {
    let run = with(&[
        (Figure::FaultMisses, 500),
        (Figure::FaultHits, 100),
        (Figure::FaultAround, 9000),
        (Figure::Accesses, 60),
        (Figure::Hits, 60),
    ]);
    let mut blind = run.clone();
    assert_eq!(ids(&[run]), ["mapped-not-read"]);
    blind.figures.set(Figure::FaultAround, None);
    blind.figures.set(Figure::FaultHits, Some(2000));
    let found = find(&[], &[blind]);
    assert!(
        found[0].text.contains(&format!("at least {} were", of_pages(2500)))
            && found[0].text.contains("2000 minor), "),
        "{}",
        found[0].text
    );
    // As many as any program has.
    assert_eq!(ids(&[with(&[(Figure::FaultHits, 100), (Figure::FaultAround, 600)])]), Vec::<&str>::new());
    // Faults that do show it.
    let mut run = cold();
    run.usage.major_faults = Some(9000);
    assert!(!ids(&[run]).contains(&"faults-blind-to-reads"));
}
