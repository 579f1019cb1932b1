//! Look-ups of metadata in a block device's own mapping.

use super::Certainty;
use super::FUNCTIONS;
use super::Seen;
use super::unknown;
use crate::plan::Brackets;
use crate::plan::Event;

const SCOPE: &str = "metadata in a block device's own mapping (ext4 and others that use buffers) and in the trees of \
                     btrfs: xfs keeps its own in buffers of its own, and directories of ext2, NFS and others have \
                     mappings of their own, which are not counted";
const TREES: &str = "the root of a tree of btrfs is held, not looked up";
const NO_TREES: &str = "the trees of btrfs are not seen: its functions cannot be attached to";
const LATE_TREES: &str = "btrfs was not loaded when we began: its trees would not be seen";
const MOUNTING: &str = "what mounting ext4 reads is taken for read-ahead";

impl Seen<'_> {
    pub(super) fn metadata(&self) -> Certainty {
        let lossy = self.loses(Event::BlockFound) || self.loses(Event::PageAdded);
        let mut text = match () {
            () if self.sees(Event::BlockFound) && self.sees(Event::BlockAhead) => {
                format!("{SCOPE}; {MOUNTING}")
            }
            () if self.sees(Event::BlockFound) => SCOPE.to_owned(),
            () if self.brackets == Brackets::Unused => return unknown("the exact engine is not in use"),
            () if self.calls() => return unknown(FUNCTIONS),
            () => {
                return unknown(
                    "the kernel has no function that looks up a block's buffer and can be attached to",
                );
            }
        };
        let of_trees = match self.facts.module("btrfs") {
            _ if self.sees(Event::TreeFound) => TREES,
            true => NO_TREES,
            false => LATE_TREES,
        };
        text = format!("{text}; {of_trees}");
        if lossy {
            text.push_str("; the hooks can lose events on this preemptible kernel; LOST says how many");
        }
        Certainty::Bounded(text)
    }
}
