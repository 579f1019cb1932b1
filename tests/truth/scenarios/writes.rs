//! Writing: what is dirtied, what is added, and that none of it is reading.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

use anyhow::Result;
use anyhow::ensure;
use cachetop::figures::Figure;

use super::*;
use crate::folios::folio;
use crate::folios::folios;
use crate::oracle::Oracle;
use crate::sys;
use crate::uring;

pub const LIST: &[Scenario] = &[
    scenario("write-new", ALL, "61 × 4 KiB to a new file", write_new),
    scenario("write-new-1m", ALL, "3 × 1 MiB and 777 B to a new file", write_new_large),
    scenario("rewrite-dirty", ALL, "61 pages written again while dirty", |c| rewrite(c, false)),
    scenario("rewrite-clean", ALL, "61 pages written again after fsync", |c| rewrite(c, true)),
    scenario("write-100-cold", BLOCK, "100 B in the middle of an uncached page", write_small_cold),
    scenario("append-100", ALL, "100 × 100 B appended", append_small),
    scenario("append-10000", ALL, "10000 B to the end of a cached file", append),
    scenario("write-1-folio", BLOCK, "one byte into a clean folio of any size", write_folio),
    scenario("write-then-read", ALL, "pages written are used: reading them hits", write_then_read),
    scenario(
        "prefetch-written",
        BLOCK,
        "a prefetched page that was written is no first use",
        prefetch_written,
    ),
    scenario("write-cold", BLOCK, "64 × 4 KiB over an uncached file", write_cold),
    scenario("write-half-cached", BLOCK, "one write over a file of which half is cached", half_cached),
    scenario("write-sparse", ALL, "1000 B each three pages, past the end", sparse),
    scenario("write-o-append", ALL, "O_APPEND, 10 × 3000 B", o_append),
    scenario("write-vector", ALL, "writev of 100, 5000 and 9000 B", vector),
    scenario("write-file-limit", ALL, "a write cut short by RLIMIT_FSIZE", file_limit),
    scenario("write-bad-address", ALL, "a write stopped by a bad address", bad_address),
    scenario("write-full", &[Fs::Tmpfs], "a write cut short by a full file system", full),
    scenario("write-mapped", BLOCK, "a write from a mapping of another, uncached file", mapped),
    scenario("uring-write", ALL, "io_uring, 60 KiB, one at a time", |c| uring_write(c, 0)),
    scenario("uring-write-async", ALL, "the same by workers", |c| uring_write(c, uring::ASYNC)),
    scenario("uring-write-read", BLOCK, "the same, and then read by workers", uring_write_read),
    scenario("mmap-store", BLOCK, "stores through a shared mapping", mmap_store),
    scenario("truncate-partial", BLOCK, "truncation inside a page writes zeros to it", truncate_partial),
];

fn create(c: &Ctx, name: &str) -> Result<File> {
    Ok(File::options().read(true).write(true).create_new(true).open(c.dir.join(name))?)
}

/// Checks that nobody wrote the pages back in the meantime, by what the process itself was charged with.
fn charged(c: &Ctx, e: &mut Expect) {
    let pages = c.device_write() / PAGE;
    e.note(format!("the kernel charged the process with {pages} dirtied pages (metadata of ext4 included)"));
}

fn write_new(c: &mut Ctx) -> Result<Expect> {
    let file = create(c, "f")?;
    let buf = buffer(PAGE);
    c.begin();
    for i in 0..61 {
        file.write_all_at(&buf, i * PAGE)?;
    }
    let mut e = Expect::nothing();
    e.exact(Figure::Dirtied, dirtied(c, 61));
    e.exact(Figure::WriteAccesses, 61).exact(Figure::WriteMisses, 61);
    charged(c, &mut e);
    Ok(e)
}

