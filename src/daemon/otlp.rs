//! `--otlp`: metrics are sent to a receiver, by OTLP over HTTP with protobuf.
//!
//! One thread makes a request of the sums at each export, and sends it. It sleeps until the next one, or until it is time to
//! try again: a receiver that is down costs an attempt now and then, and so much memory for what waits. Of too much the
//! oldest goes. Values are since a beginning, so that what is left out costs points in between, and no counts.

mod client;
mod encode;
mod names;
mod target;
mod wire;

use std::collections::VecDeque;
use std::io;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use std::time::Instant;

use jiff::Timestamp;

use self::client::Answer;
use self::client::Client;
use self::encode::Encoder;
pub use self::target::Target;
use super::sums::Pushed;
use super::sums::Sums;
use crate::privilege;
use crate::text::foreign::Foreign;
use crate::text::words;

/// Bytes that wait at most; one request waits whatever its size is.
const ROOM: usize = 4 << 20;
/// At the end: how long what waits may take.
pub const FLUSH: Duration = Duration::from_secs(5);

/// How long it is waited before it is tried again: at first, and at most; and at most where the receiver says how long.
#[derive(Debug, Clone, Copy)]
struct Patience {
    first: Duration,
    most: Duration,
    told: Duration,
}

const PATIENCE: Patience =
    Patience { first: Duration::from_secs(1), most: Duration::from_secs(60), told: Duration::from_secs(600) };

/// The thread that sends.
pub struct Sender {
    /// Dropped: it is to end.
    over: Option<SyncSender<()>>,
    ended: Receiver<()>,
    flush: Duration,
}

impl Sender {
    /// Begins to send.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new(target: &Target, sums: Arc<Mutex<Sums>>, say: fn(&str)) -> io::Result<Self> {
        Self::with(target, sums, say, PATIENCE, ROOM, FLUSH)
    }

    fn with(
        target: &Target,
        sums: Arc<Mutex<Sums>>,
        say: fn(&str),
        patience: Patience,
        room: usize,
        flush: Duration,
    ) -> io::Result<Self> {
        let engine = {
            let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
            sums.pushed = Some(Pushed::default());
            sums.engine
        };
        let (over, receiver) = sync_channel(0);
        let (end, ended) = sync_channel(1);
        let worker = Worker {
            encoder: Encoder::new(&target.resource, engine),
            client: Client::new(target),
            target: target.clone(),
            sums,
            say,
            patience,
            room,
            flush,
            queue: VecDeque::new(),
            failures: 0,
            again: None,
            made: None,
        };
        let work = move || {
            // It needs nothing but the connection.
            match privilege::keep(&[]) {
                Ok(()) => worker.work(&receiver),
                Err(e) => say(&format!("error: '--otlp' is not heeded: cannot give privileges back: {e}")),
            }
            let _ = end.send(());
        };
        std::thread::Builder::new().name("otlp".into()).spawn(work)?;
        Ok(Self { over: Some(over), ended, flush })
    }
}

impl Drop for Sender {
    /// Waits until all is sent, but not for ever: it may be in the midst of an attempt.
    fn drop(&mut self) {
        drop(self.over.take());
        let _ = self.ended.recv_timeout(self.flush);
    }
}

struct Worker {
    encoder: Encoder,
    client: Client,
    target: Target,
    sums: Arc<Mutex<Sums>>,
    say: fn(&str),
    patience: Patience,
    room: usize,
    flush: Duration,
    /// Requests as they are sent, the oldest first.
    queue: VecDeque<Vec<u8>>,
    /// Attempts in vain since the last that was not.
    failures: u32,
    /// Not before then.
    again: Option<Instant>,
    /// The time of the sample that the last request was made of.
    made: Option<Timestamp>,
}

