//! From samples to the figures of a run: what is added up while the command runs.

mod certify;
mod copied;
mod lasting;
mod rows;
mod setting;
mod timeline;
mod twice;
mod used;
mod warm;

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;

use rows::brought;
use rows::counts;
use rows::row;
use rows::unused;
use timeline::Timeline;
use used::Used;

pub(super) use setting::setting;
pub(super) use setting::settings;

use super::beforehand::Beforehand;
use super::certificate;
use super::certificate::Certificate;
use super::data::Elsewhere;
use super::data::FileRow;
use super::data::Latency;
use super::data::Lookups;
use super::data::Run;
use super::data::Waits;
use super::origins::Filled;
use super::origins::Origins;
use super::residency;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::files::Key;
use crate::files::Mounts;
use crate::model;
use crate::plan::Plan;
use crate::plan::follow;
use crate::sample::Comm;
use crate::sample::Counter;
use crate::sample::Counters;
use crate::sample::FileSample;
use crate::sample::Known;
use crate::sample::Lost;
use crate::sample::Parts;
use crate::sample::Sample;
use crate::sample::Sparse;
use crate::sample::Threads;

/// Files that a report keeps, and those whose residency is asked for.
const FILES: usize = 50;

/// Files that a run may have, each with a few hundred bytes: of more, those that came first are told of.
const USED: usize = 1 << 17;

/// Names that cost so little work that it does not matter.
const FEW_NAMES: u64 = 64;

/// How pages are found that were there before.
const FOUND: [Figure; 3] = [Figure::Hits, Figure::ReadAheadHits, Figure::FaultHits];

/// Adds up one run.
pub(super) struct Gather {
    before: Arc<Sample>,
    files: HashMap<Key, Used>,
    /// Whether there was no room for a file.
    full: bool,
    /// Whether the counts of all files are kept, and not of the busiest alone.
    pub(super) every: bool,
    /// Whether some of it goes on after the last sample: what it waits for then has begun, and nobody will count it.
    pub(super) goes_on: bool,
    processes: BTreeMap<u32, Comm>,
    timeline: Timeline,
    /// What others brought in.
    brought: certify::Brought,
    /// What is known of each file, and a sample from after that was asked.
    asked: Option<(HashMap<Key, certify::Told>, Arc<Sample>)>,
}

impl Gather {
    /// What comes after this sample.
    pub(super) fn new(before: Arc<Sample>) -> Self {
        let timeline = Timeline::new(&before);
        let brought = certify::Brought::default();
        let processes = before.followed.as_ref().map_or_else(BTreeMap::new, |f| f.processes.clone());
        Self {
            before,
            files: HashMap::new(),
            full: false,
            every: false,
            goes_on: false,
            processes,
            timeline,
            brought,
            asked: None,
        }
    }

    /// One more sample, of which the list of who brought what in takes note as well.
    pub(super) fn sample(&mut self, now: &Sample, origins: &mut Origins) {
        self.brought.note(now);
        let Some(followed) = &now.followed else { return origins.note(now) };
        let parts = followed.parts.iter().copied().chain(std::iter::repeat(Parts::Unknown));
        for (f, parts) in followed.files.iter().zip(parts) {
            self.file(f, parts, followed.run, origins);
        }
        origins.note(now);
        for f in &followed.files {
            let file = f.file.key();
            if let Some(used) = self.files.get_mut(&file) {
                let pages = |f: &Filled| u64::from(f.most);
                let now: u64 = origins.but(followed.run, file).map(|f| pages(&f)).sum();
                used.meanwhile = now.saturating_sub(used.fillers.iter().map(pages).sum());
            }
        }
        self.processes.extend(&followed.processes);
        self.timeline.sample(now, followed);
    }

