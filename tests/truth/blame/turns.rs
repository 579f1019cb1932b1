//! One thread takes pages of one owner out in several ways by turns, eight pages at a time: by a call with other arguments, by
//! another call, under another name (its own, or given), from another cgroup, of a file with and without a name. What is remembered
//! of the page before must not be taken for the next one, nor one evictor's pages for those of another beside them.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Result;
use anyhow::ensure;
use cachetop::blame::Bill;
use cachetop::blame::How;

use super::PAGES;
use super::Run;
use super::group::Group;
use super::group::cached;
use super::group::file;
use crate::sys;

/// Pages of a turn, and turns until it is the first one's again.
const TURN: usize = 8;
const WAYS: usize = 4;

/// Files after each other that have one name.
const FILES: usize = 128;

/// What is to be of each way.
const SHARE: u64 = (PAGES / WAYS) as u64;

/// By itself, or by another thread.
fn rename(name: &'static std::ffi::CStr, itself: bool) -> Result<()> {
    if itself {
        // SAFETY: a name that ends with a zero, which the kernel copies.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
        return Ok(());
    }
    let other = std::thread::spawn(|| std::fs::write("/proc/self/comm", name.to_bytes()));
    Ok(other.join().expect("nothing panics there")?)
}

/// The process, which is in one cgroup, and goes to the other and back.
pub(super) fn takes(path: &Path, home: &Path, away: &Path) -> Result<()> {
    let page = sys::page_size();
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let past = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(path)?;
    let room = vec![7u8; (TURN + 1) * page as usize];
    let from = room.as_ptr().align_offset(page as usize);
    let moves = |to: &Path| std::fs::write(to.join("cgroup.procs"), std::process::id().to_string());
    let bytes = TURN as u64 * page;
    for turn in 0..PAGES / TURN {
        let at = turn as u64 * bytes;
        rename(if turn % WAYS == 1 { c"second" } else { c"first" }, turn / WAYS % 2 == 0)?;
        match turn % WAYS {
            2 => past.write_all_at(&room[from..from + bytes as usize], at)?,
            3 => {
                moves(away)?;
                sys::advise(&file, at, bytes, libc::POSIX_FADV_DONTNEED)?;
                moves(home)?;
            }
            _ => sys::advise(&file, at, bytes, libc::POSIX_FADV_DONTNEED)?,
        }
    }
    Ok(())
}

/// Half of a file while it has a name, and the rest when it has none.
pub(super) fn cuts(path: &Path) -> Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let half = (PAGES / 2) as u64 * sys::page_size();
    file.set_len(half)?;
    std::fs::remove_file(path)?;
    file.set_len(0)?;
    Ok(())
}

/// Files after each other, of one name, each written past the cache, read, dropped and deleted: soon enough for the next one to have
/// its inode in the same place of memory, within one tick of the clock.
pub(super) fn again(path: &Path) -> Result<()> {
    let page = sys::page_size() as usize;
    let room = vec![7u8; (TURN + 1) * page];
    let from = room.as_ptr().align_offset(page);
    let mut buffer = vec![0; page];
    for _ in 0..FILES {
        let mut options = OpenOptions::new();
        let past = options.create_new(true).write(true).custom_flags(libc::O_DIRECT).open(path)?;
        past.write_all_at(&room[from..from + TURN * page], 0)?;
        let file = std::fs::File::open(path)?;
        sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
        (0..TURN).try_for_each(|n| file.read_exact_at(&mut buffer, (n * page) as u64))?;
        sys::advise(&file, 0, 0, libc::POSIX_FADV_DONTNEED)?;
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Page by page, so that each is a folio.
pub(super) fn reads(path: &Path) -> Result<()> {
    let file = std::fs::File::open(path)?;
    // SAFETY: the descriptor is open.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
    let page = sys::page_size();
    let mut buffer = vec![0; page as usize];
    (0..PAGES as u64).try_for_each(|n| Ok(file.read_exact_at(&mut buffer, n * page)?))
}

impl Run<'_> {
    /// Each file has what went of it, whatever was in the same place of memory before.
    pub(super) fn used_again(&mut self) -> Result<()> {
        let path = self.dir.join("used-again");
        let (bill, _) = self.during(|run| run.other.does("again", &path))?;
        let all = bill.details.by_evictor(&bill.rows);
        let shares = all.iter().filter(|(who, _)| who.how == How::Dontneed).flat_map(|(_, files)| files);
        let named =
            |file: &u64| bill.details.files.get(file).is_some_and(|f| f.name.ends_with("/used-again"));
        let out: Vec<u64> = shares.filter(|s| s.file.as_ref().is_some_and(named)).map(|s| s.out).collect();
        ensure!(out == [TURN as u64; FILES], "{FILES} files of {TURN} pages, seen {out:?}");
        self.notes.push(format!("{FILES} files after each other, {TURN} pages of each"));
        Ok(())
    }

    fn of(&self, bill: &Bill, how: How, by: &Group, process: &[u8]) -> (u64, u64) {
        let rows = bill.rows.iter().filter(|(who, _)| {
            who.how == how
                && who
                    .who
                    .as_ref()
                    .is_some_and(|r| r.owner == self.owner.id && r.by == by.id && r.process == process)
        });
        rows.fold((0, 0), |(out, back), (_, n)| (out + n.out, back + n.back))
    }

    pub(super) fn turns(&mut self) -> Result<()> {
        let path = file(self.dir, "turns", PAGES)?;
        self.owner.does("single", &path)?;
        ensure!(cached(&path, PAGES)? >= PAGES as u64, "not all of it is there");
        let forgotten = self.session.blame()?.forgotten;
        let (gone, _) = self.during(|run| run.other.moves("turns", &path, &run.owner))?;
        let left = cached(&path, PAGES)?;
        let (again, raw) = self.during(|run| run.owner.does("single", &path))?;
        let forgotten = raw.forgotten - forgotten;
        // The page past its end that old kernels read ahead.
        ensure!(left <= 1, "{left} pages stay");
        for (how, by, process) in [
            (How::Dontneed, &self.other, &b"first"[..]),
            (How::Dontneed, &self.other, b"second"),
            (How::Invalidated, &self.other, b"first"),
            (How::Dontneed, &self.owner, b"first"),
        ] {
            let out = self.of(&gone, how, by, process).0;
            let back = self.of(&again, how, by, process).1;
            ensure!(
                out == SHARE && (SHARE - forgotten.min(SHARE)..=SHARE).contains(&back),
                "{how:?} by {process:?}: {SHARE} went and came, seen {out} and {back}: {gone:?}"
            );
        }
        self.owner.does("single", &path)?;
        let (bill, _) = self.during(|run| run.other.does("cuts", &path))?;
        let half = PAGES as u64 / 2;
        let cut = self.of(&bill, How::Truncated, &self.other, b"exe").0;
        let deleted = self.of(&bill, How::Deleted, &self.other, b"exe").0;
        ensure!((cut, deleted) == (half, half), "{half} and {half}, seen {cut} and {deleted}: {bill:?}");
        self.notes
            .push(format!("by turns: {SHARE} in each way, and came back; {cut} cut, {deleted} deleted"));
        Ok(())
    }
}
