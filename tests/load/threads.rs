//! Many threads of one process.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;

use crate::sleep;
use crate::tools::*;

const THREADS: u64 = 64;
/// Pages of each file.
const PAGES: u64 = 33;
/// Naps of each thread that takes any.
const NAPS: u64 = 30;
/// Calls of a steady reader.
pub const STEADY: u64 = 6000;

/// Runs `work` in all threads, from the same moment on.
fn together(work: impl Fn(u64) + Sync) {
    let barrier = Barrier::new(usize::try_from(THREADS).unwrap());
    std::thread::scope(|scope| {
        for n in 0..THREADS {
            let (barrier, work) = (&barrier, &work);
            scope.spawn(move || {
                barrier.wait();
                work(n);
            });
        }
    });
}

fn page_of(file: &File, page: u64) {
    let mut buffer = vec![0; usize::try_from(page_size()).unwrap()];
    assert!(file.read_at(&mut buffer, page * page_size()).unwrap() > 0);
}

/// What the readers of these tests can do.
pub fn act(word: &str, path: &str) {
    let own = |n: u64| format!("{path}/{n}");
    match word {
        "each-random" => together(|n| read_whole(&own(n), Some(libc::POSIX_FADV_RANDOM))),
        "each" => together(|n| read_whole(&own(n), None)),
        "all" => together(|_| read_whole(path, None)),
        "naps" => together(|n| {
            let file = File::open(path).unwrap();
            for nap in 0..NAPS {
                page_of(&file, (n + nap) % PAGES);
                std::thread::sleep(Duration::from_millis(10));
            }
        }),
        "asleep" => {
            let a_second = || std::thread::sleep(Duration::from_secs(1));
            sleep::in_the_middle_of_a_read(path, THREADS, 1, a_second);
        }
        "steady" => {
            let file = File::open(path).unwrap();
            for n in 0..STEADY {
                page_of(&file, n % 8);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        "busy" => {
            let file = File::open(path).unwrap();
            (0..20_000).for_each(|n| page_of(&file, n % 8));
        }
        // SAFETY: takes two numbers; -1 keeps the effective user, who may read the file.
        "become" => assert_eq!(unsafe { libc::setreuid(path.parse().unwrap(), libc::uid_t::MAX) }, 0),
        "storm" => crate::innocent::storm(path),
        "names" => crate::innocent::under_many_names(path),
        "given-up" => crate::given_up::write_to_each(path),
        "renamed" => crate::innocent::renamed_meanwhile(path),
        "files" => crate::files::read_all(Path::new(path)),
        "files-in-time" => crate::files::read_in_time(Path::new(path)),
        "files-asleep" => crate::files::read_and_sleep(Path::new(path)),
        _ => crate::tools::act(word, path),
    }
}

pub fn sixty_four_threads(dir: &Path) {
    for n in 0..THREADS {
        cold_file(&dir.join(n.to_string()), PAGES);
    }
    let shared = cold_file(&dir.join("shared"), 1000);
    // What is to be warm is held, for a machine may reclaim whenever it likes, and is looked at all the same.
    let hold = |path: &Path| {
        hold_warm(path);
        let file = File::open(path).unwrap();
        let pages = file.metadata().unwrap().len().div_ceil(page_size());
        assert_eq!(resident(&file), pages, "{} is not in the cache by mincore", path.display());
    };
    let mut reader = Reader::new();
    let mut monitor = Monitor::start("--json --by process --top 100000 0.1");
    let mut phases = Vec::new();
    for (word, path, pages) in [
        ("each-random", dir, THREADS * PAGES),
        ("each", dir, THREADS * PAGES),
        ("all", &shared, THREADS * 1000),
        ("all", &shared, THREADS * 1000),
    ] {
        match phases.len() {
            1 => (0..THREADS).for_each(|n| hold(&dir.join(n.to_string()))),
            3 => hold(&shared),
            _ => {}
        }
        reader.tell(word, path);
        phases.push((monitor.catch_up(), pages));
    }
    let skipped: Vec<_> = programs_of(monitor.pid()).into_iter().filter(|(_, n)| *n > 0).collect();
    let (intervals, total) = monitor.finish_json();
    let mut at = 0;
    let mut got = Vec::new();
    for (end, _) in &phases {
        got.push(reads(&rows_of(&intervals[at..*end], reader.pid())));
        at = *end;
    }
    for ([accesses, hits, ahead, misses, _], (_, pages)) in got.iter().zip(&phases) {
        assert_eq!(
            (*accesses, hits + ahead + misses),
            (*pages, *pages),
            "{got:?}: {total}, runs skipped: {skipped:?}"
        );
    }
    let all = THREADS * PAGES;
    assert_eq!(got[0][1..4], [0, 0, all], "cold, each its own file: {got:?}");
    assert_eq!(got[1][1..4], [all, 0, 0], "warm, each its own file: {got:?}");
    assert!(got[2][3] >= 1 && got[2][2] <= 1000, "cold, all the same file: {got:?}");
    assert_eq!(got[3][1..4], [64 * 1000, 0, 0], "warm, all the same file: {got:?}");
    let bytes = |path: &Path| std::fs::metadata(path).unwrap().len() * THREADS;
    let want = [&dir.join("0"), &dir.join("0"), &shared, &shared].map(|p| bytes(p));
    assert_eq!(got.iter().map(|g| g[4]).collect::<Vec<_>>(), want);
    // Each page of the shared file is brought in once, however many wait for it; 5.10 adds one behind the end.
    let fills = sum(&rows_of(&intervals[phases[1].0..phases[2].0], reader.pid()), "/readahead/fills");
    assert!((1000..=1001).contains(&fills), "{fills} of 1000 pages");
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
    reader.end();
}

pub fn readers_that_sleep(dir: &Path) {
    let file = cold_file(&dir.join("file"), PAGES);
    let cold = cold_file(&dir.join("cold"), THREADS);
    let mut reader = Reader::new();
    reader.tell("read", &file);
    let mut monitor = Monitor::start("--json --by process --top 100000 0.05");
    reader.tell("naps", &file);
    let napped = monitor.catch_up();
    // One page for each thread, and every one of the calls goes on for many ticks.
    reader.tell("asleep", &cold);
    let (intervals, total) = monitor.finish_json();
    let naps = reads(&rows_of(&intervals[..napped], reader.pid()));
    assert_eq!(naps[..4], [THREADS * NAPS, THREADS * NAPS, 0, 0], "between calls: {total}");
    let asleep = reads(&rows_of(&intervals[napped..], reader.pid()));
    assert_eq!(asleep[..4], [THREADS, 0, 0, THREADS], "inside of calls: {total}");
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
    reader.end();
}
