//! The tables that the kernel programs write to: for how much each has room, how much of it is in use, the memory that it
//! takes, and what becomes of what finds no room.
//!
//! A table joins with a line in [`Kind::about`]; `src/kernel/room.rs` knows where its figures stand.

use std::fmt::Write as _;

use crate::text::table;

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Threads that are shown.
    Threads,
    /// Threads for which there was no room there.
    Unnamed,
    /// Where only some threads are asked for: room that is kept for these.
    Chosen,
    /// What each thread is in the middle of, where only tracepoints attach.
    Requests,
    /// Asynchronous requests that are tried again.
    Retried,
    /// Direct requests that are under way.
    Direct,
    /// Names that others gave.
    Names,
    /// Files of processes.
    Files,
    /// Pages that were read ahead, by 64 that stand beside each other.
    AheadChunks,
    /// The same by page, on kernels without the instruction that the former takes.
    AheadPages,
    /// Processes of the command that is watched.
    Followed,
    /// Who takes pages out, and whose.
    Evictors,
    /// Pages that were taken out, by 32 that stand beside each other.
    Evicted,
    /// Pages that were taken out, by file.
    EvictedFiles,
    /// Names of these files.
    EvictedNames,
    /// Who brings pages in again.
    Readers,
    /// Threads that wait for a page to be brought in again.
    Waits,
    /// Cgroups that take memory.
    Growth,
    /// Owners of a sketch of the pages that they use.
    Sketches,
    /// Uses of pages on their way to us.
    Touches,
    /// Requests on their way to us, for `--try`.
    Tried,
    /// Processes of the classic engine.
    Processes,
    /// The same, where both engines count.
    BothProcesses,
    /// All that cannot fill up: variables, sums by processor, tables that this plan does not use.
    Other,
}

/// What becomes of what finds no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// It is told under LOST, for this reason ([`crate::loss::REASONS`]).
    Lost(&'static str),
    /// Not under LOST, but this.
    Told(&'static str),
    /// It does not fill up.
    Never,
}

/// What is known of a table before it is made.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its name, which does not change: the label of metrics.
    pub id: &'static str,
    /// What an entry of it is about, for people.
    pub what: &'static str,
    /// What happens when it is full.
    pub full: Full,
    /// The option that gives room, where one does.
    pub option: Option<&'static str>,
}

