//! The monitor's side: starts a workload, samples around it, compares.

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
use cachetop::figures::Figure;
use cachetop::model::Interval;
use cachetop::model::Row;
use cachetop::plan::Certainty;
use cachetop::plan::Plan;
use cachetop::sample::Histograms;
use cachetop::sample::RowSample;
use cachetop::sample::Sample;
use cachetop::sample::Source;
use cachetop::session::Session;
use serde_json::Value;
use serde_json::json;

use crate::expect::Expect;
use crate::expect::Scope;
use crate::expect::Want;
use crate::expect::key;
use crate::fs::Fs;
use crate::scenarios::Scenario;
use crate::sys;

/// Nobody's: what leaves the cache is counted for the whole system, so that others may disturb it.
const SYSTEM: [Figure; 4] = [Figure::ReadAheadWasted, Figure::Evicted, Figure::Removed, Figure::Refaulted];

/// How one figure came out.
pub struct Compared {
    pub key: String,
    pub want: Want,
    pub got: Option<u64>,
    pub certainty: &'static str,
    pub ok: bool,
    /// A system-wide figure that is more than this workload's share.
    pub noise: bool,
}

/// How one scenario on one file system came out.
pub enum Verdict {
    /// Compared; `wrong` lists what is not about a single figure.
    Done { figures: Vec<Compared>, wrong: Vec<String>, notes: Vec<String> },
    /// The kernel has no such thing.
    NotHere(String),
}

impl Verdict {
    pub fn passed(&self) -> bool {
        match self {
            Verdict::Done { figures, wrong, .. } => wrong.is_empty() && figures.iter().all(|f| f.ok),
            Verdict::NotHere(_) => false,
        }
    }

    /// True if all that is wrong may be the doing of others.
    fn only_noise(&self) -> bool {
        match self {
            Verdict::Done { figures, wrong, .. } => {
                wrong.is_empty() && figures.iter().all(|f| f.ok || f.noise)
            }
            Verdict::NotHere(_) => false,
        }
    }

    /// For `--json`.
    pub fn to_json(&self) -> Value {
        match self {
            Verdict::NotHere(why) => json!({ "verdict": "n/a", "why": why }),
            Verdict::Done { figures, wrong, notes } => {
                let list: serde_json::Map<String, Value> = figures
                    .iter()
                    .map(|f| {
                        let want = json!([f.want.lo, f.want.hi]);
                        let v = json!({ "want": want, "got": f.got, "certainty": f.certainty, "ok": f.ok });
                        (f.key.clone(), v)
                    })
                    .collect();
                let verdict = if self.passed() { "ok" } else { "FAIL" };
                json!({ "verdict": verdict, "figures": list, "wrong": wrong, "notes": notes })
            }
        }
    }
}

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
                wrong.extend(calls_of(&expect, &after, &interval, pid));
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

/// Read calls by latency, row by row: those of the workload are all its own, and all rows are the system's.
fn calls_of(expect: &Expect, now: &Sample, interval: &Interval, pid: u32) -> Vec<String> {
    let Some(system) = &interval.histograms else { return Vec::new() };
    let sum = |rows: &mut dyn Iterator<Item = &RowSample>| {
        let mut out = Histograms::default();
        rows.filter_map(|r| r.latency.as_ref()).for_each(|h| out.add(h));
        out
    };
    let mut wrong = Vec::new();
    let all = sum(&mut now.rows.iter());
    if all != **system {
        wrong.push(format!("latency of all rows: {all:?}, and of the system: {system:?}"));
    }
    let own = sum(&mut now.rows.iter().filter(|r| r.tgid == pid));
    let got = (own.hit.iter().sum::<u64>(), own.miss.iter().sum::<u64>());
    if let Some(calls) = expect.calls.filter(|calls| *calls != got) {
        wrong.push(format!("its read calls: expected {calls:?} that (hit, missed), got {got:?}"));
    }
    wrong
}

/// Whether the plan says that reads of this file system are not seen.
fn unseen(plan: &Plan, fs: Fs) -> bool {
    match plan.certainty(Figure::Accesses) {
        Certainty::Bounded(why) => fs == Fs::Tmpfs && why.contains("reads of tmpfs are not seen"),
        _ => false,
    }
}

