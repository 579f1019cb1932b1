//! A table of the kernel's, mapped into memory piece by piece as far as it is in use: a piece that is mapped counts as
//! memory of ours, all of it. What is remembered of a row goes with its piece.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::sync::atomic::fence;

use super::shared::Shared;
use super::skel::types;
use crate::wire::ROW_FREE;
use crate::wire::ROWS_MAPPED as PIECE;

/// A piece in which nothing happened for so many readings is let go if all of its rows are free.
const QUIET: u8 = 8;

/// What the rows of both tables have.
pub(super) trait Row {
    /// The process it belongs to, and the run that this process is part of: words of the row.
    fn words(row: *mut Self) -> (*const u32, *mut u32);

    /// Its state and its marks, as one word: 0 where it is free and nothing was counted in it.
    fn head(row: *mut Self) -> *const u64;
}

macro_rules! rows {
    ($($row:ident)+) => {$(
        impl Row for types::$row {
            fn words(row: *mut Self) -> (*const u32, *mut u32) {
                // SAFETY: callers hand in rows that are mapped.
                unsafe { (&raw const (*row).tgid, &raw mut (*row).run) }
            }

            fn head(row: *mut Self) -> *const u64 {
                const {
                    assert!(std::mem::offset_of!(types::$row, state) == 0);
                    assert!(std::mem::offset_of!(types::$row, touched) == 4);
                }
                row.cast::<u64>().cast_const()
            }
        }
    )+};
}
rows!(row file_row);

/// Rows that are mapped, and what is remembered of each.
#[derive(Debug)]
struct Piece<R, K> {
    first: NonNull<R>,
    known: Box<[K]>,
    /// Readings since something happened in it.
    quiet: u8,
}

impl<R: Row, K: Clone + Default> Piece<R, K> {
    /// Maps the piece with this number, of `rows` rows.
    fn new(table: &impl AsFd, number: usize, rows: usize) -> io::Result<Self> {
        let at = number * PIECE * size_of::<R>();
        // SAFETY: a new mapping at a place of the kernel's choice; the descriptor is valid for the call.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                rows * size_of::<R>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                table.as_fd().as_raw_fd(),
                libc::off_t::try_from(at).unwrap_or(libc::off_t::MAX),
            )
        };
        match NonNull::new(memory.cast()) {
            Some(first) if memory != libc::MAP_FAILED => {
                Ok(Self { first, known: vec![K::default(); rows].into(), quiet: 0 })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn row(&self, n: usize) -> *mut R {
        self.first.as_ptr().wrapping_add(n)
    }

    /// Whether all rows are free, and hold nothing that was not read.
    fn is_free(&self) -> bool {
        // SAFETY: the rows are mapped; a word of each that the kernel writes in halves and bytes.
        (0..self.known.len()).all(|n| unsafe { R::head(self.row(n)).read_volatile() } == 0)
    }
}

impl<R, K> Drop for Piece<R, K> {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length, and nobody refers to it any more.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.known.len() * size_of::<R>()) };
    }
}

/// A table, as far as it is in use.
///
/// The kernel programs tell of each row that is taken by a word for its piece (`ROWS_MAPPED`), after they have written
/// into the row that it is taken. A piece that is not mapped is mapped at the first reading after that.
#[derive(Debug)]
pub(super) struct Mapped<R, K> {
    pieces: Vec<Option<Piece<R, K>>>,
    all: usize,
    taken: Option<Shared<AtomicU64>>,
}

// SAFETY: the memory is shared with the kernel anyway; every access goes through volatile reads and writes.
unsafe impl<R, K: Send> Send for Mapped<R, K> {}

impl<R, K> Default for Mapped<R, K> {
    fn default() -> Self {
        Self { pieces: Vec::new(), all: 0, taken: None }
    }
}

