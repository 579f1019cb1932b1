//! Reads and writes of every length and fate, other calls between them: what each delivered is known by construction, and must
//! not depend on what its thread does next. Whoever counts one at another moment than its return is told apart here.

use std::io::Read;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::Barrier;

use anyhow::Result;
use anyhow::ensure;
use cachetop::figures::Figure;

use super::*;
use crate::sys;

/// ext4 and xfs read by one function, tmpfs by another; not all of these are there on every kernel of the matrix.
const SOME: &[Fs] = &[Fs::Ext4, Fs::Xfs, Fs::Tmpfs];

pub const LIST: &[Scenario] = &[
    scenario(
        "mixed-warm",
        SOME,
        "2000 reads: unaligned, at the end and past it, bad buffers, pipes",
        mixed_warm,
    ),
    scenario(
        "mixed-cold",
        &[Fs::Ext4, Fs::Xfs],
        "300 reads: unaligned, at the end and past it, pipes",
        mixed_cold,
    ),
    scenario(
        "mixed-ahead",
        &[Fs::Ext4, Fs::Xfs],
        "300 reads of what was read ahead: unaligned, at the end, bad buffers, pipes",
        mixed_ahead,
    ),
    scenario("one-read", SOME, "40 threads that read once, then wait, end, get a name or use a pipe", |c| {
        once(c, false)
    }),
    scenario(
        "mixed-writes",
        SOME,
        "2000 writes over a cached file: unaligned, bad buffers, reads of it and pipes between",
        mixed_writes,
    ),
    scenario(
        "one-write",
        SOME,
        "40 threads that write once, then wait, end, get a name or use a pipe",
        |c| once(c, true),
    ),
];

/// Bytes that a buffer has at most before what may not be written.
const GOOD: usize = 16 * PAGE as usize;

/// Pages in which these bytes lie.
fn touched(pos: u64, n: u64) -> std::ops::Range<u64> {
    pos / PAGE..if n == 0 { pos / PAGE } else { (pos + n).div_ceil(PAGE) }
}

/// What some reads come to: delivered, and requested of what is in the file.
#[derive(Default, Clone, Copy)]
struct Sum {
    pages: u64,
    bytes: u64,
    most_pages: u64,
    most_bytes: u64,
}

impl Sum {
    fn add(&mut self, pos: u64, delivered: u64, requested: u64) {
        let pages = |n| touched(pos, n).count() as u64;
        self.pages += pages(delivered);
        self.bytes += delivered;
        self.most_pages += pages(requested);
        self.most_bytes += requested;
    }

    /// All of them hits. `ahead`: pages added by reads at the end of the file (5.10).
    fn expect(&self, ahead: u64) -> Expect {
        let mut e = Expect::nothing();
        e.hits(self.pages, self.bytes);
        e.exact(Figure::Fills, ahead).exact(Figure::ReadAheadPages, ahead);
        for (figure, least, most) in [
            (Figure::Accesses, self.pages, self.most_pages),
            (Figure::Hits, self.pages, self.most_pages),
            (Figure::ReadBytes, self.bytes, self.most_bytes),
        ] {
            e.if_bounded(figure, least, most, "bad buffer");
        }
        e
    }
}

/// Where a read begins: anywhere, on a page, just before the end, at it, or past it.
fn position(c: &mut Ctx, len: u64) -> u64 {
    match c.rng.below(8) {
        0 => len - 1 - c.rng.below(2 * PAGE),
        1 => len,
        2 => len + c.rng.below(9 * PAGE),
        3 => c.rng.below(len / PAGE) * PAGE,
        _ => c.rng.below(len),
    }
}

