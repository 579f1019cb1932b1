//! Rows of one kind: counted on by themselves as long as there is room, and then by what they have in common.

use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher as _;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;
use hashbrown::HashTable;

use super::seen::Seen;
use crate::files::Dev;
use crate::files::File;
use crate::pivot::By;
use crate::pivot::Families;
use crate::pivot::Item;
use crate::sample::Comm;
use crate::sample::Counters;
use crate::sample::Family;
use crate::sample::Folded;
use crate::sample::RowSample;
use crate::sample::Sparse;

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// From so many rows on those of processes that have ended are looked for.
    pub few: usize,
    /// Rows at most, whoever is alive.
    pub rows: usize,
    /// What was added up, at most.
    pub folded: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { few: 512, rows: 16384, folded: 4096 }
    }
}

impl Room {
    /// For files: a process uses many, and each row holds a name. What a build of some minutes touches would take as much
    /// memory as all the rest.
    pub(super) fn of_files(self) -> Self {
        Self { rows: self.rows.min(8192), ..self }
    }
}

/// A process that has ended may have a last word: it is gone when it has been silent for so many intervals.
const SILENT: u32 = 2;

/// What rows that are added up have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Shared {
    Process(u32),
    /// Processes that have ended, of one name and cgroup, and below one that lived when they were put away.
    Ended(Comm, u64, Option<(u32, u64)>),
    Comm(Comm),
    User(u32),
    Cgroup(u64),
    File(Arc<File>),
    /// The device itself, or what is mounted of it.
    Device(Dev, bool),
}

/// Process, name, user and cgroup, of which one is shared.
pub(super) const fn owner(by: By, (tgid, process, uid, cgroup): (u32, Comm, u32, u64)) -> Option<Shared> {
    match by {
        By::Process => Some(Shared::Process(tgid)),
        By::Comm => Some(Shared::Comm(process)),
        By::User => Some(Shared::User(uid)),
        By::Cgroup => Some(Shared::Cgroup(cgroup)),
        By::Thread | By::File | By::Mount | By::Device | By::Evictor => None,
    }
}

/// A row that is counted on.
pub(super) trait Kept: Clone {
    /// What is counted on together.
    type Key: Hash + Eq;

    fn key(&self) -> Self::Key;
    /// Whether both have the same key.
    fn same(&self, other: &Self) -> bool;
    fn tgid(&self) -> u32;
    fn counters(&self) -> &Sparse;
    fn item(&self) -> Item<'_>;
    /// Adds what came later.
    fn add(&mut self, new: &Self);
    fn shared(&self, by: By) -> Option<Shared>;
    /// Counters only.
    fn without_latency(&self) -> Self;
    /// The same of nobody any more.
    fn ended(&self, family: Option<Family>) -> Self;
    /// The row of a thread that it is.
    fn of_thread(&self) -> Option<&RowSample>;
}

/// Rows, and what became too many.
type Rows<'a, R> = (&'a mut Vec<R>, &'a mut Vec<Folded<R>>);

/// What is known of the rows of one kind.
#[derive(Debug, Clone)]
pub(super) struct Kind<R: Kept> {
    by: &'static [By],
    /// Processes are made of these rows.
    processes: bool,
    room: Room,
    /// Where the row of a key is. Keys are in the rows: here they would take as much memory again.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    row: PhantomData<fn(&R)>,
    /// When each row counted last.
    touched: Vec<u32>,
    round: u32,
    /// From so many rows on room is made.
    limit: usize,
    folded: HashMap<Shared, usize>,
    /// Those of living processes that had to go: they have no row of their own any more.
    away: Seen,
    /// The same of what was added up.
    lost: Seen,
}

impl<R: Kept> Kind<R> {
    pub(super) fn new(by: &'static [By], processes: bool, room: Room) -> Self {
        Self {
            by,
            processes,
            room,
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            row: PhantomData,
            touched: Vec::new(),
            round: 0,
            limit: room.few,
            folded: HashMap::new(),
            away: Seen::default(),
            lost: Seen::default(),
        }
    }

