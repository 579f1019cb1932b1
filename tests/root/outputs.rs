//! Files that a report is written to, and files that it tells of.

use std::fs;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use crate::tools::*;

fn command(options: &str, line: &str) -> Command {
    let mut command = cachestat(options);
    command.args(["--", "sh", "-c", line]);
    command
}

/// 15 TiB with three pages in it: what is cached of it is told, or that it is not known; at once either way.
pub fn a_sparse_file(dir: &Path) {
    let (path, report) = (dir.join("sparse"), dir.join("report"));
    let pages = (15 << 40) / page_size();
    let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    // ext4 with small blocks has no files of that size.
    let pages = if file.set_len(pages * page_size()).is_ok() { pages } else { pages / 16 };
    file.set_len(pages * page_size()).unwrap();
    let written = [pages / 2, pages - 1];
    for page in written {
        file.write_all_at(b"x", page * page_size()).unwrap();
    }
    let start = Instant::now();
    let mut head = cachestat(&format!("--json -o {}", report.display()));
    let (code, _, err) = output(head.args(["--", "head", "-c", "4096"]).arg(&path));
    let took = start.elapsed();
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    schema::check_report(&report);
    let files = report["files"].as_array().unwrap();
    let row = files.iter().find(|f| f["path"] == path.to_str().unwrap()).unwrap();
    if let Some(why) = row["residency_unknown"].as_str() {
        assert!(row["after"].is_null() && why.contains("too large"), "{row}");
        let about = report["about"].to_string();
        assert!(about.contains("is not known: too large"), "{about}");
        println!("     without cachestat(2): {why}");
    } else {
        // What the hole's read-ahead brought lies at its beginning.
        let near = (0..2048).chain(written.iter().flat_map(|p| p.saturating_sub(64)..(p + 64).min(pages)));
        let cached = near.filter(|page| is_resident(&file, *page)).count();
        assert!(cached >= 3, "{cached}");
        assert_eq!((&row["after"]["cached"], &row["after"]["pages"]), (&cached.into(), &pages.into()));
        assert_eq!(row["before"]["cached"], 2, "{row}");
    }
    // Loading and all; the question took for ever.
    assert!(took < Duration::from_secs(60), "{took:?}");
}

pub fn what_is_written_where(dir: &Path) {
    let (code, out, err) = output(&mut command("-o -", "true"));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("findings") && !Path::new("-").exists(), "{out}");
    let (_, out, _) = output(&mut command("-o /dev/stdout --json", "true"));
    assert!(out.starts_with('{'), "{out}");
    // Under sudo it is the caller's.
    let path = dir.join("sudo.json");
    let mut sudo = command(&format!("--save {}", path.display()), "true");
    let (code, _, err) = output(sudo.env("SUDO_UID", "65534").env("SUDO_GID", "65534"));
    assert_eq!(code, Some(0), "{err}");
    let meta = fs::metadata(&path).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (65534, 65534));
    // What does not begin leaves nothing, and nothing is cut off.
    let none = dir.join("none");
    let mut missing = cachestat(&format!("-o {} --save {}", none.display(), path.display()));
    let (code, _, _) = output(missing.args(["--", "/no/such/program"]));
    assert_eq!(code, Some(127));
    assert!(!none.exists() && fs::metadata(&path).unwrap().len() > 100);
    // Nor does what is killed.
    let mut child = command(&format!("-o {} --save {}", none.display(), path.display()), "sleep 20")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_dir(dir).unwrap().count(), 1, "only what was saved");
    serde_json::from_str::<Value>(&fs::read_to_string(&path).unwrap()).unwrap();
}

pub fn what_others_have_planted(dir: &Path) {
    let shared = dir.join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let (victim, link) = (dir.join("victim"), shared.join("link"));
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).unwrap();
    for option in ["-o", "--save", "--html"] {
        let (code, _, err) = output(&mut command(&format!("{option} {}", link.display()), "echo ran >&2"));
        assert_eq!(code, Some(1), "{err}");
        assert!(err.contains("a symbolic link of somebody else") && !err.contains("ran\n"), "{err}");
    }
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}

pub fn a_full_disk_keeps_what_was_saved(dir: &Path) {
    let disk = dir.join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = |options: &str| {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "none"]).arg(&disk);
        assert!(mount.status().unwrap().success());
    };
    mount("size=96k");
    let path = disk.join("base.json");
    let done = std::panic::catch_unwind(|| {
        let (code, _, err) = output(&mut command(&format!("--save {}", path.display()), "true"));
        assert_eq!(code, Some(0), "{err}");
        let good = fs::read(&path).unwrap();
        let _ = fs::write(disk.join("filler"), vec![1; 1 << 20]);
        let (code, _, err) = output(&mut command(&format!("--save {}", path.display()), "true"));
        assert_eq!(code, Some(1), "{err}");
        assert!(err.contains("No space left") && err.contains("remedy: make room"), "{err}");
        assert!(err.contains("findings"), "the report is shown all the same: {err}");
        assert_eq!(fs::read(&path).unwrap(), good);
        assert_eq!(fs::read_dir(&disk).unwrap().count(), 2);
    });
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    done.unwrap();
}
