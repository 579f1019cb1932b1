//! A program of the plan: what it sees, where it attaches, and why this one.

use super::events::Event;

/// How a program is attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attach {
    /// BPF trampoline on a function (fentry or fexit).
    Trampoline(String),
    /// kprobe.multi on functions: entry (false) or return (true).
    Multi(Vec<String>, bool),
    /// kprobe.session on functions: entry and return.
    Session(Vec<String>),
    /// kprobe on the entry of a function, where trampolines do not reach: more arguments than registers.
    Kprobe(String),
    /// BTF tracepoint.
    TracepointBtf(String),
    /// Classic tracepoint, category and name.
    Tracepoint(String, String),
    /// Not attached: run by the monitor at each tick.
    Tick,
}

/// Why a program may be used here: what it loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The kernel is not preemptible.
    Quiet,
    /// This way to attach loses nothing anywhere.
    Classic,
    /// Return probes stand on fgraph.
    Fgraph,
    /// It is run under a lock.
    QuietLock,
    /// It is run with softirqs off.
    QuietFree,
    /// It loses events, and counts them.
    Lossy,
    /// It is run by the monitor.
    Tick,
}

impl Why {
    /// For people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Why::Quiet => "loses nothing: the kernel is not preemptible",
            Why::Classic => "loses nothing by itself on any kernel",
            Why::Fgraph => "loses nothing by itself: return probes stand on fgraph here",
            Why::QuietLock => "loses nothing: it is run under a spinlock, where nothing preempts it",
            Why::QuietFree => "loses nothing: it is run with softirqs off, where nothing preempts it",
            Why::Lossy => "can lose events on this preemptible kernel; what is lost is counted",
            Why::Tick => "run before each sample",
        }
    }
}

/// One program of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The event it serves.
    pub event: Event,
    /// Name of the program in `bpf/hooks/`.
    pub program: &'static str,
    /// Where it attaches.
    pub attach: Attach,
    /// Why this one.
    pub why: Why,
}
