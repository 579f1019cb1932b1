//! The plan in words, and as a value: its hooks and figures are those of [`Told`] in both.

use std::fmt::Write as _;

use serde::Serialize;

use super::Attach;
use super::Brackets;
use super::Certainty;
use super::Engine;
use super::Plan;
use super::Wants;
use super::Why;
use super::follow;
use super::worth;
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

/// What the kernel answered to one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Whether it can.
    pub able: bool,
    /// Its refusal, where it cannot.
    pub because: Option<String>,
}

impl<T> From<&Result<T, String>> for Answer {
    fn from(answer: &Result<T, String>) -> Self {
        Self { able: answer.is_ok(), because: answer.as_ref().err().cloned() }
    }
}

/// What the kernel answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// Whether what runs in the kernel may be preempted there, so that hooks lose events. `None`: not known, and taken as if.
    pub preemptible: Option<bool>,
    /// Where that was read.
    pub preemption_source: String,
    /// Whether fentry and fexit attach.
    pub functions: Answer,
    /// Whether kprobe.multi attaches.
    pub kprobe_multi: Answer,
    /// Whether kprobe.session attaches.
    pub kprobe_session: Answer,
    /// Whether there is a place to read of classic tracepoints.
    pub tracefs: Answer,
    /// Programs that it refused to attach.
    pub refused: Vec<RefusedTold>,
}

/// A program that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedTold {
    /// Its name.
    pub program: String,
    /// What the kernel said.
    pub because: String,
}

impl From<&(String, String)> for RefusedTold {
    fn from((program, because): &(String, String)) -> Self {
        Self { program: program.clone(), because: because.clone() }
    }
}

impl From<&Facts> for Kernel {
    fn from(facts: &Facts) -> Self {
        Self {
            release: facts.release.clone(),
            preemptible: match facts.preemption {
                Preemption::Voluntary => Some(false),
                Preemption::Preemptible => Some(true),
                Preemption::Unknown => None,
            },
            preemption_source: facts.preemption_source.clone(),
            functions: (&facts.trampoline).into(),
            kprobe_multi: (&facts.kprobe_multi).into(),
            kprobe_session: (&facts.kprobe_session).into(),
            tracefs: (&facts.tracefs).into(),
            refused: facts.refused.iter().map(Into::into).collect(),
        }
    }
}

/// A hook that is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookTold {
    /// What it sees, for people.
    pub event: &'static str,
    /// How and where it is attached.
    pub attached: String,
    /// Name of the program.
    pub program: &'static str,
    /// Whether it can lose events; these are counted.
    pub loses: bool,
    /// Why that is so.
    pub because: &'static str,
}

/// What a figure is worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FigureTold {
    /// Its name, as in JSON.
    pub figure: &'static str,
    /// `exact`, `bounded` or `unknown`.
    pub worth: &'static str,
    /// The bound, or why it is unknown.
    pub because: Option<String>,
    /// The hooks that it is counted by: what they see, as in [`HookTold::event`].
    pub hooks: Vec<&'static str>,
}

/// What the report of a command has beside figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BesideTold {
    /// Its place in the report's JSON.
    pub figure: &'static str,
    /// What it is called.
    #[serde(skip)]
    name: &'static str,
    /// Whether it can be had.
    pub known: bool,
    /// Why not.
    pub because: Option<&'static str>,
}

/// The plan as a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
    /// How requests are bracketed.
    pub brackets: Brackets,
    /// In the order in which they are attached.
    pub hooks: Vec<HookTold>,
    /// All figures, in order.
    pub figures: Vec<FigureTold>,
    /// What the report of a command has beside figures, whoever asks.
    pub beside: Vec<BesideTold>,
}

/// The word for what a figure is worth, and why it is not more.
pub(crate) fn worth_told(worth: &Certainty) -> (&'static str, Option<String>) {
    match worth {
        Certainty::Exact => ("exact", None),
        Certainty::Bounded(why) => ("bounded", Some(why.clone())),
        Certainty::Unknown(why) => ("unknown", Some(why.clone())),
    }
}

