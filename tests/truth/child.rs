//! The workload's side: prepares, waits at the barrier, works, and says what it should have been counted as.

use std::fs::File;
use std::io::BufRead;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use serde_json::json;

use crate::classic;
use crate::expect::Expect;
use crate::fs::Fs;
use crate::oracle::Oracle;
use crate::oracle::proc_io;
use crate::scenarios;
use crate::sys;

/// The kernel has no such thing: its own words are the evidence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotHere(pub String);

/// A small xorshift generator, so that a run can be repeated from its seed.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// Shuffles in place.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// What a scenario works with.
pub struct Ctx {
    /// An empty directory of its own, on the file system under test.
    pub dir: PathBuf,
    pub fs: Fs,
    pub rng: Rng,
    /// Bytes in a page.
    pub page: u64,
    /// Undone after the parent has taken its second sample.
    pub guards: Vec<Box<dyn FnOnce()>>,
    io: [u64; 2],
}

impl Ctx {
    /// Everything is ready: waits until the parent has taken its first sample.
    pub fn begin(&mut self) {
        say("ready");
        listen("go");
        self.io = [proc_io("read_bytes"), proc_io("write_bytes")];
    }

    /// Bytes that this process caused to be read from a device since `begin`.
    pub fn device_read(&self) -> u64 {
        proc_io("read_bytes") - self.io[0]
    }

    /// Bytes that this process dirtied since `begin`.
    pub fn device_write(&self) -> u64 {
        proc_io("write_bytes") - self.io[1]
    }

    /// A new file of `len` varied bytes, on the device and not in the cache (on tmpfs: in memory).
    pub fn file(&mut self, name: &str, len: u64) -> Result<File> {
        let file = self.warm_file(name, len)?;
        self.drop_cache(&file)?;
        Ok(file)
    }

    /// The same, clean and in the cache.
    pub fn warm_file(&mut self, name: &str, len: u64) -> Result<File> {
        let path = self.dir.join(name);
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        let mut buf = vec![0u8; 1 << 20];
        let mut at = 0;
        while at < len {
            let n = (len - at).min(buf.len() as u64) as usize;
            for chunk in buf[..n].chunks_mut(8) {
                // Half of it zeros, which a file system that compresses does.
                let bytes = self.rng.below(u64::from(u32::MAX)).to_le_bytes();
                chunk.copy_from_slice(&bytes[..chunk.len()]);
            }
            file.write_all_at(&buf[..n], at)?;
            at += n as u64;
        }
        file.sync_all()?;
        Ok(file)
    }

    /// Empties the cache of a file and proves it.
    pub fn drop_cache(&self, file: &File) -> Result<()> {
        if !self.fs.block() {
            return Ok(());
        }
        let mut left = 0;
        for _ in 0..100 {
            sys::advise(file, 0, 0, libc::POSIX_FADV_DONTNEED)?;
            left = Oracle::new(file, self.fs)?.cached();
            if left == 0 {
                return Ok(());
            }
            sleep(Duration::from_millis(10));
            file.sync_all()?;
        }
        bail!("{left} pages stay in the cache")
    }

    /// An oracle on a file.
    pub fn oracle(&self, file: &File) -> Result<Oracle> {
        Ok(Oracle::new(file, self.fs)?)
    }

    /// A file of its own descriptor and position.
    pub fn open(&self, name: &str) -> Result<File> {
        Ok(File::open(self.dir.join(name))?)
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("parent listens");
}

fn listen(word: &str) {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).expect("parent speaks");
    if line.trim() != word {
        std::process::exit(3); // the parent is gone
    }
}

/// `truth --child SCENARIO FS DIR SEED`.
pub fn main(args: &[String]) -> Result<()> {
    let [name, fs, dir, seed] = args else { bail!("--child SCENARIO FS DIR SEED") };
    let scenario =
        scenarios::all().chain(classic::all()).find(|s| s.name == name).context("no such scenario")?;
    let mut ctx = Ctx {
        dir: Path::new(dir).into(),
        fs: Fs::parse(fs)?,
        rng: Rng::new(seed.parse()?),
        page: sys::page_size(),
        guards: Vec::new(),
        io: [0; 2],
    };
    sys::settle_process();
    let answer = match (scenario.run)(&mut ctx) {
        Ok(expect) => with_evidence(&ctx, expect).to_json(),
        Err(e) => match e.downcast::<NotHere>() {
            Ok(reason) => json!({ "na": reason.0 }),
            Err(e) => json!({ "error": format!("{e:#}") }),
        },
    };
    say(&answer.to_string());
    listen("end");
    for undo in ctx.guards.drain(..).rev() {
        undo();
    }
    Ok(())
}

fn with_evidence(ctx: &Ctx, mut expect: Expect) -> Expect {
    let (read, write) = (ctx.device_read(), ctx.device_write());
    if !ctx.fs.block() {
        expect.may_not_see_tmpfs();
    }
    if ctx.fs == Fs::Btrfs {
        expect.may_not_see_writes_of_btrfs();
    }
    expect.note(format!("/proc/self/io: read {} pages, dirtied {}", read / ctx.page, write / ctx.page));
    expect
}
