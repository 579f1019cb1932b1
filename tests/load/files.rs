//! Many files.

use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Barrier;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use crate::tools::*;

/// Pages of each file: the first is missed, the second read ahead.
const PAGES: u64 = 2;
/// Files in a directory.
const FANOUT: u64 = 1000;

fn name(dir: &Path, n: u64) -> PathBuf {
    dir.join((n / FANOUT).to_string()).join((n % FANOUT).to_string())
}

/// Resident now without the program's own files, in bytes: in a guest's initramfs all of a debug build is. At its start
/// the command takes more for a moment: the types of the kernel, the verifier.
fn resident(pid: u32) -> u64 {
    let mut of_file = false;
    let mut kib = 0;
    for line in fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap().lines() {
        if let Some(rss) = line.strip_prefix("Rss:") {
            let rss: u64 = rss.trim().trim_end_matches(" kB").parse().unwrap();
            kib += if of_file { 0 } else { rss };
        } else if line.split(' ').next().is_some_and(|range| range.contains('-')) {
            of_file = line.split_whitespace().nth(5).is_some_and(|path| path.starts_with('/'));
        }
    }
    assert!(kib > 0);
    kib * 1024
}

/// Reads all files page by page, and leaves in a file how many misses and first uses of pages read ahead that makes:
/// memory may be short, and some machines take pages away that were not used for a second (DAMON).
pub fn read_all(dir: &Path) {
    let mut buffer = vec![0; usize::try_from(page_size()).unwrap()];
    let (mut misses, mut ahead) = (0_u64, 0_u64);
    for n in 0.. {
        let Ok(file) = File::open(name(dir, n)) else { break };
        // Both before the first is read, for that may bring the second.
        let there = [0, 1].map(|page| is_resident(&file, page));
        misses += u64::from(there != [true, true]);
        ahead += u64::from(there == [false, false]);
        for page in 0..PAGES {
            assert_eq!(file.read_at(&mut buffer, page * page_size()).unwrap(), buffer.len());
        }
    }
    fs::write(dir.join("want"), format!("{misses} {ahead}")).unwrap();
}

/// Files that are read in a second where each has a row of its own: the table has room for 16 384, and would bear 4096 if it were read
/// once a second.
const EACH_SECOND: u32 = 6000;

/// Reads the first page of each file, no more than [`EACH_SECOND`] of them a second, also after it has been kept waiting.
pub fn read_in_time(dir: &Path) {
    const BATCH: u32 = 100;
    let mut buffer = vec![0; usize::try_from(page_size()).unwrap()];
    let mut batch = Instant::now();
    for n in 0.. {
        let Ok(file) = File::open(name(dir, n)) else { break };
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), buffer.len());
        if n % u64::from(BATCH) == 0 {
            let due = batch + Duration::from_secs(1) * BATCH / EACH_SECOND;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            batch = Instant::now();
        }
    }
}

/// All files again, each with a row of its own: three times as many as there is room for.
fn each_has_a_row(dir: &Path, count: u64, reader: &mut Reader) {
    let monitor = Monitor::start("--csv --by file --top 100000 1");
    let start = Instant::now();
    reader.tell("files-in-time", dir);
    let took = start.elapsed();
    let lines = monitor.finish();
    let columns: Vec<&str> = lines[0].split(',').collect();
    let column = |name: &str| columns.iter().position(|c| *c == name).unwrap();
    // Names of these files have no commas in them.
    let all: Vec<Vec<&str>> = lines.iter().map(|l| l.split(',').collect()).collect();
    let below = format!("{}/", dir.display());
    let (mut sum, mut names) = (0, BTreeSet::new());
    for line in all.iter().filter(|l| l[column("path")].starts_with(&below)) {
        let reads: u64 = ["hits", "readahead_hits", "misses"]
            .map(|c| line[column(c)].parse::<u64>().unwrap())
            .iter()
            .sum();
        sum += reads;
        names.extend((reads > 0).then_some(line[column("path")]));
    }
    println!("     a row for each of {} files in {took:.1?}", names.len());
    assert_eq!((sum, names.len() as u64), (count, count), "in {took:?}");
}

