//! The command from outside, as root, on the running kernel: what it counts, how it ends, what it leaves behind.
//!
//! `root [SUBSTR]...` runs the tests whose names contain one of the words; `--list` names them. What is true is
//! known from file sizes, from `mincore`, and from what the kernel says of its BPF objects.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::fs::File;
use std::io;
use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Read as _;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::ChildStdin;
use std::process::ChildStdout;
use std::process::Command;
use std::process::ExitCode;
use std::process::ExitStatus;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

const CACHESTAT: &str = env!("CARGO_BIN_EXE_cachestat");
/// For whatever must happen soon, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_secs(30);

type Test = fn(&Path);

const TESTS: &[(&str, Test)] = &[
    ("a_count_of_intervals", a_count_of_intervals),
    ("one_process_in_json", one_process_in_json),
    ("one_process_in_csv", one_process_in_csv),
    ("one_process_in_text", one_process_in_text),
    ("an_idle_process_has_no_ratio", an_idle_process_has_no_ratio),
    ("the_end_of_the_process_watched", the_end_of_the_process_watched),
    ("nothing_is_left_behind", nothing_is_left_behind),
    ("nothing_is_left_behind_of_a_start_cut_short", nothing_is_left_behind_of_a_start_cut_short),
    ("two_at_once", two_at_once),
    ("it_leaves_itself_out", it_leaves_itself_out),
    ("stopped_and_continued", stopped_and_continued),
    ("not_root", not_root),
    ("explain", explain),
    ("a_process_that_has_ended", a_process_that_has_ended),
    ("a_full_process_table", a_full_process_table),
    ("a_thousand_short_processes", a_thousand_short_processes),
    ("the_newest_name", the_newest_name),
    ("without_tracefs", without_tracefs),
    ("without_btf", without_btf),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("--child") => {
            child();
            return ExitCode::SUCCESS;
        }
        Some("--list") => {
            TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    // SAFETY: geteuid takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("root: these tests load BPF programs: run them as root");
        return ExitCode::FAILURE;
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut failed = Vec::new();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|w| name.contains(w.as_str()));
    for (name, test) in TESTS.iter().filter(|(name, _)| wanted(name)) {
        let start = Instant::now();
        let place = dir.path().join(name);
        fs::create_dir(&place).unwrap();
        let ok = std::panic::catch_unwind(|| test(&place)).is_ok();
        println!("{} {name} ({:.1} s)", if ok { "ok  " } else { "FAIL" }, start.elapsed().as_secs_f64());
        if !ok {
            failed.push(*name);
        }
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {}", failed.join(" "));
    ExitCode::FAILURE
}

// ---- files and what is known of them -----------------------------------------------------------------------

/// A process id as the system calls take it.
fn signed(pid: u32) -> i32 {
    pid.try_into().unwrap()
}

fn unsigned(pid: i32) -> u32 {
    pid.try_into().unwrap()
}

fn page_size() -> u64 {
    // SAFETY: sysconf takes no pointer.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap()
}

/// A file on disk of so many pages, the last one partial, and nothing of it in the cache.
fn cold_file(path: &Path, pages: u64) -> PathBuf {
    let size = usize::try_from((pages - 1) * page_size() + 123).unwrap();
    let mut file = File::options().create_new(true).read(true).write(true).open(path).unwrap();
    file.write_all(&vec![0x5a; size]).unwrap();
    drop_cache(&file);
    path.to_owned()
}

fn drop_cache(file: &File) {
    file.sync_all().unwrap();
    advise(file, libc::POSIX_FADV_DONTNEED);
    let left = resident(file);
    assert_eq!(left, 0, "this file system keeps what it is told to drop: put the target directory on a disk");
}

fn advise(file: &File, advice: i32) {
    // SAFETY: posix_fadvise takes no pointer.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) }, 0);
}

/// Pages of the file, from its size.
fn pages_of(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len().div_ceil(page_size())
}

/// Pages of the file that are in the cache and up to date, by mincore.
fn resident(file: &File) -> u64 {
    let size = usize::try_from(file.metadata().unwrap().len()).unwrap();
    let mut bits = vec![0u8; size.div_ceil(usize::try_from(page_size()).unwrap())];
    // SAFETY: a fresh mapping that is never touched; `bits` has a byte for each of its pages.
    unsafe {
        let base =
            libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(base, libc::MAP_FAILED, "{}", io::Error::last_os_error());
        assert_eq!(libc::mincore(base, size, bits.as_mut_ptr()), 0, "{}", io::Error::last_os_error());
        libc::munmap(base, size);
    }
    bits.iter().filter(|b| **b & 1 == 1).count() as u64
}

// ---- a process that reads when told to ---------------------------------------------------------------------

/// The other side of [`Reader`]: one command a line, `ok` when it is done.
fn child() {
    let mut lines = io::stdin().lines();
    println!("ok");
    while let Some(Ok(line)) = lines.next() {
        let (word, path) = line.split_once(' ').unwrap_or((&line, ""));
        match word {
            // Nothing is read ahead: every page is asked for before it is there.
            "random" => read_whole(path, Some(libc::POSIX_FADV_RANDOM)),
            "read" => read_whole(path, None),
            "willneed" => {
                let file = File::open(path).unwrap();
                advise(&file, libc::POSIX_FADV_WILLNEED);
                wait_for("read-ahead", || resident(&file) == pages_of(Path::new(path)));
            }
            "exec" => panic!("{}", Command::new(path).arg("--child").exec()),
            _ => panic!("what is {line:?}?"),
        }
        println!("ok");
    }
}

fn read_whole(path: &str, advice: Option<i32>) {
    let file = File::open(path).unwrap();
    advice.inspect(|a| advise(&file, *a));
    let size = file.metadata().unwrap().len();
    let mut buffer = vec![0; 4 * usize::try_from(page_size()).unwrap()];
    let mut at = 0;
    while at < size {
        at += file.read_at(&mut buffer, at).unwrap() as u64;
    }
}

struct Reader {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Reader {
    /// Starts it. What starting takes is over when this returns: from then on it reads what it is told, only.
    fn start(program: &Path) -> Self {
        let mut process = Command::new(program)
            .arg("--child")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = process.stdin.take().unwrap();
        let from = BufReader::new(process.stdout.take().unwrap());
        let mut reader = Self { process, to, from };
        reader.answered();
        reader
    }

    fn new() -> Self {
        Self::start(&std::env::current_exe().unwrap())
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    fn answered(&mut self) {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        assert_eq!(line, "ok\n", "the reader has failed");
    }

    fn tell(&mut self, what: &str, path: &Path) {
        writeln!(self.to, "{what} {}", path.display()).unwrap();
        self.answered();
    }

    /// Ends it and waits for that.
    fn end(self) {
        let Self { mut process, to, .. } = self;
        drop(to);
        assert!(process.wait().unwrap().success());
    }
}

/// A process of one purpose: takes a name, reads the first pages of a file once `gate` is closed, and is gone.
/// It is forked and not executed, since executing reads files.
fn fork_reader(name: &str, file: &File, pages: u64, gate: Option<&[i32; 2]>) -> i32 {
    let name = CString::new(name).unwrap();
    let mut buffer = vec![0u8; usize::try_from(pages * page_size()).unwrap()];
    // SAFETY: the child makes nothing but system calls, on memory made ready before it was forked.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0, "{}", io::Error::last_os_error());
        if pid == 0 {
            libc::prctl(libc::PR_SET_NAME, name.as_ptr());
            if let Some([read, write]) = gate {
                libc::close(*write);
                let mut byte = 0u8;
                libc::read(*read, (&raw mut byte).cast(), 1);
            }
            let got = libc::pread(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0);
            libc::_exit(i32::from(usize::try_from(got) != Ok(buffer.len())));
        }
        pid
    }
}

fn reap(pid: i32) {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(ExitStatus::from_raw(status).success(), "reader {pid}: {status}");
}

// ---- the command under test --------------------------------------------------------------------------------

fn cachestat(options: &str) -> Command {
    let mut command = Command::new(CACHESTAT);
    command.args(options.split_whitespace());
    plain(&mut command);
    command
}

fn plain(command: &mut Command) {
    command.env_remove("COLUMNS").env_remove("RUST_LOG").stdin(Stdio::null());
    // A script's background job ignores some signals, and so would what it starts.
    let as_from_a_terminal = || {
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
            // SAFETY: the default disposition is no function of ours.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: signal is async-signal-safe, and nothing else is called.
    unsafe { command.pre_exec(as_from_a_terminal) };
}

fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let out = command.output().unwrap();
    (out.status.code(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
}

/// A running command and the lines that it has printed so far.
struct Monitor {
    process: Child,
    incoming: mpsc::Receiver<String>,
    lines: Vec<String>,
}

impl Monitor {
    /// Starts it and waits for its first line: from then on everything is counted.
    fn start(options: &str) -> Self {
        let mut monitor = Self::launch(options);
        monitor.line();
        monitor
    }

    fn launch(options: &str) -> Self {
        let mut process = cachestat(options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let (sender, incoming) = mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break; // drops the pipe, too
                }
            }
        });
        Self { process, incoming, lines: Vec::new() }
    }

    /// Its next line.
    fn line(&mut self) -> &str {
        match self.incoming.recv_timeout(PATIENCE) {
            Ok(line) => self.lines.push(line),
            Err(e) => {
                self.signal(libc::SIGKILL);
                let mut err = String::new();
                self.process.stderr.take().unwrap().read_to_string(&mut err).unwrap();
                panic!("no line ({e}): {err}");
            }
        }
        self.lines.last().unwrap()
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    fn signal(&self, signal: i32) {
        // SAFETY: kill takes no pointer; the child is not reaped yet, so that the id is still its own.
        unsafe { libc::kill(signed(self.pid()), signal) };
    }

    /// How it ended, when it was about to, and what it had to say on standard error.
    fn ended(&mut self) -> (ExitStatus, String) {
        let mut status = None;
        wait_for("the end of cachestat", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        self.lines.extend(self.incoming.iter());
        let mut err = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (status.unwrap(), err)
    }

    /// Interrupts it as Ctrl-C does; all its lines.
    fn finish(mut self) -> Vec<String> {
        self.signal(libc::SIGINT);
        let (status, err) = self.ended();
        assert!(status.success(), "{status}: {err}");
        std::mem::take(&mut self.lines)
    }

    /// The same, of `--json`: the intervals and the total.
    fn finish_json(self) -> (Vec<Value>, Value) {
        let mut all: Vec<Value> = self.finish().iter().map(|l| serde_json::from_str(l).unwrap()).collect();
        let total = all.pop().unwrap();
        assert_eq!(total["total"], true, "{total}");
        (all, total)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        sleep(Duration::from_millis(5));
    }
}

fn rows(intervals: &[Value]) -> impl Iterator<Item = &Value> {
    intervals.iter().flat_map(|i| i["rows"].as_array().unwrap())
}

fn rows_of(intervals: &[Value], pid: u32) -> Vec<&Value> {
    rows(intervals).filter(|r| r["pid"] == pid).collect()
}

fn figure(of: &Value, pointer: &str) -> u64 {
    of.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {of}"))
}

fn sum(of: &[&Value], pointer: &str) -> u64 {
    of.iter().map(|v| figure(v, pointer)).sum()
}

/// Accesses, hits, read-ahead hits, misses and bytes.
type Reads = [u64; 5];

const READS: [&str; 5] =
    ["/read/accesses", "/read/hits", "/read/readahead_hits", "/read/misses", "/read/bytes"];
const READ_COLUMNS: &str = "accesses,hits,readahead_hits,misses,read_bytes";

fn reads(of: &[&Value]) -> Reads {
    READS.map(|pointer| sum(of, pointer))
}

/// Three files of different, odd sizes, one for each outcome of an access.
struct Work {
    files: [PathBuf; 2],
    want: Reads,
}

impl Work {
    fn new(dir: &Path) -> Self {
        let missed = cold_file(&dir.join("missed"), 41);
        let ahead = cold_file(&dir.join("ahead"), 23);
        let (m, a) = (pages_of(&missed), pages_of(&ahead));
        assert_eq!((m, a), (41, 23));
        let bytes: [u64; 2] = [&missed, &ahead].map(|f| fs::metadata(f).unwrap().len());
        // The first is read cold and twice warm, the second once, when read-ahead has fetched all of it.
        Self { files: [missed, ahead], want: [3 * m + a, 2 * m, a, m, 3 * bytes[0] + bytes[1]] }
    }

    /// Some of it now and the rest when `pause` returns.
    fn run(&self, reader: &mut Reader, pause: impl FnOnce()) {
        let [missed, ahead] = &self.files;
        reader.tell("random", missed);
        reader.tell("read", missed);
        assert_eq!(resident(&File::open(missed).unwrap()), pages_of(missed), "something empties the cache");
        pause();
        reader.tell("read", missed);
        reader.tell("willneed", ahead);
        reader.tell("read", ahead);
    }
}

// ---- what it counts ----------------------------------------------------------------------------------------

fn a_count_of_intervals(_: &Path) {
    let start = Instant::now();
    let (code, out, err) = output(&mut cachestat("--json 0.5 2"));
    assert_eq!(code, Some(0), "{err}");
    let lines: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{out}");
    assert!(start.elapsed() >= Duration::from_secs(1));
    let seconds: f64 = lines.iter().map(|l| l["interval_s"].as_f64().unwrap()).sum();
    assert!((0.95..=start.elapsed().as_secs_f64()).contains(&seconds), "{out}");
    for line in &lines {
        assert!(line.get("total").is_none() && line.get("rows").is_none(), "{line}");
        let [accesses, hits, ahead, misses, _] = reads(&[line]);
        assert_eq!(accesses, hits + ahead + misses, "{line}");
    }
}

fn one_process_in_json(dir: &Path) {
    let work = Work::new(dir);
    let mut reader = Reader::new();
    let mut by = Monitor::start("--json --by process --top 100000 0.2");
    let mut only = Monitor::start(&format!("--json -p {} 0.2", reader.pid()));
    work.run(&mut reader, || {
        by.line();
        only.line();
    });
    let (intervals, total) = by.finish_json();
    let rows = rows_of(&intervals, reader.pid());
    assert_eq!(reads(&rows), work.want, "{rows:?}");
    let uid_and_name = (&rows[0]["uid"], rows[0]["comm"].as_str().unwrap());
    let comm = fs::read_to_string(format!("/proc/{}/comm", reader.pid())).unwrap();
    assert_eq!(uid_and_name, (&Value::from(0), comm.trim_end()));
    assert!(rows.len() >= 2, "the work of two intervals is in two rows: {rows:?}");
    for (n, pointer) in READS.iter().enumerate() {
        assert!(figure(&total, pointer) >= work.want[n], "the whole has less than its part: {total}");
    }
    let (intervals, total) = only.finish_json();
    assert_eq!(reads(&[&total]), work.want);
    assert_eq!(reads(&intervals.iter().collect::<Vec<_>>()), work.want);
    assert_eq!(total["pid"], reader.pid());
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
    let ratio = total["read"]["hit_ratio"].as_f64().unwrap();
    assert!((ratio - 82.0 / 146.0).abs() < 1e-6, "{ratio}");
    reader.end();
}

fn one_process_in_csv(dir: &Path) {
    let work = Work::new(dir);
    let mut reader = Reader::new();
    let options = format!("--csv --by process --top 100000 --columns {READ_COLUMNS},hit_ratio 0.2");
    let mut monitor = Monitor::start(&options);
    work.run(&mut reader, || {
        monitor.line();
        monitor.line();
    });
    let lines = monitor.finish();
    let mut table = csv::Reader::from_reader(io::Cursor::new(lines.join("\n")));
    let names: Vec<String> = table.headers().unwrap().iter().map(String::from).collect();
    assert_eq!(names.join(","), format!("time,interval_s,pid,uid,comm,{READ_COLUMNS},hit_ratio"));
    let mut got = Reads::default();
    for record in table.records().map(Result::unwrap).filter(|r| r[2] == reader.pid().to_string()) {
        for (n, sum) in got.iter_mut().enumerate() {
            *sum += record[5 + n].parse::<u64>().unwrap();
        }
    }
    assert_eq!(got, work.want);
    reader.end();
}

fn one_process_in_text(dir: &Path) {
    let work = Work::new(dir);
    let mut reader = Reader::new();
    // Bytes have one decimal of a mebibyte in text, so that they are left to the other formats.
    let columns = READ_COLUMNS.trim_end_matches(",read_bytes");
    let mut monitor = Monitor::start(&format!("-p {} --columns {columns},hit_ratio 0.2", reader.pid()));
    work.run(&mut reader, || {
        monitor.line();
        monitor.line();
    });
    let lines = monitor.finish();
    let cells = |line: &str| -> Vec<String> { line.split_whitespace().map(String::from).collect() };
    assert_eq!(cells(&lines[0]), ["ACCESSES", "HITS", "RAHITS", "MISSES", "HITRATIO"]);
    let [intervals @ .., rule, total] = &lines[1..] else { panic!("{lines:?}") };
    assert!(rule.starts_with("--- total of "), "{lines:?}");
    let mut got = [0; 4];
    for line in intervals.iter().map(|l| cells(l)) {
        for (sum, cell) in got.iter_mut().zip(&line) {
            *sum += cell.parse::<u64>().unwrap();
        }
        if line[0] == "0" {
            assert_eq!(line[4], "-", "{lines:?}");
        }
    }
    assert_eq!(got, work.want[..4], "{lines:#?}");
    let want: Vec<String> = work.want[..4].iter().map(u64::to_string).chain(["56.16%".into()]).collect();
    assert_eq!(cells(total), want, "{lines:#?}");
    reader.end();
}

fn an_idle_process_has_no_ratio(_: &Path) {
    let reader = Reader::new();
    let pid = reader.pid();
    let (code, out, err) = output(&mut cachestat(&format!("-p {pid} 0.1 3")));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(out.lines().count(), 4, "{out}");
    for line in out.lines().skip(1) {
        let cells: Vec<_> = line.split_whitespace().collect();
        assert_eq!(cells[..5], ["0", "0", "0", "0", "-"], "{out}");
        assert!(cells[6].parse::<u64>().unwrap() > 0, "the cache of the machine is not empty: {out}");
    }
    let (_, out, _) = output(&mut cachestat(&format!("-p {pid} --bcc 0.1 1")));
    assert!(out.contains("0.00%"), "{out}");
    let (_, out, _) = output(&mut cachestat(&format!("-p {pid} --json 0.1 1")));
    let line: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((figure(&line, "/read/accesses"), &line["read"]["hit_ratio"]), (0, &Value::Null));
    let (_, out, _) = output(&mut cachestat(&format!("-p {pid} --csv --columns hits,hit_ratio 0.1 1")));
    assert!(out.lines().nth(1).unwrap().ends_with(",0,"), "{out}");
    reader.end();
}

fn the_end_of_the_process_watched(dir: &Path) {
    let file = cold_file(&dir.join("file"), 19);
    let mut reader = Reader::new();
    let pid = reader.pid();
    // An interval that outlasts it: what it read is in the part of it that there was.
    let mut monitor = Monitor::start(&format!("--csv -p {pid} --columns accesses,misses 60"));
    reader.tell("random", &file);
    reader.end();
    let (status, err) = monitor.ended();
    assert!(status.success(), "{status}");
    assert_eq!(err, format!("cachestat: process {pid} has ended\n"));
    assert_eq!(monitor.lines.len(), 2, "{:?}", monitor.lines);
    assert!(monitor.lines[1].ends_with(",19,19"), "{:?}", monitor.lines);
}

// ---- how it ends, and what is left -------------------------------------------------------------------------

type NextId = unsafe extern "C" fn(u32, *mut u32) -> i32;

/// What keeps a BPF object alive is written in `fdinfo`, under these names.
const KINDS: [(&str, NextId); 4] = [
    ("prog_id", libbpf_sys::bpf_prog_get_next_id),
    ("map_id", libbpf_sys::bpf_map_get_next_id),
    ("link_id", libbpf_sys::bpf_link_get_next_id),
    ("btf_id", libbpf_sys::bpf_btf_get_next_id),
];

/// BPF objects by kind and id. The kernel counts ids up: they do not come again while a test runs.
type Objects = BTreeSet<(usize, u32)>;

/// The BPF objects that a process holds.
fn held_by(pid: u32) -> Objects {
    let mut objects = Objects::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        for (name, id) in text.lines().filter_map(|l| l.split_once(':')) {
            if let Some(kind) = KINDS.iter().position(|(k, _)| *k == name) {
                objects.insert((kind, id.trim().parse().unwrap()));
            }
        }
    }
    objects
}

/// Whether the kernel still has it; does not keep it alive by asking.
fn exists(&(kind, id): &(usize, u32)) -> bool {
    let mut next = 0;
    // SAFETY: `next` outlives the call.
    let ret = unsafe { KINDS[kind].1(id - 1, &raw mut next) };
    assert!(ret == 0 || ret == -libc::ENOENT, "{}", io::Error::from_raw_os_error(-ret));
    ret == 0 && next == id
}

/// A pin anywhere would keep an object, so that this proves that there is none, too.
fn assert_gone(objects: &Objects, how: &str) {
    wait_for(&format!("{how}: the end of {objects:?}"), || !objects.iter().any(exists));
}

/// Probes that others than BPF links make stay when their maker dies.
fn probe_events(tracefs: &Path) -> BTreeSet<String> {
    ["kprobe_events", "uprobe_events", "dynamic_events"]
        .iter()
        .filter_map(|name| fs::read_to_string(tracefs.join(name)).ok())
        .flat_map(|text| text.lines().map(String::from).collect::<Vec<_>>())
        .collect()
}

/// A tracefs of the tests' own, mounted for as long as this lives.
struct Tracefs(PathBuf);

impl Tracefs {
    fn mount(dir: &Path) -> Self {
        let place = dir.join("tracefs");
        fs::create_dir(&place).unwrap();
        let status = Command::new("mount").args(["-t", "tracefs", "none"]).arg(&place).status().unwrap();
        assert!(status.success());
        Self(place)
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn nothing_is_left_behind(dir: &Path) {
    let tracefs = Tracefs::mount(dir);
    let before = probe_events(&tracefs.0);
    let end = |how: &str, end: &dyn Fn(&mut Monitor)| {
        let mut monitor = Monitor::start("--json 0.1");
        let objects = held_by(monitor.pid());
        for (kind, (name, _)) in KINDS.iter().enumerate() {
            assert!(objects.iter().any(|o| o.0 == kind && exists(o)), "no {name}: {objects:?}");
        }
        end(&mut monitor);
        let (status, err) = monitor.ended();
        assert_gone(&objects, how);
        (status, err)
    };
    for signal in [libc::SIGKILL, libc::SIGABRT, libc::SIGSEGV, libc::SIGHUP, libc::SIGQUIT] {
        let no_core = |m: &mut Monitor| {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the limits outlive the call; nothing is asked back.
            unsafe {
                libc::prlimit(signed(m.pid()), libc::RLIMIT_CORE, &raw const none, std::ptr::null_mut());
            }
            m.signal(signal);
            if signal == libc::SIGSEGV {
                // Rust's runtime looks whether the first is a full stack, and lets the next one kill.
                sleep(Duration::from_millis(50));
                m.signal(signal);
            }
        };
        let (status, err) = end(&format!("signal {signal}"), &no_core);
        assert_eq!(status.signal(), Some(signal), "{status}: {err}");
    }
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let (status, err) = end(&format!("signal {signal}"), &|m| m.signal(signal));
        assert!(status.success(), "{status}");
        assert_eq!(err, "");
    }
    let (status, err) = end("closed pipe", &|m| {
        let (_, nobody) = mpsc::channel();
        m.incoming = nobody;
    });
    assert_eq!((status.code(), err.as_str()), (Some(0), ""));
    let after: Vec<_> = probe_events(&tracefs.0).difference(&before).cloned().collect();
    assert!(after.is_empty(), "{after:?}");
}

fn nothing_is_left_behind_of_a_start_cut_short(_: &Path) {
    let mut seen = 0;
    for wait in (10..400).step_by(30) {
        let mut monitor = Monitor::launch("--json 10");
        sleep(Duration::from_millis(wait));
        monitor.signal(libc::SIGSTOP);
        // A stop takes effect a little later: nothing is made after this.
        wait_for("the stop", || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", monitor.pid())).unwrap();
            stat.rsplit(')').next().unwrap().trim_start().starts_with('T')
        });
        let objects = held_by(monitor.pid());
        seen += objects.len();
        monitor.signal(libc::SIGKILL);
        assert_eq!(monitor.ended().0.signal(), Some(libc::SIGKILL));
        assert_gone(&objects, &format!("killed after {wait} ms"));
    }
    assert!(seen > 0, "every start was cut short before it did anything");
}

// ---- several, and itself -----------------------------------------------------------------------------------

fn two_at_once(dir: &Path) {
    let work = Work::new(dir);
    let mut reader = Reader::new();
    let mut one = Monitor::start("--json --by process --top 100000 0.2");
    let mut two = Monitor::start("--json --by process --top 100000 0.3");
    assert!(held_by(one.pid()).is_disjoint(&held_by(two.pid())));
    work.run(&mut reader, || {
        one.line();
        two.line();
    });
    for monitor in [one, two] {
        let (intervals, _) = monitor.finish_json();
        assert_eq!(reads(&rows_of(&intervals, reader.pid())), work.want);
    }
    reader.end();
}

/// Its output goes to a file on disk, and that makes a page of the file dirty: something it did itself.
fn it_leaves_itself_out(dir: &Path) {
    let monitor = |name: &str, options: &str| {
        let path = dir.join(name);
        let out = File::create(&path).unwrap();
        let options = format!("--json --by process --top 100000 {options} 0.2");
        let process = cachestat(&options).stdout(out).spawn().unwrap();
        wait_for("two lines", || fs::read_to_string(&path).unwrap().lines().count() >= 2);
        (process, path)
    };
    // It sees all the others; it is there before they write their first line.
    let mut watcher = Monitor::start("--json --by process --top 100000 0.2");
    let monitors = [monitor("without", ""), monitor("with", "--include-self")];
    sleep(Duration::from_millis(500));
    watcher.line();
    let [without, with] = monitors.map(|(mut process, path)| {
        // SAFETY: kill takes no pointer; the child is not reaped yet.
        unsafe { libc::kill(signed(process.id()), libc::SIGINT) };
        assert!(process.wait().unwrap().success());
        let lines: Vec<Value> =
            fs::read_to_string(path).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let (_, intervals) = lines.split_last().unwrap();
        (process.id(), intervals.to_vec())
    });
    let (intervals, _) = watcher.finish_json();
    for (pid, _) in [&without, &with] {
        let seen = sum(&rows_of(&intervals, *pid), "/write/dirtied");
        assert!(seen >= 1, "another one sees that {pid} writes");
    }
    assert!(rows_of(&without.1, without.0).is_empty(), "it does not see itself");
    let own = rows_of(&with.1, with.0);
    assert!(sum(&own, "/write/dirtied") >= 1, "it sees itself where asked to: {own:?}");
    assert!(own.iter().all(|r| r["comm"] == "cachestat"), "{own:?}");
}

// ---- time --------------------------------------------------------------------------------------------------

fn stopped_and_continued(dir: &Path) {
    const BEAT: f64 = 0.5;
    let file = cold_file(&dir.join("file"), 29);
    let mut reader = Reader::new();
    let mut monitor = Monitor::launch(&format!("--json --by process --top 100000 {BEAT}"));
    monitor.line();
    let before = monitor.line().to_string();
    let last = Instant::now();
    monitor.signal(libc::SIGSTOP);
    sleep(Duration::from_secs(1));
    reader.tell("random", &file);
    sleep(Duration::from_secs(2));
    let stopped = last.elapsed().as_secs_f64();
    monitor.signal(libc::SIGCONT);
    let lines: Vec<Value> = std::iter::once(before)
        .chain((0..4).map(|_| monitor.line().to_string()))
        .map(|l| serde_json::from_str(&l).unwrap())
        .collect();
    let seconds: Vec<f64> = lines.iter().map(|l| l["interval_s"].as_f64().unwrap()).collect();
    let near = |got: f64, want: f64, by: f64| (got - want).abs() <= by * want;
    // The second one that arrives may have been on its way when the signal came.
    let long = seconds.iter().position(|s| *s > 2.0 * BEAT).unwrap_or_else(|| panic!("{seconds:?}"));
    assert!(long <= 2, "{seconds:?}");
    assert!(near(seconds[long], stopped, 0.1), "{seconds:?}, stopped for {stopped}");
    // The next one ends on the old beat again, so that it has any length from half a beat to one and a half.
    assert!((0.4 * BEAT..=1.6 * BEAT).contains(&seconds[long + 1]), "{seconds:?}");
    assert!(near(seconds[long + 2], BEAT, 0.2), "{seconds:?}");
    let beats = seconds[long..=long + 2].iter().sum::<f64>() / BEAT;
    assert!((beats - beats.round()).abs() < 0.2, "not on the beat: {seconds:?}");
    // What happened while it stood still is in the long interval, all of it.
    let during = rows_of(&lines[long..=long], reader.pid());
    assert_eq!(reads(&during)[..4], [29, 0, 0, 29], "{during:?}");
    assert_eq!(rows_of(&lines, reader.pid()).len(), 1);
    monitor.signal(libc::SIGINT);
    let (status, err) = monitor.ended();
    assert!(status.success(), "{status}");
    let warning = format!("this interval took {:.3} s instead of {BEAT} s", seconds[long]);
    assert!(err.contains(&warning), "{err}");
    reader.end();
}

// ---- what it says when it cannot ---------------------------------------------------------------------------

fn not_root(_: &Path) {
    // Where everybody may enter: the build may be in a directory of root's.
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = dir.path().join("cachestat");
    fs::copy(CACHESTAT, &copy).unwrap();
    for options in ["1 1", "--explain"] {
        let mut command = Command::new(&copy);
        plain(command.args(options.split(' ')).uid(65534).gid(65534));
        let (code, out, err) = output(&mut command);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains("privilege") && err.contains("\nremedy: run it as root"), "{err}");
    }
}

fn explain(_: &Path) {
    let (code, out, err) = output(&mut cachestat("--explain"));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(out.starts_with(&format!("Kernel {}", release.trim())), "{out}");
    for part in ["Engine exact", "page added", "read.misses", "cache.evicted"] {
        assert!(out.contains(part), "no {part} in {out}");
    }
}

fn a_process_that_has_ended(_: &Path) {
    let reader = Reader::new();
    let pid = reader.pid();
    reader.end();
    let (code, out, err) = output(&mut cachestat(&format!("-p {pid} 1 1")));
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    assert!(err.contains(&format!("no process {pid}\nremedy: ")), "{err}");
}

/// Runs a command in a mount namespace of its own, prepared by a line of shell.
fn elsewhere(prepare: &str, options: &str) -> (Option<i32>, String, String) {
    let script = format!("{prepare}; exec \"$0\" {options}");
    let mut command = Command::new("unshare");
    plain(command.args(["-m", "sh", "-ec", &script, CACHESTAT]));
    output(&mut command)
}

fn without_tracefs(_: &Path) {
    let nowhere =
        "umount -R /sys/kernel/debug 2>/dev/null || :; umount -R /sys/kernel/tracing 2>/dev/null || :";
    let covered = "mount -t tmpfs none /sys/kernel/debug; mount -t tmpfs none /sys/kernel/tracing";
    for prepare in [nowhere, covered] {
        let gone =
            format!("{prepare}; test ! -e /sys/kernel/tracing/events -a ! -e /sys/kernel/debug/tracing");
        let (code, out, err) = elsewhere(&gone, "--json 0.2 2");
        assert_eq!((code, out.lines().count()), (Some(0), 2), "{err}");
        let (code, out, err) = elsewhere(&gone, "--explain");
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(out.contains("tracefs              not mounted; a private mount is used"), "{out}");
    }
}

fn without_btf(_: &Path) {
    let hidden = "mount -t tmpfs none /sys/kernel/btf; test ! -e /sys/kernel/btf/vmlinux";
    for options in ["1 1", "--explain"] {
        let (code, out, err) = elsewhere(hidden, options);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        let (what, remedy) = err.split_once("\nremedy: ").unwrap_or_else(|| panic!("{err}"));
        assert!(what.contains("no BTF") && remedy.contains("CONFIG_DEBUG_INFO_BTF"), "{err}");
    }
}

// ---- many processes ----------------------------------------------------------------------------------------

fn a_full_process_table(dir: &Path) {
    const ROOM: usize = 16;
    const READERS: u64 = 40;
    const PAGES: u64 = 2000;
    let path = cold_file(&dir.join("file"), PAGES + 1);
    let file = File::open(&path).unwrap();
    let want = READERS * PAGES;
    // Others may read a lot just now. One that has room for all of them, and runs for longer, says how much.
    let with_room = Monitor::start("--json --by process --top 100000 0.2");
    let mut monitor = Monitor::start(&format!("--json --by process --top 100000 --table-size {ROOM} 0.2"));
    let mut gate = [0; 2];
    // SAFETY: `gate` has room for two descriptors.
    assert_eq!(unsafe { libc::pipe2(gate.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    let pids: Vec<i32> =
        (0..READERS).map(|n| fork_reader(&format!("full-{n}"), &file, PAGES, Some(&gate))).collect();
    // SAFETY: the descriptors are ours; the end of the pipe is what the readers wait for.
    gate.iter().for_each(|fd| unsafe {
        libc::close(*fd);
    });
    pids.iter().for_each(|pid| reap(*pid));
    monitor.line();
    monitor.signal(libc::SIGINT);
    let (status, err) = monitor.ended();
    assert!(status.success(), "{status}: {err}");
    let mut lines: Vec<Value> = monitor.lines.iter().map(|l| serde_json::from_str(l).unwrap()).collect();
    let total = lines.pop().unwrap();
    for line in &lines {
        assert!(line["rows"].as_array().unwrap().len() <= ROOM, "{line}");
    }
    let mut with_row = 0;
    for pid in &pids {
        let seen = sum(&rows_of(&lines, unsigned(*pid)), "/read/accesses");
        assert!(seen <= PAGES, "{seen} pages of {PAGES}");
        with_row += u64::from(seen == PAGES);
    }
    assert!(with_row < READERS, "the table was never full: {total}");
    assert!(figure(&total, "/lost/processes_full") >= READERS - with_row, "{with_row} of {total}");
    assert_eq!(
        figure(&total, "/lost/total"),
        figure(&total, "/lost/processes_full"),
        "nothing else is lost: {total}"
    );
    assert!(err.contains("processes_full") && err.contains("\nremedy: more room for processes"), "{err}");
    let accesses = figure(&total, "/read/accesses");
    let (intervals, _) = with_room.finish_json();
    let of_others: u64 = rows(&intervals)
        .filter(|r| !pids.iter().any(|pid| r["pid"] == *pid))
        .map(|r| figure(r, "/read/accesses"))
        .sum();
    assert!(
        (want..=want + of_others).contains(&accesses),
        "{accesses} of {want} and at most {of_others} of others: {total}"
    );
}

/// Process ids among the keys of the monitor's tables, read from the kernel.
fn in_the_tables(monitor: u32) -> BTreeMap<String, BTreeSet<u32>> {
    use libbpf_rs::MapCore as _;
    let mut tables = BTreeMap::new();
    for (_, id) in held_by(monitor).iter().filter(|(kind, _)| KINDS[*kind].0 == "map_id") {
        let map = libbpf_rs::MapHandle::from_map_id(*id).unwrap();
        let name = map.name().to_string_lossy().into_owned();
        if name.starts_with("process") {
            let keys = map.keys().map(|k| u32::from_ne_bytes(k[..4].try_into().unwrap())).collect();
            tables.insert(name, keys);
        }
    }
    tables
}

fn a_thousand_short_processes(dir: &Path) {
    const READERS: usize = 1000;
    let path = cold_file(&dir.join("file"), 8);
    let file = File::open(&path).unwrap();
    let mut monitor = Monitor::start("--json --by process --top 100000 0.2");
    let mut names = BTreeMap::new();
    for n in 0..READERS {
        let name = format!("short-{n:04}");
        let pid = fork_reader(&name, &file, 1 + n as u64 % 7, None);
        reap(pid);
        assert!(names.insert(unsigned(pid), (name, 1 + n as u64 % 7)).is_none(), "{pid} again");
    }
    // The interval that saw the last of them, the one at whose end they are forgotten, and three more.
    let working = monitor.incoming.try_iter().collect::<Vec<_>>();
    monitor.lines.extend(working);
    for _ in 0..2 {
        monitor.line();
    }
    let busy = monitor.lines.len();
    for _ in 0..3 {
        monitor.line();
    }
    let tables = in_the_tables(monitor.pid());
    assert!(tables.len() >= 2, "{tables:?}");
    for (table, pids) in &tables {
        let left: Vec<_> = pids.iter().filter(|pid| names.contains_key(pid)).collect();
        assert!(left.is_empty(), "{table} still has {left:?}");
    }
    let (intervals, total) = monitor.finish_json();
    for row in rows(&intervals[busy..]) {
        assert!(!names.contains_key(&u32::try_from(figure(row, "/pid")).unwrap()), "long gone: {row}");
    }
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for row in rows(&intervals) {
        let pid = u32::try_from(figure(row, "/pid")).unwrap();
        if let Some((name, _)) = names.get(&pid) {
            assert_eq!(row["comm"], name.as_str(), "{row}");
            *sums.entry(pid).or_default() += figure(row, "/read/accesses");
        }
    }
    for (pid, (name, pages)) in &names {
        assert_eq!(sums.get(pid), Some(pages), "{name}");
    }
    let want: u64 = names.values().map(|(_, pages)| pages).sum();
    assert!(figure(&total, "/read/accesses") >= want, "{total}");
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
}

/// What it is called now, whatever it was called when it was first seen.
fn the_newest_name(dir: &Path) {
    let [first, second] = ["first-name", "second-name"].map(|name| {
        let path = dir.join(name);
        fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        path
    });
    let file = cold_file(&dir.join("file"), 31);
    let mut reader = Reader::start(&first);
    let mut monitor = Monitor::start("--json --by process --top 100000 0.2");
    reader.tell("random", &file);
    monitor.line();
    monitor.line();
    let before = monitor.lines.len();
    reader.tell("exec", &second);
    reader.tell("read", &file);
    let (intervals, _) = monitor.finish_json();
    let (old, new) = intervals.split_at(before);
    let old = rows_of(old, reader.pid());
    assert_eq!(reads(&old)[..4], [31, 0, 0, 31], "{old:?}");
    assert!(old.iter().all(|r| r["comm"] == "first-name"), "{old:?}");
    let new = rows_of(new, reader.pid());
    // Executing reads files as well, so that this is a lower bound.
    assert!(reads(&new)[1] >= 31, "{new:?}");
    assert_eq!(new.last().unwrap()["comm"], "second-name", "{new:?}");
    reader.end();
}
