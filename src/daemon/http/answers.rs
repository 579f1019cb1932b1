//! What is answered. Metrics are made once for all who ask for them at about the same time: many who ask cost neither time of
//! the sums, nor memory.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use crate::daemon::exposition::Format;
use crate::daemon::exposition::exposition;
use crate::daemon::sums::Sums;
use crate::daemon::web::Login;
use crate::daemon::web::Rules;

const TEXT: &str = "text/plain; charset=utf-8";
/// How old an answer may be that others have got already, and none of which the sums have changed since.
const FRESH: Duration = Duration::from_millis(250);

/// A head of its own, and a body that others may have, too.
#[derive(Default)]
pub(super) struct Answer {
    head: Vec<u8>,
    body: Arc<[u8]>,
}

impl Answer {
    /// What `HEAD` gets, whatever became of it: the length stands in the head.
    pub(super) fn without_body(self) -> Self {
        Self { body: Arc::default(), ..self }
    }

    /// What is left when so much was sent.
    pub(super) fn rest(&self, sent: usize) -> &[u8] {
        match self.head.get(sent..) {
            Some(rest) if !rest.is_empty() => rest,
            _ => self.body.get(sent.saturating_sub(self.head.len())..).unwrap_or_default(),
        }
    }
}

fn response(
    status: &str,
    kind: &str,
    more: &str,
    body: Arc<[u8]>,
    (rules, with_body): (&Rules, bool),
) -> Answer {
    let length = body.len();
    let headers = &rules.headers;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}{more}\r\n"
    );
    Answer { head: head.into_bytes(), body: if with_body { body } else { Arc::default() } }
}

fn said(status: &str, more: &str, rules: &Rules) -> Answer {
    response(status, TEXT, more, format!("{status}\n").into_bytes().into(), (rules, true))
}

pub(super) fn status(status: &str, rules: &Rules) -> Answer {
    said(status, "", rules)
}

/// To whom has no password, or a wrong one.
pub(super) fn stranger(rules: &Rules) -> Answer {
    said("401 Unauthorized", "WWW-Authenticate: Basic realm=\"cachetopd\", charset=\"UTF-8\"\r\n", rules)
}

/// The value of a header of a request, the first of that name.
fn header<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    let mut lines = head.split("\r\n").skip(1).filter_map(|l| l.split_once(':'));
    lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Who says to be asking.
pub(super) fn login(request: &[u8]) -> Option<Login> {
    header(&String::from_utf8_lossy(request), "authorization").and_then(Login::read)
}

/// Metrics as somebody got them: the format, what they were made of, and when.
type Made = (Format, (u64, Instant), Arc<[u8]>);

/// What there is to tell.
pub(super) struct Answers {
    sums: Arc<Mutex<Sums>>,
    made: Vec<Made>,
}

impl Answers {
    pub(super) fn new(sums: &Arc<Mutex<Sums>>) -> Self {
        Self { sums: Arc::clone(sums), made: Vec::new() }
    }

    fn metrics(&mut self, format: Format) -> Arc<[u8]> {
        let sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let samples = sums.ticks;
        self.made.retain(|(_, (of, when), _)| *of == samples && when.elapsed() < FRESH);
        if let Some((.., body)) = self.made.iter().find(|(f, ..)| *f == format) {
            return Arc::clone(body);
        }
        let body: Arc<[u8]> = exposition(&sums, format).into();
        self.made.push((format, (samples, Instant::now()), Arc::clone(&body)));
        body
    }

    fn alive(&self) -> bool {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner).alive()
    }

    /// The answer to a request that is whole, of somebody who may ask.
    pub(super) fn answer(&mut self, request: &[u8], rules: &Rules) -> Answer {
        let text = String::from_utf8_lossy(request);
        let mut words = text.split("\r\n").next().unwrap_or_default().split(' ');
        let (method, target, version) = (words.next(), words.next(), words.next());
        let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0")) = (method, target, version) else {
            return status("400 Bad Request", rules);
        };
        if !matches!(method, "GET" | "HEAD") {
            let allow = "Allow: GET, HEAD\r\n";
            return response("405 Method Not Allowed", TEXT, allow, Arc::default(), (rules, true));
        }
        let how = (rules, method == "GET");
        let plain = |text: &str| response("200 OK", TEXT, "", text.as_bytes().into(), how);
        match path(target) {
            "/metrics" => {
                let format = Format::accepted(header(&text, "accept").unwrap_or_default());
                response("200 OK", format.content_type(), "", self.metrics(format), how)
            }
            "/healthz" if self.alive() => plain("ok\n"),
            "/healthz" => status("503 Service Unavailable", rules),
            "/" => plain("cachetopd: /metrics, /healthz\n"),
            _ => status("404 Not Found", rules),
        }
    }
}

/// The path of what is asked for; a proxy sends the whole address (RFC 9112, 3.2.2).
fn path(target: &str) -> &str {
    let after_scheme = ["http://", "https://"].iter().find_map(|scheme| {
        let (begin, rest) = target.split_at_checked(scheme.len())?;
        begin.eq_ignore_ascii_case(scheme).then_some(rest)
    });
    let path = after_scheme.map_or(target, |rest| rest.find(['/', '?']).map_or("/", |at| &rest[at..]));
    match path.split('?').next().unwrap_or_default() {
        "" if after_scheme.is_some() => "/",
        path => path,
    }
}