fn mixed_warm(c: &mut Ctx) -> Result<Expect> {
    let len = 411 * PAGE + 777;
    let (file, mut o) = warm(c, len)?;
    let (to, free) = sys::fenced(GOOD)?;
    let (mut from, mut into) = sys::pipe()?;
    let (mut x, mut y) = (buffer(3000), buffer(30_000));
    let mut sum = Sum::default();
    c.begin();
    o.aside(|| -> Result<()> {
        for i in 0..2000 {
            let pos = position(c, len);
            let count = 1 + c.rng.below(11 * PAGE);
            // Every fifth buffer is too short, now and then by all of it.
            let bad = i % 5 == 0;
            let good = if bad { c.rng.below(count + 1) * c.rng.below(4).min(1) } else { count };
            // SAFETY: inside the buffer, whose last `good` bytes are from there on.
            let at = unsafe { to.add(GOOD - good.min(count) as usize) };
            let there = len.saturating_sub(pos);
            let (want, requested) = if !bad && i % 7 == 0 {
                let n = sys::preadv2(&file, &mut [&mut x, &mut y], pos, 0)? as u64;
                ensure!(n == there.min(33_000), "preadv2 gave {n} of 33000 at {pos} of {len}");
                (n, n)
            } else {
                let requested = there.min(count);
                let want = if bad { requested.min(good) } else { requested };
                let start = if bad { at } else { to };
                match sys::pread_raw(&file, start, count as usize, pos) {
                    Ok(n) => {
                        ensure!(n as u64 == want, "pread gave {n}, not {want}, of {count} at {pos} of {len}")
                    }
                    Err(e) => {
                        ensure!(bad && want == 0 && e.raw_os_error() == Some(libc::EFAULT), "pread: {e}")
                    }
                }
                (want, requested)
            };
            sum.add(pos, want, requested);
            if i % 3 == 0 {
                let n = 1 + c.rng.below(PAGE) as usize;
                into.write_all(&y[..n])?;
                from.read_exact(&mut y[..n])?;
            }
        }
        Ok(())
    })?;
    free();
    Ok(sum.expect(o.tally.ahead))
}

/// Whose first use a page is: of a read that is cut short, not of those that it did not come to.
fn mixed_ahead(c: &mut Ctx) -> Result<Expect> {
    let len = 411 * PAGE + 777;
    let (file, mut o) = cold(c, len)?;
    let (to, free) = sys::fenced(GOOD)?;
    let (mut from, mut into) = sys::pipe()?;
    let mut buf = buffer(3000);
    let mut sum = Sum::default();
    c.begin();
    for pos in (0..len).step_by(128 * KIB as usize) {
        o.aside(|| sys::advise(&file, pos, 128 * KIB, libc::POSIX_FADV_WILLNEED))?;
    }
    // Most of them one after the other, each third cut short: what it did not come to is met by those at the end, which are anywhere.
    let mut next = 0;
    for i in 0..300 {
        let pos = if i < 200 { next } else { position(c, len) };
        let count = 1 + c.rng.below(if i < 200 { 3 } else { 7 } * PAGE);
        next = pos + count;
        let good = if i % 3 == 0 { c.rng.below(count + 1) * c.rng.below(4).min(1) } else { count };
        // SAFETY: inside the buffer, whose last `good` bytes are from there on.
        let at = if i % 3 == 0 { unsafe { to.add(GOOD - good as usize) } } else { to };
        let requested = len.saturating_sub(pos).min(count);
        let want = requested.min(good);
        match o.read(pos, || sys::pread_raw(&file, at, count as usize, pos)) {
            Ok(n) => ensure!(n as u64 == want, "pread gave {n}, not {want}, of {count} at {pos} of {len}"),
            Err(e) => ensure!(want == 0 && e.raw_os_error() == Some(libc::EFAULT), "pread: {e}"),
        }
        sum.add(pos, want, requested);
        if i % 5 == 0 {
            let n = 1 + c.rng.below(2900) as usize;
            into.write_all(&buf[..n])?;
            from.read_exact(&mut buf[..n])?;
        }
    }
    free();
    let t = &o.tally;
    ensure!(t.ahead_hits > 200 && t.hits > 100, "the oracle itself: {t:?}");
    let mut e = o.expect();
    let over = sum.most_pages - sum.pages;
    for (figure, least, most) in [
        (Figure::Accesses, sum.pages, sum.most_pages),
        (Figure::Hits, t.hits, t.hits + over),
        (Figure::ReadAheadHits, t.ahead_hits, t.ahead_hits + over),
        (Figure::ReadBytes, sum.bytes, sum.most_bytes),
        (Figure::ReadCalls, t.calls, 300),
    ] {
        e.if_bounded(figure, least, most, "bad buffer");
    }
    Ok(e)
}

