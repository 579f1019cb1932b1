//! The truth tests: workloads whose true figures are known, counted by the product, compared page for page.
//!
//! `truth [--dir FS=PATH]... [--only SUBSTR]... [--list] [--json FILE] [--seed N] [--busy]
//! [--without-functions] [--without-kprobes] [--latency] [--files]`, as root. `--files`: what the files of each
//! workload sum up to is compared with what its processes did.
//! Without `--dir` it makes and mounts ext4, xfs, btrfs and tmpfs of its own, and takes the machine for a busy
//! one: figures of the whole system are then compared as lower bounds where others can disturb them.
#![allow(clippy::expect_used)]

mod blame;
mod child;
mod classic;
mod expect;
mod folios;
mod fs;
mod fuse;
mod oracle;
mod parent;
mod pivots;
mod scenarios;
mod sys;
mod uring;
mod verdict;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use cachetop::plan::Wants;
use cachetop::sample::Source;
use cachetop::session::Options;
use cachetop::session::Session;
use serde_json::json;

use crate::fs::Fs;
use crate::scenarios::Scenario;
use crate::verdict::Verdict;

#[derive(Default)]
struct Args {
    dirs: Vec<(Fs, PathBuf)>,
    only: Vec<String>,
    list: bool,
    json: Option<PathBuf>,
    seed: u64,
    busy: bool,
    without_functions: bool,
    without_kprobes: bool,
    latency: bool,
    files: bool,
}

