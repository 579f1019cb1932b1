//! Metadata of btrfs: blocks of its trees, against what the kernel says that the thread read from the device.

use std::fs;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Result;
use anyhow::ensure;
use cachetop::figures::Figure;

use super::meta::Inner;
use super::*;

const ON: &[Fs] = &[Fs::Btrfs];

pub const LIST: &[Scenario] = &[
    scenario("trees-cold", ON, "stat after a mount: what was read was missed", cold),
    scenario("trees-warm", ON, "stat after only inodes were dropped: nothing is missed", warm),
    scenario("trees-list", ON, "a directory listed: blocks read ahead are first uses", list),
];

const FILES: u32 = 3000;
/// Pages of a block.
const NODE: u64 = 4;

/// A file system of its own in a file: mounted anew, it has nothing in the cache but what mounting read.
fn populate(c: &mut Ctx) -> Result<(Inner, PathBuf)> {
    let inner = Inner::formatted(c, "btrfs", 256 << 20, &["-q"])?;
    inner.mount(c, "")?;
    let dir = inner.target.join("d");
    fs::create_dir(&dir)?;
    for i in 0..FILES {
        File::create(dir.join(format!("a-name-of-some-length-{i:05}")))?;
    }
    inner.mount_anew(c, "")?;
    Ok((inner, dir))
}

/// Without BTF of modules (5.10) the plan says that nothing is seen.
fn out_of_sight(mut e: Expect) -> Expect {
    for figure in [Figure::MetaAccesses, Figure::MetaHits, Figure::MetaAheadHits, Figure::MetaMisses] {
        if e.want(figure).is_some() {
            e.if_bounded(figure, 0, 0, "trees of btrfs are not seen");
        }
    }
    e
}

fn stat(dir: &Path) -> Result<()> {
    for i in (0..FILES).step_by(7) {
        fs::metadata(dir.join(format!("a-name-of-some-length-{i:05}")))?;
    }
    Ok(())
}

fn cold(c: &mut Ctx) -> Result<Expect> {
    let (_inner, dir) = populate(c)?;
    c.begin();
    stat(&dir)?;
    let read = c.device_read() / PAGE;
    ensure!(read >= 10 * NODE, "the oracle itself: only {read} pages were read");
    let mut e = Expect::nothing();
    e.exact(Figure::MetaMisses, read).exact(Figure::MetaAheadHits, 0);
    // One for the name and one for the inode, below the roots, most of them.
    e.within(Figure::MetaHits, u64::from(FILES / 7) * NODE, u64::from(FILES) * 8 * NODE, "tree depth");
    Ok(out_of_sight(e))
}

fn warm(c: &mut Ctx) -> Result<Expect> {
    let (_inner, dir) = populate(c)?;
    stat(&dir)?;
    refused("drop_caches", fs::write("/proc/sys/vm/drop_caches", "2"))?;
    c.begin();
    stat(&dir)?;
    ensure!(c.device_read() == 0, "the oracle itself: {} bytes were read", c.device_read());
    let mut e = Expect::nothing();
    e.exact(Figure::MetaMisses, 0).exact(Figure::MetaAheadHits, 0);
    e.within(Figure::MetaHits, u64::from(FILES / 7) * NODE, u64::from(FILES) * 8 * NODE, "tree depth");
    Ok(out_of_sight(e))
}

/// A listing reads ahead in the tree; what it does not come to stays unused.
fn list(c: &mut Ctx) -> Result<Expect> {
    let (_inner, dir) = populate(c)?;
    c.begin();
    ensure!(fs::read_dir(&dir)?.count() == FILES as usize, "not all files are there");
    let read = c.device_read() / PAGE;
    ensure!(read >= 10 * NODE, "the oracle itself: only {read} pages were read");
    let mut e = Expect::nothing();
    let why = "who reads ahead is not told from outside";
    e.within(Figure::MetaMisses, NODE, read, why);
    e.within(Figure::MetaAheadHits, 0, read - NODE, why);
    e.within(Figure::MetaAccesses, read / 2, u64::from(FILES) * 8 * NODE, why);
    Ok(out_of_sight(e))
}
