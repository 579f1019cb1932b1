//! What was counted beside what is true.

use cachetop::figures::Figure;
use cachetop::model::Interval;
use cachetop::model::Row;
use cachetop::plan::Certainty;
use cachetop::plan::Plan;
use cachetop::sample::Histograms;
use cachetop::sample::RowSample;
use cachetop::sample::Sample;
use serde_json::Value;
use serde_json::json;

use crate::expect::Expect;
use crate::expect::Scope;
use crate::expect::Want;
use crate::expect::key;
use crate::fs::Fs;

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
    pub fn only_noise(&self) -> bool {
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

/// Read calls by latency, row by row: those of the workload are all its own, and all rows are the system's.
pub fn wrong_calls(expect: &Expect, now: &Sample, interval: &Interval, pid: u32) -> Vec<String> {
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
pub fn unseen(plan: &Plan, fs: Fs) -> bool {
    match plan.certainty(Figure::Accesses) {
        Certainty::Bounded(why) => fs == Fs::Tmpfs && why.contains("reads of tmpfs are not seen"),
        _ => false,
    }
}

pub fn compare(expect: &Expect, interval: &Interval, pid: u32, fs: Fs, quiet: bool, plan: &Plan) -> Verdict {
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
