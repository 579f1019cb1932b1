//! Who pushed whose pages out of the cache while a run lasted, as far as the run has to do with it: pages that it had to bring
//! in again, and those that it pushed out itself. Only what left and came back while it ran is in it.

use std::time::Duration;

use serde::Serialize;

use crate::blame::Bill;
use crate::blame::Counts;
use crate::blame::Evictor;
use crate::blame::How;
use crate::blame::Raw;
use crate::names::Names;
use crate::sample::Follow;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::text::width::ending;

/// Rows that a report keeps.
const ROWS: usize = 100;

/// Files that a report keeps.
const FILES: usize = 50;

/// How often cgroups that are new are looked up: one that goes keeps its name.
const STEP: Duration = Duration::from_secs(1);

/// Who took pages out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct By {
    /// The cgroup of its thread; `None`: the kernel did it by itself.
    pub cgroup: Option<Foreign>,
    /// The name of the process; `None`: it has none, or the kernel did it by itself.
    pub process: Option<Foreign>,
}

impl By {
    /// Whoever did it, in words; what the kernel does by itself is called by how it does it.
    #[must_use]
    pub fn called(&self, own: bool, how: Option<&str>) -> String {
        let process = foreign::or(self.process.as_ref(), "-");
        match (own, &self.cgroup) {
            (true, _) => format!("the command ({process})"),
            (false, None) if self.process.is_none() => how.unwrap_or("-").into(),
            (false, group) => format!("{} ({process})", foreign::or(group.as_ref(), "-")),
        }
    }

    /// The same in so many columns: of a cgroup the end of its path, and the process as long as there is room for it alone.
    #[must_use]
    pub fn called_in(&self, own: bool, how: Option<&str>, room: usize) -> String {
        let all = self.called(own, how);
        if all.chars().count() <= room || (!own && self.cgroup.is_none() && self.process.is_none()) {
            return all;
        }
        let process = format!("({})", foreign::or(self.process.as_ref(), "-"));
        let left = room.saturating_sub(process.chars().count() + 1);
        match (own, &self.cgroup) {
            (true, _) if left >= "command".len() => format!("command {process}"),
            (true, _) if left >= "it".len() => format!("it {process}"),
            (false, Some(group)) if left >= 3 => format!("{} {process}", ending(&group.to_string(), left)),
            _ => process,
        }
    }
}

/// Who pushed whose pages out in one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// How; `None`: of several kinds (`other`).
    pub how: Option<&'static str>,
    /// The same, for those who ask more of it.
    #[serde(skip)]
    pub kind: Option<How>,
    /// The cgroup that the pages were charged to.
    pub owner: Option<Foreign>,
    /// Who did it.
    pub by: By,
    /// The cgroup whose limit, or whose `memory.reclaim`.
    pub limit_of: Option<Foreign>,
    /// Whether a process of the run did it.
    pub own: bool,
    /// Whether this is all for which there was no room among the rows.
    pub other: bool,
    /// Pages that left.
    pub out_pages: u64,
    /// Of these, that came back, for whomever; `None` where that is not seen.
    pub back_pages: Option<u64>,
    /// Of these, that the run brought in.
    pub again_pages: Option<u64>,
    /// Seconds that threads, of whomever, waited for such pages while they were being read; `None` where that is not seen.
    pub waited_s: Option<f64>,
}

/// Of which file somebody pushed pages out, and what the run brought in again of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileRow {
    /// Its path; `None` where it has none, and where this is `other`.
    pub path: Option<Foreign>,
    /// How its pages went; `None`: of several kinds (`other`).
    pub how: Option<&'static str>,
    /// Who did it.
    pub by: By,
    /// Whether a process of the run did it.
    pub own: bool,
    /// Whether this is all that is in no row of a file.
    pub other: bool,
    /// Pages that left.
    pub out_pages: u64,
    /// Of these, that the run brought in.
    pub again_pages: Option<u64>,
    /// Seconds that threads of the run waited for such pages while they were being read.
    pub waited_s: Option<f64>,
}

