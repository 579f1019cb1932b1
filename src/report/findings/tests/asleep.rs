//! A process that was watched and did nothing: it slept, or was stopped.

use super::*;
use crate::report::asleep::Asleep;

#[test]
fn who_slept_all_the_time_is_told_so() {
    let mut run = idle();
    run.waits.read_ns = Some(0);
    run.usage = Usage::zero();
    let text = |run: &Run| find(&[], std::slice::from_ref(run)).pop().unwrap().text;
    assert!(
        text(&run).contains(" A wait that had begun before the watch is not measured."),
        "{}",
        text(&run)
    );
    run.exit_status = Some(0);
    assert!(text(&run).contains("are unexplained. None of its threads"), "{}", text(&run));
    run.asleep =
        Some(Asleep { threads: 1, within: vec![("hrtimer_nanosleep".into(), 1)], ..Asleep::default() });
    let all = find(&[], std::slice::from_ref(&run));
    assert_eq!(all.iter().map(|f| f.id).collect::<Vec<_>>(), ["asleep"]);
    assert!(text(&run).starts_with(
        "Its only thread slept from before the watch began to its end, in hrtimer_nanosleep of"
    ));
    let within = vec![("do_epoll_wait".into(), 7), ("futex_wait".into(), 2)];
    run.asleep = Some(Asleep { threads: 9, within, ..Asleep::default() });
    assert!(
        text(&run).contains("to its end: 7 in do_epoll_wait, 2 in futex_wait of the kernel."),
        "{}",
        text(&run)
    );
    run.asleep = Some(Asleep { threads: 9, ..Asleep::default() });
    assert!(text(&run).starts_with("All of its 9 threads slept from before the watch began to its end."));
    let told = crate::report::verdict::verdict(&[run.clone()], None, &[]);
    assert_eq!(told.text, "It slept all the time (1.00 s): none of its threads ran.");
    assert_eq!((told.causes[0].id, told.causes[0].share), ("others", Some(1.0)));
}

#[test]
fn who_was_stopped_did_not_sleep() {
    let told = |threads, stopped, traced| {
        let mut run = idle();
        run.waits.read_ns = Some(0);
        run.usage = Usage::zero();
        run.asleep = Some(Asleep { threads, stopped, traced, within: Vec::new() });
        let finding = find(&[], std::slice::from_ref(&run)).pop().unwrap();
        assert_eq!(finding.id, "asleep");
        let verdict = crate::report::verdict::verdict(&[run], None, &[]).text;
        let did = finding.text.split_once(" from before").unwrap().0.to_owned();
        (did, finding.remedy.is_some(), verdict.split_once(" all the time").unwrap().0.to_owned())
    };
    let text = |a: &str, remedy, b: &str| (a.to_owned(), remedy, b.to_owned());
    let cases = [
        ((1, 1, 0), "Its only thread was stopped by a signal", true, "It was stopped"),
        ((4, 0, 4), "All of its 4 threads were stopped by a debugger", false, "It was stopped"),
        (
            (4, 3, 0),
            "All of its 4 threads slept or were stopped (3 by a signal)",
            true,
            "It slept, or was stopped,",
        ),
        ((4, 0, 0), "All of its 4 threads slept", false, "It slept"),
    ];
    for ((threads, stopped, traced), finding, remedy, verdict) in cases {
        assert_eq!(told(threads, stopped, traced), text(finding, remedy, verdict));
    }
}
