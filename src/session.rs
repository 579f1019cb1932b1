//! A monitoring session: facts, plan, programs in the kernel, samples.

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context as _;

use crate::blame::Raw;
use crate::exit::Failure;
use crate::explanation::Answered;
use crate::explanation::Explanation;
use crate::facts::Facts;
use crate::facts::SWITCH_ON;
use crate::facts::SWITCHED_OFF;
use crate::kernel;
use crate::kernel::AttachError;
use crate::kernel::Attached;
use crate::kernel::Tracefs;
use crate::only::Only;
use crate::plan;
use crate::plan::Brackets;
use crate::plan::Event;
use crate::plan::NoPlan;
use crate::plan::Plan;
use crate::plan::Wants;
use crate::privilege::Role;
use crate::readahead::Request;
use crate::room;
use crate::room::Table;
use crate::sample::Counter;
use crate::sample::Follow;
use crate::sample::Gathered;
use crate::sample::Gone;
use crate::sample::Known;
use crate::sample::Moment;
use crate::sample::Sample;
use crate::sample::Source;
use crate::text::foreign;

/// What a person can set.
#[derive(Debug, Clone)]
pub struct Options {
    /// Count the monitor's own process, too. Default: no.
    pub include_self: bool,
    /// Rows in the table, one for each thread that does something. Default: 16384. Totals do not depend on it.
    pub table: u32,
    /// Rows in the table of files, one for each file that a process uses; made only where files are wanted.
    /// Default: 16384.
    pub files: u32,
    /// What to find out beyond the counts. Default: nothing; each costs something at every read.
    pub wants: Wants,
    /// What is requested: what others do makes no rows. Default: everything.
    pub only: Only,
    /// Behave as if the kernel refused to attach to functions, as some do. For tests.
    pub without_functions: bool,
    /// Behave as if the kernel had no kprobes. For tests.
    pub without_kprobes: bool,
    /// Programs to be taken as refused by the kernel when they are about to be attached. For tests.
    pub refuse: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            include_self: false,
            table: 16384,
            files: 16384,
            wants: Wants::default(),
            only: Only::default(),
            without_functions: false,
            without_kprobes: false,
            refuse: Vec::new(),
        }
    }
}

impl Options {
    /// Asks the kernel, but for what a test takes away.
    pub(crate) fn facts(&self) -> Result<(Facts, Option<Tracefs>), StartError> {
        let (mut facts, tracefs) = kernel::facts()?;
        let taken = || Err("taken away for a test".into());
        if self.without_functions {
            facts.trampoline = taken();
        }
        if self.without_functions || self.without_kprobes {
            facts.kprobe_multi = taken();
            facts.kprobe_session = taken();
        }
        Ok((facts, tracefs))
    }

    /// What is wanted, and what it takes to find that out.
    fn all_wants(&self) -> Wants {
        Wants { group: !self.only.cgroups.is_empty(), ..self.wants }
    }

    pub(crate) fn settings(&self) -> kernel::Settings {
        kernel::Settings {
            include_self: self.include_self,
            rows: self.table.max(1),
            files: self.files.max(1),
            wants: self.wants,
            only: self.only.clone(),
        }
    }
}

/// Why a session could not start.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}")]
pub struct StartError {
    what: String,
    remedy: Option<String>,
    /// Something was short: no other engine would do better.
    pub(crate) short: bool,
}

impl StartError {
    /// What a person can do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }
}

impl From<StartError> for Failure {
    fn from(e: StartError) -> Self {
        Self { remedy: e.remedy, ..Self::failed(e.what) }
    }
}

impl From<kernel::Obstacle> for StartError {
    fn from(e: kernel::Obstacle) -> Self {
        Self { what: e.what, remedy: Some(e.remedy), short: false }
    }
}

impl From<NoPlan> for StartError {
    fn from(e: NoPlan) -> Self {
        Self { what: e.reason, remedy: Some(e.remedy), short: false }
    }
}

impl From<AttachError> for StartError {
    fn from(e: AttachError) -> Self {
        if let Some(short) = e.shortage() {
            let AttachError::Refused { program, .. } = &e else {
                return kernel::Obstacle::from(short).into();
            };
            return Self {
                what: format!("{program} cannot be attached: {short}"),
                remedy: Some(short.remedy().into()),
                short: true,
            };
        }
        Self { what: e.to_string(), remedy: remedy_of(&e), short: false }
    }
}

