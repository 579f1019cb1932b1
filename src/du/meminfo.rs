//! `--explain`: how much of the whole page cache it is that was looked at, and where the rest may be.

use std::fs;

use super::totals::Totals;
use crate::text::numbers::bytes;
use crate::text::numbers::percent;

/// What /proc/meminfo says of the page cache, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct System {
    /// `Cached`: pages of files, those of tmpfs and shared memory included.
    cached: u64,
    /// `Shmem`: of these, pages of tmpfs and shared memory, which have no other place.
    shmem: u64,
    /// `Buffers`: pages of block devices, which are not in `cached`.
    buffers: u64,
}

impl System {
    fn parse(text: &str) -> Option<Self> {
        let figure = |name: &str| {
            let rest = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
            let kib: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
            kib.checked_mul(1024)
        };
        Some(Self { cached: figure("Cached")?, shmem: figure("Shmem")?, buffers: figure("Buffers")? })
    }
}

/// What there is to say of figures in their sum.
#[must_use]
pub(super) fn explained(total: &Totals) -> Vec<String> {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    match System::parse(&text) {
        Some(system) => lines(total, system),
        None => vec!["/proc/meminfo does not tell what the page cache holds".into()],
    }
}

fn lines(total: &Totals, system: System) -> Vec<String> {
    let System { cached, shmem, buffers } = system;
    let page = rustix::param::page_size() as u64;
    let Some(here) = total.cached().map(|n| n.saturating_mul(page)) else {
        return vec![format!("the page cache holds {}; how much of it is here is not known", bytes(cached))];
    };
    let least = if total.partial() { "at least " } else { "" };
    let share = match cached.checked_sub(here) {
        Some(_) if cached > 0 => format!(" ({least}{})", percent(here as f64 / cached as f64)),
        // Asked one after the other; and pages of block devices are not in it.
        _ => String::new(),
    };
    let mut out = vec![format!(
        "this is {least}{}{share} of {} of page cache: Cached of /proc/meminfo",
        bytes(here),
        bytes(cached)
    )];
    if let Some(rest) = cached.checked_sub(here).filter(|rest| *rest > 0) {
        let most = if total.partial() { "at most " } else { "" };
        out.push(format!(
            "the rest, {most}{}, is of files elsewhere, of deleted ones (--all finds those in use), and of directories",
            bytes(rest)
        ));
    }
    out.push(format!(
        "of all, {} is tmpfs and shared memory (Shmem); block devices have {} besides (Buffers; 'cachedu /dev/…')",
        bytes(shmem),
        bytes(buffers)
    ));
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const TEXT: &str =
        "MemTotal: 9 kB\nBuffers:    1024 kB\nCached:   40960 kB\nSwapCached: 7 kB\nShmem:  2048 kB\n";

    #[test]
    fn figures_of_the_kernel() {
        let system = System::parse(TEXT).unwrap();
        assert_eq!(system, System { cached: 40 << 20, shmem: 2 << 20, buffers: 1 << 20 });
        for bad in [
            "",
            "Cached: 1 kB\n",
            "Cached: x kB\nShmem: 1 kB\nBuffers: 1 kB",
            "Cached: 99999999999999999999 kB",
        ] {
            assert_eq!(System::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_share_that_is_known_or_bounded() {
        let system = System::parse(TEXT).unwrap();
        let page = rustix::param::page_size() as u64;
        let mut total = Totals { files: 2, cached: (10 << 20) / page, pages: 1 << 20, ..Totals::default() };
        let text = lines(&total, system).join("\n");
        assert!(text.starts_with("this is 10.0M (25.00%) of 40.0M of page cache"), "{text}");
        assert!(text.contains("the rest, 30.0M, is") && text.contains("2.0M is tmpfs"), "{text}");
        total.unknown = 1;
        let text = lines(&total, system).join("\n");
        assert!(
            text.contains("at least 10.0M (at least 25.00%)") && text.contains("at most 30.0M"),
            "{text}"
        );
        // More than all: a device, or what changed meanwhile. No share, and no rest.
        let most = Totals { cached: (50 << 20) / page, unknown: 0, ..total };
        let text = lines(&most, system).join("\n");
        assert!(text.starts_with("this is 50.0M of 40.0M") && !text.contains("the rest"), "{text}");
    }
}
