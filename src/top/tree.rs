//! Rows as a tree: cgroups below cgroups, processes below their parents. What has no row of its own but holds some is there,
//! too, having done nothing itself.

use std::collections::HashMap;

use crate::columns::Line;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::live::keeper::nothing;
use crate::live::snapshot::Entry;
use crate::live::snapshot::Snapshot;
use crate::model::Row;
use crate::pivot::By;
use crate::pivot::Id;
use crate::pivot::Who;
use crate::text::foreign::Foreign;
use crate::top::layout;
use crate::top::settings::Sort;

/// Levels at most: a tree that is deeper, or made up by a race of parents, ends there.
const DEEPEST: usize = 64;

/// How rows hang together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tree {
    /// Not at all.
    #[default]
    Flat,
    /// Each has what it did itself: all rows together are the line above them.
    Own,
    /// Each has what it and all below it did.
    Below,
}

impl Tree {
    /// The next one round.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Tree::Flat => Tree::Own,
            Tree::Own => Tree::Below,
            Tree::Below => Tree::Flat,
        }
    }

    /// Whether rows of this kind can hang together.
    #[must_use]
    pub const fn suits(by: By) -> bool {
        matches!(by, By::Cgroup | By::Process)
    }
}

/// The parent of a process, and what the process is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Its parent; 0 for none.
    pub parent: u32,
    /// The name of the process itself.
    pub comm: Foreign,
}

/// A row of the tree.
#[derive(Debug, Clone)]
pub struct Node {
    /// The entry that it is; `None` where it only holds others.
    pub entry: Option<usize>,
    /// What it is known by.
    pub id: Id,
    /// Who, and the figures that are shown.
    pub row: Row,
    /// What they are ranked by.
    pub busy: u64,
    /// Whether each node on the way to it is the last one of those beside it; empty for a root.
    pub lasts: Vec<bool>,
    /// What it is called below the one that holds it.
    pub name: Option<Foreign>,
    /// It is one of the rows that are wanted, and not only there for those that it holds.
    pub wanted: bool,
}

/// What is above a row.
enum Above {
    Nobody,
    Cgroup(String),
    Process(u32),
}

fn above(by: By, who: &Who, parents: &HashMap<u32, Parent>) -> Above {
    match by {
        By::Cgroup => match who.cgroup.as_ref().map(Foreign::raw) {
            Some(path) if path.len() > 1 && path.starts_with('/') => {
                let up = path.rfind('/').map_or("/", |at| if at == 0 { "/" } else { &path[..at] });
                Above::Cgroup(up.into())
            }
            _ => Above::Nobody,
        },
        By::Process => match who.pid.and_then(|pid| parents.get(&pid)) {
            Some(known) if known.parent > 0 => Above::Process(known.parent),
            _ => Above::Nobody,
        },
        _ => Above::Nobody,
    }
}

/// A row while the tree grows.
struct Sapling {
    entry: Option<usize>,
    who: Who,
    id: Id,
    own: Option<Figures>,
    all: Option<Figures>,
    busy: (u64, u64),
    over: bool,
    children: Vec<usize>,
    root: bool,
    wanted: bool,
    /// It is wanted, or holds what is.
    seen: bool,
}

impl Sapling {
    fn new(by: By, who: Who, entry: Option<usize>) -> Self {
        let id = Id::new(by, &who);
        Self {
            entry,
            who,
            id,
            own: None,
            all: None,
            busy: (0, 0),
            over: false,
            children: Vec::new(),
            root: true,
            wanted: false,
            seen: false,
        }
    }
}

/// Adds figures; what one of them does not know is not known of both.
fn add(sum: &mut Option<Figures>, more: Option<&Figures>) {
    let Some(more) = more else { return };
    let Some(sum) = sum else {
        *sum = Some(more.clone());
        return;
    };
    for figure in Figure::ALL {
        let both = sum.get(*figure).zip(more.get(*figure));
        sum.set(*figure, both.map(|(a, b)| a.saturating_add(b)));
    }
}

