//! Reading the tables: one pass a tick.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::Ordering;

use libbpf_rs::Link;

use super::attach::Attached;
use super::blame::decode;
use super::entries::entries;
use super::entries::u32_at;
use super::files::Files;
use crate::blame::Raw;
use crate::files::File;
use crate::loss::REASONS;
use crate::sample::Counter;
use crate::sample::Counters;
use crate::sample::FileSample;
use crate::sample::Histograms;
use crate::sample::Lost;
use crate::sample::RowSample;
use crate::wire::COUNTERS;

/// Raw tables of one tick.
pub struct Tables {
    /// Whole system, since attach.
    pub total: Counters,
    /// The same as of the reading of the files; `None` unless these are requested.
    pub by_file: Option<Counters>,
    /// By thread, since the last reading.
    pub rows: Vec<RowSample>,
    /// By process and file, since the last reading; empty unless requested.
    pub files: Vec<FileSample>,
    /// Latency of read calls since attach, if requested.
    pub latency: Option<Box<Histograms>>,
    /// What was lost.
    pub lost: Lost,
}

impl Attached {
    /// Reads everything once, and frees the rows of threads that are gone.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn read(&mut self) -> libbpf_rs::Result<Tables> {
        if self.settle {
            self.skel.progs.settle_pending.test_run(libbpf_rs::ProgramInput::default())?;
        }
        if self.plain {
            self.look_at_plain()?;
        }
        let rows = self.rows.read(&self.skel, &self.chores, &mut self.followed)?;
        self.followed.waiting = (self.followed.run != 0).then(|| self.rows.waiting(self.followed.run));
        let mut total = self.rows.sum();
        total.add(&self.nobodys());
        total.add(&self.went());
        // After all that the totals are made of: see `Line`.
        let files = match &mut self.files {
            Some(files) => files.read(&self.skel, &self.chores, &self.rows, &mut self.followed)?,
            None => Vec::new(),
        };
        let by_file = self.files.is_some().then(|| self.line.add(&total, &files));
        let mut by_reason: Vec<_> =
            REASONS.iter().filter_map(|r| Some((r.id.into(), total.get(r.counter?)))).collect();
        by_reason.push(("followed_full".into(), self.not_followed()));
        by_reason.push(("recursion".into(), self.missed()));
        self.sweep.go(&self.skel, &self.chores, total.get(Counter::LedgerChunks));
        if let Some((_, full)) = by_reason.iter_mut().find(|(why, _)| *why == "prefetched_full") {
            *full += self.sweep.lost;
        }
        let latency = self.rows.latency().cloned().map(Box::new);
        self.give_back_at_times();
        Ok(Tables { total, by_file, rows, files, latency, lost: Lost { by_reason } })
    }

    /// Rows of files are counted.
    #[must_use]
    pub const fn has_files(&self) -> bool {
        self.files.is_some()
    }

    /// Rows of files are used so fast that the tables should be read sooner than once a second.
    #[must_use]
    pub fn pressed(&self) -> bool {
        self.files.as_ref().is_some_and(Files::pressed)
    }

    /// What is in no row, since attach.
    pub(super) fn nobodys(&self) -> Counters {
        let mut all = Counters::default();
        for (i, word) in self.totals.iter().enumerate() {
            let counter = &mut all.0[i % COUNTERS];
            *counter = counter.wrapping_add(word.load(Ordering::Relaxed));
        }
        all
    }

    /// Pages that went, since attach. They are counted apart (`went`).
    fn went(&self) -> Counters {
        let mut gone = Counters::default();
        let Some(bss) = self.skel.maps.bss_data.as_deref() else { return gone };
        for cpu in &bss.went {
            // SAFETY: aligned words of a mapping that lives as long as the skeleton.
            let [removed, evicted] = unsafe { (&raw const cpu.pages).read_volatile() };
            gone.0[Counter::Removed as usize] += removed;
            gone.0[Counter::Evicted as usize] += evicted;
        }
        gone
    }

    /// Processes of the command that is followed for which there was no room. What they make is not followed either.
    fn not_followed(&self) -> u64 {
        // SAFETY: an aligned word of a mapping that lives as long as the skeleton.
        self.skel
            .maps
            .bss_data
            .as_deref()
            .map_or(0, |bss| unsafe { (&raw const bss.followed_full).read_volatile() })
    }

    /// Has the kernel programs say what the last read of each thread has delivered, where no hook has seen its end.
    fn look_at_plain(&mut self) -> libbpf_rs::Result<()> {
        let rows = self.rows.end(&self.skel)?;
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: a word of our own that the kernel programs only read.
            unsafe { (&raw mut bss.rows_read).write_volatile(rows) };
        }
        self.skel.progs.look_plain.test_run(libbpf_rs::ProgramInput::default()).map(drop)
    }

    /// The files that pages were taken out of, since attach, by the numbers that they have there: read once it is told.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn blamed_files(&self) -> libbpf_rs::Result<HashMap<u64, File>> {
        super::bill::files(&self.skel)
    }

    /// Who took pages out, since attach: by evictor, with what was forgotten, and what came back of nobody knows whom. Files
    /// have no names ([`Attached::blamed_files`]).
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn blame(&self) -> libbpf_rs::Result<Raw> {
        // In this order none has more than what it is a part of: readers, evictors, and pages that left.
        let readers = super::bill::readers(&self.skel)?;
        let entries = entries(&self.skel.maps.blame_rows)?;
        let mut details = super::bill::read(&self.skel, readers)?;
        // What is billed by file is counted nowhere else.
        let mut billed: HashMap<u32, u64> = HashMap::new();
        for ((number, _), pages) in &details.shares {
            *billed.entry(*number).or_default() += pages;
        }
        let mut rows = Vec::new();
        for (key, value) in &entries {
            let number = u32_at(key, 0);
            let billed = billed.get(&number).copied().unwrap_or(0);
            if let Some((who, counts)) = decode(number, value, billed) {
                details.numbers.insert(number, who.clone());
                rows.push((who, counts));
            }
        }
        // After them: what kswapd took was then taken from what had grown by then.
        let grown = super::growth::read(&self.skel)?;
        let Some(bss) = self.skel.maps.bss_data.as_deref() else {
            return Ok(Raw { grown, rows, details, ..Raw::default() });
        };
        // SAFETY: aligned words of a mapping that lives as long as the skeleton.
        let (forgotten, strangers) = unsafe {
            (
                (&raw const bss.blame_forgotten).read_volatile(),
                (&raw const bss.blame_strangers).read_volatile(),
            )
        };
        Ok(Raw { rows, forgotten, strangers, details, grown })
    }

    /// Runs of our programs that the kernel skipped: all programs together, and probes that were not even hit.
    fn missed(&self) -> u64 {
        let programs: u64 = self.programs.iter().map(|(_, fd)| recursion_misses(fd.as_raw_fd())).sum();
        let links = self.links.iter().map(Link::as_fd).chain(self.sessions.iter().map(AsFd::as_fd));
        programs + links.map(|l| probe_misses(l.as_raw_fd())).sum::<u64>()
    }
}

