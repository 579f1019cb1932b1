//! `cachedu -i` on a terminal: what is on the screen, and that the terminal is given back.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Read as _;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use portable_pty::CommandBuilder;
use portable_pty::PtySize;
use portable_pty::native_pty_system;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn the_tree_is_browsed_and_the_terminal_is_given_back() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("inner")).unwrap();
    fs::write(dir.path().join("inner/alpha"), vec![1; 50_000]).unwrap();
    fs::write(dir.path().join("beta"), vec![1; 9000]).unwrap();

    let pty = native_pty_system();
    let pair = pty.openpty(PtySize { rows: 24, cols: 80, ..PtySize::default() }).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_cachedu"));
    command.args(["-i", dir.path().to_str().unwrap()]);
    command.env("TERM", "xterm");
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let screen = Arc::new(Mutex::new(vt100::Parser::new(24, 80, 0)));
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut writer = pair.master.take_writer().unwrap();
    let shown = Arc::clone(&screen);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = reader.read(&mut buffer) {
            shown.lock().unwrap().process(&buffer[..n]);
        }
    });
    let wait = |what: &str| {
        let start = Instant::now();
        loop {
            let text = screen.lock().unwrap().screen().contents();
            if text.contains(what) {
                return text;
            }
            assert!(start.elapsed() < PATIENCE, "{what} is not in\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let mut press = |keys: &str| {
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
    };

    let text = wait("inner/");
    let (inner, beta) = (text.find("inner/").unwrap(), text.find("beta").unwrap());
    assert!(inner < beta, "by what is cached:\n{text}");
    press("\r");
    wait("alpha");
    press("e");
    wait("y/n");
    press("n");
    wait("nothing was done");
    press("m");
    wait("each cell is a page");
    press("x");
    wait("alpha");
    press("h");
    wait("beta");
    press("/BET\r");
    let text = wait("/BET  1 of 2");
    assert!(!text.contains("inner/"), "{text}");
    // A job, while keys are heeded.
    press("Ly");
    wait("read 0 of 0 files");
    press("\x1b");
    wait("inner/");
    press("?");
    wait("by what is dirty");
    press("x");
    wait("beta");
    // A key that comes together with another size does not wait for the next one.
    pair.master.resize(PtySize { rows: 10, cols: 60, ..PtySize::default() }).unwrap();
    press("q");
    assert!(child.wait().unwrap().success());
    let start = Instant::now();
    while screen.lock().unwrap().screen().alternate_screen() {
        assert!(start.elapsed() < PATIENCE, "the terminal was not given back");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!screen.lock().unwrap().screen().hide_cursor());
}
