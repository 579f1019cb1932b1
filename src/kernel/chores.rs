//! What is done to the tables of the kernel programs while events are counted, by a program that we run (`bpf/chores.h`):
//! while bpf(2) changes or copies something, the processor has a mark that makes the kernel pass by all probes there. On a
//! preemptible kernel we may be put aside in the midst of it, and events of others were lost (`recursion`).

use std::mem::offset_of;
use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;

use super::shared::Shared;
use super::skel::CachetopSkel;
use super::skel::types;
use crate::wire::CHORE_COPY_LATENCY;
use crate::wire::CHORE_COPY_NAME;
use crate::wire::CHORE_END_FILES;
use crate::wire::CHORE_FREE_FILES;
use crate::wire::CHORE_FREE_ROWS;
use crate::wire::CHORE_FREE_WORDS;
use crate::wire::CHORE_RUN_OF;
use crate::wire::CHORE_SPARE_ROWS;
use crate::wire::CHORE_TAKE_WORDS;
use crate::wire::CHORES;

/// The program has a name of its own, so that the plan needs not know it.
pub(super) const PROGRAM: &str = "chores_run";

/// How often something is tried that the kernel refuses for a moment (bpf/table.h): numbers must not be lost.
const TRIES: usize = 100;

/// In words of eight bytes.
const WORDS: usize = size_of::<types::chores>() / 8;
const ITEMS: usize = offset_of!(types::chores, items) / 8;
const NAME: usize = offset_of!(types::chores, name) / 8;
const LATENCY: usize = offset_of!(types::chores, latency) / 8;

const _: () = assert!(size_of::<types::chores>() % 8 == 0 && size_of::<types::chore_item>() == 16);
const _: () = assert!(offset_of!(types::chores, kind) == 0 && offset_of!(types::chores, count) == 4);
const _: () = assert!(offset_of!(types::chores, done) == 8);
const _: () = assert!(NAME * 8 == offset_of!(types::chores, name));
const _: () = assert!(LATENCY * 8 == offset_of!(types::chores, latency));

/// Where numbers are free.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stack {
    /// Rows of threads that are shown, or of those that are asked for.
    Rows,
    /// All other rows of threads.
    SpareRows,
    /// Rows of files.
    Files,
    /// Words of the ledger.
    Words,
}

/// What kernel programs and we write to in turn.
#[derive(Debug)]
pub(super) struct Chores {
    words: Shared<AtomicU64>,
    program: OwnedFd,
}

impl Chores {
    /// # Errors
    /// When the table cannot be mapped.
    pub(super) fn new(skel: &CachetopSkel<'_>) -> libbpf_rs::Result<Self> {
        let program = skel.progs.chores_run.as_fd().try_clone_to_owned()?;
        Ok(Self { words: Shared::new(&skel.maps.chores, WORDS)?, program })
    }

    /// So many of one kind; how many were done before the kernel refused one.
    fn go(&self, kind: u32, count: usize) -> libbpf_rs::Result<usize> {
        self.words[0].store(u64::from(kind) | (count as u64) << 32, Relaxed);
        fence(SeqCst);
        super::raw::run(&self.program)?;
        fence(SeqCst);
        Ok((self.words[1].load(Relaxed) & u64::from(u32::MAX)) as usize)
    }

    fn set(&self, item: usize, (a, b): (u64, u64)) {
        self.words[ITEMS + 2 * item].store(a, Relaxed);
        self.words[ITEMS + 2 * item + 1].store(b, Relaxed);
    }

