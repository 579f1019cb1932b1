//! The classic engine, alone and beside the exact one: its four counts against what workloads are known to do.
//!
//! What is compared are the counts, not the hits and misses made of them: those are right only where bcc's
//! subtraction is.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use anyhow::Context;
use anyhow::Result;
use anyhow::ensure;
use cachetop::classic::Counter;
use cachetop::classic::Figures;
use cachetop::engines::Engines;
use cachetop::figures::Figure;
use cachetop::model::Interval;
use cachetop::pivot;
use cachetop::plan::Certainty;
use cachetop::plan::Engine;
use cachetop::sample::Source;

use serde_json::Value;

use crate::Args;
use crate::Tally;
use crate::child::Ctx;
use crate::expect::Expect;
use crate::fs::Fs;
use crate::parent;
use crate::parent::Setting;
use crate::parent::Watched;
use crate::scenarios::PAGE;
use crate::scenarios::Scenario;
use crate::verdict;
use crate::verdict::Compared;
use crate::verdict::Verdict;

/// Pages of the file, the last one short.
const PAGES: u64 = 1238;
const LEN: u64 = (PAGES - 1) * PAGE + 777;
/// Pages of metadata that a file system may touch beside the file: an inode's, a bitmap's, a directory's.
const FEW: u64 = 64;
const METADATA: &str = "the file system's metadata are counted, too";

const BLOCK: &[Fs] = &Fs::BLOCK;

/// The workloads, in order; what is called `both_…` runs under both engines.
pub fn all() -> impl Iterator<Item = Scenario> {
    [
        Scenario {
            name: "classic_cold",
            on: BLOCK,
            about: "classic counts: a cold file, 64 KiB calls",
            run: cold,
        },
        Scenario { name: "classic_warm", on: BLOCK, about: "classic counts: the same, warm", run: warm },
        Scenario { name: "classic_write", on: BLOCK, about: "classic counts: a new file", run: write },
        Scenario {
            name: "classic_overwrite",
            on: BLOCK,
            about: "classic counts: over it again",
            run: overwrite,
        },
        Scenario { name: "both_cold", on: BLOCK, about: "both engines at once: a cold file", run: cold },
    ]
    .into_iter()
}

/// Before folios, read-ahead adds a page past the end of a file.
fn phantom() -> u64 {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    u64::from(release.starts_with("5.10."))
}

fn read_all(file: &File) -> Result<()> {
    let mut buf = vec![0u8; 64 << 10];
    let mut pos = 0;
    while pos < LEN {
        pos += file.read_at(&mut buf, pos)? as u64;
    }
    Ok(())
}

/// Sequential calls mark each folio once, whatever its size.
fn marked(expect: &mut Expect) {
    expect.classic(Counter::Accessed, PAGES, PAGES + FEW, METADATA);
    expect.classic(Counter::Dirtied, 0, FEW, "the time of access is written down");
    expect.classic(Counter::BufferDirtied, 0, FEW, "the time of access is written down");
}

fn cold(c: &mut Ctx) -> Result<Expect> {
    c.file("f", LEN)?;
    let file = c.open("f")?;
    c.begin();
    read_all(&file)?;
    let mut expect = Expect::nothing();
    marked(&mut expect);
    let more = phantom() + if c.fs == Fs::Btrfs { FEW } else { 0 };
    expect.classic(Counter::Added, PAGES, PAGES + more, "a page past the end on 5.10; btrfs's trees");
    expect.exact(Figure::Accesses, PAGES);
    Ok(expect)
}

fn warm(c: &mut Ctx) -> Result<Expect> {
    c.file("f", LEN)?;
    read_all(&c.open("f")?)?;
    let file = c.open("f")?;
    c.begin();
    read_all(&file)?;
    let mut expect = Expect::nothing();
    marked(&mut expect);
    expect.classic(Counter::Added, 0, 0, "");
    expect.exact(Figure::Accesses, PAGES);
    Ok(expect)
}

fn write_all(file: &File) -> Result<()> {
    let buf = vec![0xa5u8; 64 << 10];
    let mut pos = 0;
    while pos < LEN {
        let n = (LEN - pos).min(buf.len() as u64) as usize;
        pos += file.write_at(&buf[..n], pos)? as u64;
    }
    Ok(())
}

/// Buffers: each page of ext4 has one; xfs and btrfs have none.
fn written(c: &Ctx, expect: &mut Expect) {
    expect.classic(Counter::Dirtied, PAGES, PAGES + FEW, METADATA);
    let buffers = if c.fs == Fs::Ext4 { PAGES } else { 0 };
    expect.classic(Counter::BufferDirtied, buffers, buffers + FEW, METADATA);
}

