//! Passwords, without their cost becoming a weapon.
//!
//! bcrypt takes a tenth of a second on purpose. One password is looked at at a time, by a thread that rests as long as a wrong
//! one took: whoever tries them gets half a core, however many they are. What was right is known again at once, so that
//! those who have it do not wait behind them. A name that does not exist costs what one that does costs.

use std::collections::BTreeMap;
use std::io;
use std::io::Read as _;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::channel;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::rand::SystemRandom;

use super::Rules;

/// A name and a password, as somebody gave them.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::daemon) struct Login {
    user: String,
    password: Vec<u8>,
}

impl Login {
    /// Of the value of a header: `Basic`, and the base64 of `name:password`.
    pub(in crate::daemon) fn read(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ')?;
        let both = STANDARD.decode(rest.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
        let colon = both.iter().position(|b| *b == b':')?;
        let user = String::from_utf8(both.get(..colon)?.to_vec()).ok()?;
        Some(Self { user, password: both.get(colon + 1..)?.to_vec() })
    }
}

struct Job {
    number: u64,
    login: Login,
    rules: Arc<Rules>,
}

/// What became of one.
struct Verdict {
    number: u64,
    login: Login,
    rules: Arc<Rules>,
    right: bool,
}

/// Who looks at passwords, and what was right.
pub(in crate::daemon) struct Checker {
    jobs: SyncSender<Job>,
    verdicts: Receiver<Verdict>,
    bell: UnixStream,
    busy: bool,
    key: hmac::Key,
    /// By user, the last that was right, and not as it was given.
    right: BTreeMap<String, hmac::Tag>,
}

impl Checker {
    /// Begins the thread that looks at them.
    ///
    /// # Errors
    /// When the system refuses a thread, a socket or random numbers.
    pub(in crate::daemon) fn start() -> io::Result<Self> {
        let (jobs, to_do) = sync_channel::<Job>(1);
        let (say, verdicts) = channel();
        let (bell, rings) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| io::Error::other("no random numbers"))?;
        std::thread::Builder::new().name("passwords".into()).spawn(move || work(&to_do, &say, rings))?;
        Ok(Self { jobs, verdicts, bell, busy: false, key, right: BTreeMap::new() })
    }

    /// What can be read when there is a verdict.
    pub(in crate::daemon) const fn bell(&self) -> &UnixStream {
        &self.bell
    }

    /// What is remembered of it: with the hash, since who changes the password changes what is known.
    fn text(login: &Login, rules: &Rules) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for piece in [login.user.as_bytes(), rules.users.get(&login.user)?.as_bytes(), &login.password] {
            text.extend_from_slice(&(piece.len() as u64).to_le_bytes());
            text.extend_from_slice(piece);
        }
        Some(text)
    }

    /// Whether it was right before.
    pub(in crate::daemon) fn knows(&self, login: &Login, rules: &Rules) -> bool {
        let known = Self::text(login, rules).zip(self.right.get(&login.user));
        // In the same time for all that are not it.
        known.is_some_and(|(text, right)| hmac::verify(&self.key, &text, right.as_ref()).is_ok())
    }

    /// Whether nobody is looked at.
    pub(in crate::daemon) const fn is_free(&self) -> bool {
        !self.busy
    }

    /// Has one looked at, of the connection of this number.
    pub(in crate::daemon) fn look(&mut self, number: u64, login: Login, rules: Arc<Rules>) {
        self.busy = self.jobs.try_send(Job { number, login, rules }).is_ok();
    }

    /// The connection that was looked at, and whether it may ask.
    pub(in crate::daemon) fn verdict(&mut self) -> Option<(u64, bool)> {
        let _ = self.bell.read(&mut [0; 16]);
        let verdict = self.verdicts.try_recv().ok()?;
        self.busy = false;
        let text = Self::text(&verdict.login, &verdict.rules).filter(|_| verdict.right);
        if let Some(text) = text {
            self.right.insert(verdict.login.user, hmac::sign(&self.key, &text));
        }
        Some((verdict.number, verdict.right))
    }
}

fn work(jobs: &Receiver<Job>, say: &std::sync::mpsc::Sender<Verdict>, mut bell: UnixStream) {
    while let Ok(Job { number, login, rules }) = jobs.recv() {
        let began = Instant::now();
        let right = is_right(&login, &rules);
        let took = began.elapsed();
        if say.send(Verdict { number, login, rules, right }).is_err() {
            return;
        }
        let _ = bell.write_all(&[1]);
        if !right {
            std::thread::sleep(took);
        }
    }
}

fn is_right(login: &Login, rules: &Rules) -> bool {
    let own = rules.users.get(&login.user);
    // Of somebody else, so that it takes as long.
    let Some(hash) = own.or_else(|| rules.users.values().next()) else { return false };
    bcrypt::verify(&login.password, hash).unwrap_or(false) && own.is_some()
}
