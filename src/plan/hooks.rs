//! Which program serves which event.

use super::Brackets;
use super::NoPlan;
use super::Wants;
use super::writes;
use crate::facts::Facts;

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

/// One program of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The event it serves, for people.
    pub event: &'static str,
    /// Name of the program in `bpf/hooks/`.
    pub program: &'static str,
    /// Where it attaches.
    pub attach: Attach,
    /// Why this one.
    pub why: &'static str,
}

pub(super) const QUIET: &str = "loses nothing: the kernel is not preemptible";
pub(super) const CLASSIC: &str = "loses nothing by itself on any kernel";
pub(super) const FGRAPH: &str = "loses nothing by itself: return probes stand on fgraph here";
const QUIET_LOCK: &str = "loses nothing: it is run under a lock (but for kernels with PREEMPT_RT)";
const QUIET_FREE: &str = "loses nothing: it is run with softirqs off (but for kernels with PREEMPT_RT)";
pub(super) const LOSSY: &str = "can lose events on this preemptible kernel; what is lost is counted";

/// How requests can be bracketed here, the best first.
pub(super) fn brackets(facts: &Facts) -> Result<Brackets, NoPlan> {
    let read = facts.function("filemap_read") || facts.function("generic_file_buffered_read");
    // Without these, pages that a read adds could not be told from those read ahead.
    let named = facts.function("page_cache_sync_ra") && facts.function("page_cache_async_ra");
    let any = |programs: &[&str]| programs.iter().any(|p| facts.refuses(p));
    let trampoline = facts.trampoline.is_ok()
        && read
        && named
        && !any(&["read_fexit", "read_fexit_pages", "sync_fentry", "async_fentry"])
        && !any(&["sync_old_fentry", "async_old_fentry"]);
    let session = facts.kprobe_session.is_ok()
        && facts.return_probes_keep
        && facts.function("filemap_read")
        && named
        && !any(&["read_session", "read_detail_session", "sync_multi", "async_multi"]);
    let calls = facts.tracepoint("mm_filemap_get_pages") && !facts.refuses("get_pages_btf");
    if !facts.tracepoint("mm_filemap_add_to_page_cache") {
        return Err(NoPlan {
            reason: "the kernel's BTF does not know the tracepoint mm_filemap_add_to_page_cache".into(),
            remedy: "a kernel of 5.10 or newer, built with CONFIG_DEBUG_INFO_BTF=y, is needed".into(),
        });
    }
    match () {
        () if trampoline && facts.voluntary() => Ok(Brackets::Trampolines),
        // The programs for kernels without atomic instructions that fetch exist as trampolines only.
        () if session && facts.fetch_atomics => Ok(Brackets::Sessions),
        () if calls && facts.fetch_atomics && !trampoline => Ok(Brackets::Tracepoints),
        () if trampoline => Ok(Brackets::LossyTrampolines),
        () => Err(NoPlan {
            reason: format!(
                "nothing that sees read requests can be attached: functions refused ({}; {}), and the \
                 tracepoint mm_filemap_get_pages (6.12) is not there",
                facts.trampoline.as_ref().err().map_or("no function known", String::as_str),
                facts.kprobe_multi.as_ref().err().map_or("no lossless return probe", String::as_str),
            ),
            remedy:
                "allow kprobes or BPF trampolines (CONFIG_KPROBES, CONFIG_FUNCTION_TRACER, no lockdown in \
                     confidentiality mode), or run Linux 6.12 or newer"
                    .into(),
        }),
    }
}

/// Gathers hooks.
pub(super) struct Chooser<'a> {
    pub(super) facts: &'a Facts,
    hooks: Vec<Hook>,
}

