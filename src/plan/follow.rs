//! A command under watch: which programs see its processes being made and waiting, and names being looked up.

use super::Plan;
use super::worth::FUNCTIONS;

/// The programs that see processes being made: without one of them no command can be followed.
pub(crate) const FORKS: &[&str] = &["fork_btf", "fork_multi"];
/// The programs that keep the accounts of processes and of threads that are gone.
pub(crate) const FREE: &str = "free_btf";
/// See [`FREE`]: one of them.
pub(crate) const ENDS: &[&str] = &["end_btf", "end_tp"];
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
            "wake_up_new_task",
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
        let all = [FREE, SWITCH, THROTTLE];
        assert!(all.iter().chain(FORKS).chain(ENDS).chain(LOOKUP).all(|p| !plan.uses(p)));
    }

    #[test]
    fn waiting_needs_no_function_but_names_do() {
        for functions in [true, false] {
            let plan = plan(&facts(functions), true);
            assert!(["fork_btf", FREE, "end_btf", SWITCH, THROTTLE].iter().all(|p| plan.uses(p)));
            assert_eq!(LOOKUP.iter().any(|p| plan.uses(p)), functions);
            assert_eq!(plan.uses("answer_fentry"), functions);
            assert_eq!(plan.uses("answer_add_fentry"), functions);
        }
    }

    /// A process that is not seen being made is not in the report, nor is what it makes.
    #[test]
    fn where_a_program_may_be_put_aside_processes_are_seen_by_what_is_not() {
        let facts = Facts { preemption: Preemption::Preemptible, ..facts(true) };
        let plan_of = |facts: &Facts| plan(facts, true);
        let all = plan_of(&facts);
        assert!(all.uses("fork_multi") && all.uses("end_tp"), "{:?}", all.hooks);
        assert!(!all.uses("fork_btf") && !all.uses("end_btf"));
        let mut without = facts.clone();
        without.refused.push(("fork_multi".into(), "no".into()));
        assert!(plan_of(&without).uses("fork_btf"));
        let without = Facts { tracefs: Err("not mounted".into()), ..facts };
        assert!(plan_of(&without).uses("end_btf"));
    }

    #[test]
    fn what_is_refused_is_done_without() {
        for program in [SWITCH, THROTTLE, "fork_btf", "lookup_fentry"] {
            let mut facts = facts(true);
            facts.refused.push((program.into(), "no".into()));
            assert!(!plan(&facts, true).uses(program));
        }
        let mut facts = facts(true);
        facts.tracefs = Err("not mounted".into());
        assert!(!plan(&facts, true).uses(THROTTLE));
    }
}
