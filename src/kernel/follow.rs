//! Telling the kernel programs whom to follow.

use libbpf_rs::MapCore as _;
use libbpf_rs::MapFlags;

use super::attach::Attached;
use super::tables::entries;
use super::tables::u32_at;
use crate::follow::Followed;

impl Attached {
    /// From here on what processes of this run do is kept apart. Nobody belongs to it yet.
    pub fn follow(&mut self, run: u32) {
        self.followed = Followed::new(run);
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
        self.skel.maps.followed.update(&tgid.to_ne_bytes(), &run.to_ne_bytes(), MapFlags::ANY)?;
        // Rows that it has got since the programs count were made before this.
        self.rows.enter(&self.skel, tgid, run)?;
        if let Some(files) = &mut self.files {
            files.enter(tgid, run);
        }
        Ok(())
    }

    /// The processes of a run that have not been waited for: by thread-group id.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn members(&self, run: u32) -> libbpf_rs::Result<Vec<u32>> {
        let all = entries(&self.skel.maps.followed)?;
        Ok(all.iter().filter(|(_, v)| u32_at(v, 0) == run).map(|(k, _)| u32_at(k, 0)).collect())
    }

    /// What was followed, up to the last reading.
    #[must_use]
    pub fn followed(&self) -> &Followed {
        &self.followed
    }
}
