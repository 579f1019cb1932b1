//! Asks the running kernel what it can do. No question is answered by its version.

use std::collections::BTreeSet;
use std::collections::HashSet;
use std::fs;
use std::io::Read as _;
use std::os::fd::AsRawFd;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::BtfKind;
use libbpf_rs::btf::TypeId;

use super::raw;
use super::raw::EXIT;
use super::raw::MOV64_IMM;
use super::raw::insn;
use super::symbols::addresses;
use super::tracefs::Tracefs;
use super::tracefs::detached;
use crate::classic::plan;
use crate::facts::FUNCTIONS;
use crate::facts::Facts;
use crate::facts::MODULES;
use crate::facts::OF_BTRFS;
use crate::facts::Preemption;
use crate::facts::SWITCH_ON;
use crate::facts::SWITCHED_OFF;
use crate::facts::TRACEPOINTS;
use crate::facts::is_of_module;
use crate::files::Mounts;
use crate::limits::Shortage;
use crate::procfs;

/// Something that no plan can get around.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Obstacle {
    /// What is in the way.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl Obstacle {
    fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

/// Asks everything. What it returns is plain data; nothing stays attached.
///
/// # Errors
/// When BPF cannot be used at all: no privilege, no BTF, lockdown.
pub fn facts() -> Result<(Facts, Option<Tracefs>), Obstacle> {
    // Tables, programs and hooks are a file each: more of them than 'ulimit -n' often allows.
    crate::limits::raise().map_err(|short| Obstacle::new(short.to_string(), short.remedy()))?;
    privilege()?;
    if !std::path::Path::new("/sys/kernel").exists() {
        return Err(Obstacle::new(
            "/sys is not mounted: the kernel's BTF is there",
            "mount it: mount -t sysfs sysfs /sys",
        ));
    }
    if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(Obstacle::new(
            "this kernel has no BTF (/sys/kernel/btf/vmlinux is not there)",
            "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y; distributions' kernels have it from about 5.10 on",
        ));
    }
    let Names { all: btf, read } = names()?;
    let tracefs = Tracefs::find();
    let (preemption, preemption_source) = preemption();
    // Where they are not traced, hooks attach all the same, and are never called.
    let traced = functions_are_traced();
    let trampoline = match read {
        _ if !traced => Err(SWITCHED_OFF.into()),
        Some(id) => try_trampoline(id),
        None => Err("no function to try".into()),
    };
    let kprobe_multi = match btf.contains("filemap_read") {
        _ if !traced => Err(SWITCHED_OFF.into()),
        true => try_kprobe_multi("filemap_read"),
        false => Err("no function to try".into()),
    };
    let kprobe_session = match &kprobe_multi {
        Ok(()) => try_kprobe_session("filemap_read"),
        Err(e) => Err(e.clone()),
    };
    // Listing symbols takes a while: no more of them than are needed.
    let unneeded = || Err("not needed here".to_owned());
    let (wake_page, vmemmap) = match (&kprobe_multi, &trampoline, &preemption) {
        (Err(_), Err(_), Preemption::Voluntary) => (unneeded(), unneeded()),
        (_, _, Preemption::Voluntary) => {
            let [wake_page] = addresses([c"wake_page_function"]);
            (wake_page, unneeded())
        }
        _ => {
            let [wake_page, vmemmap] = addresses([c"wake_page_function", c"vmemmap_base"]);
            (wake_page, vmemmap)
        }
    };
    let facts = Facts {
        release: rustix::system::uname().release().to_string_lossy().into(),
        preemption,
        preemption_source,
        realtime: realtime(),
        return_probes_keep: btf.contains("struct:fprobe_hlist"),
        fetch_atomics: fetch_atomics()?,
        vmemmap,
        wake_page,
        tracefs: tracefs.as_ref().map(Tracefs::describe).map_err(Clone::clone),
        btf,
        trampoline,
        kprobe_multi,
        kprobe_session,
        refused: Vec::new(),
    };
    enough(&facts)?;
    Ok((facts, tracefs.ok()))
}

impl From<Shortage> for Obstacle {
    fn from(short: Shortage) -> Self {
        Self::new(short.to_string(), short.remedy())
    }
}

