//! Past the cache: O_DIRECT that goes direct, and O_DIRECT that does not.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Result;
use anyhow::ensure;
use cachetop::figures::Figure;

use super::*;
use crate::sys;
use crate::uring;

pub const LIST: &[Scenario] = &[
    scenario("direct-cold", ALL, "O_DIRECT reads of an uncached file", |c| direct_read(c, false)),
    scenario("direct-cached", ALL, "O_DIRECT reads of a cached file", |c| direct_read(c, true)),
    scenario("direct-end", BLOCK, "an O_DIRECT read across the end of file", direct_end),
    scenario("direct-write", BLOCK, "O_DIRECT write over 16 cached pages", direct_write),
    scenario("direct-extend", BLOCK, "O_DIRECT writes that make a file", direct_extend),
    scenario("direct-unaligned", ALL, "100 B with O_DIRECT: refused, or through the cache", unaligned),
    scenario("direct-tmpfs-write", &[Fs::Tmpfs], "tmpfs takes O_DIRECT and ignores it", tmpfs_write),
    scenario("direct-uring", BLOCK, "io_uring, O_DIRECT reads", |c| direct_uring(c, 0)),
    scenario("direct-uring-async", BLOCK, "the same by workers", |c| direct_uring(c, uring::ASYNC)),
    scenario("direct-uring-write", BLOCK, "io_uring, O_DIRECT writes", direct_uring_write),
    scenario("direct-aio", BLOCK, "io_submit, O_DIRECT reads, one across the end of file", direct_aio),
    scenario("direct-device", &[Fs::Ext4, Fs::Xfs], "O_DIRECT on a loop device", |c| device(c, Way::Direct)),
    scenario("direct-device-aio", &[Fs::Ext4], "the same by io_submit", |c| device(c, Way::Aio)),
    scenario("direct-device-large", &[Fs::Ext4], "300 pages at a time, read and io_submit", large_device),
    scenario("write-device", &[Fs::Ext4], "buffered writes to a loop device", |c| device(c, Way::Buffered)),
];

fn open_direct(path: &Path) -> Result<File> {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_DIRECT);
    refused("open with O_DIRECT", options.open(path))
}

fn direct(c: &Ctx) -> Result<File> {
    open_direct(&c.dir.join("f"))
}

/// The file system may have served any part of this through the cache: what went direct is what did not.
fn partly(e: &mut Expect, figure: Figure, bytes: u64) {
    let why = "btrfs may fall back to the cache";
    e.within(figure, 0, bytes, why).within(Figure::DirectFellBack, 0, bytes, why);
}

fn direct_read(c: &mut Ctx, is_warm: bool) -> Result<Expect> {
    const PAGES: u64 = 51;
    let (_, mut o) = if is_warm { warm(c, 101 * PAGE)? } else { cold(c, 101 * PAGE)? };
    let file = direct(c)?;
    let mut room = buffer(18 * PAGE);
    let buf = aligned(&mut room, 17 * PAGE as usize);
    c.begin();
    for i in 0..3 {
        let pos = i * 17 * PAGE;
        refused("O_DIRECT read", o.read(pos, || file.read_at(buf, pos)))?;
    }
    let device = c.device_read();
    let t = o.tally.clone();
    if device >= PAGES * PAGE && t.miss_fills + t.ahead == 0 {
        let mut e = Expect::nothing();
        e.exact(Figure::DirectReadBytes, PAGES * PAGE);
        return Ok(e);
    }
    let mut e = o.expect();
    e.exact(Figure::DirectFellBack, PAGES * PAGE);
    e.note(format!("the file system fell back to the cache: {device} bytes from the device"));
    if device > 0 && c.fs.block() {
        if is_warm {
            e.within(Figure::Accesses, 0, PAGES, "partly direct").within(
                Figure::Hits,
                0,
                PAGES,
                "partly direct",
            );
            e.within(Figure::ReadBytes, 0, PAGES * PAGE, "partly direct");
        }
        partly(&mut e, Figure::DirectReadBytes, PAGES * PAGE);
    }
    Ok(e)
}

fn direct_end(c: &mut Ctx) -> Result<Expect> {
    cold(c, 5 * PAGE + 1024)?;
    let file = direct(c)?;
    let mut room = buffer(10 * PAGE);
    let buf = aligned(&mut room, 8 * PAGE as usize);
    c.begin();
    let n = refused("O_DIRECT read", file.read_at(buf, PAGE))? as u64;
    ensure!(n == 4 * PAGE + 1024, "{n} bytes");
    let mut e = Expect::nothing();
    e.exact(Figure::DirectReadBytes, n);
    if c.fs == Fs::Btrfs {
        let why = "btrfs reads the end of a file that is no whole block through the cache";
        for figure in [Figure::Accesses, Figure::Misses, Figure::Fills, Figure::ReadAheadPages] {
            e.within(figure, 0, 6, why);
        }
        e.within(Figure::ReadBytes, 0, n, why).within(Figure::Hits, 0, 1, why);
        partly(&mut e, Figure::DirectReadBytes, n);
    }
    Ok(e)
}