fn compare(expect: &Expect, interval: &Interval, pid: u32, fs: Fs, quiet: bool, plan: &Plan) -> Verdict {
    let mut wrong = Vec::new();
    let unseen = unseen(plan, fs);
    let rows: Vec<&Row> = match &expect.scope {
        Scope::Child => interval.rows.iter().filter(|r| r.who.pid == Some(pid)).collect(),
        Scope::Pids(pids) => {
            let rows: Vec<_> =
                interval.rows.iter().filter(|r| r.who.pid.is_some_and(|p| pids.contains(&p))).collect();
            if rows.len() != pids.len() && !unseen {
                wrong.push(format!("{} processes, {} rows", pids.len(), rows.len()));
            }
            rows
        }
        Scope::Comm(name, n) => {
            let rows: Vec<_> = interval
                .rows
                .iter()
                .filter(|r| r.who.comm.as_ref().is_some_and(|c| c.raw() == *name))
                .collect();
            if rows.len() != *n && !unseen {
                wrong.push(format!("{n} processes called {name}, {} rows", rows.len()));
            }
            rows
        }
    };
    let lost = interval.lost.by_reason.iter();
    let lost: Vec<_> = lost.filter(|(why, n)| *n > if *why == "order" { expect.churn } else { 0 }).collect();
    if !lost.is_empty() {
        wrong.push(format!("lost: {lost:?}"));
    }
    if let Some(h) = &interval.histograms {
        let sum = |buckets: &[u64]| buckets.iter().sum::<u64>();
        let got = (sum(&h.hit), sum(&h.miss));
        if expect.calls.is_some_and(|calls| quiet && calls != got && !unseen) {
            wrong.push(format!("read calls: expected {:?} that (hit, missed), got {got:?}", expect.calls));
        }
        if interval.total.get(Figure::Windows).is_some_and(|n| n != sum(&h.window)) {
            wrong.push(format!("windows by size: {:?}", h.window));
        }
    }
    // A process without a row did nothing, as far as that can be known.
    let sum = |f: Figure| match &rows[..] {
        _ if SYSTEM.contains(&f) => interval.total.get(f),
        [] => plan.knows(f).then_some(0),
        rows => rows.iter().map(|r| r.figures.get(f)).sum::<Option<u64>>(),
    };
    let figures: Vec<Compared> = Figure::ALL
        .iter()
        .filter_map(|f| Some(judge(*f, expect.want(*f)?, sum(*f), &plan.certainty(*f), quiet)))
        .collect();
    for (f, whole) in Figure::ALL.iter().map(|f| (*f, interval.total.get(*f))) {
        if sum(f).zip(whole).is_some_and(|(rows, whole)| rows > whole) {
            wrong.push(format!("total of {} is {whole:?}, the rows have more: {:?}", key(f), sum(f)));
        }
    }
    if figures.iter().all(|f| f.certainty == "unknown") {
        wrong.push("every figure is unknown: nothing was compared".into());
    }
    if let ([row], Some(h), Some(a)) = (&rows[..], sum(Figure::Hits), sum(Figure::Accesses)) {
        let ratio = row.figures.hit_ratio();
        if ratio != (a > 0).then(|| h as f64 / a as f64) {
            wrong.push(format!("hit ratio {ratio:?} of {h}/{a}"));
        }
    }
    Verdict::Done { figures, wrong, notes: expect.notes.clone() }
}

/// Exact: the truth. Bounded: the truth, or the stated bound if the plan gives the reason for it. Unknown: no
/// number at all.
fn judge(figure: Figure, want: &Want, got: Option<u64>, certainty: &Certainty, quiet: bool) -> Compared {
    let in_truth = |n: u64| (want.lo..=want.hi).contains(&n);
    let in_loose = |n: u64, reason: &str| {
        want.loose.iter().any(|(lo, hi, word)| reason.contains(word) && (*lo..=*hi).contains(&n))
    };
    let (certainty, ok) = match certainty {
        Certainty::Unknown(_) => ("unknown", got.is_none()),
        Certainty::Exact => ("exact", got.is_some_and(in_truth)),
        Certainty::Bounded(why) => ("bounded", got.is_some_and(|n| in_truth(n) || in_loose(n, why))),
    };
    // Others add to figures of the system; reclaim may take a page before the workload removes it.
    let fewer = figure == Figure::Removed;
    let noise =
        !quiet && SYSTEM.contains(&figure) && got.is_some_and(|n| n > want.hi || fewer && n < want.lo);
    // A workload that drops nothing says nothing about what others drop.
    let ok = ok || (noise && want.hi == 0);
    Compared { key: key(figure), want: want.clone(), got, certainty, ok, noise }
}

/// One line, or for a failure one line and what is wrong.
pub fn print(name: &str, verdict: &Verdict) {
    match verdict {
        Verdict::NotHere(why) => println!("n/a  {name:32} {why}"),
        Verdict::Done { figures, wrong, notes } => {
            let passed = verdict.passed();
            let mut words = Vec::new();
            for f in figures {
                if f.certainty == "unknown" || (f.ok && f.got == Some(0)) {
                    continue; // counted in the summary
                }
                words.push(word(f));
            }
            let known = figures.iter().filter(|f| f.certainty != "unknown").count();
            let verdict = if passed { "ok  " } else { "FAIL" };
            println!("{verdict} {name:32} [{known}/{}] {}", figures.len(), words.join("  "));
            if !passed {
                wrong.iter().chain(notes).for_each(|w| println!("       {w}"));
            }
        }
    }
}

fn word(f: &Compared) -> String {
    let want = &f.want;
    let got = f.got.map_or_else(|| "-".into(), |n| n.to_string());
    let mark = if f.certainty == "bounded" { "~" } else { "" };
    let truth = if want.lo == want.hi { want.lo.to_string() } else { format!("{}..{}", want.lo, want.hi) };
    if f.ok && f.noise {
        format!("{}={got}{mark} (others')", f.key)
    } else if f.ok && truth == got {
        format!("{}={got}{mark}", f.key)
    } else if f.ok {
        format!("{}={got}{mark} (in {truth})", f.key)
    } else {
        format!("<<{} expected {truth} got {got}{mark}>>", f.key)
    }
}
