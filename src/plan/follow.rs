//! A command under watch: which programs see its processes being made and waiting, and names being looked up.

use super::Brackets;
use super::Wants;
use super::hooks::Attach;
use super::hooks::CLASSIC;
use super::hooks::Chooser;
use super::hooks::LOSSY;
use super::hooks::QUIET;

/// The program that sees processes being made: without it no command can be followed.
pub(crate) const FORK: &str = "fork_btf";
/// The program that sees threads leave and get the processor.
pub(crate) const SWITCH: &str = "switch_btf";
/// The program that sees writers being paused.
pub(crate) const THROTTLE: &str = "throttle_tp";
/// The programs that see names being looked up that the dentry cache does not have.
pub(crate) const LOOKUP: &[&str] = &["lookup_fentry", "lookup_multi"];

/// Chooses them. What is missing makes figures of the report unknown, and nothing else.
pub(super) fn hooks(c: &mut Chooser<'_>, brackets: Brackets, wants: Wants) {
    if !wants.follow {
        return;
    }
    let facts = c.facts;
    let why = if facts.voluntary() { QUIET } else { LOSSY };
    for (event, program, name) in [
        ("process made", FORK, "sched_process_fork"),
        ("process gone", "free_btf", "sched_process_free"),
        ("thread waits", SWITCH, "sched_switch"),
    ] {
        if facts.tracepoint(name) {
            c.push(event, program, Attach::TracepointBtf(name.into()), why);
        }
    }
    if facts.tracefs.is_ok() && facts.tracepoint("balance_dirty_pages") {
        let at = Attach::Tracepoint("writeback".into(), "balance_dirty_pages".into());
        c.push("writer paused", THROTTLE, at, CLASSIC);
    }
    for (event, function, fentry, multi) in [
        ("name answered", "d_splice_alias", "answer_fentry", "answer_multi"),
        ("name looked up", "d_alloc_parallel", "lookup_fentry", "lookup_multi"),
    ] {
        if !facts.function(function) {
            continue;
        }
        match brackets {
            Brackets::Trampolines | Brackets::LossyTrampolines => {
                c.push(event, fentry, Attach::Trampoline(function.into()), why);
            }
            Brackets::Sessions => {
                c.push(event, multi, Attach::Multi(vec![function.into()], false), CLASSIC);
            }
            Brackets::Tracepoints | Brackets::Unused => {}
        }
    }
}
