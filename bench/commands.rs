//! Programs that people use, on a warm tree: what watching costs them is what it costs.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use anyhow::Result;
use anyhow::ensure;

/// What the table calls them.
pub const TITLES: [&str; 3] = ["du -s", "grep -r", "fio randread"];

const DIRECTORIES: usize = 50;
const FILES: usize = 20;
/// Of a source file, about.
const LENGTH: usize = 9000;

/// A tree of 1000 files that look like source, and a file for fio. Removed when dropped.
pub struct Commands {
    tree: PathBuf,
}

impl Commands {
    pub fn new(dir: &Path) -> Result<Self> {
        let tree = dir.join(format!("cost-tree.{}", std::process::id()));
        let this = Self { tree };
        let line = b"static int find_page(struct mapping *mapping, unsigned long index);\n";
        let text: Vec<u8> = line.iter().copied().cycle().take(LENGTH).collect();
        for d in 0..DIRECTORIES {
            let dir = this.tree.join(d.to_string());
            fs::create_dir_all(&dir)?;
            for f in 0..FILES {
                fs::write(dir.join(format!("{f}.c")), &text)?;
            }
        }
        fs::write(this.tree.join("fio"), vec![0x5a; 16 << 20])?;
        Ok(this)
    }

    /// Runs one of [`TITLES`] to its end.
    pub fn run(&self, which: usize) -> Result<()> {
        let tree = self.tree.to_str().context("the path is not UTF-8")?;
        let file = format!("--filename={tree}/fio");
        let line: &[&str] = match which {
            0 => &["du", "-s", tree],
            1 => &["grep", "-rc", "folio_wait_stable", tree],
            // 4 KiB at random places of a file in the cache, each place once, four times over.
            _ => &[
                "fio",
                "--name=cost",
                &file,
                "--rw=randread",
                "--bs=4k",
                "--size=16m",
                "--loops=4",
                "--ioengine=psync",
                "--thread",
                "--invalidate=0",
                "--randseed=1",
                "--output=/dev/null",
            ],
        };
        let status = Command::new(line[0])
            .args(&line[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .with_context(|| format!("cannot run {}: install it, then try again", line[0]))?;
        // grep finds nothing: 1.
        ensure!(status.success() || (which == 1 && status.code() == Some(1)), "{}: {status}", line[0]);
        Ok(())
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.tree);
    }
}

/// CPU time of the children that were waited for.
pub fn cpu_time() -> Result<Duration> {
    // SAFETY: all zeros is a rusage, and the kernel fills it in.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        ensure!(libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) == 0, "getrusage");
        usage
    };
    let time = |t: libc::timeval| -> Result<Duration> {
        Ok(Duration::from_secs(t.tv_sec.try_into()?) + Duration::from_micros(t.tv_usec.try_into()?))
    };
    Ok(time(usage.ru_utime)? + time(usage.ru_stime)?)
}
