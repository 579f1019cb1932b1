//! From a plan to programs in the kernel: all or nothing.

use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::os::fd::FromRawFd as _;
use std::os::fd::IntoRawFd as _;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use std::time::Instant;

use libbpf_rs::Link;
use libbpf_rs::MapCore as _;
use libbpf_rs::ProgramMut;
use libbpf_rs::skel::OpenSkel as _;
use libbpf_rs::skel::Skel as _;
use libbpf_rs::skel::SkelBuilder as _;

use super::chores::Chores;
use super::files::Files;
use super::look;
use super::raw;
use super::rows::Rows;
use super::shared::Shared;
use super::skel;
use super::skel::AttachError;
use super::skel::CachetopSkel;
use super::skel::OpenCachetopSkel;
use super::sweep::Sweep;
use super::tracefs::Tracefs;
use crate::facts::Facts;
use crate::figures::Figure;
use crate::only::Only;
use crate::plan::Attach;
use crate::plan::Plan;
use crate::plan::SketchBy;
use crate::plan::Wants;
use crate::sample::Followed;
use crate::wire::COUNTERS;

/// How often free memory is handed back while we count: it takes a millisecond.
const GIVEN_BACK: Duration = Duration::from_secs(10);

/// Bytes of the ring of touches: what may come between two readings.
const TOUCH_RING: u32 = 4 << 20;
/// Bytes of the ring of requests for `--try`.
const TRIED_RING: u32 = 32 << 20;

/// What a person can set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Count the monitor's own process, too.
    pub include_self: bool,
    /// Rows in the table.
    pub rows: u32,
    /// Rows in the table of files, where files are wanted.
    pub files: u32,
    /// What to find out beyond the counts.
    pub wants: Wants,
    /// What counts.
    pub only: Only,
}