fn mixed_cold(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let (mut from, mut into) = sys::pipe()?;
    let mut buf = buffer(5 * PAGE);
    c.begin();
    for i in 0..300 {
        let pos = position(c, ODD);
        let count = 1 + c.rng.below(5 * PAGE);
        let n = o.read(pos, || file.read_at(&mut buf[..count as usize], pos))? as u64;
        ensure!(n == count.min(ODD.saturating_sub(pos)), "{n} of {count} at {pos} of {ODD}");
        if i % 3 == 0 {
            let n = 1 + c.rng.below(PAGE) as usize;
            into.write_all(&buf[..n])?;
            from.read_exact(&mut buf[..n])?;
        }
    }
    ensure!(o.tally.misses > 200 && o.tally.hits > 40, "the oracle itself: {:?}", o.tally);
    Ok(o.expect())
}

/// Writes of a file that is cached all took pages that were there.
fn all_hit(e: &mut Expect, c: &Ctx, sum: &Sum) -> Result<()> {
    e.exact(Figure::WriteAccesses, sum.pages).exact(Figure::WriteHits, sum.pages);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    if ["5.", "6.1."].iter().any(|old| release.starts_with(old)) {
        // These count some of what lies behind a bad address.
        let most = sum.pages + (sum.most_pages - sum.pages) / 2;
        e.within(Figure::WriteAccesses, sum.pages, most, "bad buffer");
        e.within(Figure::WriteHits, sum.pages, most, "bad buffer");
    }
    let why = "the kernel writes back when it likes, and dirties whole folios";
    e.within(Figure::Dirtied, u64::from(c.fs.block()), dirtied(c, 2000), why);
    Ok(())
}

fn mixed_writes(c: &mut Ctx) -> Result<Expect> {
    let len = 411 * PAGE + 777;
    let file = c.warm_file("f", len)?;
    let mut o = c.oracle(&file)?;
    let (from, free) = sys::fenced(GOOD)?;
    let (mut out, mut into) = sys::pipe()?;
    let (mut x, mut y) = (buffer(3000), buffer(30_000));
    let (mut reads, mut writes) = (Sum::default(), Sum::default());
    c.begin();
    o.aside(|| -> Result<()> {
        for i in 0..2000 {
            let pos = c.rng.below(len - 12 * PAGE);
            let count = 1 + c.rng.below(11 * PAGE);
            let bad = i % 5 == 0;
            let good = if bad { c.rng.below(count + 1) * c.rng.below(4).min(1) } else { count };
            let written = if !bad && i % 7 == 0 {
                sys::pwritev(&file, &[&x, &y], pos)? as u64
            } else {
                // SAFETY: inside the buffer, whose last `good` bytes are from there on.
                let at = unsafe { from.add(GOOD - good.min(count) as usize) };
                match sys::pwrite_raw(&file, at, count as usize, pos) {
                    Err(e) if bad && e.raw_os_error() == Some(libc::EFAULT) => 0,
                    other => other? as u64,
                }
            };
            ensure!(written <= good.max(33_000) && (bad || written > 0), "{written} of {count}, {good} good");
            writes.add(pos, written, written.max(count));
            if i % 11 == 0 {
                let n = file.read_at(&mut y, pos)? as u64;
                reads.add(pos, n, n);
            }
            if i % 3 == 0 {
                let n = 1 + c.rng.below(PAGE) as usize;
                into.write_all(&x[..n.min(3000)])?;
                out.read_exact(&mut x[..n.min(3000)])?;
            }
        }
        Ok(())
    })?;
    free();
    let mut e = reads.expect(o.tally.ahead);
    all_hit(&mut e, c, &writes)?;
    Ok(e)
}

