//! The state of the cache that a run was made in, for whoever reads its time later: what was cached of its files before,
//! what could not be emptied, who else was at work, what was lost. A benchmark's report can carry it as it is.

use serde::Deserialize;
use serde::Serialize;

use super::cold::Left;
use super::units;
use super::units::count;
use super::units::percent;
use super::units::share;
use crate::text::numbers::Unit;

/// The name of this shape of it. It changes when a key means something else.
pub const ID: &str = "cachestat-certificate-1";

/// Pages of the monitor's own program that a process may use before it becomes the command.
const OWN: u64 = 256;

/// What others read, or brought in, below which they did not disturb: a shell somewhere, a log.
const LITTLE: u64 = 1 << 20;

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Certificate {
    /// [`ID`].
    pub id: String,
    /// What was cached when the run began.
    pub before: Before,
    /// What `--cold` did; `None` where nothing was emptied before this run.
    pub cold: Option<Emptied>,
    /// Who else was at work.
    pub others: Others,
    /// Events of the machine that could not be accounted.
    pub lost: u64,
}

/// What was cached of the files that a run read or mapped, before it began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Before {
    /// Files that have a device or a server behind them; those in memory only (tmpfs) are always cached.
    pub files: u64,
    /// Of these, the ones of which it is not known; all that follows is about the others.
    pub files_unknown: u64,
    /// Bytes that the run used of files of which it is not known.
    pub unknown_used_bytes: u64,
    /// Size of the files, in whole pages.
    pub bytes: u64,
    /// At least so much of that was cached; `None` where it is known of no file.
    pub cached_at_least_bytes: Option<u64>,
    /// At most so much.
    pub cached_at_most_bytes: Option<u64>,
    /// The former of `bytes`.
    pub share_at_least: Option<f64>,
    /// The latter of `bytes`.
    pub share_at_most: Option<f64>,
    /// Whether it is known of all files, and to the page.
    pub exact: bool,
    /// Why it is not.
    pub why: Vec<String>,
}

/// What was emptied before a run, and what could not be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Emptied {
    /// As `--cold` names them.
    pub caches: String,
    /// Bytes of files of the whole machine that stayed, tmpfs apart: mapped or in use otherwise.
    pub left_file_bytes: u64,
    /// Bytes of metadata that stayed.
    pub left_metadata_bytes: u64,
    /// Whether journals of ext4 could not be told to put into place what they hold.
    pub journals_kept: bool,
}

/// What all others did between the beginning and the end of the run; `None` where this kernel does not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Others {
    /// Bytes that they read through the cache.
    pub read_bytes: Option<u64>,
    /// Of these, in whole pages, what was not cached.
    pub missed_bytes: Option<u64>,
    /// Bytes that they brought in: missed, read ahead, by faults.
    pub brought_in_bytes: Option<u64>,
    /// Bytes that they wrote, in pages that became dirty.
    pub dirtied_bytes: Option<u64>,
    /// Bytes that they read past the cache (`O_DIRECT`), which takes the device from the run as much.
    pub direct_read_bytes: Option<u64>,
    /// Bytes that they wrote past it.
    pub direct_write_bytes: Option<u64>,
    /// Whether these two are at least so much: not all of it is seen here.
    pub direct_at_least: bool,
    /// Why something of it is not known.
    pub why: Option<String>,
}

impl Before {
    /// Sums in pages, with a share of each.
    #[must_use]
    pub fn known(self, pages: u64, least: u64, most: u64, page: u64) -> Self {
        let of = |n: u64| (pages > 0).then(|| share(n, pages));
        Self {
            bytes: pages * page,
            cached_at_least_bytes: Some(least * page),
            cached_at_most_bytes: Some(most * page),
            share_at_least: of(least),
            share_at_most: of(most),
            ..self
        }
    }