/// What a direct write of btrfs leaves unsaid.
fn may_be_buffered(c: &Ctx, e: &mut Expect, pages: u64, gone: u64) {
    if c.fs != Fs::Btrfs {
        return;
    }
    let why = "btrfs may fall back to a buffered write, written out and dropped at once";
    partly(e, Figure::DirectWriteBytes, pages * PAGE);
    e.within(Figure::Removed, gone, gone + pages, why).within(Figure::Dirtied, 0, pages, why);
    for figure in [Figure::WriteAccesses, Figure::WriteHits, Figure::WriteMisses] {
        e.within(figure, 0, pages, why);
    }
}

fn direct_write(c: &mut Ctx) -> Result<Expect> {
    let (_, mut o) = warm(c, 101 * PAGE)?;
    let file = direct(c)?;
    let mut room = buffer(17 * PAGE);
    let buf = aligned(&mut room, 16 * PAGE as usize);
    c.begin();
    refused("O_DIRECT write", o.aside(|| file.write_at(buf, 5 * PAGE)))?;
    let mut e = o.expect();
    let n = o.tally.gone;
    e.exact(Figure::DirectWriteBytes, 16 * PAGE).exact(Figure::Removed, n);
    may_be_buffered(c, &mut e, 16, n);
    e.note(format!("{n} cached pages were dropped"));
    Ok(e)
}

fn direct_extend(c: &mut Ctx) -> Result<Expect> {
    File::create(c.dir.join("f"))?;
    let file = direct(c)?;
    let mut room = buffer(17 * PAGE);
    let buf = aligned(&mut room, 16 * PAGE as usize);
    c.begin();
    for i in 0..3 {
        let n = refused("O_DIRECT write", file.write_at(buf, i * 16 * PAGE))?;
        ensure!(n == buf.len());
    }
    let mut e = Expect::nothing();
    e.exact(Figure::DirectWriteBytes, 48 * PAGE);
    may_be_buffered(c, &mut e, 48, 0);
    Ok(e)
}

fn unaligned(c: &mut Ctx) -> Result<Expect> {
    let (_, mut o) = warm(c, 11 * PAGE)?;
    let file = direct(c)?;
    let mut room = buffer(2 * PAGE);
    let buf = &mut aligned(&mut room, PAGE as usize)[7..107];
    c.begin();
    let n = match o.read(PAGE + 50, || file.read_at(buf, PAGE + 50)) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => 0,
        other => other?,
    };
    let mut e = o.expect();
    e.exact(Figure::DirectFellBack, n as u64);
    e.note(format!("{n} of 100 bytes delivered"));
    Ok(e)
}

fn tmpfs_write(c: &mut Ctx) -> Result<Expect> {
    File::create(c.dir.join("f"))?;
    let file = direct(c)?;
    let buf = buffer(3 * PAGE);
    c.begin();
    file.write_all_at(&buf, 0)?;
    let mut e = Expect::nothing();
    e.write_misses(3).exact(Figure::DirectFellBack, 3 * PAGE);
    Ok(e)
}

/// A file of which nothing is cached, past the cache, and a ring.
fn direct_ring(c: &mut Ctx) -> Result<(File, uring::Ring)> {
    cold(c, 101 * PAGE)?;
    Ok((direct(c)?, refused("io_uring_setup", uring::Ring::new(4))?))
}

fn direct_uring(c: &mut Ctx, flags: u8) -> Result<Expect> {
    let (file, mut ring) = direct_ring(c)?;
    let mut room = buffer(18 * PAGE);
    let buf = aligned(&mut room, 17 * PAGE as usize);
    c.begin();
    for i in 0..4 {
        let res = refused("IORING_OP_READ", ring.read(&file, &mut [(&mut *buf, i * 17 * PAGE)], flags))?[0];
        ensure!(res as u64 == 17 * PAGE, "result {res}");
    }
    let mut e = Expect::nothing();
    e.exact(Figure::DirectReadBytes, 68 * PAGE);
    Ok(e)
}

fn direct_uring_write(c: &mut Ctx) -> Result<Expect> {
    let (file, mut ring) = direct_ring(c)?;
    let mut room = buffer(18 * PAGE);
    let buf = aligned(&mut room, 17 * PAGE as usize);
    c.begin();
    for i in 0..4 {
        let res = refused("IORING_OP_WRITE", ring.write(&file, buf, i * 17 * PAGE, 0))?;
        ensure!(res as u64 == 17 * PAGE, "result {res}");
    }
    let mut e = Expect::nothing();
    e.exact(Figure::DirectWriteBytes, 68 * PAGE);
    may_be_buffered(c, &mut e, 68, 0);
    Ok(e)
}

