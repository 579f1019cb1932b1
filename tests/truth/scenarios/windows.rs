//! Read-ahead windows: how many, and how many of them met a page that was there already.

use std::os::unix::fs::FileExt;

use anyhow::Result;
use anyhow::ensure;
use cachetop::figures::Figure;

use super::*;
use crate::sys;

pub const LIST: &[Scenario] = &[
    scenario("windows", BLOCK, "reads of 64 KiB with FADV_RANDOM: a window each", |c| windows(c, None)),
    scenario("windows-cut", BLOCK, "the same where every 14th page is there", |c| windows(c, Some(14))),
    scenario("window-willneed", BLOCK, "FADV_WILLNEED of 128 KiB: one window", willneed),
    scenario("windows-sequential", BLOCK, "64 KiB reads to the end: none of the windows is cut", sequential),
];

const CHUNK: u64 = 16;

/// With FADV_RANDOM, a read that misses asks once for all that it wants from its first absent page on.
fn windows(c: &mut Ctx, resident: Option<u64>) -> Result<Expect> {
    const CHUNKS: u64 = 17;
    let (file, _) = cold(c, CHUNK * CHUNKS * PAGE)?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let mut buf = buffer(CHUNK * PAGE);
    if let Some(step) = resident {
        for page in (0..CHUNK * CHUNKS).step_by(step as usize) {
            file.read_at(&mut buf[..1], page * PAGE)?;
        }
    }
    let mut o = c.oracle(&file)?;
    let before = o.resident();
    c.begin();
    let (mut windows, mut cut) = (0, 0);
    for chunk in 0..CHUNKS {
        let pages = &before[(chunk * CHUNK) as usize..((chunk + 1) * CHUNK) as usize];
        if let Some(first) = pages.iter().position(|r| !*r) {
            windows += 1;
            cut += u64::from(pages[first..].iter().any(|r| *r));
        }
        let pos = chunk * CHUNK * PAGE;
        o.read(pos, || file.read_at(&mut buf, pos))?;
    }
    ensure!(windows == CHUNKS && (cut > 0) == resident.is_some(), "the oracle itself: {windows}, {cut} cut");
    let mut e = o.expect();
    e.exact(Figure::Windows, windows).exact(Figure::WindowsCut, cut);
    Ok(e)
}

fn willneed(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    c.begin();
    o.aside(|| sys::advise(&file, 20 * PAGE, 128 * KIB, libc::POSIX_FADV_WILLNEED))?;
    ensure!(o.tally.ahead == 32, "the oracle itself: {:?}", o.tally);
    let mut e = o.expect();
    e.exact(Figure::Windows, 1).exact(Figure::WindowsCut, 0);
    Ok(e)
}

fn sequential(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    let mut buf = buffer(64 * KIB);
    c.begin();
    let mut grew = 0;
    for pos in (0..ODD).step_by(64 * KIB as usize) {
        let was = o.tally.miss_fills + o.tally.ahead;
        o.read(pos, || file.read_at(&mut buf, pos))?;
        grew += u64::from(o.tally.miss_fills + o.tally.ahead > was);
    }
    let mut e = o.expect();
    // A call that added pages issued a window; two at most, one for what it missed and one ahead.
    e.within(Figure::Windows, grew, 2 * grew, "one or two in each call that added pages");
    e.exact(Figure::WindowsCut, 0);
    Ok(e)
}
