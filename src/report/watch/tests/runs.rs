//! One run after another, and who is left behind.

use super::*;

#[test]
fn a_second_run_finds_what_the_first_and_others_brought_in() {
    let world = World::new();
    world.script([
        vec![world.miss(SHELL, 0, 1000), world.miss(OTHER, 1, 500)],
        vec![Step::Fork(SHELL, CHILD)],
        vec![world.hit(CHILD, 1, 500)],
        vec![Step::End(CHILD, 3)],
        vec![Step::End(SHELL, 0)],
        // The second run.
        vec![world.hit(SHELL, 0, 1000), world.hit(SHELL, 1, 500)],
        vec![Step::End(SHELL, 1)],
    ]);
    let (first, second) = world.watch(|watch| (run(watch, 1), run(watch, 2)));
    assert_eq!((reads(&first), reads(&second)), ((Some(500), Some(1000)), (Some(1500), Some(0))));
    assert_eq!((first.exit_status, second.exit_status), (Some(0), Some(1)));
    // Rows came and went: who did something is remembered, and what it used.
    let names = |run: &Run| run.processes.keys().copied().collect::<Vec<_>>();
    assert_eq!((names(&first), names(&second)), (vec![SHELL, CHILD], vec![SHELL]));
    assert_eq!((first.usage.user_s, second.usage.user_s), (Some(201.0), Some(100.0)));
    assert_eq!(first.system.misses_of_others, Some(500));
    assert_eq!((first.warm_pages, first.origin.others), (500, 500));
    assert_eq!(
        (second.warm_pages, &second.origin.runs[..], second.origin.others),
        (1500, &[(1, 1000)][..], 500)
    );
    assert_eq!(second.warmers[0].comm, Foreign::from("other"));
    let paths: Vec<_> = second.files.iter().map(|f| f.path.as_ref().unwrap().raw().into_owned()).collect();
    assert_eq!(paths, ["a", "b"].map(|name| format!("{}/{name}", world.dir.path().display())));
    // Five readings, and one at the end; the clock is the machine's.
    let tick = TICK.as_secs_f64();
    assert!((first.wall_s - 5.0 * tick).abs() < 1e-9, "{}", first.wall_s);
    let line: u64 = first.timeline.iter().map(|t| t.hits + t.misses).sum();
    assert_eq!((line, first.timeline.len()), (1500, 5));
    let findings = crate::report::findings::find(&[], &[first, second]);
    let warmed: Vec<_> =
        findings.iter().filter(|f| f.id.starts_with("warmed")).map(|f| (f.id, f.which())).collect();
    assert_eq!(warmed, [("warmed-by-earlier-run", "run 2".to_owned())]);
}

#[test]
fn who_is_left_behind_belongs_to_its_own_run() {
    let world = World::new();
    world.script([
        vec![Step::Fork(SHELL, CHILD), world.miss(CHILD, 0, 10)],
        vec![Step::End(SHELL, 0)],
        // In the second run the daemon of the first goes on, and ends.
        vec![world.miss(CHILD, 0, 30), world.hit(SHELL, 0, 5)],
        vec![Step::End(CHILD, 9)],
        vec![Step::End(SHELL, 0)],
    ]);
    let (first, second) = world.watch(|watch| {
        // The daemon is adopted: it is waited for in the second run.
        (run(watch, 1), run(watch, 2))
    });
    assert_eq!((&first.left_behind[..], first.usage.user_s), (&[CHILD][..], Some(201.0)));
    assert_eq!(reads(&second), (Some(5), Some(0)));
    assert_eq!((second.left_behind.len(), second.usage.user_s), (0, Some(100.0)));
    assert_eq!(second.system.misses_of_others, Some(30));
    assert_eq!(second.exit_status, Some(0));
}

#[test]
fn with_all_of_them_the_run_lasts_until_the_last_has_gone() {
    let world = World::new();
    world.script([
        vec![Step::Fork(SHELL, CHILD)],
        vec![Step::End(SHELL, 4)],
        vec![world.miss(CHILD, 1, 50)],
        vec![Step::End(CHILD, 0)],
    ]);
    let run = world.watch(|watch| {
        watch.wait_all = true;
        run(watch, 1)
    });
    assert_eq!((reads(&run), run.exit_status, run.left_behind.len()), ((Some(0), Some(50)), Some(4), 0));
}

