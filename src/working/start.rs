//! `cachestat --working-set`: watches for a time, then says how many distinct pages were used, and by whom.

use std::collections::HashMap;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use super::Clock;
use super::Measured;
use super::measure::Windows;
use super::view::Shown;
use super::view::Who;
use super::younger;
use crate::exit::Failure;
use crate::files::Dev;
use crate::files::File;
use crate::kernel::SketchOwner;
use crate::kernel::Sketches;
use crate::live::keeper;
use crate::names::Names;
use crate::options::Chosen;
use crate::options::Counting;
use crate::options::OneOf as _;
use crate::pivot::By;
use crate::pivot::System;
use crate::plan::Brackets;
use crate::plan::SketchBy;
use crate::plan::Wants;
use crate::privilege::Role;
use crate::sample::Lost;
use crate::sample::Source as _;
use crate::session::Session;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::text::numbers::Unit;
use crate::text::output;
use crate::wait;
use crate::wait::Process;
use crate::wait::Wait as _;
use crate::wait::Wake;

/// How often rows are read, which frees those of threads that have ended, and cgroups and files that are new are looked up.
const STEP: Duration = Duration::from_secs(1);
/// Names of files without sketches that are kept until they are looked through.
const KNOWN: usize = 4096;
/// When the first marks may be too old.
const HOUR: Duration = Duration::from_secs(3600);
/// Every so many slots marks that are too old are taken away: 255 can be divided by it, so that it comes evenly.
const SWEEP: u8 = 5;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long to watch.
    pub time: Duration,
    /// What rows stand for: processes, cgroups or files; `None`: no rows.
    pub by: Option<By>,
    /// How many rows.
    pub top: usize,
    /// Pages or bytes, in text.
    pub unit: Unit,
    /// One object of JSON instead of a table.
    pub json: bool,
    /// What counts.
    pub chosen: Chosen,
    /// How it is counted.
    pub counting: Counting,
}

impl Options {
    fn owners(&self) -> SketchBy {
        match self.by {
            Some(By::Process) => SketchBy::Process,
            Some(By::Cgroup) => SketchBy::Cgroup,
            Some(By::File) => SketchBy::File,
            _ => SketchBy::Nobody,
        }
    }
}

/// Watches, and prints what was used.
///
/// # Errors
/// When it could not do what is requested; with the remedy.
pub fn working_set(options: &Options) -> Result<(), Failure> {
    let out = &mut io::stdout().lock();
    let process = options.chosen.pid.map(Process::open).transpose()?;
    let names = System::new();
    let (_, only) = options.chosen.look_up(&names)?;
    let owners = options.owners();
    let files = owners == SketchBy::File;
    let wants = Wants { sketches: Some(owners), files, ..Wants::default() };
    let mut session = Session::open(&options.counting.session(wants, only))
        .map_err(|e| Failure { remedy: e.remedy().map(String::from), ..Failure::failed(&e) })?;
    if options.counting.explain {
        return output::print(&foreign::lines(&(session.explain() + &Role::Count.explain())), out);
    }
    let functions = session.plan().brackets != Brackets::Tracepoints;
    let mut wait = wait::System::new(process).map_err(anyhow::Error::from)?;
    let sketches = session.attached().sketches().map_err(anyhow::Error::from)?;
    let ended = Ended { told: owners == SketchBy::Process && wait::sees_all_processes(), ..Ended::default() };
    let mut watch = Watch { session: &mut session, sketches, names, owners, known: Known::default(), ended };
    let before = watch.tick()?;
    Role::Count.take(&[])?;
    let (time, wake, last) = watch.run(&mut wait, options.time)?;
    let measured = watch.measure(&Windows::new(Clock::new(options.time), time), options.top)?;
    let (beyond, refused) = watch.session.attached().sketches_lost();
    let room = watch.session.attached().sketch_room();
    let lost = last.since(&before);
    let mut notes = missing(functions);
    match wake {
        Wake::Deadline | Wake::Over => {}
        Wake::Interrupt => notes.push("interrupted before the time was over".into()),
        Wake::Ended => notes.push("the process ended before the time was over".into()),
    }
    if measured.other.is_some() {
        notes.push(format!(
            "under (other) is what threads without a row used, and owners for whom there was no room: {room} have a sketch"
        ));
    }
    if beyond > 0 {
        notes.push(format!("{beyond} pages of very long requests were not looked at"));
    }
    if lost.total() > 0 {
        notes.push(crate::loss::sentence(&lost));
    }
    let shown = Shown {
        measured: &measured,
        time,
        by: options.by.map(By::name),
        chosen: &options.chosen.words(),
        unit: options.unit,
        refused,
        beyond,
        lost: lost.total(),
        notes: &notes,
    };
    output::print(&if options.json { shown.json() } else { shown.text() }, out)
}

/// What is not seen.
fn missing(functions: bool) -> Vec<String> {
    let mut out =
        vec!["of a page that is mapped only faults are seen: mapped files are used at least so much".into()];
    if !functions {
        out.push("on this kernel a fault that finds its page in the cache does not say which, and a write is seen when pages become dirty: at least so much".into());
    }
    out
}

/// What owners are called, as long as it is known.
#[derive(Default)]
struct Known {
    /// By device, inode and generation, with whether it was deleted.
    files: HashMap<(Dev, u64, u32), (Arc<File>, bool)>,
    /// Where there are more, those without a sketch are forgotten.
    most: usize,
}

/// Processes that have ended and gave their sketches back: machines start more of them than there is room for.
#[derive(Default)]
struct Ended {
    /// Whether it is known here which process has ended.
    told: bool,
    processes: usize,
    /// Their marks together.
    marks: Vec<u8>,
}