impl Args {
    fn options(&self) -> Options {
        let (without_functions, without_kprobes) = (self.without_functions, self.without_kprobes);
        Options {
            without_functions,
            without_kprobes,
            wants: Wants {
                latency: self.latency,
                files: self.files,
                around: true,
                buffers: true,
                ..Wants::default()
            },
            ..Options::default()
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args> {
    let mut args = Args { seed: u64::from(std::process::id()), ..Args::default() };
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} wants a value"));
        match word.as_str() {
            "--dir" => {
                let value = value()?;
                let (kind, path) = value.split_once('=').context("--dir FS=PATH")?;
                args.dirs.push((Fs::parse(kind)?, path.into()));
            }
            "--only" => args.only.push(value()?),
            "--json" => args.json = Some(value()?.into()),
            "--seed" => args.seed = value()?.parse()?,
            "--busy" => args.busy = true,
            "--without-functions" => args.without_functions = true,
            "--without-kprobes" => args.without_kprobes = true,
            "--latency" => args.latency = true,
            "--files" => args.files = true,
            "--list" => args.list = true,
            _ => bail!("unknown argument {word}"),
        }
    }
    args.busy |= args.dirs.is_empty();
    Ok(args)
}

fn main() -> ExitCode {
    env_logger::init(); // RUST_LOG=debug shows what libbpf says
    let mut words = std::env::args().skip(1).peekable();
    let result = if words.next_if(|w| w == "--child").is_some() {
        child::main(&words.collect::<Vec<_>>()).map(|()| true)
    } else if words.next_if(|w| w == "--blame-child").is_some() {
        blame::child(&words.collect::<Vec<_>>()).map(|()| true)
    } else {
        parse(words).and_then(|args| run(&args))
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("truth: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// How many scenarios may fail once and pass when run again, of some 480: more is no accident.
const TOLERATED: usize = 4;

#[derive(Default)]
struct Tally {
    passed: u32,
    failed: Vec<String>,
    /// What failed once and passed when run again.
    again: Vec<String>,
    not_here: u32,
    known: usize,
    unknown: usize,
}

fn wanted(args: &Args, scenario: &Scenario, fs: Fs) -> bool {
    let name = format!("{}/{}", scenario.name, fs.name());
    scenario.on.contains(&fs) && (args.only.is_empty() || args.only.iter().any(|o| name.contains(o)))
}

fn run(args: &Args) -> Result<bool> {
    if args.list {
        for s in scenarios::all().chain(classic::all()) {
            let on: Vec<_> = s.on.iter().map(|f| f.name()).collect();
            println!("{:24} {:24} {}", s.name, on.join(","), s.about);
        }
        return Ok(true);
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let mut tally = Tally::default();
    let began = Instant::now();
    let mut mounts = None;
    let dirs = if args.dirs.is_empty() {
        let own = mounts.insert(fs::Mounts::new()?);
        let mut dirs = Vec::new();
        for kind in Fs::ALL {
            let blame = kind == Fs::Ext4 && blame::wanted(args);
            if !blame && !scenarios::all().chain(classic::all()).any(|s| wanted(args, &s, kind)) {
                continue;
            }
            match own.add(kind) {
                Ok(dir) => dirs.push((kind, dir)),
                Err(e) => {
                    println!("FAIL setup/{}: {e:#}", kind.name());
                    tally.failed.push(format!("setup/{}", kind.name()));
                }
            }
        }
        dirs
    } else {
        args.dirs.clone()
    };
    for (kind, dir) in &dirs {
        kind.check(dir)?;
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    println!("truth: kernel {}, seed {}", release.trim(), args.seed);
    // The workload runs this same file: its pages must not be read during a measurement.
    std::fs::read("/proc/self/exe")?;
    if scenarios::all().any(|s| dirs.iter().any(|(kind, _)| wanted(args, &s, *kind))) {
        exact(args, &dirs, &stop, &mut tally)?;
    }
    blame::run(args, &dirs, &mut tally)?;
    classic::run(args, &dirs, &mut tally)?;
    drop(mounts);
    if !tally.failed.is_empty() {
        println!("failed: {}", tally.failed.join(" "));
    }
    if !tally.again.is_empty() {
        println!("passed when run again: {}", tally.again.join(" "));
        if tally.again.len() > TOLERATED {
            tally.failed.push(format!("({} had to be run again)", tally.again.len()));
        }
    }
    println!("seconds: {:.0}", began.elapsed().as_secs_f64());
    println!("figures compared: {}, unknown on this kernel: {}", tally.known, tally.unknown);
    println!("{} passed, {} failed, {} n/a", tally.passed, tally.failed.len(), tally.not_here);
    if tally.passed == 0 && tally.failed.is_empty() {
        println!("nothing could run");
        return Ok(false);
    }
    Ok(tally.failed.is_empty())
}

/// All that is wanted, under the exact engine.
fn exact(args: &Args, dirs: &[(Fs, PathBuf)], stop: &AtomicBool, tally: &mut Tally) -> Result<()> {
    let mut session = Session::open(&args.options())?;
    for (figure, certainty) in &session.plan().figures {
        println!("plan: {} {certainty:?}", expect::key(*figure));
    }
    // Scenarios about files have a session that counts them; the others show that nothing depends on it.
    let mut by_file = None;
    let with = parent::Setting { seed: args.seed, quiet: !args.busy, files: args.files };
    let mut json = args.json.as_ref().map(File::create).transpose()?;
    for scenario in scenarios::all() {
        for (kind, dir) in dirs.iter().filter(|(kind, _)| wanted(args, &scenario, *kind)) {
            if stop.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            let name = format!("{}/{}", scenario.name, kind.name());
            let dir = dir.join(format!("truth-{}-{}", std::process::id(), scenario.name));
            let start = Instant::now();
            let session = match by_file.as_mut() {
                _ if !scenario.name.starts_with("pivot-") => &mut session,
                Some(by_file) => by_file,
                None => {
                    let wants = Wants { files: true, around: true, buffers: true, ..Wants::default() };
                    let without_functions = args.without_functions;
                    by_file.insert(Session::open(&Options {
                        wants,
                        without_functions,
                        ..Options::default()
                    })?)
                }
            };
            let mut attempt = || match parent::run(session, &scenario, *kind, &dir, &with) {
                Ok(v) => v,
                Err(e) => Verdict::Done { figures: vec![], wrong: vec![format!("{e:#}")], notes: vec![] },
            };
            let mut verdict = attempt();
            verdict::print(&name, &verdict);
            if matches!(verdict, Verdict::Done { .. }) && !verdict.passed() {
                // The kernel may have had business of its own: reclaim, write-back, a timer. An error of ours that
                // comes back is found, one that is rare is at least named.
                verdict = attempt();
                verdict::print(&name, &verdict);
                if verdict.passed() {
                    tally.again.push(name.clone());
                }
            }
            count(tally, name.clone(), &verdict);
            if let Some(out) = &mut json {
                let mut line = verdict.to_json();
                line["scenario"] = json!(scenario.name);
                line["fs"] = json!(kind.name());
                line["seed"] = json!(args.seed);
                line["seconds"] = json!(start.elapsed().as_secs_f64());
                writeln!(out, "{line}")?;
            }
        }
    }
    Ok(())
}

fn count(tally: &mut Tally, name: String, verdict: &Verdict) {
    match verdict {
        Verdict::NotHere(_) => tally.not_here += 1,
        v if v.passed() => tally.passed += 1,
        _ => tally.failed.push(name),
    }
    if let Verdict::Done { figures, .. } = verdict {
        let unknown = figures.iter().filter(|f| f.certainty == "unknown").count();
        tally.unknown += unknown;
        tally.known += figures.len() - unknown;
    }
}
