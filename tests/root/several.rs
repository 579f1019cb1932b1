//! Several values of one option: processes, names, users and cgroups of which any will do.

use std::fs;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::tools::*;

const ACCESSES: &str = "/read/accesses";
const PAGES: u64 = 50;

/// What processes that share a number read, one after the other.
const AGAIN: u64 = 20;

fn list(pids: impl IntoIterator<Item = u32>) -> String {
    pids.into_iter().map(|pid| pid.to_string()).collect::<Vec<_>>().join(",")
}

/// Pages that processes read, by number, of rows and of the line.
fn told(intervals: &[Value], total: &Value, pids: &[u32]) -> (u64, Vec<u64>) {
    let of = |pid: &u32| sum(&rows_of(intervals, *pid), ACCESSES);
    // Rows together are the line, and nobody else has one.
    let all: Vec<&Value> = rows(intervals).collect();
    assert_eq!(sum(&all, ACCESSES), figure(total, ACCESSES), "{total}");
    for row in all.iter().filter(|row| row["other"] != true && figure(row, ACCESSES) > 0) {
        assert!(pids.contains(&(row["pid"].as_u64().unwrap() as u32)), "{row}");
    }
    lost_nothing(total);
    (figure(total, ACCESSES), pids.iter().map(of).collect())
}

/// Nothing for want of room. On a machine that is busy a program may have been passed by at something else.
fn lost_nothing(line: &Value) {
    assert_eq!(figure(line, "/lost/total"), figure(line, "/lost/recursion"), "{line}");
}

/// A process with a number that another had, which reads the first pages of a file.
fn with_number(pid: u32, file: &File, pages: u64) -> bool {
    #[repr(C)]
    #[derive(Default)]
    struct Arguments {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: [u64; 2],
        tls: u64,
        set_tid: u64,
        set_tid_size: u64,
    }
    let number = signed(pid);
    let arguments = Arguments {
        exit_signal: libc::SIGCHLD as u64,
        set_tid: &raw const number as u64,
        set_tid_size: 1,
        ..Arguments::default()
    };
    let mut buffer = vec![0u8; usize::try_from(pages * page_size()).unwrap()];
    // SAFETY: as fork(2); the child makes nothing but system calls, on memory made ready before.
    let made = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<Arguments>()) };
    if made == 0 {
        // SAFETY: see above.
        unsafe {
            let got = libc::pread(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0);
            libc::_exit(i32::from(usize::try_from(got) != Ok(buffer.len())));
        }
    }
    if made < 0 {
        // Somebody else was faster, and has it.
        let error = io::Error::last_os_error();
        assert_eq!(error.raw_os_error(), Some(libc::EEXIST), "no second process {pid}: {error}");
        return false;
    }
    assert_eq!(made, i64::from(number));
    reap(number);
    true
}

