//! File systems without a device: FUSE and NFS, each served on this machine.

use std::fs;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use anyhow::ensure;

use super::*;
use cachetop::figures::Figure;

use crate::fuse;
use crate::oracle::Oracle;
use crate::sys;

const ON: &[Fs] = &[Fs::Ext4];

pub const LIST: &[Scenario] = &[
    scenario("fuse-cold", ON, "a file of FUSE read to its end twice", |c| {
        let file = on_fuse(c)?;
        twice(c, &file)
    }),
    scenario("fuse-random", ON, "random reads of a file of FUSE", |c| {
        let file = on_fuse(c)?;
        random(c, &file)
    }),
    scenario("fuse-in-flight", ON, "a page that another thread is still reading", in_flight),
    scenario("fuse-late-readahead", ON, "a page that WILLNEED has requested, not there yet", late),
    scenario("fuse-sent-in-flight", ON, "sendfile and splice whose second page is still being read", sent),
    scenario("nfs-cold", ON, "a file of NFS read to its end twice", |c| {
        let file = on_nfs(c, true)?;
        twice(c, &file)
    }),
    scenario("nfs-random", ON, "random reads of a file of NFS", |c| {
        let file = on_nfs(c, false)?;
        random(c, &file)
    }),
    scenario("9p-cold", ON, "a file of 9p read to its end twice", |c| {
        let file = on_9p(c)?;
        twice(c, &file)
    }),
    scenario("9p-random", ON, "random reads of a file of 9p", |c| {
        let file = on_9p(c)?;
        random(c, &file)
    }),
];

/// For `truth --only 9p` in a guest that was given a directory of its host, by this name.
const SHARE: &str = "truth";

const SIZE: u64 = 517 * PAGE + 99;

fn mount_point(c: &Ctx) -> Result<PathBuf> {
    let target = c.dir.join("mnt");
    fs::create_dir(&target)?;
    Ok(target)
}

fn on_fuse(c: &mut Ctx) -> Result<File> {
    on_slow_fuse(c, 0)
}

fn on_slow_fuse(c: &mut Ctx, ms: u64) -> Result<File> {
    let target = mount_point(c)?;
    let server = refused("mount FUSE", fuse::serve_slowly(&target, SIZE, ms))?;
    c.guards.push(Box::new(move || {
        sys::unmount(&target);
        let _ = sys::wait(server);
    }));
    Ok(File::open(c.dir.join("mnt").join(fuse::NAME))?)
}

/// A file of the test's own directory, seen through the kernel's NFS server and client. Neither mountd nor exportfs is
/// there: what they would tell the server is written by hand. Only who is `patient` waits where nothing is opened for long.
fn on_nfs(c: &mut Ctx, patient: bool) -> Result<File> {
    // It takes over the kernel's server and writes its state directory: nothing for a machine that somebody uses.
    if !Path::new("/modules").exists() {
        return Err(NotHere("in a guest of tests/vm only".into()).into());
    }
    let target = mount_point(c)?;
    let control = PathBuf::from("/proc/fs/nfsd");
    refused("mount nfsd", sys::mount("nfsd".as_ref(), &control, "nfsd", ""))?;
    c.guards.push(Box::new(move || {
        let _ = fs::write("/proc/fs/nfsd/threads", "0\n");
        sys::unmount("/proc/fs/nfsd".as_ref());
    }));
    // Kernels that keep no list of clients themselves wait for those of before, 90 s, when nobody keeps one for them.
    if !patient && !control.join("nfsv4recoverydir").exists() {
        return Err(
            NotHere("a server opens nothing here in its first 90 s: nfs-cold waits for it".into()).into()
        );
    }
    let tell = |path: &str, text: &str| -> Result<()> {
        fs::write(path, text).with_context(|| format!("{path}: {}", text.trim()))
    };
    fs::create_dir_all("/var/lib/nfs/v4recovery")?;
    c.warm_file("served", SIZE)?;
    tell("/proc/fs/nfsd/versions", "-2 -3 +4\n").or_else(|_| tell("/proc/fs/nfsd/versions", "-3 +4\n"))?;
    tell("/proc/fs/nfsd/portlist", "tcp 2049\n")?;
    // Clients of before may come back for so long, in seconds, and nobody may open a file until then. There are none; some
    // kernels do not let it be ended.
    for time in ["nfsv4leasetime", "nfsv4gracetime"] {
        let _ = fs::write(control.join(time), "10\n");
    }
    tell("/proc/fs/nfsd/threads", "2\n")?;
    // Nobody was there before, so nobody has locks to reclaim.
    let _ = fs::write("/proc/fs/nfsd/v4_end_grace", "Y\n");
    let dir = c.dir.display();
    const FOREVER: u32 = 0x7fff_ffff;
    // Read and write, any port, root is root, no checks of parents, named by number 0: the root of NFSv4.
    const FLAGS: u32 = 0x2 | 0x400 | 0x2000;
    tell("/proc/net/rpc/auth.unix.ip/channel", &format!("nfsd 127.0.0.1 {FOREVER} truth\n"))?;
    tell("/proc/net/rpc/nfsd.export/channel", &format!("truth {dir} {FOREVER} {FLAGS} 65534 65534 0\n"))?;
    tell("/proc/net/rpc/nfsd.fh/channel", &format!("truth 1 \\x00000000 {FOREVER} {dir}\n"))?;
    let options = "vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,sec=sys,proto=tcp,port=2049";
    refused("mount nfs4", sys::mount("127.0.0.1:/".as_ref(), &target, "nfs4", options))?;
    c.guards.push(Box::new(move || sys::unmount(&target)));
    Ok(File::open(c.dir.join("mnt/served"))?)
}

