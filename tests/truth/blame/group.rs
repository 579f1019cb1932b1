//! The two cgroups, what processes in them do, and what the kernel says meanwhile.

use std::fs::File;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use anyhow::Context as _;
use anyhow::Result;
use anyhow::ensure;

use super::LIMIT;
use super::PAGES;
use crate::sys;

/// A cgroup with a name that acts, where it is printed as it is.
pub(super) struct Group {
    pub(super) dir: PathBuf,
    pub(super) id: u64,
}

impl Group {
    pub(super) fn new(name: &str) -> Result<Self> {
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let root = if v1.join("cgroup.procs").exists() { v1 } else { Path::new("/sys/fs/cgroup") };
        // Refused where it is on already, and where there is nothing to turn on.
        let _ = std::fs::write(root.join("cgroup.subtree_control"), "+memory");
        let dir = root.join(format!("blame-{name}\x1b[2J-{}", std::process::id()));
        std::fs::create_dir(&dir).with_context(|| dir.display().to_string())?;
        let id = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&dir)?);
        Ok(Self { dir, id })
    }

    /// From the root of its hierarchy.
    pub(super) fn path(&self) -> Result<String> {
        let name = self.dir.file_name().and_then(|name| name.to_str()).context("a name")?;
        Ok(format!("/{name}"))
    }

    pub(super) fn limit(&self) -> Result<()> {
        let files = ["memory.max", "memory.limit_in_bytes"].map(|name| self.dir.join(name));
        let file = files.iter().find(|file| file.exists()).context("cgroups have no limits here")?;
        Ok(std::fs::write(file, LIMIT.to_string())?)
    }

    pub(super) fn stat(&self, key: &str) -> Option<u64> {
        let text = std::fs::read_to_string(self.dir.join("memory.stat")).ok()?;
        text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok())
    }

    fn command(&self, what: &str, path: &Path) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command.arg("--blame-child").args([&self.dir, Path::new(what), path]);
        command
    }

    /// A process in this cgroup does something.
    pub(super) fn does(&self, what: &str, path: &Path) -> Result<()> {
        let done = self.command(what, path).status()?;
        ensure!(done.success(), "{what} {}: {done}", path.display());
        Ok(())
    }

    /// The same of one that moves to another cgroup and back.
    pub(super) fn moves(&self, what: &str, path: &Path, to: &Self) -> Result<()> {
        let done = self.command(what, path).arg(&to.dir).status()?;
        ensure!(done.success(), "{what} {}: {done}", path.display());
        Ok(())
    }

    /// A process that is there already, and does it when it is told to.
    pub(super) fn waits(&self, what: &str, path: &Path) -> Result<Waiting> {
        let mut child = self.command(what, path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let ready = child.stdout.take().context("its output")?.read_exact(&mut [0]);
        let waiting = Waiting(child);
        ready.with_context(|| format!("{what} does not begin"))?;
        Ok(waiting)
    }
}

pub(super) struct Waiting(Child);

impl Waiting {
    pub(super) fn go(&mut self) -> Result<()> {
        drop(self.0.stdin.take());
        let done = self.0.wait()?;
        ensure!(done.success(), "{done}");
        Ok(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.dir);
    }
}

/// The process that does it: cgroup, what, file, and perhaps another cgroup.
pub fn child(words: &[String]) -> Result<()> {
    let [group, what, path, more @ ..] = words else { anyhow::bail!("--blame-child: {words:?}") };
    std::fs::write(Path::new(group).join("cgroup.procs"), std::process::id().to_string())?;
    let path = Path::new(path);
    let open = || File::open(path);
    match &**what {
        "read" => {
            let (file, mut buffer, mut pos) = (open()?, vec![0; 64 << 10], 0);
            loop {
                match file.read_at(&mut buffer, pos)? {
                    0 => break,
                    n => pos += n as u64,
                }
            }
        }
        "dontneed" => sys::advise(&open()?, 0, 0, libc::POSIX_FADV_DONTNEED)?,
        "single" => super::turns::reads(path)?,
        "turns" => {
            let away = more.first().context("another cgroup")?;
            super::turns::takes(path, Path::new(group), Path::new(away))?;
        }
        "cuts" => super::turns::cuts(path)?,
        "again" => super::turns::again(path)?,
        "truncate" => OpenOptions::new().write(true).open(path)?.set_len(0)?,
        "unlink" => std::fs::remove_file(path)?,
        // The inodes, too: a file is known again when it has another one.
        "drop" => std::fs::write("/proc/sys/vm/drop_caches", "3")?,
        "place" => {
            println!();
            std::io::stdin().read_to_end(&mut Vec::new())?;
            // What cannot be had is no error.
            std::fs::write(path, "1")?;
        }
        "reclaim" => {
            // EAGAIN: less than that could be had, which is as good.
            let _ = OpenOptions::new().write(true).open(path)?.write(b"64M");
        }
        "direct" => {
            let file = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(path)?;
            let page = sys::page_size() as usize;
            let room = vec![0u8; (PAGES + 1) * page];
            let from = room.as_ptr().align_offset(page);
            file.write_all_at(&room[from..from + PAGES * page], 0)?;
        }
        "pageout" => {
            let map = sys::Map::new(&open()?, PAGES)?;
            (0..PAGES).for_each(|page| {
                map.touch(page);
            });
            map.advise(libc::MADV_PAGEOUT)?;
        }
        "hog" => {
            // All that is free, and what half of the file takes: by many, so that some must make room themselves, and none
            // gives anything back before all have it.
            let bytes = (meminfo("MemFree:")? + path.metadata()?.len() / 2) as usize / HOGS;
            let all = std::sync::Barrier::new(HOGS);
            std::thread::scope(|scope| {
                for _ in 0..HOGS {
                    scope.spawn(|| {
                        let taken = std::hint::black_box(vec![1u8; bytes]);
                        all.wait();
                        taken.len()
                    });
                }
            });
        }
        _ => anyhow::bail!("{what}"),
    }
    Ok(())
}

/// Threads that want memory.
const HOGS: usize = 4;

/// A line of /proc/meminfo, in bytes.
pub(super) fn meminfo(key: &str) -> Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)).with_context(|| key.to_owned())?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}

/// Pages of a file in the cache, and the one past its end that old kernels read ahead.
pub(super) fn cached(path: &Path, pages: usize) -> Result<u64> {
    let map = sys::Map::new(&File::open(path)?, pages + 1)?;
    Ok(map.resident().iter().filter(|there| **there).count() as u64)
}

/// How far off one of a cgroup's counts may be: up to 5.12 they are gathered in lots, and each processor keeps up to 32 to itself.
pub(super) fn lots() -> Result<u64> {
    Ok(if old() { 32 * std::thread::available_parallelism()?.get() as u64 } else { 0 })
}

/// 5.10, 5.11, 5.12.
pub(super) fn old() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let minor = release.strip_prefix("5.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    minor.is_some_and(|minor| minor < 13)
}

/// A file on the disk of which nothing is cached.
pub(super) fn file(dir: &Path, name: &str, pages: usize) -> Result<PathBuf> {
    let path = dir.join(name);
    let mut file = File::create(&path)?;
    file.write_all(&vec![7; pages * sys::page_size() as usize])?;
    file.sync_all()?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_DONTNEED)?;
    ensure!(cached(&path, pages)? == 0, "{name} stays in the cache");
    Ok(path)
}
