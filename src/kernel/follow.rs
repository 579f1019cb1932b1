//! Telling the kernel programs whom to follow.

use libbpf_rs::MapCore as _;
use libbpf_rs::MapFlags;

use super::attach::Attached;
use super::entries::entries;
use super::entries::keys;
use super::entries::u32_at;
use crate::sample::Followed;
use crate::sample::Gone;

impl Attached {
    /// From here on what processes of this run do is kept apart. Nobody belongs to it yet.
    pub fn follow(&mut self, run: u32) {
        self.followed = Followed::new(run);
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: as in `spawning`.
            unsafe { (&raw mut bss.asking.run).write_volatile(run) };
            // SAFETY: a word of our own that the kernel programs only read.
            unsafe { (&raw mut bss.touches_of_run).write_volatile(run) };
        }
    }

    /// While this is not 0, a process that the monitor makes belongs to that run.
    pub fn spawning(&mut self, run: u32) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: a word of our own that the kernel programs only read.
            unsafe { (&raw mut bss.spawning).write_volatile(run) };
        }
    }

    /// Takes a process into the run: itself and what it makes from here on.
    ///
    /// # Errors
    /// When the table is full.
    pub fn enter(&mut self, tgid: u32, run: u32) -> libbpf_rs::Result<()> {
        // struct member: the run, and nothing that tells this process from a later one with its id.
        let mut member = [0; 16];
        member[..8].copy_from_slice(&u64::from(run).to_ne_bytes());
        self.skel.maps.followed.update(&tgid.to_ne_bytes(), &member, MapFlags::ANY)?;
        // What evicts has been looked at before: it is looked at anew.
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: a word of our own. The kernel programs write to it where a cgroup is made, and any other value will do.
            unsafe {
                let epoch = &raw mut bss.asking.epoch;
                epoch.write_volatile(epoch.read_volatile().wrapping_add(1));
            }
        }
        // Rows that it has got since the programs count were made before this.
        self.rows.enter(&self.skel, tgid, run)?;
        if let Some(files) = &mut self.files {
            files.enter(&self.skel, tgid, run)?;
        }
        Ok(())
    }

    /// Follows a process no longer, and does not keep its accounts when it goes. False if it has gone.
    ///
    /// # Errors
    /// When the table refuses.
    pub fn leave(&self, tgid: u32) -> libbpf_rs::Result<bool> {
        match self.skel.maps.followed.delete(&tgid.to_ne_bytes()) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == libbpf_rs::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// The run of a process that has not been waited for.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn run_of(&self, tgid: u32) -> libbpf_rs::Result<Option<u32>> {
        Ok(self.chores.runs_of(&[tgid])?.first().copied().filter(|run| *run != 0))
    }

    /// The processes of a run that have not been waited for: by thread-group id.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn members(&self, run: u32) -> libbpf_rs::Result<Vec<u32>> {
        let followed = &self.skel.maps.followed;
        let keys = match keys(followed) {
            Ok(keys) => keys,
            // It does not hold still: by batches.
            Err(_) => entries(followed)?.into_iter().map(|(key, _)| key).collect(),
        };
        let all: Vec<u32> = keys.iter().map(|key| u32_at(key, 0)).collect();
        let runs = self.chores.runs_of(&all)?;
        Ok(all.into_iter().zip(runs).filter(|(_, of)| *of == run).map(|(tgid, _)| tgid).collect())
    }

    /// What processes that are gone used, of all that were ever followed.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn gone(&self) -> libbpf_rs::Result<Gone> {
        let value = self.skel.maps.used.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        let n = |i: usize| {
            let bytes = value.get(8 * i..8 * i + 8).and_then(|b| b.try_into().ok());
            bytes.map_or(0, u64::from_ne_bytes)
        };
        Ok(Gone {
            user_ns: n(0),
            system_ns: n(1),
            ran_ns: n(2),
            minor_faults: n(3),
            major_faults: n(4),
            read_bytes: n(5),
            write_bytes: n(6),
        })
    }

    /// What was followed, up to the last reading, if anything is. What came since the one before is handed out once.
    #[must_use]
    pub fn take_followed(&mut self) -> Option<Box<Followed>> {
        let Followed { run, counters, threads, waiting, .. } = self.followed;
        let f = &mut self.followed;
        let (files, parts) = (std::mem::take(&mut f.files), std::mem::take(&mut f.parts));
        let processes = std::mem::take(&mut f.processes);
        let histograms = self.followed.histograms.clone();
        (run != 0).then(|| {
            Box::new(Followed { run, counters, histograms, files, parts, processes, threads, waiting })
        })
    }
}