impl Chooser<'_> {
    pub(super) fn push(
        &mut self,
        event: &'static str,
        program: &'static str,
        attach: Attach,
        why: &'static str,
    ) {
        if !self.facts.refuses(program) {
            self.hooks.push(Hook { event, program, attach, why });
        }
    }

    /// Programs on one function, all or none: a frame that is pushed must be popped.
    pub(super) fn together(
        &mut self,
        function: &str,
        programs: &[(&'static str, &'static str)],
        why: &'static str,
    ) {
        if self.facts.function(function) && !programs.iter().any(|(_, p)| self.facts.refuses(p)) {
            for (event, program) in programs {
                self.push(event, program, Attach::Trampoline(function.into()), why);
            }
        }
    }

    /// A BTF tracepoint where it loses nothing, else the classic one, else the BTF one with its losses.
    fn tracepoint(
        &mut self,
        event: &'static str,
        name: &str,
        btf: &'static str,
        classic: Option<(&'static str, &'static str)>,
    ) -> bool {
        let facts = self.facts;
        let btf_ok = facts.tracepoint(name) && !facts.refuses(btf);
        let by_name = |c: &str| Attach::Tracepoint(c.into(), name.into());
        let classic = classic.filter(|(_, p)| facts.tracefs.is_ok() && !facts.refuses(p));
        match classic {
            _ if btf_ok && facts.voluntary() => {
                self.push(event, btf, Attach::TracepointBtf(name.into()), QUIET);
            }
            Some((category, program)) if facts.tracepoint(name) => {
                self.push(event, program, by_name(category), CLASSIC);
            }
            _ if btf_ok => self.push(event, btf, Attach::TracepointBtf(name.into()), LOSSY),
            _ => return false,
        }
        true
    }
}

/// Chooses all programs. What sees pages come and go is attached first, what counts requests last: a request that is
/// counted has been seen from its beginning.
pub(super) fn choose(facts: &Facts, brackets: Brackets, wants: Wants) -> Result<Vec<Hook>, NoPlan> {
    let mut c = Chooser { facts, hooks: Vec::new() };
    pages(&mut c, brackets)?;
    super::follow::hooks(&mut c, brackets, wants);
    groups(&mut c, wants);
    match brackets {
        Brackets::Trampolines => trampolines(&mut c, QUIET, wants),
        Brackets::LossyTrampolines => trampolines(&mut c, LOSSY, wants),
        Brackets::Sessions => sessions(&mut c, wants),
        Brackets::Unused => {}
        Brackets::Tracepoints => {
            let why = if facts.voluntary() { QUIET } else { LOSSY };
            let tp = |name: &str| Attach::TracepointBtf(name.into());
            c.push("read request", "get_pages_btf", tp("mm_filemap_get_pages"), why);
            c.push("read request ended", "settle_pending", Attach::Tick, "run before each sample");
            if facts.tracepoint("io_uring_submit_req") {
                c.push("io_uring request", "uring_btf", tp("io_uring_submit_req"), why);
            }
            if facts.tracepoint("mm_filemap_fault") {
                c.push("fault", "fault_btf", tp("mm_filemap_fault"), why);
            }
            if facts.tracepoint("mm_filemap_map_pages") {
                c.push("pages mapped around a fault", "map_pages_btf", tp("mm_filemap_map_pages"), why);
            }
            writes::tracepoints(&mut c, why);
        }
    }
    Ok(c.hooks)
}

