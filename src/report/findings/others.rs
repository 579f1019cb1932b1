//! Waiting for others than storage, and what is left when all that is known has been told.

use serde_json::json;

use super::common::LEAST;
use super::common::SHORT_S;
use super::common::of_time;
use super::common::part_of_time;
use super::common::worth;
use super::finding::Finding;
use crate::report::data::Run;
use crate::report::time::Other;
use crate::report::time::Parts;
use crate::report::units::count;
use crate::report::units::seconds;

/// One kind of waits for others, if nothing else was done meanwhile.
fn others(run: &Run, kind: Other, id: &'static str, text: &str) -> Option<Finding> {
    let (waited_s, all) = Parts::divide(run).waited_for(run, kind)?;
    let (_, time) = worth((waited_s * 1e9).round() as u64, run)?;
    let time = if all { time } else { format!("at least {time}") };
    let evidence = json!({ "waited_s": waited_s, "at_least": !all, "wall_s": run.wall_s });
    Finding::new(id, text.replace("{}", &time), evidence)
}

pub(super) fn peers(run: &Run, _: &[&Run]) -> Option<Finding> {
    let seen: Vec<String> =
        run.ends.peers.iter().map(|p| format!("{} (process {}, {})", p.comm, p.pid, p.by)).collect();
    let who = match seen.as_slice() {
        [] => {
            "Who is at the other end was not seen: ss -xp, or lsof -E -p PID, tells while it runs.".to_owned()
        }
        all => format!("At the other ends of what it had open were {}.", all.join(", ")),
    };
    // Names are foreign: they come last, where nothing is replaced in them any more.
    let text = "It waited for somebody else: {} for a pipe, a socket, a terminal, an event, or the server of a FUSE file system.";
    let mut finding = others(run, Other::Peer, "waited-for-peer", text)?;
    finding.text = format!("{} {who}", finding.text);
    let peers: Vec<_> =
        run.ends.peers.iter().map(|p| json!({ "pid": p.pid, "comm": p.comm, "by": p.by })).collect();
    finding.evidence["peers"] = peers.into();
    Some(finding)
}

pub(super) fn timers(run: &Run, _: &[&Run]) -> Option<Finding> {
    // What hangs had no choice, whatever the other threads did.
    if run.hung.is_some() || super::hung::unended(run).is_some() {
        return None;
    }
    others(run, Other::Timer, "slept", "It slept of its own accord: {}, as sleep(1) does.")
}

pub(super) fn locks(run: &Run, _: &[&Run]) -> Option<Finding> {
    let text = "It waited for locks: {} for futexes, locks of files or semaphores, while nothing else of it did anything.";
    others(run, Other::Lock, "waited-for-locks", text)
}

pub(super) fn completions(run: &Run, _: &[&Run]) -> Option<Finding> {
    let text = "It waited for asynchronous I/O to complete: {} in io_uring or io_getevents. Whether that was storage is not told \
                there; what went past the cache or came from devices is in the figures.";
    others(run, Other::Completion, "waited-for-completions", text)
}

pub(super) fn several(run: &Run, _: &[&Run]) -> Option<Finding> {
    let parts = Parts::divide(run);
    let one = |kind| parts.waited_for(run, kind).is_some_and(|(s, _)| of_time(s, run) >= LEAST);
    let told = [Other::Peer, Other::Timer, Other::Lock, Other::Completion].into_iter().any(one);
    // What who sleeps all the time waits for has no kind: the finding of that says so.
    if told || run.asleep.is_some() {
        return None;
    }
    let (waited_s, time) = worth((parts.others_s? * 1e9).round() as u64, run)?;
    let text = format!(
        "It waited for others, for several kinds at the same time: at least {time}. Its threads waited {}; which of them the \
         others waited for is not known.",
        at_once(&kinds(run))
    );
    let w = &run.waits;
    let evidence = json!({ "waited_s": waited_s, "wall_s": run.wall_s, "peer_ns": w.peer_ns, "timer_ns": w.timer_ns,
        "lock_ns": w.lock_ns, "completion_ns": w.completion_ns, "child_ns": w.child_ns, "other_ns": w.other_ns });
    Finding::new("waited-for-others", text, evidence)
}

