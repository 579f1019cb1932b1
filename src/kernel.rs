//! Everything that touches libbpf: asking the kernel what it can do, loading, attaching, reading tables.

mod attach;
mod probe;
mod tables;
mod tracefs;

pub use attach::AttachError;
pub use attach::Attached;
pub use attach::Settings;
pub use probe::Obstacle;
pub use probe::facts;
