//! Processes that live for a few milliseconds.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use cachetop::sample::Source as _;
use cachetop::session::Options;
use cachetop::session::Session;
use serde_json::Value;

use crate::pressure::damon;
use crate::tools::*;

/// Pages of the longest call of those that the processes make.
const MOST_PAGES: u64 = 16;

/// What a short-lived process does: one call for the first pages of a file.
pub fn read(path: &str, pages: &str) -> ExitCode {
    let mut buffer = vec![0; pages.parse::<usize>().unwrap() * usize::try_from(page_size()).unwrap()];
    let got = File::open(path).and_then(|f| f.read_at(&mut buffer, 0)).unwrap();
    ExitCode::from(u8::from(got != buffer.len()))
}

/// Executing counts, too: the kernel and the loader read the headers of the program and of its libraries. How many
/// pages that is, is the same each time, and measured with processes that read no page of their own accord.
pub fn short_processes(dir: &Path) {
    /// Rounds that tell what executing takes.
    const ROUNDS: u64 = 8;
    const AT_ONCE: usize = 4;
    let count = crate::options().processes;
    let path = cold_file(&dir.join("file"), 8);
    hold_warm(&path);
    let exe = std::env::current_exe().unwrap();
    // 10 000 a minute. A machine that cannot takes longer; the figures must be the same.
    let pace = Duration::from_micros(6000);
    let start = |n: u64, pages: u64| -> (Child, String) {
        let name = format!("storm-{n}");
        let program = dir.join(&name);
        symlink(&exe, &program).unwrap();
        let mut command = Command::new(program);
        command.arg("--read").arg(&path).arg(pages.to_string());
        (command.spawn().unwrap(), name)
    };
    let (mut child, _) = start(count + ROUNDS, 0); // what executing reads is warm from here on
    assert!(child.wait().unwrap().success());
    // Two with different beats: both must say the same.
    let mut monitors =
        ["0.5", "0.7"].map(|beat| Monitor::start(&format!("--json --by process --top 100000 {beat}")));
    let mut made: BTreeMap<u32, (String, u64)> = BTreeMap::new();
    let mut running = Vec::new();
    let mut reap = |running: &mut Vec<(Child, String, u64)>, left: usize| {
        while running.len() > left {
            let (mut child, name, pages) = running.remove(0);
            assert!(child.wait().unwrap().success(), "{name}");
            // Process ids go round; so many do not fit into one round twice.
            assert!(made.insert(child.id(), (name, pages)).is_none(), "{} again", child.id());
        }
    };
    let began = Instant::now();
    for n in 0..count + ROUNDS {
        let pages = if n < ROUNDS { 0 } else { 1 + n % 7 };
        let (child, name) = start(n, pages);
        running.push((child, name, pages));
        reap(&mut running, AT_ONCE - 1);
        sleep((began + pace * u32::try_from(n).unwrap()).saturating_duration_since(Instant::now()));
    }
    reap(&mut running, 0);
    let took = began.elapsed().as_secs_f64();
    monitors.iter_mut().for_each(|m| {
        m.catch_up();
    });
    for monitor in monitors {
        let (intervals, total) = monitor.finish_json();
        let seen = by_process(&intervals, &made);
        let of = |pid: &u32| seen.get(pid).copied().unwrap_or_default();
        let lost = passed_by_line(&total, &[]);
        // Those that read nothing are alike, but where some of what they did is lost.
        let bases = made.iter().filter(|(_, (_, pages))| *pages == 0).map(|(pid, _)| of(pid));
        let base = bases.max_by_key(|b| b[0]).unwrap();
        let mut missing = 0;
        assert!(base[0] > 0 && base[0] < 200, "executing reads {base:?}");
        for (pid, (name, pages)) in &made {
            let [accesses, hits, ahead, misses, bytes] = base;
            let want = [accesses + pages, hits + pages, ahead, misses, bytes + pages * page_size()];
            let mut got = of(pid);
            if damon() {
                // Pages of programs and libraries may have been taken away in between: then they are missed.
                got = [got[0], got[1] + got[2] + got[3] - ahead - misses, ahead, misses, got[4]];
            }
            // Of what is lost there is less, in a row with the right name, and no more than LOST has.
            let fewer = got.iter().zip(&want).all(|(got, want)| got <= want);
            assert!(
                got == want || lost > 0 && fewer,
                "{name} ({pid}): {got:?}, not {want:?}: {base:?} and {pages} pages: {total}"
            );
            missing += want[0] - got[0].min(want[0]);
        }
        assert!(missing <= MOST_PAGES * lost, "{missing} pages are missing, {lost} calls lost: {total}");
        let want: u64 = made.values().map(|(_, pages)| base[0] + pages).sum();
        let whole = figure(&total, "/read/accesses");
        let others: u64 = rows(&intervals)
            .filter(|r| !made.contains_key(&pid_of(r)))
            .map(|r| figure(r, "/read/accesses"))
            .sum();
        // The last tick is after all of them: what the rows have, the whole has.
        assert_eq!(whole, want + others - missing, "{total}");
        println!(
            "     {} processes in {took:.1} s, {} pages each for executing, {whole} accesses, {others} of others",
            made.len(),
            base[0]
        );
    }
}

