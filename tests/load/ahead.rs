//! What is used or wasted of what was read ahead, and where requests begin: by one reader, watched in both ways that a kernel has.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use cachetop::plan::Brackets;
use cachetop::sample::Counter;
use cachetop::sample::Sample;
use cachetop::sample::Source as _;
use cachetop::session::Options;
use cachetop::session::Session;

use crate::part::LASTS;
use crate::part::PAGES;
use crate::part::Stops;
use crate::part::pages_advise;
use crate::races::next;
use crate::tools::*;

/// Of all threads of this process.
fn of_own(sample: &Sample, counter: Counter) -> u64 {
    let rows = sample.rows.iter().filter(|row| row.tgid == std::process::id());
    rows.map(|row| row.counters.get(counter)).sum()
}

/// What is read ahead of one who reads from end to end is used or wasted, also where another takes single pages away meanwhile: some of
/// them after a read was seen that they are for.
pub fn read_ahead_beside_evictions(dir: &Path) {
    let path = &cold_file(&dir.join("file"), PAGES);
    for without_functions in [false, true] {
        let options = Options { include_self: true, without_functions, ..Options::default() };
        let Ok(mut session) = Session::open(&options) else {
            println!("     not on this kernel: without functions");
            continue;
        };
        let (before, stop) = (session.sample().unwrap(), &AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (file, mut seed) = (File::open(path).unwrap(), 1);
                while !stop.load(SeqCst) {
                    pages_advise(&file, next(&mut seed) % (PAGES - 1), 1, libc::POSIX_FADV_DONTNEED);
                }
            });
            let stops = Stops(stop);
            let file = File::open(path).unwrap();
            let mut buffer = vec![0; usize::try_from(16 * page_size()).unwrap()];
            let begin = Instant::now();
            while begin.elapsed() < LASTS / 2 {
                for at in (0..PAGES).step_by(16) {
                    let _ = file.read_at(&mut buffer, at * page_size()).unwrap();
                }
                advise(&file, libc::POSIX_FADV_DONTNEED);
            }
            drop(stops);
            // What is on its way as the last read ends stays.
            let begin = Instant::now();
            while resident(&file) > 0 && begin.elapsed() < LASTS {
                advise(&file, libc::POSIX_FADV_DONTNEED);
            }
            drop_cache(&file);
        });
        let sample = session.sample().unwrap();
        let figure = |counter| of_own(&sample, counter);
        let wasted = [&sample, &before].map(|s| s.total.get(Counter::PrefetchWasted));
        let (ahead, used, wasted) =
            (figure(Counter::Prefetched), figure(Counter::ReadAheadHits), wasted[0] - wasted[1]);
        let mut lost = sample.lost.since(&before.lost);
        lost.by_reason.retain(|(why, _)| why != "order");
        let again = figure(Counter::LostOrder) + 16 * passed_by(&lost);
        println!(
            "     without functions {without_functions}: {ahead} ahead, {used} used, {wasted} wasted, {again} again"
        );
        // Told by its calls alone, what is added twice within a read is not known. An event that was passed by may be of a request.
        let by_calls = session.plan().brackets == Brackets::Tracepoints;
        let twice = (again + if by_calls { 8 + ahead / 5000 } else { 0 }).min(ahead / 2);
        assert!((ahead - twice..=ahead + twice).contains(&(used + wasted)), "{used} + {wasted} of {ahead}");
        assert!(wasted > 0 && used > 0, "{used} {wasted}");
    }
}

