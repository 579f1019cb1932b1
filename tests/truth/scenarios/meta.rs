//! Metadata: what ext4 looks up in the mapping of its block device, against how many of its pages are cached.

use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;
use anyhow::Result;
use anyhow::ensure;
use cachetop::figures::Figure;

use super::*;
use crate::sys;

const ON: &[Fs] = &[Fs::Ext4];

pub const LIST: &[Scenario] = &[
    scenario("meta-list-warm", ON, "a directory listed again: hits only", list_warm),
    scenario("meta-list-cold", ON, "a directory listed in pieces, no read-ahead", |c| list_cold(c, 0)),
    scenario(
        "meta-list-ahead",
        ON,
        "a directory listed in pieces: what was read ahead is a first use",
        |c| list_cold(c, 64 * KIB),
    ),
    scenario("meta-stat-cold", ON, "stat after a mount, no read-ahead: each table block missed once", |c| {
        stat(c, "inode_readahead_blks=0")
    }),
    scenario("meta-stat-ahead", ON, "stat after a mount: table blocks read ahead, then used", |c| {
        stat(c, "inode_readahead_blks=8")
    }),
    scenario("buffers-1k", ON, "rewriting pages of four buffers each", buffers),
];

/// A file system of its own in a file, so that nobody else touches its blocks.
pub(super) struct Inner {
    device: PathBuf,
    kind: &'static str,
    open: File,
    pub target: PathBuf,
}

impl Inner {
    fn new(c: &mut Ctx, mkfs: &[&str]) -> Result<Self> {
        let always = ["-q", "-F", "-I", "256", "-E", "lazy_itable_init=0"];
        Self::formatted(c, "ext4", 64 << 20, &[&always[..], mkfs].concat())
    }

    pub fn formatted(c: &mut Ctx, kind: &'static str, size: u64, mkfs: &[&str]) -> Result<Self> {
        let path = c.dir.join("img");
        let image = File::options().read(true).write(true).create_new(true).open(&path)?;
        image.set_len(size)?;
        let program = format!("mkfs.{kind}");
        let made = Command::new(&program)
            .args(mkfs)
            .arg(&path)
            .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
            .stdin(Stdio::null())
            .output();
        let made = refused(&program, made)?;
        ensure!(made.status.success(), "{program}: {}", String::from_utf8_lossy(&made.stderr));
        let (device, open) = refused("loop device", sys::loop_attach(&image))?;
        let target = c.dir.join("mnt");
        fs::create_dir(&target)?;
        Ok(Self { device, kind, open, target })
    }

    pub fn mount(&self, c: &mut Ctx, options: &str) -> Result<()> {
        refused("mount", sys::mount(&self.device, &self.target, self.kind, options))?;
        let at = self.target.clone();
        c.guards.push(Box::new(move || sys::unmount(&at)));
        Ok(())
    }

    /// What is in the cache after a mount is what mounting read.
    pub fn mount_anew(&self, c: &mut Ctx, options: &str) -> Result<()> {
        c.guards.pop();
        sys::unmount(&self.target);
        self.mount(c, options)
    }

    /// Pages of the device in the cache. Not by mincore, which counts pages that are up to date: here their buffers are,
    /// and nobody says so of the page.
    fn cached(&self) -> Result<u64> {
        if let Ok(n) = sys::cachestat(&self.open, 64 << 20) {
            return Ok(n);
        }
        // Before 6.5: of all block devices.
        let text = fs::read_to_string("/proc/meminfo")?;
        let line =
            text.lines().find_map(|l| l.strip_prefix("Buffers:")).context("no Buffers in /proc/meminfo")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * KIB / PAGE)
    }
}

/// A directory of `n` empty files, read once so that its access time will not change again.
fn populate(inner: &Inner, n: u32) -> Result<()> {
    let dir = inner.target.join("d");
    fs::create_dir(&dir)?;
    for i in 0..n {
        File::create(dir.join(format!("f{i:04}")))?;
    }
    sleep(Duration::from_millis(30));
    ensure!(fs::read_dir(&dir)?.count() == n as usize, "not all files are there");
    Ok(())
}

fn expect(hits: u64, ahead: u64, misses: u64) -> Expect {
    let mut e = Expect::nothing();
    e.exact(Figure::MetaAccesses, hits + ahead + misses).exact(Figure::MetaHits, hits);
    e.exact(Figure::MetaAheadHits, ahead).exact(Figure::MetaMisses, misses);
    e
}

