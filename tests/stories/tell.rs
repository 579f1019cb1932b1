//! The stories of one file.

use std::fs;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

use crate::MIB;
use crate::PAGE;
use crate::Told;
use crate::cold_file;
use crate::fuse;
use crate::nfs;
use crate::pressure::me;
use crate::sys;
use crate::told;

fn dd(path: &Path) -> Vec<String> {
    ["dd".into(), format!("if={}", path.display()), "of=/dev/null".into(), "bs=4k".into()].into()
}

fn dd_told(options: &str, path: &Path) -> Told {
    let words = dd(path);
    told(options, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The row of a file.
fn row<'a>(t: &'a Told, name: &str) -> &'a serde_json::Value {
    let files = t.0["files"].as_array().unwrap();
    files.iter().find(|f| f["path"].as_str().is_some_and(|p| p.ends_with(name))).unwrap()
}

/// Lesson 17, case 1: the first dd re-uses nothing, the second finds all of it.
pub fn dd_twice(dir: &Path) {
    let path = cold_file(dir, "twice", 4 * MIB);
    let t = dd_told("-r 2", &path);
    let runs = t.0["runs"].as_array().unwrap();
    let row = |run: &serde_json::Value| {
        let files = run["files"].as_array().unwrap();
        files.iter().find(|f| f["path"] == path.to_str().unwrap()).unwrap().clone()
    };
    let (first, second) = (row(&runs[0]), row(&runs[1]));
    assert_eq!(first["hits"], 0, "nothing was used before");
    assert_eq!(first["readahead_hits"].as_u64().unwrap() + first["misses"].as_u64().unwrap(), 4 * MIB / PAGE);
    assert_eq!(
        (&first["before"]["cached"], &first["after"]["cached"]),
        (&0.into(), &(4 * MIB / PAGE).into())
    );
    assert_eq!(second["hits"], 4 * MIB / PAGE);
    assert!(runs[0]["device_read_bytes"].as_u64().unwrap() >= 4 * MIB);
    assert!(runs[1]["device_read_bytes"].as_u64().unwrap() < MIB);
    assert_eq!(t.has("readahead-fed")["runs"], serde_json::json!([1]));
    assert_eq!(t.has("warmed-by-earlier-run")["runs"], serde_json::json!([2]));
    assert_eq!(t.has("faults-blind-to-reads")["runs"], serde_json::json!([1]));
    t.has_not("direct-io-bypassed");
    // Told with how it came: the file was read from end to end.
    let waited = t.has("waited-for-data");
    // Some kernels take their windows from the disk, and those of this one are then larger than the file.
    let kb: u64 = fs::read_to_string(setting_of(&path)).unwrap().trim().parse().unwrap();
    let came = if 2 * kb * 1024 > 4 * MIB { "short-files" } else { "whole-windows" };
    assert_eq!((&waited["runs"], &waited["evidence"]["came"]), (&[1].into(), &came.into()), "{waited}");
    // Most of the difference in time was waiting for data.
    let d = &t.0["differences"][0];
    let data = d["parts"].as_array().unwrap().iter().find(|p| p["name"] == "waiting for data").unwrap();
    assert!(data["share"].as_f64().unwrap() > 0.5, "{d}");
    // And so the verdict says.
    assert!(t.x("/verdict/factor") > 2.0, "{}", t.0["verdict"]);
    t.because("data", 0.5..=1.05);
    t.says("data that run 1 had left in the cache");
}

/// Case 2: O_DIRECT, which cachetop of old called 100 % hits.
pub fn dd_direct(dir: &Path) {
    let path = cold_file(dir, "direct", 4 * MIB);
    let me = std::env::current_exe().unwrap();
    let t = told("", &[me.to_str().unwrap(), "--direct", path.to_str().unwrap()]);
    assert_eq!(t.n("/direct/read_bytes"), 4 * MIB);
    let share = t.has("direct-io-bypassed")["evidence"]["direct_read_bytes"].as_u64();
    assert_eq!(share, Some(4 * MIB));
    t.has_not("readahead-fed");
    // 4 MiB at half a MiB a second, less what the disk lets through at first.
    t.because("data", 0.5..=1.0);
}