fn pid_of(row: &Value) -> u32 {
    u32::try_from(figure(row, "/pid")).unwrap()
}

/// What each of the processes read, whose names must be right.
fn by_process(intervals: &[Value], made: &BTreeMap<u32, (String, u64)>) -> BTreeMap<u32, Reads> {
    let mut seen: BTreeMap<u32, Reads> = BTreeMap::new();
    let mut names: BTreeMap<u32, &str> = BTreeMap::new();
    for row in rows(intervals).filter(|r| made.contains_key(&pid_of(r))) {
        let sums = seen.entry(pid_of(row)).or_default();
        sums.iter_mut().zip(reads(&[row])).for_each(|(a, b)| *a += b);
        names.insert(pid_of(row), row["comm"].as_str().unwrap());
    }
    // A tick may come between a fork and the exec after it; the last name is what it was called.
    for (pid, name) in names {
        let of: Vec<&Value> = rows(intervals).filter(|r| pid_of(r) == pid).collect();
        assert_eq!(name, made[&pid].0, "{pid}: {of:?}");
    }
    seen
}

/// Threads that end with an unnamed file that they have written: closing it is the last that they do. The next ones take
/// their places in the kernel's memory, and keep the name of who forked them: nothing but the end tells the two apart.
pub fn one_process_after_another(dir: &Path) {
    const PAIRS: u64 = 150;
    let path = cold_file(&dir.join("file"), 8);
    let file = File::open(&path).unwrap();
    hold_warm(&path);
    let place = CString::new(dir.as_os_str().as_bytes()).unwrap();
    let mut buffer = vec![0u8; 4 * 4096];
    let mut monitor = Monitor::start("--json --by process --top 100000 0.5");
    let mut readers = BTreeMap::new();
    for n in 0..PAIRS {
        let pages = 1 + n % 4;
        let length = usize::try_from(pages * page_size()).unwrap();
        for reads in [false, true] {
            // SAFETY: the child makes nothing but system calls, on memory made ready before it was forked.
            let pid = unsafe {
                let pid = libc::fork();
                if pid == 0 && reads {
                    let got = libc::pread(file.as_raw_fd(), buffer.as_mut_ptr().cast(), length, 0);
                    libc::_exit(i32::from(usize::try_from(got) != Ok(length)));
                } else if pid == 0 {
                    let fd = libc::open(place.as_ptr(), libc::O_TMPFILE | libc::O_RDWR, 0o600);
                    let wrote = libc::pwrite(fd, buffer.as_ptr().cast(), buffer.len(), 0);
                    libc::_exit(i32::from(wrote < 1));
                }
                pid
            };
            assert!(pid > 0);
            reap(pid);
            if reads {
                assert!(readers.insert(u32::try_from(pid).unwrap(), pages).is_none(), "{pid} again");
            }
        }
        // Task structs are freed a grace period later.
        sleep(Duration::from_millis(10));
    }
    monitor.catch_up();
    let (intervals, total) = monitor.finish_json();
    let read = |r: &&Value| figure(r, "/read/accesses") > 0;
    let others: Vec<&Value> =
        rows(&intervals).filter(|r| !readers.contains_key(&pid_of(r))).filter(read).collect();
    for (pid, pages) in &readers {
        let of: Vec<&Value> = rows(&intervals).filter(|r| pid_of(r) == *pid).collect();
        assert_eq!(sum(&of, "/read/accesses"), *pages, "of {pid}: {total}; others that read: {others:?}");
    }
}

