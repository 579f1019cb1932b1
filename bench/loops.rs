//! The system calls that are timed.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::Context as _;
use anyhow::Result;

use crate::clock::Clock;

/// Size of the file, all of it in the cache.
const FILE: usize = 1 << 20;
/// A loop is timed in so many parts; the median counts, so that an interruption does not.
const PARTS: usize = 15;

/// One kind of system call.
#[derive(Debug)]
pub struct Loop {
    pub title: &'static str,
    /// Calls in each part.
    pub calls: usize,
    /// Pages that each call reads.
    pub pages: usize,
    call: Call,
}

#[derive(Debug, Clone, Copy)]
enum Call {
    Read(usize),
    Write(usize),
    Getppid,
}

/// All loops, the one that matters first.
pub const LOOPS: &[Loop] = &[
    Loop { title: "pread 4 KiB", calls: 2048, pages: 1, call: Call::Read(4 << 10) },
    Loop { title: "pread 64 KiB", calls: 256, pages: 16, call: Call::Read(64 << 10) },
    Loop { title: "pread 1 MiB", calls: 24, pages: 256, call: Call::Read(1 << 20) },
    Loop { title: "pwrite 4 KiB", calls: 512, pages: 0, call: Call::Write(4 << 10) },
    Loop { title: "getppid", calls: 8192, pages: 0, call: Call::Getppid },
];

impl Loop {
    /// Pages that one measurement reads.
    pub fn reads(&self) -> u64 {
        ((PARTS + 1) * self.calls * self.pages) as u64
    }
}

/// A file in the cache, and room to read it into.
pub struct Bench {
    file: File,
    buffer: Vec<u8>,
    clock: Clock,
}

impl Bench {
    pub fn new(dir: &Path, clock: Clock) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let path = dir.join(format!("cost.{}", std::process::id()));
        let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        anyhow::ensure!(!on_tmpfs(&file)?, "{} is on a tmpfs: name another one with --dir", dir.display());
        let mut buffer = vec![0x5a; FILE];
        file.write_all(&buffer)?;
        file.sync_all()?;
        file.read_exact_at(&mut buffer, 0)?;
        Ok(Self { file, buffer, clock })
    }

    /// Nanoseconds per call, the median of the parts. One more part goes first, untimed.
    pub fn time(&mut self, which: &Loop) -> Result<f64> {
        self.repeat(which)?;
        let mut parts = Vec::with_capacity(PARTS);
        for _ in 0..PARTS {
            let begin = self.clock.now()?;
            self.repeat(which)?;
            let took = self.clock.now()?.saturating_sub(begin);
            parts.push(took.as_nanos() as f64 / which.calls as f64);
        }
        Ok(crate::stats::Sorted::new(parts).median())
    }

    fn repeat(&mut self, which: &Loop) -> Result<()> {
        match which.call {
            Call::Read(size) => {
                for i in 0..which.calls {
                    self.file.read_exact_at(&mut self.buffer[..size], offset(i, size))?;
                }
            }
            Call::Write(size) => {
                for i in 0..which.calls {
                    self.file.write_all_at(&self.buffer[..size], offset(i, size))?;
                }
            }
            Call::Getppid => {
                for _ in 0..which.calls {
                    // SAFETY: takes nothing and cannot fail.
                    unsafe { libc::syscall(libc::SYS_getppid) };
                }
            }
        }
        Ok(())
    }
}

fn offset(call: usize, size: usize) -> u64 {
    (call * size % FILE) as u64
}

fn on_tmpfs(file: &File) -> Result<bool> {
    let mut about = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the kernel writes one statfs.
    if unsafe { libc::fstatfs(file.as_raw_fd(), about.as_mut_ptr()) } != 0 {
        return Err(std::io::Error::last_os_error()).context("fstatfs");
    }
    // SAFETY: all zeros is a statfs, and the kernel has filled it in.
    Ok(unsafe { about.assume_init() }.f_type == libc::TMPFS_MAGIC)
}
