//! Names: whose a row is when others rename its thread and move it, and whose a row is that had other owners before.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cachetop::sample::Counter;
use cachetop::sample::Source as _;
use cachetop::session::Options;
use cachetop::session::Session;
use serde_json::Value;

use crate::owners::hierarchy;
use crate::tools::*;

const READERS: usize = 6;
/// Calls of each reader when it is renamed no more.
const LAST: u64 = 1000;
/// What processes are called that are born and die meanwhile, and read nothing.
const BORN: &str = "storm-born";

/// Names of a reader, of all lengths, and the one that it has in the end.
fn names(reader: usize) -> [String; 4] {
    ["a", "bbbbbbbbbbbb", "cccc", "dddddddd"].map(|rest| format!("r{reader}-{rest}"))
}

fn last_name(reader: usize) -> String {
    format!("l{reader}-last")
}

fn rename(tid: i32, name: &str) {
    fs::write(format!("/proc/self/task/{tid}/comm"), name).unwrap();
}

fn groups() -> [PathBuf; 2] {
    ["left", "right"].map(|side| hierarchy().join(format!("cachetop-storm-{}-{side}", std::process::id())))
}

/// A process without a thread beside it that writes a page of a file without a name, and is gone.
fn born_and_gone(place: &CString, page: &[u8]) {
    // SAFETY: the child makes nothing but system calls, on memory made ready before it was forked.
    let pid = unsafe {
        let pid = libc::fork();
        if pid == 0 {
            let fd = libc::open(place.as_ptr(), libc::O_TMPFILE | libc::O_RDWR, 0o600);
            let wrote = libc::pwrite(fd, page.as_ptr().cast(), page.len(), 0);
            libc::_exit(i32::from(wrote < 1));
        }
        pid
    };
    assert!(pid > 0);
    reap(pid);
}

/// The storm, all in one process: threads that read, two that rename them, one that moves all to and fro between two
/// cgroups, one that has processes be born and die. `what`: calls of each reader while it is renamed, and the file.
pub fn storm(what: &str) {
    let (calls, path) = what.split_once(' ').unwrap();
    let calls: u64 = calls.parse().unwrap();
    let file = File::open(path).unwrap();
    let place = CString::new(Path::new(path).parent().unwrap().as_os_str().as_bytes()).unwrap();
    let tids: [AtomicI32; READERS] = Default::default();
    let (stop, everybody, readers) =
        (AtomicBool::new(false), Barrier::new(READERS + 1), Barrier::new(READERS + 1));
    let read = |calls: u64, n: usize| {
        let mut buffer = vec![0; usize::try_from(page_size()).unwrap()];
        for call in 0..calls {
            assert!(file.read_at(&mut buffer, (call + n as u64) % 8 * page_size()).unwrap() > 0);
        }
    };
    for group in groups() {
        fs::create_dir_all(group).unwrap();
    }
    let tid = |n: usize| tids[n].load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        for n in 0..READERS {
            let (tids, everybody, readers, read) = (&tids, &everybody, &readers, &read);
            scope.spawn(move || {
                // SAFETY: no preconditions.
                tids[n].store(unsafe { libc::gettid() }, Ordering::SeqCst);
                everybody.wait(); // all are here
                everybody.wait(); // all have their first name
                read(calls, n);
                readers.wait(); // nobody renames any more
                readers.wait(); // all have their last name
                read(LAST, n);
            });
        }
        everybody.wait();
        (0..READERS).for_each(|n| rename(tid(n), &names(n)[0]));
        let (stop, tid, place) = (&stop, &tid, &place);
        let mut others: Vec<_> =
            (0..2).map(|side| scope.spawn(move || keep_renaming(side, tid, stop))).collect();
        others.push(scope.spawn(move || keep_moving(stop)));
        others.push(scope.spawn(move || keep_forking(place, stop)));
        everybody.wait();
        readers.wait();
        stop.store(true, Ordering::SeqCst);
        others.into_iter().for_each(|other| other.join().unwrap());
        // Who changes all the time keeps a row for up to a second.
        std::thread::sleep(Duration::from_millis(1100));
        (0..READERS).for_each(|n| rename(tid(n), &last_name(n)));
        readers.wait();
    });
    leave_groups();
}

