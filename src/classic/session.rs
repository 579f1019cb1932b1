//! The classic engine on the running kernel: means, plan, programs, samples.

use super::counts::Sample;
use super::explain;
use super::plan::Hook;
use super::plan::How;
use super::plan::Means;
use super::plan::Plan;
use crate::explanation::Answered;
use crate::facts::SWITCH_ON;
use crate::facts::SWITCHED_OFF;
use crate::kernel;
use crate::kernel::AttachError;
use crate::kernel::ClassicAttached;
use crate::kernel::Tracefs;
use crate::room::Table;
use crate::sample::Lost;
use crate::session::StartError;

/// The classic programs attached to the running kernel.
pub struct Classic {
    means: Means,
    plan: Plan,
    attached: ClassicAttached,
}

impl Classic {
    /// Makes a plan, loads and attaches it. A hook that refuses makes a new plan.
    ///
    /// # Errors
    /// When none of the four counts can be had, or nothing loads.
    pub fn open(
        mut means: Means,
        tracefs: Option<&Tracefs>,
        settings: kernel::Settings,
    ) -> Result<Self, StartError> {
        kernel::traced()?;
        loop {
            let plan = Plan::new(&means).map_err(StartError::from)?;
            let (program, why) = match ClassicAttached::new(&plan, tracefs, &settings) {
                Ok(attached) => return Ok(Self { means, plan, attached }),
                Err(e) if e.shortage().is_some() => return Err(StartError::from(e)),
                Err(AttachError::Refused { program, why }) => (program, why),
                Err(e @ AttachError::Load(_)) => return Err(StartError::from(e)),
            };
            let target = plan.hooks.iter().find(|h| h.program == program).map_or("", |h| h.target);
            // Each refusal takes a hook away, so this ends.
            if target.is_empty() || means.refuses(&program, target) {
                return Err(StartError::from(AttachError::Refused { program, why }));
            }
            log::info!("{program} refused to attach to {target} ({why}); making another plan");
            means.refused.push((program, target.to_owned(), why));
        }
    }

    /// The plan in force.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The plan and its reasons in words.
    #[must_use]
    pub fn explain(&self) -> String {
        explain::explain(&self.plan, &self.means)
    }

    /// The plan as a value, and what the kernel answered.
    #[must_use]
    pub fn told(&self) -> Answered<explain::Told> {
        (explain::told(&self.plan, &self.means), (&self.means.facts).into())
    }

    /// What the kernel was asked, and said.
    #[must_use]
    pub const fn means(&self) -> &Means {
        &self.means
    }

    /// The tables: for how much they have room, and their memory.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        self.attached.tables()
    }

    /// Counts what of them is in use; by a walk through them, where that is asked for.
    pub fn count(&self, tables: &mut [Table], walk: bool) {
        self.attached.count(tables, walk);
    }

    /// Reads everything once.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn sample(&mut self) -> anyhow::Result<(Sample, Lost)> {
        let by_function = |h: &Hook| matches!(h.how, How::Multi | How::Kprobe | How::Fentry);
        if self.plan.hooks.iter().any(by_function) && !kernel::functions_are_traced() {
            anyhow::bail!("{SWITCHED_OFF} since we began; switch it on: {SWITCH_ON}");
        }
        let (total, processes, lost) = self.attached.read()?;
        Ok((Sample { known: self.plan.known(), total, processes }, lost))
    }
}
