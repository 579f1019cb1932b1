//! A file system in user space: one file of constant content, served by a process of its own over /dev/fuse.

use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;

use anyhow::Result;

use crate::sys;

/// What the file is called.
pub const NAME: &str = "f";
const ROOT: u64 = 1;
const INODE: u64 = 2;
/// Longest request or answer, header included.
const ROOM: usize = (1 << 20) + 4096;

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const STATFS: u32 = 17;
const RELEASE: u32 = 18;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const DESTROY: u32 = 38;
const BATCH_FORGET: u32 = 42;

/// The content at a position.
pub fn byte(pos: u64) -> u8 {
    (pos.wrapping_mul(0x9e37_79b9) >> 13) as u8
}

/// Mounts at `target`; returns the server's pid. It ends when the mount does.
#[allow(dead_code)] // of the stories
pub fn serve(target: &Path, size: u64) -> Result<i32, io::Error> {
    serve_as(target, size, Manner::default())
}

/// The same, but each answer to a read takes so many milliseconds.
#[allow(dead_code)] // of the truth tests
pub fn serve_slowly(target: &Path, size: u64, ms: u64) -> Result<i32, io::Error> {
    serve_as(target, size, Manner { read_ms: ms, ..Manner::default() })
}

/// The same, but `open` takes so many milliseconds and fills the cache with the whole file.
#[allow(dead_code)] // of the truth tests
pub fn serve_filled(target: &Path, size: u64, ms: u64) -> Result<i32, io::Error> {
    serve_as(target, size, Manner { fill: Some(ms), ..Manner::default() })
}

/// The same, but each `open` empties the cache, as it does unless a server says otherwise. `statfs`: whether it answers
/// statfs(2).
#[allow(dead_code)] // of the tests of cachedu
pub fn serve_forgetful(target: &Path, size: u64, statfs: bool) -> Result<i32, io::Error> {
    serve_as(target, size, Manner { forgets: true, statfs, ..Manner::default() })
}

/// How it serves.
#[derive(Clone, Copy, Default)]
struct Manner {
    /// Fills the cache at `open`, which takes so many milliseconds.
    fill: Option<u64>,
    read_ms: u64,
    forgets: bool,
    statfs: bool,
}

/// Puts the whole file into the kernel's cache, as a file system does that fetches at `open`.
fn store(device: &mut File, size: u64) {
    const NOTIFY_STORE: i32 = 4;
    let mut pos = 0;
    while pos < size {
        let data: Vec<u8> = (pos..(pos + (64 << 10)).min(size)).map(byte).collect();
        let mut out = Vec::new();
        out.extend((16 + 24 + data.len() as u32).to_ne_bytes());
        out.extend(NOTIFY_STORE.to_ne_bytes());
        out.extend(0u64.to_ne_bytes());
        out.extend(INODE.to_ne_bytes());
        out.extend(pos.to_ne_bytes());
        out.extend((data.len() as u32).to_ne_bytes());
        out.extend([0; 4]);
        out.extend(&data);
        let _ = device.write_all(&out);
        pos += data.len() as u64;
    }
}

fn serve_as(target: &Path, size: u64, manner: Manner) -> Result<i32, io::Error> {
    let device = File::options().read(true).write(true).open("/dev/fuse")?;
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    sys::mount("truth".as_ref(), target, "fuse", &options)?;
    sys::fork(move || answer_all(device, size, manner))
}

fn answer_all(mut device: File, size: u64, manner: Manner) -> i32 {
    sys::set_comm("truth-fuse");
    let mut request = vec![0; ROOM];
    loop {
        let n = match device.read(&mut request) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => continue,
            Err(_) => return 0, // unmounted
        };
        let word = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_ne_bytes(request[at..at + 8].try_into().expect("eight bytes"));
        let (op, unique, node) = (word(4), long(8), long(16));
        if let (OPEN, Some(ms)) = (op, manner.fill) {
            std::thread::sleep(std::time::Duration::from_millis(ms));
            store(&mut device, size);
        }
        let body = match op {
            FORGET | BATCH_FORGET => continue,
            INIT => Ok(init(word(44), word(48))),
            LOOKUP if request[40..n] == *b"f\0" => Ok(entry(size)),
            GETATTR => Ok(attr_out(node, size)),
            OPEN => {
                let keep = if manner.forgets { 0 } else { 2 };
                Ok([0, 0, keep, 0].iter().flat_map(|w: &u32| w.to_ne_bytes()).collect())
            }
            STATFS if manner.statfs => Ok(vec![0; 80]),
            READDIR => Ok(if long(48) == 0 { listed() } else { Vec::new() }),
            OPENDIR => Ok(vec![0; 16]),
            RELEASE | RELEASEDIR | DESTROY => Ok(Vec::new()),
            READ => {
                std::thread::sleep(std::time::Duration::from_millis(manner.read_ms));
                let pos = long(48);
                Ok((pos..(pos + u64::from(word(56))).min(size)).map(byte).collect())
            }
            LOOKUP => Err(libc::ENOENT),
            _ => Err(libc::ENOSYS),
        };
        let (error, body) = body.map_or_else(|e| (-e, Vec::new()), |b| (0, b));
        let mut out = Vec::with_capacity(16 + body.len());
        out.extend((16 + body.len() as u32).to_ne_bytes());
        out.extend(error.to_ne_bytes());
        out.extend(unique.to_ne_bytes());
        out.extend(body);
        let _ = device.write_all(&out); // a request that was given up has no taker
    }
}

/// fuse_init_out: protocol 7.31 at most, read-ahead as the kernel wishes, reads may overlap.
fn init(minor: u32, max_readahead: u32) -> Vec<u8> {
    const ASYNC_READ: u32 = 1;
    const MAX_PAGES: u32 = 1 << 22;
    let mut out = Vec::new();
    for word in [7, minor.min(31), max_readahead, ASYNC_READ | MAX_PAGES] {
        out.extend(word.to_ne_bytes());
    }
    out.extend([0; 4]); // max_background, congestion_threshold
    out.extend((128u32 << 10).to_ne_bytes()); // max_write
    out.extend(1u32.to_ne_bytes()); // time_gran
    out.extend(32u16.to_ne_bytes()); // max_pages
    out.resize(64, 0);
    out
}

fn attr(node: u64, size: u64) -> Vec<u8> {
    let (mode, size) = if node == ROOT { (0o40755, 0) } else { (0o100_444, size) };
    let mut out = Vec::new();
    for long in [node, size, size.div_ceil(512), 0, 0, 0] {
        out.extend(long.to_ne_bytes());
    }
    for word in [0u32, 0, 0, mode, 1, 0, 0, 0, 4096, 0] {
        out.extend(word.to_ne_bytes());
    }
    out
}

/// fuse_attr_out, good for an hour.
fn attr_out(node: u64, size: u64) -> Vec<u8> {
    let mut out = Vec::from(3600u64.to_ne_bytes());
    out.extend([0; 8]);
    out.extend(attr(node, size));
    out
}

/// fuse_dirent of the file: number, where the next one begins, length of the name, type, name.
fn listed() -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(INODE.to_ne_bytes());
    out.extend(1u64.to_ne_bytes());
    out.extend((NAME.len() as u32).to_ne_bytes());
    out.extend(8u32.to_ne_bytes()); // DT_REG
    out.extend(NAME.as_bytes());
    out.resize(out.len().next_multiple_of(8), 0);
    out
}

/// fuse_entry_out, good for an hour.
fn entry(size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for long in [INODE, 0, 3600, 3600, 0] {
        out.extend(u64::to_ne_bytes(long));
    }
    out.extend(attr(INODE, size));
    out
}
