//! Which rows of a sample are part of a row of the screen.

use std::sync::Arc;

use crate::names::Names;
use crate::pivot::By;
use crate::pivot::Who;
use crate::sample::FileSample;
use crate::sample::RowSample;
use crate::text::foreign::Foreign;

/// Whether a thread is part of it.
pub(super) fn has_thread(by: By, who: &Who, row: &RowSample, names: &mut dyn Names) -> bool {
    match by {
        By::Process => who.pid == Some(row.tgid),
        By::Thread => who.pid == Some(row.tgid) && who.tid == Some(row.tid),
        By::Comm => who.comm.as_ref() == Some(&row.process.foreign()),
        By::User => who.uid == Some(row.uid),
        By::Cgroup => who.cgroup.as_ref().is_some_and(|c| c.raw() == names.cgroup(row.cgroup, row.tgid).path),
        By::File | By::Mount | By::Device | By::Evictor => false,
    }
}

/// Whether a name is this one.
fn is(name: &Option<Foreign>, this: Option<String>) -> bool {
    *name == this.map(Foreign::from)
}

/// Whether what was done with a file is part of it.
pub(super) fn has_file(by: By, who: &Who, row: &FileSample, names: &mut dyn Names) -> bool {
    let file: &Arc<_> = &row.file;
    let dev = file.block.unwrap_or(file.dev);
    match by {
        By::Evictor => false,
        By::Process | By::Thread => who.pid == Some(row.tgid),
        By::Comm => who.comm.as_ref() == Some(&row.process.foreign()),
        By::User => who.uid == Some(row.uid),
        By::Cgroup => who.cgroup.as_ref().is_some_and(|c| c.raw() == names.cgroup(row.cgroup, row.tgid).path),
        By::Device => is(&who.device, Some(names.mounts(dev).device(dev))),
        By::Mount => {
            let mounts = names.mounts(dev);
            is(&who.device, Some(mounts.device(dev)))
                && is(&who.mount, mounts.point(file.dev).map(String::from))
        }
        By::File => {
            let plain = |p: &str| p.trim_end_matches(" (deleted)").to_owned();
            let mounts = names.mounts(dev);
            who.inode == Some(file.inode)
                && who.generation.is_none_or(|g| g == file.generation)
                && is(&who.device, Some(mounts.device(dev)))
                && (!who.by_name
                    || who.path.as_ref().map(|p| plain(&p.raw())) == mounts.path(file).as_deref().map(plain))
        }
    }
}
