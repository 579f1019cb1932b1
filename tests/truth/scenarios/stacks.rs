//! Through two caches: overlay, loop. And what other file systems do with blocks: compressed ones, and such as are larger than a page.

use std::fs;
use std::fs::File;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::os::unix::fs::FileExt;

use anyhow::Result;
use cachetop::figures::Figure;

use super::meta::Inner;
use super::*;
use crate::child::NotHere;
use crate::sys;

pub const LIST: &[Scenario] = &[
    scenario("overlay", ALL, "reads through an overlay count once", overlay),
    scenario("overlay-sent", BLOCK, "sendfile through an overlay", overlay_sent),
    scenario(
        "overlay-copied",
        &[Fs::Ext4],
        "an overlay copies a file that is opened to be written",
        overlay_copied,
    ),
    scenario("loop", &[Fs::Ext4, Fs::Xfs], "reads from a file system in a file", loop_device),
    scenario("compressed", &[Fs::Ext4], "a file of btrfs whose blocks are compressed", compressed),
    scenario("large-blocks", &[Fs::Ext4], "a file of xfs with blocks of four pages", large_blocks),
    scenario("large-blocks-uring", &[Fs::Ext4], "the same, page by page by io_uring", large_blocks_uring),
    scenario(
        "large-blocks-sent",
        &[Fs::Ext4],
        "the same, from the middle of a block by sendfile",
        large_blocks_sent,
    ),
    scenario("verity", &[Fs::Ext4], "a file whose pages are checked against hashes behind its end", verity),
];

/// Reads a file to the end in odd pieces, the oracle on `below`, which holds the pages.
fn read_above(c: &mut Ctx, above: &File, below: &File, fs: Fs) -> Result<Expect> {
    let mut o = crate::oracle::Oracle::new(below, fs)?;
    let mut buf = buffer(44 * KIB);
    c.begin();
    for _ in 0..2 {
        let mut pos = 0;
        loop {
            match o.read(pos, || above.read_at(&mut buf, pos))? {
                0 => break,
                n => pos += n as u64,
            }
        }
    }
    Ok(o.expect())
}

/// A file on overlayfs: in the layer below, where nothing of it is cached, and above.
pub(super) fn overlaid(c: &mut Ctx, len: u64) -> Result<(File, File)> {
    for name in ["a", "b", "mnt"] {
        fs::create_dir(c.dir.join(name))?;
    }
    let below = c.file("a/f", len)?;
    let target = c.dir.join("mnt");
    let layers = format!("lowerdir={}:{}", c.dir.join("a").display(), c.dir.join("b").display());
    refused("mount overlay", sys::mount("overlay".as_ref(), &target, "overlay", &layers))?;
    let at = target.clone();
    c.guards.push(Box::new(move || sys::unmount(&at)));
    let above = File::open(target.join("f"))?;
    Ok((below, above))
}

fn overlay(c: &mut Ctx) -> Result<Expect> {
    let (below, above) = overlaid(c, 307 * PAGE + 5)?;
    // Files that are open keep the mount busy: it goes after they are closed.
    read_above(c, &above, &below, c.fs)
}

fn overlay_sent(c: &mut Ctx) -> Result<Expect> {
    let (below, above) = overlaid(c, 307 * PAGE + 5)?;
    let mut o = crate::oracle::Oracle::new(&below, c.fs)?;
    let null = File::options().write(true).open("/dev/null")?;
    c.begin();
    for _ in 0..2 {
        let mut pos = 0;
        while pos < 307 * PAGE + 5 {
            let n = o.read(pos, || sys::sendfile(&null, &above, pos, 64 * KIB as usize));
            pos += refused("sendfile", n)? as u64;
        }
    }
    Ok(o.expect())
}

