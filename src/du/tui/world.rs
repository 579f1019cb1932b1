//! The tree on the disk: directories from one walk, files of a directory when it is shown.

use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use super::state::Deed;
use super::state::Job;
use super::state::Listing;
use super::state::Outcome;
use super::state::Walked;
use super::state::World;
use crate::du::act;
use crate::du::act::Doer;
use crate::du::exclude::Exclude;
use crate::du::layers::Layers;
use crate::du::links::Inodes;
use crate::du::map::FileMap;
use crate::du::opening;
use crate::du::opening::Aim;
use crate::du::options::Options;
use crate::du::options::Task;
use crate::du::progress;
use crate::du::residency::Unknown;
use crate::du::row::Kind;
use crate::du::row::Row;
use crate::du::row::Sink;
use crate::du::view;
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

/// What a walk hands on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Every directory, and no files.
    Directories,
    /// Every directory and every file.
    Files,
    /// What is in one directory, and nothing below that.
    OneDirectory,
}

/// How files are asked about and acted on, by whatever thread.
pub(super) struct Disk {
    root: PathBuf,
    options: Options,
    exclude: Exclude,
    /// How far a job has come; empty at first.
    progress: Mutex<String>,
}

impl Disk {
    pub(super) fn new(root: PathBuf, options: &Options, exclude: Exclude) -> Self {
        // Everything is acted on, whatever is shown.
        let options = Options { min: None, dry_run: false, ..options.clone() };
        Self { root, options, exclude, progress: Mutex::default() }
    }

    /// How far the job has come.
    pub(super) fn progress(&self) -> String {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn say(&self, text: String) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn walk(&self, root: &Path, reach: Reach) -> Walked {
        let sink = ByDirectory::default();
        let problem = self.walk_to(&sink, root, reach, |walk| walk.progress());
        (sink.0.into_inner().unwrap_or_else(PoisonError::into_inner), problem)
    }

    /// Hands on what is found; what could not be read.
    fn walk_to(
        &self,
        sink: &dyn Sink,
        root: &Path,
        reach: Reach,
        progress: impl Fn(&Walk<'_>) -> String + Sync,
    ) -> Option<String> {
        let options = walk::Options {
            ask: self.options.ask(),
            depth: usize::MAX,
            files: reach != Reach::Directories,
            directories: true,
            flat: reach == Reach::OneDirectory,
            one_file_system: self.options.one_file_system,
            exclude: self.exclude.clone(),
        };
        let walk = Walk::new(&options, sink, false, Layers::here(&[root.to_owned()]), Inodes::default());
        match opening::open_named(root, Aim::Look) {
            Ok((fd, _)) if reach == Reach::OneDirectory => {
                let _ = walk.directory(root, fd);
                walk.problems.first_unread()
            }
            Ok((fd, _)) => {
                let _ = progress::meanwhile(|| self.say(progress(&walk)), || walk.directory(root, fd));
                walk.problems.first_unread()
            }
            Err(why) => Some(format!("cannot be read: {why}")),
        }
    }

    /// Does a job, to its end.
    pub(super) fn run(&self, job: &Job) -> Outcome {
        self.say(String::new());
        match job {
            Job::Scan => Outcome::Scanned(self.scan()),
            Job::Act(deed, paths) => {
                let message = self.act(*deed, paths);
                Outcome::Acted(message, self.scan())
            }
            Job::Map(path) => Outcome::Mapped(self.map(path)),
        }
    }

    /// Asks about everything.
    fn scan(&self) -> Walked {
        self.walk(&self.root, Reach::Directories)
    }

    fn map(&self, path: &Path) -> String {
        let map = opening::open_named(path, Aim::Look)
            .and_then(|(fd, _)| FileMap::new(path, fd, self.options.ask()));
        map.map_or_else(|why| format!("{}: {why}", view::name(path)), |map| map.text())
    }

    fn act(&self, deed: Deed, paths: &[PathBuf]) -> String {
        let task = match deed {
            Deed::Load => Task::Load,
            Deed::Evict | Deed::Flush => Task::Evict { flush: deed == Deed::Flush },
        };
        let options = Options { task, ..self.options.clone() };
        let sums = Mutex::new(Sums::default());
        let tell = |_: &Row, done: Result<act::Deed, Unknown>| {
            sums.lock().unwrap_or_else(PoisonError::into_inner).add(done.ok());
        };
        let doer = Doer::alone(&options, &tell);
        let so_far = |walk: &Walk<'_>| match doer.progress() {
            Some(done) => format!("{}; {done}", walk.progress()),
            None => walk.progress(),
        };
        let (mut unread, mut gone) = (String::new(), 0);
        for path in paths {
            if opening::look(path).is_some_and(|(_, kind)| kind.is_dir()) {
                let problem = self.walk_to(&doer, path, Reach::Files, so_far);
                unread = problem.map_or(unread, |problem| format!("; {problem}"));
            } else {
                let (totals, why) = opening::file(path, self.options.ask());
                if why == Some(Unknown::Vanished) {
                    gone += 1;
                }
                doer.take(Row::new(Kind::File, path.clone(), 0, totals, why));
            }
        }
        let sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.told(deed, doer.refused() + gone) + &unread
    }
}

/// What came of files, in pages.
#[derive(Default)]
struct Sums {
    files: u64,
    refused: u64,
    before: u64,
    after: u64,
    memory: u64,
    gone: u64,
}

impl Sums {
    fn add(&mut self, done: Option<act::Deed>) {
        self.files += 1;
        let Some(done) = done else {
            self.refused += 1;
            return;
        };
        self.before += done.before.unwrap_or(0);
        self.after += done.after.unwrap_or(0);
        self.memory += done.after.filter(|_| done.memory).unwrap_or(0);
        self.gone += done.gone().unwrap_or(0);
    }

