//! What numbers are called: users, cgroups, devices and mounts, command lines.
//!
//! Whoever makes rows asks a [`Names`]. [`System`] looks up what this machine says now; [`Recorded`] has what was looked up
//! when a sample was taken, so that the rows of a sample that was written down are called what they were called then.

mod live;
mod recorded;

use std::rc::Rc;

pub use live::System;
pub use live::command_line;
pub use live::uid_of;
pub use recorded::Lasting;
pub use recorded::Recorded;

use crate::cgroup::Cgroup;
use crate::cgroup::Held;
use crate::files::Dev;
use crate::files::Mounts;
use crate::text::foreign::Foreign;

/// What numbers are called.
pub trait Names {
    /// The name of a user.
    fn user(&mut self, uid: u32) -> Option<Rc<str>>;
    /// The cgroup with this id, in which the process was.
    fn cgroup(&mut self, id: u64, tgid: u32) -> Rc<Cgroup>;
    /// The mounts, read anew if they do not know this device.
    fn mounts(&mut self, dev: Dev) -> &mut Mounts;
    /// The mounts as they are at this moment: something may just have been mounted.
    fn mounts_now(&mut self) -> &Mounts;
    /// The command line of a process, its arguments with blanks between them; `None` where there is none (any more).
    fn command_line(&mut self, pid: u32) -> Option<Foreign>;
    /// What these cgroups hold of the cache now; nothing where nobody can be asked.
    fn held(&mut self, paths: &[String]) -> Vec<Held> {
        vec![Held::default(); paths.len()]
    }
    /// Another number whenever something that had a name may have another one.
    fn version(&self) -> u64 {
        0
    }
}
