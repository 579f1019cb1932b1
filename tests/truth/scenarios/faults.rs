//! Page faults on files: the page table says what faults, mincore what is missed.

use std::fs::File;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsRawFd;

use anyhow::Result;
use anyhow::ensure;
use cachetop::figures::Figure;

use super::*;
use crate::sys;

const SHARED: i32 = libc::MAP_SHARED;
const READ: i32 = libc::PROT_READ;
const WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

pub const LIST: &[Scenario] = &[
    scenario("fault-cold", BLOCK, "a mapping touched from begin to end, cold", |c| {
        touches(c, false, READ, SHARED, None, (0..411).collect())
    }),
    scenario("fault-cold-random", BLOCK, "every fourth page of a mapping, MADV_RANDOM, cold", |c| {
        touches(c, false, READ, SHARED, Some(libc::MADV_RANDOM), (0..1024).step_by(4).collect())
    }),
    scenario("fault-cold-sequential", BLOCK, "a mapping from begin to end, MADV_SEQUENTIAL, cold", |c| {
        touches(c, false, READ, SHARED, Some(libc::MADV_SEQUENTIAL), (0..411).collect())
    }),
    scenario("fault-warm", ALL, "a mapping touched from begin to end, warm", |c| {
        touches(c, true, READ, SHARED, None, (0..411).collect())
    }),
    scenario("fault-warm-shuffled", ALL, "a mapping touched in random order, warm", |c| {
        let mut pages: Vec<usize> = (0..411).collect();
        c.rng.shuffle(&mut pages);
        touches(c, true, READ, SHARED, None, pages)
    }),
    scenario("fault-private-store", ALL, "stores into a private mapping, warm", |c| {
        touches(c, true, WRITE, libc::MAP_PRIVATE, None, (0..111).step_by(3).collect())
    }),
    scenario("fault-private-store-cold", BLOCK, "stores into a private mapping, cold", |c| {
        touches(c, false, WRITE, libc::MAP_PRIVATE, None, (0..111).step_by(3).collect())
    }),
    scenario(
        "fault-turns-cold",
        BLOCK,
        "a private mapping read and stored into in turns, MADV_RANDOM, cold",
        in_turns,
    ),
    scenario("fault-store", ALL, "stores into a shared mapping, warm", |c| {
        touches(c, true, WRITE, SHARED, None, (0..111).step_by(3).collect())
    }),
    scenario("fault-store-cold", BLOCK, "stores into a shared mapping, cold", |c| {
        touches(c, false, WRITE, SHARED, None, (0..111).step_by(3).collect())
    }),
    scenario("fault-huge", &[Fs::Tmpfs], "a tmpfs of huge pages", huge),
    scenario("populate-warm", ALL, "MAP_POPULATE, warm", populate_warm),
    scenario("populate-cold", BLOCK, "MAP_POPULATE, cold", populate_cold),
    scenario("lock-cold-random", BLOCK, "mlock of a mapping with MADV_RANDOM, cold", lock_cold),
    scenario("read-into-mapping", BLOCK, "a warm file read into a mapping of a cold one", in_read),
    scenario("fault-fork", ALL, "a child touches what its parent has mapped", in_child),
];

/// Touches pages one by one. A page without an entry in the page table is a fault; what got one besides was mapped
/// around it.
fn touches(
    c: &mut Ctx,
    is_warm: bool,
    prot: i32,
    flags: i32,
    advice: Option<i32>,
    which: Vec<usize>,
) -> Result<Expect> {
    let pages = which.iter().max().map_or(1, |p| p + 1);
    let len = pages as u64 * PAGE - 777;
    let (_, mut o) = if is_warm { warm(c, len)? } else { cold(c, len)? };
    let file = File::options().read(true).write(prot & libc::PROT_WRITE != 0).open(c.dir.join("f"))?;
    let map = sys::Map::with(&file, pages, prot, flags)?;
    if let Some(advice) = advice {
        map.advise(advice)?;
    }
    let stores = prot & libc::PROT_WRITE != 0;
    let mut e = touch_all(c, &mut o, &map, |_| stores, &which)?;
    let misses = e.want(Figure::FaultMisses).map_or(0, |w| w.lo);
    ensure!(!is_warm || misses == 0, "the oracle itself: {misses} misses of a warm file");
    ensure!(advice != Some(libc::MADV_RANDOM) || misses == 256, "the oracle itself: {misses} misses");
    if prot & libc::PROT_WRITE != 0 && flags == SHARED {
        let why = "pages stored to, or their whole folios";
        e.within(Figure::Dirtied, 0, 411, why);
    }
    Ok(e)
}

