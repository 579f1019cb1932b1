//! The command under test.

use std::fs;
use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::sync::mpsc;

use serde_json::Value;

use super::PATIENCE;
use super::files::signed;
use super::wait_for;

/// The program: that of this build, or another one (in a virtual machine) that `CACHESTAT` names.
pub fn program() -> String {
    std::env::var("CACHESTAT").unwrap_or_else(|_| env!("CARGO_BIN_EXE_cachestat").into())
}

pub fn cachestat(options: &str) -> Command {
    let mut command = Command::new(program());
    command.args(options.split_whitespace());
    plain(&mut command);
    command
}

pub fn plain(command: &mut Command) {
    command.env_remove("COLUMNS").env_remove("RUST_LOG").stdin(Stdio::null());
    // A script's background job ignores some signals, and so would what it starts.
    let as_from_a_terminal = || {
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
            // SAFETY: the default disposition is no function of ours.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: signal is async-signal-safe, and nothing else is called.
    unsafe { command.pre_exec(as_from_a_terminal) };
}

pub fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let out = command.output().unwrap();
    (out.status.code(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
}

/// A running command and the lines that it has printed so far.
pub struct Monitor {
    process: Child,
    pub incoming: mpsc::Receiver<String>,
    pub lines: Vec<String>,
}

impl Monitor {
    /// Starts it and waits for its first line: from then on everything is counted.
    pub fn start(options: &str) -> Self {
        let mut monitor = Self::launch(options);
        monitor.line();
        monitor
    }

    /// The same with words that have blanks in them, before the others.
    pub fn start_with(words: &[&str], options: &str) -> Self {
        let mut command = Command::new(program());
        command.args(words).args(options.split_whitespace());
        plain(&mut command);
        let mut monitor = Self::begin(command);
        monitor.line();
        monitor
    }

    pub fn launch(options: &str) -> Self {
        Self::begin(cachestat(options))
    }

    fn begin(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let (sender, incoming) = mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break; // drops the pipe, too
                }
            }
        });
        Self { process, incoming, lines: Vec::new() }
    }

    /// Its next line.
    pub fn line(&mut self) -> &str {
        match self.incoming.recv_timeout(PATIENCE) {
            Ok(line) => self.lines.push(line),
            Err(e) => {
                self.signal(libc::SIGKILL);
                let mut err = String::new();
                self.process.stderr.take().unwrap().read_to_string(&mut err).unwrap();
                panic!("no line ({e}): {err}");
            }
        }
        self.lines.last().unwrap()
    }

    /// Waits until it has counted all that happened before; how many lines there are then.
    pub fn catch_up(&mut self) -> usize {
        self.lines.extend(self.incoming.try_iter());
        // The line that is on its way may be from before.
        self.line();
        self.line();
        self.lines.len()
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn runs(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: kill takes no pointer; the child is not reaped yet, so that the id is still its own.
        unsafe { libc::kill(signed(self.pid()), signal) };
    }

    /// How it ended, when it was about to, and what it had to say on standard error.
    pub fn ended(&mut self) -> (ExitStatus, String) {
        let mut status = None;
        wait_for("the end of cachestat", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        self.lines.extend(self.incoming.iter());
        let mut err = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (status.unwrap(), err)
    }

    /// Interrupts it as Ctrl-C does; all its lines.
    pub fn finish(mut self) -> Vec<String> {
        self.signal(libc::SIGINT);
        let (status, err) = self.ended();
        assert!(status.success(), "{status}: {err}");
        std::mem::take(&mut self.lines)
    }

    /// The same, of `--json`: the intervals and the total.
    pub fn finish_json(self) -> (Vec<Value>, Value) {
        let mut all: Vec<Value> = self.finish().iter().map(|l| serde_json::from_str(l).unwrap()).collect();
        let total = all.pop().unwrap();
        assert_eq!(total["total"], true, "{total}");
        (all, total)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

/// The BPF programs that a process holds: their names, cut to 15 letters, and how many runs of each the kernel skipped.
pub fn programs_of(pid: u32) -> Vec<(String, u64)> {
    let mut programs = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        let Some(id) = text.lines().find_map(|l| l.strip_prefix("prog_id:")) else { continue };
        let mut info = libbpf_sys::bpf_prog_info::default();
        let mut len = u32::try_from(size_of::<libbpf_sys::bpf_prog_info>()).unwrap();
        // SAFETY: a descriptor that is closed here, and plain data of the size given, which asks for no arrays.
        unsafe {
            let fd = libbpf_sys::bpf_prog_get_fd_by_id(id.trim().parse().unwrap());
            assert!(fd >= 0, "program {id}");
            assert_eq!(libbpf_sys::bpf_prog_get_info_by_fd(fd, &raw mut info, &raw mut len), 0);
            libc::close(fd);
        }
        let name = info.name.iter().take_while(|c| **c != 0).map(|c| char::from(*c as u8)).collect();
        programs.push((name, info.recursion_misses));
    }
    programs.sort();
    programs.dedup();
    programs
}
