//! Room in the ledger of prefetched pages: words whose pages are all used or gone are taken out again.
//!
//! A tick looks at a part of the table and the next one goes on from there, so that it costs the same however many words
//! are in use, and also where none of them can go.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::time::Instant;

use libbpf_rs::MapCore;

use super::chores::Chores;
use super::chores::Stack;
use super::shared::Atomic;
use super::shared::Shared;
use super::skel::CachetopSkel;
use super::skel::types;

/// For how long a tick looks for empty words.
const BUDGET: Duration = Duration::from_millis(1);
/// Words between two looks at the clock.
const SLICE: usize = 64;
/// For how long nobody gets a word that was taken out: a program that had found it just before may still mark a page in
/// it. Marks that come later still are found by whoever gets it (bpf/ledger.h).
const REST: Duration = Duration::from_millis(500);

/// Which pages of a chunk are prefetched and unused (`struct ledger_word`).
#[repr(C)]
struct Word {
    /// Zero: it is nobody's.
    mapping: AtomicU64,
    chunk: AtomicU64,
    bits: AtomicU64,
}

const _: () = assert!(size_of::<Word>() == size_of::<types::ledger_word>());

// SAFETY: three atomics.
unsafe impl Atomic for Word {}

impl Word {
    /// Whether somebody has it and no page is marked in it.
    fn is_empty(&self) -> bool {
        self.mapping.load(Relaxed) != 0 && self.bits.load(Relaxed) == 0
    }
}

/// How far the ledger was looked through.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// The word that is looked at next.
    next: usize,
    /// Words that are still to be looked at: after the last one that was taken out, once all around.
    left: usize,
    /// Words taken out.
    swept: u64,
    /// Those that nobody can get yet, and when they were taken out.
    out: VecDeque<(Instant, Vec<usize>)>,
    /// Pages that were marked in a word that was being taken out.
    pub(super) lost: u64,
}

impl Sweep {
    /// Words that nobody else can get, of so many that were put in since attach: those that a tick has taken out are among them
    /// until their numbers are given back.
    pub(super) fn used(&self, inserted: u64) -> u64 {
        let resting: usize = self.out.iter().map(|(_, numbers)| numbers.len()).sum();
        inserted.saturating_sub(self.swept) + resting as u64
    }

    /// Makes room once the ledger is three quarters full, until three quarters are free. `inserted`: words put in since
    /// attach. Where the kernel refuses something, a later tick tries again.
    pub(super) fn go(&mut self, skel: &CachetopSkel<'_>, chores: &Chores, inserted: u64) {
        let room = skel.maps.ledger_words.max_entries() as usize;
        let quarters = |swept| inserted.saturating_sub(swept) / (room as u64 / 4).max(1);
        if quarters(self.swept) >= 3 {
            self.left = room;
        }
        if self.left == 0 && self.out.is_empty() {
            return;
        }
        let Ok(words) = Shared::<Word>::new(&skel.maps.ledger_words, room) else { return };
        self.give_back(chores, &words);
        let begin = Instant::now();
        let mut out = Vec::new();
        while self.left > 0 && begin.elapsed() < BUDGET {
            let mut empty = Vec::new();
            for _ in 0..SLICE.min(self.left) {
                self.left -= 1;
                if words[self.next].is_empty() {
                    empty.push(self.next);
                }
                self.next = (self.next + 1) % room;
            }
            let taken = chores.take_words(&empty).unwrap_or_default();
            if !taken.is_empty() {
                self.swept += taken.len() as u64;
                self.left = room;
                out.extend(taken);
            }
            if quarters(self.swept) == 0 {
                self.left = 0;
            }
        }
        if !out.is_empty() {
            self.out.push_back((Instant::now(), out));
        }
    }

    /// The numbers of words that were taken out long enough ago go to whoever needs one.
    fn give_back(&mut self, chores: &Chores, words: &[Word]) {
        while let Some((_, numbers)) = self.out.front_mut().filter(|(when, _)| when.elapsed() >= REST) {
            self.lost +=
                numbers.iter().map(|n| u64::from(words[*n].bits.swap(0, Relaxed).count_ones())).sum::<u64>();
            if chores.hand_back(Stack::Words, numbers).is_err() {
                return;
            }
            self.out.pop_front();
        }
    }
}