    /// Adds the rows that are taken; all that these counted is returned.
    pub(super) fn add(
        &mut self,
        (rows, folded): Rows<'_, R>,
        new: &[R],
        takes: &mut dyn FnMut(&Item<'_>) -> bool,
        alive: &dyn Fn(u32) -> bool,
    ) -> Counters {
        self.round += 1;
        let mut all = Counters::default();
        // Mostly the same rows come in the same order: the one behind the last is looked at first.
        let mut next = 0;
        for row in new {
            if !takes(&row.item()) {
                continue;
            }
            all.add_sparse(row.counters());
            let at = match rows.get(next).is_some_and(|old| old.same(row)) {
                true => next,
                false => match self.find(rows, row) {
                    Some(at) => at,
                    None if self.away.has(&row.key()) => {
                        self.fold(row, None, folded);
                        continue;
                    }
                    None => {
                        rows.push(row.clone());
                        self.touched.push(self.round);
                        self.enter(rows, rows.len() - 1);
                        next = rows.len();
                        continue;
                    }
                },
            };
            rows[at].add(row);
            self.touched[at] = self.round;
            next = at + 1;
        }
        if rows.len() > self.limit {
            self.make_room(rows, folded, alive);
        }
        if folded.len() > self.room.folded {
            self.drop_folded(folded, alive);
        }
        all
    }

    fn hash(&self, row: &R) -> u64 {
        self.hasher.hash_one(row.key())
    }

    /// Where a row is counted on, if it is.
    fn find(&self, rows: &[R], row: &R) -> Option<usize> {
        let same = |at: &u32| rows.get(*at as usize).is_some_and(|old| old.same(row));
        self.index.find(self.hash(row), same).map(|at| *at as usize)
    }

    /// Lets the row at this place be found.
    fn enter(&mut self, rows: &[R], at: usize) {
        let hash = |at: &u32| rows.get(*at as usize).map_or(0, |row| self.hasher.hash_one(row.key()));
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        self.index.insert_unique(hash(&at), at, hash);
    }

    pub(super) fn is_forgotten(&self, by: By, (rows, folded): (&[R], &[Folded<R>]), row: usize) -> bool {
        let row = rows.get(row).or_else(|| folded.get(row.checked_sub(rows.len())?).map(|f| &f.row));
        let by = if by == By::Mount { By::Device } else { by };
        // What is there as a whole was never forgotten, whatever the filter takes it for.
        let forgotten = |shared: Shared| self.lost.has(&shared) && !self.folded.contains_key(&shared);
        !self.lost.is_empty() && row.and_then(|r| r.shared(by)).is_some_and(forgotten)
    }

    /// Adds a row up by what outlives it; as a process by itself only if it goes on. Of one that has ended `over` has who lives
    /// above it, if anybody knows.
    fn fold(&mut self, row: &R, over: Option<Option<Family>>, folded: &mut Vec<Folded<R>>) {
        let process = self.processes.then_some(By::Process);
        let ended = over.map(|family| row.ended(family));
        for by in self.by.iter().copied().chain(process) {
            let row = ended.as_ref().filter(|_| by == By::Process).unwrap_or(row);
            let there = |s: &Shared| self.folded.contains_key(s) || !self.lost.has(s);
            let Some(shared) = row.shared(by).filter(there) else { continue };
            match self.folded.entry(shared) {
                Entry::Occupied(at) => folded[*at.get()].row.add(&row.without_latency()),
                Entry::Vacant(place) => {
                    place.insert(folded.len());
                    folded.push(Folded { by, row: row.without_latency() });
                }
            }
        }
    }

    /// Adds up the rows of processes that have ended, the least busy first, until few are left; of processes that live only
    /// where there would be too many.
    fn make_room(&mut self, rows: &mut Vec<R>, folded: &mut Vec<Folded<R>>, alive: &dyn Fn(u32) -> bool) {
        /// A process: what it counted, when it did so last, how many rows it has.
        #[derive(Default)]
        struct Process {
            weight: u64,
            touched: u32,
            rows: usize,
        }
        let mut processes: HashMap<u32, Process> = HashMap::new();
        for (row, touched) in rows.iter().zip(&self.touched) {
            let process = processes.entry(row.tgid()).or_default();
            process.weight = process.weight.saturating_add(weight(row.counters()));
            process.touched = process.touched.max(*touched);
            process.rows += 1;
        }
        let silent = |p: &Process| p.touched + SILENT <= self.round;
        let mut ended: Vec<_> = processes.iter().filter(|(pid, p)| silent(p) && !alive(**pid)).collect();
        ended.sort_unstable_by_key(|(pid, p)| (p.weight, **pid));
        let (mut left, mut going) = (rows.len(), HashSet::new());
        for (pid, process) in ended {
            if left <= self.room.few / 2 {
                break;
            }
            left -= process.rows;
            going.insert(*pid);
        }
        // Rows of those that live, from this weight on.
        let mut bar = 0;
        if left > self.room.rows {
            let stay = rows.iter().filter(|r| !going.contains(&r.tgid()));
            let mut weights: Vec<_> = stay.map(|r| weight(r.counters())).collect();
            weights.sort_unstable();
            bar = weights.get(left - self.room.rows / 4 * 3 - 1).map_or(u64::MAX, |w| w.saturating_add(1));
        }
        self.put_away(rows, folded, (&going, bar), alive);
        self.limit = self.room.few.max(rows.len() / 2 * 3).min(self.room.rows);
    }

    /// These have ended, and others have their numbers since: what they counted must not become these others'.
    pub(super) fn end(
        &mut self,
        (rows, folded): Rows<'_, R>,
        ended: &HashSet<u32>,
        alive: &dyn Fn(u32) -> bool,
    ) {
        let alive = |pid| !ended.contains(&pid) && alive(pid);
        self.put_away(rows, folded, (ended, 0), &alive);
        // What they counted in rows that had to go.
        self.folded.clear();
        for mut f in std::mem::take(folded) {
            if f.by == By::Process && ended.contains(&f.row.tgid()) {
                f.row = f.row.ended(f.row.of_thread().and_then(|r| r.family));
            }
            let there = |s: &Shared| self.folded.contains_key(s) || !self.lost.has(s);
            let Some(shared) = f.row.shared(f.by).filter(there) else { continue };
            match self.folded.entry(shared) {
                Entry::Occupied(at) => folded[*at.get()].row.add(&f.row),
                Entry::Vacant(place) => {
                    place.insert(folded.len());
                    folded.push(f);
                }
            }
        }
    }

    /// Adds up the rows of processes that have ended, and those that weigh less than `bar`.
    fn put_away(
        &mut self,
        rows: &mut Vec<R>,
        folded: &mut Vec<Folded<R>>,
        (going, bar): (&HashSet<u32>, u64),
        alive: &dyn Fn(u32) -> bool,
    ) {
        let families = Families::new(rows.iter().filter_map(Kept::of_thread));
        let mut kept = Vec::with_capacity(rows.len());
        let mut touched = Vec::with_capacity(rows.len());
        for (row, round) in std::mem::take(rows).into_iter().zip(std::mem::take(&mut self.touched)) {
            if going.contains(&row.tgid()) {
                let family = row.of_thread().and_then(|r| r.family);
                let above = family.and_then(|f| families.living(f, &mut |pid| !alive(pid)));
                self.fold(&row, Some(above), folded);
            } else if weight(row.counters()) < bar {
                self.away.put(&row.key());
                self.fold(&row, None, folded);
            } else {
                kept.push(row);
                touched.push(round);
            }
        }
        kept.shrink_to_fit();
        touched.shrink_to_fit();
        (*rows, self.touched) = (kept, touched);
        self.index = HashTable::with_capacity(rows.len());
        for at in 0..rows.len() {
            self.enter(rows, at);
        }
    }

    /// The least busy quarter goes, and processes that have ended before it.
    fn drop_folded(&mut self, folded: &mut Vec<Folded<R>>, alive: &dyn Fn(u32) -> bool) {
        folded.sort_by_cached_key(|f| {
            let ended = f.by == By::Process && f.row.tgid() != 0 && !alive(f.row.tgid());
            std::cmp::Reverse(if ended { 0 } else { weight(f.row.counters()) })
        });
        for gone in folded.drain(self.room.folded / 4 * 3..) {
            if let Some(shared) = gone.row.shared(gone.by) {
                self.lost.put(&shared);
            }
        }
        folded.shrink_to_fit();
        let keys = folded.iter().enumerate().filter_map(|(at, f)| Some((f.row.shared(f.by)?, at)));
        self.folded = keys.collect();
    }
}

/// What a row is worth: everything that was counted, bytes and times as well, for what has only these.
fn weight(counters: &Sparse) -> u64 {
    counters.iter().fold(0, |sum, (_, n)| sum.saturating_add(n))
}
