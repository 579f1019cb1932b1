//! A set of cached pages in a file: written by `--save`, read by `--restore` and `--diff`.
//!
//! JSON lines: a head, then a line for each file with the ranges that were cached, then an end with their number.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::io::Write;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::path::PathBuf;

use rayon::prelude::*;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::interrupt;
use super::ranges::Run;
use super::residency::Ask;
use super::residency::Unknown;
use super::row::Row;
use super::run;
use super::run::End;
use super::view;
use crate::exit::Failure;

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
    let lines: Vec<(PathBuf, Result<String, Unknown>)> =
        rows.par_iter().map(|r| (r.path.clone(), line(r, ask))).collect();
    let time = jiff::Timestamp::now().to_string();
    let page_size = rustix::param::page_size();
    let mut text = format!("{}\n", json!({"type":KIND,"version":VERSION,"page_size":page_size,"time":time}));
    let mut count = 0_u64;
    for (path, line) in lines {
        match line {
            Ok(line) => {
                text += &line;
                count += 1;
            }
            Err(Unknown::Vanished) => {}
            Err(why) => {
                end = End::Partly;
                let _ = writeln!(err, "cachedu: warning: {}: {why}", view::name(&path));
            }
        }
    }
    let _ = writeln!(text, "{}", json!({"type":LAST,"files":count}));
    if path.as_os_str() == "-" {
        run::print(text.as_bytes(), out)?;
        return Ok(end);
    }
    let failed = |e| Failure::failed(format!("cannot write {}: {e}", view::name(path)));
    replace(path, text.as_bytes()).map_err(failed)?;
    let _ = writeln!(err, "cachedu: saved {count} files to {}", view::name(path));
    Ok(end)
}

/// Whether the path will still lead to the file: not that of a deleted one, nor one by way of a process.
fn lasts(row: &Row) -> bool {
    row.via.as_ref().is_none_or(|via| {
        !row.path.starts_with("/proc") && run::look(&row.path).is_some_and(|(inode, _)| inode == via.inode)
    })
}

