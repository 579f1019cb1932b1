//! Who took whose pages out: two cgroups, of which one reads and owns, and the other evicts, in each way there is. How many
//! pages go is known by mincore, what the kernel reclaims and reads back in by the cgroup's own `memory.stat` and, where memory of
//! the machine is short, by /proc/vmstat. `blame-place` is a test of its own: it needs more than 2 GiB of memory, of which one is free of
//! what belongs to the kernel (`nokaslr`); to be sure of it setup.sh has it taken before anything else runs.

mod damon;
mod group;
mod place;
mod short;
mod turns;

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context as _;
use anyhow::Result;
use anyhow::ensure;
use cachetop::blame::Bill;
use cachetop::blame::Counts;
use cachetop::blame::How;
use cachetop::blame::Raw;
use cachetop::only;
use cachetop::plan::Event;
use cachetop::plan::Wants;
use cachetop::sample::Comm;
use cachetop::sample::Counter;
use cachetop::sample::Source as _;
use cachetop::session::Options;
use cachetop::session::Session;

use self::group::Group;
use self::group::cached;
use self::group::file;
use self::group::lots;
use self::group::meminfo;
use self::group::old;
use crate::Args;
use crate::Tally;
use crate::fs::Fs;
use crate::verdict;
use crate::verdict::Verdict;

pub use self::group::child;

const PAGES: usize = 1024;
/// Beyond what the cgroup may have, three times.
const MANY: usize = 6144;
const LIMIT: u64 = 8 << 20;
/// Pages of the file system's own (inode tables, extents) that may be charged to the same cgroup, and go with the rest.
const METADATA: u64 = 64;
/// Bytes of memory beyond which a machine is not made short of it.
const MOST_MEMORY: u64 = 4 << 30;

struct Run<'a> {
    session: &'a mut Session,
    owner: Group,
    other: Group,
    dir: &'a Path,
    notes: Vec<String>,
    /// For pages that came back.
    waited: Duration,
}

impl<'a> Run<'a> {
    fn new(session: &'a mut Session, dir: &'a Path) -> Result<Self> {
        let (owner, other) = (Group::new("owner")?, Group::new("other")?);
        Ok(Self { session, owner, other, dir, notes: Vec::new(), waited: Duration::ZERO })
    }

    /// What is counted in a row while something is done.
    fn during(&mut self, work: impl FnOnce(&Self) -> Result<()>) -> Result<(Bill, Raw)> {
        let before = self.session.blame()?;
        work(self)?;
        let now = self.session.blame()?;
        let now = self.session.named(now)?;
        Ok((Bill::between(&before, &now), now))
    }

    /// The one row of a way in which one of ours took pages of the owner.
    fn row(&self, bill: &Bill, how: How, by: &Group) -> Counts {
        let rows = bill.rows.iter().filter(|(who, _)| {
            let ours =
                |r: &cachetop::blame::Row| r.owner == self.owner.id && r.by == by.id && r.process == b"exe";
            who.how == how && who.who.as_ref().is_some_and(ours)
        });
        rows.map(|(_, n)| *n).next().unwrap_or_default()
    }

    /// Pages of the owner that went in one of these ways, whoever took them, and what came of it.
    fn of_owner(&self, bill: &Bill, hows: &[How]) -> Counts {
        let mine = |who: &cachetop::blame::Evictor| {
            hows.contains(&who.how) && who.who.as_ref().is_some_and(|row| row.owner == self.owner.id)
        };
        bill.rows.iter().filter(|(who, _)| mine(who)).fold(Counts::default(), |sum, (_, n)| Counts {
            out: sum.out + n.out,
            back: sum.back + n.back,
            refaulted: sum.refaulted + n.refaulted,
            waits: sum.waits + n.waits,
            waited_ns: sum.waited_ns + n.waited_ns,
            ..sum
        })
    }

    /// What is said of one file: its name, and what went.
    fn share(&self, bill: &Bill, how: How, name: &str) -> Result<u64> {
        let files = bill.details.by_evictor(&bill.rows);
        // Others' pages may go in the same way.
        let mut files = files.iter().filter(|(who, _)| who.how == how).flat_map(|(_, files)| files);
        let is = |file: &u64| bill.details.files.get(file).is_some_and(|f| f.name.ends_with(name));
        let file = files.find(|f| f.file.as_ref().is_some_and(is));
        Ok(file.with_context(|| format!("{name} is not in {:?}", bill.details))?.out)
    }

