//! Files that are read as a whole, and may be anybody's: an error, and little memory, whatever they hold.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::BufWriter;
use std::io::Read as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

/// Exit code, what was said, and the most memory that the program had, KiB.
#[allow(clippy::zombie_processes)] // wait4 waits for it
fn run(program: &str, arguments: &[&str], file: &Path) -> (Option<i32>, String, i64) {
    let mut command = Command::new(program);
    command.args(arguments).arg(file).env_remove("RUST_LOG").stdin(Stdio::null());
    if program.ends_with("cachestat") {
        command.args(["--", "true"]);
    }
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let (mut status, mut used) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the child has not been waited for; both pointers are to memory of ours, which the call fills.
    let used = unsafe {
        assert!(libc::wait4(child.id().try_into().unwrap(), &raw mut status, 0, used.as_mut_ptr()) > 0);
        used.assume_init()
    };
    (libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)), said, used.ru_maxrss)
}

fn write(path: &Path, parts: &[(&str, usize)]) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    for (text, times) in parts {
        // In pieces: what this process has in memory would count as the program's.
        let (piece, pieces) = (text.repeat(4096), times / 4096);
        for _ in 0..pieces {
            file.write_all(piece.as_bytes()).unwrap();
        }
        file.write_all(text.repeat(times % 4096).as_bytes()).unwrap();
    }
    file.flush().unwrap();
}

fn refused(program: &str, arguments: &[&str], file: &Path, why: &str) {
    let (code, said, memory) = run(program, arguments, file);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(why) && said.contains("remedy: "), "no '{why}' in {said}");
    assert!(memory < 64 << 10, "{memory} KiB for {said}");
}

#[test]
fn a_report_of_any_size_to_compare_with() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report.json");
    let head = r#"{"schema":"cachestat-report-1","runs":["#;
    let refused = |why| refused(env!("CARGO_BIN_EXE_cachestat"), &["--compare"], &path, why);
    write(&path, &[]);
    File::options().write(true).open(&path).unwrap().set_len(2 << 30).unwrap();
    refused("too large for a report");
    write(&path, &[(head, 1), (r#"{"files":["#, 1), ("{},", 10 << 20), ("{}]}]}", 1)]);
    refused("too large for a report");
    write(&path, &[(head, 1), (r#"{"files":["#, 1), ("{},", 900_000), ("{}]}]}", 1)]);
    refused("files has more than 1000 entries");
    write(&path, &[(r#"{"x":"#, 1), ("[", 50 << 20)]);
    refused("too large for a report");
    write(&path, &[(head, 1), (r#"{"wall_s":1},"#, 1 << 20), (r#"{"wall_s":1}]}"#, 1)]);
    refused("more runs");
    write(&path, &[(head, 1), (r#"{"wall_s":1e308}]}"#, 1)]);
    refused("wall_s is 1e308, which no run has");
}

#[test]
fn a_set_of_any_size_to_restore() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let head = "{\"type\":\"cachedu-set\",\"version\":3,\"page_size\":4096}\n";
    let refused = |why| refused(env!("CARGO_BIN_EXE_cachedu"), &["-n", "--restore"], &path, why);
    write(&path, &[]);
    File::options().write(true).open(&path).unwrap().set_len(2 << 30).unwrap();
    refused("not a set");
    let row = "{\"path\":\"/no/such/file\",\"size_bytes\":4096,\"inode\":1,\"mtime_ns\":1,\"runs\":[0,1]}\n";
    // Any number of files, without more memory; but whole, and before anything is done.
    write(&path, &[(head, 1), (row, 2_000_000)]);
    refused("line 2000001: its end is missing");
    let other = ["--diff", path.to_str().unwrap()];
    crate::refused(env!("CARGO_BIN_EXE_cachedu"), &other, &path, "line 2000001: its end is missing");
    write(&path, &[(head, 1), (r#"{"path":"a","size_bytes":1,"runs":["#, 1), ("1,1,", 10 << 20)]);
    refused("longer than any line");
}

#[test]
fn a_web_configuration_that_is_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("web.yml");
    // Nobody writes to it: what waited would wait for ever.
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    refused(env!("CARGO_BIN_EXE_cachetopd"), &["--web-config-file"], &path, "web.yml: it is no regular file");
    refused(env!("CARGO_BIN_EXE_cachetop"), &["--config"], &path, "web.yml: it is no regular file");
}
