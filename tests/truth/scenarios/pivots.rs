//! Who did it and to which file: rows by file, thread, user and cgroup.

use std::fs;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;

use anyhow::Context;
use anyhow::Result;
use anyhow::ensure;
use cachetop::cgroup::Hierarchy;
use cachetop::figures::Figure;

use super::*;
use crate::expect::Scope;
use crate::pivots::RowWant;
use crate::sys;
use crate::uring::Ring;

pub const LIST: &[Scenario] = &[
    scenario("pivot-files", BLOCK, "two files of one process, one of them cold", two_files),
    scenario("pivot-processes", BLOCK, "one file of two processes", two_processes),
    scenario("pivot-renamed", BLOCK, "a file renamed before, one deleted before it is read", renamed),
    scenario("pivot-links", BLOCK, "a file of several names has the one that it was opened by", links),
    scenario("pivot-links-mapped", BLOCK, "so it has where it is mapped, or read by io_uring", links_mapped),
    scenario("pivot-reused", ALL, "files that come and go one after the other", reused),
    scenario("pivot-overlay", &[Fs::Ext4, Fs::Xfs], "a file on overlay is that of the layer", overlay),
    scenario("pivot-memfd", &[Fs::Tmpfs], "memory with a name but no directory", memfd),
    scenario("pivot-written", ALL, "files written: new, over what is cached, over what is not", written),
    scenario(
        "pivot-direct",
        BLOCK,
        "files read and written past the cache, at once and by io_submit",
        direct,
    ),
    scenario("pivot-device", &[Fs::Ext4], "a device read and written past the cache", device),
    scenario("pivot-threads", &[Fs::Ext4], "two threads with different work", threads),
    scenario("pivot-user", &[Fs::Ext4], "a process of another user and name", user),
    scenario("pivot-cgroup", &[Fs::Ext4], "a process in a cgroup of its own", cgroup),
];

/// Reads whole pages from the beginning, in one call, some times.
fn read(file: &File, pages: u64, times: u64) -> Result<()> {
    let mut buf = buffer(pages * PAGE);
    for _ in 0..times {
        file.read_exact_at(&mut buf, 0)?;
    }
    Ok(())
}

fn warm_named(c: &mut Ctx, name: &str, pages: u64) -> Result<File> {
    let file = c.file(name, pages * PAGE)?;
    warm_up(&file)?;
    c.open(name)
}

fn path(c: &Ctx, name: &str) -> Option<String> {
    Some(format!("/{}/{name}", c.dir.file_name()?.to_str()?))
}

fn row(by: &str, accesses: u64, misses: u64) -> RowWant {
    RowWant { by: by.into(), accesses, misses, bytes: accesses * PAGE, ..RowWant::default() }
}

fn expected(accesses: u64, misses: u64, rows: Vec<RowWant>) -> Expect {
    let mut e = Expect::nothing();
    e.exact(Figure::Accesses, accesses).exact(Figure::Misses, misses).exact(Figure::Hits, accesses - misses);
    e.exact(Figure::ReadBytes, accesses * PAGE).exact(Figure::Fills, misses);
    e.rows = rows;
    e
}

fn two_files(c: &mut Ctx) -> Result<Expect> {
    let a = warm_named(c, "a", 16)?;
    let b = c.file("b", 16 * PAGE)?;
    sys::advise(&b, 0, 0, libc::POSIX_FADV_RANDOM)?;
    c.begin();
    read(&a, 16, 3)?;
    read(&b, 16, 1)?;
    read(&a, 4, 1)?;
    let pid = Some(std::process::id());
    let inode = |f: &File| f.metadata().map(|m| Some(m.ino()));
    let rows = vec![
        RowWant { path: path(c, "a"), pid, inode: inode(&a)?, ..row("file", 52, 0) },
        RowWant { path: path(c, "b"), pid, inode: inode(&b)?, ..row("file", 16, 16) },
        RowWant { path: path(c, "a"), ..row("file", 52, 0) },
    ];
    Ok(expected(68, 16, rows))
}

fn two_processes(c: &mut Ctx) -> Result<Expect> {
    let file = warm_named(c, "f", 8)?;
    c.begin();
    let mut pids = Vec::new();
    for times in [2, 5] {
        let pid = sys::fork(|| i32::from(read(&file, 8, times).is_err()))?;
        ensure!(sys::wait(pid)? == 0, "a reader failed");
        pids.push(pid as u32);
    }
    let of_pid = |pid, n| RowWant { path: path(c, "f"), pid: Some(pid), ..row("file", n, 0) };
    let rows =
        vec![of_pid(pids[0], 16), of_pid(pids[1], 40), RowWant { path: path(c, "f"), ..row("file", 56, 0) }];
    let mut e = expected(56, 0, rows);
    e.scope = Scope::Pids(pids);
    Ok(e)
}

