//! What came of acting on files, as text or JSON.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde_json::Map;
use serde_json::json;

use super::Deed;
use crate::du::found::End;
use crate::du::options::Options;
use crate::du::printing::print;
use crate::du::residency::Unknown;
use crate::du::view;
use crate::exit::Failure;
use crate::text::numbers::bytes;
use crate::text::table::fitted;

/// A line for each file, and what came of all of them.
pub(super) struct Report<'a> {
    deed: &'static str,
    options: &'a Options,
    lines: Vec<Vec<String>>,
    names: Vec<String>,
    before: u64,
    after: u64,
    dirty: u64,
    /// Of `after`, what memory is the only place of.
    memory: u64,
    /// Files of which the kernel does not say what is cached: they are in no sum.
    unknown: usize,
    /// Why not, of the last of them.
    unknown_why: Option<Unknown>,
    /// Pages cached of files that nothing had to be done about.
    pub(super) besides: u64,
    /// Pages that would be read, holes and what is cached of a set included.
    pub(super) most: u64,
    json: String,
    /// Why it could not be done: how often, and of which file first. Thousands may be missing for one reason.
    failed: BTreeMap<String, (usize, String)>,
}

impl<'a> Report<'a> {
    pub(super) fn new(deed: &'static str, options: &'a Options) -> Self {
        let title = |s: &str| s.to_string();
        Self {
            deed,
            options,
            lines: vec![vec![title("BEFORE"), title("AFTER")]],
            names: vec![title("NAME")],
            before: 0,
            after: 0,
            dirty: 0,
            memory: 0,
            unknown: 0,
            unknown_why: None,
            besides: 0,
            most: 0,
            json: String::new(),
            failed: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, path: &Path, done: Result<Deed, Unknown>) {
        let done = match done {
            Ok(done) => done,
            Err(why) => {
                self.failed.entry(why.to_string()).or_insert_with(|| (0, view::name(path))).0 += 1;
                return;
            }
        };
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
            self.json += &format!("{}\n", crate::text::foreign::json(&object));
        }
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
        let cell = |n: Option<u64>| n.map_or("-".into(), |n| n.to_string());
        self.lines.push(vec![cell(done.before), cell(after)]);
        self.names.push(view::name(path));
    }

    pub(super) fn print(&self, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
        for (why, (count, first)) in &self.failed {
            let more = if *count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            let _ = writeln!(err, "cachedu: {first}{more}: {why}");
        }
        if self.options.json() {
            print(self.json.as_bytes(), out)?;
        } else {
            let files = self.names.len() - 1;
            let table = if files > 0 { fitted(&self.lines, &self.names) } else { String::new() };
            print(format!("{table}{}\n", self.sum(files)).as_bytes(), out)?;
        }
        Ok(if self.failed.is_empty() { End::Done } else { End::Partly })
    }

    /// The last line.
    fn sum(&self, files: usize) -> String {
        let page = rustix::param::page_size() as u64;
        // Where nothing is known of any file, there is no figure.
        let none = files > 0 && self.unknown == files;
        let size = |n: u64| if none { "-".to_owned() } else { bytes(n * page) };
        let there = size(self.before + self.besides);
        let mut text = match (self.deed, self.options.dry_run) {
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
        if self.deed == "evict" {
            if self.memory > 0 {
                text += &format!("; {} stay: tmpfs has no other place for them", size(self.memory));
            }
            let stay = self.after - self.memory;
            if !self.options.dry_run && stay > 0 {
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

    fn sum(dry_run: bool, deed: &'static str, deeds: &[(Option<u64>, Option<u64>, bool)]) -> String {
        let options = Options { dry_run, ..Options::default() };
        let mut report = Report::new(deed, &options);
        for &(before, after, memory) in deeds {
            let why = before.is_none().then_some(Unknown::NotPermitted);
            let deed = Deed { before, after, dirty: Some(0), memory, why };
            report.add(Path::new("f"), Ok(deed));
        }
        let mut out = Vec::new();
        assert_eq!(report.print(&mut out, &mut Vec::new()).ok().unwrap(), End::Done);
        String::from_utf8(out).unwrap().lines().last().unwrap().to_owned()
    }

    #[test]
    fn what_is_not_told_is_no_figure() {
        let (all, none) = ((Some(0), Some(256), false), (None, None, false));
        assert_eq!(sum(false, "load", &[all]), "read: 1.0M; 0 were there");
        let text = sum(false, "load", &[none]);
        assert!(text.starts_with("read: -; - were there; 1 of 1 files not told: no write access"), "{text}");
        let text = sum(false, "load", &[all, none]);
        assert!(text.starts_with("read: 1.0M; 0 were there; 1 of 2 files not told"), "{text}");
        assert!(sum(false, "evict", &[none]).starts_with("evicted: - of -; 1 of 1 files"));
    }

    #[test]
    fn a_reason_is_told_once() {
        let options = Options::default();
        let mut report = Report::new("restore", &options);
        for n in 0..100_000 {
            let why = if n == 5 { Unknown::Replaced } else { Unknown::Vanished };
            report.add(Path::new(&format!("f{n}\x1b[2J")), Err(why));
        }
        let (mut out, mut err) = (Vec::new(), Vec::new());
        assert_eq!(report.print(&mut out, &mut err).ok().unwrap(), End::Partly);
        let err = String::from_utf8(err).unwrap();
        let lines: Vec<_> = err.lines().collect();
        assert!(lines.len() == 2 && !err.contains('\x1b'), "{err}");
        assert!(lines[0].starts_with("cachedu: f5") && lines[0].contains(": another file"), "{err}");
        assert!(lines[1].contains("and 99998 more: no such file"), "{err}");
    }

    #[test]
    fn memory_is_named_as_the_reason_where_it_is() {
        let (memory, mapped) = ((Some(10), Some(10), true), (Some(5), Some(1), false));
        let text = sum(false, "evict", &[memory]);
        assert_eq!(text, "evicted: 0 of 40.0K; 40.0K stay: tmpfs has no other place for them");
        let text = sum(false, "evict", &[memory, mapped]);
        assert!(text.contains("; 40.0K stay: tmpfs") && text.contains("; 4.0K stay: mapped"), "{text}");
        let text = sum(true, "evict", &[memory, mapped]);
        assert!(text.starts_with("would be evicted: up to 20.0K of 2 files; 40.0K stay: tmpfs"), "{text}");
    }
}
