//! A scan that was saved: the JSON of a tree, looked at on another day or another machine.

use std::collections::HashMap;
use std::collections::HashSet;
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

use crate::du::row::Kind;
use crate::du::row::Row;
use crate::du::totals::Totals;
use crate::du::view;
use crate::exit::Failure;

/// Bytes that a line may have: twice the longest path and its figures.
const LONGEST: u64 = 1 << 16;
/// Rows that a scan may have: some gigabytes in memory.
const MOST: usize = 8 << 20;

/// Rows by the directory that they are in.
pub(super) type Rows = HashMap<PathBuf, Vec<Row>>;

/// A line as it is read; what is not known is passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    r#type: String,
    path: Option<String>,
    path_hex: Option<String>,
    size_bytes: Option<u64>,
    disk_bytes: Option<u64>,
    pages: Option<u64>,
    cached: Option<u64>,
    dirty: Option<u64>,
    dirty_at_least: Option<u64>,
    writeback: Option<u64>,
    evicted: Option<u64>,
    recently_evicted: Option<u64>,
    method: Option<String>,
    files: Option<u64>,
    directories: Option<u64>,
    others: Option<u64>,
    perhaps_shared_files: u64,
    unknown_files: u64,
    unknown_pages: u64,
    unread: u64,
    vanished: u64,
}

