//! Numbers for people.

/// Pages shown as pages or as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Pages of this machine: 4 KiB on x86.
    Pages,
    /// With K, M, G in text, plain numbers in CSV.
    Bytes,
}
