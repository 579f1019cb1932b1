//! The tree on the disk: directories from one walk, files of a directory when it is shown.

use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;

use rayon::prelude::*;

use super::state::Listing;
use super::state::World;
use crate::du::act;
use crate::du::exclude::Exclude;
use crate::du::layers::Layers;
use crate::du::opening;
use crate::du::options::Options;
use crate::du::progress;
use crate::du::residency::Ask;
use crate::du::row::Kind;
use crate::du::row::Row;
use crate::du::row::Sink;
use crate::du::walk;
use crate::du::walk::Walk;
use crate::text::numbers::bytes;

/// Rows by the directory that they are in.
#[derive(Debug, Default)]
struct ByDirectory(Mutex<HashMap<PathBuf, Vec<Row>>>);

impl Sink for ByDirectory {
    fn take(&self, row: Row) {
        let above = row.path.parent().unwrap_or(Path::new("")).to_path_buf();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(above).or_default().push(row);
    }
}

/// What was found below a directory.
pub(super) struct Tree {
    root: PathBuf,
    ask: Ask,
    one_file_system: bool,
    exclude: Exclude,
    directories: HashMap<PathBuf, Vec<Row>>,
    /// What could not be read of all of it.
    problem: Option<String>,
}

/// Rows by the directory that they are in, and what could not be read.
type Walked = (HashMap<PathBuf, Vec<Row>>, Option<String>);

impl Tree {
    pub(super) fn new(root: PathBuf, options: &Options, exclude: Exclude) -> Self {
        let (ask, one_file_system) = (options.ask(), options.one_file_system);
        Self { root, ask, one_file_system, exclude, directories: HashMap::new(), problem: None }
    }

    fn walk(&self, root: &Path, files: bool, flat: bool, noisy: bool) -> Walked {
        let options = walk::Options {
            ask: self.ask,
            depth: usize::MAX,
            files,
            directories: true,
            flat,
            one_file_system: self.one_file_system,
            exclude: self.exclude.clone(),
        };
        let sink = ByDirectory::default();
        let walk = Walk::new(&options, &sink, false, Layers::here(&[root.to_owned()]));
        let problem = match opening::open_named(root) {
            Ok((fd, _)) => {
                let _ = progress::during(noisy, || walk.progress(), || walk.directory(root, fd));
                walk.problems.first_unread()
            }
            Err(why) => Some(format!("cannot be read: {why}")),
        };
        drop(walk);
        (sink.0.into_inner().unwrap_or_else(PoisonError::into_inner), problem)
    }

    /// Asks about everything.
    pub(super) fn scan(&mut self, noisy: bool) {
        (self.directories, self.problem) = self.walk(&self.root.clone(), false, false, noisy);
    }

    fn whole(&self, dir: &Path) -> Option<&Row> {
        let above = dir.parent().unwrap_or(Path::new(""));
        self.directories.get(above)?.iter().find(|r| r.path == dir)
    }
}

impl World for Tree {
    fn list(&mut self, dir: &Path) -> Listing {
        let mut rows = self.directories.get(dir).cloned().unwrap_or_default();
        // The root of everything is its own parent's row.
        rows.retain(|r| r.path != dir);
        let (mut walked, mut problem) = self.walk(dir, true, true, false);
        let files = walked.remove(dir).unwrap_or_default();
        // What is not read further below is reported where everything is summed up.
        if dir == self.root {
            problem = problem.or_else(|| self.problem.clone());
        }
        rows.extend(files.into_iter().filter(|r| r.kind == Kind::File));
        Listing { whole: self.whole(dir).cloned(), rows, problem }
    }

    fn evict(&mut self, paths: &[PathBuf]) -> String {
        let mut files = Vec::new();
        let mut unread = String::new();
        for path in paths {
            if opening::look(path).is_some_and(|(_, kind)| kind.is_dir()) {
                let (walked, problem) = self.walk(path, true, false, false);
                files.extend(walked.into_values().flatten());
                unread = problem.map_or(unread, |problem| format!("; {problem}"));
            } else {
                let (totals, why) = opening::file(path, self.ask);
                files.push(Row::new(Kind::File, path.clone(), 0, totals, why));
            }
        }
        files.retain(|r| r.kind == Kind::File);
        let unknown = files.iter().filter(|r| r.why.is_some()).count();
        files.retain(|r| r.totals.cached > 0);
        let ask = self.ask;
        let done: Vec<_> = files.par_iter().map(|r| act::evict(&r.open()?.0, false, ask)).collect();
        let refused = unknown + done.iter().filter(|d| d.is_err()).count();
        let sum = |of: fn(&act::Deed) -> Option<u64>| done.iter().flatten().filter_map(of).sum::<u64>();
        let (before, after) = (sum(|d| d.before), sum(|d| d.after));
        let memory = sum(|d| d.after.filter(|_| d.memory));
        let size = |n: u64| bytes(n * rustix::param::page_size() as u64);
        let mut stay = String::new();
        for (pages, why) in
            [(memory, "tmpfs has no other place"), (after - memory, "dirty, mapped or in use")]
        {
            if pages > 0 {
                stay += &format!("; {} stay: {why}", size(pages));
            }
        }
        let refused = if refused > 0 { format!("; not done: {refused}") } else { String::new() };
        format!("evicted {} of {} files{stay}{refused}", size(before.saturating_sub(after)), done.len())
            + &unread
    }

    fn rescan(&mut self) {
        self.scan(false);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_refused_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let mut tree = Tree::new(dir.path().to_path_buf(), &Options::default(), Exclude::default());
        tree.scan(false);
        assert_eq!(tree.list(dir.path()).problem, None);
        let gone = dir.path().join("gone");
        assert_eq!(tree.list(&gone).problem.as_deref(), Some("cannot be read: no such file"));
        assert_eq!(tree.evict(&[gone]), "evicted 0 of 0 files; not done: 1");
    }
}
