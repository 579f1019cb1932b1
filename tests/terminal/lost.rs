//! Terminals that are lost: closed on the other side, or read by nobody any more.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::fd::FromRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::time::Duration;
use std::time::Instant;

/// The program with all of its standard files on a terminal of its own; the other side of that.
fn start(program: &Path) -> (File, Child) {
    let (mut master, mut slave) = (-1, -1);
    let size = libc::winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: two ints to be filled, and a size; descriptors that are owned from here on.
    let (mut master, slave) = unsafe {
        let none = std::ptr::null_mut();
        assert_eq!(
            libc::openpty(&raw mut master, &raw mut slave, none, std::ptr::null(), &raw const size),
            0
        );
        libc::fcntl(master, libc::F_SETFD, libc::FD_CLOEXEC);
        (File::from_raw_fd(master), File::from_raw_fd(slave))
    };
    let mut command = Command::new(program);
    command.args(["--no-config", "0.05"]).env("TERM", "xterm-256color");
    command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
    // SAFETY: two system calls.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    let child = command.spawn().unwrap();
    drop(command);
    let (mut seen, mut some) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&seen).contains("COMMAND") {
        let n = master.read(&mut some).unwrap();
        seen.extend_from_slice(&some[..n]);
    }
    (master, child)
}

fn ends(child: &mut Child, how: &str) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{how}: it goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// It ends as it should when its terminal is closed: it has no place to say anything, and must not panic over that.
pub fn closed(program: &Path) {
    let (master, mut child) = start(program);
    drop(master);
    let status = ends(&mut child, "closed");
    assert!(matches!(status.code(), Some(0 | 1)), "{status}");
    println!("ok: the terminal is closed");
}

/// One SIGTERM is enough, though what it writes is read by nobody.
pub fn unread(program: &Path) {
    let (master, mut child) = start(program);
    // The terminal is full once the program sleeps in write(2) and goes on doing so. Not by wchan, which some kernels leave
    // at 0.
    let (start, mut stays) = (Instant::now(), 0);
    while stays < 10 {
        let at = std::fs::read_to_string(format!("/proc/{}/syscall", child.id())).unwrap();
        stays = if at.starts_with(&format!("{} ", libc::SYS_write)) { stays + 1 } else { 0 };
        // Each asks for the screen anew.
        // SAFETY: a live buffer of one byte.
        unsafe { libc::write(master.as_raw_fd(), c"\x0c".as_ptr().cast(), 1) };
        assert!(start.elapsed() < Duration::from_secs(30), "{at}");
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: no pointers.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let status = ends(&mut child, "unread");
    assert!(status.signal().is_none(), "{status}");
    assert_eq!(status.code(), Some(128 + libc::SIGTERM));
    println!("ok: nobody reads what it writes");
}
