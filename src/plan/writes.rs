//! Buffered writes and I/O past the cache: which programs see them, and what the figures are worth.

use super::Attach;
use super::Brackets;
use super::Certainty;
use super::hooks::CLASSIC;
use super::hooks::Chooser;
use super::hooks::FGRAPH;
use super::hooks::Hook;
use super::hooks::LOSSY;
use crate::facts::BTRFS_WRITE;
use crate::facts::Facts;
use crate::figures::Figure;

const GENERIC: &str = "generic_perform_write";
const IOMAP: &str = "iomap_file_buffered_write";
const SHMEM: &str = "shmem_add_to_page_cache";
const DEVICE: &str = "blkdev_direct_IO";
const DEVICE_BEGUN: &str = "direct I/O of a device";
const DEVICE_ENDED: &str = "direct I/O of a device, ended";
/// What submits direct requests that another thread may complete: the request is the first argument.
const SUBMIT: &[&str] = &["__iomap_dio_rw", "__iomap_dio_read_simple", "__blockdev_direct_IO"];
const SUBMITTED: &str = "direct request submitted";
/// What tells of direct requests where only tracepoints attach.
const DIRECT_EVENTS: [&str; 3] = ["iomap_dio_rw_begin", "iomap_dio_rw_queued", "iomap_dio_complete"];
/// Where a direct request ends: function, event, program of a trampoline, program of kprobe.multi.
const DONE: &[(&str, &str, &str, &str)] = &[
    ("iomap_dio_complete", "direct I/O, ended", "iomap_done_fentry", "iomap_done_multi"),
    ("iomap_dio_simple_complete", "direct read, short", "simple_done_fentry", "simple_done_multi"),
    ("dio_complete", "direct I/O by buffers, ended", "buffers_done_fentry", "buffers_done_multi"),
];

/// What the function leaves its work to: each request goes to one of them, and it returns what that returned. Function,
/// program at its exit, program at its entry.
const PARTS: &[(&str, &str, &str)] = &[
    ("__blkdev_direct_IO_simple", "device_simple_fexit", "device_simple_fentry"),
    ("__blkdev_direct_IO_async", "device_async_fexit", "device_async_fentry"),
    ("__blkdev_direct_IO", "device_many_fexit", "device_many_fentry"),
];

/// Some compilers split the function and call its part past it (6.1): where its callees are functions of their own,
/// nothing goes past those. `None`: some do not exist, so that what the rest sees would be a share.
fn device_functions(facts: &Facts) -> Option<Vec<&'static str>> {
    match PARTS.iter().all(|(f, ..)| facts.function(f)) {
        true => Some(PARTS.iter().map(|(f, ..)| *f).collect()),
        // Not split, as far as is known of any kernel.
        false => (!facts.function("__blkdev_direct_IO_async")).then(|| vec![DEVICE]),
    }
}

pub(super) fn trampolines(c: &mut Chooser<'_>, why: &'static str) {
    let facts = c.facts;
    // Exits first: what is pushed once the entry is there is popped.
    let generic = if facts.function("generic_perform_write/3") {
        [("write ended", "write_old_fexit"), ("write", "write_old_fentry")]
    } else {
        [("write ended", "write_fexit"), ("write", "write_fentry")]
    };
    c.together(GENERIC, &generic, why);
    let exit = match () {
        () if facts.function("iomap_file_buffered_write/5") => "iomap_write_fexit5",
        () if facts.function("iomap_file_buffered_write/4") => "iomap_write_fexit4",
        () => "iomap_write_fexit",
    };
    c.together(IOMAP, &[("write by iomap, ended", exit), ("write by iomap", "iomap_write_fentry")], why);
    let btrfs = [("write of btrfs, ended", "btrfs_write_fexit"), ("write of btrfs", "btrfs_write_fentry")];
    c.together(BTRFS_WRITE, &btrfs, why);
    let shmem =
        if facts.function("shmem_add_to_page_cache/5") { "shmem_add_fexit" } else { "shmem_add_old_fexit" };
    c.together(SHMEM, &[("page added to tmpfs", shmem)], why);
    let both = |exit, entry| [(DEVICE_ENDED, exit), (DEVICE_BEGUN, entry)];
    match device_functions(facts).as_deref() {
        Some([DEVICE]) => c.together(DEVICE, &both("device_fexit", "device_fentry"), why),
        Some(_) if !PARTS.iter().any(|(_, a, b)| facts.refuses(a) || facts.refuses(b)) => {
            for (function, exit, entry) in PARTS {
                c.together(function, &both(exit, entry), why);
            }
        }
        _ => {}
    }
    for (function, event, program, _) in DONE {
        c.together(function, &[(event, program)], why);
    }
    for function in SUBMIT.iter().filter(|f| facts.function(f)) {
        c.push(SUBMITTED, "direct_kprobe", Attach::Kprobe((*function).into()), CLASSIC);
    }
}

pub(super) fn sessions(c: &mut Chooser<'_>) {
    let facts = c.facts;
    let there = |names: &[&str]| -> Vec<String> {
        names.iter().filter(|f| facts.function(f)).map(|f| (*f).to_owned()).collect()
    };
    for (event, program, names) in [
        ("write", "write_session", there(&[GENERIC, IOMAP])),
        ("write of btrfs", "btrfs_write_session", there(&[BTRFS_WRITE])),
        (DEVICE_BEGUN, "device_session", there(&device_functions(facts).unwrap_or_default())),
    ] {
        if !names.is_empty() {
            c.push(event, program, Attach::Session(names), FGRAPH);
        }
    }
    let mut entry = |event, program, names: Vec<String>| {
        if !names.is_empty() {
            c.push(event, program, Attach::Multi(names, false), CLASSIC);
        }
    };
    entry("page added to tmpfs", "shmem_add_multi", there(&[SHMEM]));
    for (function, event, _, program) in DONE {
        entry(event, program, there(&[function]));
    }
    entry(SUBMITTED, "direct_multi", there(SUBMIT));
}