    /// Who brought pages in again, and whether it was waited for.
    fn read_again(&mut self, bill: &Bill, how: How, gone: u64, took: Duration) -> Result<()> {
        let files = bill.details.by_evictor(&bill.rows);
        let files = files.iter().filter(|(who, _)| who.how == how).flat_map(|(_, files)| files);
        let readers = files.flat_map(|f| &f.readers).filter_map(|(r, n)| Some((r.as_ref()?, n)));
        let mine = readers.filter(|(r, _)| r.by == self.owner.id && r.process == b"exe");
        let (mut back, mut waited) = (0, 0);
        mine.for_each(|(_, n)| (back, waited) = (back + n.back, waited + n.waited_ns));
        ensure!((gone..=gone + METADATA).contains(&back), "{gone} came back, by the owner {back}");
        if self.session.plan().sees(Event::WaitOf) {
            let waited = Duration::from_nanos(waited);
            ensure!(waited <= took, "{waited:?} of {took:?} were waited: {bill:?}");
            self.waited += waited;
            self.notes.push(format!("{}: {waited:?} of {took:?} were waited", how.name()));
        }
        Ok(())
    }

    /// The owner reads a file; the other takes it out; the owner reads it again.
    fn taken(&mut self, what: &str, how: How) -> Result<()> {
        let path = file(self.dir, what, PAGES)?;
        self.owner.does("read", &path)?;
        let before = cached(&path, PAGES)?;
        ensure!((PAGES as u64..=PAGES as u64 + 1).contains(&before), "{what}: {before} pages are there");
        let (bill, _) = self.during(|run| run.other.does(what, &path))?;
        let after = if path.exists() && path.metadata()?.len() > 0 { cached(&path, PAGES)? } else { 0 };
        let out = self.row(&bill, how, &self.other).out;
        let slack = if how == How::Dropped { METADATA } else { 0 };
        let gone = before - after;
        ensure!(
            gone > 0 && (gone..=gone + slack).contains(&out),
            "{what}: {gone} pages went, seen {out}: {bill:?}"
        );
        self.notes.push(format!("{}: {gone} pages went, {out} seen", how.name()));
        if how != How::Deleted {
            let share = self.share(&bill, how, &format!("/{what}"))?;
            ensure!(share == gone, "{what}: {gone} pages of the file went, seen {share}: {bill:?}");
        }
        if after == 0 && path.exists() && path.metadata()?.len() > 0 {
            let began = Instant::now();
            let (bill, _) = self.during(|run| run.owner.does("read", &path))?;
            let took = began.elapsed();
            self.read_again(&bill, how, gone, took)?;
            let back = self.row(&bill, how, &self.other).back;
            ensure!(
                (gone..=gone + slack).contains(&back),
                "{what}: {gone} pages came back, seen {back}: {bill:?}"
            );
            self.notes.push(format!("{}: {gone} came back, {back} seen", how.name()));
        }
        let _ = std::fs::remove_file(&path);
        Ok(())
    }

