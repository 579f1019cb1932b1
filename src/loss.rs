//! What could not be accounted, and what that means: one line for each reason.
//!
//! A reason joins with a line in [`REASONS`]; where a kernel program counts it, the line names its counter.

use crate::sample::Lost;
use crate::wire::Counter;

/// What a loss makes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touches {
    /// Figures of the whole system, and with them everything else.
    Totals,
    /// Rows of processes, threads, commands, users and cgroups. What they lack is in the totals.
    Threads,
    /// Rows of files, mounts and devices. What they lack is in the totals.
    Files,
}

impl Touches {
    /// In words that do not change: they are part of the JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Touches::Totals => "totals",
            Touches::Threads => "rows of threads",
            Touches::Files => "rows of files",
        }
    }
}

/// Why something could not be accounted.
#[derive(Debug, Clone, Copy)]
pub struct Reason {
    /// Its name, which does not change.
    pub id: &'static str,
    /// Who counts it; `None` where the kernel does, or the classic engine.
    pub counter: Option<Counter>,
    /// What it makes wrong.
    pub touches: Touches,
    /// The option that gives room, where one does.
    pub option: Option<&'static str>,
    /// What one event of it is.
    pub about: &'static str,
}

const fn reason(
    id: &'static str,
    counter: Option<Counter>,
    touches: Touches,
    option: Option<&'static str>,
    about: &'static str,
) -> Reason {
    Reason { id, counter, touches, option, about }
}

/// All reasons, in the order in which they are listed.
pub const REASONS: &[Reason] = &[
    reason(
        "requests_full",
        Some(Counter::LostFrames),
        Touches::Totals,
        Some("--table-size"),
        "requests that could not be followed: no room for them",
    ),
    reason(
        "busy",
        Some(Counter::LostBusy),
        Touches::Totals,
        None,
        "threads and requests that a table with room refused: its lock could not be had in time",
    ),
    reason(
        "unseen_begin",
        Some(Counter::LostBegun),
        Touches::Totals,
        None,
        "direct requests whose beginning was not seen",
    ),
    reason(
        "nesting",
        Some(Counter::LostDepth),
        Touches::Totals,
        None,
        "requests nested deeper than can be followed",
    ),
    reason(
        "order",
        Some(Counter::LostOrder),
        Touches::Totals,
        None,
        "pages that one request added more than once",
    ),
    reason(
        "prefetched_full",
        Some(Counter::LostLedger),
        Touches::Totals,
        None,
        "prefetched pages that could not be remembered: their first use counts as a hit",
    ),
    reason(
        "processes_full",
        Some(Counter::LostRows),
        Touches::Threads,
        Some("--table-size"),
        "threads without a row",
    ),
    reason(
        "files_full",
        Some(Counter::LostFiles),
        Touches::Files,
        Some("--file-table"),
        "events of files without a row",
    ),
    reason(
        "direct_failed",
        Some(Counter::LostDirect),
        Touches::Totals,
        None,
        "asynchronous direct requests that failed after they were queued: they count as done",
    ),
    reason(
        "followed_full",
        None,
        Touches::Totals,
        Some("--table-size"),
        "processes of the command that are not followed, nor those that they make: no room",
    ),
    reason("recursion", None, Touches::Totals, None, "runs of our programs that the kernel skipped"),
    reason(
        "classic_processes_full",
        None,
        Touches::Threads,
        Some("--table-size"),
        "events of processes without a row, of the classic engine",
    ),
    reason(
        "classic_recursion",
        None,
        Touches::Totals,
        None,
        "runs of the classic engine's programs that the kernel skipped",
    ),
];

/// What is known of a reason. One that nobody knows may touch everything.
#[must_use]
pub fn find(id: &str) -> Reason {
    const UNKNOWN: Reason = reason("", None, Touches::Totals, None, "events");
    REASONS.iter().find(|r| r.id == id).copied().unwrap_or(UNKNOWN)
}

