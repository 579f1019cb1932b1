//! Files with several paths: of overlay mounts that share layers, and of bind mounts. Their pages are counted once.

use std::ffi::OsStr;
use std::fs as std_fs;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::fs::Fs;
use crate::hold::cachedu;
use crate::hold::count;
use crate::hold::file_with;
use crate::hold::json;
use crate::hold::number;
use crate::sys;

/// Unmounts what was mounted, the last one first.
#[derive(Default)]
pub struct Mounted(Vec<PathBuf>);

impl Drop for Mounted {
    fn drop(&mut self) {
        self.0.iter().rev().for_each(|at| sys::unmount(at));
    }
}

impl Mounted {
    pub fn overlay(&mut self, dir: &Path, name: &str, lower: &[&str]) -> PathBuf {
        let at = |what: &str| dir.join(format!("{what}{name}"));
        for what in ["upper", "work", "merged"] {
            std_fs::create_dir(at(what)).unwrap();
        }
        let lower: Vec<String> =
            lower.iter().map(|l| dir.join(l).display().to_string().replace(':', r"\:")).collect();
        let (upper, work) = (at("upper"), at("work"));
        let options =
            format!("lowerdir={},upperdir={},workdir={}", lower.join(":"), upper.display(), work.display());
        sys::mount(Path::new("overlay"), &at("merged"), "overlay", &options).unwrap();
        self.0.push(at("merged"));
        at("merged")
    }

    fn bind(&mut self, from: &Path, to: &Path) {
        let done = Command::new("mount").arg("--bind").args([from, to]).status().unwrap();
        assert!(done.success());
        self.0.push(to.to_owned());
    }
}

fn cached(of: &Path) -> u64 {
    number(json(&["-d", "0"], of).last().unwrap(), "cached")
}

pub fn three_overlays(fs: Fs, dir: &Path) {
    let mut mounted = Mounted::default();
    // Two layers below, one with a colon in its name, and the same path in both of them.
    for name in ["base:1", "next", "base:1/d"] {
        std_fs::create_dir(dir.join(name)).unwrap();
    }
    let (_base, base) = file_with(fs, &dir.join("base:1/d/file"), 300, &[1, 2, 3, 200]);
    let (_hidden, hidden) = file_with(fs, &dir.join("base:1/hidden"), 20, &[4, 5]);
    let (_next, next) = file_with(fs, &dir.join("next/hidden"), 30, &[7]);
    let merged: Vec<PathBuf> =
        ["1", "2", "3"].iter().map(|n| mounted.overlay(dir, n, &["next", "base:1"])).collect();
    let each = count(&base) + count(&next);
    assert_eq!(cached(&merged[0]), each, "one alone");
    let all = each + count(&hidden);
    assert_eq!(cached(dir), all, "layers and three mounts");

    // What is written through one of them is a file of its own from then on; what is removed is in the others still.
    let copy = merged[1].join("d/file");
    std_fs::OpenOptions::new().append(true).open(&copy).unwrap();
    rustix::fs::sync();
    let own = sys::Map::new(&File::open(&copy).unwrap(), 300).unwrap().resident();
    std_fs::remove_file(merged[2].join("hidden")).unwrap();
    let base_now =
        count(&sys::Map::new(&File::open(dir.join("base:1/d/file")).unwrap(), 300).unwrap().resident());
    let truth = base_now + count(&own) + count(&next) + count(&hidden);
    assert_eq!(cached(dir), truth, "with a copy");
    assert_eq!(cached(&merged[1]), count(&own) + count(&next));
    assert_eq!(cached(&merged[2]), base_now);

    // Named one by one, and held by a process of this and of another mount namespace.
    let named = [merged[0].join("d/file"), merged[2].join("d/file"), dir.join("base:1/d/file")];
    let total = |out: std::process::Output| {
        let text = String::from_utf8(out.stdout).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        lines
    };
    let names: Vec<&str> = named[..2].iter().map(|p| p.to_str().unwrap()).collect();
    let lines = total(cachedu(&["--json", names[0], names[1]], &named[2]));
    assert_eq!(number(lines.last().unwrap(), "cached"), base_now, "{lines:?}");
    let mut holds = Command::new("unshare")
        .args(["-m", "sh", "-c", "exec sleep 60 <\"$0\" 3<\"$1\" 4<\"$2\""])
        .args(&named)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let _open = File::open(&named[1]).unwrap();
    let pids = format!("{},{}", holds.id(), std::process::id());
    // Until it has become what it is to be.
    let lines = (0..200)
        .find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let lines = total(cachedu(&["--json", "--pid"], Path::new(&pids)));
            let comm = std_fs::read_to_string(format!("/proc/{}/comm", holds.id())).unwrap();
            (comm == "sleep\n").then_some(lines)
        })
        .unwrap();
    holds.kill().unwrap();
    holds.wait().unwrap();
    let files: Vec<&serde_json::Value> =
        lines.iter().filter(|l| l["path"].as_str().is_some_and(|p| p.ends_with("d/file"))).collect();
    assert_eq!(files.len(), 1, "{lines:?}");
    assert_eq!(number(files[0], "cached"), base_now);
    assert_eq!(files[0]["processes"].as_array().unwrap().len(), 2, "{files:?}");
}

