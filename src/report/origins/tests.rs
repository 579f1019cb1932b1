//! The list of who filled what: all files are in it, and it is bounded.

use std::time::Duration;

use super::*;
use crate::sample::FileSample;
use crate::view::fixtures;

fn row(tgid: u32, inode: u64, n: u64) -> FileSample {
    fixtures::file(tgid, inode, &[(Counter::ReadMisses, n)])
}

fn note(origins: &mut Origins, rows: Vec<FileSample>) {
    let sample = fixtures::sample(crate::sample::Moment::now(), Duration::from_secs(1), &[]);
    origins.note(&Sample { files: rows, ..sample });
}

fn pages(origins: &Origins, inode: u64) -> u64 {
    origins.but(0, row(0, inode, 0).file.key()).map(|f| u64::from(f.pages)).sum()
}

#[test]
fn a_full_list_says_so_and_keeps_what_it_has() {
    let mut origins = Origins::with_room(20_000);
    note(&mut origins, (0..20_000).map(|inode| row(7, inode, 2)).collect());
    assert!(origins.complete());
    // The same files by the same process need no more room.
    note(&mut origins, (0..20_000).map(|inode| row(7, inode, 1)).collect());
    assert!(origins.complete());
    note(&mut origins, vec![row(7, 20_000, 5), row(8, 3, 1)]);
    assert!(!origins.complete());
    assert_eq!((pages(&origins, 20_000), pages(&origins, 3), pages(&origins, 19_999)), (0, 3, 3));
    assert_eq!((origins.entries.len(), origins.files.len()), (20_000, 20_000));
}

#[test]
fn a_file_that_thousands_fill_does_not_grow() {
    let mut origins = Origins::default();
    for pid in 1..12_000 {
        note(&mut origins, vec![row(pid, 5, 1)]);
    }
    assert_eq!(pages(&origins, 5), 11_999, "all of them, if not by name");
    assert!(origins.entries.len() <= OF_A_FILE + 1, "{}", origins.entries.len());
    assert!(origins.whos.len() <= WHOS);
    assert!(origins.complete());
}

#[test]
fn what_the_kernel_programs_had_no_room_for_is_missing_here() {
    let mut origins = Origins::default();
    let mut sample = fixtures::sample(crate::sample::Moment::now(), Duration::from_secs(1), &[]);
    sample.lost.by_reason = vec![("files_full".into(), 0), ("recursion".into(), 3)];
    origins.note(&sample);
    assert!(origins.complete());
    sample.lost.by_reason = vec![("files_full".into(), 1)];
    origins.note(&sample);
    assert!(!origins.complete());
}

#[test]
fn who_was_of_the_run_once_stays_so() {
    let mut origins = Origins::default();
    let mut read = |processes: &[u32], rows: Vec<FileSample>| {
        let mut followed = crate::sample::Followed::new(1);
        followed.processes = processes.iter().map(|pid| (*pid, "tar".into())).collect();
        let sample = fixtures::sample(crate::sample::Moment::now(), Duration::from_secs(1), &[]);
        origins.note(&Sample { files: rows, followed: Some(Box::new(followed)), ..sample });
    };
    read(&[7], vec![row(7, 1, 2)]);
    // A reading has those only that did something since the one before.
    read(&[], vec![row(7, 1, 2), row(8, 1, 5)]);
    assert_eq!(pages(&origins, 1), 5);
}
