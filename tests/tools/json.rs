//! What the command prints with `--json`.

use serde_json::Value;

pub fn rows(intervals: &[Value]) -> impl Iterator<Item = &Value> {
    intervals.iter().flat_map(|i| i["rows"].as_array().unwrap())
}

pub fn rows_of(intervals: &[Value], pid: u32) -> Vec<&Value> {
    rows(intervals).filter(|r| r["pid"] == pid).collect()
}

pub fn figure(of: &Value, pointer: &str) -> u64 {
    of.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {of}"))
}

pub fn sum(of: &[&Value], pointer: &str) -> u64 {
    of.iter().map(|v| figure(v, pointer)).sum()
}

/// Accesses, hits, read-ahead hits, misses and bytes.
pub type Reads = [u64; 5];

pub const READS: [&str; 5] =
    ["/read/accesses", "/read/hits", "/read/readahead_hits", "/read/misses", "/read/bytes"];
pub const READ_COLUMNS: &str = "accesses,hits,readahead_hits,misses,read_bytes";

pub fn reads(of: &[&Value]) -> Reads {
    READS.map(|pointer| sum(of, pointer))
}
