//! Many readers: threads, processes, short lives, sleepers, and pages brought in by somebody else.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::Barrier;

use anyhow::Result;
use anyhow::ensure;
use cachetop::figures::Figure;

use super::*;
use crate::child::Rng;
use crate::expect::Scope;
use crate::sys;

pub const LIST: &[Scenario] = &[
    scenario("two-readers", BLOCK, "two processes read one cold file at once", two_readers),
    scenario("fork-200", BLOCK, "200 processes that live for 3 cold reads", fork_200),
    scenario(
        "fork-200-warm",
        &[Fs::Ext4, Fs::Tmpfs],
        "200 processes that live for 3 warm reads",
        fork_200_warm,
    ),
    scenario("hammer-threads", ALL, "8 threads, 32008 warm reads", hammer_threads),
    scenario("hammer-procs", ALL, "8 processes, 32008 warm reads", hammer_procs),
    scenario("sleepers-64", BLOCK, "64 threads, 3200 cold reads that all wait", sleepers),
    scenario("prefetch-other", BLOCK, "one process prefetches, another reads twice", prefetch_other),
    scenario("thread-names", ALL, "threads with names of their own belong to their process", thread_names),
];

/// Starts `n` processes that wait for each other, runs `work` in each, and returns their ids once they are
/// all done.
fn herd(n: u32, mut start: impl FnMut(), work: impl Fn(u32) -> Result<()>) -> Result<Vec<u32>> {
    let (mut gate, hold) = sys::pipe()?;
    let mut pids = Vec::new();
    for i in 0..n {
        let (gate, hold) = (&mut gate, &hold);
        pids.push(sys::fork(|| {
            // SAFETY: the child owns its copy of the descriptor and uses it no more.
            unsafe { libc::close(std::os::fd::AsRawFd::as_raw_fd(hold)) };
            let _ = gate.read(&mut [0]);
            i32::from(work(i).is_err())
        })?);
    }
    start();
    drop(hold);
    for pid in &pids {
        ensure!(sys::wait(*pid)? == 0, "a process of the herd failed");
    }
    Ok(pids.into_iter().map(|pid| pid as u32).collect())
}

fn two_readers(c: &mut Ctx) -> Result<Expect> {
    let (_, mut o) = cold(c, ODD)?;
    let files = [c.open("f")?, c.open("f")?];
    let mut pids = Vec::new();
    let mut begun = Some(&mut *c);
    o.aside(|| -> Result<()> {
        let begin = || begun.take().map_or((), Ctx::begin);
        pids = herd(2, begin, |i| warm_up(&files[i as usize]))?;
        Ok(())
    })?;
    let added = o.tally.ahead;
    let mut e = Expect::nothing();
    let why = "who of the two comes first to a page is a matter of timing";
    e.exact(Figure::Accesses, 2 * ODD_PAGES).exact(Figure::ReadBytes, 2 * ODD);
    e.exact(Figure::Fills, added).within(Figure::ReadAheadPages, 0, added - 1, why);
    // Of the two accesses of a page at most one finds it used.
    e.within(Figure::Hits, 0, ODD_PAGES, why).within(Figure::Misses, 1, 2 * ODD_PAGES, why);
    e.within(Figure::ReadAheadHits, 0, ODD_PAGES, why);
    e.scope = Scope::Pids(pids);
    Ok(e)
}

const LIVES: u64 = 200;

fn short_lives(file: &File) -> Result<String> {
    let name = format!("life{}", std::process::id());
    for i in 0..LIVES {
        let pid = sys::fork(|| {
            sys::set_comm(&name);
            let mut buf = [0; PAGE as usize];
            let read = (0..3).all(|k| file.read_exact_at(&mut buf, (i * 3 + k) * PAGE).is_ok());
            i32::from(!read)
        })?;
        ensure!(sys::wait(pid)? == 0, "a short life failed");
    }
    Ok(name)
}

fn fork_200(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, 601 * PAGE + 1)?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    c.begin();
    let name = o.aside(|| short_lives(&file))?;
    ensure!(o.tally.ahead == 3 * LIVES, "FADV_RANDOM read {} pages", o.tally.ahead);
    let mut e = Expect::nothing();
    e.misses(3 * LIVES, 3 * LIVES * PAGE);
    e.scope = Scope::Comm(name, LIVES as usize);
    Ok(e)
}

fn fork_200_warm(c: &mut Ctx) -> Result<Expect> {
    let (file, _) = warm(c, 601 * PAGE + 1)?;
    c.begin();
    let name = short_lives(&file)?;
    let mut e = Expect::nothing();
    e.hits(3 * LIVES, 3 * LIVES * PAGE);
    e.scope = Scope::Comm(name, LIVES as usize);
    Ok(e)
}

