//! `cachetop` in a real terminal, on a real kernel, against the two `dd` of a well-known lesson: the first reads a file
//! that is not cached, the second one that is. The truth is known by construction: the file's number of pages.
//!
//! Run as root: `terminal [DIRECTORY]`, in a directory on a file system with a page cache (default: `/var/tmp`).
//! `CACHETOP` names the program.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use portable_pty::Child;
use portable_pty::CommandBuilder;
use portable_pty::MasterPty;
use portable_pty::PtySize;

/// Pages of the file: a prime number, so that nothing else adds up to it.
const PAGES: u64 = 8191;
/// Emulated machines are slow.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program in a terminal of 120 columns and 40 lines.
struct Screen {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    parser: Arc<Mutex<vt100::Parser>>,
}

impl Screen {
    fn new(program: &Path, options: &[&str]) -> Self {
        let size = PtySize { rows: 40, cols: 120, pixel_width: 0, pixel_height: 0 };
        let pair = portable_pty::native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(options);
        command.env("TERM", "xterm-256color");
        command.env("LC_ALL", "C.UTF-8");
        let child = pair.slave.spawn_command(command).unwrap();
        let parser = Arc::new(Mutex::new(vt100::Parser::new(40, 120, 0)));
        let (mut reader, to) = (pair.master.try_clone_reader().unwrap(), parser.clone());
        thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                to.lock().unwrap().process(&buffer[..n]);
            }
        });
        let keys = pair.master.take_writer().unwrap();
        Self { child, master: pair.master, keys, parser }
    }

    fn text(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until the screen is as it should be.
    fn until<T>(&self, what: &str, see: impl Fn(&str) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if let Some(found) = see(&text) {
                return found;
            }
            assert!(Instant::now() < end, "waited in vain for {what}; the screen is\n{text}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end. The terminal must be as it was.
    fn ends(mut self, how: &str) {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(Instant::now() < end, "{how}: it does not end"),
            }
            thread::sleep(Duration::from_millis(20));
        };
        assert!(status.success(), "{how}: {status:?}");
        thread::sleep(Duration::from_millis(200));
        let parser = self.parser.lock().unwrap();
        let screen = parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor(), "{how}: the terminal is not given back");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None, "{how}: the mouse is not");
        let modes = self.master.get_termios().expect("the terminal has modes");
        let cooked = nix_lflag(&modes);
        assert!(cooked, "{how}: the terminal is left in raw mode");
        println!("ok: {how} gives the terminal back");
    }
}

/// Whether lines are edited and keys echoed.
fn nix_lflag(modes: &impl std::fmt::Debug) -> bool {
    let text = format!("{modes:?}");
    text.contains("ICANON") && text.contains("ECHO")
}

/// HITS, RAHITS, MISSES and READ_HIT% of the file's row.
fn row(text: &str, name: &str) -> Option<(u64, u64, u64, String)> {
    let line = text.lines().find(|l| l.contains(name) && !l.contains("filter"))?;
    let cells: Vec<&str> = line.split_whitespace().collect();
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
    screen.press("\u{1b}");
    screen.until("the table", |t| t.contains("h help").then_some(()));
    screen.press("h");
    screen.until("the help", |t| t.contains("Keys (any key closes").then_some(()));
    screen.press("q");
    screen.ends("q");
    true
}

fn endings(program: &Path) {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        let screen = Screen::new(program, &["--no-config", "0.2"]);
        screen.until("the table", |t| t.contains("COMMAND").then_some(()));
        let pid = screen.child.process_id().unwrap();
        // SAFETY: the process is our child and has not been waited for.
        assert_eq!(unsafe { libc::kill(pid as libc::pid_t, signal) }, 0);
        screen.ends(&format!("signal {signal}"));
    }
    let mut screen = Screen::new(program, &["--no-config", "0.2"]);
    screen.until("the table", |t| t.contains("COMMAND").then_some(()));
    for (rows, cols) in [(10, 30), (50, 200), (2, 5), (15, 60), (24, 80)].into_iter().cycle().take(50) {
        screen.master.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
    }
    screen.parser.lock().unwrap().set_size(24, 80);
    screen.press("\u{c}");
    screen
        .until("the table after a storm", |t| (t.lines().count() >= 9 && t.contains("q quit")).then_some(()));
    screen.press("\u{3}");
    screen.ends("Ctrl-C after a storm of sizes");
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
        endings(&program);
    });
    std::fs::remove_file(&path).unwrap();
    if result.is_err() {
        std::process::exit(1);
    }
    println!("cachetop in a terminal: all ok");
}
