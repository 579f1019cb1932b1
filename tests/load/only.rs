//! What is chosen by an option, beside others that fill the tables, and what has gone by the time anybody looks.

use std::ffi::CString;
use std::fs;
use std::fs::File;
use std::io;
use std::io::BufRead as _;
use std::io::BufReader;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use serde_json::Value;

use crate::owners::hierarchy;
use crate::tools::*;

/// Rows that there are, and what others do with them.
const ROOM: u64 = 64;
const OTHERS: u64 = 300;

/// Files of others, more than the table holds; each is read by the reader.
fn crowd(dir: &Path, reader: &mut Reader) {
    for n in 0..OTHERS {
        let path = dir.join(format!("other-{n}"));
        if !path.exists() {
            fs::write(&path, vec![0x5a; 100]).unwrap();
        }
        reader.tell("read", &path);
    }
}

/// Accesses in all: of the line, and of a process.
fn accesses(monitor: Monitor, pid: u32) -> (u64, u64) {
    let (intervals, total) = monitor.finish_json();
    (figure(&total, "/read/accesses"), sum(&rows_of(&intervals, pid), "/read/accesses"))
}

/// The file is the one that was there when the command began, whatever it is called later, and no other.
pub fn a_file_beside_many(dir: &Path) {
    const PAGES: u64 = 1024;
    const TIMES: u64 = 64;
    let path = cold_file(&dir.join("file"), PAGES);
    let mut whole = Monitor::start("--json --by file --top 100000 1");
    let options =
        |by: &str| format!("--json --by {by} --top 100000 --file {} --file-table {ROOM} 1", path.display());
    let mut monitors = ["process", "file"].map(|by| Monitor::start(&options(by)));
    let (mut other, mut reader) = (Reader::new(), Reader::new());
    crowd(dir, &mut other);
    for _ in 0..TIMES {
        reader.tell("read", &path);
    }
    crowd(dir, &mut other);
    for monitor in monitors.iter_mut().chain([&mut whole]) {
        monitor.catch_up();
    }
    let want = TIMES * PAGES;
    // The same rows of who asks for everything.
    let (intervals, _) = whole.finish_json();
    let name = path.to_str().unwrap();
    let rows: Vec<_> = rows(&intervals).filter(|r| r["path"] == name).collect();
    assert_eq!(sum(&rows, "/read/accesses"), want, "of all files");

    // Renamed, and another in its place.
    let moved = dir.join("moved");
    fs::rename(&path, &moved).unwrap();
    fs::write(&path, vec![0x5a; 8192]).unwrap();
    reader.tell("read", &moved);
    reader.tell("read", &path);
    // Deleted while it is open.
    let held = File::open(&moved).unwrap();
    fs::remove_file(&moved).unwrap();
    crowd(dir, &mut other);
    let hidden = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), held.as_raw_fd()));
    reader.tell("read", &hidden);
    // Gone, and others may have its number.
    let number = |file: &File| {
        let mut generation: libc::c_long = 0;
        // SAFETY: FS_IOC_GETVERSION writes one number.
        unsafe { libc::ioctl(file.as_raw_fd(), 0x8008_7601, &raw mut generation) };
        (std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap()), generation as u32)
    };
    let mut numbers = vec![number(&held)];
    drop(held);
    for n in 0..8 {
        let next = dir.join(format!("next-{n}"));
        fs::write(&next, vec![0x5a; 8192]).unwrap();
        numbers.push(number(&File::open(&next).unwrap()));
        reader.tell("read", &next);
    }
    let want = want + 2 * PAGES;
    let [by_process, by_file] = monitors.map(|mut monitor| {
        monitor.catch_up();
        monitor
    });
    let (intervals, total) = by_file.finish_json();
    let told: Vec<String> = crate::tools::rows(&intervals)
        .map(|r| format!("{} {} {}", r["path"], r["deleted"], r["read"]["accesses"]))
        .collect();
    assert_eq!(accesses(by_process, reader.pid()), (want, want), "{told:?} {numbers:?}");
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
    assert_eq!(figure(&total, "/read/accesses"), want, "{total}");
    let rows: Vec<_> = crate::tools::rows(&intervals).collect();
    assert_eq!(sum(&rows, "/read/accesses"), want, "by file");
    reader.end();
    other.end();
}