/// What was refused for want of something says nothing about the kernel.
fn enough(facts: &Facts) -> Result<(), Obstacle> {
    let attached = [&facts.trampoline, &facts.kprobe_multi, &facts.kprobe_session].map(|a| a.as_ref().err());
    let read = [&facts.vmemmap, &facts.wake_page].map(|a| a.as_ref().err());
    let words = attached.into_iter().chain(read).chain([facts.tracefs.as_ref().err()]).flatten();
    words.filter_map(|why| Shortage::in_words(why)).next().map_or(Ok(()), |short| Err(short.into()))
}

/// The inode of the initial user namespace, the same on every Linux (`PROC_USER_INIT_INO`).
const INITIAL_USER_NAMESPACE: &str = "user:[4026531837]";

/// Tells the reasons for EPERM apart before anything is tried.
///
/// # Errors
/// When this process may not do it; with the remedy.
pub fn privilege() -> Result<(), Obstacle> {
    const CAP_SYS_ADMIN: u32 = 21;
    const CAP_PERFMON: u32 = 38;
    const CAP_BPF: u32 = 39;
    let status = procfs::text("/proc/self/status").map_err(|e| match Shortage::new(&e) {
        Some(short) => short.into(),
        None => Obstacle::new(
            format!("/proc cannot be read (/proc/self/status: {e})"),
            "mount it: mount -t proc proc /proc",
        ),
    })?;
    let namespace = fs::read_link("/proc/self/ns/user").unwrap_or_default();
    let elsewhere = !matches!(namespace.to_str(), Some(INITIAL_USER_NAMESPACE | ""));
    let caps = status
        .lines()
        .find_map(|l| l.strip_prefix("CapEff:"))
        .and_then(|v| u64::from_str_radix(v.trim(), 16).ok())
        .unwrap_or(0);
    let has = |cap: u32| caps >> cap & 1 == 1;
    let enough = has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON));
    if !enough {
        return Err(Obstacle::new(
            "watching the page cache needs privilege: this process has neither CAP_SYS_ADMIN nor CAP_BPF with \
             CAP_PERFMON",
            "run it as root, e.g. with sudo",
        ));
    }
    if elsewhere {
        return Err(Obstacle::new(
            "watching the page cache needs privilege on the host: this process is in a user namespace of its own, \
             whose root is none there",
            "run it as root outside of the user namespace; in a container, without user namespaces (not rootless)",
        ));
    }
    if lockdown().contains("[confidentiality]") {
        return Err(Obstacle::new(
            "kernel lockdown is in confidentiality mode, which forbids BPF to read kernel memory",
            "boot with lockdown=integrity or less",
        ));
    }
    Ok(())
}

/// What the kernel is locked down to, also where securityfs is not mounted.
fn lockdown() -> String {
    fs::read_to_string("/sys/kernel/security/lockdown")
        .or_else(|_| {
            let securityfs = detached("securityfs")?;
            fs::read_to_string(format!("/proc/self/fd/{}/lockdown", securityfs.as_raw_fd()))
        })
        .unwrap_or_default()
}

/// What the kernel's BTF has of interest.
struct Names {
    /// As [`Facts::btf`] has them.
    all: BTreeSet<String>,
    /// Type id of the function that reads.
    read: Option<u32>,
}

/// One pass over the kernel's BTF.
fn names() -> Result<Names, Obstacle> {
    let btf = Btf::from_vmlinux().map_err(|e| {
        Obstacle::new(
            format!("the kernel's BTF cannot be read: {e}"),
            "see /sys/kernel/btf/vmlinux and dmesg",
        )
    })?;
    let mut found = BTreeSet::new();
    let mut read = None;
    // Tens of thousands are compared with them.
    let functions: HashSet<&str> = FUNCTIONS.iter().chain(plan::FUNCTIONS).copied().collect();
    for id in 1..=u32::try_from(btf.len()).unwrap_or(u32::MAX) {
        let Some(t) = btf.type_by_id::<libbpf_rs::btf::BtfType<'_>>(TypeId::from(id)) else { continue };
        let kind = t.kind();
        if !matches!(kind, BtfKind::Func | BtfKind::Typedef | BtfKind::Struct | BtfKind::Enum) {
            continue;
        }
        let Some(name) = t.name().and_then(|n| n.to_str()) else { continue };
        match kind {
            BtfKind::Func if functions.contains(name) => {
                if name == "filemap_read" || name == "generic_file_buffered_read" {
                    read = Some(id);
                }
                found.insert(name.to_owned());
                if let Some(arguments) = arguments(&btf, &t) {
                    found.insert(format!("{name}/{arguments}"));
                }
            }
            BtfKind::Typedef => {
                if let Some(tp) = name.strip_prefix("btf_trace_") {
                    if TRACEPOINTS.contains(&tp) {
                        found.insert(format!("tp:{tp}"));
                    }
                }
            }
            BtfKind::Struct if name == "fprobe_hlist" || name == "task_rss_stat" => {
                found.insert(format!("struct:{name}"));
            }
            BtfKind::Enum if name == "pageflags" => {
                if let Ok(flags) = libbpf_rs::btf::types::Enum::try_from(t) {
                    if flags.iter().any(|f| f.name.is_some_and(|n| n == "PG_dropbehind")) {
                        found.insert("enum:PG_dropbehind".into());
                    }
                }
            }
            _ => {}
        }
    }
    modules(&mut found);
    Ok(Names { all: found, read })
}

