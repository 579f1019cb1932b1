//! What was cached of the files of a run before it began, found out when it is over: nobody knew before which files those
//! would be.
//!
//! It is book-keeping. What is cached of a file now is what was cached before, and what was brought in since, less what
//! left the cache. What is cached now the kernel tells of each file; what was brought in is counted, ours and others';
//! what left is counted of the machine as a whole. So a sum over files is known to within the pages that left.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use super::used::Used;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::files::Key;
use crate::files::Mounts;
use crate::files::Named;
use crate::plan::Certainty;
use crate::report::beforehand::Beforehand;
use crate::report::certificate::Before;
use crate::report::certificate::Others;
use crate::report::origins::fills;
use crate::report::residency;
use crate::report::units::count;
use crate::report::units::page;
use crate::sample::Counter;
use crate::sample::Followed;
use crate::sample::Sample;

/// Files of others that are told apart.
const OTHERS: usize = 1 << 17;
/// What asking for all files may take.
const TIME: Duration = Duration::from_secs(3);
/// Reasons that are told.
const REASONS: usize = 8;

/// What others brought in while a run lasted, and until its files had been asked for.
#[derive(Debug, Default)]
pub(super) struct Brought {
    /// Pages of a file: those that surely came, and those that may have.
    files: HashMap<Key, (u64, u64)>,
    /// The latter, of files for which there was no room.
    rest: u64,
}

impl Brought {
    /// Takes note of what all but the run did since the sample before.
    pub(super) fn note(&mut self, now: &Sample) {
        self.note_but(now.followed.as_deref(), now);
    }

    /// Takes note of what all did since the run was over.
    pub(super) fn note_late(&mut self, now: &Sample) {
        self.note_but(None, now);
    }

    /// Pages of a file that surely came, and that may have.
    pub(super) fn of(&self, file: Key) -> (u64, u64) {
        self.files.get(&file).copied().unwrap_or_default()
    }

    /// Pages of files for which there was no room.
    pub(super) const fn rest(&self) -> u64 {
        self.rest
    }

    fn note_but(&mut self, followed: Option<&Followed>, now: &Sample) {
        let of_run = followed.into_iter().flat_map(|f| &f.files);
        let ours: HashSet<(u32, Key)> = of_run.map(|f| (f.tgid, f.file.key())).collect();
        for f in &now.files {
            let (pages, most) = fills(&f.counters);
            let key = f.file.key();
            let is_member = followed.is_some_and(|run| run.processes.contains_key(&f.tgid));
            if most == 0 || is_member || ours.contains(&(f.tgid, key)) {
                continue;
            }
            if self.files.len() >= OTHERS && !self.files.contains_key(&key) {
                self.rest += most;
                continue;
            }
            let sum = self.files.entry(key).or_default();
            *sum = (sum.0 + pages, sum.1 + most);
        }
    }
}

/// What is known of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    /// Pages cached before the run, and all.
    Before(u64, u64),
    /// Pages cached after it, and all.
    After(u64, u64),
    /// It does not count: it is nowhere else than in memory, or it is what the command was forked from.
    Apart,
    /// Nothing, and why.
    Unknown(String),
}

/// Whether a run read or mapped it. What it only wrote makes no difference to it.
fn is_read(used: &Used) -> bool {
    const WAYS: [Counter; 7] = [
        Counter::ReadHits,
        Counter::ReadAheadHits,
        Counter::ReadMisses,
        Counter::FaultHits,
        Counter::FaultMisses,
        Counter::Prefetched,
        Counter::DirectReadBytes,
    ];
    used.file.block.is_none() && WAYS.iter().any(|c| used.sum.get(*c) > 0)
}