/// What was lost, by what it touches: what is worst first, with the reasons and their numbers.
fn by_reach(lost: &Lost) -> Vec<(Touches, Vec<(&str, u64)>)> {
    let of = |touches| -> Vec<_> {
        let some = lost.by_reason.iter().map(|(why, n)| (&**why, *n));
        some.filter(|(why, n)| *n > 0 && find(why).touches == touches).collect()
    };
    let all = [Touches::Totals, Touches::Threads, Touches::Files].map(|t| (t, of(t)));
    all.into_iter().filter(|(_, reasons)| !reasons.is_empty()).collect()
}

/// Whether it is known only that something may be lacking: who has no room in the table has none from the first event on,
/// whether or not something to be counted came of it. (A few that are known to lack something have these names, too.)
fn perhaps(why: &str) -> bool {
    matches!(why, "requests_full" | "busy")
}

/// What losses for these reasons touch, in one clause.
fn says(touches: Touches, reasons: &[(&str, u64)]) -> &'static str {
    match touches {
        Touches::Totals if reasons.iter().all(|(why, _)| perhaps(why)) => "figures may not be exact",
        Touches::Totals => "figures are not exact",
        Touches::Threads => "totals have them, rows of threads and processes lack them",
        Touches::Files => "totals have them, rows of files lack them",
    }
}

/// What losses for these reasons mean for totals, in a sentence.
#[must_use]
pub fn consequence<'a>(reasons: impl Iterator<Item = &'a str>) -> &'static str {
    let mut of_totals = reasons.filter(|why| find(why).touches == Touches::Totals).peekable();
    if of_totals.peek().is_none() {
        return "Totals are complete; rows lack them.";
    }
    if of_totals.all(perhaps) { "The figures may not be exact." } else { "The figures are not exact." }
}

/// What was lost and what that touches, in one line: for standard error.
#[must_use]
pub fn sentence(lost: &Lost) -> String {
    let parts = by_reach(lost).into_iter().map(|(touches, reasons)| {
        let list: Vec<_> = reasons.iter().map(|(why, n)| format!("{why} {n}")).collect();
        format!("{} ({})", says(touches, &reasons), list.join(", "))
    });
    let parts: Vec<_> = parts.collect();
    let events = match lost.total() {
        1 => "1 event".to_owned(),
        n => format!("{n} events"),
    };
    format!("{events} could not be accounted: {}", parts.join("; "))
}

/// The reason for most of what is worst, and what it touches.
#[must_use]
pub fn worst(lost: &Lost) -> Option<(&str, Touches)> {
    let (touches, reasons) = by_reach(lost).into_iter().next()?;
    let (why, _) = reasons.into_iter().max_by_key(|(_, n)| *n)?;
    Some((why, touches))
}

/// Whether something was lost that reaches further than all that `told` says; then `told` says that, too.
pub fn reaches_further(told: &mut Option<Touches>, lost: &Lost) -> bool {
    let Some((_, touches)) = worst(lost) else { return false };
    let further = told.is_none_or(|before| touches < before);
    if further {
        *told = Some(touches);
    }
    further
}

/// At the end: what was lost over the whole run, unless as much was said already.
#[must_use]
pub fn over_all(lost: &Lost, said: u64) -> Option<String> {
    (lost.total() > said).then(|| format!("warning: over the whole run, {}", sentence(lost)))
}

/// What was touched, in brackets; nothing where nothing was lost.
#[must_use]
pub fn reach(lost: &Lost) -> String {
    let names: Vec<_> = by_reach(lost).into_iter().map(|(touches, _)| touches.name()).collect();
    if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
}

/// The same, and what would have given room.
#[must_use]
pub fn sentence_with_remedy(lost: &Lost) -> String {
    let options = options(lost);
    let room =
        if options.is_empty() { String::new() } else { format!("; more room: {}", options.join(", ")) };
    sentence(lost) + &room
}

/// The options that give room for what had none, each once.
#[must_use]
pub fn options(lost: &Lost) -> Vec<&'static str> {
    let mut out = Vec::new();
    for option in lost.by_reason.iter().filter(|(_, n)| *n > 0).filter_map(|(why, _)| find(why).option) {
        if !out.contains(&option) {
            out.push(option);
        }
    }
    out
}

