//! Paths handed out to all threads, some at a time, and what came of them, back in order.
//!
//! A thread that has nothing to do reads the next names itself, so that nothing but the reading of names, and the
//! handing on of what is done, waits for others.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use crate::du::paths;
use crate::du::paths::Paths;
use crate::exit::Failure;

/// Blocks that may be done before the one whose turn it is: one file may take minutes.
const AHEAD: usize = 64;
/// The more names there were, the more are taken at a time, up to a limit: the first few may be large files, one for each thread.
const SHARE: usize = 16;

/// Some paths, one after the other.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// How many stand before these.
    pub(super) first: usize,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Block {
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(from, to)| paths::path(&self.bytes[from..*to]))
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }
}

/// Where paths come from.
struct Source<'a> {
    paths: paths::Iter<'a>,
    names: usize,
    blocks: usize,
    failed: Option<Failure>,
}

impl Source<'_> {
    /// The next block and its number.
    fn next(&mut self, most: usize) -> Option<(usize, Block)> {
        let mut block = Block { first: self.names, ..Block::default() };
        while self.failed.is_none() && block.len() < (self.names / SHARE).clamp(1, most) {
            match self.paths.append(&mut block.bytes) {
                Some(Ok(())) => block.ends.push(block.bytes.len()),
                Some(Err(e)) => self.failed = Some(e),
                None => break,
            }
        }
        if block.len() == 0 || self.failed.is_some() {
            return None;
        }
        self.names += block.len();
        self.blocks += 1;
        Some((self.blocks - 1, block))
    }
}

/// What is done, and waits for its turn.
struct Turn<T, F> {
    next: usize,
    done: BTreeMap<usize, T>,
    take: F,
    over: bool,
}

/// Gives the others up if a thread panics: its turn never comes.
struct Guard<'a, T, F>(&'a Mutex<Turn<T, F>>, &'a Condvar);

impl<T, F> Drop for Guard<'_, T, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            locked(self.0).over = true;
            self.1.notify_all();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does the `work` on all paths in all threads, and hands what comes of it to `take`, in the order of the paths, until
/// that wants no more. At most so many paths are taken at a time. The work must not wait for other work of the same
/// threads.
///
/// # Errors
/// Wrong usage where the list of them cannot be read.
pub(super) fn each<T: Send>(
    paths: &Paths,
    most: usize,
    work: impl Fn(&Block) -> T + Sync,
    take: impl FnMut(T) -> bool + Send,
) -> Result<(), Failure> {
    let source = Mutex::new(Source { paths: paths.iter(), names: 0, blocks: 0, failed: None });
    let turn = Mutex::new(Turn { next: 0, done: BTreeMap::new(), take, over: false });
    let moved = Condvar::new();
    rayon::broadcast(|_| {
        let _guard = Guard(&turn, &moved);
        let next = || locked(&source).next(most);
        while let Some((number, block)) = next() {
            let done = work(&block);
            let mut turn = locked(&turn);
            while number >= turn.next + AHEAD && !turn.over {
                turn = moved.wait(turn).unwrap_or_else(PoisonError::into_inner);
            }
            turn.done.insert(number, done);
            let Turn { next, done, take, over } = &mut *turn;
            while !*over {
                let Some(done) = done.remove(next) else { break };
                *next += 1;
                *over = !take(done);
            }
            moved.notify_all();
            if turn.over {
                break;
            }
        }
    });
    let source = source.into_inner().unwrap_or_else(PoisonError::into_inner);
    source.failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::PathBuf;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::du::options::List;
    use crate::du::options::Options;

    fn listed(names: &[u8]) -> (tempfile::TempDir, Paths) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("list");
        std::fs::write(&file, names).unwrap();
        let options = Options { list: Some(List { file, null: true }), ..Options::default() };
        (dir, Paths::new(&options).ok().unwrap())
    }

    #[test]
    fn ten_thousand_names_come_back_once_and_in_order() {
        let names: Vec<_> = (0..10_000).map(|n| format!("a\n{n}")).collect();
        let (_dir, paths) = listed(names.join("\0").as_bytes());
        let (mut all, slow) = (Vec::new(), AtomicUsize::new(0));
        let work = |block: &Block| {
            assert_eq!(block.first == 0, block.paths().next() == Some(Path::new("a\n0")));
            // The first is the last to be done, but where that would be too much to keep.
            while block.first == 0 && rayon::current_num_threads() > 1 && slow.load(Relaxed) < AHEAD / 2 {
                std::thread::yield_now();
            }
            slow.fetch_add(1, Relaxed);
            block.paths().map(Path::to_owned).collect::<Vec<PathBuf>>()
        };
        each(&paths, 100, work, |some| {
            all.extend(some);
            true
        })
        .unwrap();
        assert!(all.iter().eq(names.iter().map(Path::new)), "{}", all.len());
        // No more than are wanted.
        let taken = AtomicUsize::new(0);
        each(&paths, 100, |block| block.len(), |_| taken.fetch_add(1, Relaxed) < 4).unwrap();
        assert_eq!(taken.load(Relaxed), 5);
    }

    #[test]
    fn a_list_that_cannot_be_read_to_its_end_fails() {
        let names = [b"a\0b\0".to_vec(), vec![b'x'; 2 << 20]].concat();
        let (_dir, paths) = listed(&names);
        let failed = each(&paths, 100, |_| (), |()| true).unwrap_err();
        assert!(failed.message.contains("more than"), "{}", failed.message);
    }

    #[test]
    fn a_panic_ends_it() {
        let names = b"a\0".repeat(10_000);
        let (_dir, paths) = listed(&names);
        let work = |block: &Block| assert_ne!(block.first, 3, "here");
        let all = std::panic::AssertUnwindSafe(|| each(&paths, 100, work, |()| true));
        assert!(std::panic::catch_unwind(all).is_err());
    }
}
