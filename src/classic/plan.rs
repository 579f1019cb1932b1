//! Which hook serves which of the four counts. Pure: from [`Means`] to a [`Plan`], no I/O.
//!
//! A kprobe loses nothing on any kernel and is taken where one attaches, as kprobe.multi or by perf. A trampoline
//! (fentry) is taken where it loses nothing either. Else the tracepoint that stands for the function, if there is
//! one. A hook that refuses at the last moment joins [`Means::refused`], and a new plan is made.

use super::counts::Counter;
use super::counts::Known;
use crate::facts::Facts;
use crate::plan::Certainty;
use crate::plan::NoPlan;

/// Functions whose presence decides this plan.
pub const FUNCTIONS: &[&str] = &[
    "filemap_add_folio",
    "add_to_page_cache_lru",
    "folio_mark_accessed",
    "mark_page_accessed",
    "folio_account_dirtied",
    "account_page_dirtied",
    "__folio_mark_dirty",
    "mark_buffer_dirty",
];

/// What the plan is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Means {
    /// What the kernel can do.
    pub facts: Facts,
    /// A kprobe of perf could be made in a trial; else the kernel's refusal.
    pub kprobe: Result<(), String>,
    /// Hooks that refused at the last moment: program, function or tracepoint, reason.
    pub refused: Vec<(String, String, String)>,
}

impl Means {
    /// Whether a hook refused to attach on this run.
    #[must_use]
    pub fn refuses(&self, program: &str, target: &str) -> bool {
        self.refused.iter().any(|(p, t, _)| p == program && t == target)
    }
}

/// How a program is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// kprobe.multi at a function's entry.
    Multi,
    /// A kprobe made by `perf_event_open`.
    Kprobe,
    /// BPF trampoline at a function's entry.
    Fentry,
    /// Classic tracepoint of this category.
    Tracepoint(&'static str),
    /// BTF tracepoint.
    TracepointBtf,
}

/// What a hook is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// One of the four counts.
    Count(Counter),
    /// A process executes.
    Exec,
    /// A thread exits.
    Exit,
}

/// Why a program may be used: what it loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its way to attach loses nothing anywhere.
    Lossless,
    /// The kernel is not preemptible.
    Quiet,
    /// In place of the function.
    Stands,
    /// In place of the function, on a kernel that is not preemptible.
    StandsQuiet,
    /// In place of the function, where events can be lost.
    StandsLossy,
    /// In place of the function, without the size of folios.
    Blind,
    /// There is no other.
    Only,
}

impl Why {
    /// For people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Why::Lossless => "loses nothing on any kernel",
            Why::Quiet => "loses nothing: the kernel is not preemptible",
            Why::Stands => "stands for the function; loses nothing on any kernel",
            Why::StandsQuiet => "stands for the function; loses nothing: the kernel is not preemptible",
            Why::StandsLossy => {
                "stands for the function; can lose events on this preemptible kernel, which are counted"
            }
            Why::Blind => "stands for the function, but does not say how large the folio is",
            Why::Only => "no classic tracepoint can be attached",
        }
    }
}

/// One program of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// What it is for.
    pub event: Event,
    /// Name of the program in `bpf/classic.bpf.c`.
    pub program: &'static str,
    /// The function or tracepoint.
    pub target: &'static str,
    /// How it is attached there.
    pub how: How,
    /// Why this one.
    pub why: Why,
}

/// Which hooks are used and what each count is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Programs to load and where they attach.
    pub hooks: Vec<Hook>,
    /// What the counts are worth, in the order of [`Counter::EVENTS`].
    pub counts: [Certainty; 4],
}

/// The three ways to a function, the best first; a tracepoint besides.
struct Programs {
    multi: &'static str,
    kprobe: &'static str,
    fentry: &'static str,
}

