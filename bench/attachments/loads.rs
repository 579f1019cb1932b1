//! Workloads that make a known number of events.

use std::fs::File;
use std::io;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Barrier;

use anyhow::Context as _;
use anyhow::Result;

use crate::clock::Clock;
use crate::ways::Event;

const PAGE: usize = 4 << 10;
/// Pages of the file that is in the cache.
const WARM: usize = 256;
/// A loop is timed in so many parts, each shorter than the time between two ticks; the median counts.
const PARTS: usize = 63;
/// Calls in each part, or pages added.
const CALLS: usize = 32;
const READERS: usize = 8;
/// Calls that each of the runnable readers makes, or pages that it adds.
const RUNS: usize = 20_000;
const ADDS: usize = 4096;
const SLEEPERS: usize = 64;
/// Pages that each of them waits for.
const WAITS: usize = 50;

/// Files to read.
pub struct Loads {
    dir: PathBuf,
    warm: File,
    /// Has a page on the disk for each wait of a sleeper.
    cold: File,
    clock: Clock,
}

impl Loads {
    pub fn new(dir: &Path, clock: Clock) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let filled = |pages: usize| -> Result<File> {
            let mut file = scratch(dir)?;
            file.write_all(&vec![0x5a; pages * PAGE])?;
            file.sync_all()?;
            Ok(file)
        };
        Ok(Self { dir: dir.to_owned(), warm: filled(WARM)?, cold: filled(SLEEPERS * WAITS)?, clock })
    }

    /// With and without a way attached, in turns: a guest that counts instructions needs no second turn.
    pub fn turns(&self) -> usize {
        if self.clock == Clock::Guest { 1 } else { 15 }
    }

    /// Nanoseconds per event. One part goes first, untimed.
    pub fn cost(&self, event: Event) -> Result<f64> {
        let mut buffer = [0; PAGE];
        let mut parts = Vec::with_capacity(PARTS);
        let holes = holes(&self.dir, CALLS)?;
        for part in 0..=PARTS {
            if event == Event::Add {
                evict(&holes)?;
            }
            let begin = self.clock.now()?;
            for i in 0..CALLS {
                match event {
                    Event::Call | Event::LookUp => {
                        self.warm.read_exact_at(&mut buffer, (i % WARM * PAGE) as u64)?;
                    }
                    Event::Add => holes.read_exact_at(&mut buffer, (i * PAGE) as u64)?,
                }
            }
            let took = self.clock.now()?.saturating_sub(begin);
            if part > 0 {
                parts.push(took.as_nanos() as f64 / CALLS as f64);
            }
        }
        parts.sort_by(f64::total_cmp);
        Ok(parts[PARTS / 2])
    }

    /// More runnable readers than CPUs. Returns how many events there were.
    pub fn contend(&self, event: Event) -> Result<u64> {
        let each = if event == Event::Add { ADDS } else { RUNS };
        crowd(READERS, |_, barrier| {
            pin_to_two_cpus()?;
            let mut byte = [0];
            let holes = if event == Event::Add { Some(holes(&self.dir, ADDS)?) } else { None };
            barrier.wait();
            for i in 0..each {
                match &holes {
                    Some(holes) => holes.read_exact_at(&mut byte, (i * PAGE) as u64)?,
                    None => self.warm.read_exact_at(&mut byte, (i % WARM * PAGE) as u64)?,
                }
            }
            Ok(())
        })?;
        Ok((READERS * each) as u64)
    }

    /// Readers that wait for the disk inside the function. Returns how many events there were.
    pub fn sleep(&self) -> Result<u64> {
        evict(&self.cold)?;
        crowd(SLEEPERS, |reader, barrier| {
            let mut byte = [0];
            barrier.wait();
            for i in 0..WAITS {
                // A stride without a common factor: each page once, never the next one.
                let page = reader * WAITS + i * 37 % WAITS;
                self.cold.read_exact_at(&mut byte, (page * PAGE) as u64)?;
            }
            Ok(())
        })?;
        Ok((SLEEPERS * WAITS) as u64)
    }
}

/// A file without a name.
fn scratch(dir: &Path) -> Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_TMPFILE);
    options.open(dir).with_context(|| format!("cannot make a file in {}", dir.display()))
}

/// A file of holes. Each page read is added by itself and costs no I/O.
fn holes(dir: &Path, pages: usize) -> io::Result<File> {
    let file = scratch(dir).map_err(io::Error::other)?;
    file.set_len((pages * PAGE) as u64)?;
    advise(&file, libc::POSIX_FADV_RANDOM)?;
    Ok(file)
}

/// Takes a file out of the cache, and turns read-ahead off.
fn evict(file: &File) -> io::Result<()> {
    advise(file, libc::POSIX_FADV_DONTNEED)?;
    advise(file, libc::POSIX_FADV_RANDOM)
}

fn advise(file: &File, advice: i32) -> io::Result<()> {
    // SAFETY: takes numbers.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Runs threads that wait for each other at the barrier.
fn crowd(threads: usize, work: impl Fn(usize, &Barrier) -> io::Result<()> + Sync) -> Result<()> {
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|i| {
                scope.spawn({
                    let (w, b) = (&work, &barrier);
                    move || w(i, b)
                })
            })
            .collect();
        for one in all {
            one.join().map_err(|_| anyhow::anyhow!("a reader panicked"))??;
        }
        Ok(())
    })
}

/// Keeps this thread on the first two CPUs.
fn pin_to_two_cpus() -> io::Result<()> {
    // SAFETY: all zeros is an empty set, which has room for both; the kernel reads it.
    let ret = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(0, &mut set);
        libc::CPU_SET(1, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
