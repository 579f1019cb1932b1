//! What others see, and files of other processes.

use std::ffi::OsStr;
use std::fs;
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::CACHEDU;
use super::outside::parts;
use super::sys;

/// Who owns nothing.
const NOBODY: u32 = 65534;

/// A directory that everybody can read.
pub fn open_dir() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

pub fn root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Gives a file to who is going to ask.
pub fn give(path: &Path) {
    if root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

/// The same command, of nobody if we are root.
pub fn lowered(command: &mut Command) -> &mut Command {
    if root() { command.uid(NOBODY).gid(NOBODY) } else { command }
}

/// Starts a program that was just copied: another thread may hold it open for writing until its child is a program.
fn start(command: &mut Command) -> Child {
    loop {
        match command.spawn() {
            Err(e) if e.kind() == io::ErrorKind::ExecutableFileBusy => sleep(Duration::from_millis(5)),
            child => return child.unwrap(),
        }
    }
}

/// Runs `cachedu` without privilege: from a place that everybody can reach.
pub fn as_nobody(args: &[&OsStr]) -> (Option<i32>, String, String) {
    let dir = open_dir();
    let program = dir.path().join("cachedu");
    fs::copy(CACHEDU.path, &program).unwrap();
    let mut command = Command::new(&program);
    command.args(args).current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    parts(start(lowered(&mut command)).wait_with_output().unwrap())
}

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn ending<'a>(lines: &'a [Value], end: &str) -> &'a Value {
    let line = lines.iter().find(|l| l["path"].as_str().is_some_and(|p| p.ends_with(end)));
    line.unwrap_or_else(|| panic!("{end} in {lines:?}"))
}

