//! The kernel's accounts of processes that are not ours to wait for (`-p PID --for`): of those that live, by `/proc`;
//! of those that are gone, as the kernel programs kept them when they went. Whoever waited for them, or nobody.

use std::fs;
use std::io;
use std::time::Duration;
use std::time::Instant;

use super::data::Usage;
use super::usage;
use crate::plan::follow;
use crate::procfs;
use crate::sample::Follow;
use crate::sample::Gone;

/// How long the kernel may take to free a process that has been waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// A flag of threads that are about to end.
const PF_EXITING: u64 = 4;

/// Follows processes from here on: what they have used so far in their lives, with those that have gone.
pub(super) fn begin(session: &mut dyn Follow, family: &[u32], run: u32) -> anyhow::Result<Usage> {
    let mut used = of_gone(&session.gone()?);
    for pid in family {
        session.enter(*pid, run)?;
        match own(*pid) {
            Ok(so_far) => used = used.and(so_far),
            // It ends, or has ended: what it used is not of this run.
            Err(_) => drop(session.leave(*pid)?),
        }
    }
    Ok(used)
}

/// Follows nobody any more: what all processes of the run have used in their lives. `None` when that cannot be known: the
/// programs that see them go are not there, or one of them goes without being seen to.
///
/// A process that has been waited for is not in `/proc` any more, and not free yet either for some milliseconds, while
/// others may come to be in that state. So each is taken out while it lives, and only those that are going are waited for.
pub(super) fn end(session: &dyn Follow, run: u32) -> anyhow::Result<Option<Usage>> {
    let uses = |program: &&str| session.plan().uses(program);
    if !uses(&follow::FREE) || !follow::ENDS.iter().any(uses) {
        return Ok(None);
    }
    let began = Instant::now();
    let mut used = Usage::zero();
    loop {
        let members = session.members(run)?;
        for pid in &members {
            let Ok(before) = own(*pid) else { continue };
            // If not, it has gone in between, and its accounts were kept.
            if session.leave(*pid)? {
                used = used.and(own(*pid).unwrap_or(before));
            }
        }
        if session.members(run)?.is_empty() {
            return Ok(Some(used.and(of_gone(&session.gone()?))));
        }
        if began.elapsed() > PATIENCE {
            // Its bytes were kept when its threads ended; the rest would have come with the end of the process.
            let all = used.and(of_gone(&session.gone()?));
            return Ok(Some(Usage {
                device_read_bytes: all.device_read_bytes,
                device_write_bytes: all.device_write_bytes,
                ..Usage::default()
            }));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What processes used that have gone, of all that were ever followed; nothing where nobody sees them go.
pub(super) fn of_all_gone(session: &dyn Follow) -> anyhow::Result<Usage> {
    Ok(of_gone(&session.gone()?))
}

fn of_gone(gone: &Gone) -> Usage {
    let ran = gone.ran_ns as f64 / 1e9;
    let (user, system) = usage::divided(ran, gone.user_ns as f64, gone.system_ns as f64);
    Usage {
        user_s: Some(user),
        system_s: Some(system),
        device_read_bytes: Some(gone.read_bytes),
        // The kernel programs do not keep it of those that are gone.
        called_read_bytes: (*gone == Gone::default()).then_some(0),
        device_write_bytes: Some(gone.write_bytes),
        major_faults: Some(gone.major_faults),
        minor_faults: Some(gone.minor_faults),
    }
}

/// What a living process has used itself, without its children. Bytes are those of its living threads: `/proc/PID/io`
/// adds the children's to them. An error when it is just going.
fn own(pid: u32) -> io::Result<Usage> {
    let mut usage = Usage::of_itself(pid, &procfs::text(format!("/proc/{pid}/stat"))?);
    let (mut read, mut written, mut called) = (Some(0), Some(0), Some(0));
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?.path();
        let stat = match procfs::text(task.join("stat")) {
            Ok(stat) => stat,
            // A thread that has ended since the list was made, of a process that lives: counted when it ended.
            Err(e) if gone(&e) => continue,
            Err(e) => return Err(e),
        };
        let fields = super::child::fields(&stat);
        // Its bytes have been counted when it ended.
        if matches!(fields.first(), Some(&("Z" | "X"))) {
            continue;
        }
        if fields.get(6).and_then(|f| f.parse::<u64>().ok()).is_some_and(|flags| flags & PF_EXITING != 0) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let io = match fs::read_to_string(task.join("io")) {
            Ok(io) => io,
            Err(e) if gone(&e) => continue,
            Err(e) => return Err(e),
        };
        read = read.zip(super::child::bytes(&io, "read_bytes:")).map(|(a, b)| a + b);
        called = called.zip(super::child::bytes(&io, "rchar:")).map(|(a, b)| a + b);
        written = written.zip(super::child::bytes(&io, "write_bytes:")).map(|(a, b)| a + b);
    }
    (usage.device_read_bytes, usage.device_write_bytes) = (read, written);
    usage.called_read_bytes = called;
    Ok(usage)
}

/// Whether a thread that was to be read of is not there any more.
fn gone(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn exact_time_is_divided_as_the_ticks_were() {
        let gone = Gone { user_ns: 30, system_ns: 10, ran_ns: 2_000_000_000, ..Gone::default() };
        let u = of_gone(&gone);
        assert_eq!((u.user_s, u.system_s), (Some(1.5), Some(0.5)));
        let short = of_gone(&Gone { ran_ns: 1_000_000, ..Gone::default() });
        assert_eq!((short.user_s, short.system_s), (Some(0.001), Some(0.0)), "shorter than a tick");
    }

    #[test]
    fn a_process_has_its_own_without_its_children() {
        // Threads of other tests end beside this one. Who follows a process asks again then, too.
        let used = loop {
            match own(std::process::id()) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                used => break used.unwrap(),
            }
        };
        assert!(used.minor_faults.unwrap() > 0);
        assert!(own(u32::MAX).is_err());
    }
}
