//! Rows that hang together.

use std::collections::HashMap;

use super::App;
use super::Effect;
use crate::live::snapshot::Entry;
use crate::pivot::By;
use crate::plan::Engine;
use crate::top::table::Slot;
use crate::top::tree;
use crate::top::tree::Node;
use crate::top::tree::Parent;
use crate::top::tree::Tree;

/// The tree on the screen.
#[derive(Debug, Clone, Default)]
pub struct Grown {
    /// How rows hang together.
    pub how: Tree,
    /// The rows, in order.
    pub nodes: Vec<Node>,
    parents: HashMap<u32, Parent>,
    /// The interval for which parents were asked for.
    asked: Option<u64>,
}

impl App {
    /// How the rows on the screen hang together.
    #[must_use]
    pub fn hangs(&self) -> Tree {
        let threads = self.snapshot.as_ref().is_some_and(|s| !s.threads.is_empty());
        if Tree::suits(self.by()) && !threads { self.tree.how } else { Tree::Flat }
    }

    /// The next way to hang rows together.
    pub(super) fn next_tree(&mut self) -> Vec<Effect> {
        // What was asked for last, though its rows may not be there yet.
        if !Tree::suits(self.settings.by) {
            self.say("cgroups (5) and processes (1) can be shown as a tree");
            return Vec::new();
        }
        if self.by() == By::Process && self.scene.replay.is_some() {
            self.say("the parents of processes were not recorded");
            return Vec::new();
        }
        if self.scene.engine != Engine::Exact {
            self.say("the classic engine has no trees");
            return Vec::new();
        }
        self.tree.how = self.tree.how.next();
        self.say(match self.tree.how {
            Tree::Flat => "no tree",
            Tree::Own => "a tree: each row has what it did itself",
            Tree::Below => "a tree: each row has what it and all below it did",
        });
        let mut out = Vec::new();
        if self.settings.threads {
            self.settings.threads = false;
            out.push(Effect::View(self.view()));
        }
        out.extend(self.begin_anew());
        out
    }

    /// Hangs the rows together, if that is wanted.
    pub(super) fn hang(&mut self) {
        let how = self.hangs();
        let Some(snapshot) = self.snapshot.as_ref().filter(|_| how != Tree::Flat) else {
            self.tree.nodes.clear();
            return;
        };
        let entry = |slot: &Slot| if let Slot::Entry(i) = slot { Some(*i) } else { None };
        let entries: Vec<usize> = self.slots.iter().filter_map(entry).collect();
        let order = (how, self.settings.sort, self.settings.reverse);
        self.tree.nodes = tree::grow(snapshot, &entries, &self.tree.parents, order);
        self.slots = (0..self.tree.nodes.len()).map(Slot::Node).collect();
    }

    /// Processes whose parents are not known: asked once for each interval.
    pub fn asks_parents(&mut self) -> Vec<u32> {
        let wanted = self.hangs() != Tree::Flat && self.by() == By::Process;
        let Some(snapshot) = self.snapshot.as_ref().filter(|_| wanted && self.scene.replay.is_none()) else {
            return Vec::new();
        };
        // Of the past nobody can tell: those of now are not asked for it.
        if self.back.is_some() || self.tree.asked == Some(snapshot.number) {
            return Vec::new();
        }
        self.tree.asked = Some(snapshot.number);
        let lives = |e: &&Entry| !e.state.is_over() && e.ended.is_none();
        snapshot.entries.iter().filter(lives).filter_map(|e| e.named.who.pid).collect()
    }

    /// Takes parents. Those of processes that have ended meanwhile, and still have a row, stay.
    pub fn parents(&mut self, mut new: HashMap<u32, Parent>) -> bool {
        let old = std::mem::take(&mut self.tree.parents);
        if let Some(snapshot) = &self.snapshot {
            for pid in snapshot.entries.iter().filter_map(|e| e.named.who.pid) {
                if let (Some(known), false) = (old.get(&pid), new.contains_key(&pid)) {
                    new.insert(pid, known.clone());
                }
            }
        }
        let changed = old != new;
        self.tree.parents = new;
        if changed {
            self.arrange();
        }
        changed
    }
}