pub fn many_files(dir: &Path) {
    let count = crate::options().files;
    let content = vec![0x5a; usize::try_from(PAGES * page_size()).unwrap()];
    let start = Instant::now();
    for n in 0..count {
        if n % FANOUT == 0 {
            fs::create_dir(dir.join((n / FANOUT).to_string())).unwrap();
        }
        File::create_new(name(dir, n)).unwrap().write_all(&content).unwrap();
    }
    // SAFETY: a descriptor of ours.
    assert_eq!(unsafe { libc::syncfs(std::os::fd::AsRawFd::as_raw_fd(&File::open(dir).unwrap())) }, 0);
    for n in 0..count {
        advise(&File::open(name(dir, n)).unwrap(), libc::POSIX_FADV_DONTNEED);
    }
    let made = start.elapsed().as_secs_f64();
    let mut reader = Reader::new();
    let mut monitor = Monitor::start("--json --by process --top 100000 1");
    let phases = [(); 2].map(|()| {
        let start = Instant::now();
        reader.tell("files", dir);
        let took = start.elapsed().as_secs_f64();
        let want = fs::read_to_string(dir.join("want")).unwrap();
        let [misses, ahead] = [0, 1].map(|n| want.split(' ').nth(n).unwrap().parse::<u64>().unwrap());
        (took, monitor.catch_up(), misses, ahead)
    });
    let memory = resident(monitor.pid());
    let (intervals, total) = monitor.finish_json();
    let [(cold_s, cold, ..), (warm_s, _, misses, ahead)] = phases;
    println!(
        "     {count} files made in {made:.1} s, read cold in {cold_s:.1} s and warm in {warm_s:.1} s; monitor {} KiB",
        memory / 1024
    );
    let (cold, warm) = intervals.split_at(cold);
    let [cold, warm] = [cold, warm].map(|i| reads(&rows_of(i, reader.pid())));
    let bytes = count * PAGES * page_size();
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
    assert_eq!(cold, [2 * count, 0, count, count, bytes], "cold");
    let hits = 2 * count - misses - ahead;
    assert_eq!(warm, [2 * count, hits, ahead, misses, bytes], "warm");
    each_has_a_row(dir, count, &mut reader);
    reader.end();
    assert!(memory <= 15 << 20, "{memory} bytes");
}

/// Each with a file of its own.
const SLEEPERS: u64 = 8;
const ROUNDS: u64 = 4;
/// Reads of a sleeper in each round.
const CALLS: u64 = 5;
/// Files that others read while they sleep, in each round: more than have room for long.
const BESIDE: u64 = 200;

/// Reads that are long over when the next one begins, and files that are put away meanwhile.
pub fn read_and_sleep(dir: &Path) {
    let (dir, barrier) = (dir, Barrier::new(usize::try_from(SLEEPERS).unwrap() + 1));
    let mut page = vec![0; usize::try_from(page_size()).unwrap()];
    std::thread::scope(|scope| {
        for n in 0..SLEEPERS {
            let (barrier, mut page) = (&barrier, page.clone());
            scope.spawn(move || {
                let file = File::open(dir.join(format!("own-{n}"))).unwrap();
                for call in 0..ROUNDS * CALLS {
                    file.read_exact_at(&mut page, call % PAGES * page_size()).unwrap();
                    std::thread::sleep(Duration::from_millis(30));
                    if call % CALLS == CALLS - 1 {
                        // Until the others begin, and until they are through.
                        barrier.wait();
                        barrier.wait();
                    }
                }
            });
        }
        for n in 0..ROUNDS * BESIDE {
            if n % BESIDE == 0 {
                barrier.wait();
            }
            let file = File::open(dir.join(format!("beside-{}", n % BESIDE))).unwrap();
            file.read_exact_at(&mut page, 0).unwrap();
            std::thread::sleep(Duration::from_millis(1));
            if n % BESIDE == BESIDE - 1 {
                barrier.wait();
            }
        }
    });
}

pub fn files_of_threads_that_sleep(dir: &Path) {
    for n in 0..SLEEPERS {
        hold_warm(&cold_file(&dir.join(format!("own-{n}")), PAGES + 1)); // the last page is not whole
    }
    for n in 0..BESIDE {
        hold_warm(&cold_file(&dir.join(format!("beside-{n}")), 2));
    }
    let mut reader = Reader::new();
    let mut monitor = Monitor::start("--json --by file --top 100000 --file-table 512 0.05");
    reader.tell("files-asleep", dir);
    monitor.catch_up();
    let (intervals, total) = monitor.finish_json();
    reader.end();
    let of = |name: &str| {
        let is = |row: &&Value| row["path"].as_str().is_some_and(|path| path.ends_with(name));
        reads(&rows(&intervals).filter(is).collect::<Vec<_>>())
    };
    let calls = ROUNDS * CALLS;
    for n in 0..SLEEPERS {
        let own = of(&format!("/own-{n}"));
        assert_eq!((own[0], own[4]), (calls, calls * page_size()), "own-{n}: {own:?}, {total}");
    }
    for n in 0..BESIDE {
        let beside = of(&format!("/beside-{n}"));
        assert_eq!((beside[0], beside[4]), (ROUNDS, ROUNDS * page_size()), "beside-{n}: {beside:?}, {total}");
    }
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
}
