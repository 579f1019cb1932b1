//! What others ask of what is kept.

use super::Keeper;
use crate::live::past::Past;
use crate::live::whole::Whole;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::plan::Plan;
use crate::text::foreign::Foreign;

impl Keeper<'_> {
    /// Totals are those of the last interval: what came before it is in none any more.
    pub fn begin_totals(&mut self) {
        let mut whole = Whole::new(self.live.before(), &self.filter);
        whole.add(self.live.now(), &self.filter, self.pivot.names.as_mut(), &self.alive);
        self.whole = Some(whole);
    }

    /// The command line of a process, as whatever names things tells it.
    pub fn command_line(&mut self, pid: u32) -> Option<Foreign> {
        self.pivot.names.command_line(pid)
    }

    pub(crate) fn parts(&mut self) -> Option<(&mut Pivot, &Whole, Plan)> {
        let plan = self.live.plan().clone();
        let whole = self.held.as_ref().filter(|h| !h.past).map_or(&self.whole, |h| &h.whole);
        Some((&mut self.pivot, whole.as_ref()?, plan))
    }

    /// What is kept of the past, and what gives it names.
    pub(crate) fn past(&mut self) -> Option<(&Past, &mut Pivot, Plan)> {
        let plan = self.live.plan().clone();
        Some((self.past.as_ref()?, &mut self.pivot, plan))
    }

    pub(crate) const fn files_counted(&self) -> bool {
        self.files
    }

    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }
}
