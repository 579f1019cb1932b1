//! Everything that touches libbpf: asking the kernel what it can do, loading, attaching, reading tables.

mod asked;
mod attach;
mod bill;
mod blame;
mod chores;
mod classic;
mod entries;
mod files;
mod floor;
mod follow;
mod gathering;
mod generations;
mod growth;
mod look;
mod mapped;
mod probe;
#[doc(hidden)] // for bench/attachments
pub mod raw;
mod room;
mod rows;
mod shared;
mod skel;
mod sketches;
mod sketchroom;
mod stand_in;
mod sweep;
#[doc(hidden)] // for tests/root
pub mod symbols;
mod tables;
mod touches;
mod tracefs;
mod tried;

pub use attach::Attached;
pub use attach::Settings;
pub use classic::ClassicAttached;
pub use classic::try_kprobe;
pub use floor::Floor;
pub use gathering::reclaim_gathers_statistics;
pub use generations::Generations;
pub use generations::generations;
pub use probe::Obstacle;
pub use probe::facts;
pub(crate) use probe::functions_are_traced;
pub use probe::name;
pub use probe::privilege;
pub(crate) use probe::traced;
pub use skel::AttachError;
pub use sketches::SketchOwner;
pub use sketches::Sketches;
pub use touches::Touches;
#[doc(hidden)] // for bench/attachments
pub use tracefs::Tracefs;
pub use tried::Tried;