fn write(c: &mut Ctx) -> Result<Expect> {
    let file = File::options().write(true).create_new(true).open(c.dir.join("f"))?;
    c.begin();
    write_all(&file)?;
    let mut expect = Expect::nothing();
    written(c, &mut expect);
    expect.classic(Counter::Added, PAGES, PAGES + FEW, METADATA);
    Ok(expect)
}

fn overwrite(c: &mut Ctx) -> Result<Expect> {
    let file = c.warm_file("f", LEN)?;
    c.begin();
    write_all(&file)?;
    let mut expect = Expect::nothing();
    written(c, &mut expect);
    expect.classic(Counter::Added, 0, if c.fs == Fs::Btrfs { FEW } else { 0 }, METADATA);
    Ok(expect)
}

/// The program of this test's own build, where it is; a guest does not have it.
const CACHESTAT: &str = env!("CARGO_BIN_EXE_cachestat");

fn cachestat(options: &str) -> Result<String> {
    let out = Command::new(CACHESTAT).args(options.split(' ')).stdin(Stdio::null()).output()?;
    let err = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "cachestat {options}: {} {err}", out.status);
    Ok(String::from_utf8(out.stdout)?)
}

/// The command, as a person runs it.
fn command() -> Result<()> {
    for line in cachestat("--engine both --json --by process 0.2 2")?.lines() {
        let v: Value = serde_json::from_str(line)?;
        ensure!(
            v["engine"] == "both" && v["read"]["accesses"].is_u64() && v["classic"]["added"].is_u64(),
            "{v}"
        );
        for row in v["rows"].as_array().context("rows")? {
            ensure!(row["read"]["accesses"].is_u64() && row["classic"]["added"].is_u64(), "{row}");
        }
    }
    let v: Value = serde_json::from_str(&cachestat("--engine classic --json 0.2 1")?)?;
    ensure!(
        v["engine"] == "classic" && v["read"]["accesses"].is_null() && v["classic"]["added"].is_u64(),
        "{v}"
    );
    ensure!(v["write"]["buffer_dirtied"] == v["classic"]["buffer_dirtied"], "{v}");
    let text = cachestat("--engine both -T 0.1 2")?;
    ensure!(text.lines().count() == 4 && text.contains("-exact-") && text.contains("-classic-"), "{text}");
    ensure!(text.lines().all(|l| l.len() <= 80), "{text}");
    let bcc = cachestat("--engine classic --bcc 0.1 1")?;
    ensure!(bcc.starts_with("    HITS   MISSES  DIRTIES HITRATIO   BUFFERS_MB  CACHED_MB\n"), "{bcc}");
    let plan = cachestat("--engine both --explain")?;
    for part in ["Engine exact", "Engine classic", "classic.added", "Why the two engines differ"] {
        ensure!(plan.contains(part), "{part}: {plan}");
    }
    Ok(())
}

/// Without a choice: exact where that can be, else classic, and then a notice says so.
fn without_a_choice(args: &Args) -> Result<()> {
    let exact = Engines::open(&args.options(), Some(Engine::Exact));
    let engines = Engines::open(&args.options(), None)?;
    let expected = if exact.is_ok() { Engine::Exact } else { Engine::Classic };
    ensure!(engines.engine() == expected, "{}", engines.engine().name());
    ensure!(engines.notice().is_some() == exact.is_err(), "{:?}", engines.notice());
    println!("     without a choice: {} {:?}", engines.engine().name(), engines.notice());
    Ok(())
}

/// A check without a workload.
fn check(name: &str, args: &Args, tally: &mut Tally, run: impl FnOnce() -> Result<()>) {
    if !args.only.is_empty() && !args.only.iter().any(|only| name.contains(only)) {
        return;
    }
    let wrong = run().err().map(|e| format!("{e:#}")).into_iter().collect();
    let verdict = Verdict::Done { figures: vec![], wrong, notes: vec![] };
    verdict::print(name, &verdict);
    crate::count(tally, name.into(), &verdict);
}

