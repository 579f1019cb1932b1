//! Short processes without end: the living are not buried below them, and what they did is told together.

use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::pty::Screen;

/// So many in a row that stands for several are many: an emulated machine starts few in a second.
const MANY: u32 = 3;

/// The lines of the table, without its titles: down to the border.
fn rows(text: &str) -> Vec<&str> {
    let titles = text.lines().position(|l| l.contains("PID") && l.contains("COMMAND"));
    let filled = |l: &&str| l.contains(char::is_alphanumeric);
    let below = |at| text.lines().skip(at + 1).take_while(|l| !l.starts_with('╰')).filter(filled).collect();
    titles.map(below).unwrap_or_default()
}

/// How many a row stands for, by a word such as `12x`.
fn together(row: &str) -> Option<u32> {
    row.split_whitespace().find_map(|word| word.strip_suffix('x').filter(|n| !n.is_empty())?.parse().ok())
}

fn is_of(row: &str, name: &str) -> bool {
    row.split_whitespace().any(|word| word == name)
}

/// One after the other: at no time two of them live.
fn short_ones(file: &Path, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let mut cat = Command::new("cat");
        assert!(cat.arg(file).stdout(Stdio::null()).status().unwrap().success());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Watches the screen while they come and go.
pub fn watched(program: &Path, file: &Path) {
    // Some pages, so that each of them does something on any kernel.
    std::fs::write(file, [1; 4 * 4096]).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| short_ones(file, &over));
        let seen = std::panic::catch_unwind(|| look(program));
        over.store(true, Ordering::Relaxed);
        if let Err(why) = seen {
            std::panic::resume_unwind(why);
        }
    });
    std::fs::remove_file(file).unwrap();
}

fn look(program: &Path) {
    let mut screen = Screen::new(program, &["--no-config", "1"]);
    for _ in 0..3 {
        let many = |t: &str| {
            let rows = rows(t);
            rows.iter().any(|row| is_of(row, "cat") && together(row) >= Some(MANY)).then(|| t.to_owned())
        };
        let text = screen.until("many of one name", many);
        let of_them = rows(&text).into_iter().take(10).filter(|row| is_of(row, "cat")).count();
        assert!(of_them <= 2, "one row for those that ended, and one may live:\n{text}");
        // The next interval.
        let clock = text.lines().next().map(str::to_owned);
        screen.until("the next second", |t| (t.lines().next().map(str::to_owned) != clock).then_some(()));
    }
    // By cgroup, and then below who made them: this program, which lives.
    screen.press("e");
    screen.until("by cgroup", |t| {
        rows(t).iter().all(|row| !is_of(row, "cat") || together(row).is_none()).then_some(())
    });
    screen.press("e");
    let own = std::process::id().to_string();
    let below = |t: &str| {
        let mine = |row: &&str| is_of(row, "below") && is_of(row, &own);
        rows(t).into_iter().find(mine).and_then(together).filter(|n| *n >= MANY)
    };
    let number = screen.until("many below this program", below);
    // Each by itself: who has ended is behind all that live.
    screen.press("e");
    let apart = |t: &str| {
        let rows = rows(t);
        // Still as before: one that ended is told as "x below", too.
        if rows.iter().any(|row| is_of(row, "below")) {
            return None;
        }
        let ended = |row: &str| row.split_whitespace().any(|word| word == "x");
        let first = rows.iter().position(|row| ended(row))?;
        // The screen may be half drawn when it is looked at.
        rows[first..].iter().all(|row| ended(row)).then_some(())
    };
    screen.until("those that ended, each by itself, behind the living", apart);
    screen.press("q");
    screen.ends("q in a storm");
    println!("ok: a storm of short processes: {number} of them below this program");
}