/// More processes in one interval than there is room for at a time: the tables are read in between.
pub fn more_than_the_table_in_one_interval(dir: &Path) {
    const READERS: u64 = 18_000; // of all threads there is room for 17 408
    let path = cold_file(&dir.join("file"), 2);
    let file = File::open(&path).unwrap();
    hold_warm(&path);
    let mut page = vec![0u8; 4096];
    // Its first line is the header: it counts by then.
    let monitor = Monitor::start("--csv --by comm --top 100000 3600");
    let began = Instant::now();
    for _ in 0..READERS {
        // SAFETY: the child makes nothing but system calls, on memory made ready before it was forked.
        let pid = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                let got = libc::pread(file.as_raw_fd(), page.as_mut_ptr().cast(), page.len(), 0);
                libc::_exit(i32::from(usize::try_from(got) != Ok(page.len())));
            }
            pid
        };
        assert!(pid > 0);
        reap(pid);
    }
    let took = began.elapsed();
    let name = fs::read_to_string("/proc/self/comm").unwrap();
    let lines = monitor.finish();
    let columns: Vec<&str> = lines[0].split(',').collect();
    let column = |name: &str| columns.iter().position(|c| *c == name).unwrap();
    let ours: Vec<Vec<&str>> = lines.iter().map(|l| l.split(',').collect()).collect();
    let ours: Vec<_> = ours.iter().filter(|l| l[column("comm")] == name.trim_end()).collect();
    let of = |name: &str| -> u64 { ours.iter().map(|l| l[column(name)].parse::<u64>().unwrap()).sum() };
    let (hits, others) = (of("hits"), of("readahead_hits") + of("misses"));
    assert_eq!((hits + others, ours.len()), (READERS, 1), "{hits} hits in {took:?}");
    println!("     {READERS} processes in {took:.1?}, {hits} hits");
}

/// Threads that send parts of one file, one after another: where the one before stopped is nothing to the next.
pub fn sendfile_in_turn(dir: &Path) {
    let path = cold_file(&dir.join("file"), 64);
    hold_warm(&path);
    let (file, null) = (File::open(&path).unwrap(), File::options().write(true).open("/dev/null").unwrap());
    let mut monitor = Monitor::start("--json --by process --top 100000 0.5");
    let mut senders = BTreeMap::new();
    for (first, pages) in [(0, 10), (15, 1), (20, 4), (26, 2), (0, 3), (9, 1)] {
        // SAFETY: the child makes nothing but system calls, on memory made ready before it was forked.
        let pid = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                let (mut at, length) = (first * 4096, usize::try_from(pages * 4096).unwrap_or(0));
                let sent = libc::sendfile(null.as_raw_fd(), file.as_raw_fd(), &raw mut at, length);
                libc::_exit(i32::from(usize::try_from(sent) != Ok(length)));
            }
            pid
        };
        assert!(pid > 0);
        reap(pid);
        assert!(senders.insert(u32::try_from(pid).unwrap(), u64::try_from(pages).unwrap()).is_none());
    }
    monitor.catch_up();
    let (intervals, total) = monitor.finish_json();
    for (pid, pages) in &senders {
        let of: Vec<&Value> = rows(&intervals).filter(|r| pid_of(r) == *pid).collect();
        assert_eq!(sum(&of, "/read/accesses"), *pages, "of {pid}: {total}");
        assert_eq!(sum(&of, "/read/bytes"), pages * 4096, "of {pid}: {total}");
    }
}

