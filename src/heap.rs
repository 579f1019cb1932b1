//! The allocator, told to keep little of what is free: whoever watches for months must not hold what loading took for a
//! moment, nor what the busiest minute did.

/// One heap for all threads, and large pieces always from the kernel, whom they are given back to when they are free. By
/// default glibc gives each thread a heap of its own, and takes large pieces from there, too, once it has seen one be freed.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    // SAFETY: plain numbers; called before other threads are started.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 * 1024);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 256 * 1024);
    }
}

/// Hands free memory back to the kernel: loading takes several copies of the kernel's BTF, 5 MiB each and more, which the
/// allocator would keep.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no preconditions; it takes the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
