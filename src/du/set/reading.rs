//! Reads a set, which may be anybody's file.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::io::BufRead;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::path::PathBuf;

use flate2::bufread::GzDecoder;
use serde::Deserialize;
use serde_json::Value;

use super::File;
use super::HEAD;
use super::KIND;
use super::LARGEST;
use super::LAST;
use super::LONGEST;
use super::VERSION;
use crate::du::paths::At;
use crate::du::view;
use crate::exit::Failure;
use crate::residency::Run;

/// Where a set is read from, as often as it is wanted.
#[derive(Debug)]
pub struct Source {
    name: String,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    /// A file.
    File(fs::File),
    /// Of standard input or a pipe, which can be read once.
    Kept(Vec<u8>),
}

/// What a set says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Bytes in a page.
    pub page_size: u64,
    /// Its files.
    pub files: u64,
    /// Pages of them.
    pub pages: u64,
}

impl Source {
    /// Opens a set; `-` is standard input.
    ///
    /// # Errors
    /// Wrong usage for what cannot be read.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let name = view::name(path);
        let failed = |e: io::Error| {
            let remedy = match e.kind() {
                io::ErrorKind::PermissionDenied => "read it as the user who saved it, or name another set",
                _ => "'cachedu --save FILE PATH' writes such a file",
            };
            Failure::usage(format!("cannot read {name}: {e}")).remedy(remedy)
        };
        let bytes = if path.as_os_str() == "-" {
            Bytes::Kept(kept(io::stdin().lock()).map_err(failed)?)
        } else {
            let file = fs::File::open(path).map_err(failed)?;
            if file.metadata().is_ok_and(|meta| meta.is_file()) {
                Bytes::File(file)
            } else {
                Bytes::Kept(kept(file).map_err(failed)?)
            }
        };
        Ok(Self { name, bytes })
    }

    fn lines(&self) -> Result<Lines<Box<dyn BufRead + Send + '_>>, Failure> {
        let from: Box<dyn BufRead + Send> = match &self.bytes {
            Bytes::File(file) => Box::new(io::BufReader::new(At::new(file))),
            Bytes::Kept(bytes) => Box::new(bytes.as_slice()),
        };
        Lines::new(from).map_err(|e| self.refused(e))
    }

    fn refused(&self, (line, what): Refused) -> Failure {
        Failure::usage(format!("{}, line {line}: {what}", self.name))
            .remedy("'cachedu --save FILE PATH' writes such a file")
    }

    /// Reads it to its end. It may be anybody's file: what it takes in memory is bounded, whatever it says.
    ///
    /// # Errors
    /// Wrong usage for what is no set; it names the line.
    pub fn check(&self) -> Result<Head, Failure> {
        let lines = self.lines()?;
        let mut head = Head { page_size: lines.page_size, files: 0, pages: 0 };
        for file in lines {
            let file = file.map_err(|e| self.refused(e))?;
            head.files += 1;
            head.pages = file.runs.iter().map(|r| r.pages).fold(head.pages, u64::saturating_add);
        }
        Ok(head)
    }

    /// Its files, one after the other.
    ///
    /// # Errors
    /// Wrong usage for what is no set; it names the line.
    pub fn files(&self) -> Result<impl Iterator<Item = Result<File, Failure>> + Send + '_, Failure> {
        Ok(self.lines()?.map(|file| file.map_err(|e| self.refused(e))))
    }

    /// Bytes in its pages.
    ///
    /// # Errors
    /// Wrong usage for what is no set.
    pub(super) fn page_size(&self) -> Result<u64, Failure> {
        Ok(self.lines()?.page_size)
    }
}

/// What can be read once.
fn kept(from: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LARGEST as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > LARGEST {
        return Err(io::Error::other(format!("a set from a pipe may have {LARGEST} bytes: name a file")));
    }
    Ok(bytes)
}

/// A line as it is read; what is not known is passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    r#type: Option<String>,
    files: Option<u64>,
    path: Option<String>,
    path_hex: Option<String>,
    size_bytes: Option<u64>,
    inode: Option<u64>,
    mtime_ns: Option<i64>,
    runs: Option<Vec<u64>>,
}

/// What a file begins with that gzip made.
pub(super) const GZIP: &[u8] = &[0x1f, 0x8b];

/// What the matter is with a set that was cut off, compressed or not.
const CUT: &str = "its end is missing";

