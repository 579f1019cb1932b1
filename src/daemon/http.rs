//! Answers to HTTP, as much of it as a scrape needs: one thread, so many connections, and no patience.
//!
//! A library would bring threads without bounds (tiny_http) or a runtime. Here a connection is asked once, answered, and
//! closed; whoever is slow is closed, too, and of too many the oldest goes.

use std::io;
use std::io::Read as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;

use super::exposition::Format;
use super::exposition::exposition;
use super::sums::Sums;

/// Connections at once.
const CONNECTIONS: usize = 32;
/// Bytes of a request.
const REQUEST: usize = 8192;
/// How long a connection may take, from its beginning to its end.
const PATIENCE: Duration = Duration::from_secs(10);

struct Connection {
    stream: TcpStream,
    began: Instant,
    asked: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
}

/// What became of it.
enum Step {
    Waits,
    Over,
}

impl Connection {
    fn step(&mut self, sums: &Mutex<Sums>) -> Step {
        if self.answer.is_empty() {
            let mut piece = [0; 2048];
            match self.stream.read(&mut piece) {
                Ok(0) => return Step::Over,
                Ok(n) => self.asked.extend_from_slice(piece.get(..n).unwrap_or_default()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Step::Waits,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => return Step::Waits,
                Err(_) => return Step::Over,
            }
            let whole = self.asked.windows(4).any(|w| w == b"\r\n\r\n");
            if !whole && self.asked.len() < REQUEST {
                return Step::Waits;
            }
            self.answer =
                if whole { answer(&self.asked, sums) } else { status("431 Request Header Fields Too Large") };
        }
        match self.stream.write(self.answer.get(self.sent..).unwrap_or_default()) {
            Ok(n) => self.sent += n,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => return Step::Over,
        }
        if self.sent < self.answer.len() {
            return Step::Waits;
        }
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        Step::Over
    }
}

fn response(status: &str, kind: &str, more: &str, body: impl AsRef<[u8]>, with_body: bool) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n"
    );
    let mut out = head.into_bytes();
    if with_body {
        out.extend_from_slice(body);
    }
    out
}

fn status(status: &str) -> Vec<u8> {
    response(status, "text/plain; charset=utf-8", "", format!("{status}\n"), true)
}

/// The answer to a request that is whole.
fn answer(request: &[u8], sums: &Mutex<Sums>) -> Vec<u8> {
    let text = String::from_utf8_lossy(request);
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0")) = (method, target, version) else {
        return status("400 Bad Request");
    };
    if !matches!(method, "GET" | "HEAD") {
        let allow = "Allow: GET, HEAD\r\n";
        return response("405 Method Not Allowed", "text/plain; charset=utf-8", allow, "", true);
    }
    let accept = lines.filter_map(|l| l.split_once(':')).find(|(key, _)| key.eq_ignore_ascii_case("accept"));
    let body = method == "GET";
    let locked = || sums.lock().unwrap_or_else(PoisonError::into_inner);
    match target.split('?').next().unwrap_or_default() {
        "/metrics" => {
            let format = Format::accepted(accept.map_or("", |(_, kinds)| kinds));
            let all = exposition(&locked(), format);
            response("200 OK", format.content_type(), "", &all, body)
        }
        "/healthz" if locked().alive() => response("200 OK", "text/plain; charset=utf-8", "", "ok\n", body),
        "/healthz" => status("503 Service Unavailable"),
        "/" => response("200 OK", "text/plain; charset=utf-8", "", "cachetopd: /metrics, /healthz\n", body),
        _ => status("404 Not Found"),
    }
}

/// Answers for ever.
///
/// # Errors
/// When the system refuses to wait.
pub fn serve(listener: &TcpListener, sums: &Arc<Mutex<Sums>>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut all: Vec<Connection> = Vec::new();
    loop {
        let mut fds = vec![PollFd::new(listener, PollFlags::IN)];
        fds.extend(all.iter().map(|c| {
            PollFd::new(&c.stream, if c.answer.is_empty() { PollFlags::IN } else { PollFlags::OUT })
        }));
        // Without connections there is nothing to be impatient about.
        let timeout = (!all.is_empty()).then_some(Timespec { tv_sec: 1, tv_nsec: 0 });
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let mut n = 0;
        all.retain_mut(|c| {
            n += 1;
            let over = ready.get(n) == Some(&true) && matches!(c.step(sums), Step::Over);
            !over && c.began.elapsed() < PATIENCE
        });
        if ready.first() == Some(&true) {
            accept(listener, &mut all);
        }
    }
}

fn accept(listener: &TcpListener, all: &mut Vec<Connection>) {
    // Not all that wait: those that are connected have their turn, too.
    for _ in 0..CONNECTIONS {
        match listener.accept() {
            Ok((stream, _)) => {
                if stream.set_nonblocking(true).is_err() {
                    continue;
                }
                if all.len() >= CONNECTIONS {
                    all.remove(0);
                }
                all.push(Connection {
                    stream,
                    began: Instant::now(),
                    asked: Vec::new(),
                    answer: Vec::new(),
                    sent: 0,
                });
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => {
                // Out of descriptors, it may be: not again at once.
                std::thread::sleep(Duration::from_millis(50));
                return;
            }
        }
    }
}
