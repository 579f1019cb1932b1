//! Reading a table of the kernel whole: many entries in one call. What the kernel answers is told from an empty table in
//! each case: a call that ends early has a next one, one that fails for now is made again or the entries are read one
//! by one, and what cannot be read at all is an error.
//!
//! libbpf-rs has an iterator for this, which takes any error for the end, and a call that brings less than was asked for
//! as well: the kernel leaves a bucket of a hash table for the next call where it does not fit into what is left.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::raw::c_void;

use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;

/// How many entries a batch asks for.
const BATCH: u32 = 1024;
/// A call that is interrupted is made again so often before entries are read one by one.
const TRIES: u32 = 16;
/// So many times as many steps as there is room for entries, one by one, before it is said that the table does not hold still.
const ROUNDS: usize = 4;

/// A key and its value.
pub(super) type Entry = (Vec<u8>, Vec<u8>);

/// All that is in it.
///
/// # Errors
/// When the kernel refuses, also one by one.
pub(super) fn entries(map: &impl MapCore) -> libbpf_rs::Result<Vec<Entry>> {
    whole(&Kernel(map)).map_err(Into::into)
}

/// The values of an array, in order, as far as somebody takes them. Behind an error there is nothing.
pub(super) fn values(map: &impl MapCore, batch: u32) -> impl Iterator<Item = io::Result<Vec<u8>>> {
    Batches::new(Kernel(map), batch).map(|entry| entry.map(|(_, value)| value))
}

/// What the kernel has a table's calls for.
trait Table {
    /// How many entries there is room for.
    fn room(&self) -> u32;
    /// Reads up to `count` entries, from `from` on or from the beginning, and says from where to go on.
    fn batch(&self, from: Option<&[u8]>, count: u32) -> (Answer, Vec<Entry>);
    /// The key after this one, or the first; `None` behind the last.
    fn after(&self, key: Option<&[u8]>) -> io::Result<Option<Vec<u8>>>;
    /// The value of a key; `None` if it is not there (any more).
    fn value(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>>;
}

/// How a batch ended.
enum Answer {
    /// There may be more, from here on.
    More(Vec<u8>),
    /// It was the last.
    End,
    Failed(io::Error),
}

fn whole(table: &impl Table) -> io::Result<Vec<Entry>> {
    let batches = Batches::new(table, BATCH);
    // Memory for a batch may be short where that for one entry is not.
    batches.collect::<io::Result<_>>().or_else(|why| one_by_one(table).map_err(|_| why))
}

/// All that is in it, without the values. Of the kernel's calls it takes the one alone that lets probes run meanwhile (`chores.rs`);
/// a batch would look through all buckets that are empty in one go.
///
/// # Errors
/// When the kernel refuses, or the table does not hold still.
pub(super) fn keys(map: &impl MapCore) -> libbpf_rs::Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    each_key(&Kernel(map), |key| {
        found.push(key);
        Ok(())
    })?;
    Ok(found)
}

/// Reads all entries one by one.
fn one_by_one(table: &impl Table) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    each_key(table, |key| {
        found.extend(table.value(&key)?.map(|value| (key, value)));
        Ok(())
    })?;
    Ok(found)
}