/// What of it concerns a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Pushed {
    /// By evictor: what the run brought in again first, then what it pushed out.
    pub rows: Vec<Row>,
    /// The same by file, of what the run brought in again first; the last is all else.
    pub files: Vec<FileRow>,
    /// Pages that left while it ran, and that it brought in again: the sum of all rows.
    pub again_pages: Option<u64>,
    /// Pages that it pushed out itself: the sum of its own rows.
    pub own_out_pages: u64,
    /// Of these, that came back.
    pub own_back_pages: Option<u64>,
    /// Pages that left, and of which it is not known who pushed them out, since there was no room for a row.
    pub unknown_pages: u64,
    /// Pages that left and were forgotten for want of room before they could come back.
    pub forgotten_pages: u64,
}

impl Pushed {
    /// What concerns a run in a bill.
    #[must_use]
    pub fn new(bill: &Bill, run: u32, sees: Sees, names: &mut dyn Names) -> Self {
        let comes = sees.comes;
        let mut out = Self { forgotten_pages: bill.forgotten, ..Self::default() };
        let mut all: Vec<(&Evictor, &crate::blame::Row, &Counts)> = Vec::new();
        for (evictor, n) in &bill.rows {
            match &evictor.who {
                Some(who) if who.run == run && (who.own || n.again > 0) => all.push((evictor, who, n)),
                // Of others, or of a time that is over.
                Some(_) => {}
                None => out.unknown_pages += n.out,
            }
        }
        // In the order of the bill where these are equal.
        all.sort_by_key(|(_, who, n)| std::cmp::Reverse((n.again, if who.own { n.out } else { 0 })));
        let known = |n: u64| comes.then_some(n);
        let own = all.iter().filter(|(_, who, _)| who.own);
        let (left, back) = own.fold((0, 0), |sum, (_, _, n)| (sum.0 + n.out, sum.1 + n.back));
        (out.own_out_pages, out.own_back_pages) = (left, known(back));
        out.again_pages = known(all.iter().map(|(_, _, n)| n.again).sum());
        let mut group = |id: u64| (id != 0).then(|| Foreign::from(&*names.cgroup(id, 0).path));
        let row = |n: &Counts, own| Row {
            how: None,
            kind: None,
            owner: None,
            by: By::default(),
            limit_of: None,
            own,
            other: true,
            out_pages: n.out,
            back_pages: known(n.back),
            again_pages: known(n.again),
            waited_s: sees.seconds(n.waited_ns),
        };
        for (evictor, who, n) in all.iter().take(ROWS) {
            out.rows.push(Row {
                how: Some(evictor.how.name()),
                kind: Some(evictor.how),
                owner: group(who.owner),
                by: By {
                    cgroup: group(who.by),
                    process: (!who.process.is_empty()).then(|| Foreign::from(&*who.process)),
                },
                limit_of: group(who.limit),
                other: false,
                ..row(n, who.own)
            });
        }
        for own in [false, true] {
            let rest = all.iter().skip(ROWS).filter(|(_, who, _)| who.own == own);
            let rest = rest.fold(Counts::default(), |sum, (_, _, n)| Counts {
                out: sum.out + n.out,
                back: sum.back + n.back,
                again: sum.again + n.again,
                waited_ns: sum.waited_ns + n.waited_ns,
                ..Counts::default()
            });
            if rest != Counts::default() {
                out.rows.push(row(&rest, own));
            }
        }
        let rows: Vec<_> = all.iter().map(|(who, _, n)| ((*who).clone(), **n)).collect();
        out.files = files(bill, &rows, sees, names);
        out
    }

    /// What the run brought in again of what rows of a kind had pushed out.
    #[must_use]
    pub fn again(&self, which: impl Fn(&Row) -> bool) -> Option<u64> {
        self.rows.iter().filter(|row| which(row)).map(|row| row.again_pages).sum()
    }
}

