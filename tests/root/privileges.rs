//! What each command holds while it runs: the kernel's account of it is the table of docs/guide/privileges.md.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use crate::pty::Screen;
use crate::tools::*;

/// Capabilities by their numbers.
const NAMES: &[(u32, &str)] = &[
    (2, "CAP_DAC_READ_SEARCH"),
    (3, "CAP_FOWNER"),
    (5, "CAP_KILL"),
    (19, "CAP_SYS_PTRACE"),
    (38, "CAP_PERFMON"),
    (39, "CAP_BPF"),
    (40, "CAP_CHECKPOINT_RESTORE"),
];

/// A field of `status` of /proc.
fn field(status: &str, key: &str) -> String {
    let line = status.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {key} in {status}")).trim().to_owned()
}

fn set(status: &str, key: &str) -> u64 {
    u64::from_str_radix(&field(status, key), 16).unwrap()
}

fn own() -> String {
    fs::read_to_string("/proc/self/status").unwrap()
}

/// What a row of the table says: capabilities, no_new_privs, seccomp.
fn promised(row: &str) -> (u64, bool, bool) {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guide/privileges.md");
    let guide = fs::read_to_string(guide).unwrap();
    let line = guide.lines().find(|l| l.starts_with(&format!("| {row} |"))).expect(row);
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let mut held = 0;
    for name in cells[2].split(", ").filter(|name| *name != "nothing") {
        held |= 1 << NAMES.iter().find(|(_, known)| known == &name).expect(name).0;
    }
    (held, cells[3] == "yes", cells[5] == "yes")
}

/// One thread is as its row of the table says.
fn equals(row: &str, status: &str) {
    let (held, sealed, calls) = promised(row);
    // Where these tests themselves have less, nobody has more.
    let (have, bounds) = (set(&own(), "CapPrm"), set(&own(), "CapBnd"));
    let held = held & have;
    // Root's command has them all anyway, and gains none: it would leave no core dump.
    let permitted = if row == "`cachestat -- COMMAND`" { have } else { held };
    assert_eq!(set(status, "CapPrm"), permitted, "{row}: {status}");
    assert_eq!(set(status, "CapEff"), held, "{row}: {status}");
    // A thread that gives up the rest later cannot make its bounding set smaller any more; no_new_privs stands for it.
    let bounded = if row.ends_with("who answers") { promised("`cachetopd`").0 & have } else { held };
    assert_eq!(set(status, "CapBnd"), if sealed { bounded & bounds } else { bounds }, "{row}: {status}");
    assert_eq!(set(status, "CapInh"), if sealed { 0 } else { set(&own(), "CapInh") }, "{row}: {status}");
    assert_eq!(field(status, "NoNewPrivs") == "1", sealed, "{row}: {status}");
    assert_eq!(field(status, "Seccomp") == "2", calls, "{row}: {status}");
}

/// Waits until a process is as its row says: it begins with more.
fn comes_to(row: &str, process: &mut Child) {
    let path = format!("/proc/{}/status", process.id());
    let (_, sealed, _) = promised(row);
    let mut status = String::new();
    wait_for(row, || {
        status = fs::read_to_string(&path).unwrap_or_default();
        assert!(process.try_wait().unwrap().is_none(), "{row}: it ended");
        let lowered = status.contains("CapEff") && set(&status, "CapEff") != set(&own(), "CapEff");
        // The last thing that a sealed one does.
        lowered && (!sealed || field(&status, "Seccomp") == "2")
    });
    equals(row, &status);
}

