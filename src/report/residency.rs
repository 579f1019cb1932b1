//! How much of a file is in the cache, and how those pages lie: [`crate::residency`] asked within limits, so that a report
//! comes whatever files there are, and whatever server they lie on.

mod batch;

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use std::time::Instant;

use rustix::fs::CWD;

pub(super) use batch::batch;

use super::data::Pattern;
use super::data::Residency;
use crate::residency;
use crate::residency::Ask;
use crate::residency::Run;
use crate::residency::Unknown;
use crate::residency::kinds;

/// Runs of cached pages that are looked at: enough to see a pattern.
const REMEMBERED: usize = 2048;
/// Pages that mincore(2) may look at in one file: 64 GiB, two or three seconds. It is never asked of more than that.
const LOOKED_AT: u64 = 1 << 24;
/// What the files of one round may take together.
const ROUND: Duration = Duration::from_secs(3);
/// How often signals are looked for meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// The pattern: nine runs in ten of each kind have the same length, and there are at least eight. The first run may be cut
/// by the beginning of the file, the last by its end.
fn pattern(runs: &[Run], pages: u64) -> Option<Pattern> {
    let mut lengths = Vec::new();
    let mut end = 0;
    for run in runs {
        if run.start > end {
            lengths.push((false, run.start - end));
        }
        if run.end() < pages {
            lengths.push((true, run.pages));
        }
        end = run.end();
    }
    let usual = |kind: bool| {
        let mut lengths: Vec<u64> =
            lengths.iter().skip(1).filter(|(k, _)| *k == kind).map(|(_, n)| *n).collect();
        lengths.sort_unstable();
        let middle = *lengths.get(lengths.len() / 2)?;
        let same = lengths.iter().filter(|n| **n == middle).count();
        (lengths.len() >= 8 && same * 10 >= lengths.len() * 9).then_some((middle, same))
    };
    let ((absent, a), (present, b)) = (usual(false)?, usual(true)?);
    Some(Pattern { absent, present, times: a.min(b) as u64 })
}

/// Opening a file of a FUSE file system may make it do anything, such as reading it all, or empty its cache.
pub(super) fn may_open(fs: Option<&str>) -> bool {
    fs.is_some_and(|fs| !kinds::is_fuse(fs))
}

/// The files of a report, asked for one after the other.
#[derive(Debug)]
pub struct Round {
    until: Instant,
}

impl Round {
    /// From now on so long.
    #[must_use]
    pub fn new() -> Self {
        Self { until: Instant::now() + ROUND }
    }

