//! Somebody needs a place in memory: a page of a gibibyte, and what clean pages of files lie there go.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use anyhow::Result;
use anyhow::ensure;
use cachetop::blame::How;

use super::METADATA;
use super::Run;
use super::group::cached;
use super::group::meminfo;
use super::group::old;
use crate::sys;

const GIGANTIC: &str = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
const HUGE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
/// Room for what everything needs while nearly all memory is taken: 32 MiB.
const SPARE: u64 = 16;
/// Of the file: 128 MiB.
const PAGES: usize = 32_768;
const ATTEMPTS: usize = 3;

/// Huge pages of one size, of which there are as many as before when it is dropped.
struct Pool {
    path: &'static str,
    before: u64,
}

impl Pool {
    fn new(path: &'static str) -> Result<Self> {
        let before = read(path)?;
        let free = read(&path.replace("nr_", "free_"))?;
        ensure!(before == free, "somebody uses huge pages here: {path} is not ours to change");
        Ok(Self { path, before })
    }

    fn has(&self) -> Result<u64> {
        read(self.path)
    }

    /// How many there are then: what cannot be had is no error.
    fn ask(&self, pages: u64) -> Result<u64> {
        fs::write(self.path, pages.to_string()).context(self.path)?;
        self.has()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = self.ask(self.before);
    }
}

fn read(path: &str) -> Result<u64> {
    Ok(fs::read_to_string(path).with_context(|| path.to_owned())?.trim().parse()?)
}

/// Pages of files that are cached, whosever.
fn all_cached() -> Result<u64> {
    // What each processor keeps to itself is told before.
    fs::read("/proc/sys/vm/stat_refresh")?;
    Ok(sys::vmstat("nr_file_pages"))
}

impl Run<'_> {
    /// `Some`: why there can be none here.
    pub(super) fn place(&mut self) -> Result<Option<String>> {
        if !Path::new(GIGANTIC).exists() {
            return Ok(Some("this processor has no pages of 1 GiB".into()));
        }
        let (gigantic, huge) = (Pool::new(GIGANTIC)?, Pool::new(HUGE)?);
        // First of all the place, while nothing is in it (in our guests somebody has taken it).
        if gigantic.ask(1)? == 0 {
            return Ok(Some("no place of 1 GiB is free of what belongs to the kernel".into()));
        }
        let path = self.dir.join("place");
        // A hole: its pages come from nowhere, and are clean.
        fs::File::create(&path)?.set_len(PAGES as u64 * sys::page_size())?;
        // Whatever the kernel needs for a reader and its file it has then had once, elsewhere: what cannot be moved makes a place
        // useless.
        self.owner.does("read", &path)?;
        for _ in 0..ATTEMPTS {
            if self.taken_from(&path, &gigantic, &huge)? {
                fs::remove_file(&path)?;
                return Ok(None);
            }
        }
        fs::remove_file(&path)?;
        let why = if old() {
            "before 5.13 a place is had only where nothing lies"
        } else {
            "something that cannot be moved lay in the place each time"
        };
        Ok(Some(why.into()))
    }

    /// What was read into the place goes when the other wants it. `false`: nothing went.
    fn taken_from(&mut self, path: &Path, gigantic: &Pool, huge: &Pool) -> Result<bool> {
        sys::advise(&fs::File::open(path)?, 0, 0, libc::POSIX_FADV_DONTNEED)?;
        if gigantic.ask(1)? == 0 {
            return Ok(false);
        }
        let mut wants = self.other.waits("place", Path::new(GIGANTIC))?;
        // All else is taken, so that what is read once the place is given back lies there; and then there is memory enough again
        // that nothing has to go for want of that.
        let all = huge.ask(meminfo("MemFree:")? >> 21)?;
        let elsewhere = (meminfo("MemFree:")? + (SPARE << 21)) / sys::page_size();
        gigantic.ask(0)?;
        // What was given back last is used first.
        huge.ask(all.saturating_sub(SPARE))?;
        self.owner.does("read", path)?;
        huge.ask(0)?;
        let before = cached(path, PAGES)?;
        ensure!((PAGES as u64..=PAGES as u64 + 1).contains(&before), "{before} of {PAGES} pages are there");
        let of_all = all_cached()?;
        let (bill, _) = self.during(|_| wants.go())?;
        let fell = of_all.saturating_sub(all_cached()?);
        let (had, gone) = (gigantic.has()?, before - cached(path, PAGES)?);
        gigantic.ask(0)?;
        let (out, all) =
            (self.row(&bill, How::Reclaim, &self.other).out, bill.sum(|how| how == How::Reclaim).out);
        let told = format!(
            "a place in memory: {gone} of {before} pages went, {out} seen; all cached pages fell by {fell}, {all} seen; \
             {elsewhere} may lie elsewhere, the place was had: {}",
            had == 1
        );
        ensure!((gone..=gone + METADATA).contains(&out), "{told}: {bill:?}");
        ensure!(all.abs_diff(fell) <= METADATA, "{told}: {bill:?}");
        if gone == 0 && had == 0 {
            return Ok(false);
        }
        // Where something else cannot be moved, what lies behind that stays.
        ensure!(gone > 0 && (had == 0 || gone + elsewhere >= before), "{told}");
        let share = self.share(&bill, How::Reclaim, "/place")?;
        ensure!(share == gone, "{share} of the file; {told}: {bill:?}");
        self.notes.push(told);
        let began = Instant::now();
        let (bill, _) = self.during(|run| run.owner.does("read", path))?;
        self.read_again(&bill, How::Reclaim, gone, began.elapsed())?;
        let back = self.row(&bill, How::Reclaim, &self.other).back;
        ensure!((gone..=gone + METADATA).contains(&back), "{gone} came back, seen {back}: {bill:?}");
        self.notes.push(format!("a place in memory: {gone} came back, {back} seen"));
        Ok(true)
    }
}
