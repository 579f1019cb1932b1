//! Rows of threads, read where the kernel programs write them.
//!
//! The table is mapped into memory as far as it is in use. A tick looks at one word of each row and reads those that
//! changed. What a row had at the tick before is kept packed, since most counters of most threads stay zero.

use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::atomic::fence;

use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;

use super::attach::skel::CachetopSkel;
use super::attach::skel::types;
use crate::follow::Followed;
use crate::sample::Comm;
use crate::sample::Counters;
use crate::sample::Histograms;
use crate::sample::RowSample;
use crate::wire::COUNTERS;
use crate::wire::ROW_ENDED;
use crate::wire::ROW_FREE;

/// Rows that are mapped at a time: a whole number of memory pages, whatever the size of a row.
const CHUNK: usize = 1024;

/// The counters that are not zero.
#[derive(Debug, Default, Clone)]
struct Packed {
    which: u64,
    values: Vec<u64>,
}

impl Packed {
    /// What was counted since these values, which `now` takes the place of. Counters only rise: where one did not, or
    /// is gone, they count from zero again.
    fn advance(&mut self, now: &[u64; COUNTERS]) -> Counters {
        let which = now.iter().enumerate().fold(0, |which, (i, v)| which | u64::from(*v != 0) << i);
        let mut counted = Counters::default();
        let mut old = if self.which & !which == 0 { self.which } else { 0 };
        let mut values = self.values.iter();
        for i in bits(old) {
            let before = values.next().copied().unwrap_or(0);
            let Some(n) = now[i].checked_sub(before) else {
                old = 0;
                break;
            };
            counted.0[i] = n;
        }
        for i in bits(which & !old) {
            counted.0[i] = now[i];
        }
        self.which = which;
        self.values.clear();
        self.values.extend(bits(which).map(|i| now[i]));
        counted
    }
}

/// The numbers of the bits that are set.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (lowest < 64).then_some(lowest)
    })
}

/// A piece of the table in our memory.
#[derive(Debug)]
struct Chunk {
    rows: NonNull<types::row>,
}

// SAFETY: the memory is shared with the kernel anyway; every access goes through volatile reads and writes.
unsafe impl Send for Chunk {}

impl Chunk {
    fn map(table: &impl MapCore, n: usize, rows: usize) -> io::Result<Self> {
        let at = libc::off_t::try_from(n * CHUNK * size_of::<types::row>()).unwrap_or(libc::off_t::MAX);
        // SAFETY: a new mapping at a place of the kernel's choice; the descriptor is valid for the call.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                rows * size_of::<types::row>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                table.as_fd().as_raw_fd(),
                at,
            )
        };
        match NonNull::new(memory.cast()) {
            Some(rows) if memory != libc::MAP_FAILED => Ok(Self { rows }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// A row of the chunk; `n` is below the number of rows mapped.
    fn row(&self, n: usize) -> *mut types::row {
        self.rows.as_ptr().wrapping_add(n)
    }
}

/// The whole table, as far as it is in use.
#[derive(Debug)]
pub(super) struct Rows {
    /// Rows that are shown; those behind them count in the totals only.
    named: usize,
    all: usize,
    chunks: Vec<Chunk>,
    before: Vec<Packed>,
    sum: Counters,
    latency: Option<Latency>,
}

#[derive(Debug, Default)]
struct Latency {
    /// What the rows had at the last reading, by number.
    before: std::collections::HashMap<u32, Histograms>,
    sum: Histograms,
}

impl Rows {
    /// Hands all rows to the kernel programs: `named` of them, and `spare` ones for when these are taken.
    pub(super) fn new(
        skel: &CachetopSkel<'_>,
        named: u32,
        spare: u32,
        latency: bool,
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
            all: (named + spare) as usize,
            chunks: Vec::new(),
            before: Vec::new(),
            sum: Counters::default(),
            latency: latency.then(Latency::default),
        })
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
        self.chunks[n / CHUNK].row(n % CHUNK)
    }

    /// Maps as many chunks as are in use: numbers are given out from below, spare ones when no other is left.
    fn grow(&mut self, skel: &CachetopSkel<'_>) -> libbpf_rs::Result<()> {
        while self.before.len() < self.all {
            let last = self.before.len().checked_sub(1);
            // SAFETY: the row is mapped; the kernel writes whole words.
            let used = last.is_none_or(|n| unsafe { (&raw const (*self.row(n)).made).read_volatile() } > 0);
            if !used {
                break;
            }
            let rows = CHUNK.min(self.all - self.before.len());
            let chunk = Chunk::map(&skel.maps.rows, self.chunks.len(), rows)?;
            self.chunks.push(chunk);
            self.before.resize(self.before.len() + rows, Packed::default());
        }
        Ok(())
    }

    /// Marks the rows of a process as belonging to a run.
    pub(super) fn enter(&mut self, skel: &CachetopSkel<'_>, tgid: u32, run: u32) -> libbpf_rs::Result<()> {
        self.grow(skel)?;
        for n in 0..self.before.len() {
            let row = self.row(n);
            // SAFETY: the row is mapped; both are whole words, and the kernel programs only read the second one.
            unsafe {
                if (&raw const (*row).tgid).read_volatile() == tgid {
                    (&raw mut (*row).run).write_volatile(run);
                }
            }
        }
        Ok(())
    }

    /// What was counted since the last reading. Rows whose thread is gone are free afterwards.
    pub(super) fn read(
        &mut self,
        skel: &CachetopSkel<'_>,
        followed: &mut Followed,
    ) -> libbpf_rs::Result<Vec<RowSample>> {
        self.grow(skel)?;
        let mut changed = Vec::new();
        for n in 0..self.before.len() {
            let row = self.row(n);
            // SAFETY: the row is mapped; the kernel writes whole words.
            unsafe {
                let touched = &raw mut (*row).touched;
                if touched.read_volatile() != 0 {
                    touched.write_volatile(0);
                    changed.push(n);
                }
            }
        }
        // An event after this counts for the next tick, where it finds the word set again.
        fence(Ordering::SeqCst);
        let mut out = Vec::with_capacity(changed.len());
        for n in changed {
            // SAFETY: the row is mapped. Who it is does not change while it is not free; counters are whole words.
            let row = unsafe { self.row(n).read_volatile() };
            let counters = self.before[n].advance(&row.v);
            for i in bits(self.before[n].which) {
                self.sum.0[i] += counters.0[i];
            }
            let ended = row.state == ROW_ENDED;
            let follows = row.run != 0 && row.run == followed.run;
            if follows {
                followed.counters.add(&counters);
                followed.processes.insert(row.tgid, comm(row.process));
            }
            let mut histograms = None;
            if let Some(latency) = &mut self.latency {
                let new = latency.read(skel, row.number, ended)?;
                if follows {
                    followed.histograms.add(&new);
                }
                histograms = (new != Histograms::default()).then(|| Box::new(new));
            }
            if n < self.named && !counters.is_zero() {
                out.push(RowSample {
                    tgid: row.tgid,
                    tid: row.tid,
                    uid: row.uid,
                    cgroup: row.cgroup,
                    born: row.born,
                    comm: comm(row.comm),
                    process: comm(row.process),
                    counters,
                    latency: histograms,
                });
            }
            if ended {
                self.before[n] = Packed::default();
                self.free(skel, n)?;
            }
        }
        Ok(out)
    }

    fn free(&self, skel: &CachetopSkel<'_>, n: usize) -> libbpf_rs::Result<()> {
        let row = self.row(n);
        // SAFETY: the row is mapped, and its thread is gone: it is ours until its number is handed back.
        unsafe {
            (&raw mut (*row).v).write_volatile([0; COUNTERS]);
            (&raw mut (*row).state).write_volatile(ROW_FREE);
        }
        fence(Ordering::SeqCst);
        let number = u32::try_from(n).unwrap_or(u32::MAX).to_ne_bytes();
        let stack = if n < self.named { &skel.maps.free_rows } else { &skel.maps.spare_rows };
        stack.update(&[], &number, MapFlags::ANY)
    }
}

