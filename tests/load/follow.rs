//! Processes that are followed: ids that come again while the kernel has not yet freed who had them before.

use std::fs;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use cachetop::plan::Wants;
use cachetop::sample::Counter;
use cachetop::sample::Follow as _;
use cachetop::sample::Lost;
use cachetop::sample::Source as _;
use cachetop::session::Options;
use cachetop::session::Session;

use crate::tools::*;

const LAST: &str = "/proc/sys/kernel/ns_last_pid";
/// Pages that the first and the second process with an id read, each into memory that it has not used before: so many
/// faults at least, and not many more.
const PAGES: [u64; 2] = [512, 1024];
const FAULTS_BESIDE: u64 = 400;
const ROUNDS: usize = 12;
const RUN: u32 = 1;

/// A process of the run, or of no run.
fn born(session: &mut Session, followed: bool, pages: u64, file: &File, gate: Option<&[i32; 2]>) -> i32 {
    session.spawning(if followed { RUN } else { 0 });
    let pid = fork_reader("again", file, pages, gate);
    session.spawning(0);
    pid
}

/// Two processes with one id, one right after the other. False: somebody else was given the id.
fn round(session: &mut Session, file: &File, followed: [bool; 2], lost_before: &mut Lost) -> bool {
    let lost = &lost_before.clone();
    let before = session.gone().unwrap().minor_faults;
    let mut gate = [0; 2];
    // SAFETY: room for two descriptors, which are ours alone.
    assert_eq!(unsafe { libc::pipe2(gate.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    let first = born(session, followed[0], PAGES[0], file, None);
    reap(first);
    fs::write(LAST, (first - 1).to_string()).unwrap();
    let second = born(session, followed[1], PAGES[1], file, Some(&gate));
    if second == first {
        let run = followed[1].then_some(RUN);
        assert_eq!(session.run_of(unsigned(second)).unwrap(), run, "{followed:?}");
        // Meanwhile the kernel frees the first, which has the same id.
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(session.run_of(unsigned(second)).unwrap(), run, "{followed:?}, when the first is freed");
    }
    // SAFETY: our own descriptors. The second reads when nobody can write any more.
    unsafe { gate.iter().for_each(|fd| assert_eq!(libc::close(*fd), 0)) };
    reap(second);
    wait_for("the end of all that were followed", || session.members(RUN).unwrap().is_empty());
    let pages: u64 = PAGES.iter().zip(followed).filter(|(_, followed)| *followed).map(|(n, _)| n).sum();
    let count: u64 = followed.iter().map(|followed| u64::from(*followed)).sum();
    let faults = session.gone().unwrap().minor_faults - before;
    let sample = session.sample().unwrap();
    let lost = passed_by(&sample.lost.since(lost));
    *lost_before = sample.lost;
    let counted = sample.followed.unwrap().counters.get(Counter::ReadHits);
    session.follow(RUN);
    if lost > 0 {
        // The end of the first may be what was passed by: then nobody can tell the second from it.
        println!("     {lost} lost in a round: {faults} faults, {counted} hits of {pages}");
        return false;
    }
    let expected = pages..=pages + count * FAULTS_BESIDE;
    assert!(expected.contains(&faults), "{faults} faults where {expected:?} were expected: {followed:?}");
    assert_eq!(counted, pages, "{followed:?}");
    second == first
}

/// An id that was a member's is another's, or a stranger's becomes a member's, or both: each has its own, once.
pub fn a_followed_id_that_comes_again(dir: &Path) {
    if !Path::new(LAST).exists() {
        println!("     not here: {LAST} is not there");
        return;
    }
    let path = cold_file(&dir.join("file"), PAGES[1] + 1);
    let file = File::open(&path).unwrap();
    hold_warm(&path);
    // SAFETY: no pointers. A huge page would be one fault.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) }, 0);
    let wants = Wants { follow: true, ..Wants::default() };
    let mut session = Session::open(&Options { wants, ..Options::default() }).unwrap();
    session.follow(RUN);
    let mut lost = session.sample().unwrap().lost;
    let mut same = 0;
    for _ in 0..ROUNDS {
        for followed in [[true, false], [false, true], [true, true]] {
            same += usize::from(round(&mut session, &file, followed, &mut lost));
        }
    }
    println!("     {same} of {} ids came again", 3 * ROUNDS);
    assert!(same > 0, "no id came again");
}

/// Of more processes than there is room for, the rest is told, and there is room again for those that come when these have gone.
pub fn more_than_can_be_followed(dir: &Path) {
    const ROOM: u32 = 16;
    const BEYOND: u32 = 24;
    let file = File::open(cold_file(&dir.join("file"), 2)).unwrap();
    let wants = Wants { follow: true, ..Wants::default() };
    let mut session = Session::open(&Options { wants, table: ROOM, ..Options::default() }).unwrap();
    session.follow(RUN);
    let before = session.sample().unwrap().lost;
    let since = |now: &Lost, why: &str| -> u64 {
        now.since(&before).by_reason.iter().filter(|(w, _)| *w == why).map(|(_, n)| n).sum()
    };
    let mut gate = [0; 2];
    // SAFETY: room for two descriptors, which are ours alone.
    assert_eq!(unsafe { libc::pipe2(gate.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    let children: Vec<_> =
        (0..ROOM + BEYOND).map(|_| born(&mut session, true, 1, &file, Some(&gate))).collect();
    let now = session.sample().unwrap().lost;
    // Of a process whose beginning the kernel passed by nothing is known.
    let unseen = since(&now, "recursion");
    let (told, members) = (since(&now, "followed_full"), session.members(RUN).unwrap().len() as u64);
    let beyond = u64::from(BEYOND);
    assert!((beyond.saturating_sub(unseen)..=beyond).contains(&told), "{told} told, {unseen} passed by");
    assert!(members == u64::from(ROOM) || unseen > 0, "{members} of {ROOM} followed");
    // SAFETY: our own descriptors. They read when nobody can write any more.
    unsafe { gate.iter().for_each(|fd| assert_eq!(libc::close(*fd), 0)) };
    children.into_iter().for_each(reap);
    wait_for("the end of all that were followed", || session.members(RUN).unwrap().is_empty());
    reap(born(&mut session, true, 1, &file, None));
    assert_eq!(since(&session.sample().unwrap().lost, "followed_full"), told, "there is room again");
}