/// Each key once.
fn each_key(table: &impl Table, mut see: impl FnMut(Vec<u8>) -> io::Result<()>) -> io::Result<()> {
    let (mut seen, mut at) = (HashSet::new(), None);
    // Where a key is deleted just then, the kernel begins anew.
    for _ in 0..(table.room() as usize).saturating_add(1).saturating_mul(ROUNDS) {
        let Some(key) = table.after(at.as_deref())? else { return Ok(()) };
        if seen.insert(key.clone()) {
            see(key.clone())?;
        }
        at = Some(key);
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Entries, a batch at a time.
struct Batches<T> {
    table: T,
    count: u32,
    from: Option<Vec<u8>>,
    ended: bool,
    read: std::vec::IntoIter<Entry>,
}

impl<T: Table> Batches<T> {
    fn new(table: T, count: u32) -> Self {
        let count = count.min(table.room()).max(1);
        Self { table, count, from: None, ended: false, read: Vec::new().into_iter() }
    }

    /// Reads the next batch.
    fn go_on(&mut self) -> io::Result<()> {
        let mut tries = 0;
        loop {
            let (answer, entries) = self.table.batch(self.from.as_deref(), self.count);
            match answer {
                Answer::More(from) => self.from = Some(from),
                Answer::End => self.ended = true,
                Answer::Failed(e) => match e.raw_os_error() {
                    Some(libc::EINTR | libc::EAGAIN) if tries < TRIES => {
                        tries += 1;
                        continue;
                    }
                    // A bucket does not fit into it. None has more than there is room for.
                    Some(libc::ENOSPC) if self.count < self.table.room() => {
                        self.count = self.count.saturating_mul(2).min(self.table.room());
                        continue;
                    }
                    _ => return Err(e),
                },
            }
            self.read = entries.into_iter();
            return Ok(());
        }
    }
}

impl<T: Table> Iterator for Batches<T> {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.read.next() {
                return Some(Ok(entry));
            }
            if self.ended {
                return None;
            }
            if let Err(e) = self.go_on() {
                self.ended = true;
                return Some(Err(e));
            }
        }
    }
}

impl<T: Table> Table for &T {
    fn room(&self) -> u32 {
        (*self).room()
    }

    fn batch(&self, from: Option<&[u8]>, count: u32) -> (Answer, Vec<Entry>) {
        (*self).batch(from, count)
    }

    fn after(&self, key: Option<&[u8]>) -> io::Result<Option<Vec<u8>>> {
        (*self).after(key)
    }

    fn value(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        (*self).value(key)
    }
}

/// The kernel's own: not of those with a value for each processor.
struct Kernel<'a, M>(&'a M);

impl<M: MapCore> Table for Kernel<'_, M> {
    fn room(&self) -> u32 {
        self.0.max_entries()
    }

    fn batch(&self, from: Option<&[u8]>, count: u32) -> (Answer, Vec<Entry>) {
        let (key_size, value_size) = (self.0.key_size() as usize, self.0.value_size() as usize);
        let mut keys = vec![0; key_size * count as usize];
        let mut values = vec![0; value_size * count as usize];
        // A place is a key, or the number of a bucket.
        let mut from = from.map(<[u8]>::to_vec);
        let mut next = vec![0; key_size.max(size_of::<u32>())];
        let mut read = count;
        let place = from.as_mut().map_or(std::ptr::null_mut(), |from| from.as_mut_ptr().cast::<c_void>());
        // SAFETY: there is room for as many keys and values as are asked for, and for a place in `from` and `next`; all of
        // it outlives the call. Without options there are no flags.
        let ret = unsafe {
            libbpf_sys::bpf_map_lookup_batch(
                self.0.as_fd().as_raw_fd(),
                place,
                next.as_mut_ptr().cast(),
                keys.as_mut_ptr().cast(),
                values.as_mut_ptr().cast(),
                &raw mut read,
                std::ptr::null(),
            )
        };
        let answer = match -ret {
            0 => Answer::More(next),
            libc::ENOENT => Answer::End,
            why => return (Answer::Failed(io::Error::from_raw_os_error(why)), Vec::new()),
        };
        let all = keys.chunks_exact(key_size).zip(values.chunks_exact(value_size));
        (answer, all.take(read as usize).map(|(k, v)| (k.to_vec(), v.to_vec())).collect())
    }

    fn after(&self, key: Option<&[u8]>) -> io::Result<Option<Vec<u8>>> {
        let mut next = vec![0_u8; self.0.key_size() as usize];
        let key = key.map_or(std::ptr::null(), |key| key.as_ptr().cast::<c_void>());
        // SAFETY: the kernel reads one key and writes one; both outlive the call.
        let ret = unsafe {
            libbpf_sys::bpf_map_get_next_key(self.0.as_fd().as_raw_fd(), key, next.as_mut_ptr().cast())
        };
        match -ret {
            0 => Ok(Some(next)),
            libc::ENOENT => Ok(None),
            why => Err(io::Error::from_raw_os_error(why)),
        }
    }

    fn value(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.0.lookup(key, MapFlags::ANY).map_err(io::Error::other)
    }
}

/// A number at a place; 0 beyond the end.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The same of 64 bits.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
}
