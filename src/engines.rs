//! One engine or both, behind one source of samples.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use crate::classic;
use crate::classic::Classic;
use crate::classic::Means;
use crate::explanation::Explanation;
use crate::kernel;
use crate::kernel::Attached;
use crate::limits::Shortage;
use crate::plan;
use crate::plan::Engine;
use crate::plan::Event;
use crate::plan::Plan;
use crate::privilege::Role;
use crate::room;
use crate::room::Kind;
use crate::room::Table;
use crate::sample::Counters;
use crate::sample::Known;
use crate::sample::Lost;
use crate::sample::Moment;
use crate::sample::Sample;
use crate::sample::Source;
use crate::session::Options;
use crate::session::Session;
use crate::session::StartError;
use crate::text::foreign;

/// The engines that count, as `--engine` chose them.
pub struct Engines {
    exact: Option<Session>,
    classic: Option<Classic>,
    /// What the exact figures are worth.
    plan: Plan,
    known: Arc<Known>,
    notice: Option<String>,
}

impl Engines {
    /// Opens what was requested; without a choice the exact engine, or the classic one where that cannot run.
    ///
    /// # Errors
    /// When an engine that was requested cannot run, or none can.
    pub fn open(options: &Options, choice: Option<Engine>) -> Result<Self, StartError> {
        let (facts, tracefs) = options.facts()?;
        let tracefs = tracefs.as_ref();
        let classic = || {
            let kprobe = if options.without_functions || options.without_kprobes {
                Err("taken away for a test".into())
            } else {
                kernel::try_kprobe(&facts)
            };
            if let Some(short) = kprobe.as_ref().err().and_then(|why| Shortage::in_words(why)) {
                return Err(kernel::Obstacle::from(short).into());
            }
            let means = Means { facts: facts.clone(), kprobe, refused: Vec::new() };
            Classic::open(means, tracefs, options.settings())
        };
        let exact = || Session::with(facts.clone(), tracefs, options);
        match choice {
            Some(Engine::Exact) => Ok(Self::exact(exact()?)),
            Some(Engine::Classic) => Ok(Self::classic(classic()?, None)),
            Some(Engine::Both) => {
                let (session, classic) = (exact()?, classic()?);
                let plan = Plan { engine: Engine::Both, ..session.plan().clone() };
                Ok(Self::new(Some(session), Some(classic), plan, None))
            }
            None => exact().map(Self::exact).or_else(|refusal| {
                if refusal.short {
                    return Err(refusal);
                }
                log::info!("the exact engine cannot run: {refusal}");
                // If not even that can run, why the better one cannot is what a person wants to know.
                let classic = classic().map_err(|_| StartError::clone(&refusal))?;
                Ok(Self::classic(classic, Some(notice(&refusal))))
            }),
        }
    }

    fn new(exact: Option<Session>, classic: Option<Classic>, plan: Plan, notice: Option<String>) -> Self {
        let known = Arc::new(Known::by(&plan));
        Self { exact, classic, plan, known, notice }
    }

    fn exact(session: Session) -> Self {
        let plan = session.plan().clone();
        Self::new(Some(session), None, plan, None)
    }

    fn classic(classic: Classic, notice: Option<String>) -> Self {
        Self::new(None, Some(classic), Plan::none(Engine::Classic), notice)
    }

    /// What counts in the end.
    #[must_use]
    pub const fn engine(&self) -> Engine {
        self.plan.engine
    }

    /// What the exact engine has attached, where it runs: sketches are read there.
    pub(crate) fn attached(&mut self) -> Option<&mut Attached> {
        self.exact.as_mut().map(Session::attached)
    }

    /// Whether the exact engine sees an event.
    pub(crate) fn sees(&self, event: Event) -> bool {
        self.plan.sees(event)
    }

    /// The plan of the classic engine, where it runs.
    #[must_use]
    pub fn classic_plan(&self) -> Option<&classic::Plan> {
        self.classic.as_ref().map(Classic::plan)
    }

