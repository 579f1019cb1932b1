//! `--what-if` of databases. What is true under the other limits is counted there.

use std::ffi::OsStr;
use std::fs;
use std::fs::File;
use std::os::unix::fs::chown;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use super::Group;
use super::LIMIT;
use super::SMALL_LIMIT;
use crate::tools::*;

/// What it says of a cgroup.
fn asked(group: &Group, seconds: f64) -> Value {
    let options = format!("--json --what-if {seconds} --cgroup {}", group.name());
    let (code, out, err) = output(&mut cachestat(&options));
    assert_eq!(code, Some(0), "{err}");
    let mut all: Value = serde_json::from_str(&out).unwrap();
    all["what_if"].take()
}

/// Sizes that are compared at length.
const SCALES: [f64; 5] = [0.5, 0.75, 1.25, 1.5, 2.0];
/// The same where four times the limit is less than the database still.
const FAR_SCALES: [f64; 6] = [0.5, 0.75, 1.25, 1.5, 2.0, 4.0];

fn is_far() -> bool {
    std::env::var("WHAT_IF").is_ok_and(|v| v == "far")
}

/// What it says, and what is true under the other limits: the mean difference, and the worst. `ask`: of a limit. No more than one
/// is beyond the error that is stated.
fn off(name: &str, what_if: &Value, limit: u64, scales: &[f64], ask: impl Fn(u64) -> Value) -> (f64, f64) {
    let curve = what_if["curve"].as_array().unwrap_or_else(|| panic!("no curve: {what_if}"));
    let (mut sum, mut worst, mut beyond, mut count) = (0.0, 0.0_f64, 0, 0_u32);
    for scale in scales {
        let point = curve.iter().find(|p| p["scale"] == *scale).unwrap();
        let [Some(predicted), Some(error)] = ["miss_ratio", "error"].map(|key| point[key].as_f64()) else {
            // What its processes have of a small limit leaves no room; an emulated machine may have other things to do.
            println!("{name} x{scale}: nothing is said: {}", what_if["notes"]);
            continue;
        };
        count += 1;
        let there = ask((limit as f64 * scale) as u64);
        let truth = there["now"]["miss_ratio"].as_f64().unwrap();
        println!(
            "{name} x{scale}: predicted {predicted:.3} ± {error:.3}, was {truth:.3} ({} accesses)",
            there["accesses"]
        );
        let off = (predicted - truth).abs();
        (sum, worst) = (sum + off, worst.max(off));
        beyond += usize::from(off > error);
    }
    println!(
        "{name}: mean difference {:.4}, worst {worst:.3}, {beyond} beyond the stated error",
        sum / f64::from(count)
    );
    assert!(f64::from(count) * 2.0 >= scales.len() as f64, "{name}: {count} of {} predictions", scales.len());
    assert!(beyond <= scales.len() / 5, "{name}: {beyond} beyond the stated error");
    (sum / f64::from(count), worst)
}

/// Looks random keys up, some much more often than others; what Python itself takes is not in the cgroup.
const SQLITE: &str = "
import os, sqlite3, sys, random, time
path, seconds, group = sys.argv[1], float(sys.argv[2]), sys.argv[3]
db = sqlite3.connect(path)
db.execute('pragma cache_size=-256')
db.execute('pragma mmap_size=0')
look = 'select length(v) from t where k=?'
most = db.execute('select max(k) from t').fetchone()[0]
db.execute(look, (1,)).fetchone()
if sys.argv[4] == 'random':
    for fd in os.listdir('/proc/self/fd'):
        if os.path.realpath('/proc/self/fd/' + fd) == os.path.realpath(path):
            os.posix_fadvise(int(fd), 0, 0, os.POSIX_FADV_RANDOM)
open(group, 'w').write('0')
r, end = random.Random(7), time.time() + seconds
while time.time() < end:
    for _ in range(100):
        db.execute(look, (int(most * r.random() ** 3) * 3079 % most + 1,)).fetchone()
