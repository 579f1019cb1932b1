//! What `cachetopd` is to do.

use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use super::moments::Condition;
use super::otlp::Target;
use crate::options::Counting;
use crate::record::writer::Bounds;

/// What `cachetopd` is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Time between two samples.
    pub interval: Duration,
    /// Where to answer; `None`: nowhere.
    pub listen: Option<SocketAddr>,
    /// Whoever can reach that address may ask.
    pub anywhere: bool,
    /// The web configuration file: TLS, passwords.
    pub web: Option<PathBuf>,
    /// Record to a ring in this directory.
    pub record: Option<(PathBuf, Bounds)>,
    /// Write the metrics to a file in this directory.
    pub textfile: Option<PathBuf>,
    /// Cgroups, and mounts, that have series of their own.
    pub series: usize,
    /// Count files, for mounts.
    pub files: bool,
    /// Time read calls.
    pub latency: bool,
    /// Tell the working set, of the machine and by cgroup.
    pub working_set: bool,
    /// What is to be told as soon as it is so.
    pub when: Vec<Condition>,
    /// So many moments are recorded beside the ring, with files and times; 0: none.
    pub moments: usize,
    /// What is run then, by `sh -c`.
    pub then: Option<String>,
    /// Where metrics are sent.
    pub otlp: Option<Target>,
    /// How it is counted.
    pub counting: Counting,
}

impl Options {
    /// Where moments are recorded, if they are.
    #[must_use]
    pub fn moments(&self) -> Option<&Path> {
        let (directory, _) = self.record.as_ref()?;
        (self.moments > 0 && !self.when.is_empty()).then_some(directory.as_path())
    }
}