/// Programs attached to the running kernel.
pub struct Session {
    facts: Facts,
    plan: Plan,
    known: Arc<Known>,
    attached: Attached,
    tried: Option<kernel::Tried>,
    /// Rows are made of those who take pages out: each sample has them.
    evictors: bool,
    /// What was read since the last sample.
    gathered: Gathered,
    /// When the tables were read last.
    read: Instant,
    /// What the kernel had counted of refaults when this began, where its own count is taken.
    refaulted: u64,
}

/// How often the tables are read in intervals that are longer: a row is free for the next thread only then. A machine on which
/// 16 000 threads begin in that time is a fork bomb.
const RELIEF: Duration = Duration::from_secs(1);
/// How often it is asked whether rows of files have to be read sooner. A process uses several files, and a row takes
/// three readings until it is free (src/kernel/files/back.rs).
const LOOK: Duration = Duration::from_millis(250);
/// So many rows are kept until the end of an interval, or twice as many as the tables have room for. Not fewer where
/// somebody asks for small tables: these are read as often as it takes.
const KEPT: usize = 2 * 16_384;

impl Session {
    /// Asks the kernel, makes a plan, loads and attaches it. A hook that refuses makes a new plan.
    ///
    /// # Errors
    /// When no plan can be made or attached; with the remedy where there is one.
    pub fn open(options: &Options) -> Result<Self, StartError> {
        let (facts, tracefs) = options.facts()?;
        Self::with(facts, tracefs.as_ref(), options)
    }

    /// The same, where the kernel was asked already.
    pub(crate) fn with(
        mut facts: Facts,
        tracefs: Option<&Tracefs>,
        options: &Options,
    ) -> Result<Self, StartError> {
        let settings = options.settings();
        loop {
            let plan = Plan::new(&facts, options.all_wants()).map_err(StartError::from)?;
            let attached = match plan.hooks.iter().find(|h| options.refuse.iter().any(|p| p == h.program)) {
                Some(hook) => {
                    let why = "taken away for a test".into();
                    Err(AttachError::Refused { program: hook.program.into(), why })
                }
                None => Attached::new(&plan, &facts, tracefs, &settings),
            };
            match attached {
                Ok(attached) => {
                    let known = Arc::new(Known::by(&plan));
                    let ring = plan.sees(Event::RequestMade).then(|| attached.tried()).transpose();
                    let tried = ring.map_err(|e| StartError {
                        what: format!("cannot open the ring of read requests: {e}"),
                        remedy: None,
                        short: false,
                    })?;
                    let evictors = options.wants.blame && !options.wants.bill;
                    let kept = |rows: u32| KEPT.max(2 * rows as usize);
                    let gathered = Gathered::new(kept(settings.rows), kept(settings.files));
                    let read = Instant::now();
                    // What cannot be read now is an error of the first sample.
                    let refaulted = crate::memory::refaults().unwrap_or(0);
                    return Ok(Self {
                        facts,
                        plan,
                        known,
                        attached,
                        tried,
                        evictors,
                        gathered,
                        read,
                        refaulted,
                    });
                }
                // Each refusal takes a program away, so this ends.
                // What fails for want of something would fail elsewhere, too, and proves nothing.
                Err(e) if e.shortage().is_some() => {
                    return Err(StartError { short: true, ..StartError::from(e) });
                }
                Err(AttachError::Refused { program, why }) if !facts.refuses(&program) => {
                    log::info!("{program} refused to attach ({why}); making another plan");
                    facts.refused.push((program, why));
                }
                Err(e) => return Err(StartError::from(e)),
            }
        }
    }

    /// What is attached: the ring of touches is read there.
    pub const fn attached(&mut self) -> &mut Attached {
        &mut self.attached
    }

    /// The tables: for how much they have room, and their memory.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        self.attached.tables()
    }

    /// Who took pages out of the cache since attach; nothing unless it was requested ([`Wants::blame`]). Without the names of
    /// the files, which are read once, when it is told ([`Session::named`]): they take as long as all the rest.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn blame(&mut self) -> anyhow::Result<Raw> {
        self.attached.blame().context("cannot read who took pages out")
    }

    /// The same with the names of the files that are in it.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn named(&mut self, mut raw: Raw) -> anyhow::Result<Raw> {
        raw.details.files = self.attached.blamed_files().context("cannot read the names of files")?;
        Ok(raw)
    }

    /// The plan and its reasons in words.
    pub(crate) fn explain_plan(&self) -> String {
        self.plan.explain(&self.facts)
    }

    /// The same as a value, and what the kernel answered.
    pub(crate) fn told(&self) -> Answered<plan::Told> {
        (self.plan.told(&self.facts), (&self.facts).into())
    }

    /// What `--explain` prints: the plan, the tables as they are now, and what is kept of privileges.
    #[must_use]
    pub fn explained(&mut self, role: Role, json: bool) -> String {
        let mut tables = self.tables();
        self.attached.count(&mut tables, true);
        if json {
            return Explanation::new(self.plan.engine, Some(self.told()), None, &tables, role).json();
        }
        foreign::lines(&(self.explain_plan() + &room::explained(&tables) + &role.explain())).into_owned()
    }
}

