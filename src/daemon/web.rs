//! Who may ask, and how it is encrypted: the web configuration file of Prometheus' exporters, as far as it is spoken here.
//!
//! It is read before privileges are given back, and again when one of its files has changed: certificates are renewed without a
//! restart. What guards less than what is there is not taken then: a file that is just being written is empty for a moment.

mod config;
mod passwords;
mod tls;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use rustls::ServerConfig;

pub(super) use passwords::Checker;
pub(super) use passwords::Login;

use super::say::say;

/// At most so often it is asked whether files have changed.
const LOOK: Duration = Duration::from_secs(1);

/// What the file says.
#[derive(Default, Debug)]
pub(super) struct Rules {
    /// TLS is spoken, and nothing else.
    pub tls: Option<Arc<ServerConfig>>,
    /// Nobody is answered whose certificate is not signed by those that are named.
    pub certificates: bool,
    /// Who may ask, and the bcrypt of the password; nobody: everybody.
    pub users: BTreeMap<String, String>,
    /// Lines that go with every answer.
    pub headers: String,
    /// What it was read from.
    files: Vec<PathBuf>,
}

impl Rules {
    /// Whether strangers neither read nor ask.
    pub(super) fn closed(&self) -> bool {
        self.tls.is_some() && (self.certificates || !self.users.is_empty())
    }

    /// What they have that `other` has not.
    fn lost(&self, other: &Self) -> Option<&'static str> {
        [
            (self.tls.is_some() && other.tls.is_none(), "TLS"),
            (self.certificates && !other.certificates, "certificates of clients"),
            (!self.users.is_empty() && other.users.is_empty(), "passwords"),
        ]
        .into_iter()
        .find_map(|(lost, what)| lost.then_some(what))
    }
}

/// What a file was when it was read: device, inode, size, time in ns. `None`: it was not there.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// The rules, as new as their files.
pub(super) struct Web {
    rules: Arc<Rules>,
    path: Option<PathBuf>,
    stamps: Vec<Stamp>,
    looked: Instant,
}

impl Web {
    /// Those of a file; without one, everybody is answered, as it is.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(super) fn read(path: Option<&Path>) -> Result<Self, String> {
        let rules = path.map_or_else(|| Ok(Rules::default()), config::read)?;
        let stamps = stamps(&rules.files);
        Ok(Self { rules: Arc::new(rules), path: path.map(Path::to_owned), stamps, looked: Instant::now() })
    }

    /// As they are known.
    pub(super) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// As the files have them now, for one who has just come.
    pub(super) fn now(&mut self) -> &Arc<Rules> {
        if let Some(path) = self.path.as_deref().filter(|_| self.looked.elapsed() >= LOOK) {
            self.looked = Instant::now();
            let now = stamps(&self.rules.files);
            if now != self.stamps {
                self.stamps = now;
                let read = config::read(path).and_then(|new| match self.rules.lost(&new) {
                    Some(what) => Err(format!("it has no {what} any more: begin anew for that")),
                    None => Ok(new),
                });
                match read {
                    Ok(new) => {
                        say("the web configuration has changed, and holds from now on");
                        self.stamps = stamps(&new.files);
                        self.rules = Arc::new(new);
                    }
                    Err(e) => say(&format!("warning: the web configuration stays as it was: {e}")),
                }
            }
        }
        &self.rules
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |path: &PathBuf| {
        let file = std::fs::metadata(path).ok()?;
        Some((file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
    };
    files.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests;
