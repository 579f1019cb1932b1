//! The sets of capabilities of a thread.

use std::io;

/// Those that a command may hold while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Capability {
    /// `CAP_CHOWN`
    Chown = 0,
    /// `CAP_DAC_OVERRIDE`
    DacOverride = 1,
    /// `CAP_DAC_READ_SEARCH`
    DacReadSearch = 2,
    /// `CAP_FOWNER`
    Fowner = 3,
    /// `CAP_KILL`
    Kill = 5,
    /// `CAP_SETGID`
    Setgid = 6,
    /// `CAP_SETUID`
    Setuid = 7,
    /// `CAP_SYS_PTRACE`
    SysPtrace = 19,
    /// `CAP_SYS_ADMIN`
    SysAdmin = 21,
    /// `CAP_PERFMON`
    Perfmon = 38,
    /// `CAP_BPF`
    Bpf = 39,
    /// `CAP_CHECKPOINT_RESTORE`, from 5.9
    CheckpointRestore = 40,
}

impl Capability {
    /// As the kernel's headers call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chown => "CAP_CHOWN",
            Self::DacOverride => "CAP_DAC_OVERRIDE",
            Self::DacReadSearch => "CAP_DAC_READ_SEARCH",
            Self::Fowner => "CAP_FOWNER",
            Self::Kill => "CAP_KILL",
            Self::Setgid => "CAP_SETGID",
            Self::Setuid => "CAP_SETUID",
            Self::SysPtrace => "CAP_SYS_PTRACE",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
            Self::CheckpointRestore => "CAP_CHECKPOINT_RESTORE",
        }
    }
}

/// Whether this kernel has it.
pub(super) fn known(capability: Capability) -> bool {
    // SAFETY: takes numbers.
    unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability as libc::c_ulong, 0, 0, 0) >= 0 }
}

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

fn call(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Keeps these capabilities, and of them those that there are; no program run from here on gets more. It counts for this
/// thread and those that it begins.
///
/// # Errors
/// When the kernel refuses.
pub fn keep(kept: &[Capability]) -> io::Result<()> {
    // SAFETY: takes numbers.
    call(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    for number in (0..64_u32).filter(|n| !kept.iter().any(|c| *c as u32 == *n)) {
        // What cannot be dropped, for want of CAP_SETPCAP or since there is no such capability, is not gained either: there
        // are no new privileges.
        // SAFETY: takes numbers.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0) };
    }
    // SAFETY: takes numbers.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    change(|half, set| {
        set.permitted &= mask(kept, half);
        set.effective = set.permitted;
        set.inheritable = 0;
    })
}

/// Keeps these capabilities in force, and of them those that there are. What is run from here on is what it would have been:
/// root's programs have what root has, those of files with capabilities or the set-user-id bit theirs, and what is inherited
/// stays at hand for that, though not in force. `whole`: so does all that root's programs have anyway. A program that gains
/// capabilities by its `execve` is to the kernel like one with the set-user-id bit, and leaves no core dump
/// (`fs.suid_dumpable`).
///
/// # Errors
/// When the kernel refuses.
pub(super) fn lower(kept: &[Capability], whole: bool) -> io::Result<()> {
    let at_hand = if whole && is_privileged_root() { u32::MAX } else { 0 };
    let ambient = (0..64_u32).filter(|n| {
        let (is_set, number) = (libc::PR_CAP_AMBIENT_IS_SET, libc::c_ulong::from(*n));
        // SAFETY: takes numbers.
        unsafe { libc::prctl(libc::PR_CAP_AMBIENT, is_set, number, 0, 0) == 1 }
    });
    let ambient: Vec<u32> = ambient.collect();
    change(|half, set| {
        let inherited =
            ambient.iter().filter(|n| **n as usize / 32 == half).fold(0_u32, |all, n| all | 1 << (n % 32));
        set.permitted &= mask(kept, half) | inherited | at_hand;
        set.effective &= mask(kept, half);
    })
}

/// Whether what is run has all capabilities of the bounding set.
pub(super) fn is_privileged_root() -> bool {
    /// `SECBIT_NOROOT`
    const NOROOT: libc::c_int = 1;
    // SAFETY: takes no memory.
    let bits = unsafe { libc::prctl(libc::PR_GET_SECUREBITS, 0, 0, 0, 0) };
    bits >= 0
        && bits & NOROOT == 0
        && (rustix::process::geteuid().is_root() || rustix::process::getuid().is_root())
}

/// Their bits in one half of a set.
fn mask(kept: &[Capability], half: usize) -> u32 {
    let here = kept.iter().map(|c| *c as u32).filter(|n| *n as usize / 32 == half);
    here.fold(0, |mask, n| mask | 1 << (n % 32))
}

fn change(change: impl Fn(usize, &mut Data)) -> io::Result<()> {
    let mut header = Header { version: VERSION, pid: 0 };
    let mut data = [Data::default(); 2];
    // SAFETY: both are memory of ours, as large as this version has it.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) };
    call(i32::try_from(got).unwrap_or(-1))?;
    for (half, set) in data.iter_mut().enumerate() {
        change(half, set);
    }
    // SAFETY: as above.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) };
    call(i32::try_from(set).unwrap_or(-1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The sets of this thread: permitted, in force.
    fn sets() -> [u64; 2] {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        ["CapPrm:", "CapEff:"].map(|key| {
            let line = status.lines().find_map(|l| l.strip_prefix(key)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        })
    }

    /// Whether a program that is run here leaves a core dump; `None` without perl.
    fn dumps() -> Option<String> {
        let line = format!("print syscall({}, {}, 0, 0, 0)", libc::SYS_prctl, libc::PR_GET_DUMPABLE);
        let out = std::process::Command::new("perl").args(["-e", &line]).output().ok()?;
        Some(String::from_utf8(out.stdout).unwrap())
    }

    #[test]
    fn what_is_run_leaves_core_dumps_as_ever() {
        let lowered = |whole: bool| {
            let thread = std::thread::spawn(move || {
                let (before, dumped) = (sets(), dumps());
                lower(&[Capability::Kill], whole).unwrap();
                (before, dumped, sets(), dumps())
            });
            thread.join().unwrap()
        };
        let kill = 1 << Capability::Kill as u32;
        let ([permitted, in_force], dumped, after, dumps) = lowered(true);
        let rest = if is_privileged_root() { permitted } else { permitted & kill };
        assert_eq!((after, dumps), ([rest, in_force & kill], dumped));
        let ([permitted, in_force], _, after, _) = lowered(false);
        assert_eq!(after, [permitted & kill, in_force & kill]);
    }
}
