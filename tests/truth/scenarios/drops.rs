//! Pages that leave the cache: truncation, deletion, advice, reclaim.

use std::fs;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use anyhow::ensure;
use cachetop::figures::Figure;

use super::*;
use crate::child::NotHere;
use crate::oracle::Oracle;
use crate::sys;

pub const LIST: &[Scenario] = &[
    scenario("truncate", ALL, "truncation at a page's edge while cached", truncate),
    scenario("truncate-all", ALL, "truncation to nothing while cached", truncate_all),
    scenario("unlink-read", ALL, "deleted while open, then read", unlink_read),
    scenario("unlink", ALL, "deleted and closed while cached", unlink),
    scenario("wasted", BLOCK, "100 KiB read, the rest of the read-ahead dropped unused", wasted),
    scenario(
        "written-ahead",
        BLOCK,
        "small writes into what was read ahead, some of it read, the rest dropped",
        written,
    ),
    scenario("wasted-willneed", BLOCK, "512 KiB prefetched, a fifth of it used, dropped", wasted_willneed),
    scenario("drop-reread", BLOCK, "read, dropped, read again", drop_reread),
    scenario("memcg", BLOCK, "19 MiB read twice in a cgroup of 8 MiB", memcg),
];

fn truncate(c: &mut Ctx) -> Result<Expect> {
    let (_, mut o) = warm(c, 413 * PAGE + 100)?;
    let file = File::options().write(true).open(c.dir.join("f"))?;
    c.begin();
    o.aside(|| file.set_len(100 * PAGE))?;
    ensure!(o.tally.gone == 314, "the oracle itself: {:?}", o.tally);
    Ok(o.expect())
}

fn truncate_all(c: &mut Ctx) -> Result<Expect> {
    let (_, mut o) = warm(c, 413 * PAGE + 100)?;
    let file = File::options().write(true).open(c.dir.join("f"))?;
    c.begin();
    o.aside(|| file.set_len(0))?;
    Ok(o.expect())
}

fn unlink_read(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = warm(c, 101 * PAGE + 1)?;
    let mut buf = buffer(28 * KIB);
    c.begin();
    o.aside(|| fs::remove_file(c.dir.join("f")))?;
    let mut pos = 0;
    loop {
        match o.read(pos, || file.read_at(&mut buf, pos))? {
            0 => break,
            n => pos += n as u64,
        }
    }
    ensure!(o.tally.hits == 102, "the oracle itself: {:?}", o.tally);
    let mut e = o.expect();
    drop((o, file)); // the last reference: the pages go with it
    e.exact(Figure::Removed, 102);
    Ok(e)
}

fn unlink(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = warm(c, 101 * PAGE + 1)?;
    let cached = o.cached();
    c.begin();
    fs::remove_file(c.dir.join("f"))?;
    drop((o, file));
    let mut e = Expect::nothing();
    e.exact(Figure::Removed, cached);
    Ok(e)
}

/// Drops everything, as often as it takes.
pub fn drop_all(o: &mut Oracle, file: &File) -> Result<()> {
    for _ in 0..100 {
        o.aside(|| sys::advise(file, 0, 0, libc::POSIX_FADV_DONTNEED))?;
        if o.cached() == 0 {
            return Ok(());
        }
        sleep(Duration::from_millis(10));
    }
    anyhow::bail!("{} pages stay in the cache", o.cached())
}

fn wasted(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    let mut buf = buffer(4 * KIB);
    c.begin();
    for i in 0..25 {
        o.read(i * PAGE, || file.read_at(&mut buf, i * PAGE))?;
    }
    drop_all(&mut o, &file)?;
    ensure!(o.tally.gone == o.tally.miss_fills + o.tally.ahead, "the oracle itself: {:?}", o.tally);
    Ok(o.expect())
}