    /// Asks for a regular file. `None` for anything else: opening a device or a pipe could do something.
    ///
    /// The signals that would end the program wait while a report is made, and a network file system whose server is gone
    /// lets nobody go who asks for a file: so a thread asks, and here a signal or the end of the time is waited for, too.
    /// The signal stays where it is, for whoever is to act on it.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn ask(&self, path: &Path) -> Result<Option<Residency>, Unknown> {
        if is_interrupted() {
            return Err(Unknown::Interrupted);
        }
        let over = Arc::new(AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        let (path, stop) = (path.to_path_buf(), Arc::clone(&over));
        std::thread::Builder::new()
            .name("residency".into())
            .spawn(move || drop(tell.send(regular(&path, &|| stop.load(Relaxed)))))?;
        let why = loop {
            let left = self.until.saturating_duration_since(Instant::now());
            match told.recv_timeout(left.min(LOOK)) {
                Ok(told) => return told,
                Err(RecvTimeoutError::Disconnected) => break Unknown::Failed(libc::EIO),
                Err(RecvTimeoutError::Timeout) if is_interrupted() => break Unknown::Interrupted,
                Err(RecvTimeoutError::Timeout) if left.is_zero() => break Unknown::Late,
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        over.store(true, Relaxed);
        Err(why)
    }
}

impl Default for Round {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a signal waits that asks for an end.
fn is_interrupted() -> bool {
    // SAFETY: plain data that the call fills.
    let mut pending: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: a set of ours; then only read.
    unsafe {
        libc::sigpending(&raw mut pending) == 0
            && [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT]
                .iter()
                .any(|s| libc::sigismember(&raw const pending, *s) == 1)
    }
}

fn regular(path: &Path, stop: residency::Stop<'_>) -> Result<Option<Residency>, Unknown> {
    if !std::fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    kinds::bears_opening(CWD, path)?;
    let file = File::options().read(true).custom_flags(libc::O_NOATIME | libc::O_NONBLOCK).open(path);
    // Only the owner may ask for O_NOATIME.
    let file = file.or_else(|_| File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path))?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Ok(None);
    }
    let ask = Ask::best().at_most(LOOKED_AT).of_file(file.as_fd());
    let told = ask.until(file.as_fd(), meta.len(), stop)?;
    let runs = match told.cached {
        0 => Vec::new(),
        n if n == told.pages => Vec::new(),
        _ => ask.first_ranges(file.as_fd(), meta.len(), REMEMBERED, stop)?,
    };
    Ok(Some(Residency { cached: told.cached, pages: told.pages, pattern: pattern(&runs, told.pages) }))
}

/// Whether a path and its inode are in the dentry cache, so that asking for the file brings nothing into any cache.
///
/// # Errors
/// `NotFound`, or where the kernel (before 5.12) does not tell.
pub fn is_name_cached(path: &Path) -> io::Result<bool> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    let (mode, resolve) = (rustix::fs::Mode::empty(), rustix::fs::ResolveFlags::CACHED);
    match rustix::fs::openat2(rustix::fs::CWD, path, flags, mode, resolve) {
        Ok(_) => Ok(true),
        Err(rustix::io::Errno::AGAIN) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_name_in_use_is_cached() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(is_name_cached(file.path()).unwrap());
        let gone = is_name_cached(Path::new("/no/such/file"));
        // Names that do not exist are cached or not, too.
        assert!(matches!(&gone, Ok(false)) || gone.unwrap_err().kind() == io::ErrorKind::NotFound);
    }

    /// A signal that waits ends the question, and still waits for whoever acts on it.
    #[test]
    fn a_signal_is_heeded() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // SAFETY: plain data, initialised by the calls; the signal is sent to this thread alone, which has blocked it.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::pthread_kill(libc::pthread_self(), libc::SIGINT);
            assert_eq!(Round::new().ask(file.path()), Err(Unknown::Interrupted));
            let mut signal = 0;
            assert_eq!(libc::sigwait(&raw const set, &raw mut signal), 0);
            assert_eq!(signal, libc::SIGINT);
        }
        assert!(Round::new().ask(file.path()).is_ok());
    }

    fn runs(pages: impl Iterator<Item = bool>) -> (Vec<Run>, u64) {
        let pages: Vec<bool> = pages.collect();
        let (mut at, mut runs) = (0, Vec::new());
        for same in pages.chunk_by(|a, b| a == b) {
            if same[0] {
                runs.push(Run { start: at, pages: same.len() as u64, dirty: None });
            }
            at += same.len() as u64;
        }
        (runs, at)
    }

    #[test]
    fn every_14th_page() {
        let (runs, pages) = runs((0..1400).map(|n| n % 14 == 13));
        assert_eq!(pattern(&runs, pages).map(|p| (p.absent, p.present)), Some((13, 1)));
    }

    #[test]
    fn no_pattern_where_there_is_none() {
        let of = |(runs, pages): (Vec<Run>, u64)| pattern(&runs, pages);
        assert_eq!(of(runs(std::iter::repeat_n(true, 1000))), None);
        let wild = (0u64..4000).map(|n| n.wrapping_mul(n).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 == 0);
        assert_eq!(of(runs(wild)), None);
        assert_eq!(of(runs((0..60).map(|n| n % 14 == 13))), None, "four times is not enough");
    }

    #[test]
    fn a_file_just_written_is_cached_and_a_directory_is_not_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, vec![1; 10_000]).unwrap();
        let round = Round::new();
        let r = round.ask(&path).unwrap().unwrap();
        assert_eq!((r.cached, r.pages), (3, 3));
        assert_eq!(round.ask(dir.path()), Ok(None));
        std::fs::write(&path, "").unwrap();
        assert_eq!(round.ask(&path).unwrap().unwrap().pages, 0);
        assert_eq!(round.ask(Path::new("/no/such/file")), Err(Unknown::Vanished));
    }
}
