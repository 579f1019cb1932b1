//! What the command does from its beginning to its end: opens all that it needs, runs or watches, reports.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

use super::Report;
use super::Saved;
use super::child;
use super::child::Identity;
use super::child::Signals;
use super::cold::Cold;
use super::data::Run;
use super::larger::Larger;
use super::options::Options;
use super::output;
use super::output::Outputs;
use super::pushed::Sees;
use super::saved;
use super::series;
use super::trial::Trial;
use super::unseen;
use super::watch::End;
use super::watch::Watch;
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
use crate::text::words;
use crate::wait::Process;

/// Runs and explains a command, or watches and explains a process. The exit code is that of the command.
///
/// # Errors
/// When nothing can be counted, the command cannot be started, or the report cannot be written.
pub fn explain(options: &Options) -> Result<ExitCode, Failure> {
    let compared = options.compare.as_deref().map(saved::saved).transpose()?;
    // A process that is not there, and a PID namespace in which nothing could be found.
    Process::open(options.watched.map_or_else(std::process::id, |(pid, _)| pid))?;
    let outputs = Outputs::open(options)?;
    // Before anything has threads: what puts the setting back is a process of its own.
    let trial = trial(options)?;
    let mut session = session(options)?;
    if options.counting.explain {
        let text = session.explained(role(options), options.json);
        crate::text::output::print(&text, &mut io::stdout())?;
        return Ok(ExitCode::SUCCESS);
    }
    if !follow::FORKS.iter().any(|p| session.plan().uses(p)) {
        return Err(Failure::failed("this kernel does not tell which processes a command makes")
            .remedy("watch the whole system instead: cachestat 1"));
    }
    child::adopt().map_err(|e| cannot("adopt descendants", e))?;
    let signals = Signals::new().map_err(|e| cannot("take over signals", e))?;
    let who = who(options)?;
    let mut report = begun(options, session.plan(), who.as_ref(), compared);
    let mut watch = watch(options, &mut session, &signals, who)?;
    watch.trial = trial;
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
    match runs {
        Ok(cut) => {
            finish(&mut report, options, outputs)?;
            Ok(code(&report, options, cut))
        }
        Err(end) => cut_short(end, &mut report, options, outputs),
    }
}

fn cannot(what: &str, e: io::Error) -> Failure {
    Failure::failed(format!("cannot {what}: {e}"))
}

/// Where a setting of read-ahead is tried: what puts it back.
fn trial(options: &Options) -> Result<Option<Trial>, Failure> {
    let trial = options.tried.filter(|_| !options.counting.explain).map(Trial::start).transpose();
    trial.map_err(|e| match e.kind() {
        io::ErrorKind::ResourceBusy => Failure::usage(e).remedy("wait until it has ended"),
        _ => cannot("start what puts the setting back", e),
    })
}

/// Attaches all that is needed.
fn session(options: &Options) -> Result<Session, Failure> {
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
    Session::open(&options.counting.session(wants, Only::default()))
        .map_err(|e| Failure { remedy: e.remedy().map(String::from), ..Failure::failed(&e) })
}

/// Whose the command is, where that is not whoever runs us; `None`: it is.
fn who(options: &Options) -> Result<Option<Identity>, Failure> {
    if options.as_root || options.watched.is_some() {
        return Ok(None);
    }
    if crate::text::outfile::sudo_is_unclear() {
        return Err(Failure::usage("SUDO_UID and SUDO_GID do not say whose the command is")
            .remedy("unset both, or run it as root by --as-root"));
    }
    Ok(Identity::of_sudo())
}

/// The report before the first run.
fn begun(options: &Options, plan: &Plan, who: Option<&Identity>, compared: Option<Saved>) -> Report {
    let about = who.map(|who| {
        let name = Foreign::from(who.name.as_str());
        format!("run as {name}, who called sudo (--as-root runs it as root)")
    });
    Report {
        command: options.command.iter().map(|a| Foreign::from(a.as_os_str())).collect(),
        commands: ('A'..='Z')
            .map(String::from)
            .zip(options.compared.iter().map(|l| l.as_os_str().into()))
            .collect(),
        pid: options.watched.map(|(pid, _)| pid),
        kernel: read("/proc/sys/kernel/osrelease"),
        host: read("/proc/sys/kernel/hostname").into(),
        about: about.into_iter().collect(),
        unknown: unknown(plan),
        compared,
        unit: options.unit.unwrap_or_default(),
        ..Report::default()
    }
}

