//! `--by evictor`: who gives up which pages is known by construction. Of others' pages, which go meanwhile, only that all add up.

use std::fs;
use std::io;
use std::io::BufRead as _;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use crate::blame::Group;
use crate::tools::*;

const PAGES: u64 = 64;
/// More than there is room for.
const MANY: usize = 40;
const ROOM: usize = 16;

/// Old kernels read ahead one page past the end.
fn is_about(n: u64, pages: u64) -> bool {
    (pages..=pages + pages / PAGES).contains(&n)
}

/// Has a reader give up a file, and says how many pages were there, by mincore. What somebody else looks at just then stays:
/// until it has gone, too.
fn give_up(reader: &mut Reader, path: &Path) -> u64 {
    let (file, start) = (fs::File::open(path).unwrap(), Instant::now());
    let there = resident(&file);
    loop {
        reader.tell("dontneed", path);
        if resident(&file) == 0 {
            return there;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{} stays in the cache", path.display());
    }
}

/// All rows are together what is said of the same above them.
fn adds_up(intervals: &[Value]) {
    for interval in intervals {
        for pointer in ["/cache/evicted", "/cache/removed", "/cache/refaulted", "/back_pages"] {
            let rows: Vec<_> = interval["rows"].as_array().unwrap().iter().collect();
            let parts: Option<Vec<u64>> =
                rows.iter().map(|row| row.pointer(pointer).unwrap().as_u64()).collect();
            // What no hook sees is not known of a row.
            let Some(parts) = parts.filter(|parts| !parts.is_empty()) else { continue };
            assert_eq!(parts.iter().sum::<u64>(), figure(interval, pointer), "{pointer}: {interval}");
        }
    }
}

/// What one figure of the rows of a process is, in all intervals.
fn of(intervals: &[Value], comm: &str, pointer: &str) -> u64 {
    sum(&rows(intervals).filter(|row| row["comm"] == comm).collect::<Vec<_>>(), pointer)
}

/// One process under many names gives up a file and reads it again: those that come first have rows.
pub fn evictors_that_have_no_room(dir: &Path) {
    let file = cold_file(&dir.join("given up"), PAGES);
    let mut reader = Reader::new();
    let options = format!("--json --by evictor --top 100000 --table-size {ROOM} 0.3");
    let mut monitor = Monitor::start(&options);
    let given: Vec<u64> = (0..MANY)
        .map(|n| {
            reader.tell("name", Path::new(&format!("evictor{n}")));
            reader.tell("read", &file);
            give_up(&mut reader, &file)
        })
        .collect();
    monitor.catch_up();
    reader.end();
    let (intervals, total) = monitor.finish_json();
    adds_up(&intervals);
    let (mut named, mut left, mut back) = (0, 0, 0);
    for (n, given) in given.iter().enumerate() {
        let comm = format!("evictor{n}");
        let removed = of(&intervals, &comm, "/cache/removed");
        if removed == 0 {
            left += given;
            continue;
        }
        assert!(is_about(removed, *given), "{comm} {removed}, {given} were there");
        let came = of(&intervals, &comm, "/back_pages");
        let last = n + 1 == MANY;
        assert!(is_about(came, if last { 0 } else { *given }), "{comm} {came}, {given} went");
        (named, back) = (named + 1, back + came);
    }
    // Others may have had rows before.
    assert!((1..=ROOM).contains(&named), "{named}");
    let rest: Vec<_> = rows(&intervals).filter(|row| row["other"] == true).collect();
    let (gone, came) = (sum(&rest, "/cache/removed"), sum(&rest, "/back_pages"));
    println!("     {named} have rows; the rest: {gone} pages, {came} back");
    let (all, again) = (given.iter().sum::<u64>(), given[..MANY - 1].iter().sum::<u64>());
    assert!(gone >= left, "{gone}, {left} were there");
    assert!(back + came >= again, "{back} {came}, {again} went");
    assert!(figure(&total, "/cache/removed") >= all, "{all} were there: {total}");
    assert!(figure(&total, "/back_pages") >= again, "{again} went: {total}");
}

/// Two processes in two cgroups give up what the other has read: each filter leaves what concerns it, in each format.
pub fn evictors_that_were_asked_for(dir: &Path) {
    let [mine, theirs] = ["mine", "theirs"].map(|name| cold_file(&dir.join(name), PAGES));
    let groups = ["a", "b"].map(Group::new);
    let mut readers = ["reader\x1ba", "reader b"].map(|name| {
        let mut reader = Reader::new();
        reader.tell("name", Path::new(name));
        reader
    });
    for (group, reader) in groups.iter().zip(&readers) {
        fs::write(group.0.join("cgroup.procs"), reader.pid().to_string()).unwrap();
    }
    readers[0].tell("read", &mine);
    readers[1].tell("read", &theirs);
    let path = |group: &Group| {
        let root = crate::whatif::hierarchy();
        format!("/{}", group.0.strip_prefix(root).unwrap().display())
    };
    let json = "--json --by evictor --top 100000 0.3";
    let mut monitors = vec![
        Monitor::start(json),
        Monitor::start(&format!("-p {} {json}", readers[1].pid())),
        Monitor::start_with(&["--cgroup", &path(&groups[0])], json),
        Monitor::start_with(&["--comm", "reader b"], json),
    ];
    let mut csv = Monitor::start(&format!(
        "--csv --by evictor --top 100000 -p {} --columns out,back,removed 0.3",
        readers[0].pid()
    ));
    let mut top = Command::new(env!("CARGO_BIN_EXE_cachetop"));
    top.args(["-b", "--no-config", "--by", "evictor", "-n", "100", "0.3"]).stdout(Stdio::piped());
    plain(&mut top);
    let mut top = top.spawn().unwrap();
    let mut shown = io::BufReader::new(top.stdout.take().unwrap());
    let mut text = String::new();
    shown.read_line(&mut text).unwrap();
    // What each of them gave up.
    let gave = [give_up(&mut readers[0], &theirs), give_up(&mut readers[1], &mine)];
    monitors.iter_mut().for_each(|monitor| _ = monitor.catch_up());
    // In another interval: what comes back has left in none of these.
    readers[0].tell("read", &mine);
    monitors.iter_mut().for_each(|monitor| _ = monitor.catch_up());
    csv.catch_up();
    let said: Vec<_> = monitors.into_iter().map(|monitor| monitor.finish_json().0).collect();
    for intervals in &said {
        adds_up(intervals);
    }
    let (first, second) = ("reader\x1ba", "reader b");
    let out = |which: usize, comm: &str| of(&said[which], comm, "/cache/removed");
    let back = |which: usize, comm: &str| of(&said[which], comm, "/back_pages");
    let charged =
        said[0].iter().flat_map(|i| i["rows"].as_array().unwrap()).find(|row| row["comm"] == second);
    let charged = charged.unwrap()["owner"] == path(&groups[0]).as_str();
    println!("     pages are charged to cgroups: {charged}; {} {}", out(0, first), out(0, second));
    assert!(is_about(out(0, first), gave[0]) && is_about(out(0, second), gave[1]), "{gave:?}");
    assert!(is_about(back(0, second), gave[1]) && back(0, first) == 0, "{gave:?} {}", back(0, second));
    // A process and a name: what these pushed out, and nobody else's but what they brought in again.
    for which in [1, 3] {
        assert_eq!((out(which, first), back(which, first)), (0, 0), "{which}");
        assert!(is_about(out(which, second), gave[1]) && is_about(back(which, second), gave[1]), "{which}");
    }
    // A cgroup: also what was its own, whoever pushed it out, and what it brought in again.
    assert!(is_about(out(2, first), gave[0]) && is_about(back(2, second), gave[1]));
    assert!(!charged || is_about(out(2, second), gave[1]));
    let strangers = |row: &&Value| row["comm"] != first && row["comm"] != second && row["other"] != true;
    assert_eq!(rows(&said[1]).filter(strangers).count(), 0);
    let lines = csv.finish();
    let mut table = csv::Reader::from_reader(io::Cursor::new(lines.join("\n")));
    let names: Vec<String> = table.headers().unwrap().iter().map(String::from).collect();
    assert_eq!(names.join(","), "time,interval_s,how,owner,cgroup,comm,limit_of,out,back,removed");
    let (mut own, mut again) = (0, 0);
    for record in table.records().map(Result::unwrap) {
        assert!(record.iter().all(|cell| !cell.contains('\x1b')), "{record:?}");
        if record[5].starts_with("reader\\x1ba") {
            assert_eq!((&record[2], &record[7]), ("dontneed", &record[9]));
            own += record[7].parse::<u64>().unwrap();
        }
        if &record[5] == second {
            again += record[8].parse::<u64>().unwrap();
        }
    }
    assert!(is_about(own, gave[0]) && is_about(again, gave[1]), "{own} {again}, {gave:?}");
    for reader in readers {
        reader.end();
    }
    // SAFETY: kill takes no pointer; the child is not reaped yet.
    unsafe { libc::kill(signed(top.id()), libc::SIGINT) };
    shown.read_to_string(&mut text).unwrap();
    assert!(top.wait().unwrap().success());
    assert!(!text.contains('\x1b'), "{text:?}");
    let shown = text.lines().find(|l| l.contains("dontneed") && l.contains("(reader\\x1ba)")).unwrap();
    assert!(shown.contains("/b\\x1b[2J-") || !charged, "{shown}");
    assert!(
        text.lines().any(|l| l.ends_with("WHOSE <- BY WHOM") && l.contains("OUT") && l.contains("BACK")),
        "{text}"
    );
}
