//! The rules about processors: who had them while a run waited for one, and what was taken from it unseen.
#![allow(clippy::unwrap_used)]

use super::cause_tests::MS;
use super::cause_tests::found;
use super::cause_tests::waited;
use super::crowd::changed;
use super::tests::idle;
use super::*;
use crate::report::machine::Machine;

#[test]
fn who_had_the_processors() {
    let queued = |machine: Machine, user: f64| {
        let run = changed(idle(), |run| {
            run.waits.cpu_ns = Some(4000 * MS);
            (run.usage.user_s, run.machine) = (Some(user), machine);
        });
        found(&[run], "cpu-contention")
    };
    // Of the four, others had two and more.
    let four = Machine { processors: Some(4), allowed: Some(4), idle: Some(100), ..Machine::default() };
    assert!(queued(Machine { stopped_us: Some(3_000_000), ..four }, 0.4).remedy.unwrap().contains("cpu.max"));
    // It is longer than the run, as processors are stopped at the same time.
    let text = queued(Machine { stopped_us: Some(8_230_000), ..four }, 0.4).text;
    assert!(text.contains("was stopped for 8.23 s meanwhile, added up over processors"), "{text}");
    assert!(queued(Machine { stopped_us: Some(1_000_000), ..four }, 0.4).text.contains("Others had them"));
    assert!(queued(four, 3.9).text.contains("Its own threads"));
    assert!(queued(four, 2.5).remedy.is_none(), "half and half");
    // It kept itself to one, and nobody used the other three.
    let alone = |idle| queued(Machine { idle, ..four }, 0.9);
    let it = alone(Some(305));
    assert!(
        it.remedy.is_none() && it.text.contains("the 4 processors had nothing to do for 3.05 s of 4.00 s"),
        "{it:?}"
    );
    // Only of the cgroup that it was started in is it known whether that was stopped.
    assert!(it.text.contains("cpu.max of a cgroup that they had moved to"), "{}", it.text);
    assert!(alone(Some(90)).text.contains("Others had them"));
    for idle in [Some(150), Some(70)].map(|idle| (idle, 1.8)).into_iter().chain([(None, 0.1)]) {
        let it = queued(Machine { idle: idle.0, ..four }, idle.1);
        assert!(!it.text.contains("Others had them"), "{it:?}");
    }
    // What it left behind is its own, and in no account; so is what nobody waited for.
    for change in [(|run| run.left_behind = vec![7]) as fn(&mut Run), |run| run.unwaited = true] {
        let run = changed(idle(), |run| {
            (run.waits.cpu_ns, run.machine) = (Some(4000 * MS), four);
            change(run);
        });
        assert!(!found(&[run], "cpu-contention").text.contains("Others had them"));
    }
    // Threads of a server, woken from waits for clients: 3 s of work, 1 s preempted, 4 s woken without a processor.
    let server = changed(idle(), |run| {
        (run.waits.read_ns, run.usage.user_s, run.usage.system_s) = (Some(0), Some(2.5), Some(0.5));
        (run.waits.cpu_ns, run.waits.woken_ns, run.waits.peer_ns) =
            (Some(1000 * MS), Some(4000 * MS), Some(20_000 * MS));
        run.waits.other_ns = Some(20_000 * MS);
    });
    let text = found(&[server], "cpu-contention").text;
    assert!(text.contains("5.00 s (at least 62 % of the time of its threads"), "{text}");
    // 64 threads that wait for data and were woken: what they waited for each other was little.
    let crowd = |others| {
        let run = changed(idle(), |run| {
            (run.waits.read_ns, run.usage.user_s, run.usage.system_s) =
                (Some(11_600 * MS), Some(0.0), Some(0.2));
            (run.waits.cpu_ns, run.waits.woken_ns) = (Some(800 * MS), Some(9600 * MS));
            run.waits.other_ns = others;
        });
        found(&[run], "cpu-contention").text
    };
    assert!(crowd(Some(230 * MS)).contains("10.40 s (at least 81 % of the time of its threads"));
    assert!(crowd(Some(0)).contains("10.40 s (83 % of the time of its threads"));
    assert!(crowd(None).contains("10.40 s (at least 47 % of"), "as much as was woken");
    // The parts of the time have 1 s of it.
    assert!(text.contains("4.00 s of it when other waits had ended"), "{text}");
    assert!(!queued(four, 2.5).text.contains("other waits"), "all of it is a part of the time");
}

#[test]
fn what_was_only_the_want_of_a_processor_is_taken_off_in_words() {
    let text = |woken| waited(|run| run.waits.woken_ns = Some(woken * MS)).text;
    assert!(text(8).contains("of which up to 8.0 ms were not for storage"), "{}", text(8));
    assert!(!text(7).contains("not for storage"));
    // A server is woken by its clients: of what it was woken late is not known.
    let server = waited(|run| {
        (run.waits.woken_ns, run.waits.other_ns) = (Some(300 * MS), Some(300 * MS));
    });
    assert!(!server.text.contains("not for storage"), "{}", server.text);
    let parent = waited(|run| {
        (run.waits.woken_ns, run.waits.other_ns, run.waits.child_ns) =
            (Some(300 * MS), Some(310 * MS), Some(300 * MS));
    });
    assert!(parent.text.contains("not for storage"), "{}", parent.text);
}

#[test]
fn what_is_taken_from_it_unseen_is_told_as_what_it_may_be() {
    // 350 ms are left.
    let text = |interrupts, taken| {
        let machine = Machine { interrupts: Some(interrupts), taken: Some(taken), ..Machine::default() };
        found(&[changed(idle(), |run| run.machine = machine)], "unexplained").text
    };
    assert!(text(7, 6).contains("70.0 ms in interrupts") && !text(7, 6).contains("guests"), "{}", text(7, 6));
    assert!(text(6, 7).contains("other guests of their host") && !text(6, 7).contains("interrupts"));
}
