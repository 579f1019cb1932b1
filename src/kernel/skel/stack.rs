//! What the programs take of the stack, as kernels before 6.8 count it: all functions that stand on each other have 512 bytes
//! together, each counts by the next 32, and what no constant lets run counts as well. A program that takes more is refused,
//! and with it the exact engine.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use libbpf_rs::skel::SkelBuilder as _;

const LIMIT: usize = 512;

struct Section<'a> {
    name: usize,
    kind: u32,
    link: usize,
    info: usize,
    data: &'a [u8],
}

struct Symbol {
    name: String,
    kind: u8,
    section: usize,
    value: usize,
    size: usize,
}

fn number(of: &[u8], at: usize, bytes: usize) -> usize {
    of[at..at + bytes].iter().rev().fold(0, |n, b| n << 8 | usize::from(*b))
}

fn sections(elf: &[u8]) -> Vec<Section<'_>> {
    let (at, size, count) = (number(elf, 0x28, 8), number(elf, 0x3a, 2), number(elf, 0x3c, 2));
    let section = |i: usize| {
        let head = &elf[at + i * size..];
        let (from, length) = (number(head, 0x18, 8), number(head, 0x20, 8));
        let kind = u32::try_from(number(head, 4, 4)).unwrap();
        let data = if kind == 8 { &elf[..0] } else { &elf[from..from + length] };
        Section {
            name: number(head, 0, 4),
            kind,
            link: number(head, 0x28, 4),
            info: number(head, 0x2c, 4),
            data,
        }
    };
    (0..count).map(section).collect()
}

fn symbols(sections: &[Section<'_>]) -> Vec<Symbol> {
    let table = sections.iter().find(|s| s.kind == 2).unwrap();
    let names = sections[table.link].data;
    let symbol = |s: &[u8]| {
        let name = names[number(s, 0, 4)..].split(|b| *b == 0).next().unwrap();
        let name = String::from_utf8(name.to_vec()).unwrap();
        let (kind, section) = (s[4] & 15, number(s, 6, 2));
        Symbol { name, kind, section, value: number(s, 8, 8), size: number(s, 16, 8) }
    };
    table.data.chunks_exact(24).map(symbol).collect()
}

/// Bytes of stack of one function, and where those lie that it calls.
fn look(
    code: &[u8],
    first: usize,
    relocated: &HashMap<usize, (bool, usize, usize)>,
    section: usize,
) -> (usize, Vec<(usize, usize)>) {
    let (mut depth, mut calls, mut address) = (0, Vec::new(), None);
    for (i, insn) in code.chunks_exact(8).enumerate() {
        let (op, to, from) = (insn[0], insn[1] & 15, insn[1] >> 4);
        let offset = i16::from_le_bytes([insn[2], insn[3]]);
        let imm = i32::from_le_bytes([insn[4], insn[5], insn[6], insn[7]]);
        let base = if op & 7 == 1 { from } else { to };
        if (1..=3).contains(&(op & 7)) && op != 0x18 && base == 10 {
            depth = depth.max(usize::try_from(-i32::from(offset)).unwrap());
        }
        if op == 0x07 && address == Some(to) && imm < 0 {
            depth = depth.max(usize::try_from(-imm).unwrap());
        }
        address = (op == 0xbf && from == 10).then_some(to);
        if op == 0x85 && from == 1 {
            let here = first + i * 8;
            let there = i64::from(imm) * 8 + 8;
            calls.push(match relocated.get(&here) {
                Some((true, to, value)) => (*to, *value),
                Some((false, to, _)) => (*to, usize::try_from(there).unwrap()),
                None => (section, usize::try_from(i64::try_from(here).unwrap() + there).unwrap()),
            });
        }
    }
    (depth, calls)
}

type Functions = HashMap<(usize, usize), (String, usize, Vec<(usize, usize)>)>;

/// The most that a function and those below it take, and which these are.
fn worst(at: (usize, usize), all: &Functions) -> (usize, String) {
    let (name, depth, calls) = &all[&at];
    let own = depth.max(&1).next_multiple_of(32);
    // What is in no section is the kernel's.
    let ours = calls.iter().filter(|(section, _)| *section != 0);
    let below = ours.map(|c| worst(*c, all)).max().unwrap_or_default();
    (own + below.0, format!("{name} {depth}, {}", below.1))
}

/// The objects, which are in a section of whoever loads them.
fn objects(own: &[u8]) -> Vec<&[u8]> {
    let names = sections(own)[number(own, 0x3e, 2)].data;
    let is_ours = |s: &Section<'_>| names[s.name..].starts_with(b".bpf.objs\0");
    let all = sections(own).into_iter().find(is_ours).unwrap().data;
    let begins = |i: &usize| all[*i..].starts_with(b"\x7fELF") && all[i + 18..].starts_with(&[247, 0]);
    (0..all.len().saturating_sub(64)).filter(begins).map(|i| &all[i..]).collect()
}

#[test]
fn what_stands_on_each_other_fits_in_the_stack_of_old_kernels() {
    // Opened: else nothing refers to the object, and the linker leaves it out.
    let mut room = std::mem::MaybeUninit::uninit();
    drop(super::CachetopSkelBuilder::default().open(&mut room).unwrap());
    let own = std::fs::read("/proc/self/exe").unwrap();
    let objects = objects(&own);
    assert!(!objects.is_empty());
    let most = objects.into_iter().map(look_into).max().unwrap();
    assert!(most.0 > LIMIT / 2, "the most is {}: {}", most.0, most.1);
    // Another compiler takes other registers, and more of the stack: objects of such (./setup.sh test).
    for path in std::env::var("BPF_OBJECTS").iter().flat_map(|all| all.split(' ')) {
        let most = look_into(&std::fs::read(path).unwrap());
        println!("{path}: the most is {}: {}", most.0, most.1);
    }
}

/// The most that any program takes.
fn look_into(elf: &[u8]) -> (usize, String) {
    let sections = sections(elf);
    let symbols = symbols(&sections);
    let mut relocated: HashMap<usize, HashMap<usize, (bool, usize, usize)>> = HashMap::new();
    for of in sections.iter().filter(|s| s.kind == 9) {
        for r in of.data.chunks_exact(16) {
            let s = &symbols[number(r, 12, 4)];
            relocated.entry(of.info).or_default().insert(number(r, 0, 8), (s.kind == 2, s.section, s.value));
        }
    }
    let none = HashMap::new();
    let mut all = Functions::new();
    for s in symbols.iter().filter(|s| s.kind == 2 && s.section != 0) {
        let code = &sections[s.section].data[s.value..s.value + s.size];
        let (depth, calls) = look(code, s.value, relocated.get(&s.section).unwrap_or(&none), s.section);
        all.insert((s.section, s.value), (s.name.clone(), depth, calls));
    }
    assert!(all.len() > 5, "{} functions", all.len());
    let mut most = (0, String::new());
    // Sessions are of kernels that count by the next 16.
    for at in all.iter().filter(|(_, f)| !f.0.ends_with("_session")).map(|(at, _)| *at) {
        let found = worst(at, &all);
        assert!(found.0 <= LIMIT, "{} bytes: {}", found.0, found.1);
        most = most.max(found);
    }
    most
}