/// Sixty processes of one name, of which half are asked for, in two options. One of them ends, and another has its number then;
/// a process that is counted by name ends when all have ended.
pub fn several_processes(dir: &Path) {
    let path = cold_file(&dir.join("file"), PAGES);
    hold_warm(&path);
    let mut readers: Vec<Reader> = (0..60).map(|_| Reader::new()).collect();
    let pids: Vec<u32> = readers.iter().map(Reader::pid).collect();
    let asked: Vec<u32> = pids.iter().copied().step_by(2).collect();
    let (some, more) = asked.split_at(20);
    // Numbers that come twice are one process.
    let filter = format!("-p {} -p {}", list(some.iter().copied()), list(more.iter().chain(some).copied()));
    let options = format!("--json --by process --top 100000 {filter} 0.5");
    let mut monitor = Monitor::start(&options);
    let mut by_file = Monitor::start(&format!("--json --by file {filter} 0.5"));
    let mut whole = Monitor::start("--json --by process --top 100000 0.5");
    for (n, reader) in readers.iter_mut().enumerate() {
        (0..=n % 4).for_each(|_| reader.tell("read", &path));
    }
    // The first one ends, and others have its number: of another start each, and some in the row that another has just given back.
    readers.remove(0).end();
    let same = File::open(&path).unwrap();
    let with_its_number = |n: u64| {
        std::thread::sleep(Duration::from_millis(50 * n));
        with_number(pids[0], &same, AGAIN)
    };
    let again = (0..10).filter(|n| with_its_number(*n)).count() as u64;
    readers[1].tell("read", &path);
    let want = |n: usize| PAGES * (n as u64 % 4 + 1 + u64::from(n == 2));
    let wants: Vec<u64> = (0..60).step_by(2).map(want).collect();
    for monitor in [&mut monitor, &mut by_file, &mut whole] {
        monitor.catch_up();
    }
    assert!(monitor.runs(), "the others go on");
    let (intervals, total) = whole.finish_json();
    // On a busy machine somebody else may have had the number in between.
    let name = fs::read_to_string("/proc/self/comm").unwrap();
    let ours = |pid| rows_of(&intervals, pid).into_iter().filter(|r| r["comm"] == name.trim_end()).collect();
    let all: Vec<u64> = pids
        .iter()
        .map(|pid| {
            let ours: Vec<&Value> = ours(*pid);
            sum(&ours, ACCESSES)
        })
        .collect();
    let twice = |n: usize| if n == 0 { again * AGAIN } else { 0 };
    assert_eq!(all, (0..60).map(|n| want(n) + twice(n)).collect::<Vec<_>>(), "{total}");
    // Those of the run add up to its line, and have what each read: the first one's number was that of eleven.
    let of_run: Vec<Value> = total["total_rows"].as_array().unwrap().clone();
    assert_eq!(sum(&of_run.iter().collect::<Vec<_>>(), ACCESSES), figure(&total, ACCESSES));
    let of = |pid: &u32| sum(&of_run.iter().filter(|r| r["pid"] == *pid).collect::<Vec<_>>(), ACCESSES);
    assert_eq!(pids[1..].iter().map(of).collect::<Vec<_>>(), all[1..], "{total}");
    let (intervals, total) = by_file.finish_json();
    let name = fs::canonicalize(&path).unwrap();
    let files: Vec<&Value> = rows(&intervals).filter(|r| r["path"] == name.to_str().unwrap()).collect();
    assert_eq!(sum(&files, ACCESSES), wants.iter().sum::<u64>(), "{total}");
    // All have ended: so does the command, and says so.
    readers.into_iter().for_each(Reader::end);
    let (status, err) = monitor.ended();
    // On a machine that is busy.
    let busy = |line: &&str| ["(recursion ", "this interval took "].iter().any(|text| line.contains(text));
    let said: Vec<&str> = err.lines().filter(|line| !busy(line)).collect();
    assert_eq!((status.code(), said), (Some(0), vec!["cachestat: all 30 processes have ended"]), "{err}");
    let mut intervals: Vec<Value> =
        monitor.lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers = Value::from(in_order(&asked));
    assert!(intervals.iter().all(|interval| interval["pids"] == numbers && interval.get("pid").is_none()));
    let total = intervals.pop().filter(|last| last["total"] == true);
    // Nobody interrupted it, so that there is no total.
    assert!(total.is_none() || intervals.len() > 1, "{total:?}");
    let intervals: Vec<Value> = intervals.into_iter().chain(total).collect();
    let lines: Vec<&Value> = intervals.iter().collect();
    let own: Vec<u64> = asked.iter().map(|pid| sum(&rows_of(&intervals, *pid), ACCESSES)).collect();
    assert_eq!((own, sum(&lines, ACCESSES)), (wants.clone(), wants.iter().sum()));
}

fn in_order(pids: &[u32]) -> Vec<u32> {
    let mut pids = pids.to_vec();
    pids.sort_unstable();
    pids
}

