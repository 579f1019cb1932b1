//! A table of the kernel's, mapped into memory piece by piece as far as it is in use: a piece that is mapped counts as
//! memory of ours, all of it.

use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;

use libbpf_rs::MapCore;

/// Rows that are mapped at a time: a whole number of memory pages, whatever the size of a row.
pub(super) const CHUNK: usize = 1024;

/// The pieces that are mapped, from the first row on. All but the last have [`CHUNK`] rows.
#[derive(Debug)]
pub(super) struct Mapped<R> {
    chunks: Vec<(NonNull<R>, usize)>,
}

// SAFETY: the memory is shared with the kernel anyway; every access goes through volatile reads and writes.
unsafe impl<R> Send for Mapped<R> {}

impl<R> Default for Mapped<R> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<R> Mapped<R> {
    /// Maps the next piece, of `rows` rows.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn grow(&mut self, table: &impl MapCore, rows: usize) -> io::Result<()> {
        let at = self.chunks.len() * CHUNK * size_of::<R>();
        // SAFETY: a new mapping at a place of the kernel's choice; the descriptor is valid for the call.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                rows * size_of::<R>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                table.as_fd().as_raw_fd(),
                libc::off_t::try_from(at).unwrap_or(libc::off_t::MAX),
            )
        };
        match NonNull::new(memory.cast()) {
            Some(first) if memory != libc::MAP_FAILED => {
                self.chunks.push((first, rows));
                Ok(())
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// A row that is mapped.
    pub(super) fn row(&self, n: usize) -> *mut R {
        self.chunks[n / CHUNK].0.as_ptr().wrapping_add(n % CHUNK)
    }
}

impl<R> Drop for Mapped<R> {
    fn drop(&mut self) {
        for (first, rows) in &self.chunks {
            // SAFETY: mapped by us with this length, and nobody refers to it any more.
            unsafe { libc::munmap(first.as_ptr().cast(), rows * size_of::<R>()) };
        }
    }
}

/// Marks a row as belonging to a run, if it is this process's.
///
/// # Safety
/// Both are words of one row that is mapped. The kernel programs write whole words, and only read the second one.
pub(super) unsafe fn enter(of: *const u32, into: *mut u32, tgid: u32, run: u32) {
    // SAFETY: as the caller promises.
    unsafe {
        if of.read_volatile() == tgid {
            into.write_volatile(run);
        }
    }
}
