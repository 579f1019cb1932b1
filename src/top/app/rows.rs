//! Which rows there are, and what is in one.

use super::App;
use crate::live::keeper::Id;
use crate::live::snapshot::Entry;
use crate::live::snapshot::State;
use crate::model::Row;
use crate::options::OneOf as _;
use crate::pivot::By;
use crate::plan::Engine;
use crate::top::table::Slot;

impl App {
    /// Rows that the screen holds.
    #[must_use]
    pub fn page(&self) -> usize {
        usize::from(self.zones().rows.height).max(1)
    }

    /// The id of a row.
    #[must_use]
    pub fn id(&self, slot: Slot) -> Option<&Id> {
        match slot {
            Slot::Node(i) => self.tree.nodes.get(i).map(|node| &node.id),
            slot => self.entry(slot).map(Entry::id),
        }
    }

    /// What is in a row, without its figures.
    #[must_use]
    pub fn entry(&self, slot: Slot) -> Option<&Entry> {
        let snapshot = self.snapshot.as_ref()?;
        match slot {
            Slot::Entry(i) => snapshot.entries.get(i),
            Slot::Thread(i, _) => snapshot.threads.get(i),
            Slot::Node(i) => snapshot.entries.get(self.tree.nodes.get(i)?.entry?),
        }
    }

    /// The row and what became of it.
    #[must_use]
    pub fn row(&self, slot: Slot) -> Option<(Row, State)> {
        let snapshot = self.snapshot.as_ref()?;
        match slot {
            Slot::Entry(i) => snapshot.entries.get(i).map(|e| (self.holding(snapshot.row(e)), e.state)),
            Slot::Thread(i, _) => snapshot.threads.get(i).map(|e| (snapshot.thread(e), e.state)),
            Slot::Node(i) => {
                let row = self.tree.nodes.get(i)?.row.clone();
                Some((self.holding(row), self.entry(slot).map_or(State::Idle, |e| e.state)))
            }
        }
    }

    /// The same of what it did itself, also where a tree shows it with those below.
    #[must_use]
    pub fn own_row(&self, slot: Slot) -> Option<Row> {
        match slot {
            Slot::Node(_) => Some(self.snapshot.as_ref()?.row(self.entry(slot)?)),
            slot => self.row(slot).map(|(row, _)| row),
        }
    }

    /// Kinds of rows that can be shown.
    #[must_use]
    pub fn pivots(&self) -> Vec<By> {
        let one = self.scene.engine != Engine::Exact;
        let can = |by: &By| match by {
            By::Process => true,
            _ if one => false,
            By::Thread => !self.scene.by_file,
            By::Evictor => self.scene.evictors,
            by => self.scene.files || !by.files(),
        };
        By::ALL.iter().copied().filter(can).collect()
    }
}
