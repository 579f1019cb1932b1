//! Asynchronous direct I/O beside other work. Most of it completes in an interrupt, in the name of whatever runs then:
//! what is counted must not depend on that.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;

use serde_json::Value;

use crate::tools::*;
use crate::uring;

const DEPTH: usize = 64;
const BLOCK: usize = 16 << 10;
/// Of the file; one more has only the first 512 bytes of it.
const BLOCKS: u64 = 1023;
const LENGTH: u64 = BLOCKS * BLOCK as u64 + 512;
const ROUNDS: u64 = 24;
const WORKERS: u64 = 2;

/// Requests of which many are on their way at once.
trait Way {
    /// Moves these blocks, and says how many bytes each of them moved.
    fn go(&mut self, file: &File, blocks: &mut [(&mut [u8], u64)], write: bool) -> Vec<i64>;
}

/// io_submit.
struct Aio(u64);

impl Aio {
    fn new() -> Self {
        let mut context = 0u64;
        // SAFETY: the context is a live u64, and 0 as the kernel wants it.
        assert_eq!(unsafe { libc::syscall(libc::SYS_io_setup, DEPTH, &raw mut context) }, 0);
        Self(context)
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // SAFETY: takes no pointer; nothing is on its way.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

impl Way for Aio {
    fn go(&mut self, file: &File, blocks: &mut [(&mut [u8], u64)], write: bool) -> Vec<i64> {
        let blocks = blocks.iter_mut().enumerate().map(|(n, (block, pos))| {
            // aio_data; aio_lio_opcode and aio_fildes; aio_buf, aio_nbytes, aio_offset
            let what = u64::from(write) | (file.as_raw_fd() as u64) << 32;
            [n as u64, 0, what, block.as_mut_ptr() as u64, block.len() as u64, *pos, 0, 0]
        });
        let blocks: Vec<[u64; 8]> = blocks.collect();
        let list: Vec<_> = blocks.iter().map(|b| b.as_ptr()).collect();
        let (mut sent, mut moved, mut events) = (0, vec![i64::MIN; list.len()], [[0u64; 4]; DEPTH]);
        while sent < list.len() {
            let rest = &list[sent..];
            // SAFETY: blocks have the layout of struct iocb, and outlive their requests with what they point to.
            let n = unsafe { libc::syscall(libc::SYS_io_submit, self.0, rest.len(), rest.as_ptr()) };
            assert!(n > 0, "io_submit: {}", std::io::Error::last_os_error());
            sent += n as usize;
        }
        let mut left = list.len();
        while left > 0 {
            // SAFETY: there is room for so many events, which have the layout of struct io_event.
            let n = unsafe { libc::syscall(libc::SYS_io_getevents, self.0, 1, left, events.as_mut_ptr(), 0) };
            assert!(n > 0, "io_getevents: {}", std::io::Error::last_os_error());
            for event in &events[..n as usize] {
                moved[event[0] as usize] = event[2] as i64;
            }
            left -= n as usize;
        }
        moved
    }
}

/// io_uring, the requests handed to workers in turn.
struct Uring(uring::Ring, u8);

impl Way for Uring {
    fn go(&mut self, file: &File, blocks: &mut [(&mut [u8], u64)], write: bool) -> Vec<i64> {
        self.1 ^= uring::ASYNC;
        if write {
            let mut one =
                |(block, pos): &mut (&mut [u8], u64)| self.0.write(file, block, *pos, self.1).unwrap();
            return blocks.iter_mut().map(|b| i64::from(one(b))).collect();
        }
        self.0.read(file, blocks, self.1).unwrap().into_iter().map(i64::from).collect()
    }
}

/// Reads the whole file again and again, and in the first round writes what is there anyway: bytes read and written.
fn work(path: &Path, mut way: impl Way) -> (u64, u64) {
    let file = File::options().read(true).write(true).custom_flags(libc::O_DIRECT).open(path).unwrap();
    let mut room = vec![0x5a; (DEPTH + 1) * BLOCK];
    let skip = room.as_ptr().align_offset(4096);
    let (mut read, mut written) = (0, 0);
    for round in 0..ROUNDS {
        let mut next = 0;
        while next <= BLOCKS {
            let blocks = room[skip..].chunks_exact_mut(BLOCK).take(DEPTH).enumerate();
            let mut blocks: Vec<_> =
                blocks.map(|(n, b)| (b, (next + n as u64) * BLOCK as u64)).filter(|b| b.1 < LENGTH).collect();
            next += DEPTH as u64;
            let moved = way.go(&file, &mut blocks, false);
            for (n, (_, pos)) in moved.iter().zip(&blocks) {
                assert_eq!(*n, (LENGTH - pos).min(BLOCK as u64) as i64, "at {pos}");
                read += *n as u64;
            }
            if round == 0 {
                blocks.retain(|(_, pos)| pos + BLOCK as u64 <= LENGTH);
                let moved = way.go(&file, &mut blocks, true);
                assert!(moved.iter().all(|n| *n == BLOCK as i64), "{moved:?}");
                written += (moved.len() * BLOCK) as u64;
            }
        }
    }
    (read, written)
}

/// Runs `f` beside threads that take all processors, and one that writes.
fn beside<T>(dir: &Path, f: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        scope.spawn(|| {
            let file = File::create(dir.join("written")).unwrap();
            let block = vec![0; 1 << 20];
            for n in (0..16).cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                file.write_all_at(&block, n << 20).unwrap();
            }
        });
        let result = f();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

fn exact<W: Way + 'static>(dir: &Path, options: &str, way: fn() -> W) {
    let path = dir.join("file");
    let mut monitor = Monitor::start(options);
    let sums = beside(dir, || {
        let workers: Vec<_> = (0..WORKERS)
            .map(|n| {
                let path = path.with_extension(n.to_string());
                std::fs::write(&path, vec![0x5a; LENGTH as usize]).unwrap();
                drop_cache(&File::open(&path).unwrap());
                thread::spawn(move || work(&path, way()))
            })
            .collect();
        workers.into_iter().map(|w| w.join().unwrap()).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    });
    monitor.catch_up();
    let (intervals, total) = monitor.finish_json();
    assert_eq!(sums, (WORKERS * ROUNDS * LENGTH, WORKERS * BLOCKS * BLOCK as u64));
    let files = path.to_str().unwrap();
    let is_ours = |r: &&Value| {
        r["pid"] == std::process::id() || r["path"].as_str().is_some_and(|path| path.starts_with(files))
    };
    let rows: Vec<_> = rows(&intervals).filter(is_ours).collect();
    let of_rows = (sum(&rows, "/direct/read_bytes"), sum(&rows, "/direct/write_bytes"));
    let lost = &total["lost"];
    assert_eq!(of_rows, sums, "{options}: LOST {lost}");
    assert_eq!((figure(lost, "/direct_failed"), figure(lost, "/unseen_begin")), (0, 0), "{options}: {lost}");
}

pub fn asynchronous_direct_io(dir: &Path) {
    exact(dir, "--json --by process --top 100000 0.5", Aio::new);
    exact(dir, "--json --by file --top 100000 0.5", Aio::new);
    exact(dir, "--json --by process --top 100000 0.5", || Uring(uring::Ring::new(DEPTH as u32).unwrap(), 0));
}

fn run(program: &str, args: &[&str]) {
    assert!(Command::new(program).args(args).status().unwrap().success(), "{program} {args:?}");
}

/// The file system's device ends early: its last blocks cannot be read, which is known when they have been queued.
pub fn direct_io_that_fails_when_queued(dir: &Path) {
    const MIB: u64 = 1 << 20;
    let (image, mount) = (dir.join("image"), dir.join("mount"));
    let (img, at) = (image.to_str().unwrap(), mount.to_str().unwrap());
    File::create(&image).unwrap().set_len(32 * MIB).unwrap();
    std::fs::create_dir(&mount).unwrap();
    run("mkfs.ext4", &["-q", img]);
    run("mount", &["-o", "loop", img, at]);
    std::fs::write(mount.join("file"), vec![0x5a; 16 << 20]).unwrap();
    run("umount", &[at]);
    run("mount", &["-o", "loop,ro", img, at]);
    let mut monitor = Monitor::start("--json --by process --top 100000 0.5");
    let file = File::options().read(true).custom_flags(libc::O_DIRECT).open(mount.join("file")).unwrap();
    let cut = || File::options().write(true).open(&image).unwrap().set_len(12 * MIB).unwrap();
    let (mut way, mut room) = (Aio::new(), vec![0; (DEPTH + 1) * BLOCK]);
    let skip = room.as_ptr().align_offset(4096);
    let (mut moved, mut failed) = (0, 0);
    for round in 0..16 {
        let blocks = room[skip..].chunks_exact_mut(BLOCK).take(DEPTH).enumerate();
        let mut blocks: Vec<_> =
            blocks.map(|(n, b)| (b, (round * DEPTH as u64 + n as u64) * BLOCK as u64)).collect();
        for n in way.go(&file, &mut blocks, false) {
            moved += n.max(0) as u64;
            failed += u64::from(n < 0);
        }
        if round == 0 {
            cut(); // by now its extents are known
        }
    }
    monitor.catch_up();
    drop(file);
    run("umount", &[at]);
    let (intervals, total) = monitor.finish_json();
    let counted = sum(&rows_of(&intervals, std::process::id()), "/direct/read_bytes");
    let reported = figure(&total, "/lost/direct_failed");
    assert!(moved > 0 && failed > 0, "{moved} bytes, {failed} failed");
    // Where the end is what counts, none of these. Else each that is reported, and those whose end was not seen.
    let too_much = (reported..=failed).map(|n| n * BLOCK as u64).find(|n| moved + n == counted);
    assert!(too_much.is_some(), "{counted} bytes of {moved}, {reported} of {failed} reported: {total}");
    assert_eq!(reported > 0, counted > moved, "{counted} bytes of {moved}: {total}");
}
