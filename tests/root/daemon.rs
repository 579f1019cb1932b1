//! `cachetopd`, and recordings: what it tells is what was done, what it keeps of its privileges, what it leaves behind.

use std::fs;
use std::fs::File;
use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Read as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::tools::*;

/// Starts it, and waits for the address that it answers on.
pub fn start(options: &[&str]) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cachetopd"));
    command.args(["--listen", "127.0.0.1:0", "-i", "0.2"]).args(options);
    plain(&mut command);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("http://") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended");
    }
    // Whatever it says later must not find a closed pipe.
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    (child, address)
}

pub fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}

pub fn sum_of(text: &str, name: &str, parts: &[&str]) -> u64 {
    let lines = text.lines().filter(|l| l.split(['{', ' ']).next() == Some(name));
    let lines = lines.filter(|l| parts.iter().all(|p| l.contains(p)));
    lines.map(|l| l.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

pub fn terminate(mut child: Child) {
    // SAFETY: kill takes no pointer; the child is not reaped yet.
    unsafe { libc::kill(signed(child.id()), libc::SIGTERM) };
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

fn status(pid: u32, key: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    text.lines().find_map(|l| l.strip_prefix(key)).unwrap().trim_start_matches(':').trim().to_owned()
}

/// Of a cgroup of its own each page is known: as many bytes as were read, and all cgroups together are the machine.
pub fn metrics_are_what_was_done(dir: &Path) {
    let v1 = Path::new("/sys/fs/cgroup/memory");
    let root = if v1.is_dir() { v1 } else { Path::new("/sys/fs/cgroup") };
    let group = root.join(format!("cachetop-test-{}", std::process::id()));
    if fs::create_dir(&group).is_err() {
        println!("     no cgroup can be made here");
        return;
    }
    let (work, mut reader) = (Work::new(dir), Reader::new());
    fs::write(group.join("cgroup.procs"), reader.pid().to_string()).unwrap();
    let ring = dir.join("ring");
    let (child, address) = start(&["--record", ring.to_str().unwrap()]);
    work.run(&mut reader, || sleep(Duration::from_millis(300)));
    sleep(Duration::from_millis(700));
    let text = scrape(&address);
    let name = format!("{}\"", group.file_name().unwrap().to_str().unwrap());
    let page = page_size();
    let [_, hits, ahead, misses, _] = work.want;
    for (outcome, pages) in [("hit", hits), ("readahead_hit", ahead), ("miss", misses)] {
        let outcome = format!("outcome=\"{outcome}\"");
        let own = sum_of(&text, "pagecache_cgroup_read_bytes_total", &[&name, &outcome]);
        assert_eq!(own, pages * page, "{outcome}");
        let whole = sum_of(&text, "pagecache_read_bytes_total", &[&outcome]);
        assert_eq!(sum_of(&text, "pagecache_cgroup_read_bytes_total", &[&outcome]), whole, "{outcome}");
        assert!(whole >= own);
    }
    assert_eq!(sum_of(&text, "pagecache_page_size_bytes", &[]), page);
    // CAP_DAC_READ_SEARCH, CAP_PERFMON, CAP_BPF; and whoever answers has none.
    let pid = child.id();
    for set in ["CapPrm", "CapEff", "CapBnd"] {
        assert_eq!(status(pid, set), "000000c000000004", "{set}");
    }
    assert_eq!(status(pid, "NoNewPrivs"), "1");
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|t| t.unwrap().path());
    let http =
        threads.into_iter().find(|t| fs::read_to_string(t.join("comm")).unwrap().trim() == "http").unwrap();
    let text = fs::read_to_string(http.join("status")).unwrap();
    assert!(
        text.contains("CapEff:\t0000000000000000") && text.contains("CapPrm:\t0000000000000000"),
        "{text}"
    );
    terminate(child);
    assert!(TcpStream::connect(&address).is_err());
    // What it recorded is the same.
    let mut replay = cachestat("--json --by process --top 100000 --replay");
    let (code, out, err) = output(replay.arg(&ring));
    assert_eq!(code, Some(0), "{err}");
    let intervals: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let intervals: Vec<Value> = intervals.into_iter().filter(|i| i.get("total").is_none()).collect();
    assert_eq!(reads(&rows_of(&intervals, reader.pid())), work.want);
    reader.end();
    wait_for("the cgroup to be empty", || fs::remove_dir(&group).is_ok());
}

/// What a cgroup of one process reads over and over; `WORKING_SET=long` until there is a window of a minute.
pub fn working_set_as_metrics(dir: &Path) {
    const PAGES: u64 = 3000;
    let group = crate::whatif::hierarchy().join(format!("used-{}", std::process::id()));
    fs::create_dir(&group).unwrap();
    let file = dir.join("file");
    File::create(&file).unwrap().set_len(2 * PAGES * page_size()).unwrap();
    let mut reader = crate::working::reader(dir);
    fs::write(group.join("cgroup.procs"), reader.pid().to_string()).unwrap();
    let (child, address) = start(&["--working-set"]);
    let long = std::env::var("WORKING_SET").is_ok_and(|v| v == "long");
    let begun = std::time::Instant::now();
    // Other pages at first: they are in longer windows only.
    reader.tell(&format!("pages {PAGES} {PAGES}"), &file);
    while begun.elapsed() < Duration::from_secs(if long { 78 } else { 17 }) {
        if begun.elapsed() > Duration::from_secs(16) || !long {
            reader.tell(&format!("pages 0 {PAGES}"), &file);
        }
        sleep(Duration::from_millis(100));
        let known = scrape(&address).contains("working_set_bytes{");
        assert!(!known || begun.elapsed() > Duration::from_secs(59), "{:?}", begun.elapsed());
    }
    let text = scrape(&address);
    let of = |name: &str, parts: &[&str]| sum_of(&text, name, parts) as f64 / page_size() as f64;
    let name = format!("{}\"", group.file_name().unwrap().to_str().unwrap());
    if long {
        let own = of("pagecache_cgroup_working_set_bytes", &[&name, "window=\"1m\""]);
        let whole = of("pagecache_working_set_bytes", &["window=\"1m\""]);
        println!("     {own} of {PAGES} pages, the machine {whole}");
        assert!((own - PAGES as f64).abs() < PAGES as f64 * 0.1, "{own}");
        assert!(whole > PAGES as f64 * 0.95, "{whole}");
        assert!(text.contains("pagecache_cgroup_working_set_bytes{cgroup=\"other\",window=\"1m\"}"));
    }
    assert!(!text.contains("window=\"5m\""), "{text}");
    terminate(child);
    reader.end();
    wait_for("the cgroup to be empty", || fs::remove_dir(&group).is_ok());
}

/// A run that was recorded is replayed to the byte, and its file takes no room in the page cache.
pub fn what_was_recorded_is_replayed(dir: &Path) {
    for (n, options) in
        ["--json --by file --top 100", "-x -T --by process", "--csv --by cgroup", "--by mount"]
            .iter()
            .enumerate()
    {
        let dir = dir.join(n.to_string());
        fs::create_dir(&dir).unwrap();
        let (work, mut reader) = (Work::new(&dir), Reader::new());
        let path = dir.join("recording");
        let mut live = cachestat(options);
        live.arg("--record").arg(&path).args(["0.3", "4"]).stdin(Stdio::null());
        let live = live.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("a recording", || path.exists());
        sleep(Duration::from_millis(500));
        work.run(&mut reader, || ());
        let live = String::from_utf8(live.wait_with_output().unwrap().stdout).unwrap();
        reader.end();
        assert!(resident(&File::open(&path).unwrap()) <= 1, "its pages stay in the cache");
        let (code, there, err) = output(cachestat(options).arg("--replay").arg(&path));
        assert_eq!(code, Some(0), "{err}");
        assert!(live.lines().count() >= 4, "{live}");
        let other = live.lines().zip(there.lines()).find(|(a, b)| a != b);
        assert!(live == there, "{options}: {:.2000}", format!("{other:?}"));
    }
}

/// A disk without room ends it, with what there was room for.
pub fn a_recording_on_a_full_disk(dir: &Path) {
    let mount = dir.join("small");
    fs::create_dir(&mount).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=32k", "none"]).arg(&mount).status();
    if !mounted.is_ok_and(|s| s.success()) {
        println!("     no tmpfs can be mounted here");
        return;
    }
    let path = mount.join("recording");
    let (code, _, err) = output(cachestat("--record").arg(&path).args(["0.02", "2000"]));
    let (replayed, out, said) = output(cachestat("--csv --replay").arg(&path));
    assert!(Command::new("umount").arg(&mount).status().unwrap().success());
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("cannot write the recording") && err.contains("No space left"), "{err}");
    assert_eq!(replayed, Some(0), "{said}");
    assert!(out.lines().count() > 2 && !said.contains("lost"), "{said}");
}

/// What happened around a moment is kept with its files, where the ring has none; also of one that is killed meanwhile.
pub fn a_moment_is_kept_with_its_files(dir: &Path) {
    const PAGES: u64 = 1024;
    let path = cold_file(&dir.join("file"), PAGES);
    let ring = dir.join("ring");
    let options =
        ["--no-files", "--no-latency", "--when", "read.bytes > 1MiB/s", "--record", ring.to_str().unwrap()];
    let (mut child, _) = start(&options);
    let mut pages = 0;
    let found = || {
        let names = fs::read_dir(&ring).unwrap().map(|e| e.unwrap().path());
        names.into_iter().find(|p| p.file_name().unwrap().to_str().unwrap().starts_with("moment-"))
    };
    wait_for("a moment", || {
        read_whole(path.to_str().unwrap(), None);
        pages += PAGES;
        found().is_some()
    });
    let moment = found().unwrap();
    let counted = |of: &Path| {
        let (code, out, err) = output(cachestat("--json --by file --top 100000 --replay").arg(of));
        // The file is there before what is in it.
        if code == Some(2) && err.contains("it has no whole tick") {
            return (0, 0, err);
        }
        assert_eq!(code, Some(0), "{err}");
        let lines = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect::<Vec<Value>>();
        let file = rows(&lines).filter(|r| r["path"].as_str() == path.to_str()).collect::<Vec<_>>();
        (sum(&file, "/read/accesses"), file.len(), err)
    };
    wait_for("all that was read to be in it", || counted(&moment).0 >= pages);
    // SAFETY: kill takes no pointer; the child is not reaped yet.
    unsafe { libc::kill(signed(child.id()), libc::SIGKILL) };
    child.wait().unwrap();
    let (there, _, said) = counted(&moment);
    assert_eq!(there, pages);
    assert!(said.contains("moment at ") && said.contains("read.bytes > 1MiB/s"), "{said}");
    let (_, of_files, said) = counted(&ring);
    assert!(of_files == 0 && said.contains("moment at "), "{said}");
}
