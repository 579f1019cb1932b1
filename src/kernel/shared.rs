//! A table of the kernel's, mapped into memory as a whole: for as long as this lives all of it counts as memory of ours.

use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;

/// What kernel programs may write to at any moment.
///
/// # Safety
/// Made of atomics alone; any bytes are a value of it.
pub(super) unsafe trait Atomic {}

// SAFETY: an atomic.
unsafe impl Atomic for std::sync::atomic::AtomicU8 {}

// SAFETY: an atomic.
unsafe impl Atomic for std::sync::atomic::AtomicU64 {}

/// All of a table, or its first values.
#[derive(Debug)]
pub(super) struct Shared<T> {
    first: NonNull<T>,
    count: usize,
}

impl<T: Atomic> Shared<T> {
    /// Maps `count` values.
    ///
    /// # Errors
    /// When the kernel refuses; so it does where the table has fewer.
    pub(super) fn new(table: &impl AsFd, count: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at a place of the kernel's choice; the descriptor is valid for the call.
        let memory = unsafe {
            let (protection, fd) = (libc::PROT_READ | libc::PROT_WRITE, table.as_fd().as_raw_fd());
            libc::mmap(std::ptr::null_mut(), count * size_of::<T>(), protection, libc::MAP_SHARED, fd, 0)
        };
        match NonNull::new(memory.cast()) {
            Some(first) if memory != libc::MAP_FAILED => Ok(Self { first, count }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl<T: Atomic> Deref for Shared<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: mapped for as long as this lives, and made of atomics.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length, and nobody refers to it any more.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.count * size_of::<T>()) };
    }
}
