//! Why nothing can be said about a file.

use std::io;

/// Why nothing can be said about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unknown {
    /// Not allowed: the kernel tells this only to who may write the file, and claims "all resident" to others.
    #[error("no write access: the kernel tells only the owner and those who may write")]
    NotPermitted,
    /// cachestat(2) is refused whatever the file is: a seccomp filter forbids it, as containers' do.
    #[error("a seccomp filter forbids cachestat(2): --method mincore asks without it")]
    Forbidden,
    /// The file may not even be opened.
    #[error("permission denied")]
    NotReadable,
    /// hugetlbfs.
    #[error("huge pages of hugetlbfs are no page cache")]
    HugeTlb,
    /// Direct access to persistent memory.
    #[error("direct access (DAX): the file is not cached")]
    Dax,
    /// The file went away between being listed and being opened.
    #[error("no such file")]
    Vanished,
    /// A process has it mapped and not open, it has no name that we can use, and map_files is closed to us.
    #[error("mapped, and only root can open it")]
    OnlyMapped,
    /// On FUSE or virtiofs, and not opened for that.
    #[error("on FUSE, opening a file may empty its cache")]
    Fuse,
    /// /proc, /sys and their like.
    #[error("no page cache: what the file says is made when it is read")]
    NoCache,
    /// Symbolic links that lead to each other.
    #[error("symbolic links that lead nowhere, or too many of them")]
    Loop,
    /// Not a regular file nor a block device.
    #[error("{0}")]
    NotAFile(&'static str),
    /// More pages than may be looked at one by one, and no cachestat(2).
    #[error("too large to be asked page by page, and cachestat(2) cannot answer here")]
    TooLarge,
    /// Somebody wanted no more of it.
    #[error("interrupted")]
    Interrupted,
    /// It took longer than may be waited for.
    #[error("no answer in time")]
    Late,
    /// A set names a file, and by its name there is another one now.
    #[error("another file than the one that was saved: size or time of change, and inode differ")]
    Replaced,
    /// A set names what nobody expects in one.
    #[error("{0}: sets of others may name what they like, --trust takes it all the same")]
    Untrusted(&'static str),
    /// Anything else that the kernel said.
    #[error("{}", words(&io::Error::from_raw_os_error(*.0)))]
    Failed(i32),
}

/// What the system says of an error, without its number.
#[must_use]
pub fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words).to_lowercase()
}

impl Unknown {
    /// A word for machines.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Unknown::NotPermitted => "no_write_access",
            Unknown::Forbidden => "cachestat_forbidden",
            Unknown::NotReadable => "permission_denied",
            Unknown::HugeTlb => "hugetlbfs",
            Unknown::Dax => "dax",
            Unknown::Vanished => "vanished",
            Unknown::OnlyMapped => "only_mapped",
            Unknown::Fuse => "fuse",
            Unknown::NoCache => "no_page_cache",
            Unknown::Loop => "symlink_loop",
            Unknown::NotAFile(_) => "not_a_file",
            Unknown::TooLarge => "too_large",
            Unknown::Interrupted => "interrupted",
            Unknown::Late => "late",
            Unknown::Replaced => "replaced",
            Unknown::Untrusted(_) => "untrusted",
            Unknown::Failed(_) => "error",
        }
    }

    /// Whether only what is cached is kept from us: the file can be opened, read and evicted all the same.
    #[must_use]
    pub const fn withheld(self) -> bool {
        matches!(self, Unknown::NotPermitted | Unknown::Forbidden | Unknown::TooLarge | Unknown::Fuse)
    }
}

impl From<io::Error> for Unknown {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error().unwrap_or(libc::EIO) {
            libc::EACCES => Unknown::NotReadable,
            libc::ENOENT | libc::ESTALE => Unknown::Vanished,
            libc::ELOOP => Unknown::Loop,
            code => Unknown::Failed(code),
        }
    }
}

impl From<rustix::io::Errno> for Unknown {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}
