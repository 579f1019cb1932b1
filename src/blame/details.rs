//! Of which files pages were pushed out, and who brought them in again.

use std::collections::HashMap;

use super::Counts;
use super::Evictor;
use crate::files::File;

/// Who brought pages of a file in again that somebody had pushed out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reader {
    /// The number of the row of who had pushed them out.
    pub number: u32,
    /// The file.
    pub file: u64,
    /// The cgroup of the thread.
    pub by: u64,
    /// The name of the process.
    pub process: Vec<u8>,
    /// Whether the process belongs to the run, or to what was asked for.
    pub own: bool,
}

/// What came back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Came {
    /// Pages that were added to the cache again.
    pub back: u64,
    /// Pages for which the kernel said that it had evicted them.
    pub refaulted: u64,
    /// Times that a thread waited for one of them while it was being read.
    pub waits: u64,
    /// How long that was, in nanoseconds.
    pub waited_ns: u64,
}

impl Came {
    fn less(&self, other: &Self) -> Self {
        Self {
            back: self.back.saturating_sub(other.back),
            refaulted: self.refaulted.saturating_sub(other.refaulted),
            waits: self.waits.saturating_sub(other.waits),
            waited_ns: self.waited_ns.saturating_sub(other.waited_ns),
        }
    }

    fn and(&self, other: &Self) -> Self {
        Self {
            back: self.back + other.back,
            refaulted: self.refaulted + other.refaulted,
            waits: self.waits + other.waits,
            waited_ns: self.waited_ns + other.waited_ns,
        }
    }
}

/// What the kernel programs keep of it, since attach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Evictors by the numbers of their rows.
    pub numbers: HashMap<u32, Evictor>,
    /// Files by the numbers that they have here; of those that are missing there was no room for a name.
    pub files: HashMap<u64, File>,
    /// Pages that left, by the number of who pushed them out and the file.
    pub shares: HashMap<(u32, u64), u64>,
    /// What came back, and by whom.
    pub readers: HashMap<Reader, Came>,
    /// Waits for which there was no room, or whose end was passed by.
    pub untimed: u64,
}

/// What an evictor pushed out of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileShare {
    /// The file, which has a name in [`Details::files`]; `None`: all for which there was no room, and files that were deleted.
    pub file: Option<u64>,
    /// Pages that left.
    pub out: u64,
    /// What of the file came back.
    pub came: Came,
    /// By whom, most first; `None`: there was no room for a row.
    pub readers: Vec<(Option<Reader>, Came)>,
}

impl FileShare {
    /// Of many files: each reader once.
    fn of_many(self) -> Self {
        let mut readers: HashMap<Option<Reader>, Came> = HashMap::new();
        for (reader, came) in self.readers {
            let sum = readers.entry(reader.map(|r| Reader { file: 0, ..r })).or_default();
            *sum = sum.and(&came);
        }
        Self { readers: readers.into_iter().collect(), ..self }
    }
}

