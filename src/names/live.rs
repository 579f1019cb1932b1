//! What this machine calls users, cgroups, mounts and processes now.

use std::collections::HashMap;
use std::ffi::CStr;
use std::ffi::CString;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;

use super::Names;
use crate::cgroup::Cgroup;
use crate::cgroup::Cgroups;
use crate::cgroup::Held;
use crate::cgroup::Hierarchy;
use crate::exit::Failure;
use crate::files::Dev;
use crate::files::Mounts;
use crate::procfs;
use crate::text::foreign::Foreign;

/// Mounts are read again for a device that they do not know, and when they have changed, but not more often than this.
const AGAIN: Duration = Duration::from_millis(500);

/// The names of this machine, each looked up once.
pub struct System {
    users: HashMap<u32, Option<Rc<str>>>,
    /// Paths of cgroups.
    pub cgroups: Cgroups,
    /// The mounts.
    pub mounts: Mounts,
    read: Instant,
    /// When it was looked whether they have changed.
    checked: Instant,
    /// Tells when something was mounted, moved or unmounted.
    mountinfo: Option<fs::File>,
    /// How often others were found than before.
    version: u64,
}

impl System {
    /// Reads the mounts now, everything else when somebody asks.
    #[must_use]
    pub fn new() -> Self {
        let mountinfo = procfs::mounts().unwrap_or_default();
        Self {
            users: HashMap::new(),
            cgroups: Cgroups::new(Hierarchy::find(&mountinfo), Path::new("/proc")),
            mounts: Mounts::parse(&mountinfo),
            read: Instant::now(),
            checked: Instant::now(),
            mountinfo: fs::File::open("/proc/self/mountinfo").ok(),
            version: 0,
        }
    }
}

impl System {
    /// Whether the mounts have changed since this was looked up last.
    fn remounted(&self) -> bool {
        let Some(file) = &self.mountinfo else { return false };
        let mut fds = [PollFd::new(file, PollFlags::PRI)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok_and(|n| n > 0)
    }

    /// Takes these as they are now. They are another version only if something has changed: a device that no mount has (that of
    /// the kernel's own, or of another namespace) makes them be read again and again.
    fn read_mounts(&mut self, now: Mounts) {
        self.version += u64::from(!now.is_same(&self.mounts));
        (self.mounts, self.read) = (now, Instant::now());
    }
}

impl Default for System {
    fn default() -> Self {
        Self::new()
    }
}

impl Names for System {
    fn user(&mut self, uid: u32) -> Option<Rc<str>> {
        self.users.entry(uid).or_insert_with(|| user(uid).map(Rc::from)).clone()
    }

    fn cgroup(&mut self, id: u64, tgid: u32) -> Rc<Cgroup> {
        self.cgroups.get(id, tgid)
    }

    fn mounts(&mut self, dev: Dev) -> &mut Mounts {
        let unknown = !self.mounts.knows(dev) && self.read.elapsed() > AGAIN;
        // Asking costs a system call: not for each row.
        let due = self.checked.elapsed() > AGAIN;
        if due {
            self.checked = Instant::now();
        }
        if unknown || due && self.remounted() {
            self.read_mounts(Mounts::here());
        }
        &mut self.mounts
    }

    fn mounts_now(&mut self) -> &Mounts {
        self.read_mounts(Mounts::here());
        &self.mounts
    }

    fn command_line(&mut self, pid: u32) -> Option<Foreign> {
        command_line(pid)
    }