/// How long its threads waited for others of each kind, in words.
fn kinds(run: &Run) -> Vec<String> {
    let kinds = run.waits.for_others();
    let named = kinds.iter().map(|(ns, _)| *ns).sum::<Option<u64>>();
    let rest = run.waits.other_ns.zip(named).map(|(all, named)| all.saturating_sub(named));
    kinds
        .iter()
        .chain(&[(rest, "what has no name (stopped by a signal or a debugger, for one)")])
        .filter_map(|(ns, what)| {
            ns.filter(|ns| *ns >= 1_000_000).map(|ns| format!("{} for {what}", seconds(ns)))
        })
        .collect()
}

/// The kinds as a list.
fn at_once(kinds: &[String]) -> String {
    match kinds {
        [] => "for nothing that has a name".into(),
        [one] => format!("{one}, in part at the same time"),
        [rest @ .., last] => format!("{} and {last}, in part at the same time", rest.join(", ")),
    }
}

/// A process that was watched and did nothing.
pub(super) fn asleep(run: &Run, _: &[&Run]) -> Option<Finding> {
    let asleep = run.asleep.as_ref()?;
    let (all, stopped, traced) = (asleep.threads, asleep.stopped, asleep.traced);
    let were = if all == 1 { "was" } else { "were" };
    let did = match (stopped, traced) {
        (0, 0) => "slept".to_owned(),
        (n, 0) if n >= all => format!("{were} stopped by a signal"),
        (0, n) if n >= all => format!("{were} stopped by a debugger"),
        (n, 0) => format!("slept or were stopped ({} by a signal)", count(n as u64)),
        (0, n) => format!("slept or were stopped ({} by a debugger)", count(n as u64)),
        (s, d) => format!(
            "slept or were stopped ({} by a signal, {} by a debugger)",
            count(s as u64),
            count(d as u64)
        ),
    };
    let who = match all {
        1 => format!("Its only thread {did}"),
        n => format!("All of its {} threads {did}", count(n as u64)),
    };
    let within = super::hung::places(asleep.threads, &asleep.within);
    let text =
        format!("{who} from before the watch began to its end{within}. How long that lasts is not measured.");
    let within = super::hung::counted(&asleep.within);
    let evidence = json!({ "threads": all, "stopped": stopped, "traced": traced, "within": within,
        "wall_s": run.wall_s });
    let finding = Finding::new("asleep", text, evidence)?;
    Some(match stopped > 0 {
        true => finding
            .remedy("What a signal stopped goes on with kill -CONT PID; what a shell did, with fg or bg."),
        false => finding,
    })
}

pub(super) fn unexplained(run: &Run, _: &[&Run]) -> Option<Finding> {
    let parts = Parts::divide(run);
    let left = parts.unexplained_s?;
    // What it did then is told as that.
    let hung = run.hung.as_ref().is_some_and(|hung| hung.others_slept);
    if left < SHORT_S || of_time(left, run) < LEAST || hung {
        return None;
    }
    let known = match kinds(run).as_slice() {
        [] => " None of its threads was seen to wait for others.".to_owned(),
        all => format!(" Meanwhile its threads waited {}.", at_once(all)),
    };
    let not_its_own = |ticks: Option<u64>, what: &str| {
        let ns = ticks? * 10_000_000;
        let much = ns as f64 / 1e9 >= left * 0.2;
        much.then(|| {
            format!(
                " The processors of the machine spent {} {what}, on whose time is not known.",
                seconds(ns)
            )
        })
    };
    let interrupts = not_its_own(run.machine.interrupts, "in interrupts meanwhile").unwrap_or_default();
    let taken = not_its_own(run.machine.taken, "meanwhile working for other guests of their host")
        .unwrap_or_default();
    let w = &run.waits;
    // No command has waited before it was started.
    let before = match run.exit_status {
        None => " A wait that had begun before the watch is not measured.",
        Some(_) => "",
    };
    let text = format!(
        "{left:.3} s ({}) are unexplained.{known}{before}{interrupts}{taken} Stacks of where it slept (offcputime-bpfcc -p PID) or its system calls \
         (strace -f -c -w) would tell.",
        part_of_time(of_time(left, run), run),
    );
    let evidence = json!({ "unexplained_s": left, "wall_s": run.wall_s, "peer_ns": w.peer_ns, "timer_ns": w.timer_ns,
        "lock_ns": w.lock_ns, "completion_ns": w.completion_ns, "child_ns": w.child_ns, "other_ns": w.other_ns,
        "interrupt_ticks": run.machine.interrupts, "steal_ticks": run.machine.taken });
    Finding::new("unexplained", text, evidence)
}
