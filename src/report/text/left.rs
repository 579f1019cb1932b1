//! Processes that outlived their run, or that nobody waited for: notes on any run, not the last one alone.

use super::groups::few;
use crate::report::data::Run;
use crate::report::units::count;

/// `run 2`, `runs 1, 2`.
fn named(runs: &[&Run]) -> String {
    let s = if runs.len() == 1 { "" } else { "s" };
    format!("run{s} {}", few(runs, |r| r.number.to_string()))
}

/// Descendants that went on.
pub(super) fn behind(runs: &[Run]) -> Option<String> {
    let of: Vec<&Run> = runs.iter().filter(|r| !r.left_behind.is_empty()).collect();
    let pids: Vec<u32> = of.iter().flat_map(|r| &r.left_behind).copied().collect();
    let (who, them) = match pids.len() {
        0 => return None,
        1 => ("1 descendant".to_owned(), "it"),
        n => (format!("{} descendants", count(n as u64)), "them"),
    };
    let ended = match runs.len() {
        1 => "the command had ended".to_owned(),
        _ => format!("{} had ended", named(&of)),
    };
    let pids = few(&pids, u32::to_string);
    Some(format!("{who} still ran when {ended} (process {pids}); --wait-all waits for {them}."))
}

/// Processes whose accounts nobody took over.
pub(super) fn unwaited(runs: &[Run]) -> Option<String> {
    let of: Vec<&Run> = runs.iter().filter(|r| r.unwaited).collect();
    let whose = match (of.len(), runs.len()) {
        (0, _) => return None,
        (_, 1) => "its processes".to_owned(),
        _ => format!("the processes of {}", named(&of)),
    };
    Some(format!(
        "Some of {whose} were waited for by nobody (a parent that ignores SIGCHLD does so): of processor time, faults and bytes \
         of devices it is at least so much."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u32, left: &[u32], unwaited: bool) -> Run {
        Run { number, left_behind: left.to_vec(), unwaited, ..Run::default() }
    }

    #[test]
    fn of_one_run_it_needs_no_number() {
        let one = [run(1, &[7], true)];
        let told = behind(&one).unwrap_or_default();
        assert_eq!(
            told,
            "1 descendant still ran when the command had ended (process 7); --wait-all waits for it."
        );
        assert!(unwaited(&one).is_some_and(|t| t.starts_with("Some of its processes were waited for")));
        assert_eq!((behind(&[run(1, &[], false)]), unwaited(&[run(1, &[], false)])), (None, None));
    }

    #[test]
    fn earlier_runs_are_told_of_as_well() {
        let first = [run(1, &[7, 8], true), run(2, &[], false)];
        assert_eq!(
            behind(&first).unwrap_or_default(),
            "2 descendants still ran when run 1 had ended (process 7, 8); --wait-all waits for them."
        );
        assert!(unwaited(&first).is_some_and(|t| t.starts_with("Some of the processes of run 1 were")));
        let all: Vec<Run> = (1..8).map(|n| run(n, &[n + 10], true)).collect();
        assert_eq!(
            behind(&all).unwrap_or_default(),
            "7 descendants still ran when runs 1, 2, 3, 4, 5 and 2 more had ended (process 11, 12, 13, 14, 15 and 2 more); \
             --wait-all waits for them."
        );
        assert!(unwaited(&all).is_some_and(|t| t.contains("of runs 1, 2, 3, 4, 5 and 2 more were")));
    }
}
