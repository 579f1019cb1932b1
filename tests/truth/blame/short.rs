//! Memory of the machine is short.

use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context as _;
use anyhow::Result;
use anyhow::ensure;
use cachetop::blame::How;
use cachetop::blame::Room;
use cachetop::plan::Event;
use cachetop::sample::Source as _;

use super::METADATA;
use super::Run;
use super::group::cached;
use super::group::file;
use super::group::lots;
use super::group::meminfo;
use crate::sys;

impl Run<'_> {
    /// For whom kswapd made room: one cgroup takes so much, and the other nothing.
    fn room(&mut self, room: &Room, pages: u64) -> Result<()> {
        let (took, quiet) = (room.of(self.other.id), room.of(self.owner.id));
        let told = format!(
            "kswapd took {}, unexplained {}; {took:?}, quiet {quiet:?}",
            room.taken, room.unexplained
        );
        // What waits on each processor to be put on a list.
        let waits = 31 * std::thread::available_parallelism()?.get() as u64;
        ensure!(
            room.taken > 0 && took.did.grew + waits >= pages && took.did.woke > 0,
            "{pages} pages: {told}"
        );
        ensure!(took.at_most + waits >= room.taken.min(pages), "{told}");
        // A folio that it had brought in before may have waited until now: the largest has 512 pages.
        ensure!(quiet.at_most <= METADATA + 512 && quiet.did.woke == 0, "{told}");
        // Others that grew by more than kswapd took may have as much.
        let most = room.shares().first().map(|(_, n)| n.at_most);
        ensure!(most == Some(took.at_most), "first {most:?}: {told}");
        self.notes.push(format!("{pages} pages were taken: {told}"));
        Ok(())
    }

    /// One cgroup reads files, more than there is room for; the other has nothing to do.
    pub(super) fn grown(&mut self) -> Result<()> {
        let path = self.dir.join("large");
        let pages = (meminfo("MemFree:")? + meminfo("Cached:")?) / sys::page_size();
        std::fs::File::create(&path)?.set_len(pages * sys::page_size())?;
        let before = self.session.blame()?;
        self.other.does("read", &path)?;
        let mut room = Room::default();
        room.add(&before, &self.session.blame()?);
        std::fs::remove_file(&path)?;
        self.room(&room, pages).context("a file is read")
    }

    /// Somebody takes all memory there is: pages of the owner go by kswapd, and by those who need room at once.
    pub(super) fn short_of_memory(&mut self) -> Result<PathBuf> {
        // khugepaged makes room itself, as others do, and is counted apart from 6.3 on.
        const KEYS: [&[&str]; 2] = [&["pgsteal_kswapd"], &["pgsteal_direct", "pgsteal_khugepaged"]];
        const HOWS: [How; 2] = [How::Kswapd, How::Direct];
        let counted = || KEYS.map(|keys| keys.iter().map(|key| sys::vmstat(key)).sum::<u64>());
        let all = meminfo("MemTotal:")? - meminfo("Hugetlb:")?;
        let pages = (all / 4 / sys::page_size()) as usize;
        let path = file(self.dir, "wanted", pages)?;
        self.owner.does("read", &path)?;
        let before = cached(&path, pages)?;
        let (had, stolen) = (counted(), self.owner.stat("pgsteal"));
        let (free, was) = (meminfo("MemFree:")?, self.session.blame()?);
        let (bill, after) = self.during(|run| {
            run.other.does("hog", &path)?;
            kswapd_sleeps()
        })?;
        let mut room = Room::default();
        room.add(&was, &after);
        self.room(&room, free / sys::page_size())?;
        let gone = before - cached(&path, pages)?;
        let now = counted();
        let took = [0, 1].map(|i| now[i] - had[i]);
        let seen = HOWS.map(|how| bill.sum(|other| other == how).out);
        let owners = self.of_owner(&bill, &HOWS).out;
        let told = format!("{KEYS:?} {took:?}, seen {seen:?}; {gone} pages of the owner went, {owners} seen");
        // Reclaim also frees what has no place in a file any more.
        ensure!(
            (0..2).all(|i| seen[i] <= took[i] && took[i] - seen[i] <= METADATA),
            "{told}: {:?}",
            bill.rows.iter().filter(|(_, n)| n.out > 0).collect::<Vec<_>>()
        );
        ensure!(gone > 0 && (gone..=gone + METADATA).contains(&owners), "{told}");
        let until = Instant::now() + Duration::from_secs(30);
        // Of two counts: kswapd's and that of who made room itself.
        let lots = 2 * lots()?;
        while let (Some(had), Some(now)) = (stolen, self.owner.stat("pgsteal")) {
            let rise = now - had;
            if rise + lots >= owners && rise <= owners + METADATA + lots {
                break;
            }
            ensure!(Instant::now() < until, "pgsteal of the owner {rise}: {told}");
            std::thread::sleep(Duration::from_millis(100));
        }
        self.notes.push(told);
        // A page of which there is no room to say who took it out has come back from nobody.
        let forgotten = bill.forgotten;
        let (counted, began) = (self.refaulted()?, Instant::now());
        let had = self.owner.stat("workingset_refault_file");
        let (bill, _) = self.during(|run| run.owner.does("read", &path))?;
        let took = began.elapsed();
        let back = self.of_owner(&bill, &HOWS);
        let waited = Duration::from_nanos(back.waited_ns);
        ensure!(waited <= took, "{waited:?} of {took:?} were waited");
        self.waited += waited;
        // Two processors that write to one set at a time may lose an entry (bpf/blame.h).
        let least = gone - gone / 500 - (forgotten + bill.forgotten).min(gone / 100);
        ensure!((least..=gone + METADATA).contains(&back.back), "{gone} went, back {back:?}");
        self.notes.push(format!(
            "of these {} came back in {took:?}, of which {waited:?} in {} waits",
            back.back, back.waits
        ));
        if self.session.plan().sees(Event::RefaultOf) {
            let counted = self.refaulted()? - counted;
            let billed = bill.sum(|_| true).refaulted + bill.strangers;
            ensure!(billed == counted, "{billed} billed, {counted} counted");
            let until = Instant::now() + Duration::from_secs(30);
            while let (Some(had), Some(now)) = (had, self.owner.stat("workingset_refault_file")) {
                let rise = now - had;
                if rise.abs_diff(back.refaulted) <= lots + bill.strangers {
                    self.notes.push(format!("refaults: {rise} by memory.stat, {} seen", back.refaulted));
                    break;
                }
                ensure!(Instant::now() < until, "workingset_refault_file {rise}, seen {back:?}");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        Ok(path)
    }
}

/// Waits until kswapd takes no more: it goes on for a while after whoever woke it is gone.
fn kswapd_sleeps() -> Result<()> {
    let until = Instant::now() + Duration::from_secs(30);
    let mut before = sys::vmstat("pgsteal_kswapd");
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let now = sys::vmstat("pgsteal_kswapd");
        if now == before {
            return Ok(());
        }
        ensure!(Instant::now() < until, "kswapd does not end: {before}, {now}");
        before = now;
    }
}
