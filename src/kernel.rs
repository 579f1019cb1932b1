//! Everything that touches libbpf: asking the kernel what it can do, loading, attaching, reading tables.

mod attach;
mod files;
mod floor;
mod probe;
mod raw;
mod rows;
mod tables;
mod tracefs;

pub use attach::AttachError;
pub use attach::Attached;
pub use attach::Settings;
pub use floor::Floor;
pub use probe::Obstacle;
pub use probe::facts;
