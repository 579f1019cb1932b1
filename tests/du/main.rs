//! `cachedu` against what is known from how files are made, and against mincore(2) asked by the test itself.
//!
//! `du [OPTION]... [SUBSTR]...` runs the tests whose names contain one of the words, on each file system.
//!
//! - `--dir NAME=DIR`: a directory on a file system of this name; without any, ext4, xfs, btrfs and tmpfs are made
//!
//! `CACHEDU` in the environment names another program to test than that of this build. As root: it mounts and
//! becomes somebody else.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod access;
mod acting;
mod containers;
mod exact;
#[path = "../truth/fs.rs"]
#[allow(dead_code)]
mod fs;
#[path = "../truth/fuse.rs"]
#[allow(dead_code)]
mod fuse;
mod hold;
mod layers;
mod limit;
#[path = "../truth/sys.rs"]
#[allow(dead_code)]
mod sys;
mod trees;

use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use fs::Fs;
use fs::Mounts;

/// A test: what it does in a directory of its own on a file system.
type Test = (&'static str, fn(Fs, &Path));

const TESTS: &[Test] = &[
    ("odd_ranges", exact::odd_ranges),
    ("every_fourteenth_page", exact::every_fourteenth_page),
    ("dirty_until_synced", exact::dirty_until_synced),
    ("a_huge_sparse_file", exact::a_huge_sparse_file),
    ("a_tree", trees::a_tree),
    ("percent_beside_its_denominator", trees::percent_beside_its_denominator),
    ("a_deep_tree", trees::a_deep_tree),
    ("files_that_vanish", trees::files_that_vanish),
    ("whoever_may_not_write", access::whoever_may_not_write),
    ("overlay", access::overlay),
    ("three_overlays", layers::three_overlays),
    ("two_containers", containers::two_containers),
    ("overlays_without_layers", layers::overlays_without_layers),
    ("bind_mounts", layers::bind_mounts),
    ("huge_pages", access::huge_pages),
    ("on_fuse", access::on_fuse),
    ("evict_and_load", acting::evict_and_load),
    ("save_and_restore", acting::save_and_restore),
    ("a_container", limit::a_container),
    ("load_beyond_a_limit", limit::load_beyond_a_limit),
    ("open_and_mapped", access::open_and_mapped),
];

fn main() -> ExitCode {
    // SAFETY: geteuid takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("these tests mount file systems and become somebody else: run them as root");
        return ExitCode::FAILURE;
    }
    let mut args = std::env::args().skip(1);
    let (mut dirs, mut words): (Vec<(Fs, PathBuf)>, Vec<String>) = (Vec::new(), Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--dir" => {
                let value = args.next().expect("--dir NAME=DIR");
                let (name, dir) = value.split_once('=').expect("--dir NAME=DIR");
                let kind = Fs::parse(name).unwrap();
                kind.check(Path::new(dir)).unwrap();
                dirs.push((kind, dir.into()));
            }
            "--list" => {
                TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
                return ExitCode::SUCCESS;
            }
            _ => words.push(arg),
        }
    }
    let mut mounts = Mounts::new().unwrap();
    if dirs.is_empty() {
        dirs = Fs::ALL.map(|kind| (kind, mounts.add(kind).unwrap())).to_vec();
    }
    println!("asked by {}", exact::best().method().name());
    let mut failed = Vec::new();
    for (kind, dir) in dirs {
        for (name, test) in TESTS {
            if !words.is_empty() && !words.iter().any(|w| name.contains(w.as_str())) {
                continue;
            }
            let place = tempfile::Builder::new().prefix("du-").tempdir_in(&dir).unwrap();
            let start = Instant::now();
            let ok = std::panic::catch_unwind(|| test(kind, place.path())).is_ok();
            let label = format!("{} {name}", kind.name());
            println!("{} {label} ({:.1} s)", if ok { "ok  " } else { "FAIL" }, start.elapsed().as_secs_f64());
            if !ok {
                failed.push(label);
            }
        }
    }
    drop(mounts);
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {}", failed.join(", "));
    ExitCode::FAILURE
}
