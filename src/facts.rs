//! What this kernel can do, learnt by asking it, never by its version. Plain data: a test makes its own.

#[cfg(test)]
pub(crate) mod fixtures;

use std::collections::BTreeSet;

/// Whether the kernel preempts tasks inside kernel code, which decides what BPF trampolines lose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preemption {
    /// `none` or `voluntary`: nothing is lost to preemption.
    Voluntary,
    /// `full` or `lazy`: a program that is preempted makes others on its CPU be skipped.
    Preemptible,
    /// Could not be learnt; treated as preemptible.
    Unknown,
}

/// The answers of the running kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// `uname -r`, for people.
    pub release: String,
    /// Preemption model, and where that was read.
    pub preemption: Preemption,
    /// Where the preemption model was read.
    pub preemption_source: String,
    /// Spinlocks can be preempted (PREEMPT_RT), too.
    pub realtime: bool,
    /// Names of functions and tracepoints of interest that the kernel's BTF has.
    /// Functions by their name and as `NAME/ARGUMENTS`, BTF tracepoints as `tp:NAME`, types as `struct:NAME`, page
    /// flags as `enum:NAME`, modules of the running kernel as `module:NAME`, and those of which
    /// a file system is mounted here as `mounted:NAME`.
    pub btf: BTreeSet<String>,
    /// A BPF trampoline (fentry) attached to a function in a trial; else the kernel's refusal.
    pub trampoline: Result<(), String>,
    /// `kprobe.multi` attached in a trial; else the kernel's refusal.
    pub kprobe_multi: Result<(), String>,
    /// `kprobe.session` (6.10) attached in a trial; else the kernel's refusal.
    pub kprobe_session: Result<(), String>,
    /// Return probes of kprobe.multi lose nothing (they stand on fgraph: `struct fprobe_hlist`).
    pub return_probes_keep: bool,
    /// Atomic instructions with fetch load (5.12).
    pub fetch_atomics: bool,
    /// A place to read tracepoint ids from, for classic tracepoints; else why there is none.
    pub tracefs: Result<String, String>,
    /// Address of the kernel variable `vmemmap_base`, which says where page structs begin; else why it is not known.
    pub vmemmap: Result<u64, String>,
    /// Address of the kernel's `wake_page_function`, by which a reader that waits for a page is known; else why it is
    /// not known.
    pub wake_page: Result<u64, String>,
    /// Hooks (program names) that refused at the last moment, with the reason.
    pub refused: Vec<(String, String)>,
}

impl Facts {
    /// Whether BTF knows a function.
    #[must_use]
    pub fn function(&self, name: &str) -> bool {
        self.btf.contains(name)
    }

    /// Whether BTF knows a tracepoint.
    #[must_use]
    pub fn tracepoint(&self, name: &str) -> bool {
        self.btf.contains(&format!("tp:{name}"))
    }

    /// Whether a module is loaded (or built in, where the kernel says so).
    #[must_use]
    pub fn module(&self, name: &str) -> bool {
        self.btf.contains(&format!("module:{name}"))
    }

    /// Whether a file system of a module is mounted where this runs.
    #[must_use]
    pub fn mounted(&self, module: &str) -> bool {
        self.btf.contains(&format!("mounted:{module}"))
    }

    /// Whether a hook refused to attach on this run.
    #[must_use]
    pub fn refuses(&self, program: &str) -> bool {
        self.refused.iter().any(|(p, _)| p == program)
    }

    /// Whether nothing is lost to preemption.
    #[must_use]
    pub fn voluntary(&self) -> bool {
        self.preemption == Preemption::Voluntary
    }
}

/// Why hooks on functions are refused where they would attach and never be called.
pub const SWITCHED_OFF: &str = "functions are not traced: kernel.ftrace_enabled is 0, or cannot be read";
/// What to do about it.
pub const SWITCH_ON: &str =
    "sysctl kernel.ftrace_enabled=1; where that is refused, ftrace has given up, and dmesg says why";

