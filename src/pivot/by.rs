//! What rows can stand for.

use serde::Deserialize;
use serde::Serialize;

/// What rows stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Processes, the threads of each taken together.
    Process,
    /// Threads.
    Thread,
    /// Command names: all processes of one name.
    Comm,
    /// Users.
    User,
    /// Control groups, with the container, pod or unit that the path tells.
    Cgroup,
    /// Files.
    File,
    /// Mounted file systems.
    Mount,
    /// Devices.
    Device,
    /// Those who pushed pages out of the cache, with whose pages these were.
    Evictor,
}

impl By {
    /// Whether files must be counted for it.
    #[must_use]
    pub const fn files(self) -> bool {
        matches!(self, By::File | By::Mount | By::Device)
    }

    /// What several of them are called.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            By::Process => "processes",
            By::Thread => "threads",
            By::Comm => "commands",
            By::User => "users",
            By::Cgroup => "cgroups",
            By::File => "files",
            By::Mount => "mounts",
            By::Device => "devices",
            By::Evictor => "evictors",
        }
    }

    /// What one of them is called.
    #[must_use]
    pub const fn singular(self) -> &'static str {
        match self {
            By::Process => "process",
            By::Thread => "thread",
            By::Comm => "command",
            By::User => "user",
            By::Cgroup => "cgroup",
            By::File => "file",
            By::Mount => "mount",
            By::Device => "device",
            By::Evictor => "evictor",
        }
    }
}
