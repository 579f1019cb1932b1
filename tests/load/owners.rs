//! A process that becomes another user's or another cgroup's, without executing anything.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;

use cachetop::sample::Counter;
use cachetop::sample::Source as _;
use cachetop::session::Options;
use cachetop::session::Session;

use crate::tools::*;

const PAGES: u64 = 7;
const USER: u32 = 12345;

/// Where groups are made: the memory controller's hierarchy in version 1, else the only one.
pub fn hierarchy() -> PathBuf {
    let v1 = Path::new("/sys/fs/cgroup/memory");
    if v1.join("cgroup.procs").exists() { v1.into() } else { "/sys/fs/cgroup".into() }
}

pub fn another_user_and_cgroup(dir: &Path) {
    let path = cold_file(&dir.join("file"), PAGES);
    let mut session = Session::open(&Options::default()).unwrap();
    let mut reader = Reader::new();
    let pid = reader.pid();
    // What it read since the sample before: user, cgroup, accesses.
    let mut read = |reader: &mut Reader| {
        reader.tell("random", &path);
        let rows = session.sample().unwrap().rows;
        let reads = [Counter::ReadHits, Counter::ReadAheadHits, Counter::ReadMisses];
        let own = rows.iter().filter(|r| r.tgid == pid);
        own.map(|r| (r.uid, r.cgroup, reads.iter().map(|c| r.counters.get(*c)).sum::<u64>()))
            .filter(|r| r.2 > 0)
            .collect::<Vec<_>>()
    };
    read(&mut reader);
    let first = read(&mut reader);
    let [(0, cgroup, PAGES)] = first[..] else { panic!("{first:?}") };

    let group = hierarchy().join(format!("cachetop-load-{pid}"));
    fs::create_dir(&group).unwrap();
    let inode = fs::metadata(&group).unwrap().ino();
    fs::write(group.join("cgroup.procs"), pid.to_string()).unwrap();
    let moved = read(&mut reader);
    reader.tell("become", Path::new(&USER.to_string()));
    let changed = read(&mut reader);
    reader.end();
    fs::remove_dir(&group).unwrap();

    let plan = session.plan();
    assert_ne!(cgroup, inode);
    let seen = plan.uses("cgroup_tp");
    assert_eq!(moved, [(0, if seen { inode } else { cgroup }, PAGES)], "in another cgroup");
    // Where no function can be attached, nothing tells that the user has changed.
    let user = if plan.uses("user_fentry") || plan.uses("user_multi") { USER } else { 0 };
    // Another user's row is a new one, which says what is so by then.
    let cgroup = if seen || user == USER { inode } else { cgroup };
    assert_eq!(changed, [(user, cgroup, PAGES)], "another user's");
    println!("told apart: user {}, cgroup {seen}", user == USER);
}