/// Two options at once, and tables of threads and of files that others have filled.
pub fn a_name_beside_many(dir: &Path) {
    const PAGES: u64 = 100;
    const READERS: u64 = 20;
    let path = cold_file(&dir.join("file"), PAGES + 1);
    hold_warm(&path);
    let (file, other) = (File::open(&path).unwrap(), cold_file(&dir.join("other"), PAGES + 1));
    hold_warm(&other);
    let other = File::open(&other).unwrap();
    let common = format!("--json --by comm --top 100000 --table-size 16 --file-table {ROOM}");
    let mut of_name = Monitor::start(&format!("{common} --comm chosen 1"));
    let mut of_both = Monitor::start(&format!("{common} --comm chosen --file {} 1", path.display()));
    // Rows of others are free again at the next tick only.
    let others: Vec<i32> =
        (0..OTHERS).map(|n| fork_reader(&format!("other-{n}"), &file, PAGES, None)).collect();
    let chosen: Vec<i32> = (0..2 * READERS)
        .map(|n| fork_reader("chosen", if n % 2 == 0 { &file } else { &other }, PAGES, None))
        .collect();
    others.iter().chain(&chosen).for_each(|pid| reap(*pid));
    for monitor in [&mut of_name, &mut of_both] {
        monitor.catch_up();
    }
    for (monitor, want) in [(of_name, 2 * READERS * PAGES), (of_both, READERS * PAGES)] {
        let (intervals, total) = monitor.finish_json();
        assert_eq!(figure(&total, "/read/accesses"), want, "{total}");
        let rows: Vec<_> = rows(&intervals).collect();
        assert!(rows.iter().all(|r| r["comm"] == "chosen"), "{rows:?}");
        assert_eq!(sum(&rows, "/read/accesses"), want, "{total}");
    }
}

/// A file table without room for the chosen ones themselves: what is not known is not said.
pub fn a_mount_with_more_files_than_room(dir: &Path) {
    let options = format!("--json --mount {} --file-table 16 1", dir.display());
    let mut monitor = Monitor::start(&options);
    let mut reader = Reader::new();
    crowd(dir, &mut reader);
    monitor.catch_up();
    reader.end();
    let (intervals, total) = monitor.finish_json();
    assert!(figure(&total, "/lost/files_full") > 0, "{total}");
    assert_eq!(total["read"]["accesses"], Value::Null, "{total}");
    for line in &intervals {
        let full = figure(line, "/lost/files_full") > 0;
        assert_eq!(line["read"]["accesses"].is_null(), full, "{line}");
    }
}

/// A process that goes into a cgroup, reads the first pages of a file, and is gone. The child makes nothing but system
/// calls.
fn read_in(group: &Path, file: &File, pages: u64) {
    let procs = CString::new(group.join("cgroup.procs").as_os_str().as_bytes()).unwrap();
    let mut buffer = vec![0u8; usize::try_from(page_size()).unwrap()];
    // SAFETY: see above; all memory was made ready before.
    let pid = unsafe {
        let pid = libc::fork();
        assert!(pid >= 0, "{}", io::Error::last_os_error());
        if pid == 0 {
            let fd = libc::open(procs.as_ptr(), libc::O_WRONLY);
            let mut bad = i32::from(libc::write(fd, b"0".as_ptr().cast(), 1) != 1);
            // Where a move is not seen, what is executed next is judged anew: another name does the same.
            libc::prctl(libc::PR_SET_NAME, c"in-a-group".as_ptr());
            for n in 0..pages {
                let at = libc::off_t::try_from(n).unwrap_or(0) * 4096;
                bad |= i32::from(libc::pread(file.as_raw_fd(), buffer.as_mut_ptr().cast(), 4096, at) != 4096);
            }
            libc::_exit(bad);
        }
        pid
    };
    reap(pid);
}

/// Cgroups that are made and removed again, and whatever a test leaves behind.
struct Group(PathBuf);