fn direct_aio(c: &mut Ctx) -> Result<Expect> {
    cold(c, 29 * PAGE)?;
    let file = direct(c)?;
    let mut room = buffer(18 * PAGE);
    let buf = aligned(&mut room, 17 * PAGE as usize);
    c.begin();
    let mut sum = 0;
    for i in 0..2 {
        sum += refused("io_submit", sys::aio(&file, buf, i * 17 * PAGE, false))? as u64;
    }
    ensure!(sum == 29 * PAGE, "{sum} bytes");
    let mut e = Expect::nothing();
    e.exact(Figure::DirectReadBytes, 29 * PAGE).within(Figure::Removed, 0, 8, AIO_RING);
    Ok(e)
}

/// Why a process that uses libaio removes pages.
const AIO_RING: &str = "io_destroy frees the ring, which is a file";

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Direct,
    Aio,
    Buffered,
}

/// A loop device has no metadata of its own: what is read and written is the device itself.
fn device(c: &mut Ctx, way: Way) -> Result<Expect> {
    let image = c.warm_file("img", 4 << 20)?;
    let (path, keep) = refused("loop device", sys::loop_attach(&image))?;
    let mut room = buffer(18 * PAGE);
    let buf = aligned(&mut room, 17 * PAGE as usize);
    let mut e = Expect::nothing();
    if way == Way::Buffered {
        let file = File::options().read(true).write(true).open(&path)?;
        c.begin();
        file.write_all_at(buf, 0)?;
        file.write_all_at(buf, 9 * PAGE)?;
        e.exact(Figure::WriteAccesses, 34).exact(Figure::WriteMisses, 26).exact(Figure::WriteHits, 8);
        // The device goes with its last user, and what it still has to write with it.
        c.guards.push(Box::new(move || drop((file, keep))));
        return Ok(e);
    }
    let file = open_direct(&path)?;
    c.begin();
    let (mut read, mut written) = (0, 0);
    for i in 0..3 {
        let pos = i * 17 * PAGE;
        if way == Way::Aio {
            read += refused("io_submit", sys::aio(&file, buf, pos, false))?;
            written += refused("io_submit", sys::aio(&file, buf, pos, true))?;
        } else {
            read += refused("O_DIRECT read", file.read_at(buf, pos))?;
            written += refused("O_DIRECT write", file.write_at(buf, pos))?;
        }
    }
    ensure!(read as u64 == 51 * PAGE && written == read, "{read} and {written} bytes");
    e.exact(Figure::DirectReadBytes, read as u64).exact(Figure::DirectWriteBytes, written as u64);
    if way == Way::Aio {
        e.within(Figure::Removed, 0, 24, AIO_RING);
    }
    for figure in [Figure::DirectReadBytes, Figure::DirectWriteBytes] {
        e.if_bounded(figure, 0, 51 * PAGE, "not that of block devices");
        e.if_bounded(figure, 0, 51 * PAGE, "direct I/O of block devices is not seen");
    }
    drop(keep);
    Ok(e)
}

/// More pages than one bio holds: the kernel has a function of its own for these.
fn large_device(c: &mut Ctx) -> Result<Expect> {
    let image = c.warm_file("img", 4 << 20)?;
    let (path, keep) = refused("loop device", sys::loop_attach(&image))?;
    let file = open_direct(&path)?;
    let mut room = buffer(301 * PAGE);
    let buf = aligned(&mut room, 300 * PAGE as usize);
    c.begin();
    let mut read = refused("O_DIRECT read", file.read_at(buf, 7 * PAGE))?;
    // Across the end of the device: 124 pages are left.
    read += refused("O_DIRECT read", file.read_at(buf, 900 * PAGE))?;
    read += refused("io_submit", sys::aio(&file, buf, 400 * PAGE, false))?;
    let written = refused("O_DIRECT write", file.write_at(buf, 3 * PAGE))?;
    ensure!(read as u64 == 724 * PAGE && written as u64 == 300 * PAGE, "{read} and {written} bytes");
    let mut e = Expect::nothing();
    e.exact(Figure::DirectReadBytes, read as u64).exact(Figure::DirectWriteBytes, written as u64);
    e.within(Figure::Removed, 0, 8, AIO_RING);
    for figure in [Figure::DirectReadBytes, Figure::DirectWriteBytes] {
        e.if_bounded(figure, 0, 0, "not that of block devices");
        e.if_bounded(figure, 0, 0, "direct I/O of block devices is not seen");
    }
    drop(keep);
    Ok(e)
}
