//! `cachestat -- COMMAND`: one command and its descendants, explained.
//!
//! The programs are attached before the command exists. It is forked from this process, which tells the kernel programs
//! which run it belongs to; whatever it forks belongs to the same run. Its own `execve` is counted as part of it.

mod accounts;
mod asleep;
pub mod assert;
pub mod certificate;
pub mod child;
mod cold;
pub mod compare;
pub mod data;
mod ending;
pub mod ends;
mod export;
pub mod findings;
mod gather;
pub mod groups;
pub mod html;
pub mod json;
mod larger;
pub mod machine;
pub mod options;
mod origins;
mod output;
pub mod predicted;
mod price;
mod processes;
mod progress;
pub mod pushed;
pub mod residency;
pub mod saved;
#[cfg(test)]
mod schema_test;
mod series;
pub mod stats;
pub mod text;
pub mod time;
pub mod trial;
pub mod units;
mod unseen;
mod usage;
pub mod verdict;
mod watch;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

pub use cold::Cold;
pub use options::Options;

use crate::exit::Code;
use crate::exit::Failure;
use crate::figures::Figure;
use crate::figures::Scope;
use crate::only::Only;
use crate::plan::Certainty;
use crate::plan::Event;
use crate::plan::Plan;
use crate::plan::Wants;
use crate::plan::follow;
use crate::privilege::Role;
use crate::sample::Source as _;
use crate::session::Session;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::text::numbers::Unit;
use crate::text::words;
use crate::wait::Process;
use assert::Outcome;
use compare::Difference;
use data::Run;
use findings::Finding;
use groups::Against;
use groups::Group;
use output::Outputs;
use trial::Trial;
use verdict::Verdict;
use watch::End;
use watch::Watch;

/// What a report of an earlier day said.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// Where it was kept.
    pub path: Foreign,
    /// Command, machine and time.
    pub about: String,
    /// Its last run.
    pub run: Run,
    /// All its runs, in groups.
    pub groups: Vec<Group>,
}

/// All that a report says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The command and its arguments; empty where a process was watched.
    pub command: Vec<Foreign>,
    /// The lines of shell that were compared, each with its letter; empty where there was one command.
    pub commands: Vec<(String, Foreign)>,
    /// The process that was watched.
    pub pid: Option<u32>,
    /// Kernel release.
    pub kernel: String,
    /// Name of the machine.
    pub host: Foreign,
    /// Whether sentences count pages, or what they hold.
    pub unit: Unit,
    /// What was done before and around the runs.
    pub about: Vec<String>,
    /// The runs of `--warmup`: known only so that what they did is not put down to anybody else.
    pub warmups: Vec<Run>,
    /// The runs, in order.
    pub runs: Vec<Run>,
    /// The runs that can be taken together.
    pub groups: Vec<Group>,
    /// How the groups compare.
    pub comparisons: Vec<Against>,
    /// What came of `--try`.
    pub trial: Option<trial::Outcome>,
    /// What the last run is compared with.
    pub compared: Option<Saved>,
    /// The answer, first.
    pub verdict: Verdict,
    /// What came of `--assert`.
    pub assertions: Vec<Outcome>,
    /// Where the differences in time went.
    pub differences: Vec<Difference>,
    /// What the figures prove.
    pub findings: Vec<Finding>,
    /// Which figures are not known here, and why.
    pub unknown: Vec<String>,
}

impl Report {
    /// What it is about, in one line.
    #[must_use]
    pub fn title(&self) -> String {
        match self.pid {
            Some(pid) => {
                let name = self.runs.first().and_then(|r| r.processes.get(&pid));
                format!("process {pid} {}", foreign::or(name, ""))
            }
            None if !self.commands.is_empty() => self
                .commands
                .iter()
                .map(|(label, line)| format!("{label}: {line}"))
                .collect::<Vec<_>>()
                .join(", "),
            None => self.command.iter().map(Foreign::to_string).collect::<Vec<_>>().join(" "),
        }
    }

