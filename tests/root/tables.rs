//! The tables in the kernel: what is said of them is what the kernel has.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use crate::daemon::scrape;
use crate::daemon::start;
use crate::daemon::sum_of;
use crate::daemon::terminate;
use crate::ending::KINDS;
use crate::ending::held_by;
use crate::tools::*;

/// It is counted every five seconds what of them is in use.
const SOON: Duration = Duration::from_secs(7);

/// Bytes of all maps that a process holds, each once, as the kernel says.
fn memory_of(pid: u32) -> u64 {
    let mut maps = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        let of = |key: &str| {
            let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
            line.map(|n| n.trim().parse::<u64>().unwrap())
        };
        maps.extend(of("map_id").map(|id| (id, of("memlock").unwrap())));
    }
    maps.values().sum()
}

fn of(text: &str, name: &str, table: &str) -> u64 {
    sum_of(text, &format!("pagecache_table_{name}"), &[&format!("{{table=\"{table}\"}}")])
}

/// Rows that are not free, read from the kernel.
fn rows_in(monitor: u32) -> u64 {
    use libbpf_rs::MapCore as _;
    let maps = held_by(monitor).into_iter().filter(|(kind, _)| KINDS[*kind].0 == "map_id");
    let mut maps = maps.map(|(_, id)| libbpf_rs::MapHandle::from_map_id(id).unwrap());
    let rows = maps.find(|m| m.name() == "rows").expect("there is a table of rows");
    let state = |n: u32| rows.lookup(&n.to_ne_bytes(), libbpf_rs::MapFlags::ANY).unwrap().unwrap();
    // The state is the first word of `struct row` (bpf/wire.h), 0 when free.
    (0..rows.max_entries()).filter(|n| state(*n)[..4] != [0; 4]).count() as u64
}

/// Numbers in a line of `--explain`.
fn line(text: &str, table: &str) -> [Option<u64>; 3] {
    let line = text.lines().find(|l| l.contains(table)).unwrap_or_else(|| panic!("no {table} in {text}"));
    let mut words = line.split_whitespace().map(|w| w.parse().ok());
    std::array::from_fn(|_| words.next().unwrap())
}

/// What `--explain` says adds up.
pub fn tables_are_explained(_: &Path) {
    for options in [
        "--explain",
        "--explain --engine both",
        "--explain --by file --table-size 20000",
        "--explain --blame 1",
    ] {
        let (code, out, err) = output(&mut cachestat(options));
        assert_eq!((code, err.as_str()), (Some(0), ""), "{options}");
        let lines: Vec<_> = out.split_once("Tables in the kernel").unwrap().1.lines().skip(3).collect();
        let end = lines.iter().position(|l| l.ends_with("  in all")).unwrap();
        let bytes = |line: &str| line.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap();
        let total: u64 = lines[end].split_whitespace().next().unwrap().parse().unwrap();
        assert_eq!(lines[..end].iter().map(|l| bytes(l)).sum::<u64>(), total, "{options}: {out}");
        assert!(total > 1 << 20, "{total}");
        let [room, used, own] = line(&out, "threads, under each name");
        assert_eq!(room, Some(if options.contains("20000") { 20_000 } else { 16_384 }), "{options}");
        assert!(used < room && used.is_some(), "{options}: {used:?}");
        // A row is half a kilobyte at least.
        assert!(own >= room.map(|n| 512 * n), "{options}: {own:?}");
        assert_eq!(out.contains("processes of the classic engine"), options.contains("both"));
        assert_eq!(
            out.contains("files of processes; when full: LOST (files_full)"),
            options.contains("by file")
        );
        assert_eq!(out.contains("who took whose pages out"), options.contains("blame"));
        told_to_programs(options, total);
    }
}

/// Programs are told the same.
fn told_to_programs(options: &str, total: u64) {
    let (code, out, err) = output(&mut cachestat(&format!("--json {options}")));
    assert_eq!((code, err.as_str()), (Some(0), ""), "{options}");
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    schema::check_as("explanation", &told);
    let tables = told["tables"].as_array().unwrap();
    let sum: u64 = tables.iter().map(|t| t["bytes"].as_u64().unwrap()).sum();
    assert_eq!(told["tables_bytes"], sum, "{options}");
    // Each start has its own words for what is the same: within a thousandth.
    assert!(sum.abs_diff(total) <= total / 1000, "{options}: {sum} {total}");
    assert_eq!(told["classic"].is_object(), options.contains("both"));
    let hooks = told["exact"]["hooks"].as_array().unwrap();
    let figures = told["exact"]["figures"].as_array().unwrap();
    let named = |h: &serde_json::Value| hooks.iter().any(|hook| hook["event"] == *h);
    for figure in figures {
        assert!(figure["hooks"].as_array().unwrap().iter().all(named), "{figure}");
    }
    let deleted = figures.iter().find(|f| f["figure"] == "cache.evicted").unwrap();
    assert_eq!(deleted["hooks"], serde_json::json!(["page deleted"]));
}

