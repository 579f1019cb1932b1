//! A table of the kernel's, mapped into memory piece by piece as far as it is in use: a piece that is mapped counts as
//! memory of ours, all of it.

use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;

use libbpf_rs::MapCore;

use super::skel::types;

/// Rows that are mapped at a time: a whole number of memory pages, whatever the size of a row.
pub(super) const CHUNK: usize = 1024;

/// What the rows of both tables have.
pub(super) trait Row {
    /// How often the row was given out, the process it belongs to, and the run that this process is part of: words of
    /// the row, which need not be mapped.
    fn words(row: *mut Self) -> (*const u32, *const u32, *mut u32);
}

macro_rules! rows {
    ($($row:ident)+) => {$(
        impl Row for types::$row {
            fn words(row: *mut Self) -> (*const u32, *const u32, *mut u32) {
                // SAFETY: callers hand in rows of a table, whose words have an address.
                unsafe { (&raw const (*row).made, &raw const (*row).tgid, &raw mut (*row).run) }
            }
        }
    )+};
}
rows!(row file_row);

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

impl<R: Row> Mapped<R> {
    /// Maps the next piece, of `rows` rows.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn grow(&mut self, table: &impl MapCore, rows: usize) -> io::Result<()> {
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

    /// Maps what is in use of a table with `all` rows, and the first `kept` in any case; says how many rows are mapped.
    ///
    /// Numbers are given out from below: those after the first one never used have not been used either, but for a few
    /// that were taken at the same moment.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn follow(&mut self, table: &impl MapCore, all: usize, kept: usize) -> io::Result<usize> {
        let mut mapped = self.mapped();
        while mapped < all {
            if mapped > kept && !self.last_was_made() {
                break;
            }
            let rows = CHUNK.min(all - mapped);
            self.grow(table, rows)?;
            mapped += rows;
        }
        Ok(mapped)
    }

    /// Whether the last row that is mapped was ever given out; so it is where none is mapped.
    fn last_was_made(&self) -> bool {
        let Some(last) = self.mapped().checked_sub(1) else { return true };
        let (made, ..) = R::words(self.row(last));
        // SAFETY: the row is mapped; the kernel writes whole words.
        unsafe { made.read_volatile() != 0 }
    }

    /// Whether rows are in use that are not mapped yet, of a table with `all` rows.
    pub(super) fn outgrown(&self, all: usize) -> bool {
        self.mapped() < all && self.last_was_made()
    }

    /// How many rows are mapped.
    fn mapped(&self) -> usize {
        self.chunks.iter().map(|(_, rows)| rows).sum()
    }

    /// Marks the rows of a process as belonging to a run.
    pub(super) fn enter(&self, tgid: u32, run: u32) {
        for n in 0..self.mapped() {
            let (_, of, into) = R::words(self.row(n));
            // SAFETY: words of one row that is mapped. The kernel programs write whole words, and only read the second one.
            unsafe {
                if of.read_volatile() == tgid {
                    into.write_volatile(run);
                }
            }
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
