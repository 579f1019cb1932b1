//! How it ends, and what it leaves behind.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::thread::sleep;
use std::time::Duration;

use crate::tools::*;

pub type NextId = unsafe extern "C" fn(u32, *mut u32) -> i32;

/// What keeps a BPF object alive is written in `fdinfo`, under these names.
pub const KINDS: [(&str, NextId); 4] = [
    ("prog_id", libbpf_sys::bpf_prog_get_next_id),
    ("map_id", libbpf_sys::bpf_map_get_next_id),
    ("link_id", libbpf_sys::bpf_link_get_next_id),
    ("btf_id", libbpf_sys::bpf_btf_get_next_id),
];

/// BPF objects by kind and id. The kernel counts ids up: they do not come again while a test runs.
pub type Objects = BTreeSet<(usize, u32)>;

/// The BPF objects that a process holds.
pub fn held_by(pid: u32) -> Objects {
    let mut objects = Objects::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        for (name, id) in text.lines().filter_map(|l| l.split_once(':')) {
            if let Some(kind) = KINDS.iter().position(|(k, _)| *k == name) {
                objects.insert((kind, id.trim().parse().unwrap()));
            }
        }
    }
    objects
}

/// Whether the kernel still has it; does not keep it alive by asking.
fn exists(&(kind, id): &(usize, u32)) -> bool {
    let mut next = 0;
    // SAFETY: `next` outlives the call.
    let ret = unsafe { KINDS[kind].1(id - 1, &raw mut next) };
    assert!(ret == 0 || ret == -libc::ENOENT, "{}", io::Error::from_raw_os_error(-ret));
    ret == 0 && next == id
}

/// A pin anywhere would keep an object, so that this proves that there is none, too.
fn assert_gone(objects: &Objects, how: &str) {
    wait_for(&format!("{how}: the end of {objects:?}"), || !objects.iter().any(exists));
}

/// Probes that others than BPF links make stay when their maker dies.
fn probe_events(tracefs: &Path) -> BTreeSet<String> {
    ["kprobe_events", "uprobe_events", "dynamic_events"]
        .iter()
        .filter_map(|name| fs::read_to_string(tracefs.join(name)).ok())
        .flat_map(|text| text.lines().map(String::from).collect::<Vec<_>>())
        .collect()
}

/// A tracefs of the tests' own, mounted for as long as this lives.
struct Tracefs(PathBuf);

impl Tracefs {
    fn mount(dir: &Path) -> Self {
        let place = dir.join("tracefs");
        fs::create_dir(&place).unwrap();
        let status = Command::new("mount").args(["-t", "tracefs", "none"]).arg(&place).status().unwrap();
        assert!(status.success());
        Self(place)
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

pub fn nothing_is_left_behind(dir: &Path) {
    let tracefs = Tracefs::mount(dir);
    let before = probe_events(&tracefs.0);
    let end = |how: &str, end: &dyn Fn(&mut Monitor)| {
        let mut monitor = Monitor::start("--json 0.1");
        let objects = held_by(monitor.pid());
        for (kind, (name, _)) in KINDS.iter().enumerate() {
            assert!(objects.iter().any(|o| o.0 == kind && exists(o)), "no {name}: {objects:?}");
        }
        end(&mut monitor);
        let (status, err) = monitor.ended();
        assert_gone(&objects, how);
        (status, err)
    };
    for signal in [libc::SIGKILL, libc::SIGABRT, libc::SIGSEGV, libc::SIGQUIT] {
        let no_core = |m: &mut Monitor| {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the limits outlive the call; nothing is asked back.
            unsafe {
                libc::prlimit(signed(m.pid()), libc::RLIMIT_CORE, &raw const none, std::ptr::null_mut());
            }
            m.signal(signal);
            if signal == libc::SIGSEGV {
                // Rust's runtime looks whether the first is a full stack, and lets the next one kill.
                sleep(Duration::from_millis(50));
                m.signal(signal);
            }
        };
        let (status, err) = end(&format!("signal {signal}"), &no_core);
        assert_eq!(status.signal(), Some(signal), "{status}: {err}");
    }
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let (status, err) = end(&format!("signal {signal}"), &|m| m.signal(signal));
        assert!(status.success(), "{status}");
        assert_eq!(err, "");
    }
    let (status, err) = end("closed pipe", &|m| {
        let (_, nobody) = mpsc::channel();
        m.incoming = nobody;
    });
    assert_eq!((status.code(), err.as_str()), (Some(0), ""));
    let after: Vec<_> = probe_events(&tracefs.0).difference(&before).cloned().collect();
    assert!(after.is_empty(), "{after:?}");
}

/// Also while hooks are being attached, and nothing has been counted yet.
pub fn a_start_is_ended_as_asked(_: &Path) {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let mut monitor = Monitor::launch("--json 10");
        let caught = || {
            let status = fs::read_to_string(format!("/proc/{}/status", monitor.pid())).unwrap();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal - 1)) != 0
        };
        wait_for("a handler", caught);
        let objects = held_by(monitor.pid());
        monitor.signal(signal);
        let (status, err) = monitor.ended();
        assert!(status.success(), "signal {signal}: {status}: {err}");
        assert_eq!(err, "");
        assert_gone(&objects, &format!("signal {signal} at the start"));
    }
}

pub fn nothing_is_left_behind_of_a_start_cut_short(_: &Path) {
    let mut seen = 0;
    for wait in (10..400).step_by(30).chain((500..4000).step_by(500)) {
        // A program built without optimisation, or on a busy machine, gets there later.
        if wait >= 500 && seen > 0 {
            break;
        }
        let mut monitor = Monitor::launch("--json 10");
        sleep(Duration::from_millis(wait));
        monitor.signal(libc::SIGSTOP);
        // A stop takes effect a little later: nothing is made after this.
        wait_for("the stop", || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", monitor.pid())).unwrap();
            stat.rsplit(')').next().unwrap().trim_start().starts_with('T')
        });
        let objects = held_by(monitor.pid());
        seen += objects.len();
        monitor.signal(libc::SIGKILL);
        assert_eq!(monitor.ended().0.signal(), Some(libc::SIGKILL));
        assert_gone(&objects, &format!("killed after {wait} ms"));
    }
    assert!(seen > 0, "every start was cut short before it did anything");
}
