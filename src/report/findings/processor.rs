//! Processor time: whether a run had too little of it, or was bound by what it did with it.

use serde_json::json;

use super::common::LEAST;
use super::common::MANY;
use super::common::SHORT_S;
use super::common::of_time;
use super::common::part_of_time;
use super::common::percent;
use super::common::worth;
use super::finding::Finding;
use crate::figures::Figure;
use crate::report::data::Run;
use crate::report::faults;
use crate::report::time::Parts;
use crate::report::units::page;
use crate::report::units::seconds;

/// The same as [`worth`]. Threads in parallel may have been woken from waits that
/// are no part of the time of them all, as those of servers for their clients: then that is more by as much. It is no more than
/// they waited so.
fn of_queue(ns: u64, woken: u64, run: &Run) -> Option<(f64, String)> {
    let parts = Parts::divide(run);
    let Some(all) = parts.explained().filter(|_| parts.overlap()) else { return worth(ns, run) };
    let elsewhere = run.waits.other_ns.map_or(woken, |others| others.min(woken)) as f64 / 1e9;
    let (s, most) = (ns as f64 / 1e9, all + elsewhere);
    // What lies between the two is less than is printed.
    let least = if percent(s / most) == percent(s / all) { "" } else { "at least " };
    let text = || {
        let share = percent(s / most);
        format!("{} ({least}{share} of the time of its threads, which worked in parallel)", seconds(ns))
    };
    (s >= SHORT_S && s >= LEAST * most).then(|| (s, text()))
}

/// Who had the processors meanwhile, and what to do about it, as far as the kernel's accounts prove it.
fn who(run: &Run, queue_ns: u64) -> (String, &'static str) {
    let machine = &run.machine;
    if let Some(us) = machine.stopped_us.filter(|us| us * 1000 * 2 >= queue_ns) {
        return (
            format!(
                " Its cgroup, or one above it, had used up its share (cpu.max), and was stopped for {} meanwhile, added up over \
                 processors.",
                seconds(us * 1000)
            ),
            "Raise cpu.max of that cgroup, or take it for what it is: this is no matter of the cache.",
        );
    }
    let busy = run.usage.user_s.zip(run.usage.system_s).map(|(u, s)| u + s);
    let share = |s: f64, n: u64| s / (run.wall_s * n as f64).max(1e-9);
    if busy.zip(machine.processors).is_some_and(|(busy, n)| share(busy, n) >= 0.8) {
        return (
            " Its own threads kept the processors busy.".to_owned(),
            "Fewer of its threads at a time would wait less for each other.",
        );
    }
    let Some((idle, n)) = machine.idle.map(|ticks| ticks as f64 / 100.0).zip(machine.allowed) else {
        return (String::new(), "");
    };
    // A tick of each may have been counted too much, or not yet.
    let tick = 0.01 * n as f64;
    // What is left behind, or waited for by nobody, is its own as well, and in no account.
    let whole = run.left_behind.is_empty() && !run.unwaited;
    let others = busy.filter(|_| whole).map(|busy| run.wall_s * n as f64 - idle - tick - busy);
    if others.is_some_and(|s| share(s, n) >= 0.5) {
        return (
            " Others had them most of the time.".to_owned(),
            "Time it when the machine is quiet, or with more weight (nice, cpu.weight).",
        );
    }
    // One at least, nearly all the time.
    match n > 1 && idle - tick >= run.wall_s * 0.8 {
        true => (
            format!(
                " While it ran, the {n} processors had nothing to do for {idle:.2} s of {:.2} s: unless that was at other times, its \
                 threads were bound to some of them (taskset, a cpuset), were held back by cpu.max of a cgroup that they had moved \
                 to, were not moved to others, or one took long to wake (of a virtual machine, by its host).",
                run.wall_s * n as f64
            ),
            "",
        ),
        false => (String::new(), ""),
    }
}