";

const MAKE: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute('create table t(k integer primary key, v blob)')
db.executemany('insert into t values(?, zeroblob(3000))', ((k,) for k in range(1, 9001)))
db.commit()
";

/// SQLite on a database that the cgroup has no room for, by Python. Of the environment: seconds until the cache is full (`SQLITE_FILL`) and,
/// with `WHAT_IF=long` and `far`, of watching (`SQLITE_SECONDS`): emulation is slow; `READ_AHEAD_KB` for a device of its own. With
/// read-ahead, pages that nobody uses take room, and more of it the larger the cache is.
pub fn what_if_of_sqlite(dir: &Path) {
    let disk = std::env::var_os("READ_AHEAD_KB").map(|_| Disk::new(dir));
    let dir = disk.as_ref().map_or(dir, |disk| &disk.mount);
    let python = |script: &str| {
        let mut command = Command::new("python3");
        super::without_huge_pages(&mut command);
        command.args(["-c", script]).arg(dir.join("db"));
        command
    };
    // Where a guest has Python: tests/vm/python, and libsqlite3.
    assert!(
        python(MAKE).status().is_ok_and(|s| s.success()),
        "needs Python with SQLite: apt-get install python3"
    );
    let (limit, scales): (_, &[f64]) = match std::env::var("WHAT_IF").as_deref() {
        Ok("long") => (LIMIT, &SCALES),
        Ok("far") => (SMALL_LIMIT, &FAR_SCALES),
        _ => (LIMIT, &[0.5, 1.5]),
    };
    let seconds = if super::is_long() { setting("SQLITE_SECONDS", 16) as f64 } else { 6.0 };
    let fill = setting("SQLITE_FILL", 5);
    let ask = |limit: u64, how: &str| {
        let group = Group::new(limit)?;
        drop_cache(&File::open(dir.join("db")).unwrap());
        let mut load = python(SQLITE);
        let start = super::of_environment("WHAT_IF_START").unwrap_or(14.0) + fill as f64;
        let load = load.arg((seconds + start).to_string()).arg(group.procs()).arg(how);
        let mut load = load.spawn().unwrap();
        // Until the cache is full.
        std::thread::sleep(Duration::from_secs(fill));
        let what_if = asked(&group, seconds);
        load.kill().unwrap();
        load.wait().unwrap();
        Some(what_if)
    };
    for how in ["random", "normal"] {
        let Some(what_if) = ask(limit, how) else {
            println!("skipped: cgroups have no memory limits here");
            return;
        };
        let name = format!("sqlite, {how}");
        let (mean, worst) = off(&name, &what_if, limit, scales, |limit| ask(limit, how).unwrap());
        assert!(mean <= 0.02 && worst <= 0.05, "{how}: mean error {mean}, worst {worst}");
        let told = what_if["notes"].to_string().contains("read ahead and not used");
        assert!(how == "normal" || !told, "{what_if}");
    }
}

/// A number that the environment has, or this one.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// Nobody: it refuses to be root.
const USER: u32 = 65534;

/// Some accounts much more often than others, all over the table.
const ZIPF: &str = "\\set n 100000 * :scale
\\set aid permute(random_zipfian(1, :n, 1.05) - 1, :n) + 1
select abalance from pgbench_accounts where aid = :aid;
";

/// A program of the newest PostgreSQL here.
fn of_postgresql(name: &str) -> Option<PathBuf> {
    let mut all: Vec<_> = fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok).collect();
    all.sort_by_key(|entry| entry.file_name());
    Some(all.pop()?.path().join("bin").join(name)).filter(|path| path.exists())
}

