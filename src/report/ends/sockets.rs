//! The socket at the other end of a connection of this machine, by its number. TCP is read from `/proc/net`, which has both
//! addresses; UNIX sockets have no such table: the kernel is asked for each (sock_diag(7)), in this network namespace.

use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::fd::FromRawFd as _;
use std::os::fd::OwnedFd;

/// The number of a socket that a descriptor leads to.
pub(super) fn inode(target: &str) -> Option<&str> {
    target.strip_prefix("socket:[")?.strip_suffix(']')
}

/// The socket at the other end of one that a process has.
pub(super) fn other_end(pid: u32, inode: &str) -> Option<String> {
    let tcp = ["tcp", "tcp6"]
        .into_iter()
        .find_map(|table| in_table(&fs::read_to_string(format!("/proc/{pid}/net/{table}")).ok()?, inode));
    tcp.or_else(|| Some(unix_peer(inode.parse().ok()?)?.to_string()))
}

/// The same in a table of `/proc/net`: the connection between the same two addresses the other way round.
fn in_table(table: &str, inode: &str) -> Option<String> {
    let row = |line: &str| -> Option<(String, String, String)> {
        let mut words = line.split_whitespace().skip(1).map(String::from);
        let (local, remote) = (words.next()?, words.next()?);
        Some((local, remote, words.nth(6)?))
    };
    let rows: Vec<_> = table.lines().skip(1).filter_map(row).collect();
    let (local, remote, _) = rows.iter().find(|(_, _, i)| i == inode)?;
    let other = rows.iter().find(|(l, r, i)| l == remote && r == local && i != inode && i != "0")?;
    Some(other.2.clone())
}

/// `SOCK_DIAG_BY_FAMILY` of linux/sock_diag.h, `UDIAG_SHOW_PEER` and `UNIX_DIAG_PEER` of linux/unix_diag.h.
const BY_FAMILY: u16 = 20;
const SHOW_PEER: u32 = 4;
const PEER: u16 = 2;
/// Of a message, and of what the kernel says of a UNIX socket before its attributes.
const HEADER: usize = 16;

/// The socket that a UNIX socket is connected with. Nothing where the kernel cannot say it.
fn unix_peer(inode: u32) -> Option<u32> {
    // SAFETY: no pointers.
    let fd = unsafe {
        libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_SOCK_DIAG)
    };
    // SAFETY: it was just made, and is nobody else's.
    let socket = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })?;
    let request = request(inode);
    // SAFETY: the pointer and the length are of one slice. Without an address it goes to the kernel.
    let sent = unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    let mut answer = [0_u8; 512];
    // The kernel has answered before it returned: nothing is waited for.
    // SAFETY: the pointer and the length are of one array.
    let got = unsafe {
        libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), libc::MSG_DONTWAIT)
    };
    if sent < 0 || got < 0 {
        log::debug!("sock_diag: {}", io::Error::last_os_error());
        return None;
    }
    peer(answer.get(..usize::try_from(got).ok()?)?)
}

fn request(inode: u32) -> Vec<u8> {
    let (length, type_, flags) = (40_u32, BY_FAMILY, 1_u16);
    let mut out = Vec::new();
    out.extend(length.to_ne_bytes());
    out.extend(type_.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out.extend([0; 8]); // its number, and whose it is
    out.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    out.extend(u32::MAX.to_ne_bytes()); // in all states
    out.extend(inode.to_ne_bytes());
    out.extend(SHOW_PEER.to_ne_bytes());
    out.extend([0xff; 8]); // whatever its cookie
    out
}

/// The attribute that names the peer.
fn peer(answer: &[u8]) -> Option<u32> {
    let short = |at: usize| Some(u16::from_ne_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    if short(4)? != BY_FAMILY {
        return None;
    }
    let mut at = 2 * HEADER;
    loop {
        let (length, type_) = (usize::from(short(at)?), short(at + 2)?);
        if type_ == PEER && length == 8 {
            return Some(u32::from_ne_bytes(answer.get(at + 4..at + 8)?.try_into().ok()?))
                .filter(|i| *i != 0);
        }
        at += length.max(4).next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::net::UnixListener;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn number(socket: &impl std::os::fd::AsRawFd) -> u32 {
        let link = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        inode(link.to_str().unwrap()).unwrap().parse().unwrap()
    }

    #[test]
    fn who_is_at_the_other_end_of_a_connection() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 700 1 x\n\
             1: 0100007F:1538 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000 0 701 1 x\n\
             2: 0100007F:C001 0100007F:1538 01 00000000:00000000 00:00000000 00000000  1000 0 702 1 x\n\
             3: 0100007F:C002 0200007F:1538 01 00000000:00000000 00:00000000 00000000  1000 0 703 1 x\n";
        assert_eq!(in_table(table, "702").as_deref(), Some("701"));
        assert_eq!(in_table(table, "701").as_deref(), Some("702"));
        assert_eq!(
            (in_table(table, "700"), in_table(table, "703"), in_table(table, "9")),
            (None, None, None)
        );
    }

    #[test]
    fn who_is_at_the_other_end_of_a_unix_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listens = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (server, _) = listens.accept().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        for (a, b) in [(number(&client), number(&server)), (number(&one), number(&other))] {
            assert_eq!((unix_peer(a), unix_peer(b)), (Some(b), Some(a)));
            assert_eq!(other_end(std::process::id(), &a.to_string()), Some(b.to_string()));
        }
        // One that listens has no peer, one whose peer is gone has none any more, and some do not exist.
        assert_eq!(unix_peer(number(&listens)), None);
        drop(other);
        // A child that another test has just begun may hold it for a moment.
        let gone = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            unix_peer(number(&one)).is_none()
        });
        assert!(gone);
        assert_eq!((unix_peer(0), unix_peer(u32::MAX)), (None, None));
    }

    #[test]
    fn answers_that_are_cut_short() {
        let mut whole = request(7);
        whole.truncate(2 * HEADER);
        whole.extend([5, 0, 9, 0, 1, 0, 0, 0, 8, 0, 2, 0, 3, 0, 0, 0]);
        assert_eq!(peer(&whole), Some(3));
        for length in 0..whole.len() {
            assert_eq!(peer(whole.get(..length).unwrap()), None);
        }
    }
}