fn spawn(program: &str, arguments: &[&str]) -> Child {
    let mut command = Command::new(program);
    command.args(arguments);
    plain(&mut command);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// What runs is what is documented.
pub fn privileges_are_those_of_the_table(dir: &Path) {
    let (stat, top) = (program(), env!("CARGO_BIN_EXE_cachetop"));
    let own = std::process::id().to_string();
    let path = dir.to_str().unwrap();
    for (row, program, arguments) in [
        ("`cachestat INTERVAL`", stat.as_str(), vec!["1"]),
        ("`cachestat --what-if`", &stat, vec!["--what-if", "60"]),
        ("`cachestat --working-set`", &stat, vec!["--working-set", "60"]),
        ("`cachestat --blame`", &stat, vec!["--blame", "60"]),
        ("`cachestat -p PID --for`", &stat, vec!["-p", &own, "--for", "60"]),
        ("`cachestat -- COMMAND`", &stat, vec!["--", "sleep", "60"]),
        ("`cachetop -b`", top, vec!["-b", "1"]),
        ("`cachetopd`", env!("CARGO_BIN_EXE_cachetopd"), vec!["--listen", "127.0.0.1:0", "--textfile", path]),
        ("`cachedu`", env!("CARGO_BIN_EXE_cachedu"), vec!["--watch", "1", path]),
    ] {
        let mut process = spawn(program, &arguments);
        comes_to(row, &mut process);
        // SAFETY: kill takes no pointer; the child is not reaped yet.
        unsafe { libc::kill(signed(process.id()), libc::SIGTERM) };
        process.wait().unwrap();
    }
}

/// The threads of cachetop on a terminal, and of cachetopd that answers and runs commands.
pub fn privileges_of_threads(dir: &Path) {
    // Its working directory is where a moment is kept.
    let inside = format!("cd '{}' && exec {} --no-config 0.5", dir.display(), env!("CARGO_BIN_EXE_cachetop"));
    let mut top = Screen::new(Path::new("/bin/sh"), &["-c", &inside]);
    let pid = top.child.process_id().unwrap();
    let threads = |pid: u32| -> Vec<(String, String)> {
        let all = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten().map(|t| t.path());
        let read = |t: &Path, name: &str| fs::read_to_string(t.join(name)).unwrap_or_default();
        all.map(|t| (read(&t, "comm").trim().to_owned(), read(&t, "status"))).collect()
    };
    let (sampler, looks) =
        ("`cachetop`, the thread that counts", "`cachetop`, the threads that look into the cache");
    let row_of = |name: &str| match name {
        "sampler" => sampler,
        "look" => looks,
        _ => "`cachetop`, all other threads",
    };
    // Each begins with more than it keeps, and with the name of who began it: those that look come and go.
    let mut all = Vec::new();
    wait_for(sampler, || {
        all = threads(pid);
        all.retain(|(_, status)| !status.is_empty());
        let lowered = |row: &str, s: &str| {
            let (held, _, calls) = promised(row);
            let capabilities = s.contains("CapPrm") && set(s, "CapPrm") == held & set(&own(), "CapPrm");
            // The last thing that one does.
            capabilities && (!calls || field(s, "Seccomp") == "2")
        };
        all.iter().any(|(name, _)| name == "input")
            && all.iter().any(|(name, _)| name == "sampler")
            && all.iter().all(|(name, s)| lowered(row_of(name), s))
    });
    for (name, status) in all {
        equals(row_of(&name), &status);
    }
    // Who counts may make no file: that of a moment is made by who draws.
    // Before the first interval there is none to be kept: the key is pressed again until there is.
    let start = Instant::now();
    loop {
        top.press("M");
        let pressed = Instant::now();
        let (mut kept, mut refused) = (false, false);
        while !kept && !refused && pressed.elapsed() < Duration::from_secs(5) {
            let text = top.text();
            refused = text.contains("not kept");
            kept = text.contains("kept in") && !refused;
            std::thread::sleep(Duration::from_millis(10));
        }
        if kept {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no moment is kept: {}", top.text());
        std::thread::sleep(Duration::from_millis(200));
    }
    let kept = fs::read_dir(dir).unwrap().flatten().map(|f| f.path());
    let kept = kept.filter(|f| f.extension().is_some_and(|e| e == "record")).collect::<Vec<_>>();
    assert!(!kept.is_empty());
    let replayed = Command::new(program()).arg("--replay").arg(&kept[0]).output().unwrap();
    let said = String::from_utf8_lossy(&replayed.stderr);
    assert!(replayed.status.success() && said.contains("marked in cachetop"), "{said}");
    top.press("q");
    assert_eq!(top.ends_with("q"), 0);
    // At each moment: there is always somebody who reads.
    let out = dir.join("then");
    let line = format!("cat /proc/self/status >{}", out.display());
    let arguments = ["--listen", "127.0.0.1:0", "-i", "0.2", "--when", "hit_ratio >= 0%", "--then", &line];
    let mut daemon = spawn(env!("CARGO_BIN_EXE_cachetopd"), &arguments);
    fs::write(dir.join("file"), [0; 4096]).unwrap();
    wait_for("a command of --then", || {
        fs::read(dir.join("file")).unwrap();
        fs::read_to_string(&out).is_ok_and(|s| s.contains("Seccomp"))
    });
    equals("`cachetopd`, what `--then` runs", &fs::read_to_string(&out).unwrap());
    // The thread that answers begins after the first tick, which may have run the command already.
    let answers = |all: &[(String, String)]| {
        all.iter().any(|(name, s)| name == "http" && s.contains("CapPrm") && set(s, "CapPrm") == 0)
    };
    wait_for("the thread that answers", || answers(&threads(daemon.id())));
    let all = threads(daemon.id());
    equals("`cachetopd`, who answers", &all.iter().find(|(name, _)| name == "http").unwrap().1);
    equals("`cachetopd`", &all.iter().find(|(name, _)| name == "cachetopd").unwrap().1);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

/// The command has what it would have without us: the same sets, and set-user-id programs work in it.
pub fn a_command_keeps_its_rights(dir: &Path) {
    let root = tempfile::tempdir_in("/tmp").unwrap();
    open_to_all(root.path());
    let id = root.path().join("id");
    fs::copy("/usr/bin/id", &id).unwrap();
    Command::new("chmod").arg("4755").arg(&id).status().unwrap();
    let alone = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&id)
        .arg("-u")
        .output()
        .unwrap();
    let line = format!("cat /proc/self/status >&2; {} -u", id.display());
    let (code, out, err) = output(&mut {
        let mut command = cachestat("--");
        command.args(["sh", "-c", &line]);
        command
    });
    assert_eq!((code, out.as_str()), (Some(0), "0\n"), "{err}");
    for key in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"] {
        assert_eq!(field(&err, key), field(&own(), key), "{key}");
    }
    // No program that gains anything: the kernel writes no core dump of those.
    let asks = format!("print syscall({}, {}, 0, 0, 0)", libc::SYS_prctl, libc::PR_GET_DUMPABLE);
    let dumpable = ["-e", &asks];
    if let Ok(alone) = Command::new("perl").args(dumpable).output() {
        let mut command = cachestat("--");
        command.arg("perl").args(dumpable);
        assert_eq!(output(&mut command).1.as_bytes(), alone.stdout);
    }
    // As the user who called sudo.
    let mut command = cachestat("--json -o");
    command.arg(dir.join("report")).args(["--", "sh", "-c", &line]);
    command.env("SUDO_UID", "65534").env("SUDO_GID", "65534").env("SUDO_USER", "nobody");
    let (code, out, err) = output(&mut command);
    assert_eq!((code, out.as_bytes()), (Some(0), alone.stdout.as_slice()), "{err}");
    assert_eq!(set(&err, "CapEff"), 0, "{err}");
    assert_eq!(field(&err, "NoNewPrivs"), field(&own(), "NoNewPrivs"));
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&fs::metadata(dir.join("report")).unwrap()), 65534);
}

