//! `cachestat -- COMMAND`: one command and its descendants, explained.
//!
//! The programs are attached before the command exists. It is forked from this process, which tells the kernel programs
//! which run it belongs to; whatever it forks belongs to the same run. Its own `execve` is counted as part of it.

mod accounts;
pub mod assert;
pub mod certificate;
pub mod child;
mod cold;
pub mod compare;
pub mod data;
pub mod findings;
mod gather;
pub mod html;
pub mod json;
pub mod options;
mod origins;
mod output;
mod processes;
pub mod residency;
pub mod saved;
#[cfg(test)]
mod schema_test;
pub mod text;
pub mod time;
pub mod units;
mod unseen;
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
use crate::options::OneOf as _;
use crate::plan::Certainty;
use crate::plan::Plan;
use crate::plan::Wants;
use crate::plan::follow;
use crate::sample::Source as _;
use crate::session::Session;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::wait::Process;
use assert::Outcome;
use compare::Difference;
use data::Run;
use findings::Finding;
use output::Outputs;
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
}

/// All that a report says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The command and its arguments; empty where a process was watched.
    pub command: Vec<Foreign>,
    /// The process that was watched.
    pub pid: Option<u32>,
    /// Kernel release.
    pub kernel: String,
    /// Name of the machine.
    pub host: Foreign,
    /// What was done before and around the runs.
    pub about: Vec<String>,
    /// The runs of `--warmup`: known only so that what they did is not put down to anybody else.
    pub warmups: Vec<Run>,
    /// The runs, in order.
    pub runs: Vec<Run>,
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
            None => self.command.iter().map(Foreign::to_string).collect::<Vec<_>>().join(" "),
        }
    }

    /// Draws the conclusions: differences and findings.
    pub fn conclude(&mut self) {
        self.runs.iter_mut().for_each(certificate::settle);
        let step =
            |a: &Run, b: &Run| Difference::between(format!("run {} to run {}", a.number, b.number), a, b);
        self.differences = match self.runs.as_slice() {
            [first, .., last] => {
                let mut all = vec![step(first, &self.runs[1])];
                // The first run is the cold one, if any is.
                if self.runs.len() > 2 {
                    all.push(step(first, last));
                }
                all
            }
            _ => Vec::new(),
        };
        if let (Some(saved), Some(last)) = (&self.compared, self.runs.last()) {
            self.differences.push(Difference::between("then to now".into(), &saved.run, last));
        }
        self.findings = findings::of(&self.warmups, &self.runs);
        self.verdict =
            verdict::verdict(&self.runs, self.compared.as_ref().map(|saved| &saved.run), &self.findings);
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
    let wants = Wants { latency: true, files: true, follow: true, around: true, group: false };
    let mut session = Session::open(&options.counting.session(wants, Only::default()))
        .map_err(|e| Failure { remedy: e.remedy().map(String::from), ..Failure::failed(&e) })?;
    if options.counting.explain {
        crate::text::output::print(&foreign::lines(&session.explain()), &mut io::stdout())?;
        return Ok(ExitCode::SUCCESS);
    }
    if !session.plan().uses(follow::FORK) {
        return Err(Failure::failed("this kernel does not tell which processes a command makes")
            .remedy("watch the whole system instead: cachestat 1"));
    }
    child::adopt().map_err(|e| system("adopt descendants", e))?;
    let signals = child::Signals::new().map_err(|e| system("take over signals", e))?;
    let who = child::Identity::of_sudo().filter(|_| !options.as_root && !options.command.is_empty());
    let mut report = Report {
        command: options.command.iter().map(|a| Foreign::from(a.as_os_str())).collect(),
        pid: options.watched.map(|(pid, _)| pid),
        kernel: read("/proc/sys/kernel/osrelease"),
        host: read("/proc/sys/kernel/hostname").into(),
        unknown: unknown(session.plan()),
        compared,
        ..Report::default()
    };
    if let Some(who) = &who {
        report.about.push(format!(
            "run as {}, who called sudo (--as-root runs it as root)",
            Foreign::from(who.name.as_str())
        ));
    }
    let paths = named(&options.command);
    let mut watch = Watch::new(&mut session, &signals, Box::new(crate::names::System::new()))?;
    (watch.who, watch.wait_all, watch.paths) = (who, options.wait_all, paths);
    watch.emptied = options.prepare.is_some() || matches!(options.cold, Some(Cold::Slab | Cold::All));
    let runs = match options.watched {
        Some((pid, time)) => watch.process(pid, time).map(|run| {
            report.runs = vec![run];
            None
        }),
        None => all(options, &mut watch, &mut report),
    };
    let cut = match runs {
        Ok(cut) => cut,
        Err(End::Failed(failure)) => return Err(failure),
        Err(End::NotStarted(e)) => return Ok(output::not_started(&options.command, &e.0)),
        Err(End::Asked(signal)) => {
            eprintln!("cachestat: interrupted before the command was run");
            return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)));
        }
    };
    report.unknown.extend(report.runs.last().and_then(unseen::note));
    report.about.extend(unasked(&report.runs));
    report.conclude();
    report.assertions = options.assertions.iter().map(|a| a.check(&report)).collect();
    outputs.write(options, &report)?;
    let own = report.runs.last().and_then(|r| r.exit_status).unwrap_or(0);
    let failed = report.assertions.iter().any(|o| !o.holds);
    let own = if failed { Code::Assertion as i32 } else { own };
    let status = cut.map_or(own, |signal| 128 + signal);
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
}

