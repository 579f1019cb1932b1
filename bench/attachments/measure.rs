//! Attaches each way in turn and runs the loads under it.

use std::io;
use std::time::Duration;

use anyhow::Result;
use cachetop::kernel::raw::Insn;
use serde::Serialize;

use crate::Args;
use crate::clock;
use crate::clock::Clock;
use crate::loads::Loads;
use crate::names::Names;
use crate::programs;
use crate::programs::End;
use crate::steps;
use crate::ways::Attached;
use crate::ways::Event;
use crate::ways::Hook;
use crate::ways::WAYS;
use crate::ways::Way;

#[derive(Debug, Serialize)]
pub struct Results {
    pub kernel: String,
    pub preemption: String,
    pub unit: &'static str,
    pub costs: bool,
    pub losses: bool,
    pub ways: Vec<Row>,
    pub steps: Vec<Cost>,
}

#[derive(Debug, Default, Serialize)]
pub struct Row {
    pub event: &'static str,
    pub way: &'static str,
    /// The kernel's word, where it does not let us.
    pub refused: Option<String>,
    /// Per event: with nothing attached, and what the way adds.
    pub nothing: Option<f64>,
    pub added: Option<f64>,
    pub contended: Option<Loss>,
    pub sleeping: Option<Loss>,
}

#[derive(Debug, Serialize)]
pub struct Cost {
    pub step: &'static str,
    pub refused: Option<String>,
    pub added: Option<f64>,
}

/// Events that a way should have seen, and those that it saw.
#[derive(Debug, Serialize)]
pub struct Loss {
    pub events: u64,
    /// By end: entry, return. None where no program is.
    pub seen: [Option<u64>; 2],
    /// Where the kernel says how many it left out.
    pub admitted: Vec<(&'static str, u64)>,
}

pub fn measure(args: &Args) -> Result<Results> {
    let clock = if args.guest { Clock::Guest } else { Clock::Native };
    let unit = if args.guest { clock::ns_per_instruction()? } else { 1.0 };
    let names = Names::new()?;
    let loads = Loads::new(&args.dir, clock)?;
    let (costs, losses) = (!args.only_losses, !args.only_costs);
    let wanted = |title: &str| title.contains(&args.only);
    let mut ways = Vec::new();
    for way in WAYS.iter().filter(|w| wanted(w.title)) {
        let mut row = Row { event: way.event.name(), way: way.title, ..Row::default() };
        let done = (|| -> Result<()> {
            if costs {
                cost(way, &names, &loads, unit, &mut row)?;
            }
            if losses && !way.cookie {
                row.contended = Some(loss(way, &names, || loads.contend(way.event))?);
                row.sleeping = Some(loss(way, &names, || loads.sleep())?);
            }
            Ok(())
        })();
        row.refused = refusal(done)?;
        ways.push(row);
    }
    let steps = if costs && args.only.is_empty() { steps(&names, &loads, unit)? } else { Vec::new() };
    Ok(Results {
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        preemption: preemption(),
        unit: if args.guest { "instructions" } else { "ns" },
        costs,
        losses,
        ways,
        steps,
    })
}

/// Tells a kernel that refuses to attach from a measurement that failed.
fn refusal(done: Result<()>) -> Result<Option<String>> {
    match done {
        Ok(()) => Ok(None),
        Err(error) => error.downcast::<Refused>().map(|Refused(e)| Some(word(&e))),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(io::Error);

/// Without the number.
fn word(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn cost(way: &Way, names: &Names, loads: &Loads, unit: f64, row: &mut Row) -> Result<()> {
    let code = |hook: Hook| {
        let tracing = matches!(hook, Hook::Trampoline(_));
        if way.cookie { programs::cookie(names, tracing) } else { Ok(programs::empty()) }
    };
    let mut turns = Vec::new();
    for _ in 0..loads.turns() {
        let attached = Attached::new(way, names, code).map_err(Refused)?;
        let with = loads.cost(way.event)?;
        detach(attached);
        let nothing = loads.cost(way.event)?;
        turns.push((with - nothing, nothing));
    }
    turns.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (added, nothing) = turns[turns.len() / 2];
    row.nothing = Some(nothing / unit);
    row.added = Some(added / unit);
    Ok(())
}

fn loss(way: &Way, names: &Names, load: impl FnOnce() -> Result<u64>) -> Result<Loss> {
    let counters = programs::new_map(libbpf_sys::BPF_MAP_TYPE_PERCPU_ARRAY, 2).map_err(Refused)?;
    let count = |hook: Hook| programs::count(&counters, std::process::id(), hook.end(), names);
    let attached = Attached::new(way, names, count).map_err(Refused)?;
    let events = load()?;
    let admitted = attached.admitted();
    detach(attached);
    let mut seen = [None; 2];
    for end in [End::Entry, End::Return] {
        if way.hooks.iter().any(|h| [end, End::Both].contains(&h.end())) {
            seen[end as usize] = Some(programs::sum(&counters, end as u32)?);
        }
    }
    Ok(Loss { events, seen, admitted })
}

/// Each step in a program at the return of the function, against one without any.
fn steps(names: &Names, loads: &Loads, unit: f64) -> Result<Vec<Cost>> {
    let way = Way {
        title: "fexit",
        event: Event::Call,
        hooks: &[Hook::Trampoline(libbpf_sys::BPF_TRACE_FEXIT)],
        cookie: false,
    };
    let with = |code: &[Insn]| -> Result<f64> {
        let attached = Attached::new(&way, names, |_| Ok(code.to_vec())).map_err(Refused)?;
        let took = loads.cost(way.event)?;
        detach(attached);
        Ok(took / unit)
    };
    let mut costs = Vec::new();
    for step in steps::all(names) {
        let mut cost = Cost { step: step.title, refused: None, added: None };
        let done = (|| -> Result<()> {
            let code = step.code.map_err(Refused)?;
            cost.added = Some(with(&code)? - with(&programs::empty())?);
            Ok(())
        })();
        cost.refused = refusal(done)?;
        costs.push(cost);
    }
    Ok(costs)
}

/// Trampolines are taken down a little later than their links.
fn detach(attached: Attached) {
    drop(attached);
    std::thread::sleep(Duration::from_millis(50));
}

/// The model that the running kernel chose, in brackets there.
fn preemption() -> String {
    let text = std::fs::read_to_string("/sys/kernel/debug/sched/preempt").unwrap_or_default();
    let chosen = text.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    chosen.map_or_else(|| "unknown".to_owned(), |(model, _)| model.to_owned())
}
