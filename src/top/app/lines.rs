//! Command lines: whose are wanted, and what comes back.

use super::App;
use crate::live::snapshot::Entry;
use crate::pivot::By;
use crate::text::foreign::Foreign;
use crate::top::table::Slot;

impl App {
    /// Takes the command line of a process.
    pub fn command_line(&mut self, pid: u32, line: Option<Foreign>) {
        self.argv.found(pid, line.clone());
        if let Some(open) = self.open.as_mut().filter(|o| o.who.pid == Some(pid)) {
            // A process that has ended keeps the one that it had.
            if line.is_some() || open.command_line.is_none() {
                open.command_line = Some(line);
            }
        }
    }

    /// Takes command lines that were asked for. Returns whether anything on the screen may change.
    pub fn command_lines(&mut self, lines: Vec<(u32, Option<Foreign>)>) -> bool {
        let any = lines.iter().any(|(_, line)| line.is_some());
        lines.into_iter().for_each(|(pid, line)| self.argv.found(pid, line));
        if any && !self.filter.is_empty() {
            self.arrange();
        }
        any
    }

    /// Processes whose command lines are to be seen and are not known: those on the screen, or, as a filter looks at
    /// them, all.
    pub fn asks(&mut self) -> Vec<u32> {
        /// So many at once.
        const MOST: usize = 512;
        let Some(snapshot) = self.snapshot.as_ref().filter(|s| s.view.by == By::Process) else {
            return Vec::new();
        };
        let lives = |e: &&Entry| !e.state.is_over() && e.ended.is_none();
        let argv = &mut self.argv;
        if self.filter.is_empty() {
            let seen = self.slots.iter().skip(self.offset).take(usize::from(self.size.1));
            let nodes = &self.tree.nodes;
            let entry = |slot: &Slot| match slot {
                Slot::Entry(i) => snapshot.entries.get(*i),
                Slot::Node(i) => snapshot.entries.get(nodes.get(*i)?.entry?),
                Slot::Thread(..) => None,
            };
            return seen.filter_map(entry).filter(lives).filter_map(|e| argv.asks(&e.named.who)).collect();
        }
        snapshot.entries.iter().filter(lives).filter_map(|e| argv.asks(&e.named.who)).take(MOST).collect()
    }
}