    /// The owner reads more than it may have, twice.
    fn limited(&mut self) -> Result<()> {
        let path = file(self.dir, "many", MANY)?;
        self.owner.limit()?;
        let stats = |run: &Self| ["pgsteal", "workingset_refault_file"].map(|key| run.owner.stat(key));
        let known = self.session.plan().sees(Event::RefaultOf);
        let (had, refaulted) = (stats(self), self.refaulted()?);
        let mut seen = [0; 2];
        let (bill, _) = self.during(|run| {
            run.owner.does("read", &path)?;
            run.owner.does("read", &path)
        })?;
        let counted = self.refaulted()? - refaulted;
        let n = self.row(&bill, How::Limit, &self.owner);
        for (who, _) in bill.rows.iter().filter(|(who, _)| who.how == How::Limit) {
            let of = who.who.as_ref().map(|row| row.limit);
            ensure!(of == Some(self.owner.id), "the limit of {of:?}: {bill:?}");
        }
        ensure!(n.out > MANY as u64 && n.back > 0 && n.back <= n.out, "the limit: {n:?}");
        if known {
            let (billed, strangers) = (bill.sum(|_| true).refaulted, bill.strangers);
            ensure!(billed + strangers == counted, "{billed} + unknown {strangers}, but {counted}");
            ensure!(n.refaulted <= n.back, "refaults that did not come back: {n:?}");
            seen[1] = n.refaulted + bill.strangers;
        }
        seen[0] = n.out;
        // The kernel gathers these now and then.
        let lots = lots()?;
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let now = stats(self);
            let rise = |i: usize| Some(now[i]? - had[i]?);
            let off = |i: usize| rise(i).map_or(0, |n| n.abs_diff(seen[i]));
            let wrong = (off(0) > lots).then_some(0).or((known && off(1) > lots).then_some(1));
            if wrong.is_none() {
                self.notes.push(format!(
                    "limit: pgsteal {:?}, {} seen; workingset_refault_file {:?}, {} seen of {counted}, {} back",
                    rise(0), seen[0], rise(1), seen[1], n.back
                ));
                break;
            }
            ensure!(Instant::now() < until, "memory.stat {now:?} after {had:?}, seen {seen:?}: {bill:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
        let control = self.owner.dir.join("memory.reclaim");
        if control.exists() {
            let (before, had) = (cached(&path, MANY)?, stats(self)[0]);
            let (bill, _) = self.during(|run| run.other.does("reclaim", &control))?;
            let gone = before - cached(&path, MANY)?;
            let out = self.row(&bill, How::Proactive, &self.other).out;
            ensure!(
                gone > 0 && (gone..=gone + METADATA).contains(&out),
                "reclaim: {gone} went, {out} seen: {bill:?}"
            );
            self.notes.push(format!("proactive: {gone} pages went, {out} seen, pgsteal was {had:?}"));
        } else {
            self.notes.push("no memory.reclaim here".into());
        }
        Ok(())
    }

    fn refaulted(&mut self) -> Result<u64> {
        Ok(self.session.sample()?.total.get(Counter::Refaulted))
    }

    /// All rows together are all pages that left: what two readings that agree have between them.
    fn adds_up(&mut self) -> Result<()> {
        for _ in 0..100 {
            let before = self.session.blame()?;
            let total = self.session.sample()?.total;
            let now = self.session.blame()?;
            let all = |raw: &Raw, which: fn(How) -> bool| -> u64 {
                raw.rows.iter().filter(|(who, _)| which(who.how)).map(|(_, n)| n.out).sum()
            };
            if all(&before, |_| true) != all(&now, |_| true) {
                continue;
            }
            let (evicted, removed) = (total.get(Counter::Evicted), total.get(Counter::Removed));
            let by_reclaim = all(&now, How::reclaims);
            let otherwise = all(&now, |_| true) - by_reclaim;
            ensure!(
                (evicted, removed) == (by_reclaim, otherwise),
                "{evicted} {removed}, rows {by_reclaim} {otherwise}"
            );
            self.notes.push(format!("evicted {evicted}, removed {removed}: the sums of the rows"));
            return Ok(());
        }
        anyhow::bail!("pages leave all the time")
    }
}

fn all(session: &mut Session, dir: &Path) -> Result<Verdict> {
    let mut run = Run::new(session, dir)?;
    let mut wrong = Vec::new();
    for (what, how) in [
        ("dontneed", How::Dontneed),
        ("truncate", How::Truncated),
        ("unlink", How::Deleted),
        ("drop", How::Dropped),
        // Written past the cache, which must not keep what it has.
        ("direct", How::Invalidated),
        // Which has no mark of reclaim on old kernels.
        ("pageout", if old() { How::Advised } else { How::Pageout }),
    ] {
        wrong.extend(run.taken(what, how).err().map(|e| format!("{e:#}")));
    }
    wrong.extend(run.turns().err().map(|e| format!("by turns: {e:#}")));
    wrong.extend(run.used_again().err().map(|e| format!("used again: {e:#}")));
    // All memory is taken for a moment, and DAMON set up: of a machine that does nothing else.
    if meminfo("MemTotal:")? > MOST_MEMORY {
        run.notes.push("memory of a machine of this size is not made short: the guests' is".into());
    } else {
        match run.short_of_memory() {
            Ok(path) => std::fs::remove_file(&path)?,
            Err(e) => {
                let _ = std::fs::remove_file(dir.join("wanted"));
                wrong.push(format!("{e:#}"));
            }
        }
        wrong.extend(run.grown().err().map(|e| format!("{e:#}")));
        wrong.extend(run.damon().err().map(|e| format!("{e:#}")));
    }
    wrong.extend(run.limited().err().map(|e| format!("{e:#}")));
    // In emulation a device is faster than a processor: hardly a page is waited for, on some days none.
    if run.waited.is_zero() && run.session.plan().sees(Event::WaitOf) {
        run.notes.push("each page was there before its reader looked".into());
    }
    wrong.extend(run.adds_up().err().map(|e| format!("{e:#}")));
    let notes = std::mem::take(&mut run.notes);
    ensure!(wrong.is_empty(), "{}; right: {}", wrong.join("; "), notes.join("; "));
    Ok(right(notes))
}

fn right(notes: Vec<String>) -> Verdict {
    notes.iter().for_each(|note| println!("       {note}"));
    Verdict::Done { figures: vec![], wrong: vec![], notes }
}

fn place(session: &mut Session, dir: &Path) -> Result<Verdict> {
    if meminfo("MemTotal:")? > MOST_MEMORY {
        return Ok(Verdict::NotHere("a machine of this size keeps its memory: the guests' is taken".into()));
    }
    let mut run = Run::new(session, dir)?;
    if let Some(why) = run.place()? {
        // A guest that was booted for this has a place.
        ensure!(!std::fs::read_to_string("/proc/cmdline")?.contains("nokaslr"), "{why}");
        return Ok(Verdict::NotHere(why));
    }
    run.adds_up()?;
    Ok(right(std::mem::take(&mut run.notes)))
}

/// Where the inode of a file that is deleted becomes that of another at once, in the same place of memory (xfs).
fn used_again(session: &mut Session, dir: &Path) -> Result<Verdict> {
    let mut run = Run::new(session, dir)?;
    run.turns().context("by turns")?;
    run.used_again()?;
    Ok(right(std::mem::take(&mut run.notes)))
}

type Test = fn(&mut Session, &Path) -> Result<Verdict>;

const TESTS: [(&str, Fs, Test); 3] =
    [("blame-place", Fs::Ext4, place), ("blame", Fs::Ext4, all), ("blame-used-again", Fs::Xfs, used_again)];

fn is_wanted(args: &Args, name: &str) -> bool {
    args.only.is_empty() || args.only.iter().any(|only| name.contains(&**only))
}

/// Whether it is asked for.
pub fn wanted(args: &Args) -> bool {
    TESTS.iter().any(|(name, ..)| is_wanted(args, name))
}

/// On ext4, and on xfs what is otherwise there: who evicts is no matter of file systems.
pub fn run(args: &Args, dirs: &[(Fs, PathBuf)], tally: &mut Tally) -> Result<()> {
    let ext4 = dirs.iter().find(|(fs, _)| *fs == Fs::Ext4);
    if !wanted(args) {
        return Ok(());
    }
    if ext4.is_none() {
        ensure!(args.only.is_empty(), "blame needs a directory on ext4");
        println!("blame: not run, for there is no directory on ext4");
        return Ok(());
    }
    let wants = Wants { blame: true, bill: true, ..Wants::default() };
    let (without_functions, without_kprobes) = (args.without_functions, args.without_kprobes);
    // What others have in the cache would take all room for names of files as soon as it is dropped.
    // SAFETY: it has no arguments, and cannot fail.
    unsafe { libc::sync() };
    std::fs::write("/proc/sys/vm/drop_caches", "1")?;
    let options = Options { wants, without_functions, without_kprobes, ..Options::default() };
    // With all that may be asked for, the kernel's bounds are nearest (of the stack: 512 bytes).
    let only = only::Only {
        processes: only::Processes { pids: vec![1], seen: u64::MAX },
        comms: vec![Comm::from_bytes(b"nobody")],
        users: vec![0],
        cgroups: vec![only::Group { id: 1, path: "/".into() }],
        files: None,
    };
    let wants = Wants { files: true, group: true, latency: !without_functions, ..options.wants };
    drop(Session::open(&Options { wants, only, ..options.clone() }).context("with filters")?);
    let mut session = Session::open(&options)?;
    for (name, fs, test) in TESTS.iter().filter(|(name, ..)| is_wanted(args, name)) {
        let Some((_, dir)) = dirs.iter().find(|(there, _)| there == fs) else {
            println!("{name}: not run, for there is no directory on {fs:?}");
            continue;
        };
        let dir = dir.join(format!("truth-{}-blame", std::process::id()));
        std::fs::create_dir(&dir)?;
        let mut attempt = || match test(&mut session, &dir) {
            Ok(verdict) => verdict,
            Err(e) => Verdict::Done { figures: vec![], wrong: vec![format!("{e:#}")], notes: vec![] },
        };
        let mut verdict = attempt();
        verdict::print(name, &verdict);
        if matches!(verdict, Verdict::Done { .. }) && !verdict.passed() {
            verdict = attempt();
            verdict::print(name, &verdict);
            if verdict.passed() {
                tally.again.push((*name).into());
            }
        }
        crate::count(tally, (*name).into(), &verdict);
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}