fn write_new_large(c: &mut Ctx) -> Result<Expect> {
    let file = create(c, "f")?;
    let buf = buffer(1024 * KIB);
    c.begin();
    for i in 0..3 {
        file.write_all_at(&buf, i * 1024 * KIB)?;
    }
    file.write_all_at(&buf[..777], 3 * 1024 * KIB)?;
    let mut e = Expect::nothing();
    e.exact(Figure::Dirtied, dirtied(c, 769));
    e.exact(Figure::WriteAccesses, 769).exact(Figure::WriteMisses, 769);
    charged(c, &mut e);
    Ok(e)
}

fn rewrite(c: &mut Ctx, clean: bool) -> Result<Expect> {
    let file = create(c, "f")?;
    let buf = buffer(PAGE);
    for i in 0..61 {
        file.write_all_at(&buf, i * PAGE)?;
    }
    if clean {
        file.sync_all()?;
    }
    c.begin();
    for i in 0..61 {
        file.write_all_at(&buf, i * PAGE)?;
    }
    let mut e = Expect::nothing();
    e.exact(Figure::Dirtied, if clean { dirtied(c, 61) } else { 0 });
    e.exact(Figure::WriteAccesses, 61).exact(Figure::WriteHits, 61);
    charged(c, &mut e);
    Ok(e)
}

/// The rest of the page has to be read first: by the write, not by a read.
fn write_small_cold(c: &mut Ctx) -> Result<Expect> {
    let file = c.file("f", 7 * PAGE + 5)?;
    let mut o = c.oracle(&file)?;
    let buf = buffer(100);
    c.begin();
    o.write(5000, || file.write_at(&buf, 5000))?;
    let mut e = o.expect();
    ensure!(o.tally.ahead == 0, "the oracle itself: {:?}", o.tally);
    e.exact(Figure::Dirtied, 1);
    charged(c, &mut e);
    Ok(e)
}

fn append_small(c: &mut Ctx) -> Result<Expect> {
    let file = create(c, "f")?;
    let buf = buffer(100);
    c.begin();
    for i in 0..100 {
        file.write_all_at(&buf, i * 100)?;
    }
    let mut e = Expect::nothing();
    e.exact(Figure::Dirtied, dirtied(c, 3));
    e.exact(Figure::WriteAccesses, 102).exact(Figure::WriteMisses, 3).exact(Figure::WriteHits, 99);
    charged(c, &mut e);
    Ok(e)
}

fn append(c: &mut Ctx) -> Result<Expect> {
    let end = 3 * PAGE + 1000;
    let file = c.warm_file("f", end)?;
    let buf = buffer(10_000);
    let span = folio(&file, 3)?.1;
    c.begin();
    file.write_all_at(&buf, end)?;
    let mut e = Expect::nothing();
    // Bytes 13288 to 23287: pages 3, which is there, 4 and 5.
    e.exact(Figure::Dirtied, dirtied(c, 2 + span));
    e.exact(Figure::WriteAccesses, 3).exact(Figure::WriteHits, 1).exact(Figure::WriteMisses, 2);
    charged(c, &mut e);
    Ok(e)
}

fn write_folio(c: &mut Ctx) -> Result<Expect> {
    let file = c.warm_file("f", 3 << 20)?;
    let (_, span) = folio(&file, 300)?;
    c.begin();
    file.write_all_at(&[7], 300 * PAGE + 123)?;
    let mut e = Expect::nothing();
    e.exact(Figure::Dirtied, span);
    e.exact(Figure::WriteAccesses, 1).exact(Figure::WriteHits, 1);
    e.note(format!("a folio of {span} pages"));
    charged(c, &mut e);
    Ok(e)
}

fn write_then_read(c: &mut Ctx) -> Result<Expect> {
    let file = create(c, "f")?;
    file.set_len(45 * PAGE)?;
    let mut o = c.oracle(&file)?;
    let mut buf = buffer(9 * PAGE);
    c.begin();
    for i in 0..5 {
        o.write(i * 9 * PAGE, || file.write_at(&buf, i * 9 * PAGE))?;
    }
    for i in 0..5 {
        o.read(i * 9 * PAGE, || file.read_at(&mut buf, i * 9 * PAGE))?;
    }
    let mut e = o.expect();
    ensure!(o.tally.hits == 45 && o.tally.write_misses == 45, "the oracle itself: {:?}", o.tally);
    e.exact(Figure::Dirtied, dirtied(c, 45));
    Ok(e)
}