fn open_to_all(dir: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A normal user counts with the three capabilities of the file, to the page.
pub fn a_normal_user_by_setcap(dir: &Path) {
    let root = tempfile::tempdir_in("/tmp").unwrap();
    open_to_all(root.path());
    let copy = root.path().join("cachestat");
    fs::copy(program(), &copy).unwrap();
    let given = Command::new("setcap").arg("cap_bpf,cap_perfmon,cap_dac_read_search=ep").arg(&copy).status();
    if !given.is_ok_and(|s| s.success()) {
        println!("     no setcap here, or no capabilities of files");
        return;
    }
    let (work, mut reader) = (Work::new(dir), Reader::new());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
    command.args(["--json", "--by", "process", "--top", "100000", "0.3", "8"]);
    plain(&mut command);
    let mut monitor = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("its rights", || {
        let status = fs::read_to_string(format!("/proc/{}/status", monitor.id())).unwrap_or_default();
        let over = monitor.try_wait().unwrap().is_some();
        over || status.contains("Seccomp:\t2")
    });
    let status = fs::read_to_string(format!("/proc/{}/status", monitor.id())).unwrap_or_default();
    if status.contains("Seccomp:") {
        assert!(field(&status, "Uid").starts_with("65534"), "{status}");
        // The bounding set is root's to lower; there are no new privileges.
        assert_eq!(set(&status, "CapEff"), promised("`cachestat INTERVAL`").0, "{status}");
        assert_eq!(field(&status, "NoNewPrivs"), "1");
    }
    sleep(Duration::from_millis(400));
    work.run(&mut reader, || ());
    let done = monitor.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert_eq!(done.status.code(), Some(0), "{err}");
    let intervals: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let intervals: Vec<serde_json::Value> =
        intervals.into_iter().filter(|i| i.get("total").is_none()).collect();
    assert_eq!(reads(&rows_of(&intervals, reader.pid())), work.want, "{err}");
    reader.end();
}
