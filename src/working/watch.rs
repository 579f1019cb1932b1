//! What is being watched: slots of time are told to the kernel programs, names are looked up as long as there are any, and
//! sketches that nobody needs any more are given back.

use std::collections::HashMap;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use super::Clock;
use super::measure::Set;
use super::measure::Windows;
use super::outdated;
use super::view::Who;
use super::younger;
use crate::files::Dev;
use crate::files::File;
use crate::kernel::Attached;
use crate::kernel::SketchOwner;
use crate::kernel::Sketches;
use crate::live::keeper;
use crate::names::Names as _;
use crate::names::System;
use crate::plan::SketchBy;
use crate::sample::Sample;
use crate::text::foreign::Foreign;
use crate::wait;

/// Names of files without sketches that are kept until they are looked through.
const KNOWN: usize = 4096;
/// When the first marks may be too old.
const HOUR: Duration = Duration::from_secs(3600);
/// Every so many slots marks that are too old are taken away: 255 can be divided by it, so that it comes evenly.
const SWEEP: u8 = 5;

/// What owners are called, as long as it is known.
#[derive(Default)]
struct Known {
    /// By device, inode and generation, with whether it was deleted.
    files: HashMap<(Dev, u64, u32), (Arc<File>, bool)>,
    /// Where there are more, those without a sketch are forgotten.
    most: usize,
}

/// Processes that have ended, or cgroups that are gone, and gave their sketches back: machines make more of them than there is
/// room for.
#[derive(Default)]
struct Ended {
    /// Whether it is known here who has ended.
    told: bool,
    owners: usize,
    /// Their marks together.
    marks: Vec<u8>,
}

impl Ended {
    fn add(&mut self, now: u8, marks: &[u8]) {
        // It may have got its sketch before the watch began.
        if marks.iter().all(|mark| *mark == 0) {
            return;
        }
        self.owners += 1;
        self.marks.resize(marks.len().max(self.marks.len()), 0);
        for (ours, theirs) in self.marks.iter_mut().zip(marks) {
            *ours = younger(now, *ours, *theirs);
        }
    }
}

/// What of all sketches lies in which window.
pub(crate) struct Sets {
    /// Everything.
    pub(crate) all: Set,
    /// Each owner.
    pub(crate) owners: Vec<(SketchOwner, Set)>,
    /// All that have no sketch of their own.
    pub(crate) other: Set,
    /// Owners that had ended and gave their sketches back, and what they used together.
    pub(crate) ended: Option<(usize, Set)>,
}

/// What is being watched.
pub(crate) struct Watch {
    sketches: Sketches,
    owners: SketchBy,
    clock: Clock,
    began: Instant,
    /// Of the slot that it is, and its number.
    mark: u8,
    slot: u64,
    known: Known,
    ended: Ended,
}

impl Watch {
    /// Nothing is marked yet. `moves`: threads that are moved to another cgroup are seen. Where they are not, those of
    /// a cgroup that is gone go on under its number, which must then be nobody else's.
    ///
    /// # Errors
    /// When the sketches cannot be mapped.
    pub(crate) fn new(attached: &Attached, owners: SketchBy, moves: bool, clock: Clock) -> io::Result<Self> {
        let told = match owners {
            SketchBy::Process => wait::sees_all_processes(),
            SketchBy::Cgroup => moves,
            // Files are not told apart from those that nobody has opened just now.
            SketchBy::File | SketchBy::Nobody => false,
        };
        Ok(Self {
            sketches: attached.sketches()?,
            owners,
            clock,
            began: Instant::now(),
            mark: 0,
            slot: 0,
            known: Known::default(),
            ended: Ended { told, ..Ended::default() },
        })
    }

    /// From here on pages are marked.
    pub(crate) fn begin(&mut self, attached: &mut Attached) {
        self.began = Instant::now();
        (self.mark, self.slot) = (self.clock.mark(Duration::ZERO), 0);
        attached.mark_pages(self.mark);
    }

    /// When that was.
    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    /// Looks up what is new among rows.
    pub(crate) fn note(
        &mut self,
        attached: &Attached,
        names: &mut System,
        sample: &Sample,
    ) -> anyhow::Result<()> {
        for row in &sample.files {
            let file = &row.file;
            let key = (file.dev, file.inode, file.generation);
            self.known.files.insert(key, (Arc::clone(file), row.deleted));
        }
        // Machines use more files than have sketches.
        if self.known.files.len() > self.known.most {
            let key = |o: &SketchOwner| (Dev::from_kernel((o.b >> 32) as u32), o.a, o.b as u32);
            let owners: HashSet<_> = attached.sketch_owners()?.iter().map(key).collect();
            self.known.files.retain(|file, _| owners.contains(file));
            self.known.most = self.known.files.len() + KNOWN;
        }
        if self.owners == SketchBy::Cgroup {
            // One that goes keeps its name.
            for owner in attached.sketch_owners()? {
                let _ = names.cgroup(owner.a, 0);
            }
        }
        Ok(())
    }