impl Kind {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Kind; 24] = [
        Kind::Threads,
        Kind::Unnamed,
        Kind::Chosen,
        Kind::Requests,
        Kind::Retried,
        Kind::Direct,
        Kind::Names,
        Kind::Files,
        Kind::AheadChunks,
        Kind::AheadPages,
        Kind::Followed,
        Kind::Evictors,
        Kind::Evicted,
        Kind::EvictedFiles,
        Kind::EvictedNames,
        Kind::Readers,
        Kind::Waits,
        Kind::Growth,
        Kind::Sketches,
        Kind::Touches,
        Kind::Tried,
        Kind::Processes,
        Kind::BothProcesses,
        Kind::Other,
    ];

    /// What is known of it.
    #[must_use]
    pub const fn about(self) -> About {
        use Full::Lost;
        use Full::Told;
        const ROWS: Option<&str> = Some("--table-size");
        let (id, what, full, option) = match self {
            Kind::Threads => {
                ("threads", "threads, under each name that they had", Lost("processes_full"), ROWS)
            }
            Kind::Unnamed => (
                "threads_unnamed",
                "threads that found no room there: in totals, not shown",
                Lost("requests_full"),
                ROWS,
            ),
            Kind::Chosen => (
                "threads_chosen",
                "threads that are asked for",
                Told("they have the room of all others"),
                None,
            ),
            Kind::Requests => ("requests", "what threads are in the middle of", Lost("requests_full"), ROWS),
            Kind::Retried => (
                "requests_retried",
                "asynchronous requests that will be tried again",
                Lost("requests_full"),
                None,
            ),
            Kind::Direct => (
                "requests_direct",
                "direct requests under way",
                Told("the oldest has no row, or is LOST (unseen_begin) where only tracepoints attach"),
                None,
            ),
            Kind::Names => (
                "names",
                "names that threads were given by others",
                Told("the oldest is forgotten, which nobody needs any more"),
                None,
            ),
            Kind::Files => ("files", "files of processes", Lost("files_full"), Some("--file-table")),
            Kind::AheadChunks => (
                "prefetched_chunks",
                "stretches of 64 pages that were read ahead",
                Lost("prefetched_full"),
                None,
            ),
            Kind::AheadPages => (
                "prefetched_pages",
                "pages that were read ahead, and not used yet",
                Lost("prefetched_full"),
                None,
            ),
            Kind::Followed => ("followed", "processes of the command", Lost("followed_full"), ROWS),
            Kind::Evictors => {
                ("evictors", "who took whose pages out", Told("others are one row, by how they did"), None)
            }
            Kind::Evicted => (
                "evicted",
                "blocks of 32 pages that were taken out, by whom",
                Told("one is forgotten before it came back, and counted as that"),
                None,
            ),
            Kind::EvictedFiles => {
                ("evicted_files", "files by who took their pages out", Told("(other files)"), None)
            }
            Kind::EvictedNames => {
                ("evicted_names", "files that pages were taken out of", Told("(other files)"), None)
            }
            Kind::Readers => ("refaulters", "who brought pages in again", Told("(other files)"), None),
            Kind::Waits => (
                "refault_waits",
                "threads that wait for pages to come in again",
                Told("the wait is not timed, and counted as that"),
                None,
            ),
            Kind::Growth => ("growth", "cgroups that took memory", Told("(other cgroups)"), None),
            Kind::Sketches => (
                "sketches",
                "whose pages are used",
                Told("(other): together with all without a sketch of their own"),
                None,
            ),
            Kind::Touches => {
                ("touches", "uses of pages on their way", Told("they are dropped, and counted as that"), None)
            }
            Kind::Tried => (
                "tried",
                "requests on their way, for --try",
                Told("they are dropped, and counted as that"),
                None,
            ),
            Kind::Processes => ("processes", "processes of the classic engine", Lost("processes_full"), ROWS),
            Kind::BothProcesses => {
                ("classic_processes", "processes of the classic engine", Lost("classic_processes_full"), ROWS)
            }
            Kind::Other => {
                ("other", "all else: variables, sums by processor, what is not in use", Full::Never, None)
            }
        };
        About { id, what, full, option }
    }
}

/// A table that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// Which.
    pub kind: Kind,
    /// Entries that it has room for; `None`: it does not fill up.
    pub room: Option<u64>,
    /// Entries in use, when they were counted; `None`: not known.
    pub used: Option<u64>,
    /// Bytes of the kernel's memory, as the kernel has it (`memlock` in `/proc/PID/fdinfo`); `None`: it does not say.
    pub bytes: Option<u64>,
}

/// The tables of two sets of kernel programs as those of one: what cannot fill up is one line.
#[must_use]
pub fn joined(mut first: Vec<Table>, second: Vec<Table>) -> Vec<Table> {
    for table in second {
        match first.iter_mut().find(|t| t.kind == Kind::Other && table.kind == Kind::Other) {
            Some(other) => other.bytes = other.bytes.zip(table.bytes).map(|(a, b)| a + b),
            None => first.push(table),
        }
    }
    first.sort_by_key(|t| Kind::ALL.iter().position(|k| *k == t.kind));
    first
}

/// Bytes of all of them; `None` where the kernel does not say it of each.
#[must_use]
pub fn total(tables: &[Table]) -> Option<u64> {
    tables.iter().map(|t| t.bytes).sum()
}

/// What happens when it is full, and what helps; nothing, where it does not fill up.
fn fills(about: &About) -> String {
    let full = match about.full {
        Full::Lost(reason) => format!("; when full: LOST ({reason})"),
        Full::Told(what) => format!("; when full: {what}"),
        Full::Never => String::new(),
    };
    full + &about.option.map_or_else(String::new, |option| format!("; more room: {option}"))
}

