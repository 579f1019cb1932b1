//! SIGINT (Ctrl-C) and SIGTERM while files are looked at or acted on: the progress line goes, a word says how things
//! stand, and the process ends as any other that gets such a signal.

use std::io;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::thread::JoinHandle;

use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Handle;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::progress;

/// Held by what must not be cut in two.
static WHOLE: Mutex<()> = Mutex::new(());

/// No signal ends the process until this is dropped.
pub fn hold() -> MutexGuard<'static, ()> {
    WHOLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for signals until it is dropped.
#[derive(Debug)]
pub struct Watch {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    word: Arc<Mutex<Option<&'static str>>>,
}

impl Watch {
    /// Begins to wait; `word` is what is said when one comes. A signal that is ignored stays so: whoever started us in
    /// the background wants that.
    ///
    /// # Errors
    /// When the system refuses a signal handler.
    pub fn new(word: &'static str) -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().filter(|s| !ignored(*s)))?;
        let handle = signals.handle();
        let word = Arc::new(Mutex::new(Some(word)));
        let said = Arc::clone(&word);
        let thread = std::thread::Builder::new().spawn(move || {
            if let Some(signal) = signals.forever().next() {
                let _whole = hold();
                let _line = progress::silence();
                if let Some(word) = *said.lock().unwrap_or_else(PoisonError::into_inner) {
                    let _ = writeln!(io::stderr(), "cachedu: interrupted: {word}");
                }
                let _ = emulate_default_handler(signal);
            }
        })?;
        Ok(Self { handle, thread: Some(thread), word })
    }

    /// From now on nothing is said: the work is done.
    pub fn done(&self) {
        *self.word.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn ignored(signal: libc::c_int) -> bool {
    // SAFETY: zeros are a valid value of this structure of numbers, a pointer and an optional function.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is set; what is set already is written to a structure of our own.
    let ret = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    ret == 0 && now.sa_sigaction == libc::SIG_IGN
}
