//! What cgroups on the screen hold of the cache: asked once an interval for each of them, and for no others.

use std::collections::HashMap;
use std::collections::HashSet;

use super::App;
use crate::cgroup::Held;
use crate::model::Row;
use crate::pivot::By;

/// What is known of those on the screen.
#[derive(Debug, Default)]
pub struct HeldNow {
    known: HashMap<String, Held>,
    /// The interval for which these were asked for.
    asked: (u64, HashSet<String>),
}

impl App {
    /// Cgroups that are to be seen and were not asked in this interval.
    pub fn asks_held(&mut self) -> Vec<String> {
        let wanted = self.by() == By::Cgroup && self.layout().columns.iter().any(|(c, _)| c.of_cgroups());
        // Of the past nobody can tell.
        let now = self.scene.replay.is_none() && self.back.is_none();
        let Some(number) = self.snapshot.as_ref().filter(|_| wanted && now).map(|s| s.number) else {
            return Vec::new();
        };
        let rows = self.slots.iter().skip(self.offset).take(usize::from(self.size.1));
        let path = |row: Row| row.who.cgroup.map(|path| path.raw().into_owned());
        let seen: HashSet<String> = rows.filter_map(|slot| path(self.row(*slot)?.0)).collect();
        if self.held.asked.0 != number {
            self.held.asked = (number, HashSet::new());
            self.held.known.retain(|path, _| seen.contains(path));
        }
        let asked = &mut self.held.asked.1;
        seen.into_iter().filter(|path| asked.insert(path.clone())).collect()
    }

    /// Takes what was asked for. Returns whether anything on the screen changes.
    pub fn held(&mut self, new: Vec<(String, Held)>) -> bool {
        let mut changed = false;
        for (path, held) in new {
            changed |= self.held.known.insert(path, held) != Some(held);
        }
        changed
    }

    /// The same row with what is known of its cgroup.
    pub(super) fn holding(&self, mut row: Row) -> Row {
        if self.by() == By::Cgroup && self.back.is_none() {
            let path = row.who.cgroup.as_ref().map(|path| path.raw());
            row.who.held = path.and_then(|path| self.held.known.get(&*path).copied());
        }
        row
    }
}
