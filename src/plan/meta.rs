//! Look-ups of metadata in a block device's own mapping.

use super::Brackets;
use super::Certainty;
use super::hooks::Attach;
use super::hooks::Hook;
use super::hooks::LOSSY;
use crate::facts::BTRFS_ALLOC;
use crate::facts::BTRFS_FIND;
use crate::facts::BTRFS_READ;
use crate::facts::BTRFS_READ_NOWAIT;
use crate::facts::Facts;

const FOUND: &str = "block looked up";
const AHEAD: &str = "block read ahead";
const TREE_AHEAD: &str = "block of a tree read ahead";

/// Which programs see blocks being looked up, and where. Empty where nothing does.
pub(super) fn hooks(facts: &Facts, brackets: Brackets, why: &'static str) -> Vec<Hook> {
    let hook = |event, program, attach| Hook { event, program, attach, why };
    let trampoline = |function: &str| Attach::Trampoline(function.into());
    match brackets {
        Brackets::Tracepoints | Brackets::Unused => Vec::new(),
        Brackets::Sessions if facts.function("bdev_getblk") => {
            vec![hook(FOUND, "block_session", Attach::Session(vec!["bdev_getblk".into()]))]
        }
        // The kernels that sessions serve have bdev_getblk (6.7).
        Brackets::Sessions => Vec::new(),
        Brackets::Trampolines | Brackets::LossyTrampolines if facts.function("bdev_getblk") => {
            vec![hook(FOUND, "block_fexit", trampoline("bdev_getblk"))]
        }
        Brackets::Trampolines | Brackets::LossyTrampolines if facts.function("__getblk_gfp") => {
            let program = if facts.fetch_atomics { "block_old_fexit" } else { "block_old_fexit_pages" };
            // What is read ahead is no access: where that cannot be told, nothing is counted.
            if !facts.function("__breadahead") || facts.refuses(program) {
                return Vec::new();
            }
            vec![
                hook(AHEAD, "breadahead_fentry", trampoline("__breadahead")),
                hook(FOUND, program, trampoline("__getblk_gfp")),
            ]
        }
        Brackets::Trampolines | Brackets::LossyTrampolines => Vec::new(),
    }
    .into_iter()
    .filter(|h| !facts.refuses(h.program))
    .chain(trees(facts, brackets, why))
    .collect()
}

/// Programs that see the trees of btrfs being walked: all of them, or none.
fn trees(facts: &Facts, brackets: Brackets, why: &'static str) -> Vec<Hook> {
    if !facts.fetch_atomics || ![BTRFS_FIND, BTRFS_ALLOC, BTRFS_READ].iter().all(|f| facts.function(f)) {
        return Vec::new();
    }
    let nowait = facts.function(BTRFS_READ_NOWAIT);
    let events = ["block of a tree found", "block of a tree made", "block of a tree read"];
    let hook = |event, program, attach| Hook { event, program, attach, why };
    let hooks: Vec<Hook> = match brackets {
        Brackets::Tracepoints | Brackets::Unused => Vec::new(),
        Brackets::Sessions => {
            let session = |function: &str| Attach::Session(vec![function.into()]);
            let entry = |function: &str| Attach::Multi(vec![function.into()], false);
            let mut hooks = vec![
                hook(events[0], "tree_found_session", session(BTRFS_FIND)),
                hook(events[1], "tree_alloc_session", session(BTRFS_ALLOC)),
                hook(events[2], "tree_read_multi", entry(BTRFS_READ)),
            ];
            // The kernels that sessions serve have it.
            hooks.push(hook(TREE_AHEAD, "tree_ahead_multi", entry(BTRFS_READ_NOWAIT)));
            if nowait { hooks } else { Vec::new() }
        }
        Brackets::Trampolines | Brackets::LossyTrampolines => {
            let at = |function: &str| Attach::Trampoline(function.into());
            let read = if nowait { "tree_read_fentry" } else { "tree_read_old_fentry" };
            let mut hooks = vec![
                hook(events[0], "tree_found_fexit", at(BTRFS_FIND)),
                hook(events[1], "tree_alloc_fexit", at(BTRFS_ALLOC)),
                hook(events[1], "tree_alloc_fentry", at(BTRFS_ALLOC)),
                hook(events[2], read, at(BTRFS_READ)),
            ];
            if nowait {
                hooks.push(hook(TREE_AHEAD, "tree_ahead_fentry", at(BTRFS_READ_NOWAIT)));
            }
            hooks
        }
    };
    if hooks.iter().any(|h| facts.refuses(h.program)) { Vec::new() } else { hooks }
}

const SCOPE: &str = "metadata in a block device's own mapping (ext4 and others that use buffers) and in the trees of \
                     btrfs: xfs keeps its own in buffers of its own, and directories of ext2, NFS and others have \
                     mappings of their own, which are not counted";
const TREES: &str = "the root of a tree of btrfs is held, not looked up";
const NO_TREES: &str = "the trees of btrfs are not seen: its functions cannot be attached to";
const LATE_TREES: &str = "btrfs was not loaded when we began: its trees would not be seen";
const MOUNTING: &str = "what mounting ext4 reads is taken for read-ahead";

/// What the `meta_*` figures are worth.
pub(super) fn certainty(facts: &Facts, hooks: &[Hook], brackets: Brackets) -> Certainty {
    let uses = |program: &str| hooks.iter().any(|h| h.program == program);
    let lossy = hooks.iter().any(|h| (h.event == FOUND || h.event == "page added") && h.why == LOSSY);
    let old = uses("block_old_fexit") || uses("block_old_fexit_pages");
    let mut text = match () {
        () if uses("block_session") || uses("block_fexit") => SCOPE.to_owned(),
        () if old && uses("breadahead_fentry") => format!("{SCOPE}; {MOUNTING}"),
        () if brackets == Brackets::Unused => {
            return Certainty::Unknown("the exact engine is not in use".into());
        }
        () if brackets == Brackets::Tracepoints => {
            return Certainty::Unknown("needs hooks on functions, which this kernel refuses".into());
        }
        () => {
            return Certainty::Unknown(
                "the kernel has no function that looks up a block's buffer and can be attached to".into(),
            );
        }
    };
    let trees = uses("tree_found_session") || uses("tree_found_fexit");
    let of_trees = match facts.module("btrfs") {
        _ if trees => TREES,
        true => NO_TREES,
        false => LATE_TREES,
    };
    text = format!("{text}; {of_trees}");
    if lossy {
        text.push_str("; the hooks can lose events on this preemptible kernel; LOST says how many");
    }
    Certainty::Bounded(text)
}