/// Touches each page of a file through a mapping: at a multiple of what a huge page has, or a page behind one, where none can be mapped whole.
fn touch_all(file: &File, shifted: bool) {
    let (size, huge) = (usize::try_from(PAGES * page_size()).unwrap(), 2 << 20);
    let (reserve, flags) = (size + 2 * huge, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: a new mapping, which nobody else uses.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), reserve, libc::PROT_NONE, flags, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED);
    let shift = if shifted { usize::try_from(page_size()).unwrap() } else { 0 };
    let begin = (at as usize).next_multiple_of(huge) + shift;
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    // SAFETY: it lies in what was just reserved; each read is of a page of the file; both mappings go together.
    unsafe {
        let at = libc::mmap(begin as *mut _, size, libc::PROT_READ, flags, file.as_raw_fd(), 0);
        assert_ne!(at, libc::MAP_FAILED);
        for page in 0..usize::try_from(PAGES).unwrap() {
            at.cast::<u8>().add(page * usize::try_from(page_size()).unwrap()).read_volatile();
        }
    }
    // SAFETY: as above.
    assert_eq!(unsafe { libc::munmap(at, reserve) }, 0);
}

/// Folios of several pages are mapped as a whole by one fault: all of their pages were used, as far as anybody can tell.
pub fn mapped_as_a_whole(dir: &Path) {
    let file = File::open(cold_file(&dir.join("file"), PAGES)).unwrap();
    for without_functions in [false, true] {
        let options = Options { include_self: true, without_functions, ..Options::default() };
        let Ok(mut session) = Session::open(&options) else {
            println!("     not on this kernel: without functions");
            continue;
        };
        // No event tells of a huge page that is mapped.
        let shifted = session.plan().brackets == Brackets::Tracepoints;
        for read_too in [false, true] {
            drop_cache(&file);
            let before = session.sample().unwrap();
            touch_all(&file, shifted);
            if read_too {
                let mut buffer = vec![0; usize::try_from((PAGES - 1) * page_size()).unwrap()];
                file.read_exact_at(&mut buffer, 0).unwrap();
            }
            drop_cache(&file);
            let sample = session.sample().unwrap();
            let figure = |counter| of_own(&sample, counter);
            let wasted = [&sample, &before].map(|s| s.total.get(Counter::PrefetchWasted));
            let (ahead, wasted, used) =
                (figure(Counter::Prefetched), wasted[0] - wasted[1], figure(Counter::ReadAheadHits));
            println!("     {ahead} read ahead, {wasted} wasted, {used} used by reads");
            assert!(ahead > PAGES / 2, "{ahead} read ahead");
            // Others on the machine may waste some meanwhile.
            assert!(
                used == 0 && wasted < PAGES / 16,
                "{wasted} wasted, {used} used by reads of what was mapped"
            );
        }
    }
}

/// Reads into more buffers than a kernel program looks at are seen from where they begin, also if their first pages are waited for.
pub fn many_buffers(dir: &Path) {
    const BYTES: u64 = 40_000;
    let file = File::open(cold_file(&dir.join("file"), PAGES)).unwrap();
    for (without_functions, buffers) in [(false, 9), (true, 8), (true, 9), (true, 64)] {
        let options = Options { include_self: true, without_functions, ..Options::default() };
        let Ok(mut session) = Session::open(&options) else {
            println!("     not on this kernel: without functions");
            continue;
        };
        drop_cache(&file);
        session.sample().unwrap();
        let mut touched = 0;
        for at in (7..(PAGES - 1) * page_size() - BYTES).step_by(usize::try_from(BYTES).unwrap()) {
            let mut bytes = vec![0_u8; usize::try_from(BYTES).unwrap()];
            let mut parts: Vec<std::io::IoSliceMut<'_>> = bytes
                .chunks_mut(usize::try_from(BYTES).unwrap().div_ceil(buffers))
                .map(std::io::IoSliceMut::new)
                .collect();
            let read = rustix::io::preadv(&file, &mut parts, at).unwrap();
            assert_eq!(read as u64, BYTES);
            touched += (at + BYTES - 1) / page_size() - at / page_size() + 1;
        }
        let sample = session.sample().unwrap();
        let counters = [Counter::ReadHits, Counter::ReadAheadHits, Counter::ReadMisses];
        let counted: u64 = counters.iter().map(|c| of_own(&sample, *c)).sum();
        assert_eq!(counted, touched, "without functions: {without_functions}, {buffers} buffers");
    }
}