/// One getdents64 call; how many bytes it gave.
fn getdents(dir: &File, buf: &mut [u8]) -> Result<usize> {
    // SAFETY: a live buffer of that length.
    let n = unsafe { libc::syscall(libc::SYS_getdents64, dir.as_raw_fd(), buf.as_mut_ptr(), buf.len()) };
    ensure!(n >= 0, "getdents64: {}", std::io::Error::last_os_error());
    Ok(n as usize)
}

fn seek(dir: &File, to: i64, whence: i32) -> u64 {
    // SAFETY: no pointer.
    unsafe { libc::lseek(dir.as_raw_fd(), to, whence) as u64 }
}

/// Entries of 16 bytes, 255 to a block, in the order of the blocks.
const LINEAR: [&str; 4] = ["-b", "4096", "-O", "^dir_index,^has_journal,^metadata_csum"];
const FILES: u32 = 4000;

fn list_warm(c: &mut Ctx) -> Result<Expect> {
    let inner = Inner::new(c, &LINEAR)?;
    inner.mount(c, "")?;
    populate(&inner, FILES)?;
    let dir = File::open(inner.target.join("d"))?;
    let blocks = dir.metadata()?.size() / 4096;
    let mut buf = buffer(1024 * KIB);
    while getdents(&dir, &mut buf)? > 0 {}
    c.begin();
    for _ in 0..3 {
        seek(&dir, 0, libc::SEEK_SET);
        while getdents(&dir, &mut buf)? > 0 {}
    }
    ensure!(blocks > 14, "{blocks} blocks");
    Ok(expect(3 * blocks, 0, 0))
}

/// `readahead`: in bytes, of the device.
fn list_cold(c: &mut Ctx, readahead: u64) -> Result<Expect> {
    let inner = Inner::new(c, &LINEAR)?;
    inner.mount(c, "")?;
    populate(&inner, FILES)?;
    // SAFETY: BLKRASET takes a number of sectors.
    ensure!(unsafe { libc::ioctl(inner.open.as_raw_fd(), 0x1262, readahead / 512) } == 0, "BLKRASET");
    inner.mount_anew(c, "")?;
    let dir = File::open(inner.target.join("d"))?;
    let size = dir.metadata()?.size();
    // This also makes the kernel know the extents: a block of the tree would be an access more.
    let blocks = blocks_of(&dir)?;
    ensure!(blocks.len() as u64 == size / 4096, "{} blocks of {size} bytes", blocks.len());
    // About a hundred entries of 32 bytes: no call reaches two blocks that it has not seen.
    let mut buf = buffer(3200);
    let (mut hits, mut ahead, mut misses, mut unknown) = (0, 0, 0, 0);
    let (mut at, mut seen) = (0, 0);
    c.begin();
    loop {
        let is_there = blocks.get(seen as usize).map(|b| sys::cachestat_range(&inner.open, b * 4096, 4096));
        if getdents(&dir, &mut buf)? == 0 {
            break;
        }
        // The position is that of the entry that found no room: its block was looked up.
        let to = seek(&dir, 0, libc::SEEK_CUR).min(size);
        let touched = if to < size { to / 4096 + 1 } else { size / 4096 } - at / 4096;
        let new = (at / 4096 + touched).saturating_sub(seen);
        ensure!(new <= 1, "{new} new blocks in one call");
        hits += touched - new;
        let what = match is_there {
            _ if readahead == 0 => &mut misses,
            Some(Ok(1)) => &mut ahead,
            Some(Ok(_)) => &mut misses,
            _ => &mut unknown, // before 6.5
        };
        *what += new;
        (at, seen) = (to, seen + new);
    }
    ensure!(seen == size / 4096, "the oracle itself: {seen} blocks");
    let mut e = expect(hits, ahead, misses);
    if unknown > 0 {
        let why = "before cachestat(2) nobody says which page of a device is cached";
        e.exact(Figure::MetaAccesses, hits + unknown);
        e.within(Figure::MetaMisses, 1, unknown / 2, why);
        e.within(Figure::MetaAheadHits, unknown / 2, unknown - 1, why);
    } else {
        ensure!(misses > 0 && (ahead > 0) == (readahead > 0), "the oracle itself: {misses}, {ahead}");
    }
    Ok(e)
}

