//! Where no more threads may be started. For `cachetopd` that is `TasksMax=` of its unit, which it shares with what `--then` runs.

use std::fs;
use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Read as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::channel;
use std::thread::spawn;
use std::time::Duration;

use crate::daemon::scrape;
use crate::daemon::terminate;
use crate::pty::Screen;
use crate::tools::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// A cgroup in which there may be so many threads.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> Self {
        let v1 = Path::new("/sys/fs/cgroup/pids");
        let root = if v1.is_dir() { v1 } else { Path::new("/sys/fs/cgroup") };
        let _ = fs::write(root.join("cgroup.subtree_control"), "+pids");
        let group = Self(root.join(format!("{name}-{}", std::process::id())));
        fs::create_dir(&group.0).unwrap();
        assert!(group.0.join("pids.max").exists(), "cgroups bound threads");
        group
    }

    fn most(&self, threads: &str) {
        fs::write(self.0.join("pids.max"), threads).unwrap();
    }

    fn start(&self, options: &[&str]) -> (Child, Receiver<String>) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cachetopd"));
        command.args(["--listen", "127.0.0.1:0", "-i", "0.2"]).args(options);
        command.env("OTEL_METRIC_EXPORT_INTERVAL", "100");
        plain(&mut command);
        let procs = self.0.join("cgroup.procs");
        // SAFETY: only system calls are made, and the process has one thread there.
        unsafe { command.pre_exec(move || fs::write(&procs, "0")) };
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (tell, told) = channel();
        let said = BufReader::new(child.stderr.take().unwrap());
        spawn(move || said.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        (child, told)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Its lines up to one that has this, or all of them.
fn until(told: &Receiver<String>, what: &str) -> String {
    let mut all = String::new();
    while let Ok(line) = told.recv_timeout(PATIENCE) {
        let found = line.contains(what);
        all += &line;
        all.push('\n');
        if found {
            break;
        }
    }
    assert!(!all.contains("panicked"), "{all}");
    all
}

/// Either it ends, and says why, or it answers: it is never there and mute.
pub fn no_more_threads(_: &Path) {
    let group = Group::new("none");
    let all = ["--otlp", "http://127.0.0.1:9", "--when", "hits > 1", "--then", "true"];
    let mut ended = 0;
    for (options, enough, last) in [(&all[..0], 3, "listening on"), (&all, 5, "sending metrics")] {
        for most in 1..=enough {
            group.most(&most.to_string());
            let (mut child, told) = group.start(options);
            let said = until(&told, last);
            match said.split("http://127.0.0.1:").nth(1).filter(|_| said.contains(last)) {
                Some(rest) => {
                    assert_eq!(most, enough, "{said}");
                    let address = format!("127.0.0.1:{}", rest.split('/').next().unwrap());
                    assert!(scrape(&address).contains("pagecache_read_bytes_total"));
                    terminate(child);
                }
                None => {
                    assert_eq!(child.wait().unwrap().code(), Some(1), "{most}: {said}");
                    let (what, remedy) = said.split_once("\nremedy: ").unwrap_or_else(|| panic!("{said}"));
                    assert!(what.ends_with("error: no more threads may be started here"), "{said}");
                    assert!(remedy.starts_with("allow some more"), "{said}");
                    ended += 1;
                }
            }
        }
    }
    assert_eq!(ended, 6);
}

/// The name of a receiver is looked up by a thread. Where there can be none for a while, it is told, and sent later.
pub fn no_thread_for_a_name(_: &Path) {
    let group = Group::new("name");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, asked) = channel();
    spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut read = [0; 4096];
            let mut head = Vec::new();
            while !head.windows(4).any(|w| w == b"\r\n\r\n") {
                match stream.read(&mut read) {
                    Ok(n @ 1..) => head.extend_from_slice(&read[..n]),
                    _ => break,
                }
            }
            let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
            let _ = tell.send(head.contains(&format!("host: localhost:{port}")));
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            // What it still sends is read: else it would find a connection that was cut.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    group.most("max");
    let (child, told) = group.start(&["--otlp", &format!("http://localhost:{port}")]);
    assert!(asked.recv_timeout(PATIENCE).unwrap());
    group.most("1");
    let said = until(&told, "metrics are not taken");
    assert!(said.contains("no more threads may be started here; it is tried again"), "{said}");
    while asked.try_recv().is_ok() {}
    group.most("max");
    let said = until(&told, "taken again");
    assert!(said.contains("metrics are taken again by"), "{said}");
    assert!(asked.recv_timeout(PATIENCE).unwrap());
    terminate(child);
}

/// What takes its time is done by a thread. Where there can be none, it is done all the same.
pub fn no_thread_for_a_deed(dir: &Path) {
    let group = Group::new("deed");
    fs::write(dir.join("one"), vec![1; 1 << 20]).unwrap();
    group.most("max");
    let line = "echo 0 >\"$0\"/cgroup.procs; exec \"$1\" -i \"$2\"";
    let words =
        [group.0.as_path(), Path::new(env!("CARGO_BIN_EXE_cachedu")), dir].map(|p| p.to_str().unwrap());
    let mut screen = Screen::new(Path::new("sh"), &[&["-c", line][..], &words].concat());
    screen.until("the file", |text| text.contains("1.0M of 1.0M").then_some(()));
    group.most("1");
    screen.press("Ly");
    // All of it is there already.
    screen.until("what was done", |text| text.contains("read 0 of 0 files").then_some(()));
    screen.press("q");
    assert!(screen.child.wait().unwrap().success());
}