fn renamed(c: &mut Ctx) -> Result<Expect> {
    let a = warm_named(c, "a", 3)?;
    let b = warm_named(c, "b", 5)?;
    fs::rename(c.dir.join("a"), c.dir.join("c"))?;
    fs::remove_file(c.dir.join("b"))?;
    let inode = Some(b.metadata()?.ino());
    c.begin();
    // A process that has not used them before: to this one they have their old names.
    let pid = sys::fork(|| i32::from(read(&a, 3, 1).is_err() || read(&b, 5, 1).is_err()))?;
    ensure!(sys::wait(pid)? == 0, "the reader failed");
    let pid = pid as u32;
    let rows = vec![
        RowWant { path: path(c, "c"), pid: Some(pid), ..row("file", 3, 0) },
        RowWant { path: path(c, "b (deleted)"), inode, pid: Some(pid), ..row("file", 5, 0) },
    ];
    let mut e = expected(8, 0, rows);
    let why = "the deleted file may go before the second sample, with what was read ahead of its writing";
    e.within(Figure::Removed, 0, 6, why).within(Figure::ReadAheadWasted, 0, 1, why);
    e.scope = Scope::Pids(vec![pid]);
    Ok(e)
}

/// Other names of a file, of which the kernel comes to know the last one last: one is called the same in another directory, one
/// as nobody would call it. With the first.
fn linked(c: &mut Ctx, first: &str) -> Result<Vec<String>> {
    let mut names = vec![first.to_owned()];
    for name in [format!("one/{first}"), format!("two/{first}"), format!("two/{first}\n (deleted)")] {
        fs::create_dir_all(c.dir.join(&name).parent().context("a directory")?)?;
        fs::hard_link(c.dir.join(first), c.dir.join(&name))?;
        names.push(name);
    }
    Ok(names)
}

/// A process of its own opens the file by this name and uses so many pages of it.
fn by_name(c: &Ctx, name: &str, pages: u64, work: impl Fn(&File) -> Result<()>) -> Result<RowWant> {
    let open = || File::options().read(true).write(true).open(c.dir.join(name));
    let pid = sys::fork(|| i32::from(open().map_err(Into::into).and_then(|f| work(&f)).is_err()))?;
    ensure!(sys::wait(pid)? == 0, "{name}: it could not be used");
    Ok(RowWant { path: path(c, name), pid: Some(pid as u32), ..row("file", pages, 0) })
}

fn links(c: &mut Ctx) -> Result<Expect> {
    const PAGES: u64 = 8;
    let whole = (PAGES * PAGE) as usize;
    drop(warm_named(c, "f", PAGES)?);
    drop(c.file("cold", PAGES * PAGE)?);
    let (warm, cold) = (linked(c, "f")?, linked(c, "cold")?);
    c.begin();
    let (mut rows, mut sum) = (Vec::new(), 0);
    for name in &warm {
        rows.push(by_name(c, name, 2 * PAGES, |f| read(f, PAGES, 2))?);
        rows.push(by_name(c, name, PAGES, |mut f| Ok(f.read_exact(&mut vec![0; whole])?))?);
        rows.push(by_name(c, name, PAGES, |f| {
            let null = File::options().write(true).open("/dev/null")?;
            ensure!(sys::sendfile(&null, f, 0, whole)? == whole);
            Ok(())
        })?);
        rows.push(by_name(c, name, 4, |f| {
            let (_from, to) = sys::pipe()?;
            ensure!(sys::splice(f, 0, &to, whole / 2)? == whole / 2);
            Ok(())
        })?);
        sum += 4 * PAGES + 4;
    }
    let mut missed = 0;
    for (i, name) in cold.iter().enumerate() {
        // A page each: whoever comes later would find what another has brought in.
        let mut want = by_name(c, name, 1, |f| {
            sys::advise(f, 0, 0, libc::POSIX_FADV_RANDOM)?;
            Ok(f.read_exact_at(&mut buffer(PAGE), 2 * i as u64 * PAGE)?)
        })?;
        want.misses = 1;
        missed += 1;
        rows.push(want);
    }
    let pids = rows.iter().filter_map(|r| r.pid).collect();
    let mut e = expected(sum + missed, missed, rows);
    e.scope = Scope::Pids(pids);
    Ok(e)
}

