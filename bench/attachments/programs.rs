//! The programs that are attached, instruction by instruction: no compiler adds anything of its own.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::fd::OwnedFd;

use cachetop::kernel::raw::EXIT;
use cachetop::kernel::raw::Insn;
use cachetop::kernel::raw::MOV64_IMM;
use cachetop::kernel::raw::insn;
use cachetop::kernel::raw::owned;

use crate::names::Names;

pub const MOV64_REG: u8 = 0xbf;
pub const ADD64_IMM: u8 = 0x07;
pub const CALL: u8 = 0x85;
pub const LOAD_WORD: u8 = 0x61;
pub const LOAD: u8 = 0x79;
pub const STORE: u8 = 0x7b;
pub const STORE_WORD_IMM: u8 = 0x62;
const STORE_WORD: u8 = 0x63;
const LOAD_IMM: u8 = 0x18;
const AND: u8 = 0x57;
const SHIFT_RIGHT: u8 = 0x77;
const IF_EQUAL: u8 = 0x15;
const IF_NOT_EQUAL: u8 = 0x55;
pub const ATOMIC_ADD: u8 = 0xdb;

/// The last register is the frame pointer.
pub const FP: u8 = 10;
/// `di`, the first argument, in `struct pt_regs` of x86-64.
const FIRST_ARGUMENT: i16 = 112;

/// Which end of a function a program runs at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Entry = 0,
    Return = 1,
    /// One program runs at both, and asks the kernel which it is.
    Both,
}

/// Returns without having done anything.
pub fn empty() -> Vec<Insn> {
    end(Vec::new())
}

/// Appends what each program ends with.
pub fn end(mut body: Vec<Insn>) -> Vec<Insn> {
    body.push(insn(MOV64_IMM, 0, 0, 0, 0));
    body.push(insn(EXIT, 0, 0, 0, 0));
    body
}

/// Calls a helper by its number.
pub fn helper(number: u32) -> Insn {
    insn(CALL, 0, 0, 0, number as i32)
}

/// Calls a kernel function by its BTF id.
fn kfunc(id: u32) -> Insn {
    insn(CALL, 0, 2, 0, id as i32)
}

/// A map into a register; with `value`, the address of its first value.
pub fn map(register: u8, map: &OwnedFd, value: bool) -> [Insn; 2] {
    let kind = if value { 2 } else { 1 };
    [insn(LOAD_IMM, register, kind, 0, map.as_raw_fd()), insn(0, 0, 0, 0, 0)]
}

/// Carries the first argument from entry to return. `argument`: where the context has it.
pub fn cookie(names: &Names, tracing: bool) -> io::Result<Vec<Insn>> {
    let argument = if tracing { 0 } else { FIRST_ARGUMENT };
    let address = |code: &mut Vec<Insn>| -> io::Result<()> {
        code.extend([insn(MOV64_REG, 1, 6, 0, 0), kfunc(names.function("bpf_session_cookie")?)]);
        Ok(())
    };
    // The kernel functions took no argument when they were new: one too many does no harm.
    let mut code = vec![insn(MOV64_REG, 6, 1, 0, 0), kfunc(names.function("bpf_session_is_return")?)];
    code.push(insn(IF_NOT_EQUAL, 0, 0, 6, 0));
    address(&mut code)?;
    code.extend([insn(LOAD, 1, 6, argument, 0), insn(STORE, 0, 1, 0, 0)]);
    code.extend(empty());
    address(&mut code)?;
    code.push(insn(LOAD, 1, 0, 0, 0));
    Ok(end(code))
}

/// Counts its runs in threads of process `tgid`.
pub fn count(counters: &OwnedFd, tgid: u32, which: End, names: &Names) -> io::Result<Vec<Insn>> {
    let mut key = match which {
        End::Both => vec![
            insn(MOV64_REG, 1, 6, 0, 0),
            kfunc(names.function("bpf_session_is_return")?),
            insn(AND, 0, 0, 0, 1),
            insn(STORE_WORD, FP, 0, -4, 0),
        ],
        _ => vec![insn(STORE_WORD_IMM, FP, 0, -4, which as i32)],
    };
    key.extend([insn(MOV64_REG, 2, FP, 0, 0), insn(ADD64_IMM, 2, 0, 0, -4)]);
    key.extend(map(1, counters, false));
    key.extend([
        helper(libbpf_sys::BPF_FUNC_map_lookup_elem),
        insn(IF_EQUAL, 0, 0, 2, 0),
        insn(MOV64_IMM, 1, 0, 0, 1),
        // Atomic, so that a program that is preempted here loses nothing by it.
        insn(ATOMIC_ADD, 0, 1, 0, 0),
    ]);
    let mut code = vec![
        insn(MOV64_REG, 6, 1, 0, 0),
        helper(libbpf_sys::BPF_FUNC_get_current_pid_tgid),
        insn(SHIFT_RIGHT, 0, 0, 0, 32),
        insn(IF_NOT_EQUAL, 0, 0, key.len() as i16, tgid as i32),
    ];
    code.extend(key);
    Ok(end(code))
}

/// A map of 4-byte keys and 8-byte values.
pub fn new_map(kind: u32, entries: u32) -> io::Result<OwnedFd> {
    let none = std::ptr::null();
    // SAFETY: the name outlives the call, and no options are given.
    owned(unsafe { libbpf_sys::bpf_map_create(kind, c"attachments".as_ptr(), 4, 8, entries, none) })
}

/// Gives a map that has such a key its value: zeros, on each CPU where there are several.
pub fn insert(map: &OwnedFd, key: u32) -> io::Result<()> {
    let cpus = libbpf_rs::num_possible_cpus().map_err(io::Error::other)?;
    let values = vec![0u64; cpus];
    // SAFETY: the kernel reads a key of 4 bytes and 8 bytes, for each possible CPU at most.
    let ret = unsafe {
        libbpf_sys::bpf_map_update_elem(map.as_raw_fd(), (&raw const key).cast(), values.as_ptr().cast(), 0)
    };
    if ret < 0 { Err(io::Error::from_raw_os_error(-ret)) } else { Ok(()) }
}

/// The sum over all CPUs of a value of a per-CPU map.
pub fn sum(map: &OwnedFd, key: u32) -> io::Result<u64> {
    let cpus = libbpf_rs::num_possible_cpus().map_err(io::Error::other)?;
    let mut values = vec![0u64; cpus];
    // SAFETY: the kernel reads a key of 4 bytes and writes 8 bytes for each possible CPU.
    let ret = unsafe {
        libbpf_sys::bpf_map_lookup_elem(map.as_raw_fd(), (&raw const key).cast(), values.as_mut_ptr().cast())
    };
    if ret < 0 { Err(io::Error::from_raw_os_error(-ret)) } else { Ok(values.iter().sum()) }
}
