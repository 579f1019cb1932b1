//! The state of the cache as `/proc/meminfo` tells it.

use std::fs;
use std::io;

use crate::sample::Memory;

/// Reads `/proc/meminfo`.
///
/// # Errors
/// When it cannot be read.
pub fn read() -> io::Result<Memory> {
    Ok(parse(&fs::read_to_string("/proc/meminfo")?))
}

/// Picks the lines of the cache; kB there are KiB.
#[must_use]
pub fn parse(text: &str) -> Memory {
    let mut memory = Memory::default();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let slot = match name {
            "Cached" => &mut memory.cached_bytes,
            "Buffers" => &mut memory.buffers_bytes,
            "Dirty" => &mut memory.dirty_bytes,
            _ => continue,
        };
        let kib: u64 = rest.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
        *slot = kib.saturating_mul(1024);
    }
    memory
}

/// Pages of files read back in after eviction, since boot, as the kernel counts them.
///
/// # Errors
/// When `/proc/vmstat` cannot be read.
pub fn refaults() -> io::Result<u64> {
    Ok(parse_refaults(&fs::read_to_string("/proc/vmstat")?))
}

/// Before 5.9 there was one count for files and anonymous memory.
fn parse_refaults(text: &str) -> u64 {
    let value = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' ')?.parse().ok());
    value("workingset_refault_file").or_else(|| value("workingset_refault")).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refaults_are_those_of_files() {
        let text = "workingset_refault_anon 7\nworkingset_refault_file 12\nworkingset_activate_file 3\n";
        assert_eq!(parse_refaults(text), 12);
        assert_eq!(parse_refaults("workingset_refault 5\n"), 5);
        assert_eq!(parse_refaults(""), 0);
    }

    #[test]
    fn picks_its_lines() {
        let m = parse("MemTotal: 9 kB\nBuffers:  12 kB\nCached: 3456 kB\nSwapCached: 7 kB\nDirty: 8 kB\n");
        assert_eq!(m, Memory { cached_bytes: 3456 * 1024, buffers_bytes: 12 * 1024, dirty_bytes: 8 * 1024 });
    }
}