/// What is mapped has no descriptor, and neither has a request of io_uring: where functions are seen, it is at hand which file it is.
fn links_mapped(c: &mut Ctx) -> Result<Expect> {
    const PAGES: u64 = 4;
    let whole = (PAGES * PAGE) as usize;
    drop(warm_named(c, "f", PAGES)?);
    let names = linked(c, "f")?;
    let at = c.dir.join(&names[3]);
    c.begin();
    let mut rows = Vec::new();
    for name in &names[..3] {
        rows.push(by_name(c, name, PAGES, |f| {
            let map = sys::Map::new(f, PAGES as usize)?;
            for page in 0..PAGES as usize {
                let _ = map.touch(page);
            }
            // By another name: it goes on in the same row.
            read(&File::open(&at)?, PAGES, 1)
        })?);
        rows.push(by_name(c, name, 2 * PAGES, |f| {
            let mut buf = buffer(PAGES * PAGE);
            let read_all = Ring::new(4)?.read(f, &mut [(&mut buf, 0)], 0)?;
            ensure!(read_all == [whole as i32]);
            read(&File::open(&at)?, PAGES, 1)
        })?);
    }
    rows.iter_mut().for_each(|r| r.by_functions = true);
    let pids = rows.iter().filter_map(|r| r.pid).collect();
    let mut e = expected(3 * 3 * PAGES, 0, rows);
    // A process that is forked maps its own program as well.
    let why = "faults of programs";
    e.within(Figure::FaultHits, 1, 4096, why).within(Figure::FaultMisses, 0, 64, why);
    e.within(Figure::FaultAround, 0, 65_536, why);
    e.scope = Scope::Pids(pids);
    Ok(e)
}

/// A file that is open for writing, of which some pages are cached.
fn writable(c: &Ctx, name: &str) -> Result<File> {
    Ok(File::options().read(true).write(true).create(true).truncate(false).open(c.dir.join(name))?)
}

/// Where the plan says so, rows have no writes.
fn unless(c: &Ctx, e: &mut Expect) {
    if c.fs == Fs::Btrfs {
        e.rows.iter_mut().for_each(|r| r.unless = Some("writes of btrfs are not seen".into()));
    }
}

fn written(c: &mut Ctx) -> Result<Expect> {
    let cached = c.warm_file("cached", 16 * PAGE)?;
    let absent = c.file("absent", 16 * PAGE)?;
    let new = writable(c, "new")?;
    sys::advise(&absent, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let buf = buffer(5 * PAGE);
    c.begin();
    for i in 0..3 {
        new.write_all_at(&buf, i * 5 * PAGE)?;
    }
    cached.write_all_at(&buf[..2 * PAGE as usize], 3 * PAGE)?;
    cached.write_all_at(&buf[..100], 3 * PAGE)?;
    // On tmpfs everything is there that was ever written.
    absent.write_all_at(&buf[..4 * PAGE as usize], 7 * PAGE)?;
    let (absent_hits, absent_misses) = if c.fs.block() { (0, 4) } else { (4, 0) };
    let pid = Some(std::process::id());
    let row = |by: &str, hits, misses| RowWant { written: [hits, misses], pid, ..row(by, 0, 0) };
    let of = |name: &str, hits, misses| RowWant { path: path(c, name), ..row("file", hits, misses) };
    let (hits, misses) = (3 + absent_hits, 15 + absent_misses);
    let mut e = Expect::nothing();
    e.exact(Figure::WriteAccesses, 22).exact(Figure::WriteHits, hits).exact(Figure::WriteMisses, misses);
    // Where folios are large, those that are dirtied are as a whole.
    e.within(Figure::Dirtied, dirtied(c, 21), dirtied(c, 47), "a folio gets dirty as a whole");
    e.rows = vec![of("new", 0, 15), of("cached", 3, 0), of("absent", absent_hits, absent_misses)];
    e.rows.extend([row("mount", hits, misses), row("device", hits, misses), row("process", hits, misses)]);
    unless(c, &mut e);
    Ok(e)
}

fn open_direct(c: &Ctx, name: &str) -> Result<File> {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_DIRECT);
    refused("open with O_DIRECT", options.open(c.dir.join(name)))
}

