//! What came of acting on files, as text or JSON.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use serde_json::Map;
use serde_json::json;

use super::Deed;
use super::Doer;
use crate::du::found::End;
use crate::du::options::Options;
use crate::du::printing::print;
use crate::du::residency::Unknown;
use crate::du::stream::Lines;
use crate::du::view;
use crate::exit::Failure;
use crate::text::numbers::bytes;

/// A line for each file as it is done, and what came of all of them.
pub(super) struct Report<'a> {
    deed: &'static str,
    options: &'a Options,
    sums: Mutex<Sums>,
}

#[derive(Default)]
struct Sums {
    /// Files that were done.
    files: usize,
    before: u64,
    after: u64,
    dirty: u64,
    /// Of `after`, what memory is the only place of.
    memory: u64,
    /// At least so many of the pages that were brought in are gone again.
    gone: u64,
    /// Files of which the kernel does not say what is cached: they are in no sum.
    unknown: usize,
    /// Why not, of the last of them.
    unknown_why: Option<Unknown>,
    /// Pages cached of files that nothing had to be done about.
    besides: u64,
    /// Pages that would be read, holes and what is cached of a set included.
    most: u64,
    /// Why it could not be done: how often, and of which file first. Thousands may be missing for one reason.
    failed: BTreeMap<String, (usize, String)>,
}

/// The columns of text.
fn line(before: &str, after: &str, name: &str) -> Vec<u8> {
    format!("{before:>9} {after:>9} {name}\n").into_bytes()
}

impl<'a> Report<'a> {
    pub(super) fn new(deed: &'static str, options: &'a Options) -> Self {
        Self { deed, options, sums: Mutex::default() }
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether files have rows of text.
    fn rows(&self) -> bool {
        self.options.verbose && !self.options.json()
    }

    /// What stands above the lines of files.
    pub(super) fn head(&self) -> Vec<u8> {
        if self.rows() && !self.options.no_header { line("BEFORE", "AFTER", "NAME") } else { Vec::new() }
    }

    /// What came of one file.
    pub(super) fn add(&self, path: &Path, done: Result<Deed, Unknown>, lines: &Lines<'_>) {
        let done = match done {
            Ok(done) => done,
            Err(why) => {
                self.sums().failed.entry(why.to_string()).or_insert_with(|| (0, view::name(path))).0 += 1;
                return;
            }
        };
        self.sums().add(&done);
        let after = done.after.filter(|_| !self.options.dry_run);
        if self.options.json() {
            let mut object = Map::new();
            object.insert("type".into(), self.deed.into());
            view::put_path(&mut object, path);
            object.insert("before".into(), json!(done.before));
            object.insert("after".into(), json!(after));
            object.insert("dirty".into(), json!(done.dirty));
            if let (None, Some(why)) = (done.before, done.why) {
                object.insert("reason".into(), why.id().into());
            }
            object.insert("dry_run".into(), self.options.dry_run.into());
            lines.send(format!("{}\n", crate::text::foreign::json(&object)).into_bytes());
        } else if self.rows() {
            let cell = |n: Option<u64>| n.map_or("-".into(), |n| n.to_string());
            lines.send(line(&cell(done.before), &cell(after), &view::name(path)));
        }
    }

    /// What is missing of one file that was loaded, now that all of them have been.
    pub(super) fn gone(&self, path: &Path, cached: u64, gone: u64, lines: &Lines<'_>) {
        self.sums().gone += gone;
        if self.options.json() {
            let mut object = Map::new();
            object.insert("type".into(), "gone".into());
            view::put_path(&mut object, path);
            object.insert("cached".into(), cached.into());
            object.insert("gone_at_least".into(), gone.into());
            lines.send(format!("{}\n", crate::text::foreign::json(&object)).into_bytes());
        } else if self.rows() {
            lines.send(line("gone", &cached.to_string(), &view::name(path)));
        }
    }

    /// What was found: pages cached of all of it, and what was done of it.
    pub(super) fn looked(&self, cached: u64, doer: &Doer<'_>) {
        let mut sums = self.sums();
        sums.besides = cached.saturating_sub(doer.cached());
        sums.most = doer.missing();
    }

    /// Pages of a set.
    pub(super) fn most(&self, pages: u64) {
        self.sums().most = pages;
    }

    /// What came of all files, for machines.
    pub(super) fn last(&self, lines: &Lines<'_>) {
        if !self.options.json() {
            return;
        }
        let sums = self.sums();
        let known = |n: u64| json!((sums.files == 0 || sums.unknown < sums.files).then_some(n));
        let mut object = Map::new();
        for (key, value) in [
            ("type", json!("summary")),
            ("deed", json!(self.deed)),
            ("files", json!(sums.files)),
            ("unknown_files", json!(sums.unknown)),
            ("failed_files", json!(sums.failed.values().map(|(n, _)| n).sum::<usize>())),
            ("before", known(sums.before)),
            ("after", if self.options.dry_run { json!(null) } else { known(sums.after) }),
            ("dry_run", json!(self.options.dry_run)),
        ] {
            object.insert(key.into(), value);
        }
        if self.deed != "evict" && !self.options.dry_run {
            object.insert("gone_at_least".into(), json!(sums.gone));
        }
        let line = format!("{}\n", crate::text::foreign::json(&object));
        drop(sums);
        lines.send(line.into_bytes());
    }

    /// Says what could not be done, and what came of all of it.
    pub(super) fn print(&self, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
        let sums = self.sums();
        for (why, (count, first)) in &sums.failed {
            let more = if *count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            let _ = writeln!(err, "cachedu: {first}{more}: {why}");
        }
        if !self.options.json() {
            print(format!("{}\n", sums.text(self.deed, self.options.dry_run)).as_bytes(), out)?;
        }
        Ok(if sums.failed.is_empty() && sums.gone == 0 { End::Done } else { End::Partly })
    }
}

impl Sums {
    fn add(&mut self, done: &Deed) {
        self.files += 1;
        match (done.before, done.after) {
            (Some(before), Some(after)) => {
                self.before += before;
                self.after += after;
                self.dirty += done.dirty.unwrap_or(0);
                self.memory += if done.memory { after } else { 0 };
            }
            _ => {
                self.unknown += 1;
                self.unknown_why = done.why.or(self.unknown_why);
            }
        }
    }

