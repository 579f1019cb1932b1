//! Compiles `bpf/` into skeletons in `OUT_DIR`, one for each engine, and makes the Rust half of `bpf/wire.h`. `CLANG`
//! chooses the compiler.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::Result;
use libbpf_cargo::SkeletonBuilder;

fn main() -> Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").context("OUT_DIR is not set")?);
    let arch = env::var("CARGO_CFG_TARGET_ARCH").context("CARGO_CFG_TARGET_ARCH is not set")?;
    anyhow::ensure!(arch == "x86_64", "only x86_64 is supported so far: see vmlinux/README.md");
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed=vmlinux");
    println!("cargo:rerun-if-env-changed=CLANG");
    // In the commands (not every test has the library): on files that cannot be mapped, calls of mmap are those of src/kernel/stand_in.rs.
    println!("cargo:rustc-link-arg-bins=-Wl,--wrap=mmap,--wrap=mmap64");
    // Where the sources lie stands in the line numbers of the programs: the same name everywhere, so that builds in two
    // directories are equal.
    let here = env::current_dir().context("where am I?")?;
    let here = here.to_str().context("the path of the sources is not UTF-8")?;
    let mapped = format!("-ffile-prefix-map={here}=/cachetop");
    let header = fs::read_to_string("bpf/wire.h").context("cannot read bpf/wire.h")?;
    fs::write(out.join("wire.rs"), wire(&header)?).context("cannot write wire.rs")?;
    for object in ["cachetop", "classic"] {
        let source = format!("bpf/{object}.bpf.c");
        let mut builder = SkeletonBuilder::new();
        if let Some(clang) = env::var_os("CLANG") {
            builder.clang(clang);
        }
        // v3 has been understood since 5.1, but for its atomic instructions with fetch (5.12): the programs that
        // older kernels load contain none of these.
        builder
            .source(&source)
            .obj(out.join(format!("{object}.bpf.o")))
            // Nobody reads what is generated, and rustup's stand-in for a rustfmt that is not installed would end the build.
            .rustfmt("")
            .clang_args(["-I", &format!("vmlinux/{arch}"), "-mcpu=v3", "-Wall", "-Werror", "-O2", &mapped])
            .build_and_generate(out.join(format!("{object}.skel.rs")))
            .with_context(|| format!("cannot compile {source}: clang 14 or newer is needed"))?;
    }
    Ok(())
}

/// A name of an enum, and what stands behind it.
struct Name {
    name: String,
    about: String,
}

/// The names of an enum in order, without the last one, which counts them.
fn names(header: &str, of: &str) -> Result<Vec<Name>> {
    let begin = format!("enum {of} {{");
    let rest = header.split_once(&begin).with_context(|| format!("wire.h has no enum {of}"))?.1;
    let (body, _) = rest.split_once("};").with_context(|| format!("enum {of} does not end"))?;
    let lines = body.lines().map(str::trim).filter(|l| !l.is_empty());
    let mut out = Vec::new();
    for line in lines {
        let (name, comment) =
            line.split_once(',').with_context(|| format!("not a name of an enum: {line}"))?;
        let about = comment.trim().trim_start_matches("/*").trim_end_matches("*/").trim();
        anyhow::ensure!(
            name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') && !name.is_empty(),
            "a line of an enum of wire.h is NAME, and what it is about in a comment: {line}"
        );
        out.push(Name { name: name.into(), about: about.into() });
    }
    out.retain(|n| !n.name.ends_with("_MAX"));
    Ok(out)
}

/// `C_READ_AHEAD_HITS` as `ReadAheadHits`.
fn camel(name: &str) -> String {
    let words = name.split('_').skip(1).filter_map(|w| Some((w.get(..1)?, w.get(1..)?.to_lowercase())));
    words.map(|(first, rest)| format!("{first}{rest}")).collect()
}

/// The number of a `#define`.
fn number(header: &str, name: &str) -> Result<usize> {
    let line = header.lines().find_map(|l| l.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' '));
    let line = line.with_context(|| format!("wire.h does not define {name}"))?;
    line.trim().parse().with_context(|| format!("{name} is no number: {line}"))
}

/// The other half of the header.
fn wire(header: &str) -> Result<String> {
    let counters = names(header, "counter")?;
    let mut out = String::from(
        "/// The counters kept by the kernel programs, in the order of `enum counter` in `bpf/wire.h`.\n\
         #[derive(Debug, Clone, Copy, PartialEq, Eq)]\n#[repr(usize)]\npub enum Counter {\n",
    );
    for Name { name, about } in &counters {
        anyhow::ensure!(!about.is_empty(), "wire.h does not say what {name} counts");
        writeln!(out, "    /// {about}.\n    {},", camel(name))?;
    }
    out.push_str(
        "}\n\nimpl Counter {\n    /// All counters, in wire order.\n    pub const ALL: &[Counter] = &[\n",
    );
    for Name { name, .. } in &counters {
        writeln!(out, "        Counter::{},", camel(name))?;
    }
    out.push_str("    ];\n}\n\n/// What is counted for each file, in the order of `enum file_counter`.\n");
    out.push_str("pub const FILE_COUNTERS: &[Counter] = &[\n");
    for Name { name, .. } in &names(header, "file_counter")? {
        writeln!(out, "    Counter::{},", camel(name))?;
    }
    out.push_str("];\n\n");
    for (states, whose) in [("row_state", "row"), ("file_state", "file_row")] {
        for (i, Name { name, about }) in names(header, states)?.iter().enumerate() {
            writeln!(out, "/// `{whose}.state`: {about}.\npub const {name}: u32 = {i};")?;
        }
    }
    for (i, Name { name, about }) in names(header, "chore")?.iter().enumerate() {
        writeln!(out, "/// `chores.kind`: {about}.\npub const {name}: u32 = {i};")?;
    }
    for name in ["CHORES", "LATENCY_BUCKETS", "WINDOW_BUCKETS", "FILE_PARTS", "ROWS_MAPPED", "OFF_WHY"] {
        writeln!(out, "/// As in `bpf/wire.h`.\npub const {name}: usize = {};", number(header, name)?)?;
    }
    let ends = header.split_once("#define ROW_GROUP(c) ").context("wire.h does not define ROW_GROUP")?.1;
    let ends = ends.lines().next().unwrap_or_default().split("< ").skip(1);
    let ends: Vec<&str> = ends.map(|e| e.split(' ').next().unwrap_or_default()).collect();
    writeln!(
        out,
        "/// How many groups of counters a row has a mark for each.\npub const GROUPS: usize = {};\n\
         /// Where the groups of counters begin, and the end of the last. What reads of files count is in the first, a \
         line of the\n/// processor's cache.\npub const GROUP_ENDS: [usize; GROUPS + 1] = [0, {}, Counter::ALL.len()];",
        ends.len() + 1,
        ends.join(", ")
    )?;
    Ok(out)
}
