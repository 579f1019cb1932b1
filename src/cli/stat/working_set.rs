//! What the command line has for `--working-set`.

use std::time::Duration;

use super::Args;
use super::conflict;
use super::read;
use crate::pivot::By;

/// How long it is watched until it is told, and how often it is; `None`: nobody asks.
///
/// # Errors
/// Which of the two is wrong.
pub(super) fn intervals(args: &Args) -> Result<Option<(Duration, u64)>, String> {
    let Some((time, count)) = args.working_set.as_deref().and_then(<[String]>::split_first) else {
        return Ok(None);
    };
    let wrong = |word: &str, why| format!("invalid value '{word}' for '--working-set TIME [COUNT]': {why}");
    let interval = read::time(time, "").map_err(|why| wrong(time, why))?;
    if let [_, more, ..] = count {
        return Err(format!(
            "unexpected word '{more}' behind '--working-set {time} {}': it takes a TIME and a COUNT",
            count[0]
        ));
    }
    let count = count.first().map_or(Ok(1), |n| read::count(n).map_err(|why| wrong(n, why)))?;
    Ok(Some((interval, count)))
}

/// What does not go together with it.
///
/// # Errors
/// The message for whoever requested it.
pub(super) fn check(args: &Args) -> Result<(), String> {
    intervals(args)?;
    if args.common.how.classic() {
        return conflict("'--working-set' needs to know which pages are used: take '--engine exact'");
    }
    if args.by.is_some_and(|by| !matches!(by, By::Process | By::Cgroup | By::File)) {
        return conflict("'--working-set' knows processes, cgroups and files: take one of these for '--by'");
    }
    if args.recordings.record.is_some() || args.recordings.replay.is_some() {
        return conflict("'--working-set' tells of now: it cannot be used with '--record' or '--replay'");
    }
    Ok(())
}
