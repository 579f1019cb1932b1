//! All runs of a report, in their order, with what comes before, between and after them.

use std::ffi::OsString;
use std::io;

use super::Report;
use super::cold::Cold;
use super::cold::Left;
use super::data::Run;
use super::options::Options;
use super::progress::Progress;
use super::watch::End;
use super::watch::Watch;
use crate::exit::Failure;

/// A run that is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// Which command, from 0 on.
    pub(super) command: usize,
    /// What is emptied before it.
    pub(super) cold: Option<Cold>,
}

/// The runs in their order. Commands take turns, so that what changes on the machine meanwhile touches all of them alike.
pub(super) fn turns(options: &Options) -> Vec<Turn> {
    let mut turns = Vec::new();
    for round in 0..options.repeat {
        for command in 0..options.commands().len() {
            let cold = options.cold_each.or(options.cold.filter(|_| round == 0));
            turns.push(Turn { command, cold });
            turns.extend((0..options.warm_runs).map(|_| Turn { command, cold: None }));
        }
    }
    turns
}

/// All runs, with what comes before and after the series: the signal that cut it short, if one did.
pub(super) fn all(options: &Options, watch: &mut Watch<'_>, report: &mut Report) -> Result<Option<i32>, End> {
    aside(options.setup.as_deref(), "--setup", watch)?;
    let progress = Progress::new(turns(options).len() > 1 || options.warmup > 0);
    let done = series(options, watch, report, &progress);
    progress.clear();
    if matches!(done, Err(End::NotStarted(_))) {
        return done;
    }
    // Whatever became of the runs, what they have left behind is to be cleaned up.
    let cleaned = aside(options.cleanup.as_deref(), "--cleanup", watch);
    match (done, cleaned) {
        (Ok(cut), Err(End::Asked(signal))) => Ok(cut.or(Some(signal))),
        (Ok(_), Err(end)) => Err(end),
        (done, _) => done,
    }
}

fn series(
    options: &Options,
    watch: &mut Watch<'_>,
    report: &mut Report,
    progress: &Progress,
) -> Result<Option<i32>, End> {
    let commands = options.commands();
    if let Some(signal) = warm_up(options, &commands, watch, report, progress)? {
        return Ok(Some(signal));
    }
    let mut emptied = None;
    let done = counted(options, &commands, watch, report, progress, &mut emptied);
    report.about.extend(emptied.map(|(number, left)| about_cold(options, number, &left)));
    report.about.extend(about(options, watch, &report.runs));
    done
}

/// The runs that count. `emptied`: before which run most stayed in the cache, and how much.
fn counted(
    options: &Options,
    commands: &[Vec<OsString>],
    watch: &mut Watch<'_>,
    report: &mut Report,
    progress: &Progress,
    emptied: &mut Option<(u32, Left)>,
) -> Result<Option<i32>, End> {
    let turns = turns(options);
    let many = turns.len();
    let mut statuses: Vec<Option<Option<i32>>> = vec![None; commands.len()];
    for (number, turn) in (1_u32..).zip(&turns) {
        let label = report.commands.get(turn.command).map(|c| c.0.clone());
        let which = label.as_ref().map_or_else(String::new, |l| format!(" ({l})"));
        let say = |what: &str| progress.show(&format!("run {number} of {many}{which}: {what}"));
        if let (2, Some(trial), [first, ..]) = (number, &mut watch.trial, report.runs.as_slice()) {
            trial.set(first).map_err(End::Failed)?;
        }
        let run = one(options, &commands[turn.command], (number, *turn), watch, progress, &say);
        let mut run = match run {
            Err(End::Asked(signal)) if !report.runs.is_empty() => {
                report.about.push(format!("interrupted before run {number} of {many}"));
                return Ok(Some(signal));
            }
            run => run?,
        };
        run.label = label;
        match run.cold_left {
            Some(left) if emptied.is_none_or(|(_, most)| left.file_bytes > most.file_bytes) => {
                *emptied = Some((number, left));
            }
            _ => {}
        }
        let (died, status) = (run.signal, run.exit_status);
        let first = *statuses[turn.command].get_or_insert(status);
        let last = usize::try_from(number).is_ok_and(|n| n == many);
        // Interrupted: whoever did that wants no more of it.
        let interrupted = stopped(died, watch)?;
        let mut asked = interrupted.filter(|_| !last);
        let otherwise = status != first;
        (run.interrupted, run.any_end) = (interrupted.is_some(), options.ignore_failure);
        run.left_out = number > 1 && (run.interrupted || otherwise && !options.ignore_failure);
        report.runs.push(run);
        if asked.is_none() {
            match aside(options.conclude.as_deref(), "--conclude", watch) {
                Err(End::Asked(signal)) => asked = Some(signal),
                done => done?,
            }
        }
        if asked.is_some() {
            report.about.push(format!("interrupted after run {number} of {many}"));
            return Ok(asked);
        }
        if otherwise && !options.ignore_failure {
            report.about.push(ended_otherwise(number, many, status, first));
            break;
        }
    }
    Ok(None)
}

