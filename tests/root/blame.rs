//! `cachestat --blame -- COMMAND`: whose pages are pushed out is known by construction.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use serde_json::Value;

use crate::tools::*;
use crate::whatif::hierarchy;

const MIB: u64 = 1 << 20;

/// A cgroup with a name that acts, where it is printed as it is.
pub struct Group(pub PathBuf);

impl Group {
    pub fn new(name: &str) -> Self {
        let _ = fs::write(hierarchy().join("cgroup.subtree_control"), "+memory");
        let group = Self(hierarchy().join(format!("{name}\x1b[2J-{}", std::process::id())));
        fs::create_dir(&group.0).unwrap();
        group
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn report(options: &str, line: &str, words: &[&Path], path: &Path) -> Value {
    let mut command = cachestat(options);
    command.arg("-o").arg(path).args(["--", "sh", "-c", line, "sh"]).args(words);
    let (code, _, err) = output(&mut command);
    assert_eq!(code, Some(0), "{err}");
    let text = fs::read_to_string(path).unwrap();
    assert!(!text.contains('\x1b'), "{text}");
    let report = serde_json::from_str(&text).unwrap();
    schema::check_report(&report);
    report
}

fn finds(report: &Value, id: &str) -> bool {
    report["findings"].as_array().unwrap().iter().any(|f| f["id"] == id)
}

/// The command reads a file; somebody in another cgroup gives its pages up; the command reads it again.
pub fn blame_of_a_command(dir: &Path) {
    let (file, there, back) = (dir.join("pushed"), dir.join("there"), dir.join("back"));
    fs::write(&file, vec![1; (16 * MIB) as usize]).unwrap();
    fs::File::open(&file).unwrap().sync_all().unwrap();
    for fifo in [&there, &back] {
        let name = CString::new(fifo.as_os_str().as_bytes()).unwrap();
        // SAFETY: a string that ends.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    }
    let (line, path) =
        ("cat \"$1\" >/dev/null; echo >\"$2\"; read x <\"$3\"; cat \"$1\" >/dev/null", dir.join("r.json"));
    let pages = 16 * MIB / page_size();
    let group = Group::new("pusher");
    let other = "echo $$ >\"$4/cgroup.procs\"; read x <\"$2\"; dd if=\"$1\" iflag=nocache count=0 2>/dev/null; echo >\"$3\"";
    let spawn = || {
        let mut command = Command::new("sh");
        command.args(["-c", other, "sh"]).args([&file, &there, &back, &group.0]);
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let mut process = spawn();
    let told = report("--blame --json", line, &[&file, &there, &back], &path);
    process.wait().unwrap();
    let again = told["blame"]["again_pages"].as_u64();
    println!("     {pages} pages were pushed out, {again:?} brought in again");
    let again = again.unwrap_or_else(|| panic!("every kernel tells which pages come: {}", told["blame"]));
    // Pages of programs may have been pushed out as well.
    assert!((pages..=pages + 256).contains(&again), "{}", told["blame"]);
    let row = &told["blame"]["rows"][0];
    assert_eq!((row["how"].as_str(), row["own"].as_bool()), (Some("dontneed"), Some(false)), "{row}");
    assert_eq!(
        (row["by"]["process"].as_str(), row["again_pages"].as_u64()),
        (Some("dd"), Some(pages)),
        "{row}"
    );
    assert!(row["by"]["cgroup"].as_str().unwrap().starts_with("/pusher\x1b[2J-"), "{row}");
    assert!(finds(&told, "pushed-out-by"), "{}", told["findings"]);
    // Nobody asks; and it gives the pages up itself.
    let mut process = spawn();
    let told = report("--json", line, &[&file, &there, &back], &path);
    process.wait().unwrap();
    assert!(told["blame"].is_null() && !finds(&told, "pushed-out-by"), "{}", told["findings"]);
    let own = "cat \"$1\" >/dev/null; dd if=\"$1\" iflag=nocache count=0 2>/dev/null; cat \"$1\" >/dev/null";
    let told = report("--blame --json", own, &[&file], &path);
    let row = &told["blame"]["rows"][0];
    assert_eq!((row["own"].as_bool(), row["again_pages"].as_u64()), (Some(true), Some(pages)), "{row}");
    assert_eq!(told["blame"]["own_out_pages"], pages);
    assert!(!finds(&told, "pushed-out-by"), "{}", told["findings"]);
    // A second run does not answer for what left before it began, nor does --cold.
    let told = report("--blame --json -r 2 --cold-each pagecache", "cat \"$1\" >/dev/null", &[&file], &path);
    for run in told["runs"].as_array().unwrap() {
        assert!(run["blame"]["again_pages"].as_u64().unwrap() < 256, "{}", run["blame"]);
    }
    // In text, with a name that acts.
    let mut process = spawn();
    let mut command = cachestat("--blame -v");
    command.args(["--", "sh", "-c", line, "sh"]).args([&file, &there, &back]);
    let (_, _, err) = output(&mut command);
    process.wait().unwrap();
    assert!(err.contains("who pushed out whose pages\n") && err.contains("pusher\\x1b[2J"), "{err}");
    assert!(!err.contains('\x1b') && err.lines().all(|l| l.chars().count() <= 80), "{err}");
}

/// A process that is there already, and gives up what it reads all the time: also before the watch knows that it is the one.
pub fn blame_of_a_process(dir: &Path) {
    let (file, path) = (dir.join("churned"), dir.join("r.json"));
    fs::write(&file, vec![1; MIB as usize]).unwrap();
    fs::File::open(&file).unwrap().sync_all().unwrap();
    let mut reader = Reader::new();
    reader.send("churn", &file);
    let (code, _, err) =
        output(&mut cachestat(&format!("--blame --json -p {} --for 2s -o {}", reader.pid(), path.display())));
    fs::remove_file(&file).unwrap();
    reader.answered();
    reader.end();
    assert_eq!(code, Some(0), "{err}");
    let told: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    schema::check_report(&told);
    let rows = told["blame"]["rows"].as_array().unwrap();
    let dropped = rows.iter().filter(|row| row["how"] == "dontneed");
    let (mut own, mut others) = (0, 0);
    for row in dropped {
        let out = row["out_pages"].as_u64().unwrap();
        if row["own"] == true { own += out } else { others += out }
    }
    println!("     {own} pages that it gave up, {others} in somebody else's name");
    // What goes while the watch begins.
    assert!(own > 1000 && others * 10 < own, "{own} {others}: {}", told["blame"]);
    assert!(!finds(&told, "pushed-out-by"), "{}", told["findings"]);
}

/// In a cgroup with little memory: a file that is used again and again, and a scan that pushes it out.
pub fn blame_of_a_scan(dir: &Path) {
    let group = Group::new("scan");
    let files = ["memory.max", "memory.limit_in_bytes"].map(|name| group.0.join(name));
    let Some(limit) = files.iter().find(|file| file.exists()) else {
        println!("     cgroups have no limits here");
        return;
    };
    fs::write(limit, (48 * MIB).to_string()).unwrap();
    let (hot, big, path) = (dir.join("hot"), dir.join("big"), dir.join("r.json"));
    for (file, size) in [(&hot, 12 * MIB), (&big, 96 * MIB)] {
        fs::write(file, vec![1; size as usize]).unwrap();
        let file = fs::File::open(file).unwrap();
        file.sync_all().unwrap();
        advise(&file, libc::POSIX_FADV_DONTNEED);
    }
    let line =
        "echo $$ >\"$1/cgroup.procs\"; cat \"$2\" >/dev/null; cat \"$3\" >/dev/null; cat \"$2\" >/dev/null";
    let told = report("--blame --json", line, &[&group.0, &hot, &big], &path);
    let own = |key: &str| told["blame"][key].as_u64();
    println!("     pushed out {:?}, back {:?}", own("own_out_pages"), own("own_back_pages"));
    let back = own("own_back_pages")
        .unwrap_or_else(|| panic!("every kernel tells which pages come: {}", told["blame"]));
    // Room for the largest windows of read-ahead, so that the scan fetches nothing twice: what comes back is the other file, all
    // of it, and nothing else but a few pages of programs. What still waits on a processor to be put on a list, 31 pages at most,
    // cannot be pushed out.
    let hot_pages = 12 * MIB / page_size();
    assert!((hot_pages - 128..=hot_pages + 256).contains(&back), "{}", told["blame"]);
    assert_eq!(own("again_pages"), Some(back), "{}", told["blame"]);
    let out = own("own_out_pages").unwrap();
    assert!((60 * MIB / page_size()..=76 * MIB / page_size()).contains(&out), "{}", told["blame"]);
    assert!(finds(&told, "scan-evicts-hot-set"), "{} {}", told["findings"], told["blame"]);
    assert!(!finds(&told, "working-set-too-large"), "{}", told["findings"]);
    // The scan alone: what it pushes out nobody misses.
    advise(&fs::File::open(&hot).unwrap(), libc::POSIX_FADV_DONTNEED);
    advise(&fs::File::open(&big).unwrap(), libc::POSIX_FADV_DONTNEED);
    let line = "echo $$ >\"$1/cgroup.procs\"; cat \"$3\" >/dev/null";
    let told = report("--blame --json", line, &[&group.0, &hot, &big], &path);
    assert!(
        !finds(&told, "scan-evicts-hot-set") && !finds(&told, "working-set-too-large"),
        "{}",
        told["findings"]
    );
}
