#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::*;

fn page() -> u64 {
    rustix::param::page_size() as u64
}

#[test]
fn a_new_file_is_cached_where_it_was_written_and_nowhere_else() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1000 * page()).unwrap();
    file.write_all_at(b"x", 700 * page()).unwrap();
    file.write_all_at(&vec![1; 3 * page() as usize], 10 * page()).unwrap();
    for ask in [Ask::best(), Ask::by(Method::Mincore)] {
        let r = ask.residency(file.as_fd()).unwrap();
        assert_eq!((r.size, r.pages, r.cached), (1000 * page(), 1000, 4), "{ask:?}");
        assert_eq!(r.more.is_some(), ask.method() == Method::Cachestat);
    }
}

#[test]
fn nothing_is_cached_of_nothing() {
    let file = tempfile::tempfile().unwrap();
    for ask in [Ask::best(), Ask::by(Method::Mincore)] {
        let r = ask.residency(file.as_fd()).unwrap();
        assert_eq!((r.size, r.pages, r.cached), (0, 0, 0));
    }
}

#[test]
fn what_is_not_a_file_is_no_empty_file() {
    let dir = File::open("/").unwrap();
    assert_eq!(Ask::best().residency(dir.as_fd()), Err(Unknown::NotAFile("it is a directory")));
    let null = File::open("/dev/null").unwrap();
    assert!(matches!(Ask::best().residency(null.as_fd()), Err(Unknown::NotAFile(_))));
}

/// 15 TiB, which any user can make: what is cached of it is known at once, or that it is not known.
#[test]
fn a_file_of_15_tib_costs_what_is_cached_of_it() {
    let file = tempfile::tempfile().unwrap();
    let pages = (15 << 40) / page();
    if file.set_len(pages * page()).is_err() {
        // Not on ext4 with small blocks.
        return;
    }
    for at in [0, 1, pages / 2, pages - 1] {
        file.write_all_at(b"x", at * page()).unwrap();
    }
    let start = std::time::Instant::now();
    for ask in [Ask::best(), Ask::by(Method::Mincore)] {
        let (answer, runs) = (ask.residency(file.as_fd()), ask.ranges(file.as_fd()));
        if ask.method() == Method::Mincore {
            assert_eq!((answer, runs), (Err(Unknown::TooLarge), Err(Unknown::TooLarge)));
            continue;
        }
        assert_eq!(answer.map(|r| (r.pages, r.cached)), Ok((pages, 4)));
        let runs: Vec<_> = runs.unwrap().iter().map(|r| (r.start, r.pages)).collect();
        assert_eq!(runs, [(0, 2), (pages / 2, 1), (pages - 1, 1)]);
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn steps_cover_a_file_once() {
    for pages in [1, STEP, STEP + 1, 3 * STEP - 1, (15 << 40) / 4096, (1 << 51) - 1, 1 << 51] {
        let mut end = 0;
        let mut n = 0;
        for (first, count) in steps(pages) {
            assert!(first == end && count > 0, "{pages}");
            (end, n) = (first + count, n + 1);
        }
        assert!(end == pages && n <= STEPS, "{pages}: {n}");
    }
}

#[test]
fn a_question_ends_when_it_is_told_to() {
    let file = tempfile::tempfile().unwrap();
    let size = 4 * WINDOW.max(STEP) * page();
    file.set_len(size).unwrap();
    for ask in [Ask::best(), Ask::by(Method::Mincore)] {
        let asked = std::cell::Cell::new(0);
        let stop = || asked.replace(asked.get() + 1) == 2;
        assert_eq!(ask.until(file.as_fd(), size, &stop), Err(Unknown::Interrupted));
        assert_eq!(asked.get(), 3);
    }
}

#[test]
fn a_file_of_more_than_one_window() {
    let file = tempfile::tempfile().unwrap();
    let pages = WINDOW * 2 + 7;
    file.set_len(pages * page() - 5).unwrap();
    file.write_all_at(b"x", pages * page() - 6).unwrap();
    file.write_all_at(b"x", WINDOW * page()).unwrap();
    for ask in [Ask::best(), Ask::by(Method::Mincore)] {
        let r = ask.residency(file.as_fd()).unwrap();
        assert_eq!((r.pages, r.cached), (pages, 2), "{ask:?}");
    }
}

#[test]
fn a_filter_that_forbids_it_is_no_lack_of_write_access() {
    let refused = || io::Error::from_raw_os_error(libc::EPERM);
    assert_eq!(why(refused(), || Some(true)), Unknown::NotPermitted);
    assert_eq!(why(refused(), || None), Unknown::NotPermitted);
    assert_eq!(why(refused(), || Some(false)), Unknown::Forbidden);
    assert!(Unknown::Forbidden.to_string().contains("seccomp"));
    let unknown = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
    assert_eq!(why(unknown, || panic!("nothing is tried for it")), Unknown::HugeTlb);
}
