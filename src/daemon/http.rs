//! Answers to HTTP, as much of it as a scrape needs: one thread, so many connections, and no patience.
//!
//! A library would bring threads without bounds (tiny_http) or a runtime. Here a connection is asked once, answered, and
//! closed; whoever is slow is closed, too, and of too many the oldest goes, of those who have most.

mod answers;
mod connection;

use std::collections::HashMap;
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::net::SocketFlags;

use super::sums::Sums;
use super::web::Checker;
use super::web::Web;
use answers::Answers;
use connection::Connection;
use connection::Phase;
use connection::Step;

/// Connections at once.
const CONNECTIONS: usize = 128;
/// Taken in at once: those that are connected have their turn, too.
const AT_ONCE: usize = 16;

/// Who answers.
pub(super) struct Server {
    listeners: Vec<OwnedFd>,
    web: Web,
    answers: Answers,
    checker: Checker,
    all: Vec<Connection>,
    number: u64,
}

impl Server {
    /// One who has all that answering takes, on listening sockets.
    ///
    /// # Errors
    /// When the system refuses, or the thread that looks at passwords.
    pub(super) fn new(listeners: Vec<OwnedFd>, web: Web, sums: &Arc<Mutex<Sums>>) -> io::Result<Self> {
        for listener in &listeners {
            rustix::io::ioctl_fionbio(listener, true)?;
        }
        let (answers, checker) = (Answers::new(sums), Checker::start()?);
        Ok(Self { listeners, web, answers, checker, all: Vec::new(), number: 0 })
    }

    /// Answers for ever.
    ///
    /// # Errors
    /// When the system refuses to wait.
    pub(super) fn serve(mut self) -> io::Result<()> {
        let listeners = std::mem::take(&mut self.listeners);
        loop {
            self.turn(&listeners)?;
        }
    }

    /// Waits, and lets everybody go on for whom there is something.
    fn turn(&mut self, listeners: &[OwnedFd]) -> io::Result<()> {
        let mut fds = vec![PollFd::new(self.checker.bell(), PollFlags::IN)];
        fds.extend(listeners.iter().map(|l| PollFd::new(l, PollFlags::IN)));
        fds.extend(self.all.iter().map(|c| PollFd::new(&c.stream, c.wants())));
        // Without connections there is nothing to be impatient about.
        let timeout = (!self.all.is_empty()).then_some(Timespec { tv_sec: 1, tv_nsec: 0 });
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let (bell, rest) = ready.split_first().unwrap_or((&false, &[]));
        let (listening, connected) = rest.split_at_checked(listeners.len()).unwrap_or((rest, &[]));
        let mut connected = connected.iter();
        let mut all = std::mem::take(&mut self.all);
        all.retain_mut(|c| {
            let over = connected.next() == Some(&true) && self.step(c) == Step::Over;
            !over && !c.is_late()
        });
        self.all = all;
        if *bell {
            self.judge();
        }
        self.look();
        for (listener, _) in listeners.iter().zip(listening).filter(|(_, ready)| **ready) {
            self.accept(listener);
        }
        Ok(())
    }

    fn step(&mut self, c: &mut Connection) -> Step {
        let step = c.step();
        let Step::Asked { whole } = step else { return step };
        if !whole {
            let answer = answers::status("431 Request Header Fields Too Large", &c.rules);
            return c.answer(answer);
        }
        if !c.rules.users.is_empty() {
            let Some(login) = answers::login(&c.asked) else {
                let answer = answers::stranger(&c.rules);
                return c.answer(answer);
            };
            if !self.checker.knows(&login, &c.rules) {
                c.phase = Phase::Waits;
                return Step::Waits;
            }
        }
        let answer = self.answers.answer(&c.asked, &c.rules);
        c.answer(answer)
    }

    /// Answers whom a password was looked at of, and all who gave the same meanwhile.
    fn judge(&mut self) {
        let Some((number, right)) = self.checker.verdict() else { return };
        let mut all = std::mem::take(&mut self.all);
        all.retain_mut(|c| {
            if !matches!(c.phase, Phase::Waits) {
                return true;
            }
            let known = || answers::login(&c.asked).is_some_and(|login| self.checker.knows(&login, &c.rules));
            let answer = if right && known() {
                self.answers.answer(&c.asked, &c.rules)
            } else if c.number == number {
                answers::stranger(&c.rules)
            } else {
                return true;
            };
            c.answer(answer) != Step::Over
        });
        self.all = all;
    }

    /// Has the next password looked at: of who waits longest.
    fn look(&mut self) {
        let next = self.all.iter().find(|c| self.checker.is_free() && matches!(c.phase, Phase::Waits));
        let Some(c) = next else { return };
        if let Some(login) = answers::login(&c.asked) {
            let (number, rules) = (c.number, Arc::clone(&c.rules));
            self.checker.look(number, login, rules);
        }
    }

    fn accept(&mut self, listener: &OwnedFd) {
        for _ in 0..AT_ONCE {
            match rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => {
                    self.number += 1;
                    if self.all.len() >= CONNECTIONS {
                        self.make_room();
                    }
                    self.all.extend(Connection::new(self.number, TcpStream::from(socket), self.web.now()));
                }
                Err(rustix::io::Errno::AGAIN) => return,
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
                Err(_) => {
                    // Out of descriptors, it may be: not again at once.
                    std::thread::sleep(Duration::from_millis(50));
                    return;
                }
            }
        }
    }

    /// One that was answered goes; else the oldest of the address that has most: one machine does not drive out all others.
    fn make_room(&mut self) {
        let mut by: HashMap<_, usize> = HashMap::new();
        for c in &self.all {
            *by.entry(c.peer).or_default() += 1;
        }
        let most = by.values().copied().max();
        let answered = self.all.iter().position(|c| matches!(c.phase, Phase::Lingers(_)));
        let oldest = || self.all.iter().position(|c| by.get(&c.peer).copied() == most);
        if let Some(at) = answered.or_else(oldest) {
            self.all.remove(at);
        }
    }
}

#[cfg(test)]
mod tests;