/// How long the server takes for an answer, ms.
const SLOW: u64 = 500;

/// Whichever of the two comes first misses, and the other finds the page and waits for it.
fn in_flight(c: &mut Ctx) -> Result<Expect> {
    let file = on_slow_fuse(c, SLOW)?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    c.begin();
    let read = || -> Result<Duration> {
        let start = Instant::now();
        ensure!(file.read_at(&mut [0; 100], 40 * PAGE)? == 100);
        Ok(start.elapsed())
    };
    let (one, other) = std::thread::scope(|s| {
        let one = s.spawn(read);
        std::thread::sleep(Duration::from_millis(SLOW / 10));
        (read(), one.join().expect("the reader ends"))
    });
    let least = one?.min(other?).as_millis();
    ensure!(least > u128::from(SLOW / 5), "the workload itself: nobody waited, {least} ms");
    let mut e = Expect::nothing();
    e.exact(Figure::Accesses, 2).exact(Figure::Misses, 1).exact(Figure::Hits, 1).exact(Figure::Inflight, 1);
    e.exact(Figure::ReadBytes, 200).exact(Figure::Fills, 1);
    Ok(e)
}

/// The first page is waited for; the others have come with it, when they are read.
fn late(c: &mut Ctx) -> Result<Expect> {
    let file = on_slow_fuse(c, SLOW)?;
    c.begin();
    sys::advise(&file, 0, 16 * PAGE, libc::POSIX_FADV_WILLNEED)?;
    let start = Instant::now();
    ensure!(file.read_at(&mut [0; 100], 0)? == 100);
    let took = start.elapsed().as_millis();
    ensure!(took > u128::from(SLOW / 5), "the workload itself: it did not wait, {took} ms");
    std::thread::sleep(Duration::from_millis(2 * SLOW));
    ensure!(file.read_at(&mut buffer(8 * PAGE), 0)? as u64 == 8 * PAGE);
    let mut e = Expect::nothing();
    e.exact(Figure::Accesses, 9).exact(Figure::ReadAheadHits, 8).exact(Figure::Hits, 1);
    e.exact(Figure::Inflight, 1).exact(Figure::ReadBytes, 100 + 8 * PAGE);
    e.exact(Figure::ReadAheadPages, 16).exact(Figure::Fills, 16);
    Ok(e)
}

