//! The figures as a table for people and as JSON.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::json;

use crate::arms::ARMS;
use crate::arms::Costs;
use crate::arms::TITLES;
use crate::loops::LOOPS;
use crate::start::BUDGET_KIB;
use crate::start::BUDGET_MS;
use crate::start::Memory;
use crate::start::Start;
use crate::stats::Sorted;

/// One loop, all rounds.
struct Row {
    title: &'static str,
    /// Per call, by arm.
    medians: Vec<f64>,
    /// In each round: each arm over nothing.
    ratios: Vec<Sorted>,
    /// In each round: each arm less nothing, per call.
    over_nothing: Vec<Sorted>,
    /// In each round: each arm less the floor, per call.
    over_floor: Vec<Sorted>,
}

fn rows(costs: &Costs, instruction: Option<f64>) -> Vec<Row> {
    let unit = instruction.unwrap_or(1.0);
    let arms = || 0..ARMS.len();
    LOOPS
        .iter()
        .enumerate()
        .filter(|(i, _)| costs.rounds.iter().all(|r| !r[*i][0].is_nan()))
        .map(|(i, l)| {
            let of =
                |f: &dyn Fn(&[f64; ARMS.len()]) -> f64| Sorted::new(costs.rounds.iter().map(|r| f(&r[i])));
            Row {
                title: l.title,
                medians: arms().map(|arm| of(&|r| r[arm] / unit).median()).collect(),
                ratios: arms().map(|arm| of(&|r| r[arm] / r[0])).collect(),
                over_nothing: arms().map(|arm| of(&|r| (r[arm] - r[0]) / unit)).collect(),
                over_floor: arms().map(|arm| of(&|r| (r[arm] - r[1]) / unit)).collect(),
            }
        })
        .collect()
}

/// The table. `instruction`: nanoseconds that one takes, where instructions are what is shown.
pub fn text(start: &Start, costs: &Costs, instruction: Option<f64>) -> String {
    let mut out = String::new();
    let _ = lines(&mut out, start, costs, instruction);
    out
}

/// What was not measured is a dash.
fn whole(x: f64) -> String {
    if x.is_nan() { "-".into() } else { format!("{x:.0}") }
}

fn lines(out: &mut String, start: &Start, costs: &Costs, instruction: Option<f64>) -> std::fmt::Result {
    let t = &start.attached_ms;
    let within = |ok: bool| if ok { "within" } else { "OVER" };
    writeln!(out, "Kernel {}, {:?}, {} hooks", costs.kernel, costs.plan.brackets, costs.programs)?;
    write!(out, "exec to attached  median {:.0} ms, {:.0} to {:.0}", t.median(), t.min(), t.max())?;
    if instruction.is_some() {
        writeln!(out, " (of guest time)")?;
    } else {
        writeln!(out, "; {} the budget of {BUDGET_MS:.0} ms", within(t.median() <= BUDGET_MS))?;
    }
    for m in &start.memory {
        writeln!(
            out,
            "{:24} {:.1} MiB resident, {:.1} at most, while it loads ({} the budget of {} MiB); {:.1} MiB of tables in the kernel",
            m.command,
            mib(m.rss_kib),
            mib(m.peak_kib),
            within(m.peak_kib <= BUDGET_KIB),
            BUDGET_KIB / 1024,
            mib(m.kernel_kib),
        )?;
    }
    let unit = if instruction.is_some() { "instr." } else { "ns" };
    write!(out, "\n{:14}", format!("{unit} per call"))?;
    for title in TITLES {
        write!(out, "{title:>11}")?;
    }
    writeln!(out)?;
    let rows = rows(costs, instruction);
    for row in &rows {
        write!(out, "{:14}", row.title)?;
        for median in &row.medians {
            write!(out, "{:>11}", whole(*median))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "\nover nothing, {unit} per call")?;
    for row in &rows {
        write!(out, "{:14}", row.title)?;
        for over in &row.over_nothing {
            write!(out, "{:>11}", whole(over.median()))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "\nmore than nothing, in % (± half the distance between quartiles)")?;
    for row in &rows {
        write!(out, "{:14}", row.title)?;
        for (ratio, title) in row.ratios.iter().zip(TITLES).skip(1) {
            let spread = (ratio.quantile(0.75) - ratio.quantile(0.25)) * 50.0;
            let percent = (ratio.median() - 1.0) * 100.0;
            let text = if percent.is_nan() {
                "-".into()
            } else if instruction.is_some() {
                format!("{percent:+.2}")
            } else {
                format!("{percent:+.1} ±{spread:.1}")
            };
            write!(out, "  {title} {text:>6}")?;
        }
        writeln!(out)?;
    }
    writeln!(
        out,
        "\nmedians of {} rounds; {} rounds left out (other BPF programs came or went)",
        costs.rounds.len(),
        costs.disturbed
    )?;
    if let Some(ns) = instruction {
        writeln!(
            out,
            "an instruction takes {ns:.3} ns of guest time; a string instruction counts each turn as one"
        )?;
    }
    writeln!(
        out,
        "{} pages read under the product, {} counted system-wide, {} lost",
        costs.pages_read, costs.pages_counted, costs.lost
    )
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

pub fn json(start: &Start, costs: &Costs, instruction: Option<f64>) -> Value {
    let t = &start.attached_ms;
    let spread = |s: &Sorted| json!({ "median": s.median(), "q1": s.quantile(0.25), "q3": s.quantile(0.75) });
    let calls: Vec<Value> = rows(costs, instruction)
        .iter()
        .map(|row| {
            let by_arm = |value: &dyn Fn(usize) -> Value| -> Value {
                TITLES.iter().enumerate().map(|(arm, title)| ((*title).to_owned(), value(arm))).collect()
            };
            json!({
                "call": row.title,
                "median": by_arm(&|arm| json!(row.medians[arm])),
                "to_nothing": by_arm(&|arm| spread(&row.ratios[arm])),
                "over_nothing": by_arm(&|arm| spread(&row.over_nothing[arm])),
                "over_floor": by_arm(&|arm| spread(&row.over_floor[arm])),
            })
        })
        .collect();
    let memory = |m: &Memory| json!({ "command": m.command, "resident": m.rss_kib, "peak": m.peak_kib, "kernel": m.kernel_kib });
    json!({
        "kernel": costs.kernel,
        "brackets": format!("{:?}", costs.plan.brackets),
        "hooks": costs.plan.hooks.iter().map(|h| h.program).collect::<Vec<_>>(),
        "attached_ms": { "median": t.median(), "min": t.min(), "max": t.max() },
        "memory_kib": start.memory.iter().map(memory).collect::<Vec<_>>(),
        "unit": if instruction.is_some() { "instructions" } else { "nanoseconds" },
        "rounds": costs.rounds.len(),
        "rounds_disturbed": costs.disturbed,
        "calls": calls,
        "pages_read": costs.pages_read,
        "pages_counted": costs.pages_counted,
        "lost": costs.lost,
    })
}
