//! seccomp: system calls that a process which counts has no use for.
//!
//! A list of what is refused, not of what is allowed: which calls a C library makes for the same function changes with its
//! version, and a monitor that is left on must not die of an update. What is listed is what would turn a mistake of ours into
//! somebody's foothold. It is refused with `EPERM`, so that what asks goes on without.

use std::io;

/// Running programs, looking into and changing others, the tree of mounts, namespaces, modules, keys, identity, clocks, and
/// the ways around this list.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_mknod,
    libc::SYS_mknodat,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_personality,
];

/// Commands of `bpf(2)` that make, load, attach, pin or find something: `BPF_MAP_CREATE`, `PROG_LOAD`, `OBJ_PIN`, `OBJ_GET`,
/// `PROG_ATTACH`, `PROG_DETACH`, `PROG_GET_FD_BY_ID`, `MAP_GET_FD_BY_ID`, `RAW_TRACEPOINT_OPEN`, `BTF_LOAD`, `LINK_CREATE`,
/// `LINK_UPDATE`, `LINK_GET_FD_BY_ID`, `ITER_CREATE`, `TOKEN_CREATE`. What is left reads and writes tables that are open.
const MAKE: &[u32] = &[0, 5, 6, 7, 8, 9, 13, 14, 17, 18, 28, 29, 30, 33, 36];

/// `AUDIT_ARCH_X86_64`
const ARCH: u32 = 0xc000_003e;
/// Numbers from here on are those of x32, which are other names of the same calls.
const X32: u32 = 0x4000_0000;
/// Where `struct seccomp_data` has the number, the architecture, and the lower half of the first argument.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST: u32 = 16;

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const FROM: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Whether this kernel has it.
///
/// # Errors
/// Why not.
pub(super) fn available() -> io::Result<()> {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: reads a number of ours.
    let ret =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0_u32, &raw const action) };
    if ret == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Refuses them from here on, in this thread and those that it begins. `programs`: kernel programs that are loaded already
/// are used, and no others; else `bpf(2)` is refused, too. There must be no new privileges.
///
/// # Errors
/// When the kernel does not have it.
pub(super) fn refuse(programs: bool) -> io::Result<()> {
    let filter = filter(programs);
    let length = u16::try_from(filter.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel copies a filter of that length.
    let ret =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0_u32, &raw const program) };
    if ret == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn filter(programs: bool) -> Vec<libc::sock_filter> {
    let step = |code: u32, value: u32, yes: u8| libc::sock_filter {
        code: u16::try_from(code).unwrap_or(u16::MAX),
        jt: yes,
        jf: 0,
        k: value,
    };
    // Each test is followed by the answer that it jumps over if it does not hold: distances stay short, lists any length.
    let unless = |code, value| libc::sock_filter { jf: 1, ..step(code, value, 0) };
    let refused = step(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs(), 0);
    let allowed = step(RETURN, libc::SECCOMP_RET_ALLOW, 0);
    let number = |call: libc::c_long| u32::try_from(call).unwrap_or(u32::MAX);
    // Another architecture's numbers mean other calls: none of ours.
    let mut out = vec![step(LOAD, ARCHITECTURE, 0), step(EQUAL, ARCH, 1), refused, step(LOAD, NUMBER, 0)];
    out.extend([unless(FROM, X32), refused]);
    for call in REFUSED {
        out.extend([unless(EQUAL, number(*call)), refused]);
    }
    if programs {
        out.extend([step(EQUAL, number(libc::SYS_bpf), 1), allowed, step(LOAD, FIRST, 0)]);
        for command in MAKE {
            out.extend([unless(EQUAL, *command), refused]);
        }
    } else {
        out.extend([unless(EQUAL, number(libc::SYS_bpf)), refused]);
    }
    out.push(allowed);
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// What the filter answers, as the kernel would run it.
    fn answer(filter: &[libc::sock_filter], arch: u32, number: u32, first: u32) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let step = filter[at];
            at += 1;
            let holds = match u32::from(step.code) {
                LOAD => {
                    value = match step.k {
                        NUMBER => number,
                        ARCHITECTURE => arch,
                        FIRST => first,
                        other => panic!("{other}"),
                    };
                    continue;
                }
                EQUAL => value == step.k,
                FROM => value >= step.k,
                RETURN => return step.k,
                other => panic!("{other}"),
            };
            at += usize::from(if holds { step.jt } else { step.jf });
        }
    }

    #[test]
    fn what_is_listed_is_refused_and_nothing_else() {
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
        for programs in [true, false] {
            let filter = filter(programs);
            for number in 0..1024_u32 {
                let listed = REFUSED.contains(&libc::c_long::from(number));
                let bpf = libc::c_long::from(number) == libc::SYS_bpf;
                for first in 0..64 {
                    let wanted = listed || bpf && (!programs || MAKE.contains(&first));
                    let got = answer(&filter, ARCH, number, first);
                    assert_eq!(got == refused, wanted, "{number} {first}");
                    assert!(wanted || got == libc::SECCOMP_RET_ALLOW);
                }
                // The same by its other name, and the numbers of 32 bits.
                assert_eq!(answer(&filter, ARCH, number | X32, 0), refused);
                assert_eq!(answer(&filter, 0x4000_0003, number, 0), refused);
            }
            assert!(filter.len() < 4096, "more than the kernel takes");
        }
    }

    #[test]
    fn a_thread_without_them_goes_on() {
        let refused = std::thread::spawn(|| {
            super::super::keep(&[]).unwrap();
            refuse(false).unwrap();
            // What threads, files and time need goes on.
            let other = std::thread::spawn(|| std::fs::read("/proc/self/status").unwrap().len());
            assert!(other.join().unwrap() > 0);
            std::process::Command::new("/bin/true").spawn().unwrap_err()
        });
        assert_eq!(refused.join().unwrap().raw_os_error(), Some(libc::EPERM));
    }
}