/// What a thread does after its only request.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Waits,
    Ends,
    GetsName,
    UsesPipe,
}

fn once(c: &mut Ctx, writes: bool) -> Result<Expect> {
    let len = 411 * PAGE + 777;
    let (file, mut o) = if writes {
        let file = c.warm_file("f", len)?;
        let oracle = c.oracle(&file)?;
        (file, oracle)
    } else {
        warm(c, len)?
    };
    let file = Arc::new(file);
    let (go, end) = (Arc::new(Barrier::new(41)), Arc::new(Barrier::new(31)));
    let (tell, told) = std::sync::mpsc::channel();
    let mut sum = Sum::default();
    let (mut ended, mut waiting) = (Vec::new(), Vec::new());
    for i in 0..40u64 {
        let then = [Then::Waits, Then::Ends, Then::GetsName, Then::UsesPipe][i as usize % 4];
        // Some are cut short by the end of the file, some by a bad buffer.
        let at_end = i % 5 == 0 && !writes;
        let pos = if at_end { len - 1 - c.rng.below(PAGE) } else { c.rng.below(len - 12 * PAGE) };
        let count = 1 + c.rng.below(11 * PAGE);
        let good = if i % 3 == 0 { c.rng.below(count + 1) } else { count };
        let requested = count.min(len - pos);
        let (file, go, end, tell) = (file.clone(), go.clone(), end.clone(), tell.clone());
        let (to, free) = sys::fenced(good as usize)?;
        let to = to as usize;
        let thread = std::thread::spawn(move || {
            go.wait();
            let n = if writes {
                sys::pwrite_raw(&file, to as *const u8, count as usize, pos)
            } else {
                sys::pread_raw(&file, to as *mut u8, count as usize, pos)
            };
            let n = n.or_else(|e| if e.raw_os_error() == Some(libc::EFAULT) { Ok(0) } else { Err(e) });
            let after = || -> Result<(u64, u64, u64)> {
                match then {
                    Then::GetsName => sys::set_comm("another"),
                    Then::UsesPipe => {
                        let (mut from, mut into) = sys::pipe()?;
                        into.write_all(&[0; 100])?;
                        from.read_exact(&mut [0; 100])?;
                    }
                    Then::Waits | Then::Ends => {}
                }
                let (n, want) = (n? as u64, requested.min(good));
                // How much a write takes before a bad address is the file system's to say.
                ensure!(
                    n == want || writes && n <= want,
                    "{n} bytes, not {want}, of {count} at {pos} of {len}"
                );
                Ok((pos, n, requested))
            };
            let _ = tell.send(after());
            if then != Then::Ends {
                end.wait();
            }
        });
        c.guards.push(Box::new(free));
        if then == Then::Ends { &mut ended } else { &mut waiting }.push(thread);
    }
    c.begin();
    o.aside(|| -> Result<()> {
        go.wait();
        for _ in 0..40 {
            let (pos, delivered, requested) = told.recv()??;
            sum.add(pos, delivered, requested);
        }
        for thread in ended {
            ensure!(thread.join().is_ok(), "a thread ends");
        }
        Ok(())
    })?;
    // The others are there when the figures are taken.
    c.guards.push(Box::new(move || {
        end.wait();
        waiting.into_iter().for_each(|thread| drop(thread.join()));
    }));
    if !writes {
        return Ok(sum.expect(o.tally.ahead));
    }
    let mut e = Expect::nothing();
    all_hit(&mut e, c, &sum)?;
    Ok(e)
}