/// What is not there, or is a thread, is named, wherever it stands in the list.
pub fn several_of_which_one_is_wrong(_: &Path) {
    let (reader, gone) = (Reader::new(), Reader::new());
    let (pid, ended) = (reader.pid(), gone.pid());
    gone.end();
    // Of a process of more than one thread: our own.
    let (sender, thread) = std::sync::mpsc::channel();
    let (end, ended_when) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        // SAFETY: asks for a number.
        sender.send(unsafe { libc::gettid() }).unwrap();
        let _ = ended_when.recv();
    });
    let (tid, own) = (thread.recv().unwrap(), std::process::id());
    let no_process = format!("there is no process {ended}");
    let of_thread = format!("{tid} is a thread of process {own}");
    for (options, said) in [
        (format!("-p {pid},{ended} 1 1"), &no_process),
        (format!("-p {ended},{pid} 1 1"), &no_process),
        (format!("-p {pid} -p {tid} 1 1"), &of_thread),
        (format!("-p {pid},{tid} --what-if 1"), &of_thread),
        (format!("-p {pid},{ended} --blame 1"), &no_process),
        (format!("-p {pid},{ended} --working-set 1"), &no_process),
    ] {
        let (code, out, err) = output(&mut cachestat(&options));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{options}: {err}");
        assert!(err.contains(said.as_str()) && err.contains("\nremedy: "), "{options}: {err}");
    }
    for (options, said) in [
        (format!("-p {pid} -u no-body-has-it 1 1"), "there is no user no-body-has-it"),
        ("--cgroup / --cgroup /no/such 1 1".into(), "there is no cgroup /no/such"),
        ("--what-if 1 --cgroup / --cgroup /a".into(), "take one '--cgroup'"),
        (format!("-p {pid},{own} --for 1"), "take one '-p'"),
    ] {
        let (code, _, err) = output(&mut cachestat(&options));
        assert!(code == Some(2) && err.contains(said), "{options}: {err}");
    }
    drop(end);
    other.join().unwrap();
    reader.end();
}

const NAMES: [&str; 4] = ["several-a", "several,b", "esc\x1b[1m", "another"];
const USERS: [u32; 3] = [0, 64001, 64002];

/// Processes of four names and three users, in rows by name and by user, of which some are asked for.
pub fn several_names_and_users(dir: &Path) {
    let path = cold_file(&dir.join("file"), 13);
    hold_warm(&path);
    let file = File::open(&path).unwrap();
    let names = ["--comm", NAMES[0], "--comm", NAMES[1], "--comm", NAMES[2]];
    let json = |by: &str, more: &str| format!("--json --by {by} --top 100000 {more} 0.5");
    let mut monitors = [
        Monitor::start_with(&names, &json("comm", "")),
        Monitor::start_with(&[], &json("user", "-u 64001 --user 64002")),
        Monitor::start_with(&names, &json("user", "-u root,64002")),
        Monitor::start_with(&["--comm", "several-a,several,b"], &json("comm", "")),
    ];
    let mut pages = vec![[0; USERS.len()]; NAMES.len()];
    for (n, name) in NAMES.iter().enumerate() {
        for (u, uid) in USERS.iter().enumerate() {
            for times in 0..=(n + u) as u64 {
                pages[n][u] += times + 1;
                reap(fork_reader_as(name, Some(*uid), &file, times + 1, None));
            }
        }
    }
    let sum_of = |ns: &[usize], us: &[usize]| -> u64 {
        ns.iter().flat_map(|n| us.iter().map(|u| pages[*n][*u])).sum()
    };
    let wants =
        [sum_of(&[0, 1, 2], &[0, 1, 2]), sum_of(&[0, 1, 2, 3], &[1, 2]), sum_of(&[0, 1, 2], &[0, 2]), 0];
    for monitor in &mut monitors {
        monitor.catch_up();
    }
    let told = monitors.map(Monitor::finish_json);
    let totals: Vec<u64> = told.iter().map(|(_, total)| figure(total, ACCESSES)).collect();
    assert_eq!(totals, wants, "{pages:?}");
    for (intervals, total) in &told {
        let all: Vec<&Value> = rows(intervals).collect();
        assert_eq!(sum(&all, ACCESSES), figure(total, ACCESSES), "{total}");
        lost_nothing(total);
    }
    let of = |at: usize, key: &str, value: Value| {
        let rows: Vec<&Value> = rows(&told[at].0).filter(|row| row[key] == value).collect();
        sum(&rows, ACCESSES)
    };
    for (n, name) in NAMES.iter().enumerate() {
        let want = if n < 3 { sum_of(&[n], &[0, 1, 2]) } else { 0 };
        assert_eq!(of(0, "comm", (*name).into()), want, "{name}");
    }
    for (u, uid) in USERS.iter().enumerate() {
        let want = if u > 0 { sum_of(&[0, 1, 2, 3], &[u]) } else { 0 };
        assert_eq!(of(1, "uid", (*uid).into()), want, "{uid}");
    }
}

