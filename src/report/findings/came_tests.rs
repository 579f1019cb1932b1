//! How the data came that a run waited for, and what is advised then.
#![allow(clippy::unwrap_used)]

use super::cause_tests::MS;
use super::cause_tests::waited;
use super::crowd::FILES;
use super::*;
use crate::figures::Figure;

/// How the data came, for which it waited.
pub(super) fn came(f: &Finding) -> Option<String> {
    f.evidence["came"].as_str().map(String::from)
}

/// A run that waited for 4000 pages that were read here and there, beside so many that page faults missed, and some that were read ahead; in
/// milliseconds.
pub(super) fn waited_in_both(read: u64, fault: u64, fault_misses: u64, ahead: u64) -> Finding {
    waited(|run| {
        run.files_seen = 1;
        (run.waits.read_ns, run.waits.fault_ns) = (Some(read * MS), Some(fault * MS));
        let figures = [
            (Figure::Misses, 4000),
            (Figure::ReadMissedCalls, 4000),
            (Figure::ReadAheadHits, 0),
            (Figure::FaultMisses, fault_misses),
            (Figure::ReadAheadPages, ahead),
        ];
        figures.iter().for_each(|(figure, n)| run.figures.set(*figure, Some(*n)));
    })
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
    let faults = |read, fault| waited_in_both(read, fault, 60, 15_000);
    assert_eq!(came(&faults(250, 20)).as_deref(), Some("random"), "{:?}", faults(250, 20));
    assert!(faults(20, 250).text.contains("page faults"), "{:?}", faults(20, 250));
    // What is not known is not told.
    let blind = waited(|run| run.figures.set(Figure::ReadAheadPages, None));
    assert!(blind.evidence["came"].is_null() && blind.remedy.is_none());
}
