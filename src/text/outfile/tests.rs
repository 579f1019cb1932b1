//! Files whole or not at all, and nobody else's links.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;

use super::*;
use crate::exit::Code;

fn names(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

fn root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_file_is_new_or_replaced_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (path, link) = (dir.path().join("f"), dir.path().join("link"));
    write(&path, b"old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let mut before = File::open(&path).unwrap();
    write(&path, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
    // Whoever has the old one open has it whole.
    let mut text = String::new();
    io::Read::read_to_string(&mut before, &mut text).unwrap();
    assert_eq!(text, "old");
    // The file that a link of ours leads to is meant, also if it has yet to be made.
    symlink("f", &link).unwrap();
    write(&link, b"by the link").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"by the link");
    fs::remove_file(&path).unwrap();
    write(&link, b"again").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"again");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(names(dir.path()), 2, "nothing is left beside them");
}

#[test]
fn a_directory_is_held_by_one_and_written_to_by_all() {
    let dir = tempfile::tempdir().unwrap();
    let held = hold(dir.path(), ".lock").unwrap();
    assert_eq!(hold(dir.path(), ".lock").unwrap_err().kind(), io::ErrorKind::WouldBlock);
    write(&dir.path().join("f"), b"x").unwrap();
    drop(held);
    drop(hold(dir.path(), ".lock").unwrap());
    // One that others may open, and a link, hold nobody off.
    let lock = dir.path().join(".lock");
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(hold(dir.path(), ".lock").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    fs::remove_file(&lock).unwrap();
    symlink(dir.path().join("f"), &lock).unwrap();
    assert_ne!(hold(dir.path(), ".lock").unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn nothing_is_left_of_what_was_not_written() {
    let dir = tempfile::tempdir().unwrap();
    drop(Target::new(&dir.path().join("f")).unwrap());
    assert_eq!(names(dir.path()), 0);
}

#[test]
fn the_remedy_fits_the_error() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("file"), "").unwrap();
    symlink("loop", at("loop")).unwrap();
    for (path, code) in [
        (at("no/such"), libc::ENOENT),
        (at("file/f"), libc::ENOTDIR),
        (dir.path().to_path_buf(), libc::EISDIR),
        (at(""), libc::EISDIR),
        (at("loop"), libc::ELOOP),
        (at(&"x".repeat(300)), libc::ENAMETOOLONG),
        (PathBuf::new(), libc::ENOENT),
    ] {
        let error = Target::new(&path).unwrap_err();
        let Error::Io(io) = &error else { panic!("{error}") };
        assert_eq!(io.raw_os_error(), Some(code), "{path:?}");
        assert!(error.about(&path).remedy.is_some());
        assert_eq!(error.about_the_request(&path).code, Code::Usage, "{path:?}");
    }
    let denied = Error::Io(io::Error::from_raw_os_error(libc::EACCES));
    assert_eq!(denied.about_the_request(Path::new("/x")).code, Code::Failed);
    let words = |code| Error::Io(io::Error::from_raw_os_error(code)).remedy();
    assert!(words(libc::ENOSPC).contains("room") && words(libc::EROFS).contains("read-only"));
}

#[test]
fn pipes_and_devices_are_written_to() {
    write(Path::new("/dev/null"), b"x").unwrap();
    let full = write(Path::new("/dev/full"), b"x").unwrap_err();
    assert!(full.remedy().contains("room"), "{full}");
    assert!(fs::metadata("/dev/null").unwrap().permissions().mode() & 0o111 == 0);
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    write(&pipe, b"through").unwrap();
    assert_eq!(reader.join().unwrap(), b"through");
    // A descriptor of ours by its name in /proc or /dev: at its place, and nothing is cut off.
    let mut file = File::create(dir.path().join("out")).unwrap();
    file.write_all(b"first, ").unwrap();
    write(Path::new(&format!("/dev/fd/{}", file.as_raw_fd())), b"second").unwrap();
    assert_eq!(fs::read(dir.path().join("out")).unwrap(), b"first, second");
}

/// What another user has put into a directory that everybody may write to is not followed, written to or replaced.
#[test]
fn what_is_planted_is_left_alone() {
    if !root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (shared, own) = (dir.path().join("shared"), dir.path().join("own"));
    for d in [&shared, &own] {
        fs::create_dir(d).unwrap();
    }
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    for d in [&shared, &own] {
        symlink(&victim, d.join("link")).unwrap();
        symlink(dir.path().join("none"), d.join("dangling")).unwrap();
        fs::write(d.join("file"), "theirs").unwrap();
        let mode = Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(CWD, d.join("pipe"), FileType::Fifo, mode, 0).unwrap();
        for name in ["link", "dangling", "file", "pipe"] {
            std::os::unix::fs::lchown(d.join(name), Some(65534), Some(65534)).unwrap();
        }
    }
    for name in ["link", "dangling", "file", "pipe"] {
        let error = Target::new(&shared.join(name)).unwrap_err();
        assert!(matches!(error, Error::Planted(_, 65534)), "{name}: {error}");
    }
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert!(!dir.path().join("none").exists());
    // In a directory of our own nobody else can have put anything that we do not want.
    write(&own.join("link"), b"new").unwrap();
    write(&own.join("file"), b"new").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"new");
    let meta = fs::metadata(own.join("file")).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (65534, 65534), "whose it was");
}

#[test]
fn a_directory_is_made_in_one_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = make_directory(&dir.path().join("nope/x")).unwrap_err();
    assert_eq!(wrong.code, crate::exit::Code::Usage, "{wrong:?}");
    assert!(!dir.path().join("nope").exists());
    for _ in 0..2 {
        make_directory(&dir.path().join("x")).unwrap();
    }
    assert!(dir.path().join("x").is_dir());
    assert!(may_make(Path::new("a-name-alone")).is_ok());
    for code in [libc::ENOSPC, libc::EROFS, libc::EACCES, libc::EIO] {
        let refused = not_in_directory("cannot record in x", &io::Error::from_raw_os_error(code));
        assert!(refused.remedy.is_some_and(|remedy| remedy.contains("director")), "{code}");
    }
}

/// A disk without room keeps the file that was there.
#[test]
fn a_full_disk_keeps_the_old_file() {
    if !root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "none"])
        .arg(dir.path())
        .status()
        .is_ok_and(|s| s.success());
    if !mounted {
        return;
    }
    let path = dir.path().join("f");
    let outcome = std::panic::catch_unwind(|| {
        write(&path, b"good").unwrap();
        let error = write(&path, &vec![1; 1 << 20]).unwrap_err();
        assert!(error.remedy().contains("room"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"good");
        assert_eq!(names(dir.path()), 1);
        let mount = |o: &str| {
            std::process::Command::new("mount").args(["-o", o]).arg(dir.path()).status().unwrap();
        };
        mount("remount,ro");
        let error = Target::new(&path).unwrap_err();
        assert!(error.remedy().contains("read-only"), "{error}");
    });
    std::process::Command::new("umount").arg(dir.path()).status().unwrap();
    outcome.unwrap();
}