/// Programs in the kernel. Dropping it detaches them; so does the kernel when the process dies, since nothing is
/// pinned.
pub struct Attached {
    pub(super) skel: CachetopSkel<'static>,
    pub(super) programs: Vec<(&'static str, OwnedFd)>,
    pub(super) settle: bool,
    /// Some reads have no hook at their end: the last ones of threads are looked at before each sample.
    pub(super) plain: bool,
    pub(super) sweep: Sweep,
    pub(super) chores: Chores,
    /// What is in no row: all counters of each processor.
    pub(super) totals: Shared<AtomicU64>,
    /// What is above rows of files.
    pub(super) line: crate::sample::Line,
    pub(super) rows: Rows,
    pub(super) files: Option<Files>,
    pub(super) followed: Followed,
    /// When free memory was handed back.
    given_back: Instant,
    pub(super) links: Vec<Link>,
    /// Links that libbpf-rs knows no type for.
    pub(super) sessions: Vec<OwnedFd>,
}

/// Threads that the kernel programs have room for, whatever the table shows: totals are exact up to there.
const THREADS: u32 = 16384;
/// Rows beyond a table that is larger than that.
const SPARE: u32 = 1024;

/// How many rows are shown and how many are for what else there is: two stacks. Where only some threads count,
/// all of theirs are shown, the first stack is kept for them, and the second is everybody's.
fn rooms(settings: &Settings) -> (u32, u32) {
    match settings.only.threads() {
        true => (settings.rows.min(SPARE), settings.rows.max(THREADS)),
        false => (settings.rows, THREADS.saturating_sub(settings.rows).max(SPARE)),
    }
}

/// In how many pieces so many rows are mapped.
fn pieces(rows: u32) -> u32 {
    rows.div_ceil(u32::try_from(crate::wire::ROWS_MAPPED).unwrap_or(u32::MAX))
}

/// Among how many places processors share what is in no row: a power of two.
fn places() -> u32 {
    libbpf_rs::num_possible_cpus().ok().and_then(|n| u32::try_from(n).ok()).unwrap_or(1).next_power_of_two()
}

/// For how many there is room that may have sketches: as for their rows.
fn sketch_rows(settings: &Settings) -> u32 {
    if settings.wants.sketches == Some(SketchBy::File) { settings.files } else { settings.rows }
}

/// The program that looks at what requests without a hook at their end have delivered.
const LOOK_PLAIN: &str = "look_plain";
/// Attached wherever reads and writes are counted by their entry.
const BAD_ADDRESS: &str = "bad_address_multi";

/// What libbpf says of loading.
fn load(error: libbpf_rs::Error) -> AttachError {
    AttachError::Load(format!("{error:#}"))
}

/// Writes down what the kernel programs must know before they are loaded.
fn write_down(
    open: &mut OpenCachetopSkel<'_>,
    facts: &Facts,
    settings: &Settings,
    latency: bool,
    plan: &Plan,
) -> Result<(), AttachError> {
    let Some(rodata) = open.maps.rodata_data.as_deref_mut() else { return Ok(()) };
    rodata.leave_out_self = !settings.include_self;
    rodata.with_latency = latency;
    rodata.with_files = settings.wants.files;
    rodata.with_follow = settings.wants.follow;
    rodata.with_tried = settings.wants.tried;
    rodata.with_touches = settings.wants.touches;
    rodata.with_uses = settings.wants.touches || settings.wants.sketches.is_some();
    rodata.with_gone = settings.wants.touches || settings.wants.blame;
    rodata.with_plain = plan.uses(BAD_ADDRESS);
    rodata.with_plain_faults = plan.uses("map_pages_multi");
    rodata.totals_mask = places() - 1;
    rodata.cgroup_v1 = super::probe::memory_cgroup_v1();
    look::write_down(rodata, &settings.only);
    rodata.vmemmap_base_at = facts.vmemmap.clone().unwrap_or(0);
    rodata.wake_page_at = facts.wake_page.clone().unwrap_or(0);
    Ok(())
}

/// Gives tables their sizes; those that this plan does not use cost no memory.
fn size_tables(
    open: &mut OpenCachetopSkel<'_>,
    plan: &Plan,
    settings: &Settings,
    latency: bool,
    (named, spare): (u32, u32),
) -> libbpf_rs::Result<()> {
    let maps = &mut open.maps;
    let rows = named.saturating_add(spare);
    maps.totals.set_max_entries(places())?;
    maps.free_rows.set_max_entries(named)?;
    maps.spare_rows.set_max_entries(spare)?;
    for map in [&mut maps.rows, &mut maps.row_numbers] {
        map.set_max_entries(rows)?;
    }
    maps.rows_taken.set_max_entries(pieces(rows))?;
    let files = if settings.wants.files { settings.files } else { 1 };
    for map in [&mut maps.files, &mut maps.file_names, &mut maps.file_numbers, &mut maps.free_files] {
        map.set_max_entries(files)?;
    }
    maps.files_taken.set_max_entries(pieces(files))?;
    if settings.wants.touches {
        maps.touches.set_max_entries(TOUCH_RING)?;
    }
    if settings.wants.tried {
        maps.tried.set_max_entries(TRIED_RING)?;
    }
    if settings.wants.blame {
        super::blame::size_tables(open, settings.rows)?;
    }
    if settings.wants.bill {
        super::bill::size_tables(open)?;
    }
    super::asked::size_tables(open, &settings.only)?;
    super::sketchroom::size_tables(open, settings.wants.sketches, sketch_rows(settings))?;
    let maps = &mut open.maps;
    maps.followed.set_max_entries(if settings.wants.follow { settings.rows } else { 1 })?;
    if plan.fetch_atomics {
        maps.ledger_pages.set_max_entries(1)?;
    } else {
        for map in [&mut maps.ledger, &mut maps.ledger_words, &mut maps.ledger_free] {
            map.set_max_entries(1)?;
        }
    }
    let calls = plan.uses("get_pages_btf");
    maps.threads.set_max_entries(if calls { 1 } else { rows })?;
    if calls {
        maps.carried.set_max_entries(1)?;
    }
    for map in [&mut maps.calls, &mut maps.call_numbers, &mut maps.free_calls] {
        map.set_max_entries(if calls { rows } else { 1 })?;
    }
    maps.histograms.set_max_entries(if latency { rows } else { 1 })
}

/// Only the programs of the plan are loaded, and those that are run by hand.
fn choose_programs(open: &mut OpenCachetopSkel<'_>, plan: &Plan, only: &Only) -> libbpf_rs::Result<()> {
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let hook = plan.hooks.iter().find(|h| h.program == name);
        program.set_autoload(hook.is_some() || look::is_needed(&name, only));
        let target = match hook.map(|h| &h.attach) {
            Some(Attach::Trampoline(f)) => Some(f),
            Some(Attach::TracepointBtf(t)) => Some(t),
            _ => None,
        };
        if let Some(target) = target {
            program.set_attach_target(0, Some(target.clone()))?;
        }
    }
    Ok(())
}

