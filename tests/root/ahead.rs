//! `--try` against the truth: what the second run fetched, by `mincore`, beside what was predicted from the first; and the
//! setting, which is put back however it ends.

use std::fs;
use std::fs::File;
use std::io::Read as _;
use std::io::Seek as _;
use std::io::SeekFrom;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use serde_json::Value;

use crate::tools::*;

const PAGES: u64 = 25_600;

/// Patterns, and what is tried with each. A page of every 14 is how the case began that this is for.
const PATTERNS: &[(&str, u64)] = &[
    ("sequential", 64),
    ("sequential", 4096),
    ("strided", 64),
    ("strided", 4096),
    ("random", 4096),
    ("random_small", 64),
    ("fourteenth", 4096),
    ("fourteenth_seek", 64),
    ("pieces", 64),
    ("pieces", 2048),
    ("backwards", 512),
    ("two_streams", 512),
    ("advised", 1024),
    ("sendfile", 512),
];

/// Those that are run with each advice, too.
const ADVISED: [(&str, u64); 5] =
    [("sequential", 64), ("strided", 64), ("random_small", 64), ("fourteenth", 4096), ("pieces", 64)];

/// What is fetched of a file that is not cached, with this advice and as much read-ahead as it is set to.
fn fetched_with(advice: &str, pattern: &str, path: &Path) -> u64 {
    drop_cache(&File::open(path).unwrap());
    let mut command = Command::new(std::env::current_exe().unwrap());
    let status = command.args(["--ahead", pattern]).arg(path).env("ADVICE", advice).status().unwrap();
    assert!(status.success());
    resident(&File::open(path).unwrap())
}

/// Reads a file in one of the ways.
pub fn read(words: &[String]) {
    let [pattern, path] = words else { panic!("PATTERN FILE: {words:?}") };
    let mut file = File::open(path).unwrap();
    let page = page_size();
    let pages = file.metadata().unwrap().len() / page;
    let mut buffer = vec![0; 1 << 20];
    match std::env::var("ADVICE").as_deref() {
        Ok("random") => advise(&file, libc::POSIX_FADV_RANDOM),
        Ok("sequential") => advise(&file, libc::POSIX_FADV_SEQUENTIAL),
        _ => {}
    }
    let mut at = |page_number: u64, many: u64| {
        let length = usize::try_from(many * page).unwrap();
        file.read_at(&mut buffer[..length], page_number * page).unwrap();
    };
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    match &**pattern {
        "sequential" => (0..pages / 16).for_each(|n| at(n * 16, 16)),
        "strided" => (0..pages / 64).for_each(|n| at(n * 64, 5)),
        "random" => (0..1500).for_each(|_| at(random(pages - 8), 8)),
        "random_small" => (0..3000).for_each(|_| at(random(pages), 1)),
        "fourteenth" => (0..pages / 14).for_each(|n| at(n * 14, 1)),
        "fourteenth_seek" => {
            for n in 0..pages / 14 {
                file.seek(SeekFrom::Start(n * 14 * page)).unwrap();
                file.read_exact(&mut [0; 4096]).unwrap();
            }
        }
        "pieces" => (0..pages / 400).for_each(|n| (0..20).for_each(|i| at(n * 400 + i, 1))),
        "backwards" => (0..pages / 4).rev().for_each(|n| at(n * 4, 4)),
        "two_streams" => (0..pages / 2).for_each(|n| [n, n + pages / 2].into_iter().for_each(|p| at(p, 1))),
        "advised" => {
            advise(&file, libc::POSIX_FADV_SEQUENTIAL);
            (0..pages / 64).for_each(|n| (0..12).for_each(|i| at(n * 64 + i, 1)));
        }
        "sendfile" => {
            let null = File::options().write(true).open("/dev/null").unwrap();
            std::io::copy(&mut &file, &mut &null).unwrap();
        }
        _ => panic!("{pattern}"),
    }
}