/// A folio of several pages becomes dirty as a whole; what is used of it is what was written, also where it is dirty already.
fn written(c: &mut Ctx) -> Result<Expect> {
    let (_, mut o) = cold(c, 1600 * PAGE)?;
    let file = File::options().read(true).write(true).open(c.dir.join("f"))?;
    let mut buf = buffer(16 * KIB);
    c.begin();
    // In order, so that the kernel reads ahead in large folios where it has these.
    for pos in (0..800 * PAGE).step_by(16 << 10) {
        o.read(pos, || file.read_at(&mut buf, pos))?;
    }
    let ahead = o.cached();
    // One byte, a page, and five bytes on both sides of an end of a page.
    for page in (800..ahead.saturating_sub(6)).step_by(8) {
        o.write(page * PAGE + 5, || file.write_at(b"x", page * PAGE + 5))?;
        o.write((page + 2) * PAGE, || file.write_at(&[1; PAGE as usize], (page + 2) * PAGE))?;
        o.write((page + 5) * PAGE - 2, || file.write_at(b"xxxxx", (page + 5) * PAGE - 2))?;
    }
    let written = o.tally.write_hits;
    ensure!(written >= 12 && o.tally.write_misses == 0, "the workload itself: {:?}", o.tally);
    // Some of what is left, by one call that has no part in read-ahead.
    let middle = (800 + ahead) / 2 - 800;
    let mut buf = buffer(middle * PAGE);
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    o.read(800 * PAGE, || file.read_at(&mut buf, 800 * PAGE))?;
    o.aside(|| file.sync_all())?;
    drop_all(&mut o, &file)?;
    let t = o.tally.clone();
    ensure!(t.wasted >= 8, "the workload itself: {t:?}");
    let mut e = o.expect();
    e.within(Figure::Dirtied, written, t.gone, "whole folios");
    e.if_bounded(Figure::Hits, t.hits, t.hits + t.ahead_hits, "folio");
    e.if_bounded(Figure::ReadAheadHits, 0, t.ahead_hits, "folio");
    e.if_bounded(Figure::ReadAheadWasted, 0, t.wasted, "folio");
    if c.fs == Fs::Btrfs {
        e.may_not_see_writes_of_btrfs();
    }
    Ok(e)
}

fn wasted_willneed(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let mut buf = buffer(4 * KIB);
    c.begin();
    o.aside(|| sys::advise(&file, 0, 512 * KIB, libc::POSIX_FADV_WILLNEED))?;
    for i in 0..25 {
        o.read(i * 5 * PAGE, || file.read_at(&mut buf, i * 5 * PAGE))?;
    }
    drop_all(&mut o, &file)?;
    Ok(o.expect())
}

fn drop_reread(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, 301 * PAGE)?;
    let mut buf = buffer(44 * KIB);
    c.begin();
    for _ in 0..2 {
        for pos in (0..301 * PAGE).step_by(44 * KIB as usize) {
            o.read(pos, || file.read_at(&mut buf, pos))?;
        }
        drop_all(&mut o, &file)?;
    }
    Ok(o.expect())
}

/// A memory cgroup of our own, the process inside.
struct Cgroup {
    dir: PathBuf,
    unified: bool,
}