    /// In words.
    #[must_use]
    pub fn about(&self, unit: Unit) -> String {
        let (Some(least), Some(most)) = (self.share_at_least, self.share_at_most) else {
            return match self.files {
                0 => "no file on a device was read".into(),
                1 => "what was cached of a file is not known".into(),
                n => format!("what was cached is not known of any of {} files", count(n)),
            };
        };
        let known = self.files - self.files_unknown.min(self.files);
        let which = if known == 1 { "a file".into() } else { format!("{} files", count(known)) };
        let (low, high) = (percent(least, 1), percent(most, 1));
        // An end that bounds nothing is left out: "11.8 % to 100 %" reads like a measurement that failed.
        let share = match (low == high, least > 0.0, most < 1.0) {
            (true, ..) => low,
            (_, true, false) => format!("at least {}", low.trim_start_matches('>')),
            (_, false, true) => format!("at most {}", high.trim_start_matches('<')),
            _ => format!("{low} to {high}"),
        };
        let unknown = match self.files_unknown {
            0 => String::new(),
            1 => "; of another file it is not known".into(),
            n => format!("; of {} others it is not known", count(n)),
        };
        let size = units::volume_of_bytes(self.bytes, unit);
        // Bounds that bound nothing.
        if self.cached_at_least_bytes == Some(0) && self.cached_at_most_bytes == Some(self.bytes) {
            return format!("what was cached before of {size} in {which} is not known{unknown}");
        }
        format!("{share} of {size} in {which} was cached before{unknown}")
    }
}

impl Others {
    /// In words.
    #[must_use]
    pub fn about(&self, unit: Unit) -> String {
        let bytes = |n| units::volume_of_bytes(n, unit);
        let (Some(read), Some(brought)) = (self.read_bytes, self.brought_in_bytes) else {
            return "what others read is not known".into();
        };
        let past = self.past(unit);
        // What is not seen past the cache may be any amount.
        let all = past.is_empty() && self.direct_read_bytes.is_some() && !self.direct_at_least;
        let way = if all { "" } else { " through the cache" };
        if read <= LITTLE && brought <= LITTLE {
            return format!("nobody else read more than {}{way}{past}", bytes(LITTLE));
        }
        format!("others read {}{way} and brought {} in{past}", bytes(read), bytes(brought))
    }

    /// What they read and wrote past the cache, where that was no little.
    fn past(&self, unit: Unit) -> String {
        let least = if self.direct_at_least { "at least " } else { "" };
        let many = |n: Option<u64>| n.filter(|n| *n > LITTLE).map(|n| units::volume_of_bytes(n, unit));
        match (many(self.direct_read_bytes), many(self.direct_write_bytes)) {
            (None, None) => String::new(),
            (Some(read), None) => format!("; past it, others read {least}{read}"),
            (None, Some(written)) => format!("; past it, others wrote {least}{written}"),
            (Some(read), Some(written)) => {
                format!("; past it, others read {least}{read} and wrote {least}{written}")
            }
        }
    }
}

impl Certificate {
    /// Pages of its files that were in the cache before it, at most.
    pub(super) fn there(&self) -> Option<u64> {
        let bytes = self.before.cached_at_most_bytes? + self.before.unknown_used_bytes;
        // Of the monitor's own program, which the process is before it becomes the command, nothing is among these.
        (self.lost == 0).then(|| bytes.div_ceil(units::page()) + OWN)
    }

    /// With what was emptied before the run.
    pub(super) fn emptied(&mut self, caches: &str, left: &Left) {
        self.cold = Some(Emptied {
            caches: caches.to_owned(),
            left_file_bytes: left.file_bytes,
            left_metadata_bytes: left.buffers_bytes,
            journals_kept: left.journals_kept,
        });
    }

