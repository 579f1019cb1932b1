//! A set of cached pages in a file: written by `--save`, read by `--restore` and `--diff`.
//!
//! JSON lines: a head, then a line for each file with the ranges that were cached, then an end with their number.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::io::BufRead;
use std::io::Read as _;
use std::io::Write;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::path::PathBuf;

use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::found::End;
use super::interrupt;
use super::opening;
use super::printing::print;
use super::ranges::Run;
use super::residency::Ask;
use super::residency::Unknown;
use super::row::Row;
use super::view;
use crate::exit::Failure;
use crate::text::outfile;
use crate::text::table::fitted;

/// What the head is called.
const KIND: &str = "cachedu-set";
/// The version that this program writes, and the only one that it reads.
const VERSION: u64 = 2;
/// What the last line is called: a set without it was cut off.
const LAST: &str = "end";

/// One file of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path when it was written.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// What was cached, in order.
    pub runs: Vec<Run>,
}

/// A set of cached pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// Bytes in a page.
    pub page_size: u64,
    /// Its files.
    pub files: Vec<File>,
}

/// Writes which pages of the files are cached; `-` is standard output.
///
/// # Errors
/// When it cannot be written.
pub fn save(
    path: &Path,
    rows: &[Row],
    ask: Ask,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<End, Failure> {
    let mut end = End::Done;
    let (rows, nameless): (Vec<&Row>, Vec<&Row>) =
        rows.iter().filter(|r| r.totals.cached > 0).partition(|r| lasts(r));
    if let Some(first) = nameless.first() {
        end = End::Partly;
        let _ = writeln!(
            err,
            "cachedu: warning: left out, without a name that lasts: {} files, {} first",
            nameless.len(),
            view::name(&first.path)
        );
    }
    let lines: Vec<(PathBuf, Result<Written, Unknown>)> =
        rows.par_iter().map(|r| (r.path.clone(), line(r, ask))).collect();
    let time = jiff::Timestamp::now().to_string();
    let page_size = rustix::param::page_size();
    let mut text = format!("{}\n", json!({"type":KIND,"version":VERSION,"page_size":page_size,"time":time}));
    let (mut count, mut kept) = (0_u64, 0);
    for (path, line) in lines {
        match line {
            // What would not be read again is no set.
            Ok((line, runs)) if line.len() as u64 > LONGEST => {
                end = End::Partly;
                let _ =
                    writeln!(err, "cachedu: warning: {}: left out, it has {runs} runs", view::name(&path));
            }
            Ok((line, runs)) => {
                text += &line;
                count += 1;
                kept += room(path.as_os_str().len(), runs);
            }
            Err(Unknown::Vanished) => {}
            Err(why) => {
                end = End::Partly;
                let _ = writeln!(err, "cachedu: warning: {}: {why}", view::name(&path));
            }
        }
    }
    if kept > LARGEST {
        return Err(Failure::failed(format!("nothing is saved: a set does not hold {count} files"))
            .remedy("save the directories below one by one"));
    }
    let _ = writeln!(text, "{}", json!({"type":LAST,"files":count}));
    if path.as_os_str() == "-" {
        print(text.as_bytes(), out)?;
        return Ok(end);
    }
    let whole = interrupt::hold();
    outfile::write(path, text.as_bytes()).map_err(|e| e.about(path))?;
    drop(whole);
    let _ = writeln!(err, "cachedu: saved {count} files to {}", view::name(path));
    Ok(end)
}

/// Whether the path will still lead to the file: not that of a deleted one, nor one by way of a process.
fn lasts(row: &Row) -> bool {
    row.via.as_ref().is_none_or(|via| {
        !row.path.starts_with("/proc")
            && opening::look(&row.path).is_some_and(|(inode, _)| inode == via.inode)
    })
}

/// The line of a file, and its number of runs.
type Written = (String, usize);

fn line(row: &Row, ask: Ask) -> Result<Written, Unknown> {
    let (fd, stat) = row.open()?;
    let runs = ask.ranges(fd.as_fd())?;
    let mut object = Map::new();
    // From another directory the set must mean the same.
    let whole = std::path::absolute(&row.path).unwrap_or_else(|_| row.path.clone());
    view::put_path(&mut object, &whole);
    object.insert("size_bytes".into(), stat.stx_size.into());
    let ranges: Vec<_> = runs.iter().map(|r| [r.start, r.pages]).collect();
    object.insert("ranges".into(), json!(ranges));
    Ok((format!("{}\n", crate::text::foreign::json(&object)), runs.len()))
}

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
    ranges: Option<Vec<(u64, u64)>>,
}

