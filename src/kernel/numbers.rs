//! Numbers of rows and words that are free: stacks that the kernel programs take from and user space puts back on.

use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;

/// Puts a number back on a stack of free ones. The kernel may refuse it for a moment (bpf/table.h), and it must not be lost.
pub(super) fn hand_back(stack: &impl MapCore, number: usize) -> libbpf_rs::Result<()> {
    const TRIES: u32 = 100;
    let number = u32::try_from(number).unwrap_or(u32::MAX).to_ne_bytes();
    let mut tries = 0..TRIES;
    loop {
        match stack.update(&[], &number, MapFlags::ANY) {
            Err(_) if tries.next().is_some() => std::thread::yield_now(),
            done => return done,
        }
    }
}