/// What is seen of pages and threads.
fn pages(c: &mut Chooser<'_>, brackets: Brackets) -> Result<(), NoPlan> {
    let facts = c.facts;
    let cannot = |what: &str| {
        NoPlan {
        reason: match &facts.tracefs {
            Ok(_) => format!("no hook sees {what}"),
            Err(why) => format!("no hook sees {what}, and tracefs is missing: {why}"),
        },
        remedy: match &facts.tracefs {
            Ok(_) => "a kernel with these tracepoints (CONFIG_TRACEPOINTS) is needed; --explain has the reasons".into(),
            Err(_) => "mount tracefs (mount -t tracefs nodev /sys/kernel/tracing), where the kernel's lockdown and the \
                       container allow it"
                .into(),
        },
    }
    };
    // A classic tracepoint hands out a page frame number: it needs to know where page structs begin.
    let by_pfn = facts.vmemmap.is_ok();
    let add = match brackets {
        Brackets::Tracepoints => c.tracepoint(
            "page added",
            "mm_filemap_add_to_page_cache",
            "add_in_call_btf",
            None, // the classic one does not say which mapping
        ),
        _ => c.tracepoint(
            "page added",
            "mm_filemap_add_to_page_cache",
            if facts.fetch_atomics { "add_btf" } else { "add_btf_pages" },
            (by_pfn && facts.fetch_atomics).then_some(("filemap", "add_tp")),
        ),
    };
    if !add {
        return Err(cannot("pages being added to the cache"));
    }
    if !c.tracepoint(
        "page deleted",
        "mm_filemap_delete_from_page_cache",
        if facts.fetch_atomics { "delete_btf" } else { "delete_btf_pages" },
        (by_pfn && facts.fetch_atomics).then_some(("filemap", "delete_tp")),
    ) {
        return Err(cannot("pages leaving the cache"));
    }
    dirty(c);
    c.tracepoint("buffer dirtied", "block_dirty_buffer", "buffer_btf", Some(("block", "buffer_tp")));
    // It fires under the lock of the name, where nothing preempts it, and hands on the task itself, where the classic
    // one has a thread's number.
    let rename = if brackets == Brackets::Tracepoints { "rename_in_call_btf" } else { "rename_btf" };
    if facts.tracepoint("task_rename") && !facts.refuses(rename) {
        c.push("thread gets a name", rename, Attach::TracepointBtf("task_rename".into()), QUIET_LOCK);
    }
    owners(c);
    if brackets == Brackets::Tracepoints {
        c.tracepoint("thread exits", "sched_process_exit", "exit_in_call_btf", None);
    } else {
        c.tracepoint("thread exits", "sched_process_exit", "exit_btf", Some(("sched", "exit_tp")));
    }
    // After the exit, a thread still closes its files. The next thread may be where this one was: it must not find its
    // row. Run with softirqs off, which nothing preempts: it loses nothing. The classic one does not say which thread.
    if facts.tracepoint("sched_process_free") {
        let program = if brackets == Brackets::Tracepoints { "gone_in_call_btf" } else { "gone_btf" };
        c.push("thread gone", program, Attach::TracepointBtf("sched_process_free".into()), QUIET_FREE);
    }
    // And whoever begins there has no row, should that one not have been told of. Not where this one would lose events:
    // they would count as lost, and nearly all of them have nothing to say.
    if facts.tracepoint("sched_process_fork") && facts.voluntary() {
        let program = if brackets == Brackets::Tracepoints { "born_in_call_btf" } else { "born_btf" };
        c.push("thread begins", program, Attach::TracepointBtf("sched_process_fork".into()), QUIET);
    }
    Ok(())
}

/// Threads that become another user's, or another cgroup's, without executing anything.
fn owners(c: &mut Chooser<'_>) {
    let facts = c.facts;
    let event = "thread gets a user";
    match facts.function("commit_creds") {
        true if facts.trampoline.is_ok() && facts.voluntary() => {
            c.push(event, "user_fentry", Attach::Trampoline("commit_creds".into()), QUIET);
        }
        true if facts.kprobe_multi.is_ok() => {
            c.push(event, "user_multi", Attach::Multi(vec!["commit_creds".into()], false), CLASSIC);
        }
        _ => {}
    }
    // The program looks at all rows: a walk over a table is there from 5.13 on.
    let walk = facts.function("bpf_for_each_map_elem");
    if walk && facts.tracepoint("cgroup_attach_task") && facts.tracefs.is_ok() {
        let at = Attach::Tracepoint("cgroup".into(), "cgroup_attach_task".into());
        c.push("thread gets a cgroup", "cgroup_tp", at, CLASSIC);
    }
}

/// Cgroups are made one at a time: no event of it comes while the program runs for another.
fn groups(c: &mut Chooser<'_>, wants: Wants) {
    if wants.group && c.facts.tracepoint("cgroup_mkdir") && !c.facts.refuses("group_btf") {
        c.push("cgroup made", "group_btf", Attach::TracepointBtf("cgroup_mkdir".into()), QUIET);
    }
}

fn dirty(c: &mut Chooser<'_>) {
    let facts = c.facts;
    let name = ["writeback_dirty_folio", "writeback_dirty_page"].into_iter().find(|n| facts.tracepoint(n));
    let btf = if facts.fetch_atomics { "dirty_btf" } else { "dirty_btf_pages" };
    let multi = facts.kprobe_multi.is_ok()
        && facts.fetch_atomics
        && facts.function("__folio_mark_dirty")
        && !facts.refuses("dirty_multi");
    match name {
        Some(n) if facts.voluntary() && !facts.refuses(btf) => {
            c.push("page dirtied", btf, Attach::TracepointBtf(n.into()), QUIET);
        }
        _ if multi => {
            let at = Attach::Multi(vec!["__folio_mark_dirty".into()], false);
            c.push("page dirtied", "dirty_multi", at, CLASSIC);
        }
        Some(n) if !facts.refuses(btf) => {
            c.push("page dirtied", btf, Attach::TracepointBtf(n.into()), LOSSY);
        }
        _ => {}
    }
}