/// Who reads from overlayfs does so with the rights of whoever mounted it, and is who he is.
pub fn several_users_on_overlayfs(dir: &Path) {
    const READ: u64 = PAGES / 2;
    let at = |name: &str| dir.join("overlay").join(name);
    ["lower", "upper", "work", "shown"].iter().for_each(|name| fs::create_dir_all(at(name)).unwrap());
    // Its pages are those of the file below, which is no reason to keep the mount.
    let below = cold_file(&at("lower").join("file"), PAGES);
    hold_warm(&below);
    let layers = ["lower", "upper", "work"].map(|name| format!("{name}dir={}", at(name).display())).join(",");
    let words = ["-t", "overlay", "overlay", "-o", &layers];
    assert!(Command::new("mount").args(words).arg(at("shown")).status().unwrap().success());
    let files = [at("shown").join("file"), below].map(|path| File::open(path).unwrap());
    let mut one = Monitor::start("--json --by user --top 100000 -u 64001 0.5");
    for n in 0..60 {
        reap(fork_reader_as("shown", Some(USERS[1 + n % 2]), &files[n / 2 % 2], READ, None));
    }
    one.catch_up();
    let (intervals, total) = one.finish_json();
    assert_eq!(
        (figure(&total, ACCESSES), sum(&rows(&intervals).collect::<Vec<_>>(), ACCESSES)),
        (30 * READ, 30 * READ)
    );
    drop(files);
    assert!(Command::new("umount").arg(at("shown")).status().unwrap().success());
}

/// The hierarchy that the memory controller is in.
fn hierarchy() -> PathBuf {
    let v1 = Path::new("/sys/fs/cgroup/memory");
    if v1.join("cgroup.procs").exists() { v1.into() } else { "/sys/fs/cgroup".into() }
}

/// Two cgroups of three are asked for, one of which has another below it, and goes, and is made anew.
pub fn several_cgroups(dir: &Path) {
    let path = cold_file(&dir.join("file"), PAGES);
    hold_warm(&path);
    let top = hierarchy();
    let own = std::process::id();
    let group = |name: &str| top.join(format!("cachetop-several-{own}-{name}"));
    let groups = ["a", "b", "c", "b/below"].map(group);
    groups.iter().for_each(|group| fs::create_dir(group).unwrap());
    let asked = |n: usize| format!("/{}", groups[n].strip_prefix(&top).unwrap().display());
    // One of them twice.
    let filter = format!("--cgroup {} --cgroup {} --cgroup {}", asked(0), groups[1].display(), asked(1));
    let mut monitor = Monitor::start(&format!("--json --by cgroup --top 100000 {filter} 0.5"));
    let mut reader = Reader::new();
    let mut moved = |group: &Path, times: usize| {
        fs::write(group.join("cgroup.procs"), reader.pid().to_string()).unwrap();
        (0..times).for_each(|_| reader.tell("read", &path));
    };
    for (n, group) in groups.iter().enumerate() {
        moved(group, n + 1);
    }
    moved(&top, 1);
    // Made anew, more often than there is room for in what is remembered; not so often in a second that it gets no rows.
    for _ in 0..AGAIN {
        fs::remove_dir(&groups[0]).unwrap();
        fs::create_dir(&groups[0]).unwrap();
        moved(&groups[0], 1);
        moved(&top, 1);
        std::thread::sleep(std::time::Duration::from_millis(400));
    }
    monitor.catch_up();
    let (intervals, total) = monitor.finish_json();
    reader.end();
    groups.iter().rev().for_each(|group| fs::remove_dir(group).unwrap());
    let want = [1 + AGAIN, 2, 0, 4].map(|times| times * PAGES);
    let of = |n: usize| {
        let path = asked(n);
        let rows: Vec<&Value> = rows(&intervals).filter(|row| row["cgroup"] == path).collect();
        sum(&rows, ACCESSES)
    };
    assert_eq!([1, 2, 3].map(of), want[1..], "{total}");
    // Some of the first have gone before their names were looked up.
    let gone: Vec<&Value> = rows(&intervals)
        .filter(|row| row["cgroup"].as_str().is_some_and(|name| name.ends_with("(gone)")))
        .collect();
    assert_eq!(of(0) + sum(&gone, ACCESSES), want[0], "{total}");
    assert_eq!(figure(&total, ACCESSES), want.iter().sum::<u64>(), "{total}");
}