impl Latency {
    /// What came since the last reading of this row.
    fn read(&mut self, skel: &CachetopSkel<'_>, number: u32, ended: bool) -> libbpf_rs::Result<Histograms> {
        let key = number.to_ne_bytes();
        let bytes = skel.maps.histograms.lookup(&key, MapFlags::ANY)?.unwrap_or_default();
        let mut now = Histograms::default();
        for (bucket, raw) in now.buckets().zip(bytes.chunks_exact(8)) {
            *bucket = raw.try_into().map_or(0, u64::from_ne_bytes);
        }
        let new = self.before.get(&number).map_or_else(|| now.clone(), |before| now.since(before));
        self.sum.add(&new);
        if ended {
            self.before.remove(&number);
            skel.maps.histograms.update(&key, &vec![0; bytes.len()], MapFlags::ANY)?;
        } else {
            self.before.insert(number, now);
        }
        Ok(new)
    }
}

pub(super) fn comm(name: [std::os::raw::c_char; 16]) -> Comm {
    Comm(name.map(|c| u8::from_ne_bytes(c.to_ne_bytes())))
}

impl Drop for Rows {
    fn drop(&mut self) {
        for (i, chunk) in self.chunks.iter().enumerate() {
            let rows = CHUNK.min(self.all - i * CHUNK);
            // SAFETY: mapped by us with this length, and nobody refers to it any more.
            unsafe { libc::munmap(chunk.rows.as_ptr().cast(), rows * size_of::<types::row>()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Counter;

    #[test]
    fn what_was_counted_is_the_difference() {
        let mut packed = Packed::default();
        let mut now = [0; COUNTERS];
        assert_eq!(packed.advance(&now), Counters::default());
        for (i, value) in now.iter_mut().enumerate().filter(|(i, _)| i % 3 != 0) {
            *value = u64::MAX - 100 - i as u64;
        }
        assert_eq!(packed.advance(&now), Counters(now));
        assert_eq!(packed.advance(&now), Counters::default());
        let mut want = Counters::default();
        for counter in [Counter::ReadBytes, Counter::ReadHits, Counter::LedgerChunks] {
            now[counter as usize] += 7;
            want.0[counter as usize] = 7;
        }
        assert_eq!(packed.advance(&now), want);
    }

    #[test]
    fn a_counter_that_fell_counts_from_zero_with_all_others() {
        for fallen in [0, 4] {
            let mut packed = Packed::default();
            let mut now = [5; COUNTERS];
            packed.advance(&now);
            now[Counter::ReadMisses as usize] = fallen;
            assert_eq!(packed.advance(&now), Counters(now));
            assert_eq!(packed.advance(&now), Counters::default());
        }
    }
}
