//! What the command line has for intervals only.

/// Options of intervals, which say nothing about a command.
pub(super) const INTERVALS: &[&str] = &[
    "interval",
    "count",
    "timestamp",
    "extended",
    "columns",
    "csv",
    "bcc",
    "by",
    "top",
    "pid",
    "comm",
    "user",
    "cgroup",
    "file",
    "mount",
    "latency",
    "working_set",
    "include_self",
    "record",
    "replay",
    "engine",
];

/// The same but for `-p`, which names the process to watch.
pub(super) fn intervals_but_pid() -> impl Iterator<Item = &'static str> {
    INTERVALS.iter().copied().filter(|option| *option != "pid")
}