/// A fault that reads is tried again once its page is there, and found by what maps pages around it; a store into a private
/// mapping never is. What is remembered of the one must not be taken for the other.
fn in_turns(c: &mut Ctx) -> Result<Expect> {
    const PAGES: usize = 256;
    let (_, mut o) = cold(c, PAGES as u64 * PAGE - 777)?;
    let file = File::open(c.dir.join("f"))?;
    let map = sys::Map::with(&file, PAGES, WRITE, libc::MAP_PRIVATE)?;
    map.advise(libc::MADV_RANDOM)?;
    let which: Vec<usize> = (0..PAGES).step_by(4).collect();
    let e = touch_all(c, &mut o, &map, |page| page % 8 != 0, &which)?;
    let misses = e.want(Figure::FaultMisses).map_or(0, |w| w.lo);
    ensure!(misses == which.len() as u64, "the oracle itself: {misses} misses");
    Ok(e)
}

/// Touches pages one by one, or stores to them, from the barrier on.
fn touch_all(
    c: &mut Ctx,
    o: &mut Oracle,
    map: &sys::Map,
    store: impl Fn(usize) -> bool,
    which: &[usize],
) -> Result<Expect> {
    let (mut misses, mut hits, mut around) = (0, 0, 0);
    let mut was = map.mapped()?;
    c.begin();
    let before = sys::faults();
    for page in which.iter().copied() {
        let resident = was[page] || o.resident()[page];
        o.aside(|| {
            if store(page) {
                map.store(page);
            } else {
                let _ = map.touch(page);
            }
        });
        let now = map.mapped()?;
        let new = now.iter().zip(&was).filter(|(now, was)| **now && !**was).count() as u64;
        ensure!(was[page] || now[page], "page {page} is not mapped after it was touched");
        match (was[page], resident) {
            (true, _) => around += new,
            (false, true) => (hits, around) = (hits + 1, around + new - 1),
            (false, false) => (misses, around) = (misses + 1, around + new - 1),
        }
        was = now;
    }
    let after = sys::faults();
    let mut e = Expect::nothing();
    e.exact(Figure::FaultMisses, misses).exact(Figure::FaultHits, hits).exact(Figure::FaultAround, around);
    if which.iter().any(|page| store(*page)) {
        e.if_bounded(
            Figure::FaultHits,
            if c.fs.block() { hits } else { 0 },
            hits,
            "stores into mappings of tmpfs",
        );
    }
    // The page of each miss was requested; the others came ahead.
    let ahead = o.tally.ahead - misses;
    e.exact(Figure::ReadAheadPages, ahead).exact(Figure::Fills, ahead);
    e.note(format!("rusage: {} minor, {} major", after.0 - before.0, after.1 - before.1));
    Ok(e)
}

/// Huge pages are mapped by one entry of the page table, 512 pages at once.
fn huge(c: &mut Ctx) -> Result<Expect> {
    const PAGES: usize = 1200;
    let target = c.dir.join("mnt");
    std::fs::create_dir(&target)?;
    let options = "size=32m,huge=always";
    refused("huge pages in tmpfs", sys::mount("truth".as_ref(), &target, "tmpfs", options))?;
    let at = target.clone();
    c.guards.push(Box::new(move || sys::unmount(&at)));
    let file = c.warm_file("mnt/f", PAGES as u64 * PAGE)?;
    let mut o = c.oracle(&file)?;
    let map = sys::Map::new(&file, PAGES)?;
    refused("MADV_HUGEPAGE", map.advise(libc::MADV_HUGEPAGE))?;
    let mut e = touch_all(c, &mut o, &map, |_| false, &[0, 511, 512, 600, 1023, 1024, 1199])?;
    let most = e.want(Figure::FaultAround).map_or(0, |w| w.hi);
    e.if_bounded(Figure::FaultAround, 0, most, "huge page");
    let hits = e.want(Figure::FaultHits).map_or(0, |w| w.hi);
    e.if_bounded(Figure::FaultHits, 0, hits, "served by huge pages are not seen");
    Ok(e)
}

fn populate(c: &mut Ctx, is_warm: bool) -> Result<(Expect, u64)> {
    const PAGES: usize = 307;
    let (file, mut o) = if is_warm { warm(c, 307 * PAGE)? } else { cold(c, 307 * PAGE)? };
    c.begin();
    let before = sys::faults();
    let map = sys::Map::with(&file, PAGES, READ, SHARED | libc::MAP_POPULATE)?;
    let after = sys::faults();
    o.aside(|| ());
    ensure!(map.mapped()?.iter().all(|m| *m), "MAP_POPULATE mapped {:?}", map.mapped()?);
    // No fault is told to try again without being counted once, as minor or major.
    let faults = after.0 + after.1 - before.0 - before.1;
    let mut e = Expect::nothing();
    e.exact(Figure::FaultAround, 307 - faults);
    let why = "the split between what was requested and what came ahead";
    e.within(Figure::ReadAheadPages, 0, o.tally.ahead, why).within(Figure::Fills, 0, o.tally.ahead, why);
    e.note(format!("rusage: {} minor, {} major", after.0 - before.0, after.1 - before.1));
    Ok((e, faults))
}

