//! A monitoring session: facts, plan, programs in the kernel, samples.

use std::time::Instant;

use anyhow::Context as _;

use crate::facts::Facts;
use crate::kernel;
use crate::kernel::AttachError;
use crate::kernel::Attached;
use crate::plan::Plan;
use crate::sample::Sample;
use crate::sample::Source;

/// What a person can set.
#[derive(Debug, Clone)]
pub struct Options {
    /// Count the monitor's own process, too. Default: no.
    pub include_self: bool,
    /// Rows in the process table. Default: 8192. Totals do not depend on it.
    pub process_table: u32,
    /// Behave as if the kernel refused to attach to functions, as some do. For tests.
    pub without_functions: bool,
    /// Programs to be taken as refused by the kernel when they are about to be attached. For tests.
    pub refuse: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { include_self: false, process_table: 8192, without_functions: false, refuse: Vec::new() }
    }
}

/// Why a session could not start.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct StartError {
    what: String,
    remedy: Option<String>,
}

impl StartError {
    /// What a person can do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }
}

impl From<kernel::Obstacle> for StartError {
    fn from(e: kernel::Obstacle) -> Self {
        Self { what: e.what, remedy: Some(e.remedy) }
    }
}

/// Programs attached to the running kernel.
pub struct Session {
    facts: Facts,
    plan: Plan,
    attached: Attached,
}

impl Session {
    /// Asks the kernel, makes a plan, loads and attaches it. A hook that refuses makes a new plan.
    ///
    /// # Errors
    /// When no plan can be made or attached; with the remedy where there is one.
    pub fn open(options: &Options) -> Result<Self, StartError> {
        let (mut facts, tracefs) = kernel::facts()?;
        if options.without_functions {
            facts.trampoline = Err("taken away for a test".into());
            facts.kprobe_multi = Err("taken away for a test".into());
        }
        let settings =
            kernel::Settings { include_self: options.include_self, processes: options.process_table.max(1) };
        loop {
            let plan = Plan::new(&facts)
                .map_err(|e| StartError { what: e.reason.clone(), remedy: Some(e.remedy) })?;
            let attached = match plan.hooks.iter().find(|h| options.refuse.iter().any(|p| p == h.program)) {
                Some(hook) => {
                    let why = "taken away for a test".into();
                    Err(AttachError::Refused { program: hook.program.into(), why })
                }
                None => Attached::new(&plan, &facts, tracefs.as_ref(), settings),
            };
            match attached {
                Ok(attached) => return Ok(Self { facts, plan, attached }),
                // Each refusal takes a program away, so this ends.
                Err(AttachError::Refused { program, why }) if !facts.refuses(&program) => {
                    log::info!("{program} refused to attach ({why}); making another plan");
                    facts.refused.push((program, why));
                }
                Err(e) => return Err(StartError { what: e.to_string(), remedy: remedy_of(&e) }),
            }
        }
    }

    /// The plan and its reasons in words.
    #[must_use]
    pub fn explain(&self) -> String {
        self.plan.explain(&self.facts)
    }
}

fn remedy_of(e: &AttachError) -> Option<String> {
    match e {
        AttachError::Load(_) => {
            Some("run with RUST_LOG=debug to see the verifier's words, and report it with `--explain`".into())
        }
        AttachError::Refused { .. } => None,
    }
}

impl Source for Session {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        let tables = self.attached.read().context("cannot read the counters")?;
        let memory = crate::memory::read().context("cannot read /proc/meminfo")?;
        Ok(Sample {
            at: Instant::now(),
            time: jiff::Timestamp::now(),
            total: tables.total,
            processes: tables.processes,
            lost: tables.lost,
            memory,
        })
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }
}
