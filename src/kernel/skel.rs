//! What is generated from `bpf/cachetop.bpf.c`, and what all that works with it have in common.

use crate::limits::Shortage;
use crate::sample::Comm;

pub(super) use generated::CachetopSkel;
pub(super) use generated::CachetopSkelBuilder;
pub(super) use generated::OpenCachetopSkel;
pub(super) use generated::types;

#[allow(clippy::all, missing_docs, dead_code, unsafe_op_in_unsafe_fn)]
#[allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used, clippy::expect_used)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/cachetop.skel.rs"));
}

/// Why a plan did not come to be.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// One hook refused: another plan may do without it.
    #[error("{program}: {why}")]
    Refused {
        /// The program.
        program: String,
        /// The kernel's word.
        why: String,
    },
    /// Nothing loads.
    #[error("cannot load the BPF programs: {0}")]
    Load(String),
}

impl AttachError {
    /// What there was not enough of, if that is why.
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        match self {
            Self::Refused { why, .. } => Shortage::in_words(why),
            // Loading ends in EINVAL now and then when there are no files left.
            Self::Load(why) => Shortage::in_words(why).or_else(Shortage::of_files),
        }
    }
}

/// The name of a thread as the kernel keeps it.
pub(super) fn comm(name: [std::os::raw::c_char; 16]) -> Comm {
    Comm::from_bytes(&name.map(|c| u8::from_ne_bytes(c.to_ne_bytes())))
}

#[cfg(test)]
mod stack;
