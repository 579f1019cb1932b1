//! Where a receiver is, by its name.
//!
//! The resolver of the system may take long, and cannot be told to stop: a thread of its own asks it, and is left to itself
//! when the time of the request is over. ureq's panics where no thread may be started, and nothing is ever sent again.
//! An address needs none.

use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::net::ToSocketAddrs as _;
use std::sync::mpsc::sync_channel;

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::ResolvedSocketAddrs;
use ureq::unversioned::resolver::Resolver;
use ureq::unversioned::transport::NextTimeout;

use crate::limits::Shortage;

/// Addresses that are tried.
const MOST: usize = 16;
/// Of HTTP.
const PORT: u16 = 80;

#[derive(Debug)]
pub(super) struct Names;

impl Resolver for Names {
    fn resolve(&self, uri: &Uri, _: &Config, left: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let host = uri.host().ok_or(Error::HostNotFound)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).to_owned();
        let port = uri.port_u16().unwrap_or(PORT);
        let mut out = self.empty();
        match host.parse::<IpAddr>() {
            Ok(address) => out.push(SocketAddr::new(address, port)),
            Err(_) => found(host, port, left)?.into_iter().take(MOST).for_each(|address| out.push(address)),
        }
        if out.is_empty() { Err(Error::HostNotFound) } else { Ok(out) }
    }
}

/// What the system's resolver knows.
fn found(host: String, port: u16, left: NextTimeout) -> Result<Vec<SocketAddr>, Error> {
    let (tell, told) = sync_channel(1);
    let look = move || tell.send((host.as_str(), port).to_socket_addrs().map(Vec::from_iter));
    // Nobody waits for its end.
    let _ = std::thread::Builder::new().name("names".into()).spawn(look).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => Error::Io(io::Error::new(e.kind(), Shortage::Threads.to_string())),
        _ => Error::Io(e),
    })?;
    Ok(told.recv_timeout(*left.after).map_err(|_| Error::Timeout(left.reason))??)
}
