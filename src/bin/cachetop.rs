//! `cachetop`: who uses the page cache, live.

fn main() {}
