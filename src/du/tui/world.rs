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
use crate::du::cli::Args;
use crate::du::exclude::Exclude;
use crate::du::progress;
use crate::du::residency::Ask;
use crate::du::row::Kind;
use crate::du::row::Row;
use crate::du::row::Sink;
use crate::du::run;
use crate::du::walk;
use crate::du::walk::Walk;
use crate::view::text::bytes;

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
}

impl Tree {
    pub(super) fn new(root: PathBuf, args: &Args, exclude: Exclude) -> Self {
        let (ask, one_file_system) = (args.ask(), args.one_file_system);
        Self { root, ask, one_file_system, exclude, directories: HashMap::new() }
    }

    fn walk(&self, root: &Path, files: bool, flat: bool, noisy: bool) -> HashMap<PathBuf, Vec<Row>> {
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
        let walk = Walk::new(&options, &sink, false);
        if let Ok((fd, _)) = run::open_named(root) {
            let _ = progress::during(&walk, noisy, || walk.directory(root, fd));
        }
        drop(walk);
        sink.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks about everything.
    pub(super) fn scan(&mut self, noisy: bool) {
        self.directories = self.walk(&self.root.clone(), false, false, noisy);
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
        let files = self.walk(dir, true, true, false).remove(dir).unwrap_or_default();
        rows.extend(files.into_iter().filter(|r| r.kind == Kind::File));
        Listing { whole: self.whole(dir).cloned(), rows }
    }

    fn evict(&mut self, paths: &[PathBuf]) -> String {
        let mut files = Vec::new();
        for path in paths {
            if path.is_dir() {
                files.extend(self.walk(path, true, false, false).into_values().flatten());
            } else {
                files.push(Row::new(Kind::File, path.clone(), 0, run::file(path, self.ask).0, None));
            }
        }
        files.retain(|r| r.kind == Kind::File && r.totals.cached > 0);
        let ask = self.ask;
        let done: Vec<_> = files.par_iter().map(|r| act::evict(&r.path, false, ask)).collect();
        let refused = done.iter().filter(|d| d.is_err()).count();
        let (before, after) = done.iter().flatten().fold((0, 0), |(b, a), d| (b + d.before, a + d.after));
        let size = |n: u64| bytes(n * rustix::param::page_size() as u64);
        let stay = if after > 0 {
            format!("; {} stay: dirty, mapped or in use", size(after))
        } else {
            String::new()
        };
        let refused = if refused > 0 { format!("; {refused} files refused") } else { String::new() };
        format!("evicted {} of {} files{stay}{refused}", size(before.saturating_sub(after)), done.len())
    }

    fn rescan(&mut self) {
        self.scan(false);
    }
}
