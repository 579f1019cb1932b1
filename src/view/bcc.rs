//! The columns and the formatting of bcc's `cachestat`, for scripts that parse them.
//!
//! The layout is bcc's to the byte. The figures are ours, in bcc's meaning:
//!
//! - bcc's HITS + MISSES are the page accesses of reads, and a miss is a page that had to be brought in, no
//!   matter whether the reader or read-ahead requested it. So MISSES = `misses` + `readahead_hits`, and
//!   HITS = `hits`. A warm read gives the same HITS as bcc; a file read cold from end to end gives MISSES
//!   equal to the pages filled. bcc takes the difference of two counts, one of them made when read-ahead
//!   ran, and clamps what goes below zero; here every access is counted with its outcome, so there is
//!   nothing to clamp, and an interval that ends in the middle of a read-ahead window is right as well.
//! - DIRTIES is pages that became dirty. bcc counts calls of `mark_buffer_dirty`, which file systems
//!   without buffer heads (xfs, btrfs) do not make.
//! - HITRATIO is bcc's `0.00%` when nothing was read, because scripts expect a number there.
//!
//! With `--engine classic` they are bcc's own: the same arithmetic on the same events, but pages for folios, and
//! nothing clamped. DIRTIES are then `mark_buffer_dirty` events.
//!
//! A figure that this kernel cannot give is `-`, so that a script fails rather than believe a zero.

use std::fmt::Write as _;

use super::Clock;
use super::View;
use crate::classic;
use crate::classic::Counter;
use crate::figures::Figure;
use crate::model::Interval;

/// bcc's layout.
pub struct Bcc {
    pub(crate) clock: Option<Clock>,
}

/// What bcc prints in its first four columns.
struct Cells {
    hits: String,
    misses: String,
    dirties: String,
    ratio: String,
}

/// From the exact engine's figures.
fn exact(interval: &Interval) -> Cells {
    let of = |figure| interval.total.get(figure);
    let hits = of(Figure::Hits);
    let misses = of(Figure::Misses).zip(of(Figure::ReadAheadHits)).map(|(a, b)| a.saturating_add(b));
    let ratio =
        hits.zip(misses).map(|(h, m)| if (h, m) == (0, 0) { 0.0 } else { h as f64 / (h as f64 + m as f64) });
    let (hits, misses, dirties) = (number(hits), number(misses), number(of(Figure::Dirtied)));
    Cells { hits, misses, dirties, ratio: percent(ratio) }
}

/// From bcc's own arithmetic, without its clamps.
fn classic(c: &classic::Figures) -> Cells {
    let ratio = c.hits().zip(c.total()).map(|_| c.hit_ratio().unwrap_or(0.0));
    let dirties = number(c.get(Counter::BufferDirtied));
    Cells { hits: number(c.hits()), misses: number(c.misses()), dirties, ratio: percent(ratio) }
}

fn percent(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".into(), |r| format!("{:.2}%", 100.0 * r))
}

fn number(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".into(), |n| n.to_string())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl View for Bcc {
    fn begin(&mut self, out: &mut String) {
        if let Some(clock) = &self.clock {
            let _ = write!(out, "{:<w$} ", "TIME", w = clock.width());
        }
        let _ = writeln!(
            out,
            "{:>8} {:>8} {:>8} {:>8} {:>12} {:>10}",
            "HITS", "MISSES", "DIRTIES", "HITRATIO", "BUFFERS_MB", "CACHED_MB"
        );
    }

    fn interval(&mut self, interval: &Interval, out: &mut String) {
        if let Some(clock) = &self.clock {
            let _ = write!(out, "{} ", clock.show(interval.time));
        }
        let Cells { hits, misses, dirties, ratio } =
            interval.classic.as_ref().map_or_else(|| exact(interval), classic);
        let _ = writeln!(
            out,
            "{:>8} {:>8} {:>8} {:>8} {:>12.0} {:>10.0}",
            hits,
            misses,
            dirties,
            ratio,
            mib(interval.memory.buffers_bytes),
            mib(interval.memory.cached_bytes),
        );
    }
}