impl Line {
    fn kind(&self) -> Option<Kind> {
        [Kind::File, Kind::Directory].into_iter().find(|kind| kind.name() == self.r#type)
    }

    fn path(&self) -> Option<PathBuf> {
        match &self.path_hex {
            Some(hex) => {
                let digits = hex.as_bytes().chunks(2);
                let bytes = digits.map(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok());
                Some(OsString::from_vec(bytes.collect::<Option<_>>()?).into())
            }
            None => self.path.clone().map(PathBuf::from),
        }
    }

    fn totals(&self, kind: Kind) -> Totals {
        let file = kind == Kind::File;
        let files = if file { 1 } else { self.files.unwrap_or(0) };
        let unknown = if file { u64::from(self.cached.is_none()) } else { self.unknown_files };
        let pages = self.pages.unwrap_or(0);
        // Where only some were asked by mincore(2), how many is not told: one is enough for the sum to be a part.
        let by_mincore = match self.method.as_deref() {
            Some("mincore") => files.saturating_sub(unknown),
            Some("both") => 1,
            _ => 0,
        };
        Totals {
            files,
            dirs: self.directories.unwrap_or(0),
            others: self.others.unwrap_or(0),
            disk: self.disk_bytes.unwrap_or(0),
            size: self.size_bytes.unwrap_or(0),
            pages,
            cached: self.cached.unwrap_or(0),
            dirty: self.dirty.or(self.dirty_at_least).unwrap_or(0),
            writeback: self.writeback.unwrap_or(0),
            evicted: self.evicted.unwrap_or(0),
            recently_evicted: self.recently_evicted.unwrap_or(0),
            by_mincore,
            empty: u64::from(file && pages == 0 && unknown == 0),
            perhaps_shared: self.perhaps_shared_files,
            unknown,
            unknown_pages: if file { unknown * pages } else { self.unknown_pages },
            sizeless: if self.size_bytes.is_none() { unknown.max(1) } else { 0 },
            unread: self.unread,
            vanished: self.vanished,
        }
    }
}

/// Reads a scan: its tree, and where it begins; `wanted` is a directory of it, where there are several.
///
/// # Errors
/// Wrong usage for what is no scan; it names the line.
pub(super) fn read(file: &Path, wanted: Option<&Path>) -> Result<(PathBuf, Rows), Failure> {
    let name = view::name(file);
    let failed = |e| Failure::usage(format!("cannot read {name}: {e}"));
    let opened = fs::File::open(file).map_err(failed)?;
    let rows = parse(io::BufReader::new(opened)).map_err(|(line, why)| {
        Failure::usage(format!("{name}, line {line}: {why}"))
            .remedy("'cachedu --json -a -d 999 PATH' writes a scan")
    })?;
    let root = root(&rows, wanted).map_err(|why| Failure::usage(format!("{name}: {why}")))?;
    Ok((root, rows))
}

/// Reads the rows, packed by gzip or not.
fn parse(mut from: impl BufRead) -> Result<Rows, (usize, String)> {
    let packed = from.fill_buf().map_err(|e| (1, e.to_string()))?.starts_with(&[0x1f, 0x8b]);
    if packed { lines(io::BufReader::new(GzDecoder::new(from))) } else { lines(from) }
}

fn lines(mut from: impl BufRead) -> Result<Rows, (usize, String)> {
    let (mut rows, mut text) = (Rows::new(), Vec::new());
    for number in 1.. {
        text.clear();
        let n = (&mut from).take(LONGEST + 1).read_until(b'\n', &mut text);
        let n = n.map_err(|e| (number, e.to_string()))?;
        if n == 0 {
            break;
        }
        if n as u64 > LONGEST {
            return Err((number, "it is longer than any line of a scan".into()));
        }
        if number > MOST {
            return Err((number, "the scan is too large to be browsed".into()));
        }
        let line: Line =
            serde_json::from_slice(&text).map_err(|_| (number, "it is no line of a scan".to_owned()))?;
        let Some(kind) = line.kind() else { continue };
        let path = line.path().ok_or_else(|| (number, "it has no path".to_owned()))?;
        let above = path.parent().unwrap_or(Path::new("")).to_path_buf();
        rows.entry(above).or_default().push(Row::new(kind, path, 0, line.totals(kind), None));
    }
    Ok(rows)
}

/// Where the tree begins.
fn root(rows: &Rows, wanted: Option<&Path>) -> Result<PathBuf, String> {
    let directories: HashSet<&Path> =
        rows.values().flatten().filter(|r| r.kind == Kind::Directory).map(|r| r.path.as_path()).collect();
    if let Some(wanted) = wanted {
        let there = directories.contains(wanted);
        return if there { Ok(wanted.into()) } else { Err(format!("no directory {}", view::name(wanted))) };
    }
    let top = |path: &&Path| path.parent().is_none_or(|above| !directories.contains(above));
    let mut tops: Vec<&Path> = directories.iter().copied().filter(top).collect();
    tops.sort_unstable();
    match tops[..] {
        [] => Err("no directory is in it: 'cachedu --json -a -d 999 PATH' writes a scan".into()),
        [one] => Ok(one.into()),
        [first, ..] => {
            Err(format!("it has {} trees: name one of them, as {}", tops.len(), view::name(first)))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write as _;

    use super::*;
    use crate::residency::More;
    use crate::residency::Residency;
    use crate::residency::Unknown;

    fn row(kind: Kind, path: &str, totals: Totals) -> Row {
        Row::new(kind, path.into(), 0, totals, None)
    }

    fn written(rows: &[Row]) -> Vec<u8> {
        rows.iter().flat_map(|row| format!("{}\n", view::json(row)).into_bytes()).collect()
    }

    #[test]
    fn what_was_written_is_read() {
        let more = Some(More { dirty: 3, writeback: 1, evicted: 7, recently_evicted: 2 });
        let method = crate::residency::Method::Cachestat;
        let known = Residency { size: 99_999, pages: 25, cached: 20, more, method };
        let file = Totals::of_file(99_999, 102_400, Ok(&known));
        let unknown = Totals::of_file(5000, 8192, Err(Unknown::NotPermitted));
        let mut both = Totals { dirs: 1, others: 4, disk: 4096, unread: 1, ..Totals::default() };
        both.add(&file);
        both.add(&unknown);
        let rows = [
            row(Kind::File, "/a/x\n", file),
            row(Kind::File, "/a/b/y", unknown),
            row(Kind::Directory, "/a/b", Totals { dirs: 1, ..unknown }),
            row(Kind::Directory, "/a", both),
            row(Kind::Total, "", both),
        ];
        let text = written(&rows);
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&text).unwrap();
        for bytes in [text, gz.finish().unwrap()] {
            let read = parse(&bytes[..]).unwrap();
            assert_eq!(root(&read, None).unwrap(), Path::new("/a"));
            assert_eq!(root(&read, Some(Path::new("/a/b"))).unwrap(), Path::new("/a/b"));
            assert!(root(&read, Some(Path::new("/a/x"))).is_err());
            let mut found: Vec<Row> = read.into_values().flatten().collect();
            found.sort_by(|a, b| a.path.cmp(&b.path));
            let mut wanted = rows[..4].to_vec();
            wanted.sort_by(|a, b| a.path.cmp(&b.path));
            // As JSON has them: what is not told of a part is not invented.
            let shown = |rows: &[Row]| rows.iter().map(view::json).collect::<Vec<_>>();
            assert_eq!(shown(&found), shown(&wanted));
        }
    }

    #[test]
    fn what_is_no_scan_is_refused() {
        assert_eq!(parse(&b"x\n"[..]).unwrap_err().0, 1);
        assert_eq!(parse(&b"{}\n{\"type\":\"file\"}\n"[..]).unwrap_err(), (2, "it has no path".into()));
        let endless = io::BufReader::new(io::repeat(b'['));
        assert!(parse(endless).unwrap_err().1.contains("longer than"));
        assert!(root(&parse(&b""[..]).unwrap(), None).unwrap_err().contains("no directory"));
        let rows =
            [row(Kind::Directory, "/a", Totals::default()), row(Kind::Directory, "/b", Totals::default())];
        let two = parse(&written(&rows)[..]).unwrap();
        assert!(root(&two, None).unwrap_err().contains("2 trees: name one of them, as /a"));
    }
}
