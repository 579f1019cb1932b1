//! A panic gives the terminal back, and its words are seen: in a real terminal, with the screen that `cachetop` uses.
//! Needs no privilege: the program in the terminal is this one.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod pty;

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use cachetop::top::draw::theme::Theme;
use cachetop::top::terminal::Screen;

/// What the program in the terminal does: takes it over, shows that it has, and panics.
fn panics(which: &str) {
    let screen = Screen::new(Theme::plain(), true).unwrap();
    print!("taken over\r\n");
    std::io::Write::flush(&mut std::io::stdout()).unwrap();
    thread::sleep(Duration::from_millis(300));
    match which {
        "here" => panic!("the words of a panic"),
        _ => drop(thread::spawn(|| panic!("the words of a panic")).join()),
    }
    drop(screen);
    std::process::exit(1);
}

fn ends(which: &str, status: u32) {
    let program: PathBuf = std::env::current_exe().unwrap();
    let mut screen = pty::Screen::new(&program, &["--panic", which]);
    screen.until("its screen", |text| text.contains("taken over").then_some(()));
    assert!(screen.parser.lock().unwrap().screen().alternate_screen(), "it has taken the terminal over");
    assert_eq!(screen.ends_with(which), status);
    screen.until("the words", |text| text.contains("the words of a panic").then_some(()));
    println!("ok: a panic {which} gives the terminal back");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--panic", which] => panics(which),
        ["--list", ..] => println!("a_panic_gives_the_terminal_back: test"),
        _ => {
            ends("here", 101);
            ends("in another thread", 1);
        }
    }
}
