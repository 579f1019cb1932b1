//! From a cgroup to its process, to its file, to the map of what is cached of it, and back. Only this program is looked at, and
//! it goes on reading one file, so that what is listed stands still.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::pty::PATIENCE;
use crate::pty::Screen;

/// The line that is chosen.
fn chosen(screen: &Screen) -> Option<String> {
    let parser = screen.parser.lock().unwrap();
    let screen = parser.screen();
    let (lines, columns) = screen.size();
    let inverse = |y: u16| (0..columns).filter(|x| screen.cell(y, *x).is_some_and(|c| c.inverse())).count();
    let line = (0..lines).find(|y| inverse(*y) > usize::from(columns) / 2)?;
    screen.rows(0, columns).nth(line.into())
}

/// Goes down until a line with this text is chosen. A key that comes while the page changes may do nothing: it is pressed again.
fn choose(screen: &mut Screen, text: &str) {
    let end = Instant::now() + PATIENCE;
    while !chosen(screen).is_some_and(|line| line.contains(text)) {
        assert!(Instant::now() < end, "cannot choose {text}; the screen is\n{}", screen.text());
        let before = screen.text();
        screen.press("\u{1b}[B");
        let waited = Instant::now();
        while screen.text() == before && waited.elapsed() < Duration::from_secs(2) {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The title of the page of details begins so.
fn titled<'a>(what: &'a str) -> impl Fn(&str) -> Option<()> + 'a {
    move |t| {
        t.lines()
            .any(|l| l.trim_start_matches(|c: char| !c.is_alphanumeric()).starts_with(what))
            .then_some(())
    }
}

/// Walks, while a thread of this program reads the file.
pub fn walked(program: &Path, file: &Path) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = vec![0; 65536];
            while !over.load(Ordering::Relaxed) {
                let _ = File::open(file).unwrap().read(&mut buffer).unwrap();
                thread::sleep(Duration::from_millis(50));
            }
        });
        let seen = std::panic::catch_unwind(|| walk(program, file));
        over.store(true, Ordering::Relaxed);
        if let Err(why) = seen {
            std::panic::resume_unwind(why);
        }
    });
}

fn walk(program: &Path, file: &Path) {
    let pid = std::process::id().to_string();
    let name = file.file_name().unwrap().to_str().unwrap();
    let (process, path) = (format!("process {pid} "), format!("file  {}", file.display()));
    let mut screen = Screen::new(program, &["--no-config", "-p", &pid, "--by", "cgroup", "0.5"]);
    screen.until("its cgroup", |t| (t.contains("1 cgroup ") && t.contains("CGROUP")).then_some(()));
    screen.press("\r");
    screen.until("the details of the cgroup", titled("cgroup  "));
    choose(&mut screen, &format!(" {pid} "));
    screen.press("\r");
    screen.until("the details of the process", titled(&process));
    choose(&mut screen, name);
    screen.press("\r");
    screen.until("the details of the file", titled(&path));
    let map = screen.until("what is cached of it now", |t| {
        let line = t.lines().find(|l| l.contains("in the cache now"))?;
        t.contains("a sign is").then(|| line.to_owned())
    });
    // Back to what was chosen there, where it stood on the screen.
    let row = format!(" {pid} ");
    for (was, what) in [(name, "the process again"), (row.as_str(), "the cgroup again")] {
        screen.press("\u{1b}");
        screen.until(what, |_| chosen(&screen).filter(|line| line.contains(was)).map(|_| ()));
    }
    screen.press("\u{1b}");
    screen.until("the table again", |t| (t.contains("1 cgroup ") && t.contains("F10Quit")).then_some(()));
    screen.press("q");
    screen.ends("q after a walk");
    println!("ok: from a cgroup to the map of a file and back: {}", map.trim());
}
