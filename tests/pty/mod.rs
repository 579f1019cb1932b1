//! A program in a terminal of its own.
#![allow(dead_code)] // each of the tests uses a part

use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use portable_pty::Child;
use portable_pty::CommandBuilder;
use portable_pty::MasterPty;
use portable_pty::PtySize;

/// Emulated machines are slow.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A program in a terminal of 120 columns and 40 lines.
pub struct Screen {
    pub child: Box<dyn Child + Send + Sync>,
    pub master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    pub parser: Arc<Mutex<vt100::Parser>>,
}

impl Screen {
    pub fn new(program: &Path, options: &[&str]) -> Self {
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

    pub fn text(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until the screen is as it should be.
    pub fn until<T>(&self, what: &str, see: impl Fn(&str) -> Option<T>) -> T {
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

    /// Sends the program a signal.
    pub fn signal(&self, signal: libc::c_int) {
        let pid = self.child.process_id().unwrap();
        // SAFETY: the process is our child and has not been waited for.
        assert_eq!(unsafe { libc::kill(pid as libc::pid_t, signal) }, 0);
    }

    /// Whether the terminal is as it was: what the program wrote last may still be on its way.
    fn as_before(&self) -> Result<(), &'static str> {
        let parser = self.parser.lock().unwrap();
        let screen = parser.screen();
        let modes = format!("{:?}", self.master.get_termios().expect("the terminal has modes"));
        if screen.alternate_screen() {
            Err("the other screen is still shown")
        } else if screen.hide_cursor() {
            Err("the cursor is still hidden")
        } else if screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None {
            Err("the mouse is still taken")
        } else if screen.bracketed_paste() {
            Err("what is pasted is still marked")
        } else if !(modes.contains("ICANON") && modes.contains("ECHO")) {
            Err("the terminal is still in raw mode")
        } else {
            Ok(())
        }
    }

    /// Waits until the terminal is given back.
    pub fn given_back(&self, how: &str) {
        let end = Instant::now() + PATIENCE;
        while let Err(why) = self.as_before() {
            assert!(Instant::now() < end, "{how}: {why}; the screen is\n{}", self.text());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end, and returns the exit status. The terminal must be as it was.
    pub fn ends_with(&mut self, how: &str) -> u32 {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(Instant::now() < end, "{how}: it does not end"),
            }
            thread::sleep(Duration::from_millis(20));
        };
        self.given_back(how);
        status.exit_code()
    }

    /// Waits for the end, which must be a good one.
    pub fn ends(mut self, how: &str) {
        assert_eq!(self.ends_with(how), 0, "{how}: {}", self.text());
        println!("ok: {how} gives the terminal back");
    }
}