/// All runs of the command, with what comes before them: the signal that cut the series short, if one did.
fn all(options: &Options, watch: &mut Watch<'_>, report: &mut Report) -> Result<Option<i32>, End> {
    let (about, runs) = (&mut report.about, &mut report.runs);
    for number in 1..=options.warmup {
        prepare(options, watch)?;
        // A run like any other, whose figures nobody sees.
        let run = watch.command(&options.command, u32::MAX - number)?;
        let status = run.signal;
        report.warmups.push(Run { warmup: true, ..run });
        if let Some(signal) = stopped(status, watch)? {
            about.push("interrupted while it was run to warm up".into());
            return Ok(Some(signal));
        }
    }
    match options.warmup {
        0 => {}
        1 => about.push("run once before, without counting (--warmup)".into()),
        n => about.push(format!("run {n} times before, without counting (--warmup)")),
    }
    let mut cut = None;
    for number in 1..=options.repeat {
        prepare(options, watch)?;
        let cold = options.cold.filter(|_| number == 1);
        let mut left = None;
        if let Some(cold) = cold {
            let emptied = cold.empty().map_err(|e| End::Failed(cannot_empty(&e)))?;
            about.push(format!(
                "before run 1, {} of the whole machine {} emptied (--cold); {}",
                cold.about(),
                if cold == Cold::Pagecache { "was" } else { "were" },
                emptied.about()
            ));
            left = Some(emptied);
        }
        let mut run = match watch.command(&options.command, number) {
            Err(End::Asked(signal)) if !runs.is_empty() => {
                about.push(format!("interrupted before run {number} of {}", options.repeat));
                cut = Some(signal);
                break;
            }
            run => run?,
        };
        run.cold = cold.map(|c| c.name().to_owned());
        run.prepare.clone_from(&options.prepare);
        run.cold_left = left;
        let status = run.signal;
        runs.push(run);
        // Interrupted: whoever did that wants no more of it.
        if number < options.repeat {
            cut = stopped(status, watch)?;
        }
        if cut.is_some() {
            about.push(format!("interrupted after run {number} of {}", options.repeat));
            break;
        }
    }
    if watch.unasked > 0 {
        about.push(format!(
            "what was cached before is not known of files whose names were not cached ({} times): asking would have \
             brought names and inodes back",
            watch.unasked
        ));
    }
    if options.prepare.is_some() {
        about.push("the line of --prepare was run before each run, without counting".into());
    }
    Ok(cut)
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
        lines.push(format!("nor what is cached of {more} other files"));
    }
    lines
}

/// Files of which it is said that it is not known what is cached of them.
const UNASKED: usize = 3;

/// The signal by which somebody requested an end, be it that the command died of it.
fn stopped(signal: Option<i32>, watch: &Watch<'_>) -> Result<Option<i32>, End> {
    // A command that ends with 143 of its own accord has not been interrupted.
    let died = signal.filter(|s| matches!(*s, libc::SIGINT | libc::SIGQUIT | libc::SIGTERM));
    Ok(died.or(watch.processes.asked()?))
}

fn cannot_empty(error: &io::Error) -> Failure {
    let failure = Failure::failed(format!("cannot empty the caches: {error}"));
    let remedy = match error.raw_os_error() {
        Some(libc::EROFS) => {
            "/proc/sys is read-only here, as in a container: run it on the host, or in a container with '--privileged'; \
             or empty them on the host ('sysctl vm.drop_caches=3') and leave '--cold' out"
        }
        Some(libc::EACCES | libc::EPERM) => {
            "only root of the host may write to /proc/sys/vm/drop_caches: not with less privilege, nor in a user \
             namespace; or leave '--cold' out"
        }
        Some(libc::ENOENT) => {
            "/proc/sys/vm/drop_caches is not there: mount /proc ('mount -t proc proc /proc'), or leave '--cold' out"
        }
        _ => return failure.remedy("leave '--cold' out"),
    };
    failure.remedy(remedy)
}

fn prepare(options: &Options, watch: &mut Watch<'_>) -> Result<(), End> {
    let Some(line) = &options.prepare else { return Ok(()) };
    let command = [OsString::from("sh"), OsString::from("-c"), OsString::from(line)];
    let status = watch.aside(&command)?;
    if status == 0 {
        return Ok(());
    }
    let failure = Failure::failed(format!("the line of --prepare ended with status {status}: {line}"));
    Err(End::Failed(failure.remedy("make it succeed, or let it end with '; true'")))
}

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
            if paths.len() >= 32 {
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
