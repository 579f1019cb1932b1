//! The figures as tables for people.

use std::fmt::Write as _;

use crate::measure::Loss;
use crate::measure::Results;
use crate::measure::Row;

pub fn text(results: &Results) -> String {
    let mut out = String::new();
    let _ = lines(&mut out, results);
    out
}

fn lines(out: &mut String, results: &Results) -> std::fmt::Result {
    writeln!(out, "Kernel {}, preemption {}", results.kernel, results.preemption)?;
    let mut event = "";
    for row in &results.ways {
        if row.event != event {
            event = row.event;
            write!(out, "\n{:31}", event)?;
            if results.costs {
                write!(out, "{:>9}{:>8}", "added", "ratio")?;
            }
            if results.losses {
                write!(out, "  {:38}lost, 64 sleeping readers", "lost, 8 readers on 2 CPUs")?;
            }
            writeln!(out)?;
        }
        write!(out, "{:31}", row.way)?;
        match &row.refused {
            Some(why) => writeln!(out, "  refused: {why}")?,
            None => figures(out, row)?,
        }
    }
    if results.costs {
        writeln!(
            out,
            "\nadded: {} per event; ratio: of the system call that makes it, to nothing attached",
            results.unit
        )?;
    }
    if results.losses {
        writeln!(out, "\nlost: at entry / at return, and where the kernel says so")?;
    }
    if !results.steps.is_empty() {
        writeln!(out, "\n{:35}{:>9}", "a step costs", results.unit)?;
    }
    for step in &results.steps {
        write!(out, "{:35}", step.step)?;
        match (&step.refused, step.added) {
            (Some(why), _) => writeln!(out, "  refused: {why}")?,
            (None, Some(added)) => writeln!(out, "{added:>9.0}")?,
            (None, None) => writeln!(out)?,
        }
    }
    Ok(())
}

fn figures(out: &mut String, row: &Row) -> std::fmt::Result {
    let mut line = String::new();
    if let (Some(nothing), Some(added)) = (row.nothing, row.added) {
        write!(line, "{added:>9.0}{:>8.3}", (nothing + added) / nothing)?;
    }
    for loss in [&row.contended, &row.sleeping].into_iter().flatten() {
        write!(line, "  {:36}", lost(loss))?;
    }
    if row.contended.is_none() && line.is_empty() {
        line.push_str("  as without the cookie");
    }
    writeln!(out, "{}", line.trim_end())
}

/// Shares by end, and where the kernel admits the loss.
fn lost(loss: &Loss) -> String {
    let shares: Vec<String> = loss.seen.iter().flatten().map(|seen| share(loss.events, *seen)).collect();
    let missing: u64 = loss.seen.iter().flatten().map(|seen| loss.events.saturating_sub(*seen)).sum();
    let places: Vec<&str> = loss.admitted.iter().map(|(place, _)| *place).collect();
    let most = loss.admitted.iter().map(|(_, n)| *n).max().unwrap_or(0);
    let word = match missing {
        0 if most == 0 => String::new(),
        0 => format!(", but {most} in {}", places.join(", ")),
        _ if most == 0 => ", silent".to_owned(),
        // Others may have had losses, too.
        _ if most >= missing => format!(", {}", places.join(", ")),
        _ => format!(", {most} of {missing} in {}", places.join(", ")),
    };
    shares.join(" / ") + &word
}

fn share(events: u64, seen: u64) -> String {
    if seen >= events {
        // Another of our pages may have come into the cache.
        return if seen == events { "0".to_owned() } else { format!("0, {} too many", seen - events) };
    }
    format!("{:.2} %", 100.0 * (events as f64 - seen as f64) / events as f64)
}
