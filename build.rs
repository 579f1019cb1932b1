//! Compiles `bpf/` into skeletons in `OUT_DIR`, one for each engine. `CLANG` chooses the compiler.

use std::env;
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
            .clang_args(["-I", &format!("vmlinux/{arch}"), "-mcpu=v3", "-Wall", "-Werror", "-O2"])
            .build_and_generate(out.join(format!("{object}.skel.rs")))
            .with_context(|| format!("cannot compile {source}: clang 14 or newer is needed"))?;
    }
    Ok(())
}