/// Ours start on a page and are whole pages.
fn direct(c: &mut Ctx) -> Result<Expect> {
    c.file("a", 40 * PAGE)?;
    c.file("b", 40 * PAGE)?;
    let (a, b) = (open_direct(c, "a")?, open_direct(c, "b")?);
    let mut room = buffer(18 * PAGE);
    let buf = aligned(&mut room, 17 * PAGE as usize);
    c.begin();
    let mut read = refused("O_DIRECT read", a.read_at(&mut buf[..3 * PAGE as usize], PAGE))?;
    read += refused("O_DIRECT read", a.read_at(&mut buf[..5 * PAGE as usize], 20 * PAGE))?;
    let asynchronous = refused("io_submit", sys::aio(&b, buf, 0, false))?;
    let write = refused("O_DIRECT write", b.write_at(&buf[..2 * PAGE as usize], 30 * PAGE))?;
    ensure!(read as u64 == 8 * PAGE && asynchronous as u64 == 17 * PAGE && write as u64 == 2 * PAGE);
    let pid = Some(std::process::id());
    let row = |by: &str, read, write| RowWant { direct: [read, write], pid, ..row(by, 0, 0) };
    let of = |name: &str, read, write| RowWant { path: path(c, name), ..row("file", read, write) };
    let mut e = Expect::nothing();
    e.exact(Figure::DirectReadBytes, 25 * PAGE).exact(Figure::DirectWriteBytes, 2 * PAGE);
    e.within(Figure::Removed, 0, 8, "io_destroy frees the ring, which is a file");
    e.rows = vec![of("a", 8 * PAGE, 0), of("b", 17 * PAGE, 2 * PAGE)];
    e.rows.extend(["mount", "device", "process"].map(|by| row(by, 25 * PAGE, 2 * PAGE)));
    if c.fs == Fs::Btrfs {
        // Some kernels write through the cache there: the sums are compared, of whatever went which way.
        e.rows.truncate(1);
        for figure in [Figure::DirectReadBytes, Figure::DirectWriteBytes, Figure::DirectFellBack] {
            e.within(figure, 0, 27 * PAGE, "btrfs may fall back to the cache");
        }
        for figure in [Figure::WriteAccesses, Figure::WriteMisses, Figure::Dirtied] {
            e.within(figure, 0, 2, "btrfs may fall back to the cache");
        }
    }
    Ok(e)
}

fn device(c: &mut Ctx) -> Result<Expect> {
    let image = c.warm_file("img", 4 << 20)?;
    let (at, keep) = refused("loop device", sys::loop_attach(&image))?;
    let file = refused("open with O_DIRECT", {
        let mut options = File::options();
        options.read(true).write(true).custom_flags(libc::O_DIRECT).open(&at)
    })?;
    let mut room = buffer(18 * PAGE);
    let buf = aligned(&mut room, 17 * PAGE as usize);
    c.begin();
    let read = refused("O_DIRECT read", file.read_at(buf, 0))?;
    let write = refused("O_DIRECT write", file.write_at(&buf[..3 * PAGE as usize], PAGE))?;
    let asynchronous = refused("io_submit", sys::aio(&file, &mut buf[..2 * PAGE as usize], 0, true))?;
    ensure!(read as u64 == 17 * PAGE && write as u64 == 3 * PAGE && asynchronous as u64 == 2 * PAGE);
    let pid = Some(std::process::id());
    let mut e = Expect::nothing();
    e.exact(Figure::DirectReadBytes, 17 * PAGE).exact(Figure::DirectWriteBytes, 5 * PAGE);
    e.within(Figure::Removed, 0, 8, "io_destroy frees the ring, which is a file");
    for figure in [Figure::DirectReadBytes, Figure::DirectWriteBytes] {
        for why in ["not that of block devices", "direct I/O of block devices is not seen"] {
            e.if_bounded(figure, 0, 0, why);
        }
    }
    let seen = |by: &str| RowWant { direct: [17 * PAGE, 5 * PAGE], pid, ..row(by, 0, 0) };
    e.rows = ["file", "device", "process"].map(seen).into();
    e.rows.iter_mut().for_each(|r| r.unless = Some("of block devices".into()));
    drop(keep);
    Ok(e)
}

/// Inodes and their numbers are used again at once on some file systems.
fn reused(c: &mut Ctx) -> Result<Expect> {
    const FILES: u64 = 20;
    c.begin();
    let (mut rows, mut sum) = (Vec::new(), 0);
    for i in 1..=FILES {
        let name = format!("n{i}");
        let file = File::options().read(true).write(true).create_new(true).open(c.dir.join(&name))?;
        file.write_all_at(&buffer(PAGE), 0)?;
        read(&file, 1, i)?;
        sum += i;
        rows.push(RowWant { path: path(c, &name), written: [0, 1], ..row("file", i, 0) });
        drop(file);
        fs::remove_file(c.dir.join(name))?;
    }
    let mut e = expected(sum, 0, rows);
    e.exact(Figure::WriteAccesses, FILES).exact(Figure::WriteMisses, FILES);
    e.exact(Figure::Dirtied, dirtied(c, FILES)).within(Figure::Removed, 0, FILES, "whether they were dirty");
    unless(c, &mut e);
    Ok(e)
}

