//! The figures as a table for people and as JSON.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::json;

use crate::arms::Costs;
use crate::loops::LOOPS;
use crate::start::BUDGET_KIB;
use crate::start::BUDGET_MS;
use crate::start::Start;
use crate::stats::Sorted;

/// One loop, all rounds.
struct Row {
    title: &'static str,
    /// Per call: nothing, floor, product, product with files.
    medians: [f64; 4],
    /// In each round: floor and product over nothing, product over floor.
    ratios: [Sorted; 3],
}

fn rows(costs: &Costs, instruction: Option<f64>) -> Vec<Row> {
    let unit = instruction.unwrap_or(1.0);
    LOOPS
        .iter()
        .enumerate()
        .map(|(i, l)| {
            let median = |arm: usize| Sorted::new(costs.rounds.iter().map(|r| r[i][arm] / unit)).median();
            let ratio = |a: usize, b: usize| Sorted::new(costs.rounds.iter().map(|r| r[i][a] / r[i][b]));
            Row {
                title: l.title,
                medians: [median(0), median(1), median(2), median(3)],
                ratios: [ratio(1, 0), ratio(2, 0), ratio(2, 1)],
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
    writeln!(
        out,
        "memory            {:.1} MiB resident, {:.1} at most; {} the budget of {} MiB; {:.1} MiB of tables in the kernel",
        mib(start.rss_kib),
        mib(start.peak_kib),
        within(start.peak_kib <= BUDGET_KIB),
        BUDGET_KIB / 1024,
        mib(start.kernel_kib),
    )?;
    let unit = if instruction.is_some() { "instr." } else { "ns" };
    writeln!(
        out,
        "\n{:14}{:>10}{:>10}{:>10}{:>10}  {:>14}{:>14}{:>14}",
        format!("{unit} per call"),
        "nothing",
        "floor",
        "product",
        "files",
        "floor/nothing",
        "prod./nothing",
        "prod./floor"
    )?;
    for row in rows(costs, instruction) {
        let [nothing, floor, product, files] = row.medians;
        write!(out, "{:14}{nothing:>10.0}{floor:>10.0}{product:>10.0}{files:>10.0}  ", row.title)?;
        for ratio in &row.ratios {
            let spread = (ratio.quantile(0.75) - ratio.quantile(0.25)) / 2.0;
            write!(out, "{:>14}", format!("{:.3} ±{spread:.3}", ratio.median()))?;
        }
        writeln!(out)?;
    }
    writeln!(
        out,
        "medians of {} rounds, ratios within a round ± half the distance between quartiles; {} rounds left out \
         (other BPF programs came or went)",
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
            let [nothing, floor, product, files] = row.medians;
            let [floor_nothing, product_nothing, product_floor] = &row.ratios;
            json!({
                "call": row.title,
                "nothing": nothing,
                "floor": floor,
                "product": product,
                "product_files": files,
                "floor_to_nothing": spread(floor_nothing),
                "product_to_nothing": spread(product_nothing),
                "product_to_floor": spread(product_floor),
            })
        })
        .collect();
    json!({
        "kernel": costs.kernel,
        "brackets": format!("{:?}", costs.plan.brackets),
        "hooks": costs.plan.hooks.iter().map(|h| h.program).collect::<Vec<_>>(),
        "attached_ms": { "median": t.median(), "min": t.min(), "max": t.max() },
        "memory_kib": { "resident": start.rss_kib, "peak": start.peak_kib, "kernel": start.kernel_kib },
        "unit": if instruction.is_some() { "instructions" } else { "nanoseconds" },
        "rounds": costs.rounds.len(),
        "rounds_disturbed": costs.disturbed,
        "calls": calls,
        "pages_read": costs.pages_read,
        "pages_counted": costs.pages_counted,
        "lost": costs.lost,
    })
}