/// Holes of a file without extents cannot be filled past the cache: ext4 does it through the cache, and says nothing.
pub fn dd_direct_and_not(dir: &Path) {
    const FS_IOC_GETFLAGS: libc::c_ulong = 0x8008_6601;
    const FS_IOC_SETFLAGS: libc::c_ulong = 0x4008_6602;
    const FS_EXTENT_FL: libc::c_long = 0x80000;
    let path = dir.join("without-extents");
    let file = File::create(&path).unwrap();
    let mut flags: libc::c_long = 0;
    // SAFETY: both calls read or write one number, which outlives them.
    unsafe {
        assert_eq!(libc::ioctl(file.as_raw_fd(), FS_IOC_GETFLAGS as _, &raw mut flags), 0);
        flags &= !FS_EXTENT_FL;
        let ret = libc::ioctl(file.as_raw_fd(), FS_IOC_SETFLAGS as _, &raw const flags);
        assert_eq!(ret, 0, "{}", std::io::Error::last_os_error());
    }
    file.set_len(256 << 10).unwrap();
    let me = std::env::current_exe().unwrap();
    let t = told("", &[me.to_str().unwrap(), "--write-direct", path.to_str().unwrap()]);
    let back = t.has("direct-io-fell-back")["evidence"]["fell_back_bytes"].as_u64();
    assert_eq!((back, t.n("/direct/write_bytes")), (Some(256 << 10), 0), "{}", t.short());
    t.has_not("direct-io-bypassed");
    no_more_than_its_clock(&t, "writing");
    // The same into an ordinary file.
    let path = dir.join("with-extents");
    let t = told("", &[me.to_str().unwrap(), "--write-direct", path.to_str().unwrap()]);
    assert_eq!((t.n("/direct/fell_back_bytes"), t.n("/direct/write_bytes")), (0, 256 << 10), "{}", t.short());
    t.has_not("direct-io-fell-back");
    no_more_than_its_clock(&t, "writing");
}

/// The verdict gives a cause no larger share than the command's own clock has seen, and the shares are all of the time.
pub fn no_more_than_its_clock(t: &Told, cause: &str) {
    let clock: f64 = fs::read_to_string(CLOCK).unwrap().parse().unwrap();
    let share = t.share(cause).unwrap_or_else(|| panic!("no share of {cause} in {}", t.0["verdict"]));
    let wall = t.x("/wall_s");
    println!("  {cause}: {share:.3} of {wall:.3} s, by its own clock {clock:.3} s");
    // 2 ms for what the clock itself, and a wake-up, take in emulation.
    assert!(share * wall <= clock + 0.002, "{cause}: {share} of {wall} s, not {clock} s: {}", t.0["verdict"]);
    let sum: f64 =
        t.0["verdict"]["causes"].as_array().unwrap().iter().filter_map(|c| c["share"].as_f64()).sum();
    assert!((0.97..=1.03).contains(&sum), "{sum}: {}", t.0["verdict"]);
}

/// Where a command of these stories says how long its calls took, in seconds.
const CLOCK: &str = "/tmp/clock";

/// Does something, and leaves in the clock how long it took.
pub fn clocked<T>(act: impl FnOnce() -> T) -> T {
    let began = std::time::Instant::now();
    let done = act();
    fs::write(CLOCK, began.elapsed().as_secs_f64().to_string()).unwrap();
    done
}

/// Writes a file past the cache, or tries to, for the story above.
pub fn write_direct(path: &str) {
    let file =
        File::options().write(true).create(true).truncate(false).custom_flags(libc::O_DIRECT).open(path);
    let buf = vec![7; (64 << 10) + PAGE as usize];
    let skip = buf.as_ptr().align_offset(PAGE as usize);
    let (file, buf) = (file.unwrap(), &buf[skip..skip + (64 << 10)]);
    clocked(|| (0..4).for_each(|n| file.write_all_at(buf, n * (64 << 10)).unwrap()));
}

/// Reads a file past the cache, for the story above.
pub fn read_direct(path: &str) {
    let file = File::options().read(true).custom_flags(libc::O_DIRECT).open(path).unwrap();
    let mut buf = vec![0; (MIB + PAGE) as usize];
    let skip = buf.as_ptr().align_offset(PAGE as usize);
    let buf = &mut buf[skip..skip + MIB as usize];
    let mut at = 0;
    while let n @ 1.. = file.read_at(buf, at).unwrap() {
        at += n as u64;
    }
}