/// Ids go round, and a small machine's soon. The kernel can be told which one is next.
pub fn a_process_id_that_comes_again(dir: &Path) {
    const LAST: &str = "/proc/sys/kernel/ns_last_pid";
    if !Path::new(LAST).exists() {
        println!("     not here: {LAST} is not there");
        return;
    }
    let path = cold_file(&dir.join("file"), 32);
    let file = File::open(&path).unwrap();
    hold_warm(&path);
    let mut monitor = Monitor::start("--json --by process --top 100000 1");
    // One right after each tick: the next one has the id that the one before had in the interval before. The second
    // does more of everything than the first, so that it looks as if it had gone on; the third less.
    let mut pid = 0;
    for (name, pages) in [("first", 3), ("second", 9), ("third", 2)] {
        pid = again(pid, || fork_reader(name, &file, pages, None));
        monitor.line();
    }
    // And one after the other, with no tick in between.
    let pages: u64 = (0..5)
        .map(|n| {
            pid = again(pid, || fork_reader("once more", &file, 4 + n, None));
            4 + n
        })
        .sum();
    monitor.line();
    let (intervals, total) = monitor.finish_json();
    let of = |name: &str| {
        let of: Vec<_> =
            rows_of(&intervals, unsigned(pid)).into_iter().filter(|r| r["comm"] == name).collect();
        reads(&of)[..4].to_vec()
    };
    for (name, pages) in [("first", 3), ("second", 9), ("third", 2), ("once more", pages)] {
        assert_eq!(of(name), [pages, pages, 0, 0], "{name}: {:?}", rows_of(&intervals, unsigned(pid)));
    }
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
}

/// Monitors that begin, and look a few times, while short processes come and go: a table that has room refuses nobody.
pub fn starts_beside_short_processes(dir: &Path) {
    /// Processes in one interval.
    const SHORT: u64 = 70;
    let path = cold_file(&dir.join("file"), 8);
    let file = File::open(&path).unwrap();
    hold_warm(&path);
    let starts = (crate::options().processes / 250).max(1);
    for start in 0..starts {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Some are there when it begins, whatever it does just then.
            let beside = scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    reap(fork_reader("beside", &file, 1, None));
                }
            });
            let mut session = Session::open(&Options::default()).unwrap();
            for _ in 0..3 {
                (0..SHORT).for_each(|n| reap(fork_reader("short", &file, 1 + n % 7, None)));
                let lost = session.sample().unwrap().lost;
                let refused: Vec<_> = lost
                    .by_reason
                    .iter()
                    .filter(|(why, n)| {
                        ["busy", "requests_full", "processes_full"].contains(&why.as_ref()) && *n > 0
                    })
                    .collect();
                assert!(refused.is_empty(), "start {start}: {lost:?}");
            }
            stop.store(true, Ordering::SeqCst);
            beside.join().unwrap();
        });
    }
    println!("     {starts} starts");
}

/// A process that has the id given (any, if 0), and is gone.
fn again(wanted: i32, mut fork: impl FnMut() -> i32) -> i32 {
    if wanted == 0 {
        let pid = fork();
        reap(pid);
        return pid;
    }
    // Somebody else may be faster.
    for _ in 0..50 {
        fs::write("/proc/sys/kernel/ns_last_pid", (wanted - 1).to_string()).unwrap();
        // Forking reads pages: only the one with the id wanted may.
        // SAFETY: the child makes no more than system calls.
        let probe = unsafe { libc::fork() };
        if probe == 0 {
            // SAFETY: ends at once, without anything of the parent's being run.
            unsafe { libc::_exit(0) };
        }
        reap(probe);
        if probe == wanted {
            fs::write("/proc/sys/kernel/ns_last_pid", (wanted - 1).to_string()).unwrap();
            let pid = fork();
            reap(pid);
            if pid == wanted {
                return pid;
            }
            panic!("{pid} in the place of {wanted}: a busy machine, try again");
        }
    }
    panic!("{wanted} does not come again");
}
