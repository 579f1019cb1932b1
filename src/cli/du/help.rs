//! What the help and the manual page of `cachedu` say beyond the options.

/// The end of `-h`.
pub(super) const SHORT: &str = "\
Examples:
  cachedu FILE...          how much of each file is cached
  cachedu DIR              the directories below, by what is cached
  cachedu -f --top 20 /var the 20 files that hold most of the cache
  cachedu --map FILE       which pages of a file are cached
  cachedu --pid 1234       what process 1234 has open or mapped

'cachedu --help' explains the figures and the exit codes.";

/// What the manual page begins with.
pub(super) const MANUAL: &str = "\
Asks the kernel which pages of files are in the page cache, and says so of files, or of directories with all that is \
below them. It reads none of them, save with --load and --restore.

Without root, what is cached is known only of files that one may write.";

/// Titles and texts; lines fit a terminal of 80 columns.
pub(super) const SECTIONS: &[(&str, &str)] = &[
    (
        "Examples",
        "\
cachedu FILE...                   how much of each file is cached
cachedu                           the directories below this one
cachedu -d 2 --sort dirty /srv    two levels, by what has to be written
cachedu -t -d 3 /srv              three levels, as a tree with bars
cachedu -f --top 20 /var          the 20 files that hold most of the cache
cachedu -i /var                   the same tree to browse
cachedu --json -a -d 999 /var | gzip > scan.gz; cachedu -i --scan scan.gz
                                  to browse it elsewhere, or later
cachedu --map FILE                runs and holes of a file
cachedu --json --map FILE         the same as numbers of pages
cachedu --pid 1234                what process 1234 has open or mapped
cachedu --container web           the same for a container
cachedu --all --top 10            for all processes
find . -name '*.db' -print0 | cachedu -0 --files-from -
cachedu --evict --dry-run DIR     what would be dropped from the cache
cachedu --save warm.set DIR       remember which pages are cached, and
cachedu --restore warm.set        read them in again after a restart",
    ),
    (
        "Reading the figures",
        "\
For files, figures are pages (4 KiB on x86); for directories, bytes.

  SIZE     bytes of the file, holes included
  DISK     bytes allocated on the disk, as du counts them: directories too,
           files with several names once
  PAGES    pages that SIZE covers
  CACHED   of these, pages in the cache
  PERCENT  CACHED / PAGES: of SIZE, not of DISK, so a sparse file may have
           little of it though all of its data are cached
  DIRTY    cached pages that have yet to be written to the disk: all
           of a folio of which a byte is, so with large folios (ext4, xfs)
           more than will be written
  WBACK    cached pages that are being written now
  EVICTED  pages that memory reclaim took, as far as the kernel remembers
  RECENT   of these, taken so lately that reading them again would count as
           a refault: the file wants more memory than it gets
  PROCS    processes that have the file open or mapped

'-' is what cannot be known. DIRTY, WBACK, EVICTED and RECENT come from
cachestat(2), which Linux has since 6.5; older kernels have only mincore(2),
which knows what is cached and no more. A last line says if mincore(2) was
used. mincore(2) looks at every page of a file, holes as well; cachestat(2)
costs what is cached, however large the file is.

The kernel reports what is cached only to those who may write the file: its
owner, root, or whoever has write access. To others, mincore(2) says 'all of
it', and cachestat(2) refuses; cachedu says '-' and why. In a directory, '+'
behind a figure says that there are such files below, or directories that
cannot be read: it is at least that.

tmpfs and shared memory are page cache that has no disk: CACHED is what is
in memory, and EVICTED what is in swap. Files of overlayfs are those of the
layer that has the data, by mincore(2), whatever --method says: cachestat(2)
finds nothing there.
Not in the page cache are huge pages (hugetlbfs), files with direct access
(DAX), those of /proc, /sys and their like, which are made when they are
read, pipes, sockets and character devices: '-'. Pages of directories and
other metadata are not counted: they belong to no file, but to the device
('cachedu /dev/sda' shows those of ext4).",
    ),
    (
        "Trees",
        "\
Directories are walked in parallel. Symbolic links are not followed, save
those that are named. No file is read and no file's time of access changes;
that of a directory that belongs to somebody else does, as with any listing,
unless root asks. What vanishes meanwhile is left out, and counted by --json.
/proc, /sys and their like have no page cache and are skipped, unless named,
and what autofs would mount is not mounted. Directories named twice, also by
way of a bind mount of one that is above, count once.

--tree shows directories in each other, in the order of --sort among those
of the same one, and what has nothing cached in one line for each directory.
SHARE is the part of all that is cached here; it is empty where that is not
known as a whole. Names are cut where the terminal ends; with less than 90
columns, EVICTED and FILES are left out.

A glob of --exclude matches names (*.o), with a slash in it paths or their
ends (build/*.o), and from / or ./ on one place (/srv/tmp, ./target). '*' and
'?' match no slash, '**' does. What is left out is in no sum; each PATH that
is named is there. Rows are kept in memory only as far as they are shown or
acted on: with --top, N of them.",
    ),
    (
        "Maps",
        "\
--map draws the file as cells of one or more pages: '#' all of the cell is
cached, '+' half of it or more, ':' less, '.' nothing. Below stand the
lengths of runs (cached pages in a row) and of holes (pages in a row that are
not), and the pattern if nine of ten runs are alike: 'every 14th page'.",
    ),
    (
        "Processes",
        "\
--container takes what 'docker ps' and 'podman ps' call a container (their
files in /var/lib tell which id that is), the beginning of an id of any
runtime, lxc:NAME, machine:NAME, or pod:UID for all of a pod. Several, with
commas between, are counted together: what they share once. So are trees by
/proc/PID/root, which leads into the root of a container.
--pid, --comm, --user, --cgroup and --all find files by /proc/PID/fd and
/proc/PID/map_files, so files that were deleted are found as well, and files
of other mount namespaces (containers): those are named from
/proc/PID/root. Files of processes of other users need root: without it,
sums are at least what they say ('+'), and the exit code is 1. Files
that are mapped, not open, and deleted need root, too: else they are '-'.",
    ),
    (
        "Acting",
        "\
--evict asks the kernel to drop clean pages that no process has mapped. It
also begins to write dirty ones, which stay until that is done: evict again,
or take --flush, which writes them first and waits. Files of tmpfs stay: they
have no other place. A line says what came of it; -v has a row for each
file, with what was cached before and after, in pages.
--load reads data, not holes, in parallel. When all files are done it looks
again: what the last pushed out of the first is told, and ends with 1.
--restore reads exactly the pages of a set, several ranges at a time, of
files that still have the path; of a file that is shorter now, what is left.
A file that was replaced (another inode, and another size or time of change)
is skipped and named; so are devices and paths that are not whole, unless
--trust says that the set is yours. Neither copies what it reads, and both
leave the eviction of other pages to the kernel. Whoever may read a file may
do all of this, and is shown '-' where the kernel does not report it. --save
leaves out files without a name that lasts: deleted ones, and those of
another mount namespace; a set of nothing takes the place of none that holds
something. A set is compressed JSON lines ('zcat' shows them), with a
checksum. --dry-run only says what would be done. Files with nothing to be
done are not listed: nothing cached to evict, nothing left to load.",
    ),
    (
        "Formats",
        "\
--json  one object a line: \"type\" is file, directory, total, or map; evict,
        load or restore (what was done to a file), gone (what of a file that
        was loaded had been pushed out by the end) and summary (what came of
        all of them); diff (a file of two sets). Pages are pages, *_bytes
        bytes, ratios from 0 to 1. Unknown is null, with \"reason\";
        \"partial\" says that figures are at least what they say. A path that
        is not UTF-8 has \"path_hex\".
--csv   the same columns for all rows; what is not known is empty, and
        \"partial\" and \"unread\" are those of --json. --columns takes the
        names of its first line: size_bytes, disk_bytes, pages, cached,
        cached_ratio, dirty, writeback, evicted, recently_evicted,
        processes, files; path and what says how sure a row is are there
        anyway. --columns and --no-header are for text as well.",
    ),
    (
        "Ending",
        "\
Ctrl-C (SIGINT) and SIGTERM take the progress line away, say what was left
undone, and end cachedu as the signal does (130 and 143 to a shell); -i gives
the terminal back first, and when it is stopped (Ctrl-Z, SIGTSTP). Figures
of a part of a tree are not printed, and a set is written as a whole or not
at all. What was evicted or loaded so far stays so. A closed pipe ends
quietly.",
    ),
    (
        "Exit codes",
        "\
0  done
1  it could not be done, or not all of it: a file that was named is not there
   or not known, a directory or process cannot be read, a file cannot be
   acted on, the output cannot be written; all the rest is done and printed
2  wrong usage: options that do not go together, no such process, command,
   or cgroup, a list or a set that cannot be read or is damaged, no directory
   to write a set in",
    ),
];
