//! What the kernel programs and user space agree on, made from `bpf/wire.h` by the build.

include!(concat!(env!("OUT_DIR"), "/wire.rs"));

/// Number of counters.
pub const COUNTERS: usize = Counter::ALL.len();