/// Where the blocks of a directory are on its device, by FIEMAP, in blocks of 4 KiB.
fn blocks_of(dir: &File) -> Result<Vec<u64>> {
    const EXTENTS: usize = 64;
    let mut words = vec![0u64; 4 + 7 * EXTENTS];
    words[1] = u64::MAX; // length
    words[3] = EXTENTS as u64; // room for so many (the lower half)
    // SAFETY: a struct fiemap, 32 bytes, and as many extents of 56 bytes as it says.
    let ret = unsafe { libc::ioctl(dir.as_raw_fd(), 0xc020_660b, words.as_mut_ptr()) };
    ensure!(ret == 0, "FIEMAP: {}", std::io::Error::last_os_error());
    let mapped = (words[2] >> 32) as usize;
    ensure!(mapped < EXTENTS, "too many extents");
    let extents = words[4..4 + 7 * mapped].chunks(7);
    Ok(extents.flat_map(|e| e[1] / 4096..(e[1] + e[2]) / 4096).collect())
}

fn stat(c: &mut Ctx, options: &str) -> Result<Expect> {
    // As many files as one block of directory holds: a look-up reads that block and one of the inode table.
    const N: u32 = 200;
    let inner = Inner::new(c, &LINEAR)?;
    inner.mount(c, "")?;
    populate(&inner, N)?;
    let block = |ino: u64| (ino - 1) / 16;
    let files: Vec<(PathBuf, u64)> = (0..N)
        .step_by(7)
        .map(|i| {
            let path = inner.target.join(format!("d/f{i:04}"));
            fs::metadata(&path).map(|m| (path, block(m.ino())))
        })
        .collect::<std::io::Result<_>>()?;
    inner.mount_anew(c, options)?;
    let dir = File::open(inner.target.join("d"))?;
    ensure!(dir.metadata()?.size() == 4096, "the directory is not one block");
    // Reads the block of the directory, and nothing else.
    ensure!(fs::metadata(inner.target.join("d/nothing")).is_err(), "there is such a file");
    let mut used = BTreeSet::from([block(2), block(dir.metadata()?.ino())]);
    let (mut hits, mut ahead, mut misses) = (0, 0, 0);
    let mut cached = inner.cached()?;
    let before = cached;
    c.begin();
    for (path, block) in &files {
        fs::metadata(path)?;
        let now = inner.cached()?;
        hits += 1; // the directory's block
        let what = match () {
            () if now > cached => &mut misses,
            () if used.contains(block) => &mut hits,
            () => &mut ahead,
        };
        *what += 1;
        used.insert(*block);
        cached = now;
    }
    let mut e = expect(hits, ahead, misses);
    ensure!(misses > 0 && (ahead > 0) != options.ends_with("=0"), "the oracle itself: {misses}, {ahead}");
    e.note(format!("{} pages of the device came into the cache", cached - before));
    Ok(e)
}

/// With a journal, the only buffers that the writer itself dirties are those of the data.
fn buffers(c: &mut Ctx) -> Result<Expect> {
    let inner = Inner::new(c, &["-b", "1024"])?;
    inner.mount(c, "")?;
    let path = inner.target.join("f");
    let file = File::options().read(true).write(true).create_new(true).open(&path).context("create")?;
    let buf = buffer(100 * PAGE);
    file.write_all_at(&buf, 0)?;
    file.sync_all()?;
    c.begin();
    for i in 0..17 {
        file.write_all_at(&buf[..PAGE as usize], i * PAGE)?;
    }
    // One byte each, in 23 blocks of which four are to a page; then two blocks at once.
    for i in 0..23 {
        file.write_all_at(&[7], 40 * PAGE + i * KIB + 5)?;
    }
    file.write_all_at(&[7, 7], 60 * PAGE + KIB - 1)?;
    let mut e = Expect::nothing();
    e.exact(Figure::BufferDirtied, 17 * 4 + 23 + 2);
    e.within(Figure::Dirtied, 17 + 6 + 1, 100, "whole folios");
    e.exact(Figure::WriteAccesses, 17 + 23 + 1).exact(Figure::WriteHits, 17 + 23 + 1);
    Ok(e)
}
