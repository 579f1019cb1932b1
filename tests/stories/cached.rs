//! What was cached and is no data, what overlayfs does before a file is written to, and what is dropped behind a reader.

use std::fs;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::MIB;
use crate::PAGE;
use crate::cold_file;
use crate::sys;
use crate::told;

/// Makes directories with twelve hundred files.
fn many_inodes(dir: &Path) -> std::path::PathBuf {
    let dir = dir.join("inodes");
    for d in 0..24 {
        let dir = dir.join(d.to_string());
        fs::create_dir_all(&dir).unwrap();
        (0..50).for_each(|f| fs::write(dir.join(f.to_string()), "x").unwrap());
    }
    dir
}

/// What the disk of a file has been read for since it is there, in bytes, by its own count.
fn read_from_disk(path: &Path) -> u64 {
    let disk = fs::metadata(path).unwrap().dev();
    let stat = format!("/sys/dev/block/{}:{}/stat", libc::major(disk), libc::minor(disk));
    let stat = fs::read_to_string(stat).unwrap();
    stat.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap() * 512
}

/// Directories and inodes that come from a disk, and then from the cache.
pub fn metadata_twice(dir: &Path) {
    let many = many_inodes(dir);
    let du = ["du", "-a", many.to_str().unwrap()];
    let t = told("--cold all -r 2", &du);
    let found = t.has("metadata-cached-before");
    assert_eq!(found["runs"], serde_json::json!([2]));
    assert_eq!(found["evidence"]["brought_by_run"], 1);
    let blocks = found["evidence"]["metadata_blocks"].as_u64().unwrap();
    let meta = |run: usize, key: &str| t.0["runs"][run]["meta"][key].as_u64();
    println!("  {blocks} blocks, counted {:?}", meta(0, "misses").zip(meta(0, "readahead_hits")));
    assert!(blocks >= 64, "{found}");
    if let Some(n) = meta(0, "misses").zip(meta(0, "readahead_hits")).map(|(a, b)| a + b) {
        // What was read ahead and not looked at (5.10: inode tables) came in as well.
        assert!(blocks >= n - n / 20 && blocks <= 2 * n, "{n}: {found}");
    }
    // The nearest: nothing of it is cached the second time either.
    told("--cold-each all -r 2", &du).has_not("metadata-cached-before");
    // Of xfs nobody counts blocks, and it keeps what is not written back: how many of so few are read again is told by the disk.
    let many = many_inodes(Path::new("/mnt/xfs"));
    let before = read_from_disk(&many);
    let t = told("--cold all -r 2", &["du", "-a", many.to_str().unwrap()]);
    let read = (read_from_disk(&many) - before) / PAGE;
    let said = t.0["findings"].as_array().unwrap().iter().find(|f| f["id"] == "metadata-cached-before");
    println!("  xfs: {read} pages read, {:?}", said.map(|f| &f["evidence"]["metadata_blocks"]));
    t.has("dentries-cold");
    match said {
        Some(found) => assert!(
            (64..=read).contains(&found["evidence"]["metadata_blocks"].as_u64().unwrap()),
            "{read}: {found}"
        ),
        None => assert!(read < 64, "{read}: {}", t.short()),
    }
    // As much time, and no matter of metadata.
    let path = cold_file(dir, "one", 2 * MIB);
    told("--cold all -r 2", &["cat", path.to_str().unwrap()]).has_not("metadata-cached-before");
}

