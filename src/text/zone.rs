//! The time zone that times of day are written in.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use jiff::tz::TimeZone;

/// No zone's file is that long.
const LONGEST: u64 = 1 << 20;

/// The zone of who runs this (`TZ`, else the machine's).
#[must_use]
pub fn local() -> TimeZone {
    let (name, directory) = (env::var_os("TZ").unwrap_or_default(), env::var_os("TZDIR").unwrap_or_default());
    if is_file(&name, &directory) { TimeZone::system() } else { TimeZone::UTC }
}

/// Whether what a zone's name leads to, if to anything, is a file that has an end: all of it is read.
fn is_file(name: &OsStr, directory: &OsStr) -> bool {
    let name = OsStr::from_bytes(name.as_bytes().strip_prefix(b":").unwrap_or(name.as_bytes()));
    [Path::new(name).to_owned(), Path::new(directory).join(name)]
        .iter()
        .filter_map(|path| fs::metadata(path).ok())
        .all(|it| it.is_dir() || it.is_file() && it.len() <= LONGEST)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_has_no_end_is_no_zone() {
        let dir = tempfile::tempdir().unwrap();
        let (large, pipe) = (dir.path().join("large"), dir.path().join("pipe"));
        fs::File::create(&large).unwrap().set_len(LONGEST + 1).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        for name in [large.as_os_str(), pipe.as_os_str(), "/dev/zero".as_ref(), ":/dev/zero".as_ref()] {
            assert!(!is_file(name, "".as_ref()), "{name:?}");
        }
        assert!(!is_file("zero".as_ref(), "/dev".as_ref()));
        for name in [
            "",
            ":",
            "UTC",
            "CET-1CEST,M3.5.0,M10.5.0/3",
            "Europe/Berlin",
            "/no/such/file",
            "/etc/passwd",
            ".",
        ] {
            assert!(is_file(name.as_ref(), "/usr/share/zoneinfo".as_ref()), "{name}");
        }
    }
}