impl Cgroup {
    fn enter(c: &mut Ctx, limit: u64) -> Result<Self> {
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let mut v2 = PathBuf::from("/sys/fs/cgroup");
        let unified = !v1.join("memory.limit_in_bytes").exists() && !v1.join("cgroup.procs").exists();
        if unified && !v2.join("cgroup.controllers").exists() {
            v2 = c.dir.join("mnt");
            fs::create_dir(&v2)?;
            refused("mount cgroup2", sys::mount(Path::new("none"), &v2, "cgroup2", ""))?;
            let at = v2.clone();
            c.guards.push(Box::new(move || sys::unmount(&at)));
        }
        let top = if unified { v2 } else { v1.to_path_buf() };
        if unified {
            refused("cgroup.subtree_control", fs::write(top.join("cgroup.subtree_control"), "+memory"))?;
        }
        let dir = top.join(format!("truth-{}", std::process::id()));
        fs::create_dir(&dir)?;
        let undo = (top.join("cgroup.procs"), dir.clone());
        c.guards.push(Box::new(move || {
            let _ = fs::write(&undo.0, std::process::id().to_string());
            let _ = fs::remove_dir(&undo.1);
        }));
        let file = dir.join(if unified { "memory.max" } else { "memory.limit_in_bytes" });
        if !file.exists() {
            return Err(NotHere(format!("no {}", file.display())).into());
        }
        fs::write(file, limit.to_string())?;
        fs::write(dir.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(Self { dir, unified })
    }

    /// A line of memory.stat, where the kernel has it.
    fn stat(&self, key: &str) -> Option<u64> {
        let text = fs::read_to_string(self.dir.join("memory.stat")).ok().filter(|_| self.unified)?;
        text.lines().filter_map(|l| l.split_once(' ')).find(|(k, _)| *k == key)?.1.parse().ok()
    }
}

/// Refaults of files on the whole system, what the CPUs have not handed in yet included.
fn refaults() -> u64 {
    let _ = fs::read("/proc/sys/vm/stat_refresh");
    sys::vmstat("workingset_refault_file")
}

fn memcg(c: &mut Ctx) -> Result<Expect> {
    let len = (19 << 20) + 777;
    let (file, mut o) = cold(c, len)?;
    let mut buf = buffer(128 * KIB);
    let group = Cgroup::enter(c, 8 << 20)?;
    let before = (group.stat("pgsteal"), refaults());
    c.begin();
    for _ in 0..2 {
        for pos in (0..len).step_by(128 * KIB as usize) {
            o.read(pos, || file.read_at(&mut buf, pos))?;
        }
    }
    let device = c.device_read() / PAGE;
    let left = o.cached();
    let t = o.tally.clone();
    let mut e = o.expect();
    // All that was read from the device and is not there any more was reclaimed. The device's count holds
    // metadata as well, and pages that came and went within one call are seen by nobody else.
    let (seen, slack) = (t.miss_fills + t.ahead, device / 100 + 8);
    let why = "within 1 %: the device reads metadata, too";
    let near = |n: u64, slack: u64| (n.saturating_sub(slack), n + slack);
    let (lo, hi) = near(device, slack);
    e.within(Figure::Fills, lo, hi, why);
    let (lo, hi) = near(device - left, slack);
    e.within(Figure::Evicted, lo, hi, why).exact(Figure::Removed, 0);
    // A page that goes and comes back within one call looks as if it had stayed, used or not as before.
    let churn = slack + device.saturating_sub(seen);
    e.churn = churn;
    let why = "pages that come and go within one call are seen by the device only";
    for (figure, n) in [
        (Figure::Misses, t.misses),
        (Figure::ReadMissedCalls, t.missed_calls),
        (Figure::ReadAheadHits, t.ahead_hits),
        (Figure::Hits, t.hits),
        (Figure::ReadAheadPages, t.ahead),
        (Figure::ReadAheadWasted, t.wasted),
    ] {
        let (lo, hi) = near(n, churn);
        e.within(figure, lo, hi, why);
    }
    if let (Some(was), Some(is)) = (before.0, group.stat("pgsteal")) {
        let (lo, hi) = near(is - was, slack);
        e.within(Figure::Evicted, lo, hi, "about memory.stat pgsteal, which counts metadata, too");
    }
    let refaults = refaults() - before.1;
    e.exact(Figure::Refaulted, refaults);
    let late = 125 * std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    e.if_bounded(
        Figure::Refaulted,
        refaults.saturating_sub(late),
        refaults + late,
        "hands in up to 125 pages",
    );
    e.note(format!("device {device} pages, seen {seen}, left {left}, refaults {refaults}"));
    Ok(e)
}
