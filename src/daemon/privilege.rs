//! Giving privilege back.

use std::io;

/// Asking the kernel about its tables (before 5.18 each look-up needs it where unprivileged BPF is off).
const CAP_BPF: u32 = 39;
/// Settling and sweeping run programs, which are of the tracing kind.
const CAP_PERFMON: u32 = 38;
/// `open_by_handle_at`, by which cgroups have names.
const CAP_DAC_READ_SEARCH: u32 = 2;

/// What is kept while it runs, each with its reason: see `docs/guide/cachetopd.md`.
pub const KEPT: &[u32] = &[CAP_BPF, CAP_PERFMON, CAP_DAC_READ_SEARCH];

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// `_LINUX_CAPABILITY_VERSION_3`
const VERSION: u32 = 0x2008_0522;

/// Keeps these capabilities, and of them those that there are; no program run from here on gets more. It counts for this
/// thread and those that it begins.
///
/// # Errors
/// When the kernel refuses.
pub fn keep(kept: &[u32]) -> io::Result<()> {
    let call = |result: libc::c_int| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: takes numbers.
    call(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    for capability in (0..64_u32).filter(|c| !kept.contains(c)) {
        // What cannot be dropped, for want of CAP_SETPCAP or since there is no such capability, is not gained either: there
        // are no new privileges.
        // SAFETY: takes numbers.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(capability), 0, 0, 0) };
    }
    // SAFETY: takes numbers.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    let mut header = Header { version: VERSION, pid: 0 };
    let mut data = [Data::default(); 2];
    // SAFETY: both are memory of ours, as large as this version has it.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) };
    call(i32::try_from(got).unwrap_or(-1))?;
    for (half, set) in data.iter_mut().enumerate() {
        let mask =
            kept.iter().filter(|c| **c as usize / 32 == half).fold(0_u32, |mask, c| mask | 1 << (c % 32));
        set.permitted &= mask;
        set.effective = set.permitted;
        set.inheritable = 0;
    }
    // SAFETY: as above.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) };
    call(i32::try_from(set).unwrap_or(-1))
}