/// What a recording that has everything says of several, live and when it is replayed.
pub fn several_of_a_recording(dir: &Path) {
    let path = cold_file(&dir.join("file"), PAGES);
    hold_warm(&path);
    let mut readers: Vec<Reader> = (0..6).map(|_| Reader::new()).collect();
    let pids: Vec<u32> = readers.iter().map(Reader::pid).collect();
    let recording = dir.join("recording");
    let asked = format!("-p {} -u root,64001", list(pids[..3].iter().copied()));
    let by = "--json --by process --top 100000";
    let mut monitor = Monitor::start(&format!("{by} {asked} --record {} 0.5", recording.display()));
    for (n, reader) in readers.iter_mut().enumerate() {
        (0..=n).for_each(|_| reader.tell("read", &path));
    }
    monitor.catch_up();
    let (intervals, total) = monitor.finish_json();
    let want = (6 * PAGES, vec![PAGES, 2 * PAGES, 3 * PAGES]);
    assert_eq!(told(&intervals, &total, &pids[..3]), want);
    for (options, pids, want) in [
        (asked.as_str(), &pids[..3], want),
        (
            &format!("-p {}", list(pids[3..5].iter().copied())),
            &pids[3..5],
            (9 * PAGES, vec![4 * PAGES, 5 * PAGES]),
        ),
        (&format!("-p {} -u 64001,64002", list(pids[3..5].iter().copied())), &pids[3..5], (0, vec![0, 0])),
    ] {
        let (code, out, err) =
            output(&mut cachestat(&format!("{by} {options} --replay {}", recording.display())));
        assert_eq!(code, Some(0), "{err}");
        let lines: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let lines: Vec<Value> = lines.into_iter().filter(|line| line["total"] != true).collect();
        let own: Vec<u64> = pids.iter().map(|pid| sum(&rows_of(&lines, *pid), ACCESSES)).collect();
        assert_eq!((sum(&lines.iter().collect::<Vec<_>>(), ACCESSES), own), want, "{options}");
    }
    readers.into_iter().for_each(Reader::end);
}

/// Faults on a page that is there, of one process under two names, the last of each before and after the change.
const FAULTS: [(&std::ffi::CStr, u64); 2] = [(c"faults-a", 7), (c"faults-b", 12)];

/// Rows of files have what rows of processes have, under either name: also the last fault before a change of name.
pub fn several_names_of_who_faults(dir: &Path) {
    let path = cold_file(&dir.join("file"), 1);
    hold_warm(&path);
    let file = File::open(&path).unwrap();
    let options =
        |name: &str, by: &str| format!("--json --by {by} --top 100000 --comm {name} --file-table 4096 0.5");
    let names = FAULTS.map(|(name, _)| name.to_str().unwrap());
    let mut monitors = names.map(|name| ["file", "process"].map(|by| Monitor::start(&options(name, by))));
    const TIMES: u64 = 20;
    for _ in 0..TIMES {
        reap(fork_mapper(&file));
    }
    for monitor in monitors.iter_mut().flatten() {
        monitor.catch_up();
    }
    for ((name, faults), told) in FAULTS.iter().zip(monitors.map(|pair| pair.map(Monitor::finish_json))) {
        let [by_file, by_process] = told.map(|(intervals, total)| {
            lost_nothing(&total);
            let own: Vec<&Value> = rows(&intervals).filter(|r| r["path"] == path.to_str().unwrap()).collect();
            (figure(&total, "/fault/hits"), sum(&own, "/fault/hits"))
        });
        assert_eq!(by_file.1, TIMES * faults, "{name:?}");
        // What it maps of its own program is no more than that of other files.
        assert_eq!(by_file.0, by_process.0, "{name:?}");
    }
}

/// A process that maps the first page of a file and touches it, again and again, under one name and then another.
fn fork_mapper(file: &File) -> i32 {
    let len = usize::try_from(page_size()).unwrap();
    // SAFETY: the child makes nothing but system calls, and reads what it has just mapped.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0, "{}", io::Error::last_os_error());
        if pid == 0 {
            for (name, faults) in FAULTS {
                libc::prctl(libc::PR_SET_NAME, name.as_ptr());
                for _ in 0..faults {
                    let (read, private) = (libc::PROT_READ, libc::MAP_PRIVATE);
                    let at = libc::mmap(std::ptr::null_mut(), len, read, private, file.as_raw_fd(), 0);
                    if at == libc::MAP_FAILED {
                        libc::_exit(1);
                    }
                    std::hint::black_box(at.cast::<u8>().read_volatile());
                    libc::munmap(at, len);
                }
            }
            libc::_exit(0);
        }
        pid
    }
}
