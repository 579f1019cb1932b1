//! One file: the figures to the page, by both system calls.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use cachetop::du::Ask;
use cachetop::du::Method;
use cachetop::du::Unknown;

use crate::fs::Fs;
use crate::hold::ODD;
use crate::hold::count;
use crate::hold::file_with;
use crate::hold::json;
use crate::hold::number;
use crate::hold::pages_of;
use crate::hold::runs;
use crate::sys;
use crate::sys::page_size;

pub fn best() -> Ask {
    // The oracle of this: does the kernel have the call at all?
    let file = tempfile::tempfile().unwrap();
    let has = sys::cachestat(&file, 0).is_ok();
    assert_eq!(Ask::best().method(), if has { Method::Cachestat } else { Method::Mincore });
    Ask::best()
}

pub fn odd_ranges(fs: Fs, dir: &Path) {
    let path = dir.join("odd");
    let (file, resident) = file_with(fs, &path, 1000, &pages_of(ODD));
    for ask in [best(), Ask::by(Method::Mincore)] {
        let answer = ask.residency(file.as_fd()).unwrap();
        assert_eq!((answer.pages, answer.cached), (1000, count(&resident)), "{ask:?}");
        let found: Vec<_> = ask.ranges(file.as_fd()).unwrap().iter().map(|r| (r.start, r.pages)).collect();
        assert_eq!(found, runs(&resident), "{ask:?}");
    }
    for method in ["cachestat", "mincore"] {
        if method == "cachestat" && best().method() == Method::Mincore {
            continue;
        }
        let line = &json(&["--method", method], &path)[0];
        assert_eq!((number(line, "cached"), &line["method"]), (count(&resident), &method.into()));
        assert_eq!(line["size_bytes"], 999 * page_size() + 1);
        assert_eq!(line["dirty"].is_null(), method == "mincore", "{line}");
    }
}

pub fn every_fourteenth_page(fs: Fs, dir: &Path) {
    let path = dir.join("fourteen");
    let wanted: Vec<_> = (0..50).map(|i| i * 14).collect();
    let (_file, resident) = file_with(fs, &path, 700, &wanted);
    let map = &json(&["--map"], &path)[0];
    let ranges: Vec<_> =
        map["ranges"].as_array().unwrap().iter().map(|r| (number(r, "start"), number(r, "pages"))).collect();
    assert_eq!(ranges, runs(&resident));
    if count(&resident) == 50 {
        assert_eq!((&map["pattern"]["cached"], &map["pattern"]["hole"]), (&1.into(), &13.into()), "{map}");
    }
}

pub fn dirty_until_synced(fs: Fs, dir: &Path) {
    let path = dir.join("dirty");
    let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    file.write_all_at(&vec![1; usize::try_from(100 * page_size()).unwrap()], 0).unwrap();
    let Some(more) = best().residency(file.as_fd()).unwrap().more else {
        assert_eq!(json(&[], &path)[0]["dirty"], serde_json::Value::Null);
        return;
    };
    // tmpfs has nothing to be written to.
    let expected = if fs == Fs::Tmpfs { 0 } else { 100 };
    assert_eq!(more.dirty + more.writeback, expected);
    let map = &json(&["--map"], &path)[0];
    assert_eq!(map["dirty"], expected, "{map}");
    file.sync_all().unwrap();
    let more = best().residency(file.as_fd()).unwrap().more.unwrap();
    assert_eq!((more.dirty, more.writeback), (0, 0));
    assert_eq!(json(&[], &path)[0]["dirty"], 0);
}

pub fn a_huge_sparse_file(_fs: Fs, dir: &Path) {
    let path = dir.join("sparse");
    let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    let page = page_size();
    // mincore(2) looks at each page, which takes a minute for 1 TiB; of more it is said to be unknown.
    let by_cachestat = best().method() == Method::Cachestat;
    let pages: u64 = if by_cachestat { 1 << 28 } else { 1 << 20 };
    file.set_len(pages * page).unwrap();
    let huge = File::options().create_new(true).read(true).write(true).open(dir.join("huger")).unwrap();
    // Not on a file system whose files are smaller.
    if huge.set_len(pages * 16 * page - page).is_ok() {
        let start = Instant::now();
        let answer = Ask::by(Method::Mincore).residency(huge.as_fd());
        assert!(!by_cachestat || answer == Err(Unknown::TooLarge), "{answer:?}");
        assert!(best().residency(huge.as_fd()).is_ok_and(|r| r.cached == 0));
        assert!(start.elapsed() < Duration::from_secs(60));
    }
    let at = [0, 12_345, pages / 2 + 77, pages - 1];
    for n in at {
        file.write_all_at(b"x", n * page).unwrap();
    }
    let start = Instant::now();
    let answer = best().residency(file.as_fd()).unwrap();
    let found = best().ranges(file.as_fd()).unwrap();
    let took = start.elapsed();
    // A folio of a write may be larger than a page; all of these are one page for one byte on the kernels so far.
    assert_eq!(answer.pages, pages);
    for n in at {
        assert!(found.iter().any(|r| (r.start..r.end()).contains(&n)), "page {n} in {found:?}");
    }
    assert_eq!(found.iter().map(|r| r.pages).sum::<u64>(), answer.cached);
    assert_eq!((found.len(), answer.cached), (4, 4), "{found:?}");
    assert!(!by_cachestat || took < Duration::from_secs(1), "{took:?}");
}