/// Where to ask for a file, or what is known without.
fn place(used: &Used, mounts: &Mounts, known: &Beforehand) -> Result<PathBuf, Told> {
    let unknown = |why: &str| Err(Told::Unknown(why.into()));
    let Some(kind) = mounts.kind(used.file.dev) else {
        return unknown("of a file system that is not mounted here");
    };
    if is_memory(kind) {
        return Err(Told::Apart);
    }
    if !residency::may_open(Some(kind)) {
        return unknown("of FUSE, whose server could do anything when asked");
    }
    if used.deleted {
        return unknown("deleted by the end");
    }
    if used.file.named == Named::Replaced {
        return unknown("its name is no UTF-8");
    }
    let path = (used.file.named == Named::Whole).then(|| mounts.path(&used.file)).flatten();
    let Some(path) = path.filter(|p| p.starts_with('/')).map(PathBuf::from) else {
        return unknown("of unknown path");
    };
    // The command begins as a copy of this program, before its own execve.
    if std::env::current_exe().is_ok_and(|own| own == path) {
        return Err(Told::Apart);
    }
    // Of another file that has taken the name since, it is asked when the run is over, by its inode.
    match known.of(&path, &used.file) {
        Some(r) => Err(Told::Before(r.cached, r.pages)),
        None => Ok(path),
    }
}

/// Asks for all files that a run read or mapped, the most used first.
pub(super) fn ask<'a>(
    files: impl Iterator<Item = &'a Used>,
    mounts: &Mounts,
    known: &Beforehand,
) -> HashMap<Key, Told> {
    let (mut out, mut open) = (HashMap::new(), Vec::new());
    for used in files.filter(|u| is_read(u)) {
        match place(used, mounts, known) {
            Ok(path) => open.push((used_pages(used), (used.file.key(), path, used.file.inode))),
            Err(told) => drop(out.insert(used.file.key(), told)),
        }
    }
    open.sort_by_key(|(used, _)| std::cmp::Reverse(*used));
    let open = open.into_iter().map(|(_, file)| file).collect();
    out.extend(residency::batch(open, TIME).into_iter().map(|(key, answer)| match answer {
        Ok((cached, pages)) => (key, Told::After(cached, pages)),
        Err(why) => (key, Told::Unknown(why)),
    }));
    out
}

/// Pages that a run used of a file.
fn used_pages(used: &Used) -> u64 {
    let c = &used.sum;
    let ways = [
        Counter::ReadHits,
        Counter::ReadAheadHits,
        Counter::ReadMisses,
        Counter::FaultHits,
        Counter::FaultMisses,
    ];
    ways.iter().map(|n| c.get(*n)).sum::<u64>() + c.get(Counter::DirectReadBytes).div_ceil(page())
}

/// What bounds the book-keeping.
pub(super) struct Books<'a> {
    pub(super) brought: &'a Brought,
    /// Pages that left the cache, of the whole machine; `None`: not counted here.
    pub(super) left: Option<u64>,
    /// Events that were lost.
    pub(super) lost: u64,
    /// What the count of pages brought in is worth.
    pub(super) worth: Certainty,
    /// Files for which there was no room.
    pub(super) unlisted: bool,
}

