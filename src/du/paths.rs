//! The paths that are looked at: those that are named, and those of a list. A list may be longer than memory should be
//! full of, so it is read as often as it is wanted; what can be read once is kept packed.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::io::BufRead;
use std::io::Read;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::path::PathBuf;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::options::List;
use super::options::Options;
use super::view;
use crate::exit::Failure;

/// Bytes that a path of a list may have; the kernel takes 4096 at once, we go further in pieces.
const LONGEST: u64 = 1 << 20;
/// Bytes of a list that are read at once.
const PIECE: usize = 1 << 16;

/// The paths that are looked at.
#[derive(Debug)]
pub struct Paths {
    named: Vec<PathBuf>,
    list: Option<Listed>,
}

#[derive(Debug)]
struct Listed {
    name: String,
    /// What a path ends with.
    end: u8,
    text: Text,
}

#[derive(Debug)]
enum Text {
    File(fs::File),
    Packed(Vec<u8>),
}

/// A file from its beginning, whoever else reads it.
#[derive(Debug)]
pub(super) struct At<'a> {
    file: &'a fs::File,
    at: u64,
}

impl<'a> At<'a> {
    pub(super) fn new(file: &'a fs::File) -> Self {
        Self { file, at: 0 }
    }
}

impl Read for At<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(into, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

fn packed(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut to = GzEncoder::new(Vec::new(), Compression::fast());
    io::copy(&mut from, &mut to)?;
    to.finish()
}

impl Paths {
    /// The paths to look at: those named, those of a file, or the current directory.
    ///
    /// # Errors
    /// Wrong usage where the list of them cannot be read.
    pub fn new(options: &Options) -> Result<Self, Failure> {
        let mut named = options.paths.clone();
        let Some(List { file, null }) = &options.list else {
            if named.is_empty() {
                named.push(".".into());
            }
            return Ok(Self { named, list: None });
        };
        let name = view::name(file);
        let failed = |e| Failure::usage(format!("cannot read {name}: {e}"));
        let text = if file.as_os_str() == "-" {
            Text::Packed(packed(io::stdin().lock()).map_err(failed)?)
        } else {
            let file = fs::File::open(file).map_err(failed)?;
            match file.metadata() {
                Ok(meta) if meta.is_file() => Text::File(file),
                _ => Text::Packed(packed(file).map_err(failed)?),
            }
        };
        let end = if *null { 0 } else { b'\n' };
        Ok(Self { named, list: Some(Listed { name, end, text }) })
    }

    /// One after the other.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        let listed = self.list.as_ref().map(|list| {
            let from: Box<dyn BufRead + Send> = match &list.text {
                Text::File(file) => Box::new(io::BufReader::with_capacity(PIECE, At::new(file))),
                Text::Packed(bytes) => {
                    Box::new(io::BufReader::with_capacity(PIECE, GzDecoder::new(bytes.as_slice())))
                }
            };
            (list, from)
        });
        Iter { named: self.named.iter(), listed }
    }

    /// All of them at once.
    ///
    /// # Errors
    /// Wrong usage where the list of them cannot be read.
    pub fn all(&self) -> Result<Vec<PathBuf>, Failure> {
        self.iter().collect()
    }
}

/// Paths one after the other.
pub struct Iter<'a> {
    named: std::slice::Iter<'a, PathBuf>,
    listed: Option<(&'a Listed, Box<dyn BufRead + Send + 'a>)>,
}

impl Iter<'_> {
    /// Puts the next path behind what is there.
    pub(super) fn append(&mut self, to: &mut Vec<u8>) -> Option<Result<(), Failure>> {
        if let Some(path) = self.named.next() {
            to.extend_from_slice(path.as_os_str().as_bytes());
            return Some(Ok(()));
        }
        let (list, from) = self.listed.as_mut()?;
        let bad = |why: String| Failure::usage(format!("cannot read {}: {why}", list.name));
        let begin = to.len();
        let failed = loop {
            match from.take(LONGEST + 1).read_until(list.end, to) {
                Err(e) => break bad(e.to_string()),
                Ok(n) if n as u64 > LONGEST => {
                    break bad(format!("a path in it has more than {LONGEST} bytes"));
                }
                Ok(0) => return None,
                Ok(_) => {}
            }
            if to.last() == Some(&list.end) {
                to.pop();
            }
            if to.len() > begin {
                return Some(Ok(()));
            }
        };
        self.listed = None;
        Some(Err(failed))
    }
}

impl Iterator for Iter<'_> {
    type Item = Result<PathBuf, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = Vec::new();
        self.append(&mut bytes).map(|done| done.map(|()| path(&bytes).to_owned()))
    }
}

/// The path that these bytes are.
pub(super) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn a_list_is_read_as_often_as_it_is_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("list");
        fs::write(&file, b"a\0\0b\nc\0\xff").unwrap();
        let options = Options {
            paths: vec!["first".into()],
            list: Some(List { file, null: true }),
            ..Options::default()
        };
        let paths = Paths::new(&options).ok().unwrap();
        let wanted: Vec<PathBuf> =
            vec!["first".into(), "a".into(), "b\nc".into(), OsString::from_vec(vec![0xff]).into()];
        for _ in 0..2 {
            assert_eq!(paths.all().ok().unwrap(), wanted);
        }
        // As from a pipe.
        let bytes = packed(&b"x\ny\n"[..]).unwrap();
        let list = Listed { name: "-".into(), end: b'\n', text: Text::Packed(bytes) };
        let paths = Paths { named: Vec::new(), list: Some(list) };
        assert_eq!(paths.all().ok().unwrap(), paths.all().ok().unwrap());
        assert_eq!(paths.iter().count(), 2);
    }

    #[test]
    fn a_path_without_an_end_is_refused() {
        let bytes = packed(io::repeat(b'x').take(LONGEST + 5)).unwrap();
        assert!(bytes.len() < 1 << 16, "it is packed");
        let list = Listed { name: "-".into(), end: b'\n', text: Text::Packed(bytes) };
        let paths = Paths { named: vec!["a".into()], list: Some(list) };
        let all: Vec<_> = paths.iter().collect();
        assert!(
            all.len() == 2 && all[1].as_ref().unwrap_err().message.contains("more than"),
            "{}",
            all.len()
        );
    }
}
