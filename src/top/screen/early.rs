//! Until hooks are attached there is no screen, and nobody who takes signals as events: one that asks for the end then is
//! remembered here.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use signal_hook::SigId;
use signal_hook::consts::SIGHUP;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;

use super::Event;
use super::Events;
use crate::exit::Failure;
use crate::top::sampler::Report;
use crate::top::scene::Scene;
use crate::top::settings::Settings;

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Whether a signal asked for the end. Where it goes, others have taken over.
pub(super) struct Early {
    asked: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Early {
    pub(super) fn new() -> io::Result<Self> {
        let mut early = Self { asked: Arc::default(), handlers: Vec::new() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            early.handlers.push(signal_hook::flag::register(signal, Arc::clone(&early.asked))?);
        }
        Ok(early)
    }

    pub(super) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Waits until counting has begun; `None`: the end is asked for, whatever became of it. Until then the terminal is left
    /// alone: errors are plain text.
    pub(super) fn begun(&self, events: &mut dyn Events) -> Result<Option<(Scene, Settings)>, Failure> {
        loop {
            let event = events.next(Some(LOOK));
            if self.asked() {
                return Ok(None);
            }
            match event? {
                Some(Event::Began(both)) => return Ok(Some(*both)),
                Some(Event::Report(Report::Failed(failure))) => return Err(failure),
                _ => {}
            }
        }
    }
}

impl Drop for Early {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc;

    use super::*;

    #[test]
    fn who_asks_for_the_end_before_there_is_a_screen_gets_it() {
        let early = Early { asked: Arc::default(), handlers: Vec::new() };
        let (sender, mut events) = mpsc::channel();
        let failed = || Event::Report(Report::Failed(Failure::failed("no")));
        sender.send(failed()).unwrap();
        assert_eq!(early.begun(&mut events).map(drop).unwrap_err().message, "no");
        // What a signal made fail is no failure; and nobody waits for what does not come.
        early.asked.store(true, Ordering::Relaxed);
        sender.send(failed()).unwrap();
        assert!(early.begun(&mut events).unwrap().is_none());
        assert!(early.begun(&mut events).unwrap().is_none());
    }
}
