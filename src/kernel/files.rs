//! Rows of files, read where the kernel programs write them, as the rows of threads are ([`super::rows`]).
//!
//! A row whose process is gone looks like one that rests: when many are in use, those that rest are taken back (`back.rs`).

mod back;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::atomic::fence;
use std::time::Duration;
use std::time::Instant;

use hashbrown::HashMap;
use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;

use super::chores::Chores;
use super::mapped::Mapped;
use super::rows::Looked;
use super::rows::Rows;
use super::rows::State;
use super::skel::CachetopSkel;
use super::skel::comm;
use super::skel::types;
use crate::files::Dev;
use crate::files::File;
use crate::files::Key;
use crate::files::Named;
use crate::sample::FileSample;
use crate::sample::Followed;
use crate::sample::Parts;
use crate::sample::Sparse;
use crate::wire::FILE_COUNTERS;
use crate::wire::FILE_PARTS;
use crate::wire::ROW_FREE;

type Raw = types::file_row;

/// A thread that is counting is waited for so many times.
const TRIES: usize = 10_000;

/// What is remembered of a row.
#[derive(Debug, Default, Clone)]
struct Known {
    /// How often the row had been made when the file was looked at.
    made: u32,
    file: Option<Arc<File>>,
    before: Sparse,
    /// Stretches of it that were told.
    stretches: u32,
    /// When it was used last, as of a reading.
    used: Duration,
    /// When it was seen to have ended: it may be freed some readings later.
    ended: Option<Duration>,
}

/// The table, mapped into memory as far as it is in use.
#[derive(Debug)]
pub(super) struct Files {
    table: Mapped<Raw, Known>,
    all: usize,
    files: HashMap<Key, Arc<File>>,
    began: Instant,
    /// When the tables were read last, since the beginning.
    now: Duration,
    /// When files that nobody has any more were looked for.
    swept: Duration,
    in_use: usize,
    /// Rows that are free since this reading, to be handed back.
    free: Vec<usize>,
    /// Room was short when the last reading began.
    crowded: bool,
    /// Rows that were on their way to be free after it.
    going: usize,
    /// Only files of this name count, where they have one from the root of the file system.
    called: Option<String>,
}

impl Files {
    /// Hands all rows to the kernel programs.
    pub(super) fn new(skel: &CachetopSkel<'_>, all: u32) -> libbpf_rs::Result<Self> {
        for n in (0..all).rev() {
            skel.maps.free_files.update(&[], &n.to_ne_bytes(), MapFlags::ANY)?;
        }
        Ok(Self {
            table: Mapped::new(all as usize, &skel.maps.files_taken)?,
            all: all as usize,
            files: HashMap::new(),
            began: Instant::now(),
            now: Duration::ZERO,
            swept: Duration::ZERO,
            in_use: 0,
            free: Vec::new(),
            crowded: false,
            going: 0,
            called: None,
        })
    }

    /// Leaves out files of another name.
    pub(super) fn called(mut self, name: Option<String>) -> Self {
        self.called = name;
        self
    }

    /// Marks the rows of a process as belonging to a run.
    pub(super) fn enter(&mut self, skel: &CachetopSkel<'_>, tgid: u32, run: u32) -> libbpf_rs::Result<()> {
        self.table.follow(&skel.maps.files)?;
        // What it has read so far is not of the run, and what it reads next goes on from nothing.
        let all: Vec<_> = self.table.rows().map(|(n, row, _)| (n, row)).collect();
        for (n, row) in all {
            // SAFETY: words of one row that is mapped. The kernel programs write whole words, and forget nothing but
            // that a part was read.
            unsafe {
                if (&raw const (*row).tgid).read_volatile() == tgid {
                    let parts = &raw mut (*row).parts;
                    parts.write_volatile(parts.read_volatile() >> FILE_PARTS << FILE_PARTS);
                    (&raw mut (*row).next).write_volatile(u64::MAX);
                    self.table.known_mut(n).stretches = (&raw const (*row).stretches).read_volatile();
                }
            }
        }
        self.table.enter(tgid, run);
        Ok(())
    }

    /// One of those that are known.
    fn row(&self, n: usize) -> *mut Raw {
        self.table.row(n)
    }

    /// How many rows are not free: one word of each that is mapped is looked at. `None` where they cannot be mapped.
    pub(super) fn used(&mut self, skel: &CachetopSkel<'_>) -> Option<u64> {
        self.table.follow(&skel.maps.files).ok()?;
        Some(self.table.used(0..self.all))
    }

