//! The plan in words.

use std::fmt::Write as _;

use super::Attach;
use super::Brackets;
use super::Certainty;
use super::Plan;
use crate::facts::Facts;
use crate::facts::Preemption;
use crate::figures::Figure;

fn attach(at: &Attach) -> String {
    match at {
        Attach::Trampoline(f) => format!("fentry/fexit {f}"),
        Attach::Multi(names, false) => format!("kprobe.multi {}", names.join(", ")),
        Attach::Multi(names, true) => format!("kretprobe.multi {}", names.join(", ")),
        Attach::TracepointBtf(n) => format!("BTF tracepoint {n}"),
        Attach::Tracepoint(c, n) => format!("tracepoint {c}:{n}"),
        Attach::Tick => "run at each tick".into(),
    }
}

/// Answers of the kernel, hooks with their reason, and what each figure is worth.
pub(super) fn explain(plan: &Plan, facts: &Facts) -> String {
    let mut out = String::new();
    let yes = |r: &Result<(), String>| r.as_ref().map_or_else(|e| format!("no ({e})"), |()| "yes".into());
    let preemption = match facts.preemption {
        Preemption::Voluntary => "none or voluntary",
        Preemption::Preemptible => "full or lazy",
        Preemption::Unknown => "unknown, taken as full",
    };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "Kernel {}", facts.release);
    let _ = writeln!(out, "  preemption           {preemption} ({})", facts.preemption_source);
    let _ = writeln!(out, "  functions attach     {}", yes(&facts.trampoline));
    let _ = writeln!(out, "  kprobe.multi attach  {}", yes(&facts.kprobe_multi));
    let _ = writeln!(
        out,
        "  tracefs              {}",
        facts.tracefs.as_ref().map_or_else(|e| format!("no ({e})"), Clone::clone)
    );
    for (program, why) in &facts.refused {
        let _ = writeln!(out, "  refused to attach    {program}: {why}");
    }
    let how = match plan.brackets {
        Brackets::Trampolines => "read calls are bracketed by fentry and fexit",
        Brackets::ReturnProbes => "read calls are bracketed by kprobe.multi and kretprobe.multi",
        Brackets::LossyTrampolines => {
            "read calls are bracketed by fentry and fexit, which can lose events here"
        }
        Brackets::Tracepoints => "read calls are put together from tracepoints: no function can be attached",
    };
    let _ = writeln!(out, "\nEngine {}: {how}\n", plan.engine.name());
    for hook in &plan.hooks {
        let _ = writeln!(out, "  {:<28} {}\n  {:<28} {}", hook.event, attach(&hook.attach), "", hook.why);
    }
    let _ = writeln!(out, "\nFigures\n");
    for figure in Figure::ALL {
        let name = format!("{}.{}", figure.group(), figure.key());
        let (worth, why) = match plan.certainty(*figure) {
            Certainty::Exact => ("exact", String::new()),
            Certainty::Bounded(why) => ("bounded", why),
            Certainty::Unknown(why) => ("unknown", why),
        };
        let _ = writeln!(out, "  {name:<22} {worth:<8} {why}");
    }
    let _ = writeln!(
        out,
        "\nAny LOST above zero means that figures of that interval are not exact.\n\
         Touches of a mapped page after its first fault are invisible to any tool."
    );
    out
}