pub(super) fn contention(run: &Run, _: &[&Run]) -> Option<Finding> {
    let (cpu, woken) = (run.waits.cpu_ns?, run.waits.woken_ns.unwrap_or(0));
    let (queue_s, time) = of_queue(cpu + woken, woken, run)?;
    let (who, remedy) = who(run, cpu + woken);
    // The parts of the time have only the rest as a wait for a processor: without a word, one seems to be wrong.
    let after = match woken.saturating_mul(20) >= cpu + woken {
        true => {
            let woken = seconds(woken);
            format!(
                ", {woken} of it when other waits had ended: the parts of the time have that with these waits, or unexplained"
            )
        }
        false => String::new(),
    };
    let text = format!("It was ready to run, and had no processor: {time}{after}.{who}");
    let evidence = json!({ "queue_s": queue_s, "preempted_ns": cpu, "woken_ns": run.waits.woken_ns,
        "wall_s": run.wall_s, "stopped_us": run.machine.stopped_us, "processors": run.machine.processors,
        "idle_ticks": run.machine.idle });
    let finding = Finding::new("cpu-contention", text, evidence)?;
    Some(if remedy.is_empty() { finding } else { finding.remedy(remedy) })
}

/// How what came from devices relates to the cache, as far as the figures explain it: what is in none of them may have gone past the
/// cache where nobody saw it (a block device, where only tracepoints attach), and no warm cache saves that anything.
fn warmer(run: &Run, device: u64) -> &'static str {
    if run.get(Figure::DirectReadBytes).unwrap_or(0) / 9 >= device / 10 {
        return " It was read past the cache: a warm one saves it nothing.";
    }
    // As they were counted: metadata that is only what nothing else explains explains nothing here.
    let blocks =
        [Figure::MetaMisses, Figure::MetaAheadHits].map(|f| run.get(f).unwrap_or(0)).iter().sum::<u64>();
    let explained = run.brought_in().is_some_and(|data| (data + blocks) * page() >= device / 2);
    if explained {
        " A warm cache saves it the waiting, and what the kernel needs to bring data in."
    } else {
        ""
    }
}

pub(super) fn bound(run: &Run, _: &[&Run]) -> Option<Finding> {
    let parts = Parts::divide(run);
    let (cpu, data) = (parts.cpu_s?, parts.data_s?);
    // What came back from swap is no matter of the cache.
    let device = faults::device_bytes(run)?;
    // What requests of io_uring and libaio wait for is a wait for their completion.
    let completions = super::common::of_ns(run.waits.completion_ns.unwrap_or(0), run);
    if cpu < 0.05
        || of_time(cpu, run) <= 0.5
        || of_time(data, run).max(completions) >= LEAST
        || device < 1 << 20
    {
        return None;
    }
    let text = format!(
        "Its work took the time although {} came from devices: {cpu:.3} s of processor time ({}), beside {data:.3} s of \
         waiting for data.{}",
        run.volume_of_bytes(device),
        part_of_time(of_time(cpu, run), run),
        warmer(run, device),
    );
    let evidence = json!({ "cpu_s": cpu, "user_s": run.usage.user_s, "system_s": run.usage.system_s, "data_s": data,
        "device_read_bytes": device, "wall_s": run.wall_s });
    Finding::new("cpu-bound", text, evidence)
}

/// A fifth of the time was its own work, and nothing else has said so.
pub(super) fn computed(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    let parts = Parts::divide(run);
    let cpu = parts.cpu_s?;
    let told = bound(run, earlier).is_some() || super::time::elsewhere(run, earlier).is_some();
    if cpu < 0.05 || of_time(cpu, run) < LEAST || told {
        return None;
    }
    let (user, system) = run.usage.user_s.zip(run.usage.system_s)?;
    let came = run.get(Figure::Fills).is_some_and(|n| n >= MANY);
    let cold = if came { ", and to bring data in, which a warm cache would save it" } else { "" };
    // The part is the kernel's account less what has a part of its own, and spread so that the parts are the wall time: its two
    // halves are told of the same, and add up as printed.
    let account = user + system
        - run.lookups.work_ns.map_or(0.0, |ns| std::time::Duration::from_nanos(ns).as_secs_f64());
    let own = if account > 0.0 { (user * cpu / account).min(cpu) } else { 0.0 };
    let thousandths = |s: f64| (s * 1e3).round() / 1e3;
    let text = format!(
        "It worked: {cpu:.3} s of processor time ({}); {own:.3} s in its own code, {:.3} s in the kernel, for its calls{cold}.",
        part_of_time(of_time(cpu, run), run),
        thousandths(cpu) - thousandths(own),
    );
    let evidence = json!({ "cpu_s": cpu, "user_s": user, "system_s": system, "wall_s": run.wall_s });
    Finding::new("processor-time", text, evidence)
}