fn parse(mut from: impl BufRead) -> Result<Set, (usize, String)> {
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

/// Bytes that the head may have.
const HEAD: u64 = 1 << 16;
/// Bytes that a line may have: a file with 300 000 runs.
const LONGEST: u64 = 4 << 20;
/// Bytes that a set may take in memory: 140 000 files with short names and a run each.
const LARGEST: usize = 36 << 20;

/// What a file of a set takes in memory, while lists grow.
fn room(path: usize, runs: usize) -> usize {
    3 * size_of::<File>() + path + runs * size_of::<Run>() + 32
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
    let ranges = line.ranges?;
    let mut runs: Vec<Run> = Vec::with_capacity(ranges.len());
    for (start, pages) in ranges {
        let run = Run { start, pages, dirty: None };
        // In order and apart, as they were written.
        if run.start.checked_add(run.pages)? > most
            || run.pages == 0
            || runs.last().is_some_and(|last| last.end() > run.start)
        {
            return None;
        }
        runs.push(run);
    }
    Some(File { path, size: line.size_bytes?, runs })
}

/// What two sets have in common, file by file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// By path: pages only in the first, only in the second, in both.
    pub files: BTreeMap<PathBuf, (u64, u64, u64)>,
}

fn common(a: &[Run], b: &[Run]) -> u64 {
    let (mut i, mut j, mut sum) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        sum += x.end().min(y.end()).saturating_sub(x.start.max(y.start));
        if x.end() < y.end() { i += 1 } else { j += 1 }
    }
    sum
}

fn pages(runs: &[Run]) -> u64 {
    runs.iter().map(|r| r.pages).sum()
}

impl Diff {
    /// Compares two sets by path.
    ///
    /// # Errors
    /// Wrong usage for sets with pages of different sizes: their numbers mean different things.
    pub fn new(a: &Set, b: &Set) -> Result<Self, Failure> {
        if a.page_size != b.page_size {
            let text = format!("one set has pages of {} bytes, the other of {}", a.page_size, b.page_size);
            return Err(Failure::usage(text).remedy("compare sets of the same machine"));
        }
        let mut both: BTreeMap<&Path, (&[Run], &[Run])> = BTreeMap::new();
        for f in &a.files {
            both.entry(&f.path).or_default().0 = &f.runs;
        }
        for f in &b.files {
            both.entry(&f.path).or_default().1 = &f.runs;
        }
        let files = both.into_iter().map(|(path, (a, b))| {
            let same = common(a, b);
            (path.to_path_buf(), (pages(a) - same, pages(b) - same, same))
        });
        Ok(Self { files: files.collect() })
    }

