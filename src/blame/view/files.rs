//! Of which files pages were pushed out, and who brought them in again: as text and as JSON.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::json;

use super::super::Came;
use super::super::Evictor;
use super::super::FileShare;
use super::super::Reader;
use super::Shown;
use super::page_size;
use super::volume;
use crate::text::foreign::Foreign;

impl Shown<'_> {
    /// The path of a file, and what it is without one.
    fn path(&mut self, file: u64) -> Option<Foreign> {
        let file = self.bill.details.files.get(&file)?;
        self.names.mounts(file.block.unwrap_or(file.dev)).path(file).map(Foreign::from)
    }

    fn called(&mut self, file: Option<u64>) -> String {
        let Some(number) = file else { return "(other files)".into() };
        if let Some(path) = self.path(number) {
            return path.to_string();
        }
        let known = self.bill.details.files.get(&number);
        known.map_or_else(|| "-".into(), |f| format!("inode {} of {}", f.inode, f.dev))
    }

    fn reader(&mut self, reader: Option<&Reader>) -> String {
        let Some(reader) = reader else { return "(others)".into() };
        format!("{} ({})", self.group(reader.by), Foreign::from(&*reader.process))
    }

    /// Seconds, for a table.
    pub(super) fn seconds_of(&self, ns: u64) -> String {
        self.waited(ns).map_or_else(|| "-".into(), |s| format!("{s:.3}s"))
    }

    /// Two tables: of which files, and who brought them in again.
    pub(super) fn files(&mut self) -> String {
        let all = self.bill.details.by_evictor(&self.bill.rows);
        let mut files: Vec<(&Evictor, &FileShare)> = Vec::new();
        for (who, of) in &all {
            files.extend(of.iter().map(|f| (*who, f)));
        }
        files.sort_by_key(|(_, f)| std::cmp::Reverse((f.out, f.came.back)));
        let mut out = String::new();
        if files.is_empty() {
            return out;
        }
        let known = |comes: bool, n: u64| if comes { volume(n) } else { "-".into() };
        let _ = writeln!(out, "\n{:>8} {:>8}  FILE <- HOW, BY WHOM", "OUT", "BACK");
        for (who, file) in files.iter().take(self.top) {
            let by = self.by_whom(who);
            let (left, back, name) =
                (volume(file.out), known(self.comes, file.came.back), self.called(file.file));
            let _ = writeln!(out, "{left:>8} {back:>8}  {name} <- {by}");
        }
        let rest = files.iter().skip(self.top).map(|(_, f)| (f.out, f.came.back));
        self.more(files.len(), rest, &mut out);
        let mut readers: Vec<(&Evictor, Option<u64>, Option<&Reader>, Came)> = Vec::new();
        for (who, file) in all.iter().flat_map(|(who, of)| of.iter().map(move |f| (*who, f))) {
            readers.extend(file.readers.iter().map(|(r, n)| (who, file.file, r.as_ref(), *n)));
        }
        readers.sort_by_key(|(.., n)| std::cmp::Reverse((n.waited_ns, n.back, n.refaulted)));
        if readers.is_empty() {
            return out;
        }
        let _ = writeln!(
            out,
            "\n{:>8} {:>8} {:>8}  READ AGAIN BY: FILE <- HOW, BY WHOM",
            "BACK", "REFAULTS", "WAITED"
        );
        for (who, file, reader, n) in readers.iter().take(self.top) {
            let (back, refaults) = (known(self.comes, n.back), known(self.refaults, n.refaulted));
            let (waited, by) = (self.seconds_of(n.waited_ns), self.by_whom(who));
            let (reader, name) = (self.reader(*reader), self.called(*file));
            let _ = writeln!(out, "{back:>8} {refaults:>8} {waited:>8}  {reader}: {name} <- {by}");
        }
        if readers.len() > self.top {
            let rest = readers.iter().skip(self.top);
            let (mut back, mut refaults, mut waited) = (0, 0, 0);
            for (.., n) in rest {
                (back, refaults, waited) = (back + n.back, refaults + n.refaulted, waited + n.waited_ns);
            }
            let (back, refaults) = (known(self.comes, back), known(self.refaults, refaults));
            let waited = self.seconds_of(waited);
            let more = readers.len() - self.top;
            let s = if more == 1 { "" } else { "s" };
            let _ = writeln!(out, "{back:>8} {refaults:>8} {waited:>8}  in {more} more row{s} (--json)");
        }
        out
    }

    fn more(&self, rows: usize, rest: impl Iterator<Item = (u64, u64)>, out: &mut String) {
        let Some(more) = rows.checked_sub(self.top).filter(|more| *more > 0) else { return };
        let s = if more == 1 { "" } else { "s" };
        let (left, back) = rest.fold((0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1));
        let back = if self.comes { volume(back) } else { "-".into() };
        let _ = writeln!(out, "{:>8} {back:>8}  in {more} more row{s} (--json)", volume(left));
    }

    fn by_whom(&mut self, who: &Evictor) -> String {
        let by = match &who.who {
            None => "(no room for a row)".into(),
            Some(row) if row.by == 0 && row.process.is_empty() => return who.how.name().into(),
            Some(row) => format!("{} ({})", self.group(row.by), Foreign::from(&*row.process)),
        };
        format!("{}, {by}", who.how.name())
    }

    fn came_json(&self, n: &Came, to: &mut serde_json::Map<String, Value>) {
        let bytes = |pages: Option<u64>| pages.map(|n| n * page_size());
        let (back, refaulted) = (self.comes.then_some(n.back), self.refaults.then_some(n.refaulted));
        to.insert("back_pages".into(), json!(back));
        to.insert("back_bytes".into(), json!(bytes(back)));
        to.insert("refaulted_pages".into(), json!(refaulted));
        to.insert("refaulted_bytes".into(), json!(bytes(refaulted)));
        to.insert("waits".into(), json!(self.waits.then_some(n.waits)));
        to.insert("waited_s".into(), json!(self.waited(n.waited_ns)));
    }

    /// A file as an object, with those who brought it in again.
    pub(super) fn file_json(&mut self, file: &FileShare) -> Value {
        let mut out = serde_json::Map::new();
        let path = file.file.and_then(|number| self.path(number));
        let known = file.file.and_then(|number| self.bill.details.files.get(&number));
        out.insert("path".into(), json!(path));
        out.insert("device".into(), json!(known.map(|f| f.dev.to_string())));
        out.insert("inode".into(), json!(known.map(|f| f.inode)));
        out.insert("other".into(), json!(file.file.is_none()));
        out.insert("out_pages".into(), json!(file.out));
        out.insert("out_bytes".into(), json!(file.out * page_size()));
        self.came_json(&file.came, &mut out);
        let mut readers = Vec::new();
        for (reader, n) in &file.readers {
            let mut row = serde_json::Map::new();
            let group = reader.as_ref().and_then(|r| self.cgroup(r.by));
            row.insert("cgroup".into(), json!(group));
            row.insert("process".into(), json!(reader.as_ref().map(|r| Foreign::from(&*r.process))));
            row.insert("other".into(), json!(reader.is_none()));
            self.came_json(n, &mut row);
            readers.push(Value::Object(row));
        }
        out.insert("readers".into(), Value::Array(readers));
        Value::Object(out)
    }
}
