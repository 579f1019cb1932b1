//! Trees: what is counted, how often, and what may go wrong on the way.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs as std_fs;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::fs::Fs;
use crate::hold::ODD;
use crate::hold::cachedu;
use crate::hold::count;
use crate::hold::file_with;
use crate::hold::json;
use crate::hold::number;
use crate::hold::pages_of;
use crate::hold::resident;
use crate::sys::page_size;

/// Bytes on disk as du(1) counts: every inode once.
fn disk(dir: &Path, seen: &mut HashSet<u64>) -> u64 {
    let mut sum = std_fs::symlink_metadata(dir).unwrap().blocks() * 512;
    for entry in std_fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = std_fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            sum += disk(&path, seen);
        } else if seen.insert(meta.ino()) {
            sum += meta.blocks() * 512;
        }
    }
    sum
}

pub fn a_tree(fs: Fs, dir: &Path) {
    let top = dir.join("top");
    let deep = top.join("a/.hidden/c");
    std_fs::create_dir_all(&deep).unwrap();
    let (_one, cached) = file_with(fs, &top.join("a/one"), 1000, &pages_of(ODD));
    let odd_name = deep.join(OsStr::from_bytes(b"not\xffutf8\n"));
    let (_two, more) = file_with(fs, &odd_name, 100, &[3, 4, 5]);
    // The same file by another name, in another directory.
    std_fs::hard_link(top.join("a/one"), deep.join("again")).unwrap();
    File::create(top.join("empty")).unwrap();
    symlink("..", deep.join("loop")).unwrap();
    symlink("/no/such/file", top.join("dangling")).unwrap();
    let fifo = std::ffi::CString::new(top.join("fifo").as_os_str().as_bytes()).unwrap();
    // SAFETY: a live, terminated string.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    let expected = count(&cached) + count(&more);

    let lines = json(&["-a", "-d", "99"], &top);
    let total = lines.last().unwrap();
    assert_eq!((number(total, "files"), number(total, "directories"), number(total, "others")), (3, 4, 3));
    assert_eq!((number(total, "pages"), number(total, "cached")), (1100, expected));
    let synced = File::open(&top).unwrap();
    synced.sync_all().unwrap();
    let total = json(&["-d", "0"], &top).pop().unwrap();
    assert_eq!(number(&total, "disk_bytes"), disk(&top, &mut HashSet::new()), "as du counts");

    let of = |name: &[u8]| lines.iter().find(|l| l["path_hex"] == hex(name)).cloned();
    let name = odd_name.as_os_str().as_bytes();
    assert_eq!(number(&of(name).expect("a name that is not UTF-8"), "cached"), count(&more));
    let hidden = lines.iter().find(|l| l["path"] == top.join("a/.hidden").to_str().unwrap()).unwrap();
    assert!(number(hidden, "cached") >= count(&more));

    // One thread and many, either call: the same.
    for args in [&["-j", "1"][..], &["-j", "4"], &["--method", "mincore"]] {
        assert_eq!(number(json(args, &top).last().unwrap(), "cached"), expected, "{args:?}");
    }
    let without = json(&["--exclude", ".hidden"], &top).pop().unwrap();
    assert_eq!((number(&without, "files"), number(&without, "cached")), (2, count(&cached)));
    let text = cachedu(&["-a", "-d", "99", "--top", "1", "--sort", "name"], &top);
    assert_eq!(String::from_utf8(text.stdout).unwrap().lines().count(), 2, "a title and one row");
    let files = json(&["-f", "--top", "1"], &top);
    assert_eq!(
        (files.len(), &files[0]["type"], number(&files[0], "cached")),
        (2, &"file".into(), count(&cached))
    );
    assert_eq!(number(&files[1], "cached"), expected, "the total is that of all");
}