/// A line for each, and their sum, for `--explain`.
#[must_use]
pub fn explained(tables: &[Table]) -> String {
    let number = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let cell = |cells: [String; 3]| cells.to_vec();
    let mut lines = vec![cell(["ROOM".into(), "IN USE".into(), "BYTES".into()])];
    let mut names = vec!["TABLE".to_owned()];
    for table in tables {
        let about = table.kind.about();
        lines.push(cell([number(table.room), number(table.used), number(table.bytes)]));
        names.push(format!("{}{}", about.what, fills(&about)));
    }
    lines.push(cell([String::new(), String::new(), number(total(tables))]));
    names.push("in all".into());
    let mut out = String::from("\nTables in the kernel (bytes as it counts them)\n\n");
    for line in table::fitted(&lines, &names).lines() {
        let _ = writeln!(out, "  {line}");
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::loss;

    fn table(kind: Kind, room: Option<u64>, used: Option<u64>, bytes: Option<u64>) -> Table {
        Table { kind, room, used, bytes }
    }

    #[test]
    fn what_is_lost_is_known_under_that_name() {
        let mut ids = HashSet::new();
        for kind in Kind::ALL {
            let about = kind.about();
            assert!(ids.insert(about.id), "{} twice", about.id);
            assert!(about.id.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", about.id);
            let Full::Lost(reason) = about.full else { continue };
            assert!(loss::REASONS.iter().any(|r| r.id == reason), "{reason}");
            // Not every table that a reason is told for can be made larger.
            if about.option.is_some() {
                assert_eq!(about.option, loss::find(reason).option, "{}", about.id);
            }
        }
        // Each reason that an option helps against is that of a table.
        for reason in loss::REASONS.iter().filter(|r| r.option.is_some()) {
            let of = |kind: &&Kind| {
                let about = kind.about();
                about.full == Full::Lost(reason.id) && about.option == reason.option
            };
            assert!(Kind::ALL.iter().any(|kind| of(&kind)), "{}", reason.id);
        }
    }

    #[test]
    fn the_total_is_the_sum_and_what_is_not_known_is_no_zero() {
        let all = [
            table(Kind::Threads, Some(16384), Some(3), Some(10_000_000)),
            table(Kind::Direct, Some(16384), None, Some(1_000_000)),
            table(Kind::Other, None, None, Some(77)),
        ];
        assert_eq!(
            explained(&all),
            "\nTables in the kernel (bytes as it counts them)\n\n  \
             \x20ROOM  IN USE     BYTES  TABLE\n  \
             16384       3  10000000  threads, under each name that they had; when full: LOST (processes_full); more \
             room: --table-size\n  \
             16384       -   1000000  direct requests under way; when full: the oldest has no row, or is LOST \
             (unseen_begin) where only tracepoints attach\n  \
             \x20   -       -        77  all else: variables, sums by processor, what is not in use\n  \
             \x20              11000077  in all\n"
        );
        assert_eq!(total(&[]), Some(0));
        let unknown = [all[0], table(Kind::Other, None, None, None)];
        assert_eq!(total(&unknown), None);
        assert!(explained(&unknown).ends_with(" -  in all\n"), "{}", explained(&unknown));
    }

    #[test]
    fn two_engines_have_one_rest() {
        let of = |kind, bytes| table(kind, None, None, bytes);
        let exact = vec![of(Kind::Threads, Some(1)), of(Kind::Other, Some(10))];
        let classic = |bytes| vec![of(Kind::BothProcesses, Some(2)), of(Kind::Other, bytes)];
        let both = joined(exact.clone(), classic(Some(20)));
        assert_eq!(
            both,
            [of(Kind::Threads, Some(1)), of(Kind::BothProcesses, Some(2)), of(Kind::Other, Some(30))]
        );
        assert_eq!(total(&both), Some(33));
        assert_eq!(total(&joined(exact, classic(None))), None);
    }
}
