//! What is cached of many files, asked by one thread within one limit of time. A file of which there is no answer has a
//! reason instead.

use std::collections::HashMap;
use std::fs::File;
use std::hash::Hash;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::Duration;
use std::time::Instant;

use rustix::fs::CWD;

use super::LOOK;
use super::LOOKED_AT;
use super::is_interrupted;
use super::is_name_cached;
use crate::residency::Ask;
use crate::residency::Stop;
use crate::residency::kinds;

/// Pages of a file: cached, and all.
pub(in crate::report) type Pages = (u64, u64);

/// The number of its inode must be this.
fn ask(path: &Path, inode: u64, stop: Stop<'_>) -> Result<Pages, String> {
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => "not there any more".to_owned(),
        _ => crate::residency::words(&e),
    };
    // Asking would bring the inode back, which is the next run's business. Where the kernel (before 5.12) does not tell
    // whether it is there, it most likely is: the run has just used it.
    match is_name_cached(path) {
        Ok(false) => return Err("its name left the cache before it was asked for".into()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    let meta = std::fs::metadata(path).map_err(failed)?;
    if !meta.is_file() || meta.ino() != inode {
        return Err("another file has its name by now".into());
    }
    kinds::bears_opening(CWD, path).map_err(|e| e.to_string())?;
    let open = |flags| File::options().read(true).custom_flags(flags | libc::O_NONBLOCK).open(path);
    // Only the owner may ask for O_NOATIME.
    let file = open(libc::O_NOATIME).or_else(|_| open(0)).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() || meta.ino() != inode {
        return Err("another file has its name by now".into());
    }
    let told = Ask::best().at_most(LOOKED_AT).of_file(file.as_fd()).until(file.as_fd(), meta.len(), stop);
    told.map(|told| (told.cached, told.pages)).map_err(|e| e.to_string())
}

/// Asks for all of them in turn, for so long at most, and no longer than nobody wants an end.
pub(in crate::report) fn batch<K: Copy + Eq + Hash + Send + 'static>(
    files: Vec<(K, PathBuf, u64)>,
    most: Duration,
) -> HashMap<K, Result<Pages, String>> {
    let late = || Err("no answer in time".to_owned());
    let mut out: HashMap<K, _> = files.iter().map(|(key, ..)| (*key, late())).collect();
    let over = Arc::new(AtomicBool::new(false));
    let (tell, told) = mpsc::channel();
    let stop = Arc::clone(&over);
    // A server that is gone lets nobody go who asks for a file: not this thread, then.
    let thread = std::thread::Builder::new().name("certificate".into()).spawn(move || {
        for (key, path, inode) in files {
            let is_over = || stop.load(Relaxed);
            if is_over() || tell.send((key, ask(&path, inode, &is_over))).is_err() {
                break;
            }
        }
    });
    let until = Instant::now() + most;
    while thread.is_ok() {
        let left = until.saturating_duration_since(Instant::now());
        match told.recv_timeout(left.min(LOOK)) {
            Ok((key, answer)) => drop(out.insert(key, answer)),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) if left.is_zero() || is_interrupted() => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        if left.is_zero() {
            break;
        }
    }
    over.store(true, Relaxed);
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn each_file_has_an_answer_or_a_reason() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let there = dir.path().join("there");
        std::fs::write(&there, vec![1; 5 * 4096 + 1]).unwrap();
        let inode = std::fs::metadata(&there).unwrap().ino();
        let files = vec![
            (1, there.clone(), inode),
            (2, there, inode + 1),
            (3, dir.path().join("gone"), 9),
            (4, dir.path().to_owned(), 9),
        ];
        // Known not to be there, and that is cached.
        assert!(std::fs::metadata(dir.path().join("gone")).is_err());
        let got = batch(files.clone(), Duration::from_secs(60));
        assert_eq!(got[&1], Ok((6, 6)));
        assert_eq!(got[&2], Err("another file has its name by now".into()));
        assert_eq!(got[&3], Err("not there any more".into()));
        assert!(got[&4].is_err());
        // No time at all.
        let got = batch(files, Duration::ZERO);
        assert_eq!(got.len(), 4);
    }
}