impl Details {
    /// What came since an earlier reading.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let shares = self.shares.iter().filter_map(|(key, n)| {
            let n = n.saturating_sub(before.shares.get(key).copied().unwrap_or(0));
            (n > 0).then_some((*key, n))
        });
        let readers = self.readers.iter().filter_map(|(who, n)| {
            let n = n.less(&before.readers.get(who).copied().unwrap_or_default());
            (n != Came::default()).then(|| (who.clone(), n))
        });
        Self {
            numbers: self.numbers.clone(),
            files: self.files.clone(),
            shares: shares.collect(),
            readers: readers.collect(),
            untimed: self.untimed.saturating_sub(before.untimed),
        }
    }

    /// What each evictor pushed out, file by file, most first. With what is of no file by name, the files of one are together
    /// what its counts say.
    #[must_use]
    pub fn by_evictor<'a>(&self, rows: &'a [(Evictor, Counts)]) -> Vec<(&'a Evictor, Vec<FileShare>)> {
        // A file for which there was no room among the names is one of the others: two of these could not be told apart.
        let named = |file: u64| self.files.contains_key(&file).then_some(file);
        let mut known: HashMap<&Evictor, HashMap<Option<u64>, FileShare>> = HashMap::new();
        for ((number, file), out) in &self.shares {
            let Some(who) = self.numbers.get(number) else { continue };
            let of = known.entry(who).or_default().entry(named(*file)).or_default();
            of.file = named(*file);
            of.out += out;
        }
        for (reader, came) in &self.readers {
            let Some(who) = self.numbers.get(&reader.number) else { continue };
            let of = known.entry(who).or_default().entry(named(reader.file)).or_default();
            of.file = named(reader.file);
            of.came = of.came.and(came);
            of.readers.push((Some(reader.clone()), *came));
        }
        let files = |who: &'a Evictor, n: &Counts| {
            let mut known = known.remove(who).unwrap_or_default();
            let mut others = known.remove(&None).unwrap_or_default().of_many();
            let mut files: Vec<FileShare> = known.into_values().collect();
            files.sort_by_key(|f| (std::cmp::Reverse((f.out, f.came.back)), f.file));
            let out: u64 = files.iter().map(|f| f.out).sum::<u64>() + others.out;
            let came = files.iter().fold(others.came, |sum, f| sum.and(&f.came));
            let all = Came { back: n.back, refaulted: n.refaulted, waits: n.waits, waited_ns: n.waited_ns };
            // Tables are read one after the other while pages go and come: these are read first.
            let rest = (n.out.saturating_sub(out), all.less(&came));
            others.out += rest.0;
            others.came = others.came.and(&rest.1);
            if rest.1 != Came::default() {
                others.readers.push((None, rest.1));
            }
            if others != FileShare::default() {
                files.push(others);
            }
            for file in &mut files {
                file.readers.sort_by_key(|(who, n)| (std::cmp::Reverse((n.back, n.refaulted)), who.clone()));
            }
            (who, files)
        };
        let mut files = files;
        rows.iter().map(|(who, n)| files(who, n)).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::How;
    use super::*;

    fn reader(number: u32, file: u64, process: &str) -> Reader {
        Reader { number, file, by: 7, process: process.into(), own: false }
    }

    /// What has no room is a row, and all are together what the evictor's counts say.
    #[test]
    fn files_are_together_what_an_evictor_pushed_out() {
        let who = Evictor { how: How::Dontneed, who: None };
        let before = Details {
            shares: [((20, 5), 10)].into(),
            readers: [(reader(20, 5, "a"), Came { back: 3, ..Came::default() })].into(),
            untimed: 1,
            ..Details::default()
        };
        let file = |inode| File {
            dev: crate::files::Dev { major: 8, minor: 1 },
            inode,
            generation: 0,
            block: None,
            name: String::new(),
            named: crate::files::Named::Not,
        };
        let now = Details {
            numbers: [(20, who.clone())].into(),
            files: [(5, file(50)), (6, file(60))].into(),
            shares: [((20, 5), 110), ((20, 6), 30)].into(),
            readers: [
                (reader(20, 5, "a"), Came { back: 43, waits: 2, waited_ns: 900, ..Came::default() }),
                (reader(20, 5, "b"), Came { back: 5, refaulted: 5, ..Came::default() }),
            ]
            .into(),
            untimed: 1,
        };
        let bill = now.since(&before);
        assert_eq!(bill.untimed, 0);
        let counts =
            Counts { out: 140, back: 50, refaulted: 5, waits: 2, waited_ns: 900, ..Counts::default() };
        let rows = [(who, counts)];
        let all = bill.by_evictor(&rows);
        let [(_, files)] = &all[..] else { panic!("{all:?}") };
        let outs: Vec<_> = files.iter().map(|f| (f.file, f.out, f.came.back)).collect();
        assert_eq!(outs, [(Some(5), 100, 45), (Some(6), 30, 0), (None, 10, 5)]);
        let names: Vec<_> =
            files[0].readers.iter().map(|(r, n)| (r.as_ref().unwrap().process.clone(), n.back)).collect();
        assert_eq!(names, [(b"a".to_vec(), 40), (b"b".to_vec(), 5)]);
        assert_eq!(files[2].readers, [(None, Came { back: 5, ..Came::default() })]);
        // Files without a name are one row with what has no room at all, and each of their readers is in it once.
        let unnamed = Details { files: [(6, file(60))].into(), ..bill };
        let all = unnamed.by_evictor(&rows);
        let [(_, files)] = &all[..] else { panic!("{all:?}") };
        let outs: Vec<_> = files.iter().map(|f| (f.file, f.out, f.came.back)).collect();
        assert_eq!(outs, [(Some(6), 30, 0), (None, 110, 50)]);
        let readers: Vec<_> =
            files[1].readers.iter().map(|(r, n)| (r.as_ref().map(|r| r.process.clone()), n.back)).collect();
        assert_eq!(readers, [(Some(b"a".to_vec()), 40), (Some(b"b".to_vec()), 5), (None, 5)]);
        // Nothing since: nothing is left.
        assert_eq!(now.since(&now).by_evictor(&[]), []);
    }
}