/// The Hadoop story: every 14th page is still cached, and no request can be larger than 13 pages.
pub fn every_14th_page(dir: &Path) {
    let path = cold_file(dir, "pattern", 14 * 60 * PAGE);
    let file = File::open(&path).unwrap();
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM).unwrap();
    for n in 0..60 {
        file.read_exact_at(&mut [0], (14 * n + 13) * PAGE).unwrap();
    }
    drop(file);
    let t = dd_told("", &path);
    let found = t.has("readahead-cut-short");
    assert_eq!(found["evidence"]["pattern"]["absent"], 13, "{found}");
    assert_eq!(found["evidence"]["pattern"]["present"], 1, "{found}");
    t.because("data", 0.5..=1.0);
    t.says("7 % was in the cache before");
    // Nothing is cut short in a file that is all absent.
    let path = cold_file(dir, "whole", 14 * 60 * PAGE);
    let t = dd_told("", &path);
    t.has_not("readahead-cut-short");
    t.because("data", 0.5..=1.0);
}

fn limited(path: &Path, setting: &Path) {
    let forget = || {
        let file = File::open(path).unwrap();
        sys::advise(&file, 0, 0, libc::POSIX_FADV_DONTNEED).unwrap();
    };
    let before = fs::read_to_string(setting).unwrap();
    fs::write(setting, "4").unwrap();
    forget();
    let small = dd_told("", path);
    fs::write(setting, "4096").unwrap();
    forget();
    let large = dd_told("", path);
    fs::write(setting, before).unwrap();
    let found = small.has("readahead-limited");
    assert_eq!(found["evidence"]["read_ahead_kb"], 4);
    assert_eq!(found["evidence"]["setting"], setting.to_str().unwrap());
    assert!(found["remedy"].as_str().unwrap().contains(setting.to_str().unwrap()), "{found}");
    large.has_not("readahead-limited");
    small.because("data", 0.4..=1.0);
    assert!(large.x("/wall_s") < small.x("/wall_s"), "{} {}", large.x("/wall_s"), small.x("/wall_s"));
}

/// How far the device of a file is read ahead, in KiB.
pub fn setting_of(path: &Path) -> PathBuf {
    let dev = std::os::unix::fs::MetadataExt::dev(&fs::metadata(path).unwrap());
    format!("/sys/class/bdi/{}:{}/read_ahead_kb", libc::major(dev), libc::minor(dev)).into()
}

pub fn read_ahead_of_ext4(dir: &Path) {
    let path = cold_file(dir, "windows", 5 * MIB / 4);
    limited(&path, &setting_of(&path));
}

/// The NFS story: the same hits before and after, at quite another rate.
pub fn read_ahead_of_nfs(dir: &Path) {
    let served = dir.join("served");
    fs::create_dir_all(&served).unwrap();
    cold_file(&served, "file", 5 * MIB / 4);
    let mount = nfs::Mount::new(&served);
    let path = mount.target.join("file");
    limited(&path, &setting_of(&path));
}

/// A FUSE file system that fetches the whole file when it is opened: every read is a hit.
pub fn filled_at_open(dir: &Path) {
    let target = dir.join("fuse");
    fs::create_dir_all(&target).unwrap();
    let server = fuse::serve_filled(&target, 2 * MIB, 700).unwrap();
    let t = dd_told("", &target.join(fuse::NAME));
    sys::unmount(&target);
    let _ = sys::wait(server);
    let found = t.has("time-in-open");
    assert!(found["evidence"]["open_ns"].as_u64().unwrap() >= 600_000_000, "{found}");
    assert!(found["text"].as_str().unwrap().contains("FUSE"), "{found}");
    assert_eq!(row(&t, "/f")["misses"], 0, "{}", t.short());
    // 0.7 s of it, put down to opening and not to data.
    let opening = 0.6 / t.x("/wall_s");
    assert!(t.share("metadata").is_some_and(|share| (opening..=1.0).contains(&share)), "{}", t.0["verdict"]);
    assert!(t.share("data").is_none_or(|share| share < 0.2), "{}", t.0["verdict"]);
}