impl Worker {
    fn work(mut self, over: &Receiver<()>) {
        let mut next = Instant::now() + self.target.every;
        loop {
            let now = Instant::now();
            if now >= next {
                self.make();
                // What was missed meanwhile is not made up for: there is one now.
                while next <= now {
                    next += self.target.every;
                }
            }
            self.send(self.target.timeout);
            let until =
                if self.queue.is_empty() { next } else { self.again.map_or(next, |again| again.min(next)) };
            match over.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let end = Instant::now() + self.flush;
        self.make();
        self.again = None;
        // Once more each, and not again.
        while !self.queue.is_empty() && self.again.is_none() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.send_one(left.min(self.target.timeout));
        }
    }

    fn count(&self, change: impl FnOnce(&mut Pushed)) {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let pushed = sums.pushed.get_or_insert_default();
        change(pushed);
        pushed.queued_bytes = self.queue.iter().map(|body| body.len() as u64).sum();
    }

    /// A request of now, unless there was no sample since the last one.
    fn make(&mut self) {
        let body = {
            let sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
            let time = sums.last.as_ref().map(|sample| sample.time);
            if time == self.made {
                return;
            }
            self.made = time;
            self.encoder.body(&sums)
        };
        let Some(body) = body else { return };
        self.queue.push_back(if self.target.gzip { compressed(&body) } else { body });
        let mut dropped = 0;
        while self.queue.len() > 1 && self.queue.iter().map(Vec::len).sum::<usize>() > self.room {
            self.queue.pop_front();
            dropped += 1;
        }
        self.count(|pushed| pushed.dropped += dropped);
    }

    /// What waits, unless it is too early.
    fn send(&mut self, timeout: Duration) {
        while !self.queue.is_empty() && self.again.is_none_or(|again| again <= Instant::now()) {
            self.send_one(timeout);
        }
    }

    fn send_one(&mut self, timeout: Duration) {
        let Some(body) = self.queue.front() else { return };
        match self.client.post(body, timeout) {
            Answer::Taken { refused_points, why } => {
                self.queue.pop_front();
                self.again = None;
                if std::mem::take(&mut self.failures) > 0 {
                    (self.say)(&format!(
                        "metrics are taken again by {}",
                        Foreign::from(self.target.url.clone())
                    ));
                }
                if refused_points > 0 {
                    let before = self.refused_points(refused_points);
                    if before == 0 {
                        let (why, points) =
                            (Foreign::from(why), words::many(refused_points, "point", "points"));
                        (self.say)(&format!(
                            "warning: the receiver of '--otlp' did not take {points}: {why}"
                        ));
                    }
                }
                self.count(|pushed| pushed.ok += 1);
            }
            Answer::Refused(why) => {
                self.queue.pop_front();
                self.again = None;
                self.trouble(&why, "it is not sent again");
                self.count(|pushed| pushed.refused += 1);
            }
            Answer::Later { why, after } => {
                let doubled = self.patience.first.saturating_mul(1 << self.failures.min(16));
                let wait = doubled.min(self.patience.most);
                let wait = after.map_or(wait, |after| after.max(wait).min(self.patience.told.max(wait)));
                // Not all machines of a fleet at once: up to a quarter more.
                let random = f64::from(random()) / f64::from(u32::MAX) / 4.0;
                self.again = Some(Instant::now() + wait + wait.mul_f64(random));
                self.trouble(&why, "it is tried again");
                self.count(|pushed| pushed.retried += 1);
            }
        }
    }

    fn refused_points(&self, n: u64) -> u64 {
        let mut before = 0;
        self.count(|pushed| {
            before = pushed.refused_points;
            // Whatever a receiver says.
            pushed.refused_points = pushed.refused_points.saturating_add(n);
        });
        before
    }

    /// Told once for each stretch of it.
    fn trouble(&mut self, why: &str, then: &str) {
        if self.failures == 0 {
            let (url, why) = (Foreign::from(self.target.url.clone()), Foreign::from(why.to_owned()));
            (self.say)(&format!("warning: metrics are not taken by {url}: {why}; {then}"));
        }
        self.failures = self.failures.saturating_add(1);
    }
}

fn compressed(body: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    // Into memory: nothing can fail.
    let _ = out.write_all(body);
    out.finish().unwrap_or_default()
}

fn random() -> u32 {
    let mut bytes = [0; 4];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u32::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests;
