//! Files that are not ours, not here, or have no name.

use std::fs as std_fs;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::chown;
use std::path::Path;

use cachetop::du::Ask;
use cachetop::du::Method;
use cachetop::du::Unknown;

use crate::exact::best;
use crate::fs::Fs;
use crate::fuse;
use crate::hold::cachedu;
use crate::hold::count;
use crate::hold::file_with;
use crate::hold::json;
use crate::hold::number;
use crate::sys;
use crate::sys::Map;

const NOBODY: u32 = 65534;

/// What somebody else sees: a child process of which the status says what was wrong.
fn as_nobody(path: &Path, check: impl Fn(&File) -> i32) -> i32 {
    let pid = sys::fork(|| {
        // SAFETY: these take numbers only. The groups go first, while that is allowed.
        let gone = unsafe {
            libc::setgroups(0, std::ptr::null()) == 0
                && libc::setresgid(NOBODY, NOBODY, NOBODY) == 0
                && libc::setresuid(NOBODY, NOBODY, NOBODY) == 0
        };
        match File::open(path) {
            Ok(file) if gone => check(&file),
            _ => 100,
        }
    });
    sys::wait(pid.unwrap()).unwrap()
}

pub fn whoever_may_not_write(fs: Fs, dir: &Path) {
    for above in dir.ancestors().take(3) {
        std_fs::set_permissions(above, std_fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = dir.join("half");
    let (_file, resident) = file_with(fs, &path, 200, &(0..100).collect::<Vec<_>>());
    let truth = count(&resident);
    // Found out before the child, which must not start what needs a lock.
    let best = best();
    let answer = |file: &File, ask: Ask| ask.residency(file.as_fd()).map(|r| r.cached);
    let runs = |file: &File| best.ranges(file.as_fd()).map(|r| r.iter().map(|r| r.pages).sum::<u64>());

    std_fs::set_permissions(&path, std_fs::Permissions::from_mode(0o644)).unwrap();
    let status = as_nobody(&path, |file| {
        // Kernels of 6.5 to 6.13 tell everybody, and the truth.
        let honest =
            |r| r == Err(Unknown::NotPermitted) || best.method() == Method::Cachestat && r == Ok(truth);
        let by_mincore = answer(file, Ask::by(Method::Mincore));
        i32::from(!honest(answer(file, best)))
            + 2 * i32::from(by_mincore != Err(Unknown::NotPermitted))
            + 4 * i32::from(!honest(runs(file)))
    });
    assert_eq!(status, 0, "a file of root's, mode 644");

    for (mode, owner) in [(0o666, 0), (0o600, NOBODY), (0o444, NOBODY)] {
        std_fs::set_permissions(&path, std_fs::Permissions::from_mode(mode)).unwrap();
        chown(&path, Some(owner), Some(owner)).unwrap();
        let status = as_nobody(&path, |file| {
            i32::from(answer(file, best) != Ok(truth))
                + 2 * i32::from(answer(file, Ask::by(Method::Mincore)) != Ok(truth))
                + 4 * i32::from(runs(file) != Ok(truth))
        });
        assert_eq!(status, 0, "mode {mode:o} of user {owner}");
    }
}

pub fn overlay(fs: Fs, dir: &Path) {
    let at = |name: &str| dir.join(name);
    for name in ["lower", "upper", "work", "merged"] {
        std_fs::create_dir(at(name)).unwrap();
    }
    let (_lower, resident) = file_with(fs, &at("lower/file"), 300, &[1, 2, 3, 200]);
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        at("lower").display(),
        at("upper").display(),
        at("work").display()
    );
    sys::mount(Path::new("overlay"), &at("merged"), "overlay", &options).unwrap();
    let merged = at("merged/file");
    let done = std::panic::catch_unwind(|| {
        for ask in [best(), Ask::by(Method::Mincore)] {
            let file = File::open(&merged).unwrap();
            let answer = ask.residency(file.as_fd()).unwrap();
            assert_eq!(answer.cached, count(&resident), "{ask:?}");
        }
        assert_eq!(number(json(&[], &at("merged")).last().unwrap(), "cached"), count(&resident));
    });
    sys::unmount(&at("merged"));
    done.unwrap();
}

pub fn open_and_mapped(fs: Fs, dir: &Path) {
    let (open, resident) = file_with(fs, &dir.join("open and deleted"), 50, &[7, 8]);
    std_fs::remove_file(dir.join("open and deleted")).unwrap();
    let (mapped, more) = file_with(fs, &dir.join("mapped"), 60, &[1]);
    let mapping = Map::new(&mapped, 60).unwrap();
    drop(mapped);
    let pid = std::process::id().to_string();
    let out = cachedu(&["--json", "--pid"], Path::new(&pid));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let of = |end: &str| {
        let line = lines.iter().find(|l| l["path"].as_str().is_some_and(|p| p.ends_with(end)));
        line.unwrap_or_else(|| panic!("{end} in {text}"))
    };
    assert_eq!(number(of("open and deleted (deleted)"), "cached"), count(&resident));
    assert_eq!(number(of("/mapped"), "cached"), count(&more));
    assert_eq!(of("/mapped")["processes"], serde_json::json!([std::process::id()]));
    let out = cachedu(&["--pid"], Path::new("2147483647"));
    assert_eq!(out.status.code(), Some(2));
    drop((open, mapping));
}

/// They are no page cache, though mincore(2) tells of them.
pub fn huge_pages(_fs: Fs, dir: &Path) {
    let at = dir.join("huge");
    std_fs::create_dir(&at).unwrap();
    sys::mount(Path::new("none"), &at, "hugetlbfs", "").unwrap();
    let path = at.join("file");
    let done = std::panic::catch_unwind(|| {
        let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        let size = std_fs::metadata(&at).unwrap().blksize();
        file.set_len(2 * size).unwrap();
        for ask in [best(), Ask::by(Method::Mincore)] {
            assert_eq!(ask.residency(file.as_fd()), Err(Unknown::HugeTlb), "{ask:?}");
            assert_eq!(ask.ranges(file.as_fd()), Err(Unknown::HugeTlb), "{ask:?}");
        }
        let total = json(&["-d", "0"], &at).pop().unwrap();
        assert_eq!((number(&total, "unknown_files"), &total["cached"]), (1, &serde_json::Value::Null));
        let out = cachedu(&["--json"], &path);
        assert_eq!(out.status.code(), Some(1));
        assert!(String::from_utf8(out.stdout).unwrap().contains(r#""reason":"hugetlbfs""#));
    });
    sys::unmount(&at);
    done.unwrap();
}

/// To open a file there empties its cache. So nothing is opened to be looked at, by whatever way it is found; what is
/// to be loaded is. Where the server does not answer statfs(2), either.
pub fn on_fuse(_fs: Fs, dir: &Path) {
    for statfs in [true, false] {
        let at = dir.join(format!("fuse {statfs}"));
        std_fs::create_dir(&at).unwrap();
        let server = fuse::serve_forgetful(&at, 64 * sys::page_size(), statfs).unwrap();
        let done = std::panic::catch_unwind(|| left_alone(&at.join(fuse::NAME), &dir.join("set")));
        sys::unmount(&at);
        let _ = sys::wait(server);
        done.unwrap();
    }
}

fn left_alone(path: &Path, set: &Path) {
    let file = File::open(path).unwrap();
    let mapping = Map::new(&file, 64).unwrap();
    let cached = || count(&mapping.resident());
    for page in 0..64 {
        mapping.touch(page);
    }
    assert_eq!(cached(), 64);
    let pid = std::process::id().to_string();
    let (above, pid) = (path.parent().unwrap(), Path::new(&pid));
    let map_of = ["--map", "--pid"];
    for (args, what, code, known) in [
        (&["--json"][..], path, 1, Some("fuse")),
        (&["--json", "-f"], above, 0, Some("fuse")),
        (&["--json", "--pid"], pid, 0, Some("fuse")),
        (&["--map"], path, 1, None),
        (&map_of, pid, 0, None),
        (&["--save", set.to_str().unwrap()], path, 1, None),
        (&["--save", set.to_str().unwrap()], above, 1, None),
        (&["--json", "--load", "--dry-run"], path, 0, Some("fuse")),
        (&["--json", "--evict", "--dry-run"], above, 0, Some("fuse")),
    ] {
        let out = cachedu(args, what);
        assert_eq!(cached(), 64, "{args:?} {}", what.display());
        let (text, err) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
        assert_eq!(out.status.code(), Some(code), "{args:?} {}: {text}{err}", what.display());
        assert!(err.contains("on FUSE, opening a file may empty its cache"), "{args:?}: {err}");
        let line = text.lines().find(|l| l.contains(r#""reason":"fuse""#));
        assert_eq!(line.is_some(), known.is_some(), "{args:?}: {text}");
        if let Some(line) = line {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(line["cached"].is_null() && line["before"].is_null(), "{line}");
        }
    }
    for what in [path, above] {
        let line = &json(&["--load"], what)[0];
        assert_eq!((number(line, "after"), cached()), (64, 64), "and it stays: {line}");
    }
    assert_eq!(number(&json(&["--evict"], path)[0], "after"), cached());
}
