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
use super::Set;
use super::VERSION;
use super::room;
use crate::du::view;
use crate::exit::Failure;
use crate::residency::Run;

/// Reads a set. It may be any file: what it takes in memory is bounded, whatever it says.
///
/// # Errors
/// Wrong usage for what is no set; it names the line.
pub fn read(path: &Path) -> Result<Set, Failure> {
    let refused = |(line, what): (usize, String)| {
        Failure::usage(format!("{}, line {line}: {what}", view::name(path)))
            .remedy("'cachedu --save FILE PATH' writes such a file")
    };
    if path.as_os_str() == "-" {
        return parse(io::stdin().lock()).map_err(refused);
    }
    let failed = |e| Failure::usage(format!("cannot read {}: {e}", view::name(path)));
    parse(io::BufReader::new(fs::File::open(path).map_err(failed)?)).map_err(refused)
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
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Reads a set, compressed or not.
pub(super) fn parse(mut from: impl BufRead) -> Result<Set, (usize, String)> {
    let compressed = from.fill_buf().map_err(|e| (1, e.to_string()))?.starts_with(GZIP);
    if compressed { lines(io::BufReader::new(GzDecoder::new(from))) } else { lines(from) }
}

fn lines(mut from: impl BufRead) -> Result<Set, (usize, String)> {
    let no_set = || (1, "this is not a set that 'cachedu --save' wrote".to_string());
    let mut text = Vec::new();
    let mut number = 0;
    // The next line, of which no more is read than it may have.
    let mut next = |text: &mut Vec<u8>, most: u64| {
        number += 1;
        text.clear();
        let n = (&mut from).take(most + 1).read_until(b'\n', text).map_err(|e| (number, e.to_string()))?;
        let too_long = || (number, "it is longer than any line of a set".to_string());
        if n as u64 > most { Err(too_long()) } else { Ok((n > 0).then_some(number)) }
    };
    next(&mut text, HEAD).map_err(|_| no_set())?;
    let head: Value = serde_json::from_slice(&text).map_err(|_| no_set())?;
    if head["type"] != KIND {
        return Err(no_set());
    }
    if head["version"] != VERSION {
        return Err((1, format!("version {} is not known here", head["version"])));
    }
    let page_size = head["page_size"].as_u64().filter(|n| n.is_power_of_two()).ok_or_else(no_set)?;
    // No file is longer; what is damaged must not overflow sums.
    let most = i64::MAX.unsigned_abs() / page_size;
    let (mut files, mut kept, mut last) = (Vec::new(), 0, 1);
    while let Some(number) = next(&mut text, LONGEST)? {
        last = number;
        let damaged = || (number, "it is damaged".to_string());
        let line: Line = serde_json::from_slice(&text).map_err(|_| damaged())?;
        if line.r#type.as_deref() != Some(LAST) {
            let file = file(line, most).ok_or_else(damaged)?;
            kept += room(file.path.as_os_str().len(), file.runs.len());
            if kept > LARGEST {
                return Err((number, "the set is too large: make it in parts".to_string()));
            }
            files.push(file);
            continue;
        }
        if line.files != Some(files.len() as u64) || next(&mut text, LONGEST)?.is_some() {
            return Err(damaged());
        }
        return Ok(Set { page_size, files });
    }
    Err((last, "its end is missing".to_string()))
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