#[test]
fn what_cannot_be_started_asked_or_read_is_no_run() {
    let world = World::new();
    let end = world.watch(|watch| watch.command(&["missing".into()], 1));
    assert!(matches!(end, Err(End::NotStarted(NotStarted(e))) if e.kind() == io::ErrorKind::NotFound));
    world.script([vec![Step::Break]]);
    let end = world.watch(|watch| watch.command(&["sh".into()], 1));
    assert!(matches!(end, Err(End::Failed(_))));
    let world = World::new();
    world.state.borrow_mut().step(Step::Ask(15));
    let end = world.watch(|watch| watch.command(&["sh".into()], 1));
    assert!(matches!(end, Err(End::Asked(15))));
}

#[test]
fn what_prepares_a_run_is_no_part_of_it_and_remembered() {
    let world = World::new();
    world.script([
        vec![world.miss(SHELL, 0, 100)],
        vec![Step::End(SHELL, 0)],
        vec![world.hit(SHELL, 0, 100)],
        vec![Step::End(SHELL, 0)],
    ]);
    let (status, run) = world.watch(|watch| (watch.aside(&["sh".into()]).ok(), run(watch, 1)));
    assert_eq!((status, reads(&run)), (Some(0), (Some(100), Some(0))));
    assert_eq!((run.warm_pages, run.origin.others, run.warmers.len()), (100, 100, 1));
}

#[test]
fn a_process_that_runs_is_watched_for_a_time() {
    let world = World::new();
    let me = std::process::id();
    world.state.borrow_mut().alive.insert(me);
    world.script([vec![world.miss(me, 0, 7)], vec![world.miss(OTHER, 1, 1)], vec![world.hit(me, 0, 7)]]);
    let run = world.watch(|watch| watch.process(me, 3 * TICK).ok().unwrap());
    assert_eq!((reads(&run), run.exit_status), ((Some(7), Some(7)), None));
    assert!((run.wall_s - 3.0 * TICK.as_secs_f64()).abs() < 1e-9);
}

#[test]
fn a_run_ends_when_it_ended_and_not_when_that_was_noticed() {
    let world = World::new();
    world.script([vec![world.miss(SHELL, 0, 10)], vec![], vec![Step::End(SHELL, 0)]]);
    world.state.borrow_mut().noted = Some(TICK / 2);
    let run = world.watch(|watch| run(watch, 1));
    assert!((run.wall_s - 2.5 * TICK.as_secs_f64()).abs() < 1e-9, "{}", run.wall_s);
}

#[test]
fn a_watch_that_ends_early_says_so() {
    let early = |steps: Vec<Step>| {
        let world = World::new();
        let me = std::process::id();
        world.state.borrow_mut().alive.insert(me);
        world.script([vec![world.miss(me, 0, 7)], steps, vec![]]);
        world.watch(|watch| watch.process(me, 3 * TICK).map(|_| watch.early).ok().unwrap())
    };
    assert_eq!(early(vec![]), None);
    assert_eq!(early(vec![Step::Ask(2)]), Some("interrupted before the time was over"));
    let gone = early(vec![Step::End(std::process::id(), 0)]);
    assert_eq!(gone, Some("the process ended before the time was over"));
}

#[test]
fn between_the_readings_of_a_long_run_the_tables_are_relieved() {
    let world = World::new();
    let half = Duration::from_millis(500);
    world.state.borrow_mut().relief = Some(half);
    let mut script = vec![vec![Step::Pass(Duration::from_secs(600))]];
    // Two seconds, in four parts.
    script.extend([vec![], vec![world.miss(SHELL, 0, 10)], vec![], vec![]]);
    script.push(vec![Step::End(SHELL, 0)]);
    world.script(script);
    let run = world.watch(|watch| run(watch, 1));
    assert_eq!(reads(&run), (Some(0), Some(10)));
    let state = world.state.borrow();
    let begins = Duration::from_secs(600) + TICK;
    assert_eq!(state.relieved, [1, 2, 3].map(|n| begins + n * half));
    assert!(state.script.is_empty());
}

#[test]
fn who_was_waited_for_by_nobody_counts_in_its_own_run() {
    let world = World::new();
    world.script([
        vec![Step::Used(500), Step::End(SHELL, 0)],
        // Of the third run the kernel frees nobody before it is over.
        vec![Step::Used(90), Step::End(SHELL, 0)],
        vec![Step::Linger(CHILD, 3), Step::End(SHELL, 0)],
        // What that one has used comes now.
        vec![Step::Used(9000), Step::End(SHELL, 0)],
    ]);
    let runs = world.watch(|watch| [1, 2, 3, 4].map(|n| run(watch, n)));
    let told: Vec<_> = runs.iter().map(|r| (r.usage.user_s, r.unwaited)).collect();
    assert_eq!(
        told,
        [(Some(500.0), true), (Some(100.0), false), (Some(100.0), false), (Some(100.0), false)],
        "as long as the kernel has somebody of an earlier run"
    );
}