/// The setting of the device that holds a file.
fn setting(path: &Path) -> PathBuf {
    let dev = fs::metadata(path).unwrap().dev();
    let dev = format!("{}:{}", libc::major(dev), libc::minor(dev));
    let own = format!("/sys/class/bdi/{dev}/read_ahead_kb");
    let disk = format!("/sys/dev/block/{dev}/../bdi/read_ahead_kb");
    [own, disk].into_iter().map(PathBuf::from).find(|p| p.exists()).expect("a file system on a device")
}

fn get(path: &Path) -> u64 {
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// Puts a setting back when a test ends, however that ends.
struct Before(PathBuf, u64);

impl Drop for Before {
    fn drop(&mut self) {
        fs::write(&self.0, self.1.to_string()).unwrap();
    }
}

/// The setting set to what it is on most machines.
fn ordinary(path: &Path) -> Before {
    let before = Before(setting(path), get(&setting(path)));
    fs::write(&before.0, "128").unwrap();
    before
}

/// `cachestat OPTIONS -- this program, reading FILE`.
fn trying(options: &str, pattern: &str, file: &Path) -> Command {
    let mut command = cachestat(options);
    command.arg("--").arg(std::env::current_exe().unwrap()).args(["--ahead", pattern]).arg(file);
    command
}

pub fn read_ahead_is_predicted(dir: &Path) {
    let path = cold_file(&dir.join("file"), PAGES);
    let before = ordinary(&path);
    let report = dir.join("report.json");
    let inode = fs::metadata(&path).unwrap().ino();
    for (pattern, kb) in PATTERNS {
        let options = format!("--json -o {} --try read_ahead_kb={kb}", report.display());
        let (code, _, err) = output(&mut trying(&options, pattern, &path));
        assert_eq!(code, Some(0), "{pattern}: {err}");
        // Nothing drops it behind the second run: what is there is what that fetched.
        let there = resident(&File::open(&path).unwrap());
        assert_eq!(get(&before.0), 128, "{pattern}: put back");
        let json: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
        schema::check_report(&json);
        let trial = &json["trial"];
        let file = trial["files"].as_array().unwrap().iter().find(|f| f["inode"] == inode);
        let file = file.unwrap_or_else(|| panic!("{pattern}: {trial:#}"));
        let predicted = file["predicted"]["tried"]["fetched"].as_u64().unwrap();
        let counted = file["counted"][1]["fetched"].as_u64().unwrap();
        let (was, first) =
            (&file["predicted"]["as_it_was"]["fetched"], file["counted"][0]["fetched"].as_u64().unwrap());
        println!(
            "     {pattern:<16} {kb:>5} KiB: predicted {predicted}, fetched {there} (counted {counted}); as it was \
             {was}, {first}"
        );
        assert!(predicted.abs_diff(there) * 10 <= there, "{pattern}: {file:#}");
        assert!(was.as_u64().unwrap().abs_diff(first) * 10 <= first, "{pattern}: {file:#}");
        if *pattern == "two_streams" {
            // Windows that leave a page out, as the kernel's do: without those there are 5.
            let waits = |of: &Value| of["waits"].as_u64().unwrap();
            let (said, waited) = (waits(&trial["predicted"]["as_it_was"]), waits(&trial["counted"][0]));
            println!("     {pattern:<16} waits: predicted {said}, counted {waited}");
            assert!(said.abs_diff(waited) * 10 <= waited.max(100), "{trial:#}");
        }
        for advice in ["random", "sequential"].into_iter().filter(|_| ADVISED.contains(&(*pattern, *kb))) {
            let said = file["predicted"][advice]["fetched"].as_u64().unwrap();
            let there = fetched_with(advice, pattern, &path);
            println!("     {pattern:<16} {advice}: predicted {said}, fetched {there}");
            assert!(said.abs_diff(there) * 10 <= there, "{pattern}, {advice}: {file:#}");
        }
        assert_eq!(trial["doubts"].as_array().unwrap().len(), 0, "{pattern}: {trial:#}");
        assert!(trial["missed_by"].as_f64().unwrap() <= 0.1 && trial["devices"][0]["restored"] == true);
    }
}

/// A command that tells when it runs a second time, and then waits: its file is what it made.
fn waiting(dir: &Path, file: &Path) -> (Command, PathBuf) {
    let mark = dir.join("mark");
    let line = format!(
        "cat '{}' >/dev/null; if [ -e '{mark}' ]; then echo $$ > '{mark}1'; mv '{mark}1' '{mark}2'; exec sleep 60; fi; touch '{mark}'",
        file.display(),
        mark = mark.display()
    );
    let mut command = cachestat("--try read_ahead_kb=512");
    command.args(["--", "sh", "-c", &line]).stderr(Stdio::piped()).stdout(Stdio::null()).process_group(0);
    (command, dir.join("mark2"))
}

pub fn read_ahead_is_put_back(dir: &Path) {
    let path = cold_file(&dir.join("file"), 2000);
    let before = ordinary(&path);
    // The signal, and whether all of the process group gets it.
    for (signal, group) in [
        (libc::SIGKILL, true),
        (libc::SIGKILL, false),
        (libc::SIGINT, true),
        (libc::SIGTERM, false),
        (libc::SIGHUP, true),
        (libc::SIGQUIT, true),
    ] {
        let place = dir.join(format!("{signal}{group}"));
        fs::create_dir(&place).unwrap();
        let (mut command, second) = waiting(&place, &path);
        let mut child = command.spawn().unwrap();
        wait_for("the second run", || second.exists());
        assert_eq!(get(&before.0), 512);
        if (signal, group) == (libc::SIGKILL, true) {
            // Meanwhile nobody else may try.
            let (code, _, err) = output(&mut trying("--try read_ahead_kb=256", "strided", &path));
            assert_eq!(code, Some(2), "{err}");
            assert!(err.contains("another --try is under way"), "{err}");
            assert_eq!(get(&before.0), 512);
        }
        let pid = signed(child.id());
        // SAFETY: a process that we have made, or its group, and we have not waited for it.
        assert_eq!(unsafe { libc::kill(if group { -pid } else { pid }, signal) }, 0);
        child.wait().unwrap();
        wait_for("the setting", || get(&before.0) == 128);
        if signal == libc::SIGKILL && !group {
            let command = fs::read_to_string(&second).unwrap().trim().parse().unwrap();
            // SAFETY: what the killed one has started, and nobody has waited for.
            unsafe { libc::kill(command, libc::SIGKILL) };
        }
    }
    // What somebody else has set meanwhile is theirs.
    let place = dir.join("others");
    fs::create_dir(&place).unwrap();
    let (mut command, second) = waiting(&place, &path);
    let mut child = command.spawn().unwrap();
    wait_for("the second run", || second.exists());
    fs::write(&before.0, "256").unwrap();
    // SAFETY: as above.
    unsafe { libc::kill(-signed(child.id()), libc::SIGTERM) };
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    assert_eq!(get(&before.0), 256);
    assert!(said.contains("somebody else set it to 256 meanwhile"), "{said}");
}

pub fn read_ahead_that_cannot_be_tried(dir: &Path) {
    let path = cold_file(&dir.join("file"), 2000);
    let before = ordinary(&path);
    let refused = |options: &str, file: &Path, why: &str| {
        let (code, _, err) = output(&mut trying(options, "strided", file));
        assert_eq!(code, Some(2), "{options}: {err}");
        assert!(err.contains(why), "{options}: {err}");
        assert_eq!(get(&before.0), 128, "{options}");
    };
    refused("--try read_ahead_kb=x", &path, "no number");
    refused("--try read_ahead_kb=5", &path, "multiple of");
    refused("--try read_ahead_kb=99999999", &path, "more than");
    refused("--try nr_requests=4", &path, "read_ahead_kb=N");
    refused("--try read_ahead_kb=64 -r 3", &path, "cannot be used with");
    // After the first run: it is what it would be.
    refused("--try read_ahead_kb=128", &path, "is 128 already");
    let (code, _, err) = output(&mut cachestat("--try read_ahead_kb=64"));
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("COMMAND"), "{err}");
    assert_eq!(get(&before.0), 128);
}
