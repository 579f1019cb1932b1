//! A line on the terminal that tells how far a long walk has come.

use std::io::Write as _;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::Duration;

use super::walk::Walk;
use crate::view::text::bytes;

/// Nothing is said of what is over at once.
const PATIENCE: Duration = Duration::from_millis(500);
/// Often enough to be alive, seldom enough to cost nothing.
const BEAT: Duration = Duration::from_millis(200);

/// Does the work; if it takes long and somebody looks, says how many files were asked.
pub fn during<T>(walk: &Walk<'_>, noisy: bool, work: impl FnOnce() -> T) -> T {
    if !noisy {
        return work();
    }
    let (done, waiting) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut wait = PATIENCE;
            let mut shown = false;
            let mut err = std::io::stderr();
            while waiting.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Timeout) {
                let (files, pages) = (walk.files.load(Relaxed), walk.cached.load(Relaxed));
                let cached = bytes(pages * rustix::param::page_size() as u64);
                let _ = write!(err, "\r\x1b[K{files} files, {cached} cached");
                (wait, shown) = (BEAT, true);
            }
            if shown {
                let _ = write!(err, "\r\x1b[K");
            }
        });
        // Its end, by a panic as well, ends the line.
        let _done = done;
        work()
    })
}