/// On file systems that cannot share what they copy.
fn overlay_copied(c: &mut Ctx) -> Result<Expect> {
    const PAGES: u64 = 308;
    const LEN: u64 = (PAGES - 1) * PAGE + 5;
    for name in ["a", "upper", "work", "mnt"] {
        fs::create_dir(c.dir.join(name))?;
    }
    drop(c.file("a/f", LEN)?);
    let target = c.dir.join("mnt");
    let layers = format!(
        "lowerdir={},upperdir={},workdir={}",
        c.dir.join("a").display(),
        c.dir.join("upper").display(),
        c.dir.join("work").display()
    );
    refused("mount overlay", sys::mount("overlay".as_ref(), &target, "overlay", &layers))?;
    let at = target.clone();
    c.guards.push(Box::new(move || sys::unmount(&at)));
    c.begin();
    drop(File::options().write(true).open(target.join("f"))?);
    let mut e = Expect::nothing();
    let why = "which of them were read ahead is the kernel's choice";
    e.exact(Figure::Accesses, PAGES).exact(Figure::ReadBytes, LEN).exact(Figure::Fills, PAGES);
    e.within(Figure::Misses, 1, PAGES, why).within(Figure::ReadAheadHits, 0, PAGES - 1, why);
    e.within(Figure::ReadAheadPages, 0, PAGES - 1, why);
    e.write_misses(PAGES).within(Figure::Dirtied, PAGES, PAGES + 8, "what names the copy gets dirty, too");
    Ok(e)
}

fn loop_device(c: &mut Ctx) -> Result<Expect> {
    let path = c.dir.join("img");
    let image = File::options().read(true).write(true).create_new(true).open(&path)?;
    image.set_len(24 << 20)?;
    let made = crate::fs::mkfs("ext4", &path)
        .or_else(|e| crate::fs::mkfs("ext2", &path).map_err(|f| NotHere(format!("{e:#}; {f:#}"))));
    made?;
    let (device, _open) = refused("loop device", sys::loop_attach(&image))?;
    let target = c.dir.join("mnt");
    fs::create_dir(&target)?;
    refused("mount ext4", sys::mount(&device, &target, "ext4", ""))?;
    let at = target.clone();
    c.guards.push(Box::new(move || sys::unmount(&at)));
    let below = c.file("mnt/f", 307 * PAGE + 5)?;
    let above = File::open(target.join("f"))?;
    read_above(c, &above, &below, Fs::Ext4)
}

/// Reads of many kinds, here and there, then all of it, the oracle on each.
fn read_variously(c: &mut Ctx, inner: &Inner) -> Result<Expect> {
    const LEN: u64 = 611 * PAGE + 777;
    let below = c.file("mnt/f", LEN)?;
    let mut file = File::open(inner.target.join("f"))?;
    let mut o = crate::oracle::Oracle::new(&below, Fs::Ext4)?.patient();
    let mut buf = buffer(100 * KIB);
    c.begin();
    // From the middle of a block to the middle of another.
    o.aside(|| sys::readahead(&file, 101 * PAGE, 30 * PAGE as usize))?;
    anyhow::ensure!(o.tally.ahead > 30, "no more came than was asked for: its blocks are what others are");
    for n in 0..60 {
        let len = [1, PAGE, 3 * PAGE, 50_000, 100 * KIB][n % 5];
        let pos = c.rng.below(LEN);
        let to = &mut buf[..len as usize];
        o.read(pos, || match n % 3 {
            0 => file.read_at(to, pos),
            1 => sys::preadv2(&file, &mut [to], pos, 0),
            _ => file.seek(SeekFrom::Start(pos)).and_then(|_| file.read(to)),
        })?;
    }
    file.rewind()?;
    let mut pos = 0;
    loop {
        match o.read(pos, || file.read(&mut buf[..44 * KIB as usize]))? {
            0 => break,
            n => pos += n as u64,
        }
    }
    Ok(o.expect())
}

/// Where a block is asked for, all that was compressed with it comes.
fn compressed(c: &mut Ctx) -> Result<Expect> {
    let inner = Inner::formatted(c, "btrfs", 256 << 20, &["-q"])?;
    inner.mount(c, "compress-force=zlib")?;
    read_variously(c, &inner)
}

/// The smallest folio has four pages, and what the kernel tells of a request ends with one. From 6.12 on.
fn large(c: &mut Ctx) -> Result<Inner> {
    let inner = Inner::formatted(c, "xfs", 320 << 20, &["-q", "-b", "size=16k"])?;
    inner.mount(c, "")?;
    Ok(inner)
}

