//! The other ways to read: vectors, flags, io_uring, sendfile, splice, copies.

use std::fs::File;
use std::io::IoSliceMut;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

use anyhow::Result;
use cachetop::figures::Figure;

use super::*;
use crate::sys;
use crate::uring;

const NOWAIT: i32 = 8;
const DONTCACHE: i32 = 0x80;
const CHUNK: u64 = 64 * KIB;

pub const LIST: &[Scenario] = &[
    scenario("read", BLOCK, "read(2), 10000 B each", |c| read(c, false)),
    scenario("read-warm", ALL, "read(2), 10000 B each", |c| read(c, true)),
    scenario("readv", BLOCK, "readv of 100, 5000 and 9000 B", readv),
    scenario("preadv2", BLOCK, "preadv2 without flags", preadv2),
    scenario("nowait-warm", ALL, "RWF_NOWAIT, all cached", |c| nowait(c, true)),
    scenario("nowait-cold", BLOCK, "RWF_NOWAIT, nothing cached, then a plain read", |c| nowait(c, false)),
    scenario("dontcache-cold", ALL, "RWF_DONTCACHE, nothing cached", |c| dontcache(c, false)),
    scenario("dontcache-warm", ALL, "RWF_DONTCACHE, all cached", |c| dontcache(c, true)),
    scenario("uring-cold", BLOCK, "io_uring, 64 KiB, one at a time", |c| uring_single(c, 0, false)),
    scenario("uring-warm", ALL, "io_uring, 64 KiB, one at a time", |c| uring_single(c, 0, true)),
    scenario("uring-async-cold", BLOCK, "the same by workers", |c| uring_single(c, uring::ASYNC, false)),
    scenario("uring-async-warm", ALL, "the same by workers", |c| uring_single(c, uring::ASYNC, true)),
    scenario("uring-odd", BLOCK, "io_uring, requests that begin and end within pages", uring_odd),
    scenario("uring-slept-cold", BLOCK, "io_uring, 64 KiB, whose thread sleeps meanwhile", uring_slept),
    scenario("uring-batch", BLOCK, "8 random 4 KiB reads at once, 72 in all", |c| uring_batch(c, 0)),
    scenario("uring-batch-async", BLOCK, "the same by workers", |c| uring_batch(c, uring::ASYNC)),
    scenario("sendfile-cold", BLOCK, "sendfile to /dev/null, 64 KiB each", |c| sendfile(c, false)),
    scenario("sendfile-warm", ALL, "sendfile to /dev/null, 64 KiB each", |c| sendfile(c, true)),
    scenario("sendfile-whole", BLOCK, "one sendfile of the whole cold file", sendfile_whole),
    scenario("sendfile-within", BLOCK, "sendfile that begins and ends within pages, warm", sendfile_within),
    scenario("sendfile-socket", BLOCK, "sendfile to a socket, cold", sendfile_socket),
    scenario("splice-cold", BLOCK, "splice to a pipe", |c| splice(c, false)),
    scenario("splice-warm", ALL, "splice to a pipe", |c| splice(c, true)),
    scenario("copy-range", ALL, "copy_file_range in one file system", copy_range),
    scenario("fault-in-read", BLOCK, "a read stopped by a bad address", bad_address),
    scenario("mmap-read", BLOCK, "a mapping touched, cold: no read call", mmap_read),
];

fn either(c: &mut Ctx, is_warm: bool, len: u64) -> Result<(File, crate::oracle::Oracle)> {
    if is_warm { warm(c, len) } else { cold(c, len) }
}

fn read(c: &mut Ctx, is_warm: bool) -> Result<Expect> {
    let (mut file, mut o) = either(c, is_warm, ODD)?;
    let mut buf = buffer(10_000);
    c.begin();
    let mut pos = 0;
    loop {
        match o.read(pos, || file.read(&mut buf))? {
            0 => return Ok(o.expect()),
            n => pos += n as u64,
        }
    }
}

fn readv(c: &mut Ctx) -> Result<Expect> {
    let (mut file, mut o) = cold(c, 211 * PAGE + 5)?;
    let (mut x, mut y, mut z) = (buffer(100), buffer(5000), buffer(9000));
    c.begin();
    let mut pos = 0;
    loop {
        let mut bufs = [IoSliceMut::new(&mut x), IoSliceMut::new(&mut y), IoSliceMut::new(&mut z)];
        match o.read(pos, || file.read_vectored(&mut bufs))? {
            0 => return Ok(o.expect()),
            n => pos += n as u64,
        }
    }
}