    /// What was counted since the last reading. `rows` have just been read: what their threads have not counted yet of a file
    /// is counted.
    pub(super) fn read(
        &mut self,
        skel: &CachetopSkel<'_>,
        chores: &Chores,
        rows: &Rows,
        followed: &mut Followed,
    ) -> libbpf_rs::Result<Vec<FileSample>> {
        self.now = self.began.elapsed();
        self.crowded = self.is_crowded();
        self.table.follow(&skel.maps.files)?;
        let mut changed = Vec::new();
        for (n, row, known) in self.table.rows() {
            // SAFETY: the row is mapped; the kernel writes whole words.
            unsafe {
                let touched = &raw mut (*row).touched;
                if touched.read_volatile() != 0 {
                    touched.write_volatile(0);
                    changed.push(n);
                } else if known.ended.is_some() {
                    changed.push(n);
                }
            }
        }
        // An event after this counts for the next tick, where it finds the word set again.
        fence(Ordering::SeqCst);
        let mut waiting: HashMap<usize, Vec<(usize, Looked)>> = HashMap::new();
        for (n, looked) in rows.looked() {
            let file = looked.file as usize;
            if changed.binary_search(&file).is_ok() {
                waiting.entry(file).or_default().push((n, *looked));
            }
        }
        let mut out = Vec::new();
        for n in changed {
            self.table.stir(n);
            let waiting = waiting.remove(&n).unwrap_or_default();
            let row = self.settled(n, waiting, |n, looked| rows.state_of(n, looked));
            self.read_row(chores, n, &row, &mut out, followed)?;
        }
        // It is kept until the next one, and those that are being taken back counted nothing.
        out.shrink_to_fit();
        self.hand_back(chores)?;
        self.take_back(chores)?;
        let free = &mut self.free;
        self.table.let_go(|_| *free = Vec::new());
        Ok(out)
    }

    /// A row, with what waits to be counted in it: of a request that is counted meanwhile it is looked again, so that each is in
    /// it once.
    fn settled(
        &self,
        n: usize,
        mut waiting: Vec<(usize, Looked)>,
        state: impl Fn(usize, &Looked) -> State,
    ) -> Raw {
        let mut tries = 0;
        loop {
            // SAFETY: the row is mapped. Whose it is does not change while it is not free; counters are whole words.
            let mut row = unsafe { self.row(n).read_volatile() };
            let (all, mut under_way) = (waiting.len(), false);
            waiting.retain(|(n, looked)| match state(*n, looked) {
                State::Waits => looked.made == row.made,
                State::UnderWay => {
                    under_way = true;
                    true
                }
                State::Counted => false,
            });
            tries += 1;
            if tries < TRIES && (under_way || waiting.len() < all) {
                std::thread::yield_now();
                continue;
            }
            waiting.iter().for_each(|(_, looked)| looked.add_to(&mut row.v));
            return row;
        }
    }

    fn read_row(
        &mut self,
        chores: &Chores,
        n: usize,
        row: &Raw,
        out: &mut Vec<FileSample>,
        followed: &mut Followed,
    ) -> libbpf_rs::Result<()> {
        if row.state == ROW_FREE {
            return Ok(());
        }
        if self.table.known(n).made != row.made {
            let file = Some(self.shared(file(chores, n, row)?));
            *self.table.known_mut(n) = Known { made: row.made, file, ..Known::default() };
            self.in_use += 1;
        }
        let place = self.row(n);
        let known = self.table.known_mut(n);
        let mut counters = Sparse::default();
        for (i, counter) in FILE_COUNTERS.iter().enumerate() {
            let (at, before) = (*counter as usize, known.before.at(*counter as usize));
            // What waited when its row was taken back is told, and counted there no more.
            if let Some(more) = row.v[i].checked_sub(before) {
                counters.set(at, more);
                known.before.set(at, row.v[i]);
            }
        }
        known.used = self.now;
        let ours = |file: &File| {
            file.named != Named::Whole || self.called.as_ref().is_none_or(|name| *name == file.name)
        };
        if let (false, Some(file)) = (counters.is_zero(), known.file.as_ref().filter(|f| ours(f))) {
            out.push(FileSample {
                tgid: row.tgid,
                uid: row.uid,
                cgroup: row.cgroup,
                born: row.born,
                process: comm(row.process),
                file: Arc::clone(file),
                deleted: row.links == 0,
                counters,
            });
            if row.run != 0 && row.run == followed.run {
                followed.files.extend(out.last().cloned());
                // After the counters: each read is noted there before it is counted.
                // SAFETY: words of one row that is mapped. The kernel programs write whole words.
                let (parts, stretches) = unsafe {
                    (
                        (&raw const (*place).parts).read_volatile(),
                        (&raw const (*place).stretches).read_volatile(),
                    )
                };
                let new = stretches.wrapping_sub(std::mem::replace(&mut known.stretches, stretches));
                followed.parts.push(Parts::from_kernel(parts, new));
            }
        }
        self.go_on(n, row.state);
        Ok(())
    }

