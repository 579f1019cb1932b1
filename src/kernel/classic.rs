//! The programs of the classic engine: loading, attaching, reading.

use std::collections::HashMap;
use std::collections::HashSet;
use std::ffi::CString;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::fd::AsRawFd as _;
use std::os::fd::IntoRawFd as _;
use std::os::fd::OwnedFd;

use libbpf_rs::Link;
use libbpf_rs::MapCore as _;
use libbpf_rs::MapFlags;
use libbpf_rs::ProgramMut;
use libbpf_rs::skel::OpenSkel as _;
use libbpf_rs::skel::Skel as _;
use libbpf_rs::skel::SkelBuilder as _;

use super::attach;
use super::attach::Settings;
use super::entries;
use super::room;
use super::room::List;
use super::skel::AttachError;
use super::tables;
use super::tracefs::Tracefs;
use crate::classic::Counter;
use crate::classic::Counts;
use crate::classic::ProcessSample;
use crate::classic::plan::Hook;
use crate::classic::plan::How;
use crate::classic::plan::Plan;
use crate::facts::Facts;
use crate::plan::Attach;
use crate::room::Kind;
use crate::room::Table;
use crate::sample::Lost;

#[allow(clippy::all, missing_docs, dead_code, unsafe_op_in_unsafe_fn)]
#[allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used, clippy::expect_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/classic.skel.rs"));
}

/// Programs in the kernel. Dropping it detaches them; so does the kernel when the process dies.
pub struct ClassicAttached {
    skel: skel::ClassicSkel<'static>,
    programs: Vec<OwnedFd>,
    links: Vec<Link>,
    /// Processes that had ended at the last tick.
    dead: HashSet<u32>,
    /// How many the last reading found; `None`: there was none.
    found: Option<u64>,
}

impl ClassicAttached {
    /// Loads and attaches a plan, then lets events count.
    ///
    /// # Errors
    /// When the kernel refuses to load or a hook refuses to attach. Nothing is left attached then.
    pub fn new(plan: &Plan, tracefs: Option<&Tracefs>, settings: &Settings) -> Result<Self, AttachError> {
        let load = |e: libbpf_rs::Error| AttachError::Load(format!("{e:#}"));
        attach::quiet_libbpf();
        // The skeleton borrows this for as long as it lives, which is as long as the session: a few hundred
        // bytes for each plan tried.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = skel::ClassicSkelBuilder::default().open(storage).map_err(load)?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            let first = plan.hooks.iter().any(|h| h.target == "add_to_page_cache_lru");
            rodata.added_is_first = first;
        }
        open.maps.classic_processes.set_max_entries(settings.rows).map_err(load)?;
        for mut program in open.open_object_mut().progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let hook = plan.hooks.iter().find(|h| h.program == name);
            program.set_autoload(hook.is_some() || name == "look");
            if let Some(hook) = hook.filter(|h| matches!(h.how, How::Fentry | How::TracepointBtf)) {
                program.set_attach_target(0, Some(hook.target.to_owned())).map_err(load)?;
            }
        }
        let skel = open.load().map_err(load)?;
        if !settings.include_self {
            skel.progs.look.test_run(libbpf_rs::ProgramInput::default()).map_err(load)?;
        }
        let (mut links, mut programs) = (Vec::new(), Vec::new());
        for hook in &plan.hooks {
            let Some(program) = skel.object().progs_mut().find(|p| p.name().to_str() == Some(hook.program))
            else {
                return Err(AttachError::Load(format!("there is no program {}", hook.program)));
            };
            let refused = |why| AttachError::Refused { program: hook.program.into(), why };
            links.extend(attach_hook(&program, hook, tracefs).map_err(refused)?);
            programs
                .push(program.as_fd().try_clone_to_owned().map_err(|e| AttachError::Load(e.to_string()))?);
        }
        let mut attached = Self { skel, programs, links, dead: HashSet::new(), found: None };
        if let Some(bss) = attached.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: a byte of our own that the kernel programs only read.
            unsafe { (&raw mut bss.ready).write_volatile(true) };
        }
        crate::heap::give_back();
        Ok(attached)
    }

    /// Reads everything once. A process that has ended is forgotten a tick later: what it does while it ends, such
    /// as unmapping, counts too.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn read(&mut self) -> libbpf_rs::Result<(Counts, HashMap<u32, ProcessSample>, Lost)> {
        let maps = &self.skel.maps;
        let (mut processes, mut dead) = (HashMap::new(), HashSet::new());
        for (key, value) in entries::entries(&maps.classic_processes)? {
            let tgid = entries::u32_at(&key, 0);
            let (sample, ended) = process(tgid, &value);
            processes.insert(tgid, sample);
            if ended && self.dead.contains(&tgid) {
                let _ = maps.classic_processes.delete(&key);
            } else if ended {
                dead.insert(tgid);
            }
        }
        self.dead = dead;
        self.found = Some(processes.len() as u64);
        let mut total = Counts::default();
        for cpu in maps.classic_totals.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default()
        {
            total.add(&counts(&cpu));
        }
        let programs: u64 = self.programs.iter().map(|fd| tables::recursion_misses(fd.as_raw_fd())).sum();
        let links: u64 = self.links.iter().map(|l| tables::probe_misses(l.as_fd().as_raw_fd())).sum();
        let by_reason = vec![
            ("processes_full".into(), total.get(Counter::LostProcesses)),
            ("recursion".into(), programs + links),
        ];
        Ok((total, processes, Lost { by_reason }))
    }
}