fn large_blocks(c: &mut Ctx) -> Result<Expect> {
    let inner = large(c)?;
    read_variously(c, &inner)
}

/// Several requests, one after the other, end in the same folio.
fn large_blocks_uring(c: &mut Ctx) -> Result<Expect> {
    large(c)?;
    let below = c.file("mnt/f", 61 * PAGE + 777)?;
    let file = c.open("mnt/f")?;
    let mut o = crate::oracle::Oracle::new(&below, Fs::Ext4)?;
    let mut ring = refused("io_uring_setup", crate::uring::Ring::new(4))?;
    let mut buf = buffer(PAGE);
    c.begin();
    for page in 0..62 {
        let n = o.read(page * PAGE, || {
            let got = ring.read(&file, &mut [(&mut buf, page * PAGE)], 0)?[0];
            usize::try_from(got).map_err(|_| std::io::Error::from_raw_os_error(-got))
        });
        refused("IORING_OP_READ", n)?;
    }
    let (calls, missed) = (o.tally.calls, o.tally.missed_calls);
    let mut e = o.expect();
    let why = "a request that meets a page that is not there is tried again";
    e.within(Figure::ReadCalls, calls, 2 * calls, why);
    e.within(Figure::ReadMissedCalls, u64::from(missed > 0), missed + calls, why);
    Ok(e)
}

/// The kernel reads the hashes into pages of the same mapping, within the call that wants the data.
fn verity(c: &mut Ctx) -> Result<Expect> {
    const LEN: u64 = 299 * PAGE + 777;
    let inner = Inner::formatted(c, "ext4", 64 << 20, &["-q", "-F", "-b", "4096", "-O", "verity"])?;
    inner.mount(c, "")?;
    drop(c.warm_file("mnt/f", LEN)?);
    refused("FS_IOC_ENABLE_VERITY", sys::enable_verity(&c.open("mnt/f")?))?;
    inner.mount_anew(c, "")?;
    let file = c.open("mnt/f")?;
    let mut o = crate::oracle::Oracle::new(&file, Fs::Ext4)?;
    if !o.sees_flight() {
        return Err(NotHere(
            "cannot tell pages that are not checked yet from pages that are not there".into(),
        )
        .into());
    }
    let mut buf = buffer(128 * KIB);
    c.begin();
    for n in 0..20 {
        let pos = c.rng.below(LEN);
        let to = &mut buf[..[1, 5 * PAGE as usize, 50_000][n % 3]];
        o.read(pos, || file.read_at(to, pos))?;
    }
    for _ in 0..2 {
        let mut pos = 0;
        while pos < LEN {
            pos += o.read(pos, || file.read_at(&mut buf, pos))? as u64;
        }
    }
    let (fills, ahead) = (o.tally.miss_fills + o.tally.ahead, o.tally.ahead);
    let mut e = o.expect();
    let why = "up to 6.19 a worker of the kernel checks what was read, and reads the four pages of hashes";
    e.within(Figure::Fills, fills - 4, fills, why);
    e.within(Figure::ReadAheadPages, ahead - 4, ahead, why);
    Ok(e)
}

/// The kernel sends pieces of sixteen pages, each of which begins and ends within a folio.
fn large_blocks_sent(c: &mut Ctx) -> Result<Expect> {
    large(c)?;
    let file = c.file("mnt/f", 400 * PAGE)?;
    warm_up(&file)?;
    let null = File::options().write(true).open("/dev/null")?;
    c.begin();
    let mut e = Expect::nothing();
    let mut pages = 0;
    let mut bytes = 0;
    for (from, to) in
        [(PAGE, 100), (33 * PAGE, 200), (202 * PAGE, 400), (2 * PAGE, 56), (100, 100), (5 * PAGE + 7, 200)]
    {
        let sent = sys::sendfile(&null, &file, from, (to * PAGE - from) as usize)?;
        anyhow::ensure!(sent as u64 == to * PAGE - from, "sent {sent}");
        pages += to - from / PAGE;
        bytes += sent as u64;
    }
    e.exact(Figure::Accesses, pages).exact(Figure::Hits, pages);
    e.exact(Figure::ReadBytes, bytes);
    Ok(e)
}
