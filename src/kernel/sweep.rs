//! Room in the ledger of prefetched pages: words whose pages are all used or gone are taken out again.
//!
//! A tick looks at a part of the table and the next one goes on from there, so that it costs the same however many words
//! are in use, and also where none of them can go.

use std::os::fd::AsRawFd as _;
use std::time::Duration;
use std::time::Instant;

use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;

/// Words that the ledger has room for.
const ROOM: u64 = 65536;
/// Words in one batch; more than any bucket of the table holds.
const SLICE: usize = 1024;
/// For how long a tick goes on with another batch.
const BUDGET: Duration = Duration::from_millis(1);

const KEY: usize = 16;
const WORD: usize = 8;

/// How far the ledger was looked through.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// Where the next batch begins; `None`: at the beginning.
    cursor: Option<u32>,
    /// Words taken out.
    swept: u64,
    /// Pages whose mark was set in a word just when it was taken out.
    pub(super) lost: u64,
}

impl Sweep {
    /// Makes room once the ledger is three quarters full. `inserted`: words put in since attach.
    pub(super) fn go(&mut self, ledger: &impl MapCore, inserted: u64) -> libbpf_rs::Result<()> {
        let begin = Instant::now();
        while inserted.saturating_sub(self.swept) >= ROOM / 4 * 3 {
            let (mut keys, mut words) = ([0; SLICE * KEY], [0; SLICE * WORD]);
            let n = self.batch(ledger, &mut keys, &mut words)?;
            for (key, word) in keys.chunks_exact(KEY).zip(words.chunks_exact(WORD)).take(n) {
                if word == [0; WORD] {
                    self.take_out(ledger, key);
                }
            }
            if self.cursor.is_none() || begin.elapsed() > BUDGET {
                break;
            }
        }
        Ok(())
    }

    /// The next words, and how many there are. At the end of the table the cursor goes back to its beginning.
    fn batch(
        &mut self,
        ledger: &impl MapCore,
        keys: &mut [u8],
        words: &mut [u8],
    ) -> libbpf_rs::Result<usize> {
        let mut from = self.cursor;
        let (mut next, mut count) = (0u32, SLICE as u32);
        let from = from.as_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut);
        // SAFETY: keys and words have room for as many as `count` says; a hash table's cursor is 32 bits.
        let ret = unsafe {
            libbpf_sys::bpf_map_lookup_batch(
                ledger.as_fd().as_raw_fd(),
                from.cast(),
                (&raw mut next).cast(),
                keys.as_mut_ptr().cast(),
                words.as_mut_ptr().cast(),
                &raw mut count,
                std::ptr::null(),
            )
        };
        if ret < 0 && ret != -libc::ENOENT {
            return Err(std::io::Error::from_raw_os_error(-ret).into());
        }
        self.cursor = (ret == 0).then_some(next);
        Ok(count as usize)
    }

    /// Takes a word out that was empty a moment ago. Marks that came since are lost, and counted. Before 5.14 the word
    /// cannot be read as it goes.
    fn take_out(&mut self, ledger: &impl MapCore, key: &[u8]) {
        match ledger.lookup_and_delete(key) {
            Ok(Some(word)) => {
                self.swept += 1;
                self.lost += word.iter().map(|b| u64::from(b.count_ones())).sum::<u64>();
            }
            Ok(None) => {}
            Err(_) => {
                let empty = |w: Vec<u8>| w.iter().all(|b| *b == 0);
                let still = ledger.lookup(key, MapFlags::ANY).ok().flatten().is_some_and(empty);
                self.swept += u64::from(still && ledger.delete(key).is_ok());
            }
        }
    }
}