/// The plan as a value.
pub(super) fn told(plan: &Plan, facts: &Facts) -> Told {
    let hooks = plan.hooks.iter().map(|hook| HookTold {
        event: hook.event.text(),
        attached: attach(&hook.attach),
        program: hook.program,
        loses: hook.why == Why::Lossy,
        because: hook.why.text(),
    });
    let figures = Figure::ALL.iter().map(|figure| {
        let (worth, because) = worth_told(&plan.certainty(*figure));
        FigureTold { figure: figure.name(), worth, because, hooks: seen_by(plan, *figure) }
    });
    Told {
        brackets: plan.brackets,
        hooks: hooks.collect(),
        figures: figures.collect(),
        beside: of_a_command(facts),
    }
}

/// What the hooks see that count a figure, in the order in which they are listed; none where it is unknown, or the
/// kernel's own count.
fn seen_by(plan: &Plan, figure: Figure) -> Vec<&'static str> {
    if !plan.knows(figure) || plan.takes_over(figure) {
        return Vec::new();
    }
    let events = worth::events(figure.evidence());
    plan.hooks
        .iter()
        .filter(|h| events.iter().any(|some| some.contains(&h.event)))
        .map(|h| h.event.text())
        .collect()
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
    let told = told(plan, facts);
    for hook in &told.hooks {
        let _ = writeln!(out, "  {:<28} {}\n  {:<28} {}", hook.event, hook.attached, "", hook.because);
    }
    let _ = writeln!(out, "\nFigures\n");
    figures(&mut out, &told.figures);
    beside(&mut out, &told.beside);
    let _ = writeln!(
        out,
        "\n{}\
         Touches of a mapped page after its first fault are invisible to any tool.",
        crate::loss::explained()
    );
    out
}

/// Reasons are long and shared: each is printed once, below the figures that it is about, and these by their hooks.
fn figures(out: &mut String, all: &[FigureTold]) {
    let mut groups: Vec<Vec<&FigureTold>> = Vec::new();
    for figure in all {
        let alike =
            |g: &&mut Vec<&FigureTold>| (g[0].worth, &g[0].because) == (figure.worth, &figure.because);
        match groups.iter_mut().find(alike) {
            Some(group) => group.push(figure),
            None => groups.push(vec![figure]),
        }
    }
    for group in &groups {
        let _ = writeln!(out, "  {}", group[0].worth);
        for alike in group.chunk_by(|a, b| a.hooks == b.hooks) {
            let names: Vec<_> = alike.iter().map(|f| f.figure).collect();
            wrapped(out, &names.join(", "));
            if !alike[0].hooks.is_empty() {
                indented(out, 6, &format!("by: {}", alike[0].hooks.join("; ")));
            }
        }
        if let Some(why) = &group[0].because {
            wrapped(out, &format!("because: {why}"));
        }
    }
}

/// What the report of a command has beside figures, whoever asks.
fn of_a_command(facts: &Facts) -> Vec<BesideTold> {
    let Ok(plan) = Plan::new(facts, Wants { follow: true, ..Wants::default() }) else { return Vec::new() };
    let told = |(figure, name, because): (_, _, Option<_>)| BesideTold {
        figure,
        name,
        known: because.is_none(),
        because,
    };
    follow::beside(&plan).into_iter().map(told).collect()
}

/// The same in words.
fn beside(out: &mut String, all: &[BesideTold]) {
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nThe report of a command (-- COMMAND) has beside these\n");
    for BesideTold { figure, name, known, because } in all {
        let _ = writeln!(out, "  {}", if *known { "known" } else { "unknown" });
        wrapped(out, &format!("{name} ({figure})"));
        if let Some(why) = because {
            wrapped(out, &format!("because: {why}"));
        }
    }
}

/// Adds a paragraph of at most 79 columns, indented.
pub(crate) fn wrapped(out: &mut String, text: &str) {
    indented(out, 4, text);
}

/// The same, by so many columns.
fn indented(out: &mut String, by: usize, text: &str) {
    let margin = " ".repeat(by.saturating_sub(1));
    let mut line = margin.clone();
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > 79 {
            let _ = writeln!(out, "{line}");
            line.clone_from(&margin);
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(out, "{line}");
}