    fn held(&mut self, paths: &[String]) -> Vec<Held> {
        Held::of(paths.iter().map(String::as_str))
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// Bytes of a command line that are read; it may have two MiB.
const LINE: u64 = 1 << 16;

/// The command line of a process, its arguments with blanks between them; `None` where there is none (any more).
#[must_use]
pub fn command_line(pid: u32) -> Option<Foreign> {
    let mut line = Vec::new();
    let file = fs::File::open(format!("/proc/{pid}/cmdline")).ok()?;
    if file.take(LINE).read_to_end(&mut line).ok()? as u64 == LINE {
        line.extend("…".as_bytes());
    }
    line.iter_mut().filter(|b| **b == 0).for_each(|b| *b = b' ');
    let line = line.trim_ascii_end();
    (!line.is_empty()).then(|| line.into())
}

/// The name of a user, as the C library finds it.
fn user(uid: u32) -> Option<String> {
    // SAFETY: all pointers are to memory of the caller's that outlives the call, the buffer with its true length.
    let ask: Ask<'_> = &|entry, buffer, found| unsafe {
        libc::getpwuid_r(uid, entry, buffer.as_mut_ptr(), buffer.len(), found)
    };
    // SAFETY: the name of an entry that was found is a string in the buffer.
    account(ask, |found| unsafe { CStr::from_ptr(found.pw_name) }.to_string_lossy().into_owned())
}

/// The number of a user, by name or in digits.
///
/// # Errors
/// When there is no such user: wrong usage.
pub fn uid_of(user: &str) -> Result<u32, Failure> {
    uid(user).or_else(|| user.parse().ok()).ok_or_else(|| {
        Failure::usage(format!("there is no user {}", Foreign::from(user)))
            .remedy("'getent passwd' lists the users that have names; a number is taken for an id")
    })
}

/// The number of a user of this name, as the C library finds it.
fn uid(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: as in `user`; the name is a string.
    let ask: Ask<'_> = &|entry, buffer, found| unsafe {
        libc::getpwnam_r(name.as_ptr(), entry, buffer.as_mut_ptr(), buffer.len(), found)
    };
    account(ask, |found| found.pw_uid)
}

/// Asks the C library for an account: where the entry goes, room for its strings, where it is told whether there is one.
type Ask<'a> = &'a dyn Fn(*mut libc::passwd, &mut [libc::c_char], *mut *mut libc::passwd) -> libc::c_int;

/// What an account says, if there is one.
fn account<T>(ask: Ask<'_>, said: impl Fn(&libc::passwd) -> T) -> Option<T> {
    let mut buffer = vec![0 as libc::c_char; 1024];
    loop {
        let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
        let mut found = std::ptr::null_mut();
        let error = ask(entry.as_mut_ptr(), &mut buffer, &raw mut found);
        if error == libc::ERANGE && buffer.len() < 1 << 20 {
            buffer.resize(buffer.len() * 4, 0);
            continue;
        }
        if error != 0 {
            return None;
        }
        // SAFETY: null, or `entry`, which was filled in then.
        return unsafe { found.as_ref() }.map(said);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn of_a_long_command_line_the_end_is_missing_and_says_so() {
        let of = |length: usize| {
            let mut sh = Command::new("sh");
            sh.args(["-c", "echo; read line", &"a".repeat(length)]);
            let mut sh = sh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            // `spawn` may return before the kernel has set the new arguments; what sh writes comes after that.
            sh.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            let line = command_line(sh.id()).unwrap();
            sh.kill().unwrap();
            sh.wait().unwrap();
            line
        };
        let (short, long) = (of(1000), of(100_000));
        assert!(short.bytes().starts_with(b"sh -c echo; read line aaa") && short.bytes().ends_with(b"aaa"));
        assert_eq!((short.bytes().len(), long.bytes().len() as u64), (1022, LINE + 3));
        assert!(long.bytes().ends_with("aaa…".as_bytes()));
    }

    #[test]
    fn mounts_are_another_version_only_if_they_changed() {
        let root = "21 1 253:0 / / rw - ext4 /dev/vda rw\n";
        let more = format!("{root}22 21 0:40 / /proc rw - proc proc rw\n");
        let mut system = System::new();
        let mut versions = Vec::new();
        for text in [root, root, &more, &more, root] {
            system.read_mounts(Mounts::parse(text));
            versions.push(system.version);
        }
        let first = versions[0];
        assert_eq!(versions, [first, first, first + 1, first + 1, first + 2]);
    }

    #[test]
    fn root_has_a_name_and_nobody_else_has_4294967294() {
        assert_eq!(user(0).as_deref(), Some("root"));
        assert_eq!(user(4_294_967_294), None);
        assert_eq!(
            (uid("root"), uid("nobody has\x1b this"), uid("a\0b"), uid("")),
            (Some(0), None, None, None)
        );
        let mut system = System::new();
        assert_eq!(system.user(0).as_deref(), Some("root"));
        assert!(system.users.contains_key(&0));
    }
}