impl Plan {
    /// Makes the plan for a kernel.
    ///
    /// # Errors
    /// When not one of the four counts can be had.
    pub fn new(means: &Means) -> Result<Self, NoPlan> {
        let mut c = Chooser { means, hooks: Vec::new() };
        let counts = [added(&mut c), accessed(&mut c), dirtied(&mut c), buffer_dirtied(&mut c)];
        if counts.iter().all(|c| matches!(c, Certainty::Unknown(_))) {
            return Err(NoPlan {
                reason: "none of the events of the classic engine can be seen on this kernel".into(),
                remedy: "allow kprobes (CONFIG_KPROBES) or tracepoints (CONFIG_TRACEPOINTS); see --explain"
                    .into(),
            });
        }
        c.tracepoint(Event::Exec, "sched_process_exec", Some(("sched", "exec_tp")), "exec_btf");
        c.tracepoint(Event::Exit, "sched_process_exit", Some(("sched", "exit_tp")), "exit_btf");
        Ok(Self { hooks: c.hooks, counts })
    }

    /// The counts that have a hook.
    #[must_use]
    pub fn known(&self) -> Known {
        Known(Counter::EVENTS.map(|c| !matches!(self.counts[c as usize], Certainty::Unknown(_))))
    }

    /// The hook of an event.
    #[must_use]
    pub fn hook(&self, event: Event) -> Option<&Hook> {
        self.hooks.iter().find(|h| h.event == event)
    }
}

struct Chooser<'a> {
    means: &'a Means,
    hooks: Vec<Hook>,
}

impl Chooser<'_> {
    fn try_push(
        &mut self,
        event: Event,
        program: &'static str,
        target: &'static str,
        how: How,
        why: Why,
    ) -> bool {
        let ok = !self.means.refuses(program, target);
        if ok {
            self.hooks.push(Hook { event, program, target, how, why });
        }
        ok
    }

    fn function(&mut self, event: Event, target: &'static str, p: &Programs) -> bool {
        let facts = &self.means.facts;
        (facts.kprobe_multi.is_ok() && self.try_push(event, p.multi, target, How::Multi, Why::Lossless))
            || (self.means.kprobe.is_ok()
                && self.try_push(event, p.kprobe, target, How::Kprobe, Why::Lossless))
            || (facts.trampoline.is_ok()
                && facts.voluntary()
                && self.try_push(event, p.fentry, target, How::Fentry, Why::Quiet))
    }

    fn classic(
        &mut self,
        event: Event,
        name: &'static str,
        category: &'static str,
        program: &'static str,
    ) -> bool {
        let facts = &self.means.facts;
        let why = if matches!(event, Event::Count(_)) { Why::Stands } else { Why::Lossless };
        facts.tracefs.is_ok()
            && facts.tracepoint(name)
            && self.try_push(event, program, name, How::Tracepoint(category), why)
    }

    fn btf(&mut self, event: Event, name: &'static str, program: &'static str) -> bool {
        let why = match (event, self.means.facts.voluntary()) {
            (Event::Count(_), true) => Why::StandsQuiet,
            (Event::Count(_), false) => Why::StandsLossy,
            _ => Why::Only,
        };
        self.means.facts.tracepoint(name) && self.try_push(event, program, name, How::TracepointBtf, why)
    }

    fn tracepoint(
        &mut self,
        event: Event,
        name: &'static str,
        classic: Option<(&'static str, &'static str)>,
        btf: &'static str,
    ) -> bool {
        classic.is_some_and(|(category, program)| self.classic(event, name, category, program))
            || self.btf(event, name, btf)
    }

    /// What the hook of a count makes it worth.
    fn worth(&self, event: Event, missing: &str) -> Certainty {
        match self.hooks.iter().find(|h| h.event == event) {
            Some(h) if h.why == Why::StandsLossy => Certainty::Bounded(
                "the hook can lose events on this preemptible kernel; LOST says how many".into(),
            ),
            Some(h) if h.why == Why::Blind => Certainty::Bounded(
                "a large folio counts as one page: the hook does not say how large it is".into(),
            ),
            Some(_) => Certainty::Exact,
            None => Certainty::Unknown(missing.into()),
        }
    }

    /// Why no function could be had.
    fn refusals(&self, functions: &[&str]) -> String {
        let means = self.means;
        if !functions.iter().any(|f| means.facts.function(f)) {
            return format!("the kernel's BTF does not have {}", functions.join(" or "));
        }
        let mut why = Vec::new();
        for (how, refusal) in [
            ("kprobe.multi", means.facts.kprobe_multi.as_ref().err()),
            ("kprobe", means.kprobe.as_ref().err()),
            ("fentry", means.facts.trampoline.as_ref().err()),
        ] {
            why.extend(refusal.map(|r| format!("{how}: {r}")));
        }
        for (_, target, reason) in means.refused.iter().filter(|(_, t, _)| functions.contains(&t.as_str())) {
            why.push(format!("{target}: {reason}"));
        }
        if means.facts.trampoline.is_ok() && !means.facts.voluntary() {
            why.push("fentry: would lose events on this preemptible kernel".into());
        }
        format!("functions cannot be attached here ({})", why.join("; "))
    }
}

