//! Rows of threads, read where the kernel programs write them.
//!
//! The table is mapped into memory as far as it is in use. A tick looks at one word of each row, which says what groups
//! of counters changed, and reads these where they stand: a row is nine lines of the processor's cache, of which a
//! reader changes two.

mod plain;
mod waiting;

pub(super) use self::plain::Looked;
pub(super) use self::plain::State;

use std::sync::atomic::Ordering;
use std::sync::atomic::fence;

use hashbrown::HashMap;
use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;

use super::chores::Chores;
use super::chores::Stack;
use super::mapped::Mapped;
use super::skel::CachetopSkel;
use super::skel::comm;
use super::skel::types;
use crate::sample::Counters;
use crate::sample::Family;
use crate::sample::Followed;
use crate::sample::Histograms;
use crate::sample::RowSample;
use crate::sample::Sparse;
use crate::wire::COUNTERS;
use crate::wire::GROUP_ENDS;
use crate::wire::GROUPS;
use crate::wire::LATENCY_BUCKETS;
use crate::wire::ROW_ENDED;
use crate::wire::ROW_FREE;
use crate::wire::WINDOW_BUCKETS;

/// What was counted since `before`, which takes the new values, `now`; only groups of counters that were touched are
/// looked at. Counters only rise: where one did not, all of them count from zero again.
fn advance(before: &mut Sparse, touched: [bool; GROUPS], now: &impl Fn(usize) -> u64) -> Sparse {
    let mut counted = Sparse::default();
    let groups = GROUP_ENDS.windows(2).zip(touched).filter(|(_, touched)| *touched);
    for (ends, _) in groups {
        for i in ends[0]..ends[1] {
            let (now_i, then) = (now(i), before.at(i));
            if now_i < then {
                *before = Sparse::default();
                return advance(before, [true; GROUPS], now);
            }
            if now_i > then {
                counted.set(i, now_i - then);
                before.set(i, now_i);
            }
        }
    }
    counted
}

/// A byte for each group of counters, set by the kernel programs after each event.
type Marks = [u8; GROUPS];

/// The marks of a row, if any is set. Those that are seen set are cleared, byte by byte: another that is set at the same
/// moment stays for the next tick.
fn take_marks(row: *mut types::row) -> Option<Marks> {
    // SAFETY: the row is mapped; the kernel writes single bytes of an aligned word.
    unsafe {
        let marks = &raw mut (*row).touched;
        let seen = marks.cast::<u32>().read_volatile().to_ne_bytes();
        if seen == [0; GROUPS] {
            return None;
        }
        for (i, _) in seen.iter().enumerate().filter(|(_, mark)| **mark != 0) {
            marks.cast::<u8>().add(i).write_volatile(0);
        }
        Some(seen)
    }
}

/// The whole table, as far as it is in use.
#[derive(Debug)]
pub(super) struct Rows {
    /// Rows that are shown; those behind them count in the totals only.
    named: usize,
    /// Only some threads count: theirs are shown, wherever they stand, and no others.
    only: bool,
    /// With what each row had at the last reading.
    table: Mapped<types::row, Sparse>,
    /// Rows that changed, and their marks: kept from tick to tick.
    changed: Vec<(usize, Marks)>,
    /// Rows that are free since this reading, to be handed back.
    free: Vec<usize>,
    sum: Counters,
    latency: Option<Latency>,
    /// Requests that wait to be counted, by the number of their row; only where files are asked for.
    looked: Option<HashMap<usize, Looked>>,
}

/// The buckets of a row, one after the other, as the kernel programs count them.
type Buckets = [u32; 2 * LATENCY_BUCKETS + WINDOW_BUCKETS];

#[derive(Debug, Default)]
struct Latency {
    /// What the rows had at the last reading, by number.
    before: std::collections::HashMap<u32, Buckets>,
    sum: Histograms,
}