fn populate_warm(c: &mut Ctx) -> Result<Expect> {
    let (mut e, faults) = populate(c, true)?;
    e.exact(Figure::FaultHits, faults).exact(Figure::FaultMisses, 0);
    Ok(e)
}

fn populate_cold(c: &mut Ctx) -> Result<Expect> {
    let was = sys::vmstat("pgmajfault");
    let (mut e, faults) = populate(c, false)?;
    let majors = sys::vmstat("pgmajfault") - was;
    let why = "the whole system's majors are no fewer";
    e.within(Figure::FaultMisses, 1, majors.min(faults), why);
    e.within(Figure::FaultHits, faults.saturating_sub(majors), faults - 1, why);
    Ok(e)
}

/// Faults without a caller to return to carry no mark that they are tried again.
fn lock_cold(c: &mut Ctx) -> Result<Expect> {
    let (file, _) = cold(c, 111 * PAGE)?;
    let map = sys::Map::new(&file, 111)?;
    map.advise(libc::MADV_RANDOM)?;
    c.begin();
    refused("mlock", map.lock())?;
    let mut e = Expect::nothing();
    e.exact(Figure::FaultMisses, 111).exact(Figure::FaultHits, 0).exact(Figure::FaultAround, 0);
    Ok(e)
}

fn in_read(c: &mut Ctx) -> Result<Expect> {
    const PAGES: usize = 32;
    let (file, mut o) = warm(c, 101 * PAGE)?;
    let other = c.file("g", PAGES as u64 * PAGE)?;
    let map = sys::Map::with(&other, PAGES, WRITE, SHARED)?;
    map.advise(libc::MADV_RANDOM)?;
    c.begin();
    let to = std::ptr::with_exposed_provenance_mut(map.address(0));
    let n = o.read(3 * PAGE, || sys::pread_raw(&file, to, PAGES * PAGE as usize, 3 * PAGE))?;
    ensure!(n == PAGES * PAGE as usize, "a short read of {n} bytes");
    let mut e = o.expect();
    e.exact(Figure::FaultMisses, PAGES as u64).exact(Figure::FaultHits, 0).exact(Figure::FaultAround, 0);
    e.within(Figure::Dirtied, 0, PAGES as u64, "the pages read into");
    Ok(e)
}

/// Page tables of shared mappings are not copied to a child: it faults on its own.
fn in_child(c: &mut Ctx) -> Result<Expect> {
    const PAGES: usize = 207;
    let (file, _) = warm(c, PAGES as u64 * PAGE)?;
    let other = c.warm_file("g", PAGES as u64 * PAGE)?;
    let maps = [sys::Map::new(&other, PAGES)?, sys::Map::new(&file, PAGES)?];
    let (mut from, mut to_child) = sys::pipe()?;
    let (mut from_child, mut to) = sys::pipe()?;
    let end = to_child.as_raw_fd();
    let pid = sys::fork(|| {
        // Ours of the two ends that the parent writes to would keep the child waiting for itself.
        // SAFETY: the child never uses that descriptor.
        unsafe { libc::close(end) };
        let mut word = [0u8; 8];
        // The first round brings in the code that the second one runs.
        for map in &maps {
            if from.read_exact(&mut word[..1]).is_err() {
                return 1;
            }
            let before = sys::faults().0;
            (0..PAGES).for_each(|p| {
                map.touch(p);
            });
            let faults = sys::faults().0 - before;
            if to.write_all(&faults.to_le_bytes()).is_err() {
                return 1;
            }
        }
        i32::from(from.read_exact(&mut word[..1]).is_ok())
    })?;
    let mut faults = || -> Result<u64> {
        let mut word = [0u8; 8];
        to_child.write_all(b"x")?;
        from_child.read_exact(&mut word)?;
        Ok(u64::from_le_bytes(word))
    };
    faults()?;
    c.begin();
    let hits = faults()?;
    let mut e = Expect::nothing();
    e.exact(Figure::FaultHits, hits).exact(Figure::FaultMisses, 0);
    e.exact(Figure::FaultAround, PAGES as u64 - hits);
    e.scope = crate::expect::Scope::Pids(vec![pid as u32]);
    c.guards.push(Box::new(move || {
        drop(to_child);
        let _ = sys::wait(pid);
    }));
    Ok(e)
}