/// Of which files, for those who are in rows.
fn files(bill: &Bill, rows: &[(Evictor, Counts)], sees: Sees, names: &mut dyn Names) -> Vec<FileRow> {
    let known = |n: u64| sees.comes.then_some(n);
    let mut all = Vec::new();
    for (evictor, files) in bill.details.by_evictor(rows) {
        let again = rows.iter().find(|(who, _)| who == evictor).map_or(0, |(_, n)| n.again);
        let mut left = again;
        for file in files {
            let own =
                || file.readers.iter().filter(|(r, _)| r.as_ref().is_some_and(|r| r.own)).map(|(_, n)| n);
            let (mut again, waited): (u64, u64) =
                (own().map(|n| n.back).sum(), own().map(|n| n.waited_ns).sum());
            left = left.saturating_sub(again);
            if file.file.is_none() {
                // What had no room by file.
                again += std::mem::take(&mut left);
            }
            all.push((evictor, file.file, (file.out, again, waited)));
        }
        if left > 0 {
            all.push((evictor, None, (0, left, 0)));
        }
    }
    all.sort_by_key(|(_, file, (out, again, _))| (file.is_none(), std::cmp::Reverse((*again, *out)), *file));
    let mut out = Vec::new();
    let (mut rest, mut more) = ((0, 0, 0), false);
    for (evictor, file, n) in all {
        let Some((number, who)) = file.zip(evictor.who.as_ref()).filter(|_| out.len() < FILES) else {
            rest = (rest.0 + n.0, rest.1 + n.1, rest.2 + n.2);
            more = true;
            continue;
        };
        let file = bill.details.files.get(&number);
        let path = file.and_then(|f| names.mounts(f.block.unwrap_or(f.dev)).path(f)).map(Foreign::from);
        let group = (who.by != 0).then(|| Foreign::from(&*names.cgroup(who.by, 0).path));
        let process = (!who.process.is_empty()).then(|| Foreign::from(&*who.process));
        out.push(FileRow {
            path,
            how: Some(evictor.how.name()),
            by: By { cgroup: group, process },
            own: who.own,
            other: false,
            out_pages: n.0,
            again_pages: known(n.1),
            waited_s: sees.seconds(n.2),
        });
    }
    if more {
        let (out_pages, again_pages, waited_s) = (rest.0, known(rest.1), sees.seconds(rest.2));
        let (path, how, by) = (None, None, By::default());
        out.push(FileRow { path, how, by, own: false, other: true, out_pages, again_pages, waited_s });
    }
    out
}

/// What of it is seen on this kernel.
#[derive(Debug, Clone, Copy)]
pub struct Sees {
    /// That pages come back.
    pub comes: bool,
    /// That threads wait for them.
    pub waits: bool,
}

impl Sees {
    fn seconds(self, ns: u64) -> Option<f64> {
        self.waits.then_some(ns as f64 / 1e9)
    }
}

/// What is read of it while a run lasts; nothing where nobody asks.
pub(super) struct Bills {
    /// The first reading, and what is seen.
    began: Option<(Raw, Sees)>,
    /// When new cgroups are looked up next.
    next: Duration,
}

impl Bills {
    /// The run begins.
    pub(super) fn begin(sees: Option<Sees>, source: &mut (dyn Follow + '_)) -> anyhow::Result<Self> {
        let Some(sees) = sees else { return Ok(Self { began: None, next: STEP }) };
        let first = source.blame()?;
        // What is in rows of files is then in those of evictors, at the beginning and at the end.
        let first = Raw { details: source.blame()?.details, ..first };
        Ok(Self { began: Some((first, sees)), next: STEP })
    }

    /// Looks up the names of cgroups that are new, if it is time.
    pub(super) fn look(
        &mut self,
        after: Duration,
        source: &mut (dyn Follow + '_),
        names: &mut dyn Names,
    ) -> anyhow::Result<()> {
        if self.began.is_some() && after >= self.next {
            self.next = after + STEP;
            let raw = source.blame()?;
            for row in raw.rows.iter().filter_map(|(who, _)| who.who.as_ref()) {
                for id in [row.limit, row.by, row.owner].into_iter().filter(|id| *id != 0) {
                    names.cgroup(id, 0);
                }
            }
        }
        Ok(())
    }

    /// The run is over.
    pub(super) fn end(
        self,
        run: u32,
        source: &mut (dyn Follow + '_),
        names: &mut dyn Names,
    ) -> anyhow::Result<Option<Pushed>> {
        let Some((before, sees)) = self.began else { return Ok(None) };
        let last = source.blame()?;
        let bill = Bill::between(&before, &source.named(last)?);
        Ok(Some(Pushed::new(&bill, run, sees, names)))
    }
}

#[cfg(test)]
mod tests;