/// What runs or watches.
fn watch<'a>(
    options: &Options,
    session: &'a mut Session,
    signals: &'a Signals,
    who: Option<Identity>,
) -> Result<Watch<'a>, Failure> {
    let paths = options.commands().iter().flat_map(|c| named(c)).take(NAMED).collect();
    let plan = session.plan();
    let comes =
        options.blame.then(|| Sees { comes: plan.sees(Event::PageBack), waits: plan.sees(Event::WaitOf) });
    let touches = options.what_if.then(|| session.attached().touches());
    let touches = touches.transpose().map_err(|e| Failure::failed(format!("cannot follow pages: {e}")))?;
    let mut watch = Watch::new(session, signals, Box::new(crate::names::System::new()))?;
    (watch.who, watch.wait_all, watch.paths, watch.comes) = (who, options.wait_all, paths, comes);
    watch.larger = touches.map(Larger::new);
    let cold = options.cold.or(options.cold_each);
    watch.emptied = options.prepare.is_some() || matches!(cold, Some(Cold::Slab | Cold::All));
    Ok(watch)
}

/// Where not all runs were made: what was run until then has been run. It is reported, and then what failed.
fn cut_short(
    end: End,
    report: &mut Report,
    options: &Options,
    outputs: Outputs,
) -> Result<ExitCode, Failure> {
    let told = |why: &str| {
        if report.runs.is_empty() {
            return Ok(());
        }
        report.about.push(format!("not all runs were made: {why}"));
        finish(report, options, outputs)
    };
    match end {
        End::Failed(failure) => {
            told(&foreign::line(&failure.message))?;
            Err(failure)
        }
        End::NotStarted(e) => {
            told(&e.0.to_string())?;
            Ok(output::not_started(&options.commands()[0], &e.0))
        }
        End::Asked(signal) => {
            crate::text::output::say("cachestat: interrupted before the command was run");
            Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)))
        }
    }
}

/// The exit code: that of the command, unless it was told otherwise, `cut` by a signal, or something asserted does not hold.
fn code(report: &Report, options: &Options, cut: Option<i32>) -> ExitCode {
    let own = if options.ignore_failure { 0 } else { status(&report.runs) };
    let failed = report.assertions.iter().any(|o| !o.holds);
    let own = if failed { Code::Assertion as i32 } else { own };
    let status = cut.map_or(own, |signal| 128 + signal);
    ExitCode::from(u8::try_from(status).unwrap_or(1))
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
        let path = foreign::or(file.path.as_ref(), "?");
        let tense = if file.after.is_some() { "was" } else { "is" };
        let line = format!("what {tense} cached of {path} is not known: {why}");
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
    crate::procfs::text(path).unwrap_or_default().trim().to_owned()
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
    for (key, _, why) in follow::beside(plan) {
        why.into_iter().for_each(|why| add(why.into(), key.into()));
    }
    reasons.into_iter().map(|(why, names)| format!("not known: {} ({why}).", names.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::FileRow;

    #[test]
    fn files_of_which_nothing_is_known_are_named_up_to_a_few() {
        let file = |n: usize| FileRow {
            path: Some(format!("/f{n}").as_str().into()),
            residency_unknown: Some("it is on FUSE".into()),
            ..FileRow::default()
        };
        let of = |n: usize| unasked(&[Run { files: (0..n).map(file).collect(), ..Run::default() }]);
        assert_eq!(of(0), Vec::<String>::new());
        assert_eq!(of(1), ["what is cached of /f0 is not known: it is on FUSE"]);
        assert_eq!(of(UNASKED).len(), UNASKED);
        assert_eq!(of(UNASKED + 1)[UNASKED..], ["nor what is cached of 1 other file"]);
        assert_eq!(of(UNASKED + 2)[UNASKED..], ["nor what is cached of 2 other files"]);
    }

    #[test]
    fn the_status_is_that_of_the_first_command_whose_last_run_failed() {
        let run = |label: &str, status: i32| Run {
            label: Some(label.into()),
            exit_status: Some(status),
            ..Run::default()
        };
        assert_eq!(status(&[]), 0);
        assert_eq!(status(&[run("A", 3), run("A", 0)]), 0, "the last run counts");
        assert_eq!(status(&[run("A", 3), run("B", 4)]), 3);
        assert_eq!(status(&[run("A", 3), run("B", 4), run("A", 0), run("B", 4)]), 4);
    }
}