    /// Does `kind` to all, in this order. What the kernel goes on refusing is left: an error.
    fn all(
        &self,
        kind: u32,
        items: &[(u64, u64)],
        mut done: impl FnMut(usize, u64),
    ) -> libbpf_rs::Result<()> {
        for (slice, begin) in items.chunks(CHORES).zip((0..).step_by(CHORES)) {
            let mut at = 0;
            let mut tries = 0;
            while at < slice.len() {
                slice[at..].iter().enumerate().for_each(|(i, item)| self.set(i, *item));
                let new = self.go(kind, slice.len() - at)?;
                (0..new).for_each(|i| done(begin + at + i, self.words[ITEMS + 2 * i + 1].load(Relaxed)));
                at += new;
                tries += 1;
                if at < slice.len() {
                    if tries == TRIES {
                        return Err(std::io::Error::from_raw_os_error(libc::EBUSY).into());
                    }
                    std::thread::yield_now();
                }
            }
        }
        Ok(())
    }

    /// Puts numbers back on a stack of free ones, the last of them first, and takes them out of `numbers` as it does.
    pub(super) fn hand_back(&self, stack: Stack, numbers: &mut Vec<usize>) -> libbpf_rs::Result<()> {
        let kind = match stack {
            Stack::Rows => CHORE_FREE_ROWS,
            Stack::SpareRows => CHORE_SPARE_ROWS,
            Stack::Files => CHORE_FREE_FILES,
            Stack::Words => CHORE_FREE_WORDS,
        };
        let items: Vec<_> = numbers.iter().rev().map(|n| (*n as u64, 0)).collect();
        self.all(kind, &items, |_, _| {
            numbers.pop();
        })
    }

    /// Ends rows of files, but for those that have been used just now: nobody finds these any more, whose numbers are handed out.
    pub(super) fn end_files(&self, numbers: &[usize]) -> libbpf_rs::Result<Vec<usize>> {
        self.those(CHORE_END_FILES, numbers)
    }

    /// Takes those of these words out of the ledger that are empty: the numbers of them.
    pub(super) fn take_words(&self, numbers: &[usize]) -> libbpf_rs::Result<Vec<usize>> {
        self.those(CHORE_TAKE_WORDS, numbers)
    }

    /// Those to which it was done.
    fn those(&self, kind: u32, numbers: &[usize]) -> libbpf_rs::Result<Vec<usize>> {
        let items: Vec<_> = numbers.iter().map(|n| (*n as u64, 0)).collect();
        let mut out = Vec::new();
        self.all(kind, &items, |i, done| {
            if done != 0 {
                out.push(numbers[i]);
            }
        })?;
        Ok(out)
    }

    /// The runs of the command that is followed that these processes are of, each; 0: none.
    pub(super) fn runs_of(&self, tgids: &[u32]) -> libbpf_rs::Result<Vec<u32>> {
        let items: Vec<_> = tgids.iter().map(|tgid| (u64::from(*tgid), 0)).collect();
        let mut out = Vec::with_capacity(tgids.len());
        self.all(CHORE_RUN_OF, &items, |_, run| out.push(u32::try_from(run).unwrap_or(0)))?;
        Ok(out)
    }

    /// What the row of a file is called: the bytes of a `struct file_name`.
    pub(super) fn name(&self, number: usize) -> libbpf_rs::Result<Vec<u8>> {
        self.copy(CHORE_COPY_NAME, number, NAME..NAME + size_of::<types::file_name>() / 8)
    }

    /// The histograms of a thread's row: the bytes of a `struct histograms`.
    pub(super) fn latency(&self, number: u32) -> libbpf_rs::Result<Vec<u8>> {
        let words = LATENCY..LATENCY + size_of::<types::histograms>() / 8;
        self.copy(CHORE_COPY_LATENCY, number as usize, words)
    }

    /// They begin anew.
    pub(super) fn clear_latency(&self, number: u32) -> libbpf_rs::Result<()> {
        self.all(CHORE_COPY_LATENCY, &[(number.into(), 1)], |_, _| ())
    }

    fn copy(&self, kind: u32, number: usize, words: std::ops::Range<usize>) -> libbpf_rs::Result<Vec<u8>> {
        self.all(kind, &[(number as u64, 0)], |_, _| ())?;
        Ok(self.words[words].iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect())
    }
}