/// The reasons, for `--explain`.
#[must_use]
pub fn explained() -> String {
    let mut out =
        String::from("LOST is the sum of these; a row that is lacking is part of the row (other):\n");
    for r in REASONS {
        let option = r.option.map_or_else(String::new, |o| format!("; more room: {o}"));
        out += &format!("  {:<22} {:<15} {}{option}\n", r.id, r.touches.name(), r.about);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_of_files_does_not_touch_the_totals() {
        let lost = |list: &[(&'static str, u64)]| Lost {
            by_reason: list.iter().map(|(why, n)| ((*why).into(), *n)).collect(),
        };
        let text = sentence_with_remedy(&lost(&[("requests_full", 0), ("files_full", 118_824)]));
        assert_eq!(
            text,
            "118824 events could not be accounted: totals have them, rows of files lack them (files_full 118824); \
             more room: --file-table"
        );
        let text = sentence_with_remedy(&lost(&[
            ("files_full", 1),
            ("nesting", 2),
            ("processes_full", 3),
            ("recursion", 4),
        ]));
        assert!(
            text.contains(
                ": figures are not exact (nesting 2, recursion 4); totals have them, rows of threads"
            ),
            "{text}"
        );
        assert!(text.ends_with("; more room: --file-table, --table-size"), "{text}");
    }

    #[test]
    fn what_had_no_room_may_have_had_nothing_to_count() {
        let says = |list: &[(&'static str, u64)]| {
            let by_reason = list.iter().map(|(why, n)| ((*why).into(), *n)).collect();
            let told = consequence(list.iter().filter(|(_, n)| *n > 0).map(|(why, _)| *why));
            (sentence(&Lost { by_reason }), told)
        };
        let (text, told) = says(&[("requests_full", 7), ("nesting", 0), ("files_full", 2)]);
        assert!(text.contains(": figures may not be exact (requests_full 7); totals have them"), "{text}");
        assert_eq!(told, "The figures may not be exact.");
        let (text, told) = says(&[("requests_full", 7), ("recursion", 1)]);
        assert!(text.contains(": figures are not exact (requests_full 7, recursion 1)"), "{text}");
        assert_eq!(told, "The figures are not exact.");
        assert_eq!(says(&[("files_full", 1)]).1, "Totals are complete; rows lack them.");
    }

    #[test]
    fn what_was_not_said_by_the_end_is_said_then() {
        let lost = Lost { by_reason: vec![("recursion".into(), 2), ("files_full".into(), 1)] };
        let text = over_all(&lost, 2).unwrap_or_default();
        assert!(text.starts_with("warning: over the whole run, 3 events"), "{text}");
        assert_eq!(over_all(&lost, 3), None);
        let one = Lost { by_reason: vec![("recursion".into(), 1)] };
        assert!(sentence(&one).starts_with("1 event could not be accounted: "), "{}", sentence(&one));
        assert_eq!(over_all(&Lost::default(), 0), None);
    }

    #[test]
    fn what_reaches_further_is_told_again() {
        let lost = |why: &'static str, n| Lost { by_reason: [(why.into(), n)].into_iter().collect() };
        let mut told = None;
        let mut tell = |why, n| reaches_further(&mut told, &lost(why, n));
        assert!(!tell("files_full", 0) && tell("files_full", 1) && !tell("files_full", 1000));
        assert!(tell("processes_full", 1) && !tell("files_full", 1));
        assert!(tell("requests_full", 1) && !tell("processes_full", 7) && !tell("requests_full", 7));
    }

    #[test]
    fn every_counter_of_a_loss_has_a_reason_and_every_name_is_said_once() {
        for counter in Counter::ALL.iter().filter(|c| format!("{c:?}").starts_with("Lost")) {
            let of = REASONS.iter().filter(|r| r.counter == Some(*counter));
            assert_eq!(of.count(), 1, "{counter:?}");
        }
        for reason in REASONS {
            assert_eq!(REASONS.iter().filter(|r| r.id == reason.id).count(), 1, "{}", reason.id);
        }
        assert!(explained().contains("files_full"));
    }
}