/// Sixteen pages at the end of a hole: all that is on the disk is cached, and it is 1/256 of the file.
pub fn percent_beside_its_denominator(_fs: Fs, dir: &Path) {
    const DATA: u64 = 16;
    const PAGES: u64 = 256 * DATA;
    let top = dir.join("sparse");
    std_fs::create_dir(&top).unwrap();
    let file = File::options().create_new(true).read(true).write(true).open(top.join("file")).unwrap();
    let data = vec![0x5a; usize::try_from(DATA * page_size()).unwrap()];
    file.write_all_at(&data, (PAGES - DATA) * page_size()).unwrap();
    file.sync_all().unwrap();
    assert_eq!(count(&resident(&file, PAGES)), DATA);
    let size = format!("{}.0M", (PAGES * page_size()) >> 20);
    let cached = format!("{}.0K", (DATA * page_size()) >> 10);
    // Before Linux 6.5 both are the same.
    for options in [&["-a"][..], &["-a", "--method", "mincore"]] {
        let out = cachedu(options, &top);
        let text = String::from_utf8(out.stdout).unwrap();
        let mut lines = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
        assert_eq!(lines.next().unwrap()[..4], ["SIZE", "DISK", "CACHED", "PERCENT"], "{options:?}");
        for line in lines {
            assert_eq!((line[0], line[2], line[3]), (&*size, &*cached, "0.39%"), "{options:?}: {text}");
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Deeper than a path may be long: 1500 directories of 12 letters.
pub fn a_deep_tree(fs: Fs, dir: &Path) {
    use rustix::fs::Mode;
    use rustix::fs::OFlags;
    const LEVELS: usize = 1500;
    let top = dir.join("deep");
    std_fs::create_dir(&top).unwrap();
    let mut at = rustix::fs::open(&top, OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty()).unwrap();
    for _ in 0..LEVELS {
        rustix::fs::mkdirat(&at, "abcdefghijkl", Mode::from_raw_mode(0o755)).unwrap();
        // A second one beside it, so that there is something to come back for.
        rustix::fs::mkdirat(&at, "b", Mode::from_raw_mode(0o755)).unwrap();
        at = rustix::fs::openat(&at, "abcdefghijkl", OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty())
            .unwrap();
    }
    let total = json(&["-d", "0"], &top).pop().unwrap();
    assert_eq!(number(&total, "directories"), 2 * LEVELS as u64 + 1);

    // What is down there can be asked about and acted on like anything else.
    let bottom = format!("/proc/self/fd/{}/file", at.as_raw_fd());
    let (file, cached) = file_with(fs, Path::new(&bottom), 100, &[3, 4, 50]);
    let found = &json(&["-f"], &top)[0];
    let path = Path::new(found["path"].as_str().unwrap());
    assert!(path.as_os_str().len() > 4 * 4096 && path.ends_with("abcdefghijkl/file"));
    assert_eq!(number(found, "cached"), count(&cached));
    assert_eq!(number(&json(&[], path)[0], "cached"), count(&cached), "by its name");
    let set = dir.join("set");
    assert!(cachedu(&["--save", set.to_str().unwrap()], &top).status.success());
    let left = number(&json(&["--evict"], &top)[0], "after");
    assert_eq!((left, left == 0), (count(&resident(&file, 100)), fs != Fs::Tmpfs));
    assert_eq!(number(&json(&["--restore"], &set)[0], "after"), count(&resident(&file, 100)));
    assert!(cached.iter().zip(resident(&file, 100)).all(|(before, after)| !before || after));
    let loaded = &json(&["--load"], &top)[0];
    assert_eq!(number(loaded, "after"), if fs == Fs::Tmpfs { count(&cached) } else { 100 });
}

pub fn files_that_vanish(_fs: Fs, dir: &Path) {
    let top = dir.join("busy");
    std_fs::create_dir(&top).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (stop, top) = (&stop, &top);
            scope.spawn(move || {
                let mut i = 0_u64;
                while !stop.load(Relaxed) {
                    let name = top.join(format!("{thread}-{}", i % 300));
                    if i % 2 == 0 {
                        std_fs::create_dir(&name).unwrap();
                        std_fs::write(name.join("x"), "x").unwrap();
                        std_fs::remove_dir_all(&name).unwrap();
                    } else {
                        std_fs::write(&name, "x").unwrap();
                        std_fs::remove_file(&name).unwrap();
                    }
                    i += 1;
                }
            });
        }
        for _ in 0..20 {
            let out = cachedu(&["-a", "-d", "9"], &top);
            let err = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success() && !err.contains("warning"), "{err}");
        }
        stop.store(true, Relaxed);
    });
    let file = File::open(&top).unwrap();
    assert!(cachetop::du::residency(file.as_fd()).is_err(), "a directory is no file");
    assert_eq!(page_size() % 4096, 0);
}
