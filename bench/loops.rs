//! The system calls that are timed.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use anyhow::Result;
use rustix::fs::Advice;
use rustix::fs::fadvise;

use crate::clock;
use crate::clock::Clock;
use crate::commands;
use crate::commands::Commands;

/// Size of the file, all of it in the cache.
const FILE: usize = 1 << 20;
/// Size of cold reads.
const COLD: usize = 64 << 10;
/// A loop is timed in so many parts; the median counts, so that an interruption does not.
const PARTS: usize = 15;
/// Commands take longer.
const PARTS_OF_COMMAND: usize = 3;

/// One kind of system call, or of a few.
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
    /// The file, in calls of this size, after its pages were dropped, which is not timed.
    Cold(usize),
    /// The dropping of its pages.
    Drop,
    /// A new mapping of the file, a touch for every 16 pages.
    Faults,
    Getppid,
    /// A program that people use, by [`crate::commands`].
    Command(usize),
}

/// All loops, the one that matters first.
pub const LOOPS: &[Loop] = &[
    Loop { title: "pread 4 KiB", calls: 2048, pages: 1, call: Call::Read(4 << 10) },
    Loop { title: "pread 64 KiB", calls: 256, pages: 16, call: Call::Read(64 << 10) },
    Loop { title: "pread 1 MiB", calls: 24, pages: 256, call: Call::Read(1 << 20) },
    Loop { title: "pwrite 4 KiB", calls: 512, pages: 0, call: Call::Write(4 << 10) },
    Loop { title: "cold 1 MiB", calls: 8, pages: 256, call: Call::Cold(COLD) },
    Loop { title: "cold by 4 KiB", calls: 8, pages: 256, call: Call::Cold(4 << 10) },
    Loop { title: "drop 1 MiB", calls: 8, pages: 256, call: Call::Drop },
    Loop { title: "mmap 1 MiB", calls: 48, pages: 0, call: Call::Faults },
    Loop { title: "getppid", calls: 8192, pages: 0, call: Call::Getppid },
    Loop { title: commands::TITLES[0], calls: 1, pages: 0, call: Call::Command(0) },
    Loop { title: commands::TITLES[1], calls: 1, pages: 0, call: Call::Command(1) },
    Loop { title: commands::TITLES[2], calls: 1, pages: 0, call: Call::Command(2) },
];

impl Loop {
    /// Pages that one measurement reads.
    pub fn reads(&self) -> u64 {
        ((self.parts() + 1) * self.calls * self.pages) as u64
    }

    /// Reads what only the program knows.
    pub fn is_command(&self) -> bool {
        matches!(self.call, Call::Command(_))
    }

    fn parts(&self) -> usize {
        if self.is_command() { PARTS_OF_COMMAND } else { PARTS }
    }
}

/// A file in the cache, and room to read it into.
pub struct Bench {
    dir: PathBuf,
    file: File,
    buffer: Vec<u8>,
    clock: Clock,
    commands: Commands,
    only: String,
}

impl Bench {
    pub fn new(dir: &Path, clock: Clock, only: &str) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let file = unnamed(dir)?;
        anyhow::ensure!(!on_tmpfs(&file)?, "{} is on a tmpfs: name another one with --dir", dir.display());
        let commands = Commands::new(dir)?;
        Ok(Self { dir: dir.to_owned(), file, buffer: vec![0x5a; FILE], clock, commands, only: only.into() })
    }

    /// Whether a loop is to be timed.
    pub fn asked(&self, which: &Loop) -> bool {
        which.title.contains(&self.only)
    }

    /// A file of its own for an arm, read in as a reader does it. A write costs as much as its folio is large: over what the
    /// arm before left, two arms would not be measured alike.
    pub fn fresh(&mut self) -> Result<()> {
        self.file = unnamed(&self.dir)?;
        self.file.write_all(&self.buffer)?;
        self.file.sync_all()?;
        self.cold(1, COLD, false)?;
        Ok(())
    }

    /// Nanoseconds per call, the median of the parts. One more part goes first, untimed.
    pub fn time(&mut self, which: &Loop) -> Result<f64> {
        self.repeat(which)?;
        let mut parts = Vec::with_capacity(which.parts());
        for _ in 0..which.parts() {
            parts.push(self.repeat(which)?.as_nanos() as f64 / which.calls as f64);
        }
        Ok(crate::stats::Sorted::new(parts).median())
    }

    /// How long the calls of one part take.
    fn repeat(&mut self, which: &Loop) -> Result<Duration> {
        let clock = self.clock;
        let begin = clock.now()?;
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
            Call::Cold(size) => return self.cold(which.calls, size, false),
            Call::Drop => return self.cold(which.calls, COLD, true),
            Call::Faults => {
                for _ in 0..which.calls {
                    touch(&self.file)?;
                }
            }
            Call::Command(which) => {
                let begin = commands::cpu_time()?;
                self.commands.run(which)?;
                return Ok(commands::cpu_time()?.saturating_sub(begin));
            }
            Call::Getppid => {
                for _ in 0..which.calls {
                    // SAFETY: takes nothing and cannot fail.
                    unsafe { libc::syscall(libc::SYS_getppid) };
                }
            }
        }
        Ok(clock.now()?.saturating_sub(begin))
    }

    /// Drops the file's pages and reads them in again; times the one or the other.
    fn cold(&mut self, times: usize, size: usize, dropping: bool) -> Result<Duration> {
        let mut took = Duration::ZERO;
        for _ in 0..times {
            let begin = clock::thread()?;
            fadvise(&self.file, 0, None, Advice::DontNeed)?;
            let dropped = clock::thread()?;
            for at in (0..FILE).step_by(size) {
                self.file.read_exact_at(&mut self.buffer[..size], at as u64)?;
            }
            took += if dropping { dropped - begin } else { clock::thread()? - dropped };
        }
        Ok(took)
    }
}

/// A file without a name.
fn unnamed(dir: &Path) -> Result<File> {
    let path = dir.join(format!("cost.{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// The kernel maps up to 16 pages around each fault, so that this makes one fault for each 16 pages.
fn touch(file: &File) -> Result<()> {
    // SAFETY: a mapping of its own, which is read within its bounds and then undone; the file keeps its length.
    unsafe {
        let base =
            libc::mmap(std::ptr::null_mut(), FILE, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        anyhow::ensure!(base != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        for at in (0..FILE).step_by(16 * 4096) {
            std::ptr::read_volatile(base.cast::<u8>().add(at));
        }
        anyhow::ensure!(libc::munmap(base, FILE) == 0, "munmap: {}", std::io::Error::last_os_error());
    }
    Ok(())
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
