//! Past the cache and through two of them: O_DIRECT, overlay, loop.

use std::fs;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;

use anyhow::Result;
use cachetop::figures::Figure;

use super::*;
use crate::child::NotHere;
use crate::sys;

pub const LIST: &[Scenario] = &[
    scenario("direct-cold", ALL, "O_DIRECT reads of an uncached file", |c| direct_read(c, false)),
    scenario("direct-cached", ALL, "O_DIRECT reads of a cached file", |c| direct_read(c, true)),
    scenario("direct-write", BLOCK, "O_DIRECT write over 16 cached pages", direct_write),
    scenario("overlay", ALL, "reads through an overlay count once", overlay),
    scenario("loop", &[Fs::Ext4, Fs::Xfs], "reads from a file system in a file", loop_device),
];

fn direct(c: &Ctx) -> Result<File> {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_DIRECT);
    refused("open with O_DIRECT", options.open(c.dir.join("f")))
}

/// A slice that starts on a page.
fn aligned(buf: &mut [u8], len: usize) -> &mut [u8] {
    let skip = buf.as_ptr().align_offset(PAGE as usize);
    &mut buf[skip..skip + len]
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
    e.note(format!("the file system fell back to the cache: {device} bytes from the device"));
    if device > 0 && is_warm {
        e.within(Figure::Accesses, 0, PAGES, "partly direct").within(Figure::Hits, 0, PAGES, "partly direct");
        e.within(Figure::ReadBytes, 0, PAGES * PAGE, "partly direct");
        e.within(Figure::DirectReadBytes, 0, PAGES * PAGE, "partly direct");
    }
    Ok(e)
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
    if c.fs == Fs::Btrfs {
        let why = "btrfs may fall back to a buffered write, written out and dropped at once";
        e.within(Figure::DirectWriteBytes, 0, 16 * PAGE, why).within(Figure::Removed, n, 2 * n, why);
        e.within(Figure::Dirtied, 0, 16, why).within(Figure::WriteAccesses, 0, 16, why);
        e.within(Figure::WriteHits, 0, 16, why).within(Figure::WriteMisses, 0, 16, why);
    }
    e.note(format!("{n} cached pages were dropped"));
    Ok(e)
}

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

fn overlay(c: &mut Ctx) -> Result<Expect> {
    for name in ["a", "b", "mnt"] {
        fs::create_dir(c.dir.join(name))?;
    }
    let below = c.file("a/f", 307 * PAGE + 5)?;
    let target = c.dir.join("mnt");
    let layers = format!("lowerdir={}:{}", c.dir.join("a").display(), c.dir.join("b").display());
    refused("mount overlay", sys::mount("overlay".as_ref(), &target, "overlay", &layers))?;
    let at = target.clone();
    c.guards.push(Box::new(move || sys::unmount(&at)));
    let above = File::open(target.join("f"))?;
    // Files that are open keep the mount busy: it goes after they are closed.
    read_above(c, &above, &below, c.fs)
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