    /// The one copy of a file that many processes use.
    fn shared(&mut self, file: File) -> Arc<File> {
        // Once a tick: where a report holds what a run used, hardly any go, however often one looks.
        if self.files.len() > 2 * self.in_use + 64 && self.swept != self.now {
            self.swept = self.now;
            self.files.retain(|_, file| Arc::strong_count(file) > 1);
            if self.files.capacity() > 4 * self.files.len() + 256 {
                self.files.shrink_to_fit();
            }
        }
        match self.files.get(&file.key()) {
            // The name may be another one by now.
            Some(known) if **known == file => Arc::clone(known),
            _ => {
                let (key, file) = (file.key(), Arc::new(file));
                self.files.insert(key, Arc::clone(&file));
                file
            }
        }
    }
}

/// Which file a new row is about.
fn file(chores: &Chores, n: usize, row: &Raw) -> libbpf_rs::Result<File> {
    let (named, name) = name(&chores.name(n)?);
    Ok(File {
        dev: Dev::from_kernel(row.dev),
        inode: row.inode,
        generation: row.generation,
        block: (row.block != 0).then(|| Dev::from_kernel(row.block)),
        name,
        named,
    })
}

/// Decodes a `struct file_name`: components from the last to the first, a zero after each.
pub(super) fn name(bytes: &[u8]) -> (Named, String) {
    let word = |i: usize| bytes.get(i..i + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes);
    let named = match word(0) {
        1 => Named::Whole,
        2 => Named::End,
        3 => Named::Loose,
        _ => return (Named::Not, String::new()),
    };
    let text = bytes.get(8..).unwrap_or_default();
    let text = text.get(..word(4) as usize).unwrap_or_default();
    let mut parts: Vec<_> = text.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
    parts.pop(); // behind the last zero
    if named == Named::Loose {
        return (named, parts.concat());
    }
    let mut path = String::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
    for part in parts.iter().rev() {
        path.push('/');
        path.push_str(part);
    }
    let replaced = named == Named::Whole && parts.iter().any(|part| matches!(part, Cow::Owned(_)));
    (if replaced { Named::Replaced } else { named }, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(how: u32, text: &[u8]) -> Vec<u8> {
        let length = u32::try_from(text.len()).unwrap_or(0);
        let mut out = [how.to_ne_bytes(), length.to_ne_bytes()].concat();
        out.extend(text);
        out.resize(520, b'x');
        out
    }

    #[test]
    fn files_that_others_hold_are_looked_through_once_a_tick() {
        let dev = Dev { major: 8, minor: 1 };
        let file =
            |inode| File { dev, inode, generation: 0, block: None, name: String::new(), named: Named::Not };
        let mut files = Files {
            table: Mapped::default(),
            all: 0,
            files: HashMap::new(),
            began: Instant::now(),
            now: Duration::from_secs(1),
            swept: Duration::ZERO,
            in_use: 0,
            free: Vec::new(),
            crowded: false,
            going: 0,
            called: None,
        };
        let held: Vec<_> = (0..1000).map(|n| files.shared(file(n))).collect();
        drop((1000..1100).map(|n| files.shared(file(n))).collect::<Vec<_>>());
        assert_eq!(files.files.len(), 1100, "this tick's look is over");
        files.now = Duration::from_secs(2);
        let one = files.shared(file(2000));
        assert_eq!(files.files.len(), held.len() + 1, "what nobody has went, what somebody holds did not");
        assert!(
            Arc::ptr_eq(&one, &files.shared(file(2000))) && Arc::ptr_eq(&held[7], &files.shared(file(7)))
        );
    }

    #[test]
    fn names_are_put_together() {
        assert_eq!(name(&raw(1, b"c\0b\0a\0")), (Named::Whole, "/a/b/c".into()));
        assert_eq!(name(&raw(2, b"c\0b\0")), (Named::End, "/b/c".into()));
        assert_eq!(name(&raw(3, b"memfd:x\0")), (Named::Loose, "memfd:x".into()));
        assert_eq!(name(&raw(0, b"")), (Named::Not, String::new()));
        assert_eq!(name(&[]), (Named::Not, String::new()));
        // Not a name to open: there may even be a file that is called so.
        assert_eq!(name(&raw(1, "\u{fffd}\0".as_bytes())), (Named::Whole, "/\u{fffd}".into()));
        assert_eq!(name(&raw(1, b"\xff\0")), (Named::Replaced, "/\u{fffd}".into()));
    }
}
