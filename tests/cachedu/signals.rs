//! What ends it: signals, and terminals that go.

use std::fs;
use std::io;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use portable_pty::CommandBuilder;
use portable_pty::PtySize;
use portable_pty::native_pty_system;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;

use super::CACHEDU;

/// Whoever ignores SIGINT when it starts a program is left alone by it, and these tests may have been started so.
fn heed_interrupts() {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
}

#[test]
fn a_signal_ends_it_as_any_program_and_it_says_what_is_missing() {
    heed_interrupts();
    for (options, word) in [("", "no figures"), ("--evict", "what was done so far stays")] {
        let mut command = CACHEDU.command(&format!("{options} --files-from -"));
        let (reader, writer) = UnixStream::pair().unwrap();
        let mut child = command
            .stdin(OwnedFd::from(reader))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It reads on until the list ends, which it does not. Signals come when it has handlers for them.
        let handled = || {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
            let mask = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap().trim();
            u64::from_str_radix(mask, 16).unwrap() & (1 << 1) != 0
        };
        while !handled() {
            sleep(Duration::from_millis(5));
        }
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::INT).unwrap();
        let mut err = String::new();
        child.stderr.as_mut().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(2));
        assert!(err.starts_with("cachedu: interrupted: ") && err.contains(word), "{err}");
        drop(writer);
    }
}

/// In a terminal, where the progress line is: stopped for a while, so that the walk takes long enough for it.
#[test]
fn a_signal_takes_the_progress_line_away() {
    heed_interrupts();
    let pty = native_pty_system().openpty(PtySize::default()).unwrap();
    let mut command = CommandBuilder::new(CACHEDU.path);
    command.args(["-j", "1", "/"]);
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let pid = Pid::from_raw(child.process_id().unwrap().try_into().unwrap()).unwrap();
    let signal = |signal| kill_process(pid, signal).unwrap();
    let wait = |ms| sleep(Duration::from_millis(ms));
    wait(100);
    signal(Signal::STOP);
    wait(700);
    signal(Signal::CONT);
    let mut reader = pty.master.try_clone_reader().unwrap();
    let mut screen = Vec::new();
    let mut byte = [0];
    // The end of the terminal is an error on Linux.
    while let Ok(1) = reader.read(&mut byte) {
        screen.push(byte[0]);
        if screen.ends_with(b" cached") {
            signal(Signal::INT);
        }
    }
    let screen = String::from_utf8_lossy(&screen);
    assert!(
        screen.contains(" files, ") && screen.contains("\r\x1b[Kcachedu: interrupted: no figures"),
        "{screen}"
    );
    assert!(!screen.contains("NAME"), "{screen}");
    assert!(!child.wait().unwrap().success());
}

/// Waits until these texts were written, one after the other: blanks are not drawn.
fn until(reader: &mut dyn io::Read, texts: &[&str]) {
    let mut screen = Vec::new();
    let mut part = [0; 4096];
    let all =
        |screen: &str| texts.iter().try_fold(screen, |rest, t| rest.split_once(t).map(|s| s.1)).is_some();
    while !all(&String::from_utf8_lossy(&screen)) {
        let n = reader.read(&mut part).unwrap_or(0);
        assert!(n > 0, "{texts:?}: {}", String::from_utf8_lossy(&screen));
        screen.extend_from_slice(&part[..n]);
    }
}

#[test]
fn the_browser_gives_the_terminal_back_and_ends_by_the_signal() {
    heed_interrupts();
    let dir = tempfile::tempdir().unwrap();
    for (signal, name) in [(Signal::TERM, "Terminated"), (Signal::INT, "Interrupt"), (Signal::QUIT, "Quit")] {
        let pty = native_pty_system().openpty(PtySize::default()).unwrap();
        let mut command = CommandBuilder::new(CACHEDU.path);
        command.args(["-i", dir.path().to_str().unwrap()]);
        command.cwd(dir.path());
        let mut child = pty.slave.spawn_command(command).unwrap();
        let mut reader = pty.master.try_clone_reader().unwrap();
        let pid = Pid::from_raw(child.process_id().unwrap().try_into().unwrap()).unwrap();
        until(&mut reader, &["nothing"]);
        kill_process(pid, Signal::TSTP).unwrap();
        until(&mut reader, &["\x1b[?1049l"]);
        let state = || fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
        while !state().contains(") T ") {
            sleep(Duration::from_millis(5));
        }
        kill_process(pid, Signal::CONT).unwrap();
        until(&mut reader, &["\x1b[?1049h", "nothing"]);
        kill_process(pid, signal).unwrap();
        until(&mut reader, &["\x1b[?1049l"]);
        let status = child.wait().unwrap();
        assert!(status.signal().is_some_and(|s| s.starts_with(name)), "{status:?}");
    }
}

#[test]
fn a_terminal_that_is_gone_ends_the_browser() {
    let dir = tempfile::tempdir().unwrap();
    let pty = native_pty_system().openpty(PtySize::default()).unwrap();
    let mut command = CommandBuilder::new(CACHEDU.path);
    command.args(["-i", dir.path().to_str().unwrap()]);
    let mut child = pty.slave.spawn_command(command).unwrap();
    let mut reader = pty.master.try_clone_reader().unwrap();
    until(&mut reader, &["nothing"]);
    drop((reader, pty));
    assert!(!child.wait().unwrap().success());
}