/// A process that ends with the test.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Sleeper {
    /// A copy of sleep(1): its name is the one of the process, and it is mapped, not open.
    fn new(program: &Path) -> Self {
        let found = ["/usr/bin/sleep", "/bin/sleep"].into_iter().find(|p| Path::new(p).exists()).unwrap();
        fs::copy(found, program).unwrap();
        let mut command = Command::new(program);
        Self(start(lowered(command.arg("1000").current_dir("/").stdin(Stdio::null()))))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Waits until the program of this name runs.
    fn until(&self, comm: &str) {
        while fs::read_to_string(format!("/proc/{}/comm", self.0.id())).unwrap().trim() != comm {
            sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_process_that_hides_its_files_is_not_one_without_files() {
    for options in [["--json", "--pid", "1"].as_slice(), &["--json", "--all"]] {
        let options: Vec<_> = options.iter().map(OsStr::new).collect();
        let (code, out, err) = as_nobody(&options);
        let total = lines(&out).pop().unwrap();
        assert_eq!((code, &total["partial"], &total["cached_ratio"]), (Some(1), &true.into(), &Value::Null));
        assert!(total["unread"].as_u64().unwrap() > 0 && err.contains("not read"), "{total} {err}");
        if options.len() == 3 {
            assert_eq!((&total["cached"], &total["pages"]), (&Value::Null, &Value::Null), "{total}");
        }
    }
    let (_, out, _) = as_nobody(&["--pid", "1"].map(OsStr::new));
    assert_eq!(out.lines().last().unwrap().split_whitespace().take(5).collect::<Vec<_>>(), ["-"; 5], "{out}");
}

#[test]
fn a_file_that_is_only_mapped_is_not_left_out_in_silence() {
    let dir = open_dir();
    let program = dir.path().join("only mapped");
    let sleeper = Sleeper::new(&program);
    sleeper.until("only mapped");
    let asked = |pid: &str| as_nobody(&["--json", "--pid", pid].map(OsStr::new));
    give(&program);
    let (code, out, err) = asked(&sleeper.pid());
    assert_eq!(code, Some(0), "{err}");
    assert!(ending(&lines(&out), "/only mapped")["cached"].as_u64().unwrap() > 0, "by its name: {out}");
    fs::remove_file(&program).unwrap();
    let (_, out, err) = asked(&sleeper.pid());
    let rows = lines(&out);
    let line = ending(&rows, "/only mapped (deleted)");
    assert_eq!((&line["cached"], &line["reason"]), (&Value::Null, &"only_mapped".into()), "{line}");
    assert_eq!(rows.last().unwrap()["partial"], true);
    assert!(err.contains("only root can open it"), "{err}");
    if root() {
        let (_, out, _) = CACHEDU.run(&format!("--json --pid {}", sleeper.pid()));
        let rows = lines(&out);
        assert!(ending(&rows, "/only mapped (deleted)")["cached"].as_u64().unwrap() > 0, "{out}");
    }
}

#[test]
fn whoever_may_read_may_load_and_evict() {
    let dir = open_dir();
    let made = dir.path().join("of root");
    let pages: u64 = 100;
    let path = if root() {
        fs::write(&made, vec![1; usize::try_from(pages * sys::page_size()).unwrap()]).unwrap();
        let file = File::open(&made).unwrap();
        file.sync_all().unwrap();
        sys::advise(&file, 0, 0, libc::POSIX_FADV_DONTNEED).unwrap();
        made
    } else {
        PathBuf::from("/etc/passwd")
    };
    let (code, out, err) = as_nobody(&["--load".as_ref(), path.as_ref()]);
    assert_eq!(code, Some(0), "{out}{err}");
    // Kernels of 6.5 to 6.13 tell everybody.
    assert!(!out.contains("read: 0;") || !root(), "{out}");
    let file = File::open(&path).unwrap();
    if root() {
        let map = sys::Map::new(&file, usize::try_from(pages).unwrap()).unwrap();
        assert!(map.resident().iter().all(|r| *r), "{out}");
        // The kernel was asked, and the pages are gone, though it does not tell who asked.
        let (code, out, err) = as_nobody(&["--evict".as_ref(), path.as_ref()]);
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(map.resident().iter().all(|r| !*r), "{out}");
    }
    // In a tree, what is closed is reported by the exit code.
    let closed = dir.path().join("closed");
    fs::write(&closed, "x").unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let (code, out, err) = as_nobody(&["--load".as_ref(), dir.path().as_ref()]);
    assert!(code == Some(1) && err.contains("closed"), "{out}{err}");
}

#[test]
fn processes_are_found_by_their_name_and_their_cgroup() {
    let dir = open_dir();
    let program = dir.path().join("cachedu-sleeper");
    let sleeper = Sleeper::new(&program);
    sleeper.until("cachedu-sleeper");
    give(&program);
    let owned = |options: &[&str]| {
        let output = CACHEDU.command("--json").args(options).output().unwrap();
        let rows = lines(&parts(output).1);
        let line = rows.iter().find(|l| l["path"].as_str() == program.to_str());
        line.is_some_and(|l| l["processes"] == serde_json::json!([sleeper.0.id()]))
    };
    assert!(owned(&["--comm", "cachedu-sleeper"]));
    let cgroups = fs::read_to_string(format!("/proc/{}/cgroup", sleeper.pid())).unwrap();
    let mut paths: Vec<_> = cgroups.lines().filter_map(|l| l.splitn(3, ':').nth(2)).collect();
    paths.dedup();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    if mounts.contains(" - cgroup2 ") || mounts.contains("memory") {
        assert!(paths.iter().any(|path| owned(&["--cgroup", path])), "{paths:?}");
    } else {
        println!("no cgroups here: --cgroup is not tested");
    }
}

/// In a mount namespace of its own, where a file system lies on a directory that is empty to us.
#[test]
fn other_file_systems_and_other_namespaces() {
    let dir = open_dir();
    let mount = dir.path().join("mount");
    fs::create_dir(&mount).unwrap();
    fs::write(dir.path().join("beside"), "x").unwrap();
    let inside = |script: &str| {
        let script = format!("mount -t tmpfs none {0} && echo x > {0}/inside && {script}", mount.display());
        let mut command = Command::new("unshare");
        command.args(if root() { &["-m"][..] } else { &["-r", "-m"] }).args(["sh", "-c", &script]);
        command
    };
    if !inside("true").output().is_ok_and(|out| out.status.success()) {
        println!("no namespace for us: -x and files of other namespaces are not tested");
        assert!(!root(), "root can make one");
        return;
    }
    let files = |option: &str| {
        let script = format!("{} --json -f {option} {}", CACHEDU.path, dir.path().display());
        lines(&parts(inside(&script).output().unwrap()).1).len() - 1
    };
    assert_eq!((files(""), files("-x")), (2, 1));
    // Without /proc it is not known who has files; it is not that nobody has.
    for option in ["--all", "--all --json", "--pid 1", "--comm sh", "--user root", "--all --save {}/set"] {
        let option = option.replace("{}", &dir.path().display().to_string());
        let script = format!("mount -t tmpfs none /proc && exec {} {option}", CACHEDU.path);
        let (code, out, err) = parts(inside(&script).output().unwrap());
        assert_eq!((code, out.as_str()), (Some(1), ""), "{option}: {err}");
        assert!(err.contains("/proc lists no process\nremedy: mount it"), "{option}: {err}");
    }
    assert!(!dir.path().join("set").exists());
    let script = format!("exec sleep 1000 3< {}/inside", mount.display());
    let sleeper = Sleeper(inside(&script).stdin(Stdio::null()).spawn().unwrap());
    sleeper.until("sleep");
    let (_, out, _) = CACHEDU.run(&format!("--json --pid {}", sleeper.pid()));
    let path = format!("/proc/{}/root{}/inside", sleeper.pid(), mount.display());
    let rows = lines(&out);
    let line = ending(&rows, "/mount/inside");
    assert_eq!((&line["path"], &line["cached"]), (&path.into(), &1.into()));
}

#[test]
fn rows_are_chosen_and_sorted() {
    let dir = tempfile::tempdir().unwrap();
    let page = rustix::param::page_size();
    for (name, pages) in [("a", 2), ("b", 3), ("c", 1)] {
        fs::write(dir.path().join(name), vec![1; pages * page]).unwrap();
    }
    let names = |options: &str| {
        let (code, out, _) = CACHEDU.run(&format!("--json -f {options} {}", dir.path().display()));
        assert_eq!(code, Some(0));
        let rows = lines(&out);
        let name = |l: &Value| l["path"].as_str().map(|p| p.rsplit('/').next().unwrap().to_owned());
        rows.iter().filter_map(name).collect::<Vec<_>>().concat()
    };
    // As they are found, unless an order is requested.
    let mut found: Vec<char> = names("").chars().collect();
    found.sort_unstable();
    assert_eq!(found, ['a', 'b', 'c']);
    assert_eq!(names("--sort cached"), "bac");
    assert_eq!(names("--sort name"), "abc");
    assert_eq!(names("--sort size --top 2"), "ba");
    assert_eq!(names(&format!("--min {} --sort name", 2 * page)), "ab");
    assert_eq!(names(&format!("--min {}", 2 * page + 1)), "b");
}
