//! Where symbols of the kernel are.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::fd::OwnedFd;

use super::raw;
use super::raw::EXIT;
use super::raw::Insn;
use super::raw::MOV64_IMM;
use super::raw::insn;

/// The addresses of kernel symbols, or why each is not known.
pub(super) fn addresses<const N: usize>(names: [&CStr; N]) -> [Result<u64, String>; N] {
    // To list all of them takes the kernel longer than most of what is done to begin.
    let asked = names.map(|name| (name.to_str().unwrap_or_default(), ask(name)));
    let left: Vec<&str> = asked.iter().filter(|(_, found)| found.is_err()).map(|(name, _)| *name).collect();
    let mut listed = if left.is_empty() { Vec::new() } else { listed(&left) }.into_iter();
    asked.map(|(name, found)| match found {
        Ok(found) => found.ok_or_else(|| missing(name)),
        Err(e) => {
            log::debug!("the kernel does not look {name} up ({e}): it was looked for in /proc/kallsyms");
            listed.next().unwrap_or_else(|| Err(missing(name)))
        }
    })
}

fn missing(name: &str) -> String {
    format!("the kernel's list of symbols does not have {name} (CONFIG_KALLSYMS_ALL)")
}

/// Has the kernel look a symbol up (5.16), by a program that is run once. `None`: it has none of that name.
///
/// # Errors
/// When the kernel does not do that, or not for us.
pub fn ask(name: &CStr) -> io::Result<Option<u64>> {
    let program = load_lookup(name)?;
    let mut found = 0u64;
    let mut opts = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
        ctx_in: (&raw mut found).cast(),
        ctx_size_in: size_of_val(&found) as u32,
        ..Default::default()
    };
    // SAFETY: the context is the word that the program writes, and outlives the call.
    let err = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut opts) };
    match (err, opts.retval as i32) {
        (..0, _) => Err(io::Error::from_raw_os_error(-err)),
        (_, 0) if found != 0 => Ok(Some(found)),
        (_, no) if no == -libc::ENOENT => Ok(None),
        (_, no) => Err(io::Error::from_raw_os_error(-no)),
    }
}

/// A program that looks the symbol up, returns what comes of it, and leaves its address in its context.
fn load_lookup(name: &CStr) -> io::Result<OwnedFd> {
    const MOV64_REG: u8 = 0xbf;
    const ADD64_IMM: u8 = 0x07;
    const LOAD_IMM64: u8 = 0x18;
    const LOAD: u8 = 0x79;
    const STORE: u8 = 0x7b;
    const CALL: u8 = 0x85;
    const CONTEXT: u8 = 6;
    const STACK: u8 = 10;
    let name = name.to_bytes_with_nul();
    let words: Vec<u64> = name
        .chunks(8)
        .map(|part| {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            u64::from_ne_bytes(word)
        })
        .collect();
    // The address first, then the name, up to the top of the stack.
    let at = |n: usize| -(8 * (words.len() - n) as i16);
    let found = at(0) - 8;
    let mut all: Vec<Insn> = vec![insn(MOV64_REG, CONTEXT, 1, 0, 0)];
    for (n, word) in words.iter().enumerate() {
        all.push(insn(LOAD_IMM64, 1, 0, 0, *word as i32));
        all.push(insn(0, 0, 0, 0, (*word >> 32) as i32));
        all.push(insn(STORE, STACK, 1, at(n), 0));
    }
    let length = i32::try_from(name.len()).map_err(io::Error::other)?;
    all.extend([
        insn(MOV64_IMM, 3, 0, 0, 0),
        insn(STORE, STACK, 3, found, 0),
        insn(MOV64_REG, 1, STACK, 0, 0),
        insn(ADD64_IMM, 1, 0, 0, at(0).into()),
        insn(MOV64_IMM, 2, 0, 0, length),
        insn(MOV64_REG, 4, STACK, 0, 0),
        insn(ADD64_IMM, 4, 0, 0, found.into()),
        insn(CALL, 0, 0, 0, libbpf_sys::BPF_FUNC_kallsyms_lookup_name as i32),
        insn(LOAD, 1, STACK, found, 0),
        insn(STORE, CONTEXT, 1, 0, 0),
        insn(EXIT, 0, 0, 0, 0),
    ]);
    raw::load_sleepable(libbpf_sys::BPF_PROG_TYPE_SYSCALL, &all)
}

/// The same from the list of all (`/proc/kallsyms`), in the order of the names.
pub fn listed(names: &[&str]) -> Vec<Result<u64, String>> {
    match fs::File::open("/proc/kallsyms") {
        Ok(file) => found_in(io::BufReader::with_capacity(1 << 16, file), names),
        Err(e) => names.iter().map(|_| Err(format!("/proc/kallsyms: {e}"))).collect(),
    }
}

/// In one pass, which ends at the last of them.
fn found_in(mut lines: impl io::BufRead, names: &[&str]) -> Vec<Result<u64, String>> {
    let mut found: Vec<_> = names.iter().map(|name| Err(missing(name))).collect();
    let mut line = Vec::new();
    while found.iter().any(Result::is_err) {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        // Address, kind, name; a module's are followed by its name.
        let line = line.trim_ascii_end();
        let is_of = |name: &&str| line.strip_suffix(name.as_bytes()).is_some_and(|l| l.ends_with(b" "));
        let Some(n) = names.iter().position(is_of) else { continue };
        let address = line.split(|b| *b == b' ').next().unwrap_or_default();
        let number = std::str::from_utf8(address).ok().and_then(|h| u64::from_str_radix(h, 16).ok());
        match number {
            Some(0) | None => {
                return names.iter().map(|_| Err("/proc/kallsyms hides addresses".into())).collect();
            }
            Some(address) => found[n] = Ok(address),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_words() {
        let list = "ffffffff81000010 t do_wake_page_function\n\
                    ffffffff81000020 t other\t[wake_page_function]\n\
                    ffffffff81000030 t wake_page_function\n\
                    ffffffff82000040 D vmemmap_base";
        let found =
            found_in(list.as_bytes(), &["vmemmap_base", "page_function", "wake_page_function", "none"]);
        assert_eq!(found[0], Ok(0xffff_ffff_8200_0040));
        assert_eq!(found[2], Ok(0xffff_ffff_8100_0030));
        for n in [1, 3] {
            assert!(found[n].as_ref().is_err_and(|e| e.contains("does not have")));
        }
    }

    #[test]
    fn hidden_addresses_are_not_known() {
        let found = found_in(&b"0000000000000000 D vmemmap_base\n"[..], &["vmemmap_base"]);
        assert!(found[0].as_ref().is_err_and(|e| e.contains("hides")));
    }
}