impl Rows {
    /// Hands all rows to the kernel programs: `named` of them, and `spare` ones for when these are taken.
    pub(super) fn new(
        skel: &CachetopSkel<'_>,
        named: u32,
        spare: u32,
        latency: bool,
        only: bool,
    ) -> libbpf_rs::Result<Self> {
        // Stacks: the lowest number is on top.
        for n in (0..named).rev() {
            skel.maps.free_rows.update(&[], &n.to_ne_bytes(), MapFlags::ANY)?;
        }
        for n in (named..named + spare).rev() {
            skel.maps.spare_rows.update(&[], &n.to_ne_bytes(), MapFlags::ANY)?;
        }
        Ok(Self {
            named: named as usize,
            only,
            table: Mapped::new((named + spare) as usize, &skel.maps.rows_taken)?,
            changed: Vec::new(),
            free: Vec::new(),
            sum: Counters::default(),
            latency: latency.then(Latency::default),
            looked: None,
        })
    }

    /// Remembers what of each thread waits to be counted: it is part of what its file has.
    pub(super) fn with_looked(self) -> Self {
        Self { looked: Some(HashMap::new()), ..self }
    }

    /// Requests that were looked at and have not been counted, as far as the last reading knows.
    pub(super) fn looked(&self) -> impl Iterator<Item = (usize, &Looked)> {
        self.looked.iter().flatten().map(|(n, looked)| (*n, looked))
    }

    /// What has become of one of them.
    pub(super) fn state_of(&self, n: usize, looked: &Looked) -> State {
        // SAFETY: a row that was read is mapped.
        unsafe { looked.state(self.row(n)) }
    }

    /// Everything that rows counted since attach.
    pub(super) fn sum(&self) -> Counters {
        self.sum
    }

    /// Latency since attach, if it is kept.
    pub(super) fn latency(&self) -> Option<&Histograms> {
        self.latency.as_ref().map(|l| &l.sum)
    }

    fn row(&self, n: usize) -> *mut types::row {
        self.table.row(n)
    }

    /// Behind this number no row is in use.
    pub(super) fn end(&mut self, skel: &CachetopSkel<'_>) -> libbpf_rs::Result<u32> {
        self.table.follow(&skel.maps.rows)?;
        Ok(u32::try_from(self.table.end()).unwrap_or(u32::MAX))
    }

    /// Only some threads are asked for.
    pub(super) const fn only(&self) -> bool {
        self.only
    }

    /// How many rows are not free: of those that are shown, or kept for some, or of the others. One word of each row that is
    /// mapped is looked at. `None` where they cannot be mapped.
    pub(super) fn used(&mut self, skel: &CachetopSkel<'_>, named: bool) -> Option<u64> {
        self.table.follow(&skel.maps.rows).ok()?;
        Some(self.table.used(if named { 0..self.named } else { self.named..usize::MAX }))
    }

    /// Marks the rows of a process as belonging to a run.
    pub(super) fn enter(&mut self, skel: &CachetopSkel<'_>, tgid: u32, run: u32) -> libbpf_rs::Result<()> {
        self.table.follow(&skel.maps.rows)?;
        self.table.enter(tgid, run);
        Ok(())
    }

    /// What was counted since the last reading. Rows whose thread is gone are free afterwards.
    pub(super) fn read(
        &mut self,
        skel: &CachetopSkel<'_>,
        chores: &Chores,
        followed: &mut Followed,
    ) -> libbpf_rs::Result<Vec<RowSample>> {
        self.table.follow(&skel.maps.rows)?;
        let mut changed = std::mem::take(&mut self.changed);
        changed.clear();
        changed.extend(self.table.rows().filter_map(|(n, row, _)| Some((n, take_marks(row)?))));
        // An event after this counts for the next tick, where it finds its mark set again.
        fence(Ordering::SeqCst);
        let mut out = Vec::with_capacity(changed.len());
        for (n, touched) in changed.iter().copied() {
            self.table.stir(n);
            out.extend(self.read_row(chores, n, touched, followed)?);
        }
        self.changed = changed;
        self.hand_back(chores)?;
        self.let_go();
        Ok(out)
    }

