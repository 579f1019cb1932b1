//! A command of processes with many threads, more of which can run than there are processors: each is followed, with all
//! that it does.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use crate::tools::*;

/// Pages of the file, and how many are mapped around a fault.
const PAGES: u64 = 64;
const AROUND: u64 = 16;
/// What there is of each: processes, threads of one, and rounds of a thread.
const COUNTS: [u64; 3] = [40, 20, 2];

/// A thread reads each page by itself, and touches a mapping where nothing has been mapped around a fault yet.
fn work(file: &File) {
    let page = usize::try_from(page_size()).unwrap();
    let mut buffer = vec![0; page];
    for round in 0..COUNTS[2] {
        for n in 0..PAGES {
            assert!(file.read_at(&mut buffer, n * page_size()).unwrap() > 0);
        }
        let length = usize::try_from(PAGES).unwrap() * page;
        let (none, read, shared) = (std::ptr::null_mut(), libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a new mapping of the whole file, read within its length, which ends here.
        unsafe {
            let map = libc::mmap(none, length, read, shared, file.as_raw_fd(), 0);
            assert_ne!(map, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
            for n in (0..PAGES).step_by(usize::try_from(AROUND).unwrap()) {
                map.cast::<u8>().add(usize::try_from(n).unwrap() * page).read_volatile();
            }
            assert_eq!(libc::munmap(map, length), 0);
        }
        if round == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The command.
pub fn act(path: &str) -> ExitCode {
    let file = File::open(path).unwrap();
    let [processes, threads, _] = COUNTS;
    for _ in 0..processes {
        // SAFETY: there is one thread, so that the child finds nothing locked; it ends without what is registered for the end.
        match unsafe { libc::fork() } {
            0 => {
                std::thread::scope(|all| (0..threads).for_each(|_| drop(all.spawn(|| work(&file)))));
                // SAFETY: no pointers.
                unsafe { libc::_exit(0) }
            }
            pid => assert!(pid > 0),
        }
    }
    for _ in 0..processes {
        let mut status = 0;
        // SAFETY: room for a status.
        assert!(unsafe { libc::wait(&raw mut status) } > 0 && status == 0);
    }
    ExitCode::SUCCESS
}

/// A process that is not seen being made is missing with all that it does, and LOST has one for it.
pub fn processes_of_many_threads(dir: &Path) {
    const RUNS: usize = 2;
    let path = cold_file(&dir.join("file"), PAGES);
    hold_warm(&path);
    let all: u64 = COUNTS.iter().product();
    let (_, explained, _) = output(&mut cachestat("--explain --columns fault_hits"));
    // The tracepoint of that name knows less.
    let knows_faults = explained.contains(" filemap_map_pages");
    for run in 0..RUNS {
        let report = dir.join(format!("report-{run}"));
        let mut command = cachestat("--json");
        command.arg("-o").arg(&report).arg("--").arg(std::env::current_exe().unwrap());
        let (status, _, said) = output(command.arg("--members").arg(&path));
        assert_eq!(status, Some(0), "{said}");
        let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
        let of_path = |file: &&Value| file["path"].as_str() == path.to_str();
        let file = report["files"].as_array().unwrap().iter().find(of_path).unwrap();
        let reads: u64 = ["/hits", "/readahead_hits", "/misses"].map(|part| figure(file, part)).iter().sum();
        let faults = ["/fault_hits", "/fault_misses"].map(|part| file.pointer(part).and_then(Value::as_u64));
        let lost = figure(&report, "/lost/total");
        println!("     {reads} reads, {faults:?} faults, {lost} lost");
        let missing = (all * PAGES).checked_sub(reads).unwrap();
        assert!(missing <= lost, "{missing} of {} reads are missing, {lost} lost: {report}", all * PAGES);
        assert!(lost < all * PAGES / 1000, "{lost} lost: {}", report["lost"]);
        if knows_faults {
            let faults: u64 = faults.into_iter().flatten().sum();
            let missing = (all * PAGES / AROUND).abs_diff(faults);
            assert!(missing <= lost, "{faults} faults instead of {}, {lost} lost", all * PAGES / AROUND);
        }
    }
}
