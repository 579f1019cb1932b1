//! The classic plan in words and as a value, and how its figures differ from the exact ones.

use std::fmt::Write as _;

use serde::Serialize;

use super::counts::Counter;
use super::plan::Event;
use super::plan::Hook;
use super::plan::How;
use super::plan::Means;
use super::plan::Plan;
use super::plan::Why;
use crate::plan::HookTold;
use crate::plan::RefusedTold;
use crate::plan::worth_told;
use crate::plan::wrapped;

const METHOD: &str = "the method of bcc's cachestat. It counts four kernel events and subtracts them: \
                      total = accessed - buffer_dirtied, misses = added - dirtied, hits = total - misses. A large \
                      folio counts as its pages; nothing is clamped, so figures may be below zero.";

/// Why both engines do not say the same, one reason a paragraph.
const DIFFERENCES: &[&str] = &[
    "Read-ahead. To the classic method each page added is a miss, whether the reader waited for it or read-ahead \
     had brought it in. RAHITS + MISSES of the exact engine are about the classic MISSES of a cold read. In bcc's \
     cachetop, which takes such a page for a hit and a miss at once, a first cold read shows 50 %.",
    "Folios. bcc counts calls, and from 5.16 on one call may be about a folio of many pages: its figures shrink \
     with the size of folios. Here the pages of the folio are counted, all of them, even if one of them was \
     touched: a read of 4 KiB in a folio of 256 pages is 256 classic accesses, and one exact one.",
    "Repeated reads. The kernel does not mark a page again where a read goes on in the page in which the last one \
     ended, so eight reads of 512 bytes are one classic access, and eight exact ones.",
    "Writes. They add and dirty pages; up to 6.1 they mark each of them as well, later kernels mark hardly any. The \
     subtraction takes a write out of HITS only where each page was marked and has a buffer, and out of MISSES only \
     where each was added by the write. So a file written on ext4 takes HITS below zero on 6.12, and cached pages \
     that are overwritten take MISSES below zero; bcc prints 0 for both.",
    "Whatever else marks or adds: mapped files are marked when they are unmapped, not when they are used; \
     directories and metadata are counted with the data; pages of tmpfs are marked, but neither added nor dirtied.",
    "DIRTIES of the classic columns are buffers dirtied (mark_buffer_dirty), as bcc prints them; xfs and btrfs \
     have none. The exact engine counts pages of files.",
];

fn attach(how: How, target: &str) -> String {
    match how {
        How::Multi => format!("kprobe.multi {target}"),
        How::Kprobe => format!("kprobe {target}"),
        How::Fentry => format!("fentry {target}"),
        How::Tracepoint(category) => format!("tracepoint {category}:{target}"),
        How::TracepointBtf => format!("BTF tracepoint {target}"),
    }
}

/// What a count is worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CountTold {
    /// Its key, as in JSON.
    pub count: &'static str,
    /// `exact` (no event is lost), `bounded` or `unknown`.
    pub worth: &'static str,
    /// The bound, or why it is unknown.
    pub because: Option<String>,
}

/// The plan as a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
    /// In the order in which they are attached.
    pub hooks: Vec<HookTold>,
    /// All that is counted, in order.
    pub counts: Vec<CountTold>,
    /// Programs that the kernel refused to attach.
    pub refused: Vec<RefusedTold>,
}

const fn event(hook: &Hook) -> &'static str {
    match hook.event {
        Event::Count(counter) => counter.key(),
        Event::Exec => "process executes",
        Event::Exit => "process exits",
    }
}

/// The plan as a value.
pub(crate) fn told(plan: &Plan, means: &Means) -> Told {
    // In place of a classic tracepoint that cannot be had.
    let only = |why| why == Why::Only && !means.facts.voluntary();

    let hooks = plan.hooks.iter().map(|hook| HookTold {
        event: event(hook),
        attached: attach(hook.how, hook.target),
        program: hook.program,
        loses: hook.why == Why::StandsLossy || only(hook.why),
        because: hook.why.text(),
    });
    let counts = Counter::EVENTS.iter().zip(&plan.counts).map(|(counter, worth)| {
        let (worth, because) = worth_told(worth);
        CountTold { count: counter.key(), worth, because }
    });
    let refused = means.refused.iter().map(|(program, target, why)| RefusedTold {
        program: program.clone(),
        because: format!("at {target}: {why}"),
    });
    Told { hooks: hooks.collect(), counts: counts.collect(), refused: refused.collect() }
}

/// The hooks and what each count is worth.
pub(super) fn explain(plan: &Plan, means: &Means) -> String {
    // Writing to a String cannot fail.
    let mut out = String::from("Engine classic:\n");
    wrapped(&mut out, METHOD);
    out.push('\n');
    for (program, target, why) in &means.refused {
        let _ = writeln!(out, "  refused to attach            {program} at {target}: {why}");
    }
    let told = told(plan, means);
    for hook in &told.hooks {
        let _ = writeln!(out, "  {:<28} {}\n  {:<28} {}", hook.event, hook.attached, "", hook.because);
    }
    let _ = writeln!(out, "\nCounts of the classic engine\n");
    for CountTold { count, worth, because } in &told.counts {
        let _ = writeln!(out, "  classic.{count:<20} {worth}");
        if let Some(why) = because {
            wrapped(&mut out, &format!("because: {why}"));
        }
    }
    out.push_str("\n  \"exact\" means that no event is lost, not that hits and misses are true.\n");
    let known = plan.known();
    let needs = |counters: [Counter; 2]| counters.iter().all(|c| known.0[*c as usize]);
    let total = needs([Counter::Accessed, Counter::BufferDirtied]);
    let misses = needs([Counter::Added, Counter::Dirtied]);
    for (name, ok) in [("classic.hits", total && misses), ("classic.misses", misses)] {
        if !ok {
            let _ = writeln!(out, "  {name} is unknown: one of the counts that it is made of is");
        }
    }
    out
}

/// Why the classic figures are what they are, for people who compare them with the exact ones.
#[must_use]
pub fn differences() -> String {
    let mut out = String::from("Why the two engines differ\n\n");
    for text in DIFFERENCES {
        wrapped(&mut out, text);
    }
    out
}
