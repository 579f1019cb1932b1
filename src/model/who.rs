//! Whom a row is about.

use crate::cgroup::Held;
use crate::text::foreign::Foreign;
use crate::text::width::ARROW;

/// What a row is about; `None` where rows of this kind have no single one, or it is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Who {
    /// Thread-group id.
    pub pid: Option<u32>,
    /// Thread id.
    pub tid: Option<u32>,
    /// User id.
    pub uid: Option<u32>,
    /// User name.
    pub user: Option<Foreign>,
    /// Command name; of a thread, the thread's own.
    pub comm: Option<Foreign>,
    /// Path of the cgroup.
    pub cgroup: Option<Foreign>,
    /// Container or pod, as the cgroup's path tells.
    pub container: Option<Foreign>,
    /// systemd unit, as the cgroup's path tells.
    pub unit: Option<Foreign>,
    /// Path of the file; `(deleted)` at its end if no directory had it any more when it was last used.
    pub path: Option<Foreign>,
    /// Device number and name of the file system's device.
    pub device: Option<Foreign>,
    /// Inode number.
    pub inode: Option<u64>,
    /// Generation of the inode: another one is another file.
    pub generation: Option<u32>,
    /// Its inode does not tell a file from others: its name does (subvolumes of btrfs).
    pub by_name: bool,
    /// Mount point of the file system.
    pub mount: Option<Foreign>,
    /// How it pushes pages out of the cache, where it is about that: `comm` and `cgroup` are then who does it.
    pub how: Option<&'static str>,
    /// Path of the cgroup that the pages were charged to.
    pub owner: Option<Foreign>,
    /// Path of the cgroup whose limit, or whose `memory.reclaim`.
    pub limit_of: Option<Foreign>,
    /// What the cgroup holds of the cache, where that was asked.
    pub held: Option<Held>,
    /// It stands for all that has no row of its own: what no table had room for, and rows that were not requested. Nothing
    /// else is known of it.
    pub other: bool,
}

impl Who {
    /// Whose pages, and who pushes them out: of a row that is about that.
    #[must_use]
    pub fn pushed(&self) -> Foreign {
        let known = |name: &Option<Foreign>| name.as_ref().map_or_else(|| Foreign::from("-"), no_arrow);
        let owner = known(&self.owner).with(ARROW);
        if self.comm.is_none() && self.cgroup.is_none() {
            return owner.with(self.how.unwrap_or("-")); // the kernel itself
        }
        let by = owner.and(&known(&self.cgroup)).with(" (").and(&known(&self.comm).visible()).with(")");
        match &self.limit_of {
            Some(of) => by.with(", limit of ").and(&no_arrow(of)),
            None => by,
        }
    }
}

/// A name that does not look like two: else who makes cgroups could have others seen as those who pushed pages out.
fn no_arrow(name: &Foreign) -> Foreign {
    let text = name.raw();
    if text.contains(ARROW) { Foreign::from(text.replace(ARROW, " \\<- ")) } else { name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::width::sides;

    #[test]
    fn a_name_with_an_arrow_forges_no_evictor() {
        let name = |text: &str| Some(Foreign::from(text));
        let who = Who {
            owner: name("/a <- /sys (cron), z"),
            cgroup: name("/evil.slice/evil.service"),
            comm: name("tar"),
            ..Who::default()
        };
        let text = who.pushed().cell();
        assert_eq!(text, "/a \\\\<- /sys (cron), z <- /evil.slice/evil.service (tar)");
        let blank = Who { comm: name(" "), ..who.clone() };
        assert!(blank.pushed().to_string().ends_with("(\" \")"));
        assert!(sides(&text, 24).ends_with("(tar)"), "{}", sides(&text, 24));
    }
}
