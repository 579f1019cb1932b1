//! Rows of files are taken back, so that there is room for others.
//!
//! When many rows are in use, those that rested longest go. That takes three readings: after the first nobody finds the
//! row any more, and what was under way may still be added; after the second nobody begins to; at the third nobody can
//! still be at it, and it is read for the last time. A second lies between the first two, for requests that take long,
//! unless room is short.

use std::sync::atomic::Ordering;
use std::sync::atomic::fence;
use std::time::Duration;

use super::Files;
use super::Known;
use super::Raw;
use crate::kernel::chores::Chores;
use crate::kernel::chores::Stack;
use crate::wire::FILE_CLOSED;
use crate::wire::FILE_COUNTERS;
use crate::wire::FILE_ENDED;
use crate::wire::ROW_FREE;

/// From so many rows on, or an eighth of the table where that is more, those that rest are taken back. A row takes 300 bytes of
/// ours, and its file's name: a good half of a megabyte is what a storm of short processes may leave behind.
const RESTING: usize = 2048;

/// A row that was not used for so long rests, and one that has ended for so long is nobody's any more. Less than the
/// time from one reading to the next, where there is no need for haste: it was a reading.
const REST: Duration = Duration::from_millis(900);

/// No two steps on the way to a free row are nearer to each other: a program may be held up in the midst of adding to one.
const STEP: Duration = Duration::from_millis(90);

/// How many rows were taken since the last reading is estimated from one row in so many ...
const STRIDE: usize = 16;
/// ... and never from fewer rows than so many, if the table has them.
const STRIDES: usize = 1024;

/// So many times as many will be taken until those that rest now are free.
const PACE: usize = 8;

impl Files {
    /// The next step of a row that has ended, if it is time.
    pub(super) fn go_on(&mut self, n: usize, state: u32) {
        let known = self.table.known_mut(n);
        let for_so_long = known.ended.map(|then| self.now.saturating_sub(then));
        match (state, for_so_long) {
            (FILE_CLOSED, time) if time.is_none_or(|time| time >= STEP) => self.free(n),
            (FILE_ENDED, Some(time)) if time >= if self.crowded { STEP } else { REST } => {
                known.ended = Some(self.now);
                // SAFETY: the row is mapped, and ours to end.
                unsafe { (&raw mut (*self.table.row(n)).state).write_volatile(FILE_CLOSED) }
            }
            (FILE_ENDED, None) => known.ended = Some(self.now),
            _ => {}
        }
    }

    /// So many rows in use are kept.
    fn most(&self) -> usize {
        RESTING.min(self.all / 4).max(self.all / 8)
    }

    pub(super) const fn is_crowded(&self) -> bool {
        8 * self.in_use > 3 * self.all
    }

    /// At the pace of rows that were taken since the last reading there is none left soon: those that rest should be taken back
    /// sooner than once a second. One look at a few rows.
    pub(in crate::kernel) fn pressed(&self) -> bool {
        if self.table.outgrown() {
            return true;
        }
        // Of a row that is free we may have forgotten how often it was made.
        let made = |(_, row, known): &(usize, *mut Raw, &Known)| {
            // SAFETY: the row is mapped; the kernel writes whole words.
            unsafe {
                (&raw const (**row).made).read_volatile() != known.made
                    && (&raw const (**row).state).read_volatile() != ROW_FREE
            }
        };
        let stride = (self.all / STRIDES).clamp(1, STRIDE);
        let new = self.table.rows().step_by(stride).filter(made).count() * stride;
        // Where there is no room, none are taken.
        PACE * new > self.all.saturating_sub(self.in_use) || (self.going > 0 && self.is_crowded())
    }

    /// Once so many rows are in use, ends those that rested longest until it is half as many: what is in use takes
    /// memory here, too, and what is free is there for those that read thousands of files between two ticks. Not a few
    /// at each tick, since all rows have to be looked at.
    pub(super) fn take_back(&mut self, chores: &Chores) -> libbpf_rs::Result<()> {
        let most = self.most();
        self.going = 0;
        if self.in_use <= most {
            return Ok(());
        }
        // Those that are being taken back already are in use until they are free.
        self.going = self.table.rows().filter(|(_, _, k)| k.ended.is_some()).count();
        let in_use = self.in_use.saturating_sub(self.going);
        if in_use <= most {
            return Ok(());
        }
        let surplus = in_use - most / 2;
        // What is used once a second is in use, while there is room.
        let rest = if in_use > (self.all / 4).max(2 * most) { Duration::from_nanos(1) } else { REST };
        let rests =
            |k: &Known| k.file.is_some() && k.ended.is_none() && self.now.saturating_sub(k.used) >= rest;
        let mut resting: Vec<(Duration, usize)> =
            self.table.rows().filter(|(_, _, k)| rests(k)).map(|(n, _, k)| (k.used, n)).collect();
        resting.sort_unstable();
        // But for those that were used since this tick has looked.
        let resting: Vec<_> = resting.into_iter().take(surplus).map(|(_, n)| n).collect();
        for n in chores.end_files(&resting)? {
            self.table.known_mut(n).ended = Some(self.now);
            self.going += 1;
        }
        Ok(())
    }

    fn free(&mut self, n: usize) {
        let row = self.row(n);
        // SAFETY: the row is mapped, and nobody adds to it: it is ours until its number is handed back.
        unsafe {
            (&raw mut (*row).v).write_volatile([0; FILE_COUNTERS.len()]);
            (&raw mut (*row).state).write_volatile(ROW_FREE);
        }
        let made = self.table.known(n).made;
        *self.table.known_mut(n) = Known { made, ..Known::default() };
        self.in_use -= 1;
        self.free.push(n);
    }

    /// Hands back the rows that are free, the lowest last: it is taken first, so that those in use come to stand together.
    pub(super) fn hand_back(&mut self, chores: &Chores) -> libbpf_rs::Result<()> {
        fence(Ordering::SeqCst);
        chores.hand_back(Stack::Files, &mut self.free)
    }
}
