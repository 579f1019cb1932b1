//! What others brought in while a run lasted was in the cache when it came to it, and not before.

use super::*;

/// Another process does this to a file of 900 pages, and then the run reads all of it: what was there before, at least and at most.
fn after(theirs: &[(Counter, u64)]) -> (Run, Option<(f64, f64)>) {
    let theirs = vec![used(THEIRS, 12, theirs)];
    let ours = vec![used(OURS, 12, &[(Counter::ReadHits, 900), (Counter::ReadBytes, 900 * 4096)])];
    let run = run_of(&mut Origins::default(), 1, &[theirs, ours], &Made(900, 900));
    let before = run.cached_before();
    (run, before)
}

#[test]
fn what_came_while_it_ran_was_not_there_before() {
    assert_eq!(after(&[(Counter::ReadHits, 900)]).1, Some((1.0, 1.0)), "they found it there as well");
    // The file was made when the run had begun long ago.
    let (run, before) = after(&[(Counter::WriteMisses, 900), (Counter::Dirtied, 900)]);
    assert_eq!((run.warm_pages, run.since_pages, before), (900, 900, Some((0.0, 0.0))));
    // Who it was is told, and not that they read what they wrote.
    let found = findings::find(&[], &[run]);
    let said = &found.iter().find(|f| f.id == "warmed-by-other-process").unwrap().text;
    assert!(said.contains("(process 20) had brought them in, reading or writing "), "{said}");
    assert_eq!(after(&[(Counter::ReadMisses, 30), (Counter::Prefetched, 870)]).1, Some((0.0, 0.0)));
    // A third of it.
    let third = after(&[(Counter::ReadMisses, 300)]).1.unwrap();
    assert!((third.0 - 2.0 / 3.0).abs() < 1e-9 && (third.1 - 2.0 / 3.0).abs() < 1e-9, "{third:?}");
    // Where nobody tells which pages a write found absent, it may have been any part.
    assert_eq!(after(&[(Counter::Dirtied, 900)]).1, Some((0.0, 1.0)));
    assert_eq!(after(&[(Counter::Dirtied, 300)]).1.map(|b| b.1), Some(1.0));
}

#[test]
fn what_an_earlier_run_or_others_brought_in_before_it_was_there() {
    let mut origins = Origins::default();
    let ours = |what| vec![used(OURS, 12, &[(what, 900), (Counter::ReadBytes, 900 * 4096)])];
    let theirs = vec![used(THEIRS, 12, &[(Counter::WriteMisses, 900)])];
    let first = run_of(&mut origins, 1, &[ours(Counter::ReadMisses), theirs], &Made(900, 900));
    let second = run_of(&mut origins, 2, &[ours(Counter::ReadHits)], &Made(900, 900));
    assert_eq!((first.cached_before(), second.cached_before()), (Some((0.0, 0.0)), Some((1.0, 1.0))));
}
