//! Which programs can see which event: a row for each event, the best first, in the order in which they attach. What
//! sees pages come and go is attached first, what counts requests last: a request that is counted has been seen from
//! its beginning.

use super::events::Event;
use super::follow::FREE;
use super::follow::SWITCH;
use super::hooks::Why;
use crate::facts::BTRFS_ALLOC;
use crate::facts::BTRFS_FIND;
use crate::facts::BTRFS_READ;
use crate::facts::BTRFS_READ_NOWAIT;
use crate::facts::BTRFS_WRITE;

/// Under which brackets a candidate serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Under {
    /// Any.
    Any,
    /// Where functions can be attached to, in either way.
    Functions,
    /// fentry and fexit.
    Trampolines,
    /// kprobe.session.
    Sessions,
    /// Tracepoints only.
    Calls,
}

/// What else must be so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// The kernel's BTF has this ([`crate::facts::Facts::btf`]).
    Has(&'static str),
    /// It has it not.
    Lacks(&'static str),
    /// Atomic instructions that fetch load.
    Fetch,
    /// They do not.
    NoFetch,
    /// The kernel is not preemptible.
    Quiet,
    /// Trampolines attach.
    Fentry,
    /// kprobe.multi attaches.
    Multi,
    /// It is known where page structs begin: a classic tracepoint hands out a page frame number.
    Pages,
    /// The address of `wake_page_function` is known.
    WakePage,
    /// Read calls are timed.
    Latency,
    /// Nothing is asked at each read call beyond counting it.
    CountsOnly,
    /// Nor are pages looked at one by one; and bad buffers are seen.
    PlainCounts,
    /// The same, and files are requested.
    PlainFiles,
    /// Faults can be counted by their entry: pages are not looked at one by one, and what comes next where a page is not
    /// there is seen.
    PlainFaults,
    /// Read calls are timed, or pages of reads may go while they are read (`RWF_DONTCACHE`, 6.14).
    Beginnings,
    /// Pages mapped around faults are requested.
    Around,
    /// They are not.
    NoAround,
    /// Buffers marked dirty are requested.
    Buffers,
    /// A command is watched.
    Follow,
    /// A cgroup is requested.
    Group,
    /// Who takes pages out is requested.
    Blame,
    /// And who brings them in again.
    Bill,
    /// Read requests are simulated.
    Tried,
}

/// Where a program attaches. Of a list, what the kernel has.
#[derive(Debug, Clone, Copy)]
pub(super) enum On {
    /// BPF trampoline.
    Trampoline(&'static str),
    /// kprobe.session.
    Session(&'static [&'static str]),
    /// kprobe.multi at the entry.
    Entry(&'static [&'static str]),
    /// kprobe.
    Kprobe(&'static str),
    /// BTF tracepoint.
    Btf(&'static str),
    /// Classic tracepoint, category and name.
    Classic(&'static str, &'static str),
    /// At the tick.
    Tick,
}

/// One program of a candidate.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) event: Event,
    pub(super) program: &'static str,
    pub(super) on: On,
}

/// Programs that see an event together: all of them, or none. A frame that is pushed must be popped.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) under: Under,
    pub(super) needs: &'static [Need],
    pub(super) parts: &'static [Part],
    /// Why it may be taken, where that does not follow from how it attaches.
    pub(super) why: Option<Why>,
}

macro_rules! why {
    () => {
        None
    };
    ($why:ident) => {
        Some(Why::$why)
    };
}

macro_rules! rows {
    ($( [ $(
        $under:ident ( $($need:expr),* ) { $( $event:ident $program:tt $on:expr ),+ } $( => $why:ident )?
    )+ ] )*) => {
        /// The table.
        pub(super) const ROWS: &[&[Candidate]] = &[ $( &[ $( Candidate {
            under: Under::$under,
            needs: &[ $( $need ),* ],
            parts: &[ $( Part { event: Event::$event, program: $program, on: $on } ),+ ],
            why: why!($($why)?),
        } ),+ ] ),* ];
    };
}

use Need::*;
use On::*;

