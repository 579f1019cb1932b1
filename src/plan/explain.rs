//! The plan in words.

use std::fmt::Write as _;

use super::Attach;
use super::Brackets;
use super::Certainty;
use super::Engine;
use super::Plan;
use super::Wants;
use super::follow;
use crate::facts::Facts;
use crate::facts::Preemption;
use crate::figures::Figure;

fn attach(at: &Attach) -> String {
    match at {
        Attach::Trampoline(f) => format!("fentry/fexit {f}"),
        Attach::Multi(names, false) => format!("kprobe.multi {}", names.join(", ")),
        Attach::Multi(names, true) => format!("kretprobe.multi {}", names.join(", ")),
        Attach::Kprobe(name) => format!("kprobe {name}"),
        Attach::Session(names) => format!("kprobe.session {}", names.join(", ")),
        Attach::TracepointBtf(n) => format!("BTF tracepoint {n}"),
        Attach::Tracepoint(c, n) => format!("tracepoint {c}:{n}"),
        Attach::Tick => "run at each tick".into(),
    }
}

/// What the kernel answered.
pub(crate) fn kernel(facts: &Facts) -> String {
    let mut out = String::new();
    let yes = |r: &Result<(), String>| r.as_ref().map_or_else(|e| format!("no ({e})"), |()| "yes".into());
    let preemption = match facts.preemption {
        Preemption::Voluntary => "none or voluntary",
        Preemption::Preemptible if facts.realtime => "PREEMPT_RT",
        Preemption::Preemptible => "full or lazy",
        Preemption::Unknown => "unknown, taken as full",
    };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "Kernel {}", facts.release);
    let _ = writeln!(out, "  preemption           {preemption} ({})", facts.preemption_source);
    if !facts.voluntary() {
        let _ = writeln!(
            out,
            "                       a program that is preempted makes others on its processor be skipped; in lazy mode what\n\
             \x20                      preempts is the high-resolution tick, from 7.1 on (HRTICK in debugfs' sched/features)"
        );
    }
    let _ = writeln!(out, "  functions attach     {}", yes(&facts.trampoline));
    let _ = writeln!(out, "  kprobe.multi attach  {}", yes(&facts.kprobe_multi));
    let _ = writeln!(out, "  kprobe.session       {}", yes(&facts.kprobe_session));
    let _ = writeln!(
        out,
        "  tracefs              {}",
        facts.tracefs.as_ref().map_or_else(|e| format!("no ({e})"), Clone::clone)
    );
    for (program, why) in &facts.refused {
        let _ = writeln!(out, "  refused to attach    {program}: {why}");
    }
    out
}

/// Answers of the kernel, hooks with their reason, and what each figure is worth.
pub(super) fn explain(plan: &Plan, facts: &Facts) -> String {
    let mut out = kernel(facts);
    let how = match plan.brackets {
        Brackets::Trampolines => "read calls are counted by fexit",
        Brackets::Sessions => "read calls are bracketed by kprobe.session",
        Brackets::LossyTrampolines => "read calls are counted by fexit, which can lose events here",
        Brackets::Tracepoints => "read calls are put together from tracepoints: no function can be attached",
        Brackets::Unused => "it is not in use",
    };
    let _ = writeln!(out, "\nEngine {}: {how}\n", Engine::Exact.name());
    for hook in &plan.hooks {
        let _ = writeln!(
            out,
            "  {:<28} {}\n  {:<28} {}",
            hook.event.text(),
            attach(&hook.attach),
            "",
            hook.why.text()
        );
    }
    let _ = writeln!(out, "\nFigures\n");
    // Reasons are long and shared: each is printed once, below the figures that it is about.
    let mut groups: Vec<(Certainty, Vec<String>)> = Vec::new();
    for figure in Figure::ALL {
        let name = figure.name().to_owned();
        let worth = plan.certainty(*figure);
        match groups.iter_mut().find(|(w, _)| *w == worth) {
            Some((_, names)) => names.push(name),
            None => groups.push((worth, vec![name])),
        }
    }
    for (worth, names) in &groups {
        let (worth, why) = match worth {
            Certainty::Exact => ("exact", ""),
            Certainty::Bounded(why) => ("bounded", why.as_str()),
            Certainty::Unknown(why) => ("unknown", why.as_str()),
        };
        let _ = writeln!(out, "  {worth}");
        wrapped(&mut out, &names.join(", "));
        if !why.is_empty() {
            wrapped(&mut out, &format!("because: {why}"));
        }
    }
    out.push_str(&of_a_command(facts));
    let _ = writeln!(
        out,
        "\n{}\
         Touches of a mapped page after its first fault are invisible to any tool.",
        crate::loss::explained()
    );
    out
}

/// What the report of a command has beside figures, whoever asks.
fn of_a_command(facts: &Facts) -> String {
    let mut out = String::new();
    let Ok(plan) = Plan::new(facts, Wants { follow: true, ..Wants::default() }) else { return out };
    let _ = writeln!(out, "\nThe report of a command (-- COMMAND) has beside these\n");
    for (key, name, why) in follow::beside(&plan) {
        let _ = writeln!(out, "  {}", if why.is_some() { "unknown" } else { "known" });
        wrapped(&mut out, &format!("{name} ({key})"));
        if let Some(why) = why {
            wrapped(&mut out, &format!("because: {why}"));
        }
    }
    out
}

/// Adds a paragraph of at most 79 columns, indented.
pub(crate) fn wrapped(out: &mut String, text: &str) {
    let mut line = String::from("   ");
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > 79 {
            let _ = writeln!(out, "{line}");
            line = "   ".into();
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(out, "{line}");
}