impl Group {
    fn new(path: PathBuf) -> Self {
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(entry.path());
        }
        let mut left = 0;
        while fs::remove_dir(&self.0).is_err() && left < 200 {
            left += 1;
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// Groups below the chosen one that are gone before anybody looks, the chosen one made anew, and one beside it of nearly
/// the same name.
pub fn short_lived_cgroups(dir: &Path) {
    const GROUPS: u64 = 40;
    const PAGES: u64 = 100;
    let path = cold_file(&dir.join("file"), PAGES + 1);
    hold_warm(&path);
    let file = File::open(&path).unwrap();
    let name = format!("cachetop-only-{}", std::process::id());
    let group = Group::new(hierarchy().join(&name));
    let beside = Group::new(hierarchy().join(format!("{name}-beside")));
    let mut monitor = Monitor::start(&format!("--json --by cgroup --top 100000 --cgroup /{name} 1"));
    for n in 0..GROUPS {
        let below = Group::new(group.0.join(n.to_string()));
        let deeper = Group::new(below.0.join("deeper"));
        read_in(if n % 2 == 0 { &below.0 } else { &deeper.0 }, &file, PAGES);
        read_in(&beside.0, &file, PAGES);
    }
    let seen = monitor.catch_up();
    let place = group.0.clone();
    drop(group);
    assert!(!place.exists());
    let again = Group::new(place);
    read_in(&again.0, &file, PAGES);
    monitor.catch_up();
    let (intervals, total) = monitor.finish_json();
    drop((again, beside));
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
    let before: Vec<_> = intervals[..seen].iter().collect();
    assert_eq!(sum(&before, "/read/accesses"), GROUPS * PAGES, "of groups that have gone");
    assert_eq!(figure(&total, "/read/accesses"), (GROUPS + 1) * PAGES, "with the group made anew");
    let rows: Vec<_> = rows(&intervals).collect();
    assert_eq!(sum(&rows, "/read/accesses"), (GROUPS + 1) * PAGES, "in rows");
}

/// Nanoseconds that a process with one thread has been on a processor.
fn ran(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// A tick costs what happened, not what there is: new cgroups on a machine with thousands.
pub fn four_thousand_cgroups(dir: &Path) {
    const GROUPS: u64 = 4000;
    const NEW: u64 = 200;
    let path = cold_file(&dir.join("file"), 2);
    hold_warm(&path);
    let file = File::open(&path).unwrap();
    let many = Group::new(hierarchy().join(format!("cachetop-many-{}", std::process::id())));
    for n in 0..GROUPS {
        fs::create_dir(many.0.join(n.to_string())).unwrap();
    }
    let mut monitor = Monitor::start("--json --by cgroup --top 100000 1");
    monitor.catch_up();
    let before = (ran(monitor.pid()), monitor.lines.len());
    monitor.catch_up();
    let quiet = (ran(monitor.pid()) - before.0) / (monitor.catch_up() - before.1) as u64;
    let before = (ran(monitor.pid()), monitor.lines.len());
    for n in 0..NEW {
        // One in two is gone before the next one comes.
        let group = Group::new(many.0.join(format!("new-{n}")));
        read_in(&group.0, &file, 1);
        if n % 2 == 0 {
            std::mem::forget(group);
        }
    }
    let ticks = monitor.catch_up() - before.1;
    let took = ran(monitor.pid()) - before.0;
    let (intervals, _) = monitor.finish_json();
    drop(many);
    println!(
        "     {ticks} ticks, {NEW} new groups: {} us of CPU, and {} us for a quiet tick",
        took / 1000,
        quiet / 1000
    );
    for n in (0..NEW).step_by(2) {
        let end = format!("/new-{n}");
        let named = rows(&intervals).any(|r| r["cgroup"].as_str().unwrap().ends_with(&end));
        assert!(named, "one that is there has its name: {end}");
    }
    // To walk over all groups for each new one takes 40 ms each, and more; in emulation ten times that, as all does.
    let each = if Path::new("/modules").exists() { 10_000_000 } else { 1_000_000 };
    let more = took.saturating_sub(quiet * ticks as u64);
    assert!(more < NEW * each, "{more} ns for {NEW} names");
}

/// In a PID namespace the monitor has another number there than outside, where that number is another process's.
pub fn in_a_pid_namespace(dir: &Path) {
    const PAGES: u64 = 321;
    let path = cold_file(&dir.join("file"), PAGES);
    let mut reader = Reader::new();
    let script = "echo $(($1 - 1)) > /proc/sys/kernel/ns_last_pid; shift; \"$@\" & wait";
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script, "sh"]);
    command.arg(reader.pid().to_string()).arg(program());
    command.args("--json --by process --top 100000 1".split(' '));
    plain(&mut command);
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut line = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let mut intervals = vec![line()];
    reader.tell("read", &path);
    intervals.extend([line(), line(), line()]);
    // Inside it has the reader's number.
    let pid = reader.pid();
    let inside = fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let numbers = status.lines().find_map(|l| l.strip_prefix("NSpid:"))?;
        let numbers: Vec<u32> = numbers.split_whitespace().map(|n| n.parse().unwrap()).collect();
        (numbers.len() > 1 && numbers.last() == Some(&pid) && status.starts_with("Name:\tcachestat"))
            .then(|| numbers[0])
    });
    process.kill().unwrap();
    process.wait().unwrap();
    reader.end();
    let inside = inside.expect("the monitor has the reader's number");
    let seen = sum(&rows_of(&intervals, pid), "/read/accesses");
    let own = rows_of(&intervals, inside);
    assert_eq!((seen, own.len()), (PAGES, 0), "the reader's pages, and rows of the monitor: {own:?}");
}
