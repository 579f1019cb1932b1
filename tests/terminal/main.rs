//! `cachetop` in a real terminal, on a real kernel, against the two `dd` of a well-known lesson: the first reads a file
//! that is not cached, the second one that is. The truth is known by construction: the file's number of pages.
//!
//! Run as root: `terminal [DIRECTORY [--no-endings]]`, in a directory on a file system with a page cache (default: `/var/tmp`).
//! `CACHETOP` names the program.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod lost;
#[path = "../pty/mod.rs"]
mod pty;
mod storm;
mod walk;

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use portable_pty::PtySize;
use pty::Screen;

/// Pages of the file: a prime number, so that nothing else adds up to it.
const PAGES: u64 = 8191;

/// HITS, RAHITS, MISSES and READ_HIT% of the file's row.
fn row(text: &str, name: &str) -> Option<(u64, u64, u64, String)> {
    let line = text.lines().find(|l| l.contains(name) && !l.contains("filter"))?;
    // A bar may stand before the figures.
    let cells: Vec<&str> = line.split_whitespace().skip_while(|c| c.parse::<u64>().is_err()).collect();
    let number = |i: usize| cells.get(i)?.parse().ok();
    Some((number(0)?, number(1)?, number(2)?, (*cells.get(4)?).into()))
}

fn dd(file: &Path) {
    let input = format!("if={}", file.display());
    let mut dd = Command::new("dd");
    dd.args([&input, "of=/dev/null", "bs=65536"]).stderr(std::process::Stdio::null());
    assert!(dd.status().unwrap().success());
}

/// Pages of a file that are in the cache, by the kernel's own word.
fn present(path: &Path) -> u64 {
    let file = File::open(path).unwrap();
    let length = PAGES as usize * 4096;
    let mut pages = vec![0_u8; PAGES as usize];
    // SAFETY: a mapping of the file that is never touched, and a vector with a byte for each of its pages.
    unsafe {
        let map =
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(map, libc::MAP_FAILED);
        assert_eq!(libc::mincore(map, length, pages.as_mut_ptr()), 0);
        libc::munmap(map, length);
    }
    pages.iter().map(|p| u64::from(p & 1)).sum()
}

/// One run of the lesson; `false` if the file was not in the cache as a whole when it began.
fn lesson(program: &Path, file: &Path, cold: bool) -> bool {
    let options = ["--no-config", "--by", "file", "--show", "total", "0.5"];
    let mut screen = Screen::new(program, &options);
    screen.until("the first interval", |t| {
        (t.contains("since start") && t.contains("READ_HIT%")).then_some(())
    });
    if present(file) != if cold { 0 } else { PAGES } {
        screen.press("q");
        screen.ends("q before a lesson that cannot be");
        return false;
    }
    dd(file);
    let name = file.file_name().unwrap().to_str().unwrap();
    let all = |t: &str| row(t, name).filter(|(h, r, m, _)| h + r + m >= PAGES);
    let (hits, ahead, misses, ratio) = screen.until("all pages of the file", all);
    println!(
        "{} dd: HITS {hits} RAHITS {ahead} MISSES {misses} READ_HIT% {ratio}",
        if cold { "first" } else { "second" }
    );
    assert_eq!(hits + ahead + misses, PAGES, "they add up to the pages of the file");
    if cold {
        assert_eq!((hits, ratio.as_str()), (0, "0.00%"));
        assert!(ahead > misses, "read-ahead fed it");
    } else {
        assert_eq!((hits, ratio.as_str()), (PAGES, "100.00%"));
    }
    // The details name it.
    screen.press(&format!("/{name}\r"));
    screen.until("one row", |t| (t.contains("1 of ") && row(t, name).is_some()).then_some(()));
    screen.press("\r");
    let finding = if cold { "cold-readahead" } else { "reuse " };
    screen.until(finding, |t| (t.contains(finding) && t.contains("dd") && t.contains(name)).then_some(()));
    // At once, as a slow line delivers them: Escape closes the details, the other key opens the help.
    screen.press("\u{1b}h");
    screen.until("the help", |t| t.contains("any other key closes").then_some(()));
    screen.press("q");
    screen.ends("q");
    true
}

fn endings(program: &Path) {
    for signal in
        [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGABRT, libc::SIGIO]
    {
        let screen = Screen::new(program, &["--no-config", "0.2"]);
        screen.until("the table", |t| t.contains("COMMAND").then_some(()));
        screen.signal(signal);
        screen.ends(&format!("signal {signal}"));
    }
    travel(program);
    replayed(program);
    stopped(program);
    lost::closed(program);
    lost::unread(program);
    let mut screen = Screen::new(program, &["--no-config", "0.2"]);
    screen.until("the table", |t| t.contains("COMMAND").then_some(()));
    for (rows, cols) in [(10, 30), (50, 200), (2, 5), (15, 60), (24, 80)].into_iter().cycle().take(50) {
        screen.master.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
    }
    screen.parser.lock().unwrap().set_size(24, 80);
    screen.press("\u{c}");
    screen.until("the table after a storm", |t| {
        (t.lines().count() >= 9 && t.contains("F10Quit")).then_some(())
    });
    screen.press("\u{3}");
    screen.ends("Ctrl-C after a storm of sizes");
}

