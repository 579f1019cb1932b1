//! Which program serves which event here.

use super::Brackets;
use super::NoPlan;
use super::Wants;
use super::candidates::Candidate;
use super::candidates::Need;
use super::candidates::On;
use super::candidates::Part;
use super::candidates::ROWS;
use super::candidates::Under;
use super::events::Event;
use super::hooks::Attach;
use super::hooks::Hook;
use super::hooks::Why;
use crate::facts::Facts;
use crate::facts::SWITCH_ON;
use crate::facts::SWITCHED_OFF;

/// What counts requests by their entry alone: all of these, or none.
const PLAIN: [&str; 4] = ["read_plain_session", "write_plain_session", "bad_address_multi", "look_plain"];
/// The same where files are asked for.
const PLAIN_FILES: [&str; 4] =
    ["read_plain_files_session", "write_plain_files_session", "bad_address_multi", "look_plain"];

/// How requests can be bracketed here, the best first.
pub(super) fn brackets(facts: &Facts) -> Result<Brackets, NoPlan> {
    let read = facts.function("filemap_read") || facts.function("generic_file_buffered_read");
    // Without these, pages that a read adds could not be told from those read ahead.
    let named = facts.function("page_cache_sync_ra") && facts.function("page_cache_async_ra");
    let any = |programs: &[&str]| programs.iter().any(|p| facts.refuses(p));
    let trampoline = facts.trampoline.is_ok()
        && read
        && named
        && !any(&["read_fexit", "read_fexit_pages", "sync_fentry", "async_fentry"])
        && !any(&["sync_old_fentry", "async_old_fentry"]);
    let session = facts.kprobe_session.is_ok()
        && facts.return_probes_keep
        && facts.function("filemap_read")
        && named
        && !any(&["read_session", "read_detail_session", "sync_multi", "async_multi"]);
    let calls = facts.tracepoint("mm_filemap_get_pages") && !facts.refuses("get_pages_btf");
    if !facts.tracepoint("mm_filemap_add_to_page_cache") {
        return Err(NoPlan {
            reason: "the kernel's BTF does not know the tracepoint mm_filemap_add_to_page_cache".into(),
            remedy: "a kernel of 5.10 or newer, built with CONFIG_DEBUG_INFO_BTF=y, is needed".into(),
        });
    }
    match () {
        () if trampoline && facts.voluntary() => Ok(Brackets::Trampolines),
        // The programs for kernels without atomic instructions that fetch exist as trampolines only.
        () if session && facts.fetch_atomics => Ok(Brackets::Sessions),
        () if calls && facts.fetch_atomics && !trampoline => Ok(Brackets::Tracepoints),
        () if trampoline => Ok(Brackets::LossyTrampolines),
        () => Err(NoPlan {
            reason: format!(
                "nothing that sees read requests can be attached: functions refused ({}; {}), and the \
                 tracepoint mm_filemap_get_pages (6.12) is not there",
                facts.trampoline.as_ref().err().map_or("no function known", String::as_str),
                facts.kprobe_multi.as_ref().err().map_or("no lossless return probe", String::as_str),
            ),
            remedy: match &facts.trampoline {
                Err(why) if why == SWITCHED_OFF => SWITCH_ON.into(),
                _ => "allow kprobes or BPF trampolines (CONFIG_KPROBES, CONFIG_FUNCTION_TRACER, no lockdown in \
                      confidentiality mode), or run Linux 6.12 or newer"
                    .into(),
            },
        }),
    }
}

/// Whether requests can be counted by their entry: not all pages are looked at one by one, and all of `programs` attach.
fn plain(facts: &Facts, wants: Wants, programs: &[&str]) -> bool {
    wants.sketches.is_none()
        && facts.function("fixup_exception")
        && !programs.iter().any(|p| facts.refuses(p))
}

/// Whether faults can be counted by their entry: pages are not looked at one by one, and who is asked next for a page that is
/// not there is seen.
fn plain_faults(facts: &Facts, wants: Wants) -> bool {
    let next = [("filemap_fault", "fault_session"), ("shmem_fault", "shmem_fault_session")];
    !wants.touches
        && wants.sketches.is_none()
        && next.iter().all(|(function, program)| facts.function(function) && !facts.refuses(program))
}

/// What a choice depends on.
struct Case<'a> {
    facts: &'a Facts,
    brackets: Brackets,
    wants: Wants,
}