fn preadv2(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, 211 * PAGE + 5)?;
    let (mut x, mut y) = (buffer(3000), buffer(30_000));
    c.begin();
    for i in 0..30 {
        let pos = i * 25_000;
        o.read(pos, || sys::preadv2(&file, &mut [&mut x, &mut y], pos, 0))?;
    }
    Ok(o.expect())
}

fn nowait(c: &mut Ctx, is_warm: bool) -> Result<Expect> {
    let (file, mut o) = either(c, is_warm, 307 * PAGE + 1)?;
    let mut buf = buffer(28 * KIB);
    if !is_warm {
        sys::advise(&file, 0, 0, libc::POSIX_FADV_NORMAL)?;
    }
    c.begin();
    let mut again = 0;
    for i in 0..43 {
        let pos = i * 28 * KIB;
        match o.read(pos, || sys::preadv2(&file, &mut [&mut buf], pos, NOWAIT)) {
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {
                again += 1;
                o.read(pos, || file.read_at(&mut buf, pos))?;
            }
            other => {
                refused("RWF_NOWAIT", other)?;
            }
        }
    }
    let mut e = o.expect();
    e.note(format!("{again} of 43 calls gave EAGAIN"));
    Ok(e)
}

fn dontcache(c: &mut Ctx, is_warm: bool) -> Result<Expect> {
    let (file, mut o) = either(c, is_warm, ODD)?;
    let mut buf = buffer(36 * KIB);
    c.begin();
    let mut pos = 0;
    loop {
        let n = o.read(pos, || sys::preadv2(&file, &mut [&mut buf], pos, DONTCACHE));
        match refused("RWF_DONTCACHE", n)? {
            0 => break,
            n => pos += n as u64,
        }
    }
    let t = o.tally.clone();
    let mut e = o.expect();
    if !is_warm {
        // Missed pages are added and gone again within the call, and so are the rest of their folios.
        let why = "pages added and dropped inside one call are seen by the device only";
        let (seen, device) = (t.misses + t.ahead, c.device_read() / PAGE);
        let more = device.saturating_sub(seen);
        let left = o.cached();
        e.within(Figure::Fills, seen, seen + more, why);
        e.within(Figure::ReadAheadPages, t.ahead, t.ahead + more, why);
        e.within(Figure::ReadAheadWasted, t.wasted, t.wasted + more, why);
        e.within(Figure::Removed, seen - left, seen + more - left, why);
    }
    Ok(e)
}

fn ring(entries: u32) -> Result<uring::Ring> {
    refused("io_uring_setup", uring::Ring::new(entries))
}

fn delivered(res: i32) -> std::io::Result<usize> {
    usize::try_from(res).map_err(|_| std::io::Error::from_raw_os_error(-res))
}

fn uring_single(c: &mut Ctx, flags: u8, is_warm: bool) -> Result<Expect> {
    let (file, mut o) = either(c, is_warm, ODD)?;
    let mut ring = ring(4)?;
    let mut buf = buffer(CHUNK);
    c.begin();
    for i in 0..15 {
        let pos = i * (CHUNK + 12 * KIB);
        let n = o.read(pos, || delivered(ring.read(&file, &mut [(&mut buf, pos)], flags)?[0]));
        refused("IORING_OP_READ", n)?;
    }
    let mut e = o.expect();
    if !is_warm {
        let (calls, missed) = (o.tally.calls, o.tally.missed_calls);
        let why =
            "a request that meets a page that is not there delivers what is before it, and is tried again";
        e.within(Figure::ReadCalls, calls, 2 * calls, why);
        e.within(Figure::ReadMissedCalls, u64::from(missed > 0), missed + calls, why);
    }
    if flags == uring::ASYNC {
        known_later(&mut e, o.tally.misses, o.tally.ahead);
    }
    Ok(e)
}

fn uring_odd(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    let mut ring = ring(4)?;
    let mut buf = buffer(50_001);
    c.begin();
    for i in 0..60 {
        let (pos, len) = (i % 30 * 77_777, [100, 5000, 50_001][i as usize % 3]);
        let to = &mut buf[..len];
        let n = o.read(pos, || delivered(ring.read(&file, &mut [(to, pos)], 0)?[0]));
        refused("IORING_OP_READ", n)?;
    }
    let mut e = o.expect();
    let (calls, missed, pages) = (o.tally.calls, o.tally.missed_calls, o.tally.misses);
    let why = "a request that meets a page that is not there is tried again";
    e.within(Figure::ReadCalls, calls, calls + pages + missed, why);
    e.within(Figure::ReadMissedCalls, u64::from(missed > 0), missed + pages, why);
    Ok(e)
}

