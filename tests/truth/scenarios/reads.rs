//! Plain reads: block sizes, orders, ends and holes.

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::Result;
use cachetop::figures::Figure;

use super::*;
use crate::sys;

pub const LIST: &[Scenario] = &[
    scenario("idle", ALL, "a process that only waits", idle),
    scenario("cold-1b", BLOCK, "3001 reads of 1 byte across a page edge", |c| {
        sequence(c, false, 1, 6692, 3001)
    }),
    scenario("cold-512", BLOCK, "1501 reads of 512 B", |c| sequence(c, false, 512, 0, 1501)),
    scenario("cold-4k", BLOCK, "4 KiB to the end", |c| sequence(c, false, 4 * KIB, 0, u64::MAX)),
    scenario("cold-64k", BLOCK, "64 KiB to the end", |c| sequence(c, false, 64 * KIB, 0, u64::MAX)),
    scenario("cold-1m", BLOCK, "1 MiB to the end", |c| sequence(c, false, 1024 * KIB, 0, u64::MAX)),
    scenario("cold-whole", BLOCK, "all in one call", |c| sequence(c, false, 7000 * KIB, 0, 2)),
    scenario("warm-1b", ALL, "2001 reads of 1 byte", |c| sequence(c, true, 1, 6692, 2001)),
    scenario("warm-512", ALL, "1501 reads of 512 B", |c| sequence(c, true, 512, 0, 1501)),
    scenario("warm-4k", ALL, "4 KiB to the end", |c| sequence(c, true, 4 * KIB, 0, u64::MAX)),
    scenario("warm-64k", ALL, "64 KiB to the end", |c| sequence(c, true, 64 * KIB, 0, u64::MAX)),
    scenario("warm-1m", ALL, "1 MiB to the end", |c| sequence(c, true, 1024 * KIB, 0, u64::MAX)),
    scenario("cold-6000", BLOCK, "100 reads of 6000 B", |c| sequence(c, false, 6000, 0, 100)),
    scenario("cold-4k-at-2k", BLOCK, "4 KiB reads that straddle pages", |c| {
        sequence(c, false, 4 * KIB, 2 * KIB, 111)
    }),
    scenario("burst-4k", BLOCK, "cold 4 KiB reads, back to back", |c| burst(c, 4 * KIB)),
    scenario("burst-64k", BLOCK, "cold 64 KiB reads, back to back", |c| burst(c, 64 * KIB)),
    scenario("burst-1m", BLOCK, "cold 1 MiB reads, back to back", |c| burst(c, 1024 * KIB)),
    scenario("random-300k-cold", BLOCK, "20 random reads of 300 KiB", |c| {
        random(c, false, 300 * KIB, 20, None)
    }),
    scenario("random-300k-warm", ALL, "20 random reads of 300 KiB", |c| random(c, true, 300 * KIB, 20, None)),
    scenario("random-300k-advised", BLOCK, "the same, FADV_RANDOM", |c| {
        random(c, false, 300 * KIB, 20, Some(libc::POSIX_FADV_RANDOM))
    }),
    scenario("random-4k", BLOCK, "100 random 4 KiB reads", |c| random(c, false, 4 * KIB, 100, None)),
    scenario("random-4k-advised", BLOCK, "100 random 4 KiB reads, FADV_RANDOM", |c| {
        random(c, false, 4 * KIB, 100, Some(libc::POSIX_FADV_RANDOM))
    }),
    scenario("sequential-advised", BLOCK, "64 KiB reads, FADV_SEQUENTIAL", sequential_advised),
    scenario("stride", BLOCK, "37 × 8 KiB every 32 KiB", |c| stride(c, false)),
    scenario("stride-advised", BLOCK, "the same, FADV_RANDOM", |c| stride(c, true)),
    scenario("backwards", BLOCK, "16 KiB reads from the end to the start", backwards),
    scenario("eof-5000", ALL, "5000 bytes with a 1 MiB buffer", eof_short),
    scenario("eof-exact", BLOCK, "a file of whole pages, to its end and past it", eof_exact),
    scenario("eof-past", ALL, "reads that begin past the end", eof_past),
    scenario("empty", ALL, "a file of no bytes", empty),
    scenario("holes", ALL, "a sparse file", holes),
    scenario("holes-few", &[Fs::Tmpfs], "a file of 20 pages with a hole, and one of one page", holes_few),
    scenario("willneed", BLOCK, "FADV_WILLNEED of 512 KiB, then reads", willneed),
    scenario("readahead-call", BLOCK, "readahead(2) of 256 KiB, then reads, twice", readahead_call),
];