impl Case<'_> {
    fn under(&self, under: Under) -> bool {
        let trampolines = matches!(self.brackets, Brackets::Trampolines | Brackets::LossyTrampolines);
        let sessions = self.brackets == Brackets::Sessions;
        match under {
            Under::Any => true,
            Under::Functions => trampolines || sessions,
            Under::Trampolines => trampolines,
            Under::Sessions => sessions,
            Under::Calls => self.brackets == Brackets::Tracepoints,
        }
    }

    fn met(&self, need: Need) -> bool {
        let (facts, wants) = (self.facts, self.wants);
        match need {
            Need::Has(name) => facts.btf.contains(name),
            Need::Lacks(name) => !facts.btf.contains(name),
            Need::Fetch => facts.fetch_atomics,
            Need::NoFetch => !facts.fetch_atomics,
            Need::Quiet => facts.voluntary(),
            Need::Fentry => facts.trampoline.is_ok(),
            Need::Multi => facts.kprobe_multi.is_ok(),
            Need::Pages => facts.vmemmap.is_ok(),
            Need::WakePage => facts.wake_page.is_ok(),
            Need::Latency => wants.latency,
            Need::CountsOnly => !wants.details(),
            Need::PlainCounts => !wants.details() && plain(facts, wants, &PLAIN),
            Need::PlainFiles => {
                wants.files && !wants.latency && !wants.follow && plain(facts, wants, &PLAIN_FILES)
            }
            Need::PlainFaults => plain_faults(facts, wants),
            Need::Beginnings => wants.latency || facts.btf.contains("enum:PG_dropbehind"),
            Need::Around => wants.around,
            Need::NoAround => !wants.around,
            Need::Buffers => wants.buffers,
            Need::Follow => wants.follow,
            Need::Group => wants.group,
            Need::Blame => wants.blame,
            Need::Bill => wants.bill,
            Need::Tried => wants.tried,
        }
    }

    /// Where a program attaches on this kernel; `None`: nowhere.
    fn attach(&self, on: On) -> Option<Attach> {
        let facts = self.facts;
        let there = |names: &[&str]| -> Option<Vec<String>> {
            let there: Vec<_> = names.iter().filter(|f| facts.function(f)).map(|f| (*f).to_owned()).collect();
            (!there.is_empty()).then_some(there)
        };
        let function = |name: &str| facts.function(name).then(|| name.to_owned());
        let tracepoint = |name: &str| facts.tracepoint(name).then(|| name.to_owned());
        match on {
            On::Trampoline(name) => function(name).map(Attach::Trampoline),
            On::Session(names) => there(names).map(Attach::Session),
            On::Entry(names) => there(names).map(|names| Attach::Multi(names, false)),
            On::Kprobe(name) => function(name).map(Attach::Kprobe),
            On::Btf(name) => tracepoint(name).map(Attach::TracepointBtf),
            On::Classic(category, name) => {
                let name = tracepoint(name).filter(|_| facts.tracefs.is_ok())?;
                Some(Attach::Tracepoint(category.into(), name))
            }
            On::Tick => Some(Attach::Tick),
        }
    }

    /// What a program that attaches there loses.
    fn why(&self, on: On) -> Why {
        match on {
            On::Trampoline(_) | On::Btf(_) if self.facts.voluntary() => Why::Quiet,
            On::Trampoline(_) | On::Btf(_) => Why::Lossy,
            On::Session(_) => Why::Fgraph,
            On::Entry(_) | On::Kprobe(_) | On::Classic(..) => Why::Classic,
            On::Tick => Why::Tick,
        }
    }

    /// Whether what makes a candidate lose nothing is so here.
    fn holds(&self, why: Why) -> bool {
        !(self.facts.realtime && matches!(why, Why::QuietLock | Why::QuietFree))
    }

    /// The hooks of a candidate; `None` where one of them cannot be had.
    fn hooks(&self, candidate: &Candidate) -> Option<Vec<Hook>> {
        let hook = |part: &Part| {
            let why = candidate.why.filter(|w| self.holds(*w)).unwrap_or_else(|| self.why(part.on));
            let attach = self.attach(part.on).filter(|_| !self.facts.refuses(part.program))?;
            Some(Hook { event: part.event, program: part.program, attach, why })
        };
        let fits = self.under(candidate.under) && candidate.needs.iter().all(|n| self.met(*n));
        fits.then(|| candidate.parts.iter().map(hook).collect())?
    }
}

/// Chooses all programs: of each event the first candidate that loses nothing here, else the first.
pub(super) fn choose(facts: &Facts, brackets: Brackets, wants: Wants) -> Result<Vec<Hook>, NoPlan> {
    let case = Case { facts, brackets, wants };
    let mut out: Vec<Hook> = Vec::new();
    for row in ROWS {
        let mut can: Vec<_> = row.iter().filter_map(|c| case.hooks(c)).collect();
        let lossless = can.iter().position(|hooks| hooks.iter().all(|h| h.why != Why::Lossy));
        if !can.is_empty() {
            out.append(&mut can.swap_remove(lossless.unwrap_or(0)));
        }
    }
    for (event, what) in [
        (Event::PageAdded, "pages being added to the cache"),
        (Event::PageDeleted, "pages leaving the cache"),
    ] {
        if !out.iter().any(|h| h.event == event) {
            return Err(cannot(facts, what));
        }
    }
    Ok(out)
}

fn cannot(facts: &Facts, what: &str) -> NoPlan {
    let (reason, remedy) = match &facts.tracefs {
        Ok(_) => (
            format!("no hook sees {what}"),
            "a kernel with these tracepoints (CONFIG_TRACEPOINTS) is needed; --explain has the reasons",
        ),
        Err(why) => (
            format!("no hook sees {what}, and tracefs is missing: {why}"),
            "mount tracefs (mount -t tracefs nodev /sys/kernel/tracing), where the kernel's lockdown and the \
             container allow it",
        ),
    };
    NoPlan { reason, remedy: remedy.into() }
}
