//! A line on the terminal that says how far long work has come.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::mpsc;
use std::time::Duration;

/// Nothing is said of what is over at once.
const PATIENCE: Duration = Duration::from_millis(500);
/// Often enough to be alive, seldom enough to cost nothing.
const BEAT: Duration = Duration::from_millis(200);

/// Whether the line is there; who holds the lock has the line.
static LINE: Mutex<bool> = Mutex::new(false);

/// Takes the line away. None is written until the guard is dropped.
pub fn silence() -> MutexGuard<'static, bool> {
    let mut shown = LINE.lock().unwrap_or_else(PoisonError::into_inner);
    if std::mem::take(&mut *shown) {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    shown
}

/// Does the work; if it takes long and somebody looks, says how far it has come.
pub fn during<T>(noisy: bool, progress: impl Fn() -> String + Sync, work: impl FnOnce() -> T) -> T {
    if !noisy {
        return work();
    }
    let say = || {
        let mut shown = silence();
        let _ = write!(std::io::stderr(), "{}", progress());
        *shown = true;
    };
    // Its end, by a panic as well, ends the line.
    let _line = Line;
    meanwhile(say, work)
}

/// The line, until it is dropped.
struct Line;

impl Drop for Line {
    fn drop(&mut self) {
        drop(silence());
    }
}

/// Does the work; if it takes long, calls `say` now and then.
pub fn meanwhile<T>(say: impl Fn() + Sync, work: impl FnOnce() -> T) -> T {
    let (done, waiting) = mpsc::channel::<()>();
    let say = &say;
    std::thread::scope(|scope| {
        // Where no more threads may be started, nothing is said.
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
            let mut wait = PATIENCE;
            while waiting.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Timeout) {
                say();
                wait = BEAT;
            }
        });
        // Its end, by a panic as well, ends the thread.
        let _done = done;
        work()
    })
}