fn prefetch_written(c: &mut Ctx) -> Result<Expect> {
    let file = c.file("f", 101 * PAGE)?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let mut o: Oracle = c.oracle(&file)?;
    let mut buf = buffer(16 * PAGE);
    c.begin();
    o.aside(|| sys::advise(&file, 0, 32 * PAGE, libc::POSIX_FADV_WILLNEED))?;
    let brought = o.tally.ahead;
    o.write(3 * PAGE + 50, || file.write_at(&buf[..100], 3 * PAGE + 50))?;
    o.write(5 * PAGE, || file.write_at(&buf[..PAGE as usize], 5 * PAGE))?;
    for i in 0..2 {
        o.read(i * 16 * PAGE, || file.read_at(&mut buf, i * 16 * PAGE))?;
    }
    let mut e = o.expect();
    ensure!(brought == 32 && o.tally.hits == 2, "the oracle itself: {:?}", o.tally);
    e.within(Figure::Dirtied, 2, 32, "the whole folios of two pages");
    Ok(e)
}

fn mmap_store(c: &mut Ctx) -> Result<Expect> {
    let file = c.warm_file("f", 199 * PAGE)?;
    let which: Vec<usize> = (0..17).map(|i| i * 11).collect();
    let span = folios(&file, &which)?;
    c.begin();
    sys::mmap_store(&file, 199, &which)?;
    let mut e = Expect::nothing();
    e.exact(Figure::Dirtied, span);
    charged(c, &mut e);
    Ok(e)
}

fn truncate_partial(c: &mut Ctx) -> Result<Expect> {
    let file = c.warm_file("f", 41 * PAGE)?;
    let mut o = c.oracle(&file)?;
    let (_, span) = folio(&file, 20)?;
    c.begin();
    o.aside(|| file.set_len(20 * PAGE + 1000))?;
    let mut e = o.expect();
    let why = "the folio of the last page, before or after it is split; btrfs may leave it to writeback";
    e.within(Figure::Dirtied, u64::from(c.fs != Fs::Btrfs), span, why);
    charged(c, &mut e);
    Ok(e)
}

fn write_cold(c: &mut Ctx) -> Result<Expect> {
    let file = c.file("f", 64 * PAGE)?;
    let mut o = c.oracle(&file)?;
    let buf = buffer(PAGE);
    c.begin();
    for i in 0..64 {
        o.write(i * PAGE, || file.write_at(&buf, i * PAGE))?;
    }
    let mut e = o.expect();
    ensure!(o.tally.write_misses == 64 && o.tally.ahead == 0, "the oracle itself: {:?}", o.tally);
    e.exact(Figure::Dirtied, 64);
    Ok(e)
}

fn half_cached(c: &mut Ctx) -> Result<Expect> {
    let file = c.file("f", 64 * PAGE)?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let mut buf = buffer(64 * PAGE);
    for at in [3, 4, 5, 17, 40, 41, 63] {
        file.read_at(&mut buf[..PAGE as usize], at * PAGE)?;
    }
    let mut o = c.oracle(&file)?;
    c.begin();
    o.write(0, || file.write_at(&buf, 0))?;
    let mut e = o.expect();
    ensure!(o.tally.write_hits >= 7 && o.tally.write_misses > 7, "the oracle itself: {:?}", o.tally);
    e.exact(Figure::Dirtied, 64);
    Ok(e)
}