impl Ended {
    fn add(&mut self, now: u8, marks: &[u8]) {
        // It may have got its sketch before the watch began.
        if marks.iter().all(|mark| *mark == 0) {
            return;
        }
        self.processes += 1;
        self.marks.resize(marks.len().max(self.marks.len()), 0);
        for (ours, theirs) in self.marks.iter_mut().zip(marks) {
            *ours = younger(now, *ours, *theirs);
        }
    }
}

/// What is being watched.
struct Watch<'a> {
    session: &'a mut Session,
    sketches: Sketches,
    names: System,
    owners: SketchBy,
    known: Known,
    ended: Ended,
}

impl Watch<'_> {
    /// Reads rows, and what is new. What was lost so far.
    fn tick(&mut self) -> anyhow::Result<Lost> {
        let sample = self.session.sample()?;
        for row in &sample.files {
            let file = &row.file;
            let key = (file.dev, file.inode, file.generation);
            self.known.files.insert(key, (Arc::clone(file), row.deleted));
        }
        // Machines use more files than have sketches.
        if self.known.files.len() > self.known.most {
            let attached = self.session.attached();
            let key = |o: &SketchOwner| (Dev::from_kernel((o.b >> 32) as u32), o.a, o.b as u32);
            let owners: HashSet<_> = attached.sketch_owners()?.iter().map(key).collect();
            self.known.files.retain(|file, _| owners.contains(file));
            self.known.most = self.known.files.len() + KNOWN;
        }
        if self.owners == SketchBy::Cgroup {
            // One that goes keeps its name.
            for owner in self.session.attached().sketch_owners()? {
                let _ = self.names.cgroup(owner.a, 0);
            }
        }
        Ok(sample.lost)
    }

    /// Until the time is over, a signal comes, or the process that is watched has ended: how long that was, which of them, and
    /// what was lost by then.
    fn run(&mut self, wait: &mut wait::System, time: Duration) -> anyhow::Result<(Duration, Wake, Lost)> {
        let clock = Clock::new(time);
        let began = Instant::now();
        let mut mark = clock.mark(Duration::ZERO);
        self.session.attached().mark_pages(mark);
        loop {
            let after = began.elapsed();
            let next = clock.ends(after).min(after + STEP).min(time);
            let wake = wait.until(began + next)?;
            let after = began.elapsed();
            if wake != Wake::Deadline || after >= time {
                // Requests of which nobody has seen the end yet are counted by this reading.
                let lost = self.tick()?;
                self.session.attached().mark_pages(0);
                return Ok((after.min(time), wake, lost));
            }
            let now = clock.mark(after);
            if now != mark {
                mark = now;
                self.session.attached().mark_pages(mark);
                if after > HOUR && mark % SWEEP == 0 {
                    let old = |mark| clock.is_old(after, mark);
                    self.sketches.forget(old);
                    self.ended.marks.iter_mut().filter(|m| **m != 0 && old(**m)).for_each(|m| *m = 0);
                }
            }
            self.tick()?;
            self.make_room(mark)?;
        }
    }

    /// Where half of the sketches are taken, those of processes that have ended are given back, down to a quarter: who began
    /// first goes first.
    fn make_room(&mut self, now: u8) -> anyhow::Result<()> {
        if !self.ended.told {
            return Ok(());
        }
        let attached = self.session.attached();
        let room = attached.sketch_room();
        let mut owners = attached.sketch_owners()?;
        if owners.len() * 2 <= room {
            return Ok(());
        }
        owners.sort_by_key(|o| o.b);
        // Of two with one id the earlier one has ended, whoever has the id now.
        let last: HashMap<u64, u64> = owners.iter().map(|o| (o.a, o.b)).collect();
        let mut gone = |o: &&SketchOwner| last.get(&o.a) != Some(&o.b) || !keeper::alive(o.a as u32);
        let most = owners.len() - room / 4;
        for owner in owners.iter().filter(&mut gone).take(most) {
            let marks = self.session.attached().give_back(owner, &self.sketches)?;
            self.ended.add(now, &marks);
        }
        Ok(())
    }

    fn measure(&mut self, windows: &Windows, top: usize) -> anyhow::Result<Measured<Who>> {
        let all = windows.set(&self.sketches.all());
        let owners = self.session.attached().sketch_owners()?;
        let mut rows = Vec::new();
        for owner in owners {
            let set = windows.set(&self.sketches.of(owner.number));
            rows.push((self.who(&owner), set));
        }
        let other = (self.owners != SketchBy::Nobody).then(|| windows.set(&self.sketches.of(0)));
        let measured = Measured::new(windows.clone(), all, rows, other, top);
        Ok(match self.ended.processes {
            0 => measured,
            processes => measured.with_ended(processes, windows.set(&self.ended.marks)),
        })
    }

    fn who(&mut self, owner: &SketchOwner) -> Who {
        match self.owners {
            SketchBy::Cgroup => Who::Cgroup(self.names.cgroup(owner.a, 0).path.as_str().into()),
            SketchBy::File => {
                let dev = Dev::from_kernel((owner.b >> 32) as u32);
                let known = self.known.files.get(&(dev, owner.a, owner.b as u32));
                let path = known.and_then(|(file, deleted)| {
                    let path = self.names.mounts(file.block.unwrap_or(dev)).path(file)?;
                    Some(Foreign::from(path).with(if *deleted { " (deleted)" } else { "" }))
                });
                Who::File(path, owner.a)
            }
            SketchBy::Process | SketchBy::Nobody => Who::Process(owner.a, owner.process.foreign()),
        }
    }
}