    fn read_row(
        &mut self,
        chores: &Chores,
        n: usize,
        touched: Marks,
        followed: &mut Followed,
    ) -> libbpf_rs::Result<Option<RowSample>> {
        let row = self.row(n);
        macro_rules! read {
            ($($field:tt)+) => {
                // SAFETY: the row is mapped. Who it is does not change while it is not free; counters are whole words.
                unsafe { (&raw const (*row).$($field)+).read_volatile() }
            };
        }
        let ended = read!(state) == ROW_ENDED;
        let mut touched = touched.map(|mark| ended || mark != 0);
        // SAFETY: the row is mapped.
        let Some(reading) = (unsafe { plain::read(row) }) else {
            // Its thread is at it: the next tick looks again.
            // SAFETY: bytes, which the kernel programs set as well.
            unsafe { (&raw mut (*row).touched).write_volatile([1; GROUPS]) };
            return Ok(None);
        };
        if reading.others() {
            touched = [true; GROUPS];
        }
        if let Some(all) = &mut self.looked {
            match reading.looked {
                Some(looked) => drop(all.insert(n, looked)),
                None => drop(all.remove(&n)),
            }
        }
        let counters =
            advance(self.table.known_mut(n), touched, &|i| reading.get(i).unwrap_or_else(|| read!(v[i])));
        self.sum.add_sparse(&counters);
        let (tgid, run) = (read!(tgid), read!(run));
        let follows = run != 0 && run == followed.run;
        if follows {
            followed.counters.add_sparse(&counters);
            followed.processes.insert(tgid, comm(read!(process)));
            followed.threads.see(read!(tid));
        }
        let mut histograms = None;
        if let Some(latency) = &mut self.latency {
            let new = latency.read(chores, read!(number), ended)?;
            if follows {
                followed.histograms.add(&new);
            }
            histograms = (new != Histograms::default()).then(|| Box::new(new));
        }
        let shown = if self.only { read!(wanted) != 0 } else { n < self.named };
        let sample = (shown && !counters.is_zero()).then(|| RowSample {
            tgid,
            tid: read!(tid),
            uid: read!(uid),
            cgroup: read!(cgroup),
            born: read!(born),
            comm: comm(read!(comm)),
            process: comm(read!(process)),
            family: Some(Family {
                begun: read!(begun),
                parent: read!(parent),
                parent_begun: read!(parent_begun),
                parent_name: comm(read!(parent_name)),
            }),
            counters,
            latency: histograms,
        });
        if ended {
            *self.table.known_mut(n) = Sparse::default();
            self.free(n);
        }
        Ok(sample)
    }

    fn free(&mut self, n: usize) {
        let row = self.row(n);
        // SAFETY: the row is mapped, and its thread is gone: it is ours until its number is handed back.
        unsafe {
            (&raw mut (*row).v).write_volatile([0; COUNTERS]);
            (&raw mut (*row).beside.own).write_volatile(types::row_own::default());
            (&raw mut (*row).state).write_volatile(ROW_FREE);
        }
        self.free.push(n);
    }

    /// Hands back the rows that are free, the lowest last: it is taken first, so that those in use come to stand together.
    fn hand_back(&mut self, chores: &Chores) -> libbpf_rs::Result<()> {
        fence(Ordering::SeqCst);
        let (mut named, mut spare): (Vec<_>, Vec<_>) = self.free.drain(..).partition(|n| *n < self.named);
        let handed = chores
            .hand_back(Stack::Rows, &mut named)
            .and_then(|()| chores.hand_back(Stack::SpareRows, &mut spare));
        // What the kernel refused waits for the next reading.
        self.free.extend(named.into_iter().chain(spare));
        handed
    }

    /// Lets go of what a burst took.
    fn let_go(&mut self) {
        let Self { table, looked, changed, free, .. } = self;
        table.let_go(|rows| {
            if let Some(all) = looked {
                all.retain(|n, _| !rows.contains(n));
                all.shrink_to_fit();
            }
            (*changed, *free) = Default::default();
        });
    }
}