/// Readers that wait for a page that somebody else is still reading.
fn waits(c: &mut Chooser<'_>) {
    let (facts, event, function) = (c.facts, "wait for a page in flight", "io_schedule");
    if facts.wake_page.is_err() || !facts.function(function) {
        return;
    }
    if facts.kprobe_multi.is_ok() && !facts.refuses("wait_multi") {
        c.push(event, "wait_multi", Attach::Multi(vec![function.into()], false), CLASSIC);
    } else {
        c.push(event, "wait_kprobe", Attach::Kprobe(function.into()), CLASSIC);
    }
}

fn trampolines(c: &mut Chooser<'_>, why: &'static str, wants: Wants) {
    let facts = c.facts;
    waits(c);
    c.hooks.extend(super::meta::hooks(facts, Brackets::Trampolines, why));
    let pick = |atomic, other| if facts.fetch_atomics { atomic } else { other };
    super::faults::trampolines(c, why, wants);
    let mut hooks = |function: &str, programs: &[_]| c.together(function, programs, why);
    // Older kernels pass the state of the read-ahead as an argument of its own.
    let old = facts.function("page_cache_sync_ra/3");
    let (sync, ahead) =
        if old { ("sync_old_fentry", "async_old_fentry") } else { ("sync_fentry", "async_fentry") };
    hooks("page_cache_sync_ra", &[("read that misses", sync)]);
    hooks("page_cache_async_ra", &[("read-ahead due", ahead)]);
    let read = if facts.function("filemap_read") { "filemap_read" } else { "generic_file_buffered_read" };
    // A read is counted when it returns. Its beginning matters to the clock and to RWF_DONTCACHE (6.14).
    hooks(read, &[("read request ended", pick("read_fexit", "read_fexit_pages"))]);
    if wants.latency || facts.btf.contains("enum:PG_dropbehind") {
        hooks(read, &[("read request", "read_fentry")]);
    }
    // Before filemap_splice_read (6.5), sendfile and splice went through the read path.
    hooks("filemap_splice_read", &[("splice ended", "splice_fexit")]);
    if wants.latency {
        hooks("filemap_splice_read", &[("splice", "splice_fentry")]);
    }
    let shmem = pick("shmem_fexit", "shmem_fexit_pages");
    hooks("shmem_file_read_iter", &[("tmpfs read ended", shmem), ("tmpfs read", "shmem_fentry")]);
    let splice = [("tmpfs splice ended", "shmem_splice_fexit"), ("tmpfs splice", "shmem_splice_fentry")];
    hooks("shmem_file_splice_read", &splice);
    writes::trampolines(c, why);
}

fn sessions(c: &mut Chooser<'_>, wants: Wants) {
    let facts = c.facts;
    waits(c);
    // 7.0 and newer hand the context to the functions of a session.
    let short = !wants.details() && facts.function("bpf_session_is_return/1");
    let read = if short { "read_session" } else { "read_detail_session" };
    c.hooks.extend(super::meta::hooks(facts, Brackets::Sessions, FGRAPH));
    super::faults::sessions(c, wants);
    for (function, event, program, both) in [
        ("page_cache_sync_ra", "read that misses", "sync_multi", false),
        ("page_cache_async_ra", "read-ahead due", "async_multi", false),
        ("filemap_splice_read", "splice", "splice_session", true),
        ("shmem_file_read_iter", "tmpfs read", "shmem_session", true),
        ("shmem_file_splice_read", "tmpfs splice", "shmem_splice_session", true),
        ("filemap_read", "read request", read, true),
    ] {
        if !facts.function(function) {
            continue;
        }
        let at = vec![function.to_owned()];
        match both {
            true => c.push(event, program, Attach::Session(at), FGRAPH),
            false => c.push(event, program, Attach::Multi(at, false), CLASSIC),
        }
    }
    writes::sessions(c);
}