/// What a request could not deliver at once is read in whatever call the thread is in by then. Then the same again, warm.
fn uring_slept(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let mut ring = ring(4)?;
    ring.sleeps = true;
    let mut buf = buffer(CHUNK);
    c.begin();
    for i in 0..30 {
        let pos = i % 15 * (CHUNK + 12 * KIB);
        let n = o.read(pos, || delivered(ring.read(&file, &mut [(&mut buf, pos)], 0)?[0]));
        refused("IORING_OP_READ", n)?;
    }
    let mut e = o.expect();
    let (calls, missed, pages) = (o.tally.calls, o.tally.missed_calls, o.tally.misses);
    let why = "a request that meets a page that is not there is tried again";
    e.within(Figure::ReadCalls, calls, calls + pages, why);
    e.within(Figure::ReadMissedCalls, u64::from(missed > 0), missed + pages, why);
    Ok(e)
}

/// Where the plan says that it guesses what a worker of io_uring was requested: misses may pass for pages that
/// were read ahead, never the other way, and nothing is lost.
fn known_later(e: &mut Expect, misses: u64, ahead: u64) {
    let ahead_hits = e.want(Figure::ReadAheadHits).map_or(0, |w| w.lo);
    let word = "io_uring worker";
    e.if_bounded(Figure::Misses, 0, misses, word);
    e.if_bounded(Figure::ReadAheadHits, ahead_hits, ahead_hits + misses, word);
    e.if_bounded(Figure::ReadAheadPages, ahead, ahead + misses, word);
}

fn uring_batch(c: &mut Ctx, flags: u8) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let mut pages: Vec<u64> = (0..ODD_PAGES - 1).collect();
    c.rng.shuffle(&mut pages);
    let mut ring = ring(8)?;
    let mut bufs = vec![buffer(PAGE); 8];
    c.begin();
    for group in pages[..72].chunks(8) {
        let mut reads: Vec<(&mut [u8], u64)> =
            bufs.iter_mut().zip(group).map(|(b, p)| (b.as_mut_slice(), p * PAGE)).collect();
        let done = o.aside(|| ring.read(&file, &mut reads, flags));
        for res in refused("IORING_OP_READ", done)? {
            anyhow::ensure!(delivered(res)? == PAGE as usize);
        }
    }
    anyhow::ensure!(o.cached() == 72, "FADV_RANDOM read {} pages", o.cached());
    let mut e = Expect::nothing();
    e.misses(72, 72 * PAGE);
    if flags == uring::ASYNC {
        known_later(&mut e, 72, 0);
    }
    Ok(e)
}

fn sendfile(c: &mut Ctx, is_warm: bool) -> Result<Expect> {
    let (file, mut o) = either(c, is_warm, ODD)?;
    let null = File::options().write(true).open("/dev/null")?;
    c.begin();
    let mut pos = 0;
    loop {
        let n = o.read(pos, || sys::sendfile(&null, &file, pos, CHUNK as usize));
        match refused("sendfile", n)? {
            0 => return Ok(o.expect()),
            n => pos += n as u64,
        }
    }
}

fn sendfile_whole(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    let null = File::options().write(true).open("/dev/null")?;
    c.begin();
    let n = o.aside(|| sys::sendfile(&null, &file, 0, ODD as usize))?;
    anyhow::ensure!(n as u64 == ODD);
    let why = "the kernel serves one sendfile in pieces of up to 16 pages, each a request of its own";
    let mut e = Expect::nothing();
    e.exact(Figure::Accesses, ODD_PAGES).exact(Figure::ReadBytes, ODD);
    e.within(Figure::Misses, 1, ODD_PAGES, why).within(Figure::ReadAheadHits, 0, ODD_PAGES - 1, why);
    e.exact(Figure::Fills, o.tally.ahead).within(Figure::ReadAheadPages, 0, o.tally.ahead - 1, why);
    Ok(e)
}

