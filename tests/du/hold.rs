//! Files with known pages in the cache, and the program to ask.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::process::Output;

use serde_json::Value;

use crate::fs::Fs;
use crate::sys;
use crate::sys::Map;
use crate::sys::page_size;

/// The pages that a test brings in: the first, the last, one in fourteen, and some in a row.
pub const ODD: &[(u64, u64)] = &[(0, 1), (14, 1), (28, 3), (500, 101), (777, 1), (999, 1)];

pub fn pages_of(ranges: &[(u64, u64)]) -> Vec<u64> {
    ranges.iter().flat_map(|&(start, count)| start..start + count).collect()
}

/// A file of so many pages, the last one of a single byte, of which exactly these are cached; and which ones, by
/// mincore(2).
pub fn file_with(fs: Fs, path: &Path, pages: u64, wanted: &[u64]) -> (File, Vec<bool>) {
    let page = page_size();
    let file = File::options().create_new(true).read(true).write(true).open(path).unwrap();
    if fs == Fs::Tmpfs {
        // There is no other place for its data than the cache: what was not written is a hole.
        file.set_len((pages - 1) * page + 1).unwrap();
        for n in wanted {
            file.write_all_at(b"x", n * page).unwrap();
        }
    } else {
        file.write_all_at(&vec![0x5a; usize::try_from((pages - 1) * page + 1).unwrap()], 0).unwrap();
        file.sync_all().unwrap();
        sys::advise(&file, 0, 0, libc::POSIX_FADV_DONTNEED).unwrap();
        sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM).unwrap();
        let mut byte = [0];
        for n in wanted {
            file.read_exact_at(&mut byte, n * page).unwrap();
        }
    }
    let resident = resident(&file, pages);
    for n in wanted {
        assert!(resident[usize::try_from(*n).unwrap()], "page {n} was just used");
    }
    // Without read-ahead, nothing else is: btrfs apart, which reads larger blocks on kernels with large folios.
    if fs != Fs::Btrfs {
        assert_eq!(resident.iter().filter(|r| **r).count(), wanted.len(), "{}", fs.name());
    }
    (file, resident)
}

/// The test's own look at the cache.
pub fn resident(file: &File, pages: u64) -> Vec<bool> {
    Map::new(file, usize::try_from(pages).unwrap()).unwrap().resident()
}

pub fn count(resident: &[bool]) -> u64 {
    resident.iter().filter(|r| **r).count() as u64
}

/// Start and length of each run.
pub fn runs(resident: &[bool]) -> Vec<(u64, u64)> {
    let mut at = 0;
    let mut out = Vec::new();
    for same in resident.chunk_by(|a, b| a == b) {
        if same[0] {
            out.push((at, same.len() as u64));
        }
        at += same.len() as u64;
    }
    out
}

/// The program that is tested.
pub fn program() -> String {
    std::env::var("CACHEDU").unwrap_or_else(|_| env!("CARGO_BIN_EXE_cachedu").into())
}

/// The program under test.
pub fn cachedu(args: &[&str], path: &Path) -> Output {
    Command::new(program()).args(args).arg(path).output().unwrap()
}

/// Its JSON lines, when it ended well.
pub fn json(args: &[&str], path: &Path) -> Vec<Value> {
    let out = cachedu(&[&["--json"], args].concat(), path);
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{args:?}: {err}");
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

pub fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} in {value}"))
}
