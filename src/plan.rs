//! The plan: which hook serves which event on this kernel, and what each figure is therefore worth.
//!
//! Pure: from [`Facts`] to a [`Plan`], no I/O. `--explain` prints it ([`Plan::explain`]).
//!
//! Hooks are chosen by what loses nothing on this kernel, then by cost. On preemptible kernels BPF trampolines
//! (fentry, fexit) and, from 7.1, BTF tracepoints skip events while another run on the CPU is preempted; plain
//! return probes lose calls that sleep. Classic tracepoints and kprobe entries lose nothing.

mod candidates;
mod choose;
mod events;
mod explain;
pub(crate) mod follow;
mod hooks;
mod worth;

use crate::facts::Facts;
use crate::figures::Evidence;
use crate::figures::Figure;
use crate::figures::Scope;

pub use events::Event;
pub use explain::Answer;
pub use explain::FigureTold;
pub use explain::HookTold;
pub use explain::Kernel as KernelTold;
pub use explain::RefusedTold;
pub use explain::Told;
pub(crate) use explain::kernel as explain_kernel;
pub(crate) use explain::worth_told;
pub(crate) use explain::wrapped;
pub use hooks::Attach;
pub use hooks::Hook;
pub use hooks::Why;
pub use worth::Certainty;

/// Which method counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// Requests are bracketed and joined with what was added to the cache.
    Exact,
    /// Event counts are subtracted, as bcc does.
    Classic,
    /// The two side by side.
    Both,
}

impl Engine {
    /// The name used in options and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Exact => "exact",
            Engine::Classic => "classic",
            Engine::Both => "both",
        }
    }
}

/// How the beginning and the end of a read request are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Brackets {
    /// fentry and fexit on a kernel where these lose nothing.
    Trampolines,
    /// kprobe.session on fgraph: one program for entry and return.
    Sessions,
    /// fentry and fexit on a preemptible kernel without anything better: losses are counted.
    LossyTrampolines,
    /// No function can be attached: `mm_filemap_get_pages` and the thread's registers.
    Tracepoints,
    /// Requests are not looked at: the classic engine counts.
    Unused,
}

/// What somebody wants to know beyond the counts: hooks that nobody needs are not attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants {
    /// How long read calls take.
    pub latency: bool,
    /// Which files.
    pub files: bool,
    /// What one command does, and where it waits.
    pub follow: bool,
    /// How many pages are mapped around faults: an event more for each fault, and from 6.6 on one for each page mapped.
    pub around: bool,
    /// How many buffers are marked dirty: an event more for each block that is written through the cache.
    pub buffers: bool,
    /// When a cgroup is made: the one that is requested may go and come again.
    pub group: bool,
    /// Which pages are used, one by one, for a part of them chosen by hash: for `--what-if`.
    pub touches: bool,
    /// Who takes pages out of the cache, and whose: for `--blame`.
    pub blame: bool,
    /// Of which files, who brings them in again, and how long that is waited for, with `blame`.
    pub bill: bool,
    /// Which ranges of files a command asks for, in order: for `--try`.
    pub tried: bool,
    /// How many distinct pages are used, and by whom: for `--working-set`.
    pub sketches: Option<SketchBy>,
}

/// Who has a sketch of the pages that they use; the same numbers as in `bpf/sketch.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum SketchBy {
    /// Nobody but the whole.
    Nobody,
    /// Each process.
    Process,
    /// Each cgroup.
    Cgroup,
    /// Each file.
    File,
}

impl Wants {
    /// What is asked at each read call beyond counting it.
    #[must_use]
    pub const fn details(self) -> bool {
        self.latency || self.files || self.follow
    }
}

/// Which hooks are used and what each figure is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The engine in force.
    pub engine: Engine,
    /// How requests are bracketed.
    pub brackets: Brackets,
    /// Atomic instructions with fetch can be used.
    pub fetch_atomics: bool,
    /// Programs to load and where they attach; all or nothing.
    pub hooks: Vec<Hook>,
    /// What each figure is worth; a figure that is not here is unknown.
    pub figures: Vec<(Figure, Certainty)>,
    /// Of those that are known, the ones that are at least so much: some of what they count happens where no hook looks, on
    /// certain file systems or devices. What is bounded otherwise may be off by a little, both ways.
    pub at_least: Vec<Figure>,
}

/// No set of hooks can count here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NoPlan {
    /// What is missing.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

impl Plan {
    /// Makes the plan for a kernel. `wants`: what somebody wants to know beyond the counts.
    ///
    /// # Errors
    /// When no set of hooks can count reads on this kernel.
    pub fn new(facts: &Facts, wants: Wants) -> Result<Self, NoPlan> {
        let brackets = choose::brackets(facts)?;
        let hooks = choose::choose(facts, brackets, wants)?;
        let figures = worth::figures(facts, brackets, &hooks, wants);
        let at_least = worth::at_least(facts, brackets, &hooks, wants);
        let (engine, fetch_atomics) = (Engine::Exact, facts.fetch_atomics);
        Ok(Self { engine, brackets, fetch_atomics, hooks, figures, at_least })
    }

    /// The plan of an engine that gives none of the exact figures.
    #[must_use]
    pub fn none(engine: Engine) -> Self {
        let (hooks, figures, at_least) = (Vec::new(), Vec::new(), Vec::new());
        Self { engine, brackets: Brackets::Unused, fetch_atomics: false, hooks, figures, at_least }
    }

    /// What a figure is worth.
    #[must_use]
    pub fn certainty(&self, figure: Figure) -> Certainty {
        self.figures
            .iter()
            .find(|(f, _)| *f == figure)
            .map_or_else(|| Certainty::Unknown("not counted by this version".into()), |(_, c)| c.clone())
    }

    /// Whether the figure can be shown at all.
    #[must_use]
    pub fn knows(&self, figure: Figure) -> bool {
        !matches!(self.certainty(figure), Certainty::Unknown(_))
    }

    /// Whether only the system as a whole can have the figure: no row, and no command that is watched.
    #[must_use]
    pub fn whole_only(&self, figure: Figure) -> bool {
        figure.scope() == Scope::Cache || self.takes_over(figure)
    }

    /// Whether the figure is a count of the kernel's own here, which it keeps for the whole system.
    #[must_use]
    pub fn takes_over(&self, figure: Figure) -> bool {
        figure.evidence() == Evidence::Refaults && self.brackets == Brackets::Tracepoints
    }

    /// Whether a hook sees the event.
    #[must_use]
    pub fn sees(&self, event: Event) -> bool {
        self.hooks.iter().any(|h| h.event == event)
    }

    /// Whether a program is part of the plan.
    #[must_use]
    pub fn uses(&self, program: &str) -> bool {
        self.hooks.iter().any(|h| h.program == program)
    }

    /// The hooks, and what each figure is worth here, as a value.
    #[must_use]
    pub fn told(&self, facts: &Facts) -> Told {
        explain::told(self, facts)
    }

    /// Tells a person which hooks are used, what each figure is worth here, and why.
    #[must_use]
    pub fn explain(&self, facts: &Facts) -> String {
        explain::explain(self, facts)
    }
}

#[cfg(test)]
mod tests;