/// A file of a layer below is opened to be written.
pub fn overlay_copies(dir: &Path) {
    let at = |name: &str| dir.join("overlay").join(name);
    for name in ["lower/d\n #1", "upper", "work", "shown"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    let below = cold_file(&at("lower/d\n #1"), "#f", 2 * MIB);
    let layers = format!(
        "lowerdir={},upperdir={},workdir={}",
        at("lower").display(),
        at("upper").display(),
        at("work").display()
    );
    sys::mount("overlay".as_ref(), &at("shown"), "overlay", &layers).unwrap();
    let shown = at("shown/d\n #1/#f");
    let append = ["sh", "-c", "echo x >>\"$0\"", shown.to_str().unwrap()];
    // Only read, it is not copied.
    told("", &["cat", shown.to_str().unwrap()]).has_not("overlay-copied");
    crate::causes::forget(below.to_str().unwrap());
    let t = told("", &append);
    let found = t.has("overlay-copied");
    assert_eq!(found["evidence"]["from"], below.to_str().unwrap());
    let copy = at("upper/d\n #1/#f");
    assert_eq!(found["evidence"]["to"], copy.to_str().unwrap());
    let pages = found["evidence"]["copied_pages"].as_u64().unwrap();
    assert_eq!(pages, 2 * MIB / PAGE, "{found}");
    let open = t.has("time-in-open");
    assert!(open["text"].as_str().unwrap().contains("Overlayfs copied"), "{open}");
    let row = t.0["files"].as_array().unwrap().iter().find(|f| f["path"] == copy.to_str().unwrap());
    assert_eq!(row.unwrap()["after"]["cached"], 2 * MIB / PAGE + 1, "{}", t.short());
    // The nearest: it has been copied.
    told("", &append).has_not("overlay-copied");
    sys::unmount(&at("shown"));
}

/// Reads a file so that nothing of it stays, for the story below; with an error where the kernel or the file system cannot.
pub fn drop_behind(path: &str) {
    const RWF_DONTCACHE: i32 = 0x80;
    let file = File::open(path).unwrap();
    let mut buf = vec![0_u8; 256 << 10];
    for at in (0..file.metadata().unwrap().len()).step_by(buf.len()) {
        let to = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
        // SAFETY: the buffer is as long as it says, and lives through the call.
        let n = unsafe {
            libc::preadv2(file.as_raw_fd(), &raw const to, 1, i64::try_from(at).unwrap(), RWF_DONTCACHE)
        };
        assert!(n > 0, "{}", std::io::Error::last_os_error());
    }
}

pub fn dropped_behind(_: &Path) {
    let path = cold_file(Path::new("/mnt/xfs"), "behind", 8 * MIB);
    let (me, path) = (std::env::current_exe().unwrap(), path.to_str().unwrap());
    let command = [me.to_str().unwrap(), "--drop-behind", path];
    let done = std::process::Command::new(&me).args(&command[1..]).output().unwrap();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
    let release = (numbers.next().unwrap(), numbers.next().unwrap());
    assert_eq!(done.status.success(), release >= (6, 14), "{release:?}: {done:?}");
    if release >= (6, 14) {
        crate::causes::forget(path);
        let t = told("-r 2", &command);
        let found = t.has("dropped-behind");
        assert_eq!(found["runs"], serde_json::json!([1, 2]), "the second is cold again");
        assert!(found["evidence"]["dropped_pages"].as_u64().unwrap() >= 8 * MIB / PAGE * 9 / 10, "{found}");
    }
    crate::causes::forget(path);
    // It stays.
    told("", &["cat", path]).has_not("dropped-behind");
    crate::causes::forget(path);
    let line = format!("cat {path}; {} --forget {path}", command[0]);
    told("", &["sh", "-c", &line]).has("dropped-behind");
}

/// Where reads of tmpfs are seen, it is known that they were there.
pub fn in_memory(_: &Path) {
    fs::create_dir_all("/tmp/memory").unwrap();
    sys::mount("tmpfs".as_ref(), Path::new("/tmp/memory"), "tmpfs", "size=64m").unwrap();
    let path = Path::new("/tmp/memory/f");
    fs::write(path, vec![1; 8 * MIB as usize]).unwrap();
    let t = told("", &["cat", path.to_str().unwrap()]);
    let text = t.0["verdict"]["text"].as_str().unwrap();
    assert!(t.n("/read/accesses") >= 8 * MIB / PAGE, "{}", t.short());
    assert!(text.contains("8 MiB of it in files that are in memory only"), "{text}");
    assert!(!text.contains("is not known"), "{text}");
    sys::unmount(Path::new("/tmp/memory"));
}