    /// Draws the conclusions: differences and findings.
    pub fn conclude(&mut self) {
        for run in self.warmups.iter_mut().chain(&mut self.runs) {
            run.unit = self.unit;
            if let (Some(certificate), Some(cold), Some(left)) =
                (&mut run.certificate, &run.cold, &run.cold_left)
            {
                certificate.emptied(cold, left);
            }
        }
        let step =
            |a: &Run, b: &Run| Difference::between(format!("run {} to run {}", a.number, b.number), a, b);
        // Two settings are told apart, cold as both runs may have been.
        self.groups = if self.trial.is_some() { Vec::new() } else { groups::divide(&self.runs) };
        self.comparisons = groups::against(&self.groups);
        let matter = groups::matter(&self.groups);
        let whole: Vec<&Run> = self.runs.iter().filter(|r| !r.left_out).collect();
        self.differences = match whole.as_slice() {
            _ if matter => groups::differences(&self.groups),
            [first, .., last] => {
                let mut all = vec![step(first, whole[1])];
                // The first run is the cold one, if any is.
                if whole.len() > 2 {
                    all.push(step(first, last));
                }
                all
            }
            _ => Vec::new(),
        };
        let saved = self.compared.as_ref().map(|s| groups::same(&s.groups, &self.groups)).unwrap_or_default();
        let alike = |(then, now): &&(&Group, &Group)| then.mean.ended_as(&now.mean);
        for (then, now) in saved.iter().filter(alike) {
            let title =
                if saved.len() > 1 { format!("{}, then to now", now.id()) } else { "then to now".into() };
            self.differences.push(Difference::between(title, &then.mean, &now.mean));
        }
        self.findings = findings::find(&self.warmups, &self.runs);
        // Single runs are told as such.
        let (pair, then) = (saved.last(), self.compared.as_ref());
        let last = pair.filter(|(then, now)| then.runs.len() + now.runs.len() > 2).filter(alike);
        let then = then.filter(|then| whole.last().is_none_or(|now| then.run.ended_as(now)));
        self.verdict = match (last, then) {
            (Some(pair), _) => verdict::of_groups(&self.groups, Some(*pair), &self.findings),
            (None, None) if matter => verdict::of_groups(&self.groups, None, &self.findings),
            (None, saved) => verdict::verdict(&self.runs, saved.map(|s| &s.run), &self.findings),
        };
        let saved = self.compared.as_ref().map(|s| &s.run);
        let left = verdict::not_compared(&self.runs, &self.groups, saved);
        self.verdict.text.push_str(&left);
    }
}