    /// When the slot ends that it is so long after the beginning.
    pub(crate) fn ends(&self, after: Duration) -> Duration {
        self.clock.ends(after)
    }

    /// Takes away what has become too old while slots were slept through (the process was stopped, or its disk hung): marks come
    /// again, and would be young ones. To be called before it is measured, so long after the beginning.
    pub(crate) fn catch_up(&mut self, after: Duration) {
        let passed = self.clock.number(after).saturating_sub(self.slot);
        // The next slot is what `go_on` is for.
        if passed > 1 {
            let now = self.mark;
            self.sketches.forget(|mark| outdated(now, passed, mark));
            self.ended.marks.iter_mut().filter(|m| outdated(now, passed, **m)).for_each(|m| *m = 0);
        }
    }

    /// Begins the next slot if it is time, so long after the beginning, and makes room.
    pub(crate) fn go_on(
        &mut self,
        attached: &mut Attached,
        names: &System,
        after: Duration,
    ) -> anyhow::Result<()> {
        let now = self.clock.mark(after);
        if self.clock.number(after) != self.slot {
            (self.mark, self.slot) = (now, self.clock.number(after));
            attached.mark_pages(now);
            if after > HOUR && now % SWEEP == 0 {
                let old = |mark| self.clock.is_old(after, mark);
                self.sketches.forget(old);
                self.ended.marks.iter_mut().filter(|m| **m != 0 && old(**m)).for_each(|m| *m = 0);
            }
        }
        self.make_room(attached, names)
    }

    /// Where half of the sketches are taken, those of processes that have ended and of cgroups that are gone are given back,
    /// down to a quarter: who began first goes first. Nobody marks them any more: of a cgroup that is gone no thread is left.
    fn make_room(&mut self, attached: &Attached, names: &System) -> anyhow::Result<()> {
        if !self.ended.told {
            return Ok(());
        }
        let room = attached.sketch_room();
        let mut owners = attached.sketch_owners()?;
        if owners.len() * 2 <= room {
            return Ok(());
        }
        // Numbers of cgroups rise.
        owners.sort_by_key(|o| (o.b, o.a));
        // Of two with one id the earlier one has ended, whoever has the id now.
        let last: HashMap<u64, u64> = owners.iter().map(|o| (o.a, o.b)).collect();
        let mut gone = |o: &&SketchOwner| match self.owners {
            SketchBy::Cgroup => names.cgroups.is_gone(o.a),
            _ => last.get(&o.a) != Some(&o.b) || !keeper::alive(o.a as u32),
        };
        let most = owners.len() - room / 4;
        for owner in owners.iter().filter(&mut gone).take(most) {
            let marks = attached.give_back(owner, &self.sketches)?;
            self.ended.add(self.mark, &marks);
        }
        Ok(())
    }

    /// The windows up to a moment so long after the beginning.
    pub(crate) fn windows(&self, after: Duration) -> Windows {
        Windows::new(self.clock, after)
    }

    /// What lies in these windows.
    ///
    /// # Errors
    /// When the tables cannot be read.
    pub(crate) fn sets(&self, attached: &Attached, windows: &Windows) -> anyhow::Result<Sets> {
        let all = windows.set(&self.sketches.all());
        let owners = attached.sketch_owners()?.into_iter().map(|owner| {
            let set = windows.set(&self.sketches.of(owner.number));
            (owner, set)
        });
        let ended = (self.ended.owners > 0).then(|| windows.set(&self.ended.marks));
        Ok(Sets {
            all,
            owners: owners.collect(),
            other: windows.set(&self.sketches.of(0)),
            ended: ended.map(|set| (self.ended.owners, set)),
        })
    }

    /// Who that is.
    pub(super) fn who(&self, names: &mut System, owner: &SketchOwner) -> Who {
        match self.owners {
            SketchBy::Cgroup => Who::Cgroup(names.cgroup(owner.a, 0).path.as_str().into()),
            SketchBy::File => {
                let dev = Dev::from_kernel((owner.b >> 32) as u32);
                let known = self.known.files.get(&(dev, owner.a, owner.b as u32));
                let path = known.and_then(|(file, deleted)| {
                    let path = names.mounts(file.block.unwrap_or(dev)).path(file)?;
                    Some(Foreign::from(path).with(if *deleted { " (deleted)" } else { "" }))
                });
                Who::File(path, owner.a)
            }
            SketchBy::Process | SketchBy::Nobody => Who::Process(owner.a, owner.process.foreign()),
        }
    }
}