/// As many are in use as there are threads, which is known from making them; and as much memory as the kernel says.
pub fn tables_as_metrics(dir: &Path) {
    const READERS: u64 = 5000;
    let path = cold_file(&dir.join("file"), 8);
    let file = File::open(&path).unwrap();
    let (child, address) = start(&[]);
    let pid = child.id();
    let first = scrape(&address);
    assert_eq!(sum_of(&first, "pagecache_table_bytes", &[]), memory_of(pid), "{first}");
    assert_eq!((of(&first, "capacity", "threads"), of(&first, "capacity", "files")), (16_384, 16_384));
    assert!(
        !first.contains("pagecache_table_entries{table=\"names\"}"),
        "nobody walks through them: {first}"
    );
    let (threads, files) = (of(&first, "entries", "threads"), of(&first, "entries", "files"));
    // They read, and stay until they are told to go.
    let mut gate = Gate::new();
    gate.readers(READERS, &file);
    let begun = Instant::now();
    while of(&scrape(&address), "entries", "threads") < READERS && begun.elapsed() < 3 * SOON {
        sleep(Duration::from_millis(200));
    }
    // The last of them has read by then, and rows of the name that they had before are free.
    sleep(SOON);
    let text = scrape(&address);
    let full = of(&text, "entries", "threads");
    let there = rows_in(pid);
    // A preemptible kernel skips programs at times, and a thread gets no row then.
    let skipped = sum_of(&text, "pagecache_lost_events_total", &["\"recursion\""]);
    println!(
        "     {threads} rows, then {full} ({there} by the kernel, {skipped} skipped), files {files}, then {}",
        of(&text, "entries", "files")
    );
    assert!(full + skipped >= READERS && full < READERS + 2000, "{full}, {skipped} skipped");
    assert!(there.abs_diff(full) < 500, "{full} {there}");
    assert!(of(&text, "entries", "files") > files + 500, "{text}");
    assert_eq!(sum_of(&text, "pagecache_table_bytes", &[]), memory_of(pid));
    assert_eq!(of(&text, "entries", "threads_unnamed"), 0, "{text}");
    assert_eq!(sum_of(&text, "pagecache_lost_events_total", &["processes_full"]), 0, "{text}");
    gate.open();
    sleep(SOON);
    let left = of(&scrape(&address), "entries", "threads");
    println!("     {left} when they had ended");
    assert!(left + READERS / 2 < full, "{left} of {full}");
    terminate(child);
}

/// One that is full says so, and LOST does.
pub fn a_table_that_is_full(dir: &Path) {
    const ROOM: u64 = 64;
    let path = cold_file(&dir.join("file"), 8);
    let file = File::open(&path).unwrap();
    let (child, address) = start(&["--table-size", "64", "--file-table", "16"]);
    assert_eq!(of(&scrape(&address), "capacity", "files"), 16);
    let mut gate = Gate::new();
    gate.readers(3 * ROOM, &file);
    let mut text = String::new();
    wait_for("a full table", || {
        text = scrape(&address);
        // Others end, and give theirs back.
        gate.readers(1, &file);
        sleep(Duration::from_millis(200));
        of(&text, "entries", "threads") == ROOM
    });
    assert_eq!(of(&text, "capacity", "threads"), ROOM, "{text}");
    assert!(of(&text, "entries", "threads_unnamed") >= 2 * ROOM, "{text}");
    let lost = |reason: &str| sum_of(&text, "pagecache_lost_events_total", &[&format!("\"{reason}\"")]);
    assert!(lost("processes_full") >= 2 * ROOM, "{text}");
    assert_eq!(lost("requests_full"), 0, "totals have them: {text}");
    assert!(lost("files_full") > 0, "{text}");
    gate.open();
    terminate(child);
}

/// What processes wait for the end of, each after it has read the first byte of a file.
struct Gate {
    ends: [i32; 2],
    waiting: Vec<i32>,
}

impl Gate {
    fn new() -> Self {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
        Self { ends, waiting: Vec::new() }
    }

    /// So many processes, each with a name of its own.
    fn readers(&mut self, count: u64, file: &File) {
        for n in 0..count {
            let name = CString::new(format!("stays-{n:04}")).unwrap();
            let mut byte = [0_u8; 1];
            // SAFETY: the child makes nothing but system calls, on memory made ready before it was forked.
            let pid = unsafe { libc::fork() };
            assert!(pid >= 0, "{}", std::io::Error::last_os_error());
            if pid == 0 {
                // SAFETY: as above.
                unsafe {
                    libc::close(self.ends[1]);
                    libc::prctl(libc::PR_SET_NAME, name.as_ptr());
                    let got = libc::pread(file.as_raw_fd(), byte.as_mut_ptr().cast(), 1, 0);
                    libc::read(self.ends[0], byte.as_mut_ptr().cast(), 1);
                    libc::_exit(i32::from(got != 1));
                }
            }
            self.waiting.push(pid);
        }
    }

    /// They end.
    fn open(self) {
        for end in self.ends {
            // SAFETY: they are ours alone.
            unsafe { libc::close(end) };
        }
        self.waiting.iter().for_each(|pid| reap(*pid));
    }
}