/// Writes a file as a whole or not at all: an older set must outlive a full disk.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    // The file behind a symbolic link is meant, not the link.
    let path = &match fs::canonicalize(path) {
        Ok(whole) => whole,
        // It leads to a file that has yet to be made: there is none to outlive a failure.
        Err(_) if path.is_symlink() => return fs::write(path, text),
        Err(_) => path.to_path_buf(),
    };
    let old = fs::metadata(path).ok();
    let Some(name) = path.file_name().filter(|_| old.as_ref().is_none_or(fs::Metadata::is_file)) else {
        // A pipe or a device cannot be replaced.
        return fs::write(path, text);
    };
    let mut beside = OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(beside);
    let _whole = interrupt::hold();
    let mut file = fs::File::options().write(true).create_new(true).open(&beside)?;
    let written = (|| {
        if let Some(old) = old {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

fn line(row: &Row, ask: Ask) -> Result<String, Unknown> {
    let (fd, stat) = row.open()?;
    let runs = ask.ranges(fd.as_fd())?;
    let mut object = Map::new();
    // From another directory the set must mean the same.
    let whole = std::path::absolute(&row.path).unwrap_or_else(|_| row.path.clone());
    view::put_path(&mut object, &whole);
    object.insert("size_bytes".into(), stat.stx_size.into());
    let ranges: Vec<_> = runs.iter().map(|r| [r.start, r.pages]).collect();
    object.insert("ranges".into(), json!(ranges));
    Ok(format!("{}\n", crate::foreign::json(&object)))
}

/// Reads a set.
///
/// # Errors
/// Wrong usage for what is no set; it names the line.
pub fn read(path: &Path) -> Result<Set, Failure> {
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        fs::read_to_string(path)
    };
    let text = text.map_err(|e| Failure::usage(format!("cannot read {}: {e}", view::name(path))))?;
    parse(&text).map_err(|(line, what)| {
        Failure::usage(format!("{}, line {line}: {what}", view::name(path)))
            .remedy("'cachedu --save FILE PATH' writes such a file")
    })
}

fn parse(text: &str) -> Result<Set, (usize, String)> {
    let mut lines = text.lines().enumerate();
    let no_set = || (1, "this is not a set that 'cachedu --save' wrote".to_string());
    let head: Value = lines.next().and_then(|(_, l)| serde_json::from_str(l).ok()).ok_or_else(no_set)?;
    if head["type"] != KIND {
        return Err(no_set());
    }
    if head["version"] != VERSION {
        return Err((1, format!("version {} is not known here", head["version"])));
    }
    let page_size = head["page_size"].as_u64().filter(|n| n.is_power_of_two()).ok_or_else(no_set)?;
    // No file is longer; what is damaged must not overflow sums.
    let most = i64::MAX.unsigned_abs() / page_size;
    let mut files = Vec::new();
    let mut last = 1;
    for (i, line) in lines.by_ref() {
        last = i + 1;
        let damaged = || (last, "it is damaged".to_string());
        let value: Value = serde_json::from_str(line).map_err(|_| damaged())?;
        if value["type"] != LAST {
            files.push(file(&value, most).ok_or_else(damaged)?);
            continue;
        }
        if value["files"] != files.len() || lines.next().is_some() {
            return Err(damaged());
        }
        return Ok(Set { page_size, files });
    }
    Err((last, "its end is missing".to_string()))
}

fn file(value: &Value, most: u64) -> Option<File> {
    let path = match value["path_hex"].as_str() {
        Some(hex) => {
            let digits = hex.as_bytes().chunks(2);
            let bytes = digits.map(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok());
            OsString::from_vec(bytes.collect::<Option<_>>()?).into()
        }
        None => PathBuf::from(value["path"].as_str()?),
    };
    let mut runs: Vec<Run> = Vec::new();
    for range in value["ranges"].as_array()? {
        let run = Run { start: range[0].as_u64()?, pages: range[1].as_u64()?, dirty: None };
        // In order and apart, as they were written.
        if run.start.checked_add(run.pages)? > most
            || run.pages == 0
            || runs.last().is_some_and(|last| last.end() > run.start)
        {
            return None;
        }
        runs.push(run);
    }
    Some(File { path, size: value["size_bytes"].as_u64()?, runs })
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
                let _ = writeln!(out, "{}", crate::foreign::json(&object));
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
        view::aligned(&lines, &names)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const HEAD: &str = r#"{"type":"cachedu-set","version":2,"page_size":4096}"#;

    fn set(lines: &[&str]) -> Result<Set, (usize, String)> {
        let end = format!("{{\"type\":\"end\",\"files\":{}}}", lines.len());
        parse(&[&[HEAD], lines, &[end.as_str()]].concat().join("\n"))
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
        assert!(parse("").is_err() && parse("x\n").is_err() && parse("{}").is_err());
        assert!(parse(&HEAD.replace(":2,", ":3,")).unwrap_err().1.contains("version 3"));
    }

    #[test]
    fn what_was_cut_off_is_not_restored() {
        let file = r#"{"path":"a","size_bytes":1,"ranges":[[0,1]]}"#;
        let end = |n| format!("{{\"type\":\"end\",\"files\":{n}}}");
        assert!(set(&[file, file]).is_ok() && set(&[]).is_ok());
        assert!(parse(&format!("{HEAD}\n{file}\n")).unwrap_err().1.contains("end is missing"));
        assert!(parse(HEAD).is_err());
        assert!(parse(&format!("{HEAD}\n{file}\n{}\n", end(2))).is_err());
        assert!(parse(&format!("{HEAD}\n{file}\n{}\n{file}\n", end(1))).is_err());
    }

    #[test]
    fn a_set_is_replaced_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("set"), dir.path().join("link"));
        replace(&path, b"old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        fs::remove_file(&path).unwrap();
        replace(&link, b"newer").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"newer", "by way of a link that led nowhere");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(replace(&dir.path().join("no/such"), b"x").is_err() && replace(dir.path(), b"x").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left beside them");
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
