//! A program of the package from outside: what all of them say, and how they end.
#![allow(dead_code)] // each test uses a part

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

/// Exit code, output and error output.
pub type Said = (Option<i32>, String, String);

pub fn text(output: Output) -> Said {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A program under test.
pub struct Program {
    pub name: &'static str,
    pub path: &'static str,
}

impl Program {
    pub fn command(&self, options: &str) -> Command {
        let mut command = Command::new(self.path);
        command.args(options.split_whitespace()).stdin(Stdio::null());
        for name in ["COLUMNS", "RUST_LOG", "XDG_CONFIG_HOME", "HOME"] {
            command.env_remove(name);
        }
        command
    }

    pub fn run(&self, options: &str) -> Said {
        text(self.command(options).output().unwrap())
    }

    /// What `-h` or `--help` prints.
    pub fn help(&self, option: &str) -> String {
        let (code, out, err) = self.run(option);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{option} fits 80 columns");
        out
    }

    /// The manual page. The completions are looked at as well.
    pub fn manual(&self) -> String {
        let name = self.name;
        for (shell, part) in [
            ("bash", format!("complete -F _{name}")),
            ("zsh", format!("#compdef {name}")),
            ("fish", format!("complete -c {name}")),
        ] {
            let (code, out, _) = self.run(&format!("--generate {shell}"));
            assert_eq!(code, Some(0));
            assert!(out.contains(&part), "{shell}: {out}");
        }
        let (code, man, _) = self.run("--generate man");
        assert_eq!(code, Some(0));
        man.replace(env!("CARGO_PKG_VERSION"), "VERSION")
    }

    /// What wrong usage is answered with.
    pub fn refused(&self, options: &str) -> String {
        let (code, out, err) = self.run(options);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{options}: {err}");
        err
    }

    /// Output that cannot be written is an error, and output that nobody reads is none.
    pub fn writes_or_says_so(&self, options: &str) {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (code, _, err) = text(self.command(options).stdout(full).output().unwrap());
        assert_eq!(code, Some(1), "{options}");
        assert!(err.contains("cannot write the output: No space left on device"), "{options}: {err}");

        let (writer, reader) = UnixStream::pair().unwrap();
        drop(reader);
        let output = self.command(options).stdout(OwnedFd::from(writer)).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{options}");
    }

    /// For somebody who may not, there is an error with a remedy.
    pub fn needs_privilege(&self, options: &str) {
        let mut command = self.command(options);
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(65534).gid(65534);
        }
        let output = match command.output() {
            Ok(output) => output,
            // The program lies where only root may enter.
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => return,
            Err(e) => panic!("{e}"),
        };
        let (code, out, err) = text(output);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.starts_with(&format!("{}: error: ", self.name)) && err.contains("\nremedy: "), "{err}");
    }
}