pub(super) fn tracepoints(c: &mut Chooser<'_>, why: &'static str) {
    let tp = |name: &str| Attach::TracepointBtf(name.into());
    let facts = c.facts;
    let programs = ["direct_btf", "direct_queued_btf", "direct_done_btf"];
    if DIRECT_EVENTS.iter().all(|t| facts.tracepoint(t)) && !programs.iter().any(|p| facts.refuses(p)) {
        c.push("direct I/O, ended", "direct_done_btf", tp("iomap_dio_complete"), why);
        c.push("direct request queued", "direct_queued_btf", tp("iomap_dio_rw_queued"), why);
        c.push(SUBMITTED, "direct_btf", tp("iomap_dio_rw_begin"), why);
    }
}

/// Bounded by the reasons given, the reads' own among them; else as reads are.
fn limited(reads: &Certainty, reasons: Vec<String>) -> Certainty {
    match reads {
        Certainty::Exact if reasons.is_empty() => Certainty::Exact,
        Certainty::Bounded(why) if reasons.is_empty() => Certainty::Bounded(why.clone()),
        Certainty::Bounded(why) => Certainty::Bounded(format!("{}; {why}", reasons.join("; "))),
        _ => Certainty::Bounded(reasons.join("; ")),
    }
}

/// What the figures of writes and of direct I/O are worth. `reads`: what those of reads are worth, which the hooks
/// have in common with these.
pub(super) fn certainty(
    facts: &Facts,
    brackets: Brackets,
    hooks: &[Hook],
    reads: &Certainty,
) -> Vec<(Figure, Certainty)> {
    let sees = |event: &str| hooks.iter().any(|h| h.event == event);
    let uses = |program: &str| hooks.iter().any(|h| h.program == program);
    let unknown = |why: &str| Certainty::Unknown(why.into());
    let functions = "needs hooks on functions, which this kernel refuses";
    let own = |which: &[&'static str]| -> Vec<&'static str> {
        which.iter().copied().filter(|m| facts.module(m)).collect()
    };
    let writes = match brackets {
        Brackets::Tracepoints => unknown(functions),
        _ if !sees("write") => unknown("the kernel's write loop cannot be attached to"),
        _ => {
            let mut why = Vec::new();
            if !sees("write of btrfs") {
                if facts.module("btrfs") {
                    why.push("writes of btrfs are not seen: its write loop cannot be attached to".into());
                } else {
                    why.push("btrfs was not loaded when we began: its writes would not be seen".into());
                }
            }
            if !uses("write_session") && !sees("write by iomap") && facts.function(IOMAP) {
                why.push("writes of xfs are not seen".into());
            }
            if facts.function("generic_perform_write/3") {
                why.push("pages that xfs zeroes before a write past the end of file count as there".into());
            }
            if !sees("page added to tmpfs") {
                why.push("misses of writes to tmpfs are not seen".into());
            }
            let loops = own(&["fuse", "cifs", "ceph", "9p", "afs"]);
            if !loops.is_empty() {
                why.push(format!("{} may write in loops of their own, which are not seen", loops.join(", ")));
            }
            limited(reads, why)
        }
    };
    let others = own(&["fuse", "nfs", "cifs", "ceph", "9p"]);
    let not_seen = format!("direct I/O of {} is not seen", others.join(", "));
    let direct = match brackets {
        Brackets::Tracepoints if sees(SUBMITTED) => {
            let lossy = hooks.iter().any(|h| h.program == "direct_btf" && h.why == LOSSY);
            let mut why =
                "only direct I/O of file systems that use iomap (ext4, xfs, btrfs, f2fs) is seen, not \
                 that of block devices; an asynchronous request that fails after it was queued counts as done, and LOST \
                 says so where its end is seen"
                    .to_owned();
            if lossy {
                why.push_str("; BTF tracepoints can lose events on preemptible kernels; LOST says how many");
            }
            Certainty::Bounded(why)
        }
        Brackets::Tracepoints => unknown(
            "needs the tracepoints iomap_dio_rw_begin, iomap_dio_rw_queued and iomap_dio_complete (6.6)",
        ),
        _ if !sees("direct I/O, ended") => unknown("the kernel has no iomap_dio_complete to attach to"),
        _ => {
            let mut why = vec![
                "an asynchronous request to a block device that fails after it was queued counts as done"
                    .into(),
            ];
            if !sees(DEVICE_BEGUN) {
                why = vec!["direct I/O of block devices is not seen".into()];
            }
            if !sees(SUBMITTED) {
                why.push("asynchronous requests are nobody's and stand in the totals only".into());
            }
            if !others.is_empty() {
                why.push(not_seen);
            }
            limited(reads, why)
        }
    };
    let fell_back = match &writes {
        Certainty::Exact => reads.clone(),
        other => other.clone(),
    };
    vec![
        (Figure::WriteAccesses, writes.clone()),
        (Figure::WriteHits, writes.clone()),
        (Figure::WriteMisses, writes),
        (Figure::DirectReadBytes, direct.clone()),
        (Figure::DirectWriteBytes, direct),
        (Figure::DirectFellBack, fell_back),
    ]
}