    /// As a table of what differs, or as JSON lines.
    #[must_use]
    pub fn show(&self, as_json: bool) -> String {
        let mut out = String::new();
        let mut sum = (0, 0, 0);
        let title = |s: &str| s.to_string();
        let (mut lines, mut names) =
            (vec![vec![title("GONE"), title("NEW"), title("SAME")]], vec![title("NAME")]);
        for (path, &(gone, new, same)) in &self.files {
            let add = u64::saturating_add;
            sum = (add(sum.0, gone), add(sum.1, new), add(sum.2, same));
            if as_json {
                let mut object = Map::new();
                object.insert("type".into(), "diff".into());
                view::put_path(&mut object, path);
                object.extend(
                    [("gone", gone), ("new", new), ("same", same)].map(|(k, n)| (k.into(), n.into())),
                );
                let _ = writeln!(out, "{}", crate::text::foreign::json(&object));
            } else if gone + new > 0 {
                lines.push([gone, new, same].map(|n| n.to_string()).to_vec());
                names.push(view::name(path));
            }
        }
        if as_json {
            return out;
        }
        lines.push([sum.0, sum.1, sum.2].map(|n| n.to_string()).to_vec());
        names.push("total".into());
        fitted(&lines, &names)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const HEAD: &str = r#"{"type":"cachedu-set","version":2,"page_size":4096}"#;

    fn set(lines: &[&str]) -> Result<Set, (usize, String)> {
        let end = format!("{{\"type\":\"end\",\"files\":{}}}", lines.len());
        parse([&[HEAD], lines, &[end.as_str()]].concat().join("\n").as_bytes())
    }

    #[test]
    fn what_is_damaged_is_not_restored() {
        for line in [
            "{}",
            r#"{"path":"a","size_bytes":1,"ranges":[[0,0]]}"#,
            r#"{"path":"a","size_bytes":1,"ranges":[[0,2],[1,1]]}"#,
            r#"{"path":"a","size_bytes":1,"ranges":[[18446744073709551615,2]]}"#,
            r#"{"path":"a","size_bytes":1,"ranges":[[0,18446744073709551615]]}"#,
            r#"{"path":"a","size_bytes":1,"ranges":[[2251799813685247,1]]}"#,
            r#"{"path":"a","size_bytes":1,"ranges":[[0]]}"#,
            r#"{"path":"a","path_hex":"f","size_bytes":1,"ranges":[[-1,1]]}"#,
        ] {
            assert_eq!(set(&[line]).unwrap_err().0, 2, "{line}");
        }
        assert!(parse(&b""[..]).is_err() && parse(&b"x\n"[..]).is_err() && parse(&b"{}"[..]).is_err());
        assert!(parse(HEAD.replace(":2,", ":3,").as_bytes()).unwrap_err().1.contains("version 3"));
    }

    #[test]
    fn what_was_cut_off_is_not_restored() {
        let file = r#"{"path":"a","size_bytes":1,"ranges":[[0,1]]}"#;
        let end = |n| format!("{{\"type\":\"end\",\"files\":{n}}}");
        assert!(set(&[file, file]).is_ok() && set(&[]).is_ok());
        assert!(parse(format!("{HEAD}\n{file}\n").as_bytes()).unwrap_err().1.contains("end is missing"));
        assert!(parse(HEAD.as_bytes()).is_err());
        assert!(parse(format!("{HEAD}\n{file}\n{}\n", end(2)).as_bytes()).is_err());
        assert!(parse(format!("{HEAD}\n{file}\n{}\n{file}\n", end(1)).as_bytes()).is_err());
    }

    #[test]
    fn what_is_huge_is_refused() {
        // A line without an end, a list without an end, and more files than a set has.
        let zeros = io::BufReader::new(fs::File::open("/dev/zero").unwrap());
        assert_eq!(parse(zeros).unwrap_err().0, 1);
        let head = format!("{HEAD}\n");
        let endless = head.as_bytes().chain(io::BufReader::new(io::repeat(b'[')));
        assert!(parse(endless).unwrap_err().1.contains("longer than any line"));
        let line = format!("{{\"path\":\"{}\",\"size_bytes\":1,\"ranges\":[]}}\n", "x".repeat(1 << 20));
        let many = head.into_bytes().into_iter().chain(line.into_bytes().repeat(40)).collect::<Vec<_>>();
        let (number, why) = parse(&many[..]).unwrap_err();
        assert!(why.contains("too large") && number == 37, "{number}: {why}");
    }

    #[test]
    fn differences() {
        let a = set(&[
            r#"{"path":"/a","size_bytes":99999,"ranges":[[0,10],[20,10]]}"#,
            r#"{"path":"/gone","size_bytes":99999,"ranges":[[5,1]]}"#,
            r#"{"path":"/same","size_bytes":99999,"ranges":[[0,2]]}"#,
        ]);
        let b = set(&[
            r#"{"path":"/same","size_bytes":99999,"ranges":[[0,2]]}"#,
            r#"{"path":"/a","size_bytes":99999,"ranges":[[5,20]]}"#,
            r#"{"path":"?","path_hex":"2fff","size_bytes":99999,"ranges":[[7,3]]}"#,
        ]);
        let (a, b) = (a.unwrap(), b.unwrap());
        assert!(Diff::new(&a, &Set { page_size: 65536, ..b.clone() }).is_err());
        let diff = Diff::new(&a, &b).ok().unwrap();
        insta::assert_snapshot!("diff", diff.show(false));
        insta::assert_snapshot!("diff_json", diff.show(true));
    }
}