/// Grows a tree of all entries, and shows the branches to those at these places. What is not wanted and holds some that
/// are has done what it did: its figures do not depend on who is looked for.
#[must_use]
pub fn grow(
    snapshot: &Snapshot,
    wanted: &[usize],
    parents: &HashMap<u32, Parent>,
    (tree, sort, reverse): (Tree, Sort, bool),
) -> Vec<Node> {
    let by = snapshot.view.by;
    let mut all: Vec<Sapling> = Vec::with_capacity(snapshot.entries.len());
    let mut places: HashMap<Id, usize> = HashMap::new();
    for (at, entry) in snapshot.entries.iter().enumerate() {
        let mut new = Sapling::new(by, entry.named.who.clone(), Some(at));
        new.id = entry.id().clone();
        new.own = Some(snapshot.row(entry).figures);
        new.over = entry.state.is_over();
        new.busy.0 = entry.busy;
        if !stands_alone(entry) {
            places.insert(new.id.clone(), all.len());
        }
        all.push(new);
    }
    for at in wanted {
        // Each entry has its sapling at its own place.
        all.get_mut(*at).into_iter().for_each(|sapling| sapling.wanted = true);
    }
    // Those above, one after the other: what is added is looked at in its turn.
    let mut at = 0;
    while at < all.len() {
        let alone = all[at].entry.and_then(|i| snapshot.entries.get(i)).is_some_and(stands_alone);
        let who = match above(by, &all[at].who, parents) {
            _ if alone => None,
            Above::Nobody => None,
            Above::Cgroup(path) => Some(Who { cgroup: Some(path.into()), ..Who::default() }),
            Above::Process(pid) => {
                let comm = parents.get(&pid).map(|known| known.comm.clone());
                Some(Who { pid: Some(pid), comm, ..Who::default() })
            }
        };
        if let Some(who) = who {
            let new = Sapling::new(by, who, None);
            let place = *places.entry(new.id.clone()).or_insert(all.len());
            if place == all.len() {
                all.push(new);
            }
            if place != at {
                all[place].children.push(at);
                all[at].root = false;
            }
        }
        at += 1;
    }
    prune(&mut all);
    let roots: Vec<usize> = (0..all.len()).filter(|at| all[*at].root).collect();
    for root in &roots {
        sum(&mut all, *root, snapshot);
    }
    let mut out = Vec::with_capacity(all.len());
    let mut lasts = Vec::new();
    branches(&all, roots, (by, tree, sort, reverse), &mut lasts, &mut out);
    out
}

/// Cuts what is too deep, and circles (parents are asked one after the other): what is cut off stands by itself.
fn prune(all: &mut [Sapling]) {
    let mut seen = vec![false; all.len()];
    let mut ahead: Vec<(usize, usize)> =
        (0..all.len()).filter(|at| all[*at].root).map(|at| (at, 0)).collect();
    loop {
        while let Some((at, depth)) = ahead.pop() {
            seen[at] = true;
            let mut children = std::mem::take(&mut all[at].children);
            children.retain(|child| !seen[*child]);
            let deep = depth + 1 >= DEEPEST;
            for child in &children {
                all[*child].root = deep;
                ahead.push((*child, if deep { 0 } else { depth + 1 }));
            }
            if !deep {
                all[at].children = children;
            }
        }
        let Some(at) = seen.iter().position(|seen| !seen) else { return };
        all[at].root = true;
        ahead.push((at, 0));
    }
}

/// The rest, and those that have ended and were put together, hang nowhere.
fn stands_alone(entry: &Entry) -> bool {
    entry.named.who.other || entry.ended.is_some()
}

/// Adds up what is below, and whether any of it is wanted. Rows whose figures are of another interval are in no sum.
fn sum(all: &mut [Sapling], at: usize, snapshot: &Snapshot) {
    let counts = all[at].entry.and_then(|i| snapshot.entries.get(i)).is_some_and(|e| e.state.counts());
    let (mut figures, mut busy) = (None, 0_u64);
    if counts {
        add(&mut figures, all[at].own.as_ref());
        busy = all[at].busy.0;
    }
    for child in all[at].children.clone() {
        sum(all, child, snapshot);
        add(&mut figures, all[child].all.as_ref());
        busy = busy.saturating_add(all[child].busy.1);
        all[at].seen |= all[child].seen;
    }
    all[at].seen |= all[at].wanted;
    // Nothing was counted in it, which is known of whatever is known of those that it holds.
    if all[at].own.is_none() {
        all[at].own = figures.as_ref().map(nothing);
    }
    if figures.is_none() {
        figures = all[at].own.as_ref().map(nothing);
    }
    (all[at].all, all[at].busy.1) = (figures, busy);
}

