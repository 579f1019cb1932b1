//! What the help and the manual page of `cachetop` say beyond the options.

use std::fmt::Write as _;

use crate::cli::help::Section;
use crate::cli::help::fixed;
use crate::columns::COLUMNS;
use crate::text::wrap::wrapped;
use crate::top::cells;
use crate::top::keys;

/// The end of `-h`.
pub(super) const SHORT: &str = "\
Examples:
  cachetop               the busiest processes, every second; 'h' for the keys
  cachetop 5             every five seconds
  cachetop --by file     the busiest files
  cachetop -b -n 3       three intervals as text, without a terminal

'cachetop --help' lists keys and columns and explains the figures.";

/// What the manual page begins with.
pub(super) const MANUAL: &str = "\
Shows on the terminal who reads and writes through the page cache, and what is hit and missed, until it is ended \
with q.

Counting needs root, or the capabilities CAP_BPF, CAP_PERFMON and CAP_DAC_READ_SEARCH; --replay needs none.";

/// Titles and texts; lines fit a terminal of 80 columns.
const SECTIONS: &[(&str, &str)] = &[
    (
        "Examples",
        "\
cachetop                      the busiest processes, every second
cachetop 5                    every five seconds
cachetop --by cgroup          containers, pods and services
cachetop -p 1234 -t           process 1234 and its threads
cachetop --comm postgres      all processes of that name
cachetop -p 12,34 -u root     these processes, as far as they are root's
cachetop --by file --sort misses
cachetop --by evictor         who pushes pages out of the cache, and whose
cachetop --show total         counts since it was started
cachetop -b -n 3 2            three intervals of two seconds as text
cachetop --json -n 60 >log    one JSON object a line, for programs
cachetop --replay FILE        what was recorded, with keys for the time",
    ),
    (
        "Reading the figures",
        "\
Figures are those of cachestat: 'cachestat --help' and its manual page say
more. The unit is the page (4 KiB on x86); each page that a read call covers
is one of

  HITS    in the cache and used before
  RAHITS  in the cache only because read-ahead had fetched it: first use
  MISSES  not in the cache when the call began

READ_HIT% is HITS / (HITS + RAHITS + MISSES): of the pages read, those that
had been used before. A file read for the first time has 0 %. WRITE_HIT% is
the pages written that were in the cache, of all pages written. Both are '-'
where nothing was read or written: '-' is what cannot be known. DIRECT is
what bypassed the cache, read and written.

Figures count in the interval; with 'm' or --show, per second or since the
start. The upper part is always per second. Its bars are intervals, the
newest at the right, with their ages below: MISSES (below), RAHITS and HITS
on top of each other, with one scale, whose end is at the right; apart from
it READ_HIT%, and on tall screens DIRTIES. A number that would not fit ends
in k, M, G (powers of 1000); bytes end in K, M, G (powers of 1024).

Rows are those that did something in the interval. What did nothing stays
for three intervals more. Processes that have ended stand together by
command ('12x sh'), with 'e' by cgroup, below the nearest parent that lives
('12x below make'), or each by itself, dimmed and marked with x, behind all
that live. What they did in the interval counts; a row
that is dimmed and did nothing in it has the figures of its last interval,
which are in no sum any more. The selected row keeps its place on the screen
while values change. SHARE is the part that a row has of all that rows did.

The lines above: file pages that the kernel takes for active and inactive;
dirty pages and the limit from which writers wait; pages evicted, read back
in after eviction (refaulted) and fetched ahead for nothing (wasted); bytes
that devices read and wrote; the part of the interval in which somebody
waited for memory or I/O (PSI). LOST is what could not be accounted, with
its reason, what it makes wrong, and the sum so far.

Left and Right go back in time, to ten minutes ago, with the whole screen
and in any kind of rows, while counting goes on; 'p' or Esc is now again.
{ } go by a minute, ( ) by an hour. Totals are of now only. Where many
processes come and go, less is kept.",
    ),
    (
        "Filter",
        "\
Words with blanks between them must all be true of a row, '|' stands between
alternatives, '!' before what must not be true:

  postgres             a text in anything that says what a row is, and in
                       the command line; upper or lower case
  !cron !systemd       neither of them
  ~^(dd|cp)$           a regular expression
  misses>100 hits<1k   figures as shown: < <= = != >= >; k is 1000;
                       K, M and G are powers of 1024; ratios in per cent
  pid=1 uid=0 tid=7    numbers of the row

Blanks around a comparison are nothing. What reads like a figure and is none
(misses>x, foo>1) is told; as a text of a command line it is ~foo>1.
What is not known of a row is not true, nor is its opposite.",
    ),
    (
        "Details",
        "\
Enter shows what is known of the selected row: the command line, its user
and cgroup, its figures in the interval and since the start, its files, its
threads, and findings:

  direct-io         half of the bytes read and written, or more, bypassed
                    the cache
  cold-readahead    half of the pages read or more were in the cache only
                    because read-ahead had fetched them: no reuse
  readahead-unused  reads found less than half as many of such pages as were
                    fetched: the rest is unused so far, or used by others
  cold-misses       half of the pages read or more were not in the cache
                    (on a device, or a hole)
  reuse             nine of ten pages read or more were used before, or in
                    the cache before counting began
  refaults          pages read back in after eviction are a tenth of the
                    pages read or more
  write-misses      half of the pages written or more were not in the cache

Findings look at figures since the start, and only at rows with 256 pages or
more. With --latency there are histograms: how long its read calls took,
those that missed and those that did not. Calls are not timed file by file:
rows of files show those of the whole system. How much read-ahead was
wasted, and how much was evicted, is known for the whole system only.",
    ),
    (
        "Replay",
        "\
--replay FILE shows what 'cachestat --record FILE' or 'cachetopd --record
DIR' wrote, on the same screen, or with -b and --json as the run would have
written it. It needs no privilege. --from takes 14:00 (the first since the
recording began), '2026-11-23 14:00' or '3m ago'; INTERVAL and '+' '-' put
intervals together to that length.

It begins paused. Space plays it at the pace at which it was recorded; Left
and Right go to the interval before or after, with Ctrl by ten; { } by a
minute, ( ) by an hour. Names, files and command lines are those of then.
Totals and details begin with the interval that one has jumped to, or gone
back to, and say when that is; going on adds to them. Who has ended was not
recorded, nor what devices did: those are '-'. Where nothing was recorded,
one steps across.",
    ),
    (
        "Who pushes out",
        "\
--by evictor counts who takes pages out of the cache, whose they were, and
what of it comes back: OUT pages that left, BACK added again, REFAULTS what
the kernel itself took for read back in. HOW is what 'cachestat --help'
names under 'Who evicted whose'; the details of a row say what it means. '9'
comes back to these rows. Started with other rows, nothing of it is counted,
since it costs something at each page that comes or goes.",
    ),
    (
        "Settings",
        "\
'W' keeps interval, kind of rows, columns (for all, and those chosen for one
kind of rows under [columns_of]), sorting, unit, counts or totals,
threads, how those that have ended fold, and mouse in
$XDG_CONFIG_HOME/cachetop/config.toml (without that variable, ~/.config), or
in the file of --config. Options on the command line go before it.
--no-config leaves it alone.

NO_COLOR or --color never: no colours. Those used are the terminal's own, so
that they suit a light background as well. Without a UTF-8 locale, all that
is drawn is ASCII.

A screen of less than 24 lines has the figures of the system in one line,
without bars; of less than 16, no line of keys; of less than 8, the table
only. Columns that do not fit are left out from the right; '[' and ']'
scroll.",
    ),
    (
        "Cost",
        "\
Counting costs at every read; files are counted besides, for rows by file
and the files of the details. --no-files is cheaper, --latency dearer. The
tables take --table-size and --file-table rows of kernel memory. Totals
since the start never fall: a process that has ended long ago counts on for
its command, user, cgroup and files, and as a process is part of (other),
the row for all that has none. With it, rows are what the system counted.",
    ),
    (
        "Ending",
        "\
q, Ctrl-C, SIGINT, SIGTERM and SIGHUP end it and restore the terminal. With
-b and --json, SIGINT and SIGTERM write the interval that had begun; when
the process of -p ends, its last interval is written. A closed pipe ends
quietly.",
    ),
    (
        "Exit codes",
        "\
0  done
1  it could not be done: not allowed, not supported by this kernel, output
   not written; the remedy is printed
2  wrong usage, no process with that PID, a settings file with mistakes, or
   no terminal where one is needed",
    ),
];