fn overlay(c: &mut Ctx) -> Result<Expect> {
    let (below, above) = stacks::overlaid(c, 6 * PAGE)?;
    warm_up(&below)?;
    c.begin();
    read(&above, 6, 2)?;
    let inode = Some(below.metadata()?.ino());
    Ok(expected(12, 0, vec![RowWant { path: path(c, "a/f"), inode, ..row("file", 12, 0) }]))
}

fn memfd(c: &mut Ctx) -> Result<Expect> {
    // SAFETY: the name is a string, and the descriptor that comes back is ours alone.
    let file = unsafe {
        let fd = libc::memfd_create(c"truth".as_ptr(), 0);
        ensure!(fd >= 0, "memfd_create: {}", std::io::Error::last_os_error());
        File::from_raw_fd(fd)
    };
    file.write_all_at(&buffer(7 * PAGE), 0)?;
    c.begin();
    read(&file, 7, 2)?;
    let inode = Some(file.metadata()?.ino());
    let row = RowWant { path: Some("memfd:truth".into()), inode, ..row("file", 14, 0) };
    let mut e = expected(14, 0, vec![row]);
    e.within(Figure::Removed, 0, 7, "the memory goes before the second sample");
    Ok(e)
}

fn threads(c: &mut Ctx) -> Result<Expect> {
    let file = warm_named(c, "f", 4)?;
    c.begin();
    let work = |times, name: &'static str| {
        let file = &file;
        move || -> Result<RowWant> {
            sys::set_comm(name);
            read(file, 4, times)?;
            // SAFETY: no arguments, no memory.
            let tid = unsafe { libc::gettid() } as u32;
            Ok(RowWant { tid: Some(tid), comm: Some(name.into()), ..row("thread", 4 * times, 0) })
        }
    };
    let mut rows = std::thread::scope(|s| {
        let both = [s.spawn(work(3, "three")), s.spawn(work(11, "eleven"))];
        both.map(|t| t.join().map_err(|_| anyhow::anyhow!("a thread failed"))?)
            .into_iter()
            .collect::<Result<Vec<_>>>()
    })?;
    let pid = Some(std::process::id());
    rows.push(RowWant { path: path(c, "f"), pid, ..row("file", 56, 0) });
    Ok(expected(56, 0, rows))
}

fn user(c: &mut Ctx) -> Result<Expect> {
    const UID: u32 = 54321;
    let file = warm_named(c, "f", 4)?;
    c.begin();
    let pid = sys::fork(|| {
        // SAFETY: a system call without pointers, in a process of one thread.
        let refused = unsafe { libc::setuid(UID) } != 0;
        // As a program started by login or su: from its new name on, the new user counts.
        sys::set_comm("truth-user");
        i32::from(refused || read(&file, 4, 6).is_err())
    })?;
    ensure!(sys::wait(pid)? == 0, "the other user failed");
    let comm = Some("truth-user".into());
    let rows = vec![RowWant { uid: Some(UID), ..row("user", 24, 0) }, RowWant { comm, ..row("comm", 24, 0) }];
    let mut e = expected(24, 0, rows);
    e.scope = Scope::Pids(vec![pid as u32]);
    Ok(e)
}

fn cgroup(c: &mut Ctx) -> Result<Expect> {
    let mountinfo = fs::read_to_string("/proc/self/mountinfo")?;
    let hierarchy = Hierarchy::find(&mountinfo);
    let hierarchy = hierarchy.ok_or_else(|| NotHere("no cgroup hierarchy is mounted".into()))?;
    let name = format!("truth-{}", std::process::id());
    let dir = hierarchy.mount.join(&name);
    refused("make a cgroup", fs::create_dir(&dir))?;
    let at = dir.clone();
    c.guards.push(Box::new(move || drop(fs::remove_dir(at))));
    let file = warm_named(c, "f", 4)?;
    c.begin();
    let pid = sys::fork(|| {
        let moved = fs::write(dir.join("cgroup.procs"), std::process::id().to_string());
        // What runs containers moves, then executes: a new name, from which on the new cgroup counts.
        sys::set_comm("truth-cgroup");
        i32::from(moved.is_err() || read(&file, 4, 9).is_err())
    })?;
    ensure!(sys::wait(pid)? == 0, "the process in the cgroup failed");
    let root = hierarchy.root.trim_end_matches('/');
    let path = Some(format!("{root}/{name}")).context("path")?;
    let mut e = expected(36, 0, vec![RowWant { cgroup: Some(path), ..row("cgroup", 36, 0) }]);
    e.scope = Scope::Pids(vec![pid as u32]);
    Ok(e)
}
