//! DAMON pages out what one cgroup has: the kernel counts what its scheme took.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context as _;
use anyhow::Result;
use anyhow::ensure;
use cachetop::blame::How;

use super::PAGES;
use super::Run;
use super::group::Group;
use super::group::cached;
use super::group::file;
use crate::sys;

const ADMIN: &str = "/sys/kernel/mm/damon/admin/kdamonds";
/// Runs from the start where the kernel has it, and suffers nobody beside it.
const STATISTICS: &str = "/sys/module/damon_stat/parameters/enabled";

/// A kdamond that pages out all memory of one cgroup, until it is dropped.
struct Kdamond {
    dir: PathBuf,
    statistics: Option<String>,
}

impl Kdamond {
    fn of(group: &Group) -> Result<Self> {
        let others = fs::read_to_string(Path::new(ADMIN).join("nr_kdamonds"))?;
        ensure!(others.trim() == "0", "somebody has set DAMON up here: it is not ours to change");
        let statistics = fs::read_to_string(STATISTICS).ok();
        if statistics.is_some() {
            fs::write(STATISTICS, "N")?;
        }
        write(Path::new(ADMIN), "nr_kdamonds", "1")?;
        let kdamond = Self { dir: Path::new(ADMIN).join("0"), statistics };
        let contexts = kdamond.dir.join("contexts");
        write(&contexts, "nr_contexts", "1")?;
        let context = contexts.join("0");
        write(&context, "operations", "paddr")?;
        write(&context, "targets/nr_targets", "1")?;
        let (regions, memory) = (context.join("targets/0/regions"), memory()?);
        write(&regions, "nr_regions", &memory.len().to_string())?;
        for (n, (start, end)) in memory.iter().enumerate() {
            write(&regions, &format!("{n}/start"), &start.to_string())?;
            write(&regions, &format!("{n}/end"), &end.to_string())?;
        }
        write(&context, "schemes/nr_schemes", "1")?;
        let scheme = kdamond.scheme();
        write(&scheme, "action", "pageout")?;
        // Regions of any size, age and use.
        for what in ["sz", "nr_accesses", "age"] {
            write(&scheme, &format!("access_pattern/{what}/max"), &u32::MAX.to_string())?;
        }
        write(&scheme, "access_pattern/sz/max", &u64::MAX.to_string())?;
        // What does not match is left alone.
        write(&scheme, "filters/nr_filters", "1")?;
        write(&scheme, "filters/0/type", "memcg")?;
        write(&scheme, "filters/0/memcg_path", &group.path()?)?;
        write(&scheme, "filters/0/matching", "N")?;
        write(&kdamond.dir, "state", "on")?;
        Ok(kdamond)
    }

    fn scheme(&self) -> PathBuf {
        self.dir.join("contexts/0/schemes/0")
    }

    /// Pages that it has paged out.
    fn applied(&self) -> Result<u64> {
        write(&self.dir, "state", "update_schemes_stats")?;
        let bytes: u64 = fs::read_to_string(self.scheme().join("stats/sz_applied"))?.trim().parse()?;
        Ok(bytes / sys::page_size())
    }
}

impl Drop for Kdamond {
    fn drop(&mut self) {
        let _ = write(&self.dir, "state", "off");
        let _ = write(Path::new(ADMIN), "nr_kdamonds", "0");
        if let Some(before) = &self.statistics {
            let _ = fs::write(STATISTICS, before.trim());
        }
    }
}

fn write(dir: &Path, name: &str, value: &str) -> Result<()> {
    let path = dir.join(name);
    fs::write(&path, value).with_context(|| format!("{value:?} to {}", path.display()))
}

/// Where the machine has memory.
fn memory() -> Result<Vec<(u64, u64)>> {
    let text = fs::read_to_string("/proc/iomem")?;
    let lines = text.lines().filter(|line| !line.starts_with(' ') && line.ends_with(": System RAM"));
    let ranges = lines.filter_map(|line| line.split(' ').next()?.split_once('-'));
    ranges.map(|(a, b)| Ok((u64::from_str_radix(a, 16)?, u64::from_str_radix(b, 16)? + 1))).collect()
}

impl Run<'_> {
    /// The owner reads a file, DAMON takes it, and the owner reads it again.
    pub(super) fn damon(&mut self) -> Result<()> {
        if !Path::new(ADMIN).exists() {
            self.notes.push("this kernel has no DAMON".into());
            return Ok(());
        }
        let path = file(self.dir, "damon", PAGES)?;
        self.owner.does("read", &path)?;
        let before = cached(&path, PAGES)?;
        let mut applied = 0;
        let (bill, _) = self.during(|run| {
            let (kdamond, began) = (Kdamond::of(&run.owner)?, Instant::now());
            while cached(&path, PAGES)? > 0 {
                ensure!(
                    began.elapsed() < Duration::from_secs(60),
                    "DAMON leaves {} of {before} pages, having paged out {}",
                    cached(&path, PAGES)?,
                    kdamond.applied()?
                );
                std::thread::sleep(Duration::from_millis(50));
            }
            applied = kdamond.applied()?;
            Ok(())
        })?;
        let (out, all) = (self.of_owner(&bill, &[How::Damon]).out, bill.sum(|how| how == How::Damon).out);
        let told = format!(
            "DAMON: {before} pages of the file went, {applied} by its own count, seen {out} of the owner, {all} of all"
        );
        ensure!(before <= out && out == applied && all == out, "{told}: {bill:?}");
        let share = self.share(&bill, How::Damon, "/damon")?;
        ensure!(share == before, "{share} of the file; {told}: {bill:?}");
        let kdamond = |process: &[u8]| process.starts_with(b"kdamond");
        let rows = bill.rows.iter().filter(|(who, _)| who.how == How::Damon);
        ensure!(
            rows.filter_map(|(who, _)| who.who.as_ref()).all(|row| kdamond(&row.process)),
            "others in DAMON's rows: {bill:?}"
        );
        self.notes.push(told);
        let began = Instant::now();
        let (bill, _) = self.during(|run| run.owner.does("read", &path))?;
        self.read_again(&bill, How::Damon, before, began.elapsed())?;
        let back = self.of_owner(&bill, &[How::Damon]).back;
        ensure!((before..=out).contains(&back), "DAMON: {before} came back, seen {back}: {bill:?}");
        fs::remove_file(&path)?;
        Ok(())
    }
}
