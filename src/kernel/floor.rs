//! The floor of what a plan costs: programs that do nothing, on the same hooks.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::fd::OwnedFd;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::BtfKind;
use libbpf_rs::btf::BtfType;
use libbpf_rs::btf::TypeId;

use super::attach;
use super::raw;
use super::skel;
use super::tracefs::Tracefs;
use crate::plan::Attach;
use crate::plan::Hook;
use crate::plan::Plan;

/// Programs of two instructions on the hooks of a plan. Dropping it detaches them.
#[derive(Debug)]
pub struct Floor {
    /// BPF links, and perf events of classic tracepoints.
    links: Vec<OwnedFd>,
}

impl Floor {
    /// Attaches an empty program wherever the plan has one, but for functions of modules: what is measured calls none.
    ///
    /// # Errors
    /// When the kernel refuses one of them. Nothing is left attached then.
    pub fn attach(plan: &Plan) -> io::Result<Self> {
        let ids = type_ids(plan)?;
        let exits = exits()?;
        let mut links = Vec::new();
        for hook in &plan.hooks {
            let on_exit = exits.iter().any(|program| program == hook.program);
            let link = attach_empty(hook, on_exit, &ids)
                .map_err(|e| io::Error::new(e.kind(), format!("an empty {}: {e}", hook.program)))?;
            links.extend(link);
        }
        Ok(Self { links })
    }

    /// How many programs are attached.
    #[must_use]
    pub fn programs(&self) -> usize {
        self.links.len()
    }
}

fn attach_empty(hook: &Hook, on_exit: bool, ids: &HashMap<Key, u32>) -> io::Result<Option<OwnedFd>> {
    let id = |key: Key| ids.get(&key).copied().ok_or_else(|| io::Error::other("not in the kernel's BTF"));
    let tracing = |how, id| raw::load_empty(libbpf_sys::BPF_PROG_TYPE_TRACING, how, id);
    let link = match &hook.attach {
        Attach::Trampoline(function) => {
            let how = if on_exit { libbpf_sys::BPF_TRACE_FEXIT } else { libbpf_sys::BPF_TRACE_FENTRY };
            if !ids.contains_key(&Key::Function(function.clone())) {
                return Ok(None); // of a module
            }
            raw::attach_tracing(tracing(how, id(Key::Function(function.clone()))?)?)?
        }
        Attach::TracepointBtf(name) => {
            raw::attach_tracing(tracing(libbpf_sys::BPF_TRACE_RAW_TP, id(Key::Tracepoint(name.clone()))?)?)?
        }
        Attach::Multi(functions, on_return) => {
            let how = libbpf_sys::BPF_TRACE_KPROBE_MULTI;
            let program = raw::load_empty(libbpf_sys::BPF_PROG_TYPE_KPROBE, how, 0)?;
            raw::attach_multi(program, functions, *on_return)?
        }
        Attach::Session(functions) => {
            let how = libbpf_sys::BPF_TRACE_KPROBE_SESSION;
            let program = raw::load_empty(libbpf_sys::BPF_PROG_TYPE_KPROBE, how, 0)?;
            raw::attach_session(program, functions)?
        }
        Attach::Tracepoint(category, name) => {
            let tracefs = Tracefs::find().map_err(io::Error::other)?;
            let event = attach::tracepoint_event(tracefs.id(category, name)?)?;
            let program = raw::load_empty(libbpf_sys::BPF_PROG_TYPE_TRACEPOINT, 0, 0)?;
            on_event(&event, &program)?;
            event
        }
        // Not on the path of reads, which the floor is measured for.
        Attach::Kprobe(_) | Attach::Tick => return Ok(None),
    };
    Ok(Some(link))
}

/// Runs a program at each hit of a perf event, as libbpf does before 5.15: all kernels know this way.
fn on_event(event: &OwnedFd, program: &OwnedFd) -> io::Result<()> {
    const PERF_EVENT_IOC_ENABLE: libc::c_ulong = 0x2400;
    const PERF_EVENT_IOC_SET_BPF: libc::c_ulong = 0x4004_2408;
    for (request, argument) in [(PERF_EVENT_IOC_SET_BPF, program.as_raw_fd()), (PERF_EVENT_IOC_ENABLE, 0)] {
        // SAFETY: both requests take a number.
        if unsafe { libc::ioctl(event.as_raw_fd(), request as _, argument) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// What tracing programs are attached to by type id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Function(String),
    Tracepoint(String),
}

/// The type ids that a plan needs, from one pass over the kernel's BTF.
fn type_ids(plan: &Plan) -> io::Result<HashMap<Key, u32>> {
    let wanted: Vec<Key> = plan
        .hooks
        .iter()
        .filter_map(|hook| match &hook.attach {
            Attach::Trampoline(f) => Some(Key::Function(f.clone())),
            Attach::TracepointBtf(t) => Some(Key::Tracepoint(t.clone())),
            _ => None,
        })
        .collect();
    let mut ids = HashMap::new();
    if wanted.is_empty() {
        return Ok(ids);
    }
    let btf = Btf::from_vmlinux().map_err(io::Error::other)?;
    for id in 1..=u32::try_from(btf.len()).unwrap_or(u32::MAX) {
        let Some(t) = btf.type_by_id::<BtfType<'_>>(TypeId::from(id)) else { continue };
        let name = || t.name().and_then(|n| n.to_str());
        let key = match t.kind() {
            BtfKind::Func => name().map(|n| Key::Function(n.into())),
            BtfKind::Typedef => {
                name().and_then(|n| n.strip_prefix("btf_trace_")).map(|n| Key::Tracepoint(n.into()))
            }
            _ => None,
        };
        if let Some(key) = key.filter(|k| wanted.contains(k)) {
            ids.insert(key, id);
        }
    }
    Ok(ids)
}

/// The programs that run when a function returns, as their sections say.
fn exits() -> io::Result<Vec<String>> {
    use libbpf_rs::skel::OpenSkel as _;
    use libbpf_rs::skel::SkelBuilder as _;
    let mut storage = std::mem::MaybeUninit::uninit();
    let open = skel::CachetopSkelBuilder::default().open(&mut storage).map_err(io::Error::other)?;
    let exits = open
        .open_object()
        .progs()
        .filter(|p| p.section().to_string_lossy().trim_start_matches('?').starts_with("fexit/"))
        .map(|p| p.name().to_string_lossy().into_owned())
        .collect();
    Ok(exits)
}