/// The kernel's pipe has sixteen places: what lies in a seventeenth page comes in a piece of its own.
fn sendfile_within(c: &mut Ctx) -> Result<Expect> {
    let (file, _) = warm(c, 100 * PAGE)?;
    let null = File::options().write(true).open("/dev/null")?;
    c.begin();
    let (mut pages, mut bytes) = (0, 0);
    for (pos, len) in [(100, 65_536), (65_636, 65_536), (4000, 65_000), (4096, 69_000), (50 * PAGE + 1, 3)] {
        let n = sys::sendfile(&null, &file, pos, len)? as u64;
        anyhow::ensure!(n == len as u64, "sent {n}");
        pages += (pos + n - 1) / PAGE + 1 - pos / PAGE;
        bytes += n;
    }
    let mut e = Expect::nothing();
    e.exact(Figure::Accesses, pages).exact(Figure::Hits, pages).exact(Figure::ReadBytes, bytes);
    Ok(e)
}

fn sendfile_socket(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, 307 * PAGE)?;
    let (to, mut from) = UnixStream::pair()?;
    let drain = std::thread::spawn(move || {
        let mut buf = buffer(CHUNK);
        while from.read(&mut buf).is_ok_and(|n| n > 0) {}
    });
    c.begin();
    let mut pos = 0;
    loop {
        // A piece may be short when the socket is full: the range is what was sent.
        match o.read(pos, || sys::sendfile(&to, &file, pos, (CHUNK - pos % CHUNK) as usize))? {
            0 => break,
            n => pos += n as u64,
        }
    }
    drop(to);
    drain.join().map_err(|_| anyhow::anyhow!("drain"))?;
    Ok(o.expect())
}

fn splice(c: &mut Ctx, is_warm: bool) -> Result<Expect> {
    let (file, mut o) = either(c, is_warm, ODD)?;
    let (mut from, to) = sys::pipe()?;
    let mut buf = buffer(CHUNK);
    c.begin();
    let mut pos = 0;
    loop {
        let n = o.read(pos, || sys::splice(&file, pos, &to, (CHUNK - pos % CHUNK) as usize))?;
        if n == 0 {
            return Ok(o.expect());
        }
        from.read_exact(&mut buf[..n])?;
        pos += n as u64;
    }
}

fn copy_range(c: &mut Ctx) -> Result<Expect> {
    let len = 61 * PAGE + 5;
    let (file, mut o) = cold(c, len)?;
    let to = File::options().read(true).write(true).create_new(true).open(c.dir.join("copy"))?;
    c.begin();
    let mut pos = 0;
    loop {
        let n = o.read(pos, || sys::copy_file_range(&file, &to, pos, CHUNK as usize));
        match refused("copy_file_range", n)? {
            0 => break,
            n => pos += n as u64,
        }
    }
    anyhow::ensure!(pos == len, "copied {pos} of {len}");
    if c.fs.block() && o.cached() == 0 {
        let mut e = Expect::nothing();
        e.note("cloned, not copied".into());
        return Ok(e);
    }
    let mut e = o.expect();
    e.exact(Figure::Dirtied, dirtied(c, 62));
    e.exact(Figure::WriteAccesses, 62).exact(Figure::WriteMisses, 62).exact(Figure::WriteHits, 0);
    Ok(e)
}

fn bad_address(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, 307 * PAGE)?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let (to, free) = sys::fenced(2 * PAGE as usize + 100)?;
    c.begin();
    let n = o.read(0, || sys::pread_raw(&file, to, 5 * PAGE as usize, 0))?;
    free();
    let mut e = o.expect();
    e.note(format!("{n} bytes of {} delivered", 5 * PAGE));
    let why = "pages requested, added, but not delivered: of the request or ahead of it";
    e.within(Figure::ReadAheadPages, 0, o.tally.ahead, why);
    for (figure, most) in [(Figure::Accesses, 5), (Figure::Misses, 5), (Figure::ReadBytes, 5 * PAGE)] {
        let truth = e.want(figure).map_or(0, |w| w.lo);
        e.if_bounded(figure, truth, most, "bad buffer");
    }
    Ok(e)
}

fn mmap_read(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, 307 * PAGE)?;
    let map = sys::Map::new(&file, 307)?;
    c.begin();
    o.aside(|| (0..307).step_by(3).map(|p| u64::from(map.touch(p))).sum::<u64>());
    let mut e = Expect::nothing();
    let why = "brought in by faults: counted with reads or apart from them";
    e.within(Figure::ReadAheadPages, 0, o.tally.ahead, why);
    e.within(Figure::Fills, 0, o.tally.ahead, why);
    Ok(e)
}
