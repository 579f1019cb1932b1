//! Time for benches, which under `-icount` is instructions.

use std::time::Duration;

use anyhow::Context as _;
use anyhow::Result;

/// What time is. What waits (a device, another thread) is timed by [`thread`] on either, since under
/// `-icount`, too, idle time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// CPU time of this thread: what others do meanwhile does not count.
    Native,
    /// The guest's raw clock, which counts instructions under `-icount`.
    Guest,
}

impl Clock {
    /// The time now.
    pub fn now(self) -> Result<Duration> {
        match self {
            Clock::Native => thread(),
            Clock::Guest => read(libc::CLOCK_MONOTONIC_RAW),
        }
    }
}

/// CPU time of this thread.
pub fn thread() -> Result<Duration> {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(std::io::Error::last_os_error()).context("clock_gettime");
    }
    Ok(Duration::new(time.tv_sec.try_into()?, time.tv_nsec.try_into()?))
}

/// Nanoseconds of the guest's clock per instruction, from a loop of known length: two with `-icount shift=1`.
pub fn ns_per_instruction() -> Result<f64> {
    const TURNS: u64 = 1 << 20;
    let begin = Clock::Guest.now()?;
    // SAFETY: counts a register down, two instructions a turn.
    unsafe { std::arch::asm!("2:", "dec {0}", "jnz 2b", inout(reg) TURNS => _, options(nomem, nostack)) };
    let took = Clock::Guest.now()?.saturating_sub(begin);
    Ok(took.as_nanos() as f64 / (2 * TURNS) as f64)
}