/// Adds the modules that are loaded, those that have something mounted, and the functions of theirs that can be attached to.
fn modules(found: &mut BTreeSet<String>) {
    for module in MODULES {
        if std::path::Path::new("/sys/module").join(module).exists() {
            found.insert(format!("module:{module}"));
        }
    }
    let mounts = Mounts::here();
    for module in MODULES.iter().filter(|m| mounts.kinds().any(|kind| is_of_module(kind, m))) {
        found.insert(format!("mounted:{module}"));
    }
    // Names stand in BTF as they are, each between zero bytes. Without BTF for modules (5.10) there is no such file.
    let btf = fs::read("/sys/kernel/btf/btrfs").unwrap_or_default();
    let names: BTreeSet<&[u8]> = btf.split(|b| *b == 0).collect();
    found.extend(OF_BTRFS.iter().filter(|f| names.contains(f.as_bytes())).map(|f| (*f).to_owned()));
}

/// How many arguments a function has.
fn arguments(btf: &Btf<'_>, function: &libbpf_rs::btf::BtfType<'_>) -> Option<usize> {
    let prototype = function.next_type()?;
    let prototype = libbpf_rs::btf::types::FuncProto::try_from(prototype).ok()?;
    let _ = btf;
    Some(prototype.iter().count())
}

/// Attaches an empty fentry program for a moment: presence in BTF is no proof.
fn try_trampoline(btf_id: u32) -> Result<(), String> {
    let program = raw::load_empty(libbpf_sys::BPF_PROG_TYPE_TRACING, libbpf_sys::BPF_TRACE_FENTRY, btf_id)
        .map_err(|e| format!("loading fentry: {e}"))?;
    raw::attach_tracing(program).map(drop).map_err(|e| format!("attaching fentry: {e}"))
}

fn try_kprobe_multi(function: &str) -> Result<(), String> {
    let program = raw::load_empty(libbpf_sys::BPF_PROG_TYPE_KPROBE, libbpf_sys::BPF_TRACE_KPROBE_MULTI, 0)
        .map_err(|e| format!("loading kprobe.multi: {e}"))?;
    raw::attach_multi(program, &[function.to_owned()], false)
        .map(drop)
        .map_err(|e| format!("attaching kprobe.multi: {e}"))
}

fn try_kprobe_session(function: &str) -> Result<(), String> {
    let program = raw::load_empty(libbpf_sys::BPF_PROG_TYPE_KPROBE, libbpf_sys::BPF_TRACE_KPROBE_SESSION, 0)
        .map_err(|e| format!("loading kprobe.session: {e}"))?;
    raw::attach_session(program, &[function.to_owned()])
        .map(drop)
        .map_err(|e| format!("attaching kprobe.session: {e}"))
}

/// Whether the memory controller is in a cgroup hierarchy of version 1.
pub(super) fn memory_cgroup_v1() -> bool {
    procfs::mounts().is_ok_and(|text| text.lines().any(crate::cgroup::is_memory_v1))
}

