//! What the help and the manual page of `cachestat` say beyond the options.

use std::fmt::Write as _;

use crate::cli::help::Section;
use crate::cli::help::fixed;
use crate::columns::COLUMNS;
use crate::columns::DEFAULT;
use crate::columns::WIDE;
use crate::text::wrap::wrapped;

/// The end of `-h`.
pub(super) const SHORT: &str = "\
Examples:
  cachestat              a line every second until Ctrl-C, then the total
  cachestat 5 12         12 intervals of 5 seconds
  cachestat -p 1234 1    what process 1234 does
  cachestat --json 1     one JSON object a line
  cachestat -- du -s .   run a command and explain what it did

'cachestat --help' explains the figures, lists the columns and the exit codes.";

/// What the manual page begins with.
pub(super) const MANUAL: &str = "\
Counts what is read and written through the page cache, and prints a line for each INTERVAL: hits, first uses of what \
read-ahead had brought in, misses. With a COMMAND, runs it, then says what it did and where its time went.

Counting needs root, or the capabilities CAP_BPF, CAP_PERFMON and CAP_DAC_READ_SEARCH; --replay needs none.";

/// Titles and texts; lines fit a terminal of 80 columns.
const SECTIONS: &[(&str, &str)] = &[
    (
        "Examples",
        "\
cachestat                         a line every second until Ctrl-C, then
                                  the total
cachestat 5 12                    12 intervals of 5 seconds
cachestat 500ms                   two lines a second; 2m and 1h do as well
cachestat -T 0.1                  ten lines a second, with the time of day
cachestat -x 10                   the wide set of columns
cachestat -p 1234 1               what process 1234 does
cachestat -p $(pgrep -d, postgres) --by process
                                  what these processes do, each in a row
cachestat -u postgres 1           what is done in the name of a user
cachestat --by process --top 5    the five busiest processes below each line
cachestat --by file -p 1234       which files process 1234 uses
cachestat --by process --file F   which processes use the file F
cachestat --by cgroup 10          containers, pods and services
cachestat --cgroup /system.slice  what all services together do
cachestat --columns hits,misses,read_bytes
cachestat --json 1 60 >log.jsonl  one JSON object a line
cachestat --what-if 60 --cgroup /postgres
                                  would more memory help, and how much
cachestat --blame 60              who pushed whose pages out of the cache
cachestat --blame -- make         the same, of what concerns a command
cachestat --working-set 60 --by cgroup
                                  distinct pages used, and by whom
cachestat --working-set 60 30     the same of everything, 30 minutes long
cachestat --engine both 1         beside what bcc's cachestat would count
cachestat --explain               which kernel hooks count what, how exactly
cachestat -- make                 run a command and explain what it did
cachestat -r 3 --cold all -- du -s DIR
                                  cold, then twice warm: where the time went
cachestat -r 10 --cold-each all --warm-runs 1 -- ./import
                                  10 cold and 10 warm runs, and their means
cachestat -r 10 --warmup 1 --compare-commands 'grep -r x .' 'rg x .'
                                  two commands in turns, which is faster, why
cachestat -p 1234 --for 10s       the same of a process that runs already
cachestat --save then.json -- make; cachestat --compare then.json -- make",
    ),
    (
        "What if",
        "\
--what-if SECONDS watches for so long, then predicts which part of the
accesses would need a device if the limit of the cgroup (--cgroup, or that of
the process of -p) were half of what it is, or up to four times as much;
where there is no limit, if what is cached of files were. It follows a part
of the pages, from all over each file, and simulates the kernel's own policy,
read-ahead included.
MISSES there are all pages that must be brought in, by read-ahead or not.
ERROR is how far that may be off. Where too little was seen, it says so and
predicts nothing; --json has the same as one object, with the reason.
--latency times reads, too: WAITING is how many threads would wait on
average. --html FILE writes the curve as a page.
'cachestat --what-if -- COMMAND' (or -p PID --for TIME) does it for what a
command uses, in the cgroup that it runs in, as a section of its report.
docs/guide/what-if.md tells how it is done, how it was tested and when not to
believe it.",
    ),
    (
        "Who evicted whose",
        "\
--blame SECONDS watches for so long, then says of every page that left the
cache in whose context it did (reclaim by a thread, for the limit of a
cgroup or by kswapd; memory.reclaim, MADV_PAGEOUT, DAMON, fadvise,
drop_caches, truncation, deletion), which cgroup it was charged to, and
whether it came back. REFAULTS is what the kernel itself took for read back
in, WAITED how long threads waited for such pages while they were being
read. The rows add up to what was evicted and removed; below them stand the
files, and who read them again; where kswapd took any, how many at most may
have been for each cgroup, by what it grew, and who woke it. -p, --comm,
--user and --cgroup leave what these pushed out or brought in again, and
what was charged to such a cgroup.
--json has the same as one object. '--by evictor' has the same rows interval
by interval, without files. With '-- COMMAND' or '-p PID --for TIME',
--blame takes no time: the report ends with what was pushed out while it ran
and brought in again by it, by whom, and what it pushed out itself.
docs/guide/who-evicted.md has what each word means and when not to believe
it.",
    ),
    (
        "Working set",
        "\
--working-set TIME watches for so long, then says how many distinct pages of
files were used in the last 1, 5, 15 and 60 minutes, and in all that
time, by everything and (--by process, cgroup or file) by each of the --top
N largest. With a COUNT behind it, it goes on and says so as many times:
'--working-set 60 10' is ten tables, one a minute; Ctrl-C ends it with what
is known by then. A window that is longer than what was watched is '-'. These
are estimates from a sketch of bounded size for each: ERROR is by how much 95
of 100 of them are off at most. Rows may share pages: they do not add up. Of
pages that are mapped only faults are seen. --json has the same as one object
a line, with the sketches. docs/guide/working-set.md tells how it is done
and when not to believe it.",
    ),
    (
        "One command",
        "\
'-- COMMAND' runs it with this terminal, its own signals and exit status, and
follows what it starts, daemons included that leave their parent and session;
not what a server starts on its behalf (docker run, systemd-run): watch that
with --cgroup. When it has ended, a report goes to standard error or to the
file of -o, as text or (--json) as one object. When called through sudo, the
command runs as the user who called.

The report tells where the time went: waiting for data (reads, page faults,
execve) or metadata (open, look-ups, directories), work on names that the
dentry cache did not have, waiting to write, other CPU. What cannot be put
down to any of them (pipes, timers, locks) is 'unexplained'. These are times
of threads: where several work at the same time, they add up to more than
the wall time, and the report says so. Bytes 'from devices' are the kernel's
own account (getrusage), of processes that were waited for; with -p, of all.

The VERDICT comes first: which run was faster, by how much and why; or where
the time of one run went. Its shares add up to the difference, with what is
unexplained. Work of the kernel that the run with the cold cache needed more
is told apart from the command's own.

The text has the verdict, the findings and where the time went, on one
screen; findings for which there is no room are named. -v (--verbose) adds
everything else: all figures, side by side for several runs, read calls by
latency, read-ahead windows, files, and all remedies. It is as wide as the
terminal, or as COLUMNS says. What is printed adds up as it is printed.
Volumes are of whole pages, as bytes or (--unit pages) as pages. What this
kernel does not tell is left out and named in one line; '-' stands where it
is known of another run, or of another file.

FINDINGS are what the figures prove, each with a name and, in JSON, with the
evidence; a rule whose figures are not known here says nothing. CACHED before
is known of files that the command line names, and of those that the run
before used.

--assert EXPR (repeatable) is for tests and CI: 'hit_ratio > 95%',
'misses == 0', 'device_read_bytes < 10MiB', 'before.cached < 1%',
'run2.wall < 0.5 * run1.wall', 'lost == 0'. A name is a figure as in JSON
(write.hits) or a part of the time (data_wait); without 'run2.', 'last.' or
'mean.' before it, it must hold for every run; 'cold.', 'warm.', 'A.' or
'B.warm.' is the mean of that group (cold.max. its most). What is not known
fails. Each failure is a line on standard error; --junit writes them as JUnit
XML, and where GITHUB_ACTIONS=true they are annotations on standard output.

-r runs it N times, side by side, and says where the difference in time went.
--cold empties caches of the whole machine before the first run: pagecache
(pages of files, directories and inode tables), slab (names and inodes) or
all; the report says how much stayed, because it is in use. --prepare runs a
line of shell before each run, as you, not as the user of sudo. What kernel
threads do for the command (loop devices, an NFS server on this machine) is
not counted as its own, nor are pages that are evicted. With -p, the process
and what it has started or starts is watched.

--try read_ahead_kb=N empties the page cache, runs the command as it is,
sets N on the devices that hold what it read, empties again and runs it once
more. What that fetches, uses and wastes is predicted from the requests of
the first run, and stands beside what came of it, with what advising
(POSIX_FADV_RANDOM, SEQUENTIAL) would do; with -v, by file and by size of
window. The setting is put back however it ends, kill -9 included, unless
somebody else has changed it meanwhile.",
    ),
    (
        "Benchmarking",
        "\
--cold empties caches before the first run only, --cold-each before each, as
--prepare runs its line before each; --warm-runs N makes N runs more after
each cold one. So '-r 10 --cold-each all --warm-runs 1' is 10 cold and 10
warm runs. --setup and --cleanup run once, before and after all of it,
--conclude after each run; they and --prepare must succeed.

--compare-commands takes lines of shell, each an argument of its own: they
run in turns (A B A B), so that what changes on the machine touches both. The
verdict says which was faster, and what of the difference is what was not
cached. It takes --cold-each and --warmup, not --cold.

Runs are put together in groups: cold, warm, A, B.cold. Of each the report
has mean, standard deviation, least and most, never over cold and warm ones
together; of one run there is no deviation. 'relative' is how many times as
long a run took as in the fastest group, with the error of both. A run whose
modified Z-score, (x - median) / MAD, is beyond 14.8 is named as an outlier
and stays part of the mean, as with hyperfine. 'cached' is what of the pages
that it used is known to have been there before: whether cold was cold.

A series ends at a run that ends otherwise than the first one of its command
did (--ignore-failure goes on, and ends with 0). That run, and one that was
interrupted, is reported and belongs to no mean.

--export-json, --export-csv and --export-markdown have the columns of
hyperfine's. --compare FILE takes the means of all runs in FILE. The command
has the terminal while it runs: how far a series has come is shown between
runs, or all the time with --discard-output, which, as hyperfine does, gives
it /dev/null for standard output and error.",
    ),
    (
        "Reading the figures",
        "\
Figures are counts in the interval, not rates. The unit is the page (4 KiB
on x86): a read call that covers three pages makes three accesses. Each
access has one of three outcomes:

  HITS    the page was in the cache and had been used before
  RAHITS  the page was in the cache only because read-ahead had fetched it:
          this is its first use
  MISSES  the page was not in the cache when the call began: the caller had
          to wait for the device, or read a hole

A file read for the first time, in calls of whole pages, has no HITS,
however large the calls; read again, it has only HITS. A call that comes
back to a page (for its next 512 bytes) is a hit. HITRATIO is HITS / (HITS +
RAHITS + MISSES).

'-' is what cannot be known: a ratio when nothing was read, a figure that
this kernel or this version does not give ('--explain' says why), the size
of the cache and what it lost in the row of a process. Without activity
HITRATIO is '-', not 0 % or 100 %.

DIRTIES are pages that went from clean to dirty. MB are MiB (1048576 bytes).

The first line comes one interval after counting began. If the command was
stopped or could not run, one longer interval follows, and the next ones end
on the old beat again. Events that could not be accounted are reported on
standard error, in the column LOST and in JSON, each time with what they
touch (totals, rows of threads, rows of files) and the option that gives
room; '--explain' lists the reasons.",
    ),
    (
        "Engines",
        "\
--engine exact    the default: read calls are watched from beginning to end.
                  Without this option, and only where that cannot be done,
                  the classic engine counts instead, and a warning says so.
--engine classic  the method of bcc's cachestat, to compare with figures of
                  old, and for kernels where nothing better attaches. It
                  counts four events: pages added, pages marked accessed,
                  pages dirtied, buffers dirtied. Then
                    HITS + MISSES = accessed - buffers dirtied
                    MISSES        = added - dirtied
                    DIRTIES       = buffers dirtied
                  Unlike bcc's, a large folio counts as its pages, and what
                  comes out below zero is shown: a sign that the subtraction
                  did not hold. Pages that read-ahead brought in are MISSES.
--engine both     both side by side, to see where old figures were wrong;
                  with --explain, why.

Columns of the classic engine have names and titles of their own for lists
that mix both (below). --bcc shows one engine only.",
    ),
    (
        "Rows and filters",
        "\
--by shows rows below each interval, the busiest first: process, thread,
comm (all processes of one name), user, cgroup, file, mount, device; or
evictor, who pushed whose pages out of the cache.

-p, --comm, --user, --cgroup, --file and --mount choose what counts, in rows
and in the line of the interval alike; several of them must all be so. Of
several values of one any will do: -p 12,34 and -u root,www take lists, and
may be given several times as --comm and --cgroup may, which take one each (a
comma is part of it). When the last process of -p has ended, so does the
command; another that has the number of one of them by then does not count.
--comm is the name of the process, not of one of its threads; --user the real
user, by name or number. The kernel decides it where it happens: what others
do takes no room from what is chosen. --file is the file that is there when
the command begins, also when it is renamed or deleted, and not one that
takes its place; --cgroup is the group, all below it, and whatever is made
anew at its path.

Process ids are those of the initial PID namespace.

The last row, (other), is the rest: what no table had room for, what no file
or process did, and the rows beyond --top. So all rows together are the line
above them, figure by figure. In JSON it has \"other\":true and no names; a
command that calls itself (other) is written '\\(other)'.

Users, cgroups and names are those that a thread had at its first event
under its present name. A cgroup that went before its path could be read is
'cgroup:ID (gone)'. In text a container stands for its path; JSON has both.

Files are looked at only if --by or a filter asks for them. They are counted
for each process in a table of --file-table rows, which takes 1 KiB of kernel
memory a row; what finds no room is counted as files_full in LOST, is part of
(other), and is missing in rows; a filtered line is not known then. A file
has the name that it had when the process first used it, of hard links the
one that it was opened by, as far as the kernel tells (mapped, or read by
io_uring, where functions can be attached only);
'(deleted)' if no name was left when it was last used; '…' or '[MAJOR:MINOR]'
where its beginning is not known or not mounted here. On overlayfs it is the
file of the layer that has the data.
Not known by file: CALLS, CALLMISS, FILLS, FTAROUND, INFLIGHT, BUFDIRT,
read-ahead windows, REFAULTS, metadata, times, and what leaves the cache.",
    ),
    (
        "Formats",
        "\
--json  every figure under its name, always in pages or bytes as named;
        what is not known is null. The total of the run has \"total\":true,
        and with --by the rows of the run.
        Counts of the classic engine are in the group \"classic\".
        \"latency\" has the read calls that did not miss and those that did, by
        their length: 32 numbers each, the first of calls below 256 ns, the
        i-th (from 0) of 2^(7+i) ns and more, up to twice that. In
        \"window_pages\", the i-th of 16 numbers counts read-ahead windows of
        2^i pages and more, up to twice that. With --file and --mount both
        are null.
--csv   time and interval_s, then the columns by name; sizes in bytes,
        ratios from 0 to 1; what is not known is empty. No total.
--bcc   the layout of bcc's cachestat, in bcc's meaning: a page fetched by
        read-ahead is a miss, so MISSES there are MISSES + RAHITS here. A
        HITRATIO of nothing is 0.00% there. No total.",
    ),
    (
        "Recordings",
        "\
--record FILE writes everything that is counted, beside what is shown: files,
threads, times and names, whatever is chosen to be shown. A filter then does
not keep others out of the tables. --replay FILE shows it with any columns,
format, rows and filters, without privilege: the same bytes as were shown
then. So does --replay DIR with the ring of cachetopd.

--from and --to choose intervals by when they ended; a time of day is the
first since the recording began. --every puts intervals together. --file and
--mount choose by the path of then. A recording that was cut off lacks its
last tick; what is damaged costs up to 300 ticks behind it; another run of
the recorder goes on where the one before ended, and no interval spans the
gap. All of it is told on standard error. What is written does not stay in
the page cache, and is not counted.

--export DIR writes the replay as tables for notebooks instead (Parquet):
intervals.parquet; with --by, rows.parquet: all rows, or those of --top and
'other' for the rest; histograms.parquet where times were recorded. They are
joined by 'interval'. Columns are the places of --json: read.hits is
read_hits. What is not known is NULL. What is there and no table is not
replaced.
duckdb -c \"select comm, sum(read_misses) from 'DIR/rows.parquet' group by 1\"",
    ),
    (
        "Ending",
        "\
SIGINT (Ctrl-C), SIGTERM and SIGHUP (of a terminal that is closed) print the
interval that had begun and the total of the run, with --by with its rows.
When the last process of -p ends, its last interval is printed. A closed pipe
ends quietly.",
    ),
    (
        "Exit codes",
        "\
0  done
1  it could not be done: not allowed, not supported by this kernel, output
   not written; the remedy is printed
2  wrong usage; no process with that PID, no directory to write a file in
3  an assertion (--assert) did not hold, or what it asks is not known
Of '-- COMMAND' the command's own: 128 + N if signal N ended it, 127 if it
was not found, 126 if it could not be run.",
    ),
];

const COLUMNS_TITLE: &str = "Columns";

/// The columns with their names: `*` marks the default set, `x` the wide one.
fn columns() -> String {
    let mut out = String::from(
        "* shown by default (sizes not with --by), x shown with -x; the second name is\nfor --columns\n\n",
    );
    for c in COLUMNS {
        let star = if DEFAULT.contains(&c.id) { '*' } else { ' ' };
        let wide = if WIDE.contains(&c.id) { 'x' } else { ' ' };
        let mut lines = wrapped(c.about(), 40).into_iter();
        let first = lines.next().unwrap_or_default();
        let _ = writeln!(out, "{star}{wide} {:<10} {:<19} {first}", c.title, c.id);
        for line in lines {
            let _ = writeln!(out, "{:33} {line}", "");
        }
    }
    out.trim_end().to_string()
}

/// All sections.
pub(super) fn sections() -> Vec<Section> {
    let mut all = fixed(SECTIONS);
    all.push((COLUMNS_TITLE, columns()));
    all
}