/// The kernel's first look-up finds one page and stops at the next, which is locked: the transfer begins before the look-up that it
/// tells of. The kernel's own pipe has sixteen places, so that a piece which begins within a page ends with one.
fn sent(c: &mut Ctx) -> Result<Expect> {
    let file = on_slow_fuse(c, SLOW)?;
    let null = File::options().write(true).open("/dev/null")?;
    let (_from, pipe) = sys::pipe()?;
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let places = [0, 100 * PAGE + 77, 200 * PAGE + 5, 300 * PAGE + 5];
    for at in places {
        ensure!(file.read_at(&mut [0; 1], at)? == 1);
    }
    c.begin();
    let (mut pages, mut bytes) = (0, 0);
    for (i, at) in places.into_iter().enumerate() {
        let len = if i == 3 { 9 * PAGE } else { 21 * PAGE + 333 } as usize;
        sys::advise(&file, (at / PAGE + 1) * PAGE, 31 * PAGE, libc::POSIX_FADV_WILLNEED)?;
        let start = Instant::now();
        let sent =
            if i == 2 { sys::splice(&file, at, &pipe, len)? } else { sys::sendfile(&null, &file, at, len)? }
                as u64;
        ensure!(start.elapsed().as_millis() > u128::from(SLOW / 5), "the workload itself: it did not wait");
        pages += (at + sent - 1) / PAGE + 1 - at / PAGE;
        bytes += sent;
    }
    let (asked, transfers) = (31 * places.len() as u64, places.len() as u64);
    let mut e = Expect::nothing();
    e.exact(Figure::Accesses, pages)
        .exact(Figure::Hits, transfers)
        .exact(Figure::ReadAheadHits, pages - transfers);
    e.exact(Figure::ReadBytes, bytes).exact(Figure::ReadAheadPages, asked).exact(Figure::Fills, asked);
    e.within(
        Figure::Inflight,
        transfers,
        pages - transfers,
        "the server answers for several pages at a time",
    );
    Ok(e)
}

/// A file of a directory that QEMU serves to the guest, mounted twice: what the first mount wrote the second has not
/// cached.
fn on_9p(c: &mut Ctx) -> Result<File> {
    let target = mount_point(c)?;
    let mount = || sys::mount(SHARE.as_ref(), &target, "9p", "trans=virtio,version=9p2000.L,cache=loose");
    refused("mount 9p", mount())?;
    let name = target.join("served");
    let written = fs::write(&name, vec![b'9'; SIZE as usize]);
    sys::unmount(&target);
    written?;
    mount()?;
    c.guards.push(Box::new(move || sys::unmount(&target)));
    Ok(File::open(name)?)
}

/// Cold, then warm.
fn twice(c: &mut Ctx, file: &File) -> Result<Expect> {
    let mut o = Oracle::new(file, c.fs)?;
    let mut buf = buffer(44 * KIB);
    c.begin();
    for _ in 0..2 {
        let mut pos = 0;
        loop {
            match o.read(pos, || file.read_at(&mut buf, pos))? {
                0 => break,
                n => pos += n as u64,
            }
        }
        ensure!(pos == SIZE, "{pos} bytes read");
    }
    ensure!(o.tally.misses > 0 && o.tally.hits >= 518, "the oracle itself: {:?}", o.tally);
    let mut e = o.expect();
    if !o.sees_flight() {
        // Before 6.5 nobody says which pages a server still owes: to mincore they look absent. Only how the first
        // pass is split into misses and first uses depends on it.
        let (missed, ahead) = (o.tally.misses, o.tally.ahead);
        let why = "pages in flight look absent to the oracle";
        e.within(Figure::Misses, 1, missed, why)
            .within(Figure::ReadAheadHits, o.tally.ahead_hits, o.tally.ahead_hits + missed - 1, why)
            .within(Figure::ReadAheadPages, ahead, ahead + missed - 1, why);
    }
    Ok(e)
}

fn random(c: &mut Ctx, file: &File) -> Result<Expect> {
    sys::advise(file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let mut o = Oracle::new(file, c.fs)?;
    let mut buf = buffer(3 * PAGE);
    c.begin();
    for _ in 0..150 {
        let pos = c.rng.below(SIZE - 3 * PAGE);
        let len = 1 + c.rng.below(3 * PAGE - 1) as usize;
        o.read(pos, || file.read_at(&mut buf[..len], pos))?;
    }
    ensure!(o.tally.misses > 0 && o.tally.hits > 0, "the oracle itself: {:?}", o.tally);
    Ok(o.expect())
}
