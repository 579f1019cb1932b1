//! Rows of those who pushed pages out of the cache.

use std::collections::HashMap;

use super::filter::Filter;
use crate::blame::Bill;
use crate::blame::Counts;
use crate::blame::Evictor;
use crate::blame::How;
use crate::blame::Row as Whose;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::model::Interval;
use crate::model::Row;
use crate::model::Who;
use crate::names::Names;
use crate::plan::Event;
use crate::plan::Plan;
use crate::sample::Sample;
use crate::text::foreign::Foreign;

/// What a row is known by: the way, whose pages they were, who pushed them out, for whose limit.
type Key = (How, [Option<Foreign>; 4]);

/// What rows can have: what reclaim took, what went otherwise, and what the kernel takes for read back in.
fn figures(rows: &[(Evictor, Counts)], more: u64, refaults: bool) -> Figures {
    let mut out = Figures::unknown();
    let sum =
        |which: fn(&Evictor) -> bool| rows.iter().filter(|(who, _)| which(who)).map(|(_, n)| n.out).sum();
    out.set(Figure::Evicted, Some(sum(|who| who.how.reclaims())));
    out.set(Figure::Removed, Some(sum(|who| !who.how.reclaims())));
    let refaulted = rows.iter().fold(more, |sum, (_, n)| sum + n.refaulted);
    out.set(Figure::Refaulted, refaults.then_some(refaulted));
    out
}

fn who(evictor: &Evictor, whose: &Whose, names: &mut dyn Names) -> Who {
    let mut group = |id: u64| (id != 0).then(|| Foreign::from(&*names.cgroup(id, 0).path));
    Who {
        how: Some(evictor.how.name()),
        owner: group(whose.owner),
        cgroup: group(whose.by),
        comm: (!whose.process.is_empty()).then(|| Foreign::from(&*whose.process)),
        limit_of: group(whose.limit),
        ..Who::default()
    }
}

/// Makes rows of what was counted by evictor, most pages first, and returns what the line above them says of the same: it is made
/// of these counts, too, which are read at another moment than all others.
pub(super) fn put(
    out: &mut Interval,
    (before, now): (&Sample, &Sample),
    plan: &Plan,
    filter: &Filter,
    names: &mut dyn Names,
) -> Figures {
    let Some((had, has)) = before.evictors.as_deref().zip(now.evictors.as_deref()) else {
        return Figures::unknown();
    };
    let mut bill = Bill::between(had, has);
    let refaults = plan.sees(Event::RefaultOf);
    let mut unknown = bill.strangers;
    // What found no room may be what was chosen.
    let known = filter.is_empty() || bill.rows.iter().all(|(who, _)| who.who.is_some());
    if !filter.is_empty() {
        unknown = 0;
        let groups = !filter.by_process();
        bill.choose(|owner| groups && filter.holds(&names.cgroup(owner, 0).path));
    }
    let line = if known { figures(&bill.rows, unknown, refaults) } else { Figures::unknown() };
    let back = |rows: &[(Evictor, Counts)]| {
        plan.sees(Event::PageBack).then(|| rows.iter().fold(0, |sum: u64, (_, n)| sum.saturating_add(n.back)))
    };
    out.back = back(&bill.rows).filter(|_| known);
    for figure in [Figure::Evicted, Figure::Removed, Figure::Refaulted] {
        if !known || line.get(figure).is_some() {
            out.total.set(figure, line.get(figure));
        }
    }
    // Runs of a command and what was asked for make rows of their own below, which are one here. So are cgroups that have the
    // same name, one after the other: two rows that look the same would be one to whoever reads them.
    let mut at: HashMap<Key, usize> = HashMap::new();
    let mut rows: Vec<(Who, Vec<(Evictor, Counts)>)> = Vec::new();
    for (evictor, n) in &bill.rows {
        let Some(whose) = &evictor.who else { continue };
        let who = who(evictor, whose, names);
        let key = (evictor.how, [&who.owner, &who.cgroup, &who.comm, &who.limit_of].map(Clone::clone));
        let place = *at.entry(key).or_insert_with(|| {
            rows.push((who, Vec::new()));
            rows.len() - 1
        });
        if let Some((_, all)) = rows.get_mut(place) {
            all.push((evictor.clone(), *n));
        }
    }
    let weight = |all: &[(Evictor, Counts)]| all.iter().fold((0, 0), |w, (_, n)| (w.0 + n.out, w.1 + n.back));
    rows.sort_by_key(|(_, all)| std::cmp::Reverse(weight(all)));
    let row = |(who, all): (Who, Vec<(Evictor, Counts)>)| {
        let figures = figures(&all, 0, refaults);
        let back = back(&all);
        let nothing = back.unwrap_or(0) == 0 && super::idle(&figures);
        (!nothing).then_some(Row { who, figures, classic: None, back })
    };
    out.rows = rows.into_iter().filter_map(row).collect();
    out.groups = out.rows.len();
    line
}

#[cfg(test)]
mod tests;
