//! The ways to attach a program to a read path, and how each is done.

use std::ffi::CString;
use std::fs;
use std::io;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::fd::OwnedFd;

use cachetop::kernel::Tracefs;
use cachetop::kernel::raw;
use cachetop::kernel::raw::Insn;
use cachetop::kernel::raw::owned;
use libbpf_sys::BPF_PROG_TYPE_KPROBE as KPROBE;
use libbpf_sys::BPF_PROG_TYPE_RAW_TRACEPOINT as RAW_TRACEPOINT;
use libbpf_sys::BPF_PROG_TYPE_TRACEPOINT as TRACEPOINT;
use libbpf_sys::BPF_PROG_TYPE_TRACING as TRACING;

use crate::names::Names;
use crate::programs::End;

/// The function that each buffered read enters and leaves once.
pub const FUNCTION: &str = "filemap_read";
/// Group of the probes that are made through tracefs.
const GROUP: &str = "cachetop_bench";

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A call of [`FUNCTION`].
    Call,
    /// `mm_filemap_get_pages`: once in each call that reads one page.
    LookUp,
    /// `mm_filemap_add_to_page_cache`.
    Add,
}

impl Event {
    pub fn name(self) -> &'static str {
        match self {
            Event::Call => FUNCTION,
            Event::LookUp => "mm_filemap_get_pages",
            Event::Add => "mm_filemap_add_to_page_cache",
        }
    }
}

/// One program and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// A trampoline: `BPF_TRACE_FENTRY`, `BPF_TRACE_FEXIT`, `BPF_TRACE_FSESSION`.
    Trampoline(u32),
    /// kprobe.multi at one end.
    Multi(End),
    /// kprobe.session.
    Session,
    /// A probe made by perf.
    Probe(End),
    /// A return probe made through tracefs, with room for so many calls at a time.
    Instances(u32),
    BtfTracepoint,
    RawTracepoint,
    Tracepoint,
}

impl Hook {
    pub fn end(self) -> End {
        match self {
            Hook::Trampoline(libbpf_sys::BPF_TRACE_FEXIT) | Hook::Instances(_) => End::Return,
            Hook::Trampoline(libbpf_sys::BPF_TRACE_FSESSION) | Hook::Session => End::Both,
            Hook::Multi(end) | Hook::Probe(end) => end,
            _ => End::Entry,
        }
    }
}

/// A way to see an event.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub title: &'static str,
    pub event: Event,
    pub hooks: &'static [Hook],
    /// The first argument is carried from entry to return.
    pub cookie: bool,
}

const fn way(title: &'static str, event: Event, hooks: &'static [Hook]) -> Way {
    Way { title, event, hooks, cookie: false }
}

const FENTRY: Hook = Hook::Trampoline(libbpf_sys::BPF_TRACE_FENTRY);
const FEXIT: Hook = Hook::Trampoline(libbpf_sys::BPF_TRACE_FEXIT);
const FSESSION: Hook = Hook::Trampoline(libbpf_sys::BPF_TRACE_FSESSION);
/// As many as there may be readers asleep in the function.
const MANY: u32 = 4096;

pub const WAYS: &[Way] = &[
    way("fentry", Event::Call, &[FENTRY]),
    way("fexit", Event::Call, &[FEXIT]),
    way("fentry + fexit", Event::Call, &[FENTRY, FEXIT]),
    way("fsession", Event::Call, &[FSESSION]),
    Way { title: "fsession, cookie", event: Event::Call, hooks: &[FSESSION], cookie: true },
    way("kprobe", Event::Call, &[Hook::Probe(End::Entry)]),
    way("kretprobe", Event::Call, &[Hook::Probe(End::Return)]),
    way("kretprobe r4096", Event::Call, &[Hook::Instances(MANY)]),
    way("kprobe + kretprobe", Event::Call, &[Hook::Probe(End::Entry), Hook::Probe(End::Return)]),
    way("kprobe + kretprobe r4096", Event::Call, &[Hook::Probe(End::Entry), Hook::Instances(MANY)]),
    way("kprobe.multi", Event::Call, &[Hook::Multi(End::Entry)]),
    way("kretprobe.multi", Event::Call, &[Hook::Multi(End::Return)]),
    way("kprobe.multi + kretprobe.multi", Event::Call, &[Hook::Multi(End::Entry), Hook::Multi(End::Return)]),
    way("kprobe.session", Event::Call, &[Hook::Session]),
    Way { title: "kprobe.session, cookie", event: Event::Call, hooks: &[Hook::Session], cookie: true },
    way("kprobe.multi + fexit", Event::Call, &[Hook::Multi(End::Entry), FEXIT]),
    way("kprobe + fexit", Event::Call, &[Hook::Probe(End::Entry), FEXIT]),
    way("kprobe + kretprobe.multi", Event::Call, &[Hook::Probe(End::Entry), Hook::Multi(End::Return)]),
    way("tp_btf", Event::LookUp, &[Hook::BtfTracepoint]),
    way("raw_tp", Event::LookUp, &[Hook::RawTracepoint]),
    way("classic tp", Event::LookUp, &[Hook::Tracepoint]),
    way("tp_btf", Event::Add, &[Hook::BtfTracepoint]),
    way("raw_tp", Event::Add, &[Hook::RawTracepoint]),
    way("classic tp", Event::Add, &[Hook::Tracepoint]),
];

