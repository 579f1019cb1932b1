//! Programs made of a few plain instructions, for asking the kernel ([`super::probe`]) and for measuring what
//! hooks cost by themselves ([`super::floor`]).

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd as _;
use std::os::fd::FromRawFd as _;
use std::os::fd::OwnedFd;

/// One instruction.
pub type Insn = libbpf_sys::bpf_insn;

/// A constant into a register.
pub const MOV64_IMM: u8 = 0xb7;
/// The end.
pub const EXIT: u8 = 0x95;

/// An instruction from its parts.
pub fn insn(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> Insn {
    let mut i = Insn { code, off, imm, ..Insn::default() };
    i.set_dst_reg(dst);
    i.set_src_reg(src);
    i
}

/// Loads a program, or says why the kernel refuses.
///
/// # Errors
/// The kernel's.
pub fn load(kind: u32, attach: u32, btf_id: u32, insns: &[Insn]) -> io::Result<OwnedFd> {
    load_with(kind, insns, |opts| {
        opts.expected_attach_type = attach;
        opts.attach_btf_id = btf_id;
    })
}

/// The same of a program that may sleep.
pub(super) fn load_sleepable(kind: u32, insns: &[Insn]) -> io::Result<OwnedFd> {
    const BPF_F_SLEEPABLE: u32 = 1 << 4;
    load_with(kind, insns, |opts| opts.prog_flags = BPF_F_SLEEPABLE)
}

fn load_with(
    kind: u32,
    insns: &[Insn],
    set: impl FnOnce(&mut libbpf_sys::bpf_prog_load_opts),
) -> io::Result<OwnedFd> {
    let mut opts = libbpf_sys::bpf_prog_load_opts {
        sz: size_of::<libbpf_sys::bpf_prog_load_opts>() as _,
        ..Default::default()
    };
    set(&mut opts);
    // SAFETY: the license and the instructions outlive the call; the options are zero but for what is set.
    let fd = unsafe {
        libbpf_sys::bpf_prog_load(
            kind,
            c"probe".as_ptr(),
            c"GPL".as_ptr(),
            insns.as_ptr(),
            insns.len() as _,
            &raw const opts as *mut _,
        )
    };
    owned(fd)
}

/// Loads a program that does nothing.
///
/// # Errors
/// The kernel's.
pub fn load_empty(kind: u32, attach: u32, btf_id: u32) -> io::Result<OwnedFd> {
    load(kind, attach, btf_id, &[insn(MOV64_IMM, 0, 0, 0, 0), insn(EXIT, 0, 0, 0, 0)])
}

/// Attaches a tracing program to what it was loaded for, until the link is dropped.
///
/// # Errors
/// The kernel's.
pub fn attach_tracing(program: impl AsFd) -> io::Result<OwnedFd> {
    let program = program.as_fd().as_raw_fd();
    // SAFETY: a null name is how tracing programs attach to what they were loaded for.
    owned(unsafe { libbpf_sys::bpf_raw_tracepoint_open(std::ptr::null(), program) })
}

/// Attaches a kprobe.multi program to the entry or the return of functions, until the link is dropped.
///
/// # Errors
/// The kernel's.
pub fn attach_multi(program: impl AsFd, functions: &[String], on_return: bool) -> io::Result<OwnedFd> {
    link_multi(program, libbpf_sys::BPF_TRACE_KPROBE_MULTI, functions, on_return)
}

/// Attaches a kprobe.session program to the entry and the return of functions (6.10), until the link is dropped.
pub(super) fn attach_session(program: impl AsFd, functions: &[String]) -> io::Result<OwnedFd> {
    link_multi(program, libbpf_sys::BPF_TRACE_KPROBE_SESSION, functions, false)
}

/// Runs a program that takes nothing, here and now.
///
/// # Errors
/// The kernel's.
pub(super) fn run(program: impl AsFd) -> io::Result<()> {
    let mut opts = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
        ..Default::default()
    };
    // SAFETY: the options are zero, and outlive the call.
    match unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_fd().as_raw_fd(), &raw mut opts) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// As [`attach_multi`]; `how` may also be `BPF_TRACE_KPROBE_SESSION`, which runs at both ends.
///
/// # Errors
/// The kernel's.
pub fn link_multi(
    program: impl AsFd,
    how: u32,
    functions: &[String],
    on_return: bool,
) -> io::Result<OwnedFd> {
    const BPF_F_KPROBE_MULTI_RETURN: u32 = 1;
    let names = functions
        .iter()
        .map(|f| CString::new(f.as_str()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::from)?;
    let mut pointers: Vec<_> = names.iter().map(|n| n.as_ptr()).collect();
    let mut opts = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as _,
        ..Default::default()
    };
    opts.__bindgen_anon_1.kprobe_multi.cnt = u32::try_from(pointers.len()).unwrap_or(u32::MAX);
    opts.__bindgen_anon_1.kprobe_multi.syms = pointers.as_mut_ptr();
    opts.__bindgen_anon_1.kprobe_multi.flags = if on_return { BPF_F_KPROBE_MULTI_RETURN } else { 0 };
    let program = program.as_fd().as_raw_fd();
    // SAFETY: the options point to as many names as they state, which outlive the call.
    owned(unsafe { libbpf_sys::bpf_link_create(program, 0, how, &raw const opts) })
}

/// A descriptor that the kernel has just handed out, or its error as libbpf returns it.
///
/// # Errors
/// The kernel's.
pub fn owned(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just handed out this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
