//! Many files.

use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::Instant;

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
    reader.end();
    assert!(memory <= 15 << 20, "{memory} bytes");
}
