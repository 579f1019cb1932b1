//! The file systems under test, and mounts of our own when none are given.

use std::fs;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use crate::sys;

/// A file system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fs {
    Ext4,
    Xfs,
    Btrfs,
    Tmpfs,
}

impl Fs {
    pub const ALL: [Fs; 4] = [Fs::Ext4, Fs::Xfs, Fs::Btrfs, Fs::Tmpfs];
    pub const BLOCK: [Fs; 3] = [Fs::Ext4, Fs::Xfs, Fs::Btrfs];

    pub const fn name(self) -> &'static str {
        match self {
            Fs::Ext4 => "ext4",
            Fs::Xfs => "xfs",
            Fs::Btrfs => "btrfs",
            Fs::Tmpfs => "tmpfs",
        }
    }

    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|f| f.name() == name)
            .with_context(|| format!("no such file system: {name}"))
    }

    /// Whether pages are read from a device.
    pub fn block(self) -> bool {
        self != Fs::Tmpfs
    }

    const fn magic(self) -> u64 {
        match self {
            Fs::Ext4 => 0xef53,
            Fs::Xfs => 0x5846_5342,
            Fs::Btrfs => 0x9123_683e,
            Fs::Tmpfs => 0x0102_1994,
        }
    }

    /// Refuses a directory on another file system: results under a wrong name are worse than none.
    pub fn check(self, dir: &Path) -> Result<()> {
        let magic = sys::fs_magic(dir).with_context(|| format!("{}", dir.display()))?;
        if magic != self.magic() {
            bail!("{} is not on {} (magic {magic:#x})", dir.display(), self.name());
        }
        Ok(())
    }
}

/// Loop images and mounts in a temporary directory, undone when dropped.
pub struct Mounts {
    top: tempfile::TempDir,
    mounted: Vec<PathBuf>,
}

impl Mounts {
    pub fn new() -> Result<Self> {
        Ok(Self { top: tempfile::Builder::new().prefix("truth-").tempdir()?, mounted: Vec::new() })
    }

    /// Makes and mounts one file system.
    pub fn add(&mut self, kind: Fs) -> Result<PathBuf> {
        let target = self.top.path().join(kind.name());
        fs::create_dir(&target)?;
        if kind == Fs::Tmpfs {
            sys::mount(Path::new("truth"), &target, "tmpfs", "size=256m").context("mount tmpfs")?;
        } else {
            let path = self.top.path().join(format!("{}.img", kind.name()));
            let image = File::options().read(true).write(true).create_new(true).open(&path)?;
            image.set_len(640 << 20)?;
            mkfs(kind.name(), &path)?;
            let (device, _open) = sys::loop_attach(&image).context("loop device")?;
            sys::mount(&device, &target, kind.name(), "")
                .with_context(|| format!("mount {} of type {}", device.display(), kind.name()))?;
        }
        self.mounted.push(target.clone());
        Ok(target)
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        for target in self.mounted.iter().rev() {
            sys::unmount(target);
        }
    }
}

/// Runs `mkfs.KIND`.
pub fn mkfs(kind: &str, path: &Path) -> Result<()> {
    let quiet: &[&str] = if kind == "ext4" || kind == "ext2" { &["-q", "-F"] } else { &["-q", "-f"] };
    let tool = format!("mkfs.{kind}");
    let out = Command::new(&tool)
        .args(quiet)
        .arg(path)
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {tool}"))?;
    if !out.status.success() {
        bail!("{tool}: {}", String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(())
}