fn idle(c: &mut Ctx) -> Result<Expect> {
    c.file("f", 3 * PAGE)?;
    c.begin();
    std::thread::sleep(std::time::Duration::from_millis(200));
    Ok(Expect::nothing())
}

/// Reads of one size, one after the other, the oracle between them.
fn sequence(c: &mut Ctx, is_warm: bool, size: u64, start: u64, count: u64) -> Result<Expect> {
    // The oracle looks at every page between calls: fewer pages where there are many calls.
    let len = if size < PAGE || (is_warm && size == PAGE) { 411 * PAGE + 777 } else { ODD };
    let (file, mut o) = if is_warm { warm(c, len)? } else { cold(c, len)? };
    let mut buf = buffer(size);
    c.begin();
    let mut pos = start;
    for _ in 0..count {
        let n = o.read(pos, || file.read_at(&mut buf, pos))?;
        if n == 0 {
            break;
        }
        pos += n as u64;
    }
    Ok(o.expect())
}

/// Reads as programs do, without waiting for read-ahead: every page is reached for the first time, so there
/// is no hit; how the pages split between misses and read-ahead is a matter of timing.
fn burst(c: &mut Ctx, size: u64) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    let mut buf = buffer(size);
    c.begin();
    o.aside(|| -> Result<()> {
        let mut pos = 0;
        while pos < ODD {
            pos += file.read_at(&mut buf, pos)? as u64;
        }
        Ok(())
    })?;
    let mut e = Expect::nothing();
    let why = "the split between misses and read-ahead depends on timing";
    e.exact(Figure::Accesses, ODD_PAGES).exact(Figure::ReadBytes, ODD);
    e.within(Figure::Misses, 1, ODD_PAGES, why).within(Figure::ReadAheadHits, 0, ODD_PAGES - 1, why);
    e.exact(Figure::Fills, o.tally.ahead).within(Figure::ReadAheadPages, 0, o.tally.ahead - 1, why);
    Ok(e)
}

fn random(c: &mut Ctx, is_warm: bool, size: u64, count: u32, advice: Option<i32>) -> Result<Expect> {
    let (file, mut o) = if is_warm { warm(c, ODD)? } else { cold(c, ODD)? };
    if let Some(advice) = advice {
        sys::advise(&file, 0, 0, advice)?;
    }
    let mut buf = buffer(size);
    // Whole pages for 4 KiB, any byte for the others.
    let positions: Vec<u64> = (0..count)
        .map(|_| if size == PAGE { c.rng.below(ODD_PAGES - 1) * PAGE } else { c.rng.below(ODD) })
        .collect();
    c.begin();
    for pos in positions {
        o.read(pos, || file.read_at(&mut buf, pos))?;
    }
    Ok(o.expect())
}

fn sequential_advised(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_SEQUENTIAL)?;
    let mut buf = buffer(64 * KIB);
    c.begin();
    for pos in (0..ODD).step_by(64 * KIB as usize) {
        o.read(pos, || file.read_at(&mut buf, pos))?;
    }
    Ok(o.expect())
}

fn stride(c: &mut Ctx, advised: bool) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    if advised {
        sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    }
    let mut buf = buffer(8 * KIB);
    c.begin();
    for i in 0..37 {
        let pos = i * 32 * KIB;
        o.read(pos, || file.read_at(&mut buf, pos))?;
    }
    let e = o.expect();
    if advised {
        anyhow::ensure!(o.tally.misses == 74 && o.tally.ahead == 0, "the oracle itself: {:?}", o.tally);
    }
    Ok(e)
}

fn backwards(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, 307 * PAGE + 1)?;
    let mut buf = buffer(16 * KIB);
    c.begin();
    for i in (0..77).rev() {
        let pos = i * 16 * KIB;
        o.read(pos, || file.read_at(&mut buf, pos))?;
    }
    Ok(o.expect())
}

fn eof_short(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, 5000)?;
    let mut buf = buffer(1024 * KIB);
    c.begin();
    anyhow::ensure!(o.read(0, || file.read_at(&mut buf, 0))? == 5000);
    anyhow::ensure!(o.read(5000, || file.read_at(&mut buf, 5000))? == 0);
    anyhow::ensure!(o.read(4095, || file.read_at(&mut buf, 4095))? == 905);
    let e = o.expect();
    let t = &o.tally;
    anyhow::ensure!(t.hits + t.misses + t.ahead_hits == 4, "the oracle itself: {t:?}");
    Ok(e)
}

