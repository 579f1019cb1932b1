//! What the figures of a row mean, in plain words; only what they prove. The thresholds are in the help.

use crate::figures::Figure;
use crate::figures::Figures;

/// Rows with fewer pages say nothing: 1 MiB of pages of 4 KiB.
const ENOUGH: u64 = 256;

/// One sentence about a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A short name that does not change.
    pub id: &'static str,
    /// The sentence.
    pub text: String,
    /// What it is about: of the parts of this row, the one that has the most of it proves it best.
    pub of: Figure,
}

/// A part of a whole in per cent. Never `100 %` or `0 %` unless it is all or nothing.
fn percent(part: u64, whole: u64) -> String {
    let x = part as f64 / whole as f64 * 100.0;
    if part > 0 && part < whole { format!("{:.0} %", x.clamp(1.0, 99.0)) } else { format!("{x:.0} %") }
}

/// Whether `part` is `n` of `of` parts of the whole, or more.
const fn share(part: u64, whole: u64, n: u64, of: u64) -> bool {
    (part as u128) * (of as u128) >= (whole as u128) * (n as u128)
}

/// What the figures say, on a machine with pages of so many bytes.
#[must_use]
pub fn find(figures: &Figures, page: u64) -> Vec<Finding> {
    let get = |f| figures.get(f);
    let mut out = Vec::new();
    let mut say = |id, text, of| out.push(Finding { id, text, of });
    let through = get(Figure::ReadBytes).zip(get(Figure::WriteAccesses));
    let past = get(Figure::DirectReadBytes).zip(get(Figure::DirectWriteBytes));
    if let (Some((read, written)), Some((direct_read, direct_written))) = (through, past) {
        let direct = direct_read + direct_written;
        // Pages written are whole pages, so this is the most that can have gone through the cache.
        let all = direct + read + written.saturating_mul(page);
        if direct >= ENOUGH * page && share(direct, all, 1, 2) {
            let part = if direct == all { "all".into() } else { format!("{} or more", percent(direct, all)) };
            let text = format!("{part} of the bytes that calls read and wrote bypassed the cache (O_DIRECT)");
            say(
                "direct-io",
                text,
                if direct_read >= direct_written {
                    Figure::DirectReadBytes
                } else {
                    Figure::DirectWriteBytes
                },
            );
        }
    }
    if let (Some(accesses), Some(hits), Some(ahead), Some(misses)) =
        (get(Figure::Accesses), get(Figure::Hits), get(Figure::ReadAheadHits), get(Figure::Misses))
    {
        if accesses >= ENOUGH && share(ahead, accesses, 1, 2) {
            let text = format!(
                "{} of the pages read were in the cache only because read-ahead had fetched them: no reuse",
                percent(ahead, accesses)
            );
            say("cold-readahead", text, Figure::ReadAheadHits);
        }
        if accesses >= ENOUGH && share(misses, accesses, 1, 2) {
            let text = format!("{} of the pages read were not in the cache", percent(misses, accesses));
            say("cold-misses", text, Figure::Misses);
        }
        if accesses >= ENOUGH && share(hits, accesses, 9, 10) {
            let part = percent(hits, accesses);
            let text =
                format!("{part} of the pages read were cached: used before, or there before counting began");
            say("reuse", text, Figure::Hits);
        }
        if let Some(fetched) = get(Figure::ReadAheadPages).filter(|n| *n >= ENOUGH && !share(ahead, *n, 1, 2))
        {
            let text = format!(
                "{fetched} pages were fetched ahead, and {ahead} such pages were read: the rest was not used so far, \
                 or by others or through mappings"
            );
            say("readahead-unused", text, Figure::ReadAheadPages);
        }
        if let Some(n) = get(Figure::Refaulted).filter(|n| accesses >= ENOUGH && share(*n, accesses, 1, 10)) {
            let text =
                format!("{n} pages were read back in that had been evicted: they did not stay long enough");
            say("refaults", text, Figure::Refaulted);
        }
    }
    if let (Some(accesses), Some(misses)) = (get(Figure::WriteAccesses), get(Figure::WriteMisses)) {
        if accesses >= ENOUGH && share(misses, accesses, 1, 2) {
            let text = format!("{} of the pages written were not in the cache", percent(misses, accesses));
            say("write-misses", text, Figure::WriteMisses);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixtures::figures;

    fn ids(values: &[(Figure, u64)]) -> Vec<&'static str> {
        find(&figures(values), 4096).into_iter().map(|f| f.id).collect()
    }

    #[test]
    fn each_is_said_only_where_the_figures_prove_it() {
        use Figure::*;
        let read = |hits, ahead, misses| {
            vec![(Accesses, hits + ahead + misses), (Hits, hits), (ReadAheadHits, ahead), (Misses, misses)]
        };
        assert!(ids(&[]).is_empty());
        assert!(ids(&read(255, 0, 0)).is_empty(), "too little");
        assert_eq!(ids(&read(1000, 0, 0)), ["reuse"]);
        assert_eq!(ids(&read(8, 12177, 257)), ["cold-readahead"]);
        assert_eq!(ids(&read(0, 0, 1000)), ["cold-misses"]);
        let with = |mut base: Vec<(Figure, u64)>, more: &[(Figure, u64)]| {
            base.extend(more);
            ids(&base)
        };
        assert_eq!(with(read(500, 100, 400), &[(ReadAheadPages, 1000)]), ["readahead-unused"]);
        assert_eq!(with(read(500, 100, 400), &[(Refaulted, 100)]), ["refaults"]);
        assert_eq!(ids(&[(DirectReadBytes, 32 << 20), (ReadBytes, 4096)]), ["direct-io"]);
        assert!(ids(&[(DirectReadBytes, 2 << 20), (ReadBytes, 4 << 20)]).is_empty());
        assert_eq!(ids(&[(WriteAccesses, 1000), (WriteMisses, 500)]), ["write-misses"]);
    }

    #[test]
    fn nothing_is_said_of_what_is_not_known() {
        assert!(find(&Figures::unknown(), 4096).is_empty());
        let mut half = figures(&[(Figure::DirectReadBytes, 1 << 30)]);
        half.set(Figure::ReadBytes, None);
        assert!(find(&half, 4096).is_empty());
    }

    #[test]
    fn all_and_nothing_are_said_only_of_all_and_nothing() {
        assert_eq!(percent(1, 100_000), "1 %");
        assert_eq!(percent(99_999, 100_000), "99 %");
        assert_eq!(percent(7, 7), "100 %");
    }

    #[test]
    fn pages_that_are_larger_are_more_bytes() {
        use Figure::*;
        let some = figures(&[(DirectWriteBytes, 16 << 20), (WriteAccesses, 300)]);
        assert_eq!(find(&some, 4096).len(), 1);
        assert!(find(&some, 65536).is_empty(), "300 pages may be more than half of it");
    }
}