/// Layers that cannot be reached any more: that something may be counted twice is told.
pub fn overlays_without_layers(fs: Fs, dir: &Path) {
    let mut mounted = Mounted::default();
    std_fs::create_dir(dir.join("lower")).unwrap();
    let (_file, resident) = file_with(fs, &dir.join("lower/file"), 50, &[1, 2]);
    let merged: Vec<PathBuf> = ["1", "2"].iter().map(|n| mounted.overlay(dir, n, &["lower"])).collect();
    std_fs::rename(dir.join("lower"), dir.join("elsewhere")).unwrap();
    let out = cachedu(&["--json", merged[0].to_str().unwrap()], &merged[1]);
    let text = String::from_utf8(out.stdout).unwrap();
    let total: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(number(&total, "cached"), 2 * count(&resident));
    assert_eq!(number(&total, "perhaps_shared_files"), 2);
    assert_eq!(
        (&total["dirty"], &total["dirty_at_least"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    let out = cachedu(&[merged[0].to_str().unwrap()], &merged[1]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("layers cannot be reached"));
    // The sum is at most that, and the rows say why.
    let rows = String::from_utf8(out.stdout).unwrap();
    let total = rows.lines().last().unwrap();
    assert!(total.contains(" ≤") && total.ends_with("total"), "{rows}");
    assert_eq!(rows.matches("perhaps also counted under other overlay mounts").count(), 2, "{rows}");
}

pub fn bind_mounts(fs: Fs, dir: &Path) {
    let mut mounted = Mounted::default();
    for name in ["a", "a/deep", "b", "c"] {
        std_fs::create_dir(dir.join(name)).unwrap();
    }
    let (_file, resident) = file_with(fs, &dir.join("a/deep/file"), 50, &[1, 2]);
    std_fs::write(dir.join("c/point"), "").unwrap();
    let point = dir.join("c/point");
    mounted.bind(&dir.join("a/deep"), &dir.join("b"));
    mounted.bind(&dir.join("a/deep/file"), &point);
    assert_eq!(cached(dir), count(&resident));
    // One bind mount inside of what another shows.
    for name in ["d", "d/all", "d/part"] {
        std_fs::create_dir(dir.join(name)).unwrap();
    }
    mounted.bind(&dir.join("a"), &dir.join("d/all"));
    mounted.bind(&dir.join("a/deep"), &dir.join("d/part"));
    assert_eq!((cached(&dir.join("d")), cached(dir)), (count(&resident), count(&resident)));
    // At a name that is no UTF-8, which hides no other mount either.
    let odd = dir.join(OsStr::from_bytes(b"e\xff\n"));
    std_fs::create_dir(&odd).unwrap();
    mounted.bind(&dir.join("a"), &odd);
    assert_eq!((cached(&odd), cached(dir)), (count(&resident), count(&resident)));
    // Each alone has all of it.
    for part in ["a", "b", "c"] {
        assert_eq!(cached(&dir.join(part)), count(&resident), "{part}");
    }
}