/// The number of a line, and what the matter with it is.
type Refused = (usize, String);

/// The lines of a set, compressed or not, of which no more is read than one may have.
pub(super) struct Lines<R: BufRead> {
    from: Either<R>,
    text: Vec<u8>,
    number: usize,
    files: u64,
    /// No file has more pages; what is damaged must not overflow sums.
    most: u64,
    page_size: u64,
    ended: bool,
}

enum Either<R: BufRead> {
    Plain(R),
    Packed(Box<io::BufReader<GzDecoder<R>>>),
}

impl<R: BufRead> Lines<R> {
    /// Reads the head.
    pub(super) fn new(mut from: R) -> Result<Self, Refused> {
        let no_set = || (1, "this is not a set that 'cachedu --save' wrote".to_string());
        let compressed = from.fill_buf().map_err(|e| (1, e.to_string()))?.starts_with(GZIP);
        let from = if compressed {
            Either::Packed(Box::new(io::BufReader::new(GzDecoder::new(from))))
        } else {
            Either::Plain(from)
        };
        let (page_size, most) = (0, 0);
        let mut lines = Self { from, text: Vec::new(), number: 0, files: 0, most, page_size, ended: false };
        // What was cut off within its head may well be a set; anything else that cannot be unpacked is none.
        lines.line(HEAD).map_err(|(_, what)| if what == CUT { (1, what) } else { no_set() })?;
        let head: Value = serde_json::from_slice(&lines.text).map_err(|_| no_set())?;
        if head["type"] != KIND {
            return Err(no_set());
        }
        if head["version"] != VERSION {
            return Err((1, format!("version {} is not known here", head["version"])));
        }
        lines.page_size = head["page_size"].as_u64().filter(|n| n.is_power_of_two()).ok_or_else(no_set)?;
        lines.most = i64::MAX.unsigned_abs().div_ceil(lines.page_size);
        Ok(lines)
    }

    /// Reads the next line; whether there is one.
    fn line(&mut self, most: u64) -> Result<bool, Refused> {
        self.number += 1;
        self.text.clear();
        let n = match &mut self.from {
            Either::Plain(from) => from.take(most + 1).read_until(b'\n', &mut self.text),
            Either::Packed(from) => from.take(most + 1).read_until(b'\n', &mut self.text),
        };
        let n = n.map_err(|e| {
            // A writer or a copy that was stopped: not what the decoder calls it.
            let cut = e.kind() == io::ErrorKind::UnexpectedEof;
            (self.number, if cut { CUT.to_string() } else { e.to_string() })
        })?;
        if n as u64 > most {
            return Err((self.number, "it is longer than any line of a set".to_string()));
        }
        Ok(n > 0)
    }

    /// The next file; none at the end of a set that is whole.
    fn file(&mut self) -> Result<Option<File>, Refused> {
        if !self.line(LONGEST)? {
            return Err((self.number - 1, CUT.to_string()));
        }
        let number = self.number;
        let damaged = || (number, "it is damaged".to_string());
        let line: Line = serde_json::from_slice(&self.text).map_err(|_| damaged())?;
        if line.r#type.as_deref() != Some(LAST) {
            self.files += 1;
            return file(line, self.most).map(Some).ok_or_else(damaged);
        }
        if line.files != Some(self.files) || self.line(LONGEST)? {
            return Err(damaged());
        }
        Ok(None)
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<File, Refused>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.file().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

fn file(line: Line, most: u64) -> Option<File> {
    let path = match line.path_hex {
        Some(hex) => {
            let digits = hex.as_bytes().chunks(2);
            let bytes = digits.map(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok());
            OsString::from_vec(bytes.collect::<Option<_>>()?).into()
        }
        None => PathBuf::from(line.path?),
    };
    let numbers = line.runs?;
    let mut runs: Vec<Run> = Vec::with_capacity(numbers.len() / 2);
    let mut at: u64 = 0;
    for pair in numbers.chunks(2) {
        let &[hole, pages] = pair else { return None };
        let start = at.checked_add(hole)?;
        at = start.checked_add(pages)?;
        // What would lie side by side is one run.
        if at > most || pages == 0 || hole == 0 && !runs.is_empty() {
            return None;
        }
        runs.push(Run { start, pages, dirty: None });
    }
    Some(File { path, size: line.size_bytes?, inode: line.inode?, mtime: line.mtime_ns?, runs })
}
