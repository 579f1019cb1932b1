//! Who brought pages of which file into the cache while the session lasts: earlier runs of the command, and others.
//!
//! All files are kept, not the busiest, since a tree of thousands of small ones has no busiest. The list is bounded all the
//! same: a few words for each file and who filled it. What finds no room is known to be missing, and then nothing is
//! said to have been there before.

use std::collections::HashMap;
use std::collections::HashSet;

use crate::files::Key;
use crate::sample::Counter;
use crate::sample::Sample;
use crate::sample::Sparse;
use crate::text::foreign::Foreign;

/// Entries, one for each file and who filled it: some 30 MiB when all are taken, 60 bytes each with the file's key.
const ENTRIES: usize = 1 << 18;
/// Those who are told apart. Later ones count together.
const WHOS: usize = 1 << 13;
/// Those who are told apart of one file.
const OF_A_FILE: usize = 16;

/// Who brings pages in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Who {
    /// A run of the command in this session.
    Run(u32),
    /// Another process.
    Process {
        /// Its id.
        pid: u32,
        /// Its name.
        comm: Foreign,
        /// When it was seen last, universal time.
        time: String,
    },
    /// Others that there was no room to tell apart.
    Several,
}

/// What one of them did to one file, pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Filled {
    /// Number of who it was.
    pub(super) who: u32,
    /// Pages that were not there before.
    pub(super) pages: u32,
    /// Where it is not known which written pages were absent, all of those that were dirtied are among these.
    pub(super) most: u32,
    /// The reading at which it was seen last.
    pub(super) turn: u32,
}

#[derive(Debug)]
struct Entry {
    filled: Filled,
    /// The entry after this one of the same file.
    next: Option<u32>,
}

/// The list.
#[derive(Debug)]
pub(super) struct Origins {
    files: HashMap<Key, u32>,
    entries: Vec<Entry>,
    whos: Vec<Who>,
    /// Numbers in `whos`: of runs (true) by number, of processes by id.
    numbers: HashMap<(bool, u32), u32>,
    turn: u32,
    /// The run that is followed, and its processes so far.
    members: (u32, HashSet<u32>),
    room: usize,
    /// Whether something found no room.
    full: bool,
}

impl Default for Origins {
    fn default() -> Self {
        Self::with_room(ENTRIES)
    }
}

fn narrow(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Pages that a row brought in: those that it surely did, and those that it may have.
pub(super) fn fills(c: &Sparse) -> (u64, u64) {
    let read = [Counter::ReadMisses, Counter::Prefetched, Counter::FaultMisses];
    let read: u64 = read.iter().map(|n| c.get(*n)).sum();
    let absent = c.get(Counter::WriteMisses);
    (read + absent, read + absent.max(c.get(Counter::Dirtied)))
}

impl Origins {
    /// A list of so many entries.
    pub(super) fn with_room(room: usize) -> Self {
        Self {
            files: HashMap::new(),
            entries: Vec::new(),
            whos: vec![Who::Several],
            numbers: HashMap::new(),
            turn: 0,
            members: (0, HashSet::new()),
            room,
            full: false,
        }
    }

    /// Notes what was brought in since the reading before: by the run that is followed, and by others.
    pub(super) fn note(&mut self, sample: &Sample) {
        self.turn = self.turn.saturating_add(1);
        let followed = sample.followed.as_deref();
        let run = followed.map_or(0, |f| f.run);
        if self.members.0 != run {
            self.members = (run, HashSet::new());
        }
        self.members.1.extend(followed.into_iter().flat_map(|f| f.processes.keys()));
        let of_run = || followed.into_iter().flat_map(|f| &f.files);
        let ours: HashSet<(u32, Key)> = of_run().map(|f| (f.tgid, f.file.key())).collect();
        for f in of_run() {
            self.add(f.file.key(), fills(&f.counters), (true, run), || Who::Run(run));
        }
        for f in &sample.files {
            let file = f.file.key();
            if self.members.1.contains(&f.tgid) || ours.contains(&(f.tgid, file)) {
                continue;
            }
            let time = || crate::view::utc(sample.time);
            let comm = || f.process.foreign();
            let who = || Who::Process { pid: f.tgid, comm: comm(), time: time() };
            let Some(number) = self.add(file, fills(&f.counters), (false, f.tgid), who) else { continue };
            // The newest name, and the last time.
            if let Some(Who::Process { comm: c, time: t, .. }) = self.whos.get_mut(number as usize) {
                (*c, *t) = (comm(), time());
            }
        }
        // The kernel programs had no room for some file: whoever filled it is not known.
        self.full |= sample.lost.by_reason.iter().any(|(why, n)| *why == "files_full" && *n > 0);
    }

    /// Adds to the entry of a file and who filled it: the number of the latter, if there was anything to add.
    fn add(
        &mut self,
        file: Key,
        (pages, most): (u64, u64),
        who: (bool, u32),
        make: impl Fn() -> Who,
    ) -> Option<u32> {
        if most == 0 {
            return None;
        }
        let mut number = match self.numbers.get(&who) {
            Some(n) => *n,
            None if self.whos.len() < WHOS => {
                let n = narrow(self.whos.len() as u64);
                self.whos.push(make());
                self.numbers.insert(who, n);
                n
            }
            None => 0,
        };
        let mut at = self.files.get(&file).copied();
        let (mut known, mut last) = (0, None);
        while let Some(entry) = at.and_then(|n| self.entries.get_mut(n as usize)) {
            // Of a file that many fill, all but the first few count together.
            if entry.filled.who == number || (known >= OF_A_FILE && entry.filled.who == 0) {
                let f = &mut entry.filled;
                (f.pages, f.most) =
                    (f.pages.saturating_add(narrow(pages)), f.most.saturating_add(narrow(most)));
                f.turn = self.turn;
                return Some(f.who);
            }
            (known, last, at) = (known + 1, at, entry.next);
        }
        if self.entries.len() >= self.room {
            self.full = true;
            return None;
        }
        if known >= OF_A_FILE {
            number = 0;
        }
        let new = narrow(self.entries.len() as u64);
        let filled = Filled { who: number, pages: narrow(pages), most: narrow(most), turn: self.turn };
        self.entries.push(Entry { filled, next: None });
        match last.and_then(|n| self.entries.get_mut(n as usize)) {
            Some(before) => before.next = Some(new),
            None => drop(self.files.insert(file, new)),
        }
        Some(number)
    }

    /// Who filled a file up to now, but for one run.
    pub(super) fn but(&self, run: u32, file: Key) -> impl Iterator<Item = Filled> {
        let not = self.numbers.get(&(true, run)).copied();
        let first = self.files.get(&file).and_then(|n| self.entries.get(*n as usize));
        std::iter::successors(first, |e| self.entries.get(e.next? as usize))
            .map(|e| e.filled)
            .filter(move |f| Some(f.who) != not)
    }

    /// Who has this number.
    pub(super) fn who(&self, number: u32) -> &Who {
        self.whos.get(number as usize).unwrap_or(&Who::Several)
    }

    /// Whether all that was brought in since the session began is in the list.
    pub(super) const fn complete(&self) -> bool {
        !self.full
    }
}

#[cfg(test)]
mod tests;