/// `a / b`; 0 of nothing.
#[allow(clippy::cast_precision_loss)]
fn share(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// Runs and explains a command, or watches and explains a process. The exit code is that of the command.
///
/// # Errors
/// When nothing can be counted, the command cannot be started, or the report cannot be written.
pub fn explain(options: &Options) -> Result<ExitCode, Failure> {
    let compared = options.compare.as_deref().map(saved::saved).transpose()?;
    // A process that is not there, and a PID namespace in which nothing could be found.
    Process::open(options.watched.map_or_else(std::process::id, |(pid, _)| pid))?;
    let outputs = Outputs::open(options)?;
    let system = |what: &str, e: io::Error| Failure::failed(format!("cannot {what}: {e}"));
    // Before anything has threads: what puts the setting back is a process of its own.
    let trial = options.tried.filter(|_| !options.counting.explain).map(Trial::start).transpose();
    let trial = trial.map_err(|e| match e.kind() {
        io::ErrorKind::ResourceBusy => Failure::usage(e).remedy("wait until it has ended"),
        _ => system("start what puts the setting back", e),
    })?;
    let wants = Wants {
        latency: true,
        files: true,
        follow: true,
        around: true,
        buffers: true,
        blame: options.blame,
        bill: options.blame,
        tried: options.tried.is_some(),
        touches: options.what_if,
        ..Wants::default()
    };
    let mut session = Session::open(&options.counting.session(wants, Only::default()))
        .map_err(|e| Failure { remedy: e.remedy().map(String::from), ..Failure::failed(&e) })?;
    if options.counting.explain {
        let text = session.explain() + &role(options).explain();
        crate::text::output::print(&foreign::lines(&text), &mut io::stdout())?;
        return Ok(ExitCode::SUCCESS);
    }
    if !session.plan().uses(follow::FORK) {
        return Err(Failure::failed("this kernel does not tell which processes a command makes")
            .remedy("watch the whole system instead: cachestat 1"));
    }
    child::adopt().map_err(|e| system("adopt descendants", e))?;
    let signals = child::Signals::new().map_err(|e| system("take over signals", e))?;
    if crate::text::outfile::sudo_is_unclear() && !options.as_root && options.watched.is_none() {
        return Err(Failure::usage("SUDO_UID and SUDO_GID do not say whose the command is")
            .remedy("unset both, or run it as root by --as-root"));
    }
    let who = child::Identity::of_sudo().filter(|_| !options.as_root && options.watched.is_none());
    let mut report = Report {
        command: options.command.iter().map(|a| Foreign::from(a.as_os_str())).collect(),
        commands: ('A'..='Z')
            .map(String::from)
            .zip(options.compared.iter().map(|l| l.as_os_str().into()))
            .collect(),
        pid: options.watched.map(|(pid, _)| pid),
        kernel: read("/proc/sys/kernel/osrelease"),
        host: read("/proc/sys/kernel/hostname").into(),
        unknown: unknown(session.plan()),
        compared,
        unit: options.unit.unwrap_or_default(),
        ..Report::default()
    };
    if let Some(who) = &who {
        report.about.push(format!(
            "run as {}, who called sudo (--as-root runs it as root)",
            Foreign::from(who.name.as_str())
        ));
    }
    let paths = options.commands().iter().flat_map(|c| named(c)).take(NAMED).collect();
    let plan = session.plan();
    let comes = options
        .blame
        .then(|| pushed::Sees { comes: plan.sees(Event::PageBack), waits: plan.sees(Event::WaitOf) });
    let touches = options.what_if.then(|| session.attached().touches());
    let touches = touches.transpose().map_err(|e| Failure::failed(format!("cannot follow pages: {e}")))?;
    let mut watch = Watch::new(&mut session, &signals, Box::new(crate::names::System::new()))?;
    watch.comes = comes;
    (watch.who, watch.wait_all, watch.paths) = (who, options.wait_all, paths);
    watch.trial = trial;
    watch.larger = touches.map(larger::Larger::new);
    let cold = options.cold.or(options.cold_each);
    watch.emptied = options.prepare.is_some() || matches!(cold, Some(Cold::Slab | Cold::All));
    signals.discard(options.discard_output);
    role(options).take(&[])?;
    let runs = match options.watched {
        Some((pid, time)) => watch.process(pid, time).map(|run| {
            report.runs = vec![run];
            None
        }),
        None => series::all(options, &mut watch, &mut report),
    };
    report.about.extend(watch.early.map(String::from));
    if let Some(trial) = watch.trial.take() {
        let (outcome, left) = trial.finish(&report.runs);
        report.trial = outcome;
        report.about.extend(left);
    }
    let cut = match runs {
        Ok(cut) => cut,
        // What was run until then has been run: it is reported, and then what failed.
        Err(End::Failed(failure)) if !report.runs.is_empty() => {
            report.about.push(format!("not all runs were made: {}", foreign::line(&failure.message)));
            finish(&mut report, options, outputs)?;
            return Err(failure);
        }
        Err(End::Failed(failure)) => return Err(failure),
        Err(End::NotStarted(e)) if !report.runs.is_empty() => {
            report.about.push(format!("not all runs were made: {}", e.0));
            finish(&mut report, options, outputs)?;
            return Ok(output::not_started(&options.commands()[0], &e.0));
        }
        Err(End::NotStarted(e)) => return Ok(output::not_started(&options.commands()[0], &e.0)),
        Err(End::Asked(signal)) => {
            crate::text::output::say("cachestat: interrupted before the command was run");
            return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)));
        }
    };
    finish(&mut report, options, outputs)?;
    let own = if options.ignore_failure { 0 } else { status(&report.runs) };
    let failed = report.assertions.iter().any(|o| !o.holds);
    let own = if failed { Code::Assertion as i32 } else { own };
    let status = cut.map_or(own, |signal| 128 + signal);
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
}

