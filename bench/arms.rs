//! The same loops under nothing, the floor and the product, in turns.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use anyhow::Result;
use cachetop::engines::Engines;
use cachetop::kernel::Floor;
use cachetop::plan::Engine;
use cachetop::plan::Plan;
use cachetop::plan::Wants;
use cachetop::sample::Counter;
use cachetop::sample::Follow as _;
use cachetop::sample::Source as _;
use cachetop::session::Options;
use cachetop::session::Session;
use cachetop::session::StartError;
use libbpf_rs::ProgramType;
use libbpf_rs::query::ProgInfoIter;

use crate::clock::Clock;
use crate::loops::Bench;
use crate::loops::LOOPS;
use crate::loops::Loop;

/// What is attached while a loop runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    Nothing,
    Floor,
    Product,
    /// The product, asked which files: the hooks are the same.
    Files,
    /// The product, asked how long reads take.
    Latency,
    /// The product, asked which files, how long reads take, and how many pages are mapped around faults.
    All,
    /// `--what-if`, of which none of the pages is chosen.
    WhatIf,
    /// `--blame`: who takes pages out, whose, and who brings them in again.
    Blame,
    /// The product's classic engine, on hooks of its own.
    Classic,
    /// bcc's `cachestat`, where it is given.
    Bcc,
}

pub const ARMS: [Arm; 10] = [
    Arm::Nothing,
    Arm::Floor,
    Arm::Product,
    Arm::Files,
    Arm::Latency,
    Arm::All,
    Arm::WhatIf,
    Arm::Blame,
    Arm::Classic,
    Arm::Bcc,
];

/// What the table calls them.
pub const TITLES: [&str; ARMS.len()] =
    ["nothing", "floor", "exact", "files", "latency", "all", "what if", "blame", "classic", "bcc"];

/// One round: nanoseconds per call, by loop and arm.
pub type Round = Vec<[f64; ARMS.len()]>;

pub struct Costs {
    pub kernel: String,
    /// How requests are bracketed, and the hooks.
    pub plan: Plan,
    /// Empty programs attached as the floor.
    pub programs: usize,
    pub rounds: Vec<Round>,
    /// Rounds left out because other BPF programs came or went.
    pub disturbed: usize,
    /// Pages that the loops read under the product, and those that it counted for the whole system.
    pub pages_read: u64,
    pub pages_counted: u64,
    pub lost: u64,
}

pub fn measure(
    options: &Options,
    dir: &Path,
    clock: Clock,
    rounds: usize,
    only: &str,
    bcc: Option<&Path>,
) -> Result<Costs> {
    let mut bench = Bench::new(dir, clock, only)?;
    let mut others = tracing_programs();
    let plan = said(Session::open(options))?.plan().clone();
    let mut costs = Costs {
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        plan,
        programs: 0,
        rounds: Vec::new(),
        disturbed: 0,
        pages_read: 0,
        pages_counted: 0,
        lost: 0,
    };
    for turn in 0.. {
        let mut round = vec![[f64::NAN; ARMS.len()]; LOOPS.len()];
        let mut quiet = true;
        for place in 0..ARMS.len() {
            // The order turns, so that no arm always runs after the same other.
            let at = (turn + place) % ARMS.len();
            quiet &= calm(&others);
            bench.fresh()?;
            match ARMS[at] {
                Arm::Nothing => time(&mut bench, &mut round, at, |_| true)?,
                Arm::Floor => {
                    let floor = Floor::attach(&costs.plan).context("cannot attach the floor")?;
                    costs.programs = floor.programs();
                    time(&mut bench, &mut round, at, |_| true)?;
                }
                Arm::Product => product(options, &mut bench, &mut round, at, &mut costs)?,
                Arm::Classic => {
                    let _engine = said(Engines::open(options, Some(Engine::Classic)))?;
                    time(&mut bench, &mut round, at, |_| true)?;
                }
                Arm::Bcc => {
                    let Some(bcc) = bcc else { continue };
                    match Running::start(bcc) {
                        Ok(_running) => time(&mut bench, &mut round, at, |_| true)?,
                        // Many of its versions do not load on kernels that are newer.
                        Err(e) => eprintln!("cost: not measured: {e:#}"),
                    }
                }
                Arm::Files => {
                    let wants = Wants { files: true, ..options.wants };
                    let options = Options { wants, ..options.clone() };
                    product(&options, &mut bench, &mut round, at, &mut costs)?;
                }
                Arm::Latency => {
                    let wants = Wants { latency: true, ..options.wants };
                    let options = Options { wants, ..options.clone() };
                    product(&options, &mut bench, &mut round, at, &mut costs)?;
                }
                Arm::WhatIf => {
                    let wants = Wants { touches: true, ..options.wants };
                    let options = Options { wants, ..options.clone() };
                    product(&options, &mut bench, &mut round, at, &mut costs)?;
                }
                Arm::Blame => {
                    let wants = Wants { blame: true, bill: true, ..options.wants };
                    let options = Options { wants, ..options.clone() };
                    product(&options, &mut bench, &mut round, at, &mut costs)?;
                }
                Arm::All => {
                    let wants =
                        Wants { files: true, latency: true, around: true, buffers: true, ..options.wants };
                    let options = Options { wants, ..options.clone() };
                    product(&options, &mut bench, &mut round, at, &mut costs)?;
                }
            }
        }
        quiet &= calm(&others);
        if quiet {
            costs.rounds.push(round);
        } else {
            costs.disturbed += 1;
            // Nothing of ours is left by now: those who are here may stay.
            others = tracing_programs();
        }
        if costs.rounds.len() == rounds {
            return Ok(costs);
        }
        anyhow::ensure!(
            turn < 3 * rounds + 3,
            "other BPF programs come and go all the time: stop them, then try again"
        );
    }
    Ok(costs)
}

