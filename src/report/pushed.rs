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
use crate::text::foreign::Foreign;

/// Rows that a report keeps.
const ROWS: usize = 100;

/// How often cgroups that are new are looked up: one that goes keeps its name.
const STEP: Duration = Duration::from_secs(1);

/// Who took pages out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct By {
    /// The cgroup of its thread; `None`: kswapd.
    pub cgroup: Option<Foreign>,
    /// The name of the process; `None`: kswapd.
    pub process: Option<Foreign>,
}

/// Who pushed whose pages out in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
}

/// What of it concerns a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Pushed {
    /// By evictor: what the run brought in again first, then what it pushed out.
    pub rows: Vec<Row>,
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
    /// What concerns a run in a bill. `comes`: whether it is seen that pages come back.
    #[must_use]
    pub fn new(bill: &Bill, run: u32, comes: bool, names: &mut dyn Names) -> Self {
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
                refaulted: 0,
            });
            if rest != Counts::default() {
                out.rows.push(row(&rest, own));
            }
        }
        out
    }

    /// What the run brought in again of what rows of a kind had pushed out.
    #[must_use]
    pub fn again(&self, which: impl Fn(&Row) -> bool) -> Option<u64> {
        self.rows.iter().filter(|row| which(row)).map(|row| row.again_pages).sum()
    }
}

/// What is read of it while a run lasts; nothing where nobody asks.
pub(super) struct Bills {
    /// The first reading, and whether it is seen that pages come back.
    began: Option<(Raw, bool)>,
    /// When new cgroups are looked up next.
    next: Duration,
}

impl Bills {
    /// The run begins.
    pub(super) fn begin(comes: Option<bool>, source: &mut (dyn Follow + '_)) -> anyhow::Result<Self> {
        let began = comes.map(|comes| anyhow::Ok((source.blame()?, comes))).transpose()?;
        Ok(Self { began, next: STEP })
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
        let Some((before, comes)) = self.began else { return Ok(None) };
        let bill = Bill::between(&before, &source.blame()?);
        Ok(Some(Pushed::new(&bill, run, comes, names)))
    }
}

#[cfg(test)]
mod tests;