/// As nobody, in the cgroup if there is one.
fn as_nobody(program: &Path, group: Option<&Group>) -> Command {
    let line = match group {
        Some(group) => format!("echo $$ >'{}'; exec \"$@\"", group.procs().display()),
        None => "exec \"$@\"".into(),
    };
    let mut command = Command::new("sh");
    super::without_huge_pages(&mut command).args(["-c", &line, "sh", "setpriv", "--clear-groups"]);
    command.args([format!("--reuid={USER}"), format!("--regid={USER}")]).arg(program);
    command.current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A server in a cgroup, which ends with it.
struct Server {
    child: Child,
    dir: PathBuf,
}

impl Server {
    fn start(dir: &Path, group: Option<&Group>) -> Self {
        let mut command = as_nobody(&of_postgresql("postgres").unwrap(), group);
        command.arg("-D").arg(dir.join("data")).arg("-k").arg(dir);
        for setting in
            ["listen_addresses=", "shared_buffers=1MB", "fsync=off", "autovacuum=off", "max_connections=8"]
        {
            command.args(["-c", setting]);
        }
        let server = Self { child: command.spawn().unwrap(), dir: dir.into() };
        let ready = || server.client("pg_isready").status().unwrap().success();
        let begun = Instant::now();
        while !ready() {
            assert!(begun.elapsed() < Duration::from_secs(30), "no answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// A program that talks to it.
    fn client(&self, name: &str) -> Command {
        let mut command = as_nobody(&of_postgresql(name).unwrap(), None);
        command.arg("-h").arg(&self.dir).args(["-U", "nobody"]);
        command
    }

    fn pgbench<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.client("pgbench");
        command.args(args).arg("postgres");
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(libc::pid_t::try_from(self.child.id()).unwrap(), libc::SIGINT) };
        self.child.wait().unwrap();
    }
}

/// A file system on a device of its own, of which is read ahead what devices have by default: where that is more, as it is on some, a
/// database that is read at random is read ahead into itself.
struct Disk {
    device: String,
    mount: PathBuf,
}

impl Disk {
    fn new(dir: &Path) -> Self {
        let (image, mount) = (dir.join("image"), dir.join("disk"));
        File::create(&image).unwrap().set_len(2 << 30).unwrap();
        fs::create_dir(&mount).unwrap();
        let run = |program: &str, args: &[&OsStr]| {
            let done = Command::new(program).args(args).output().unwrap();
            assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
            String::from_utf8(done.stdout).unwrap().trim().to_owned()
        };
        run("mkfs.ext4", &["-q".as_ref(), image.as_ref()]);
        let options = ["--find", "--show", "--direct-io=on"].map(OsStr::new);
        let device = run("losetup", &[&options[..], &[image.as_ref()]].concat());
        let name = Path::new(&device).file_name().unwrap().to_str().unwrap();
        let kb = std::env::var("READ_AHEAD_KB").unwrap_or_else(|_| "128".into());
        fs::write(format!("/sys/block/{name}/queue/read_ahead_kb"), kb).unwrap();
        run("mount", &[device.as_ref(), mount.as_ref()]);
        Self { device, mount }
    }

    /// Nothing of it is cached any more, and nothing of anybody else goes.
    fn mount_anew(&self) {
        let run =
            |program: &str, args: &[&OsStr]| Command::new(program).args(args).status().unwrap().success();
        // Whoever used it may be about to end.
        let begun = Instant::now();
        while !run("umount", &[self.mount.as_ref()]) {
            assert!(begun.elapsed() < Duration::from_secs(20), "in use");
            std::thread::sleep(Duration::from_millis(200));
        }
        assert!(run("mount", &[self.device.as_ref(), self.mount.as_ref()]));
        // Where a namespace of mounts was made meanwhile, it is still mounted there, and cached, on nobody's account.
        let has_pages =
            |path: &PathBuf| fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() > 0);
        let sum = |dir: &Path| -> u64 {
            let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(has_pages);
            files.map(|path| resident(&File::open(path).unwrap())).sum()
        };
        let databases = fs::read_dir(self.mount.join("postgresql/data/base")).unwrap();
        let there: u64 = databases.map(|entry| sum(&entry.unwrap().path())).sum();
        assert_eq!(there, 0, "pages of the database are there: is it mounted in another namespace as well?");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.mount).status();
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}

/// `root --postgresql`: pgbench on a database that the cgroup has no room for: each account as likely as any other, some much more
/// likely, and its own mixture of reads and writes. Of the environment: `READ_AHEAD_KB`, the database's size by pgbench's `PG_SCALE`
/// (of 16 MiB each), the limit `PG_LIMIT_MIB`, of which its processes need some themselves, seconds until the cache is full
/// (`PG_FILL`) and of watching (`PG_SECONDS`), and `PG_LOADS`, which are some of 0, 1 and 2. With `WHAT_IF=far` the
/// limit is such that four times as much is less than the database.
pub fn what_if_of_postgresql(dir: &Path) {
    let Some(initdb) = of_postgresql("initdb") else { panic!("no PostgreSQL below /usr/lib/postgresql") };
    let disk = Disk::new(dir);
    let dir = disk.mount.join("postgresql");
    fs::create_dir(&dir).unwrap();
    chown(&dir, Some(USER), Some(USER)).unwrap();
    let made = as_nobody(&initdb, None).arg("-D").arg(dir.join("data")).args(["-N", "-U", "nobody"]).status();
    assert!(made.unwrap().success(), "initdb");
    fs::write(dir.join("zipf"), ZIPF).unwrap();
    let (scale, limit) =
        (setting("PG_SCALE", 10).to_string(), setting("PG_LIMIT_MIB", if is_far() { 24 } else { 64 }) << 20);
    let fill = setting("PG_FILL", 20);
    let chosen = std::env::var("PG_LOADS").unwrap_or_else(|_| "012".into());
    assert!(Server::start(&dir, None).pgbench(["-i", "-q", "-s", &scale]).status().unwrap().success());
    // Lists grow and shrink for some seconds.
    let seconds = setting("PG_SECONDS", 40) as f64;
    let zipf = dir.join("zipf");
    let loads: [(&str, Vec<&OsStr>); 3] = [
        ("pgbench -S", vec![OsStr::new("-S")]),
        (
            "pgbench, Zipf's law",
            vec![OsStr::new("-s"), OsStr::new(&scale), OsStr::new("-f"), zipf.as_os_str()],
        ),
        ("pgbench", Vec::new()),
    ];
    for (_, (name, args)) in ('0'..).zip(loads).filter(|(n, _)| chosen.contains(*n)) {
        let ask = |limit: u64| {
            // What stays belongs to whoever brought it in.
            disk.mount_anew();
            let group = Group::new(limit).expect("cgroups with limits");
            let server = Server::start(&dir, Some(&group));
            let time = (seconds + 40.0 + fill as f64).to_string();
            let mut load = server.pgbench(
                ["-n", "-c", "2", "-T", &time].map(OsStr::new).into_iter().chain(args.iter().copied()),
            );
            let mut load = load.spawn().unwrap();
            std::thread::sleep(Duration::from_secs(fill));
            let what_if = asked(&group, seconds);
            load.kill().unwrap();
            load.wait().unwrap();
            what_if
        };
        let what_if = ask(limit);
        println!(
            "{name}: {} of {} accesses, notes {}",
            what_if["now"], what_if["accesses"], what_if["notes"]
        );
        let scales: &[f64] = if is_far() { &FAR_SCALES } else { &SCALES };
        let (mean, worst) = off(name, &what_if, limit, scales, ask);
        // What is read ahead without need decides where a device has far more of that than by default.
        let most = if std::env::var("READ_AHEAD_KB").is_ok() { (0.05, 0.1) } else { (0.025, 0.05) };
        assert!(mean <= most.0 && worst <= most.1, "{name}: mean {mean}, worst {worst}");
    }
}
