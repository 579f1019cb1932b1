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
use libbpf_rs::MapFlags;

use super::numbers::hand_back;
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
    /// The key of its chunk, if somebody has it and no page is marked in it.
    fn empty(&self) -> Option<[u8; 16]> {
        let (mapping, chunk) = (self.mapping.load(Relaxed), self.chunk.load(Relaxed));
        let empty = mapping != 0 && self.bits.load(Relaxed) == 0;
        let mut key = [0; 16];
        key[..8].copy_from_slice(&mapping.to_ne_bytes());
        key[8..].copy_from_slice(&chunk.to_ne_bytes());
        empty.then_some(key)
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
    pub(super) fn go(&mut self, skel: &CachetopSkel<'_>, inserted: u64) {
        let room = skel.maps.ledger_words.max_entries() as usize;
        let quarters = |swept| inserted.saturating_sub(swept) / (room as u64 / 4).max(1);
        if quarters(self.swept) >= 3 {
            self.left = room;
        }
        if self.left == 0 && self.out.is_empty() {
            return;
        }
        let Ok(words) = Shared::<Word>::new(&skel.maps.ledger_words, room) else { return };
        self.give_back(&skel.maps.ledger_free, &words);
        let begin = Instant::now();
        let mut out = Vec::new();
        while self.left > 0 && begin.elapsed() < BUDGET {
            for _ in 0..SLICE.min(self.left) {
                self.left -= 1;
                if take_out(&skel.maps.ledger, &words[self.next], self.next) {
                    out.push(self.next);
                    self.swept += 1;
                    self.left = room;
                }
                self.next = (self.next + 1) % room;
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
    fn give_back(&mut self, free: &impl MapCore, words: &[Word]) {
        while let Some((_, numbers)) = self.out.front_mut().filter(|(when, _)| when.elapsed() >= REST) {
            while let Some(n) = numbers.last() {
                self.lost += u64::from(words[*n].bits.swap(0, Relaxed).count_ones());
                if hand_back(free, *n).is_err() {
                    return;
                }
                numbers.pop();
            }
            self.out.pop_front();
        }
    }
}

/// Takes a word out if it is empty.
fn take_out(ledger: &impl MapCore, word: &Word, number: usize) -> bool {
    let Some(key) = word.empty() else { return false };
    // A processor that comes second shows a word with the key of the first one's for a moment: only that which the
    // table names may go.
    let number = u32::try_from(number).unwrap_or(u32::MAX).to_ne_bytes();
    let is_its = ledger.lookup(&key, MapFlags::ANY).ok().flatten().is_some_and(|n| n == number);
    let taken = is_its && ledger.delete(&key).is_ok();
    if taken {
        word.mapping.store(0, Relaxed);
    }
    taken
}
