//! What one step of a program costs, over a program that does nothing.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::fd::OwnedFd;

use cachetop::kernel::raw::Insn;
use cachetop::kernel::raw::MOV64_IMM;
use cachetop::kernel::raw::insn;
use cachetop::kernel::raw::owned;

use crate::names::Names;
use crate::programs as p;
use crate::programs::FP;

/// A step's name and the program that takes it. A program owns no map: the kernel keeps those that it uses.
pub struct Step {
    pub title: &'static str,
    pub code: io::Result<Vec<Insn>>,
}

pub fn all(names: &Names) -> Vec<Step> {
    let step = |title, code| Step { title, code };
    vec![
        step("bpf_ktime_get_ns", Ok(call(libbpf_sys::BPF_FUNC_ktime_get_ns))),
        step("bpf_get_current_pid_tgid", Ok(call(libbpf_sys::BPF_FUNC_get_current_pid_tgid))),
        step("bpf_get_smp_processor_id", Ok(call(libbpf_sys::BPF_FUNC_get_smp_processor_id))),
        step("bpf_get_current_task_btf + field", task_field(names)),
        step("field of the first argument", argument_field(names)),
        step("bpf_probe_read_kernel, 8 bytes", Ok(probe_read())),
        step("global variable += 1", global(false)),
        step("global variable, atomic += 1", global(true)),
        step("array map, constant key", look_up(libbpf_sys::BPF_MAP_TYPE_ARRAY)),
        step("per-CPU array map", look_up(libbpf_sys::BPF_MAP_TYPE_PERCPU_ARRAY)),
        step("hash map, hit", look_up(libbpf_sys::BPF_MAP_TYPE_HASH)),
        step("per-CPU hash map, hit", look_up(libbpf_sys::BPF_MAP_TYPE_PERCPU_HASH)),
        step("hash map, insert and delete", insert_delete()),
        step("bpf_task_storage_get, hit", task_storage()),
    ]
}

fn call(number: u32) -> Vec<Insn> {
    p::end(vec![p::helper(number)])
}

fn task_field(names: &Names) -> io::Result<Vec<Insn>> {
    let pid = names.offset("task_struct", "pid")?;
    Ok(p::end(vec![p::helper(libbpf_sys::BPF_FUNC_get_current_task_btf), insn(p::LOAD_WORD, 1, 0, pid, 0)]))
}

fn argument_field(names: &Names) -> io::Result<Vec<Insn>> {
    let position = names.offset("kiocb", "ki_pos")?;
    Ok(p::end(vec![insn(p::LOAD, 1, 1, 0, 0), insn(p::LOAD, 1, 1, position, 0)]))
}

/// Of the first argument, as programs do that have no types.
fn probe_read() -> Vec<Insn> {
    p::end(vec![
        insn(p::LOAD, 3, 1, 0, 0),
        insn(p::MOV64_REG, 1, FP, 0, 0),
        insn(p::ADD64_IMM, 1, 0, 0, -8),
        insn(MOV64_IMM, 2, 0, 0, 8),
        p::helper(libbpf_sys::BPF_FUNC_probe_read_kernel),
    ])
}

/// `.bss` is an array map of one value whose address is known when the program is loaded.
fn global(atomic: bool) -> io::Result<Vec<Insn>> {
    let bss = p::new_map(libbpf_sys::BPF_MAP_TYPE_ARRAY, 1)?;
    let mut code = p::map(1, &bss, true).to_vec();
    if !atomic {
        code.extend([insn(p::LOAD, 2, 1, 0, 0), insn(p::ADD64_IMM, 2, 0, 0, 1), insn(p::STORE, 1, 2, 0, 0)]);
    } else {
        code.extend([insn(MOV64_IMM, 2, 0, 0, 1), insn(p::ATOMIC_ADD, 1, 2, 0, 0)]);
    }
    keep(bss, p::end(code))
}