    fn file(&mut self, f: &FileSample, parts: Parts, run: u32, origins: &Origins) {
        let file = f.file.key();
        if self.files.len() >= USED && !self.files.contains_key(&file) {
            self.full = true;
            return;
        }
        let used = self.files.entry(file).or_insert_with(|| Used {
            file: Arc::clone(&f.file),
            deleted: false,
            sum: Sparse::default(),
            parts: Parts::Unknown,
            fillers: origins.but(run, file).collect(),
            meanwhile: 0,
        });
        used.deleted = f.deleted;
        used.parts = used.parts.and(parts);
        for (counter, n) in f.counters.iter() {
            used.sum.set(counter, used.sum.at(counter) + n);
        }
    }

    /// After the last sample: asks what is cached of the files now. What is then read by `after`, a sample later than all
    /// answers, makes the books complete.
    pub(super) fn ask(
        &mut self,
        mounts: &Mounts,
        known: &Beforehand,
        after: impl FnOnce() -> anyhow::Result<Arc<Sample>>,
    ) -> anyhow::Result<()> {
        let told = certify::ask(self.files.values(), mounts, known);
        let late = after()?;
        self.brought.note_late(&late);
        self.asked = Some((told, late));
        Ok(())
    }

    /// The certificate; `None` if the files were not asked for.
    fn certificate(&self, last: &Sample, ours: &Figures) -> Option<Certificate> {
        let (told, late) = self.asked.as_ref()?;
        let plan = self.before.known.plan();
        let all = model::whole(&self.before, late, &plan);
        let books = certify::Books {
            brought: &self.brought,
            left: all.total.get(Figure::Evicted).zip(all.total.get(Figure::Removed)).map(|(e, r)| e + r),
            lost: all.lost.total(),
            worth: plan.certainty(Figure::Fills),
            unlisted: self.full,
        };
        let meanwhile = model::whole(&self.before, last, &plan);
        Some(Certificate {
            id: certificate::ID.into(),
            before: certify::before(self.files.values(), told, &books),
            cold: None,
            others: certify::others(&meanwhile.total, ours, plan.at_least.contains(&Figure::DirectReadBytes)),
            lost: meanwhile.lost.total(),
        })
    }