fn sparse(c: &mut Ctx) -> Result<Expect> {
    let file = c.warm_file("f", 10 * PAGE + 1)?;
    let mut o = c.oracle(&file)?;
    let buf = buffer(1000);
    c.begin();
    for i in 0..13 {
        let pos = i * 3 * PAGE + 3500;
        o.write(pos, || file.write_at(&buf, pos))?;
    }
    let mut e = o.expect();
    ensure!(o.tally.write_hits >= 7 && o.tally.write_misses > 7, "the oracle itself: {:?}", o.tally);
    let why = "the whole folios of what was cached";
    e.within(Figure::Dirtied, dirtied(c, 26), dirtied(c, 40), why);
    // Where xfs zeroes up to the write (5.10), it brings in pages of its own, the write's first among them.
    let zeroed = o.tally.ahead;
    e.exact(Figure::Fills, 0).exact(Figure::ReadAheadPages, 0);
    e.if_bounded(Figure::WriteHits, 7, 26, "xfs zeroes").if_bounded(Figure::WriteMisses, 0, 19, "xfs zeroes");
    e.note(format!("{zeroed} pages came outside of the writes"));
    Ok(e)
}

fn o_append(c: &mut Ctx) -> Result<Expect> {
    c.warm_file("f", 2 * PAGE + 5)?;
    let mut file = File::options().append(true).open(c.dir.join("f"))?;
    let mut o = c.oracle(&File::open(c.dir.join("f"))?)?;
    let buf = buffer(3000);
    c.begin();
    let mut pos = 2 * PAGE + 5;
    for _ in 0..10 {
        o.write(pos, || file.write(&buf))?;
        pos += 3000;
    }
    let mut e = o.expect();
    let why = "the last page may be part of a larger folio";
    e.within(Figure::Dirtied, dirtied(c, 8), dirtied(c, 10), why);
    Ok(e)
}

fn vector(c: &mut Ctx) -> Result<Expect> {
    let mut file = create(c, "f")?;
    let mut o = c.oracle(&file)?;
    let (x, y, z) = (buffer(100), buffer(5000), buffer(9000));
    c.begin();
    for i in 0..7 {
        let bufs = [&x, &y, &z].map(|b| std::io::IoSlice::new(b));
        o.write(i * 14_100, || file.write_vectored(&bufs))?;
    }
    let mut e = o.expect();
    e.exact(Figure::WriteMisses, 25).exact(Figure::Dirtied, dirtied(c, 25));
    Ok(e)
}

fn file_limit(c: &mut Ctx) -> Result<Expect> {
    let file = create(c, "f")?;
    let mut o = c.oracle(&file)?;
    let buf = buffer(16 * PAGE);
    sys::limit_file_size(10 * PAGE + 100)?;
    c.begin();
    let took = o.write(0, || file.write_at(&buf, 0))?;
    ensure!(took as u64 == 10 * PAGE + 100, "{took} bytes");
    let mut e = o.expect();
    e.write_misses(11).exact(Figure::Dirtied, dirtied(c, 11));
    Ok(e)
}

fn bad_address(c: &mut Ctx) -> Result<Expect> {
    let file = create(c, "f")?;
    let mut o = c.oracle(&file)?;
    let (from, free) = sys::fenced(2 * PAGE as usize + 100)?;
    c.begin();
    let took = match o.write(0, || sys::pwrite_raw(&file, from, 5 * PAGE as usize, 0)) {
        Err(e) if c.fs == Fs::Btrfs && e.raw_os_error() == Some(libc::EFAULT) => 0,
        other => other?,
    };
    free();
    let mut e = o.expect();
    e.note(format!("{took} bytes of {} taken", 5 * PAGE));
    ensure!(took as u64 <= 2 * PAGE + 100, "{took} bytes");
    // Pages added for what was not written were not read ahead: fills are none.
    e.exact(Figure::Fills, 0).exact(Figure::ReadAheadPages, 0);
    let why = "the folio of what was not taken may be dirty, and is dropped again or not";
    e.within(Figure::Dirtied, 0, dirtied(c, 8), why).within(Figure::Removed, 0, 16, why);
    Ok(e)
}

