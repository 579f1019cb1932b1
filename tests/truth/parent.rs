//! The monitor's side: starts a workload and samples around it.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use cachetop::sample::Sample;
use cachetop::sample::Source;
use cachetop::session::Session;
use serde_json::Value;

use crate::expect::Expect;
use crate::expect::Scope;
use crate::fs::Fs;
use crate::scenarios::Scenario;
use crate::sys;
use crate::verdict::Verdict;
use crate::verdict::compare;
use crate::verdict::unseen;
use crate::verdict::wrong_calls;

/// Kills and reaps the workload however this ends.
struct Workload(Child);

impl Drop for Workload {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a run is made with.
pub struct Setting {
    pub seed: u64,
    /// Nothing else runs on this machine: figures of the whole system must be equal, too.
    pub quiet: bool,
    /// Files are counted in every scenario.
    pub files: bool,
}

/// How the report of a workload that failed begins.
const PREMISE: &str = "the workload failed";

/// Runs one scenario in `dir`, which is made and removed. On a busy machine a run that others disturbed is
/// repeated a few times.
pub fn run(
    session: &mut Session,
    scenario: &Scenario,
    fs: Fs,
    dir: &Path,
    with: &Setting,
) -> Result<Verdict> {
    let mut tries = if with.quiet { 1 } else { 5 };
    let mut premises = 2;
    loop {
        std::fs::create_dir(dir)?;
        let result = run_in(session, scenario, fs, dir, with);
        let inner = dir.join("mnt");
        if inner.exists() {
            sys::unmount(&inner); // left behind only by a workload that died
        }
        std::fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
        tries -= 1;
        match result {
            Ok(verdict) if !verdict.passed() && verdict.only_noise() && tries > 0 => {}
            // The workload's own checks say that it did not do what the scenario is about: no figure was compared.
            Err(e) if premises > 0 && e.to_string().starts_with(PREMISE) => {
                premises -= 1;
                println!("     {}/{}: {e}; once more", scenario.name, fs.name());
            }
            other => return other,
        }
    }
}

fn run_in(session: &mut Session, scenario: &Scenario, fs: Fs, dir: &Path, with: &Setting) -> Result<Verdict> {
    match watch(session, scenario, fs, dir, with)? {
        Watched::NotHere(why) => Ok(Verdict::NotHere(why)),
        Watched::Done { pid, expect, before, after, names } => {
            let plan = session.plan();
            let interval = cachetop::pivot::interval(&before, &after, plan);
            let mut verdict = compare(&expect, &interval, pid, fs, with.quiet, plan);
            if let (Verdict::Done { wrong, .. }, false) = (&mut verdict, unseen(plan, fs)) {
                wrong.extend(wrong_calls(&expect, &after, &interval, pid));
                let pids = match &expect.scope {
                    Scope::Child => vec![pid],
                    Scope::Pids(pids) => pids.clone(),
                    Scope::Comm(..) => Vec::new(),
                };
                if with.files || scenario.name.starts_with("pivot-") {
                    wrong.extend(crate::pivots::sums(&pids, pids != [pid], &after));
                }
                wrong.extend(crate::pivots::check(&expect.rows, *names, &before, &after, plan)?);
            }
            Ok(verdict)
        }
    }
}

/// What came of a workload.
pub enum Watched {
    /// The kernel has no such thing.
    NotHere(String),
    /// It ran as process `pid` between two samples, and this is what it should have been counted as.
    Done {
        pid: u32,
        expect: Box<Expect>,
        before: Box<Sample>,
        after: Box<Sample>,
        names: Box<cachetop::names::System>,
    },
}

/// Runs a workload between two samples.
pub fn watch(
    source: &mut dyn Source,
    scenario: &Scenario,
    fs: Fs,
    dir: &Path,
    with: &Setting,
) -> Result<Watched> {
    let mut child = Command::new("/proc/self/exe")
        .args(["--child", scenario.name, fs.name()])
        .arg(dir)
        .arg(with.seed.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let pid = child.id();
    let mut to = child.stdin.take().context("stdin")?;
    let from = child.stdout.take().context("stdout")?;
    let mut workload = Workload(child);
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    let next = || lines.recv_timeout(Duration::from_secs(240)).context("the workload died or hangs");

    let mut line = next()?;
    let mut samples = None;
    if line == "ready" {
        let before = source.sample()?;
        writeln!(to, "go")?;
        line = next()?;
        let after = source.sample()?;
        let names = crate::pivots::names(&after);
        samples = Some((before, after, names));
    }
    writeln!(to, "end")?;
    workload.0.wait()?;
    let answer: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
    if let Some(why) = answer.get("na").and_then(Value::as_str) {
        return Ok(Watched::NotHere(why.into()));
    }
    if let Some(why) = answer.get("error").and_then(Value::as_str) {
        bail!("{PREMISE}: {why}");
    }
    let expect = Box::new(Expect::from_json(&answer).context("the workload's answer")?);
    let (before, after, names) = samples.context("the workload never began")?;
    Ok(Watched::Done {
        pid,
        expect,
        before: Box::new(before),
        after: Box::new(after),
        names: Box::new(names),
    })
}
