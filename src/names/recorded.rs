//! What numbers were called when a sample was taken.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Deserialize;
use serde::Serialize;

use super::Names;
use crate::cgroup::Cgroup;
use crate::files::Dev;
use crate::files::Mounts;
use crate::sample::Comm;
use crate::sample::Sample;
use crate::sample::written::escaped;
use crate::sample::written::unescaped;
use crate::text::foreign::Foreign;

/// Bytes of a command line that are written down, and of all that are new in a tick: anybody may have some of two MiB, of which
/// each byte is six where it is escaped.
const LINE: usize = 4096;
const LINES: usize = 32 << 20;

/// All that was looked up for samples, or what of it is new. It can be written down beside them (serde).
///
/// It grows with everything that ever had a name: whoever records for long begins a new one now and then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    users: BTreeMap<u32, Option<String>>,
    /// Paths.
    cgroups: BTreeMap<u64, String>,
    /// `None`: none was requested, or they are those of before.
    mounts: Option<Mounts>,
    /// Command lines by process, with the name that the process had then: it may have another one later, or be another
    /// process.
    commands: BTreeMap<u32, (String, Option<String>)>,
    /// Of those whom the mounts came from.
    #[serde(skip)]
    version: u64,
    #[serde(skip)]
    none: Mounts,
}

/// What stays true of names for as long as a record lasts.
#[derive(Debug)]
pub struct Lasting {
    /// Names of users, by their numbers.
    pub users: BTreeMap<u32, Option<String>>,
    /// Paths of cgroups, by the inode numbers of their directories.
    pub cgroups: BTreeMap<u64, String>,
    /// The mounts, if they were looked up.
    pub mounts: Option<Mounts>,
}

impl Recorded {
    /// Looks up whatever rows of a sample may be called. What was not known before is returned: written beside the sample,
    /// it is all that a reader lacks who has read the others.
    pub fn note(&mut self, sample: &Sample, names: &mut dyn Names) -> Self {
        let (mut new, mut room) = (Self::default(), LINES);
        let folded = &sample.folded;
        let of_run = sample.followed.iter().flat_map(|f| &f.files);
        let files = sample.files.iter().chain(folded.files.iter().map(|f| &f.row)).chain(of_run);
        let rows = sample.rows.iter().chain(folded.threads.iter().map(|f| &f.row));
        let rows = rows.map(|r| (r.tgid, r.uid, r.cgroup, r.process));
        for (tgid, uid, cgroup, process) in
            rows.chain(files.clone().map(|f| (f.tgid, f.uid, f.cgroup, f.process)))
        {
            if !self.users.contains_key(&uid) {
                new.users.entry(uid).or_insert_with(|| names.user(uid).map(|name| (*name).into()));
            }
            if !self.cgroups.contains_key(&cgroup) {
                new.cgroups.entry(cgroup).or_insert_with(|| names.cgroup(cgroup, tgid).path.clone());
            }
            self.note_command(tgid, process, names, &mut new, &mut room);
        }
        for file in files.map(|f| &f.file) {
            // What a block device lies on is the kernel's own, and mounted nowhere.
            self.note_device(file.block.unwrap_or(file.dev), names, &mut new);
        }
        self.merge(new.clone());
        new
    }

    fn note_command(&self, pid: u32, process: Comm, names: &mut dyn Names, new: &mut Self, room: &mut usize) {
        let process = escaped(process.as_bytes());
        let same = |book: &Self| book.commands.get(&pid).is_some_and(|(name, _)| *name == process);
        if !same(self) && !same(new) {
            // Where there is next to no room nobody is asked.
            let line = if *room > LINE { names.command_line(pid) } else { None };
            let line = line.map(|line| match line.bytes() {
                all if all.len() <= LINE => escaped(all),
                long => {
                    // Not within a character.
                    let end = (LINE - 3..=LINE).rev().find(|at| long[*at] & 0xc0 != 0x80).unwrap_or(LINE);
                    escaped(&long[..end]) + "…"
                }
            });
            // As JSON has it, at most.
            let length = |line: &String| line.bytes().map(|b| if b.is_ascii_control() { 6 } else { 2 }).sum();
            let line = line.filter(|line| length(line) <= *room);
            *room -= line.as_ref().map_or(0, length);
            new.commands.insert(pid, (process, line));
        }
    }

    fn note_device(&self, dev: Dev, names: &mut dyn Names, new: &mut Self) {
        // They are read again now if they have changed, and copied only if they are new.
        names.mounts(dev);
        let mut version = names.version();
        let last = |book: &Self| book.mounts.is_some() && book.version == version;
        let known = |book: &Self| last(book) && book.mounts.as_ref().is_some_and(|m| m.has_block(dev));
        if known(new) || !last(new) && known(self) {
            return;
        }
        let mut mounts = match (last(new), last(self)) {
            (true, _) => new.mounts.take().unwrap_or_default(),
            (_, true) => self.mounts.clone().unwrap_or_default(),
            _ => {
                let mounts = names.mounts(dev).recorded();
                version = names.version();
                mounts
            }
        };
        mounts.add_block(dev);
        (new.mounts, new.version) = (Some(mounts), version);
    }

    /// Adds what was looked up later.
    pub fn merge(&mut self, new: Self) {
        self.users.extend(new.users);
        self.cgroups.extend(new.cgroups);
        self.commands.extend(new.commands);
        if new.mounts.is_some() {
            (self.mounts, self.version) = (new.mounts, new.version);
        }
    }
}

/// What is in it, and what is not: `None` where nothing was looked up.
impl Recorded {
    /// What a user is called, if it has a name.
    #[must_use]
    pub fn user_of(&self, uid: u32) -> Option<&Option<String>> {
        self.users.get(&uid)
    }

    /// The path of a cgroup.
    #[must_use]
    pub fn path_of(&self, id: u64) -> Option<&String> {
        self.cgroups.get(&id)
    }

    /// Whether the command line of a process was looked up.
    #[must_use]
    pub fn has_line(&self, pid: u32) -> bool {
        self.commands.contains_key(&pid)
    }

    /// Mounts.
    #[must_use]
    pub const fn all_mounts(&self) -> Option<&Mounts> {
        self.mounts.as_ref()
    }

    /// What does not become wrong where the number is given again: users, cgroups, mounts.
    #[must_use]
    pub fn lasting(self) -> Lasting {
        Lasting { users: self.users, cgroups: self.cgroups, mounts: self.mounts }
    }

    /// Command lines.
    #[cfg(test)]
    pub(crate) fn lines(&self) -> usize {
        self.commands.len()
    }
}

impl Names for Recorded {
    fn user(&mut self, uid: u32) -> Option<Rc<str>> {
        self.users.get(&uid)?.as_deref().map(Rc::from)
    }

    fn cgroup(&mut self, id: u64, _: u32) -> Rc<Cgroup> {
        let path = self.cgroups.get(&id).cloned().unwrap_or_else(|| format!("cgroup:{id}"));
        let label = crate::cgroup::label(&path);
        Rc::new(Cgroup { path, label })
    }

    fn mounts(&mut self, _: Dev) -> &mut Mounts {
        self.mounts.as_mut().unwrap_or(&mut self.none)
    }

    fn mounts_now(&mut self) -> &Mounts {
        self.mounts.as_ref().unwrap_or(&self.none)
    }

    fn command_line(&mut self, pid: u32) -> Option<Foreign> {
        let (_, line) = self.commands.get(&pid)?;
        unescaped(line.as_deref()?).map(|line| Foreign::from(&line[..]))
    }

    fn version(&self) -> u64 {
        self.version
    }
}

#[cfg(test)]
mod tests;
