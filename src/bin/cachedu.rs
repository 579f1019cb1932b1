//! `cachedu`: what is resident in the page cache.

fn main() {}