/// Back in time with the whole screen, in another kind of rows, and to now again.
fn travel(program: &Path) {
    let mut screen = Screen::new(program, &["--no-config", "0.1"]);
    screen.until("the table", |t| t.contains("COMMAND").then_some(()));
    // Something to go back to.
    std::thread::sleep(std::time::Duration::from_millis(600));
    screen.press("\u{1b}[D\u{1b}[D");
    screen.until("the past", |t| (t.contains(" s AGO") && t.contains('▲')).then_some(()));
    screen.press("6");
    screen.until("files of then", |t| (t.contains(" s AGO") && t.contains("FILE")).then_some(()));
    screen.press("p");
    screen.until("now", |t| (!t.contains(" AGO") && t.contains("FILE")).then_some(()));
    screen.press("q");
    screen.ends("q after the past");
    println!("ok: back in time and to now again");
}

/// A recording on the screen: its time is walked through by keys, and it is as if nothing else were there.
fn replayed(program: &Path) {
    let path = std::env::temp_dir().join(format!("replayed-{}.record", std::process::id()));
    let done = Command::new(program.with_file_name("cachestat"))
        .args(["--record", path.to_str().unwrap(), "--json", "--by", "comm", "0.1", "25"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let live = String::from_utf8(done.stdout).unwrap();
    let again = Command::new(program)
        .args(["--no-config", "--json", "--by", "comm", "--replay", path.to_str().unwrap()])
        .output()
        .unwrap();
    // That they are the same to the byte is shown by unit tests; here, that as many come back.
    assert_eq!(String::from_utf8(again.stdout).unwrap().lines().count(), live.lines().count());
    let mut screen = Screen::new(program, &["--no-config", "--replay", path.to_str().unwrap()]);
    let clock = |t: &str| {
        let time = |word: &&str| word.len() == 8 && word.contains(':');
        let last = t.lines().next()?.split_whitespace().rev().find(time)?.to_owned();
        t.contains("REPLAY paused").then_some(last)
    };
    let first = screen.until("the first interval", clock);
    // Ten intervals are a second, and ten more another one.
    screen.press("\u{1b}[1;5C\u{1b}[1;5C");
    let later = screen.until("two seconds on", |t| clock(t).filter(|c| *c != first));
    assert!(later > first, "{first} {later}");
    screen.press("\u{1b}[1;5D\u{1b}[1;5D\u{1b}[1;5D");
    screen.until("back at the beginning", |t| clock(t).filter(|c| *c == first));
    screen.press("6");
    screen.until("files of then", |t| (t.contains("REPLAY paused") && t.contains("FILE")).then_some(()));
    screen.press(" ");
    screen.until("the end by itself", |t| (t.contains("the recording ends here")).then_some(()));
    screen.press("q");
    screen.ends("q in a replay");
    std::fs::remove_file(&path).unwrap();
    println!("ok: a recording, walked through");
}

/// Stopped by a signal and by a key, and let go on: the terminal is the shell's in between.
fn stopped(program: &Path) {
    let mut screen = Screen::new(program, &["--no-config", "0.2"]);
    screen.until("the table", |t| t.contains("COMMAND").then_some(()));
    let pid = screen.child.process_id().unwrap();
    for how in ["SIGTSTP", "Ctrl-Z"] {
        match how {
            "SIGTSTP" => screen.signal(libc::SIGTSTP),
            _ => screen.press("\u{1a}"),
        }
        screen.until(how, |_| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            stat.contains(") T ").then_some(())
        });
        screen.given_back(how);
        assert!(!screen.text().contains("COMMAND"), "{how}: the table is left on the screen");
        screen.signal(libc::SIGCONT);
        screen.until("the table again", |t| (t.contains("COMMAND") && t.contains("F10Quit")).then_some(()));
        println!("ok: {how} gives the terminal back until SIGCONT");
    }
    screen.press("q");
    screen.ends("q after it was stopped");
}

fn main() {
    let dir = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "/var/tmp".into()));
    let program =
        std::env::var_os("CACHETOP").map_or_else(|| env!("CARGO_BIN_EXE_cachetop").into(), PathBuf::from);
    let path = dir.join(format!("lesson-{}", std::process::id()));
    let mut file = File::create(&path).unwrap();
    let page: Vec<u8> = (0..4096_u32).map(|i| i.wrapping_mul(2_654_435_761) as u8).collect();
    for _ in 0..PAGES {
        file.write_all(&page).unwrap();
    }
    file.sync_all().unwrap();
    drop(file);
    let file = File::open(&path).unwrap();
    // SAFETY: the file is open.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
    drop(file);
    let result = std::panic::catch_unwind(|| {
        assert!(lesson(&program, &path, true), "pages of the file are still in the cache");
        // The machine may take pages away at any time, and the lesson is about a file that is cached as a whole.
        let whole = (0..20).any(|_| {
            dd(&path);
            lesson(&program, &path, false)
        });
        assert!(whole, "the file does not stay in the cache: {} of {PAGES} pages", present(&path));
        walk::walked(&program, &path);
        storm::watched(&program, &path.with_extension("small"));
        if !std::env::args().any(|a| a == "--no-endings") {
            endings(&program);
        }
    });
    std::fs::remove_file(&path).unwrap();
    if result.is_err() {
        std::process::exit(1);
    }
    println!("cachetop in a terminal: all ok");
}
