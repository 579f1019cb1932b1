//! Many at once: what is held for them is given back when they are gone.

use std::fs::File;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use cachetop::blame::Raw;
use cachetop::plan::Wants;
use cachetop::session::Options;
use cachetop::session::Session;

use crate::tools::*;

/// Processes, each with a name of its own, in so long.
const BURST: u32 = 46_000;
const LASTS: Duration = Duration::from_millis(11_500);
/// So long afterwards it is looked.
const AFTER: Duration = Duration::from_secs(25);
/// What may be held of it then, KiB.
const HELD: u64 = 6 << 10;

/// A command that writes to nobody.
struct Quiet {
    name: &'static str,
    process: Child,
    before: u64,
}

impl Quiet {
    fn start(name: &'static str, program: &str, options: &[&str]) -> Self {
        let path = crate::tools::program();
        let program = Path::new(&path).with_file_name(program);
        let process = Command::new(program).args(options).stdout(Stdio::null()).spawn().unwrap();
        Self { name, process, before: 0 }
    }

    /// A figure of its memory, KiB.
    fn memory(&self, of: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|l| l.starts_with(of)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Memory of its own, and tables of the kernel's that it has mapped, KiB. Not the pages of its file: a build that is not
    /// optimised has many, and runs through some of them for the first time.
    fn held(&self) -> u64 {
        let maps = std::fs::read_to_string(format!("/proc/{}/smaps", self.process.id())).unwrap();
        let (mut tables, mut of_table) = (0, false);
        for line in maps.lines() {
            if line.split(' ').next().is_some_and(|word| word.contains('-')) {
                of_table = line.ends_with("anon_inode:bpf-map");
            } else if let Some(rest) = line.strip_prefix("Rss:").filter(|_| of_table) {
                tables += rest.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
            }
        }
        self.memory("RssAnon:") + tables
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Names, rows and tables that are mapped, of all that a burst of processes leaves behind.
pub fn memory_after_a_burst(dir: &Path) {
    let path = cold_file(&dir.join("file"), 2);
    let file = File::open(&path).unwrap();
    hold_warm(&path);
    let mut all = [
        Quiet::start("cachetop -b", "cachetop", &["-b"]),
        Quiet::start("cachestat --by process", "cachestat", &["--by", "process", "1"]),
        Quiet::start("cachestat 1", "cachestat", &["1"]),
    ];
    sleep(Duration::from_secs(8));
    for each in &mut all {
        each.before = each.held();
    }
    let began = Instant::now();
    for n in 0..BURST {
        reap(fork_reader(&format!("burst-{n}"), &file, 1, None));
        sleep((began + LASTS * n / BURST).saturating_duration_since(Instant::now()));
    }
    let took = began.elapsed();
    let then = all.each_ref().map(Quiet::held);
    sleep(AFTER);
    let after = all.each_ref().map(Quiet::held);
    for (each, (then, after)) in all.iter().zip(then.into_iter().zip(after)) {
        println!("     {}: {}, {then} KiB after {took:.1?}, {after} later", each.name, each.before);
    }
    for (each, after) in all.iter().zip(after) {
        assert!(after <= each.before + HELD, "{} holds {} KiB more", each.name, after - each.before);
    }
}

/// More files are pushed out than may have names: these are read when it is told, and not at each look.
pub fn names_of_many_files(dir: &Path) {
    const FILES: usize = 5000;
    const NAMES: usize = 4096;
    // Of nothing but a hole: its page is clean.
    let path = |n| dir.join(format!("one-of-many-{n}"));
    (0..FILES).for_each(|n| File::create(path(n)).unwrap().set_len(page_size()).unwrap());
    let wants = Wants { blame: true, bill: true, ..Wants::default() };
    let mut session = Session::open(&Options { wants, include_self: true, ..Options::default() }).unwrap();
    for n in 0..FILES {
        std::fs::read(path(n)).unwrap();
        advise(&File::open(path(n)).unwrap(), libc::POSIX_FADV_DONTNEED);
    }
    let timed = |work: &mut dyn FnMut() -> Raw| {
        let mut times: Vec<_> = (0..9)
            .map(|_| {
                let began = Instant::now();
                drop(work());
                began.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    let without = timed(&mut || session.blame().unwrap());
    let with = timed(&mut || {
        let raw = session.blame().unwrap();
        session.named(raw).unwrap()
    });
    let raw = session.blame().unwrap();
    let shares = raw.details.shares.len();
    println!("     {shares} shares: a look takes {without:.1?}, with all names {with:.1?}");
    assert!(raw.details.files.is_empty(), "{} names", raw.details.files.len());
    let raw = session.named(raw).unwrap();
    assert!(raw.details.files.len() >= NAMES - 1, "{} names", raw.details.files.len());
    let ours = |name: &str| name.contains("/one-of-many-");
    let named = raw.details.files.values().filter(|f| ours(&f.name)).count();
    assert!(named > NAMES - 100, "{named} of our names");
    let shares: u64 = raw.details.shares.values().sum();
    assert!(shares >= FILES as u64, "{shares} pages that went");
}