/// Loads a program with an atomic or that fetches, an instruction of 5.12.
fn fetch_atomics() -> Result<bool, Obstacle> {
    const ST_DW_MEM: u8 = 0x7a;
    const STX_DW_BITS: u8 = 0xdb;
    const OR_FETCH: i32 = 0x41;
    let insns = [
        insn(MOV64_IMM, 0, 0, 0, 0),
        insn(ST_DW_MEM, 10, 0, -8, 0),
        insn(STX_DW_BITS, 10, 0, -8, OR_FETCH),
        insn(MOV64_IMM, 0, 0, 0, 0),
        insn(EXIT, 0, 0, 0, 0),
    ];
    match raw::load(libbpf_sys::BPF_PROG_TYPE_SOCKET_FILTER, 0, 0, &insns) {
        Ok(_) => Ok(true),
        Err(e) => Shortage::new(&e).map_or(Ok(false), |s| Err(s.into())),
    }
}

/// The preemption model: what can be set at run time first, then boot parameters, configuration and banner.
fn preemption() -> (Preemption, String) {
    let judge = |word: &str| match word {
        "none" | "voluntary" => Some(Preemption::Voluntary),
        "full" | "lazy" => Some(Preemption::Preemptible),
        _ => None,
    };
    let debugfs = detached("debugfs").ok();
    let private = debugfs.as_ref().map(|fd| format!("/proc/self/fd/{}/sched/preempt", fd.as_raw_fd()));
    for path in ["/sys/kernel/debug/sched/preempt"].into_iter().map(String::from).chain(private) {
        let chosen = fs::read_to_string(&path)
            .ok()
            .and_then(|t| Some(t.split_once('(')?.1.split_once(')')?.0.to_owned()));
        if let Some(p) = chosen.as_deref().and_then(judge) {
            return (p, "sched/preempt in debugfs".into());
        }
    }
    let cmdline = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    if let Some(p) = cmdline.split_whitespace().rev().find_map(|w| judge(w.strip_prefix("preempt=")?)) {
        return (p, "preempt= on the kernel command line".into());
    }
    if let Some((text, at)) = config() {
        let set = |name: &str| text.lines().any(|l| l.strip_prefix(name) == Some("=y"));
        if set("CONFIG_PREEMPT_NONE") || set("CONFIG_PREEMPT_VOLUNTARY") {
            return (Preemption::Voluntary, at);
        }
        if set("CONFIG_PREEMPT") || set("CONFIG_PREEMPT_LAZY") || set("CONFIG_PREEMPT_RT") {
            return (Preemption::Preemptible, at);
        }
    }
    let banner = banner();
    if banner.contains("PREEMPT") {
        return (Preemption::Unknown, "the banner names PREEMPT, the model in force cannot be read".into());
    }
    (Preemption::Voluntary, "the kernel's banner does not name PREEMPT".into())
}

/// What the kernel says of how it was built; not from /proc, where it may be hidden (`subset=pid`).
fn banner() -> String {
    rustix::system::uname().version().to_string_lossy().into()
}

/// Whether functions that are hooked are traced at all: that can be switched off, and on again, at any time.
pub(crate) fn functions_are_traced() -> bool {
    match fs::read_to_string("/proc/sys/kernel/ftrace_enabled") {
        Ok(on) => on.trim() != "0",
        // Once ftrace has given itself up.
        Err(e) => e.raw_os_error() != Some(libc::ENODEV),
    }
}

/// The same, where nothing else will do.
///
/// # Errors
/// When they are not; with the remedy.
pub(crate) fn traced() -> Result<(), Obstacle> {
    if functions_are_traced() { Ok(()) } else { Err(Obstacle::new(SWITCHED_OFF, SWITCH_ON)) }
}

/// Whether spinlocks can be preempted: the kernel's banner has PREEMPT_RT, or PREEMPT_{RT,…} where the model is dynamic.
fn realtime() -> bool {
    let banner = banner();
    banner.contains("PREEMPT_RT") || banner.contains("PREEMPT_{RT")
}

/// The kernel's configuration, from /proc/config.gz or /boot.
fn config() -> Option<(String, String)> {
    if let Ok(file) = fs::File::open("/proc/config.gz") {
        let mut text = String::new();
        if flate2::read::GzDecoder::new(file).read_to_string(&mut text).is_ok() {
            return Some((text, "/proc/config.gz".into()));
        }
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let path = format!("/boot/config-{}", release.trim());
    Some((fs::read_to_string(&path).ok()?, path))
}

/// What the kernel says of itself under `/proc/sys/kernel`: `hostname`, `osrelease`.
#[must_use]
pub fn name(of: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/kernel/{of}")).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
