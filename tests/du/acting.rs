//! Evicting, loading, saving and restoring, seen by mincore(2).

use std::fs::File;
use std::path::Path;

use crate::fs::Fs;
use crate::hold::ODD;
use crate::hold::cachedu;
use crate::hold::count;
use crate::hold::file_with;
use crate::hold::json;
use crate::hold::number;
use crate::hold::pages_of;
use crate::hold::resident;
use crate::sys;

pub fn evict_and_load(fs: Fs, dir: &Path) {
    let path = dir.join("file");
    let (file, before) = file_with(fs, &path, 1000, &pages_of(ODD));
    let line = &json(&["--evict", "--dry-run"], &path)[0];
    assert_eq!((number(line, "before"), &line["dry_run"]), (count(&before), &true.into()));
    assert_eq!(resident(&file, 1000), before, "a dry run does nothing");
    let line = &json(&["--evict", "--flush"], dir)[0];
    let left = count(&resident(&file, 1000));
    assert_eq!((number(line, "before"), number(line, "after")), (count(&before), left));
    // The pages of tmpfs have no other place.
    assert_eq!(left, if fs == Fs::Tmpfs { count(&before) } else { 0 });
    let line = &json(&["--load"], &path)[0];
    let now = count(&resident(&file, 1000));
    assert_eq!(number(line, "after"), now);
    assert_eq!(now, if fs == Fs::Tmpfs { count(&before) } else { 1000 }, "holes are not loaded");
}

pub fn save_and_restore(fs: Fs, dir: &Path) {
    let (path, set, later) = (dir.join("file"), dir.join("set"), dir.join("later"));
    let (file, before) = file_with(fs, &path, 1000, &pages_of(ODD));
    let save = |to: &Path| {
        let out = cachedu(&["--save", to.to_str().unwrap()], &path);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    };
    save(&set);
    sys::advise(&file, 0, 0, libc::POSIX_FADV_DONTNEED).unwrap();
    save(&later);
    let diff = json(&["--diff", set.to_str().unwrap()], &later);
    let gone: u64 = diff.iter().map(|l| number(l, "gone")).sum();
    assert_eq!(gone, if fs == Fs::Tmpfs { 0 } else { count(&before) });
    let line = &json(&["--restore"], &set)[0];
    assert_eq!(number(line, "after"), count(&resident(&file, 1000)));
    let restored = resident(&file, 1000);
    if fs == Fs::Btrfs {
        // Larger folios may bring more than was requested.
        assert!(before.iter().zip(&restored).all(|(b, r)| !b || *r));
    } else {
        assert_eq!(restored, before, "exactly what was there");
    }
    // Shorter than when it was saved: what is left is restored.
    File::options().write(true).open(&path).unwrap().set_len(20).unwrap();
    assert_eq!(number(&json(&["--restore"], &set)[0], "after"), 1);
}
