//! What it says when it cannot.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use cachetop::kernel::symbols;

use crate::tools::*;

pub fn not_root(_: &Path) {
    // Where everybody may enter: the build may be in a directory of root's.
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = dir.path().join("cachestat");
    fs::copy(program(), &copy).unwrap();
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
    plain(command.args(["-m", "sh", "-ec", &script, &program()]));
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

/// Runs the command after a line of shell.
fn after(prepare: &str, program: &str, options: &str) -> (Option<i32>, String, String) {
    let script = format!("{prepare}; exec \"$0\" {options}");
    let mut command = Command::new("sh");
    plain(command.args(["-ec", &script, program]));
    output(&mut command)
}

pub fn few_files(_: &Path) {
    let top = env!("CARGO_BIN_EXE_cachetop");
    // The soft limit is ours to raise, and the command's own again.
    let (code, out, err) = after("ulimit -Sn 64", &program(), "--json 0.2 1");
    assert_eq!((code, out.lines().count()), (Some(0), 1), "{err}");
    let (code, out, err) =
        after("ulimit -Sn 77; ulimit -Sl 32", &program(), "-- sh -c 'ulimit -Sn; ulimit -Sl'");
    assert_eq!((code, out.as_str()), (Some(0), "77\n32\n"), "{err}");
    let line = "--prepare 'ulimit -Sn >&2' -- true";
    let (code, _, err) = after("ulimit -Sn 77", &program(), line);
    assert_eq!((code, err.lines().any(|l| l == "77")), (Some(0), true), "{err}");
    // Of the hard limit it is said, however far the start came: never that the kernel lacks something, and no hook is
    // left out.
    let all = after(":", &program(), "--explain").1.lines().count();
    for files in [20, 30, 64, 75] {
        let limit = format!("ulimit -n {files}");
        for (program, options) in [(program().as_str(), "0.2 1"), (top, "--no-config -b -n 1 0.2")] {
            let (code, out, err) = after(&limit, program, options);
            if code == Some(0) {
                assert_eq!(after(&limit, program, "--explain").1.lines().count(), all, "{files}");
                continue;
            }
            assert_eq!((code, out.as_str()), (Some(1), ""), "{files}: {err}");
            let (what, remedy) = err.split_once("\nremedy: ").unwrap_or_else(|| panic!("{files}: {err}"));
            assert!(
                what.ends_with(&format!("this process may have {files} files open, and needs more")),
                "{err}"
            );
            assert!(remedy.starts_with("raise the hard limit"), "{err}");
        }
    }
}

pub fn small_stack(_: &Path) {
    let (top, daemon) = (env!("CARGO_BIN_EXE_cachetop"), env!("CARGO_BIN_EXE_cachetopd"));
    for limit in ["ulimit -s 64", "ulimit -s 128", "ulimit -Ss 64", "ulimit -Ss 128"] {
        // In a container root may not raise a hard limit: then it is said.
        let may = Command::new("sh").args(["-c", &format!("{limit}; ulimit -s 8192 2>/dev/null")]).status();
        if !may.unwrap().success() {
            for program in [&program(), top, daemon] {
                let (code, out, err) = after(limit, program, "");
                assert_eq!((code, out.as_str()), (Some(1), ""), "{limit}: {program}: {err}");
                let (what, remedy) = err.split_once("\nremedy: ").unwrap_or_else(|| panic!("{limit}: {err}"));
                assert!(what.contains("error: this process may have a stack of"), "{err}");
                assert!(remedy.starts_with("raise the hard limit"), "{err}");
            }
            continue;
        }
        for (program, options) in [
            (program().as_str(), "0.2 1"),
            (&program(), "--explain"),
            (&program(), "--by process --json 0.2 1"),
            (top, "--no-config -b -n 1 0.2"),
        ] {
            let (code, out, err) = after(limit, program, options);
            assert_eq!((code, out.is_empty()), (Some(0), false), "{limit}: {program} {options}: {err}");
        }
        let (_, _, err) = after(
            &format!("{limit}; set -- timeout -s INT 3 {daemon}"),
            "env",
            "\"$@\" --listen 127.0.0.1:0",
        );
        assert!(err.contains("listening on") && !err.contains("overflow"), "{limit}: {err}");
        // What the command has is what we were given.
        let (code, out, err) = after(limit, &program(), "-- sh -c 'ulimit -Ss; ulimit -Hs'");
        let has = out.lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!((code, has[0].as_str()), (Some(0), limit.split(' ').nth(2).unwrap()), "{err}");
        assert_eq!(has[0] == has[1], limit.contains(" -s "), "{has:?}");
    }
}

pub fn elsewhere_is_told_apart(_: &Path) {
    let mut command = Command::new("unshare");
    plain(command.args(["-Ur", &program(), "1", "1"]));
    let (code, _, err) = output(&mut command);
    // Where user namespaces are not allowed, unshare says so.
    if !err.starts_with("unshare:") {
        assert_eq!(code, Some(1), "{err}");
        assert!(
            err.contains("user namespace of its own") && err.contains("remedy: run it as root outside"),
            "{err}"
        );
    }
    for options in ["1 1", "--explain", "-- true"] {
        let (code, _, err) = elsewhere("umount -l /proc", options);
        assert_eq!(code, Some(1), "{err}");
        assert!(err.contains("/proc cannot be read") && err.contains("\nremedy: mount it"), "{err}");
    }
    let read_only = "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys";
    let (code, _, err) = elsewhere(read_only, "--cold all -- true");
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("Read-only") && err.contains("remedy: /proc/sys is read-only here"), "{err}");
    let nowhere = "mount -t tmpfs none /proc/sys/vm";
    let (code, _, err) = elsewhere(nowhere, "--cold all -- true");
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("drop_caches is not there"), "{err}");
}

pub fn settings_that_cannot_be_read(dir: &Path) {
    let top = env!("CARGO_BIN_EXE_cachetop");
    fs::create_dir_all(dir.join("cachetop/config.toml")).unwrap();
    let run = |options: &[&str]| {
        let mut command = Command::new(top);
        plain(command.args(options).env("XDG_CONFIG_HOME", dir));
        output(&mut command)
    };
    let (code, out, err) = run(&["-b", "-n", "1", "0.2"]);
    assert_eq!((code, err.lines().count()), (Some(0), 1), "{err}");
    assert!(!out.is_empty() && err.starts_with("cachetop: warning: the settings in "), "{err}");
    let (code, _, err) = run(&["--config", dir.to_str().unwrap(), "-b", "-n", "1", "0.2"]);
    assert_eq!(code, Some(2), "{err}");
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

/// The kernel looks symbols up where its own list has them. Where it does not do that, nobody would notice but by the time that it takes.
pub fn where_symbols_are(_: &Path) {
    let names = [c"wake_page_function", c"vmemmap_base", c"vfs_read", c"no_such_symbol_of_any_kernel"];
    let listed = symbols::listed(&names.map(|name| name.to_str().unwrap()));
    assert!(listed[2].is_ok(), "{listed:?}");
    for (name, listed) in names.into_iter().zip(listed) {
        assert_eq!(symbols::ask(name).unwrap(), listed.ok(), "{name:?}");
    }
}