fn eof_exact(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, 7 * PAGE)?;
    let mut buf = buffer(3 * PAGE);
    c.begin();
    let mut pos = 0;
    loop {
        match o.read(pos, || file.read_at(&mut buf, pos))? {
            0 => break,
            n => pos += n as u64,
        }
    }
    Ok(o.expect())
}

fn eof_past(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, 3 * PAGE)?;
    let mut buf = buffer(3 * PAGE);
    c.begin();
    for pos in [3 * PAGE, 3 * PAGE + 1, 9 * PAGE, 1 << 40] {
        anyhow::ensure!(o.read(pos, || file.read_at(&mut buf, pos))? == 0);
    }
    let mut e = o.expect();
    // Where a read past the end adds a page (5.10), the last one lies beyond what the oracle can look at.
    let (seen, far) = (o.tally.ahead, u64::from(o.tally.ahead > 0));
    let why = "a page at 1 TiB may have been added";
    e.within(Figure::ReadAheadPages, seen, seen + far, why).within(Figure::Fills, seen, seen + far, why);
    Ok(e)
}

fn empty(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, 0)?;
    let mut buf = buffer(PAGE);
    c.begin();
    anyhow::ensure!(o.read(0, || file.read_at(&mut buf, 0))? == 0);
    Ok(o.expect())
}

/// Their pages stand below one node, or below none.
fn holes_few(c: &mut Ctx) -> Result<Expect> {
    let mut buf = buffer(20 * PAGE);
    let mut files = Vec::new();
    for (name, hole, pages) in [("f", 7, 20), ("g", 1, 2), ("h", 0, 20)] {
        let made = File::options().read(true).write(true).create_new(true).open(c.dir.join(name))?;
        made.set_len(pages * PAGE)?;
        for page in (0..pages).filter(|page| *page != hole) {
            made.write_all_at(&buf[..PAGE as usize], page * PAGE)?;
        }
        files.push((c.open(name)?, pages));
    }
    c.begin();
    let mut e = Expect::nothing();
    for (file, pages) in &files {
        let n = file.read_at(&mut buf, 0)? as u64;
        anyhow::ensure!(n == pages * PAGE);
    }
    e.exact(Figure::ReadBytes, 42 * PAGE).exact(Figure::Accesses, 42);
    e.exact(Figure::Hits, 39).exact(Figure::Misses, 3);
    Ok(e)
}

fn holes(c: &mut Ctx) -> Result<Expect> {
    let path = c.dir.join("f");
    let made = File::options().read(true).write(true).create_new(true).open(path)?;
    made.set_len(307 * PAGE + 99)?;
    for page in [3, 4, 5, 40, 41, 170, 300] {
        made.write_all_at(&buffer(PAGE), page * PAGE)?;
    }
    made.sync_all()?;
    c.drop_cache(&made)?;
    let mut o = c.oracle(&made)?;
    let file = c.open("f")?;
    let mut buf = buffer(48 * KIB);
    c.begin();
    for round in 0..2 {
        for pos in (0..307 * PAGE).step_by(48 * KIB as usize) {
            o.read(pos, || file.read_at(&mut buf, pos))?;
        }
        if round == 0 && c.fs.block() {
            anyhow::ensure!(o.cached() >= 307, "holes are cached on a device's file system");
        }
    }
    let mut e = o.expect();
    if !c.fs.block() {
        // A hole of tmpfs is read without a page, and nothing tells.
        let t = &o.tally;
        e.if_bounded(Figure::Hits, t.hits, t.hits + t.misses, "hole").if_bounded(
            Figure::Misses,
            0,
            t.misses,
            "hole",
        );
    }
    Ok(e)
}

fn willneed(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    let mut buf = buffer(20 * KIB);
    c.begin();
    o.aside(|| sys::advise(&file, 0, 512 * KIB, libc::POSIX_FADV_WILLNEED))?;
    for i in 0..30 {
        let pos = i * 20 * KIB;
        o.read(pos, || file.read_at(&mut buf, pos))?;
    }
    Ok(o.expect())
}

fn readahead_call(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    let mut buf = buffer(12 * KIB);
    c.begin();
    o.aside(|| sys::readahead(&file, 100 * KIB, 256 * KIB as usize))?;
    for round in 0..2 {
        for i in 0..20 {
            let pos = 100 * KIB + i * 12 * KIB + round;
            o.read(pos, || file.read_at(&mut buf, pos))?;
        }
    }
    Ok(o.expect())
}