    /// What a person must know: that another engine counts than the one expected.
    #[must_use]
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// The tables of all that counts: for how much they have room, and their memory. To be asked before privileges are
    /// given up.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        let exact = self.exact.as_ref().map_or_else(Vec::new, Session::tables);
        let mut classic = self.classic.as_ref().map_or_else(Vec::new, Classic::tables);
        // What it loses has another name then, too.
        for table in classic.iter_mut().filter(|t| t.kind == Kind::Processes && self.exact.is_some()) {
            table.kind = Kind::BothProcesses;
        }
        room::joined(exact, classic)
    }

    /// Counts what of them is in use now; where that takes a walk through a table, only if that is asked for.
    pub fn count(&mut self, tables: &mut [Table], walk: bool) {
        if let Some(exact) = &mut self.exact {
            exact.attached().count(tables, walk);
        }
        if let Some(classic) = &self.classic {
            classic.count(tables, walk);
        }
    }

    /// The plans and their reasons, and the tables as they are now; `role`: what is kept of privileges.
    #[must_use]
    pub fn explanation(&mut self, role: Role) -> Explanation {
        let mut tables = self.tables();
        self.count(&mut tables, true);
        let exact = self.exact.as_ref().map(Session::told);
        let classic = self.classic.as_ref().map(Classic::told);
        Explanation::new(self.engine(), exact, classic, &tables, role)
    }

    /// What `--explain` prints.
    #[must_use]
    pub fn explained(&mut self, role: Role, json: bool) -> String {
        if json { self.explanation(role).json() } else { foreign::lines(&self.explain(role)).into_owned() }
    }

    /// The same in words.
    fn explain(&mut self, role: Role) -> String {
        let mut tables = self.tables();
        self.count(&mut tables, true);
        let plans = match (&self.exact, &self.classic) {
            (Some(exact), None) => exact.explain_plan(),
            (Some(exact), Some(classic)) => {
                format!("{}\n{}\n{}", exact.explain_plan(), classic.explain(), classic::differences())
            }
            (None, Some(classic)) => {
                format!("{}\n{}", plan::explain_kernel(&classic.means().facts), classic.explain())
            }
            (None, None) => String::new(),
        };
        plans + &room::explained(&tables) + &role.explain()
    }
}

/// Why the figures are not those that the documentation promises.
fn notice(refusal: &StartError) -> String {
    format!(
        "the exact engine cannot run here ({refusal}); the classic one counts instead, whose HITS and MISSES are \
         differences of event counts ('--engine classic --explain' tells more)"
    )
}

impl Source for Engines {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        let both = self.exact.is_some();
        let mut sample = match &mut self.exact {
            Some(session) => session.sample()?,
            None => Sample {
                at: Moment::now(),
                time: jiff::Timestamp::now(),
                known: Arc::clone(&self.known),
                total: Counters::default(),
                by_file: None,
                rows: Vec::new(),
                files: Vec::new(),
                folded: crate::sample::FoldedRows::default(),
                latency: None,
                lost: Lost::default(),
                memory: crate::memory::read().context("cannot read /proc/meminfo")?,
                classic: None,
                evictors: None,
                followed: None,
            },
        };
        sample.known = Arc::clone(&self.known);
        if let Some(classic) = &mut self.classic {
            let (counts, lost) = classic.sample().context("cannot read the counters")?;
            sample.classic = Some(counts);
            sample.lost.by_reason.extend(lost.by_reason.into_iter().map(|(why, n)| match &*why {
                "processes_full" if both => ("classic_processes_full".into(), n),
                "recursion" if both => ("classic_recursion".into(), n),
                _ => (why, n),
            }));
        }
        Ok(sample)
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn relief(&self) -> Option<Duration> {
        self.exact.as_ref().and_then(Source::relief)
    }

    fn relieve(&mut self) -> anyhow::Result<()> {
        self.exact.as_mut().map_or(Ok(()), Source::relieve)
    }
}