/// What it does once everything is attached.
fn role(options: &Options) -> Role {
    let writes = Outputs::any(options);
    match options.watched {
        Some(_) => Role::Process { writes },
        None => Role::Command { cold: options.cold.or(options.cold_each).is_some(), writes },
    }
}

/// Draws the conclusions and writes the report.
fn finish(report: &mut Report, options: &Options, outputs: Outputs) -> Result<(), Failure> {
    report.unknown.extend(report.runs.last().and_then(unseen::note));
    report.about.extend(unasked(&report.runs));
    report.conclude();
    report.assertions = options.assertions.iter().map(|a| a.check(report)).collect();
    outputs.write(options, report)
}

/// The exit status of the last run; of several commands, that of the first whose last run failed.
fn status(runs: &[Run]) -> i32 {
    let Some(last) = runs.last() else { return 0 };
    let mut seen: Vec<&Option<String>> = Vec::new();
    let mut status = last.exit_status.unwrap_or(0);
    for run in runs.iter().rev() {
        if !seen.contains(&&run.label) {
            seen.push(&run.label);
            status = run.exit_status.filter(|s| *s != 0).unwrap_or(status);
        }
    }
    status
}

/// Of which files it is not known what is cached of them, and why.
fn unasked(runs: &[Run]) -> Vec<String> {
    let mut lines = Vec::new();
    for file in runs.iter().flat_map(|r| &r.files) {
        let Some(why) = &file.residency_unknown else { continue };
        let path = crate::text::foreign::or(file.path.as_ref(), "?");
        let line = format!("what is cached of {path} is not known: {why}");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let more = lines.len().saturating_sub(UNASKED);
    lines.truncate(UNASKED);
    if more > 0 {
        let others = words::many(more as u64, "other file", "other files");
        lines.push(format!("nor what is cached of {others}"));
    }
    lines
}

/// Files of which it is said that it is not known what is cached of them.
const UNASKED: usize = 3;

/// Files whose residency is requested before the first run.
const NAMED: usize = 32;

/// Arguments that name regular files: their residency is requested before the first run.
fn named(command: &[OsString]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for argument in command.iter().skip(1) {
        // dd and others write NAME=PATH; a line of shell has words.
        let Some(text) = argument.to_str() else { continue };
        let words = text.split_whitespace().map(|w| w.trim_matches(|c| "\"';<>&|()".contains(c)));
        for word in words.flat_map(|w| [Some(w), w.split_once('=').map(|(_, v)| v)]).flatten() {
            let path = Path::new(word);
            if !word.is_empty() && path.is_file() {
                paths.extend(std::fs::canonicalize(path).ok().filter(|p| !paths.contains(p)));
            }
            if paths.len() >= NAMED {
                return paths;
            }
        }
    }
    paths
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Which figures this kernel does not give of a command, and why.
fn unknown(plan: &Plan) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |why: String, name: String| match reasons.iter_mut().find(|(w, _)| *w == why) {
        Some((_, names)) => names.push(name),
        None => reasons.push((why, vec![name])),
    };
    for figure in Figure::ALL.iter().filter(|f| f.scope() != Scope::Cache) {
        if let Certainty::Unknown(why) = plan.certainty(*figure) {
            add(why, figure.name().into());
        }
    }
    if !follow::LOOKUP.iter().any(|p| plan.uses(p)) {
        add("needs hooks on functions, which this kernel refuses".into(), "lookups.dcache_misses".into());
    }
    if !plan.uses(follow::SWITCH) {
        add("the tracepoint sched_switch cannot be attached".into(), "waits".into());
    }
    reasons.into_iter().map(|(why, names)| format!("not known: {} ({why}).", names.join(", "))).collect()
}
