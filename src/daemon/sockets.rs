//! Where it listens: an address, or sockets that systemd has made and passes on (`sd_listen_fds(3)`).

use std::net::SocketAddr;
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;

use rustix::io::FdFlags;
use rustix::net::AddressFamily;
use rustix::net::SocketType;
use rustix::net::sockopt;

use crate::exit::Failure;

/// The first that is passed on: `SD_LISTEN_FDS_START`.
const FIRST: RawFd = 3;
/// So many at most.
const MOST: RawFd = 16;

/// Listens there; sockets of systemd go before.
///
/// # Errors
/// When it cannot, or what was passed on are no listening sockets.
pub(super) fn open(address: SocketAddr) -> Result<Vec<OwnedFd>, Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    let passed = passed(&variable).map_err(|e| {
        Failure::failed(format!("the sockets of LISTEN_FDS: {e}"))
            .remedy("they are those of a unit with ListenStream= (contrib/systemd/cachetopd.socket)")
    })?;
    if !passed.is_empty() {
        return Ok(passed);
    }
    let listener = TcpListener::bind(address).map_err(|e| {
        Failure::failed(format!("cannot listen on {address}: {e}"))
            .remedy("choose another one with '--listen'")
    })?;
    Ok(vec![listener.into()])
}

/// What was passed on to this process; nothing where it was meant for another one.
fn passed(variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<OwnedFd>, String> {
    let own = std::process::id().to_string();
    let (Some(count), true) = (variable("LISTEN_FDS"), variable("LISTEN_PID") == Some(own)) else {
        return Ok(Vec::new());
    };
    let count = count.parse().ok().filter(|n| (0..=MOST).contains(n));
    let count: RawFd = count.ok_or_else(|| format!("it is a number, up to {MOST}"))?;
    (FIRST..FIRST + count).map(|fd| listening(fd).map_err(|e| format!("descriptor {fd}: {e}"))).collect()
}

fn listening(fd: RawFd) -> Result<OwnedFd, String> {
    // SAFETY: it is asked whether it is open; nothing else is done with it before.
    let there = unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0;
    if !there {
        return Err("it is not open".into());
    }
    // SAFETY: it is open, and by the protocol it is ours.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let domain = sockopt::socket_domain(borrowed).map_err(|_| "it is no socket")?;
    let ours = [AddressFamily::INET, AddressFamily::INET6, AddressFamily::UNIX].contains(&domain);
    if !ours || sockopt::socket_type(borrowed) != Ok(SocketType::STREAM) {
        return Err("it is no socket of TCP, and no stream in the file system".into());
    }
    if sockopt::socket_acceptconn(borrowed) != Ok(true) {
        return Err("it does not listen (Accept=yes is not for this one)".into());
    }
    rustix::io::fcntl_setfd(borrowed, FdFlags::CLOEXEC).map_err(|e| e.to_string())?;
    // SAFETY: as above; nobody else in this process has it.
    Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) })
}

/// Where it is, as it can be asked.
pub(super) fn name(listener: &OwnedFd, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    let at = rustix::net::getsockname(listener.as_fd());
    match at.ok().and_then(|at| SocketAddr::try_from(at).ok()) {
        Some(address) => format!("{scheme}://{address}/metrics"),
        None => format!("a socket in the file system ({scheme})"),
    }
}