    /// The certificate in one sentence.
    #[must_use]
    pub fn line(&self, unit: Unit) -> String {
        let state = if self.cold.is_some() { "cold: " } else { "" };
        let lost = match self.lost {
            0 => String::new(),
            1 => "; 1 event was lost".into(),
            n => format!("; {} events were lost", count(n)),
        };
        format!("{state}{}; {}{lost}", self.before.about(unit), self.others.about(unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others(read: u64) -> Others {
        let (direct_read_bytes, direct_write_bytes) = (Some(0), Some(0));
        let past = Others { direct_read_bytes, direct_write_bytes, ..Others::default() };
        Others { read_bytes: Some(read), brought_in_bytes: Some(0), ..past }
    }

    #[test]
    fn what_others_did_past_the_cache() {
        const GIB: u64 = 1 << 30;
        let about = |read, written, direct_at_least| {
            let (direct_read_bytes, direct_write_bytes) = (read, written);
            Others { direct_read_bytes, direct_write_bytes, direct_at_least, ..others(0) }.about(Unit::Bytes)
        };
        // A gigabyte is no less of the device for that.
        let through = "nobody else read more than 1 MiB through the cache";
        let read = about(Some(GIB), Some(0), false);
        assert_eq!(read, format!("{through}; past it, others read 1 GiB"));
        let both = about(Some(GIB), Some(2 * GIB), true);
        assert_eq!(both, format!("{through}; past it, others read at least 1 GiB and wrote at least 2 GiB"));
        assert_eq!(about(Some(0), Some(GIB), false), format!("{through}; past it, others wrote 1 GiB"));
        // Of what is not seen, nothing is said.
        assert_eq!(about(Some(0), Some(0), true), through);
        assert_eq!(about(None, None, false), through);
        assert_eq!(about(Some(4096), Some(0), false), "nobody else read more than 1 MiB");
        let much = Others { direct_at_least: true, ..others(3 << 20) };
        assert_eq!(much.about(Unit::Bytes), "others read 3 MiB through the cache and brought 0 B in");
    }

    #[test]
    fn one_sentence() {
        let before = Before { files: 6002, ..Before::default() }.known(300_000, 900, 900, 4096);
        let mut c = Certificate { before, others: others(5000), ..Certificate::default() };
        c.emptied("all", &Left::default());
        let files = count(6002);
        assert_eq!(
            c.line(Unit::Bytes),
            format!(
                "cold: 0.3 % of 1.1 GiB in {files} files was cached before; nobody else read more than 1 MiB"
            )
        );
        c.before = Before { files: 3, files_unknown: 2, ..Before::default() }.known(100, 90, 100, 4096);
        assert_eq!(
            c.line(Unit::Pages),
            "cold: at least 90.0 % of 100 pages in a file was cached before; of 2 others it is not known; nobody else \
             read more than 256 pages"
        );
        (c.others, c.lost, c.cold) = (others(3 << 20), 4, None);
        assert_eq!(
            c.line(Unit::Bytes),
            "at least 90.0 % of 400 KiB in a file was cached before; of 2 others it is not known; others read 3 MiB \
             and brought 0 B in; 4 events were lost"
        );
    }

    #[test]
    fn what_is_not_known_is_said() {
        let c = Certificate::default();
        assert_eq!(c.line(Unit::Bytes), "no file on a device was read; what others read is not known");
        let one = Before { files: 1, files_unknown: 1, ..Before::default() };
        let one = Certificate { before: one, lost: 1, ..Certificate::default() };
        assert_eq!(
            one.line(Unit::Bytes),
            "what was cached of a file is not known; what others read is not known; 1 event was lost"
        );
        let before = Before { files: 2, files_unknown: 2, ..Before::default() };
        let lost = Before { files: 5, ..Before::default() }.known(100, 0, 100, 4096);
        assert_eq!(lost.about(Unit::Bytes), "what was cached before of 400 KiB in 5 files is not known");
        let some = Before { files: 5, ..Before::default() };
        let of = |least, most| some.clone().known(100, least, most, 4096).about(Unit::Bytes);
        assert_eq!(of(0, 30), "at most 30.0 % of 400 KiB in 5 files was cached before");
        assert_eq!(of(20, 30), "20.0 % to 30.0 % of 400 KiB in 5 files was cached before");
        assert!(before.about(Unit::Bytes).starts_with("what was cached is not known of any of 2 files"));
    }
}