/// What holds programs on their hooks.
#[derive(Default)]
struct Hooked {
    links: Vec<Link>,
    sessions: Vec<OwnedFd>,
    programs: Vec<(&'static str, OwnedFd)>,
}

impl Hooked {
    /// Attaches all hooks of the plan; where one refuses, none stays attached.
    fn new(skel: &CachetopSkel<'_>, plan: &Plan, tracefs: Option<&Tracefs>) -> Result<Self, AttachError> {
        let mut all = Self::default();
        for hook in &plan.hooks {
            let refused = |why: String| AttachError::Refused { program: hook.program.into(), why };
            let Some(program) = skel.object().progs_mut().find(|p| p.name().to_str() == Some(hook.program))
            else {
                return Err(AttachError::Load(format!("there is no program {}", hook.program)));
            };
            if let Attach::Session(names) = &hook.attach {
                all.sessions.push(raw::attach_session(&program, names).map_err(|e| refused(e.to_string()))?);
            } else {
                all.links.extend(attach(&program, &hook.attach, tracefs).map_err(refused)?);
            }
            let copy = duplicate(&program).map_err(|e| AttachError::Load(e.to_string()))?;
            all.programs.push((hook.program, copy));
        }
        Ok(all)
    }
}

impl Attached {
    /// Loads and attaches a plan, then opens the gate: no event counts before everything is attached.
    ///
    /// # Errors
    /// When the kernel refuses to load or a hook refuses to attach. Nothing is left attached then.
    pub fn new(
        plan: &Plan,
        facts: &Facts,
        tracefs: Option<&Tracefs>,
        settings: &Settings,
    ) -> Result<Self, AttachError> {
        quiet_libbpf();
        // The skeleton borrows this for as long as it lives, which is as long as the session: a few hundred
        // bytes for each plan tried.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = skel::CachetopSkelBuilder::default().open(storage).map_err(load)?;
        let latency = settings.wants.latency && plan.knows(Figure::StallNs);
        write_down(&mut open, facts, settings, latency, plan)?;
        let (named, spare) = rooms(settings);
        size_tables(&mut open, plan, settings, latency, (named, spare)).map_err(load)?;
        // From here on the kernel's BTF is there, since programs are told what they are attached to, until all is loaded. Most
        // memory is in use then: what opening has read and let go of must not be there, too.
        crate::heap::give_back();
        crate::heap::drop_pages_of_file();
        choose_programs(&mut open, plan, &settings.only).map_err(load)?;
        crate::heap::give_back();
        let mut skel = open.load().map_err(load)?;
        let chores = Chores::new(&skel).map_err(load)?;
        let words = skel.maps.totals.max_entries() as usize * COUNTERS;
        let totals = Shared::new(&skel.maps.totals, words).map_err(|e| load(e.into()))?;
        let looked = look::look(&mut skel, &settings.only)?;
        let mut rows = Rows::new(&skel, named, spare, latency, settings.only.threads()).map_err(load)?;
        if settings.wants.files && plan.uses(BAD_ADDRESS) {
            rows = rows.with_looked();
        }
        let files =
            settings.wants.files.then(|| Files::new(&skel, settings.files)).transpose().map_err(load)?;
        if settings.wants.blame {
            super::blame::hand_out(&skel, settings.rows).map_err(load)?;
        }
        if settings.wants.bill {
            super::bill::hand_out(&skel).map_err(load)?;
            super::growth::hand_out(&skel).map_err(load)?;
        }
        if let Some(by) = settings.wants.sketches {
            super::sketchroom::hand_out(&skel, by, sketch_rows(settings)).map_err(load)?;
        }
        let name = match &settings.only.files {
            Some(crate::only::Files::One { name, .. }) if !looked.subvolume => name.clone(),
            _ => None,
        };
        let files = files.map(|files| files.called(name));
        let Hooked { links, sessions, programs } = Hooked::new(&skel, plan, tracefs)?;
        let mut attached = Self {
            skel,
            programs,
            settle: plan.uses("settle_pending"),
            plain: plan.uses(LOOK_PLAIN),
            sweep: Sweep::default(),
            chores,
            totals,
            line: crate::sample::Line::default(),
            rows,
            files,
            followed: Followed::default(),
            given_back: Instant::now(),
            links,
            sessions,
        };
        attached.open_gate();
        crate::heap::give_back();
        crate::heap::drop_pages_of_file();
        attached.given_back = Instant::now();
        Ok(attached)
    }

