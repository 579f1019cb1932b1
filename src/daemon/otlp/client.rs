//! One request, and what its answer means.

use std::time::Duration;

use jiff::Timestamp;
use prost::Message as _;
use ureq::Agent;
use ureq::http::Response;
use ureq::unversioned::transport::DefaultConnector;

use super::names::Names;
use super::target::Target;
use super::wire;

/// Bytes of an answer that are read.
const ANSWER: u64 = 1 << 14;
/// Characters of a reason.
const REASON: usize = 200;

/// What became of a request.
pub(super) enum Answer {
    Taken {
        refused_points: u64,
        why: String,
    },
    /// For good.
    Refused(String),
    /// It may be taken later, and not before that time where the receiver said so.
    Later {
        why: String,
        after: Option<Duration>,
    },
}

pub(super) struct Client {
    agent: Agent,
    target: Target,
}

impl Client {
    pub(super) fn new(target: &Target) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // To whom it is told to, and to nobody else.
            .proxy(None)
            // Exports are far apart; what is kept open meanwhile is closed by the other side.
            .max_idle_connections(0)
            .user_agent(concat!("cachetopd/", env!("CARGO_PKG_VERSION")))
            .build();
        let agent = Agent::with_parts(config, DefaultConnector::default(), Names);
        Self { agent, target: target.clone() }
    }

    pub(super) fn post(&self, body: &[u8], timeout: Duration) -> Answer {
        let mut request = self.agent.post(&self.target.url).header("content-type", "application/x-protobuf");
        if self.target.gzip {
            request = request.header("content-encoding", "gzip");
        }
        for (name, value) in &self.target.headers {
            request = request.header(name, value);
        }
        match request.config().timeout_global(Some(timeout)).build().send(body) {
            Ok(answer) => judged(answer),
            Err(e) => Answer::Later { why: e.to_string(), after: None },
        }
    }
}

fn judged(mut answer: Response<ureq::Body>) -> Answer {
    let status = answer.status();
    let after = answer.headers().get("retry-after").and_then(|v| v.to_str().ok()).and_then(later);
    let body = answer.body_mut().with_config().limit(ANSWER).read_to_vec().unwrap_or_default();
    if status.is_success() {
        // What cannot be read says nothing against it.
        let partial = wire::Response::decode(body.as_slice()).ok().and_then(|r| r.partial);
        let partial = partial.unwrap_or_default();
        return Answer::Taken {
            refused_points: u64::try_from(partial.rejected).unwrap_or(0),
            why: partial.message,
        };
    }
    let why = wire::Status::decode(body.as_slice()).map(|s| s.message).unwrap_or_default();
    let why: String = why.chars().take(REASON).collect();
    let why = if why.is_empty() { status.to_string() } else { format!("{status}: {why}") };
    match status.as_u16() {
        429 | 502 | 503 | 504 => Answer::Later { why, after },
        _ => Answer::Refused(why),
    }
}

/// Seconds, or a date.
fn later(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(Timestamp::now())).unwrap_or_default())
}