fn keys_section() -> String {
    let mut out = String::new();
    for (keys, about) in keys::lines() {
        let _ = writeln!(out, "{keys:<11} {about}");
    }
    let functions = keys::functions().map(|(key, about)| format!("{key} {about}"));
    let functions = format!("Function keys: {}", functions.collect::<Vec<_>>().join(", "));
    let _ = writeln!(out, "\n{}", wrapped(&functions, 76).join("\n"));
    let _ = writeln!(out, "\nIn the list of columns: {}", keys::COLUMN_KEYS);
    out + "\nMouse: a title sorts by its column, once more the other way round; a row is\n\
           selected, once more shown in detail; the wheel moves the selection. Shift\n\
           with the mouse selects text, as without cachetop; --no-mouse leaves it alone."
}

fn columns_section() -> String {
    let mut out = String::from(
        "The second name is for --columns and --sort. Without --sort, rows are sorted\nby all that they did, pages and events together.\n\n",
    );
    for c in COLUMNS.iter().filter(|c| cells::suits_rows(c)) {
        let mut about = wrapped(c.about(), 43).into_iter();
        let _ = writeln!(out, "{:<10} {:<22} {}", cells::title(c), c.id, about.next().unwrap_or_default());
        for line in about {
            let _ = writeln!(out, "{:33} {line}", "");
        }
    }
    out.trim_end().to_string()
}

/// All sections.
pub(super) fn sections() -> Vec<Section> {
    let mut all = fixed(SECTIONS);
    let after = 1;
    all.splice(after..after, [("Keys", keys_section()), ("Columns", columns_section())]);
    all
}
