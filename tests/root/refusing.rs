//! What it says when it cannot.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::tools::*;

pub fn not_root(_: &Path) {
    // Where everybody may enter: the build may be in a directory of root's.
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = dir.path().join("cachestat");
    fs::copy(CACHESTAT, &copy).unwrap();
    for options in ["1 1", "--explain"] {
        let mut command = Command::new(&copy);
        plain(command.args(options.split(' ')).uid(65534).gid(65534));
        let (code, out, err) = output(&mut command);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains("privilege") && err.contains("\nremedy: run it as root"), "{err}");
    }
}

pub fn explain(_: &Path) {
    let (code, out, err) = output(&mut cachestat("--explain"));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(out.starts_with(&format!("Kernel {}", release.trim())), "{out}");
    for part in ["Engine exact", "page added", "read.misses", "cache.evicted"] {
        assert!(out.contains(part), "no {part} in {out}");
    }
}

pub fn a_process_that_has_ended(_: &Path) {
    let reader = Reader::new();
    let pid = reader.pid();
    reader.end();
    let (code, out, err) = output(&mut cachestat(&format!("-p {pid} 1 1")));
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    assert!(err.contains(&format!("no process {pid}\nremedy: ")), "{err}");
}

/// Runs a command in a mount namespace of its own, prepared by a line of shell.
fn elsewhere(prepare: &str, options: &str) -> (Option<i32>, String, String) {
    let script = format!("{prepare}; exec \"$0\" {options}");
    let mut command = Command::new("unshare");
    plain(command.args(["-m", "sh", "-ec", &script, CACHESTAT]));
    output(&mut command)
}

pub fn without_tracefs(_: &Path) {
    let nowhere =
        "umount -R /sys/kernel/debug 2>/dev/null || :; umount -R /sys/kernel/tracing 2>/dev/null || :";
    let covered = "mount -t tmpfs none /sys/kernel/debug; mount -t tmpfs none /sys/kernel/tracing";
    for prepare in [nowhere, covered] {
        let gone =
            format!("{prepare}; test ! -e /sys/kernel/tracing/events -a ! -e /sys/kernel/debug/tracing");
        let (code, out, err) = elsewhere(&gone, "--json 0.2 2");
        assert_eq!((code, out.lines().count()), (Some(0), 2), "{err}");
        let (code, out, err) = elsewhere(&gone, "--explain");
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(out.contains("tracefs              not mounted; a private mount is used"), "{out}");
    }
}

pub fn without_btf(_: &Path) {
    let hidden = "mount -t tmpfs none /sys/kernel/btf; test ! -e /sys/kernel/btf/vmlinux";
    for options in ["1 1", "--explain"] {
        let (code, out, err) = elsewhere(hidden, options);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        let (what, remedy) = err.split_once("\nremedy: ").unwrap_or_else(|| panic!("{err}"));
        assert!(what.contains("no BTF") && remedy.contains("CONFIG_DEBUG_INFO_BTF"), "{err}");
    }
}