const HAMMERS: u32 = 8;
const BLOWS: u64 = 4001;

fn blows(file: &File, seed: u32) -> Result<()> {
    let mut rng = Rng::new(u64::from(seed) + 77);
    let mut buf = [0; PAGE as usize];
    for _ in 0..BLOWS {
        file.read_exact_at(&mut buf, rng.below(97) * PAGE)?;
    }
    Ok(())
}

fn hammered() -> Expect {
    let n = u64::from(HAMMERS) * BLOWS;
    let mut e = Expect::nothing();
    e.hits(n, n * PAGE);
    e
}

fn hammer_threads(c: &mut Ctx) -> Result<Expect> {
    let (file, _) = warm(c, 97 * PAGE)?;
    c.begin();
    let gate = Barrier::new(HAMMERS as usize);
    std::thread::scope(|s| {
        let work = |i| {
            let (file, gate) = (&file, &gate);
            s.spawn(move || {
                gate.wait();
                blows(file, i)
            })
        };
        let all: Vec<_> = (0..HAMMERS).map(work).collect();
        all.into_iter().try_for_each(|t| t.join().expect("no panic"))
    })?;
    Ok(hammered())
}

fn hammer_procs(c: &mut Ctx) -> Result<Expect> {
    let (file, _) = warm(c, 97 * PAGE)?;
    let pids = herd(HAMMERS, || c.begin(), |i| blows(&file, i))?;
    let mut e = hammered();
    e.scope = Scope::Pids(pids);
    Ok(e)
}

fn sleepers(c: &mut Ctx) -> Result<Expect> {
    const TASKS: u64 = 64;
    const READS: u64 = 50;
    let (file, mut o) = cold(c, TASKS * READS * PAGE + 9)?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let mut pages: Vec<u64> = (0..TASKS * READS).collect();
    c.rng.shuffle(&mut pages);
    let gate = Barrier::new(TASKS as usize + 1);
    let go = || -> Result<()> {
        std::thread::scope(|s| {
            let work = |mine: &[u64]| {
                let (file, gate, mine) = (&file, &gate, mine.to_vec());
                s.spawn(move || -> Result<()> {
                    let mut buf = [0; PAGE as usize];
                    gate.wait();
                    for page in mine {
                        file.read_exact_at(&mut buf, page * PAGE)?;
                    }
                    Ok(())
                })
            };
            let all: Vec<_> = pages.chunks(READS as usize).map(work).collect();
            c.begin();
            gate.wait();
            all.into_iter().try_for_each(|t| t.join().expect("no panic"))
        })
    };
    o.aside(go)?;
    ensure!(o.tally.ahead == TASKS * READS, "FADV_RANDOM read {} pages", o.tally.ahead);
    let mut e = Expect::nothing();
    e.misses(TASKS * READS, TASKS * READS * PAGE);
    Ok(e)
}

/// Read-ahead belongs to who requested it, its first use to who reads; the second reading finds used pages.
fn prefetch_other(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    let reader = c.open("f")?;
    c.begin();
    let mut pids = Vec::new();
    for step in 0..2 {
        let work = || -> Result<i32> {
            Ok(sys::fork(|| {
                if step == 0 {
                    return i32::from(sys::advise(&file, 0, 300 * KIB, libc::POSIX_FADV_WILLNEED).is_err());
                }
                let mut buf = [0; 20 * KIB as usize];
                let mut twice = (0..15).chain(0..15);
                i32::from(!twice.all(|i| reader.read_exact_at(&mut buf, i * 20 * KIB).is_ok()))
            })?)
        };
        let pid = work()?;
        let status = o.aside(|| sys::wait(pid))?;
        ensure!(status == 0, "step {step} failed");
        pids.push(pid as u32);
        ensure!(step == 1 || o.tally.ahead == 75, "WILLNEED brought {} pages", o.tally.ahead);
    }
    let mut e = Expect::nothing();
    e.exact(Figure::Accesses, 150).exact(Figure::ReadAheadHits, 75).exact(Figure::Hits, 75);
    e.exact(Figure::ReadBytes, 600 * KIB);
    e.exact(Figure::ReadAheadPages, o.tally.ahead).exact(Figure::Fills, o.tally.ahead);
    e.scope = Scope::Pids(pids);
    Ok(e)
}

fn thread_names(c: &mut Ctx) -> Result<Expect> {
    let (file, _) = warm(c, 97 * PAGE)?;
    c.begin();
    for i in 0..7 {
        let file = file.try_clone()?;
        let thread = std::thread::Builder::new().name(format!("worker{i}"));
        thread.spawn(move || warm_up(&file))?.join().map_err(|_| anyhow::anyhow!("thread"))??;
    }
    let mut e = Expect::nothing();
    e.hits(7 * 97, 7 * 97 * PAGE);
    Ok(e)
}