impl<R: Row, K: Clone + Default> Mapped<R, K> {
    /// Of a table with `all` rows nothing yet; `taken` has a word for each piece.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn new(all: usize, taken: &impl AsFd) -> io::Result<Self> {
        let pieces = all.div_ceil(PIECE);
        Ok(Self {
            pieces: std::iter::repeat_with(|| None).take(pieces).collect(),
            all,
            taken: Some(Shared::new(taken, pieces)?),
        })
    }

    fn is_taken(&self, piece: usize) -> bool {
        self.taken.as_ref().is_some_and(|taken| taken[piece].load(Ordering::Acquire) != 0)
    }

    /// Maps what has been taken since.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn follow(&mut self, table: &impl AsFd) -> io::Result<()> {
        for number in 0..self.pieces.len() {
            if self.pieces[number].is_none() && self.is_taken(number) {
                let rows = PIECE.min(self.all - number * PIECE);
                self.pieces[number] = Some(Piece::new(table, number, rows)?);
            }
        }
        Ok(())
    }

    /// Whether rows are in use that are not mapped yet.
    pub(super) fn outgrown(&self) -> bool {
        self.pieces.iter().enumerate().any(|(n, piece)| piece.is_none() && self.is_taken(n))
    }

    /// Lets go of pieces that nobody uses any more; once a reading. What there was to read has been read.
    pub(super) fn let_go(&mut self, mut went: impl FnMut(Range<usize>)) {
        let Some(taken) = &self.taken else { return };
        for (number, place) in self.pieces.iter_mut().enumerate() {
            let Some(piece) = place else { continue };
            piece.quiet += 1;
            if piece.quiet < QUIET {
                continue;
            }
            piece.quiet = 0;
            // In this order: a row that is taken too late for the look is told of after it.
            taken[number].store(0, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if piece.is_free() {
                went(number * PIECE..number * PIECE + piece.known.len());
                *place = None;
            }
        }
    }

    /// Something happened in this row.
    pub(super) fn stir(&mut self, n: usize) {
        if let Some(Some(piece)) = self.pieces.get_mut(n / PIECE) {
            piece.quiet = 0;
        }
    }

    /// The rows that are mapped: the number of each, where it is, and what is remembered of it.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, *mut R, &K)> {
        let pieces = self.pieces.iter().enumerate().filter_map(|(n, piece)| Some((n, piece.as_ref()?)));
        pieces.flat_map(|(number, piece)| {
            piece.known.iter().enumerate().map(move |(n, k)| (number * PIECE + n, piece.row(n), k))
        })
    }

    /// How many of these, of those that are mapped, are not free.
    pub(super) fn used(&self, numbers: Range<usize>) -> u64 {
        let state = |row| {
            // SAFETY: the row is mapped; the kernel writes whole words, and its state is the first.
            unsafe { R::head(row).cast::<u32>().read_volatile() }
        };
        self.rows().filter(|(n, row, _)| numbers.contains(n) && state(*row) != ROW_FREE).count() as u64
    }

    /// One more than the highest number of those that are mapped.
    pub(super) fn end(&self) -> usize {
        let last = self.pieces.iter().rposition(Option::is_some);
        last.map_or(0, |last| self.all.min((last + 1) * PIECE))
    }

    /// Marks the rows of a process as belonging to a run.
    pub(super) fn enter(&self, tgid: u32, run: u32) {
        for (_, row, _) in self.rows() {
            let (of, into) = R::words(row);
            // SAFETY: words of one row that is mapped. The kernel programs write whole words, and only read the second one.
            unsafe {
                if of.read_volatile() == tgid {
                    into.write_volatile(run);
                }
            }
        }
    }

    #[allow(clippy::unwrap_used, reason = "the rows that are asked for are those that were found mapped")]
    fn piece(&self, n: usize) -> &Piece<R, K> {
        self.pieces[n / PIECE].as_ref().unwrap()
    }

    /// A row that is mapped.
    pub(super) fn row(&self, n: usize) -> *mut R {
        self.piece(n).row(n % PIECE)
    }

    /// What is remembered of a row that is mapped.
    pub(super) fn known(&self, n: usize) -> &K {
        &self.piece(n).known[n % PIECE]
    }

    /// The same, to be changed.
    #[allow(clippy::unwrap_used, reason = "as above")]
    pub(super) fn known_mut(&mut self, n: usize) -> &mut K {
        &mut self.pieces[n / PIECE].as_mut().unwrap().known[n % PIECE]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::File;
    use std::os::unix::fs::FileExt as _;

    use rustix::fs::MemfdFlags;
    use rustix::fs::memfd_create;

    use super::*;

    /// Two pieces and a part of one.
    const ALL: usize = 2 * PIECE + 76;

    /// A table, and the words that tell of it, as the kernel programs write them.
    struct Kernel {
        table: File,
        taken: File,
    }

    impl Kernel {
        fn new() -> Self {
            let memory = |bytes: usize| {
                let file = File::from(memfd_create("table", MemfdFlags::CLOEXEC).unwrap());
                file.set_len(bytes as u64).unwrap();
                file
            };
            Self { table: memory(ALL * size_of::<types::row>()), taken: memory(4096) }
        }

        /// The state and the marks of a row.
        fn write(&self, n: usize, state: u32, marks: u32) {
            let head = [state.to_ne_bytes(), marks.to_ne_bytes()].concat();
            self.table.write_all_at(&head, (n * size_of::<types::row>()) as u64).unwrap();
        }

        fn take(&self, n: usize) {
            self.write(n, 1, 0);
            self.taken.write_all_at(&1u64.to_ne_bytes(), (n / PIECE * 8) as u64).unwrap();
        }
    }

    /// So many readings; which rows went.
    fn read(mapped: &mut Mapped<types::row, u8>, times: u8) -> Vec<(usize, usize)> {
        let mut went = Vec::new();
        (0..times).for_each(|_| mapped.let_go(|rows| went.push((rows.start, rows.end))));
        went
    }

    #[test]
    fn what_is_taken_is_mapped_and_what_is_free_for_long_goes() {
        let kernel = Kernel::new();
        let mut mapped = Mapped::<types::row, u8>::new(ALL, &kernel.taken).unwrap();
        mapped.follow(&kernel.table).unwrap();
        assert_eq!((mapped.end(), mapped.rows().count(), mapped.outgrown()), (0, 0, false));
        // In the midst, and not from below.
        kernel.take(PIECE + 7);
        assert!(mapped.outgrown());
        mapped.follow(&kernel.table).unwrap();
        assert_eq!((mapped.end(), mapped.outgrown()), (2 * PIECE, false));
        let all: Vec<_> = mapped.rows().map(|(n, ..)| n).collect();
        assert_eq!(all, (PIECE..2 * PIECE).collect::<Vec<_>>());
        *mapped.known_mut(PIECE + 7) = 3;
        // Somebody has it, or there is something to be read in it.
        assert!(read(&mut mapped, 3 * QUIET).is_empty());
        kernel.write(PIECE + 7, 0, 1 << 16);
        assert!(read(&mut mapped, 3 * QUIET).is_empty());
        assert_eq!(*mapped.known(PIECE + 7), 3);
        // Nobody, but not for long.
        kernel.write(PIECE + 7, 0, 0);
        for _ in 0..3 {
            assert!(read(&mut mapped, QUIET - 1).is_empty());
            mapped.stir(PIECE);
        }
        assert_eq!(read(&mut mapped, QUIET), [(PIECE, 2 * PIECE)]);
        assert_eq!((mapped.end(), mapped.outgrown()), (0, false));
        // What was known went with it.
        kernel.take(2 * PIECE - 1);
        mapped.follow(&kernel.table).unwrap();
        assert_eq!((*mapped.known(PIECE + 7), mapped.row(2 * PIECE - 1).is_null()), (0, false));
        // The last piece is a part of one.
        kernel.take(ALL - 1);
        mapped.follow(&kernel.table).unwrap();
        assert_eq!((mapped.end(), mapped.rows().count()), (ALL, PIECE + 76));
        kernel.write(2 * PIECE - 1, 0, 0);
        assert_eq!(read(&mut mapped, QUIET), [(PIECE, 2 * PIECE)]);
        assert_eq!((mapped.end(), mapped.rows().count()), (ALL, 76));
    }

    #[test]
    fn a_row_that_is_taken_while_it_is_looked_is_told_of() {
        let kernel = Kernel::new();
        let mut mapped = Mapped::<types::row, u8>::new(ALL, &kernel.taken).unwrap();
        kernel.take(1);
        mapped.follow(&kernel.table).unwrap();
        kernel.write(1, 0, 0);
        // Its number is taken, and it does not say so yet.
        assert_eq!(read(&mut mapped, QUIET), [(0, PIECE)]);
        kernel.take(5);
        assert!(mapped.outgrown());
        mapped.follow(&kernel.table).unwrap();
        assert_eq!(mapped.rows().count(), PIECE);
        assert!(read(&mut mapped, 4 * QUIET).is_empty());
    }

    #[test]
    fn a_piece_is_whole_pages() {
        assert_eq!((PIECE * size_of::<types::row>()) % 4096, 0);
        assert_eq!((PIECE * size_of::<types::file_row>()) % 4096, 0);
    }
}