    fn told(&self, deed: Deed, beyond: u64) -> String {
        let size = |n: u64| bytes(n * rustix::param::page_size() as u64);
        let refused = beyond + self.refused;
        let refused = if refused > 0 { format!("; not done: {refused}") } else { String::new() };
        let (before, after, files) = (self.before, self.after, self.files);
        let mut but = String::new();
        if deed == Deed::Load {
            if self.gone > 0 {
                but = format!("; {} or more are gone again", size(self.gone));
            }
            return format!("read {} of {files} files{but}{refused}", size(after.saturating_sub(before)));
        }
        let stay =
            [(self.memory, "tmpfs has no other place"), (after - self.memory, "dirty, mapped or in use")];
        for (pages, why) in stay {
            if pages > 0 {
                but += &format!("; {} stay: {why}", size(pages));
            }
        }
        format!("evicted {} of {files} files{but}{refused}", size(before.saturating_sub(after)))
    }
}

/// What was found below a directory.
pub(super) struct Tree {
    disk: Arc<Disk>,
    directories: HashMap<PathBuf, Vec<Row>>,
    /// Whether files are there as well: those of a scan that was saved.
    saved: bool,
    /// What could not be read of all of it.
    problem: Option<String>,
    /// Where what came of a job is handed to.
    tell: Arc<dyn Fn(Outcome) + Send + Sync>,
}

impl Tree {
    pub(super) fn new(
        disk: Arc<Disk>,
        tell: Arc<dyn Fn(Outcome) + Send + Sync>,
        saved: Option<HashMap<PathBuf, Vec<Row>>>,
    ) -> Self {
        Self { disk, saved: saved.is_some(), directories: saved.unwrap_or_default(), problem: None, tell }
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
        if self.saved {
            return Listing { whole: self.whole(dir).cloned(), rows, problem: None };
        }
        let (mut walked, mut problem) = self.disk.walk(dir, Reach::OneDirectory);
        let files = walked.remove(dir).unwrap_or_default();
        // What is not read further below is reported where everything is summed up.
        if dir == self.disk.root {
            problem = problem.or_else(|| self.problem.clone());
        }
        rows.extend(files.into_iter().filter(|r| r.kind == Kind::File));
        Listing { whole: self.whole(dir).cloned(), rows, problem }
    }

    fn begin(&mut self, job: Job) {
        let (disk, tell) = (Arc::clone(&self.disk), Arc::clone(&self.tell));
        let ours = (Arc::clone(&disk), Arc::clone(&tell), job.clone());
        let done = std::thread::Builder::new().spawn(move || tell(disk.run(&job)));
        // Where no more threads may be started, keys wait for it.
        if done.is_err() {
            let (disk, tell, job) = ours;
            tell(disk.run(&job));
        }
    }

    fn scanned(&mut self, (directories, problem): Walked) {
        (self.directories, self.problem) = (directories, problem);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn tree(root: &Path) -> Tree {
        let disk = Disk::new(root.to_path_buf(), &Options::default(), Exclude::default());
        let mut tree = Tree::new(Arc::new(disk), Arc::new(|_| {}), None);
        let walked = tree.disk.scan();
        tree.scanned(walked);
        tree
    }

    #[test]
    fn what_is_refused_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let mut tree = tree(dir.path());
        assert_eq!(tree.list(dir.path()).problem, None);
        let gone = dir.path().join("gone");
        assert_eq!(tree.list(&gone).problem.as_deref(), Some("cannot be read: no such file"));
        assert_eq!(
            tree.disk.act(Deed::Evict, std::slice::from_ref(&gone)),
            "evicted 0 of 0 files; not done: 1"
        );
        assert!(tree.disk.map(&gone).ends_with("gone: no such file"));
    }

    #[test]
    fn a_tree_is_dropped_and_read_again() {
        // Beside the sources: what is in a tmpfs cannot be dropped.
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let inner = dir.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let page = rustix::param::page_size();
        for n in 0..3 {
            std::fs::write(inner.join(n.to_string()), vec![1; 20 * page]).unwrap();
        }
        let mut tree = tree(dir.path());
        let cached = |tree: &mut Tree| {
            let walked = tree.disk.scan();
            tree.scanned(walked);
            tree.list(dir.path()).rows[0].totals.cached
        };
        assert_eq!(cached(&mut tree), 60);
        let size = bytes(60 * page as u64);
        let said = tree.disk.act(Deed::Flush, std::slice::from_ref(&inner));
        assert_eq!((said, cached(&mut tree)), (format!("evicted {size} of 3 files"), 0));
        let said = tree.disk.act(Deed::Load, std::slice::from_ref(&inner));
        assert_eq!((said, cached(&mut tree)), (format!("read {size} of 3 files"), 60));
        assert!(tree.disk.map(&inner.join("0")).contains("20 pages"));
    }
}
