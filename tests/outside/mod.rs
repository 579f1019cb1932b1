//! What every command does alike, seen from outside and without privilege: help, manual page, completions, endings.
#![allow(dead_code)] // each of the tests uses a part

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

/// One of the commands.
pub struct Program {
    /// Where it is.
    pub path: &'static str,
    /// What it is called.
    pub name: &'static str,
    /// How the names of its snapshots begin.
    pub snapshots: &'static str,
}

/// Exit status, standard output, standard error.
pub fn parts(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
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

    pub fn run(&self, options: &str) -> (Option<i32>, String, String) {
        parts(self.command(options).output().unwrap())
    }

    fn snapshot(&self, name: &str, text: &str) {
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_snapshot_path("../snapshots");
        settings.bind(|| insta::assert_snapshot!(format!("{}{name}", self.snapshots), text));
    }

    /// Both helps fit a terminal of 80 columns.
    pub fn help(&self) {
        for (name, option) in [("help_short", "-h"), ("help_long", "--help")] {
            let (code, out, err) = self.run(option);
            assert_eq!((code, err.as_str()), (Some(0), ""));
            assert!(out.lines().all(|line| line.chars().count() <= 80), "{option} fits 80 columns");
            self.snapshot(name, &out);
        }
    }

    pub fn version(&self) {
        let expected = format!("{} {}\n", self.name, env!("CARGO_PKG_VERSION"));
        assert_eq!(self.run("-V"), (Some(0), expected, String::new()));
    }

    /// What packages install beside the program.
    pub fn manual_and_completions(&self) {
        let name = self.name;
        for (what, part) in [
            ("man", format!(".TH {name} 1")),
            ("bash", format!("complete -F _{name}")),
            ("zsh", format!("#compdef {name}")),
            ("fish", format!("complete -c {name}")),
        ] {
            let (code, out, err) = self.run(&format!("--generate {what}"));
            assert_eq!((code, err.as_str()), (Some(0), ""));
            assert!(out.contains(&part), "{what}: {out}");
            self.snapshot(what, &out.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
        }
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
        let (code, _, err) = parts(self.command(options).stdout(full).output().unwrap());
        assert_eq!(code, Some(1), "{options}");
        assert!(err.contains("cannot write the output: No space left on device"), "{options}: {err}");

        let (writer, reader) = UnixStream::pair().unwrap();
        drop(reader);
        let output = self.command(options).stdout(OwnedFd::from(writer)).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{options}");
    }

    pub fn without_privilege_it_says_what_to_do(&self, options: &str) {
        let mut command = self.command(options);
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(65534).gid(65534);
        }
        let output = match command.output() {
            Ok(output) => output,
            // The program lies where only root may enter: it is run from elsewhere.
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                let dir = tempfile::Builder::new().permissions(open()).tempdir().unwrap();
                let copy = dir.path().join(self.name);
                std::fs::copy(self.path, &copy).unwrap();
                let mut command = Command::new(&copy);
                command.args(options.split_whitespace()).stdin(Stdio::null()).env_remove("HOME");
                command.uid(65534).gid(65534).current_dir("/").output().unwrap()
            }
            Err(e) => panic!("{e}"),
        };
        let (code, out, err) = parts(output);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.starts_with(&format!("{}: error: ", self.name)) && err.contains("\nremedy: "), "{err}");
    }
}

/// A file that nobody may read but root, as recordings are, in a directory that all may enter and that goes with what is given.
pub fn unreadable() -> (tempfile::TempDir, String) {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::Builder::new().permissions(open()).tempdir().unwrap();
    let path = dir.path().join("a.record");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (dir, path)
}

fn open() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}