/// Programs while they are attached. The fields are dropped in this order, as the kernel wants them to be.
#[derive(Default)]
pub struct Attached {
    links: Vec<OwnedFd>,
    programs: Vec<OwnedFd>,
    events: Vec<OwnedFd>,
    probe: Option<TracefsProbe>,
}

impl Attached {
    /// Attaches to one event; `code` makes each hook's program.
    pub fn new(
        way: &Way,
        names: &Names,
        mut code: impl FnMut(Hook) -> io::Result<Vec<Insn>>,
    ) -> io::Result<Self> {
        let mut attached = Self::default();
        for hook in way.hooks {
            let code = code(*hook)?;
            attached.hook(*hook, way.event, names, &code)?;
        }
        Ok(attached)
    }

    fn hook(&mut self, hook: Hook, event: Event, names: &Names, code: &[Insn]) -> io::Result<()> {
        let (kind, how, id) = match hook {
            Hook::Trampoline(how) => (TRACING, how, names.function(FUNCTION)?),
            Hook::BtfTracepoint => (TRACING, libbpf_sys::BPF_TRACE_RAW_TP, names.tracepoint(event.name())?),
            Hook::Multi(_) => (KPROBE, libbpf_sys::BPF_TRACE_KPROBE_MULTI, 0),
            Hook::Session => (KPROBE, libbpf_sys::BPF_TRACE_KPROBE_SESSION, 0),
            Hook::Probe(_) | Hook::Instances(_) => (KPROBE, 0, 0),
            Hook::RawTracepoint => (RAW_TRACEPOINT, 0, 0),
            Hook::Tracepoint => (TRACEPOINT, 0, 0),
        };
        let program = raw::load(kind, how, id, code)?;
        let function = [FUNCTION.to_owned()];
        let link = match hook {
            Hook::Trampoline(_) | Hook::BtfTracepoint => raw::attach_tracing(&program)?,
            Hook::Multi(end) => raw::link_multi(&program, how, &function, end == End::Return)?,
            Hook::Session => raw::link_multi(&program, how, &function, false)?,
            Hook::RawTracepoint => {
                let name = CString::new(event.name())?;
                // SAFETY: the name outlives the call.
                owned(unsafe { libbpf_sys::bpf_raw_tracepoint_open(name.as_ptr(), program.as_raw_fd()) })?
            }
            Hook::Probe(end) => self.event(probe_event(end)?, &program)?,
            Hook::Instances(most) => {
                let probe = TracefsProbe::new(most)?;
                let id = probe.tracefs.id(GROUP, FUNCTION)?;
                self.probe = Some(probe);
                self.event(trace_event(id)?, &program)?
            }
            Hook::Tracepoint => {
                let id = Tracefs::find().map_err(io::Error::other)?.id("filemap", event.name())?;
                self.event(trace_event(id)?, &program)?
            }
        };
        self.links.push(link);
        self.programs.push(program);
        Ok(())
    }

    /// Runs a program at each hit of a perf event (5.15 has links for these).
    fn event(&mut self, event: OwnedFd, program: &OwnedFd) -> io::Result<OwnedFd> {
        let (program, fd) = (program.as_raw_fd(), event.as_raw_fd());
        let how = libbpf_sys::BPF_PERF_EVENT;
        // SAFETY: no options are given.
        let link = owned(unsafe { libbpf_sys::bpf_link_create(program, fd, how, std::ptr::null()) })?;
        // SAFETY: PERF_EVENT_IOC_ENABLE takes a number.
        if unsafe { libc::ioctl(fd, 0x2400, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        self.events.push(event);
        Ok(link)
    }

    /// Runs that the kernel itself says it left out, and where it says so.
    pub fn admitted(&self) -> Vec<(&'static str, u64)> {
        let skipped = self.programs.iter().map(recursion_misses).sum();
        let missed = self.links.iter().map(link_misses).sum();
        let profile = self.probe.as_ref().map_or(0, TracefsProbe::misses);
        let all = [("recursion_misses", skipped), ("link's missed", missed), ("kprobe_profile", profile)];
        all.into_iter().filter(|(_, n)| *n > 0).collect()
    }
}

fn recursion_misses(program: &OwnedFd) -> u64 {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut len = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: plain data of the size given, zeroed: no arrays are asked for.
    unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut len) };
    info.recursion_misses
}