    /// The last line.
    fn text(&self, deed: &str, dry_run: bool) -> String {
        let files = self.files;
        let page = rustix::param::page_size() as u64;
        // Where nothing is known of any file, there is no figure.
        let none = files > 0 && self.unknown == files;
        let size = |n: u64| if none { "-".to_owned() } else { bytes(n * page) };
        let there = size(self.before + self.besides);
        let mut text = match (deed, dry_run) {
            ("evict", true) => {
                let most = size(self.before.saturating_sub(self.memory));
                format!("would be evicted: up to {most} of {files} files")
            }
            ("evict", false) => {
                format!("evicted: {} of {}", size(self.before.saturating_sub(self.after)), size(self.before))
            }
            (what, true) => {
                let most = bytes(self.most.saturating_mul(page));
                format!("would be read ({what}): up to {most} of {files} files; {there} are there")
            }
            (_, false) => {
                format!("read: {}; {there} were there", size(self.after.saturating_sub(self.before)))
            }
        };
        if self.gone > 0 {
            text += &format!(
                "; at least {} of these files are gone again, as where memory or a cgroup's limit holds no more",
                size(self.gone)
            );
        }
        if deed == "evict" {
            if self.memory > 0 {
                text += &format!("; {} stay: tmpfs has no other place for them", size(self.memory));
            }
            let stay = self.after - self.memory;
            if !dry_run && stay > 0 {
                let why = if stay <= self.dirty {
                    "of dirty pages stay: being written now, try again, or --flush"
                } else {
                    "stay: mapped, locked, dirty or used meanwhile"
                };
                text += &format!("; {} {why}", size(stay));
            }
        }
        if self.unknown > 0 {
            let why = self.unknown_why.unwrap_or(Unknown::NotPermitted);
            text += &format!("; {} of {files} files not told: {why}", self.unknown);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::du::stream;

    /// What is printed of such files.
    fn printed(
        options: &Options,
        deed: &'static str,
        work: impl FnOnce(&Report<'_>, &Lines<'_>) + Send,
    ) -> (String, String, End) {
        let report = Report::new(deed, options);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        stream::pump(report.head(), &mut out, |lines| {
            work(&report, lines);
            report.last(lines);
            Ok(())
        })
        .ok()
        .unwrap();
        let end = report.print(&mut out, &mut err).ok().unwrap();
        (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap(), end)
    }

    fn deed(before: Option<u64>, after: Option<u64>, memory: bool) -> Deed {
        let why = before.is_none().then_some(Unknown::NotPermitted);
        Deed { before, after, dirty: Some(0), memory, why, wanted: 0 }
    }

    fn sum(dry_run: bool, name: &'static str, deeds: &[(Option<u64>, Option<u64>, bool)]) -> String {
        let options = Options { dry_run, ..Options::default() };
        let (out, _, end) = printed(&options, name, |report, lines| {
            for &(before, after, memory) in deeds {
                report.add(Path::new("f"), Ok(deed(before, after, memory)), lines);
            }
        });
        assert_eq!((out.lines().count(), end), (1, End::Done), "{out}");
        out
    }

    #[test]
    fn what_is_not_told_is_no_figure() {
        let (all, none) = ((Some(0), Some(256), false), (None, None, false));
        assert_eq!(sum(false, "load", &[all]), "read: 1.0M; 0 were there\n");
        let text = sum(false, "load", &[none]);
        assert!(text.starts_with("read: -; - were there; 1 of 1 files not told: no write access"), "{text}");
        let text = sum(false, "load", &[all, none]);
        assert!(text.starts_with("read: 1.0M; 0 were there; 1 of 2 files not told"), "{text}");
        assert!(sum(false, "evict", &[none]).starts_with("evicted: - of -; 1 of 1 files"));
    }

    #[test]
    fn what_is_gone_again_is_told() {
        let options = Options { verbose: true, ..Options::default() };
        let (out, _, end) = printed(&options, "load", |report, lines| {
            report.add(Path::new("f"), Ok(deed(Some(0), Some(512), false)), lines);
            report.gone(Path::new("f"), 256, 256, lines);
        });
        assert_eq!(end, End::Partly);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(
            lines[..3],
            ["   BEFORE     AFTER NAME", "        0       512 f", "     gone       256 f"]
        );
        assert!(
            lines[3].starts_with("read: 2.0M; 0 were there; at least 1.0M of these files are gone"),
            "{out}"
        );
    }

    #[test]
    fn machines_have_rows_and_a_summary() {
        let options = Options { format: crate::options::Format::Json, ..Options::default() };
        let (out, _, _) = printed(&options, "load", |report, lines| {
            report.add(Path::new("a\n"), Ok(deed(Some(0), Some(512), false)), lines);
            report.add(Path::new("b"), Ok(deed(None, None, false)), lines);
            report.add(Path::new("c"), Err(Unknown::Replaced), lines);
            report.gone(Path::new("a\n"), 500, 12, lines);
        });
        let rows: Vec<serde_json::Value> =
            out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let types: Vec<&str> = rows.iter().map(|row| row["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["load", "load", "gone", "summary"]);
        let last = &rows[3];
        assert_eq!(
            (&last["files"], &last["unknown_files"], &last["failed_files"]),
            (&json!(2), &json!(1), &json!(1))
        );
        assert_eq!((&last["after"], &last["gone_at_least"]), (&json!(512), &json!(12)));
        assert_eq!(rows[1]["reason"], "no_write_access");
    }

    #[test]
    fn a_reason_is_told_once() {
        let options = Options::default();
        let (_, err, end) = printed(&options, "restore", |report, lines| {
            for n in 0..100_000 {
                let why = if n == 5 { Unknown::Replaced } else { Unknown::Vanished };
                report.add(Path::new(&format!("f{n}\x1b[2J")), Err(why), lines);
            }
        });
        assert_eq!(end, End::Partly);
        let lines: Vec<_> = err.lines().collect();
        assert!(lines.len() == 2 && !err.contains('\x1b'), "{err}");
        assert!(lines[0].starts_with("cachedu: f5") && lines[0].contains(": another file"), "{err}");
        assert!(lines[1].contains("and 99998 more: no such file"), "{err}");
    }

    #[test]
    fn memory_is_named_as_the_reason_where_it_is() {
        let (memory, mapped) = ((Some(10), Some(10), true), (Some(5), Some(1), false));
        let text = sum(false, "evict", &[memory]);
        assert_eq!(text, "evicted: 0 of 40.0K; 40.0K stay: tmpfs has no other place for them\n");
        let text = sum(false, "evict", &[memory, mapped]);
        assert!(text.contains("; 40.0K stay: tmpfs") && text.contains("; 4.0K stay: mapped"), "{text}");
        let text = sum(true, "evict", &[memory, mapped]);
        assert!(text.starts_with("would be evicted: up to 20.0K of 2 files; 40.0K stay: tmpfs"), "{text}");
    }
}
