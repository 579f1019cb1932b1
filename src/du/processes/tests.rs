#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::*;

#[test]
fn names_begin_at_the_root_of_another_namespace() {
    let here = Place { root: None, layers: Arc::default() };
    assert_eq!(here.name(Path::new("/srv/root/x")), Path::new("/srv/root/x"));
    let place =
        |root: &str| Place { root: Some(("/proc/7/root".into(), root.into())), layers: Arc::default() };
    assert_eq!(place("/").name(Path::new("/etc/x")), Path::new("/proc/7/root/etc/x"));
    assert_eq!(place("/srv").name(Path::new("/srv/etc/x")), Path::new("/proc/7/root/etc/x"));
    assert_eq!(place("/").name(Path::new("pipe:[1]")), Path::new("pipe:[1]"));
    assert!(Place::new(Path::new("/proc/self"), &mut Spaces::new()).root.is_none());
}

#[test]
fn own_files_are_found_deleted_ones_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("open");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(b"x").unwrap();
    fs::remove_file(&path).unwrap();
    let mut files = Files::new();
    held(std::process::id(), &Exclude::default(), &mut Spaces::new(), &mut files).unwrap();
    let inode = inode_of(&file);
    let found = files[&inode].clone();
    assert_eq!(found.path, PathBuf::from(format!("{} (deleted)", path.display())));
    assert_eq!(opening::look(&found.link).unwrap().0, inode);
    let mut others = Files::new();
    let exclude = Exclude::new(&["open".into()]).unwrap();
    held(std::process::id(), &exclude, &mut Spaces::new(), &mut others).unwrap();
    assert!(!others.contains_key(&inode) && !others.is_empty());
    // The program itself is mapped, and not open.
    assert!(files.contains_key(&opening::look(Path::new("/proc/self/exe")).unwrap().0));
}

/// Device and inode of an open file, by way of its number.
fn inode_of(file: &impl AsRawFd) -> (u64, u64) {
    opening::look(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd()))).unwrap().0
}

#[test]
fn a_number_that_means_another_file_by_now_is_a_file_that_was_closed() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = fs::File::create(dir.path().join("first")).unwrap();
    file.write_all(b"x").unwrap();
    let mut number = OwnedFd::from(file);
    let inode = inode_of(&number);
    let mut files = Files::new();
    held(std::process::id(), &Exclude::default(), &mut Spaces::new(), &mut files).unwrap();
    let found = files.remove(&inode).unwrap();
    let (totals, row) = counted(inode, found.clone(), Ask::best());
    let row = row.unwrap();
    assert!((totals.files, totals.cached) == (1, 1) && row.open(Aim::Look).is_ok());
    let other = fs::File::create(dir.path().join("second")).unwrap();
    for other in [OwnedFd::from(other), OwnedFd::from(UnixStream::pair().unwrap().0)] {
        rustix::io::dup2(&other, &mut number).unwrap();
        let (totals, none) = counted(inode, found.clone(), Ask::best());
        assert_eq!((totals, none), (Totals::of_vanished(), None));
        assert_eq!(row.open(Aim::Act).unwrap_err(), Unknown::Vanished, "nor is it evicted, loaded or saved");
    }
}
#[test]
fn a_file_is_found_where_any_of_its_numbers_still_means_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = fs::File::create(dir.path().join("first")).unwrap();
    file.write_all(b"x").unwrap();
    let (mut number, kept) = (OwnedFd::from(file.try_clone().unwrap()), file);
    let inode = inode_of(&number);
    let mut files = Files::new();
    held(std::process::id(), &Exclude::default(), &mut Spaces::new(), &mut files).unwrap();
    let found = files.remove(&inode).unwrap();
    assert_eq!(found.others.len(), 1);
    // Whichever was seen first: a shell puts its standard input somewhere else for each of its loops.
    let other = fs::File::create(dir.path().join("second")).unwrap();
    rustix::io::dup2(&other, &mut number).unwrap();
    let (totals, row) = counted(inode, found, Ask::best());
    assert_eq!((totals.files, totals.cached), (1, 1));
    assert_eq!(row.unwrap().path, dir.path().join("first"));
    drop(kept);
}
