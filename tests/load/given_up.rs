//! Writes of io_uring that are given up after they have brought a page into the cache: the disk is full. The next request of the
//! ring, of another file, is at the same place of the kernel's memory, and takes the place of what was remembered.

use std::ffi::CString;
use std::fs;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use cachetop::sample::Counter;
use cachetop::sample::Source as _;
use cachetop::session::Options;
use cachetop::session::Session;

use crate::tools::*;
use crate::uring;

const FILES: usize = 120;
/// Places in the kernel's memory that a ring with one entry has its requests in, at most.
const PLACES: u64 = 32;
/// A file system that is larger is not filled for a test.
const SMALL: u64 = 2 << 30;

fn run(program: &str, args: &[&str]) {
    assert!(Command::new(program).args(args).status().unwrap().success(), "{program} {args:?}");
}

/// What is free in the file system of a directory, and how large it is, in bytes.
fn room(dir: &Path) -> (u64, u64) {
    let path = CString::new(dir.as_os_str().as_bytes()).unwrap();
    // SAFETY: plain data, written by the call; the path outlives it.
    unsafe {
        let mut all: libc::statvfs = std::mem::zeroed();
        assert_eq!(libc::statvfs(path.as_ptr(), &raw mut all), 0);
        (all.f_bfree * all.f_frsize, all.f_blocks * all.f_frsize)
    }
}

/// A small file system: that of the directory, as virtual machines have it, or one in a file.
fn small(dir: &Path) -> (PathBuf, bool) {
    if room(dir).1 < SMALL {
        return (dir.to_owned(), false);
    }
    let (image, mount) = (dir.join("image"), dir.join("mount"));
    File::create(&image).unwrap().set_len(32 << 20).unwrap();
    fs::create_dir(&mount).unwrap();
    run("mkfs.ext4", &["-q", image.to_str().unwrap()]);
    run("mount", &["-o", "loop", image.to_str().unwrap(), mount.to_str().unwrap()]);
    (mount, true)
}

/// Pages of a file in the cache, up to date or not: mincore(2) has only the former. `None` before Linux 6.5.
fn cached(file: &File) -> Option<u64> {
    let (range, mut found) = ([0u64, 0], [0u64; 5]);
    // SAFETY: both have the layout that cachestat(2) takes, and outlive the call.
    let ret = unsafe { libc::syscall(451, file.as_raw_fd(), range.as_ptr(), found.as_mut_ptr(), 0) };
    (ret == 0).then_some(found[0])
}

/// The writer: a page to each of the files, one request after the other, by one ring.
pub fn write_to_each(place: &str) {
    let mut ring = uring::Ring::new(1).unwrap();
    let mut page = vec![7; usize::try_from(page_size()).unwrap()];
    for n in 0..FILES {
        let file = File::options().write(true).open(Path::new(place).join(format!("sparse-{n}"))).unwrap();
        let got = ring.write(&file, &mut page, 0, uring::ASYNC).unwrap();
        assert_eq!(got, -libc::ENOSPC, "the disk is not full");
    }
}

/// Each page that was added is a fill, once, whoever took its place in the list of what was begun.
pub fn writes_that_are_given_up(dir: &Path) {
    let (place, mounted) = small(dir);
    let path = |n: usize| place.join(format!("sparse-{n}"));
    for n in 0..FILES {
        File::create(path(n)).unwrap().set_len(16 * page_size()).unwrap();
    }
    let filler = File::create(place.join("filler")).unwrap();
    // SAFETY: no pointers.
    unsafe {
        let free = i64::try_from(room(&place).0).unwrap();
        libc::fallocate(filler.as_raw_fd(), 0, 0, free - (1 << 20));
        let end = i64::try_from(fs::metadata(place.join("filler")).unwrap().len()).unwrap();
        // By whole blocks, until not one is left.
        let mut at = end;
        for step in [1 << 18, 1 << 16, 1 << 12] {
            while libc::fallocate(filler.as_raw_fd(), 0, at, step) == 0 {
                at += step;
            }
        }
    }
    filler.sync_all().unwrap();
    let files: Vec<File> =
        (0..FILES).map(|n| File::options().read(true).write(true).open(path(n)).unwrap()).collect();
    let mut writer = Reader::new();
    let mut session = Session::open(&Options::default()).unwrap();
    let before = session.sample().unwrap();
    writer.tell("given-up", &place);
    let added: Option<u64> = files.iter().map(cached).sum();
    let after = session.sample().unwrap();
    writer.end();
    drop((files, filler));
    fs::remove_file(place.join("filler")).unwrap();
    (0..FILES).for_each(|n| fs::remove_file(path(n)).unwrap());
    if mounted {
        run("umount", &[place.to_str().unwrap()]);
    }
    let others = after.total.get(Counter::OtherFills) - before.total.get(Counter::OtherFills);
    // Where nobody can be asked: a page is added for each file before the disk is found full, and stays, since it lies in the file.
    let added = added.unwrap_or(FILES as u64);
    let lost = passed_by(&after.lost.since(&before.lost));
    println!("     {FILES} given up, {added} pages added, {others} counted as nobody's, {lost} lost");
    assert_eq!(added, FILES as u64, "nothing was added that could be given up");
    // All but those whose place no other request has come to yet.
    assert!(others <= added && others + PLACES + lost >= added, "{others} of {added}, {lost} lost");
}
