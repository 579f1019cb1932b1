//! Huge pages that the kernel makes of a file that is mapped (7.2): what is missing of it is read in, for nobody.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use anyhow::Result;
use anyhow::ensure;
use cachetop::figures::Figure;

use super::drops::drop_all;
use super::*;
use crate::child::NotHere;
use crate::sys;

pub const LIST: &[Scenario] = &[
    scenario(
        "collapse",
        BLOCK,
        "MADV_COLLAPSE of a mapping of which a page in 64 is cached, then all read",
        |c| collapsed(c, false),
    ),
    scenario("khugepaged", BLOCK, "khugepaged finds such a mapping, then all is read", |c| {
        collapsed(c, true)
    }),
];

/// Pages of the file: two huge ones.
const PAGES: u64 = 1024;
const COLLAPSE: i32 = 25;
const HUGE: &str = "/sys/kernel/mm/transparent_hugepage";

/// khugepaged looks more often than every ten seconds, as long as this lives.
struct Often(PathBuf, String);

impl Often {
    fn new() -> Result<Self> {
        let path = PathBuf::from(HUGE).join("khugepaged/scan_sleep_millisecs");
        let before = fs::read_to_string(&path)?;
        fs::write(&path, "100")?;
        Ok(Self(path, before))
    }
}

impl Drop for Often {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, &self.1);
    }
}

/// As often as it takes: pages that somebody else holds for a moment cannot be moved.
fn collapse(map: &sys::Map) -> io::Result<()> {
    let mut done = Ok(());
    for _ in 0..100 {
        done = map.advise(COLLAPSE);
        if !matches!(&done, Err(e) if e.kind() == io::ErrorKind::WouldBlock) {
            break;
        }
        sleep(Duration::from_millis(20));
    }
    done
}

/// Pages that come so are neither missed nor read ahead by the process: it finds them.
fn collapsed(c: &mut Ctx, by_khugepaged: bool) -> Result<Expect> {
    // Nothing to read: a kernel without huge pages.
    let enabled = fs::read_to_string(format!("{HUGE}/enabled")).unwrap_or_default();
    if by_khugepaged && !enabled.contains("[always]") {
        return Err(NotHere("huge pages are not made of everything".into()).into());
    }
    let other = c.file("g", PAGES * PAGE)?;
    refused("MADV_COLLAPSE of a file", collapse(&sys::Map::huge(&other, PAGES as usize)?))?;
    let (file, mut o) = cold(c, PAGES * PAGE)?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let mut buf = buffer(60 * KIB);
    c.begin();
    for page in (0..PAGES).step_by(64) {
        o.read(page * PAGE, || file.read_at(&mut buf[..4096], page * PAGE))?;
    }
    let map = sys::Map::huge(&c.open("f")?, PAGES as usize)?;
    if by_khugepaged {
        let _often = Often::new()?;
        let begun = Instant::now();
        while map.resident().contains(&false) {
            ensure!(begun.elapsed() < Duration::from_secs(60), "khugepaged has not come by");
            sleep(Duration::from_millis(100));
        }
        o.aside(|| ());
    } else {
        o.aside(|| collapse(&map))?;
    }
    let came = PAGES - PAGES / 64;
    ensure!(o.tally.ahead == came, "the oracle itself: {:?}", o.tally);
    for pos in (0..PAGES * PAGE).step_by(60 * KIB as usize) {
        o.read(pos, || file.read_at(&mut buf, pos))?;
    }
    let mut e = o.expect();
    e.exact(Figure::Hits, o.tally.hits + came)
        .exact(Figure::ReadAheadHits, 0)
        .exact(Figure::ReadAheadPages, 0);
    // Reading has not brought them in; khugepaged is another process.
    e.exact(Figure::Fills, PAGES - came);
    drop(map);
    drop_all(&mut o, &file)?;
    e.exact(Figure::Removed, PAGES).exact(Figure::ReadAheadWasted, 0);
    Ok(e)
}