/// Another program that counts, until it is dropped.
struct Running(Child);

impl Running {
    /// Waits until it has attached what it attaches: one interval, so long that it does nothing else meanwhile.
    fn start(program: &Path) -> Result<Self> {
        let before = tracing_programs();
        let mut command = Command::new(program);
        command.args(["3600", "1"]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut running =
            Self(command.spawn().with_context(|| format!("cannot start {}", program.display()))?);
        let mut there = before.clone();
        loop {
            std::thread::sleep(Duration::from_secs(2));
            if let Some(status) = running.0.try_wait()? {
                anyhow::bail!("{} has ended: {status}", program.display());
            }
            let now = tracing_programs();
            if now != before && now == there {
                return Ok(running);
            }
            there = now;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn time(bench: &mut Bench, round: &mut Round, arm: usize, wanted: impl Fn(&Loop) -> bool) -> Result<()> {
    for (which, row) in LOOPS.iter().zip(round).filter(|(which, _)| wanted(which)) {
        if !bench.asked(which) {
            continue;
        }
        row[arm] = bench.time(which)?;
    }
    Ok(())
}

/// As [`time`], and looks whether the product counted what was read.
fn product(
    options: &Options,
    bench: &mut Bench,
    round: &mut Round,
    arm: usize,
    costs: &mut Costs,
) -> Result<()> {
    let mut session = said(Session::open(options))?;
    // So few that none is of the file, but not none: kernel programs ask.
    session.choose(1e-9);
    let before = session.sample()?;
    time(bench, round, arm, |l| !l.is_command())?;
    let after = session.sample()?;
    let total = after.total.since(&before.total);
    costs.pages_counted += [Counter::ReadHits, Counter::ReadAheadHits, Counter::ReadMisses]
        .into_iter()
        .map(|counter| total.get(counter))
        .sum::<u64>();
    costs.pages_read += LOOPS.iter().filter(|l| bench.asked(l)).map(Loop::reads).sum::<u64>();
    time(bench, round, arm, Loop::is_command)?;
    costs.lost += session.sample()?.lost.since(&before.lost).total();
    Ok(())
}

/// With the remedy, where there is one.
fn said<T>(opened: Result<T, StartError>) -> Result<T> {
    opened.map_err(|e| match e.remedy() {
        Some(remedy) => anyhow::anyhow!("{e}\nremedy: {remedy}"),
        None => anyhow::anyhow!("{e}"),
    })
}

/// The programs of this kind on the machine.
fn tracing_programs() -> BTreeSet<u32> {
    ProgInfoIter::default()
        .filter(|p| {
            matches!(
                p.ty,
                ProgramType::Tracing
                    | ProgramType::Kprobe
                    | ProgramType::Tracepoint
                    | ProgramType::RawTracepoint
            )
        })
        .map(|p| p.id)
        .collect()
}

/// Waits until our own programs are gone. False if others have come or gone.
fn calm(others: &BTreeSet<u32>) -> bool {
    (0..20).any(|_| {
        let calm = tracing_programs() == *others;
        if !calm {
            std::thread::sleep(Duration::from_millis(10));
        }
        calm
    })
}
