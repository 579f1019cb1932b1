//! The workloads. Each prepares, waits at the barrier, works, and returns the truth.

mod calls;
mod direct;
mod drops;
mod faults;
mod huge;
mod latency;
mod many;
mod meta;
mod mixed;
mod pivots;
mod reads;
mod remote;
mod stacks;
mod trees;
mod windows;
mod writes;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use anyhow::Result;

use crate::child::Ctx;
use crate::child::NotHere;
use crate::expect::Expect;
use crate::fs::Fs;
use crate::oracle::Oracle;

/// One workload.
#[derive(Clone, Copy)]
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    /// Where it means something.
    pub on: &'static [Fs],
    pub run: fn(&mut Ctx) -> Result<Expect>,
}

/// On every file system.
const ALL: &[Fs] = &Fs::ALL;
/// Where pages come from a device.
const BLOCK: &[Fs] = &Fs::BLOCK;

const fn scenario(
    name: &'static str,
    on: &'static [Fs],
    about: &'static str,
    run: fn(&mut Ctx) -> Result<Expect>,
) -> Scenario {
    Scenario { name, about, on, run }
}

/// Every workload, in order.
pub fn all() -> impl Iterator<Item = Scenario> {
    [
        reads::LIST,
        calls::LIST,
        mixed::LIST,
        many::LIST,
        drops::LIST,
        writes::LIST,
        direct::LIST,
        stacks::LIST,
        pivots::LIST,
        meta::LIST,
        trees::LIST,
        remote::LIST,
        faults::LIST,
        huge::LIST,
        windows::LIST,
        latency::LIST,
    ]
    .into_iter()
    .flatten()
    .copied()
}

const KIB: u64 = 1024;
/// Bytes of a page; the child refuses to run where it is another size.
pub const PAGE: u64 = 4096;
/// An odd file: 1238 pages, the last one short.
const ODD: u64 = 1237 * PAGE + 777;
/// Its pages.
const ODD_PAGES: u64 = 1238;

/// A buffer whose pages are there.
fn buffer(len: u64) -> Vec<u8> {
    vec![0xa5; len as usize]
}

/// Reads everything once, so that the cache holds it all, used.
fn warm_up(file: &File) -> Result<()> {
    let mut buf = buffer(64 * KIB);
    let mut pos = 0;
    loop {
        match file.read_at(&mut buf, pos)? {
            0 => return Ok(()),
            n => pos += n as u64,
        }
    }
}

/// A file whose every page was read in from the device and used, opened anew.
fn warm(c: &mut Ctx, len: u64) -> Result<(File, Oracle)> {
    let file = c.file("f", len)?;
    warm_up(&file)?;
    let oracle = c.oracle(&file)?;
    Ok((c.open("f")?, oracle))
}

/// A file of which nothing is cached.
fn cold(c: &mut Ctx, len: u64) -> Result<(File, Oracle)> {
    let file = c.file("f", len)?;
    let oracle = c.oracle(&file)?;
    Ok((c.open("f")?, oracle))
}

/// A slice that starts on a page.
fn aligned(buf: &mut [u8], len: usize) -> &mut [u8] {
    let skip = buf.as_ptr().align_offset(PAGE as usize);
    &mut buf[skip..skip + len]
}

/// What is dirtied where there is something to write back to: memory file systems account nothing.
fn dirtied(c: &Ctx, pages: u64) -> u64 {
    if c.fs.block() { pages } else { 0 }
}

/// Turns a refusal of the kernel into "not here", with its own words.
fn refused<T>(what: &str, result: io::Result<T>) -> Result<T> {
    match result {
        Err(e)
            if matches!(
                e.raw_os_error(),
                Some(
                    libc::EOPNOTSUPP
                        | libc::ENOSYS
                        | libc::EINVAL
                        | libc::ENODEV
                        | libc::EPERM
                        | libc::ENOENT
                )
            ) =>
        {
            Err(NotHere(format!("{what}: {e}")).into())
        }
        other => Ok(other?),
    }
}
