//! The rows of a sample, whichever table they come from: what they have in common, and what they are called.

use std::sync::Arc;

use super::by::By;
use crate::files::Dev;
use crate::files::File;
use crate::model::Who;
use crate::names::Names;
use crate::sample::Comm;
use crate::sample::Family;
use crate::sample::FileSample;
use crate::sample::Folded;
use crate::sample::RowSample;
use crate::sample::Sample;
use crate::sample::Sparse;
use crate::text::foreign::Foreign;

/// A row of a sample, whichever table it comes from.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(super) tgid: u32,
    pub(super) tid: u32,
    pub(super) uid: u32,
    pub(super) cgroup: u64,
    pub(super) born: u64,
    pub(super) comm: Comm,
    pub(super) process: Comm,
    /// The file, and whether it was deleted.
    pub(super) file: Option<(&'a Arc<File>, bool)>,
    /// What rows it is part of, where it is not part of all.
    pub(super) only: Option<By>,
    /// Where the process comes from.
    pub(super) family: Option<Family>,
    pub(super) counters: &'a Sparse,
}

impl Item<'_> {
    /// It stands for processes that have ended and had to make room.
    pub(super) fn is_away(&self) -> bool {
        self.only == Some(By::Process) && self.tgid == 0
    }
}

/// What is the same for all that is added up in a row.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Number(u64),
    Comm(Comm),
    File(Dev, u64, u32, Option<Dev>, Option<String>),
    Name(String),
    /// What is mounted of a device, or the device itself.
    Mount(Dev, bool),
    /// Processes that have ended, by command.
    Ended(Comm),
    /// The same by the path of their cgroup.
    EndedIn(String),
    /// The same by whoever is above them: its id, and when it began.
    EndedUnder(Option<(u32, u64)>),
}

pub(crate) fn of_row(r: &RowSample) -> Item<'_> {
    Item {
        tgid: r.tgid,
        tid: r.tid,
        uid: r.uid,
        cgroup: r.cgroup,
        born: r.born,
        comm: r.comm,
        process: r.process,
        file: None,
        only: None,
        family: r.family,
        counters: &r.counters,
    }
}

pub(crate) fn of_file(f: &FileSample) -> Item<'_> {
    Item {
        tgid: f.tgid,
        tid: 0,
        uid: f.uid,
        cgroup: f.cgroup,
        born: f.born,
        comm: f.process,
        process: f.process,
        file: Some((&f.file, f.deleted)),
        only: None,
        family: None,
        counters: &f.counters,
    }
}

fn of_folded_row(f: &Folded<RowSample>) -> Item<'_> {
    Item { only: Some(f.by), ..of_row(&f.row) }
}

fn of_folded_file(f: &Folded<FileSample>) -> Item<'_> {
    Item { only: Some(f.by), ..of_file(&f.row) }
}

pub(super) fn items(sample: &Sample, files: bool) -> impl Iterator<Item = Item<'_>> {
    let threads = sample.rows.iter().map(of_row).chain(sample.folded.threads.iter().map(of_folded_row));
    let of_files = sample.files.iter().map(of_file).chain(sample.folded.files.iter().map(of_folded_file));
    threads.filter(move |_| !files).chain(of_files.filter(move |_| files))
}

/// One of [`items`].
pub(super) fn item(sample: &Sample, files: bool, n: usize) -> Option<Item<'_>> {
    if files {
        let folded = || sample.folded.files.get(n - sample.files.len()).map(of_folded_file);
        sample.files.get(n).map(of_file).or_else(folded)
    } else {
        let folded = || sample.folded.threads.get(n - sample.rows.len()).map(of_folded_row);
        sample.rows.get(n).map(of_row).or_else(folded)
    }
}

/// What makes cgroups the same row.
pub(super) fn path_of_cgroup(item: &Item<'_>, names: &mut dyn Names) -> String {
    names.cgroup(item.cgroup, item.tgid).path.clone()
}

pub(super) fn key(by: By, item: &Item<'_>, names: &mut dyn Names) -> Key {
    match (by, item.file) {
        // Two processes may have one id after each other, in one interval even. The lower part of when they began, in
        // nanoseconds, tells them apart: ids have 22 bits.
        (By::Process, _) => Key::Number(u64::from(item.tgid) | item.family.map_or(0, |f| f.begun) << 22),
        (By::Thread, _) => Key::Number(u64::from(item.tgid) << 32 | u64::from(item.tid)),
        (By::Comm, _) => Key::Comm(item.process),
        (By::User, _) => Key::Number(item.uid.into()),
        // Made anew under the same path it has another number, and is the same row.
        (By::Cgroup, _) => Key::Name(path_of_cgroup(item, names)),
        // Of these there are rows of their own (`evictors.rs`).
        (By::Evictor, _) | (_, None) => Key::Number(0),
        (By::File, Some((f, _))) => {
            // Subvolumes of btrfs have inode numbers of their own each, below one device.
            let btrfs = names.mounts(f.dev).kind(f.dev) == Some("btrfs");
            Key::File(f.dev, f.inode, f.generation, f.block, btrfs.then(|| f.name.clone()))
        }
        (By::Mount, Some((f, _))) => {
            // A device itself is not what is mounted of it.
            Key::Mount(f.block.unwrap_or(f.dev), f.block.is_some())
        }
        (By::Device, Some((f, _))) => {
            let dev = f.block.unwrap_or(f.dev);
            Key::Name(names.mounts(dev).device(dev))
        }
    }
}

pub(super) fn who(by: By, item: &Item<'_>, names: &mut dyn Names) -> Who {
    let mut out = Who::default();
    let owner = matches!(by, By::Process | By::Thread);
    if owner {
        out.pid = Some(item.tgid);
    }
    if by == By::Thread {
        out.tid = Some(item.tid);
        out.comm = Some(item.comm.foreign());
    }
    if matches!(by, By::Process | By::Comm) {
        out.comm = Some(item.process.foreign());
    }
    if owner || by == By::User {
        out.uid = Some(item.uid);
        out.user = names.user(item.uid).map(|u| Foreign::from(&*u));
    }
    if owner || by == By::Cgroup {
        let group = names.cgroup(item.cgroup, item.tgid);
        out.cgroup = Some(group.path.as_str().into());
        out.container = group.label.container.clone().map(Foreign::from);
        out.unit = group.label.unit.clone().map(Foreign::from);
    }
    if let (true, Some((file, deleted))) = (by.files(), item.file) {
        let dev = file.block.unwrap_or(file.dev);
        let mounts = names.mounts(dev);
        out.device = Some(mounts.device(dev).into());
        if by != By::Device {
            out.mount = mounts.point(file.dev).map(Foreign::from);
        }
        if by == By::File {
            out.inode = Some(file.inode);
            out.generation = Some(file.generation);
            out.by_name = mounts.kind(file.dev) == Some("btrfs");
            let mark = if deleted && file.named != crate::files::Named::Loose { " (deleted)" } else { "" };
            out.path = mounts.path(file).map(|p| Foreign::from(p).with(mark));
        }
    }
    out
}