    /// Hands memory back now and then: rows come and go, and the allocator keeps half as much again of what was free once.
    pub(super) fn give_back_at_times(&mut self) {
        if self.given_back.elapsed() >= GIVEN_BACK {
            crate::heap::give_back();
            self.given_back = Instant::now();
        }
    }

    /// Lets events count. In place: the kernel programs have begun to write the variables around it.
    fn open_gate(&mut self) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: a byte of our own that the kernel programs only read.
            unsafe { (&raw mut bss.ready).write_volatile(true) };
        }
    }
}

/// libbpf's words, the verifier's among them, go where the log goes. Those that nobody asks for are not written down: to load our
/// programs it has 15 000 of them.
pub(super) fn quiet_libbpf() {
    let most = match log::max_level() {
        log::LevelFilter::Trace => libbpf_rs::PrintLevel::Debug,
        log::LevelFilter::Debug => libbpf_rs::PrintLevel::Info,
        _ => {
            libbpf_rs::set_print(None);
            return;
        }
    };
    libbpf_rs::set_print(Some((most, |level, text| {
        let text = text.trim_end();
        match level {
            libbpf_rs::PrintLevel::Debug => log::trace!("{text}"),
            _ => log::debug!("{text}"),
        }
    })));
}

fn duplicate(program: &ProgramMut<'_>) -> std::io::Result<OwnedFd> {
    use std::os::fd::AsFd as _;
    program.as_fd().try_clone_to_owned()
}

pub(super) fn attach(
    program: &ProgramMut<'_>,
    how: &Attach,
    tracefs: Option<&Tracefs>,
) -> Result<Option<Link>, String> {
    let link = match how {
        Attach::Trampoline(_) | Attach::TracepointBtf(_) => program.attach_trace(),
        Attach::Multi(names, on_return) => program.attach_kprobe_multi(*on_return, names.clone()),
        Attach::Kprobe(name) => program.attach_kprobe(false, name),
        Attach::Tracepoint(category, name) => {
            let tracefs = tracefs.ok_or("tracefs is not there")?;
            let id = tracefs.id(category, name).map_err(|e| format!("{category}:{name}: {e}"))?;
            let event = tracepoint_event(id).map_err(|e| format!("{category}:{name}: {e}"))?;
            // The link closes the event with itself; on failure we do.
            let link = program.attach_perf_event(event.as_raw_fd());
            if link.is_ok() {
                let _ = event.into_raw_fd();
            }
            link
        }
        Attach::Session(_) | Attach::Tick => return Ok(None),
    };
    link.map(Some).map_err(|e| format!("{e:#}"))
}

/// The perf event of a classic tracepoint. A BPF program attached to it sees the events of all CPUs.
pub(super) fn tracepoint_event(id: u64) -> std::io::Result<OwnedFd> {
    let attr = libbpf_sys::perf_event_attr {
        type_: libbpf_sys::PERF_TYPE_TRACEPOINT,
        size: size_of::<libbpf_sys::perf_event_attr>() as u32,
        config: id,
        ..Default::default()
    };
    perf_event(&attr)
}

/// A perf event on all processes of a CPU, for a BPF program that sees the hits of all CPUs.
pub(super) fn perf_event(attr: &libbpf_sys::perf_event_attr) -> std::io::Result<OwnedFd> {
    const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
    // SAFETY: the attributes outlive the call and state their own size.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, attr as *const _, -1, 0, -1, PERF_FLAG_FD_CLOEXEC)
    };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the kernel has just handed out this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
