//! Folios of files in the cache, as /proc/kpageflags has them.

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::Context;
use anyhow::Result;
use anyhow::ensure;

use crate::scenarios::PAGE;
use crate::sys;

/// The folio that holds a cached page: (first page, pages), from /proc/kpageflags.
pub fn folio(file: &File, page: u64) -> Result<(u64, u64)> {
    const HEAD: u64 = 1 << 15;
    const TAIL: u64 = 1 << 16;
    let map = sys::Map::new(file, page as usize + 1)?;
    map.touch(page as usize);
    let mut word = [0; 8];
    let pagemap = File::open("/proc/self/pagemap").context("/proc/self/pagemap")?;
    pagemap.read_exact_at(&mut word, map.address(page as usize) as u64 / PAGE * 8)?;
    let pfn = u64::from_ne_bytes(word) & ((1 << 55) - 1);
    ensure!(pfn != 0, "no page frame number");
    let frames = File::open("/proc/kpageflags").context("/proc/kpageflags")?;
    let flags = |pfn: u64| -> Result<u64> {
        let mut word = [0; 8];
        frames.read_exact_at(&mut word, pfn * 8)?;
        Ok(u64::from_ne_bytes(word))
    };
    let mut first = pfn;
    if flags(pfn)? & (HEAD | TAIL) == 0 {
        return Ok((page, 1));
    }
    while flags(first)? & HEAD == 0 {
        first -= 1;
    }
    let mut n = 1;
    while flags(first + n)? & TAIL != 0 {
        n += 1;
    }
    Ok((page - (pfn - first), n))
}

/// Pages of all the folios that hold these pages.
pub fn folios(file: &File, pages: &[usize]) -> Result<u64> {
    let mut all: Vec<(u64, u64)> = pages.iter().map(|p| folio(file, *p as u64)).collect::<Result<_>>()?;
    all.sort_unstable();
    all.dedup();
    Ok(all.iter().map(|(_, n)| n).sum())
}
