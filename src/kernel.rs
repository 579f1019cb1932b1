//! Everything that touches libbpf: asking the kernel what it can do, loading, attaching, reading tables.

mod attach;
mod floor;
mod probe;
#[doc(hidden)] // for bench/attachments
pub mod raw;
mod tables;
mod tracefs;

pub use attach::AttachError;
pub use attach::Attached;
pub use attach::Settings;
pub use floor::Floor;
pub use probe::Obstacle;
pub use probe::facts;
#[doc(hidden)] // for bench/attachments
pub use tracefs::Tracefs;