/// 0 where the kernel does not count them: before 6.7.
fn link_misses(link: &OwnedFd) -> u64 {
    let mut info = libbpf_sys::bpf_link_info::default();
    let mut len = size_of::<libbpf_sys::bpf_link_info>() as u32;
    // SAFETY: plain data of the size given, zeroed: no arrays are asked for.
    unsafe { libbpf_sys::bpf_link_get_info_by_fd(link.as_raw_fd(), &raw mut info, &raw mut len) };
    // SAFETY: the types say which members the kernel filled; all are plain numbers.
    unsafe {
        match info.type_ {
            libbpf_sys::BPF_LINK_TYPE_KPROBE_MULTI => info.__bindgen_anon_1.kprobe_multi.missed,
            libbpf_sys::BPF_LINK_TYPE_PERF_EVENT => {
                let event = info.__bindgen_anon_1.perf_event;
                let probe = matches!(
                    event.type_,
                    libbpf_sys::BPF_PERF_EVENT_KPROBE | libbpf_sys::BPF_PERF_EVENT_KRETPROBE
                );
                if probe { event.__bindgen_anon_1.kprobe.missed } else { 0 }
            }
            _ => 0,
        }
    }
}

/// A perf event that makes its own probe.
fn probe_event(end: End) -> io::Result<OwnedFd> {
    let kind = fs::read_to_string("/sys/bus/event_source/devices/kprobe/type")
        .map_err(|e| io::Error::new(e.kind(), format!("perf has no kprobe events: {e}")))?;
    let function = CString::new(FUNCTION)?;
    let mut attr = libbpf_sys::perf_event_attr {
        type_: kind.trim().parse().map_err(io::Error::other)?,
        config: u64::from(end == End::Return),
        ..Default::default()
    };
    attr.__bindgen_anon_3.kprobe_func = function.as_ptr() as u64;
    perf_event(attr)
}

fn trace_event(id: u64) -> io::Result<OwnedFd> {
    let kind = libbpf_sys::PERF_TYPE_TRACEPOINT;
    perf_event(libbpf_sys::perf_event_attr { type_: kind, config: id, ..Default::default() })
}

fn perf_event(mut attr: libbpf_sys::perf_event_attr) -> io::Result<OwnedFd> {
    const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
    attr.size = size_of_val(&attr) as u32;
    // SAFETY: the attributes and what they point to outlive the call.
    let fd =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC) };
    if fd < 0 { Err(io::Error::last_os_error()) } else { owned(fd as i32) }
}

/// A return probe of the whole system, removed when dropped.
struct TracefsProbe {
    tracefs: Tracefs,
}

impl TracefsProbe {
    fn new(most: u32) -> io::Result<Self> {
        let probe = Self { tracefs: Tracefs::find().map_err(io::Error::other)? };
        probe.write(&format!("r{most}:{GROUP}/{FUNCTION} {FUNCTION}"))?;
        Ok(probe)
    }

    fn write(&self, command: &str) -> io::Result<()> {
        let path = format!("{}/kprobe_events", self.tracefs.path());
        let wrong = |e: io::Error| io::Error::new(e.kind(), format!("kprobe_events: {e}"));
        let mut events = fs::File::options().append(true).open(path).map_err(wrong)?;
        events.write_all(command.as_bytes()).map_err(wrong)
    }

    /// The third column of kprobe_profile.
    fn misses(&self) -> u64 {
        let text = fs::read_to_string(format!("{}/kprobe_profile", self.tracefs.path())).unwrap_or_default();
        let line = text.lines().find(|l| l.split_whitespace().next() == Some(FUNCTION));
        line.and_then(|l| l.split_whitespace().nth(2)?.parse().ok()).unwrap_or(0)
    }
}

impl Drop for TracefsProbe {
    fn drop(&mut self) {
        // Fails if it was never made.
        let _ = self.write(&format!("-:{GROUP}/{FUNCTION}"));
    }
}
