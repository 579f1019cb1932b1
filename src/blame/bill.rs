//! What was counted between two readings.

use std::collections::HashMap;

use super::Counts;
use super::Details;
use super::Evictor;
use super::How;
use super::Raw;

/// Who took whose pages out in a stretch of time, most pages first.
#[derive(Debug, Clone, Default)]
pub struct Bill {
    /// By evictor. What came back may have left before the stretch began.
    pub rows: Vec<(Evictor, Counts)>,
    /// Pages that were forgotten before they could come back.
    pub forgotten: u64,
    /// Pages read back in, of which is not known who had taken them out.
    pub strangers: u64,
    /// Of which files, and who brought them in again.
    pub details: Details,
}

impl Bill {
    /// What came between two readings.
    #[must_use]
    pub fn between(before: &Raw, now: &Raw) -> Self {
        let had: HashMap<&Evictor, Counts> = before.rows.iter().map(|(who, n)| (who, *n)).collect();
        let since = |(who, n): &(Evictor, Counts)| {
            let had = had.get(who).copied().unwrap_or_default();
            let counts = Counts {
                out: n.out.saturating_sub(had.out),
                back: n.back.saturating_sub(had.back),
                refaulted: n.refaulted.saturating_sub(had.refaulted),
                again: n.again.saturating_sub(had.again),
                waits: n.waits.saturating_sub(had.waits),
                waited_ns: n.waited_ns.saturating_sub(had.waited_ns),
            };
            (counts != Counts::default()).then(|| (who.clone(), counts))
        };
        let mut rows: Vec<_> = now.rows.iter().filter_map(since).collect();
        // Ties by all that a row is, so that the same counts always make the same table.
        let key = |who: &Evictor| {
            (who.how, who.who.as_ref().map(|r| (r.owner, r.limit, r.by, r.process.clone(), r.run, r.own)))
        };
        rows.sort_by(|(a, m), (b, n)| {
            (n.out, n.back).cmp(&(m.out, m.back)).then_with(|| key(a).cmp(&key(b)))
        });
        Self {
            rows,
            forgotten: now.forgotten.saturating_sub(before.forgotten),
            strangers: now.strangers.saturating_sub(before.strangers),
            details: now.details.since(&before.details),
        }
    }

    /// As if this had been the first reading; of the rows those that pushed out most, the others by how they did.
    #[must_use]
    pub fn cut(self, most: usize) -> Raw {
        let Self { mut rows, forgotten, strangers, .. } = self;
        for (evictor, n) in rows.split_off(rows.len().min(most)) {
            let other = Evictor { who: None, ..evictor };
            match rows.iter_mut().find(|(known, _)| *known == other) {
                Some((_, sum)) => sum.add(&n),
                None => rows.push((other, n)),
            }
        }
        Raw { rows, forgotten, strangers, ..Raw::default() }
    }

    /// Leaves what concerns those that were asked for: what they pushed out, what they brought in again, and, if these are
    /// cgroups, what had been theirs. What is not known by whom is left out.
    pub fn choose(&mut self, mut theirs: impl FnMut(u64) -> bool) {
        self.rows.retain(|(who, n)| {
            who.who.as_ref().is_some_and(|row| row.own || n.again > 0 || row.owner != 0 && theirs(row.owner))
        });
    }

    /// The sum of the rows of which this holds.
    #[must_use]
    pub fn sum(&self, which: impl Fn(How) -> bool) -> Counts {
        sum(self.rows.iter().filter(|(who, _)| which(who.how)))
    }
}

/// What rows are together.
pub(super) fn sum<'a>(rows: impl Iterator<Item = &'a (Evictor, Counts)>) -> Counts {
    rows.fold(Counts::default(), |mut sum, (_, n)| {
        sum.add(n);
        sum
    })
}