fn remedy_of(e: &AttachError) -> Option<String> {
    match e {
        // ENOTSUPP, which user space has no name for.
        AttachError::Load(why) if why.contains("error 524") => {
            Some("BPF programs are not compiled here, which hooks on functions take: sysctl net.core.bpf_jit_enable=1".into())
        }
        AttachError::Load(_) => {
            Some("run with RUST_LOG=debug to see the verifier's words, and report it with `--explain`".into())
        }
        AttachError::Refused { .. } => None,
    }
}

impl Follow for Session {
    fn follow(&mut self, run: u32) {
        self.attached.follow(run);
    }

    fn spawning(&mut self, run: u32) {
        self.attached.spawning(run);
    }

    fn enter(&mut self, tgid: u32, run: u32) -> anyhow::Result<()> {
        self.attached.enter(tgid, run).context("cannot follow the process")
    }

    fn leave(&self, tgid: u32) -> anyhow::Result<bool> {
        self.attached.leave(tgid).context("cannot leave the process alone")
    }

    fn run_of(&self, tgid: u32) -> anyhow::Result<Option<u32>> {
        self.attached.run_of(tgid).context("cannot read which processes are followed")
    }

    fn members(&self, run: u32) -> anyhow::Result<Vec<u32>> {
        self.attached.members(run).context("cannot read which processes are followed")
    }

    fn gone(&self) -> anyhow::Result<Gone> {
        self.attached.gone().context("cannot read what processes used")
    }

    fn blame(&mut self) -> anyhow::Result<Raw> {
        Self::blame(self)
    }

    fn named(&mut self, raw: Raw) -> anyhow::Result<Raw> {
        Self::named(self, raw)
    }

    fn requests(&mut self) -> anyhow::Result<(Vec<Request>, u64)> {
        let Some(tried) = &mut self.tried else { return Ok((Vec::new(), 0)) };
        let all = tried.read().context("cannot read which requests were made")?;
        Ok((all, self.attached.tried_lost()))
    }

    fn choose(&mut self, part: f64) {
        self.attached.choose(part);
    }

    fn touches_lost(&mut self) -> (u64, u64) {
        self.attached.touches_lost()
    }
}

impl Source for Session {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        // Hooks stay where they are, and are not called: counts would stand still, without a loss.
        if self.plan.brackets != Brackets::Tracepoints && !kernel::functions_are_traced() {
            anyhow::bail!("{SWITCHED_OFF} since we began; switch it on: {SWITCH_ON}");
        }
        let mut tables = self.attached.read().context("cannot read the counters")?;
        self.read = Instant::now();
        self.gathered.take(&mut tables.rows, &mut tables.files);
        self.gathered.tell(&mut tables.total, &mut tables.lost);
        let memory = crate::memory::read().context("cannot read /proc/meminfo")?;
        let (mut total, mut by_file) = (tables.total, tables.by_file);
        if self.plan.brackets == Brackets::Tracepoints {
            // No function can be hooked: the kernel's own count.
            let refaults = crate::memory::refaults().context("cannot read /proc/vmstat")?;
            for line in [Some(&mut total), by_file.as_mut()].into_iter().flatten() {
                line.0[Counter::Refaulted as usize] = refaults.saturating_sub(self.refaulted);
            }
        }
        Ok(Sample {
            at: Moment::now(),
            time: jiff::Timestamp::now(),
            known: Arc::clone(&self.known),
            total,
            by_file,
            rows: tables.rows,
            files: tables.files,
            folded: crate::sample::FoldedRows::default(),
            latency: tables.latency,
            lost: tables.lost,
            memory,
            classic: None,
            evictors: self.evictors.then(|| self.blame().map(Arc::new)).transpose()?,
            followed: self.attached.take_followed(),
        })
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn relief(&self) -> Option<Duration> {
        Some(if self.attached.has_files() { LOOK } else { RELIEF })
    }

    fn relieve(&mut self) -> anyhow::Result<()> {
        if self.attached.has_files() && self.read.elapsed() + LOOK / 2 < RELIEF && !self.attached.pressed() {
            return Ok(());
        }
        self.read = Instant::now();
        let tables = self.attached.read().context("cannot read the counters")?;
        self.gathered.add(tables.rows, tables.files);
        Ok(())
    }
}