const ADD: &str = "mm_filemap_add_to_page_cache";
const DELETE: &str = "mm_filemap_delete_from_page_cache";
const SYNC_OLD: &str = "page_cache_sync_ra/3";
const WRITE_OLD: &str = "generic_perform_write/3";
const IOMAP: &str = super::worth::IOMAP;
const IOMAP4: &str = "iomap_file_buffered_write/4";
const IOMAP5: &str = "iomap_file_buffered_write/5";
const SHMEM_ADD: &str = "shmem_add_to_page_cache";
const SHMEM_ADD5: &str = "shmem_add_to_page_cache/5";
const DEVICE: &str = "blkdev_direct_IO";
const SIMPLE: &str = "__blkdev_direct_IO_simple";
const ASYNC: &str = "__blkdev_direct_IO_async";
const MANY: &str = "__blkdev_direct_IO";

rows! {
    // The classic one does not say which mapping.
    [ Calls() { PageAdded "add_in_call_btf" Btf(ADD) }
      Functions(Fetch) { PageAdded "add_btf" Btf(ADD) }
      Functions(NoFetch) { PageAdded "add_btf_pages" Btf(ADD) }
      Functions(Fetch, Pages) { PageAdded "add_tp" Classic("filemap", ADD) } ]
    // Both callers hold the lock of the mapping's xarray, with interrupts off.
    [ Any(Fetch) { PageDeleted "delete_btf" Btf(DELETE) } => QuietLock
      Any(NoFetch) { PageDeleted "delete_btf_pages" Btf(DELETE) } => QuietLock
      Any(Fetch, Pages) { PageDeleted "delete_tp" Classic("filemap", DELETE) } ]
    // Under the same lock.
    [ Calls() { PageDirtied "dirty_in_call_btf" Btf("writeback_dirty_folio") } => QuietLock
      Any(Fetch) { PageDirtied "dirty_btf" Btf("writeback_dirty_folio") } => QuietLock
      Any(NoFetch) { PageDirtied "dirty_btf_pages" Btf("writeback_dirty_folio") } => QuietLock
      Any(Fetch, Lacks("tp:writeback_dirty_folio")) {
          PageDirtied "dirty_btf" Btf("writeback_dirty_page") } => QuietLock
      Any(NoFetch, Lacks("tp:writeback_dirty_folio")) {
          PageDirtied "dirty_btf_pages" Btf("writeback_dirty_page") } => QuietLock
      Any(Multi, Fetch) { PageDirtied "dirty_multi" Entry(&["__folio_mark_dirty"]) } ]
    [ Any(Buffers) { BufferDirtied "buffer_btf" Btf("block_dirty_buffer") }
      Any(Buffers) { BufferDirtied "buffer_tp" Classic("block", "block_dirty_buffer") } ]
    // The first hands on the task itself, the classic one a thread's number: rows are searched where another is renamed. The
    // lock of the name, under which nothing preempted the first on 6.12, is gone on 6.18.
    [ Calls() { ThreadNamed "rename_in_call_btf" Btf("task_rename") }
      Calls(Has("bpf_for_each_map_elem")) { ThreadNamed "rename_in_call_tp" Classic("task", "task_rename") }
      Functions() { ThreadNamed "rename_btf" Btf("task_rename") }
      Functions(Has("bpf_for_each_map_elem")) { ThreadNamed "rename_tp" Classic("task", "task_rename") } ]
    // Threads that become another user's, or another cgroup's, without executing anything.
    [ Any(Fentry, Quiet) { ThreadUser "user_fentry" Trampoline("commit_creds") }
      Any(Multi) { ThreadUser "user_multi" Entry(&["commit_creds"]) } ]
    // The program looks at all rows: a walk over a table is there from 5.13 on.
    [ Any(Has("bpf_for_each_map_elem")) { ThreadCgroup "cgroup_tp" Classic("cgroup", "cgroup_attach_task") } ]
    [ Calls() { ThreadExits "exit_in_call_btf" Btf("sched_process_exit") }
      Functions() { ThreadExits "exit_btf" Btf("sched_process_exit") }
      Functions() { ThreadExits "exit_tp" Classic("sched", "sched_process_exit") } ]
    // After the exit, a thread still closes its files. The next thread may be where this one was: it must not find its
    // row. Run with softirqs off, which nothing preempts: it loses nothing. The classic one does not say which thread.
    [ Calls() { ThreadGone "gone_in_call_btf" Btf("sched_process_free") } => QuietFree
      Functions() { ThreadGone "gone_btf" Btf("sched_process_free") } => QuietFree ]
    // And whoever begins there has no row, should that one not have been told of. Not where this one would lose events:
    // they would count as lost, and nearly all of them have nothing to say.
    [ Calls(Quiet) { ThreadBegins "born_in_call_btf" Btf("sched_process_fork") }
      Functions(Quiet) { ThreadBegins "born_btf" Btf("sched_process_fork") } ]

    // Which pages come again that somebody took out: programs beside those that count. Pages that go
    // are told by the program that counts them (delete_btf and its like).
    [ Any(Blame) { PageBack "blame_came_btf" Btf(ADD) }
      Any(Blame, Pages) { PageBack "blame_came_tp" Classic("filemap", ADD) } ]
    [ Sessions(Blame) { RefaultOf "blame_refault_multi" Entry(&["workingset_refault"]) }
      Trampolines(Blame) { RefaultOf "blame_refault_fentry" Trampoline("workingset_refault") } ]
    // Threads that wait for these. Only a probe knows where the stack is.
    [ Sessions(Bill, WakePage) { WaitOf "blame_wait_session" Session(&["io_schedule"]) }
      Trampolines(Bill, WakePage) {
          WaitOfEnded "blame_waited_fexit" Trampoline("io_schedule"),
          WaitOf "blame_wait_kprobe" Kprobe("io_schedule") } ]
    // For whom kswapd may have made room. The first is run under the lock of the list, with interrupts off.
    [ Any(Bill) { MemoryTaken "blame_grew_btf" Btf("mm_lru_insertion") } => QuietLock ]
    [ Any(Bill) { KswapdWoken "blame_woke_btf" Btf("mm_vmscan_wakeup_kswapd") }
      Any(Bill) { KswapdWoken "blame_woke_tp" Classic("vmscan", "mm_vmscan_wakeup_kswapd") } ]

    // Read requests as they are made: `run_of` tells which command they are of.
    [ Any(Tried) { RequestMade "tried_btf" Btf("sys_enter") }
      Any(Tried) { RequestMade "tried_tp" Classic("raw_syscalls", "sys_enter") } ]

    // A command under watch. What is missing makes figures of the report unknown, and nothing else.
    // One that is not seen is not in the report, nor is what it makes. Of processes of many threads the tracepoint was passed by
    // where it is preempted.
    [ Any(Follow) { ProcessMade "fork_btf" Btf("sched_process_fork") }
      Sessions(Follow) { ProcessMade "fork_multi" Entry(&["wake_up_new_task"]) } ]
    // As gone_btf.
    [ Any(Follow) { ProcessGone FREE Btf("sched_process_free") } => QuietFree ]
    [ Any(Follow) { ThreadEnds "end_btf" Btf("sched_process_exit") }
      Any(Follow) { ThreadEnds "end_tp" Classic("sched", "sched_process_exit") } ]
    // Under the lock of the processor's queue, with interrupts off.
    [ Any(Follow) { ThreadWaits SWITCH Btf("sched_switch") } => QuietLock ]
    [ Any(Follow) { WriterPaused "throttle_tp" Classic("writeback", "balance_dirty_pages") } ]
    // File systems without a disk (ramfs, /proc) say by d_add that there is no such name, and /proc answers by the second on newer kernels.
    [ Trampolines(Follow) { NameAnswered "answer_fentry" Trampoline("d_splice_alias") }
      Sessions(Follow) { NameAnswered "answer_multi" Entry(&["d_splice_alias", "d_splice_alias_ops"]) } ]
    [ Trampolines(Follow) { NameAnswered "answer_add_fentry" Trampoline("d_add") }
      Sessions(Follow) { NameAnswered "answer_add_multi" Entry(&["d_add"]) } ]
    [ Trampolines(Follow) { NameLookedUp "lookup_fentry" Trampoline("d_alloc_parallel") }
      Sessions(Follow) { NameLookedUp "lookup_multi" Entry(&["d_alloc_parallel"]) } ]

    // Cgroups are made one at a time: no event of it comes while the program runs for another.
    [ Any(Group) { CgroupMade "group_btf" Btf("cgroup_mkdir") } => Quiet ]

    // Read requests where no function can be attached to.
    [ Calls() { Read "get_pages_btf" Btf("mm_filemap_get_pages") } ]
    [ Calls() { ReadEnded "settle_pending" Tick } ]
    [ Calls() { UringRequest "uring_btf" Btf("io_uring_submit_req") } ]

    // Readers that wait for a page that somebody else is still reading.
    [ Functions(WakePage, Multi) { InFlight "wait_multi" Entry(&["io_schedule"]) }
      Functions(WakePage) { InFlight "wait_kprobe" Kprobe("io_schedule") } ]

    // Blocks looked up. What is read ahead is no access: where that cannot be known, nothing is counted. The kernels
    // that sessions serve have bdev_getblk (6.7).
    [ Sessions() { BlockFound "block_session" Session(&["bdev_getblk"]) }
      Trampolines() { BlockFound "block_fexit" Trampoline("bdev_getblk") }
      Trampolines(Fetch, Lacks("bdev_getblk")) {
          BlockAhead "breadahead_fentry" Trampoline("__breadahead"),
          BlockFound "block_old_fexit" Trampoline("__getblk_gfp") }
      Trampolines(NoFetch, Lacks("bdev_getblk")) {
          BlockAhead "breadahead_fentry" Trampoline("__breadahead"),
          BlockFound "block_old_fexit_pages" Trampoline("__getblk_gfp") } ]
    // The trees of btrfs being walked.
    [ Sessions(Fetch) {
          TreeFound "tree_found_session" Session(&[BTRFS_FIND]),
          TreeMade "tree_alloc_session" Session(&[BTRFS_ALLOC]),
          TreeRead "tree_read_multi" Entry(&[BTRFS_READ]),
          TreeAhead "tree_ahead_multi" Entry(&[BTRFS_READ_NOWAIT]) } => Fgraph
      Trampolines(Fetch, Has(BTRFS_READ_NOWAIT)) {
          TreeFound "tree_found_fexit" Trampoline(BTRFS_FIND),
          TreeMade "tree_alloc_fexit" Trampoline(BTRFS_ALLOC),
          TreeMade "tree_alloc_fentry" Trampoline(BTRFS_ALLOC),
          TreeRead "tree_read_fentry" Trampoline(BTRFS_READ),
          TreeAhead "tree_ahead_fentry" Trampoline(BTRFS_READ_NOWAIT) }
      Trampolines(Fetch, Lacks(BTRFS_READ_NOWAIT)) {
          TreeFound "tree_found_fexit" Trampoline(BTRFS_FIND),
          TreeMade "tree_alloc_fexit" Trampoline(BTRFS_ALLOC),
          TreeMade "tree_alloc_fentry" Trampoline(BTRFS_ALLOC),
          TreeRead "tree_read_old_fentry" Trampoline(BTRFS_READ) } ]

    [ Sessions() { Window "window_session" Session(&["page_cache_ra_unbounded"]) }
      Trampolines() {
          WindowEnded "window_fexit" Trampoline("page_cache_ra_unbounded"),
          Window "window_fentry" Trampoline("page_cache_ra_unbounded") } ]
    [ Sessions() { WindowLarge "window_order_session" Session(&["page_cache_ra_order"]) }
      Trampolines() {
          WindowLargeEnded "window_order_fexit" Trampoline("page_cache_ra_order"),
          WindowLarge "window_order_fentry" Trampoline("page_cache_ra_order") } ]

    // Page faults.
    [ Sessions() { Fault "fault_session" Session(&["filemap_fault"]) }
      Trampolines(Fetch) {
          FaultEnded "fault_fexit" Trampoline("filemap_fault"),
          Fault "fault_fentry" Trampoline("filemap_fault") }
      Trampolines(NoFetch) {
          FaultEnded "fault_fexit" Trampoline("filemap_fault"),
          Fault "fault_fentry_pages" Trampoline("filemap_fault") }
      Calls() { Fault "fault_btf" Btf("mm_filemap_fault") } ]
    [ Sessions() { TmpfsFault "shmem_fault_session" Session(&["shmem_fault"]) }
      Trampolines(Fetch) { TmpfsFaultEnded "shmem_fault_fexit" Trampoline("shmem_fault") }
      Trampolines(NoFetch) { TmpfsFaultEnded "shmem_fault_fexit_pages" Trampoline("shmem_fault") } ]
    // How many are mapped is known by what the thread had mapped before. Before 5.12 the function returned nothing, and
    // on such kernels fetching atomics do not load either.
    [ Sessions(PlainFaults) {
          MappedAround "map_pages_multi" Entry(&["filemap_map_pages"]),
          MappedAroundEnded "look_plain" Tick }
      Sessions() { MappedAround "map_pages_session" Session(&["filemap_map_pages"]) }
      Trampolines(Around, Fetch) {
          MappedAroundEnded "map_pages_fexit" Trampoline("filemap_map_pages"),
          MappedAround "map_pages_fentry" Trampoline("filemap_map_pages") }
      Trampolines(Around, NoFetch) {
          MappedAroundEnded "map_pages_old_fexit" Trampoline("filemap_map_pages"),
          MappedAround "map_pages_fentry" Trampoline("filemap_map_pages") }
      Trampolines(NoAround, Fetch) { MappedAroundEnded "map_pages_fexit" Trampoline("filemap_map_pages") }
      Trampolines(NoAround, NoFetch) { MappedAroundEnded "map_pages_old_fexit" Trampoline("filemap_map_pages") }
      Calls() { MappedAround "map_pages_btf" Btf("mm_filemap_map_pages") } ]
    // Pages mapped are of interest around a fault only. They are under the lock of the page table.
    [ Sessions(Around, Fentry, Has("filemap_map_pages")) {
          PagesMapped "mapped_fentry" Trampoline("set_pte_range") } => QuietLock
      Sessions(Around, Has("filemap_map_pages")) { PagesMapped "mapped_multi" Entry(&["set_pte_range"]) }
      Trampolines(Around, Has("filemap_map_pages")) { PagesMapped "mapped_fentry" Trampoline("set_pte_range") } ]
    [ Sessions(Around, Has("filemap_map_pages")) { HugeMapped "mapped_huge_session" Session(&["do_set_pmd"]) }
      Trampolines(Around, Has("filemap_map_pages"), Has("do_set_pmd/3")) {
          HugeMapped "mapped_huge_fexit3" Trampoline("do_set_pmd") }
      Trampolines(Around, Has("filemap_map_pages"), Lacks("do_set_pmd/3")) {
          HugeMapped "mapped_huge_fexit" Trampoline("do_set_pmd") } ]
    [ Sessions() { ReadBack "refault_multi" Entry(&["workingset_refault"]) }
      Trampolines() { ReadBack "refault_fentry" Trampoline("workingset_refault") } ]

    // Read requests. Older kernels pass the state of the read-ahead as an argument of its own.
    [ Sessions() { ReadMisses "sync_multi" Entry(&["page_cache_sync_ra"]) }
      Trampolines(Has(SYNC_OLD)) { ReadMisses "sync_old_fentry" Trampoline("page_cache_sync_ra") }
      Trampolines(Lacks(SYNC_OLD)) { ReadMisses "sync_fentry" Trampoline("page_cache_sync_ra") } ]
    [ Sessions() { ReadAheadDue "async_multi" Entry(&["page_cache_async_ra"]) }
      Trampolines(Has(SYNC_OLD)) { ReadAheadDue "async_old_fentry" Trampoline("page_cache_async_ra") }
      Trampolines(Lacks(SYNC_OLD)) { ReadAheadDue "async_fentry" Trampoline("page_cache_async_ra") } ]
    // A read is counted when it returns.
    [ Trampolines(Fetch, CountsOnly) { ReadEnded "read_counts_fexit" Trampoline("filemap_read") }
      Trampolines(Fetch) { ReadEnded "read_fexit" Trampoline("filemap_read") }
      Trampolines(NoFetch) { ReadEnded "read_fexit_pages" Trampoline("filemap_read") }
      Trampolines(Fetch, Lacks("filemap_read")) {
          ReadEnded "read_fexit" Trampoline("generic_file_buffered_read") }
      Trampolines(NoFetch, Lacks("filemap_read")) {
          ReadEnded "read_fexit_pages" Trampoline("generic_file_buffered_read") } ]
    // Its beginning matters to the clock and to RWF_DONTCACHE.
    [ Trampolines(Beginnings) { Read "read_fentry" Trampoline("filemap_read") }
      Trampolines(Beginnings, Lacks("filemap_read")) { Read "read_fentry" Trampoline("generic_file_buffered_read") } ]
    // Before filemap_splice_read (6.5), sendfile and splice went through the read path.
    [ Sessions() { Splice "splice_session" Session(&["filemap_splice_read"]) }
      Trampolines() { SpliceEnded "splice_fexit" Trampoline("filemap_splice_read") } ]
    [ Trampolines(Latency) { Splice "splice_fentry" Trampoline("filemap_splice_read") } ]
    [ Sessions() { TmpfsRead "shmem_session" Session(&["shmem_file_read_iter"]) }
      Trampolines(Fetch) {
          TmpfsReadEnded "shmem_fexit" Trampoline("shmem_file_read_iter"),
          TmpfsRead "shmem_fentry" Trampoline("shmem_file_read_iter") }
      Trampolines(NoFetch) {
          TmpfsReadEnded "shmem_fexit_pages" Trampoline("shmem_file_read_iter"),
          TmpfsRead "shmem_fentry" Trampoline("shmem_file_read_iter") } ]
    [ Sessions() { TmpfsSplice "shmem_splice_session" Session(&["shmem_file_splice_read"]) }
      Trampolines() {
          TmpfsSpliceEnded "shmem_splice_fexit" Trampoline("shmem_file_splice_read"),
          TmpfsSplice "shmem_splice_fentry" Trampoline("shmem_file_splice_read") } ]
    // 7.0 and newer hand the context to the functions of a session.
    // Nearly all reads and writes need no hook at their return there (bpf/plain.h).
    [ Sessions(PlainCounts, Has("bpf_session_is_return/1")) {
          ReadCut "bad_address_multi" Entry(&["fixup_exception"]),
          Read "read_plain_session" Session(&["filemap_read"]),
          ReadEnded "look_plain" Tick }
      Sessions(PlainFiles, Has("bpf_session_is_return/1")) {
          ReadCut "bad_address_multi" Entry(&["fixup_exception"]),
          Read "read_plain_files_session" Session(&["filemap_read"]),
          ReadEnded "look_plain" Tick }
      Sessions(CountsOnly, Has("bpf_session_is_return/1")) { Read "read_session" Session(&["filemap_read"]) }
      Sessions() { Read "read_detail_session" Session(&["filemap_read"]) } ]

    // Buffered writes. Exits first: what is pushed once the entry is there is popped.
    [ Sessions(PlainCounts, Has("bpf_session_is_return/1")) {
          Write "write_plain_session" Session(&["generic_perform_write", IOMAP]) }
      Sessions(PlainFiles, Has("bpf_session_is_return/1")) {
          Write "write_plain_files_session" Session(&["generic_perform_write", IOMAP]) }
      Sessions() { Write "write_session" Session(&["generic_perform_write", IOMAP]) }
      Trampolines(Has(WRITE_OLD)) {
          WriteEnded "write_old_fexit" Trampoline("generic_perform_write"),
          Write "write_old_fentry" Trampoline("generic_perform_write") }
      Trampolines(Lacks(WRITE_OLD)) {
          WriteEnded "write_fexit" Trampoline("generic_perform_write"),
          Write "write_fentry" Trampoline("generic_perform_write") } ]
    [ Trampolines(Has(IOMAP5)) {
          WriteIomapEnded "iomap_write_fexit5" Trampoline(IOMAP),
          WriteIomap "iomap_write_fentry" Trampoline(IOMAP) }
      Trampolines(Has(IOMAP4), Lacks(IOMAP5)) {
          WriteIomapEnded "iomap_write_fexit4" Trampoline(IOMAP),
          WriteIomap "iomap_write_fentry" Trampoline(IOMAP) }
      Trampolines(Fetch, Lacks(IOMAP4), Lacks(IOMAP5)) {
          WriteIomapEnded "iomap_write_fexit" Trampoline(IOMAP),
          WriteIomap "iomap_write_fentry" Trampoline(IOMAP) }
      Trampolines(NoFetch) {
          WriteIomapEnded "iomap_write_fexit_pages" Trampoline(IOMAP),
          WriteIomap "iomap_write_fentry" Trampoline(IOMAP) } ]
    [ Sessions() { WriteBtrfs "btrfs_write_session" Session(&[BTRFS_WRITE]) }
      Trampolines(Fetch) {
          WriteBtrfsEnded "btrfs_write_fexit" Trampoline(BTRFS_WRITE),
          WriteBtrfs "btrfs_write_fentry" Trampoline(BTRFS_WRITE) }
      Trampolines(NoFetch) {
          WriteBtrfsEnded "btrfs_write_fexit_pages" Trampoline(BTRFS_WRITE),
          WriteBtrfs "btrfs_write_fentry" Trampoline(BTRFS_WRITE) } ]
    [ Trampolines(Has(SHMEM_ADD5)) { TmpfsAdded "shmem_add_fexit" Trampoline(SHMEM_ADD) }
      Trampolines(Lacks(SHMEM_ADD5)) { TmpfsAdded "shmem_add_old_fexit" Trampoline(SHMEM_ADD) } ]

    // I/O past the cache. Some compilers split the function of block devices and call its part past it (6.1): where its
    // callees are functions of their own, nothing goes past those: each request goes to one of them. Where some do not
    // exist, what the rest sees would be a share. Not split, as far as is known of any kernel, where ASYNC is none.
    [ Sessions(Has(SIMPLE), Has(ASYNC), Has(MANY)) { DeviceDirect "device_session" Session(&[SIMPLE, ASYNC, MANY]) }
      Sessions(Lacks(ASYNC)) { DeviceDirect "device_session" Session(&[DEVICE]) }
      Trampolines(Lacks(ASYNC)) {
          DeviceDirectEnded "device_fexit" Trampoline(DEVICE),
          DeviceDirect "device_fentry" Trampoline(DEVICE) }
      Trampolines() {
          DeviceDirectEnded "device_simple_fexit" Trampoline(SIMPLE),
          DeviceDirect "device_simple_fentry" Trampoline(SIMPLE),
          DeviceDirectEnded "device_async_fexit" Trampoline(ASYNC),
          DeviceDirect "device_async_fentry" Trampoline(ASYNC),
          DeviceDirectEnded "device_many_fexit" Trampoline(MANY),
          DeviceDirect "device_many_fentry" Trampoline(MANY) } ]
    [ Sessions() { TmpfsAdded "shmem_add_multi" Entry(&[SHMEM_ADD]) } ]
    [ Sessions() { DirectEnded "iomap_done_multi" Entry(&["iomap_dio_complete"]) }
      Trampolines() { DirectEnded "iomap_done_fentry" Trampoline("iomap_dio_complete") }
      Calls() {
          DirectEnded "direct_done_btf" Btf("iomap_dio_complete"),
          DirectQueued "direct_queued_btf" Btf("iomap_dio_rw_queued"),
          DirectSubmitted "direct_btf" Btf("iomap_dio_rw_begin") } ]
    [ Sessions() { DirectShortEnded "simple_done_multi" Entry(&["iomap_dio_simple_complete"]) }
      Trampolines() { DirectShortEnded "simple_done_fentry" Trampoline("iomap_dio_simple_complete") } ]
    [ Sessions() { DirectBuffersEnded "buffers_done_multi" Entry(&["dio_complete"]) }
      Trampolines() { DirectBuffersEnded "buffers_done_fentry" Trampoline("dio_complete") } ]
    // What submits direct requests that another thread may complete: the request is the first argument.
    [ Sessions() {
          DirectSubmitted "direct_multi"
          Entry(&["__iomap_dio_rw", "__iomap_dio_read_simple", "__blockdev_direct_IO"]) }
      Trampolines() { DirectSubmitted "direct_kprobe" Kprobe("__iomap_dio_rw") } ]
    [ Trampolines() { DirectSubmitted "direct_kprobe" Kprobe("__iomap_dio_read_simple") } ]
    [ Trampolines() { DirectSubmitted "direct_kprobe" Kprobe("__blockdev_direct_IO") } ]
}