fn look_up(kind: u32) -> io::Result<Vec<Insn>> {
    let entries = if kind == libbpf_sys::BPF_MAP_TYPE_HASH { 1024 } else { 16 };
    let map = p::new_map(kind, entries)?;
    p::insert(&map, KEY as u32)?;
    let mut code = key();
    code.extend(p::map(1, &map, false));
    code.push(p::helper(libbpf_sys::BPF_FUNC_map_lookup_elem));
    keep(map, p::end(code))
}

const KEY: i32 = 7;

/// The key at -4 of the frame, and its address in the second register.
fn key() -> Vec<Insn> {
    vec![
        insn(p::STORE_WORD_IMM, FP, 0, -4, KEY),
        insn(p::MOV64_REG, 2, FP, 0, 0),
        insn(p::ADD64_IMM, 2, 0, 0, -4),
    ]
}

/// As a frame per call is kept: made at entry, taken away at return.
fn insert_delete() -> io::Result<Vec<Insn>> {
    let map = p::new_map(libbpf_sys::BPF_MAP_TYPE_HASH, 1024)?;
    let mut code = key();
    code.extend([
        insn(MOV64_IMM, 1, 0, 0, 0),
        insn(p::STORE, FP, 1, -16, 0),
        insn(p::MOV64_REG, 3, FP, 0, 0),
        insn(p::ADD64_IMM, 3, 0, 0, -16),
        insn(MOV64_IMM, 4, 0, 0, 0),
    ]);
    code.extend(p::map(1, &map, false));
    code.push(p::helper(libbpf_sys::BPF_FUNC_map_update_elem));
    code.extend(key());
    code.extend(p::map(1, &map, false));
    code.push(p::helper(libbpf_sys::BPF_FUNC_map_delete_elem));
    keep(map, p::end(code))
}

/// Made at the first run, found at all others.
fn task_storage() -> io::Result<Vec<Insn>> {
    const BPF_LOCAL_STORAGE_GET_F_CREATE: i32 = 1;
    let map = storage_map()?;
    let mut code = vec![
        p::helper(libbpf_sys::BPF_FUNC_get_current_task_btf),
        insn(p::MOV64_REG, 2, 0, 0, 0),
        insn(MOV64_IMM, 3, 0, 0, 0),
        insn(MOV64_IMM, 4, 0, 0, BPF_LOCAL_STORAGE_GET_F_CREATE),
    ];
    code.extend(p::map(1, &map, false));
    code.push(p::helper(libbpf_sys::BPF_FUNC_task_storage_get));
    keep(map, p::end(code))
}

/// A map that the kernel wants types for: a key and a value of the type `int`.
fn storage_map() -> io::Result<OwnedFd> {
    const MAGIC: u32 = 0x01_eb9f;
    let strings = b"\0int\0";
    // Header: flags and version, sizes. One type: name, kind 1 (integer), size, encoding with 32 bits.
    let words = [MAGIC, 24, 0, 16, 16, strings.len() as u32, 1, 1 << 24, 4, 0x0100_0020];
    let blob: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).chain(strings.iter().copied()).collect();
    // SAFETY: the blob outlives the call; no options are given.
    let btf = owned(unsafe {
        libbpf_sys::bpf_btf_load(blob.as_ptr().cast(), blob.len() as _, std::ptr::null_mut())
    })?;
    let opts = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        btf_fd: btf.as_raw_fd() as u32,
        btf_key_type_id: 1,
        btf_value_type_id: 1,
        map_flags: libbpf_sys::BPF_F_NO_PREALLOC,
        ..Default::default()
    };
    let kind = libbpf_sys::BPF_MAP_TYPE_TASK_STORAGE;
    // SAFETY: the options outlive the call and state their size.
    owned(unsafe { libbpf_sys::bpf_map_create(kind, c"attachments".as_ptr(), 4, 4, 0, &raw const opts) })
}

/// The code names the map by its descriptor, which has to stay open until the code is loaded: for good, here.
fn keep(map: OwnedFd, code: Vec<Insn>) -> io::Result<Vec<Insn>> {
    use std::os::fd::IntoRawFd as _;
    let _ = map.into_raw_fd();
    Ok(code)
}
