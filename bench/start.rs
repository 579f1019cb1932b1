//! From exec to attached, and memory, of a real `cachestat`.

use std::fs;
use std::io::BufRead as _;
use std::io::BufReader;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Instant;

use anyhow::Context as _;
use anyhow::Result;

use crate::stats::Sorted;

/// What is allowed, natively.
pub const BUDGET_MS: f64 = 150.0;
pub const BUDGET_KIB: u64 = 15 * 1024;

/// What is asked for when memory is measured, beside the interval.
const ASKED: &[&[&str]] = &[&[], &["--by", "file"], &["--latency"]];

pub struct Start {
    /// From exec to the header line, which follows the first sample: an upper bound of the time to attach.
    pub attached_ms: Sorted,
    /// For each thing that can be asked for; the first is without.
    pub memory: Vec<Memory>,
}

/// After three samples.
pub struct Memory {
    /// The command.
    pub command: String,
    pub rss_kib: u64,
    pub peak_kib: u64,
    /// What the kernel holds for it: maps and programs, as `/proc/PID/fdinfo` tells.
    pub kernel_kib: u64,
}

pub fn measure(cachestat: &Path, starts: usize) -> Result<Start> {
    let mut times = Vec::new();
    for _ in 0..starts {
        let begin = Instant::now();
        let mut child = Running::new(cachestat, &[])?;
        child.line()?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    let memory = ASKED.iter().map(|asked| memory(cachestat, asked)).collect::<Result<_>>()?;
    Ok(Start { attached_ms: Sorted::new(times), memory })
}

fn memory(cachestat: &Path, asked: &[&str]) -> Result<Memory> {
    let mut child = Running::new(cachestat, asked)?;
    for _ in 0..4 {
        child.line()?; // a header and three intervals, or rows of the first
    }
    let proc = format!("/proc/{}", child.child.id());
    let status = fs::read_to_string(format!("{proc}/status"))?;
    Ok(Memory {
        command: ["cachestat 1"].iter().chain(asked).copied().collect::<Vec<_>>().join(" "),
        rss_kib: number(&status, "VmRSS:").context("no VmRSS")?,
        peak_kib: number(&status, "VmHWM:").context("no VmHWM")?,
        kernel_kib: fdinfo(&proc)? / 1024,
    })
}

/// The first number after a word.
fn number(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|l| l.strip_prefix(word))?.split_whitespace().next()?.parse().ok()
}

fn fdinfo(proc: &str) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(format!("{proc}/fdinfo"))? {
        let text = fs::read_to_string(entry?.path())?;
        // A program may be held by several descriptors; maps, which are what matters, by one.
        if text.contains("map_id:") || text.contains("prog_id:") && !text.contains("link_id:") {
            bytes += number(&text, "memlock:").unwrap_or(0);
        }
    }
    Ok(bytes)
}

/// A `cachestat 1` that ends with its value.
struct Running {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn new(cachestat: &Path, asked: &[&str]) -> Result<Self> {
        let mut child = Command::new(cachestat)
            .args(asked)
            .arg("1")
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", cachestat.display()))?;
        let out = child.stdout.take().context("no standard output")?;
        Ok(Self { child, lines: BufReader::new(out) })
    }

    fn line(&mut self) -> Result<()> {
        let mut line = String::new();
        anyhow::ensure!(self.lines.read_line(&mut line)? > 0, "cachestat ended before it had attached");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