/// One of them, with what comes before it.
fn one(
    options: &Options,
    command: &[OsString],
    (number, turn): (u32, Turn),
    watch: &mut Watch<'_>,
    progress: &Progress,
    say: &dyn Fn(&str),
) -> Result<Run, End> {
    if options.prepare.is_some() {
        between_lines(options, progress, || say("preparing"));
        aside(options.prepare.as_deref(), "--prepare", watch)?;
    }
    let mut left = None;
    if let Some(cold) = turn.cold {
        say("emptying caches");
        left = Some(cold.empty().map_err(|e| End::Failed(cannot_empty(&e)))?);
    }
    between_lines(options, progress, || say("running"));
    let mut run = watch.command(command, number)?;
    run.cold = turn.cold.map(|c| crate::options::OneOf::name(c).to_owned());
    run.cold_each = options.cold_each.is_some();
    run.prepare.clone_from(&options.prepare);
    run.cold_left = left;
    Ok(run)
}

/// The runs of `--warmup`.
fn warm_up(
    options: &Options,
    commands: &[Vec<OsString>],
    watch: &mut Watch<'_>,
    report: &mut Report,
    progress: &Progress,
) -> Result<Option<i32>, End> {
    let mut number = u32::MAX;
    for round in 1..=options.warmup {
        for command in commands {
            number -= 1;
            between_lines(options, progress, || {
                progress.show(&format!("warm-up run {round} of {}", options.warmup));
            });
            aside(options.prepare.as_deref(), "--prepare", watch)?;
            // A run like any other, whose figures nobody sees.
            let run = watch.command(command, number)?;
            let status = run.signal;
            report.warmups.push(Run { warmup: true, ..run });
            if let Some(signal) = stopped(status, watch)? {
                report.about.push("interrupted while it was run to warm up".into());
                return Ok(Some(signal));
            }
            aside(options.conclude.as_deref(), "--conclude", watch)?;
        }
    }
    match options.warmup {
        0 => {}
        1 => report.about.push("run once before, without counting (--warmup)".into()),
        n => report.about.push(format!("run {n} times before, without counting (--warmup)")),
    }
    Ok(None)
}

/// Shows the line where it may stay while others write.
fn between_lines(options: &Options, progress: &Progress, show: impl FnOnce()) {
    if options.discard_output {
        show();
    } else {
        progress.clear();
    }
}

fn about_cold(options: &Options, number: u32, left: &Left) -> String {
    let (cold, when, option) = match (options.cold_each, options.cold) {
        (Some(cold), _) if options.tried.is_some() => (cold, "before each run".to_owned(), "--try"),
        (Some(cold), _) => (cold, "before each cold run".to_owned(), "--cold-each"),
        (_, Some(cold)) => (cold, "before run 1".to_owned(), "--cold"),
        (None, None) => return String::new(),
    };
    let most = if options.cold_each.is_some() {
        format!("most stayed before run {number}: ")
    } else {
        String::new()
    };
    format!(
        "{when}, {} of the whole machine {} emptied ({option}); {most}{}",
        cold.about(),
        if cold == Cold::Pagecache { "was" } else { "were" },
        left.about(options.unit.unwrap_or_default())
    )
}