/// What somebody else brings in between is put down to them.
pub fn warmed_by_another(dir: &Path) {
    let path = cold_file(dir, "other", 2 * MIB);
    let line = format!("cat {} >/dev/null", path.display());
    let cachestat = std::env::var("CACHESTAT").unwrap_or_else(|_| "cachestat".into());
    let out = std::process::Command::new(cachestat)
        .args(["--json", "-o", "/tmp/report.json", "--prepare", &line, "--"])
        .args(dd(&path))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let t = crate::read();
    let found = t.has("warmed-by-other-process");
    // 5.10 reads one page past the end of a file.
    let brought = found["evidence"]["brought_pages"].as_u64().unwrap();
    assert!((2 * MIB / PAGE..=2 * MIB / PAGE + 1).contains(&brought), "{found}");
    t.has_not("cached-before");
    assert!(t.share("data").is_none_or(|share| share < 0.2), "{}", t.0["verdict"]);
}

/// A process that left its parent and its session is still the command's.
pub fn a_daemon_still_belongs(dir: &Path) {
    let path = cold_file(dir, "daemon", MIB);
    let line = format!("(setsid sh -c 'sleep 1; cat {} >/dev/null' &) ; exit 3", path.display());
    let cachestat = std::env::var("CACHESTAT").unwrap_or_else(|_| "cachestat".into());
    for (wait, pages) in [("--wait-all", MIB / PAGE), ("--json", 0)] {
        let out = std::process::Command::new(&cachestat)
            .args(["-o", "/tmp/report.json", wait])
            .args(if wait == "--json" { &[][..] } else { &["--json"] })
            .args(["--", "sh", "-c", &line])
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(3), "{}", String::from_utf8_lossy(&out.stderr));
        let t = crate::read();
        let files = t.0["files"].as_array().unwrap();
        let read: u64 = files
            .iter()
            .filter(|f| f["path"] == path.to_str().unwrap())
            .map(|f| {
                f["hits"].as_u64().unwrap()
                    + f["readahead_hits"].as_u64().unwrap()
                    + f["misses"].as_u64().unwrap()
            })
            .sum();
        assert_eq!(read, pages, "{wait}: {}", t.short());
        println!("  {wait}: {}", t.0["verdict"]);
        if wait == "--wait-all" {
            // Half a MiB a second, less what the disk lets through at first, and a second of sleep before. The parts are of
            // processes that worked one after the other.
            t.because("data", 0.2..=0.75);
            let slept = 0.9 / t.x("/wall_s");
            assert!(t.share("others").is_some_and(|share| share >= slept), "{}", t.0["verdict"]);
        } else {
            assert!(t.share("data").is_none_or(|share| share < 0.2), "{}", t.0["verdict"]);
        }
        assert_eq!(t.0["left_behind"].as_array().unwrap().is_empty(), wait == "--wait-all", "{}", t.short());
        std::thread::sleep(std::time::Duration::from_secs(2));
    }
}

/// Brings in what it maps, and stays until it is there.
pub fn lock(path: &str) {
    map_whole(path, 0).lock().unwrap();
}

/// The same by a flag.
pub fn populate(path: &str) {
    map_whole(path, libc::MAP_POPULATE);
}

fn map_whole(path: &str, flags: i32) -> sys::Map {
    let file = File::open(path).unwrap();
    let pages = usize::try_from(file.metadata().unwrap().len() / PAGE).unwrap();
    sys::Map::with(&file, pages, libc::PROT_READ, libc::MAP_SHARED | flags).unwrap()
}

/// What is brought in as it is mapped is waited for like what is touched, though no page faults.
pub fn mapped_at_once(dir: &Path) {
    for mode in ["--lock", "--populate"] {
        let path = cold_file(dir, "at-once", 3 * MIB / 2);
        let t = told("", &[&me(), mode, path.to_str().unwrap()]);
        t.has("waited-for-data");
        t.has_not("unexplained");
        let waited = t.x("/time_parts/data_s") / t.x("/wall_s");
        assert!((0.6..1.01).contains(&waited), "{mode} {waited:.2}: {}", t.short());
    }
}