impl ClassicAttached {
    /// The tables, as [`super::Attached::tables`] has those of the exact engine.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        let processes = &self.skel.maps.classic_processes;
        let mut list = List::new(self.skel.object().maps());
        list.add(Kind::Processes, room::entries(processes), [processes]);
        list.rest()
    }

    /// Counts what of them is in use, as [`super::Attached::count`] does; without a walk it is what the last reading found.
    pub fn count(&self, tables: &mut [Table], walk: bool) {
        let processes = |t: &&mut Table| matches!(t.kind, Kind::Processes | Kind::BothProcesses);
        if let Some(table) = tables.iter_mut().find(processes) {
            table.used = if walk { room::walked(&self.skel.maps.classic_processes) } else { self.found };
        }
    }
}

/// Decodes a `struct classic`.
fn counts(bytes: &[u8]) -> Counts {
    let mut out = Counts::default();
    for (value, raw) in out.0.iter_mut().zip(bytes.chunks_exact(8)) {
        *value = raw.try_into().map_or(0, u64::from_ne_bytes);
    }
    out
}

/// Decodes a `struct classic_process`, and whether its last thread is gone.
fn process(tgid: u32, bytes: &[u8]) -> (ProcessSample, bool) {
    let (counters, rest) = bytes.split_at_checked(size_of::<Counts>()).unwrap_or_default();
    let name = rest.get(..16).unwrap_or_default();
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    let comm = String::from_utf8_lossy(&name[..end]).into_owned();
    let sample = ProcessSample { tgid, uid: entries::u32_at(rest, 16), comm, counts: counts(counters) };
    (sample, entries::u32_at(rest, 20) != 0)
}

fn attach_hook(
    program: &ProgramMut<'_>,
    hook: &Hook,
    tracefs: Option<&Tracefs>,
) -> Result<Option<Link>, String> {
    let target = hook.target.to_owned();
    let how = match hook.how {
        How::Multi => Attach::Multi(vec![target], false),
        How::Fentry => Attach::Trampoline(target),
        How::TracepointBtf => Attach::TracepointBtf(target),
        How::Tracepoint(category) => Attach::Tracepoint(category.into(), target),
        How::Kprobe => {
            let event = kprobe_event(hook.target).map_err(|e| e.to_string())?;
            // The link closes the event with itself; on failure we do.
            let link = program.attach_perf_event(event.as_raw_fd()).map_err(|e| format!("{e:#}"))?;
            let _ = event.into_raw_fd();
            return Ok(Some(link));
        }
    };
    attach::attach(program, &how, tracefs)
}

/// A kprobe at the entry of a function, made by `perf_event_open` (4.17). One made through tracefs would stay behind
/// when the monitor is killed.
fn kprobe_event(function: &str) -> io::Result<OwnedFd> {
    let type_ = fs::read_to_string("/sys/bus/event_source/devices/kprobe/type").map_err(|e| {
        io::Error::new(e.kind(), "the kernel is built without kprobes (perf has no such type)")
    })?;
    let type_ = type_.trim().parse().map_err(io::Error::other)?;
    let name = CString::new(function)?;
    let mut attr = libbpf_sys::perf_event_attr {
        type_,
        size: size_of::<libbpf_sys::perf_event_attr>() as u32,
        ..Default::default()
    };
    attr.__bindgen_anon_3.kprobe_func = name.as_ptr() as u64;
    // The name outlives the call, which copies it.
    attach::perf_event(&attr)
}

/// Makes a kprobe for a moment: presence in BTF is no proof.
///
/// # Errors
/// With the kernel's refusal.
pub fn try_kprobe(facts: &Facts) -> Result<(), String> {
    let function = ["folio_mark_accessed", "mark_page_accessed"].into_iter().find(|f| facts.function(f));
    kprobe_event(function.ok_or("no function to try")?).map(drop).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::classic::Counter;

    /// `K_BUFFER_DIRTIED` as `BufferDirtied`.
    fn camel(name: &str) -> String {
        let lower = name.trim_start_matches("K_").to_lowercase();
        lower.split('_').map(|w| w[..1].to_uppercase() + &w[1..]).collect()
    }

    #[test]
    fn the_two_halves_of_the_wire_agree() {
        let source = include_str!("../../bpf/classic.bpf.c");
        let body = source.split_once("enum classic_counter {").unwrap().1.split_once("K_MAX").unwrap().0;
        let names = body.lines().filter_map(|l| l.trim().split_once(',').map(|(name, _)| camel(name)));
        let theirs: Vec<String> = names.collect();
        let ours: Vec<String> = Counter::ALL.iter().map(|c| format!("{c:?}")).collect();
        assert_eq!(theirs, ours);
        assert_eq!(size_of::<skel::types::classic>(), size_of::<Counts>());
        assert_eq!(size_of::<skel::types::classic_process>(), size_of::<Counts>() + 24);
    }

    #[test]
    fn a_process_is_decoded() {
        let mut raw = [0u8; 64];
        raw[8..16].copy_from_slice(&7u64.to_ne_bytes());
        raw[40..44].copy_from_slice(b"dd\0x");
        raw[56..60].copy_from_slice(&1000u32.to_ne_bytes());
        let (sample, dead) = process(5, &raw);
        assert_eq!((sample.tgid, sample.uid, sample.comm.as_str(), dead), (5, 1000, "dd", false));
        assert_eq!(sample.counts.get(Counter::Accessed), 7);
        raw[60] = 1;
        assert!(process(5, &raw).1);
        assert_eq!(process(5, &[]).0.comm, "");
    }
}