fn about(options: &Options, watch: &Watch<'_>, runs: &[Run]) -> Vec<String> {
    let mut about = Vec::new();
    if watch.unasked > 0 {
        about.push(format!(
            "what was cached before is not known of {} whose names were not cached: asking would have brought names and \
             inodes back",
            match watch.unasked {
                1 => "one file".to_owned(),
                n => format!("{n} files"),
            }
        ));
    }
    if options.prepare.is_some() {
        about.push("the line of --prepare was run before each run, without counting".into());
    }
    let compared = !options.compared.is_empty();
    if compared && options.warmup == 0 && options.cold_each.is_none() {
        about.push(
            "no caches were emptied and no run warmed them up: the first runs may have been colder than the rest \
             (--warmup 1 or --cold-each all)"
                .into(),
        );
    }
    // A mean over runs that failed is the mean of something else than it seems.
    let failed = |r: &&Run| r.exit_status.is_some_and(|s| s != 0) && r.signal.is_none();
    let n = runs.iter().filter(failed).count();
    if n > 0 && runs.len() > 1 && options.ignore_failure {
        about.push(format!(
            "{n} of {} runs ended with an exit status other than 0 (--ignore-failure)",
            runs.len()
        ));
    }
    about
}

fn ended_otherwise(number: u32, many: usize, status: Option<i32>, first: Option<i32>) -> String {
    let text = |s: Option<i32>| s.map_or_else(|| "?".into(), |s| s.to_string());
    let rest = if usize::try_from(number).is_ok_and(|n| n < many) { "; no more were made" } else { "" };
    format!(
        "run {number} of {many} ended with exit status {}, the first with {}: it belongs to no mean{rest} \
         (--ignore-failure goes on)",
        text(status),
        text(first)
    )
}

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

/// Runs a line of shell that does not count; it must succeed.
fn aside(line: Option<&str>, option: &str, watch: &mut Watch<'_>) -> Result<(), End> {
    let Some(line) = line else { return Ok(()) };
    let command = [OsString::from("sh"), OsString::from("-c"), OsString::from(line)];
    let status = watch.aside(&command)?;
    if status == 0 {
        return Ok(());
    }
    // It died of what was meant for all of it.
    if let Some(signal) = watch.processes.asked()? {
        return Err(End::Asked(signal));
    }
    let failure = Failure::failed(format!("the line of {option} ended with status {status}: {line}"));
    Err(End::Failed(failure.remedy("make it succeed, or let it end with '; true'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(options: &Options) -> String {
        let one = |t: &Turn| {
            let letter = char::from(b'A' + u8::try_from(t.command).unwrap_or(0));
            if t.cold.is_some() { letter } else { letter.to_ascii_lowercase() }
        };
        turns(options).iter().map(one).collect()
    }

    /// Capital letters are cold runs.
    #[test]
    fn runs_take_turns() {
        let one = Options { command: vec!["x".into()], repeat: 3, ..Options::default() };
        let two = Options { command: vec![], compared: vec!["x".into(), "y".into()], ..one.clone() };
        let cold = Some(Cold::All);
        assert_eq!(order(&one), "aaa");
        assert_eq!(order(&Options { cold, ..one.clone() }), "Aaa");
        assert_eq!(order(&Options { cold_each: cold, ..one.clone() }), "AAA");
        assert_eq!(order(&Options { cold_each: cold, warm_runs: 2, ..one }), "AaaAaaAaa");
        assert_eq!(order(&two), "ababab");
        assert_eq!(order(&Options { cold_each: cold, ..two.clone() }), "ABABAB");
        assert_eq!(order(&Options { cold_each: cold, warm_runs: 1, ..two }), "AaBbAaBbAaBb");
    }
}
