//! Hooks that the kernel refuses: another plan, or figures that are not known; never a 0 that is not one.

use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::tools::*;

const PAGES: u64 = 29;
const WRITTEN: u64 = 10;

/// The programs that a plan loads, by the names in their source: the kernel keeps 15 letters of each.
fn programs(options: &str) -> Vec<String> {
    let sources = [
        include_str!("../../bpf/hooks/calls.h"),
        include_str!("../../bpf/hooks/direct.h"),
        include_str!("../../bpf/hooks/faults.h"),
        include_str!("../../bpf/hooks/follow.h"),
        include_str!("../../bpf/hooks/pages.h"),
        include_str!("../../bpf/hooks/reads.h"),
        include_str!("../../bpf/hooks/threads.h"),
        include_str!("../../bpf/hooks/trees.h"),
        include_str!("../../bpf/hooks/writes.h"),
    ];
    let known: Vec<&str> = sources
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .collect();
    let monitor = Monitor::start(&format!("--json {options} 0.1"));
    let mut names: Vec<String> = programs_of(monitor.pid())
        .iter()
        .filter_map(|(name, _)| {
            known.iter().find(|k| *k == name || (name.len() == 15 && k.starts_with(name)))
        })
        .map(|k| (*k).to_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// A figure, `None` where it is not known.
fn maybe(of: &[&Value], pointer: &str) -> Option<u64> {
    of.iter().map(|v| v.pointer(pointer).unwrap().as_u64()).sum()
}

/// What a run without the programs named says, or how it says that it cannot.
struct Outcome {
    row: [Option<u64>; 6],
    dirtied: Option<u64>,
    removed: Option<u64>,
    buffers: Option<u64>,
}

fn without(dir: &Path, refused: &[&str]) -> Result<Outcome, String> {
    let refuse: String = refused.iter().map(|p| format!("--refuse {p} ")).collect();
    let (code, out, err) = output(&mut cachestat(&format!("{refuse} --explain")));
    if code != Some(0) {
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains("\nremedy: "), "{err}");
        return Err(err);
    }
    let place = dir.join(refused.join("-"));
    fs::create_dir(&place).unwrap();
    let path = cold_file(&place.join("file"), PAGES);
    let doomed = cold_file(&place.join("doomed"), PAGES);
    let mut reader = Reader::new();
    let monitor = Monitor::start(&format!("{refuse} --json --by process --top 100000 0.1"));
    reader.tell("random", &path);
    reader.tell("read", &path);
    let mut written = File::create_new(place.join("written")).unwrap();
    written.write_all(&vec![1; usize::try_from(WRITTEN * page_size()).unwrap()]).unwrap();
    written.sync_all().unwrap();
    // Now: what waits in the cache may be reclaimed.
    fs::read(&doomed).unwrap();
    fs::remove_file(doomed).unwrap();
    let (intervals, total) = monitor.finish_json();
    let rows = rows_of(&intervals, reader.pid());
    assert!(!rows.is_empty(), "{refused:?}: no row: {total}");
    let row = [
        "/read/accesses",
        "/read/hits",
        "/read/readahead_hits",
        "/read/misses",
        "/read/bytes",
        "/readahead/fills",
    ]
    .map(|p| maybe(&rows, p));
    assert!(maybe(&[&total], "/read/accesses") >= row[0], "{refused:?}: {total}");
    reader.end();
    Ok(Outcome {
        row,
        dirtied: maybe(&[&total], "/write/dirtied"),
        // Some machines take unused pages away by themselves (DAMON), before they are removed.
        removed: maybe(&[&total], "/cache/removed")
            .zip(maybe(&[&total], "/cache/evicted"))
            .map(|(removed, evicted)| removed + evicted),
        buffers: maybe(&[&total], "/write/buffer_dirtied"),
    })
}

/// Only known figures can be wrong.
fn wrong(of: &Outcome, dir: &Path) -> Vec<String> {
    let bytes = 2 * ((PAGES - 1) * page_size() + 123);
    let want = [2 * PAGES, PAGES, 0, PAGES, bytes, PAGES];
    let mut wrong: Vec<String> = want
        .iter()
        .zip(of.row)
        .filter(|(want, got)| got.is_some_and(|got| got != **want))
        .map(|(want, got)| format!("{got:?} for {want}"))
        .collect();
    let mut at_least = |what: &str, got: Option<u64>, least: u64| {
        if got.is_some_and(|got| got < least) {
            wrong.push(format!("{what} {got:?} for at least {least}"));
        }
    };
    at_least("dirtied", of.dirtied, WRITTEN);
    at_least("removed", of.removed, PAGES);
    at_least("buffers", of.buffers, u64::from(on_ext4(dir)));
    wrong
}

/// There, and in its relatives, writing to a file makes buffers dirty.
fn on_ext4(dir: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let place = |line: &&str| {
        let path = line.split(' ').nth(1).unwrap();
        if dir.starts_with(path) { path.len() } else { 0 }
    };
    mounts.lines().max_by_key(place).is_some_and(|l| l.split(' ').nth(2) == Some("ext4"))
}

pub fn each_hook_refused(dir: &Path) {
    let all = programs("");
    assert!(all.len() >= 8, "{all:?}");
    let mut bad = Vec::new();
    for program in &all {
        match without(dir, &[program]) {
            Err(err) => println!("     {program}: {}", err.lines().next().unwrap_or_default()),
            Ok(outcome) => {
                let wrong = wrong(&outcome, dir);
                let unknown = outcome.row.iter().filter(|f| f.is_none()).count();
                println!("     {program}: {} wrong, {unknown} of the row unknown", wrong.len());
                bad.extend(wrong.into_iter().map(|w| format!("without {program}: {w}")));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

pub fn no_hook_for_dirty_pages(dir: &Path) {
    let dirty = ["dirty_multi", "dirty_btf", "dirty_btf_pages", "dirty_in_call_btf"];
    let outcome = without(dir, &dirty).unwrap();
    assert_eq!(outcome.dirtied, None);
    assert_eq!(wrong(&outcome, dir), Vec::<String>::new());
    let (_, out, _) = output(&mut cachestat("--refuse buffer_btf --refuse buffer_tp --json 0.1 2"));
    for line in out.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["write"]["buffer_dirtied"], Value::Null, "{line}");
    }
}
