//! The files of a set in the order of their paths, however many there are: what does not fit into memory is sorted in
//! parts, which lie in files without names until they are merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::io::BufReader;
use std::io::BufWriter;
use std::io::Read as _;
use std::io::Seek as _;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::vec;

use rustix::fs::Mode;
use rustix::fs::OFlags;

use super::File;
use super::room;
use crate::exit::Failure;
use crate::residency::Run;
use crate::text::foreign::Foreign;

/// Parts that are merged at once: each has a file open.
const PARTS: usize = 512;

/// A path and what was cached of it.
type Entry = (PathBuf, Vec<Run>);

/// A part that is in order.
enum Part {
    Kept(vec::IntoIter<Entry>),
    Filed(BufReader<fs::File>),
}

/// Files by path; of several with the same path, the last.
pub(super) struct Sorted {
    parts: Vec<Part>,
    /// The next path of each part; of equal ones, that of the last part first.
    next: BinaryHeap<Reverse<(PathBuf, Reverse<usize>)>>,
    runs: Vec<Vec<Run>>,
}

impl Sorted {
    /// Sorts files, of which no more than `most` bytes are in memory at once.
    ///
    /// # Errors
    /// Those of reading, and when there is no room for temporary files.
    pub(super) fn new(
        files: impl Iterator<Item = Result<File, Failure>>,
        most: usize,
    ) -> Result<Self, Failure> {
        let (mut parts, mut some, mut kept): (Vec<Part>, Vec<Entry>, usize) = (Vec::new(), Vec::new(), 0);
        for file in files {
            let file = file?;
            kept += room(file.path.as_os_str().len(), file.runs.len());
            some.push((file.path, file.runs));
            if kept > most {
                if parts.len() == PARTS {
                    return Err(
                        Failure::usage("the set is too large to be compared").remedy("make it in parts")
                    );
                }
                parts.push(Part::Filed(filed(in_order(std::mem::take(&mut some))).map_err(no_room)?));
                kept = 0;
            }
        }
        parts.push(Part::Kept(in_order(some)));
        let (next, runs) = (BinaryHeap::new(), parts.iter().map(|_| Vec::new()).collect());
        let mut sorted = Self { parts, next, runs };
        (0..sorted.parts.len()).try_for_each(|n| sorted.advance(n)).map_err(no_room)?;
        Ok(sorted)
    }

    /// Brings in the next file of a part.
    fn advance(&mut self, n: usize) -> io::Result<()> {
        let entry = match &mut self.parts[n] {
            Part::Kept(entries) => entries.next(),
            Part::Filed(from) => read(from)?,
        };
        if let Some((path, runs)) = entry {
            self.runs[n] = runs;
            self.next.push(Reverse((path, Reverse(n))));
        }
        Ok(())
    }

    /// The next path.
    pub(super) fn path(&self) -> Option<&PathBuf> {
        self.next.peek().map(|Reverse((path, _))| path)
    }

    /// The next file.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, Failure> {
        let Some(Reverse((path, Reverse(n)))) = self.next.pop() else { return Ok(None) };
        let runs = std::mem::take(&mut self.runs[n]);
        self.advance(n).map_err(no_room)?;
        while self.path() == Some(&path) {
            let Some(Reverse((_, Reverse(n)))) = self.next.pop() else { break };
            self.advance(n).map_err(no_room)?;
        }
        Ok(Some((path, runs)))
    }
}

fn no_room(e: io::Error) -> Failure {
    let dir = env::temp_dir();
    Failure::failed(format!("cannot sort the set in {}: {e}", Foreign::from(dir.as_path())))
        .remedy("name a directory that has room by TMPDIR")
}

fn in_order(mut some: Vec<Entry>) -> vec::IntoIter<Entry> {
    // What came last is what counts.
    some.reverse();
    some.sort_by(|(a, _), (b, _)| a.cmp(b));
    some.dedup_by(|(later, _), (first, _)| later == first);
    some.into_iter()
}

/// Writes a part to a file that nobody else can open.
fn filed(entries: impl Iterator<Item = Entry>) -> io::Result<BufReader<fs::File>> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    let mut to = BufWriter::new(fs::File::from(rustix::fs::open(env::temp_dir(), flags, Mode::RUSR)?));
    for (path, runs) in entries {
        let path = path.as_os_str().as_bytes();
        to.write_all(&(path.len() as u64).to_ne_bytes())?;
        to.write_all(path)?;
        to.write_all(&(runs.len() as u64).to_ne_bytes())?;
        for run in runs {
            to.write_all(&run.start.to_ne_bytes())?;
            to.write_all(&run.pages.to_ne_bytes())?;
        }
    }
    let mut file = to.into_inner()?;
    file.rewind()?;
    Ok(BufReader::new(file))
}

fn read(from: &mut BufReader<fs::File>) -> io::Result<Option<Entry>> {
    let mut length = [0; 8];
    match from.read_exact(&mut length) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        done => done?,
    }
    let mut path = Vec::new();
    from.take(u64::from_ne_bytes(length)).read_to_end(&mut path)?;
    let mut number = || {
        let mut bytes = [0; 8];
        from.read_exact(&mut bytes).map(|()| u64::from_ne_bytes(bytes))
    };
    let count = number()?;
    let run = |_| Ok(Run { start: number()?, pages: number()?, dirty: None });
    let runs = (0..count).map(run).collect::<io::Result<_>>()?;
    Ok(Some((OsString::from_vec(path).into(), runs)))
}
