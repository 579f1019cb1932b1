//! Writing: what is dirtied, what is added, and that none of it is reading.

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::Context;
use anyhow::Result;
use anyhow::ensure;
use cachetop::figures::Figure;

use super::*;
use crate::oracle::Oracle;
use crate::sys;

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

/// The folio that holds a cached page: (first page, pages), from /proc/kpageflags.
fn folio(file: &File, page: u64) -> Result<(u64, u64)> {
    const HEAD: u64 = 1 << 15;
    const TAIL: u64 = 1 << 16;
    let map = sys::Map::new(file, page as usize + 1)?;
    map.touch(page as usize);
    let mut word = [0; 8];
    let pagemap = File::open("/proc/self/pagemap").context("/proc/self/pagemap")?;
    pagemap.read_exact_at(&mut word, map.address(page as usize) as u64 / PAGE * 8)?;
    let pfn = u64::from_ne_bytes(word) & ((1 << 55) - 1);
    ensure!(pfn != 0, "no page frame number");
    let frames = File::open("/proc/kpageflags").context("/proc/kpageflags")?;
    let flags = |pfn: u64| -> Result<u64> {
        let mut word = [0; 8];
        frames.read_exact_at(&mut word, pfn * 8)?;
        Ok(u64::from_ne_bytes(word))
    };
    let mut first = pfn;
    if flags(pfn)? & (HEAD | TAIL) == 0 {
        return Ok((page, 1));
    }
    while flags(first)? & HEAD == 0 {
        first -= 1;
    }
    let mut n = 1;
    while flags(first + n)? & TAIL != 0 {
        n += 1;
    }
    Ok((page - (pfn - first), n))
}

/// Pages of all the folios that hold these pages.
fn folios(file: &File, pages: &[usize]) -> Result<u64> {
    let mut all: Vec<(u64, u64)> = pages.iter().map(|p| folio(file, *p as u64)).collect::<Result<_>>()?;
    all.sort_unstable();
    all.dedup();
    Ok(all.iter().map(|(_, n)| n).sum())
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
