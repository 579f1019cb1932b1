//! The command under test.

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

pub const CACHESTAT: &str = env!("CARGO_BIN_EXE_cachestat");

pub fn cachestat(options: &str) -> Command {
    let mut command = Command::new(CACHESTAT);
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

    pub fn launch(options: &str) -> Self {
        let mut process = cachestat(options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
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

    pub fn pid(&self) -> u32 {
        self.process.id()
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
