//! The stories of what is no matter of reading: somebody else at the other end of a pipe, a processor that is shared, a
//! cache that was emptied in between. Their shares are known from how they are made.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use crate::MIB;
use crate::Told;
use crate::pressure::me;
use crate::told;
use crate::told_of;

/// Whether a part of the time is this share of the wall time, more or less.
fn share(t: &Told, part: &str, about: std::ops::Range<f64>) {
    let share = t.x(&format!("/time_parts/{part}")) / t.x("/wall_s");
    assert!(about.contains(&share), "{part} {share:.2}: {}", t.short());
}

/// What a reader of a pipe gets from one that is not of its run, a second and a half later.
pub fn a_server_is_slow(_: &Path) {
    let pipe = Path::new("/tmp/pipe");
    let path = std::ffi::CString::new("/tmp/pipe").unwrap();
    // SAFETY: the path outlives the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    let line = "exec 3>/tmp/pipe; sleep 1.5; echo x >&3";
    let mut server = Command::new("sh").args(["-c", line]).spawn().unwrap();
    let t = told("", &["cat", pipe.to_str().unwrap()]);
    server.wait().unwrap();
    fs::remove_file(pipe).unwrap();
    t.has("waited-for-peer");
    t.has_not("unexplained");
    share(&t, "others_s", 0.6..1.01);
    t.because("others", 0.6..=1.01);
}

/// Works for a time, on the first processor only, for the story below.
pub fn spin(ms: &str) {
    // SAFETY: plain data, and the call reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(0, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set), 0);
    }
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(ms.parse().unwrap()) {
        std::hint::spin_loop();
    }
}

/// Of three who want one processor, each has a third of it. The others work until they are killed: a start takes long in emulation.
pub fn a_processor_is_shared(_: &Path) {
    let others: Vec<Child> =
        (0..2).map(|_| Command::new(me()).args(["--spin", "600000"]).spawn().unwrap()).collect();
    let t = told("", &[&me(), "--spin", "2000"]);
    for mut other in others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    t.has("cpu-contention");
    share(&t, "queue_s", 0.45..0.85);
    t.because("processor-queue", 0.45..=0.85);
    let t = told("", &[&me(), "--spin", "200"]);
    t.has_not("cpu-contention");
}

/// So many children, one after the other, on the first processor only; each works for a millisecond and ends.
pub fn forks(n: &str) {
    spin("0");
    for _ in 0..n.parse().unwrap() {
        // SAFETY: the child of this only thread works, and ends at once.
        match unsafe { libc::fork() } {
            0 => {
                let began = Instant::now();
                while began.elapsed() < Duration::from_millis(1) {
                    std::hint::spin_loop();
                }
                // SAFETY: nothing is left to be done.
                unsafe { libc::_exit(0) };
            }
            // SAFETY: it is a child of ours; nobody asks how it ended.
            child => assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child),
        }
    }
}

/// The same of many processes that live for a moment: most of them never leave the processor between their beginning and
/// their end, for which they and their parent have to wait.
pub fn a_processor_is_shared_by_short_lives(_: &Path) {
    let others: Vec<Child> =
        (0..2).map(|_| Command::new(me()).args(["--spin", "600000"]).spawn().unwrap()).collect();
    let t = told("", &[&me(), "--forks", "400"]);
    for mut other in others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    t.has_not("unexplained");
    t.because("processor-queue", 0.3..=0.9);
    // Where beginnings and ends overlap by more than a tenth, nothing is left.
    assert!(t.share("unexplained").is_none_or(|s| s < 0.12), "{}", t.short());
}

/// The cache is emptied between two runs by somebody who does not say so; and a file of it dropped by its name.
pub fn lost_in_between(dir: &Path) {
    const SIZE: u64 = 3 * MIB / 2;
    let path = crate::cold_file(dir, "lost", SIZE);
    let file = path.to_str().unwrap();
    let by = |line: &str| {
        fs::write("/tmp/between.sh", line).unwrap();
        let cachestat = std::env::var("CACHESTAT").unwrap_or_else(|_| "cachestat".into());
        let out = Command::new(cachestat)
            .args([
                "--json",
                "-o",
                "/tmp/report.json",
                "-r",
                "2",
                "--prepare",
                "sh /tmp/between.sh",
                "--",
                "cat",
                file,
            ])
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        crate::read()
    };
    let t = by("echo 1 >/proc/sys/vm/drop_caches\n");
    let found = t.has("lost-between-runs");
    assert_eq!((&found["evidence"]["by"], &found["runs"]), (&"dropped".into(), &[2].into()), "{found}");
    assert!(found["evidence"]["cached_after_pages"].as_u64().unwrap() >= SIZE / crate::PAGE, "{found}");
    // Both runs read the same from the same disk: neither is said to have left the other anything.
    let as_fast = |t: &Told| {
        let text = t.0["verdict"]["text"].as_str().unwrap();
        println!("  verdict: {}", t.0["verdict"]);
        assert!(!text.contains("had left"), "{text}");
        let wall = |run: usize| t.x(&format!("/runs/{run}/wall_s"));
        assert!((0.5..=2.0).contains(&(wall(0) / wall(1))), "{} {}: {text}", wall(0), wall(1));
    };
    as_fast(&t);
    let t = by(&format!("{} --forget {file}\n", me()));
    assert_eq!(t.has("lost-between-runs")["evidence"]["by"], "unexplained");
    as_fast(&t);
    // Nothing is lost: the second run waits no more.
    fs::write("/proc/sys/vm/drop_caches", "1").unwrap();
    let t = by("true\n");
    println!("  verdict: {}", t.0["verdict"]);
    t.has_not("lost-between-runs");
    t.because("data", 0.5..=1.05);
    t.says("had left in the cache");
}

/// Drops a file from the cache, for the story above.
pub fn forget(path: &str) {
    crate::sys::advise(&fs::File::open(path).unwrap(), 0, 0, libc::POSIX_FADV_DONTNEED).unwrap();
}

/// A process that is watched sleeps from before the watch began to its end: of a wait whose beginning nobody saw, and which did
/// not end, that much is known. One that wakes up a few times is not asleep.
pub fn a_process_that_sleeps(_: &Path) {
    let of = |line: &str, time: &str| {
        let mut process = Command::new("sh").args(["-c", line]).spawn().unwrap();
        // Until it sleeps.
        std::thread::sleep(Duration::from_secs(1));
        let t = told_of(process.id(), time);
        process.kill().unwrap();
        process.wait().unwrap();
        t
    };
    let t = of("exec sleep 600", "1s");
    assert_eq!(t.findings(), ["asleep"], "{}", t.short());
    t.because("others", 0.99..=1.01);
    t.says("It slept all the time");
    let t = of("i=0; while [ $i -lt 600 ]; do sleep 0.3; i=$((i+1)); done", "2s");
    t.has_not("asleep");
}