/// The function under its newest name that the kernel has. The older name may be there as a wrapper that hardly
/// anyone calls: it attaches, and counts nothing.
fn newest(facts: &Facts, names: &[&'static str]) -> Option<&'static str> {
    names.iter().find(|n| facts.function(n)).copied()
}

fn added(c: &mut Chooser<'_>) -> Certainty {
    let event = Event::Count(Counter::Added);
    let programs = Programs { multi: "added_multi", kprobe: "added_kprobe", fentry: "added_fentry" };
    let names = ["filemap_add_folio", "add_to_page_cache_lru"];
    let _ = newest(&c.means.facts, &names).is_some_and(|f| c.function(event, f, &programs))
        || c.tracepoint(event, "mm_filemap_add_to_page_cache", Some(("filemap", "added_tp")), "added_btf");
    let missing = format!("{}, and no tracepoint tells of pages being added", c.refusals(&names));
    c.worth(event, &missing)
}

fn accessed(c: &mut Chooser<'_>) -> Certainty {
    let event = Event::Count(Counter::Accessed);
    let programs = Programs { multi: "accessed_multi", kprobe: "accessed_kprobe", fentry: "accessed_fentry" };
    let names = ["folio_mark_accessed", "mark_page_accessed"];
    let _ = newest(&c.means.facts, &names).is_some_and(|f| c.function(event, f, &programs));
    let missing = format!("{}, and no tracepoint stands for it", c.refusals(&names));
    c.worth(event, &missing)
}

fn dirtied(c: &mut Chooser<'_>) -> Certainty {
    let event = Event::Count(Counter::Dirtied);
    let programs = Programs { multi: "dirtied_multi", kprobe: "dirtied_kprobe", fentry: "dirtied_fentry" };
    // The third is what the first is inlined into, which is on every kernel that was looked at.
    let names = ["folio_account_dirtied", "account_page_dirtied", "__folio_mark_dirty"];
    let facts = &c.means.facts;
    let (voluntary, folios) = (facts.voluntary(), facts.tracepoint("writeback_dirty_folio"));
    let name = if folios { "writeback_dirty_folio" } else { "writeback_dirty_page" };
    let found = names.iter().any(|f| c.means.facts.function(f) && c.function(event, f, &programs))
        // The BTF tracepoint hands out the folio, and with it its size; before folios a page is a page.
        || (voluntary && c.btf(event, name, "dirtied_btf"))
        || (!folios && c.classic(event, name, "writeback", "dirtied_tp"))
        || c.btf(event, name, "dirtied_btf")
        || c.classic(event, name, "writeback", "dirtied_tp");
    if let (true, Some(last)) = (found && folios, c.hooks.last_mut()) {
        if last.program == "dirtied_tp" {
            last.why = Why::Blind;
        }
    }
    let missing = format!("{}, and no tracepoint tells of pages getting dirty", c.refusals(&names));
    c.worth(event, &missing)
}

fn buffer_dirtied(c: &mut Chooser<'_>) -> Certainty {
    let event = Event::Count(Counter::BufferDirtied);
    let programs = Programs { multi: "buffer_multi", kprobe: "buffer_kprobe", fentry: "buffer_fentry" };
    let names = ["mark_buffer_dirty"];
    let _ = newest(&c.means.facts, &names).is_some_and(|f| c.function(event, f, &programs))
        || c.tracepoint(event, "block_dirty_buffer", Some(("block", "buffer_tp")), "buffer_btf");
    let missing = format!("{}, and the tracepoint block_dirty_buffer is not there", c.refusals(&names));
    c.worth(event, &missing)
}