/// Renames every other reader.
fn keep_renaming(side: usize, tid: &dyn Fn(usize) -> i32, stop: &AtomicBool) {
    for round in (0..).take_while(|_| !stop.load(Ordering::SeqCst)) {
        for n in (side..READERS).step_by(2) {
            // In a burst, which leaves another name each time: the second meets the thread where it makes its next row.
            for name in names(n).iter().cycle().skip(round % 4).take(7) {
                rename(tid(n), name);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Moves this process to and fro between the cgroups.
fn keep_moving(stop: &AtomicBool) {
    for group in groups().iter().cycle().take_while(|_| !stop.load(Ordering::SeqCst)) {
        fs::write(group.join("cgroup.procs"), std::process::id().to_string()).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Has processes be born and die.
fn keep_forking(place: &CString, stop: &AtomicBool) {
    let (name, page) = (CString::new(BORN).unwrap(), vec![7; usize::try_from(page_size()).unwrap()]);
    // SAFETY: a string that ends with a zero; it is copied.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    while !stop.load(Ordering::SeqCst) {
        born_and_gone(place, &page);
    }
}

/// Moves this process out of the cgroups, and removes them.
fn leave_groups() {
    fs::write(hierarchy().join("cgroup.procs"), std::process::id().to_string()).unwrap();
    for group in groups() {
        // Who was reaped has left the group a moment later only.
        let gone = (0..1000).any(|n| {
            if n > 0 {
                std::thread::sleep(Duration::from_millis(10));
            }
            fs::remove_dir(&group).is_ok()
        });
        assert!(gone, "{}: {}", group.display(), fs::read_to_string(group.join("cgroup.procs")).unwrap());
    }
}

/// What each thread read stands under names that it had, all of it, and nobody has anything of another's.
pub fn renamed_and_moved_by_others(dir: &Path) {
    let path = cold_file(&dir.join("file"), 8);
    hold_warm(&path);
    let renamed = 100 * crate::options().processes;
    let mut session = Session::open(&Options::default()).unwrap();
    let mut reader = Reader::new();
    let pid = reader.pid();
    session.sample().unwrap();
    // By process, thread and name.
    let mut seen: BTreeMap<(u32, u32, String), u64> = BTreeMap::new();
    let done = AtomicBool::new(false);
    let mut rows = 0;
    let lost = std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            reader.tell("storm", &PathBuf::from(format!("{renamed} {}", path.display())));
            done.store(true, Ordering::SeqCst);
        });
        loop {
            let last = work.is_finished();
            let sample = session.sample().unwrap();
            for row in &sample.rows {
                let reads = [Counter::ReadHits, Counter::ReadAheadHits, Counter::ReadMisses];
                let pages: u64 = reads.iter().map(|c| row.counters.get(*c)).sum();
                *seen.entry((row.tgid, row.tid, row.comm.name().into_owned())).or_default() += pages;
                rows += usize::from(row.tgid == pid);
            }
            if last {
                break sample.lost;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    assert!(done.load(Ordering::SeqCst));
    reader.end();
    let of = |thread: usize| {
        let named = names(thread);
        let own: Vec<_> = seen.iter().filter(|((tgid, ..), _)| *tgid == pid).collect();
        let of: Vec<_> = own.iter().filter(|((_, _, name), _)| named.contains(name)).collect();
        let after: Vec<_> = own.iter().filter(|((_, _, name), _)| *name == last_name(thread)).collect();
        let tids: BTreeSet<u32> = of.iter().chain(&after).map(|((_, tid, _), _)| *tid).collect();
        (tids, of.iter().map(|(_, n)| **n).sum::<u64>(), after.iter().map(|(_, n)| **n).sum::<u64>())
    };
    let (mut threads, mut missing) = (BTreeSet::new(), 0);
    for thread in 0..READERS {
        let (tids, before, last) = of(thread);
        assert!(
            tids.len() == 1 && before <= renamed && last <= LAST,
            "reader {thread} of {pid}: {before} {last} {lost:?} {seen:?}"
        );
        missing += renamed + LAST - before - last;
        threads.extend(tids);
    }
    // Each call is a page: none is missing that LOST does not have.
    let lost = passed_by(&lost);
    assert!(missing <= lost, "{missing} are missing, {lost} lost: {seen:?}");
    assert_eq!(threads.len(), READERS, "{seen:?}");
    for ((tgid, tid, name), pages) in &seen {
        let read_nothing = *tgid == pid && !threads.contains(tid) || name == BORN;
        assert!(!read_nothing || *pages == 0, "{name} ({tid} of {tgid}) read nothing: {seen:?}");
    }
    println!("     {rows} rows of {READERS} readers and those around them; {missing} missing, {lost} lost");
}

/// What a thread is called that takes a name of its own for each of its calls, and how many calls it makes.
const MANY_NAMES: &str = "many-";

/// A page of a file, under another name each time.
pub fn under_many_names(what: &str) {
    let (calls, path) = what.split_once(' ').unwrap();
    let (calls, file): (u64, _) = (calls.parse().unwrap(), File::open(path).unwrap());
    let mut buffer = vec![0; usize::try_from(page_size()).unwrap()];
    for call in 0..calls {
        let name = CString::new(format!("{MANY_NAMES}{call:08x}")).unwrap();
        // SAFETY: a string that ends with a zero; it is copied.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
        assert!(file.read_at(&mut buffer, call % 8 * page_size()).unwrap() > 0);
    }
}

/// One thread that renames itself all the time takes no row from anybody: what others read is known to the page, also with a
/// filter by name and by file, and nothing is lost.
pub fn a_thread_of_many_names(dir: &Path) {
    const PAGES: u64 = 5;
    let (path, others) = (cold_file(&dir.join("file"), 8), cold_file(&dir.join("others"), 8));
    hold_warm(&path);
    hold_warm(&others);
    // More than there are rows, also where the load is small.
    let calls = (20 * crate::options().processes).max(40_000);
    let (mut reader, file) = (Reader::new(), File::open(&others).unwrap());
    let options = ["--by process --top 100000", "--comm innocent", &format!("--file {}", others.display())]
        .map(|o| format!("--json {o} 1"));
    let [mut all, mut by_name, mut by_file] = options.map(|o| Monitor::start(&o));
    let innocents = crate::options().processes / 20;
    std::thread::scope(|scope| {
        let storm =
            scope.spawn(|| reader.tell("names", &PathBuf::from(format!("{calls} {}", path.display()))));
        for _ in 0..innocents {
            reap(fork_reader("innocent", &file, PAGES, None));
        }
        storm.join().unwrap();
    });
    [&mut all, &mut by_name, &mut by_file].into_iter().for_each(|monitor| _ = monitor.catch_up());
    let (intervals, total) = all.finish_json();
    let lost = passed_by_line(&total, &[]);
    let of = |name: &str| -> Vec<&Value> {
        rows(&intervals).filter(|r| r["comm"].as_str().is_some_and(|c| c.starts_with(name))).collect()
    };
    let (stormy, innocent) = (rows_of(&intervals, reader.pid()), of("innocent"));
    let read = |rows: &[&Value]| sum(rows, "/read/accesses");
    println!("     {calls} names in {} rows, {lost} passed by: {}", stormy.len(), total["lost"]);
    let within =
        |is: u64, of: u64, calls: u64| (of.saturating_sub(PAGES * lost.min(calls))..=of).contains(&is);
    assert!(
        within(read(&innocent), PAGES * innocents, innocents),
        "{} of {}",
        read(&innocent),
        PAGES * innocents
    );
    assert!(within(read(&stormy), calls, calls), "{} of {calls}", read(&stormy));
    for monitor in [by_name, by_file] {
        let (_, total) = monitor.finish_json();
        let lost = passed_by_line(&total, &[]);
        let (is, of) = (figure(&total, "/read/accesses"), PAGES * innocents);
        assert!((of.saturating_sub(PAGES * lost)..=of).contains(&is), "{is} of {of}: {total}");
    }
    reader.end();
}

/// What readers are called before and after their call; the second name is given in its middle.
const BEFORE_AND_AFTER: [&str; 2] = ["before-the-call", "after"];
/// How many there are, and how many pages each reads at once.
const IN_A_CALL: (u64, u64) = (4, 6);

/// Threads that read some pages in one call, in the middle of which all of them are renamed.
pub fn renamed_meanwhile(path: &str) {
    let own = || fs::read_dir("/proc/self/task").unwrap().map(|d| d.unwrap().file_name());
    let main: i32 = std::process::id().try_into().unwrap();
    // They are born with the name of who makes them.
    rename(main, BEFORE_AND_AFTER[0]);
    crate::sleep::in_the_middle_of_a_read(path, IN_A_CALL.0, IN_A_CALL.1, || {
        let others = own().map(|tid| tid.to_str().unwrap().parse().unwrap()).filter(|tid| *tid != main);
        others.for_each(|tid| rename(tid, BEFORE_AND_AFTER[1]));
    });
}

/// A call in the middle of which its thread gets another name is counted once, and whole, under one of both.
pub fn renamed_in_the_middle_of_a_read(dir: &Path) {
    let (threads, pages) = IN_A_CALL;
    // More than they read, so that the file is not cached as a whole.
    let path = cold_file(&dir.join("file"), threads * pages + 8);
    let file = File::open(&path).unwrap();
    advise(&file, libc::POSIX_FADV_RANDOM);
    let mut buffer = vec![0; usize::try_from(threads * pages * page_size()).unwrap()];
    for without_functions in [false, true] {
        file.read_exact_at(&mut buffer, 0).unwrap();
        let Ok(mut session) = Session::open(&Options { without_functions, ..Options::default() }) else {
            println!("     not on this kernel: without functions");
            continue;
        };
        let mut reader = Reader::new();
        session.sample().unwrap();
        reader.tell("renamed", &path);
        let sample = session.sample().unwrap();
        let mut of: BTreeMap<u32, Vec<(String, u64, u64)>> = BTreeMap::new();
        for row in sample.rows.iter().filter(|row| row.tgid == reader.pid() && row.tid != reader.pid()) {
            let (hits, misses) = (row.counters.get(Counter::ReadHits), row.counters.get(Counter::ReadMisses));
            if hits + misses > 0 {
                of.entry(row.tid).or_default().push((row.comm.name().into_owned(), hits, misses));
            }
        }
        reader.end();
        let lost = passed_by(&sample.lost);
        assert!((threads.saturating_sub(lost)..=threads).contains(&(of.len() as u64)), "{of:?}, {lost} lost");
        for rows in of.values() {
            let [(name, hits, misses)] = &rows[..] else { panic!("more than one row for a call: {of:?}") };
            assert!(BEFORE_AND_AFTER.contains(&name.as_str()), "{of:?}");
            assert!(hits + misses == pages || lost > 0 && hits + misses < pages, "{of:?}, {lost} lost");
        }
    }
}

/// Thousands of processes under a long and a short name, in rows that they take from one another.
pub fn rows_under_shorter_names(dir: &Path) {
    /// One of them begins as the other, and ends where that one goes on.
    const NAMES: [(&str, u64); 3] = [("namesake-longer", 3), ("namesake", 5), ("n", 1)];
    let path = cold_file(&dir.join("file"), 8);
    let file = File::open(&path).unwrap();
    hold_warm(&path);
    let each = crate::options().processes / 3;
    let mut all = Monitor::start("--json --by comm --top 100000 0.2");
    let mut one = Monitor::start("--json --by process --top 100000 --comm namesake 0.2");
    for _ in 0..each {
        for (name, pages) in NAMES {
            reap(fork_reader(name, &file, pages, None));
        }
    }
    all.catch_up();
    one.catch_up();
    let (intervals, total) = all.finish_json();
    // Of each name no more than was read under it, and no less but for what LOST has: a call is five pages at most.
    let lost = 5 * passed_by_line(&total, &[]);
    for (name, pages) in NAMES {
        for interval in &intervals {
            let of = interval["rows"].as_array().unwrap().iter().filter(|r| r["comm"] == name).count();
            assert!(of <= 1, "{name} has {of} rows: {interval}");
        }
        let of: Vec<_> = rows(&intervals).filter(|r| r["comm"] == name).collect();
        let (pages, named) = (each * pages, sum(&of, "/read/accesses"));
        assert!((pages.saturating_sub(lost)..=pages).contains(&named), "{name}: {named} of {pages}: {total}");
    }
    let (intervals, total) = one.finish_json();
    let of: Vec<_> = rows(&intervals).collect();
    let (pages, named) = (each * NAMES[1].1, sum(&of, "/read/accesses"));
    let lost = 5 * passed_by_line(&total, &[]);
    assert!((pages.saturating_sub(lost)..=pages).contains(&named), "{named} of {pages}: {total}");
    assert!(of.iter().all(|r| r["comm"] == NAMES[1].0), "{of:?}");
    assert_eq!(figure(&total, "/read/accesses"), named, "{total}");
}
