//! Names that come with the samples that they belong to.
//!
//! What whoever shows samples may still ask for is bounded, whether it asks or not, and however long it runs: command lines are
//! those of the interval under way, users and cgroups are remembered for the sum at the end, as this machine's are.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::Hash;
use std::rc::Rc;

use crate::cgroup::Cgroup;
use crate::cgroup::Held;
use crate::files::Dev;
use crate::files::Mounts;
use crate::names::Lasting;
use crate::names::Names;
use crate::names::Recorded;
use crate::text::foreign::Foreign;

/// Names that are kept of what has gone by, and as many again of those before: as many as of the cgroups of this machine.
const KEPT: usize = 4096;

/// Where whoever has samples puts what was looked up for them.
pub type Sink = Rc<RefCell<Book>>;

/// The youngest of what there was, in two generations.
#[derive(Debug)]
struct Kept<K, V> {
    known: HashMap<K, V>,
    before: HashMap<K, V>,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self { known: HashMap::new(), before: HashMap::new() }
    }
}

impl<K: Hash + Eq, V> Kept<K, V> {
    fn put(&mut self, key: K, value: V) {
        if self.known.len() >= KEPT && !self.known.contains_key(&key) {
            self.before = std::mem::take(&mut self.known);
        }
        self.known.insert(key, value);
    }

    fn get(&self, key: &K) -> Option<&V> {
        self.known.get(key).or_else(|| self.before.get(key))
    }
}

/// What was looked up for samples, as far as it is in use.
#[derive(Debug, Default)]
pub struct Book {
    /// Of each segment that the interval under way has something of, the newest last.
    segments: VecDeque<Recorded>,
    users: Kept<u32, Option<String>>,
    cgroups: Kept<u64, String>,
    /// The last that were told before those segments.
    mounts: Option<Mounts>,
    /// Another number whenever mounts may be others.
    version: u64,
}

impl Book {
    /// Adds what was looked up for a sample: whether that begins a segment, and whether an interval. Where one begins, what the
    /// segments before this one told is no longer in use. It is done here and not where somebody asks: perhaps nobody ever does.
    pub fn add(&mut self, names: Recorded, segment: bool, interval: bool) {
        if interval {
            let in_use = usize::from(!segment);
            while self.segments.len() > in_use {
                self.segments.pop_front().into_iter().for_each(|old| self.retire(old));
            }
        }
        self.version += u64::from(names.all_mounts().is_some());
        match self.segments.back_mut() {
            Some(last) if !segment => last.merge(names),
            _ => self.segments.push_back(names),
        }
    }

    /// Of what is no longer in use, users and cgroups may still be in a sum; a command line may be another's by now.
    fn retire(&mut self, old: Recorded) {
        let Lasting { users, cgroups, mounts } = old.lasting();
        users.into_iter().for_each(|(uid, name)| self.users.put(uid, name));
        cgroups.into_iter().for_each(|(id, path)| self.cgroups.put(id, path));
        if mounts.is_some() {
            self.mounts = mounts;
            self.version += 1;
        }
    }

    fn newest_first(&self) -> impl Iterator<Item = &Recorded> {
        self.segments.iter().rev()
    }

    fn user(&self, uid: u32) -> Option<Rc<str>> {
        let told = self.newest_first().find_map(|segment| segment.user_of(uid));
        told.or_else(|| self.users.get(&uid))?.as_deref().map(Rc::from)
    }

    fn cgroup(&self, id: u64) -> Rc<Cgroup> {
        let told = self.newest_first().find_map(|segment| segment.path_of(id));
        let path = told.or_else(|| self.cgroups.get(&id)).cloned().unwrap_or_else(|| format!("cgroup:{id}"));
        let label = crate::cgroup::label(&path);
        Rc::new(Cgroup { path, label })
    }

    fn all_mounts(&self) -> impl Iterator<Item = &Mounts> {
        self.newest_first().filter_map(Recorded::all_mounts).chain(&self.mounts)
    }

    /// Command lines; and users and cgroups that are remembered of before.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        let (users, cgroups) = (&self.users, &self.cgroups);
        let lines = self.segments.iter().map(Recorded::lines).sum();
        let users = users.known.len() + users.before.len();
        (lines, users + cgroups.known.len() + cgroups.before.len())
    }
}

/// The names of the samples that were given last.
#[derive(Debug, Default)]
pub struct Told {
    book: Sink,
    /// Copies of all its mounts, the newest first, and of which version: who has them may keep more in them.
    mounts: Vec<Mounts>,
    version: u64,
    none: Mounts,
}

impl Told {
    /// With nothing in it, and where to put what comes.
    #[must_use]
    pub fn new() -> (Self, Sink) {
        let new = Self::default();
        let sink = Rc::clone(&new.book);
        (new, sink)
    }

    /// As [`Book::size`].
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        self.book.borrow().size()
    }

    fn read_mounts(&mut self) {
        let book = self.book.borrow();
        if self.version != book.version {
            self.mounts = book.all_mounts().cloned().collect();
            self.version = book.version;
        }
    }
}

impl Names for Told {
    fn user(&mut self, uid: u32) -> Option<Rc<str>> {
        self.book.borrow().user(uid)
    }

    fn cgroup(&mut self, id: u64, _: u32) -> Rc<Cgroup> {
        self.book.borrow().cgroup(id)
    }

    fn mounts(&mut self, dev: Dev) -> &mut Mounts {
        self.read_mounts();
        // Those that know of the device: nothing of it may have been read since the last segment began.
        let at = self.mounts.iter().position(|mounts| mounts.has_block(dev)).unwrap_or(0);
        self.mounts.get_mut(at).unwrap_or(&mut self.none)
    }

    fn mounts_now(&mut self) -> &Mounts {
        self.read_mounts();
        self.mounts.first().unwrap_or(&self.none)
    }

    fn command_line(&mut self, pid: u32) -> Option<Foreign> {
        let mut book = self.book.borrow_mut();
        book.segments.iter_mut().rev().find(|segment| segment.has_line(pid))?.command_line(pid)
    }

    fn held(&mut self, paths: &[String]) -> Vec<Held> {
        // It is shown while it is recorded, and not kept.
        Held::of(paths.iter().map(String::as_str))
    }
}