fn full(c: &mut Ctx) -> Result<Expect> {
    let target = c.dir.join("mnt");
    std::fs::create_dir(&target)?;
    sys::mount("truth".as_ref(), &target, "tmpfs", "size=1m")?;
    let at = target.clone();
    c.guards.push(Box::new(move || sys::unmount(&at)));
    let file = create(c, "mnt/f")?;
    let mut o = c.oracle(&file)?;
    let buf = buffer(2 << 20);
    c.begin();
    let took = o.write(0, || file.write_at(&buf, 0))?;
    ensure!(took == 1 << 20, "{took} bytes");
    let mut e = o.expect();
    e.write_misses(256).within(Figure::Removed, 0, 16, "the page that there was no room for");
    Ok(e)
}

fn mapped(c: &mut Ctx) -> Result<Expect> {
    let source = c.file("g", 64 * PAGE)?;
    let map = sys::Map::new(&source, 64)?;
    let file = create(c, "f")?;
    let mut o = c.oracle(&file)?;
    c.begin();
    let from = map.address(0) as *const u8;
    let took = o.write(0, || sys::pwrite_raw(&file, from, 64 * PAGE as usize, 0))?;
    ensure!(took as u64 == 64 * PAGE, "{took} bytes");
    let mut e = o.expect();
    e.write_misses(64).exact(Figure::Dirtied, 64);
    let why = "brought in by faults: counted with reads or apart from them";
    e.within(Figure::ReadAheadPages, 0, 64, why).within(Figure::Fills, 0, 64, why);
    Ok(e)
}

/// What was written is there, and nothing of it was read ahead.
fn uring_write_read(c: &mut Ctx) -> Result<Expect> {
    let file = create(c, "f")?;
    file.set_len(60 * PAGE)?;
    let mut o = c.oracle(&file)?;
    let mut ring = refused("io_uring_setup", uring::Ring::new(4))?;
    let mut buf = buffer(60 * KIB);
    c.begin();
    let delivered = |res: i32| usize::try_from(res).map_err(|_| std::io::Error::from_raw_os_error(-res));
    for i in 0..4 {
        let pos = i * 60 * KIB;
        let took = o.write(pos, || delivered(ring.write(&file, &mut buf, pos, uring::ASYNC)?));
        ensure!(refused("IORING_OP_WRITE", took)? == buf.len());
        let some = &mut buf[..5 * PAGE as usize];
        let read = o.read(pos, || delivered(ring.read(&file, &mut [(some, pos)], uring::ASYNC)?[0]));
        ensure!(refused("IORING_OP_READ", read)? == 5 * PAGE as usize);
    }
    let mut e = o.expect();
    ensure!(o.tally.write_misses == 60 && o.tally.hits == 20, "the oracle itself: {:?}", o.tally);
    e.exact(Figure::Dirtied, dirtied(c, 60));
    Ok(e)
}

fn uring_write(c: &mut Ctx, flags: u8) -> Result<Expect> {
    let file = create(c, "f")?;
    file.set_len(54 * PAGE)?;
    let mut o = c.oracle(&file)?;
    let mut ring = refused("io_uring_setup", uring::Ring::new(4))?;
    let mut buf = buffer(60 * KIB);
    c.begin();
    for i in 0..4 {
        let pos = i * 52 * KIB;
        let took = o.write(pos, || {
            let res = ring.write(&file, &mut buf, pos, flags)?;
            usize::try_from(res).map_err(|_| std::io::Error::from_raw_os_error(-res))
        });
        ensure!(refused("IORING_OP_WRITE", took)? == buf.len());
    }
    let mut e = o.expect();
    ensure!(o.tally.write_misses == 54 && o.tally.write_hits == 6, "the oracle itself: {:?}", o.tally);
    e.exact(Figure::Dirtied, dirtied(c, 54));
    Ok(e)
}