/// Runs all that is wanted, under the classic engine and then under both.
pub fn run(args: &Args, dirs: &[(Fs, PathBuf)], tally: &mut Tally) -> Result<()> {
    check("classic_or_exact", args, tally, || without_a_choice(args));
    if Path::new(CACHESTAT).exists() {
        check("both_command", args, tally, command);
    }
    // Both at once want what each of them needs.
    let exact = Engines::open(&args.options(), Some(Engine::Exact)).is_ok();
    let with = Setting { seed: args.seed, quiet: !args.busy, files: false };
    for (engine, prefix) in [(Engine::Classic, "classic_"), (Engine::Both, "both_")] {
        let mut wanted = Vec::new();
        for s in all().filter(|s| s.name.starts_with(prefix)) {
            wanted.extend(dirs.iter().filter(|(fs, _)| crate::wanted(args, &s, *fs)).map(|d| (s, d)));
        }
        if wanted.is_empty() || (engine == Engine::Both && !exact) {
            continue;
        }
        let mut engines = Engines::open(&args.options(), Some(engine))?;
        println!("engine {}", engine.name());
        for hook in &engines.classic_plan().context("no classic plan")?.hooks {
            println!("hook: {} at {} ({:?})", hook.program, hook.target, hook.how);
        }
        for (scenario, (fs, dir)) in wanted {
            let name = format!("{}/{}", scenario.name, fs.name());
            let dir = dir.join(format!("truth-{}-{}", std::process::id(), scenario.name));
            std::fs::create_dir(&dir)?;
            let verdict = one(&mut engines, &scenario, *fs, &dir, &with).unwrap_or_else(|e| Verdict::Done {
                figures: vec![],
                wrong: vec![format!("{e:#}")],
                notes: vec![],
            });
            std::fs::remove_dir_all(&dir)?;
            verdict::print(&name, &verdict);
            crate::count(tally, name, &verdict);
        }
    }
    Ok(())
}

fn one(engines: &mut Engines, scenario: &Scenario, fs: Fs, dir: &Path, with: &Setting) -> Result<Verdict> {
    let (pid, expect, before, after) = match parent::watch(engines, scenario, fs, dir, with)? {
        Watched::NotHere(why) => return Ok(Verdict::NotHere(why)),
        Watched::Done { pid, expect, before, after, .. } => (pid, expect, before, after),
    };
    let interval = pivot::interval(&before, &after, engines.plan());
    let plan = engines.classic_plan().context("no classic plan")?;
    let mut wrong = Vec::new();
    if interval.lost.total() > 0 {
        wrong.push(format!("lost: {:?}", interval.lost.by_reason));
    }
    let row = interval.rows.iter().find(|r| r.who.pid == Some(pid));
    let whole = interval.classic.context("no classic figures")?;
    let got = row.and_then(|r| r.classic).unwrap_or(whole.nothing());
    let mut figures: Vec<Compared> = Counter::EVENTS
        .iter()
        .zip(&plan.counts)
        .filter_map(|(c, worth)| {
            let (want, n) = (expect.want_classic(*c)?.clone(), got.get(*c));
            let inside = n.is_some_and(|n| (want.lo..=want.hi).contains(&n));
            let (certainty, ok) = match worth {
                Certainty::Exact => ("exact", inside),
                Certainty::Bounded(_) => ("bounded", inside),
                Certainty::Unknown(_) => ("unknown", n.is_none()),
            };
            Some(Compared { key: format!("classic.{}", c.key()), want, got: n, certainty, ok, noise: false })
        })
        .collect();
    wrong.extend(contradictions(&got, &whole));
    if engines.engine() == Engine::Both {
        figures.extend(exact_side(&expect, &interval, pid));
    } else if interval.total.get(Figure::Accesses).is_some() {
        wrong.push("the classic engine alone gives accesses of the exact one".into());
    }
    Ok(Verdict::Done { figures, wrong, notes: expect.notes.clone() })
}

/// What cannot be, whatever the workload.
fn contradictions(row: &Figures, whole: &Figures) -> Vec<String> {
    let mut wrong = Vec::new();
    for c in Counter::EVENTS {
        if row.get(c).zip(whole.get(c)).is_some_and(|(row, whole)| row > whole) {
            wrong.push(format!("the row has more {} than the whole", c.key()));
        }
    }
    let known = |c: Counter| row.get(c).map(|n| n as i64);
    let misses = known(Counter::Added).zip(known(Counter::Dirtied)).map(|(a, d)| a - d);
    let total = known(Counter::Accessed).zip(known(Counter::BufferDirtied)).map(|(a, b)| a - b);
    let hits = total.zip(misses).map(|(t, m)| t - m);
    if (row.misses(), row.hits()) != (misses, hits) {
        wrong.push(format!("the arithmetic: {row:?}"));
    }
    wrong
}

/// Beside the classic engine the exact one counts what it does alone.
fn exact_side(expect: &Expect, interval: &Interval, pid: u32) -> Option<Compared> {
    let got = interval.rows.iter().find(|r| r.who.pid == Some(pid))?.figures.get(Figure::Accesses);
    let want = expect.want(Figure::Accesses)?.clone();
    let ok = got.is_some_and(|n| (want.lo..=want.hi).contains(&n));
    Some(Compared { key: "read.accesses".into(), want, got, certainty: "exact", ok, noise: false })
}