fn branches(
    all: &[Sapling],
    level: Vec<usize>,
    how: (By, Tree, Sort, bool),
    lasts: &mut Vec<bool>,
    out: &mut Vec<Node>,
) {
    let (by, tree, sort, reverse) = how;
    let number = |at: usize| -> f64 {
        let sapling = &all[at];
        let number = match sort {
            Sort::Column(column) => {
                let figures = sapling.all.clone().unwrap_or_else(Figures::unknown);
                let line = Line { figures: &figures, classic: None, system: None, back: None, held: None };
                -column.value(&line).sort_key()
            }
            Sort::Busy => -(sapling.busy.1 as f64),
            Sort::Id => sapling.who.pid.map_or(f64::INFINITY, f64::from),
            Sort::Name => 0.0,
        };
        if number.is_finite() && reverse { -number } else { number }
    };
    let name = |at: usize| if sort == Sort::Name { layout::shown(by, &all[at].who) } else { String::new() };
    let seen = level.into_iter().filter(|at| all[*at].seen);
    let mut level: Vec<_> = seen.map(|at| (all[at].over, number(at), name(at), at)).collect();
    level.sort_by(|a, b| {
        let names = || if reverse { b.2.cmp(&a.2) } else { a.2.cmp(&b.2) };
        let ids = || all[a.3].id.cmp(&all[b.3].id);
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then_with(names).then_with(ids)
    });
    let count = level.len();
    for (n, (.., at)) in level.into_iter().enumerate() {
        let sapling = &all[at];
        let depth = lasts.len();
        // Roots have no branch before them.
        let held = depth > 0;
        let figures = if tree == Tree::Below && sapling.entry_counts() { &sapling.all } else { &sapling.own };
        let row = Row {
            who: sapling.who.clone(),
            figures: figures.clone().unwrap_or_else(Figures::unknown),
            classic: None,
            back: None,
        };
        let busy = if tree == Tree::Below { sapling.busy.1 } else { sapling.busy.0 };
        let own = lasts.get(1..).unwrap_or_default();
        let mut branch = own.to_vec();
        if held {
            branch.push(n + 1 == count);
        }
        out.push(Node {
            entry: sapling.entry,
            id: sapling.id.clone(),
            row,
            busy,
            lasts: branch,
            name: held.then(|| short(by, &sapling.who)).flatten(),
            wanted: sapling.wanted,
        });
        lasts.push(n + 1 == count);
        branches(all, sapling.children.clone(), how, lasts, out);
        lasts.pop();
    }
}

impl Sapling {
    /// Its figures are of this interval, or it has none of its own: else they stay those of its last one.
    fn entry_counts(&self) -> bool {
        !self.over || !self.children.is_empty()
    }
}

/// What a cgroup is called below another one: its container, or the end of its path.
fn short(by: By, who: &Who) -> Option<Foreign> {
    if by != By::Cgroup || who.container.is_some() {
        return None;
    }
    let path = who.cgroup.as_ref()?.raw();
    Some(path.rsplit('/').next()?.into())
}

/// The parents of processes, and those of their parents, as far as `/proc` tells.
#[must_use]
pub fn parents(pids: &[u32]) -> HashMap<u32, Parent> {
    let mut out = HashMap::new();
    let mut ahead = pids.to_vec();
    while let Some(pid) = ahead.pop() {
        if pid == 0 || out.contains_key(&pid) {
            continue;
        }
        let Ok(bytes) = std::fs::read(format!("/proc/{pid}/stat")) else { continue };
        if let Some(known) = parent(&bytes) {
            ahead.push(known.parent);
            out.insert(pid, known);
        }
    }
    out
}

/// From the text of `/proc/PID/stat`: a name may have anything in it, parentheses as well.
fn parent(stat: &[u8]) -> Option<Parent> {
    let begin = stat.iter().position(|b| *b == b'(')? + 1;
    let end = stat.iter().rposition(|b| *b == b')')?;
    let comm = stat.get(begin..end)?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let parent = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Parent { parent, comm: Foreign::from(comm) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn names_do_not_hide_parents() {
        let known = parent(b"7 (a) b (c)) S 4 7 7 0 -1").unwrap();
        assert_eq!((known.parent, known.comm.to_string().as_str()), (4, "a) b (c)"));
        assert_eq!(parent(b"7 (a"), None);
        let own = std::process::id();
        let known = parents(&[own]);
        assert_eq!(known[&own].parent, std::os::unix::process::parent_id());
        assert!(known.contains_key(&std::os::unix::process::parent_id()) || known[&own].parent == 0);
    }
}