/// `recursion_misses` of a program (5.12); 0 where the kernel does not count them.
pub(super) fn recursion_misses(fd: i32) -> u64 {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut len = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: `info` is plain data of the size given, zeroed: no arrays are requested.
    let ret = unsafe { libbpf_sys::bpf_prog_get_info_by_fd(fd, &raw mut info, &raw mut len) };
    if ret == 0 { info.recursion_misses } else { 0 }
}

/// What the probe machinery under a kprobe or kprobe.multi link dropped (6.7); 0 for other links and where it is not
/// counted.
pub(super) fn probe_misses(fd: i32) -> u64 {
    let mut info = libbpf_sys::bpf_link_info::default();
    let mut len = size_of::<libbpf_sys::bpf_link_info>() as u32;
    // SAFETY: `info` is plain data of the size given, zeroed: no arrays are requested.
    let ret = unsafe { libbpf_sys::bpf_link_get_info_by_fd(fd, &raw mut info, &raw mut len) };
    // SAFETY: the types say which members of the unions the kernel filled.
    unsafe {
        let perf = &info.__bindgen_anon_1.perf_event;
        match info.type_ {
            _ if ret != 0 => 0,
            libbpf_sys::BPF_LINK_TYPE_KPROBE_MULTI => info.__bindgen_anon_1.kprobe_multi.missed,
            libbpf_sys::BPF_LINK_TYPE_PERF_EVENT if perf.type_ == libbpf_sys::BPF_PERF_EVENT_KPROBE => {
                perf.__bindgen_anon_1.kprobe.missed
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::skel::types;
    use crate::wire::COUNTERS;
    use crate::wire::FILE_COUNTERS;
    use crate::wire::GROUPS;

    #[test]
    fn the_two_halves_of_the_wire_agree() {
        assert_eq!(size_of::<types::stats>(), COUNTERS * 8);
        let row: types::row = types::row::default();
        assert_eq!((row.v.len(), row.touched.len()), (COUNTERS, GROUPS));
        assert_eq!(types::file_row::default().v.len(), FILE_COUNTERS.len());
        assert_eq!(size_of::<types::file_row>() % 8, 0);
        // A warm read changes two lines of the processor's cache, and a tick reads three.
        assert_eq!(size_of::<types::row>() % 64, 0);
        assert_eq!(std::mem::offset_of!(types::row, comm), 64);
        assert_eq!(std::mem::offset_of!(types::row, v), 128);
    }
}