/// Functions whose presence decides the plan.
pub const FUNCTIONS: &[&str] = &[
    "filemap_read",
    "generic_file_buffered_read",
    "filemap_splice_read",
    "shmem_file_read_iter",
    "shmem_file_splice_read",
    "page_cache_sync_ra",
    "page_cache_async_ra",
    "page_cache_ra_unbounded",
    "page_cache_ra_order",
    "filemap_fault",
    "filemap_map_pages",
    "shmem_fault",
    "set_pte_range",
    "do_set_pmd",
    "workingset_refault",
    "__folio_mark_dirty",
    "bdev_getblk",
    "__getblk_gfp",
    "__breadahead",
    "d_alloc_parallel",
    "d_splice_alias",
    "d_splice_alias_ops",
    "d_add",
    "generic_perform_write",
    "iomap_file_buffered_write",
    "shmem_add_to_page_cache",
    "__iomap_dio_rw",
    "iomap_dio_complete",
    "__iomap_dio_read_simple",
    "iomap_dio_simple_complete",
    "__blockdev_direct_IO",
    "dio_complete",
    "blkdev_direct_IO",
    "__blkdev_direct_IO_async",
    "__blkdev_direct_IO_simple",
    "__blkdev_direct_IO",
    "bpf_session_is_return",
    "bpf_for_each_map_elem",
    "commit_creds",
    "io_schedule",
    "fixup_exception",
    "wake_up_new_task",
    BTRFS_WRITE,
    BTRFS_FIND,
    BTRFS_ALLOC,
    BTRFS_READ,
    BTRFS_READ_NOWAIT,
];

/// The write loop of btrfs, mostly a function of a module.
pub const BTRFS_WRITE: &str = "btrfs_buffered_write";
/// Looks a block of a tree up.
pub const BTRFS_FIND: &str = "find_extent_buffer";
/// Makes a block of a tree, unless it is there.
pub const BTRFS_ALLOC: &str = "alloc_extent_buffer";
/// Reads a block of a tree, unless it is up to date.
pub const BTRFS_READ: &str = "read_extent_buffer_pages";
/// The same without waiting, from 6.12 on.
pub const BTRFS_READ_NOWAIT: &str = "read_extent_buffer_pages_nowait";
/// Functions of btrfs in [`FUNCTIONS`].
pub const OF_BTRFS: &[&str] = &[BTRFS_WRITE, BTRFS_FIND, BTRFS_ALLOC, BTRFS_READ, BTRFS_READ_NOWAIT];

/// Modules of interest when loaded or built in: they read and write in ways of their own.
pub const MODULES: &[&str] = &["btrfs", "fuse", "nfs", "cifs", "ceph", "9p", "afs"];

/// Whether a file system of this type is one of a module's: `nfs4`, `fuse.sshfs`, `fuseblk`, and not `fusectl`.
#[must_use]
pub fn is_of_module(kind: &str, module: &str) -> bool {
    match module {
        "fuse" => kind == "fuse" || kind == "fuseblk" || kind.starts_with("fuse."),
        "nfs" => matches!(kind, "nfs" | "nfs4"),
        "cifs" => matches!(kind, "cifs" | "smb3"),
        module => kind == module,
    }
}

/// Tracepoints whose presence decides the plan.
pub const TRACEPOINTS: &[&str] = &[
    "mm_filemap_add_to_page_cache",
    "mm_filemap_delete_from_page_cache",
    "mm_filemap_get_pages",
    "mm_filemap_fault",
    "mm_filemap_map_pages",
    "sys_enter",
    "writeback_dirty_folio",
    "writeback_dirty_page",
    "block_dirty_buffer",
    "io_uring_submit_req",
    "iomap_dio_rw_begin",
    "iomap_dio_rw_queued",
    "iomap_dio_complete",
    "task_rename",
    "cgroup_attach_task",
    "cgroup_mkdir",
    "sched_switch",
    "sched_process_fork",
    "sched_process_free",
    "balance_dirty_pages",
    "mm_lru_insertion",
    "mm_vmscan_wakeup_kswapd",
    "sched_process_exit",
];