/// The sums over all files.
pub(super) fn before<'a>(
    files: impl Iterator<Item = &'a Used>,
    told: &HashMap<Key, Told>,
    books: &Books<'_>,
) -> Before {
    let mut out = Before::default();
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    // All pages, and bounds of those cached: of files that were asked before, and by the books.
    let (mut pages, mut asked, mut least, mut most, mut of_books) = (0, 0, 0_u64, 0, 0);
    for used in files.filter(|u| is_read(u)) {
        let key = used.file.key();
        let why = match told.get(&key) {
            Some(Told::Apart) => continue,
            Some(Told::Before(cached, all)) => {
                (asked, pages) = (asked + cached, pages + all);
                None
            }
            Some(Told::After(cached, all)) => {
                let (own, others) = (fills(&used.sum), books.brought.of(key));
                least += cached.saturating_sub(own.1 + others.1);
                // No less than 0 of one file: what it brought in and has no more, left since.
                most += cached.saturating_sub(own.0 + others.0);
                (of_books, pages) = (of_books + all, pages + all);
                None
            }
            Some(Told::Unknown(why)) => Some(why.as_str()),
            None => Some("not asked for"),
        };
        out.files += 1;
        if let Some(why) = why {
            out.files_unknown += 1;
            out.unknown_used_bytes += used_pages(used) * page();
            *reasons.entry(why).or_default() += 1;
        }
    }
    let trusted = books.lost == 0 && !matches!(books.worth, Certainty::Unknown(_));
    if trusted {
        least = least.saturating_sub(books.brought.rest);
        most = books.left.map_or(of_books, |left| (most + left).min(of_books));
    } else {
        (least, most) = (0, of_books);
    }
    let mut why: Vec<String> = reasons.iter().map(|(why, n)| format!("{}: {why}", files_of(*n))).collect();
    let more = why.len().saturating_sub(REASONS);
    why.truncate(REASONS);
    if more > 0 {
        why.push(format!("and {more} other reasons"));
    }
    if books.unlisted {
        why.push("there were more files than the list has room for".into());
    }
    if of_books > 0 {
        why.extend(doubts(books, least != most));
    }
    out.exact = why.is_empty() && least == most;
    out.why = why;
    if out.files > out.files_unknown || out.files == 0 {
        out = out.known(pages, asked + least, asked + most, page());
    }
    out
}

fn files_of(n: u64) -> String {
    if n == 1 { "1 file".into() } else { format!("{} files", count(n)) }
}

/// Why sums that are not asked for but counted may be wrong, or differ.
fn doubts(books: &Books<'_>, differ: bool) -> Vec<String> {
    let mut out = Vec::new();
    if books.lost > 0 {
        let events =
            if books.lost == 1 { "1 event was".into() } else { format!("{} events were", count(books.lost)) };
        out.push(format!("{events} lost: what came and went was not all counted"));
    }
    match &books.worth {
        Certainty::Exact => {}
        Certainty::Bounded(why) => out.push(format!("pages brought in are counted within a bound: {why}")),
        Certainty::Unknown(why) => out.push(format!("pages brought in are not counted here: {why}")),
    }
    match books.left {
        None => out.push("pages that leave the cache are not counted here".into()),
        Some(left) if left > 0 && differ => out.push(format!(
            "{} left the cache of the machine meanwhile: some may have been of these files",
            if left == 1 { "1 page".into() } else { format!("{} pages", count(left)) }
        )),
        Some(_) => {}
    }
    if books.brought.rest > 0 {
        out.push("others brought in more files than the list has room for".into());
    }
    out
}

/// What all others did: the machine's figures less the run's. `direct_at_least`: not all that goes past the cache is seen here.
pub(super) fn others(all: &Figures, ours: &Figures, direct_at_least: bool) -> Others {
    let of = |figure| all.get(figure)?.checked_sub(ours.get(figure)?);
    let pages = |figure| of(figure).map(|n| n * page());
    let brought = [Figure::Misses, Figure::ReadAheadPages, Figure::FaultMisses];
    let out = Others {
        read_bytes: of(Figure::ReadBytes),
        missed_bytes: pages(Figure::Misses),
        brought_in_bytes: brought.into_iter().map(pages).sum(),
        dirtied_bytes: pages(Figure::Dirtied),
        direct_read_bytes: of(Figure::DirectReadBytes),
        direct_write_bytes: of(Figure::DirectWriteBytes),
        direct_at_least,
        why: None,
    };
    let cached = [out.read_bytes, out.missed_bytes, out.brought_in_bytes, out.dirtied_bytes];
    let all = [&cached[..], &[out.direct_read_bytes, out.direct_write_bytes]].concat();
    let why = "this kernel does not tell it of the run and of the machine alike ('--explain' says why)";
    Others { why: all.contains(&None).then(|| why.to_owned()), ..out }
}

/// File systems that are nowhere else than in memory.
pub(super) fn is_memory(kind: &str) -> bool {
    matches!(kind, "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" | "rootfs")
}

#[cfg(test)]
mod tests;