impl Latency {
    /// What came since the last reading of this row.
    fn read(&mut self, chores: &Chores, number: u32, ended: bool) -> libbpf_rs::Result<Histograms> {
        let bytes = chores.latency(number)?;
        let mut now: Buckets = [0; 2 * LATENCY_BUCKETS + WINDOW_BUCKETS];
        for (bucket, raw) in now.iter_mut().zip(bytes.chunks_exact(4)) {
            *bucket = raw.try_into().map_or(0, u32::from_ne_bytes);
        }
        let new = counted(self.before.get(&number), &now);
        self.sum.add(&new);
        if ended {
            self.before.remove(&number);
            chores.clear_latency(number)?;
        } else {
            self.before.insert(number, now);
        }
        Ok(new)
    }
}

/// What came since a reading, or since the row was made.
fn counted(before: Option<&Buckets>, now: &Buckets) -> Histograms {
    let mut new = Histograms::default();
    for (i, (bucket, n)) in new.buckets().zip(now).enumerate() {
        *bucket = n.wrapping_sub(before.and_then(|b| b.get(i)).copied().unwrap_or(0)).into();
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Counter;

    fn all(before: &mut Sparse, now: &[u64; COUNTERS]) -> Counters {
        advance(before, [true; GROUPS], &|i| now[i]).all()
    }

    #[test]
    fn buckets_that_begin_again_lose_nothing() {
        let mut now: Buckets = std::array::from_fn(|i| i as u32);
        let all = |h: &Histograms| h.clone().buckets().map(|n| *n).collect::<Vec<_>>();
        assert_eq!(all(&counted(None, &now)), (0..now.len() as u64).collect::<Vec<_>>());
        let before = now.map(|n| u32::MAX - n);
        now.iter_mut().for_each(|n| *n = 7);
        // One to zero, and seven more.
        assert_eq!(
            all(&counted(Some(&before), &now)),
            (0..now.len() as u64).map(|i| i + 8).collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_was_counted_is_the_difference() {
        let mut before = Sparse::default();
        let mut now = [0; COUNTERS];
        assert_eq!(all(&mut before, &now), Counters::default());
        for (i, value) in now.iter_mut().enumerate().filter(|(i, _)| i % 3 != 0) {
            *value = u64::MAX - 100 - i as u64;
        }
        assert_eq!(all(&mut before, &now), Counters(now));
        assert_eq!(all(&mut before, &now), Counters::default());
        let mut want = Counters::default();
        for counter in [Counter::ReadBytes, Counter::ReadHits, Counter::LedgerChunks] {
            now[counter as usize] += 7;
            want.0[counter as usize] = 7;
        }
        assert_eq!(all(&mut before, &now), want);
    }

    #[test]
    fn what_is_not_marked_waits() {
        let mut before = Sparse::default();
        let mut now = [5; COUNTERS];
        let counted = advance(&mut before, [false, true, false, false], &|i| now[i]).all();
        for (i, n) in counted.0.into_iter().enumerate() {
            assert_eq!(n, if (GROUP_ENDS[1]..GROUP_ENDS[2]).contains(&i) { 5 } else { 0 }, "{i}");
        }
        now[0] = 6;
        let rest = advance(&mut before, [true, false, true, true], &|i| now[i]).all();
        let mut sum = counted;
        sum.add(&rest);
        assert_eq!(sum, Counters(now));
    }

    #[test]
    fn marks_are_taken_once() {
        // SAFETY: a row of zeros is one.
        let mut row: types::row = unsafe { std::mem::zeroed() };
        assert_eq!(take_marks(&raw mut row), None);
        row.touched = [1, 0, 0, 1];
        assert_eq!(take_marks(&raw mut row), Some([1, 0, 0, 1]));
        assert_eq!(row.touched, [0; GROUPS]);
        assert_eq!(take_marks(&raw mut row), None);
    }

    #[test]
    fn a_counter_that_fell_counts_from_zero_with_all_others() {
        for fallen in [0, 4] {
            let mut before = Sparse::default();
            let mut now = [5; COUNTERS];
            all(&mut before, &now);
            now[Counter::ReadMisses as usize] = fallen;
            assert_eq!(all(&mut before, &now), Counters(now));
            assert_eq!(all(&mut before, &now), Counters::default());
        }
    }
}
