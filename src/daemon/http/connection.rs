//! One connection: a request, its answer, and the end.

use std::io;
use std::io::Read as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::net::Shutdown;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFlags;
use rustls::ServerConnection;

use super::answers;
use super::answers::Answer;
use crate::daemon::web::Rules;

/// Bytes of a request.
const REQUEST: usize = 8192;
/// How long a connection may take, from its beginning to its end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it is waited, after the answer, for the other side to have read it: what is closed before is lost on the way.
const LINGER: Duration = Duration::from_secs(1);
/// The first byte of whoever speaks TLS.
const HANDSHAKE: u8 = 0x16;

/// Where it is.
pub(super) enum Phase {
    /// It asks.
    Asks,
    /// It has asked; its password is not known yet.
    Waits,
    /// It is answered.
    Answers,
    /// It was answered, since then.
    Lingers(Instant),
}

pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) peer: Option<IpAddr>,
    pub(super) rules: Arc<Rules>,
    pub(super) stream: TcpStream,
    pub(super) phase: Phase,
    pub(super) asked: Vec<u8>,
    tls: Option<Box<ServerConnection>>,
    /// Nothing has come yet.
    fresh: bool,
    began: Instant,
    answer: Answer,
    sent: usize,
}

/// What became of it.
#[derive(PartialEq, Eq)]
pub(super) enum Step {
    Waits,
    /// All of the request is there, or more than there may be.
    Asked {
        whole: bool,
    },
    Over,
}

/// Whether it is only that there is nothing yet.
fn later(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Connection {
    /// `None`: it cannot be encrypted.
    pub(super) fn new(number: u64, stream: TcpStream, rules: &Arc<Rules>) -> Option<Self> {
        let tls = match &rules.tls {
            Some(server) => Some(Box::new(ServerConnection::new(Arc::clone(server)).ok()?)),
            None => None,
        };
        Some(Self {
            number,
            // Of a socket in the file system there is none.
            peer: stream.peer_addr().ok().map(|a| a.ip()),
            rules: Arc::clone(rules),
            stream,
            phase: Phase::Asks,
            asked: Vec::new(),
            tls,
            fresh: true,
            began: Instant::now(),
            answer: Answer::default(),
            sent: 0,
        })
    }

    /// What it waits for.
    pub(super) fn wants(&self) -> PollFlags {
        match self.phase {
            Phase::Asks if self.tls.as_ref().is_some_and(|t| t.wants_write()) => {
                PollFlags::IN | PollFlags::OUT
            }
            Phase::Asks | Phase::Lingers(_) => PollFlags::IN,
            Phase::Waits => PollFlags::empty(),
            Phase::Answers => PollFlags::OUT,
        }
    }

    /// Whether it took too long.
    pub(super) fn is_late(&self) -> bool {
        let lingers = matches!(self.phase, Phase::Lingers(since) if since.elapsed() >= LINGER);
        lingers || self.began.elapsed() >= PATIENCE
    }

    /// Goes on, as far as it can without waiting, and not long.
    pub(super) fn step(&mut self) -> Step {
        match self.phase {
            Phase::Asks => self.read(),
            // Nothing is waited for: it is gone.
            Phase::Waits => Step::Over,
            Phase::Answers => self.write(),
            Phase::Lingers(_) => self.drain(),
        }
    }

    /// Begins to answer.
    pub(super) fn answer(&mut self, answer: Answer) -> Step {
        let head = std::mem::take(&mut self.asked).starts_with(b"HEAD ");
        self.answer = if head { answer.without_body() } else { answer };
        self.phase = Phase::Answers;
        self.write()
    }

    fn read(&mut self) -> Step {
        let mut piece = [0; 2048];
        if self.fresh && self.tls.is_some() {
            match self.stream.peek(&mut piece[..1]) {
                Ok(1) if piece[0] != HANDSHAKE => {
                    // Somebody who forgot the "s", and is told so.
                    self.tls = None;
                    return self.answer(answers::status("400 Bad Request: this is HTTPS", &self.rules));
                }
                Ok(0) => return Step::Over,
                Ok(_) => self.fresh = false,
                Err(e) => return if later(&e) { Step::Waits } else { Step::Over },
            }
        }
        let read = match &mut self.tls {
            None => self.stream.read(&mut piece),
            Some(tls) => {
                let came = tls.read_tls(&mut self.stream);
                match came {
                    Ok(0) => return Step::Over,
                    Ok(_) => {}
                    Err(e) if later(&e) => {}
                    Err(_) => return Step::Over,
                }
                let understood = tls.process_new_packets();
                // What it says of an error, too.
                let said = flush(tls, &mut self.stream);
                if understood.is_err() || said.is_err() {
                    return Step::Over;
                }
                tls.reader().read(&mut piece)
            }
        };
        match read {
            Ok(0) => return Step::Over,
            Ok(n) => self.asked.extend_from_slice(piece.get(..n).unwrap_or_default()),
            Err(e) if later(&e) => return Step::Waits,
            Err(_) => return Step::Over,
        }
        // What was decrypted already is not told by poll(2).
        if let Some(tls) = &mut self.tls {
            while let Ok(n @ 1..) = tls.reader().read(&mut piece) {
                self.asked.extend_from_slice(piece.get(..n).unwrap_or_default());
            }
        }
        let whole = self.asked.windows(4).any(|w| w == b"\r\n\r\n");
        if whole || self.asked.len() >= REQUEST { Step::Asked { whole } } else { Step::Waits }
    }

    fn write(&mut self) -> Step {
        loop {
            let rest = self.answer.rest(self.sent);
            let wrote = match &mut self.tls {
                _ if rest.is_empty() => break,
                None => self.stream.write(rest),
                Some(tls) => {
                    // As much as it takes, which is bounded; then all of that goes out before it takes more.
                    let took = tls.writer().write(rest);
                    match flush(tls, &mut self.stream) {
                        Ok(()) => took,
                        Err(e) if later(&e) && took.as_ref().is_ok_and(|n| *n > 0) => took,
                        Err(e) => Err(e),
                    }
                }
            };
            match wrote {
                Ok(0) => return Step::Over,
                Ok(n) => self.sent += n,
                Err(e) if later(&e) => return Step::Waits,
                Err(_) => return Step::Over,
            }
        }
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            match flush(tls, &mut self.stream) {
                Ok(()) => {}
                Err(e) if later(&e) => return Step::Waits,
                Err(_) => return Step::Over,
            }
        }
        let _ = self.stream.shutdown(Shutdown::Write);
        self.phase = Phase::Lingers(Instant::now());
        self.answer = Answer::default();
        self.drain()
    }

    /// What it says after its request goes nowhere.
    fn drain(&mut self) -> Step {
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece) {
            Ok(1..) => Step::Waits,
            Err(e) if later(&e) => Step::Waits,
            Ok(0) | Err(_) => Step::Over,
        }
    }
}

/// Sends what there is to send.
fn flush(tls: &mut ServerConnection, to: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(to) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(_) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
