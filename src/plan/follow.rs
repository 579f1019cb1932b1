//! A command under watch: which programs see its processes being made and waiting, and names being looked up.

use super::Plan;
use super::worth::FUNCTIONS;

/// The program that sees processes being made: without it no command can be followed.
pub(crate) const FORK: &str = "fork_btf";
/// The programs that keep the accounts of processes and of threads that are gone.
pub(crate) const FREE: &str = "free_btf";
/// See [`FREE`].
pub(crate) const END: &str = "end_btf";
/// The program that sees threads leave and get the processor.
pub(crate) const SWITCH: &str = "switch_btf";
/// The program that sees writers being paused.
pub(crate) const THROTTLE: &str = "throttle_tp";
/// The programs that see names being looked up that the dentry cache does not have.
pub(crate) const LOOKUP: &[&str] = &["lookup_fentry", "lookup_multi"];

/// What the report of a command has beside figures: the key in JSON, what it is called, and why it is not known.
pub(crate) fn beside(plan: &Plan) -> [(&'static str, &'static str, Option<&'static str>); 2] {
    let looked_up = LOOKUP.iter().any(|p| plan.uses(p));
    let waits = plan.uses(SWITCH);
    [
        ("lookups.dcache_misses", "look-ups", (!looked_up).then_some(FUNCTIONS)),
        ("waits", "where threads wait", (!waits).then_some("the tracepoint sched_switch cannot be attached")),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::facts::Facts;
    use crate::facts::Preemption;
    use crate::plan::Wants;

    /// A kernel that allows tracepoints, and functions if asked.
    fn facts(functions: bool) -> Facts {
        let names = [
            "filemap_read",
            "page_cache_sync_ra",
            "page_cache_async_ra",
            "d_alloc_parallel",
            "d_splice_alias",
            "d_add",
            "tp:mm_filemap_add_to_page_cache",
            "tp:mm_filemap_delete_from_page_cache",
            "tp:mm_filemap_get_pages",
            "tp:sched_switch",
            "tp:sched_process_fork",
            "tp:sched_process_free",
            "tp:balance_dirty_pages",
            "tp:sched_process_exit",
            "tp:task_rename",
        ];
        let able = || if functions { Ok(()) } else { Err("no".to_owned()) };
        Facts {
            release: "6.12".into(),
            preemption: Preemption::Voluntary,
            preemption_source: "test".into(),
            realtime: false,
            btf: names.into_iter().map(String::from).collect(),
            trampoline: able(),
            kprobe_multi: able(),
            kprobe_session: able(),
            return_probes_keep: true,
            fetch_atomics: true,
            tracefs: Ok("/sys/kernel/tracing".into()),
            vmemmap: Ok(1),
            wake_page: Ok(1),
            refused: Vec::new(),
        }
    }

    fn plan(facts: &Facts, follow: bool) -> Plan {
        Plan::new(facts, Wants { follow, ..Wants::default() }).unwrap()
    }

    #[test]
    fn nothing_is_attached_unless_a_command_is_watched() {
        let plan = plan(&facts(true), false);
        assert!([FORK, FREE, END, SWITCH, THROTTLE].iter().chain(LOOKUP).all(|p| !plan.uses(p)));
    }

    #[test]
    fn waiting_needs_no_function_but_names_do() {
        for functions in [true, false] {
            let plan = plan(&facts(functions), true);
            assert!([FORK, FREE, END, SWITCH, THROTTLE].iter().all(|p| plan.uses(p)));
            assert_eq!(LOOKUP.iter().any(|p| plan.uses(p)), functions);
            assert_eq!(plan.uses("answer_fentry"), functions);
            assert_eq!(plan.uses("answer_add_fentry"), functions);
        }
    }

    #[test]
    fn what_is_refused_is_done_without() {
        for program in [SWITCH, THROTTLE, FORK, "lookup_fentry"] {
            let mut facts = facts(true);
            facts.refused.push((program.into(), "no".into()));
            assert!(!plan(&facts, true).uses(program));
        }
        let mut facts = facts(true);
        facts.tracefs = Err("not mounted".into());
        assert!(!plan(&facts, true).uses(THROTTLE));
    }
}