    /// The run, but for what the caller knows: times, status, usage.
    pub(super) fn finish(self, last: &Sample, mounts: &Mounts, known: &Beforehand, origins: &Origins) -> Run {
        let worth = &self.before.known;
        let plan = &worth.plan();
        let none = Box::default();
        let followed = last.followed.as_ref().unwrap_or(&none);
        let c = &followed.counters;
        let (waited, unended) = lasting::waits(followed, self.goes_on);
        let figures = own_figures(c, plan);
        let whole = model::whole(&self.before, last, plan);
        let system = &whole.total;
        let latency = plan.knows(Figure::StallNs);
        let certificate = self.certificate(last, &figures);
        let mut files: Vec<_> = self.files.into_values().collect();
        let files_seen = files.len() as u64;
        let files_brought = files.iter().filter(|f| brought(f) > 0).count() as u64;
        let seen = model::known(plan);
        files.sort_by_cached_key(|f| (std::cmp::Reverse(counts(&f.sum, &seen).weight()), f.file.inode));
        let look = warm::Disk::new(mounts, known);
        let gone = system.get(Figure::Evicted).zip(system.get(Figure::Removed)).map(|(e, r)| e + r);
        let there = certificate.as_ref().and_then(Certificate::there);
        let who = (origins, &self.brought);
        let judged = warm::judge(&files, (c, gone, there), (followed.run, self.full), who, mounts, &look);
        let unused_pages = Some(files.iter().map(unused).sum());
        // All files are asked for their sizes: only where the kernel says that something came back.
        let came_back =
            figures.get(Figure::Refaulted).or(system.get(Figure::Refaulted)).is_none_or(|n| n > 0);
        let since = self.before.time;
        let twice_pages = came_back.then(|| twice::twice(&files, |used| look.unchanged(used, since)));
        let count = |f: &Used| FileRow {
            dev: f.file.block.unwrap_or(f.file.dev).to_string(),
            inode: f.file.inode,
            fs: mounts.kind(f.file.dev).map(String::from),
            ..counts(&f.sum, &seen)
        };
        let every = if self.every { files.iter().map(count).collect() } else { Vec::new() };
        let (copies, round) = (copied::find(&files, mounts), residency::Round::new());
        files.truncate(FILES);
        Run {
            waits: Waits::new(&waited, worth.uses(follow::SWITCH), worth.uses(follow::THROTTLE)),
            unended: unended.filter(|_| worth.uses(follow::SWITCH)),
            lookups: lookups(worth, c),
            latency: latency.then(|| Latency::from(&followed.histograms)),
            window_pages: latency.then(|| followed.histograms.window.to_vec()),
            files: files
                .iter()
                .map(|f| FileRow {
                    unchanged: look.unchanged(f, since).is_some(),
                    ..row(f, copies.get(&f.file.key()), mounts, known, &seen, &round)
                })
                .collect(),
            files_seen,
            files_brought,
            every,
            certificate,
            asked_pages: judged.asked,
            warm_pages: judged.warm,
            since_pages: judged.since,
            warm_ahead_pages: judged.warm_ahead,
            memory_pages: judged.memory,
            // Of a part of the files, or of the ways to use them, nothing is said of the whole.
            bound: Some(judged.bound)
                .filter(|_| !judged.origin.unlisted && FOUND.iter().all(|f| seen[*f as usize])),
            origin: judged.origin,
            warmers: judged.warmers,
            twice_pages,
            unused_pages: unused_pages.filter(|_| seen[Figure::FaultHits as usize]),
            one_thread: worth.uses(follow::SWITCH).then_some(matches!(followed.threads, Threads::One(_))),
            processes: self.processes.iter().map(|(p, c)| (*p, c.foreign())).collect(),
            system: elsewhere(system, &figures),
            timeline: self.timeline.ticks,
            lost: lost(&whole.lost),
            figures,
            ..Run::default()
        }
    }
}

/// Figures of a run alone: what is only known of the whole machine is not among them.
fn own_figures(c: &Counters, plan: &Plan) -> Figures {
    let mut figures = model::figures(c, plan);
    for figure in Figure::ALL.iter().filter(|f| plan.whole_only(**f)) {
        figures.set(*figure, None);
    }
    figures
}

/// What the whole machine did while a run did `ours`.
fn elsewhere(system: &Figures, ours: &Figures) -> Elsewhere {
    let misses = system.get(Figure::Misses).zip(ours.get(Figure::Misses));
    Elsewhere {
        evicted: system.get(Figure::Evicted),
        removed: system.get(Figure::Removed),
        readahead_wasted: system.get(Figure::ReadAheadWasted),
        refaulted: system.get(Figure::Refaulted),
        misses_of_others: misses.map(|(all, ours)| all.saturating_sub(ours)),
    }
}

/// What was not accounted, by reason.
fn lost(all: &Lost) -> BTreeMap<String, u64> {
    all.by_reason.iter().filter(|(_, n)| *n > 0).map(|(why, n)| (why.to_string(), *n)).collect()
}

/// Names that were looked up in the file system, where that is seen.
fn lookups(worth: &Known, c: &Counters) -> Lookups {
    let seen = follow::LOOKUP.iter().any(|p| worth.uses(p));
    Lookups {
        dcache_misses: seen.then(|| c.get(Counter::Lookups)),
        work_ns: seen.then(|| c.get(Counter::LookupNs)).filter(|_| enough_ended(c)),
    }
}

/// Whether the work on names is known. Some file systems end a look-up where nobody sees it: of a part nothing is said of the whole,
/// unless next to nothing is missing.
fn enough_ended(c: &Counters) -> bool {
    let (all, ended) = (c.get(Counter::Lookups), c.get(Counter::LookupsEnded));
    ended * 10 >= all * 9 || all.saturating_sub(ended) < FEW_NAMES
}

#[cfg(test)]
mod tests;
